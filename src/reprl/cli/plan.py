"""reprl plan: what each algorithm would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprl.cli.answer import FINE, UNDECIDED, Answer
from reprl.cli.options import (
    BASELINE,
    DONE_AT_LIMIT,
    EARLY_ENDS,
    EPSILON_UNITS,
    PLAN_ENV,
    SETTING,
    WORKERS,
    LogFile,
    World,
    count_workers,
    option,
    read_baseline,
    refuse,
)
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.lab.forecast import Forecast
    from reprl.lab.log_plan import LogPlan
    from reprl.lab.planner import Plan
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel


def plan(
    env: str | None = PLAN_ENV,
    *,
    states: int | None = option("S.", "-S"),
    actions: int | None = option("A.", "-A"),
    world: World,
    quality: float | None = SETTING,
    baseline: str | None = BASELINE,
    epsilon: float | None = SETTING,
    epsilon_units: str | None = EPSILON_UNITS,
    rho: float | None = SETTING,
    delta: float | None = SETTING,
    workers: int | None = WORKERS,
    logged: LogFile,
    early_ends: str | None = EARLY_ENDS,
    done_at_limit: str | None = DONE_AT_LIMIT,
    stationary: bool | None = option("Of a log: the dynamics do not depend on the step.", default=None),
    shared_seed: int | None = option("Shared seed of the planned run. Default 0."),
) -> Answer:
    """Tabulate the samples that each algorithm needs, reprl's and the baselines', beside the lower bounds.

    Rows marked exact: what reprl draws. Rows marked range: what its default learner needed in other environments, under
    each kind of promise. Other rows are orders of magnitude. With an environment, the default learner runs there for
    some seconds, and the cost of a run on this machine is forecast, under the strict promise. The default learner is
    asked for a quality, the others for ε: the one that the quality means if the dynamics are known, otherwise 0.3.

    reprl plan --states 16 --actions 4 --horizon 6 --rho 0.1

    reprl plan gridworld-v0 --horizon 6

    With --log FILE: how many more such episodes a decision would need, and which cells are undecided. Exit code 1 if
    the log is not enough.

    reprl plan --log clinic.csv --horizon 5
    """
    from reprl.lab.planner import plan as tabulate
    from reprl.learning.settings import PAPER_EPSILON, Settings

    given = {"quality": quality, "epsilon": epsilon, "rho": rho, "delta": delta}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    settings = Settings(**asked)
    more = {"epsilon_units": epsilon_units, "baseline": None if baseline is None else read_baseline(baseline)}
    ends = {"early_ends": early_ends, "done_at_limit": done_at_limit, "stationary": stationary}
    if logged.log is not None:
        refuse("be left out with --log", ENV=env, states=states, actions=actions, env_option=world.env_option)
        more |= ends
        return _plan_log(logged, world, asked | {k: v for k, v in more.items() if v is not None}, shared_seed)
    refuse("come with --log", column=logged.column, shared_seed=shared_seed, **ends)
    forecasts: list[Forecast] = []
    if env is None:
        sizes = {"n_states": states, "n_actions": actions, "horizon": world.horizon}
        for name, size in zip(("--states", "--actions", "--horizon"), sizes.values(), strict=True):
            if size is None:
                raise InputError(f"{name} must be given where there is no ENV, got none")
        alone = {"env_option": world.env_option, "reward_range": world.reward_range, "discount": world.discount}
        refuse("come with ENV", epsilon_units=epsilon_units, baseline=baseline, **alone)
        accuracy = PAPER_EPSILON if settings.epsilon is None else settings.epsilon
    else:
        if states is not None or actions is not None:
            raise InputError(f"--states and --actions must be left out with ENV, got {states or actions}")
        opened = world.open(env)
        asked |= {name: value for name, value in more.items() if value is not None}
        accuracy, forecasts = _accuracy(opened, asked), _forecasts(opened, count_workers(workers), asked)
        sizes = {"n_states": opened.n_states, "n_actions": opened.n_actions, "horizon": opened.horizon}
    figures = {"epsilon": accuracy, "rho": settings.rho, "delta": settings.delta}
    figures |= {} if settings.quality is None else {"quality": settings.quality}
    table = tabulate(**sizes, **figures)  # type: ignore[arg-type]
    document: dict[str, Any] = {**sizes, **figures, "rows": [row._asdict() for row in table]}
    document["forecasts"] = [found.to_dict() for found in forecasts]
    return Answer(document, lambda console: _show(console, table, forecasts))


def _plan_log(logged: LogFile, world: World, asked: dict[str, Any], shared_seed: int | None) -> Answer:
    """Say how many more episodes a decision from a log would need."""
    from reprl.lab.log_plan import plan_log

    given: dict[str, Any] = {"horizon": world.horizon, "discount": world.discount, "columns": logged.columns()}
    if world.reward_range is not None:
        given["reward_range"] = world.reward_range
    found = plan_log(logged.log, shared_seed=shared_seed or 0, **given, **asked)
    code = FINE if found.decided else UNDECIDED
    return Answer(found.to_dict(), lambda console: _show_log(console, found), code)


def _show_log(console: Console, found: LogPlan) -> None:
    from reprl.execution.terminal import plain_table

    console.print(str(found), soft_wrap=True)
    if found.waiting:
        table = plain_table("undecided cell", "rows", "teams that differ")
        for each in found.waiting:
            table.add_row(each.words, f"{each.rows:,}", f"{each.differ:.0%}")
        console.print(table)


def _accuracy(world: TabularMDP | GymnasiumModel, asked: dict[str, Any]) -> float:
    """ε for those who need one: as given, what the quality comes to, or, where nobody knows that, the paper's."""
    from reprl.learning.baseline import exact_loss, resolve_baseline
    from reprl.learning.learner import make_settings
    from reprl.learning.settings import PAPER_EPSILON
    from reprl.mdp.tabular import TabularMDP

    settings = resolve_baseline(make_settings(asked, world), world)
    if settings.epsilon is None and not isinstance(world, TabularMDP):
        return PAPER_EPSILON
    return exact_loss(world, settings) if isinstance(world, TabularMDP) else settings.asked.epsilon


def _forecasts(world: TabularMDP | GymnasiumModel, workers: int, asked: dict[str, Any]) -> list[Forecast]:
    """Forecast a run by every access that the environment has."""
    from reprl.lab.forecast import forecast
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.protocol import ACCESSES, Access

    ways: tuple[Access, ...] = ACCESSES if isinstance(world, TabularMDP) else ("episodic",)
    return [forecast(world, access=way, workers=workers, **asked) for way in ways]


def _show(console: Console, plan: Plan, forecasts: list[Forecast]) -> None:
    from reprl.execution.terminal import fact_rows, plain_table

    table = plain_table("algorithm", "access", "samples", "kind", "runtime", "source")
    for row in plan:
        table.add_row(row.algorithm, row.access, row.shown, row.kind, row.runtime, row.source)
    console.print(table)
    if forecasts:
        console.print(fact_rows([(f"forecast, {found.access}", found) for found in forecasts]))

"""reprl plan: what each algorithm would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprl.cli.answer import Answer
from reprl.cli.options import EPSILON_UNITS, PLAN_ENV, SETTING, WORKERS, World, count_workers, option, refuse
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.lab.forecast import Forecast
    from reprl.lab.planner import Plan
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel


def plan(
    env: str | None = PLAN_ENV,
    *,
    states: int | None = option("S.", "-S"),
    actions: int | None = option("A.", "-A"),
    world: World,
    epsilon: float | None = SETTING,
    epsilon_units: str | None = EPSILON_UNITS,
    rho: float | None = SETTING,
    delta: float | None = SETTING,
    workers: int | None = WORKERS,
) -> Answer:
    """Tabulate the samples that each algorithm needs, ours and its rivals', beside the lower bounds.

    Rows marked exact are what reprl draws; range: what its default learner needed on other worlds; the others are
    orders of magnitude. With an environment, the default learner makes its first rounds there, for some seconds, and
    what a run would cost on this machine is forecast.

    reprl plan --states 16 --actions 4 --horizon 6 --epsilon 0.3 --rho 0.1

    reprl plan gridworld-v0 --horizon 6
    """
    from reprl.lab.planner import plan as tabulate
    from reprl.learning.accuracy import with_rescaled_epsilon
    from reprl.learning.settings import Settings

    asked = {name: value for name, value in (("epsilon", epsilon), ("rho", rho), ("delta", delta)) if value is not None}
    figures: dict[str, Any] = {"epsilon": Settings.epsilon, "rho": Settings.rho, "delta": Settings.delta, **asked}
    forecasts: list[Forecast] = []
    if env is None:
        sizes = {"n_states": states, "n_actions": actions, "horizon": world.horizon}
        for name, size in zip(("--states", "--actions", "--horizon"), sizes.values(), strict=True):
            if size is None:
                raise InputError(f"{name} must be given where there is no ENV, got none")
        alone = {"env_option": world.env_option, "reward_range": world.reward_range, "discount": world.discount}
        refuse("come with ENV", epsilon_units=epsilon_units, **alone)
    else:
        if states is not None or actions is not None:
            raise InputError(f"--states and --actions must be left out with ENV, got {states or actions}")
        opened = world.open(env)
        figures |= with_rescaled_epsilon(
            asked if epsilon_units is None else {**asked, "epsilon_units": epsilon_units}, opened
        )
        sizes = {"n_states": opened.n_states, "n_actions": opened.n_actions, "horizon": opened.horizon}
        forecasts = _forecasts(opened, count_workers(workers), figures)
    table = tabulate(**sizes, **figures)  # type: ignore[arg-type]
    document: dict[str, Any] = {**sizes, **figures, "rows": [row._asdict() for row in table]}
    document["forecasts"] = [found.to_dict() for found in forecasts]
    return Answer(document, lambda console: _show(console, table, forecasts))


def _forecasts(world: TabularMDP | GymnasiumModel, workers: int, figures: dict[str, float]) -> list[Forecast]:
    """Forecast a run by every access that the environment has."""
    from reprl.lab.forecast import forecast
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.protocol import ACCESSES, Access

    ways: tuple[Access, ...] = ACCESSES if isinstance(world, TabularMDP) else ("episodic",)
    return [
        forecast(
            world, access=way, workers=workers, epsilon=figures["epsilon"], rho=figures["rho"], delta=figures["delta"]
        )
        for way in ways
    ]


def _show(console: Console, plan: Plan, forecasts: list[Forecast]) -> None:
    from reprl.execution.terminal import fact_rows, plain_table

    table = plain_table("algorithm", "access", "samples", "kind", "runtime", "source")
    for row in plan:
        table.add_row(row.algorithm, row.access, row.shown, row.kind, row.runtime, row.source)
    console.print(table)
    if forecasts:
        console.print(fact_rows([(f"forecast, {found.access}", found) for found in forecasts]))

"""reprl plan: what each algorithm would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from reprl.cli import arguments as args
from reprl.cli.answer import Answer
from reprl.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.lab.forecast import Forecast
    from reprl.lab.planner import Plan
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel

PlanEnv = Annotated[
    str | None,
    typer.Argument(
        metavar="[ENV]",
        help="Instead of sizes: an environment, which a pilot is made on.",
        show_default=False,
        autocompletion=args.complete_env,
    ),
]


def plan(
    env: PlanEnv = None,
    states: Annotated[int | None, args.option("--states", "-S", help="S.", kind=args.whole)] = None,
    actions: Annotated[int | None, args.option("--actions", "-A", help="A.", kind=args.whole)] = None,
    horizon: Annotated[int | None, args.option("--horizon", "-H", help="H.", kind=args.whole)] = None,
    epsilon: args.Epsilon = None,
    epsilon_units: args.EpsilonUnits = None,
    rho: args.Rho = None,
    delta: args.Delta = None,
    env_option: args.EnvOptions = None,
    reward_range: args.RewardRange = None,
    workers: args.Workers = None,
    json: args.Json = False,
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
        sizes = {"n_states": states, "n_actions": actions, "horizon": horizon}
        for name, size in zip(("--states", "--actions", "--horizon"), sizes.values(), strict=True):
            if size is None:
                raise InputError(f"{name} must be given where there is no ENV, got none")
        alone = {"env_option": env_option or None, "reward_range": reward_range, "epsilon_units": epsilon_units}
        args.refuse_without("come with ENV", args.flags(alone))
    else:
        if states is not None or actions is not None:
            raise InputError(f"--states and --actions must be left out with ENV, got {states or actions}")
        from reprl.cli.environment import open_named

        world = open_named(env, horizon, args.read_pairs("--env-option", env_option), reward_range)
        figures |= with_rescaled_epsilon(
            asked if epsilon_units is None else {**asked, "epsilon_units": epsilon_units}, world
        )
        sizes = {"n_states": world.n_states, "n_actions": world.n_actions, "horizon": world.horizon}
        forecasts = _forecasts(world, args.count_workers(workers), figures)
    table = tabulate(**sizes, **figures)  # type: ignore[arg-type]
    document: dict[str, Any] = {**sizes, **figures, "rows": [row._asdict() for row in table]}
    document["forecasts"] = [found.to_dict() for found in forecasts]
    return Answer(document, lambda console: _show(console, table, forecasts))


def _forecasts(world: TabularMDP | GymnasiumModel, workers: int, figures: dict[str, float]) -> list[Forecast]:
    """Forecast a run by every access that the environment has."""
    from reprl.lab.forecast import forecast
    from reprl.mdp.tabular import TabularMDP

    ways = ("episodic", "generative") if isinstance(world, TabularMDP) else ("episodic",)
    return [
        forecast(
            world, access=way, workers=workers, epsilon=figures["epsilon"], rho=figures["rho"], delta=figures["delta"]
        )
        for way in ways
    ]


def _show(console: Console, plan: Plan, forecasts: list[Forecast]) -> None:
    from reprl.cli.draw import facts, table_of

    table = table_of("algorithm", "access", "samples", "kind", "runtime", "source")
    for row in plan:
        table.add_row(row.algorithm, row.access, row.shown, row.kind, row.runtime, row.source)
    console.print(table)
    if forecasts:
        console.print(facts([(f"forecast, {found.access}", found) for found in forecasts]))

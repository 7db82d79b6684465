"""reprl audit: how often does a learner disagree with itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reprl.cli import arguments as args
from reprl.cli.answer import BAD_INPUT, DIFFERENT, FINE, Answer, progress_wanted

if TYPE_CHECKING:
    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel

Learner = Annotated[
    str,
    args.option(
        "--learner",
        help="A name of 'reprl learners', or file.py:name. Default reprl.",
        metavar="NAME",
        complete=args.complete_learner,
    ),
]
Pairs = Annotated[int, args.option("--pairs", "-n", help="Pairs of runs to try. Default 50.", kind=args.whole)]
Results = Annotated[
    Path | None,
    args.option(
        "--out",
        help="Write the evidence to FILE.json, or to a folder with every finished pair: started again, it goes on.",
        metavar="FILE.json|DIR",
    ),
]
Seed = Annotated[
    int | None, args.option("--seed", help="Of the audit: shared and data seeds follow from it.", kind=args.whole)
]


def audit(
    env: args.Env,
    learner: Learner = "reprl",
    pairs: Pairs = 50,
    horizon: args.Horizon = None,
    discount: args.Discount = None,
    reward_range: args.RewardRange = None,
    epsilon: args.Epsilon = None,
    epsilon_units: args.EpsilonUnits = None,
    rho: args.Rho = None,
    delta: args.Delta = None,
    access: args.Access = None,
    rule: args.Rule = None,
    preference: args.Preference = None,
    constants: args.Constants = None,
    scale: args.Scale = None,
    level: Annotated[
        float | None,
        args.option("--level", help="Chance of rejecting a learner that keeps ρ. Default 0.05.", kind=args.real),
    ] = None,
    sequential: Annotated[bool, typer.Option("--sequential", help="Stop as soon as the verdict is certain.")] = False,
    seed: Seed = None,
    out: Results = None,
    option: args.Options = None,
    env_option: args.EnvOptions = None,
    workers: Annotated[
        int, args.option("--workers", help="Processes, for long audits; same result. Default 1.", kind=args.whole)
    ] = 1,
    dask: args.Dask = None,
    json: args.Json = False,
) -> Answer:
    """Run a learner in pairs with one shared seed each and independent data, and count how often they differ.

    Exit code 1 if the evidence rejects that two runs differ with probability at most ρ. "Not rejected" is no proof.

    reprl audit gridworld-v0 --horizon 6 --pairs 20

    reprl audit gridworld-v0 --learner ucbvi -o samples=100000 --out audit.json

    reprl audit gridworld-v0 --pairs 10000 --out evidence --dask tcp://127.0.0.1:8786

    reprl audit plant.py:make_plant --learner mine.py:q_learning -o episodes=1000
    """
    from reprl.auditing.audit import audit as run_audit
    from reprl.cli.environment import names_object, open_named, read_object
    from reprl.execution.tasks import cluster

    given: dict[str, Any] = {"epsilon": epsilon, "epsilon_units": epsilon_units, "rho": rho, "delta": delta}
    given |= {"access": access, "rule": rule, "preference": preference, "constants": constants, "scale": scale}
    options = args.learn_options(given | {"level": level, "seed": seed}, option)
    with args.open_results(out, "audit.json") as (save, kept), cluster(dask):
        world = open_named(env, horizon, args.world_options(env_option, discount), reward_range)
        subject = read_object("--learner", learner) if names_object(learner) else learner
        if learner == "reprl":
            _announce(world, options, 2.0 * pairs / max(1, workers))
        how: dict[str, Any] = {"workers": workers, "checkpoint": kept, "progress": progress_wanted()}
        found = run_audit(world, subject, pairs, sequential=sequential, **how, **options)
        unsaved = save(found.to_json())
    code = BAD_INPUT if unsaved else DIFFERENT if found.verdict == "rejected" else FINE
    return Answer(found.to_dict(), lambda console: console.print(found), code, unsaved)


def _announce(world: TabularMDP | GymnasiumModel, options: dict[str, Any], runs: float) -> None:
    """Say what the runs of our own learner may cost, unless a budget sets their size."""
    from dataclasses import fields

    from reprl.cli.announce import announce
    from reprl.learning.accuracy import with_rescaled_epsilon
    from reprl.learning.learner import make_settings
    from reprl.learning.settings import Settings

    own = {field.name for field in fields(Settings)}
    if "samples" not in options:
        options = with_rescaled_epsilon(options, world)
        settings = make_settings({name: value for name, value in options.items() if name in own})
        announce(world, settings, workers=1, max_samples=None, runs=runs)

"""reprl compare: the smallest budget at which each learner replicates and is good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from reprl.cli import arguments as args
from reprl.cli.answer import BAD_INPUT, FINE, Answer, progress_wanted
from reprl.cli.audit import Results, Seed


def compare(
    env: args.Env,
    learner: Annotated[
        list[str] | None,
        args.option(
            "--learner",
            help="A name of 'reprl learners', or file.py:name; may be repeated. Default: all.",
            metavar="NAME",
            complete=args.complete_learner,
        ),
    ] = None,
    horizon: args.Horizon = None,
    reward_range: args.RewardRange = None,
    epsilon: args.Epsilon = None,
    epsilon_units: args.EpsilonUnits = None,
    rho: args.Rho = None,
    access: Annotated[
        str | None, args.option("--access", help='"episodic" or "generative". Default: both.', metavar="NAME")
    ] = None,
    pairs: Annotated[
        int | None, args.option("--pairs", "-n", help="Most pairs of runs at each budget. Default 40.", kind=args.whole)
    ] = None,
    limit: Annotated[
        int | None, args.option("--limit", help="The largest budget of samples to try.", kind=args.whole)
    ] = None,
    seed: Seed = None,
    out: Results = None,
    env_option: args.EnvOptions = None,
    workers: args.Workers = None,
    dask: args.Dask = None,
    json: args.Json = False,
) -> Answer:
    """Find the smallest number of samples at which each learner both replicates and is near-optimal.

    reprl compare gridworld-v0 --horizon 6 --access generative --out comparison.json

    reprl compare river-swim-v0 --learner reprl --learner ucbvi --learner mine.py:train --pairs 20
    """
    from reprl.auditing.compare import compare as run_comparison
    from reprl.cli.environment import names_object, open_named, read_object
    from reprl.execution.tasks import cluster

    asked = {
        "epsilon": epsilon,
        "epsilon_units": epsilon_units,
        "rho": rho,
        "access": access,
        "pairs": pairs,
        "limit": limit,
        "seed": seed,
    }
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    world = open_named(env, horizon, args.read_pairs("--env-option", env_option), reward_range)
    with args.open_results(out, "comparison.json") as (save, kept):
        with _status() as tell, cluster(dask):
            given |= {"workers": args.count_workers(workers), "checkpoint": kept, "progress": tell}
            named = [read_object("--learner", name) if names_object(name) else name for name in learner or ()]
            found = run_comparison(world, named or None, **given)
        unsaved = save(found.to_json())
    return Answer(found.to_dict(), lambda console: console.print(found), BAD_INPUT if unsaved else FINE, unsaved)


@contextmanager
def _status() -> Iterator[Callable[[str, int], None] | None]:
    """A line on standard error that says what was tried last."""
    if not progress_wanted():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("comparing") as line:
        yield lambda label, budget: line.update(f"comparing: {label} with {budget:,} samples")

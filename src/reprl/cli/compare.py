"""reprl compare: the smallest budget at which each learner replicates and is good."""

from __future__ import annotations

from typing import Any

from reprl.cli.answer import Answer, evidence_answer, progress_wanted
from reprl.cli.options import (
    BASELINE,
    DASK,
    ENV,
    EPSILON_UNITS,
    SETTING,
    WORKERS,
    Evidence,
    World,
    complete_learner,
    count_workers,
    option,
    read_baseline,
)
from reprl.cli.search import is_search, source_of


def compare(
    env: str = ENV,
    *,
    learner: list[str] | None = option(
        "A name of 'reprl learners', or file.py:name; may be repeated. Default: all.", complete=complete_learner
    ),
    world: World,
    quality: float | None = SETTING,
    baseline: str | None = BASELINE,
    epsilon: float | None = SETTING,
    epsilon_units: str | None = EPSILON_UNITS,
    rho: float | None = SETTING,
    target: float | None = option("A mean return to exceed, where observations are a Box."),
    access: str | None = option('"episodic" or "generative". Default: both.'),
    pairs: int | None = option("Most pairs of runs at each budget. Default 40.", "-n"),
    limit: int | None = option("The largest budget of samples to try."),
    evidence: Evidence,
    workers: int | None = WORKERS,
    dask: str | None = DASK,
) -> Answer:
    """Find the smallest number of samples at which each learner both replicates and is near-optimal.

    reprl compare gridworld-v0 --horizon 6 --access generative --out comparison.json

    reprl compare gym:CartPole-v1 --target 475 --learner search --learner ars --limit 400000

    reprl compare river-swim-v0 --learner reprl --learner ucbvi --learner mine.py:train --pairs 20
    """
    from reprl.auditing.compare import compare as run_comparison
    from reprl.cli.environment import named_learner
    from reprl.execution.tasks import cluster

    asked = {"quality": quality, "baseline": None if baseline is None else read_baseline(baseline)}
    asked |= {"epsilon": epsilon, "epsilon_units": epsilon_units, "rho": rho, "access": access}
    asked |= {"pairs": pairs, "limit": limit, "seed": evidence.seed}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if target is not None:
        given["target"] = target
    opened: Any
    if is_search(env, world, {} if target is None else {"target": target}, {}):
        opened, _ = source_of(env, world)
        given |= {"horizon": world.horizon, "reward_range": world.reward_range}
    else:
        opened = world.open(env)
    with evidence.open("comparison.json") as (save, kept):
        with cluster(dask):
            given |= {"workers": count_workers(workers), "checkpoint": kept, "progress": progress_wanted()}
            found = run_comparison(opened, [named_learner(name) for name in learner or ()] or None, **given)
        unsaved = save(found.to_json())
    return evidence_answer(found, unsaved)

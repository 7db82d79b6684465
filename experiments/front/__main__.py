"""python -m experiments.front [--draw-only]: train on independent data, team after team; draw policies and worlds.

Takes under a minute. The front page and README.md show what is stored here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import reprl
from experiments.front import pictures
from experiments.runner import Experiment, Job
from reprl.lab.baselines import empirical_values, greedy_policy

ENV, OPTIONS, SHARED_SEED = "gridworld-v0", {"horizon": 6, "size": 4}, 7
RHO = 0.1
TEAMS = 20


def run(data_seed: int) -> dict[str, Any]:
    """One team: reprl's policy at the default quality, and the greedy one from the very same data."""
    world = reprl.make(ENV, **OPTIONS)
    assert isinstance(world, reprl.TabularMDP)
    aims = {"rho": RHO, "shared_seed": SHARED_SEED}
    reprl.learn(world, **aims, data_seed=0)  # so that seconds are those of a run without compiling
    result = reprl.learn(world, **aims, data_seed=data_seed)
    greedy = greedy_policy(empirical_values(result.counts))
    best = world.evaluate(world.solve().policy)
    assert result.rehearsal is not None
    return {
        "fingerprint": result.policy.fingerprint,
        "actions": result.policy.actions.tolist(),
        "ignored": result.tiers.ignorable.astype(int).tolist(),
        "greedy": greedy.actions.tolist(),
        "greedy_fingerprint": greedy.fingerprint,
        "samples": result.samples,
        "episodes": result.episodes,
        "seconds": round(result.seconds, 2),
        "status": result.guarantee.status,
        "rehearsal": [result.rehearsal.agree, result.rehearsal.of],
        "value": world.evaluate(result.policy),
        "greedy_value": world.evaluate(greedy),
        "best": best,
    }


def jobs(quick: bool) -> dict[str, Job]:
    """Return one run for each team."""
    return {f"team {seed}": partial(run, seed) for seed in range(1, 1 + (2 if quick else TEAMS))}


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    return {"env": ENV, "options": OPTIONS, "rho": RHO, "shared_seed": SHARED_SEED}


EXPERIMENT = Experiment(
    name="front",
    page="gallery.md",
    jobs=jobs,
    head=head,
    draw=pictures.draw,
    tables=pictures.tables,
    marks=(pictures.START, pictures.END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

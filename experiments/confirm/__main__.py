"""python -m experiments.confirm [--quick] [--only TEXT]: error rates and prices of tests by betting (docs/confirm.md).

Some ten minutes on one core. The agent needs the extra `agents`; a measurement that is stored needs nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.confirm import measure, plan, present
from experiments.runner import Experiment, Job


def jobs(quick: bool) -> dict[str, Job]:
    """Every measurement by the name it is stored under."""
    chunk = 20 if quick else plan.CHUNK
    found: dict[str, Job] = {}
    kinds: dict[str, Any] = {
        "below": measure.below,
        **{f"scans/{by}": partial(measure.scans, by) for by in measure.SCANS},
    }
    for kind, run in kinds.items():
        for name, strength in plan.STRENGTHS.items():
            for first in range(0, chunk if quick else plan.POLICIES, chunk):
                found[f"{kind}/{name}#{first}"] = partial(run, strength, first, chunk)
    found |= {f"episodes/{case}": partial(measure.episodes, case) for case in plan.CASES}
    return found | {"published/FrozenLake": measure.lake, "published/CartPole": measure.ppo}


def head(quick: bool) -> dict[str, Any]:
    """What the stored data were measured with."""
    return {"quick": quick, "seed": plan.SEED, "delta": plan.DELTA, "rho": plan.RHO}


EXPERIMENT = Experiment(
    name="confirm",
    page="confirm.md",
    jobs=jobs,
    head=head,
    draw=present.draw,
    tables=present.tables,
    marks=("<!-- tables: python -m experiments.confirm -->", "<!-- end of tables -->"),
    extra="agents",
    needs=("torch", "stable_baselines3"),
)

if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

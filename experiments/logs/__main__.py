"""python -m experiments.logs [--quick] [--only TEXT]: measure what is missing, then write the table of docs/logs.md.

Measurements are stored as they are done, and a run that was stopped goes on where it was. All of it takes about an hour
on one core.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.logs import measure, plan, present
from experiments.runner import Experiment, Job


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under."""
    sizes = {min(plan.SIZES): 1} if quick else plan.SIZES
    return {
        f"{world}/{size}#{number}": partial(measure.pair, world, size, number)
        for size, pairs in sizes.items()
        for number in range(pairs)
        for world in plan.WORLDS
    }


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    return {"quality": 0.9, "rho": plan.RHO, "seed": plan.SEED, "quick": quick}


EXPERIMENT = Experiment(
    name="logs",
    page="logs.md",
    jobs=jobs,
    head=head,
    tables=lambda data: present.tables(data["measured"]).rstrip(),
    marks=(present.START, present.END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

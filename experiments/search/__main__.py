"""python -m experiments.search [--quick] [--only TEXT]: pairs of certified searches on classic control and small boxes.

Each pair has a shared seed of its own and independent data. The dynamics are compiled (classic.py); the searches are
those of reprl.learn at its defaults. The full experiment takes some minutes on one core and rewrites
experiments/search/data.json, docs/figures/search.svg and the tables in docs/search.md.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.runner import Experiment, Job
from experiments.search import boxes, measure, present, tables

CHUNK = 10


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under."""
    out: dict[str, Job] = {}
    for name, task in measure.TASKS.items():
        pairs = min(task.pairs, 1) if quick else task.pairs
        if quick and name not in ("CartPole-v1", "MountainCar-v0"):
            continue
        chunk, last = CHUNK if task.pairs >= 50 else 1, task.first + pairs
        for first in range(task.first, last, chunk):
            out[f"pairs/{name}#{first}"] = partial(measure.pairs, name, range(first, min(first + chunk, last)))
    return out if quick else out | tables.jobs() | boxes.jobs()


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    return {"seed": measure.SEED, "rho": measure.RHO, "quick": quick}


EXPERIMENT = Experiment(
    name="search",
    page="search.md",
    jobs=jobs,
    head=head,
    draw=present.draw,
    tables=present.tables,
    marks=(present.START, present.END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

"""python -m experiments.faulty_logs [--quick] [--only TEXT]: measure what is missing, then write its table.

Measurements are stored as they are done, and a run that was stopped goes on where it was. All of it takes about three
minutes on one core.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.faulty_logs import present
from experiments.faulty_logs.worlds import FAULTS, judge, make_faulty
from experiments.runner import Experiment, Job

EPISODES, EACH, FIRST = 600, 48, 100
"""Episodes of a log, logs of a kind, and the first seed: smaller ones belong to the tests."""


def measure(kind: str, seed: int) -> dict[str, Any]:
    """Learn from a log of a kind, and return what was said."""
    found = judge(make_faulty(kind, seed, EPISODES))
    return {"said": found.said, "words": found.words}


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under."""
    seeds = range(FIRST, FIRST + (1 if quick else EACH))
    return {f"{kind}#{seed}": partial(measure, kind, seed) for seed in seeds for kind in FAULTS}


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    return {"episodes": EPISODES, "quick": quick}


EXPERIMENT = Experiment(
    name="faulty_logs",
    page="logs.md",
    jobs=jobs,
    head=head,
    tables=lambda data: present.tables(data["measured"]),
    marks=(present.START, present.END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

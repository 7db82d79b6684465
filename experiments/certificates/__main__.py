"""python -m experiments.certificates [--quick] [--only TEXT]: measure what is missing, then draw the figure and tables.

Measurements are stored as they are done; a run that was stopped goes on where it was. The full experiment takes about
half an hour on two cores and rewrites experiments/certificates/data.json, docs/figures/certificates.svg and the tables
in docs/certificates.md. --quick takes a minute and writes to --out.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from experiments.certificates import measure, plan, present
from experiments.runner import Experiment, Job

CHUNK = 2_500


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under."""
    effort = plan.QUICK if quick else plan.FULL
    out: dict[str, Job] = {}
    for strength in plan.STRENGTHS:
        runs = effort.runs if strength == 1.0 else effort.control_runs
        for first in range(0, runs, CHUNK):
            numbers = range(first, min(first + CHUNK, runs))
            out[f"validity/{strength}#{first}"] = partial(measure.validity, strength, numbers)
    for strength in (1.0, 0.5):
        for first in range(0, effort.alone_runs, 4 * CHUNK):
            numbers = range(first, min(first + 4 * CHUNK, effort.alone_runs))
            out[f"alone/{strength}#{first}"] = partial(measure.validity, strength, numbers, alone=True)
    for way in plan.COVERAGE_WAYS:
        for strength in plan.COVERAGE_STRENGTHS:
            numbers = range(5 if quick else plan.COVERAGE_RUNS)
            out[f"coverage/{way}/{strength}"] = partial(measure.coverage, way, strength, numbers)
    for world in plan.QUICK_WORLDS if quick else plan.WORLDS:
        out[f"cost/{world}"] = partial(measure.cost, world, range(effort.keys))
    for world in () if quick else plan.BY_EPISODES:
        for number in range(effort.episodic_keys):
            out[f"episodes/{world}#{number}"] = partial(measure.episodes, world, number)
    return out


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    effort = asdict(plan.QUICK if quick else plan.FULL)
    asked = {"epsilon": plan.EPSILON.epsilon, "quality": plan.QUALITY.quality, "delta": plan.DELTA}
    return {"effort": effort, **asked, "seed": plan.SEED}


EXPERIMENT = Experiment(
    name="certificates",
    page="certificates.md",
    jobs=jobs,
    head=head,
    draw=present.draw,
    tables=present.tables,
    marks=(present.START, present.END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

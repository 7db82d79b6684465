"""python -m experiments.canonical [--quick] [--only TEXT]: measure what is missing, then draw figures and tables.

Measurements are stored as they are done, ten pairs at a time, and a run that was stopped goes on where it was. The full
experiment takes an hour or two on two cores and rewrites experiments/canonical/data.json, docs/figures/canonical*.svg
and the tables in docs/canonical.md. --quick takes a minute or two and writes to --out.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from experiments.canonical import figures, measure, plan, present
from experiments.runner import Experiment, Job


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under; a chunk of a case's pairs has its number after "#"."""
    effort = plan.QUICK if quick else plan.FULL
    out: dict[str, Job] = {}
    pairs = {case: effort.pairs if quick else case.pairs or effort.pairs for case in plan.cases(quick)}
    for first in range(0, max(pairs.values()), effort.chunk):
        for case, number in pairs.items():
            numbers = range(first, min(first + effort.chunk, number))
            if numbers:
                out[f"{case.name}#{first}"] = partial(measure.pairs, case, numbers)
    for label in plan.RIVALS:
        for world in _without_rivals(quick):
            out[f"rival/{world}/{label}"] = partial(measure.rival, world, label, effort)
    for world in ("gridworld 4×4",) if quick else plan.REHEARSED:
        for calls in plan.SIZES[:1] if quick else plan.SIZES + plan.LARGER.get(world, ()):
            out[f"rehearsed/{world}/{calls}"] = partial(measure.rehearsed, world, calls, effort)
    for rule in ("canonical", "sampled"):
        for world in ("hard-instance-v0",) if quick else plan.LISTED:
            out[f"listed/{rule}/{world}"] = partial(measure.listed, world, rule, effort)
    for size in () if quick else plan.COSTS:
        out[f"cost/{size}"] = partial(measure.cost, size)
    for world in () if quick else plan.BOXES:
        out[f"box/{world}"] = partial(measure.box, world)
    for stationary in () if quick else (True, False):
        out[f"table/stationary={stationary}"] = partial(measure.shop_table, stationary)
    out["drawn"] = measure.drawn
    return out


def _without_rivals(quick: bool) -> list[str]:
    """Catalogue worlds that the head-to-head has not measured."""
    known = (*plan.IN_HEAD_TO_HEAD, *plan.MASKED)
    return [] if quick else [name for name in plan.CATALOGUE if name not in known]


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    effort = asdict(plan.QUICK if quick else plan.FULL)
    return {"effort": effort, "epsilon": plan.EPSILON, "rho": plan.RHO, "seed": plan.SEED}


EXPERIMENT = Experiment(
    name="canonical",
    page="canonical.md",
    jobs=jobs,
    head=head,
    draw=figures.draw,
    tables=present.tables,
    marks=(present.START, present.END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

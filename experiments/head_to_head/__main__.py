"""python -m experiments.head_to_head [--quick] [--only TEXT]: measure what is missing, then draw figures and tables.

Every measurement is stored as soon as it is done, and a run that was stopped goes on where it was. The full experiment
takes about an hour of one core and rewrites experiments/head_to_head/data.json, docs/figures/head-to-head*.svg and
the tables in docs/head-to-head.md. --quick takes under a minute and writes to --out.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import reprl
from experiments.head_to_head import measure, plan, present
from experiments.runner import Experiment, Job


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under, what matters most first."""
    effort = plan.QUICK if quick else plan.FULL
    table = {entry.name: partial(measure.cell, entry, effort) for entry in plan.cells(quick)}
    sweeps = {entry.name: partial(measure.point, entry, effort) for entry in plan.points(quick)}
    everything = {**table, **sweeps}
    order = ("table/generative/", "sweep/states/", "table/", "")
    return {name: everything[name] for start in order for name in everything if name.startswith(start)}


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    effort = asdict(plan.QUICK if quick else plan.FULL)
    return {"version": reprl.__version__, "effort": effort, "epsilon": plan.EPSILON, "rho": plan.RHO, "seed": plan.SEED}


EXPERIMENT = Experiment(
    name="head_to_head",
    page="head-to-head.md",
    jobs=jobs,
    head=head,
    draw=present.draw,
    tables=present.tables,
    marks=(present.START, present.END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

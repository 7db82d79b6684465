"""python -m experiments.whole [--quick] [--only TEXT]: measure what is missing, then draw the figure and the tables.

Measurements are stored as they are done; a run that was stopped goes on where it was. The full experiment takes about
half an hour on one core and rewrites experiments/whole/data.json, docs/figures/whole-tiers.svg and the tables in
docs/whole.md. --quick takes a minute and writes to --out.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from experiments.runner import Experiment, Job
from experiments.whole import measure, plan, present


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under."""
    effort = plan.QUICK if quick else plan.FULL
    out: dict[str, Job] = {}
    for world in plan.TIER_WORLDS:
        out[f"tiers/{world}"] = partial(measure.tiers, world, effort.tier_runs)
    for first in range(0, effort.pairs, plan.CHUNK):
        for world in plan.WORLDS:
            numbers = range(first, min(first + plan.CHUNK, effort.pairs))
            out[f"pairs/{world}#{first}"] = partial(measure.pairs, world, numbers)
    for world in plan.BOOSTING_WORLDS:
        for scale in plan.BOOSTING_SCALES[: 1 if quick else None]:
            pairs = 1 if quick else plan.BOOSTING_PAIRS
            out[f"boosting/{world}/{scale}"] = partial(measure.boosting, world, scale, pairs)
    for name, one in plan.THEOREM.items():
        for number in range(0 if quick else one.pairs):
            out[f"theorem/{name}#{number}"] = partial(measure.theorem, name, number)
    for n_states in effort.states:
        for grade in plan.GRADES:
            numbers = range(effort.slope_pairs)
            out[f"slope/{grade}/{n_states}"] = partial(measure.slope, n_states, grade, numbers)
    return out


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    scales = {"scale": plan.SCALE, "slope_scale": plan.SLOPE_SCALE, "tier_scale": plan.TIER_SCALE}
    asked = {"epsilon": plan.EPSILON, "rho": plan.RHO, "delta": plan.DELTA, "seed": plan.SEED, **plan.PAPER}
    effort = {
        name: list(x) if isinstance(x, tuple) else x for name, x in asdict(plan.QUICK if quick else plan.FULL).items()
    }
    return {"effort": effort, **asked, **scales}


EXPERIMENT = Experiment(
    name="whole",
    page="whole.md",
    jobs=jobs,
    head=head,
    draw=present.draw,
    tables=present.tables,
    marks=(present.START, present.END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

"""Measure one cell of the table or one point of a sweep, and fit slopes."""

from __future__ import annotations

import math
import time
from typing import Any, cast

import numpy as np
from scipy import stats

from experiments.head_to_head.plan import EPSILON, INSTANCES, RHO, SEED, SWEEPS, Cell, Effort, Point, hard
from reprl.auditing.audit import audit
from reprl.auditing.compare import run_row
from reprl.auditing.search import crossing
from reprl.randomness import DataStream
from reprl.sources.protocol import Access

AROUND = (0.5, 1.0, 2.0)
FREE = ("replicable-rmax",)
"""Plays episodes as multinomial flows, so that it may have the budgets of parallel sampling."""


def cell(entry: Cell, effort: Effort) -> dict[str, Any]:
    """Search the smallest budget of one learner on one instance."""
    access = entry.contender.access
    cheap = "generative" if entry.contender.name in FREE else access
    row = run_row(
        INSTANCES[entry.instance](),
        entry.contender,
        epsilon=EPSILON,
        rho=RHO,
        pairs=effort.pairs[access],
        limit=effort.limit[cheap],
        seed=_seed(entry.name),
    )
    return {"instance": entry.instance, **row.to_dict()}


def own(access: str, instance: str, effort: Effort) -> dict[str, Any]:
    """Measure the default learner at the size that it chooses itself."""
    began = time.process_time()
    report = audit(
        INSTANCES[instance](),
        "reprl",
        effort.own_pairs[access],
        access=cast(Access, access),
        rho=RHO,
        epsilon=EPSILON,
        seed=_seed(f"own/{access}/{instance}"),
    )
    assert report.suboptimality is not None
    return {
        "instance": instance,
        "access": access,
        "samples": report.samples,
        "pairs": report.pairs,
        "disagreements": report.disagreements,
        "interval": list(report.interval),
        "suboptimality": report.suboptimality.mean,
        "seconds": (time.process_time() - began) / (2 * report.pairs),
    }


def point(entry: Point, effort: Effort) -> dict[str, Any]:
    """Find where disagreement passes ρ: a search, then a curve through three budgets around its answer."""
    mdp = hard(entry.states, entry.actions, entry.bias)
    contender, seed = entry.contender, _seed(entry.name)
    limit = effort.limit["generative"] * 2**12
    row = run_row(mdp, contender, epsilon=entry.epsilon, rho=entry.rho, pairs=effort.scouts, limit=limit, seed=seed)
    out: dict[str, Any] = {"sweep": entry.sweep, "value": entry.value, "x": entry.x, "learner": contender.label}
    if not row.reached:
        return {**out, "samples": None, "limit": row.limit}
    budgets = [max(contender.minimum_budget(mdp), round(row.shown.budget * part)) for part in AROUND]
    reports = [
        audit(mdp, contender.make(budget), effort.around, access="generative", seed=seed + k)
        for k, budget in enumerate(budgets)
    ]
    loss = max(report.suboptimality.mean for report in reports if report.suboptimality)
    counts = [(p.samples, p.pairs, p.disagreements) for p in row.points]
    counts += [(report.samples, report.pairs, report.disagreements) for report in reports]
    needed, low, high = crossing(counts, entry.rho)
    return {**out, "samples": needed, "interval": [low, high], "suboptimality": loss, "counts": counts}


def slope(x: list[float], y: list[float], spread: list[float]) -> dict[str, float]:
    """Return the slope of log y on log x, with a 95 % interval.

    Least squares weighted by the points' own standard errors `spread` (of log y); where the points scatter about the
    line more than these explain, the interval is widened to what the scatter says.
    """
    u, v = np.log(x), np.log(y)
    weight = 1.0 / np.square(spread)
    centred = u - np.average(u, weights=weight)
    total = float(np.sum(weight * centred**2))
    steep = float(np.sum(weight * centred * v)) / total
    left = v - np.average(v, weights=weight) - steep * centred
    excess = float(np.sum(weight * left**2)) / (len(x) - 2)
    half = float(stats.norm.ppf(0.975)) * math.sqrt(max(1.0, excess) / total)
    return {"slope": steep, "low": steep - half, "high": steep + half}


def slopes(stored: dict[str, Any]) -> list[dict[str, Any]]:
    """Fit every sweep of every learner that has at least three points."""
    rows = [row for name, row in stored.items() if name.startswith("sweep/")]
    out = []
    for sweep in SWEEPS:
        for learner in dict.fromkeys(row["learner"] for row in rows):
            chosen = [
                row for row in rows if (row["sweep"], row["learner"]) == (sweep, learner) and row["samples"] is not None
            ]
            if len(chosen) >= 3:
                spread = [math.log(row["interval"][1] / row["interval"][0]) / 3.92 for row in chosen]
                fit = slope([row["x"] for row in chosen], [row["samples"] for row in chosen], spread)
                out.append({"sweep": sweep, "learner": learner, "points": len(chosen), **fit})
    return out


def _seed(name: str) -> int:
    """The seed of a measurement: no other measurement moves it."""
    return int(DataStream(SEED, name).integers(1)[0]) >> 1

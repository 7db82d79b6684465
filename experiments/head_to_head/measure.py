"""Measure one cell of the table or one point of a sweep, and fit slopes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from experiments.head_to_head.budget import crossing, smallest_budget
from experiments.head_to_head.plan import EPSILON, INSTANCES, RHO, SEED, SWEEPS, Cell, Contender, Effort, Point, hard
from reprl.auditing.audit import audit
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream

AROUND = (0.5, 1.0, 2.0)
FREE = ("replicable-rmax",)
"""Plays episodes as multinomial flows, so that it may have the budgets of parallel sampling."""


def row(mdp: TabularMDP, one: Contender, **asked: Any) -> dict[str, Any]:
    """Search the smallest budget of one learner; a limit below its first budget is raised to it."""
    low = one.first_budget(mdp)
    own = int(DataStream(asked.pop("seed"), f"compare/{one.access}/{one.label}").integers(1)[0])
    asked |= {"limit": max(low, asked["limit"]), "seed": own}
    found = smallest_budget(mdp, one.make, access=one.access, low=low, **asked)
    return {"learner": one.label, "access": one.access, "options": dict(one.options), **found}


def cell(entry: Cell, effort: Effort) -> dict[str, Any]:
    """Search the smallest budget of one learner on one instance."""
    access, mdp = entry.contender.access, INSTANCES[entry.instance]()
    limit = effort.limit["generative" if entry.contender.name in FREE else access]
    asked: dict[str, Any] = {"epsilon": EPSILON, "rho": RHO, "pairs": effort.pairs[access], "limit": limit}
    return {"instance": entry.instance, **row(mdp, entry.contender, seed=_seed(entry.name), **asked)}


def point(entry: Point, effort: Effort) -> dict[str, Any]:
    """Find where disagreement passes ρ: a search, then a curve through three budgets around its answer."""
    mdp = hard(entry.states, entry.actions, entry.bias)
    contender, seed = entry.contender, _seed(entry.name)
    asked: dict[str, Any] = {"epsilon": entry.epsilon, "rho": entry.rho, "pairs": effort.scouts, "seed": seed}
    found = row(mdp, contender, limit=effort.limit["generative"] * 2**12, **asked)
    out: dict[str, Any] = {"sweep": entry.sweep, "value": entry.value, "x": entry.x, "learner": contender.label}
    if not found["reached"]:
        return {**out, "samples": None, "limit": found["limit"]}
    budgets = [max(contender.first_budget(mdp), round(found["budget"] * part)) for part in AROUND]
    reports = [
        audit(mdp, contender.make(budget), effort.around, access="generative", seed=seed + k)
        for k, budget in enumerate(budgets)
    ]
    loss = max(report.suboptimality.mean for report in reports if report.suboptimality)
    counts = [(line[0], pairs, apart) for (_, pairs, apart), line in zip(found["counts"], found["curve"], strict=True)]
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

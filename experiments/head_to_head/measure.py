"""Measure one cell of the table or one point of a sweep, and fit slopes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.head_to_head.plan import EPSILON, INSTANCES, RHO, SEED, SWEEPS, Cell, Effort, Point, hard
from reprl.audit.audit import audit
from reprl.audit.compare import run_row
from reprl.randomness import DataStream

AROUND = (0.5, 1.0, 2.0)
BOOTSTRAPS = 400
Array = NDArray[np.float64]


def cell(entry: Cell, effort: Effort) -> dict[str, Any]:
    """Search the smallest budget of one learner on one instance."""
    access = entry.contender.access
    row = run_row(
        INSTANCES[entry.instance](),
        entry.contender,
        epsilon=EPSILON,
        rho=RHO,
        pairs=effort.pairs[access],
        limit=effort.limit[access],
        seed=_seed(entry.name),
    )
    return {"instance": entry.instance, **row.as_dict()}


def preset(instance: str, effort: Effort) -> dict[str, Any]:
    """Measure reprl by episodes at the size that it chooses itself."""
    report = audit(
        INSTANCES[instance](), "reprl", effort.preset_pairs, access="episodic", rho=RHO, epsilon=EPSILON, seed=SEED
    )
    assert report.suboptimality is not None
    return {
        "instance": instance,
        "samples": report.samples,
        "pairs": report.pairs,
        "disagreements": report.disagreements,
        "interval": list(report.interval),
        "suboptimality": report.suboptimality.mean,
    }


def point(entry: Point, effort: Effort) -> dict[str, Any]:
    """Find where disagreement passes ρ: a search, then a curve through three budgets around its answer."""
    mdp = hard(entry.states, entry.actions, entry.bias)
    contender, seed = entry.contender, _seed(entry.name)
    limit = effort.limit["generative"] * 2**12
    row = run_row(
        mdp, contender, epsilon=entry.epsilon, rho=entry.rho, pairs=effort.scouts, limit=limit, seed=seed
    )
    out: dict[str, Any] = {"sweep": entry.sweep, "value": entry.value, "x": entry.x, "learner": contender.label}
    if row.search.found is None:
        return {**out, "samples": None, "limit": row.search.spent}
    budgets = [max(contender.least(mdp), round(row.search.found.budget * part)) for part in AROUND]
    reports = [
        audit(mdp, contender.make(mdp, budget), effort.around, access="generative", seed=seed + k)
        for k, budget in enumerate(budgets)
    ]
    sizes = [report.samples for report in reports]
    hits = [report.disagreements for report in reports]
    needed, low, high = crossing(sizes, hits, effort.around, entry.rho)
    loss = max(report.suboptimality.mean for report in reports if report.suboptimality)
    counts = [[size, effort.around, k] for size, k in zip(sizes, hits, strict=True)]
    return {**out, "samples": needed, "interval": [low, high], "suboptimality": loss, "counts": counts}


def crossing(sizes: list[float], hits: list[int], pairs: int, rho: float) -> tuple[float, float, float]:
    """Return the samples at disagreement ρ, with a 95 % parametric bootstrap interval.

    A line through (log samples, log −log(1 − disagreement)) by weighted least squares, its exponent held to [¼, 2].
    """
    x, counts = np.log(sizes), np.asarray(hits, dtype=float)
    again = np.random.default_rng(0).binomial(pairs, (counts + 0.5) / (pairs + 1.0), (BOOTSTRAPS, counts.size))
    low, high = np.quantile([_solve(x, row, pairs, rho) for row in again], [0.025, 0.975])
    return _solve(x, counts, pairs, rho), float(low), float(high)


def _solve(x: Array, hits: Array, pairs: int, rho: float) -> float:
    rate = (hits + 0.5) / (pairs + 1.0)
    y = np.log(-np.log1p(-rate))
    weight = pairs * np.log1p(-rate) ** 2 * (1.0 - rate) / rate  # one over the variance of y
    centre_x, centre_y = np.average(x, weights=weight), np.average(y, weights=weight)
    spread = float(np.average((x - centre_x) ** 2, weights=weight))
    fall = -float(np.average((x - centre_x) * (y - centre_y), weights=weight)) / spread if spread else 0.5
    fall = min(2.0, max(0.25, fall))
    return math.exp(centre_x + (centre_y - math.log(-math.log1p(-rho))) / fall)


def slope(x: list[float], y: list[float]) -> dict[str, float]:
    """Return the slope of log y on log x by least squares, with a 95 % t-interval."""
    fit = stats.linregress(np.log(x), np.log(y))
    half = float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr)
    return {"slope": float(fit.slope), "low": float(fit.slope) - half, "high": float(fit.slope) + half}


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
                fit = slope([row["x"] for row in chosen], [row["samples"] for row in chosen])
                out.append({"sweep": sweep, "learner": learner, "points": len(chosen), **fit})
    return out


def _seed(name: str) -> int:
    """The seed of a measurement: no other measurement moves it."""
    return int(DataStream(SEED, name).integers(1)[0]) >> 1

"""The smallest budget at which a learner both replicates and is good: audits at doubling budgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from reprl.auditing.audit import audit
from reprl.errors import ReprlError
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream

LEVEL = 0.05
"""Chance of each of the two errors of a judgement."""
MARGIN = (0.75, 1.5)
"""Disagreement of at most the first times ρ should pass, of at least the second times ρ should fail."""
_CHI_SQUARE = 3.841458820694124
_BEYOND = math.log(64.0)
_NEAR = 64


class Tried(NamedTuple):
    """What pairs of runs showed at one budget."""

    budget: int
    samples: float
    """Mean of what a run drew; a learner may stop before its budget."""
    pairs: int
    disagreements: int
    interval: tuple[float, float]
    """95 %, valid although the pairs were watched one by one."""
    suboptimality: float
    passed: bool
    error: str = ""
    """Why a run failed, if one did: the budget fails then."""


def smallest_budget(
    mdp: TabularMDP,
    make: Callable[[int], Any],
    *,
    access: str,
    epsilon: float,
    rho: float,
    low: int,
    limit: int,
    pairs: int,
    seed: int,
) -> dict[str, Any]:
    """Find the smallest budget with disagreement ≤ ρ and mean suboptimality ≤ ε, to a factor of √2.

    make turns a budget into a learner. Budgets are doubled until one passes and the next one passes too, so that a
    lucky pass is not taken for an answer, or until a doubled budget is not used; then the bracket is split once.

    Guarantee:
        At one budget: a disagreement of at most 0.75·ρ fails, and one of at least 1.5·ρ passes, with probability at
        most 5 % each if the sequential test decides (docs/proofs/audit.md §2). A test that runs out of pairs passes if
        at most a share ρ of them differed. Errors over all budgets are not bounded.

    Randomness:
        Data stream (seed, "compare/BUDGET") gives the seed of each budget's audit.
    """
    tried: dict[int, Tried] = {}

    def judge(budget: int) -> Tried:
        tried[budget] = _try(mdp, make(budget), budget, access, epsilon, rho, pairs, seed)
        return tried[budget]

    failed = found = last = None
    budget = low
    while budget <= limit:
        point = judge(budget)
        if point.passed and found is not None:
            break
        found, failed = (point, failed) if point.passed else (None, point)
        if last is not None and point.samples <= 1.01 * last.samples:
            break
        last, budget = point, 2 * budget
    while found is not None and failed is not None and found.budget > 1.01 * math.sqrt(2.0) * failed.budget:
        point = judge(round(math.sqrt(found.budget * failed.budget)))
        found, failed = (point, failed) if point.passed else (found, point)
    points = [tried[budget] for budget in sorted(tried)]
    return _row(found, failed, points, rho, limit)


def _try(
    mdp: TabularMDP, learner: Any, budget: int, access: str, epsilon: float, rho: float, pairs: int, seed: int
) -> Tried:
    asked: dict[str, Any] = {"rho": MARGIN[0] * rho, "alternative": MARGIN[1] * rho, "level": LEVEL, "access": access}
    own = int(DataStream(seed, f"compare/{budget}").integers(1)[0])
    try:
        found = audit(mdp, learner, pairs, sequential=True, seed=own, **asked)
    except ReprlError as error:
        return Tried(budget, float(budget), 1, 1, (0.0, 1.0), float(mdp.horizon), False, str(error))
    assert found.suboptimality is not None
    undecided = found.verdict == "undecided" and found.disagreements <= rho * found.pairs
    agrees, loss = found.verdict == "not rejected" or undecided, found.suboptimality.mean
    passed = agrees and loss <= epsilon
    return Tried(budget, found.samples, found.pairs, found.disagreements, found.interval, loss, passed)


def _row(found: Tried | None, failed: Tried | None, points: list[Tried], rho: float, limit: int) -> dict[str, Any]:
    """Return what is stored of a search."""
    needed = None
    if found is not None and failed is not None and failed.disagreements > rho * failed.pairs:
        near = [point for point in points if point.budget >= found.budget / _NEAR]
        needed = list(crossing([(point.samples, point.pairs, point.disagreements) for point in near], rho))
    shown = points[-1] if found is None else found
    return {
        "budget": shown.budget,
        "samples": None if found is None else found.samples,
        "failed": None if failed is None else failed.samples,
        "needed": needed,
        "limit": max(point.samples for point in points) if found is None else limit,
        "reached": found is not None,
        "pairs": shown.pairs,
        "disagreements": shown.disagreements,
        "disagreement": shown.disagreements / shown.pairs,
        "interval": list(shown.interval),
        "suboptimality": shown.suboptimality,
        "curve": [
            [point.samples, point.disagreements / point.pairs, *point.interval, point.suboptimality] for point in points
        ],
        "counts": [[point.budget, point.pairs, point.disagreements] for point in points],
        **({"error": points[-1].error} if points[-1].error else {}),
    }


def crossing(counts: Sequence[tuple[float, int, int]], rho: float) -> tuple[float, float, float]:
    """Fit disagreement = 1 − exp(−c·samples^−b) to (samples, pairs, disagreements) and read it at ρ.

    Returns:
        Where disagreement passes ρ, in samples a run, and the ends of a 95 % interval.

    Guarantee:
        The most likely answer over all c and ¼ ≤ b ≤ 2, and all that are within χ²₁'s 95 % of its likelihood. That is
        approximate, as any likelihood interval is, but the order in which pairs were stopped does not touch it.
    """
    sizes, pairs, hits = (np.array(column, dtype=float) for column in zip(*counts, strict=True))
    x = np.log(sizes)
    answer = np.linspace(x.min() - _BEYOND, x.max() + _BEYOND, 801)
    falls = np.geomspace(0.25, 2.0, 13)
    rate = -math.log1p(-rho) * np.exp(-falls[:, None, None] * (x - answer[:, None]))
    rate = np.clip(rate, 1e-300, 700.0)
    best = (hits * np.log(-np.expm1(-rate)) - (pairs - hits) * rate).sum(axis=2).max(axis=0)
    kept = answer[best >= best.max() - 0.5 * _CHI_SQUARE]
    middle, low, high = (float(np.exp(end)) for end in (answer[best.argmax()], kept.min(), kept.max()))
    return middle, low, high

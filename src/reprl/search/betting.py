"""Betting: is the mean of bounded samples above or below a threshold? Tests that may stop at any time.

A sample X, scaled to [0, 1], is a lottery ticket. Against "mean ≤ θ" a share c of the wealth buys tickets at the price
θ, so that the wealth is multiplied by 1 − c + c·X/θ; against "mean ≥ θ" it is 1 − c + c·(1 − X)/(1 − θ). If the
hypothesis holds, no bet gains on average, and the wealth ever reaches 1/δ with probability at most δ. The wealth is
divided among G shares c_k = 0.99·2^−k with weights w_k ∝ 1/(k + 1): large shares win quickly where the samples vary
little, small ones where the mean is close to θ. Proof: docs/proofs/search.md.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from reprl.errors import InputError, check_array, check_int, check_probability, check_real

Floats = np.ndarray[Any, np.dtype[np.float64]]
Verdict = Literal["above", "below", "undecided"]

GRID = 12
"""G: shares of the wealth that are bet, each half of the one before."""
TOP = 0.99
"""c_0: the largest share."""
ACCEPT = 0.5
"""The part of a scan's risk that is for accepting a candidate wrongly; the rest is for rejecting the right one."""
ROUND = 1e-9
"""How far outside [low, high] a return may lie by rounding, as a share of the range; it counts as the bound."""

_SHARES: Floats = np.array([TOP * 0.5**k for k in range(GRID)])
_LOG_WEIGHTS: Floats = -np.log(np.arange(1, GRID + 1)) - math.log(sum(1.0 / (k + 1) for k in range(GRID)))
_CHUNK = 1024
"""Samples that are bet on at a time: it bounds memory, and changes no result."""
_BISECTIONS = 60


class Bets(NamedTuple):
    """What the bets own after some samples. A value: betting on more samples gives another."""

    above: Floats
    """(G,) log wealth of each share, of its own 1, against "mean ≤ θ"."""
    below: Floats
    """(G,) the same against "mean ≥ θ"."""
    samples: int = 0
    """Samples that were bet on; none after the verdict."""
    total: float = 0.0
    """Their sum, scaled to [0, 1] each."""
    verdict: Verdict = "undecided"

    @property
    def log_wealth(self) -> tuple[float, float]:
        """Log of the wealth against "mean ≤ θ" and against "mean ≥ θ"."""
        return float(_log_mixture(self.above[:, None])[0]), float(_log_mixture(self.below[:, None])[0])


class Levels(NamedTuple):
    """Accepted probabilities of the two wrong verdicts."""

    above: float
    """δ⁺: of "above" if the mean is at most θ."""
    below: float
    """δ⁻: of "below" if the mean is at least θ."""


class MeanTest(NamedTuple):
    """Is the mean of samples in [low, high] above or below the threshold?

    Guarantee:
        If the mean is at most the threshold, the verdict "above" is ever given with probability at most levels.above;
        if it is at least the threshold, "below" with probability at most levels.below. Samples need no law in common:
        their mean given the earlier ones is enough. Whoever calls may look, stop or go on at any time, for any
        reason (docs/proofs/search.md §1).
    """

    low: float
    high: float
    threshold: float
    levels: Levels

    @classmethod
    def checked(cls, low: float, high: float, threshold: float, levels: Levels) -> MeanTest:
        """Check the figures."""
        low = check_real("low", low, -math.inf, math.inf)
        high = check_real("high", high, low, math.inf)
        threshold = check_real("threshold", threshold, low, high)
        chances = Levels(*(check_probability(f"levels.{name}", level) for name, level in levels._asdict().items()))
        test = cls(low, high, threshold, chances)
        if not 0.0 < test._price < 1.0:
            raise InputError(f"threshold must differ from the bounds [{low:g}, {high:g}] by more than rounding")
        return test

    @property
    def _price(self) -> float:
        """θ, scaled."""
        return (self.threshold - self.low) / (self.high - self.low)

    def begin(self) -> Bets:
        """Return the bets before the first sample."""
        return Bets(np.zeros(GRID), np.zeros(GRID))

    def bet(self, bets: Bets, samples: Any) -> Bets:
        """Return the bets after further samples, up to the first at which a verdict is reached.

        Samples come in an order that does not depend on them: the episodes' numbers, never the order in which they end.

        Guarantee:
            Bit by bit the same however the samples are divided into calls.
        """
        scaled = scale(samples, self.low, self.high)
        for first in range(0, scaled.size, _CHUNK):
            if bets.verdict != "undecided":
                break
            bets = self._bet(bets, scaled[first : first + _CHUNK])
        return bets

    def _bet(self, bets: Bets, x: Floats) -> Bets:
        price = self._price
        above = _accumulate(bets.above[:, None], _log_factors(x / price))
        below = _accumulate(bets.below[:, None], _log_factors((1.0 - x) / (1.0 - price)))
        is_above = _log_mixture(above) >= -math.log(self.levels.above)
        is_below = _log_mixture(below) >= -math.log(self.levels.below)
        ends = np.flatnonzero(is_above | is_below)
        last = int(ends[0]) if ends.size else x.size - 1
        verdict: Verdict = "above" if is_above[last] else "below" if is_below[last] else "undecided"
        total = float(_accumulate(np.array([[bets.total]]), x[None, : last + 1])[0, -1])
        return Bets(above[:, last], below[:, last], bets.samples + last + 1, total, verdict)

    def log_wealth(self, samples: Any, counts: Any) -> tuple[float, float]:
        """Return the log wealth of both sides after samples that came so often each: their order is of no effect."""
        x, many = scale(samples, self.low, self.high), np.asarray(counts, dtype=np.float64)
        sides = (x / self._price, (1.0 - x) / (1.0 - self._price))
        above, below = ((_log_factors(tickets) * many).sum(axis=1) for tickets in sides)
        return Bets(above, below).log_wealth

    def progress(self, bets: Bets) -> float:
        """Return how near the nearer verdict is, from 0 to 1: its log wealth over what it needs."""
        needed = (-math.log(level) for level in self.levels)
        parts = [wealth / most for wealth, most in zip(bets.log_wealth, needed, strict=True)]
        return min(max(0.0, *parts), 1.0)

    def mean(self, bets: Bets) -> float:
        """Return the mean of the samples so far, in their own units."""
        return self.low + (self.high - self.low) * bets.total / max(bets.samples, 1)


def mean_interval(
    samples: Any, low: float, high: float, delta: float, counts: Any = None, steps: int = _BISECTIONS
) -> tuple[float, float]:
    """Return the interval of the means against which no bet has won 2/δ, in the units of the samples.

    Samples, in any order, came `counts` times each, or once. δ is the chance that the mean is ever outside; ends are
    bisected and rounded outwards.

    Guarantee:
        Computed after every sample, all the intervals together contain the mean with probability at least 1 − δ. So it
        may be computed when a test has stopped (docs/proofs/search.md §2).
    """
    low = check_real("low", low, -math.inf, math.inf)
    high = check_real("high", high, low, math.inf)
    needed = math.log(2.0 / check_probability("delta", delta))
    scaled = scale(samples, low, high)
    if scaled.size == 0:
        return low, high
    x, many = np.unique(scaled, return_counts=True) if counts is None else (scaled, np.asarray(counts))
    left = _least_mean(x, many, needed, steps)
    right = 1.0 - _least_mean(1.0 - x, many, needed, steps)
    return low + (high - low) * left, low + (high - low) * right


def _least_mean(x: Floats, many: Any, needed: float, steps: int) -> float:
    """Bisect for the smallest price at which tickets have not won so much; the wealth falls as the price rises."""
    inside, outside = float((x * many).sum() / many.sum()), 0.0
    for _ in range(steps):
        middle = 0.5 * (inside + outside)
        if middle <= 0.0:
            break
        wealth = (_log_factors(x / middle) * many).sum(axis=1, keepdims=True)
        if _log_mixture(wealth)[0] < needed:
            inside = middle
        else:
            outside = middle
    return outside


def rung_risk(rho: float, rung: int, rungs: int | None) -> float:
    """Return the probability with which one team may be wrong on one rung of a ladder.

    rung is k, from 0; rungs is K, fixed beforehand, or None for a ladder that goes on as long as it likes.

    Guarantee:
        The risks of all rungs sum to at most ρ/2 (docs/proofs/search.md §4).
    """
    rho, k = check_probability("rho", rho), check_int("rung", rung, 0)
    if rungs is None:
        return rho / 2.0 / ((k + 1) * (k + 2))
    return rho / 2.0 / check_int("rungs", rungs, k + 1)


def scan_levels(risk: float, j: int) -> Levels:
    """Return the levels of candidate j of a scan that may be wrong with this probability.

    δ⁺_j = risk·ACCEPT/((j + 1)(j + 2)), which sums to risk·ACCEPT. δ⁻ = risk·(1 − ACCEPT) for every candidate: only the
    first candidate above the threshold can be rejected wrongly with an effect on the answer, and which one that is
    does not depend on data.

    Guarantee:
        A scan with these levels prints min{j : μ_j > θ}, or says that there is none, but with probability `risk`
        (docs/proofs/search.md §3).
    """
    risk, j = check_probability("risk", risk), check_int("j", j, 0)
    return Levels(risk * ACCEPT / ((j + 1) * (j + 2)), risk * (1.0 - ACCEPT))


def scale(samples: Any, low: float, high: float) -> Floats:
    """Return samples scaled from [low, high] to [0, 1]; one outside, or not a number, is an error."""
    values = check_array("returns", np.atleast_1d(samples), 1)
    scaled = (values - low) / (high - low)
    outside = np.flatnonzero((scaled < -ROUND) | (scaled > 1.0 + ROUND))
    if outside.size:
        raise InputError(f"returns must lie in [{low:g}, {high:g}], got {values[outside[0]]:g}")
    clipped: Floats = np.clip(scaled, 0.0, 1.0)
    return clipped


def _log_factors(tickets: Floats) -> Floats:
    """(G, n) log of what each share's wealth is multiplied by; tickets are worth this many times their price."""
    factors: Floats = np.log1p(_SHARES[:, None] * (tickets - 1.0))
    return factors


def _accumulate(start: Floats, steps: Floats) -> Floats:
    """Add steps one after the other, from the left: the sums do not depend on where a call begins."""
    sums: Floats = np.cumsum(np.concatenate((start, steps), axis=1), axis=1)[:, 1:]
    return sums


def _log_mixture(logs: Floats) -> Floats:
    """(n,) log of the weighted mean over shares of exp(logs), which is (G, n)."""
    weighted = logs + _LOG_WEIGHTS[:, None]
    top = weighted.max(axis=0)
    mixture: Floats = top + np.log(np.exp(weighted - top).sum(axis=0))
    return mixture

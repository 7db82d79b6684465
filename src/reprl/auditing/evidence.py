"""What counts of disagreeing pairs prove: exact intervals, an exact test, and a test that may stop at any time.

Pairs are independent coins of one unknown bias p, the disagreement. Proofs with constants: docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from reprl.errors import check_int, check_probability, check_real
from reprl.storage.fields import Kind, many, real

CONFIDENCE = 0.95
"""Confidence of every interval."""
VERDICTS = ("rejected", "not rejected", "undecided")

_PRIOR = 0.5
_BISECTIONS = 60


def exact_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return the Clopper–Pearson interval of a probability, two-sided, 95 %.

    Guarantee:
        Covers p with at least this probability when the number of trials was fixed beforehand (proofs/audit.md §1).
    """
    k, n = _check_counts(hits, trials)
    tail = (1.0 - CONFIDENCE) / 2.0
    low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(special.betaincinv(k + 1, n - k, 1.0 - tail))
    return low, high


def p_value(hits: int, trials: int, rho: float) -> float:
    """Return the chance of at least so many hits if each has probability rho: the exact test of p ≤ rho."""
    k, n = _check_counts(hits, trials)
    return 1.0 if k == 0 else float(special.bdtrc(k - 1, n, check_probability("rho", rho)))


def fewest_to_reject(trials: int, rho: float, level: float) -> int | None:
    """Return the smallest number of hits that the exact test rejects; None when no number would."""
    _, n = _check_counts(0, trials)
    fewest = 1 + bisect_left(range(1, n + 1), True, key=lambda hits: p_value(hits, n, rho) <= level)
    return fewest if fewest <= n else None


class Estimate(NamedTuple):
    """A mean with an approximate 95 % interval."""

    mean: float
    low: float
    high: float


def estimate(low: Any = -math.inf, high: Any = math.inf) -> Kind:
    """An estimate in a document: three numbers in [low, high]."""
    return many(real(low, high), 3, lambda figures: Estimate(*figures))


def student(figures: Sequence[float], least: float = -math.inf, most: float = math.inf) -> Estimate:
    """Return the mean of independent figures with Student's interval, 95 %, kept within [least, most].

    Guarantee:
        Approximate: exact for normal figures only. A single figure says nothing: the interval is [least, most].
    """
    values = np.asarray(figures, dtype=np.float64)
    mean = float(values.mean())
    if values.size < 2:
        return Estimate(mean, least, most)
    tail = (1.0 - CONFIDENCE) / 2.0
    radius = float(special.stdtrit(values.size - 1, 1.0 - tail) * values.std(ddof=1) / math.sqrt(values.size))
    return Estimate(mean, max(least, mean - radius), min(most, mean + radius))


def bounded_interval(mean: float, trials: int) -> tuple[float, float]:
    """Return an interval for the expectation of figures in [0, 1] from the mean of `trials` independent ones, 95 %.

    Guarantee:
        Covers with at least this probability, whatever the law of the figures: Chernoff's bound, which Hoeffding showed
        to hold for all figures in [0, 1], for each side at half of the error (proofs/audit.md §6).
    """
    n = check_int("trials", trials, 1)
    mean = check_real("mean", mean, 0.0, 1.0, open_low=False, open_high=False)
    needed = math.log(2.0 / (1.0 - CONFIDENCE)) / n

    def kept(p: float) -> bool:
        return _log_likelihood(mean, 1.0, mean) - _log_likelihood(mean, 1.0, p) < needed

    low = 0.0 if mean == 0.0 else _edge(kept, mean, 0.0)
    high = 1.0 if mean == 1.0 else _edge(kept, mean, 1.0)
    return low, high


class SequentialTest(NamedTuple):
    """Two tests by betting that may be looked at after every pair: p ≤ rho, and p ≥ alternative.

    Guarantee:
        If p ≤ rho, "rejected" is said at any time, ever, with probability at most level. If p ≥ alternative, "not
        rejected" is said at any time with probability at most level. The interval covers p at all times together with
        probability at least 95 %. Proof: docs/proofs/audit.md §2 and §3.
    """

    rho: float
    level: float
    alternative: float

    @classmethod
    def checked(cls, rho: float, level: float, alternative: float | None = None) -> SequentialTest:
        """Check the figures; the alternative is 2ρ, or half-way from ρ to 1 where that is smaller."""
        rho, level = check_probability("rho", rho), check_probability("level", level)
        if alternative is None:
            return cls(rho, level, min(2.0 * rho, (1.0 + rho) / 2.0))
        return cls(rho, level, check_real("alternative", alternative, rho, 1.0))

    def decide(self, hits: int, trials: int) -> str:
        """Return the verdict after so many pairs, "undecided" while neither bet has won 1/level."""
        k, n = _check_counts(hits, trials)
        needed = -math.log(self.level)
        if log_wealth(k, n, self.rho, above=True) >= needed:
            return "rejected"
        if log_wealth(k, n, self.alternative, above=False) >= needed:
            return "not rejected"
        return "undecided"

    def interval(self, hits: int, trials: int) -> tuple[float, float]:
        """Return the values of p against which a bet on all of [0, 1] has not won 20."""
        k, n = _check_counts(hits, trials)
        needed = -math.log1p(-CONFIDENCE)
        best = k / n

        def kept(p: float) -> bool:
            return _log_mixture(k, n) - _log_likelihood(k, n, p) < needed

        low = 0.0 if k == 0 else _edge(kept, best, 0.0)
        high = 1.0 if k == n else _edge(kept, best, 1.0)
        return low, high


def conclude(test: SequentialTest | None, hits: int, trials: int, rho: float, level: float) -> dict[str, Any]:
    """Return verdict, p-value, interval and alternative after the last pair; without a test, the exact one's."""
    if test is None:
        chance = p_value(hits, trials, rho)
        verdict, interval = "rejected" if chance <= level else "not rejected", exact_interval(hits, trials)
        return {"verdict": verdict, "p_value": chance, "interval": interval, "alternative": None}
    verdict, interval = test.decide(hits, trials), test.interval(hits, trials)
    return {"verdict": verdict, "p_value": None, "interval": interval, "alternative": test.alternative}


def log_wealth(hits: int, trials: int, null: float, *, above: bool) -> float:
    """Return log of what a bettor owns who began with 1 and bets against p ≤ null (above) or p ≥ null (not above).

    The bet on every p beyond the null is weighted by the law Beta(½, ½) given that p lies there.
    """
    k, n = hits, trials
    share = special.betaincc if above else special.betainc
    with np.errstate(divide="ignore"):  # a share that underflows owns nothing, which errs on the careful side
        posterior = np.log(share(k + _PRIOR, n - k + _PRIOR, null))
    prior = math.log(float(share(_PRIOR, _PRIOR, null)))
    return float(posterior) - prior + _log_mixture(k, n) - _log_likelihood(k, n, null)


def _log_mixture(k: int, n: int) -> float:
    """Log of the probability of one sequence with k hits in n, p drawn from Beta(½, ½)."""
    return float(special.betaln(k + _PRIOR, n - k + _PRIOR) - special.betaln(_PRIOR, _PRIOR))


def _log_likelihood(k: float, n: float, p: float) -> float:
    return float(special.xlogy(k, p) + special.xlog1py(n - k, -p))


def _edge(kept: Callable[[float], bool], inside: float, outside: float) -> float:
    """Bisect for the end of an interval, on its outer side."""
    for _ in range(_BISECTIONS):
        middle = 0.5 * (inside + outside)
        if kept(middle):
            inside = middle
        else:
            outside = middle
    return outside


def _check_counts(hits: int, trials: int) -> tuple[int, int]:
    n = check_int("trials", trials, 1)
    return check_int("hits", hits, 0, n), n

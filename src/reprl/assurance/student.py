"""Student: is a mean above or below a threshold, where samples have no bound? A rehearsal, not a proof.

The threshold counts as excluded when the mean is √2·z standard errors away, so that a second team, whose mean has an
error of its own, would say the same. The variance is pooled with a pseudo-sample of the threshold's own width squared,
and nothing is said before MINIMUM samples: looks at few samples made such tests optimistic. Looks double.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from reprl.errors import check_array

MINIMUM = 32
"""Samples before the first verdict."""


class Sums(NamedTuple):
    """Count, sum and sum of squares, and what they say."""

    samples: int = 0
    total: float = 0.0
    squares: float = 0.0
    verdict: str = "undecided"
    looked: int = 0
    """Samples at the last interim analysis."""


class StudentTest(NamedTuple):
    """A test of a mean by Student's statistic, with a level for each of its interim analyses.

    Guarantee:
        None proven. docs/search.md says what pairs of runs showed.
    """

    threshold: float
    level: float
    width: float
    """Pseudo-deviation: differences of this size are what matters."""

    def begin(self) -> Sums:
        """Return the sums before the first sample."""
        return Sums()

    def bet(self, bets: Sums, samples: Any) -> Sums:
        """Return the sums after further samples, with a verdict where one is reached."""
        x = check_array("returns", np.atleast_1d(samples), 1)
        found = Sums(bets.samples + x.size, bets.total + float(x.sum()), bets.squares + float((x * x).sum()))
        if found.samples < max(MINIMUM, 2 * bets.looked):
            return found._replace(looked=bets.looked)
        distance = self._distance(found)
        verdict = "undecided" if abs(distance) < self._needed else "above" if distance > 0 else "below"
        return found._replace(verdict=verdict, looked=found.samples)

    @property
    def _needed(self) -> float:
        return math.sqrt(2.0) * -float(ndtri(self.level / 2.0))

    def _distance(self, sums: Sums) -> float:
        """Standard errors from the threshold to the mean."""
        n, mean = sums.samples, sums.total / max(sums.samples, 1)
        spread = max(sums.squares - n * mean * mean, 0.0) + self.width**2
        return (mean - self.threshold) / math.sqrt(spread / n / max(n, 1)) if n else 0.0

    def progress(self, bets: Sums) -> float:
        """Return how near a verdict is, from 0 to 1; it grows like the samples do."""
        if bets.samples < MINIMUM:
            return 0.0
        return min((self._distance(bets) / self._needed) ** 2, 1.0)


def student_interval(samples: Any, level: float, width: float) -> tuple[float, float]:
    """Return the interval of the means that a second team's statistic would not exclude; all numbers below MINIMUM.

    Guarantee:
        None proven, as of StudentTest.
    """
    x = check_array("returns", np.atleast_1d(samples), 1)
    if x.size < MINIMUM:
        return -math.inf, math.inf
    spread = math.sqrt((float(((x - x.mean()) ** 2).sum()) + width**2) / x.size)
    half = math.sqrt(2.0) * -float(ndtri(level / 2.0)) * spread / math.sqrt(x.size)
    return float(x.mean()) - half, float(x.mean()) + half

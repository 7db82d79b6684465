"""Loss bounds: what a policy loses, in units of value and of what it may lose, ε(M), where both are known by intervals.

Loss and gain hang on one number, V*, so that their ratio is bounded with V* at the ends of its interval, and not with a
larger V* above and a smaller one below (docs/proofs/certificate.md §6).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from reprl.canonical.goal import LEAST_GAIN, Goal

Interval = tuple[float, float]


class LossBounds(NamedTuple):
    """The goal, with bounds on the values that it hangs on, from the start."""

    goal: Goal
    horizon: float
    best: Interval
    """V*."""
    baseline: Interval | None
    """The value of the baseline; None for an absolute ε, which asks for none."""

    @property
    def gain(self) -> Interval | None:
        """Bounds on V* less the value of the baseline."""
        if self.baseline is None:
            return None
        return max(0.0, self.best[0] - self.baseline[1]), self.best[1] - self.baseline[0]

    def loss(self, value: Interval) -> Interval:
        """Return bounds on what a policy loses, given those on its value."""
        return max(0.0, self.best[0] - value[1]), max(0.0, self.best[1] - value[0])

    def used(self, value: Interval) -> Interval:
        """Return bounds on the loss of a policy as a share of ε(M), given those on its value."""
        least, most = math.inf, 0.0
        for best in self._turns(0):
            least = min(least, self._used(best, value[1], 0))
        for best in self._turns(1):
            most = max(most, self._used(best, value[0], 1))
        return least, most

    def _turns(self, side: int) -> tuple[float, ...]:
        """Values of V* among which the largest and the least share are: both ends, and where the gain counts as least.

        The share rises up to there, and beyond it rises or falls.
        """
        low, high = self.best
        if self.baseline is None:
            return low, high
        return low, high, min(max(self.baseline[side] + LEAST_GAIN * self.horizon, low), high)

    def _used(self, best: float, value: float, side: int) -> float:
        gain = 0.0 if self.baseline is None else best - self.baseline[side]
        return max(0.0, best - value) / self.goal.allowed_loss(gain, self.horizon)

    def share(self, value: Interval) -> float | None:
        """Return the proven share of the gain that a policy earns; None where the gain may count as the least."""
        if self.baseline is None or self.best[0] - self.baseline[1] < LEAST_GAIN * self.horizon:
            return None
        return 1.0 - max(max(0.0, best - value[0]) / (best - self.baseline[1]) for best in self.best)

"""Goal: how much a policy may lose, ε(M), as a function of the world.

Either an absolute ε, or a quality q: the policy earns at least q of what the best policy earns more than a baseline,
so that ε(M) = (1 − q)·gain(M). Two teams need not know gain(M) beforehand: it is part of the rule, and as continuous in
the world as everything else in it.
"""

from __future__ import annotations

from typing import NamedTuple

LEAST_GAIN = 1e-3
"""A gain below this share of the effective horizon counts as this one. Where the baseline is (nearly) the best policy,
ε(M) so stays above 0: no run has to tell apart what no amount of data can, and nothing flips as the gain vanishes
(docs/proofs/canonical.md §11)."""
DEFAULT_QUALITY = 0.9


class Goal(NamedTuple):
    """What is asked of a policy: one of the two is given."""

    epsilon: float | None = None
    """It loses less than this."""
    quality: float | None = None
    """It earns at least this share of the gain, V* less the value of the baseline."""

    def allowed_loss(self, gain: float, effective_horizon: float) -> float:
        """Return ε(M).

        gain is V* less the value of the baseline, from the start.

        Guarantee:
            Continuous and rising in the gain, and at least (1 − q)·LEAST_GAIN·H.
        """
        if self.epsilon is not None:
            return self.epsilon
        assert self.quality is not None
        return (1.0 - self.quality) * max(gain, LEAST_GAIN * effective_horizon)

"""Standard-deviation bounds: intervals for what the rule divides distances by (docs/proofs/canonical.md §3).

They are made of variances, for which ``values`` has intervals, and of transition probabilities, each of which has its
own (docs/proofs/certificate.md §4).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reprl.assurance.concentration import share_radius
from reprl.assurance.confidence import Floats, Sample, Values
from reprl.kernels import njit


class DeviationBounds(NamedTuple):
    """Bounds on the spread of each gap, whichever plausible action is the best one."""

    low: Floats
    """(H, S, A)."""
    high: Floats
    """(H, S, A)."""


@njit(cache=True, nogil=True)
def successors(sample: Sample, h: int, s: int, a: int, level: float, law: Floats, error: Floats) -> None:
    """Fill the relative frequencies of next states, (S,), and bounds on their errors; 0 and 1 without a sample."""
    outcomes = sample.dynamics.outcomes
    n = sample.number[h, s, a]
    law[:] = 0.0
    if n == 0.0:
        error[:] = 1.0
        return
    row, shift = h * outcomes.row_shift + s * outcomes.n_actions + a, h * outcomes.slot_shift
    error[:] = share_radius(n, 0.0, level)
    for e in range(outcomes.first[row], outcomes.first[row + 1]):
        law[outcomes.next_state[e]] += sample.dynamics.probability[e + shift]
    for e in range(outcomes.first[row], outcomes.first[row + 1]):
        z = outcomes.next_state[e]
        error[z] = share_radius(n, law[z], level)


@njit(cache=True, nogil=True)
def _mean(law: Floats, error: Floats, low: Floats, high: Floats, tried: bool) -> tuple[float, float]:
    """Return bounds on the expectation of a function that lies between low and high."""
    if not tried:
        return low.min(), high.max()
    least = most = 0.0
    for z in range(law.size):
        least += law[z] * low[z]
        most += law[z] * high[z]
    down, up = least, most
    for z in range(law.size):  # errors of probabilities add up to 0: only differences from any constant count
        down -= error[z] * abs(low[z] - least)
        up += error[z] * abs(high[z] - most)
    return max(down, low.min()), min(up, high.max())


@njit(cache=True, nogil=True)
def bound_deviations(sample: Sample, values: Values, level: float) -> DeviationBounds:
    """Bound the deviations of all gaps, from the last step back; low and high are bounds on that of V*, (S,)."""
    outcomes = sample.dynamics.outcomes
    out = DeviationBounds(np.zeros(values.plausible.shape), np.zeros(values.plausible.shape))
    n_states, n_actions = outcomes.n_states, outcomes.n_actions
    low, high = np.zeros(n_states), np.zeros(n_states)
    below, above = np.zeros(n_states), np.zeros(n_states)
    laws, errors = np.zeros((n_actions, n_states)), np.zeros((n_actions, n_states))
    for h in range(outcomes.horizon - 1, -1, -1):
        for s in range(n_states):
            for a in range(n_actions):
                successors(sample, h, s, a, level, laws[a], errors[a])
            below[s], above[s] = math.inf, 0.0
            out.low[h, s] = math.inf
            for b in range(n_actions):
                if not values.plausible[h, s, b]:
                    continue
                tried = sample.number[h, s, b] > 0.0
                least, most = _mean(laws[b], errors[b], low, high, tried)
                below[s] = min(below[s], math.sqrt(values.own_low[h, s, b] + least * least))
                above[s] = max(above[s], math.sqrt(values.own_high[h, s, b] + most * most))
                for a in range(n_actions):
                    if a == b:
                        continue
                    least = most = 0.0
                    for z in range(n_states):
                        apart, error = abs(laws[a, z] - laws[b, z]), errors[a, z] + errors[b, z]
                        least += max(0.0, apart - error) * low[z]
                        most += min(1.0, apart + error) * high[z]
                    most = min(most, 2.0 * high.max())
                    floor = values.own_low[h, s, a] + values.own_low[h, s, b] + least * least
                    ceiling = values.own_high[h, s, a] + values.own_high[h, s, b] + most * most
                    out.low[h, s, a] = min(out.low[h, s, a], math.sqrt(floor))
                    out.high[h, s, a] = max(out.high[h, s, a], math.sqrt(ceiling))
            for a in range(n_actions):
                if math.isinf(out.low[h, s, a]):
                    out.low[h, s, a] = 0.0
        low[:] = below
        high[:] = above
    return out

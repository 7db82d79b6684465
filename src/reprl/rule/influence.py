"""Influence: whose samples the tightest comparisons wait for."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.mdp.dynamics import Dynamics
from reprl.rule.gaps import Gaps


def influence(
    dynamics: Dynamics, gaps: Gaps, comparisons: NDArray[np.int64], distances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how much one more sample of each cell would sharpen some comparisons.

    Args:
        dynamics: the model.
        gaps: its gaps.
        comparisons: (C, 3) rows (h, s, a): the gap of action a at step h in state s.
        distances: (C,): how far each gap is from its boundary.

    Returns:
        (H, S, A): Σ_c (ν_c/distance_c)²·variance of the cell, with ν_c the difference of what the best action and
        action a lead to under the best policy. Σ of this over n is the sum of the comparisons' relative variances.
    """
    out = np.zeros(dynamics.outcomes.shape)
    for (h, s, a), distance in zip(comparisons.tolist(), distances.tolist(), strict=True):
        _add(dynamics, gaps, h, s, a, 1.0 / distance**2, out)
    return out


@njit(cache=True, nogil=True)
def _add(
    dynamics: Dynamics, gaps: Gaps, h: int, s: int, a: int, scale: float, out: NDArray[np.float64]
) -> None:
    """Add the influence on one comparison."""
    outcomes = dynamics.outcomes
    here = np.zeros(outcomes.n_states)
    there = np.zeros(outcomes.n_states)
    best = gaps.best[h, s]
    for action, sign in ((best, 1.0), (a, -1.0)):
        out[h, s, action] += scale * gaps.own[h, s, action]
        row = h * outcomes.row_shift + s * outcomes.n_actions + action
        for e in range(outcomes.first[row], outcomes.first[row + 1]):
            here[outcomes.next_state[e]] += sign * dynamics.probability[e + h * outcomes.slot_shift]
    for step in range(h + 1, outcomes.horizon):
        there[:] = 0.0
        for y in range(outcomes.n_states):
            if here[y] == 0.0:
                continue
            action = gaps.best[step, y]
            out[step, y, action] += scale * here[y] * here[y] * gaps.own[step, y, action]
            row = step * outcomes.row_shift + y * outcomes.n_actions + action
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                there[outcomes.next_state[e]] += here[y] * dynamics.probability[e + step * outcomes.slot_shift]
        here[:] = there

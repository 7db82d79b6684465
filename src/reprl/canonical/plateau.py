"""Plateau laws: policies drawn from laws that move little with the data, as the paper does.

The law of a cell has a *plateau*: actions within half a width of the best weigh the same, then the weight falls as cos²
to 0 at the full width. Where arms tie, or lie further apart than the width, two runs have exactly the same law. Cells
are drawn together by correlated sampling, so with N of them on the slope the disagreement grows like √N, not like N:
meant for large worlds without structure.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.gaps import Gaps
from reprl.canonical.preferred import CLEAR
from reprl.kernels import njit
from reprl.mdp.dynamics import Dynamics

TURN = 0.15
"""Margin of plateau laws, times θ: where their disagreement is about what a tolerance's is at that margin."""


def plateau_laws(
    dynamics: Dynamics, gaps: Gaps, order: NDArray[np.int64], width: float, floor: float
) -> tuple[NDArray[np.float64], float]:
    """Return the laws of all cells, (H, S, A), and how firm they are.

    Args:
        dynamics: the model.
        gaps: its gaps.
        order: (A,) actions, the most preferred first.
        width: gap from which an action has no weight.
        floor: cells visited with a smaller probability say the most preferred action.

    Returns:
        The laws, and their margin: TURN/θ, where θ bounds how fast the laws' square roots turn with errors of the gaps
        in units of their spreads, all cells together; or less, if a gap that does not count in θ could come to. What
        counts is on the slope or within a quarter of the width of it (docs/proofs/canonical.md §5).
    """
    shape = dynamics.outcomes.shape
    laws, visits = np.zeros(shape), np.zeros(shape[:2])
    visits[0] = dynamics.initial

    def play() -> NDArray[np.float64]:
        """The laws of the first row before any cell is below the floor."""
        free = np.zeros(shape)
        _fill(dynamics, gaps, order, width, 0.0, visits, free)
        return np.asarray(free[0])

    law, criterion = dynamics.probability, dynamics.criterion
    visits[0] = criterion.first_visits(dynamics.outcomes, law, dynamics.initial, play)
    turn, clear = _fill(dynamics, gaps, order, width, floor, visits, laws)
    return laws, min(clear, TURN / math.sqrt(turn)) if turn > 0.0 else clear


@njit(cache=True, nogil=True)
def plateau_weight(gap: float, width: float) -> float:
    """Return the weight of a gap, before it is squared and normalised: 1 up to half the width, 0 from the width on."""
    x = 2.0 * gap / width - 1.0
    return 1.0 if x <= 0.0 else (math.cos(0.5 * math.pi * x) if x < 1.0 else 0.0)


@njit(cache=True, nogil=True)
def _fill(
    dynamics: Dynamics,
    gaps: Gaps,
    order: NDArray[np.int64],
    width: float,
    floor: float,
    visits: NDArray[np.float64],
    laws: NDArray[np.float64],
) -> tuple[float, float]:
    """Fill laws, and visits, after the first step, with their occupancy.

    Returns:
        The sum of squared rates, and the rest's least distance.
    """
    outcomes = dynamics.outcomes
    turn, clear = 0.0, CLEAR
    for h in range(outcomes.horizon):
        for s in range(outcomes.n_states):
            if visits[h, s] < floor or gaps.gap[h, s, gaps.best[h, s]] > 0.0:
                laws[h, s, gaps.default[h, s]] = 1.0
            else:
                square, slopes = 0.0, 0.0
                for a in range(outcomes.n_actions):
                    gap, spread = gaps.gap[h, s, a], gaps.spread[h, s, a]
                    x = 2.0 * gap / width - 1.0
                    weight = plateau_weight(gap, width)
                    if -0.5 < x < 1.5:
                        slopes += (math.pi / width * spread) ** 2
                    elif spread > 0.0 and math.isfinite(gap):
                        clear = min(clear, (0.5 * width - gap if x < 0.0 else gap - width) / spread)
                    laws[h, s, a] = weight * weight
                    square += weight * weight
                for a in range(outcomes.n_actions):
                    laws[h, s, a] /= square
                turn += slopes / square
            if visits[h, s] > 0.0 and h + 1 < outcomes.horizon:
                for a in range(outcomes.n_actions):
                    if laws[h, s, a] > 0.0:
                        row = h * outcomes.row_shift + s * outcomes.n_actions + a
                        for e in range(outcomes.first[row], outcomes.first[row + 1]):
                            flow = visits[h, s] * laws[h, s, a] * dynamics.probability[e + h * outcomes.slot_shift]
                            visits[h + 1, outcomes.next_state[e]] += flow
    return turn, clear

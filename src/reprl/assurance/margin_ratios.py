"""Ratios: how many times firmer one candidate is than another, at least, whatever the deviations are.

Margins are smallest distances over deviations, and with few samples deviations are known to a factor of three only. Two
candidates that make the same comparison divide by the same spread, so that their ratio is one of distances alone, of
which far more is known (docs/proofs/certificate.md §6).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import ROUND
from reprl.assurance.confidence import Values
from reprl.assurance.deviation_bounds import DeviationBounds
from reprl.assurance.occupancy_bounds import OccupancyBounds
from reprl.canonical.preferred import CLEAR
from reprl.kernels import njit


class Side(NamedTuple):
    """A tolerance, as far as it is known."""

    tolerance: float
    chosen: NDArray[np.bool_]
    """(H, S, A): open actions."""
    visits: OccupancyBounds
    high: float
    """Upper bound on its margin."""


@njit(cache=True, nogil=True)
def compare_margins(
    values: Values, deviations: DeviationBounds, order: NDArray[np.int64], floor: float, decided: Side, other: Side
) -> float:
    """Return how many times the other's margin a decided tolerance's margin is, at least."""
    ratio = CLEAR / other.high if other.high > 0.0 else math.inf
    for h in range(decided.chosen.shape[0]):
        for s in range(decided.chosen.shape[1]):
            if decided.visits.high[h, s] < floor - ROUND:
                continue
            shared = other.visits.low[h, s] >= floor + ROUND
            for best in range(order.size):
                if values.plausible[h, s, best]:
                    ratio = min(ratio, _cell_ratio(values, deviations, order, decided, other, h, s, best, shared))
    return ratio


@njit(cache=True, nogil=True)
def _cell_ratio(
    values: Values,
    deviations: DeviationBounds,
    order: NDArray[np.int64],
    decided: Side,
    other: Side,
    h: int,
    s: int,
    best: int,
    shared: bool,
) -> float:
    """Return the least ratio over the comparisons that the decided one makes in a cell, if one action is the best.

    What it chooses does not come after the best action. Up to there it compares gaps with its tolerance, beyond the
    best action only if it chooses that. So does the other, surely as far as the first action that it may choose.
    """
    ratio, low, high = math.inf, values.gap_low[h, s], values.gap_high[h, s]
    sure = shared  # the other surely makes this comparison
    mine, its = decided.tolerance, other.tolerance
    for i in range(order.size):
        a = order[i]
        chosen = decided.chosen[h, s, a]
        if a != best and deviations.high[h, s, a] > 0.0:
            sign = 1.0 if chosen else -1.0
            least, most = sign * (mine - low[a]), sign * (mine - high[a])
            share = min(_divide(least, abs(low[a] - its)), _divide(most, abs(high[a] - its))) if sure else 0.0
            ratio = min(ratio, max(share, _divide(min(least, most) / deviations.high[h, s, a], other.high)))
        if other.chosen[h, s, a]:
            sure = sure and a == best
        if not chosen:
            continue
        if a != best:
            return ratio
        mine, its = -mine, -its  # beyond the best action distances are gap + tolerance
        for k in range(i + 1, order.size):
            a = order[k]
            if deviations.high[h, s, a] > 0.0:
                share = min(_divide(low[a] - mine, low[a] - its), _divide(high[a] - mine, high[a] - its))
                by_spread = _divide((low[a] - mine) / deviations.high[h, s, a], other.high)
                ratio = min(ratio, max(share if sure else 0.0, by_spread))
        return ratio
    return ratio


@njit(cache=True, nogil=True)
def _divide(part: float, whole: float) -> float:
    """Return part/whole, and not less than 0."""
    if part <= 0.0:
        return 0.0
    return part / whole if whole > 0.0 else math.inf

"""Tolerances: what a candidate of the rule can print, and between which bounds its margin lies, given what is proven.

The same comparisons in the same cells as in ``reprl.canonical.preferred``, with intervals in place of numbers: a
margin is at most the smallest distance of a comparison that surely counts, and at least the smallest of one that may.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import ROUND
from reprl.assurance.confidence import Values
from reprl.assurance.deviation_bounds import DeviationBounds
from reprl.assurance.occupancy_bounds import OccupancyBounds
from reprl.canonical.preferred import CLEAR
from reprl.kernels import njit


class Margin(NamedTuple):
    """Between which bounds a margin lies."""

    low: float
    high: float
    tightest: tuple[int, int, int]
    """The comparison (h, s, a) of the lower bound; −1 where none is near."""


@njit(cache=True, nogil=True)
def open_actions(values: Values, order: NDArray[np.int64], tolerance: float) -> NDArray[np.bool_]:
    """Return the actions, (H, S, A), that a tolerance may choose: all that may be good enough, up to one that is."""
    horizon, n_states, _ = values.plausible.shape
    out = np.zeros(values.plausible.shape, dtype=np.bool_)
    for h in range(horizon):
        for s in range(n_states):
            for i in range(order.size):
                a = order[i]
                if values.gap_low[h, s, a] <= tolerance + ROUND:
                    out[h, s, a] = True
                    if values.gap_high[h, s, a] <= tolerance - ROUND:
                        break
    return out


@njit(cache=True, nogil=True)
def bound_margin(
    values: Values,
    deviations: DeviationBounds,
    visits: OccupancyBounds,
    chosen: NDArray[np.bool_],
    order: NDArray[np.int64],
    tolerance: float,
    floor: float,
) -> Margin:
    """Bound the margin of a tolerance; chosen are its open actions."""
    low, high, tightest = CLEAR, CLEAR, (-1, -1, -1)
    for h in range(chosen.shape[0]):
        for s in range(chosen.shape[1]):
            if visits.high[h, s] < floor - ROUND:
                continue
            least, most, a = _cell_margin(values, deviations, chosen, order, tolerance, h, s)
            if least < low:
                low, tightest = least, (h, s, a)
            if visits.low[h, s] >= floor + ROUND:
                high = min(high, most)
    return Margin(max(low, 0.0), max(high, 0.0), tightest)


@njit(cache=True, nogil=True)
def _cell_margin(
    values: Values,
    deviations: DeviationBounds,
    chosen: NDArray[np.bool_],
    order: NDArray[np.int64],
    tolerance: float,
    h: int,
    s: int,
) -> tuple[float, float, int]:
    """Return the least and the largest that the smallest distance in a cell can be, and the action of the least."""
    least, most, where = CLEAR, CLEAR, -1
    several = chosen[h, s].sum() > 1
    passed = False
    first = order[0]  # of the open actions; there is one wherever the statements hold
    largest_if_best = CLEAR  # of the others, if the first open action is the best one
    for i in range(order.size):
        a = order[i]
        low, high = values.gap_low[h, s, a], values.gap_high[h, s, a]
        narrow, broad = deviations.low[h, s, a], deviations.high[h, s, a]
        if not passed and not chosen[h, s, a]:  # surely too far, and surely before the chosen one
            if broad > 0.0 and low - tolerance < least * broad:
                least, where = (low - tolerance) / broad, a
            if narrow > 0.0:
                most = min(most, (high - tolerance) / narrow)
        elif not passed:  # the first that may be chosen
            passed = True
            first = a
            if several:
                least, where = 0.0, a
            elif broad > 0.0 and high > 0.0 and tolerance - high < least * broad:
                least, where = (tolerance - high) / broad, a
        else:  # after it: counts if the first is chosen and best
            if values.plausible[h, s, first] and broad > 0.0 and low + tolerance < least * broad:
                least, where = (low + tolerance) / broad, a
            if narrow > 0.0:
                largest_if_best = min(largest_if_best, (high + tolerance) / narrow)
    low, high, narrow = values.gap_low[h, s, first], values.gap_high[h, s, first], deviations.low[h, s, first]
    largest_if_not = CLEAR
    if narrow > 0.0:
        largest_if_not = max(high - tolerance, tolerance - low) / narrow
    if not values.plausible[h, s, first]:
        most = min(most, largest_if_not)
    elif high <= 0.0:
        most = min(most, largest_if_best)
    else:
        most = min(most, max(largest_if_not, largest_if_best))
    return least, most, where

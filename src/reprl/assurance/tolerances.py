"""Tolerances: what a candidate of the rule can print, and between which bounds its margin lies, given what is proven.

The same comparisons as in ``reprl.canonical.preferred``, with intervals in place of numbers: a margin is at most the
smallest distance of a comparison that surely counts, and at least the smallest of one that may
(docs/proofs/certificate.md §6).
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
from reprl.canonical.preferred import CLEAR, visit_weight, weight_spread
from reprl.kernels import njit

WIDEST = (5.0 - math.sqrt(17.0)) / 4.0
"""Visits at which the spread of a weight is largest: it rises up to there, and falls beyond."""


class Margin(NamedTuple):
    """Between which bounds a margin lies."""

    low: float
    high: float
    tightest: tuple[int, int, int]
    """The comparison (h, s, a) of the lower bound; −1 where none is near."""


class Box(NamedTuple):
    """What is known of one comparison: visits, a gap and its spread."""

    seldom: float
    often: float
    low: float
    high: float
    narrow: float
    broad: float


@njit(cache=True, nogil=True, inner=True)
def box_of(values: Values, deviations: DeviationBounds, visits: OccupancyBounds, h: int, s: int, a: int) -> Box:
    """Return the bounds of a comparison."""
    return Box(
        visits.low[h, s],
        visits.high[h, s],
        values.gap_low[h, s, a],
        values.gap_high[h, s, a],
        deviations.low[h, s, a],
        deviations.high[h, s, a],
    )


@njit(cache=True, nogil=True, inner=True)
def _too_far(visits: float, gap: float, spread: float, tolerance: float) -> float:
    """Distance of an action that is passed over; it rises with visits and gap, and falls with the spread."""
    weight = visit_weight(visits)
    return divide(weight * gap - tolerance, math.hypot(weight * spread, weight_spread(visits) * gap))


@njit(cache=True, nogil=True)
def least_passed(box: Box, tolerance: float) -> float:
    """Return the least distance of an action that is passed over."""
    return _too_far(box.seldom, box.low, box.broad, tolerance)


@njit(cache=True, nogil=True)
def most_passed(box: Box, tolerance: float) -> float:
    """Return the largest distance of an action that is passed over; 0 if it cannot be."""
    return _too_far(box.often, box.high, box.narrow, tolerance)


@njit(cache=True, nogil=True)
def weight_spreads(seldom: float, often: float) -> tuple[float, float]:
    """Return bounds on the spread of a weight."""
    ends = weight_spread(seldom), weight_spread(often)
    return min(ends), weight_spread(min(max(seldom, WIDEST), often))


@njit(cache=True, nogil=True)
def least_chosen(box: Box, tolerance: float) -> float:
    """Return the least distance of an action that is chosen and not the best one."""
    weight, unsure = visit_weight(box.often), weight_spreads(box.seldom, box.often)[1]
    return divide(tolerance - weight * box.high, math.hypot(weight * box.broad, unsure * box.high))


@njit(cache=True, nogil=True)
def most_chosen(box: Box, tolerance: float) -> float:
    """Return the largest distance of an action that is chosen and not the best one; 0 if it cannot be."""
    weight, unsure = visit_weight(box.seldom), weight_spreads(box.seldom, box.often)[0]
    return divide(tolerance - weight * box.low, math.hypot(weight * box.narrow, unsure * box.low))


@njit(cache=True, nogil=True)
def least_beyond(box: Box, tolerance: float) -> float:
    """Return the least distance of an action that would have to overtake the chosen one, which is the best."""
    return divide(box.low + divide(tolerance, visit_weight(box.often)), box.broad)


@njit(cache=True, nogil=True)
def most_beyond(box: Box, tolerance: float) -> float:
    """Return the largest such distance."""
    return divide(box.high + divide(tolerance, visit_weight(box.seldom)), box.narrow)


@njit(cache=True, nogil=True)
def divide(part: float, whole: float) -> float:
    """Return part/whole, not less than 0; infinite by 0."""
    if part <= 0.0:
        return 0.0
    return part / whole if whole > 0.0 else math.inf


def everywhere(values: Values) -> OccupancyBounds:
    """Return visits of 1: by them the plain policy of a tolerance is chosen."""
    once = np.ones(values.plausible.shape[:2])
    return OccupancyBounds(once, once)


@njit(cache=True, nogil=True)
def open_actions(
    values: Values, visits: OccupancyBounds, order: NDArray[np.int64], tolerance: float
) -> NDArray[np.bool_]:
    """Return the actions, (H, S, A), that a tolerance may choose: all that may be good enough, up to one that is."""
    horizon, n_states, _ = values.plausible.shape
    out = np.zeros(values.plausible.shape, dtype=np.bool_)
    for h in range(horizon):
        for s in range(n_states):
            least, most = visit_weight(visits.low[h, s]), visit_weight(visits.high[h, s])
            for i in range(order.size):
                a = order[i]
                if math.isinf(values.gap_low[h, s, a]):  # it may not be done
                    continue
                if least * values.gap_low[h, s, a] <= tolerance + ROUND:
                    out[h, s, a] = True
                    if most * values.gap_high[h, s, a] <= tolerance - ROUND:
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
) -> Margin:
    """Bound the margin of a tolerance; visits are its plain policy's, chosen its open actions."""
    low, high, tightest = CLEAR, CLEAR, (-1, -1, -1)
    for h in range(chosen.shape[0]):
        for s in range(chosen.shape[1]):
            least, most, a = _cell_margin(values, deviations, visits, chosen, order, tolerance, h, s)
            if least < low:
                low, tightest = least, (h, s, a)
            high = min(high, most)
    return Margin(low, high, tightest)


@njit(cache=True, nogil=True)
def margin_of_other(
    values: Values,
    deviations: DeviationBounds,
    visits: OccupancyBounds,
    chosen: NDArray[np.bool_],
    order: NDArray[np.int64],
    tolerance: float,
    actions: NDArray[np.int64],
) -> float:
    """Bound the margin of a tolerance from above, if it prints another policy than actions, (H, S).

    Then it takes another action in some cell; where the first open action is the policy's, it passes that over.
    """
    high = 0.0
    for h in range(chosen.shape[0]):
        for s in range(chosen.shape[1]):
            if not chosen[h, s, actions[h, s]]:
                return CLEAR
            if chosen[h, s].sum() > 1:
                most = _cell_margin(values, deviations, visits, chosen, order, tolerance, h, s)[1]
                for i in range(order.size):
                    if chosen[h, s, order[i]]:
                        if order[i] == actions[h, s]:
                            box = box_of(values, deviations, visits, h, s, order[i])
                            most = min(most, most_passed(box, tolerance))
                        break
                high = max(high, most)
    return high


@njit(cache=True, nogil=True, inner=True)
def _cell_margin(
    values: Values,
    deviations: DeviationBounds,
    visits: OccupancyBounds,
    chosen: NDArray[np.bool_],
    order: NDArray[np.int64],
    tolerance: float,
    h: int,
    s: int,
) -> tuple[float, float, int]:
    """Return the least and the largest that the smallest distance in a cell can be, and the action of the least."""
    least, most, where = CLEAR, CLEAR, -1
    several = chosen[h, s].sum() > 1
    passed, may_be_best = False, False
    if_not_best = if_best = CLEAR  # the most that the first open action's own comparison, or those after it, can be
    for i in range(order.size):
        a = order[i]
        if math.isinf(values.gap_low[h, s, a]):  # it may not be done
            continue
        box = box_of(values, deviations, visits, h, s, a)
        found = CLEAR
        if not passed and not chosen[h, s, a]:  # surely too far, and surely before the chosen one
            found = least_passed(box, tolerance)
            most = min(most, most_passed(box, tolerance))
        elif not passed:  # the first that may be chosen
            passed, may_be_best = True, bool(values.plausible[h, s, a])
            if several:
                found = 0.0
            elif box.high > 0.0 and box.broad > 0.0:
                found = least_chosen(box, tolerance)
            if_not_best = max(most_passed(box, tolerance), most_chosen(box, tolerance)) if box.high > 0.0 else 0.0
        else:  # after it: counts if the first is chosen and best
            if may_be_best:
                found = least_beyond(box, tolerance)
            if_best = min(if_best, most_beyond(box, tolerance))
        if found < least:
            least, where = found, a
    if not passed:  # no action is open: a statement has failed
        return 0.0, CLEAR, -1
    return least, min(most, max(if_not_best, if_best) if may_be_best else if_not_best), where

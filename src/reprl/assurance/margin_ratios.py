"""Ratios: how many times firmer one candidate is than another, at least, whatever the spreads are.

Margins are smallest distances over spreads, and with few samples spreads are known to a factor of three only. Two
candidates that make the same comparison share its gap and its spread, and often its visits too, so that of their ratio
far more is known than of either (docs/proofs/certificate.md §6).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.confidence import Values
from reprl.assurance.deviation_bounds import DeviationBounds
from reprl.assurance.occupancy_bounds import OccupancyBounds
from reprl.assurance.tolerances import Box, box_of, divide, least_beyond, least_chosen, least_passed, weight_spreads
from reprl.canonical.preferred import CLEAR, visit_weight
from reprl.kernels import njit

PIECES = 8
"""Parts of the interval of a gap, in each of which the better of two bounds counts."""


class Side(NamedTuple):
    """What is known of a tolerance."""

    tolerance: float
    plain: NDArray[np.bool_]
    """(H, S, A): open actions of its plain policy."""
    visits: OccupancyBounds
    """Of the plain policy."""
    chosen: NDArray[np.bool_]
    """(H, S, A): open actions."""
    high: float
    """Upper bound on its margin."""


@njit(cache=True, nogil=True)
def compare_margins(
    values: Values, deviations: DeviationBounds, order: NDArray[np.int64], decided: Side, other: Side
) -> float:
    """Return how many times the other's margin a decided tolerance's margin is, at least."""
    ratio = divide(CLEAR, other.high)
    same = True  # visits of both at this step are surely the same numbers
    for h in range(decided.chosen.shape[0]):
        for s in range(decided.chosen.shape[1]):
            for best in range(order.size):
                if values.plausible[h, s, best]:
                    ratio = min(ratio, _cell_ratio(values, deviations, order, decided, other, h, s, best, same))
        for s in range(decided.chosen.shape[1]):
            for a in range(order.size):
                same = same and decided.plain[h, s, a] == other.plain[h, s, a]
            same = same and decided.plain[h, s].sum() == 1
    return ratio


@njit(cache=True, nogil=True, inner=True)
def _cell_ratio(
    values: Values,
    deviations: DeviationBounds,
    order: NDArray[np.int64],
    decided: Side,
    other: Side,
    h: int,
    s: int,
    best: int,
    same: bool,
) -> float:
    """Return the least ratio over the comparisons that the decided one makes in a cell, if one action is the best.

    What it chooses does not come after the best action. Up to there it compares gaps with its tolerance, beyond the
    best action only if it chooses that. So does the other, surely as far as the first action that it may choose.
    """
    ratio, sure, beyond = math.inf, True, False
    for i in range(order.size):
        a = order[i]
        if a != best and not math.isinf(values.gap_low[h, s, a]):
            mine = box_of(values, deviations, decided.visits, h, s, a)
            its = box_of(values, deviations, other.visits, h, s, a)
            way = BEYOND if beyond else CHOSEN if decided.chosen[h, s, a] else PASSED
            tolerances = decided.tolerance, other.tolerance
            ratio = min(ratio, _least_ratio(mine, its, tolerances, way, sure, same, other.high))
        if other.chosen[h, s, a] and not beyond:
            sure = sure and a == best
        if decided.chosen[h, s, a]:
            if a != best:
                return ratio
            beyond = True
    return ratio


PASSED, CHOSEN, BEYOND = 0, 1, 2


@njit(cache=True, nogil=True)
def _least_ratio(
    mine: Box, its: Box, tolerances: tuple[float, float], way: int, sure: bool, same: bool, high: float
) -> float:
    """Return the least ratio of one comparison: for each part of its gap's interval the better of two bounds."""
    ratio, top = math.inf, mine.high
    for piece in range(PIECES):
        bottom = mine.low if piece == PIECES - 1 else max(mine.low, 0.5 * top)
        here = Box(mine.seldom, mine.often, bottom, top, mine.narrow, mine.broad)
        if way == PASSED:
            alone = least_passed(here, tolerances[0])
        elif way == CHOSEN:
            alone = least_chosen(here, tolerances[0])
        else:
            alone = least_beyond(here, tolerances[0])
        found = divide(alone, high)
        if sure:
            found = max(found, _shared_ratio(here, its, tolerances, way, same))
        ratio = min(ratio, found)
        if bottom <= mine.low:
            return ratio
        top = bottom
    return ratio


@njit(cache=True, nogil=True, inner=True)
def _shared_ratio(mine: Box, its: Box, tolerances: tuple[float, float], way: int, same: bool) -> float:
    """Return the least ratio of two distances with one gap, in mine, and one spread; with the same visits or not."""
    least, most = visit_weight(mine.seldom), visit_weight(mine.often)
    if same:  # one number, weight·gap, in both
        ends = least * mine.low, most * mine.high
        return min(_distances(1.0, 1.0, ends[0], tolerances, way), _distances(1.0, 1.0, ends[1], tolerances, way))
    rare, often = visit_weight(its.seldom), visit_weight(its.often)
    if way == BEYOND:
        if rare <= 0.0:
            return 0.0
        scaled = divide(tolerances[0], most), tolerances[1] / rare
        return min(_distances(1.0, 1.0, mine.low, scaled, way), _distances(1.0, 1.0, mine.high, scaled, way))
    worst, ratio = least if way == PASSED else most, math.inf
    for gap in (mine.low, mine.high):
        for weight in (rare, often):
            ratio = min(ratio, _distances(worst, weight, gap, tolerances, way))
    thick = _spreads_ratio(mine, its, mine.narrow, mine.high)  # its spread over mine, at both ends of spread/gap
    return ratio * min(thick, _spreads_ratio(mine, its, mine.broad, mine.low))


@njit(cache=True, nogil=True, inner=True)
def _spreads_ratio(mine: Box, its: Box, spread: float, gap: float) -> float:
    """Return how many times mine the other's spread of a weighed gap is, at least."""
    least = math.hypot(visit_weight(its.seldom) * spread, weight_spreads(its.seldom, its.often)[0] * gap)
    most = math.hypot(visit_weight(mine.often) * spread, weight_spreads(mine.seldom, mine.often)[1] * gap)
    return divide(least, most)


@njit(cache=True, nogil=True, inner=True)
def _distances(mine: float, its: float, gap: float, tolerances: tuple[float, float], way: int) -> float:
    """Return the ratio of the distances of two weighed gaps from their tolerances."""
    if way == BEYOND:
        return divide(mine * gap + tolerances[0], its * gap + tolerances[1])
    sign = 1.0 if way == CHOSEN else -1.0
    return divide(sign * (tolerances[0] - mine * gap), abs(tolerances[1] - its * gap))

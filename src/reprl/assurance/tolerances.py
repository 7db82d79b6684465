"""Tolerances: what a candidate of the rule can print, and between which bounds its margin lies, given what is proven.

The same comparisons in the same cells as in ``reprl.canonical.preferred``, with intervals in place of numbers: a
margin is at most the smallest distance of a comparison that surely counts, and at least the smallest of one that may.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import ROUND, share_radius
from reprl.assurance.confidence import Floats, Sample, Values
from reprl.assurance.deviation_bounds import DeviationBounds, successors
from reprl.assurance.occupancy_bounds import OccupancyBounds
from reprl.canonical.plateau import TURN, plateau_weight
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


def draws_only(
    values: Values, visits: OccupancyBounds, actions: NDArray[np.int64], default: int, width: float, floor: float
) -> bool:
    """Whether the laws of a width surely draw this policy and no other.

    Args:
        values: bounds on gaps.
        visits: of the policy.
        actions: (H, S), the policy.
        default: the most preferred action.
        width: gap from which an action has no weight.
        floor: where laws are not asked.
    """
    rivals = values.gap_low < width + ROUND
    np.put_along_axis(rivals, actions[:, :, None], False, axis=2)
    as_default = (actions == default) | (visits.low >= floor + ROUND)
    as_law = ~rivals.any(axis=2) | (visits.high < floor - ROUND)
    return bool((as_default & as_law).all())


class LawMargin(NamedTuple):
    """How firm the plateau laws of a width can be."""

    most: float
    """Their margin is at most this,"""
    cover: Floats
    """(H, S, A): and at most this over the spread of a gap; infinite where laws may not be asked."""


@njit(cache=True, nogil=True)
def law_margin(
    sample: Sample, values: Values, deviations: DeviationBounds, width: float, floor: float, level: float
) -> LawMargin:
    """Bound the margin of the plateau laws of a width: add up what surely counts in the cells that they visit."""
    mass, cover = sample.dynamics.initial.copy(), np.full(values.plausible.shape, np.inf)
    for s in range(0 if sample.fixed_start else mass.size):
        mass[s] = max(0.0, mass[s] - share_radius(sample.starts, mass[s], level))
    horizon, n_states, n_actions = values.plausible.shape
    law, error, there = np.zeros(n_states), np.zeros(n_states), np.zeros(n_states)
    # turn, clear; then what is on one side or the other: their turn, the largest of their distances
    counted = np.zeros(4)
    counted[1] = CLEAR
    for h in range(horizon):
        there[:] = 0.0
        for s in range(n_states):
            if mass[s] < floor + ROUND:
                continue
            square = _count(values, deviations, width, h, s, counted, cover[h, s])
            if square == 0.0:  # no action can be the best: a statement has failed, and nothing is known
                cover[:] = math.inf
                return LawMargin(CLEAR, cover)
            for a in range(n_actions):
                weight = plateau_weight(values.gap_high[h, s, a], width) ** 2 / square
                if weight > 0.0 and sample.number[h, s, a] > 0.0:
                    successors(sample, h, s, a, level, law, error)
                    for z in range(n_states):
                        there[z] += mass[s] * weight * max(0.0, law[z] - error[z])
        mass[:] = there
    turn = counted[0] + counted[2]
    if turn <= 0.0:
        return LawMargin(counted[1], cover)
    surely = TURN / math.sqrt(counted[0]) if counted[0] > 0.0 else CLEAR
    return LawMargin(min(counted[1], surely, max(counted[3], TURN / math.sqrt(turn))), cover)


@njit(cache=True, nogil=True)
def _count(
    values: Values, deviations: DeviationBounds, width: float, h: int, s: int, counted: Floats, cover: Floats
) -> float:
    """Add what the actions of a cell do to the margin, and return the largest that their squared weights can sum to.

    An action that is not the best one, with a spread, keeps the margin below cover/spread: by its distance if it is off
    the slope, by its share of the turn if it counts there.
    """
    square, ties, finest, widest = 0.0, 0, math.inf, 0.0
    for a in range(cover.size):
        square += plateau_weight(values.gap_low[h, s, a], width) ** 2
        if values.plausible[h, s, a]:
            ties += 1
            finest, widest = min(finest, deviations.low[h, s, a]), max(widest, values.gap_high[h, s, a])
    if square == 0.0:
        return 0.0
    shared = TURN * width * math.sqrt(square) / math.pi
    if ties > 1 and finest > 0.0:  # one of them is the best, the others count
        if widest < 0.25 * width - ROUND:
            counted[1] = min(counted[1], 0.5 * width / finest)
        else:
            counted[2] += (math.pi / width * finest) ** 2 / square
            counted[3] = max(counted[3], max(0.5 * width, widest - width) / finest)
    for a in range(cover.size):
        low, high, narrow = values.gap_low[h, s, a], values.gap_high[h, s, a], deviations.low[h, s, a]
        on, off = high > 0.25 * width - ROUND and low < 1.25 * width + ROUND, 0.0
        if low < 0.25 * width + ROUND:
            off = 0.5 * width - low
        if high > 1.25 * width - ROUND:
            off = max(off, high - width)
        cover[a] = max(off, shared if on else 0.0)
        if values.plausible[h, s, a] or narrow == 0.0:
            continue
        if off == 0.0:
            counted[0] += (math.pi / width * narrow) ** 2 / square
        elif not on:
            counted[1] = min(counted[1], off / narrow)
        else:
            counted[2] += (math.pi / width * narrow) ** 2 / square
            counted[3] = max(counted[3], off / narrow)
    return square

"""Occupancy bounds: intervals for how often a policy visits each state, where some of its actions may still be open.

Visits of a cell are the value of a policy that is paid there and nowhere else, so their error is one martingale over
steps as well; what a step is worth for a given target is between 0 and 1, hardly ever far from 0, and enters by its
square (docs/proofs/certificate.md §5).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import GRID, STEEP, Levels, psi, share_radius
from reprl.assurance.confidence import Floats, Sample
from reprl.assurance.deviation_bounds import successors
from reprl.assurance.error_propagation import spread_mass
from reprl.kernels import njit

FIRM = 32.0
"""How much larger λ may be for lower bounds: what is seen is there, so that no range limits it."""


class OccupancyBounds(NamedTuple):
    """Bounds on the probability to be in a state at a step."""

    low: Floats
    """(H, S)."""
    high: Floats
    """(H, S)."""


class _Targets(NamedTuple):
    """For all targets of one step at once: probability to get there, from a state of the current step."""

    low: Floats
    """(S, S): state, target; least in the empirical model over the open actions."""
    high: Floats
    """(S, S): largest."""
    true: Floats
    """(S, S): upper bound in the true MDP."""
    way: Floats
    """(S, S): what squares along the way to the target add to the exponent of the first λ, at most."""


def bound_occupancy(sample: Sample, open_actions: NDArray[np.bool_], levels: Levels) -> OccupancyBounds:
    """Bound the visits of a policy of which only the possible actions, (H, S, A), are known."""
    horizon, n_states, _ = open_actions.shape
    out = OccupancyBounds(np.zeros((horizon, n_states)), np.ones((horizon, n_states)))
    mass = np.zeros((horizon, n_states))
    spread_mass(sample, open_actions, mass)
    for step in range(horizon):
        targets = _Targets(np.eye(n_states), np.eye(n_states), np.eye(n_states), np.zeros((n_states, n_states)))
        _visit(sample, open_actions, mass, levels, step, targets, out)
    return out


@njit(cache=True, nogil=True)
def _visit(
    sample: Sample,
    open_actions: NDArray[np.bool_],
    mass: Floats,
    levels: Levels,
    step: int,
    targets: _Targets,
    out: OccupancyBounds,
) -> None:
    """Fill the bounds of one step, going back from it to the start."""
    outcomes, initial = sample.dynamics.outcomes, sample.dynamics.initial
    n = outcomes.n_states
    exponent, long, squares = np.zeros((GRID, n)), np.zeros((GRID, n)), np.zeros(n)
    for h in range(step - 1, -1, -1):
        _back(sample, open_actions, mass, levels, h, targets, exponent, long, squares)
    if not sample.fixed_start:
        for z in range(n):
            square = 0.0
            for s in range(n):
                square += initial[s] * targets.true[s, z] ** 2
            squares[z] += square / sample.starts
            for k in range(GRID):
                if sample.by_steps:
                    rate = STEEP * 0.5**k
                    exponent[k, z] += psi(rate) / rate * square
                else:
                    long[k, z] += share_radius(sample.starts, square, levels.reach_cell)
    for z in range(n):
        below = above = 1.0 if sample.by_steps else long[0, z]
        if sample.by_steps:
            above = levels.unseen / (STEEP * sample.starts) + exponent[0, z] + long[0, z]
            for k in range(GRID):
                rate = STEEP * 0.5**k * sample.starts
                above = min(above, levels.reach / rate + exponent[k, z] + long[k, z])
                rate *= FIRM
                below = min(below, levels.reach / rate + 0.5 * rate * squares[z])
        least = most = 0.0
        for s in range(n):
            least += initial[s] * targets.low[s, z]
            most += initial[s] * targets.high[s, z]
        if sample.fixed_start and step == 0:
            below = above = 0.0
        out.low[step, z], out.high[step, z] = max(0.0, least - below), min(1.0, most + above)


@njit(cache=True, nogil=True, inner=True)
def _back(
    sample: Sample,
    open_actions: NDArray[np.bool_],
    mass: Floats,
    levels: Levels,
    h: int,
    targets: _Targets,
    exponent: Floats,
    long: Floats,
    squares: Floats,
) -> None:
    """Bring targets from step h + 1 to step h, and add what errors at step h can do."""
    outcomes = sample.dynamics.outcomes
    n = outcomes.n_states
    law, error = np.zeros(n), np.zeros(n)
    low, high, true, way = np.ones((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    total = targets.true.sum(axis=0)
    found = np.zeros((5, n))
    rate = STEEP * sample.starts
    for y in range(n):
        worst, added, widest = np.zeros((GRID, n)), np.zeros((GRID, n)), np.zeros(n)
        for a in range(outcomes.n_actions):
            if not open_actions[h, y, a]:
                continue
            number = sample.number[h, y, a]
            if number == 0.0:
                low[y], high[y], true[y], way[y] = 0.0, 1.0, 1.0, np.inf
                continue
            successors(sample, h, y, a, levels.law, law, error)
            unseen = share_radius(number, 0.0, levels.law)
            found[:] = 0.0  # least, largest, square, upper bound in the world, and the way
            found[3] += unseen * total
            for x in range(n):
                if law[x] > 0.0:
                    found[0] += law[x] * targets.low[x]
                    found[1] += law[x] * targets.high[x]
                    found[2] += law[x] * targets.true[x] ** 2
                    found[3] += (min(1.0, law[x] + error[x]) - unseen) * targets.true[x]
                    found[4] += law[x] * targets.way[x]
            low[y], high[y] = np.minimum(low[y], found[0]), np.maximum(high[y], found[1])
            true[y] = np.maximum(true[y], np.minimum(found[3], 1.0))
            if sample.by_steps and number >= sample.starts:
                way[y] = np.maximum(way[y], found[4] + psi(rate / number) * number / rate * found[2])
            else:
                way[y] = np.inf
            if mass[h, y] > 0.0:
                _worsen(sample, mass[h, y], number, found[2], levels, worst, added)
                widest = np.maximum(widest, mass[h, y] ** 2 / number * found[2])
        exponent += worst
        long += added
        squares += widest
    true = np.minimum(true, high + levels.onward / rate + way)
    targets.low[:], targets.high[:], targets.true[:], targets.way[:] = low, high, true, way


@njit(cache=True, nogil=True, inner=True)
def _worsen(
    sample: Sample, mass: float, number: float, square: Floats, levels: Levels, worst: Floats, added: Floats
) -> None:
    """Raise worst and added, (K, S), to what one cell with this mass can do."""
    for k in range(GRID):
        rate = STEEP * 0.5**k * sample.starts
        sharp = sample.by_steps and rate <= STEEP * number
        scale = psi(rate * mass / number) * number / rate if sharp else 0.0
        for z in range(square.size):
            if sharp:
                worst[k, z] = max(worst[k, z], scale * square[z])
            elif square[z] > 0.0 or k == 0 or sample.by_steps:
                added[k, z] = max(added[k, z], mass * share_radius(number, square[z], levels.reach_cell))

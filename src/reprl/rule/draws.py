"""Everything that ξ decides about the soft tolerance rule; each number has an address of its own."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.randomness import SharedKey

LEVELS = ("all", "phases", "single")
"""Groups of steps that share an action, from coarse to fine."""
TOLERANCES, ROOMS = (0.2, 0.4), (0.4, 0.7)


class Draws(NamedTuple):
    """The shared part of the rule for an environment of a shape, (H, S, A)."""

    groups: NDArray[np.int64]
    """(levels, H): number of the group of each step; those of a level follow those of the level before."""
    tolerance: NDArray[np.float64]
    """(tries, groups, S), uniform in TOLERANCES."""
    last: NDArray[np.float64]
    """(H, S): the same for the last resort."""
    room: float
    """Share of the allowed loss that a policy may lose, uniform in ROOMS."""
    shift: float
    """Of the grid of temperatures, uniform in [0, 1)."""


def draw(key: SharedKey, shape: tuple[int, int, int], *, stationary: bool) -> Draws:
    """Draw the shared part.

    Args:
        key: ξ, at the address of the rule.
        shape: (H, S, A), with H = 1 if discounted.
        stationary: whether the law is the same at all of several steps, so that they may share an action.

    Randomness:
        Shared, at key.derive("tolerance", level, try), index group·S + state; ("tolerance", "last"), index h·S + s;
        ("room"); ("shift").
    """
    horizon, n_states, _ = shape
    levels = group_steps(horizon, stationary=stationary)
    groups: list[NDArray[np.int64]] = []
    tolerance: list[NDArray[np.float64]] = []
    for name, level in levels.items():
        many = int(level[-1]) + 1
        groups.append(level + sum(each.shape[1] for each in tolerance))
        drawn = [key.derive("tolerance", name, t).uniforms(many * n_states) for t in range(count_tries(n_states))]
        tolerance.append(np.array(drawn).reshape(-1, many, n_states))
    last = key.derive("tolerance", "last").uniforms(horizon * n_states).reshape(horizon, n_states)
    room, shift = (float(key.derive(name).uniforms(1)[0]) for name in ("room", "shift"))
    return Draws(
        groups=np.array(groups),
        tolerance=_between(TOLERANCES, np.concatenate(tolerance, axis=1)),
        last=_between(TOLERANCES, last),
        room=ROOMS[0] + (ROOMS[1] - ROOMS[0]) * room,
        shift=shift,
    )


def _between(ends: tuple[float, float], u: NDArray[np.float64]) -> NDArray[np.float64]:
    return ends[0] + (ends[1] - ends[0]) * u


def group_steps(horizon: int, *, stationary: bool) -> dict[str, NDArray[np.int64]]:
    """Return the group of each step, (H,), by level: all alike; from the end 1, 3, 9, …; each by itself."""
    single = np.arange(horizon)
    if not stationary:
        return {"single": single}
    phases, end, length = np.zeros(horizon, dtype=np.int64), horizon, 1
    while end > length:
        end, length = end - length, 3 * length
        phases[end:] += 1
    return dict(zip(LEVELS, (np.zeros(horizon, dtype=np.int64), phases, single), strict=True))


def count_tries(n_states: int) -> int:
    """Return the tries of a level: losses add up over states, and the tolerance halves with each try."""
    return max(5, math.ceil(math.log2(n_states)) + 1)

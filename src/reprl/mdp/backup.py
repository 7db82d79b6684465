"""Backups: values by backward induction over the steps of a table, or by sweeps of its one step until nothing moves.

A cell is worth base + Σ law·(reward + scale·value[next state]); a state, after + the best of its cells. Sweeps go in
place, in the order of states, and sums in the order of outcomes, so that the bytes of a result do not depend on a
library or a machine.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.outcomes import Outcomes, step_forward

T = TypeVar("T", bound=np.generic)
STILL = 1e-15
"""Sweeps end when no value moves by more: the error is then at most STILL/(1 − γ), far below any tolerance."""


class Terms(NamedTuple):
    """What the backup of a cell adds and leaves out; an empty array stands for nothing."""

    may: NDArray[np.bool_]
    """(rows or 1, S, A): the actions to choose from; empty where a policy is evaluated."""
    base: NDArray[np.float64]
    """(rows, S, A): where the sum of a cell begins."""
    stop: NDArray[np.bool_]
    """(rows, S, A): cells that are worth their base alone."""
    after: NDArray[np.float64]
    """(rows, S): added to the value of a state."""


_NO_FLAGS, _NO_CELLS, _NO_STATES = np.empty((0, 0, 0), np.bool_), np.empty((0, 0, 0)), np.empty((0, 0))


def terms(
    may: NDArray[np.bool_] = _NO_FLAGS,
    base: NDArray[np.float64] = _NO_CELLS,
    stop: NDArray[np.bool_] = _NO_FLAGS,
    after: NDArray[np.float64] = _NO_STATES,
) -> Terms:
    """Return terms as kernels want them."""
    return Terms(owned(may), owned(base), owned(stop), owned(after))


def owned(array: NDArray[T]) -> NDArray[T]:
    """Return an array in one piece that may be written to, so that kernels are compiled for one kind of arrays."""
    flags = array.flags  # np.require takes longer than a small kernel
    return array if flags.c_contiguous and flags.writeable else np.require(array, requirements=("C", "W"))


@njit(cache=True, nogil=True, inner=True)
def _row(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    added: Terms,
    h: int,
    value: NDArray[np.float64],
    how: tuple[float, float],
    actions: NDArray[np.int64],
    out: NDArray[np.float64],
) -> float:
    """Fill out, (S,), with the values of a step's states and return how far the farthest has moved.

    A state is worth its action's cell or, where there is a choice, that of the best (sign 1) or worst (−1) one, which
    is written to actions. The value of a next state counts `scale` times; value may be out itself.
    """
    scale, sign = how
    first, next_state, reward = outcomes.first, outcomes.next_state, outcomes.reward
    may, base, stop, after = added  # once for all states: fields of a tuple cost time in the loops
    n_states, n_actions, shift = outcomes.n_states, outcomes.n_actions, h * outcomes.slot_shift
    choice, based, stopped, follows = may.size > 0, base.size > 0, stop.size > 0, after.size > 0
    allowed = h if h < may.shape[0] else may.shape[0] - 1
    moved = 0.0
    for s in range(n_states):
        best = -math.inf
        low, high = (0, n_actions) if choice else (actions[h, s], actions[h, s] + 1)
        for a in range(low, high):
            if choice and not may[allowed, s, a]:
                continue
            total = base[h, s, a] if based else 0.0
            if not (stopped and stop[h, s, a]):
                row = h * outcomes.row_shift + s * n_actions + a
                for e in range(first[row], first[row + 1]):
                    total += law[e + shift] * (reward[e] + scale * value[next_state[e]])
            if sign * total > best:
                best = sign * total
                actions[h, s] = a
        worth = sign * best if best > -math.inf else 0.0
        new = after[h, s] + worth if follows else worth
        moved = max(moved, abs(new - out[s]))
        out[s] = new
    return moved


@njit(cache=True, nogil=True)
def backward(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    added: Terms,
    sign: float,
    values: NDArray[np.float64],
    actions: NDArray[np.int64],
) -> None:
    """Fill values, (H+1, S), from the last row, which is there already, to the first.

    sign is 1 for the best values, −1 for the least; actions, (H, S), are read where a policy is evaluated, else filled,
    the lowest on ties.
    """
    for h in range(outcomes.horizon - 1, -1, -1):
        _row(outcomes, law, added, h, values[h + 1], (1.0, sign), actions, values[h])


@njit(cache=True, nogil=True, inner=True)
def _sweeps(discount: float) -> int:
    """After so many sweeps what is left counts less than STILL."""
    return int(math.ceil((math.log(STILL) + math.log(1.0 - discount)) / math.log(discount))) + 1  # noqa: RUF046


@njit(cache=True, nogil=True)
def sweep(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    added: Terms,
    discount: float,
    how: tuple[float, float],
    actions: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the fixed point of the backup of a one-step table, (S,), with an error of at most STILL/(1 − γ).

    how is what the value of the next state counts, γ, or 1 where law holds it, and the sign; actions are (1, S), as in
    ``backward``.
    """
    value = np.zeros(outcomes.n_states)
    for _ in range(_sweeps(discount)):
        if _row(outcomes, law, added, 0, value, how, actions, value) <= STILL:
            break
    return value


@njit(cache=True, nogil=True)
def discounted_visits(
    outcomes: Outcomes, law: NDArray[np.float64], play: NDArray[np.float64], start: NDArray[np.float64], discount: float
) -> NDArray[np.float64]:
    """Return Σ_t γ^t Pr[x_t = s], (S,), for play, (S, A) laws of actions; start may be signed, the sums then are."""
    visits = np.zeros(outcomes.n_states)
    waiting = start.copy()
    for _ in range(_sweeps(discount)):
        left = 0.0
        for s in range(outcomes.n_states):
            mass = waiting[s]
            if mass == 0.0:
                continue
            waiting[s] = 0.0
            visits[s] += mass
            left += abs(mass)
            for a in range(outcomes.n_actions):
                if play[s, a] > 0.0:
                    row = s * outcomes.n_actions + a
                    for e in range(outcomes.first[row], outcomes.first[row + 1]):
                        waiting[outcomes.next_state[e]] += discount * mass * play[s, a] * law[e]
        if left <= STILL:
            break
    return visits


@njit(cache=True, nogil=True)
def losses(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    nothing: Terms,
    actions: NDArray[np.int64],
    best: NDArray[np.float64],
    initial: NDArray[np.float64],
    values: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Fill out, (K,), with how much less than best, (S,), policies, (K, H, S), are worth from the start.

    values, (H+1, S), are scratch, but for the last row.
    """
    for k in range(out.size):
        backward(outcomes, law, nothing, 1.0, values, actions[k])
        total = 0.0
        for s in range(best.size):
            total += initial[s] * (best[s] - values[0, s])
        out[k] = total


@njit(cache=True, nogil=True)
def walk(outcomes: Outcomes, law: NDArray[np.float64], actions: NDArray[np.int64], visits: NDArray[np.float64]) -> None:
    """Fill visits, (K, H, S), after the first step, with where policies lead."""
    for k in range(visits.shape[0]):
        for h in range(outcomes.horizon - 1):
            shifted = law[h * outcomes.slot_shift :]
            step_forward(outcomes, shifted, h, actions[k, h], visits[k, h], visits[k, h + 1])


@njit(cache=True, nogil=True)
def in_order(weight: NDArray[np.float64], x: NDArray[np.float64]) -> float:
    """Return Σ weight·x, added up in order."""
    total = 0.0
    for s in range(x.size):
        total += weight[s] * x[s]
    return total


def one_hot(actions: NDArray[np.int64], n_actions: int) -> NDArray[np.float64]:
    """Return a policy's actions, (S,), as laws, (S, A)."""
    return np.equal.outer(actions, np.arange(n_actions)).astype(np.float64)

"""forever: discounted worlds have no last step; their values are found by going round until nothing moves.

A discounted world is written as a world of *one* step, after which it is where it was and counts γ times: tables are
(1, S, A), values (2, S) with the second row γ times the first. So whatever reads one step of a world with a horizon,
gaps, laws, comparisons, reads these as well; only sums over all steps need the kernels here. They sweep in place, in
the order of states, so that their bytes do not depend on a library or a machine.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_real, quote
from reprl.kernels import njit
from reprl.mdp.outcomes import Outcomes

MOST = 0.9999
"""The largest discount: nearer to 1, rounding would be larger than the gaps that are told apart."""
STILL = 1e-15
"""Sweeps end when no value moves by more: the error is then at most STILL/(1 − γ), far below any tolerance."""
LENGTH = 0.01
"""Episodes of a discounted world are so long that what comes after them counts less than this, relative to all."""


def check_discount(discount: object) -> float:
    """Return γ if it is one."""
    if isinstance(discount, bool) or not isinstance(discount, int | float | np.floating | np.integer):
        raise InputError(f"discount must be a number in (0, {MOST}], got {quote(discount)}")
    return check_real("discount", float(discount), 0.0, MOST, open_high=False)


def whole(discount: float) -> float:
    """Return 1/(1 − γ), the largest value, in place of H."""
    return 1.0 / (1.0 - discount)


def episode_length(discount: float) -> int:
    """Return how long episodes are, where nobody says: γ^length ≤ LENGTH."""
    return math.ceil(math.log(LENGTH) / math.log(discount))


def reduced_horizon(discount: float, epsilon: float) -> int:
    """Return H = ⌈log(1/(ε(1 − γ)))/(1 − γ)⌉, at least 1: what comes after H steps is worth at most ε."""
    return max(1, math.ceil(math.log(whole(discount) / epsilon) * whole(discount)))


@njit(cache=True, nogil=True)
def _sweeps(discount: float) -> int:
    """After so many sweeps what is left counts less than STILL."""
    return int(math.ceil((math.log(STILL) + math.log(1.0 - discount)) / math.log(discount))) + 1  # noqa: RUF046


@njit(cache=True, nogil=True)
def best_values(
    outcomes: Outcomes, law: NDArray[np.float64], may: NDArray[np.bool_], discount: float, sign: float
) -> NDArray[np.float64]:
    """Return V* (sign 1) or the least value (sign −1), (S,); 0 where nothing may be done. may is (1, S, A)."""
    value = np.zeros(outcomes.n_states)
    for _ in range(_sweeps(discount)):
        moved = 0.0
        for s in range(outcomes.n_states):
            best = -math.inf
            for a in range(outcomes.n_actions):
                if may[0, s, a]:
                    row = s * outcomes.n_actions + a
                    mean = 0.0
                    for e in range(outcomes.first[row], outcomes.first[row + 1]):
                        mean += law[e] * (outcomes.reward[e] + discount * value[outcomes.next_state[e]])
                    best = max(best, sign * mean)
            new = sign * best if best > -math.inf else 0.0
            moved = max(moved, abs(new - value[s]))
            value[s] = new
        if moved <= STILL:
            break
    return value


@njit(cache=True, nogil=True)
def policy_values(
    outcomes: Outcomes, law: NDArray[np.float64], actions: NDArray[np.int64], discount: float
) -> NDArray[np.float64]:
    """Return the values of a stationary policy, (S,)."""
    value = np.zeros(outcomes.n_states)
    for _ in range(_sweeps(discount)):
        moved = 0.0
        for s in range(outcomes.n_states):
            row = s * outcomes.n_actions + actions[s]
            mean = 0.0
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                mean += law[e] * (outcomes.reward[e] + discount * value[outcomes.next_state[e]])
            moved = max(moved, abs(mean - value[s]))
            value[s] = mean
        if moved <= STILL:
            break
    return value


@njit(cache=True, nogil=True)
def discounted_visits(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    play: NDArray[np.float64],
    start: NDArray[np.float64],
    discount: float,
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
def deviations(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    actions: NDArray[np.int64],
    own: NDArray[np.float64],
    discount: float,
) -> NDArray[np.float64]:
    """Return Σ_t γ^t E[√own(x_t, π)] from every state, (S,): it bounds the deviation of an estimate of V^π, times √n.

    Errors of one cell are the same at every visit, so deviations are added up, not their squares (Minkowski).
    """
    total = np.zeros(outcomes.n_states)
    for _ in range(_sweeps(discount)):
        moved = 0.0
        for s in range(outcomes.n_states):
            row = s * outcomes.n_actions + actions[s]
            mean = math.sqrt(own[s, actions[s]])
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                mean += discount * law[e] * total[outcomes.next_state[e]]
            moved = max(moved, abs(mean - total[s]))
            total[s] = mean
        if moved <= STILL:
            break
    return total


@njit(cache=True, nogil=True)
def feared(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    may: NDArray[np.bool_],
    unsure: NDArray[np.bool_],
    discount: float,
    actions: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the most that unsure cells, (1, S, A), could be worth, (S,), 1/(1 − γ) where one is met; fill actions."""
    worth = np.zeros(outcomes.n_states)
    for _ in range(_sweeps(discount)):
        moved = 0.0
        for s in range(outcomes.n_states):
            best = -1.0
            for a in range(outcomes.n_actions):
                if not may[0, s, a]:
                    continue
                total = 1.0 / (1.0 - discount)
                if not unsure[0, s, a]:
                    total = 0.0
                    row = s * outcomes.n_actions + a
                    for e in range(outcomes.first[row], outcomes.first[row + 1]):
                        total += discount * law[e] * worth[outcomes.next_state[e]]
                if total > best:
                    best = total
                    actions[s] = a
            moved = max(moved, abs(best - worth[s]))
            worth[s] = best
        if moved <= STILL:
            break
    return worth


@njit(cache=True, nogil=True)
def lost_values(
    outcomes: Outcomes, law: NDArray[np.float64], may: NDArray[np.bool_], known: NDArray[np.float64], discount: float
) -> NDArray[np.float64]:
    """Return the most that states which are known by a part, known (S,) in [0, 1], could be worth, (S,).

    Where one is met, 1/(1 − γ) times what is not known of it; law, of may, (1, S, A), goes on with the known part.
    """
    worth = np.zeros(outcomes.n_states)
    for _ in range(_sweeps(discount)):
        moved = 0.0
        for s in range(outcomes.n_states):
            best = 0.0
            for a in range(outcomes.n_actions):
                if may[0, s, a]:
                    row = s * outcomes.n_actions + a
                    mean = 0.0
                    for e in range(outcomes.first[row], outcomes.first[row + 1]):
                        mean += discount * law[e] * worth[outcomes.next_state[e]]
                    best = max(best, mean)
            new = (1.0 - known[s]) / (1.0 - discount) + best
            moved = max(moved, abs(new - worth[s]))
            worth[s] = new
        if moved <= STILL:
            break
    return worth


def one_hot(actions: NDArray[np.int64], n_actions: int) -> NDArray[np.float64]:
    """Return a policy's actions, (S,), as laws, (S, A)."""
    return np.equal.outer(actions, np.arange(n_actions)).astype(np.float64)

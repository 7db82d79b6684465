"""preferred: actions within a tolerance of the best count as equal, and of those the most preferred is taken.

Where the policy itself hardly ever comes, it says the most preferred action instead. A *stationary* policy says the
same at every step: it is chosen by gaps that are averaged over the steps, and has far fewer comparisons to get wrong.
Each candidate is a tolerance u; its margin is how far the world is from one in which it would print another policy, in
units of what one sample per cell tells.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.gaps import Gaps, average_gaps
from reprl.kernels import njit
from reprl.mdp.dynamics import Dynamics

PREFERRED, STATIONARY, PLATEAU = "preferred", "steady", "sampled"
"""Kinds of candidates, by the words that stored documents have for them."""
CLEAR = 1e3
"""Margins are not told apart beyond this: no comparison is near."""


class Candidates(NamedTuple):
    """What each tolerance prints, how firmly, and at what loss."""

    actions: NDArray[np.int64]
    """(J, H, S)."""
    margin: NDArray[np.float64]
    """(J,): the smallest distance of a comparison that can change the policy, over its spread; at most CLEAR."""
    loss: NDArray[np.float64]
    """(J,): V* − V^π from the start."""
    tightest: NDArray[np.int64]
    """(J, 3): the (h, s, a) of that comparison; −1 where none is near."""


def weigh_tolerances(
    dynamics: Dynamics,
    gaps: Gaps,
    order: NDArray[np.int64],
    tolerances: NDArray[np.float64],
    floor: float,
    *,
    stationary: bool = False,
) -> Candidates:
    """Apply the rule with every tolerance.

    Args:
        dynamics: the model.
        gaps: its gaps.
        order: (A,) actions, the most preferred first.
        tolerances: (J,) in units of value.
        floor: cells that the policy visits with a smaller probability say the most preferred action.
        stationary: whether one action is chosen for all steps, by gaps that are averaged over them; the floor is then
            one of the largest visit of a state.

    Guarantee:
        The loss is exact in the model: V* − V^π = Σ_h E_π[gap(·, π)] ≤ H·u + H·Σ of the visits below the floor
        (performance difference, docs/proofs/canonical.md §2); discounted, 1/(1 − γ) takes the place of H (§9). Of a
        stationary policy nothing but the exact loss is known (§10).
    """
    horizon, n_states, _ = dynamics.outcomes.shape
    n = tolerances.size
    found = Candidates(
        np.empty((n, horizon, n_states), dtype=np.int64), np.empty(n), np.empty(n), np.empty((n, 3), dtype=np.int64)
    )
    compared = average_gaps(dynamics, gaps, order) if stationary else gaps
    picked = np.empty((n, 1, n_states), dtype=np.int64) if stationary else found.actions
    fresh = np.flatnonzero(_pick(compared, order, tolerances, picked))
    for j, end in pairwise([*fresh, n]):  # neighbours often pick the same: they are weighed together
        actions, tightest = found.actions[j], found.tightest[j:end]
        actions[:] = picked[j]
        visits = dynamics.occupancy(actions)
        seen = visits.max(axis=0, keepdims=True) if stationary else visits
        _margins(compared, order, tolerances[j:end], floor, seen, picked[j], found.margin[j:end], tightest)
        if stationary:
            near = tightest[:, 0] == 0
            tightest[near, 0] = visits.argmax(axis=0)[tightest[near, 1]]
        np.copyto(actions, compared.default, where=seen < floor)
        found.actions[j:end], found.loss[j:end] = actions, dynamics.policy_loss(gaps.value[0], actions)
    return found


def decided_cells(visits: NDArray[np.float64], floor: float, kind: str) -> NDArray[np.bool_]:
    """Return where a policy of a kind says something of its own, (H, S); a stationary one, in states that it visits."""
    seen = visits >= floor
    return np.repeat(seen.any(axis=0, keepdims=True), len(seen), axis=0) if kind == STATIONARY else seen


@njit(cache=True, nogil=True)
def _pick(
    gaps: Gaps, order: NDArray[np.int64], tolerances: NDArray[np.float64], actions: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Fill actions, (J, H, S), with the most preferred ones that are good enough, wherever the policy goes.

    Returns:
        (J,): whether a tolerance picks something else than the one before it.
    """
    fresh = np.zeros(tolerances.size, dtype=np.bool_)
    for j in range(tolerances.size):
        fresh[j] = j == 0
        for h in range(actions.shape[1]):
            for s in range(actions.shape[2]):
                action = gaps.best[h, s]
                for i in range(order.size):
                    if gaps.gap[h, s, order[i]] <= tolerances[j]:
                        action = order[i]
                        break
                actions[j, h, s] = action
                if j > 0 and actions[j - 1, h, s] != action:
                    fresh[j] = True
    return fresh


@njit(cache=True, nogil=True)
def _margins(
    gaps: Gaps,
    order: NDArray[np.int64],
    tolerances: NDArray[np.float64],
    floor: float,
    visits: NDArray[np.float64],
    actions: NDArray[np.int64],
    margin: NDArray[np.float64],
    tightest: NDArray[np.int64],
) -> None:
    """Fill the margins of tolerances that pick the same actions, (J,), and the comparisons that they are of, (J, 3)."""
    for j in range(tolerances.size):
        margin[j] = _margin(gaps, order, tolerances[j], floor, visits, actions, tightest[j])


@njit(cache=True, nogil=True)
def _margin(
    gaps: Gaps,
    order: NDArray[np.int64],
    tolerance: float,
    floor: float,
    visits: NDArray[np.float64],
    actions: NDArray[np.int64],
    tightest: NDArray[np.int64],
) -> float:
    """Return the smallest standardised distance of a comparison that can change the policy where it goes.

    Those are: actions preferred to the chosen one, which are too far from the best; the chosen one, which is not; and,
    where it is the best itself, the others, which would have to overtake it by the tolerance.
    """
    least = CLEAR
    tightest[:] = -1
    for h in range(visits.shape[0]):
        for s in range(visits.shape[1]):
            if visits[h, s] < floor or visits[h, s] <= 0.0:
                continue
            chosen = actions[h, s]
            passed = False
            for i in range(order.size):
                a = order[i]
                gap, spread = gaps.gap[h, s, a], gaps.spread[h, s, a]
                if a == chosen:
                    passed = True
                    if gap == 0.0:
                        continue
                    distance = tolerance - gap
                elif not passed:
                    distance = gap - tolerance
                elif gaps.gap[h, s, chosen] == 0.0:
                    distance = gap + tolerance
                else:
                    break
                if spread > 0.0 and math.isfinite(gap) and distance < least * spread:
                    least = distance / spread
                    tightest[0], tightest[1], tightest[2] = h, s, a
    return least

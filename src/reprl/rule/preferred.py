"""preferred: actions within a tolerance of the best count as equal, and of those the most preferred is taken.

Where the policy itself hardly ever comes, it says the most preferred action instead. Each candidate is a tolerance u;
its margin is how far the world is from one in which it would print another policy, in units of what one sample per cell
tells.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.mdp.dynamics import Dynamics
from reprl.mdp.forever import discounted_visits, one_hot, policy_values
from reprl.mdp.outcomes import step_forward
from reprl.rule.gaps import Gaps

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
    dynamics: Dynamics, gaps: Gaps, order: NDArray[np.int64], tolerances: NDArray[np.float64], floor: float
) -> Candidates:
    """Apply the rule with every tolerance.

    Args:
        dynamics: the model.
        gaps: its gaps.
        order: (A,) actions, the most preferred first.
        tolerances: (J,) in units of value.
        floor: cells that the policy visits with a smaller probability say the most preferred action.

    Guarantee:
        The loss is exact in the model: V* − V^π = Σ_h E_π[gap(·, π)] ≤ H·u + H·Σ of the visits below the floor
        (performance difference, docs/proofs/canonical.md §2); discounted, 1/(1 − γ) takes the place of H (§9).
    """
    horizon, n_states, _ = dynamics.outcomes.shape
    n = tolerances.size
    found = Candidates(
        np.empty((n, horizon, n_states), dtype=np.int64), np.empty(n), np.empty(n), np.empty((n, 3), dtype=np.int64)
    )
    visits = np.empty((horizon, n_states))
    for j in range(n):
        _apply(dynamics, gaps, order, float(tolerances[j]), visits, found.actions[j])
        if dynamics.discount > 0.0:
            visits = visits_of(dynamics, found.actions[j])
        found.margin[j] = _margin(dynamics, gaps, order, float(tolerances[j]), floor, visits, found, j)
        np.copyto(found.actions[j], gaps.default, where=visits < floor)
        found.loss[j] = policy_loss(dynamics, gaps.value[0], found.actions[j])
    return found


@njit(cache=True, nogil=True)
def _apply(
    dynamics: Dynamics,
    gaps: Gaps,
    order: NDArray[np.int64],
    tolerance: float,
    visits: NDArray[np.float64],
    actions: NDArray[np.int64],
) -> None:
    """Fill actions with the rule's choices and visits with the policy's own occupancy, one pass forward."""
    outcomes = dynamics.outcomes
    visits[:] = 0.0
    visits[0] = dynamics.initial
    for h in range(outcomes.horizon):
        for s in range(outcomes.n_states):
            chosen = gaps.best[h, s]
            for i in range(order.size):
                if gaps.gap[h, s, order[i]] <= tolerance:
                    chosen = order[i]
                    break
            actions[h, s] = chosen
            if visits[h, s] > 0.0 and h + 1 < outcomes.horizon:
                row = h * outcomes.row_shift + s * outcomes.n_actions + chosen
                for e in range(outcomes.first[row], outcomes.first[row + 1]):
                    flow = visits[h, s] * dynamics.probability[e + h * outcomes.slot_shift]
                    visits[h + 1, outcomes.next_state[e]] += flow


@njit(cache=True, nogil=True)
def _margin(
    dynamics: Dynamics,
    gaps: Gaps,
    order: NDArray[np.int64],
    tolerance: float,
    floor: float,
    visits: NDArray[np.float64],
    found: Candidates,
    j: int,
) -> float:
    """Return the smallest standardised distance of a comparison that can change the policy where it goes.

    Those are: actions preferred to the chosen one, which are too far from the best; the chosen one, which is not; and,
    where it is the best itself, the others, which would have to overtake it by the tolerance.
    """
    least = CLEAR
    found.tightest[j] = -1
    for h in range(visits.shape[0]):
        for s in range(visits.shape[1]):
            if visits[h, s] < floor or visits[h, s] <= 0.0:
                continue
            chosen = found.actions[j, h, s]
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
                    found.tightest[j] = np.array((h, s, a))
    return least


def policy_loss(dynamics: Dynamics, best: NDArray[np.float64], actions: NDArray[np.int64]) -> float:
    """Return how much less than `best`, (S,), a policy, (H, S), is worth from the start; 0 for what nobody tried."""
    if dynamics.discount > 0.0:
        value = policy_values(dynamics.outcomes, dynamics.probability, actions[0], dynamics.discount)
        return float(dynamics.initial @ (best - value))
    return float(_loss(dynamics, best, actions))


@njit(cache=True, nogil=True)
def _loss(dynamics: Dynamics, best: NDArray[np.float64], actions: NDArray[np.int64]) -> float:
    outcomes = dynamics.outcomes
    value = np.zeros(outcomes.n_states)
    here = np.zeros(outcomes.n_states)
    for h in range(outcomes.horizon - 1, -1, -1):
        for s in range(outcomes.n_states):
            row = h * outcomes.row_shift + s * outcomes.n_actions + actions[h, s]
            total = 0.0
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                weight = dynamics.probability[e + h * outcomes.slot_shift]
                total += weight * (outcomes.reward[e] + value[outcomes.next_state[e]])
            here[s] = total
        value[:] = here
    loss = 0.0
    for s in range(outcomes.n_states):
        loss += dynamics.initial[s] * (best[s] - value[s])
    return loss


def visits_of(dynamics: Dynamics, actions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the occupancy of a policy in a model, (H, S); discounted, Σ_t γ^t Pr[x_t = s], (1, S)."""
    if dynamics.discount > 0.0:
        play = one_hot(actions[0], dynamics.outcomes.n_actions)
        law, start = dynamics.probability, dynamics.initial
        return discounted_visits(dynamics.outcomes, law, play, start, dynamics.discount)[None]
    visits = np.zeros(actions.shape)
    visits[0] = dynamics.initial
    for h in range(actions.shape[0] - 1):
        law = dynamics.probability[h * dynamics.outcomes.slot_shift :]
        step_forward(dynamics.outcomes, law, h, actions[h], visits[h], visits[h + 1])
    return visits

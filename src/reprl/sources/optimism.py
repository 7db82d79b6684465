"""The unknown: what cells of which too little is known could be worth, and the policy that finds out.

A cell with few samples may be anything, so it is feared to pay the most that is left. Following that fear is the
principle of R-max: either what is unknown is met, and becomes known, or it cannot be worth much. A cell with many
samples may still hide an outcome that is rare.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics
from reprl.mdp.outcomes import Outcomes

UNSURE = 16
"""A cell with fewer samples may be anything."""


class Unknown(NamedTuple):
    """What is not known, from the start."""

    worth: float
    """The best sum over policies of Pr[the first unsure cell is met at step h]·(H − h), in the empirical model;
    discounted, of γ^h·Pr/(1 − γ)."""
    actions: NDArray[np.int64]
    """(H, S): the policy that it is the sum of."""


def find_unknown(data: Data) -> Unknown:
    """Return what the cells with fewer than UNSURE samples could be worth, and the policy that would tell."""
    return weigh_unknown(empirical_dynamics(data), data.counts.visits < UNSURE)


def weigh_unknown(dynamics: Dynamics, unsure: NDArray[np.bool_]) -> Unknown:
    """Return what unsure cells could be worth.

    Args:
        dynamics: the model.
        unsure: (H, S, A): cells of which nothing may be believed.
    """
    actions = np.zeros(dynamics.outcomes.shape[:2], dtype=np.int64)
    law = dynamics.outcomes, dynamics.probability
    worth = dynamics.criterion.optimistic_values(*law, dynamics.allowed, unsure, actions)
    return Unknown(float(dynamics.initial @ worth), actions)


def weigh_unseen(
    data: Data, value: NDArray[np.float64], visits: NDArray[np.float64], actions: NDArray[np.int64], delta: float
) -> float:
    """Return what outcomes that no sample has shown yet could cost a policy.

    Args:
        data: what was seen.
        value: (H+1, S) best values in the model.
        visits: (H, S) of the policy.
        actions: (H, S), the policy.
        delta: probability with which more may be hidden.

    Returns:
        log(1/δ)·max over rows of samples of Σ_h visits·range_h/n. A simulated team never meets such outcomes.

    Guarantee:
        Let q_i be the probability of what row i, of n_i samples, has not shown, fixed beforehand. That none of it shows
        has probability Π (1 − q_i)^{n_i} ≤ exp(−Σ n_i·q_i), so that Σ n_i·q_i ≤ log(1/δ) but for a probability of δ;
        and Σ c_i·q_i ≤ max(c_i/n_i)·Σ n_i·q_i. c_i takes a hidden outcome of step h to be as far from the others as any
        two that were seen at this step.
    """
    reach = np.zeros(visits.shape[0])
    _ranges(data.counts.outcomes, data.counts.hits, value, reach)
    samples = np.take_along_axis(data.counts.visits, actions[:, :, None], axis=2)[:, :, 0]
    cost = reach[:, None] * visits
    if data.counts.outcomes.pooled:  # the samples of a state and an action are the same ones at every step
        states = np.broadcast_to(np.arange(visits.shape[1]), visits.shape)
        rows = np.zeros((visits.shape[1], data.counts.visits.shape[2]))
        np.add.at(rows, (states, actions), cost)
        cost, samples = rows, data.counts.visits[0]
    return math.log(1.0 / delta) * float((cost / np.maximum(samples, 1)).max())


@njit(cache=True, nogil=True)
def _ranges(
    outcomes: Outcomes, hits: NDArray[np.int64], value: NDArray[np.float64], reach: NDArray[np.float64]
) -> None:
    """Fill reach, (H,), with the range over all samples of a step of reward plus next value."""
    for h in range(outcomes.horizon):
        low, high = math.inf, -math.inf
        for cell in range(outcomes.n_states * outcomes.n_actions):
            row = h * outcomes.row_shift + cell
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                if hits[e + h * outcomes.slot_shift] > 0:
                    x = outcomes.reward[e] + value[h + 1, outcomes.next_state[e]]
                    low, high = min(low, x), max(high, x)
        reach[h] = max(high - low, 0.0)

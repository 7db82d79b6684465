"""The unknown: what cells of which too little is known could be worth, and the policy that finds out.

A cell with few samples may be anything, so it is feared to pay the most that is left. Following that fear is the
principle of R-max: either what is unknown is met, and becomes known, or it cannot be worth much.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics

UNSURE = 16
"""A cell with fewer samples may be anything."""


class Unknown(NamedTuple):
    """What is not known, from the start."""

    worth: float
    """The best sum over policies of Pr[the first unsure cell is met at step h]·(H − h), in the empirical model."""
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
    worth = np.zeros(dynamics.outcomes.n_states)
    actions = np.zeros(dynamics.outcomes.shape[:2], dtype=np.int64)
    _weigh(dynamics, unsure, worth, actions)
    return Unknown(float(dynamics.initial @ worth), actions)


@njit(cache=True, nogil=True)
def _weigh(
    dynamics: Dynamics, unsure: NDArray[np.bool_], worth: NDArray[np.float64], actions: NDArray[np.int64]
) -> None:
    """Fill worth, (S,), which holds zeros, and actions, by dynamic programming."""
    outcomes = dynamics.outcomes
    here = np.zeros(outcomes.n_states)
    for h in range(outcomes.horizon - 1, -1, -1):
        for s in range(outcomes.n_states):
            here[s] = -1.0
            for a in range(outcomes.n_actions):
                if not dynamics.allowed[h, s, a]:
                    continue
                total = float(outcomes.horizon - h)
                if not unsure[h, s, a]:
                    total = 0.0
                    row = h * outcomes.row_shift + s * outcomes.n_actions + a
                    for e in range(outcomes.first[row], outcomes.first[row + 1]):
                        total += dynamics.probability[e + h * outcomes.slot_shift] * worth[outcomes.next_state[e]]
                if total > here[s]:
                    here[s] = total
                    actions[h, s] = a
        worth[:] = here

"""The unknown: what cells of which too little is known could be worth, and the policy that finds out.

A cell with few samples may be anything, so it is feared to pay the most that is left. Following that fear is the
principle of R-max: either what is unknown is met, and becomes known, or it cannot be worth much.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.backup import in_order
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics

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

    Nothing may be believed of unsure cells, (H, S, A).
    """
    actions = np.zeros(dynamics.outcomes.shape[:2], dtype=np.int64)
    law = dynamics.outcomes, dynamics.probability
    worth = dynamics.criterion.optimistic_values(*law, dynamics.allowed, unsure, actions)
    return Unknown(float(in_order(dynamics.initial, worth)), actions)

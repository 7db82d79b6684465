"""Backward induction on data: what every model-based baseline ends with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.counts import Counts
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.mdp.policy import Policy


def empirical_values(counts: Counts, criterion: Criterion | None = None) -> NDArray[np.float64]:
    """Return the optimal action values of the empirical MDP, (H, S, A); 0 in cells without samples.

    criterion is None for the horizon of the counts.
    """
    horizon, n_states, _ = counts.outcomes.shape
    scores = np.empty(counts.outcomes.shape)
    plain = empirical_dynamics(Data(counts, np.ones(n_states, dtype=np.int64), criterion=criterion))
    value = plain.criterion.continuation(plain.outcomes, plain.probability, plain.tried)
    for h in reversed(range(horizon)):
        scores[h] = np.nan_to_num(counts.mean_return(h, value), nan=0.0)
        value = scores[h].max(axis=1)
    return scores


def greedy_policy(scores: NDArray[np.float64]) -> Policy:
    """Return the policy that is greedy for scores (H, S, A), lowest action on ties."""
    return Policy(scores.argmax(axis=2))

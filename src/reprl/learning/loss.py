"""loss: what a policy loses, and what ignoring states costs, in the MDP that data show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers


def best_value(data: Data) -> float:
    """Return V* from the start; a state whose actions were not all seen is worth the steps that remain."""
    return _from_start(data, _best(data.counts, None))


def policy_loss_bound(data: Data, policy: Policy) -> float:
    """Return how much less than ``best_value`` a policy is worth; what it does that was never seen is worth 0."""
    counts = data.counts
    value = np.zeros(counts.outcomes.n_states)
    for h in reversed(range(counts.outcomes.horizon)):
        value = np.nan_to_num(counts.mean_return(h, value))[np.arange(value.size), policy.actions[h]]
    return best_value(data) - _from_start(data, value)


def ignoring_cost(data: Data, tiers: Tiers) -> float:
    """Return how much less than ``best_value`` the best value is if ignored states, from where they begin, pay nothing.

    Guarantee:
        At least what ignoring them costs, in the MDP of the data: a function of it and of the partition alone, which
        no window, law or draw of the decision enters. At most H times the reachability of what is ignored.
    """
    return best_value(data) - _from_start(data, _best(data.counts, tiers.ignorable))


def _from_start(data: Data, value: NDArray[np.float64]) -> float:
    return float(data.starts @ value / data.starts.sum())


def _best(counts: Counts, ignored: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """Best values of the first step, (S,): optimistic of what is unseen, or, with an ignored set, 0 for it."""
    horizon, n_states, _ = counts.outcomes.shape
    value = np.zeros(n_states)
    for h in reversed(range(horizon)):
        best = np.nan_to_num(counts.mean_return(h, value)).max(axis=1)
        if ignored is None:
            value = np.where(counts.visits[h].min(axis=1) > 0, best, float(horizon - h))
        else:
            value = np.where(ignored[h], 0.0, best)
    return value

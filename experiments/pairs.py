"""What the true MDP says of runs: exact values, and exact tests of what was promised."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

import reprl


def best_value(mdp: reprl.TabularMDP) -> float:
    """Return V* from the start."""
    return float(mdp.initial @ mdp.solve().values[0])


def first_action_value(mdp: reprl.TabularMDP) -> float:
    """Return what always the first action that is allowed earns: the baseline where there is no log."""
    allowed = mdp.allowed
    first = np.zeros((mdp.horizon, mdp.n_states), dtype=np.int64) if allowed is None else np.argmax(allowed, axis=-1)
    return mdp.evaluate(np.ascontiguousarray(np.broadcast_to(first, (mdp.horizon, mdp.n_states))))


def seed_of(name: str, number: int) -> int:
    """Return a seed that depends on nothing but a measurement's name and a number."""
    return int(np.random.default_rng([number, *name.encode()]).integers(2**62))


class Count(NamedTuple):
    """Failures among trials, and the exact one-sided test of the claim that they have at most this probability."""

    failures: int
    trials: int
    limit: float

    @property
    def p_value(self) -> float:
        """Of the claim."""
        if not self.trials:
            return 1.0
        return float(binomtest(self.failures, self.trials, self.limit, alternative="greater").pvalue)

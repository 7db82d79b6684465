"""Measure what the rule alone needs: data of one size with which two runs print the same policy."""

from __future__ import annotations

from typing import Any

import numpy as np
from reprl.canonical.bound import TableReader
from reprl.learning.canonical import bind_rule

import reprl
from experiments.pairs import seed_of
from experiments.price.measure import ENOUGH, MOST, RUNS, Case, source_of
from reprl.learning.settings import Settings
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import Data
from reprl.randomness import SharedKey


def rule_samples(case: Case) -> dict[str, Any]:
    """Double the calls until the rule prints the same policy in 18 of 20 pairs of that size, whatever a run would know.

    A run stops later: it cannot see other runs, and it has to exclude what no sample has shown.
    """
    mdp = case.build()
    calls, tried = 1, []
    while calls <= MOST:
        seeds = [seed_of(f"{case.name}/rule/{calls}", number) for number in range(2 * RUNS)]
        keys = [SharedKey(seed_of(f"{case.name}/rule/shared", number)) for number in range(RUNS)]
        printed = [_policy(mdp, keys[number // 2], calls, seed) for number, seed in enumerate(seeds)]
        good = sum(one == two for one, two in zip(printed[::2], printed[1::2], strict=True))
        tried.append([calls, good])
        if good >= ENOUGH:
            return {"samples": calls * source_of(mdp, 0).samples_per_call, "calls": calls, "tried": tried}
        calls *= 2
    return {"samples": None, "calls": None, "tried": tried}


def _policy(mdp: reprl.TabularMDP, key: SharedKey, calls: int, data_seed: int) -> reprl.Policy:
    """Return what the rule makes of so many parallel calls at the default quality."""
    starts = np.random.default_rng([data_seed, calls]).multinomial(calls, mdp.initial)
    data = Data(source_of(mdp, data_seed).sample(calls), starts, mdp.allowed, criterion_of(mdp))
    settings = Settings(access="generative", stationary=mdp.stationary)
    rule = bind_rule(key, criterion_of(mdp), (mdp.n_states, mdp.n_actions), settings, TableReader(), None)
    return rule.choose(data).policy

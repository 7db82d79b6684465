"""The canonical learner: gather data, in rounds that double, until it is sure enough what f(ξ, M) is; print that."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.explore.cover import cover, no_data
from reprl.learning.rehearsal import Rehearsal, rehearse
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.randomness import DataStream, SharedKey
from reprl.rule.choice import Choice, Rule, choose, make_rule
from reprl.rule.influence import influence
from reprl.rule.preferred import weigh_tolerances
from reprl.rule.gaps import find_gaps, unknown_value

FIRST = 32
"""Parallel calls of the first round; by episodes, episodes per state and action."""


UNSURE = 16


class CanonicalRun(NamedTuple):
    choice: Choice
    rehearsal: Rehearsal
    data: Data
    rounds: int


def run_canonical(model, key: SharedKey, *, epsilon, access, preference=None, max_samples=2**36, directed=True) -> CanonicalRun:
    rule = make_rule(key.derive("rule"), (model.horizon, model.n_states, model.n_actions), epsilon=epsilon, preference=preference)
    data, size, rounds = None, FIRST, 0
    weight = None
    while True:
        if access == "generative":
            more = size if data is None else size // 2
            fresh = Data(model.sample(more), model.draw_starts(more))
            data = fresh if data is None else data + fresh
        else:
            total = size * model.n_states * model.n_actions
            more = total if data is None else total // 2
            data = cover(model, no_data(model) if data is None else data, more, weight)
        rounds += 1
        dynamics = empirical_dynamics(data)
        chosen = choose(rule, dynamics)
        look = rehearse(rule, data, chosen, epsilon, DataStream(model.data_seed, f"rehearsal/{rounds}"))
        unsure = data.counts.visits < UNSURE
        unknown = unknown_value(dynamics, unsure)
        if (look.passed and unknown <= 0.1 * epsilon) or model.ledger.samples * 2 > max_samples:
            return CanonicalRun(chosen, look, data, rounds)
        weight = _weight(rule, dynamics) if directed else find_gaps(dynamics, rule.order).own
        size *= 2


def _weight(rule: Rule, dynamics) -> NDArray[np.float64]:
    gaps = find_gaps(dynamics, rule.order)
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances, rule.floor)
    good = found.loss < 0.95 * rule.epsilon
    firm = found.margin[good].max()
    comps, dist = [], []
    for j in np.flatnonzero(good & (found.margin > firm / MODE) & (found.tightest[:, 0] >= 0)):
        h, s, a = found.tightest[j]
        comps.append((h, s, a)); dist.append(max(1e-6, found.margin[j] * gaps.spread[h, s, a]))
    if not comps:
        return gaps.own
    w = influence(dynamics, gaps, np.array(comps), np.array(dist))
    return w / w.max() + 0.02 * gaps.own
MODE = 8.0

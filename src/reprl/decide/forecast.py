"""forecast: how often two runs with data of this size would part, estimated from one run's data.

A heuristic: it propagates sampling variances through the induction, perturbs the scores twice, and compares the laws
of the two copies. It decides how much data to collect, never what is promised.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.correlated import disagreement_bound
from reprl.decide.best_arm import Decision, select
from reprl.decide.induction import Accuracy, Induction
from reprl.mdp.counts import Counts
from reprl.mdp.tiers import Tiers
from reprl.randomness import DataStream

_COPIES = 12


def forecast_disagreement(
    counts: Counts,
    tiers: Tiers,
    found: Induction,
    *,
    accuracy: Accuracy,
    decision: Decision,
    delta: float,
    data_seed: int,
) -> float:
    """Estimate the disagreement of two runs with as many data as these.

    Args:
        counts: data of one run.
        tiers: its partition.
        found: the induction on these data.
        accuracy: as in tiered_induction.
        decision: as in tiered_induction.
        delta: as in tiered_induction.
        data_seed: seeds the perturbations, which are private to this run.

    Randomness:
        Data stream (data_seed, "forecast"). No shared address is read.
    """
    spread = _spread(counts, tiers, found)
    horizon = counts.outcomes.horizon
    cells = spread[0].size
    total = 0.0
    for h in range(horizon):
        for tier in tiers.decided:
            rows = np.flatnonzero(tiers.level[h] == tier)
            if rows.size == 0:
                continue
            laws = []
            for copy in range(2 * _COPIES):
                stream = DataStream(data_seed, "forecast", run=h * 2 * _COPIES + copy)
                noise = _normals(stream, cells).reshape(spread[h].shape)
                scores = (found.scores[h] + np.sqrt(spread[h]) * noise)[rows]
                inner = delta / (horizon * len(tiers.decided))
                laws.append(select(decision.mechanism, scores, accuracy.by_tier[tier - 1], inner).probabilities)
            pairs = zip(laws[::2], laws[1::2], strict=True)
            total += float(np.mean([disagreement_bound(p, q, decision.grade) for p, q in pairs]))
    return total


def _spread(counts: Counts, tiers: Tiers, found: Induction) -> NDArray[np.float64]:
    """Variance of every score, (H, S, A): of its own mean, and of the values that it was computed from."""
    outcomes = counts.outcomes
    horizon, n_states, n_actions = outcomes.shape
    spread = np.zeros(outcomes.shape)
    of_value = np.zeros(n_states)
    states = np.arange(n_states)
    for h in reversed(range(horizon)):
        visits = counts.visits[h]
        for s in range(n_states):
            for a in range(n_actions):
                if visits[s, a] == 0:
                    continue
                table, slots = outcomes.slots(h, s, a)
                share = counts.hits[slots] / visits[s, a]
                utility = outcomes.reward[table] + found.values[h + 1][outcomes.next_state[table]]
                own = float(share @ (utility - share @ utility) ** 2) / visits[s, a]
                passed = np.bincount(outcomes.next_state[table], share, minlength=n_states)
                spread[h, s, a] = own + float(passed**2 @ of_value)
        of_value = np.where(tiers.ignorable[h], 0.0, spread[h, states, found.policy.actions[h]])
    return spread


def _normals(stream: DataStream, n: int) -> NDArray[np.float64]:
    """Standard normal variables, n of them, by the Box–Muller transform."""
    u = stream.uniforms(2 * n).reshape(2, n)
    normals: NDArray[np.float64] = np.sqrt(-2.0 * np.log(u[0])) * np.cos(2.0 * np.pi * u[1])
    return normals

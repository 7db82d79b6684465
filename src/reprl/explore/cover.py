"""cover: explore by whole episodes, each batch with the policy that visits what is least known; all steps are kept.

Data are collected to make estimates precise where a weight says so: the sum over cells of weight/n is lowered step by
step, each batch following its gradient (the Frank–Wolfe method over occupancies, planned in the empirical model).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.explore.blackbox import as_counts, seeds
from reprl.mdp.access import Episodic, Model, walk
from reprl.mdp.counts import Counts, tally
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics

LEAST = 16
"""Episodes of a batch, at least."""
BATCHES = (4, 2, 512)
"""Batches of a round: 4 per action, as a batch tries one action in each state, or 2 per state and action up to 512."""


def no_data(model: Model) -> Data:
    """Return what is known before the first sample."""
    return Data(tally([], _shape(model)), np.zeros(model.n_states, dtype=np.int64))


def cover(
    model: Episodic,
    data: Data,
    episodes: int,
    weight: NDArray[np.float64] | None = None,
    *,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Data:
    """Play a round of episodes and return all data.

    Args:
        model: the MDP in memory, or a black box; its ledger is charged.
        data: what is known so far.
        episodes: how many to play.
        weight: (H, S, A) how much the variance of each cell's mean matters; None for all alike.
        workers: processes, for a black box.
        progress: called with the episodes done and those of the round.

    Randomness:
        A fresh data stream of the model for every batch.
    """
    per_action, per_cell, most = BATCHES
    planned = max(per_action * model.n_actions, min(most, per_cell * model.n_states * model.n_actions))
    batches = max(1, min(episodes // LEAST, planned))
    for number in range(batches):
        share = episodes * (number + 1) // batches - episodes * number // batches
        actions = plan_visits(data, weight, model)
        data = data + play(model, actions, share, workers=workers)
        if progress is not None:
            progress(episodes * (number + 1) // batches, episodes)
    return data


def plan_visits(data: Data, weight: NDArray[np.float64] | None, model: Episodic) -> NDArray[np.int64]:
    """Return the policy, (H, S), whose visits lower Σ weight/n fastest in the empirical model."""
    visits = data.counts.visits
    bonus = ((1.0 if weight is None else weight) + 1.0 / (visits + 1.0)) / (visits + 0.5) ** 2
    bonus[:, list(model.known)] = 0.0
    if data.starts.sum() == 0:
        return np.zeros(visits.shape[:2], dtype=np.int64)
    actions = np.empty(visits.shape[:2], dtype=np.int64)
    _plan(empirical_dynamics(data), bonus, actions)
    return actions


def play(model: Episodic, actions: NDArray[np.int64], episodes: int, *, workers: int = 1) -> Data:
    """Play episodes of one policy and return what they showed, every step of them."""
    stream = model.fresh_stream("cover")
    arrays = model.arrays
    if arrays is not None:
        hits = walk(arrays.outcomes, arrays.probability, arrays.initial, actions, episodes, stream.key)
        model.ledger.episodes += episodes
        model.ledger.samples += episodes * model.samples_per_episode
        counts = Counts(arrays.outcomes, hits)
        return Data(counts, counts.visits[0].sum(axis=1))
    records: Counter[tuple[int, int, float]] = Counter()
    starts = np.zeros(model.n_states, dtype=np.int64)
    for seed in seeds(stream.key, 0, episodes):
        state = model.reset(seed)
        starts[state] += 1
        for h in range(model.horizon):
            if state in model.known:
                break
            cell = (h * model.n_states + state) * model.n_actions + int(actions[h, state])
            seen = model.step(int(actions[h, state]))
            records[cell, seen.state, seen.reward] += 1
            state = seen.state
    return Data(as_counts(records, _shape(model)), starts)


def _shape(model: Model) -> tuple[int, int, int]:
    return model.horizon, model.n_states, model.n_actions


@njit(cache=True, nogil=True)
def _plan(dynamics: Dynamics, bonus: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
    """Fill actions with those that collect the largest expected sum of bonuses; what is not known leads nowhere."""
    outcomes = dynamics.outcomes
    value = np.zeros(outcomes.n_states)
    here = np.zeros(outcomes.n_states)
    for h in range(outcomes.horizon - 1, -1, -1):
        for s in range(outcomes.n_states):
            best, largest = 0, -1.0
            for a in range(outcomes.n_actions):
                total = bonus[h, s, a]
                row = h * outcomes.row_shift + s * outcomes.n_actions + a
                for e in range(outcomes.first[row], outcomes.first[row + 1]):
                    total += dynamics.probability[e + h * outcomes.slot_shift] * value[outcomes.next_state[e]]
                if total > largest:
                    best, largest = a, total
            actions[h, s] = best
            here[s] = largest
        value[:] = here

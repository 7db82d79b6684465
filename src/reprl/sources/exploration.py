"""cover: explore by whole episodes, each batch with the policy that visits what is least known; all steps are kept.

Data are collected to make estimates precise where a weight says so: the sum over cells of weight/n is lowered step by
step, each batch following its gradient (the Frank–Wolfe method over occupancies, planned in the empirical model). While
the unknown could be worth too much, every other batch goes there instead.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reprl.execution.pool import Crew
from reprl.kernels import njit
from reprl.mdp.counts import Counts, tally
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics
from reprl.mdp.outcomes import step_forward
from reprl.sources.black_box import play_batch
from reprl.sources.episodes import walk
from reprl.sources.optimism import find_unknown
from reprl.sources.protocol import Episodic, Model, mask_of

LEAST = 16
"""Episodes of a batch, at least."""
BATCHES = (4, 2, 512)
"""Batches of a round: 4 per action, as a batch tries one action in each state, or 2 per state and action up to 512."""

ALONE = 2048
"""Batches of a round that has to stand by itself: one for each cell, up to this."""


def no_data(model: Model, *, pooled: bool = False) -> Data:
    """Return what is known before the first sample; if steps are pooled, all that is added to it has to be."""
    none = Data(tally([], _shape(model)), np.zeros(model.n_states, dtype=np.int64), mask_of(model))
    return none.pool() if pooled else none


def cover(
    model: Episodic,
    data: Data,
    episodes: int,
    weight: NDArray[np.float64] | None = None,
    *,
    bearable: float = 0.0,
    crew: Crew | None = None,
    progress: Callable[[int, int], None] | None = None,
    keep: Callable[[Counts], None] | None = None,
) -> Data:
    """Play a round of episodes and return all data.

    Args:
        model: the MDP in memory, or a black box; its ledger is charged.
        data: what is known so far; if its steps are pooled, what is played counts at all steps too.
        episodes: how many to play.
        weight: (H, S, A) how much the variance of each cell's mean matters; None for all alike.
        bearable: what the unknown may be worth; while it could be worth more, every other batch looks into it.
        crew: who plays a black box; None for this process alone.
        progress: called with the episodes done and those of the round.
        keep: called with what every batch showed, its steps apart.

    Randomness:
        A fresh data stream of the model for every batch.
    """
    pooled = data.counts.outcomes.pooled
    for number, (first, last) in enumerate(pairwise(_edges(model, episodes))):
        actions = plan_visits(data, weight, model)
        if number % 2 and (unknown := find_unknown(data)).worth > bearable:
            actions = unknown.actions
        tell = None if progress is None else _shifted(progress, first, episodes)
        more = play(model, actions, last - first, crew=crew, progress=tell)
        data += more.pool() if pooled else more
        if keep is not None:
            keep(more.counts)
    return data


def cover_planned(
    model: Episodic,
    data: Data,
    episodes: int,
    weight: NDArray[np.float64] | None = None,
    *,
    bearable: float = 0.0,
    crew: Crew | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Data:
    """Play a round as ``cover`` does, with policies that are all fixed before it begins; return its data alone.

    The policy of a batch is planned as if the batches before it had shown what the empirical model expects of them.

    Guarantee:
        Given what was known before, the number of samples of a cell is a function of outcomes of earlier steps: data
        *by steps* (docs/proofs/certificate.md §1).
    """
    edges = _edges(model, episodes, most=min(ALONE, int(np.prod(_shape(model)))))
    dynamics, unknown = empirical_dynamics(data), find_unknown(data)
    visits = np.zeros(data.counts.visits.shape)  # of this round, which has to stand by itself
    plans = []
    for number, (first, last) in enumerate(pairwise(edges)):
        actions = plan_visits(data, weight, model, visits)
        if number % 2 and unknown.worth > bearable:
            actions = unknown.actions
        _forecast(dynamics, actions, last - first, visits)
        plans.append(actions)
    fresh = no_data(model)
    for actions, (first, last) in zip(plans, pairwise(edges), strict=True):
        tell = None if progress is None else _shifted(progress, first, episodes)
        fresh = fresh + play(model, actions, last - first, crew=crew, progress=tell)
    return fresh


def _forecast(dynamics: Dynamics, actions: NDArray[np.int64], episodes: int, visits: NDArray[np.float64]) -> None:
    """Add what episodes of a policy are expected to visit, (H, S, A), in a model."""
    here = dynamics.initial * float(episodes)
    there = np.empty_like(here)
    states = np.arange(here.size)
    for h, row in enumerate(actions):
        visits[h, states, row] += here
        step_forward(dynamics.outcomes, dynamics.probability[h * dynamics.outcomes.slot_shift :], h, row, here, there)
        here, there = there, here


def _edges(model: Episodic, episodes: int, most: int = 0) -> list[int]:
    """Where the batches of a round begin and end; `most` of them if that is more than usual."""
    per_action, per_cell, usual = BATCHES
    planned = max(most, per_action * model.n_actions, min(usual, per_cell * model.n_states * model.n_actions))
    batches = max(1, min(episodes // LEAST, planned))
    return [episodes * number // batches for number in range(batches + 1)]


def plan_visits(
    data: Data, weight: NDArray[np.float64] | None, model: Episodic, visits: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Return the policy, (H, S), whose visits lower Σ weight/n fastest in the empirical model; n are visits, if any.

    Where steps are pooled, the sum is over (s, a), and a cell's weight is that of all its steps together.
    """
    if visits is None:
        visits = data.counts.visits.astype(np.float64)
    if weight is not None and data.counts.outcomes.pooled:
        weight = np.repeat(weight.sum(axis=0, keepdims=True), model.horizon, axis=0)
    bonus = ((1.0 if weight is None else weight) + 1.0 / (visits + 1.0)) / (visits + 0.5) ** 2
    bonus[:, list(model.known)] = 0.0
    if data.starts.sum() == 0:
        return np.zeros(visits.shape[:2], dtype=np.int64) if data.allowed is None else data.allowed.argmax(axis=2)
    actions = np.empty(visits.shape[:2], dtype=np.int64)
    _plan(empirical_dynamics(data), bonus, actions)
    return actions


def play(
    model: Episodic,
    actions: NDArray[np.int64],
    episodes: int,
    *,
    crew: Crew | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Data:
    """Play episodes of one policy and return what they showed, every step of them.

    Args:
        model: the MDP in memory, or a black box; its ledger is charged.
        actions: (H, S) what is played.
        episodes: how many.
        crew: who plays a black box, and where finished batches of it are kept; None for this process alone.
        progress: called now and then with the episodes done and all of them.

    Guarantee:
        Exactly the law of independent episodes. Where a state's law is known, an episode that comes there is over, and
        its cells get one free record an episode. Bytes do not depend on the crew, if an episode of a black box is a
        function of its seed and actions.

    Randomness:
        Data stream (data seed, "cover/BATCH"): as ``walk`` says, or word k of lane 0 to seed episode k of a black box.
    """
    stream = model.fresh_stream("cover")
    arrays = model.arrays
    if arrays is not None:
        hits = walk(arrays.outcomes, arrays.probability, arrays.initial, actions, episodes, stream.key)
        model.ledger.episodes += episodes
        model.ledger.samples += episodes * model.samples_per_episode
        counts = Counts(arrays.outcomes, hits)
        if progress is not None:
            progress(episodes, episodes)
        return Data(counts, counts.visits[0].sum(axis=1), mask_of(model))
    return play_batch(model, actions, episodes, stream, crew or Crew(model), progress)


def _shifted(progress: Callable[[int, int], None], before: int, total: int) -> Callable[[int, int], None]:
    """Report a batch as a part of its round."""
    return lambda done, _: progress(before + done, total)


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
                if not dynamics.allowed[h, s, a]:
                    continue
                total = bonus[h, s, a]
                row = h * outcomes.row_shift + s * outcomes.n_actions + a
                for e in range(outcomes.first[row], outcomes.first[row + 1]):
                    total += dynamics.probability[e + h * outcomes.slot_shift] * value[outcomes.next_state[e]]
                if total > largest:
                    best, largest = a, total
            actions[h, s] = best
            here[s] = largest
        value[:] = here

"""cover: explore by whole episodes, each batch with the policy that visits what is least known; all steps are kept.

Data are collected to make estimates precise where a weight says so: the sum over cells of weight/n is lowered step by
step, each batch following its gradient (the Frank–Wolfe method over occupancies, planned in the empirical model). While
the unknown could be worth too much, every other batch goes there instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.execution.pool import WorkerPool
from reprl.execution.settings import Progress
from reprl.kernels import njit
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics
from reprl.mdp.homogeneity import steps_alike
from reprl.mdp.labels import Labels
from reprl.mdp.outcomes import step_forward
from reprl.sources.black_box import play_batch
from reprl.sources.episodes import walk
from reprl.sources.optimism import find_unknown
from reprl.sources.protocol import Episodic, Model, has_fixed_start, is_stationary, mask_of, no_data
from reprl.sources.source import FIRST, LIMITS, RAN_OUT, TableSamples, Wanted, doubling, most_samples

LEAST = 16
"""Episodes of a batch, at least."""
BATCHES = (4, 2, 512)
"""Batches of a round: 4 per action, as a batch tries one action in each state, or 2 per state and action up to 512."""

ALONE = 2048
"""Batches of a round that has to stand by itself: one for each cell, up to this."""


class AdaptiveEpisodes:
    """Episodes of policies that follow the data, as a DataSource; a unit is an episode.

    Args:
        model: the MDP in memory, or a black box.
        pool: the processes that play a black box.
        pooled: whether a sample counts at every step.
        progress: called with the round, its episodes done and all its episodes.
    """

    ran_out, claim = RAN_OUT, "stationary=True"

    def __init__(self, model: Episodic, pool: WorkerPool, *, pooled: bool, progress: Progress | None = None) -> None:
        self.ledger, self.data_seed, self.fixed_start = model.ledger, model.data_seed, has_fixed_start(model)
        self.model, self.pool, self.pooled, self._progress = model, pool, pooled, progress

    def sizes(self, limit: int | None) -> list[int]:
        """Return the numbers of episodes, round by round; where steps are pooled, an episode tells about H cells."""
        model = self.model
        first = FIRST * model.n_states * model.n_actions
        if self.pooled:
            first = -(-first // model.horizon)
        usual = LIMITS["black box" if model.arrays is None else "tables"]
        unit = model.samples_per_episode
        return list(doubling(first, most_samples(limit, usual, unit) // unit))

    def empty(self) -> TableSamples:
        """Return what is known before the first episode.

        Steps that are pooled because the user says that they are alike are kept apart as well, to see. Whether they
        contradict the user stops a run and takes its promise away; no choice depends on it.
        """
        told = self.pooled and not is_stationary(self.model)
        none, steps = no_data(self.model, pooled=self.pooled), no_data(self.model).counts if told else None
        return TableSamples(none, criterion_of(self.model), "episodes", self.fixed_start, steps=steps)

    def gather(self, known: TableSamples, size: int, wanted: Wanted | None) -> TableSamples:
        """Play episodes until there are so many."""
        steps = known.steps

        def keep(more: Counts) -> None:
            nonlocal steps
            steps = None if steps is None else steps + more

        (weight, bearable), more = (None, 0.0) if wanted is None else wanted(), size - known.size
        how: Any = {"bearable": bearable, "pool": self.pool, "progress": self.tell(known)}
        data = cover(self.model, known.data, more, weight, keep=keep, **how)
        return known._replace(data=data, round=known.round + 1, steps=steps)

    def tell(self, known: TableSamples) -> Callable[[int, int], None] | None:
        """Return what is told of the next round."""
        return None if self._progress is None else partial(self._progress, f"round {known.round + 1}")

    def drift(self, known: TableSamples) -> str:
        """Say what shows that pooled steps are not alike, if anything does."""
        return "" if known.steps is None else steps_alike(known.steps).drift(getattr(self.model, "labels", Labels()))

    def shortage(self, known: TableSamples) -> str:
        """Nothing: a rehearsal notices."""
        return ""

    def hint(self, known: TableSamples) -> str:
        """Say of a black box whose steps were kept apart that they look alike, if they do."""
        apart = self.model.arrays is None and not self.pooled and self.model.horizon > 1
        if not apart or steps_alike(known.data.counts).contradicted:
            return ""
        return "no sample tells its steps apart: where you know that they are alike, stationary=True needs fewer"


class PlannedEpisodes:
    """Episodes for a certificate, as a DataSource: the policies of a round are all fixed before it begins.

    Args:
        adaptive: gathers the first rounds, which are too small to prove anything.
        after: how many rounds that are.
    """

    ran_out, claim = RAN_OUT, "stationary=True"

    def __init__(self, adaptive: AdaptiveEpisodes, after: int) -> None:
        self.ledger, self.data_seed, self.fixed_start = adaptive.ledger, adaptive.data_seed, adaptive.fixed_start
        self.sizes, self.empty, self.drift = adaptive.sizes, adaptive.empty, adaptive.drift
        self._adaptive, self._after = adaptive, after

    def gather(self, known: TableSamples, size: int, wanted: Wanted | None) -> TableSamples:
        """Play episodes until there are so many; a certificate reads those of this round alone."""
        own = self._adaptive
        if known.round < self._after:
            return own.gather(known, size, wanted)
        (weight, bearable), more = (None, 0.0) if wanted is None else wanted(), size - known.size
        how: Any = {"bearable": bearable, "pool": own.pool, "progress": own.tell(known)}
        fresh = cover_planned(own.model, known.data, more, weight, **how)
        return known._replace(data=known.data + fresh, round=known.round + 1, kind="rounds", planned=fresh)

    def shortage(self, known: TableSamples) -> str:
        """Nothing: a rehearsal notices."""
        return ""

    hint = shortage


def cover(
    model: Episodic,
    data: Data,
    episodes: int,
    weight: NDArray[np.float64] | None = None,
    *,
    bearable: float = 0.0,
    pool: WorkerPool | None = None,
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
        pool: the processes that play a black box; None for this process alone.
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
        more = play(model, actions, last - first, pool=pool, progress=tell)
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
    pool: WorkerPool | None = None,
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
        fresh = fresh + play(model, actions, last - first, pool=pool, progress=tell)
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
    pool: WorkerPool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Data:
    """Play episodes of one policy and return what they showed, every step of them.

    Args:
        model: the MDP in memory, or a black box; its ledger is charged.
        actions: (H, S) what is played.
        episodes: how many.
        pool: processes that play a black box, and where finished batches are kept; None for this process alone.
        progress: called now and then with the episodes done and all of them.

    Guarantee:
        Exactly the law of independent episodes. Where a state's law is known, an episode that comes there is over, and
        its cells get one free record an episode. Bytes do not depend on the pool, if an episode of a black box is a
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
    return play_batch(model, actions, episodes, stream, pool or WorkerPool(model), progress)


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
        value, here = here, value

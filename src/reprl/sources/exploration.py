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
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import Data, Dynamics
from reprl.mdp.homogeneity import steps_alike
from reprl.mdp.labels import Labels
from reprl.mdp.outcomes import step_forward
from reprl.sources.optimism import UNSURE, find_unknown, weigh_unknown
from reprl.sources.protocol import Episodic, has_fixed_start, is_stationary, mask_of, no_data
from reprl.sources.source import FIRST, LIMITS, RAN_OUT, TableSamples, Wanted, doubling, most_samples
from reprl.sources.tallies import open_tallies

LEAST, STEPS = 16, 512
"""Episodes of a batch, at least; and samples of a batch of a black box, if its episodes are as long as before: a plan
then costs little beside the environment, and no clock is read."""
BATCHES = (4, 2, 512)
"""Batches of a round: 4 per action, as a batch tries one action in each state, or 2 per state and action up to 512."""

REPLAN = 64
"""A batch has at least 1/REPLAN as many steps as there are outcomes to plan with."""
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
        self.model, self.pool, self.pooled, self._progress, self._limit = model, pool, pooled, progress, 0

    def sizes(self, limit: int | None) -> list[int]:
        """Return the numbers of episodes, round by round; where steps are pooled, an episode tells about H cells.

        The limit ends them by itself. It moves no batch before: the data of a run with a larger limit begin with those
        of a run with a smaller one, but for the last batches.
        """
        model = self.model
        first = FIRST * model.n_states * model.n_actions
        if self.pooled:
            first = -(-first // model.horizon)
        usual = LIMITS["black box" if model.arrays is None else "tables"]
        self._limit = most_samples(limit, usual, model.samples_per_episode)
        return list(doubling(first, max(first, self._limit)))

    def affordable(self, known: TableSamples) -> int:
        """Return how many samples the limit leaves."""
        return self._limit - known.spent

    def least(self, known: TableSamples) -> int:
        """Return the fewest episodes of a batch; where episodes end early, more make one."""
        if self.model.arrays is not None:
            return LEAST
        episodes, spent = (known.size, known.spent) if known.size else (1, self.model.samples_per_episode)
        return max(LEAST, STEPS * episodes // max(1, spent))

    def exhausted(self, known: TableSamples) -> bool:
        """Whether the limit leaves less than a full episode."""
        return self.affordable(known) < self.model.samples_per_episode

    def empty(self) -> TableSamples:
        """Return what is known before the first episode.

        Steps that are pooled because the user says that they are alike are kept apart as well, to see. Whether they
        contradict the user stops a run and takes its promise away; no choice depends on it.
        """
        told = self.pooled and not is_stationary(self.model)
        none, steps = no_data(self.model, pooled=self.pooled), no_data(self.model).counts if told else None
        return TableSamples(none, criterion_of(self.model), "episodes", self.fixed_start, steps=steps)

    def gather(self, known: TableSamples, size: int, wanted: Wanted | None) -> TableSamples:
        """Play episodes until there are so many, or the limit is reached; early ends leave samples for others."""
        steps, before = known.steps, self.ledger.samples

        def keep(more: Counts) -> None:
            nonlocal steps
            assert steps is not None
            steps += more

        (weight, bearable), more = (None, 0.0) if wanted is None else wanted(), size - known.size
        how: Any = {"bearable": bearable, "pool": self.pool, "progress": self.tell(known, more)}
        how |= {"least": self.least(known), "keep": None if steps is None else keep, "limit": self.affordable(known)}
        data = cover(self.model, known.data, more, weight, **how)
        spent = known.spent + self.ledger.samples - before
        return known._replace(data=data, round=known.round + 1, steps=steps, spent=spent)

    def tell(self, known: TableSamples, episodes: int) -> Callable[[int, int], None] | None:
        """Say that the next round begins, and return what is told of it."""
        if self._progress is None:
            return None
        tell = partial(self._progress, f"round {known.round + 1}")
        tell(0, episodes)
        return tell

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
        claim = "stationary=True (-o stationary=true)"
        return f"no sample shows that its steps differ: if you know that they do not, {claim} needs fewer"


class PlannedEpisodes:
    """Episodes for a certificate, as a DataSource: the policies of a round are all fixed before it begins.

    Args:
        adaptive: gathers the first rounds, which are too small to prove anything.
        after: how many rounds that are.
    """

    ran_out, claim = RAN_OUT, "stationary=True"

    def __init__(self, adaptive: AdaptiveEpisodes, after: int) -> None:
        self.ledger, self.data_seed, self.fixed_start = adaptive.ledger, adaptive.data_seed, adaptive.fixed_start
        self.empty, self.drift = adaptive.empty, adaptive.drift
        self._adaptive, self._after, self._sizes = adaptive, after, [0]

    def sizes(self, limit: int | None) -> list[int]:
        """Return the numbers of episodes, as without a certificate."""
        self._sizes = self._adaptive.sizes(limit)
        return self._sizes

    def exhausted(self, known: TableSamples) -> bool:
        """Whether the limit has cut a round short, or leaves less than a full episode."""
        return known.size not in self._sizes or self._adaptive.exhausted(known)

    def gather(self, known: TableSamples, size: int, wanted: Wanted | None) -> TableSamples:
        """Play episodes until there are so many; a certificate reads those of this round alone.

        How many there are must not depend on their data, so the limit pays for all of them at full length.
        """
        own, before = self._adaptive, self.ledger.samples
        if known.round < self._after:
            return own.gather(known, size, wanted)
        (weight, bearable), most = (None, 0.0) if wanted is None else wanted(), own.affordable(known)
        more = min(size - known.size, most // own.model.samples_per_episode)
        how: Any = {
            "bearable": bearable,
            "pool": own.pool,
            "progress": own.tell(known, more),
            "least": own.least(known),
        }
        fresh = cover_planned(own.model, known.data, more, weight, **how)
        known = known._replace(spent=known.spent + self.ledger.samples - before)
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
    least: int = LEAST,
    limit: int | None = None,
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
        least: the fewest episodes of a batch.
        limit: samples that the round may draw; None for as many as its episodes need.
        pool: the processes that play a black box; None for this process alone.
        progress: called with the episodes done and those of the round.
        keep: called with what every batch showed, its steps apart.

    Randomness:
        A fresh data stream of the model for every batch.
    """
    tallies, before = open_tallies(model, data, pool, keep), model.ledger.samples
    for number, (first, last) in enumerate(pairwise(_edges(model, episodes, tallies.seen, least))):
        most = last - first
        if limit is not None:
            most = min(most, (limit + before - model.ledger.samples) // model.samples_per_episode)
        if most < 1:
            break
        dynamics, visits = tallies.dynamics(), tallies.visits()
        actions = plan_visits(dynamics, visits, weight, model)
        if number % 2 and dynamics is not None:
            unknown = weigh_unknown(dynamics, visits < UNSURE)
            actions = unknown.actions if unknown.worth > bearable else actions
        tallies.play(actions, most, None if progress is None else _shifted(progress, first, episodes))
    return tallies.data()


def cover_planned(
    model: Episodic,
    data: Data,
    episodes: int,
    weight: NDArray[np.float64] | None = None,
    *,
    bearable: float = 0.0,
    least: int = LEAST,
    pool: WorkerPool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Data:
    """Play a round as ``cover`` does, with policies that are all fixed before it begins; return its data alone.

    The policy of a batch is planned as if the batches before it had shown what the empirical model expects of them.

    Guarantee:
        Given what was known before, the number of samples of a cell is a function of outcomes of earlier steps: data
        *by steps* (docs/proofs/certificate.md §1).
    """
    before = open_tallies(model, data, pool)
    most = min(ALONE, model.horizon * model.n_states * model.n_actions)
    edges = _edges(model, episodes, before.seen, least, most)
    dynamics = before.dynamics()
    unknown = find_unknown(data)
    visits = np.zeros(data.counts.visits.shape)  # of this round, which has to stand by itself
    plans = []
    for number, (first, last) in enumerate(pairwise(edges)):
        actions = plan_visits(dynamics, visits, weight, model)
        if number % 2 and unknown.worth > bearable:
            actions = unknown.actions
        if dynamics is not None:
            _forecast(dynamics, actions, last - first, visits)
        plans.append(actions)
    fresh = open_tallies(model, no_data(model), pool)
    for actions, (first, last) in zip(plans, pairwise(edges), strict=True):
        fresh.play(actions, last - first, None if progress is None else _shifted(progress, first, episodes))
    return fresh.data()


def _forecast(dynamics: Dynamics, actions: NDArray[np.int64], episodes: int, visits: NDArray[np.float64]) -> None:
    """Add what episodes of a policy are expected to visit, (H, S, A), in a model."""
    here = dynamics.initial * float(episodes)
    there = np.empty_like(here)
    states = np.arange(here.size)
    for h, row in enumerate(actions):
        visits[h, states, row] += here
        step_forward(dynamics.outcomes, dynamics.probability[h * dynamics.outcomes.slot_shift :], h, row, here, there)
        here, there = there, here


def _edges(model: Episodic, episodes: int, seen: int, least: int, most: int = 0) -> list[int]:
    """Where the batches of a round begin and end, of `least` episodes if that makes enough; `most` if usually fewer.

    A plan goes through the outcomes that were `seen`. Where these are many, the steps of a batch are at least
    1/REPLAN of them, so that planning takes a bounded time for a step.
    """
    per_action, per_cell, usual = BATCHES
    few = per_action * model.n_actions
    planned = max(most, few, min(usual, per_cell * model.n_states * model.n_actions))
    bearable = max(few, REPLAN * episodes * model.horizon // max(1, seen))
    long_enough = max(episodes // least, min(few, episodes // LEAST))
    batches = max(1, min(long_enough, planned, bearable))
    return [episodes * number // batches for number in range(batches + 1)]


def plan_visits(
    dynamics: Dynamics | None,
    visits: NDArray[np.int64] | NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    model: Episodic,
) -> NDArray[np.int64]:
    """Return the policy, (H, S), whose visits lower Σ weight/n fastest; what is not known leads nowhere.

    Where steps are pooled, the sum is over (s, a), and a cell's weight is that of all its steps together.

    Args:
        dynamics: the empirical model; None before the first episode.
        visits: (H, S, A): the numbers n.
        weight: (H, S, A): how much the variance of each cell's mean matters; None for all alike.
        model: for its known states, and its mask.
    """
    if dynamics is None:
        mask = mask_of(model)
        return np.zeros(visits.shape[:2], dtype=np.int64) if mask is None else mask.argmax(axis=2)
    if weight is not None and dynamics.outcomes.pooled:
        weight = np.repeat(weight.sum(axis=0, keepdims=True), model.horizon, axis=0)
    bonus = ((1.0 if weight is None else weight) + 1.0 / (visits + 1.0)) / (visits + 0.5) ** 2
    bonus[:, list(model.known)] = 0.0
    return dynamics.criterion.collect(dynamics.outcomes, dynamics.probability, dynamics.allowed, bonus)


def _shifted(progress: Callable[[int, int], None], before: int, total: int) -> Callable[[int, int], None]:
    """Report a batch as a part of its round."""
    return lambda done, _: progress(before + done, total)

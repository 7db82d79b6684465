"""Episodes of a tabular MDP, one step at a time (reset and step) or many at once as counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int
from reprl.kernels import njit
from reprl.mdp.counts import Counts
from reprl.mdp.draws import alias_table, binomial, draw_outcome, multinomial
from reprl.mdp.dynamics import Data
from reprl.mdp.outcomes import Outcomes
from reprl.mdp.policy import Policy, check_policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, philox
from reprl.sources.protocol import EpisodeArrays, Ledger, Observation

FEW = 4
"""Up to so many draws for each outcome of a row are made one by one."""


class EpisodicModel:
    """Episodes of a tabular MDP: reset, then up to H actions, or as many as episodes of a discounted one have.

    Args:
        mdp: the MDP to explore.
        data_seed: private seed of the samples.

    Randomness:
        Data stream (data_seed, "episodic"), one lane per episode; word 0 draws the start and word h + 1 the outcome of
        step h. An episode that a seed names reads lane `seed` of (data_seed, "episodic/named").
    """

    def __init__(self, mdp: TabularMDP, data_seed: int) -> None:
        """Open the model with an empty ledger, before its first episode."""
        self.criterion, mdp = mdp.criterion, mdp.episodes
        self.mdp = mdp
        self.n_states, self.n_actions, self.horizon = mdp.n_states, mdp.n_actions, mdp.horizon
        self.data_seed = check_int("data seed", data_seed, 0, 2**64 - 1)
        self.ledger = Ledger()
        self._h, self._state, self._episode, self._batches = self.horizon, -1, -1, 0
        self._words = DataStream(self.data_seed, "episodic").words

    @property
    def stationary(self) -> bool:
        """Whether the law does not depend on the step."""
        return self.mdp.stationary

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """(H, S, A): the actions that may be taken; None if all may."""
        return self.mdp.allowed

    @property
    def known(self) -> Mapping[int, float]:
        """No state: every law is learned from samples."""
        return {}

    @property
    def samples_per_episode(self) -> int:
        """Samples of a full episode: H, and one more when the start is random."""
        return self.horizon + (0 if self.mdp.fixed_start else 1)

    @cached_property
    def arrays(self) -> EpisodeArrays:
        """The tables that a kernel needs to run episodes by itself; it then adds to the ledger what it drew."""
        outcomes = self.mdp.outcomes
        start_state = np.flatnonzero(self.mdp.initial)
        start = alias_table(self.mdp.initial[start_state], np.array([0, start_state.size]))
        law = self.mdp.probability
        return EpisodeArrays(outcomes, alias_table(law, outcomes.first), start_state, start, law, self.mdp.initial)

    def reset(self, seed: int | None = None) -> int:
        """Begin an episode and return its first state; an unfinished episode is abandoned.

        Args:
            seed: names an episode, the same whenever it is named; None takes the model's next one.
        """
        self._h = 0
        if seed is None:
            self._episode += 1
            self._words = DataStream(self.data_seed, "episodic", self._episode).words
        else:
            named = check_int("seed", seed, 0, 2**64 - 1)
            self._words = DataStream(self.data_seed, "episodic/named", named).words
        self._state = int(self.arrays.start_state[draw_outcome(self.arrays.start, 0, self._word(0))])
        self.ledger.episodes += 1
        self.ledger.samples += 0 if self.mdp.fixed_start else 1
        return self._state

    def step(self, action: int) -> Observation:
        """Take an action in the current state and return what is seen."""
        if self._h >= self.horizon:
            raise InputError(f"step needs an episode in progress: call reset first (horizon {self.horizon})")
        a = check_int("action", action, 0, self.n_actions - 1)
        if self.allowed is not None and not self.allowed[self._h, self._state, a]:
            may = ", ".join(map(str, np.flatnonzero(self.allowed[self._h, self._state])))
            raise InputError(f"action must be allowed in state {self._state} at step {self._h} ({may}), got {a}")
        table = self.mdp.outcomes
        row = self._h * table.row_shift + self._state * self.n_actions + a
        e = draw_outcome(self.arrays.table, row, self._word(self._h + 1))
        self._h += 1
        self._state = int(table.next_state[e])
        self.ledger.samples += 1
        return Observation(self._state, float(table.reward[e]), self._h == self.horizon)

    @property
    def may_take(self) -> NDArray[np.bool_] | None:
        """(A,): the actions that may be taken now, those of the last step once it is over; None if all may."""
        return None if self.allowed is None else self.allowed[min(self._h, self.horizon - 1), self._state]

    def mean_return(self, policy: Policy, n: int) -> float:
        """Return the mean return, or discounted return, of a policy over n fresh episodes."""
        n = check_int("n", n, 1, 2**62)
        table = check_policy(policy, self).table
        actions = np.repeat(table, self.horizon // len(table), axis=0)  # one row is for all steps
        mean = mean_return(self.mdp, actions, n, self.fresh_stream("returns"), self.criterion.factor)
        self.ledger.episodes += n
        self.ledger.samples += n * self.samples_per_episode
        return mean

    def returns(self, policy: Policy, first: int, n: int) -> NDArray[np.float64]:
        """Return what a policy earns in each of the episodes named first, …, first + n − 1, rescaled; see ``reset``."""
        table = check_policy(policy, self).table
        actions = np.repeat(table, self.horizon // len(table), axis=0)  # one row is for all steps
        out = np.empty(check_int("n", n, 0, 2**30))
        key = DataStream(self.data_seed, "episodic/named").words[0]
        _fill_returns(
            self.arrays, actions, key, np.uint64(check_int("first", first, 0, 2**62)), self.criterion.factor, out
        )
        self.ledger.episodes += n
        self.ledger.samples += n * self.samples_per_episode
        return out

    def fresh_stream(self, purpose: str) -> DataStream:
        """Return a data stream that no earlier batch of this model has read."""
        self._batches += 1
        return DataStream(self.data_seed, f"{purpose}/{self._batches}")

    def _word(self, number: int) -> np.uint64:
        """The word that decides the start (0) or step number − 1 of the current episode."""
        first, second = philox(*self._words, np.uint64(number >> 1))
        return np.uint64(second if number & 1 else first)


@njit(cache=True)
def _fill_returns(
    world: EpisodeArrays,
    actions: NDArray[np.int64],
    key: np.uint64,
    first: np.uint64,
    factor: float,
    out: NDArray[np.float64],
) -> None:
    """Fill out with the returns of successive episodes, which read their lanes as ``EpisodicModel`` does."""
    outcomes = world.outcomes
    for i in range(out.size):
        lane = first + np.uint64(i)
        even, odd = philox(key, lane, np.uint64(0))
        state = world.start_state[draw_outcome(world.start, 0, even)]
        total, counts = 0.0, 1.0
        for h in range(outcomes.horizon):
            if h & 1:
                even, odd = philox(key, lane, np.uint64((h + 1) >> 1))
            row = h * outcomes.row_shift + state * outcomes.n_actions + actions[h, state]
            e = draw_outcome(world.table, row, even if h & 1 else odd)
            total += counts * outcomes.reward[e]
            counts *= factor
            state = outcomes.next_state[e]
        out[i] = total


def walk(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    initial: NDArray[np.float64],
    actions: NDArray[np.int64],
    n: int,
    key: int,
) -> NDArray[np.int64]:
    """Tally the outcomes of n fresh episodes of a policy, drawn as counts in time that does not depend on n.

    actions are (H, S), initial (S,). Lane h·S + s of the data stream moves the episodes of a cell, lane H·S starts
    them.

    Returns:
        (outcomes.n_slots,) tallies.

    Guarantee:
        Exactly the law of n independent episodes: those that share a state are exchangeable, so only their number
        matters.
    """
    here = _begin(initial, n, key, outcomes.horizon * outcomes.n_states)
    hits = np.zeros(outcomes.n_slots, dtype=np.int64)
    _walk(outcomes, law, np.uint64(key), actions, here, np.zeros_like(here), hits)
    return hits


def play_table(
    model: EpisodicModel,
    play: NDArray[np.float64],
    episodes: int,
    stream: DataStream,
    pool: object = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    pooled: bool = False,
) -> tuple[Data, Data]:
    """Play fresh episodes of laws of actions, (H, S, A), and return what each half of them showed; pooled, if asked.

    Guarantee:
        Exactly the law of independent episodes, of which each belongs to either half with probability ½.

    Randomness:
        Lane 0 of the stream splits the episodes; those of half k read lanes from 1 + k·(H·S·(A + 1) + 1) on: h·S + s
        for the actions in a cell, H·S + (h·S + s)·A + a for their outcomes, H·S·(A + 1) for the starts.
    """
    world, law = model.arrays, play.reshape(-1, play.shape[2])
    if pooled:
        world = world._replace(outcomes=world.outcomes._replace(slot_shift=0))
    first, _ = binomial(np.uint64(stream.key), np.uint64(0), np.uint64(0), episodes, 0.5)
    found = []
    for half, number in enumerate((first, episodes - first)):
        lane = 1 + half * (law.size + len(law) + 1)
        here = _begin(world.initial, number, stream.key, lane + law.size + len(law))
        hits = np.zeros(world.outcomes.n_slots, dtype=np.int64)
        starts = here.copy()
        _roam(world, np.uint64(stream.key), np.uint64(lane), law, here, np.zeros_like(here), hits)
        found.append(Data(Counts(world.outcomes, hits), starts, model.allowed))
    model.ledger.episodes += episodes
    model.ledger.samples += episodes * model.samples_per_episode
    if progress is not None:
        progress(episodes, episodes)
    return found[0], found[1]


def _begin(initial: NDArray[np.float64], n: int, key: int, lane: int) -> NDArray[np.int64]:
    """Return how many of n fresh episodes begin in each state, (S,)."""
    starts = np.flatnonzero(initial)
    counts = np.empty(starts.size, dtype=np.int64)
    multinomial(np.uint64(key), np.uint64(lane), n, initial[starts], np.cumsum(initial[starts]), counts)
    here = np.zeros(initial.size, dtype=np.int64)
    here[starts] = counts
    return here


@njit(cache=True)
def _walk(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    key: np.uint64,
    actions: NDArray[np.int64],
    here: NDArray[np.int64],
    there: NDArray[np.int64],
    hits: NDArray[np.int64],
) -> None:
    """Move here[s] episodes through the MDP and tally what they see; there, (S,), is zeros."""
    for h in range(outcomes.horizon):
        for s in range(outcomes.n_states):
            if here[s] > 0:
                row = h * outcomes.row_shift + s * outcomes.n_actions + actions[h, s]
                lane, shift = np.uint64(h * outcomes.n_states + s), h * outcomes.slot_shift
                _move(outcomes, law, key, lane, row, shift, here[s], hits, there)
                here[s] = 0
        here, there = there, here


@njit(cache=True)
def _roam(
    world: EpisodeArrays,
    key: np.uint64,
    lane: np.uint64,
    play: NDArray[np.float64],
    here: NDArray[np.int64],
    there: NDArray[np.int64],
    hits: NDArray[np.int64],
) -> None:
    """The same for laws of actions, (H·S, A); up to FEW episodes for each outcome of a row are drawn one by one."""
    outcomes = world.outcomes
    n_states, n_actions = outcomes.n_states, outcomes.n_actions
    taken, running = np.empty(n_actions, np.int64), np.empty(n_actions)
    for h in range(outcomes.horizon):
        for s in range(n_states):
            if here[s] == 0:
                continue
            cell, total = h * n_states + s, 0.0
            for a in range(n_actions):
                total += play[cell, a]
                running[a] = total
            multinomial(key, lane + np.uint64(cell), here[s], play[cell], running, taken)
            for a in range(n_actions):
                n, row, shift = taken[a], h * outcomes.row_shift + s * n_actions + a, h * outcomes.slot_shift
                low, high = outcomes.first[row], outcomes.first[row + 1]
                own = lane + np.uint64(play.shape[0] + cell * n_actions + a)
                if n > FEW * (high - low):
                    _move(outcomes, world.probability, key, own, row, shift, n, hits, there)
                    continue
                even, odd = np.uint64(0), np.uint64(0)
                for k in range(n):
                    if k & 1 == 0:
                        even, odd = philox(key, own, np.uint64(k >> 1))
                    e = draw_outcome(world.table, row, odd if k & 1 else even)
                    hits[e + shift] += 1
                    there[outcomes.next_state[e]] += 1
            here[s] = 0
        here, there = there, here


@njit(cache=True, inner=True)
def _move(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    key: np.uint64,
    lane: np.uint64,
    row: int,
    shift: int,
    n: int,
    hits: NDArray[np.int64],
    there: NDArray[np.int64],
) -> None:
    """Draw n outcomes of a row as counts."""
    low, high = outcomes.first[row], outcomes.first[row + 1]
    own, cumulative, seen = np.empty(high - low), np.empty(high - low), np.empty(high - low, np.int64)
    running = 0.0
    for e in range(low, high):
        running += law[e]
        own[e - low], cumulative[e - low] = law[e], running
    multinomial(key, lane, n, own, cumulative, seen)
    for e in range(low, high):
        if seen[e - low] > 0:
            hits[e + shift] += seen[e - low]
            there[outcomes.next_state[e]] += seen[e - low]


@njit(cache=True)
def _total_reward(outcomes: Outcomes, actions: NDArray[np.int64], hits: NDArray[np.int64], factor: float) -> float:
    """Add up the rewards of a walk, cell by cell, the last outcome of each first; a step counts `factor` times."""
    total = 0.0
    counts = 1.0
    for h in range(outcomes.horizon):
        for s in range(outcomes.n_states):
            row = h * outcomes.row_shift + s * outcomes.n_actions + actions[h, s]
            for e in range(outcomes.first[row + 1] - 1, outcomes.first[row] - 1, -1):
                total += counts * hits[e + h * outcomes.slot_shift] * outcomes.reward[e]
        counts *= factor
    return total


def mean_return(mdp: TabularMDP, actions: NDArray[np.int64], n: int, stream: DataStream, factor: float = 1.0) -> float:
    """The mean return of n fresh episodes of a policy."""
    hits = walk(mdp.outcomes, mdp.probability, mdp.initial, actions, n, stream.key)
    return float(_total_reward(mdp.outcomes, actions, hits, factor)) / n

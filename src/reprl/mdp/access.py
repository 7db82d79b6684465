"""The two ways to draw samples from an MDP, each with an exact ledger.

GenerativeModel is parallel sampling: one call shows one outcome of every cell. EpisodicModel is reset and step. A
sample is one observed (next state, reward). A random start counts as the paper's reduction would count it: a step 0
that every parallel call and every episode samples too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.errors import ReprlError, check_int
from reprl.mdp.counts import Counts
from reprl.mdp.draws import AliasTable, alias_table, cumulate, draw_outcome, multinomial
from reprl.mdp.outcomes import Outcomes
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, philox


@dataclass
class Ledger:
    """What has been spent: exact, and only ever added to by the models."""

    samples: int = 0
    episodes: int = 0
    calls: int = 0


class Observation(NamedTuple):
    """What one step shows: the next state, the reward in [0, 1], and whether the episode is over."""

    state: int
    reward: float
    done: bool


class Episodic(Protocol):
    """Anything that can be explored by episodes: an MDP in memory or a black-box environment."""

    n_states: int
    n_actions: int
    horizon: int
    ledger: Ledger
    data_seed: int

    @property
    def known(self) -> Mapping[int, float]:
        """States whose law needs no sample: they are never left again, and every action pays this."""
        ...

    @property
    def samples_per_episode(self) -> int:
        """The most samples that an episode can cost."""
        ...

    def fresh_stream(self, purpose: str) -> DataStream:
        """Return a data stream that no earlier batch of this model has read."""
        ...

    def reset(self) -> int:
        """Begin an episode and return its first state."""
        ...

    def step(self, action: int) -> Observation:
        """Take an action and return what is seen."""
        ...


class EpisodeArrays(NamedTuple):
    """The flat arrays that an exploration kernel samples from.

    Word w draws outcome ``draw_outcome(table, row, w)`` with row = h·row_shift + s·A + a, and start state
    ``start_state[draw_outcome(start, 0, w)]``.
    """

    outcomes: Outcomes
    table: AliasTable
    start_state: NDArray[np.int64]
    start: AliasTable


class GenerativeModel:
    """Parallel sampling of a tabular MDP, drawn as counts in time that does not depend on their number.

    Args:
        mdp: the MDP to sample.
        data_seed: private seed of the samples.

    Randomness:
        Data stream (data_seed, "generative", call number); cell i of the table reads lane i. No split of work can
        change it.
    """

    def __init__(self, mdp: TabularMDP, data_seed: int) -> None:
        """Open the model with an empty ledger."""
        self.mdp = mdp
        self.data_seed = check_int("data seed", data_seed, 0, 2**64 - 1)
        self.ledger = Ledger()
        self._batches = 0

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        return cumulate(self.mdp.probability, self.mdp.outcomes.first)

    @property
    def samples_per_call(self) -> int:
        """S·A·H, and S·A more when the start is random."""
        cells = self.mdp.n_states * self.mdp.n_actions
        return cells * (self.mdp.horizon + (0 if self.mdp.fixed_start else 1))

    def sample(self, n: int) -> Counts:
        """Make n parallel-sampling calls and return what they showed.

        Guarantee:
            The joint law of the counts is exactly that of n independent calls: cells are independent multinomials.
        """
        n = check_int("n", n, 1, 2**62)
        outcomes = self.mdp.outcomes
        hits = np.empty(outcomes.n_slots, dtype=np.int64)
        key = np.uint64(self._spend(n).key)
        _multinomials(outcomes, self.mdp.probability, self._cumulative, key, n, hits)
        return Counts(outcomes, hits)

    def mean_return(self, policy: Policy, n: int) -> float:
        """Return the mean return of a policy over n episodes, each read off one fresh parallel call."""
        n = check_int("n", n, 1, 2**62)
        policy = self.mdp.check_policy(policy)
        return _mean_return(self.mdp, policy, n, self._spend(n))

    def _spend(self, n: int) -> DataStream:
        """Charge n calls and return the data stream of their batch, which no other has read."""
        stream = DataStream(self.data_seed, f"generative/{self._batches}")
        self._batches += 1
        self._charge(n)
        return stream

    def _charge(self, n: int) -> None:
        self.ledger.calls += n
        self.ledger.samples += n * self.samples_per_call


@njit(cache=True)
def _multinomials(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    key: np.uint64,
    n: int,
    hits: NDArray[np.int64],
) -> None:
    """Fill hits with one multinomial per cell."""
    cells = outcomes.n_states * outcomes.n_actions
    for cell in range(outcomes.horizon * cells):
        h = cell // cells
        row = h * outcomes.row_shift + cell - h * cells
        low, high, shift = outcomes.first[row], outcomes.first[row + 1], h * outcomes.slot_shift
        multinomial(key, np.uint64(cell), n, law[low:high], cumulative[low:high], hits[low + shift : high + shift])


@njit(cache=True)
def _total_return(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    key: np.uint64,
    actions: NDArray[np.int64],
    here: NDArray[np.int64],
) -> float:
    """Move here[s] episodes through the MDP as multinomial counts and return the sum of all their rewards."""
    total = 0.0
    there = np.empty_like(here)
    counts = np.empty(law.size, dtype=np.int64)
    for h in range(outcomes.horizon):
        there[:] = 0
        for s in range(outcomes.n_states):
            row = h * outcomes.row_shift + s * outcomes.n_actions + actions[h, s]
            low, high = outcomes.first[row], outcomes.first[row + 1]
            lane = np.uint64(h * outcomes.n_states + s)
            multinomial(key, lane, here[s], law[low:high], cumulative[low:high], counts[low:high])
            for e in range(high - 1, low - 1, -1):
                there[outcomes.next_state[e]] += counts[e]
                total += counts[e] * outcomes.reward[e]
        here[:] = there
    return total


def _mean_return(mdp: TabularMDP, policy: Policy, n: int, stream: DataStream) -> float:
    """Return the mean return of n fresh episodes of a policy, drawn as counts in time that does not depend on n.

    Guarantee:
        Exactly the law of the mean of n independent returns: episodes that share a state are exchangeable, so only
        their number matters.
    """
    actions = mdp.check_policy(policy).actions
    starts = np.flatnonzero(mdp.initial)
    cumulative = np.cumsum(mdp.initial[starts])
    counts = np.empty(starts.size, dtype=np.int64)
    lane = np.uint64(mdp.horizon * mdp.n_states)
    multinomial(np.uint64(stream.key), lane, n, mdp.initial[starts], cumulative, counts)
    here = np.zeros(mdp.n_states, dtype=np.int64)
    here[starts] = counts
    law = mdp.probability
    total = _total_return(mdp.outcomes, law, cumulate(law, mdp.outcomes.first), np.uint64(stream.key), actions, here)
    return float(total) / n


class EpisodicModel:
    """Episodes of a tabular MDP: reset, then up to H actions.

    Args:
        mdp: the MDP to explore.
        data_seed: private seed of the samples.

    Randomness:
        Data stream (data_seed, "episodic"), one lane per episode; word 0 draws the start and word h + 1 the outcome of
        step h.
    """

    def __init__(self, mdp: TabularMDP, data_seed: int) -> None:
        """Open the model with an empty ledger, before its first episode."""
        self.mdp = mdp
        self.n_states, self.n_actions, self.horizon = mdp.n_states, mdp.n_actions, mdp.horizon
        self.data_seed = check_int("data seed", data_seed, 0, 2**64 - 1)
        self.ledger = Ledger()
        self._key = np.uint64(DataStream(self.data_seed, "episodic").key)
        self._h = self.horizon
        self._state = -1
        self._episode = -1
        self._batches = 0

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
        return EpisodeArrays(outcomes, alias_table(self.mdp.probability, outcomes.first), start_state, start)

    def reset(self) -> int:
        """Begin an episode and return its first state; an unfinished episode is abandoned."""
        self._h = 0
        self._episode += 1
        self._state = int(self.arrays.start_state[draw_outcome(self.arrays.start, 0, self._word(0))])
        self.ledger.episodes += 1
        self.ledger.samples += 0 if self.mdp.fixed_start else 1
        return self._state

    def step(self, action: int) -> Observation:
        """Take an action in the current state and return what is seen."""
        if self._h >= self.horizon:
            raise ReprlError(f"step needs an episode in progress: call reset first (horizon {self.horizon})")
        a = check_int("action", action, 0, self.n_actions - 1)
        table = self.mdp.outcomes
        row = self._h * table.row_shift + self._state * self.n_actions + a
        e = draw_outcome(self.arrays.table, row, self._word(self._h + 1))
        self._h += 1
        self._state = int(table.next_state[e])
        self.ledger.samples += 1
        return Observation(self._state, float(table.reward[e]), self._h == self.horizon)

    def mean_return(self, policy: Policy, n: int) -> float:
        """Return the mean return of a policy over n fresh episodes."""
        n = check_int("n", n, 1, 2**62)
        mean = _mean_return(self.mdp, policy, n, self.fresh_stream("returns"))
        self.ledger.episodes += n
        self.ledger.samples += n * self.samples_per_episode
        return mean

    def fresh_stream(self, purpose: str) -> DataStream:
        """Return a data stream that no earlier batch of this model has read."""
        self._batches += 1
        return DataStream(self.data_seed, f"{purpose}/{self._batches}")

    def _word(self, number: int) -> np.uint64:
        """The word that decides the start (0) or step number − 1 of the current episode."""
        first, second = philox(self._key, np.uint64(self._episode), np.uint64(number >> 1))
        return np.uint64(second if number & 1 else first)

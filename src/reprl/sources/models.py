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
from numpy.typing import NDArray

from reprl.errors import ReprlError, check_int, quote
from reprl.kernels import njit
from reprl.mdp.counts import Counts
from reprl.mdp.draws import AliasTable, alias_table, cumulate, draw_outcome, multinomial
from reprl.mdp.outcomes import Outcomes
from reprl.mdp.policy import Policy, check_policy
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


class Model(Protocol):
    """Where samples come from, whichever way."""

    n_states: int
    n_actions: int
    horizon: int
    ledger: Ledger
    data_seed: int


def is_stationary(model: object) -> bool:
    """Whether a model, or an environment, shows that its law does not depend on the step; silence is a no."""
    return bool(getattr(model, "stationary", False))


def discount_of(model: object) -> float:
    """Return γ of a model of a discounted world; 0 if it has a horizon."""
    return getattr(model, "discount", None) or 0.0


def mask_of(model: object) -> NDArray[np.bool_] | None:
    """Return the actions that may be taken, (H, S, A); None if all may, or nobody says."""
    return getattr(model, "allowed", None)


class Parallel(Model, Protocol):
    """Anything that can be sampled in parallel, one outcome of every cell a call."""

    @property
    def samples_per_call(self) -> int:
        """Samples that a call costs."""

    def sample(self, n: int) -> Counts:
        """Make n calls and return what they showed."""

    def draw_starts(self, n: int) -> NDArray[np.int64]:
        """Return the starts, (S,), that the last n calls showed as their step 0: paid for with them."""


class Episodic(Model, Protocol):
    """Anything that can be explored by episodes: an MDP in memory or a black-box environment."""

    @property
    def known(self) -> Mapping[int, float]:
        """States whose law needs no sample: they are never left again, and every action pays this."""

    @property
    def arrays(self) -> EpisodeArrays | None:
        """Tables that a kernel may play by itself, adding to the ledger what it drew; None for a black box."""

    @property
    def samples_per_episode(self) -> int:
        """The most samples that an episode can cost."""

    def fresh_stream(self, purpose: str) -> DataStream:
        """Return a data stream that no earlier batch of this model has read."""

    def reset(self, seed: int | None = None) -> int:
        """Begin the episode that a seed names, if the model can name episodes, or the next one; return its state."""

    def step(self, action: int) -> Observation:
        """Take an action and return what is seen."""


_PARTS = {
    "generative": ("a reprl.GenerativeModel", ("sample", "draw_starts", "samples_per_call")),
    "episodic": (
        "a reprl.EpisodicModel or a reprl.GymnasiumModel",
        ("reset", "step", "known", "arrays", "samples_per_episode", "fresh_stream"),
    ),
}


def check_model(model: object, access: str, whom: str, *, masked: bool = False) -> None:
    """Refuse a model that does not offer what its access asks for: Parallel for "generative", or Episodic.

    Args:
        model: anything.
        access: "generative" or "episodic".
        whom: what it is for, for errors.
        masked: whether that can do with fewer actions than all, and without a horizon.
    """
    allowed, own = _PARTS[access]
    offered = dir(model)  # reads no property: tables are built when a kernel asks for them
    for part in (*own, "n_states", "n_actions", "horizon", "ledger", "data_seed"):
        if part not in offered:
            raise ReprlError(f"model must be {allowed} for {whom}, got {quote(model)}: it has no {part}")
    if not masked and discount_of(model):
        raise ReprlError(
            f"model must have a horizon for {whom}, got one with discount {discount_of(model):g}: only reprl learns "
            "discounted worlds"
        )
    mask = None if masked else mask_of(model)
    if mask is not None:
        raise ReprlError(
            f"model must allow every action for {whom}, got {int((~mask).sum())} masked of {mask.size}: "
            "only reprl with rule='canonical' keeps to masks"
        )


class EpisodeArrays(NamedTuple):
    """The flat arrays that a kernel samples episodes from.

    Word w draws outcome ``draw_outcome(table, row, w)`` with row = h·row_shift + s·A + a, and start state
    ``start_state[draw_outcome(start, 0, w)]``.
    """

    outcomes: Outcomes
    table: AliasTable
    start_state: NDArray[np.int64]
    start: AliasTable
    probability: NDArray[np.float64]
    """Of every outcome."""
    initial: NDArray[np.float64]
    """(S,)"""


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
        self.mdp, self.discount = mdp, mdp.discount
        self.n_states, self.n_actions, self.horizon = mdp.n_states, mdp.n_actions, mdp.horizon
        self.data_seed = check_int("data seed", data_seed, 0, 2**64 - 1)
        self.ledger = Ledger()
        self._batches = 0

    @property
    def stationary(self) -> bool:
        """Whether the law does not depend on the step."""
        return self.mdp.stationary

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """(H, S, A): the actions that may be taken; None if all may."""
        return self.mdp.allowed

    @cached_property
    def pooled(self) -> PooledModel:
        """The same MDP, sampled once for all steps."""
        return PooledModel(self)

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        return cumulate(self.mdp.probability, self.mdp.outcomes.first)

    @property
    def samples_per_call(self) -> int:
        """S·A·H, less the cells that nobody may sample, and S·A more when the start is random."""
        masked = 0 if self.allowed is None else int((~self.allowed).sum())
        return self.n_states * self.n_actions * (self.horizon + (0 if self.mdp.fixed_start else 1)) - masked

    def sample(self, n: int) -> Counts:
        """Make n parallel-sampling calls and return what they showed.

        Guarantee:
            The joint law of the counts is exactly that of n independent calls: cells are independent multinomials.
        """
        n = check_int("n", n, 1, 2**62)
        return self._draw(n, self.mdp.outcomes, self._spend(n))

    def draw_starts(self, n: int) -> NDArray[np.int64]:
        """Return the starts, (S,), that n calls of the last batch showed, one each: their step 0, paid for with them.

        Randomness:
            Data stream (data_seed, "starts", number of batches so far).
        """
        return _draw_starts(
            self.mdp, check_int("n", n, 1, 2**62), DataStream(self.data_seed, f"starts/{self._batches}")
        )

    def mean_return(self, policy: Policy, n: int) -> float:
        """Return the mean return of a policy over n episodes, each read off one fresh parallel call."""
        n = check_int("n", n, 1, 2**62)
        if self.discount is not None:
            raise ReprlError(f"model must have a horizon for a mean return by calls, got discount {self.discount:g}")
        actions = check_policy(policy, self).table
        return _mean_return(self.mdp, actions, n, self._spend(n))

    def _spend(self, n: int) -> DataStream:
        """Charge n calls and return the data stream of their batch, which no other has read."""
        stream = DataStream(self.data_seed, f"generative/{self._batches}")
        self._batches += 1
        self._charge(n)
        return stream

    def _charge(self, n: int) -> None:
        self.ledger.calls += n
        self.ledger.samples += n * self.samples_per_call

    def _draw(self, n: int, outcomes: Outcomes, stream: DataStream) -> Counts:
        """Draw n samples of every cell of a table of this MDP."""
        hits = np.zeros(outcomes.n_slots, dtype=np.int64)
        steps = outcomes.tallied[0]
        drawn = np.ones(outcomes.tallied, dtype=np.bool_) if self.allowed is None else self.allowed[:steps].copy()
        _multinomials(outcomes, self.mdp.probability, self._cumulative, np.uint64(stream.key), drawn.ravel(), n, hits)
        return Counts(outcomes, hits)


class PooledModel:
    """Parallel sampling of a time-homogeneous MDP: a call draws one sample of every (s, a), which counts at all steps.

    Args:
        model: whose MDP is sampled, and whose ledger is charged.

    Randomness:
        Data streams (data_seed, "pooled", call number), where (s, a) reads lane s·A + a, and (data_seed, "pooled
        starts", number of batches so far).
    """

    def __init__(self, model: GenerativeModel) -> None:
        """Open the model on the other's ledger."""
        if not model.stationary:
            raise ReprlError(f"mdp must be time-homogeneous for its steps to be pooled, got {quote(model.mdp)}")
        self.n_states, self.n_actions, self.horizon = model.n_states, model.n_actions, model.horizon
        self.ledger, self.data_seed, self.discount = model.ledger, model.data_seed, model.discount
        self._model, self._batches = model, 0

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """(H, S, A): the actions that may be taken; None if all may."""
        return self._model.allowed

    @property
    def samples_per_call(self) -> int:
        """S·A, less what nobody may sample, and one more when the start is random."""
        masked = 0 if self.allowed is None else int((~self.allowed[0]).sum())
        return self.n_states * self.n_actions - masked + (0 if self._model.mdp.fixed_start else 1)

    def sample(self, n: int) -> Counts:
        """Make n calls and return what they showed, pooled.

        Guarantee:
            Exactly the law of n independent calls: every (s, a) is one multinomial, read by all steps.
        """
        n = check_int("n", n, 1, 2**62)
        self.ledger.calls += n
        self.ledger.samples += n * self.samples_per_call
        self._batches += 1
        stream = DataStream(self.data_seed, f"pooled/{self._batches}")
        return self._model._draw(n, self._model.mdp.outcomes._replace(slot_shift=0), stream)

    def draw_starts(self, n: int) -> NDArray[np.int64]:
        """Return the starts, (S,), that n calls of the last batch showed, one each."""
        stream = DataStream(self.data_seed, f"pooled starts/{self._batches}")
        return _draw_starts(self._model.mdp, check_int("n", n, 1, 2**62), stream)


def _draw_starts(mdp: TabularMDP, n: int, stream: DataStream) -> NDArray[np.int64]:
    """Draw n starts, (S,)."""
    starts = np.flatnonzero(mdp.initial)
    counts = np.empty(starts.size, dtype=np.int64)
    law = mdp.initial[starts]
    multinomial(np.uint64(stream.key), np.uint64(0), n, law, np.cumsum(law), counts)
    out = np.zeros(mdp.n_states, dtype=np.int64)
    out[starts] = counts
    return out


@njit(cache=True)
def _multinomials(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    key: np.uint64,
    drawn: NDArray[np.bool_],
    n: int,
    hits: NDArray[np.int64],
) -> None:
    """Fill hits, which holds zeros, with one multinomial for each cell that is drawn."""
    cells = outcomes.n_states * outcomes.n_actions
    for cell in range(drawn.size):
        if not drawn[cell]:
            continue
        h = cell // cells
        row = h * outcomes.row_shift + cell - h * cells
        low, high, shift = outcomes.first[row], outcomes.first[row + 1], h * outcomes.slot_shift
        multinomial(key, np.uint64(cell), n, law[low:high], cumulative[low:high], hits[low + shift : high + shift])


def walk(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    initial: NDArray[np.float64],
    actions: NDArray[np.int64],
    n: int,
    key: int,
) -> NDArray[np.int64]:
    """Tally the outcomes of n fresh episodes of a policy, drawn as counts in time that does not depend on n.

    Args:
        outcomes: what can be seen.
        law: probability of every outcome.
        initial: (S,) law of the start.
        actions: (H, S) what is played.
        n: episodes.
        key: of the data stream: lane h·S + s moves the episodes of a cell, lane H·S starts them.

    Returns:
        (outcomes.n_slots,) tallies.

    Guarantee:
        Exactly the law of n independent episodes: those that share a state are exchangeable, so only their number
        matters.
    """
    starts = np.flatnonzero(initial)
    counts = np.empty(starts.size, dtype=np.int64)
    lane = np.uint64(outcomes.horizon * outcomes.n_states)
    multinomial(np.uint64(key), lane, n, initial[starts], np.cumsum(initial[starts]), counts)
    here = np.zeros(outcomes.n_states, dtype=np.int64)
    here[starts] = counts
    hits = np.zeros(outcomes.n_slots, dtype=np.int64)
    _walk(outcomes, law, cumulate(law, outcomes.first), np.uint64(key), actions, here, hits)
    return hits


@njit(cache=True)
def _walk(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    key: np.uint64,
    actions: NDArray[np.int64],
    here: NDArray[np.int64],
    hits: NDArray[np.int64],
) -> None:
    """Move here[s] episodes through the MDP as multinomial counts and fill hits with what they see."""
    there = np.empty_like(here)
    for h in range(outcomes.horizon):
        there[:] = 0
        shift = h * outcomes.slot_shift
        for s in range(outcomes.n_states):
            row = h * outcomes.row_shift + s * outcomes.n_actions + actions[h, s]
            low, high = outcomes.first[row], outcomes.first[row + 1]
            lane = np.uint64(h * outcomes.n_states + s)
            seen = hits[low + shift : high + shift]
            multinomial(key, lane, here[s], law[low:high], cumulative[low:high], seen)
            for e in range(low, high):
                there[outcomes.next_state[e]] += seen[e - low]
        here[:] = there


@njit(cache=True)
def _total_reward(outcomes: Outcomes, actions: NDArray[np.int64], hits: NDArray[np.int64], discount: float) -> float:
    """Add up the rewards of a walk, cell by cell, the last outcome of each first; a step counts `discount` times."""
    total = 0.0
    counts = 1.0
    for h in range(outcomes.horizon):
        for s in range(outcomes.n_states):
            row = h * outcomes.row_shift + s * outcomes.n_actions + actions[h, s]
            for e in range(outcomes.first[row + 1] - 1, outcomes.first[row] - 1, -1):
                total += counts * hits[e + h * outcomes.slot_shift] * outcomes.reward[e]
        counts *= discount
    return total


def _mean_return(
    mdp: TabularMDP, actions: NDArray[np.int64], n: int, stream: DataStream, discount: float = 1.0
) -> float:
    """The mean return of n fresh episodes of a policy."""
    hits = walk(mdp.outcomes, mdp.probability, mdp.initial, actions, n, stream.key)
    return float(_total_reward(mdp.outcomes, actions, hits, discount)) / n


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
        self.discount = mdp.discount
        mdp = mdp if mdp.discount is None else mdp.episodes
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
            raise ReprlError(f"step needs an episode in progress: call reset first (horizon {self.horizon})")
        a = check_int("action", action, 0, self.n_actions - 1)
        if self.allowed is not None and not self.allowed[self._h, self._state, a]:
            may = ", ".join(map(str, np.flatnonzero(self.allowed[self._h, self._state])))
            raise ReprlError(f"action must be allowed in state {self._state} at step {self._h} ({may}), got {a}")
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
        actions = check_policy(policy, self).table
        if self.discount is not None:
            actions = np.repeat(actions, self.horizon, axis=0)
        mean = _mean_return(self.mdp, actions, n, self.fresh_stream("returns"), self.discount or 1.0)
        self.ledger.episodes += n
        self.ledger.samples += n * self.samples_per_episode
        return mean

    def fresh_stream(self, purpose: str) -> DataStream:
        """Return a data stream that no earlier batch of this model has read."""
        self._batches += 1
        return DataStream(self.data_seed, f"{purpose}/{self._batches}")

    def _word(self, number: int) -> np.uint64:
        """The word that decides the start (0) or step number − 1 of the current episode."""
        first, second = philox(*self._words, np.uint64(number >> 1))
        return np.uint64(second if number & 1 else first)

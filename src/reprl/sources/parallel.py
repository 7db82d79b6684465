"""Parallel sampling: one call shows one outcome of every cell. The model of an MDP, and calls as a DataSource."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int, quote
from reprl.kernels import njit, read_only
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import criterion_of
from reprl.mdp.draws import cumulate, multinomial
from reprl.mdp.dynamics import Data
from reprl.mdp.outcomes import Outcomes
from reprl.mdp.policy import Policy, check_policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream
from reprl.sources.episodes import mean_return
from reprl.sources.protocol import Ledger, Parallel, has_fixed_start, mask_of, no_data
from reprl.sources.source import FIRST, LIMITS, RAN_OUT, TableSamples, Wanted, doubling, most_samples


class LearnerData(NamedTuple):
    """What kernels draw the samples of many learners from."""

    outcomes: Outcomes
    law: NDArray[np.float64]
    cumulative: NDArray[np.float64]
    key: np.uint64
    """Of the data stream; lanes are the caller's."""
    calls: int
    """Of one learner."""


class GenerativeModel:
    """Parallel sampling of a tabular MDP, drawn as counts; up to 2⁵² calls the time does not depend on their number.

    Args:
        mdp: the MDP to sample.
        data_seed: private seed of the samples.

    Randomness:
        Data stream (data_seed, "generative", call number); cell i of the table reads lane i. No split of work can
        change it.
    """

    def __init__(self, mdp: TabularMDP, data_seed: int) -> None:
        """Open the model with an empty ledger."""
        self.mdp, self.criterion = mdp, mdp.criterion
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
        """S·A·H, less the cells that nobody may sample, and one more when the start is random."""
        masked = 0 if self.allowed is None else int((~self.allowed).sum())
        return self.n_states * self.n_actions * self.horizon - masked + (0 if self.mdp.fixed_start else 1)

    def sample(self, n: int) -> Counts:
        """Make n parallel-sampling calls and return what they showed.

        Guarantee:
            The joint law of the counts is exactly that of n independent calls: cells are independent multinomials.
        """
        n = check_int("n", n, 1, 2**62)
        return self._draw(n, self.mdp.outcomes, self._spend(n))

    def for_learners(self, calls: int, learners: int) -> LearnerData:
        """Charge the calls of many learners, and return what kernels draw them from: one batch, lanes for each."""
        calls = check_int("calls", calls, 1, 2**62)
        stream = self._spend(calls * check_int("learners", learners, 1, 2**62))
        law, cumulative = read_only(self.mdp.probability), read_only(self._cumulative)
        return LearnerData(self.mdp.outcomes, law, cumulative, np.uint64(stream.key), calls)

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
        self.criterion.require_horizon("model must have a horizon for a mean return by calls")
        actions = check_policy(policy, self).table
        return mean_return(self.mdp, actions, n, self._spend(n))

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

    Randomness:
        Data streams (data_seed, "pooled", call number), where (s, a) reads lane s·A + a, and (data_seed, "pooled
        starts", number of batches so far).
    """

    def __init__(self, model: GenerativeModel) -> None:
        """Open the model on the other's ledger."""
        if not model.stationary:
            raise InputError(f"mdp must be time-homogeneous for its steps to be pooled, got {quote(model.mdp)}")
        self.n_states, self.n_actions, self.horizon = model.n_states, model.n_actions, model.horizon
        self.ledger, self.data_seed, self.criterion = model.ledger, model.data_seed, model.criterion
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


class ParallelCalls:
    """Parallel sampling as a DataSource; a unit is a call, which samples every cell.

    From `halfway` calls on, sizes also stand half way between two doublings; None for no such thing.
    """

    ran_out, claim = RAN_OUT, "stationary=True"

    def __init__(self, model: Parallel, halfway: int | None = None) -> None:
        self.ledger, self.data_seed, self.fixed_start = model.ledger, model.data_seed, has_fixed_start(model)
        self._model, self._halfway = model, halfway

    def sizes(self, limit: int | None) -> list[int]:
        """Return the numbers of calls, round by round."""
        unit = self._model.samples_per_call
        return list(doubling(FIRST, most_samples(limit, LIMITS["generative"], unit) // unit, self._halfway))

    def empty(self) -> TableSamples:
        """Return what is known before the first call."""
        none = no_data(self._model, pooled=isinstance(self._model, PooledModel))
        return TableSamples(none, criterion_of(self._model), "calls", self.fixed_start)

    def gather(self, known: TableSamples, size: int, wanted: Wanted | None) -> TableSamples:
        """Make calls until there are so many."""
        return known._replace(data=known.data + call(self._model, size - known.size), round=known.round + 1)

    def exhausted(self, known: TableSamples) -> bool:
        """Never before the last size."""
        return False

    def drift(self, known: TableSamples) -> str:
        """Nothing: steps are pooled only where the environment shows that they are alike."""
        return ""

    shortage = hint = drift


def call(model: Parallel, calls: int) -> Data:
    """Make parallel calls."""
    return Data(model.sample(calls), model.draw_starts(calls), mask_of(model))


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

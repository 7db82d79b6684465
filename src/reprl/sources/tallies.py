"""Tallies: what a round of episodes has shown so far, as the next batch is planned from it.

A world in memory may have far more outcomes than a batch has steps. So nothing here goes through its whole table for a
batch: tallies grow in place, and plans read the outcomes that were seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reprl.execution.pool import WorkerPool
from reprl.kernels import njit
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics, full_mask
from reprl.mdp.outcomes import Outcomes
from reprl.sources.black_box import play_batch
from reprl.sources.episodes import walk_few
from reprl.sources.protocol import EpisodeArrays, Episodic, no_data

Told = Callable[[int, int], None]


class Tallies(Protocol):
    """What is known in the middle of a round."""

    @property
    def seen(self) -> int:
        """Different outcomes."""

    def dynamics(self) -> Dynamics | None:
        """Return the empirical model; None before the first episode."""

    def visits(self) -> NDArray[np.int64]:
        """Return the samples of every cell, (H, S, A)."""

    def play(self, actions: NDArray[np.int64], episodes: int, progress: Told | None) -> None:
        """Add a batch of episodes of one policy, from a fresh data stream of the model."""

    def data(self) -> Data:
        """Return all data."""


def open_tallies(
    model: Episodic, data: Data, pool: WorkerPool | None, keep: Callable[[Counts], None] | None = None
) -> Tallies:
    """Return data as tallies that grow.

    Where the steps of data are pooled, what is played counts at all steps too; keep is told what every batch showed,
    its steps apart.
    """
    arrays, pooled = model.arrays, data.counts.outcomes.pooled
    if arrays is not None and keep is None and not (pooled and arrays.outcomes.row_shift):
        table = arrays.outcomes._replace(slot_shift=0) if pooled else arrays.outcomes
        if not data.starts.any() or data.counts.outcomes.same_table(table):
            return TableTallies(model, arrays, table, data)
    return BatchTallies(model, data, pool, keep)


class BatchTallies:
    """Tallies of batches that come as data sets: those of a black box, and of steps that are kept apart as well."""

    def __init__(
        self, model: Episodic, data: Data, pool: WorkerPool | None, keep: Callable[[Counts], None] | None
    ) -> None:
        """Take what is known before the round."""
        self._model, self._data, self._pool, self._keep = model, data, pool, keep

    @property
    def seen(self) -> int:
        """Different outcomes."""
        return int(np.count_nonzero(self._data.counts.hits))

    def dynamics(self) -> Dynamics | None:
        """Return the empirical model."""
        return empirical_dynamics(self._data) if self._data.starts.any() else None

    def visits(self) -> NDArray[np.int64]:
        """Return the samples of every cell."""
        return self._data.counts.visits

    def play(self, actions: NDArray[np.int64], episodes: int, progress: Told | None) -> None:
        """Add a batch."""
        more = play(self._model, actions, episodes, pool=self._pool, progress=progress)
        self._data += more.pool() if self._data.counts.outcomes.pooled else more
        if self._keep is not None:
            self._keep(more.counts)

    def data(self) -> Data:
        """Return all data."""
        return self._data


class TableTallies:
    """Tallies of a world in memory. A batch takes time for its steps and for the outcomes that were seen."""

    def __init__(self, model: Episodic, arrays: EpisodeArrays, table: Outcomes, data: Data) -> None:
        """Take what is known before the round; its table is gone through once."""
        self._model, self._arrays, self._table, self._allowed = model, arrays, table, data.allowed
        none = not data.starts.any()
        self._hits = np.zeros(table.n_slots, dtype=np.int64) if none else data.counts.hits.copy()
        self._starts = data.starts.copy()
        self._slots = np.flatnonzero(self._hits)
        self._found = self._read()

    @property
    def seen(self) -> int:
        """Different outcomes."""
        return self._slots.size

    def _read(self) -> _Found:
        """Read the outcomes that were seen off the tallies."""
        table, n = self._table, self._slots.size
        rows = int(np.prod(table.tallied))
        found = _Found(np.zeros(rows + 1, np.int64), np.empty(n, np.int32), np.empty(n), np.zeros(rows, np.int64))
        _list_seen(table, self._slots, self._hits, found)
        return found

    def dynamics(self) -> Dynamics | None:
        """Return the empirical model, a table of what was seen."""
        if not self._starts.any():
            return None
        table, found = self._table, self._found
        shift = 0 if table.pooled else table.n_states * table.n_actions
        unpaid = np.zeros(found.next_state.size)  # plans of visits read no rewards
        outcomes = Outcomes(*table.shape, shift, 0, found.first, found.next_state, unpaid).protected()
        allowed = full_mask(self._allowed, table.shape)
        tried = (self.visits() > 0) & allowed
        start = self._starts / self._starts.sum()
        return Dynamics(outcomes, found.probability, tried, start, allowed, Criterion(table.horizon))

    def visits(self) -> NDArray[np.int64]:
        """Return the samples of every cell."""
        out = self._found.visits.reshape(self._table.tallied)
        return np.repeat(out, self._table.horizon, axis=0) if self._table.pooled else out

    def play(self, actions: NDArray[np.int64], episodes: int, progress: Told | None) -> None:
        """Add a batch."""
        stream = self._model.fresh_stream("cover")
        fresh = walk_few(self._arrays, self._table, actions, episodes, stream.key, self._hits, self._starts)
        self._model.ledger.episodes += episodes
        self._model.ledger.samples += episodes * self._model.samples_per_episode
        if progress is not None:
            progress(episodes, episodes)
        slots = np.concatenate([self._slots, np.sort(fresh)])
        self._slots = np.sort(slots, kind="stable")  # two rising lists are merged
        self._found = self._read()

    def data(self) -> Data:
        """Return all data."""
        return Data(Counts(self._table, self._hits.copy()), self._starts.copy(), self._allowed)


def play(
    model: Episodic,
    actions: NDArray[np.int64],
    episodes: int,
    *,
    pool: WorkerPool | None = None,
    progress: Told | None = None,
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
        Data stream (data seed, "cover/BATCH"): as ``walk_few`` says, or word k of lane 0 to seed episode k of a black
        box.
    """
    arrays = model.arrays
    if arrays is None:
        return play_batch(model, actions, episodes, model.fresh_stream("cover"), pool or WorkerPool(model), progress)
    tallies = TableTallies(model, arrays, arrays.outcomes, no_data(model))
    tallies.play(actions, episodes, progress)
    return tallies.data()


class _Found(NamedTuple):
    """The outcomes that were seen, row by row, in the order of the table."""

    first: NDArray[np.int64]
    """(rows + 1,): where those of a row begin."""
    next_state: NDArray[np.int32]
    probability: NDArray[np.float64]
    visits: NDArray[np.int64]
    """(rows,)"""


@njit(cache=True, nogil=True)
def _list_seen(table: Outcomes, slots: NDArray[np.int64], hits: NDArray[np.int64], found: _Found) -> None:
    """Fill in what was seen of every row; slots are those of its outcomes, rising."""
    cells, i = table.n_states * table.n_actions, 0
    for row in range(found.visits.size):
        h = row // cells
        shift = h * table.slot_shift
        high = table.first[row - (0 if table.row_shift else h * cells) + 1] + shift
        begin, total = i, 0
        while i < slots.size and slots[i] < high:
            total += hits[slots[i]]
            found.next_state[i] = table.next_state[slots[i] - shift]
            i += 1
        found.first[row + 1], found.visits[row] = i, total
        for k in range(begin, i):
            found.probability[k] = hits[slots[k]] / total

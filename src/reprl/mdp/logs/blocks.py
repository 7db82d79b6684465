"""Blocks of whole episodes: what a second team's log is redrawn from.

Steps of one episode depend on each other, so a simulated log takes episodes whole or not at all. Episodes are dealt in
turn to at most BLOCKS blocks; a block keeps how often it saw each outcome, nothing else. Where that becomes too much,
blocks are put together, two by two. So memory is bounded, and up to BLOCKS episodes each is a block of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.errors import ReprlError
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data
from reprl.mdp.outcomes import Outcomes
from reprl.randomness import fill_words

BLOCKS = 1024
"""Blocks, at most. The variance of a sum over redrawn blocks is that over redrawn episodes up to a factor whose
standard deviation is √(2/BLOCKS), 4 %."""
FEWEST = 128
"""Blocks, at least, where there are as many episodes: the factor's standard deviation is then 12 %."""
MOST_PAIRS = 1 << 23
"""Pairs (block, outcome) that are kept, as long as there are more than FEWEST blocks: beyond, every two become one."""
MOST_OUTCOMES = 1 << 24
"""Outcomes that are kept apart, at most."""
_WAITING = 1 << 20
_THING = (1 << 31) - 1


class Sparse(NamedTuple):
    """How often each block saw each thing, where it did."""

    block: NDArray[np.int64]
    thing: NDArray[np.int64]
    hits: NDArray[np.int64]


class Blocks(NamedTuple):
    """A data set, by blocks."""

    number: int
    outcomes: Outcomes
    slots: Sparse
    """Of tally slots."""
    starts: Sparse
    """Of states in which episodes began."""
    known: NDArray[np.int64]
    """Slots whose outcome is certain: they count as seen once in every episode."""
    allowed: NDArray[np.bool_] | None = None
    """(H, S, A): the actions that may be taken; None for all."""

    def total(self) -> Data:
        """Return all blocks together."""
        return self._weighted(np.ones(self.number, dtype=np.int64))

    def redraw(self, share: int, key: int) -> Data:
        """Return the log that a second team would have, if these episodes were all that there are.

        Args:
            share: one block is drawn, with replacement, for every `share` of them, and at least one.
            key: of the private data stream; lane 0.
        """
        words = np.empty(max(1, self.number // share), dtype=np.uint64)
        fill_words(np.uint64(key), np.uint64(0), np.uint64(0), words)
        drawn = ((words >> np.uint64(11)) * 2.0**-53 * self.number).astype(np.int64)
        return self._weighted(np.bincount(drawn, minlength=self.number))

    def _weighted(self, times: NDArray[np.int64]) -> Data:
        hits = np.zeros(self.outcomes.n_slots, dtype=np.int64)
        starts = np.zeros(self.outcomes.n_states, dtype=np.int64)
        _add(self.slots, times, hits)
        _add(self.starts, times, starts)
        hits[self.known] = starts.sum()
        return Data(Counts(self.outcomes, hits), starts, self.allowed)


@njit(cache=True, nogil=True)
def _add(seen: Sparse, times: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    for i in range(seen.block.size):
        out[seen.thing[i]] += times[seen.block[i]] * seen.hits[i]


class Numbering:
    """Outcomes, numbered as they turn up."""

    def __init__(self) -> None:
        """Begin with none."""
        self.keys = np.empty(0, dtype=np.int64)
        """Sorted."""
        self._numbers = np.empty(0, dtype=np.int64)

    def number(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of every key; new ones get the next."""
        fresh, inverse = np.unique(keys, return_inverse=True)
        where = np.searchsorted(self.keys, fresh)
        inside = where < self.keys.size
        inside[inside] = self.keys[where[inside]] == fresh[inside]
        new = fresh[~inside]
        if new.size:
            size = self.keys.size
            if size + new.size > MOST_OUTCOMES:
                raise ReprlError(
                    f"log must show at most {MOST_OUTCOMES} different outcomes (step, state, action, next state, "
                    f"reward), got more: a larger reward_step, such as 0.01, keeps rewards together"
                )
            numbers = np.arange(size, size + new.size)
            self._numbers = np.insert(self._numbers, where[~inside], numbers)
            self.keys = np.insert(self.keys, where[~inside], new)
        found: NDArray[np.int64] = self._numbers[np.searchsorted(self.keys, fresh)][inverse]
        return found

    def ranks(self) -> NDArray[np.int64]:
        """Return, for every number, the place of its key among the sorted ones."""
        out = np.empty(self.keys.size, dtype=np.int64)
        out[self._numbers] = np.arange(self.keys.size)
        return out


class Tally:
    """How often pairs (block, thing) came, kept sorted and merged."""

    def __init__(self) -> None:
        """Begin with none."""
        self._pairs = np.empty(0, dtype=np.int64)
        self._hits = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._waits = 0

    def add(self, block: NDArray[np.int64], thing: NDArray[np.int64]) -> None:
        """Count pairs; things are numbers below 2**31."""
        pairs, hits = np.unique((block << 31) | thing, return_counts=True)
        self._waiting.append((pairs, hits))
        self._waits += pairs.size
        if self._waits > max(_WAITING, self._pairs.size):
            self._merge()

    def _merge(self) -> None:
        parts = [(self._pairs, self._hits), *self._waiting]
        pairs, hits = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        order = np.argsort(pairs, kind="stable")
        pairs, hits = pairs[order], hits[order]
        first = np.flatnonzero(np.diff(pairs, prepend=-1))
        self._pairs, self._hits = pairs[first], np.add.reduceat(hits, first) if first.size else hits
        self._waiting, self._waits = [], 0

    @property
    def size(self) -> int:
        """Pairs that are kept; those that wait to be merged may be counted twice."""
        return self._pairs.size + self._waits

    def fold(self, blocks: int) -> None:
        """Put blocks together: number b becomes b mod blocks."""
        self._merge()
        pairs, hits = ((self._pairs >> 31) % blocks << 31) | (self._pairs & _THING), self._hits
        self._pairs, self._hits = self._pairs[:0], self._hits[:0]
        self._waiting = [(pairs, hits)]
        self._merge()

    def sparse(self) -> Sparse:
        """Return all of them."""
        self._merge()
        return Sparse(self._pairs >> 31, self._pairs & _THING, self._hits)

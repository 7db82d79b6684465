"""Blocks of whole episodes: what a second team's log is redrawn from.

Steps of one episode depend on each other, so a simulated log takes episodes whole or not at all. Episodes are dealt in
turn to at most BLOCKS blocks; a block keeps how often it saw each outcome, nothing else. Where that becomes too much,
blocks are put together, two by two. So memory is bounded, and up to BLOCKS episodes each is a block of its own.

Where there is no last step, episodes may be as long as the log: then pieces of them are dealt, each so long that what
comes after it hardly counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError
from reprl.kernels import njit
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data
from reprl.mdp.outcomes import Outcomes
from reprl.randomness import fill_words

BLOCKS = 512
"""Blocks, at most. The variance of a sum over redrawn blocks is that over redrawn episodes up to a factor whose
standard deviation is √(2/BLOCKS), 6 %."""
FEWEST = 128
"""Blocks, at least, where there are as many episodes: the factor's standard deviation is then 12 %."""
MOST_PAIRS = 1 << 23
"""Different pairs (block, outcome) that are kept, as long as there are more than FEWEST blocks: beyond, every two of
these become one."""
MOST_OUTCOMES = 1 << 24
"""Outcomes that are kept apart, at most."""
_WAITING = 1 << 18
_BLOCK, _THING = 31, (1 << 31) - 1


class Sparse(NamedTuple):
    """How often each block saw each thing, where it did, block by block."""

    first: NDArray[np.int64]
    """(blocks + 1,): where a block's things begin."""
    thing: NDArray[np.int32]
    hits: NDArray[np.int32] | NDArray[np.int64]
    """Of half the size where that is enough."""

    @property
    def block(self) -> NDArray[np.int64]:
        """The block of every thing."""
        return np.repeat(np.arange(self.first.size - 1), np.diff(self.first))


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
    criterion: Criterion | None = None
    """What policies are judged by; None for the horizon of the table."""

    def total(self) -> Data:
        """Return all blocks together."""
        return self.weigh(np.ones(self.number, dtype=np.int64))

    def redraw(self, share: int, key: int, times: int = 1) -> Data:
        """Return the log that a second team would have, if these episodes were all that there are.

        Args:
            share: one block is drawn, with replacement, for every `share` of them, and at least one.
            key: of the private data stream; lane 0.
            times: as if there were so many times as many blocks.
        """
        words = np.empty(max(1, times * self.number // share), dtype=np.uint64)
        fill_words(np.uint64(key), np.uint64(0), np.uint64(0), words)
        drawn = ((words >> np.uint64(11)) * 2.0**-53 * self.number).astype(np.int64)
        return self.weigh(np.bincount(drawn, minlength=self.number))

    def weigh(self, times: NDArray[np.int64]) -> Data:
        """Return so many times every block, (blocks,)."""
        hits = np.zeros(self.outcomes.n_slots, dtype=np.int64)
        starts = np.zeros(self.outcomes.n_states, dtype=np.int64)
        _add(self.slots, times, hits)
        _add(self.starts, times, starts)
        if not starts.any():  # no piece that was drawn is the first of its episode: of starts the log says what it says
            _add(self.starts, np.ones_like(times), starts)
        hits[self.known] = starts.sum()
        return Data(Counts(self.outcomes, hits), starts, self.allowed, self.criterion)


@njit(cache=True, nogil=True)
def _add(seen: Sparse, times: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    for block in range(times.size):
        if times[block] > 0:
            for i in range(seen.first[block], seen.first[block + 1]):
                out[seen.thing[i]] += times[block] * seen.hits[i]


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
                raise InputError(
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
    """How often pairs (block, thing) came: sorted, each once, in place, with room at the end that nobody touches."""

    def __init__(self) -> None:
        """Begin with none."""
        self._pairs = np.empty(0, dtype=np.int64)
        self._hits = np.empty(0, dtype=np.int64)
        self._size = 0
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._waits = 0

    def add(self, block: NDArray[np.int64], thing: NDArray[np.int64]) -> None:
        """Count pairs; things are numbers below 2**31."""
        pairs, hits = np.unique((block << _BLOCK) | thing, return_counts=True)
        self._waiting.append((pairs, hits))
        self._waits += pairs.size
        if self._waits > _WAITING:
            self._merge()

    def exceeds(self, most: int) -> bool:
        """Whether more than so many different pairs have come."""
        if self._size + self._waits > most:
            self._merge()
        return self._size > most

    def _merge(self) -> None:
        """Bring in what waits."""
        if not self._waiting:
            return
        pairs, hits = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._waits = [], 0
        order = np.argsort(pairs, kind="stable")
        pairs, hits = pairs[order], hits[order]
        first = np.flatnonzero(np.diff(pairs, prepend=-1))
        self._bring(pairs[first], np.add.reduceat(hits, first) if first.size else hits)

    def _bring(self, pairs: NDArray[np.int64], hits: NDArray[np.int64]) -> None:
        """Bring in pairs that are sorted, each once."""
        size = self._size + _count_known(self._pairs, self._hits, self._size, pairs, hits)
        if size > self._pairs.size:
            room = max(_WAITING, size + size // 4)
            self._pairs.resize(room, refcheck=False)  # no second copy: the system moves pages
            self._hits.resize(room, refcheck=False)
        _insert(self._pairs, self._hits, self._size, size, pairs, hits)
        self._size = size

    def fold(self, blocks: int) -> None:
        """Put blocks together, of which there are twice as many: number b becomes b mod blocks."""
        self._merge()
        low = int(np.searchsorted(self._pairs[: self._size], blocks << _BLOCK))
        upper = slice(low, self._size)
        pairs, hits = self._pairs[upper] - (blocks << _BLOCK), self._hits[upper].copy()
        self._size = low
        self._bring(pairs, hits)

    def sparse(self, blocks: int, names: NDArray[np.int64] | None = None) -> Sparse:
        """Return all of them, things by other names where such are given."""
        self._merge()
        pairs, hits = self._pairs[: self._size], self._hits[: self._size]
        first = np.searchsorted(pairs, np.arange(blocks + 1) << _BLOCK)
        thing = np.empty(self._size, dtype=np.int32)
        _name(pairs, np.empty(0, dtype=np.int64) if names is None else names, thing)
        small = hits.max(initial=0) < 2**31
        return Sparse(first, thing, hits.astype(np.int32) if small else hits.copy())


class Digits:
    """How often each thing came, and how often at steps that have each binary digit."""

    def __init__(self) -> None:
        """Begin with none."""
        self._hits = np.zeros((1, 0), dtype=np.int64)
        self.steps = 0
        """The last of them, and 1."""

    def add(self, step: NDArray[np.int64], thing: NDArray[np.int64]) -> None:
        """Count things, each at its step."""
        self.steps = max(self.steps, int(step.max(initial=-1)) + 1)
        rows, room = 1 + max(self.steps - 1, 0).bit_length(), int(thing.max(initial=-1)) + 1
        old = self._hits
        if rows > old.shape[0] or room > old.shape[1]:
            larger = room + room // 4 if room > old.shape[1] else old.shape[1]
            self._hits = np.zeros((max(rows, old.shape[0]), larger), dtype=np.int64)
            self._hits[: old.shape[0], : old.shape[1]] = old
        _count_digits(step, thing, self._hits)

    def named(self, names: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts by the names of things: all in the first row, then those with digit 0, 1 …."""
        out = np.zeros((self._hits.shape[0], names.size), dtype=np.int64)
        room = min(names.size, self._hits.shape[1])
        out[:, names[:room]] = self._hits[:, :room]
        return out


@njit(cache=True, nogil=True)
def _count_digits(step: NDArray[np.int64], thing: NDArray[np.int64], hits: NDArray[np.int64]) -> None:
    for i in range(step.size):
        hits[0, thing[i]] += 1
        left, row = step[i], 1
        while left:
            if left & 1:
                hits[row, thing[i]] += 1
            left >>= 1
            row += 1


@njit(cache=True, nogil=True)
def _name(pairs: NDArray[np.int64], names: NDArray[np.int64], thing: NDArray[np.int32]) -> None:
    """Fill thing with that of every pair, by its name where there are names."""
    for i in range(pairs.size):
        number = pairs[i] & _THING
        thing[i] = names[number] if names.size else number


@njit(cache=True, nogil=True)
def _count_known(
    kept: NDArray[np.int64], hits: NDArray[np.int64], size: int, pairs: NDArray[np.int64], more: NDArray[np.int64]
) -> int:
    """Add the hits of pairs that are kept already, and set them to 0; return how many are new."""
    i, new = 0, 0
    for j in range(pairs.size):
        while i < size and kept[i] < pairs[j]:
            i += 1
        if i < size and kept[i] == pairs[j]:
            hits[i] += more[j]
            more[j] = 0
        else:
            new += 1
    return new


@njit(cache=True, nogil=True)
def _insert(
    kept: NDArray[np.int64],
    hits: NDArray[np.int64],
    size: int,
    larger: int,
    pairs: NDArray[np.int64],
    more: NDArray[np.int64],
) -> None:
    """Put in the pairs whose hits are not 0, from the end, so that nothing is overwritten before it has moved."""
    i, place = size - 1, larger - 1
    for j in range(pairs.size - 1, -1, -1):
        if more[j] == 0:
            continue
        while i >= 0 and kept[i] > pairs[j]:
            kept[place], hits[place] = kept[i], hits[i]
            i -= 1
            place -= 1
        kept[place], hits[place] = pairs[j], more[j]
        place -= 1

"""Counts: the sufficient statistics of the data sets D[h, s, a].

A data set is one whole number per outcome, so merging is integer addition: any split of the work over processes or
machines gives the same bytes. Sample sizes, reward sums and next-state counts are read off the tallies when asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import DocumentError, InputError, check_array, check_int, quote
from reprl.kernels import njit
from reprl.mdp.outcomes import Outcomes, expected_return
from reprl.storage.files import SealedFile

_MAGIC = b"reprl-counts 1\n"
_LAYOUT = (("first", "<i8"), ("next_state", "<i4"), ("reward", "<f8"), ("hits", "<i8"))
_MAX_TALLY = int(np.iinfo(np.int64).max)
_MAX_CELLS = 2**28
_SIZES = ("horizon", "n_states", "n_actions", "row_shift", "slot_shift")


class Counts(SealedFile):
    """How often each outcome was seen in each cell.

    Args:
        outcomes: the table that says what each slot counts.
        hits: (outcomes.n_slots,) whole numbers.
    """

    _noun = "counts"

    def __init__(self, outcomes: Outcomes, hits: NDArray[np.int64]) -> None:
        if not isinstance(outcomes, Outcomes):
            raise InputError(f"outcomes must be a table of Outcomes, got {quote(outcomes)}")
        if not isinstance(hits, np.ndarray):
            raise InputError(f"hits must be int64 of shape ({outcomes.n_slots},), got {quote(hits)}")
        if hits.dtype != np.int64 or hits.shape != (outcomes.n_slots,):
            raise InputError(f"hits must be int64 of shape ({outcomes.n_slots},), got {hits.dtype} of {hits.shape}")
        if hits.size and hits.min() < 0:
            raise InputError(f"hits must not be negative, got {hits.min()}")
        hits.setflags(write=False)
        self.outcomes = outcomes.protected()
        self.hits = hits
        if int(hits.max(initial=0)) * int(np.diff(outcomes.first).max(initial=0)) > _MAX_TALLY:
            totals = np.bincount(self._cells, hits.astype(np.float64))
            if totals.max() >= _MAX_TALLY:
                raise InputError(f"a cell must hold fewer than 2**63 samples, got {totals.max():.6g}")

    @classmethod
    def empty(cls, outcomes: Outcomes) -> Counts:
        """No data yet."""
        return cls(outcomes, np.zeros(outcomes.n_slots, dtype=np.int64))

    @cached_property
    def visits(self) -> NDArray[np.int64]:
        """Number of samples of each cell's law, (H, S, A); pooled ones count at every step."""
        out: NDArray[np.int64] = np.zeros(np.prod(self.outcomes.tallied), dtype=np.int64)
        np.add.at(out, self._cells, self.hits)
        return self._by_step(out)

    @cached_property
    def reward_sum(self) -> NDArray[np.float64]:
        """Σ r over those samples, (H, S, A)."""
        return self._summed(self._columns()[1])

    def _summed(self, each: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up a number of every sample, (H, S, A)."""
        sums = np.bincount(self._cells, self.hits * each, minlength=int(np.prod(self.outcomes.tallied)))
        return self._by_step(sums.astype(np.float64))

    def pool(self) -> Counts:
        """Add the steps' tallies up: every sample then counts for its (s, a) at all steps.

        Guarantee:
            The law of a cell must not depend on the step; ``homogeneity.steps_alike`` tests whether data allow that.
        """
        table = self.outcomes
        if table.pooled:
            return self
        if table.row_shift == 0:
            return Counts(table._replace(slot_shift=0), self.hits.reshape(table.horizon, -1).sum(axis=0))
        rows = _list(self)
        cells = table.n_states * table.n_actions
        return _tabulate(_sorted(rows._replace(cell=rows.cell % cells)), table.shape, pooled=True)

    def successors(self, h: int, s: int, a: int) -> NDArray[np.int64]:
        """Return how often each state followed cell (h, s, a), (S,)."""
        cell = zip(("h", "s", "a"), (h, s, a), self.outcomes.shape, strict=True)
        table, slots = self.outcomes.slots(*(check_int(name, index, 0, size - 1) for name, index, size in cell))
        out = np.zeros(self.outcomes.n_states, dtype=np.int64)
        np.add.at(out, self.outcomes.next_state[table], self.hits[slots])
        return out

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]:
        """Return the data as columns cell, next state, reward and hits, sorted; a cell is (h·S + s)·A + a."""
        return _list(self)

    def mean_return(self, h: int, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the empirical mean of r + value[s'] in each cell of step h, (S, A); NaN where there is no sample."""
        h = check_int("h", h, 0, self.outcomes.horizon - 1)
        value = check_array("value", value, 1)
        if value.size != self.outcomes.n_states:
            raise InputError(f"value must have shape ({self.outcomes.n_states},), got {value.shape}")
        out = np.empty((self.outcomes.n_states, self.outcomes.n_actions))
        expected_return(self.outcomes, self.hits, self.outcomes.slot_shift, h, value, out)
        visits = self.visits[h]
        mean: NDArray[np.float64] = np.divide(out, visits, out=np.full_like(out, np.nan), where=visits > 0)
        return mean

    @classmethod
    def merge(cls, parts: Iterable[Counts]) -> Counts:
        """Add data sets up; tables that differ are first brought to their union."""
        items = list(parts) if isinstance(parts, Iterable) else [parts]
        for item in items:
            if not isinstance(item, Counts):
                raise InputError(f"merge needs data sets, got {quote(item)}")
        if not items:
            raise InputError("merge needs at least one data set, got none")
        largest = sum(int(item.hits.max(initial=0)) for item in items)
        if largest > _MAX_TALLY:
            raise InputError(f"a tally must stay below 2**63 after merging, got up to {largest}")
        total = items[0]
        for item in items[1:]:
            same = item.outcomes.same_table(total.outcomes)
            total = cls(total.outcomes, total.hits + item.hits) if same else _unite(total, item)
        return total

    def __add__(self, other: Counts) -> Counts:
        return Counts.merge([self, other])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Counts)
            and self.outcomes.same_table(other.outcomes)
            and np.array_equal(self.hits, other.hits)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        samples = (int((self.hits >> 32).sum()) << 32) + int((self.hits & 0xFFFFFFFF).sum())  # may exceed 2**63
        return f"Counts(shape={self.outcomes.shape}, samples={samples})"

    def to_bytes(self) -> bytes:
        """Return the canonical encoding: a magic line, a JSON line of sizes, then the arrays, little-endian."""
        arrays = {**self.outcomes._asdict(), "hits": self.hits}
        header = {name: int(arrays[name]) for name in _SIZES}
        header |= {name: int(arrays[name].size) for name, _ in _LAYOUT}
        body = b"".join(arrays[name].astype(kind).tobytes() for name, kind in _LAYOUT)
        return _MAGIC + json.dumps(header).encode() + b"\n" + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Counts:
        """Read what ``to_bytes`` wrote; anything else is a ReprlError, before memory is taken for it."""
        if not isinstance(data, bytes) or not data.startswith(_MAGIC):
            opening = data[: len(_MAGIC)] if isinstance(data, bytes) else data
            raise DocumentError(f"counts must start with {_MAGIC!r}, got {quote(opening)}")
        line, newline, body = data[len(_MAGIC) :].partition(b"\n")
        sizes = _read_header(line if newline else b"")
        expected = sum(sizes[name] * np.dtype(kind).itemsize for name, kind in _LAYOUT)
        if len(body) != expected:
            raise DocumentError(f"counts must hold {expected} bytes after their header, got {len(body)}")
        arrays, offset = {}, 0
        for name, kind in _LAYOUT:
            array = np.frombuffer(body, dtype=kind, count=sizes[name], offset=offset)
            offset += array.nbytes
            arrays[name] = array.astype(array.dtype.newbyteorder("="))
            arrays[name].setflags(write=False)
        hits = arrays.pop("hits")
        horizon, n_states, n_actions, row_shift, slot_shift = (sizes[name] for name in _SIZES)
        outcomes = Outcomes(
            horizon, n_states, n_actions, row_shift, slot_shift, arrays["first"], arrays["next_state"], arrays["reward"]
        )
        _check_table(outcomes)
        return cls(outcomes, hits)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the canonical encoding, so that the copy is checked and write-protected like the original."""
        return Counts.from_bytes, (self.to_bytes(),)

    @cached_property
    def _cells(self) -> NDArray[np.int64]:
        """The flat number (h·S + s)·A + a of every slot's cell; h = 0 if steps are pooled."""
        lengths = np.diff(self.outcomes.first)
        if self.outcomes.slot_shift:
            lengths = np.tile(lengths, self.outcomes.horizon)
        return np.repeat(np.arange(lengths.size), lengths)

    def _columns(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Next state and reward of every slot."""
        copies = self.outcomes.horizon if self.outcomes.slot_shift else 1
        return np.tile(self.outcomes.next_state, copies), np.tile(self.outcomes.reward, copies)

    def _by_step(self, table: NDArray[Any]) -> NDArray[Any]:
        """Give every step what is tallied, (H, S, A); read-only."""
        out = table.reshape(self.outcomes.tallied)
        out = np.repeat(out, self.outcomes.horizon, axis=0) if self.outcomes.pooled else out
        out.setflags(write=False)
        return out


class _Listing(NamedTuple):
    """A data set as rows (cell, next state, reward, hits), sorted, each of the first three once."""

    cell: NDArray[np.int64]
    next_state: NDArray[np.int32]
    reward: NDArray[np.float64]
    hits: NDArray[np.int64]


def _unite(one: Counts, other: Counts) -> Counts:
    """Add two data sets of one shape over the union of their tables, rows sorted by (next state, reward)."""
    shape, pooled = one.outcomes.shape, one.outcomes.pooled
    if other.outcomes.shape != shape:
        raise InputError(f"data sets must have one shape (H, S, A) to merge, got {shape} and {other.outcomes.shape}")
    if other.outcomes.pooled != pooled:
        raise InputError(f"data sets must both have pooled steps to merge, or neither, got {one} and {other}")
    size = one.hits.size + other.hits.size
    out = _Listing(
        np.empty(size, np.int64), np.empty(size, np.int32), np.empty(size, np.float64), np.empty(size, np.int64)
    )
    size = _interleave(_list(one), _list(other), out)
    rows = _Listing(out.cell[:size], out.next_state[:size].copy(), out.reward[:size].copy(), out.hits[:size].copy())
    return _tabulate(rows, shape, pooled=pooled)


def _tabulate(rows: _Listing, shape: tuple[int, int, int], *, pooled: bool = False) -> Counts:
    """Build a data set from its list."""
    horizon, n_states, n_actions = shape
    cells = n_states * n_actions
    first = np.zeros((1 if pooled else horizon) * cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows.cell, minlength=first.size - 1), out=first[1:])
    return Counts(Outcomes(*shape, 0 if pooled else cells, 0, first, rows.next_state, rows.reward), rows.hits)


def _list(counts: Counts) -> _Listing:
    """List a data set; a table that is sorted, as most are that are merged, is not sorted again."""
    rows = _Listing(counts._cells, *counts._columns(), counts.hits)
    return rows if _is_sorted(rows) else _sorted(rows)


def _sorted(rows: _Listing) -> _Listing:
    """Sort rows and add up the hits of equal ones."""
    if rows.cell.size == 0:
        return rows
    order = np.lexsort((rows.reward, rows.next_state, rows.cell))
    cell, following, reward = rows.cell[order], rows.next_state[order], rows.reward[order]
    fresh = np.ones(order.size, dtype=np.bool_)
    fresh[1:] = (np.diff(cell) != 0) | (np.diff(following) != 0) | (np.diff(reward) != 0)
    hits = np.add.reduceat(rows.hits[order], np.flatnonzero(fresh))
    return _Listing(cell[fresh], following[fresh], reward[fresh], hits)


@njit(cache=True, nogil=True, inner=True)
def _before(one: _Listing, i: int, other: _Listing, j: int) -> bool:
    """Whether row i of one list comes before row j of another."""
    if one.cell[i] != other.cell[j]:
        return bool(one.cell[i] < other.cell[j])
    if one.next_state[i] != other.next_state[j]:
        return bool(one.next_state[i] < other.next_state[j])
    return bool(one.reward[i] < other.reward[j])


def _is_sorted(rows: _Listing) -> bool:
    """Whether every row comes before the next, as ``_before`` has it."""
    before = np.zeros(max(rows.cell.size - 1, 0), dtype=np.bool_)
    for column in (rows.reward, rows.next_state, rows.cell):
        before = (column[:-1] < column[1:]) | (column[:-1] == column[1:]) & before
    return bool(before.all())


@njit(cache=True, nogil=True)
def _interleave(one: _Listing, other: _Listing, out: _Listing) -> int:
    """Merge two sorted lists into out, adding the hits of rows that both have, and return how many rows there are."""
    i = j = n = 0
    while i < one.cell.size or j < other.cell.size:
        if j == other.cell.size or (i < one.cell.size and not _before(other, j, one, i)):
            out.cell[n], out.next_state[n], out.reward[n] = one.cell[i], one.next_state[i], one.reward[i]
            out.hits[n] = one.hits[i]
            if j < other.cell.size and not _before(one, i, other, j):
                out.hits[n] += other.hits[j]
                j += 1
            i += 1
        else:
            out.cell[n], out.next_state[n], out.reward[n] = other.cell[j], other.next_state[j], other.reward[j]
            out.hits[n] = other.hits[j]
            j += 1
        n += 1
    return n


def _read_header(line: bytes) -> dict[str, int]:
    try:
        header = json.loads(line)
        sizes = {name: header[name] for name in (*_SIZES, *(name for name, _ in _LAYOUT))}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DocumentError(f"counts header must be a JSON object of sizes, got {quote(line)}") from None
    for name, size in sizes.items():
        check_int(f"counts {name}", size, 0, 2**40)
    return sizes


def _check_table(table: Outcomes) -> None:
    """Refuse a table whose rows, shifts or values do not fit together."""
    cells = table.n_states * table.n_actions
    n = table.next_state.size
    shared = table.row_shift == 0 and table.first.size == cells + 1 and n > 0
    stepwise = table.row_shift == cells and table.first.size == table.horizon * cells + 1
    if not (cells and table.horizon and table.reward.size == n and (shared or stepwise)):
        raise DocumentError(
            f"counts must hold one row of outcomes per cell, got sizes {table[:5]} and {table.first.size}"
        )
    if table.slot_shift not in ((n, 0) if shared else (0,)):
        allowed = f"{n}, or 0 for pooled steps," if shared else "0"
        raise DocumentError(f"counts slot_shift must be {allowed} for this table, got {table.slot_shift}")
    if table.slot_shift == 0 and shared and table.horizon * cells > _MAX_CELLS:
        raise DocumentError(f"counts with pooled steps must have at most {_MAX_CELLS} cells, got sizes {table[:5]}")
    if table.first[0] != 0 or table.first[-1] != n or (table.first[1:] < table.first[:-1]).any():
        raise DocumentError(f"counts rows must rise from 0 to {n}, got {quote(table.first)}")
    if n and not (table.next_state.min() >= 0 and table.next_state.max() < table.n_states):
        raise DocumentError(f"counts next states must lie in [0, {table.n_states}), got up to {table.next_state.max()}")
    bad = ~((table.reward >= 0.0) & (table.reward <= 1.0)) | np.signbit(table.reward)
    if bad.any():
        where = int(np.argmax(bad))
        raise DocumentError(f"counts reward[{where}] must lie in [0, 1], got {table.reward[where]}")


def tally(samples: ArrayLike, shape: tuple[int, int, int]) -> Counts:
    """Count observed steps.

    Args:
        samples: (n, 5) rows (h, s, a, next state, reward), steps from 0, rewards in [0, 1].
        shape: (H, S, A).

    Guarantee:
        The table lists the outcomes that were seen, per step, sorted by (next state, reward): the result does not
        depend on the order of the rows, and ``Counts.merge`` of parts is the tally of the whole.
    """
    rows = check_array("samples", np.empty((0, 5)) if _is_empty(samples) else samples, 2)
    if not isinstance(shape, tuple | list) or len(shape) != 3:
        raise InputError(f"shape must be (H, S, A), got {quote(shape)}")
    horizon, n_states, n_actions = (check_int(name, n, 1, _MAX_CELLS) for name, n in zip("HSA", shape, strict=True))
    if horizon * n_states * n_actions > _MAX_CELLS:
        raise InputError(f"shape must have at most {_MAX_CELLS} cells to be counted, got {quote(shape)}")
    _check_rows(rows, (horizon, n_states, n_actions, n_states))
    h, s, a, following = rows[:, :4].astype(np.int64).T
    cell, reward = (h * n_states + s) * n_actions + a, rows[:, 4] + 0.0  # -0.0 becomes 0.0
    once = np.ones(cell.size, dtype=np.int64)
    return _tabulate(_sorted(_Listing(cell, following.astype(np.int32), reward, once)), (horizon, n_states, n_actions))


def _is_empty(samples: ArrayLike) -> bool:
    """Whether there is nothing to count, in whatever shape."""
    try:
        return np.size(samples) == 0
    except ValueError:  # rows of different lengths, which are refused as what they are
        return False


def _check_rows(rows: NDArray[np.float64], sizes: tuple[int, int, int, int]) -> None:
    """Refuse rows that are not steps of an environment of these sizes."""
    if rows.shape[1] != 5:
        raise InputError(f"samples must have shape (n, 5), got {rows.shape}")
    index = rows[:, :4]
    bad = (index != np.floor(index)) | (index < 0) | (index >= sizes)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(f"samples[{row}, {column}] must be an index below {sizes[column]}, got {rows[row, column]:g}")
    outside = (rows[:, 4] < 0.0) | (rows[:, 4] > 1.0)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError(f"samples[{row}, 4] must be a reward in [0, 1], got {rows[row, 4]:g}")

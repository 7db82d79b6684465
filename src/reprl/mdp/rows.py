"""Rows: transitions and rewards as lists of what can happen, however they come: dense, scipy sparse, or one by one.

A list takes memory for what can happen only: a world of 10⁵ states with 20 successors a cell fits, where a dense table
would take hundreds of gigabytes. Sizes are checked before memory is taken for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_array, check_int, quote
from reprl.mdp.outcomes import Outcomes

MAX_ENTRIES = 2**28
"""Entries of the largest dense table, and outcomes and cells of the largest MDP."""
_ROUNDING = 1e-6


class Sparse(Protocol):
    """A matrix of scipy.sparse, of any layout."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self, copy: bool = False) -> Any:
        """Compressed by rows."""


class Rows(NamedTuple):
    """What can happen: entry i leads from cell row[i] = (h·S + s)·A + a to next_state[i], with this law and reward."""

    steps: int
    """1 if all steps are equal, H otherwise."""
    n_states: int
    n_actions: int
    row: NDArray[np.int64]
    """Rising."""
    next_state: NDArray[np.int32]
    law: NDArray[np.float64]
    """Positive."""
    reward: NDArray[np.float64]
    """Means in [0, 1]."""

    @property
    def cells(self) -> int:
        """Rows of the table."""
        return self.steps * self.n_states * self.n_actions


_most: ContextVar[int] = ContextVar("most entries")


@contextmanager
def limited(entries: int) -> Iterator[None]:
    """Build nothing larger than so many entries: a table and all that is made on the way take about 40 bytes each."""
    token = _most.set(entries)
    try:
        yield
    finally:
        _most.reset(token)


def check_entries(what: str, entries: int) -> None:
    """Refuse what would not fit in memory, before any is taken."""
    most = min(_most.get(MAX_ENTRIES), MAX_ENTRIES)
    if entries > most:
        raise InputError(f"{what} must have at most {most} entries, got {entries}")


def dense_rows(transition: NDArray[np.float64], means: NDArray[np.float64]) -> Rows:
    """List dense transitions, (H, S, A, S) or (S, A, S), with reward means (1 or H, S, A, 1 or S)."""
    n_states, n_actions = transition.shape[-3:-1]
    dense = transition.reshape(-1, n_states, n_actions, n_states)
    steps = max(dense.shape[0], means.shape[0])
    shape = (steps, n_states, n_actions, n_states)
    check_entries("an MDP with its outcomes over all steps", int(np.count_nonzero(dense)) * (steps // dense.shape[0]))
    index = np.nonzero(np.broadcast_to(dense, shape))
    law = np.broadcast_to(dense, shape)[index]
    mean = np.broadcast_to(means, shape)[index]
    row = (index[0] * n_states + index[1]) * n_actions + index[2]
    # index holds the largest arrays here: 0.4 GB at the peak for a dense MDP of 716 states and 25 actions
    return Rows(steps, n_states, n_actions, row, index[3].astype(np.int32), law, mean)


def sparse_rows(transition: Sparse, reward: Any, mask: NDArray[np.bool_] | None = None) -> Rows:
    """List a scipy sparse matrix.

    Args:
        transition: (S·A, S), row s·A + a; entries given twice are added up.
        reward: (S, A) means, or a sparse matrix like transition; what it leaves out pays 0.
        mask: (1, S, A): rows of other actions are not read.
    """
    matrix = _canonical("transition", transition)
    n_states = matrix.shape[1]
    if n_states == 0 or matrix.shape[0] == 0 or matrix.shape[0] % n_states:
        raise InputError(f"transition must have shape (S·A, S) where it is sparse, got {matrix.shape}")
    n_actions = matrix.shape[0] // n_states
    check_entries("a sparse MDP", matrix.nnz)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    rows = Rows(1, n_states, n_actions, row, matrix.indices.astype(np.int32), matrix.data, np.zeros(matrix.nnz))
    if hasattr(reward, "tocsr"):
        paid = _canonical("reward", reward)
        if paid.shape != matrix.shape:
            raise InputError(f"reward must have shape {matrix.shape}, as transition has it, got {paid.shape}")
        rows = rows._replace(reward=_look_up(paid, row, matrix.indices))
    else:
        means = check_array("reward", reward, 2)
        if means.shape != (n_states, n_actions):
            raise InputError(f"reward must have shape ({n_states}, {n_actions}), or be sparse, got {means.shape}")
        rows = rows._replace(reward=means.ravel()[row])
    return checked(rows, mask)


def outcome_rows(
    table: ArrayLike, n_states: int, n_actions: int, horizon: int, mask: NDArray[np.bool_] | None = None
) -> Rows:
    """List a table of outcomes.

    The table has (n, 5) rows (state, action, next state, probability, reward), or (n, 6) with the step before them;
    rows of actions that mask, (1 or H, S, A), leaves out are not read.
    """
    given = check_array("outcomes", table, 2)
    if given.shape[1] not in (5, 6):
        raise InputError(
            "outcomes must have 5 columns (state, action, next state, probability, reward), or the step before them, "
            f"got shape {given.shape}"
        )
    steps = 1 if given.shape[1] == 5 else horizon
    check_entries("a table of outcomes", max(len(given), steps * n_states * n_actions))
    sizes = (
        (n_states, n_actions, n_states)
        if steps == 1 and given.shape[1] == 5
        else (steps, n_states, n_actions, n_states)
    )
    index = given[:, : len(sizes)]
    bad = (index != np.floor(index)) | (index < 0) | (index >= sizes)
    if bad.any():
        i, column = (int(x) for x in np.argwhere(bad)[0])
        raise InputError(f"outcomes[{i}, {column}] must be an index below {sizes[column]}, got {given[i, column]:g}")
    *cell, following = index.astype(np.int64).T
    row = np.ravel_multi_index(tuple(cell), sizes[:-1])
    order = np.lexsort((given[:, -1], following, row))
    rows = Rows(
        steps,
        n_states,
        n_actions,
        row[order],
        following[order].astype(np.int32),
        given[order, -2],
        given[order, -1] + 0.0,
    )
    return checked(rows, mask)


def checked(rows: Rows, mask: NDArray[np.bool_] | None) -> Rows:
    """Drop what cannot happen or may not be done, and refuse laws that are none and rewards out of range."""
    if (rows.law < 0).any():
        i = int(np.argmax(rows.law < 0))
        raise InputError(f"{_where(rows, int(rows.row[i]))} must hold probabilities in [0, 1], got {rows.law[i]:g}")
    read = rows.law > 0
    if mask is not None:
        if len(mask) > rows.steps:
            raise InputError(
                f"allowed must have shape {mask.shape[1:]} for transitions that are alike, got {mask.shape}"
            )
        mask = np.broadcast_to(mask, (rows.steps, *mask.shape[1:])).reshape(-1)
        read &= mask[rows.row]
    rows = rows._replace(**{name: getattr(rows, name)[read] for name in ("row", "next_state", "law", "reward")})
    outside = (rows.reward < 0) | (rows.reward > 1)
    if outside.any():
        i = int(np.argmax(outside))
        raise InputError(f"reward of {_where(rows, int(rows.row[i]))} must lie in [0, 1], got {rows.reward[i]:g}")
    rows = rows if mask is None else _rest(rows, mask)
    totals = np.bincount(rows.row, rows.law, minlength=rows.cells)
    off = np.abs(totals - 1.0) > _ROUNDING
    if off.any():
        i = int(np.argmax(off))
        raise InputError(f"{_where(rows, i)} must sum to 1 within {_ROUNDING:g}, got {totals[i]:.12g}")
    return rows


def tabulate(rows: Rows, horizon: int, reward_kind: str) -> tuple[Outcomes, NDArray[np.float64]]:
    """Turn rows into a table of outcomes, sorted by (next state, reward), and laws."""
    row, next_state = rows.row, rows.next_state
    if reward_kind == "deterministic":
        reward, law = rows.reward + 0.0, rows.law  # no −0.0: equal rewards, equal bytes
    else:
        both = np.stack([rows.law * (1.0 - rows.reward), rows.law * rows.reward], axis=1)
        picks, paid = np.nonzero(both)
        reward, law = paid.astype(np.float64), both[picks, paid]
        row, next_state = row[picks], next_state[picks]
    first = np.zeros(rows.cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(row, minlength=rows.cells), out=first[1:])
    law = law / np.add.reduceat(law, first[:-1])[row]
    for array in (first, next_state, reward, law):
        array.setflags(write=False)
    shared, cells = rows.steps == 1, rows.n_states * rows.n_actions
    sizes = (horizon, rows.n_states, rows.n_actions, 0 if shared else cells, law.size if shared else 0)
    return Outcomes(*sizes, first, next_state, reward), law


def _rest(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    """Let masked actions stay in their state without reward; mask is flat."""
    idle = np.flatnonzero(~mask)
    stay = (idle // rows.n_actions % rows.n_states).astype(np.int32)
    row = np.concatenate([rows.row, idle])
    order = np.argsort(row, kind="stable")
    return rows._replace(
        row=row[order],
        next_state=np.concatenate([rows.next_state, stay])[order],
        law=np.concatenate([rows.law, np.ones(idle.size)])[order],
        reward=np.concatenate([rows.reward, np.zeros(idle.size)])[order],
    )


def _canonical(name: str, matrix: Any) -> Any:
    """A sparse matrix as CSR of finite float64, sorted, each entry once; the caller's stays as it is."""
    try:
        csr = matrix.tocsr(copy=True).astype(np.float64)
        csr.sum_duplicates()
        csr.sort_indices()
    except (TypeError, ValueError, AttributeError):
        raise InputError(f"{name} must be a matrix of real numbers of scipy.sparse, got {quote(matrix)}") from None
    if not np.isfinite(csr.data).all():
        raise InputError(f"{name} must be finite, got {csr.data[~np.isfinite(csr.data)][0]}")
    return csr


def _look_up(paid: Any, row: NDArray[np.int64], column: NDArray[Any]) -> NDArray[np.float64]:
    """Entries of a sparse matrix at given places, which come sorted; 0 where it has none."""
    width = paid.shape[1]
    keys = np.repeat(np.arange(paid.shape[0]), np.diff(paid.indptr)) * width + paid.indices
    wanted = row * width + column
    at = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    if keys.size == 0:
        return np.zeros(wanted.size)
    return np.where(keys[at] == wanted, paid.data[at], 0.0)


def _where(rows: Rows, row: int) -> str:
    """What a cell is called in messages."""
    h, cell = divmod(row, rows.n_states * rows.n_actions)
    step = "" if rows.steps == 1 else f"step {h}, "
    return f"transition of {step}state {cell // rows.n_actions}, action {cell % rows.n_actions}"


def read_sizes(n_states: object, n_actions: object, horizon: object) -> tuple[int, int, int]:
    """Check the sizes of an MDP that is given outcome by outcome."""
    sizes = check_int("n_states", n_states, 1, 2**31 - 1), check_int("n_actions", n_actions, 1, 2**31 - 1)
    check_entries("a world (S·A)", sizes[0] * sizes[1])
    return *sizes, check_int("horizon", horizon, 1, 10**6)

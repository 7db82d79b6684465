"""Tables: where the rows of a log come from, whatever holds them, in chunks that fit in memory.

A chunk gives every column that is used as codes and labels, rewards as numbers. Nothing is believed here: ``read``
checks the rows. PyArrow reads files; arrays, data frames and episodes in memory need nothing but NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_choice, hint, quote
from reprl.execution.progress import progress_bar
from reprl.execution.settings import Progress, check_progress

ROLES = ("episode", "step", "state", "action", "reward", "next_state", "done", "terminated", "truncated")
"""What a column can be; also the names that are looked for when nobody says otherwise."""
NEEDED = ("episode", "state", "action", "reward")
GROUP = "group"
"""One more role, for a column that names subgroups: looked for only where somebody names it."""
CHUNK = 1 << 17
"""Rows of a chunk."""


class Coded(NamedTuple):
    """A column as numbers of labels."""

    codes: NDArray[np.int64]
    """−1 where nothing stands."""
    labels: list[Any]


Chunk = dict[str, Any]
"""Role → Coded; for "reward" an array of numbers, or of whatever stands there."""


class Table(NamedTuple):
    """Rows that can be read as often as need be."""

    name: str
    """For messages: the file, or "log"."""
    columns: Mapping[str, str]
    """Role → column, of those that are there."""
    chunks: Callable[[], Iterator[Chunk]]
    unused: tuple[str, ...] = ()
    """Columns that are there and have no role."""
    decimal: str = "."
    """What stands before the decimals of a reward that is a text."""
    size: int = 0
    """Rows, as far as that can be told before they are read."""
    found: list[Any] | None = None
    """What a first reading has found, so that there is one only: a list that it is put into."""

    def fault(self, row: int, role: str, message: str) -> InputError:
        """Return an error that names file, row and column; rows count from 1, without a header."""
        return InputError(f"{self.name}, row {row + 1}, column {self.columns.get(role, role)!r} {message}")


def open_table(log: Any, columns: Mapping[str, str | None] | None = None) -> Table:
    """Open a log.

    Args:
        log: a path to CSV (also .csv.gz) or Parquet, a pandas DataFrame, a PyArrow table, a structured array, a mapping
            of names to arrays, or a Minari dataset with finite spaces.
        columns: role → name of a column where it is not the role itself; None for a column that is not to be used.
    """
    if isinstance(log, Table):
        return log
    wanted = _wanted(columns)
    if isinstance(log, str | os.PathLike):
        from reprl.sources.logs.arrow import open_file

        return open_file(Path(log), wanted)
    if hasattr(log, "iterate_episodes"):
        return _open_episodes(log, columns)
    if hasattr(log, "to_batches") and hasattr(log, "schema"):
        from reprl.sources.logs.arrow import open_arrow

        return open_arrow(log, wanted)
    if isinstance(log, np.ndarray) and log.dtype.names:
        log = {name: log[name] for name in log.dtype.names}
    if isinstance(log, Mapping) or (hasattr(log, "columns") and hasattr(log, "iloc")):
        return _open_arrays(log, wanted)
    allowed = "a path to CSV or Parquet, a DataFrame, a PyArrow table, a mapping of arrays or a Minari dataset"
    raise InputError(f"log must be {allowed}, got {quote(log)}")


@contextmanager
def watched_table(
    log: Any, columns: Mapping[str, str | None] | None = None, progress: bool | Progress = False
) -> Iterator[Table]:
    """Open a log as ``open_table`` does, and tell how far it is read: a bar, or a function of (phase, done, total)."""
    check_progress(progress)
    table = open_table(log, columns)
    with progress_bar(progress, "rows") as tell:
        yield table if tell is None else table._replace(chunks=_telling(table, tell))


def _telling(table: Table, tell: Progress) -> Callable[[], Iterator[Chunk]]:
    """Return the chunks of a table with a word after each."""
    phases = iter(("looking through the log", "counting"))

    def chunks() -> Iterator[Chunk]:
        phase, done = next(phases, "comparing episodes"), 0
        for chunk in table.chunks():
            yield chunk
            done += chunk["episode"].codes.size
            tell(phase, done, max(done, table.size))
        tell(phase, done, done)

    return chunks


def _wanted(columns: Mapping[str, str | None] | None) -> dict[str, tuple[str, bool]]:
    """Role → (column, whether it must be there)."""
    wanted = {role: (role, role in NEEDED) for role in ROLES}
    if columns is not None and not isinstance(columns, Mapping):
        raise InputError(f"columns must map roles ({', '.join(ROLES)}) to names, got {quote(columns)}")
    for role, name in (columns or {}).items():
        check_choice("columns", role, (*ROLES, GROUP))
        if name is None and role not in NEEDED:
            del wanted[role]
        elif isinstance(name, str) and name:
            wanted[role] = (name, True)
        else:
            raise InputError(f"columns[{role!r}] must be the name of a column, got {quote(name)}")
    return wanted


def find_columns(names: list[Any], wanted: Mapping[str, tuple[str, bool]], source: str) -> dict[str, str]:
    """Return role → column, of those that are there."""
    found = {}
    for role, (name, needed) in wanted.items():
        times = sum(1 for other in names if isinstance(other, str) and other == name)
        if times > 1:
            raise InputError(f"{source} must have one column {name!r}, got {times}")
        if times:
            found[role] = name
        elif needed:
            known = [other for other in names if isinstance(other, str)]
            shown = quote(", ".join(known) or "none", 200)
            raise InputError(f"{source} must have the column {name!r}, the {role}; got {shown}{hint(name, known)}")
    return found


def _open_arrays(log: Any, wanted: Mapping[str, tuple[str, bool]]) -> Table:
    """A mapping of arrays, or a data frame."""
    names = list(log if isinstance(log, Mapping) else log.columns)
    used = find_columns(names, wanted, "log")
    arrays = {role: _array(name, log[name]) for role, name in used.items()}
    lengths = {used[role]: array.size for role, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"log must have columns of one length, got {quote(lengths, 200)}")
    size = next(iter(lengths.values()))

    def chunks() -> Iterator[Chunk]:
        for low in range(0, size, CHUNK):
            yield {
                role: array[low : low + CHUNK] if role == "reward" else _encode(array[low : low + CHUNK])
                for role, array in arrays.items()
            }

    return Table("log", used, chunks, unused_columns(names, used), size=size, found=[])


def unused_columns(names: Iterable[Any], used: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns that have no role."""
    return tuple(str(name) for name in names if name not in used.values())


def _array(name: str, values: Any) -> NDArray[Any]:
    """One column as an array; what NumPy would make a table of, such as a list of tuples, becomes objects."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if not isinstance(values, np.ndarray):
        try:
            items = list(values)
        except TypeError:
            raise InputError(f"log column {name!r} must be an array, got {quote(values)}") from None
        if len({type(item) for item in items}) == 1 and isinstance(items[0], bool | int | float | str):
            values = np.asarray(items)
        else:
            values = np.empty(len(items), dtype=object)
            values[:] = items
    if values.ndim != 1:
        raise InputError(f"log column {name!r} must have one axis, got shape {values.shape}")
    return np.asarray(values)


def _encode(array: NDArray[Any]) -> Coded:
    """Number the labels of an array."""
    if array.dtype.kind in "iu" and array.size:
        return _encode_wholes(array)
    if array.dtype.kind in "iubUS":
        labels, codes = np.unique(array, return_inverse=True)
        return Coded(codes.astype(np.int64), labels.tolist())
    index: dict[Any, int] = {}
    out = np.empty(array.size, dtype=np.int64)
    for i, item in enumerate(array.tolist() if array.dtype.kind == "f" else array):
        if _is_missing(item):
            out[i] = -1
            continue
        try:
            out[i] = index.setdefault((item.__class__, item), len(index))
        except TypeError:  # no hash: a label that says so by itself, for ``read`` to refuse
            out[i] = index.setdefault((list, quote(item)), len(index))
    return Coded(out, [Unhashable(item) if kind is list else item for kind, item in index])


def _encode_wholes(array: NDArray[Any]) -> Coded:
    """Number whole numbers, without sorting where they rise already or lie close together."""
    change = array[1:] != array[:-1]
    if (array[1:] >= array[:-1]).all():
        codes = np.concatenate([[0], np.cumsum(change)])
        return Coded(codes.astype(np.int64), array[np.concatenate([[True], change])].tolist())
    low, high = int(array.min()), int(array.max())
    if high - low < array.size and max(abs(low), abs(high)) < 2**62:
        places = array.astype(np.int64) - low
        there = np.bincount(places, minlength=high - low + 1) > 0
        codes = (np.cumsum(there) - 1)[places]
        return Coded(codes, (np.flatnonzero(there) + low).tolist())
    labels, codes = np.unique(array, return_inverse=True)
    return Coded(codes.astype(np.int64), labels.tolist())


class Unhashable(str):
    """What stands for a value that cannot be a label."""


def _is_missing(item: object) -> bool:
    """None, NaN, and what pandas and NumPy have for nothing."""
    if item is None or item.__class__.__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(item, np.datetime64 | np.timedelta64):
        return bool(np.isnat(item))
    return isinstance(item, float | np.floating) and bool(item != item)


def _open_episodes(dataset: Any, columns: Mapping[str, str | None] | None) -> Table:
    """A Minari dataset, episode by episode; nothing of Minari is imported, as the dataset brings it along."""
    from reprl.mdp.spaces import Codec

    if columns:
        raise InputError(f"columns must be left out for a Minari dataset, got {quote(columns)}")
    observations = Codec(dataset.observation_space, "observation")
    actions = Codec(dataset.action_space, "action")

    def chunks() -> Iterator[Chunk]:
        for number, episode in enumerate(dataset.iterate_episodes()):
            size = len(episode.rewards)
            seen = [observations.encode(x) for x in _members(episode.observations, size + 1)]
            taken = [actions.encode(x) for x in _members(episode.actions, size)]
            yield {
                "episode": Coded(np.zeros(size, dtype=np.int64), [number]),
                "state": _encode(np.array(seen[:-1], dtype=np.int64)),
                "action": _encode(np.array(taken, dtype=np.int64)),
                "reward": np.asarray(episode.rewards),
                "next_state": _encode(np.array(seen[1:], dtype=np.int64)),
                "terminated": _encode(np.asarray(episode.terminations, dtype=np.bool_)),
                "truncated": _encode(_truncations(episode, size)),
            }

    roles = ("episode", "state", "action", "reward", "next_state", "terminated", "truncated")
    return Table("log", {role: role for role in roles}, chunks, found=[])


def _truncations(episode: Any, size: int) -> NDArray[np.bool_]:
    """Whether a time limit stopped an episode at each step; one that is over was not stopped."""
    found = np.asarray(getattr(episode, "truncations", np.zeros(size)), dtype=np.bool_)
    return found & ~np.asarray(episode.terminations, dtype=np.bool_)


def _members(values: Any, size: int) -> list[Any]:
    """Members of a space, one for each step, from the arrays, dicts or tuples of arrays that Minari keeps."""
    if isinstance(values, dict):
        parts = {name: _members(part, size) for name, part in values.items()}
        return [{name: part[i] for name, part in parts.items()} for i in range(size)]
    if isinstance(values, tuple):
        return list(zip(*(_members(part, size) for part in values), strict=True))
    return list(values[:size])

"""Reading: every row of a log is checked, and counted; nothing is kept of it but counts by blocks of whole episodes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import ReprlError, quote
from reprl.mdp.dynamics import Data
from reprl.mdp.logs.blocks import BLOCKS, Blocks, Numbering, Tally
from reprl.mdp.logs.spec import LogSpec, text_of
from reprl.mdp.logs.tables import Coded, Table, Unhashable
from reprl.mdp.outcomes import Outcomes

MOST_LABELS = 1 << 22
"""Labels of a column, at most."""
_TRUTHS = {
    **dict.fromkeys(("true", "1", "yes", "t", "y"), 1),
    **dict.fromkeys(("false", "0", "no", "f", "n"), 0),
}
_WHOLE = re.compile(r"-?\d{1,18}")
_KINDS = ((bool, "a truth value"), (int, "a number"), (float, "a number"), (str, "a text"), (bytes, "a text"))


class Log(NamedTuple):
    """What a log holds."""

    blocks: Blocks
    data: Data
    rows: int
    """Transitions that count."""
    episodes: int
    beyond: int
    """Rows that were left out, as they come after the horizon."""
    cut: int
    """Episodes that stop before the horizon without being done: what followed is not known, and not made up."""


class _Rows(NamedTuple):
    """Rows in numbers."""

    fresh: NDArray[np.bool_]
    """Whether the row begins an episode."""
    h: NDArray[np.int64]
    s: NDArray[np.int64]
    a: NDArray[np.int64]
    following: NDArray[np.int64]
    """−1 where the column is missing or empty."""
    reward: NDArray[np.int64]
    """Steps of the grid."""
    done: NDArray[np.int64]
    """−1 where there is no such column."""

    def part(self, which: slice) -> _Rows:
        return _Rows(*(column[which] for column in self))


class _Words:
    """Turns the labels of one role into numbers, and refuses what is none."""

    def __init__(self, table: Table, role: str, known: tuple[str, ...] | None) -> None:
        self.index = None if known is None else {text: i for i, text in enumerate(known)}
        self.texts: dict[str, None] = {}
        """Labels found so far, where nobody has said which there are."""
        self._table, self._role = table, role
        self._kind = ""

    def check(self, column: Coded, base: int, used: NDArray[np.bool_] | None = None) -> list[str]:
        """Return the texts of a column's labels, empty for one of no row that is used; what is no label is refused."""
        codes = column.codes if used is None else np.where(used, column.codes, -1)
        present = np.bincount(codes[codes >= 0], minlength=len(column.labels)) > 0
        texts = [""] * len(column.labels)
        for number in np.flatnonzero(present):
            label = column.labels[number]
            kind = next((name for cls, name in _KINDS if isinstance(label, cls)), f"a {type(label).__name__}")
            self._kind = self._kind or kind
            try:
                if kind != self._kind:
                    raise ReprlError(f"must be {self._kind}, as in the rows before, got {kind}, {quote(label)}")
                if isinstance(label, Unhashable):
                    raise ReprlError(f"must be a label that can be hashed, got {str(label)}")
                texts[number] = text_of("label", label)
            except ReprlError as error:
                row = base + int(np.argmax(codes == number))
                raise self._table.fault(row, self._role, str(error)) from None
        return texts

    def missing(self, codes: NDArray[np.int64], base: int) -> None:
        """Refuse a row in which nothing stands."""
        if (codes < 0).any():
            raise self._table.fault(base + int(np.argmax(codes < 0)), self._role, "must not be empty, got nothing")

    def collect(self, column: Coded, base: int, used: NDArray[np.bool_] | None = None) -> None:
        """Remember labels, of the rows that are used."""
        self.texts.update(dict.fromkeys(text for text in self.check(column, base, used) if text))
        if len(self.texts) > MOST_LABELS:
            message = f"must hold at most {MOST_LABELS} labels, got more: cut numbers into classes first"
            raise self._table.fault(base, self._role, message)

    def numbers(self, column: Coded, base: int, used: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the numbers of labels, −1 for nothing; an unknown label in a row that is used is refused."""
        assert self.index is not None
        places = [self.index.get(text, -2) if text else -1 for text in self.check(column, base, used)]
        found = np.array([*places, -1], dtype=np.int64)[column.codes]
        bad = (found == -2) if used is None else (found == -2) & used
        if bad.any():
            row = int(np.argmax(bad))
            known = ", ".join(map(repr, list(self.index)[:5])) + (", …" if len(self.index) > 5 else "")
            label = quote(column.labels[column.codes[row]])
            message = f"must be one of the {len(self.index)} labels that are known ({quote(known, 120)}), got {label}"
            raise self._table.fault(base + row, self._role, message)
        return found


def find_labels(table: Table) -> dict[str, tuple[str, ...]]:
    """Return the labels of states and actions that a log holds: numbers in their order, then texts in theirs."""
    words = {role: _Words(table, role, None) for role in ("state", "action", "next_state")}
    row = 0
    for chunk in table.chunks():
        for role in ("state", "action"):
            words[role].collect(chunk[role], row)
        if "next_state" in chunk:
            ended = _truths(table, chunk["done"], row) == 1 if "done" in chunk else None
            words["next_state"].collect(chunk["next_state"], row, None if ended is None else ~ended)
        row += chunk["state"].codes.size
    if not row:
        raise ReprlError(f"{table.name} must have at least one row, got none")
    states = {**words["state"].texts, **words["next_state"].texts}
    return {"states": _in_order(states), "actions": _in_order(words["action"].texts)}


def _in_order(texts: Mapping[str, None]) -> tuple[str, ...]:
    def place(text: str) -> tuple[bool, int, str]:
        whole = _WHOLE.fullmatch(text)
        return (not whole, int(text) if whole else 0, text)

    return tuple(sorted(texts, key=place))


def read_log(table: Table, spec: LogSpec) -> Log:
    """Read a log whole.

    Args:
        table: its rows; those of an episode stand together, in order.
        spec: the world that it is a log of.

    Guarantee:
        Every row is checked, and counted or refused by an error that names file, row and column. Memory is bounded by a
        chunk, 8 bytes an episode, and BLOCKS times the number of outcomes.
    """
    counting = _Counting(table, spec)
    held: _Rows | None = None
    row = 0
    for rows in _translate(table, spec):
        block = rows if held is None else _Rows(*map(np.concatenate, zip(held, rows, strict=True)))
        base = row - (held is not None)
        counting.add(block.part(slice(None, -1)), block.part(slice(1, None)), base)
        held = block.part(slice(-1, None))
        row += rows.h.size
    if held is None:
        raise ReprlError(f"{table.name} must have at least one row, got none")
    counting.add(held, None, row - 1)
    return counting.log()


def _translate(table: Table, spec: LogSpec) -> Iterator[_Rows]:
    """Yield the rows of every chunk in numbers."""
    known = {"state": spec.states, "action": spec.actions, "next_state": spec.states}
    words = {role: _Words(table, role, labels) for role, labels in known.items()}
    episodes = _Episodes(table)
    base = 0
    for chunk in table.chunks():
        size = chunk["episode"].codes.size
        if not size:
            continue
        nothing = np.full(size, -1, dtype=np.int64)
        fresh, h = episodes.follow(chunk["episode"], chunk.get("step"), base)
        done = _truths(table, chunk["done"], base) if "done" in chunk else nothing
        for role in ("state", "action"):
            words[role].missing(chunk[role].codes, base)
        following = nothing
        if "next_state" in chunk:
            following = words["next_state"].numbers(chunk["next_state"], base, done != 1)
        yield _Rows(
            fresh=fresh,
            h=h,
            s=words["state"].numbers(chunk["state"], base),
            a=words["action"].numbers(chunk["action"], base),
            following=following,
            reward=_rewards(table, spec, chunk["reward"], base),
            done=done,
        )
        base += size


class _Episodes:
    """Tells where episodes begin, and the step of every row."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._words = _Words(table, "episode", None)
        self._last = ""
        self._h = -1
        self._first: int | None = None
        self._seen: list[NDArray[np.uint64]] = []

    def follow(
        self, column: Coded, step: Coded | None, base: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return whether each row begins an episode, and its step from 0."""
        self._words.missing(column.codes, base)
        texts = self._words.check(column, base)
        codes = column.codes
        fresh = np.diff(codes, prepend=-1) != 0
        fresh[0] = texts[codes[0]] != self._last or self._h < 0
        self._refuse_returning(codes, texts, fresh, base)
        index = np.arange(codes.size)
        begin = np.maximum.accumulate(np.where(fresh, index, -1))
        h = np.where(begin >= 0, index - begin, index + self._h + 1)
        if step is not None:
            self._check_steps(step, fresh, h, base)
        self._last, self._h = texts[codes[-1]], int(h[-1])
        return fresh, h

    def _refuse_returning(
        self, codes: NDArray[np.int64], texts: list[str], fresh: NDArray[np.bool_], base: int
    ) -> None:
        """Refuse an episode that was left and comes again; 8 bytes of a hash are kept of each."""
        rows = np.flatnonzero(fresh)
        hashes = np.array([_hash(texts[code]) for code in codes[rows]], dtype=np.uint64)
        again = np.zeros(rows.size, dtype=np.bool_)
        for seen in self._seen:
            where = np.minimum(np.searchsorted(seen, hashes), seen.size - 1)
            again |= seen[where] == hashes
        unique, first = np.unique(hashes, return_index=True)
        twice = np.ones(rows.size, dtype=np.bool_)
        twice[first] = False
        if (again | twice).any():
            row = int(rows[np.argmax(again | twice)])
            message = f"must keep the rows of an episode together, got {quote(texts[codes[row]])} again: sort the rows"
            raise self._table.fault(base + row, "episode", message)
        if unique.size:
            self._seen.append(unique)
        while len(self._seen) > 1 and self._seen[-2].size <= 2 * self._seen[-1].size:
            self._seen[-2:] = [np.sort(np.concatenate(self._seen[-2:]))]

    def _check_steps(self, step: Coded, fresh: NDArray[np.bool_], h: NDArray[np.int64], base: int) -> None:
        """Refuse a gap: steps must rise by 1 from 0 or from 1."""
        texts = [str(text_of("step", label)) if label not in (None, "") else "" for label in step.labels]
        values = [int(text) if _WHOLE.fullmatch(text) else None for text in texts]
        found = np.array([-1 if value is None else value for value in [*values, None]], dtype=np.int64)[step.codes]
        if self._first is None:
            self._first = int(found[0])
            if self._first not in (0, 1):
                message = f"must begin with 0 or 1, got {_shown(step, 0)}"
                raise self._table.fault(base, "step", message)
        bad = found != h + self._first
        if bad.any():
            row = int(np.argmax(bad))
            where = "at the beginning of an episode" if fresh[row] else "after the row before"
            message = f"must be {h[row] + self._first} {where}, got {_shown(step, row)}"
            raise self._table.fault(base + row, "step", message)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _shown(column: Coded, row: int) -> str:
    code = column.codes[row]
    return "nothing" if code < 0 else quote(column.labels[code])


def _truths(table: Table, column: Coded, base: int) -> NDArray[np.int64]:
    """Return 1 for done and 0 for not."""
    known = [_TRUTHS.get(str(text_of("done", x)).strip().lower(), -1) if x not in (None, "") else -1 for x in column.labels]
    found = np.array([*known, -1], dtype=np.int64)[column.codes]
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise table.fault(base + row, "done", f"must be true or false, 1 or 0, got {_shown(column, row)}")
    return found


def _rewards(table: Table, spec: LogSpec, values: NDArray[Any], base: int) -> NDArray[np.int64]:
    """Return rewards as steps of the grid; what is no number within the range is refused."""
    if values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
    else:
        numbers = np.empty(values.size)
        for i, value in enumerate(values.tolist()):
            try:
                numbers[i] = float(value)
            except (TypeError, ValueError, OverflowError):
                raise table.fault(base + i, "reward", f"must be a number, got {quote(value)}") from None
    low, high = spec.reward_range
    bad = ~((numbers >= low) & (numbers <= high))
    if bad.any():
        row = int(np.argmax(bad))
        got = "nothing" if np.isnan(numbers[row]) else f"{numbers[row]:.6g}"
        advice = "" if np.isnan(numbers[row]) else " (reward_range=(low, high), --reward-range LOW HIGH)"
        message = f"must be a number in the reward range [{low:g}, {high:g}], got {got}{advice}"
        raise table.fault(base + row, "reward", message)
    steps: NDArray[np.int64] = spec.round_reward(numbers).astype(np.int64)
    return steps


class _Counting:
    """Counts checked rows."""

    def __init__(self, table: Table, spec: LogSpec) -> None:
        self._table, self._spec = table, spec
        self._outcomes, self._slots, self._starts = Numbering(), Tally(), Tally()
        self._episodes = self._rows = self._beyond = self._cut = 0

    def add(self, rows: _Rows, after: _Rows | None, base: int) -> None:
        """Count rows, each with the row that comes after it; None: the log ends here."""
        if not rows.h.size:
            return
        last = np.ones(1, dtype=np.bool_) if after is None else after.fresh
        following = self._following(rows, after, last, base)
        episode = self._episodes + np.cumsum(rows.fresh) - 1
        self._episodes += int(rows.fresh.sum())
        block = episode % BLOCKS
        spec, kept = self._spec, rows.h < self._spec.horizon
        self._beyond += int((~kept).sum())
        self._rows += int(kept.sum())
        self._cut += int((last & (following != spec.ended) & (rows.h < spec.horizon - 1)).sum())
        cell = (rows.h * spec.n_states + rows.s) * spec.n_actions + rows.a
        key = (cell * spec.n_states + following) * (spec.reward_steps + 1) + rows.reward
        self._slots.add(block[kept], self._outcomes.number(key[kept]))
        self._starts.add(block[rows.fresh], rows.s[rows.fresh])

    def _following(
        self, rows: _Rows, after: _Rows | None, last: NDArray[np.bool_], base: int
    ) -> NDArray[np.int64]:
        """Return the state after every row: as it says, as the next row says, or "ended"."""
        fault, spec = self._table.fault, self._spec
        goes_on = (rows.done == 1) & ~last
        if goes_on.any():
            row = base + int(np.argmax(goes_on)) + 1
            raise fault(row, "episode", "must change after a row that is done, got the same episode again")
        found = rows.following.copy()
        given, final = "next_state" in self._table.columns, rows.h >= spec.horizon - 1
        if after is not None:
            found[~last & (found < 0)] = after.s[~last & (found < 0)]
            apart = ~last & (found != after.s)
            if apart.any():
                row = int(np.argmax(apart))
                message = f"must be the next row's state, {spec.states[after.s[row]]!r}, got {spec.states[found[row]]!r}"
                raise fault(base + row, "next_state", message)
        found[rows.done == 1] = spec.ended
        unknown = (found < 0) & ~final
        if given or "done" in self._table.columns:
            if unknown.any():
                what = "must say where the last row of an episode leads" if given else "must be true"
                more = "" if given else " in the last row of an episode, as there is no column for the next state"
                raise fault(base + int(np.argmax(unknown)), "next_state" if given else "done", f"{what}{more}, got none")
        found[found < 0] = spec.ended
        return found

    def log(self) -> Log:
        """Return what was counted."""
        spec = self._spec
        h, s, a = spec.horizon, spec.ended, np.arange(spec.n_actions)
        cells = ((np.arange(h)[:, None] * spec.n_states + s) * spec.n_actions + a).ravel()
        zero = int(spec.round_reward(0.0))
        known = self._outcomes.number((cells * spec.n_states + s) * (spec.reward_steps + 1) + zero)
        ranks, keys = self._outcomes.ranks(), self._outcomes.keys
        pairs, steps = np.divmod(keys, spec.reward_steps + 1)
        cell, following = np.divmod(pairs, spec.n_states)
        first = np.zeros(spec.horizon * spec.n_states * spec.n_actions + 1, dtype=np.int64)
        np.cumsum(np.bincount(cell, minlength=first.size - 1), out=first[1:])
        rows_a_step = spec.n_states * spec.n_actions
        reward = steps / spec.reward_steps
        shape = (spec.horizon, spec.n_states, spec.n_actions)
        table = Outcomes(*shape, rows_a_step, 0, first, following.astype(np.int32), reward)
        slots = self._slots.sparse()
        number = min(BLOCKS, self._episodes)
        blocks = Blocks(number, table, slots._replace(thing=ranks[slots.thing]), self._starts.sparse(), ranks[known])
        return Log(blocks, blocks.total(), self._rows, self._episodes, self._beyond, self._cut)

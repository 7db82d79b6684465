"""Words: what stands in the columns of a log, checked, as numbers."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, ReprlError, quote
from reprl.sources.logs.spec import MISSING, NUMERAL, LogSpec, text_of
from reprl.sources.logs.tables import Coded, Table, Unhashable
from reprl.storage.documents import MAX_TEXT

MOST_LABELS = 1 << 22
"""Labels of a column, at most."""
_MOST_RUNS = 256
"""Runs of numbered episodes that are kept as such."""
_TRUTHS = {
    **dict.fromkeys(("true", "1", "yes", "t", "y"), 1),
    **dict.fromkeys(("false", "0", "no", "f", "n"), 0),
}
_COMMA = re.compile(r"-?[0-9]*,[0-9]+")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_KINDS = ((bool, "a truth value"), (int, "a number"), (float, "a number"), (str, "a text"), (bytes, "a text"))


class Words:
    """Turns the labels of one role into numbers, and refuses what is none."""

    def __init__(self, table: Table, role: str, known: tuple[str, ...] | None) -> None:
        self.index = None if known is None else {text: i for i, text in enumerate(known)}
        self.texts: dict[str, int] = {}
        """Labels found so far, where nobody has said which there are, and their numbers."""
        self._table, self._role = table, role
        self._kind = ""

    def check(self, column: Coded, base: int, used: NDArray[np.bool_] | None = None) -> list[str]:
        """Return the texts of a column's labels, empty for one of no row that is used; what is no label is refused."""
        if used is None and (plain := self._plain(column.labels)) is not None:
            return plain
        codes = column.codes if used is None else np.where(used, column.codes, -1)
        present = np.bincount(codes[codes >= 0], minlength=len(column.labels)) > 0
        texts = [""] * len(column.labels)
        for number in np.flatnonzero(present):
            label = column.labels[number]
            kind = next((name for cls, name in _KINDS if isinstance(label, cls)), f"a {type(label).__name__}")
            if isinstance(label, str) and NUMERAL.fullmatch(label):
                kind = self._kind  # 3 and "3" are one label
            self._kind = self._kind or kind
            try:
                if kind != self._kind:
                    raise InputError(f"must be {self._kind}, as in the rows before, got {kind}, {quote(label)}")
                if isinstance(label, Unhashable):
                    raise InputError(f"must be a label that can be hashed, got {label!s}")
                texts[number] = text_of("label", label)
            except ReprlError as error:
                row = base + int(np.argmax(codes == number))
                raise self._table.fault(row, self._role, str(error)) from None
        return texts

    def _plain(self, labels: list[Any]) -> list[str] | None:
        """Return the texts of labels that need no second look, which are most: whole numbers, or short texts."""
        kinds = set(map(type, labels))
        if kinds not in ({int}, {str}) or self._kind not in ("", dict(_KINDS)[kinds.pop()]):
            return None
        texts = list(map(str, labels))
        if isinstance(labels[0], str):
            texts = [text_of("label", text) if "." in text else text for text in texts if len(text) <= MAX_TEXT]
        if len(texts) < len(labels) or not all(texts) or max(map(len, texts)) > MAX_TEXT:
            return None
        self._kind = dict(_KINDS)[type(labels[0])]
        return texts

    def missing(self, codes: NDArray[np.int64], base: int) -> None:
        """Refuse a row in which nothing stands."""
        if (codes < 0).any():
            message = "must not be empty, got nothing: leave the episode out, or give what is missing a label"
            raise self._table.fault(base + int(np.argmax(codes < 0)), self._role, message)

    def limit(self, base: int) -> None:
        """Refuse more labels than can be told apart."""
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
            known = ", ".join(quote(text, 20) for text in list(self.index)[:5]) + (", …" if len(self.index) > 5 else "")
            label = quote(column.labels[column.codes[row]])
            message = f"must be one of the {len(self.index)} labels that are known ({known}), got {label}"
            raise self._table.fault(base + row, self._role, message)
        return found


def blank_missing(column: Coded, named: Container[str] = ()) -> Coded:
    """Return a column in which texts that stand for nothing, such as "NA", are nothing, unless they are named."""
    nothing = [
        i
        for i, label in enumerate(column.labels)
        if isinstance(label, str) and label.strip() in MISSING and label not in named
    ]
    if not nothing:
        return column
    return Coded(np.where(np.isin(column.codes, nothing), -1, column.codes), column.labels)


def read_allowed(path: str | os.PathLike[str], columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Read which actions may be taken in which states: a file with a row for each pair, in columns as the log's."""
    from reprl.sources.logs.arrow import open_file

    table = open_file(Path(path), {role: (columns[role], True) for role in ("state", "action")}, "allowed")
    words = {role: Words(table, role, None) for role in ("state", "action")}
    found: dict[str, dict[str, None]] = {}
    row = 0
    for chunk in table.chunks():
        for role in words:
            words[role].missing(chunk[role].codes, row)
        states, actions = (words[role].check(chunk[role], row) for role in words)
        pairs = np.unique(np.stack([chunk["state"].codes, chunk["action"].codes]), axis=1)
        for s, a in pairs.T.tolist():
            found.setdefault(text_of("allowed", states[s]), {})[text_of("allowed", actions[a])] = None
        row += chunk["state"].codes.size
    if not row:
        raise InputError(f"{table.name} must have at least one row, got none")
    return {state: tuple(some) for state, some in found.items()}


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Return labels, each once: numbers in order, then texts in theirs."""

    def place(text: str) -> tuple[bool, int, str]:
        whole = _WHOLE.fullmatch(text)
        return (not whole, int(text) if whole else 0, text)

    return tuple(sorted(set(texts), key=place))


class Episodes:
    """Tells where episodes begin, and the step of every row."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._words = Words(table, "episode", None)
        self._last = ""
        self._h = -1
        self._first: int | None = None
        self._seen: list[NDArray[np.uint64]] = []
        self._runs: list[tuple[int, int]] = []
        """First and last of episodes that are numbered one after the other."""

    def follow(self, column: Coded, step: Coded | None, base: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
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
        """Refuse an episode that was left and comes again."""
        rows = np.flatnonzero(fresh)
        hashes = _hashes([texts[code] for code in codes[rows]])
        again = np.zeros(rows.size, dtype=np.bool_)
        for low, high in self._runs:
            again |= (hashes >= np.uint64(low)) & (hashes <= np.uint64(high))
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
        self._remember(unique)

    def _remember(self, hashes: NDArray[np.uint64]) -> None:
        """Keep 8 bytes of each episode; two numbers of all, where they are numbered one after the other."""
        if not hashes.size:
            return
        low, high = int(hashes[0]), int(hashes[-1])
        follows = bool(self._runs) and self._runs[-1][1] + 1 == low
        if high - low + 1 == hashes.size and high < 2**63 and (follows or len(self._runs) < _MOST_RUNS):
            self._runs.append((self._runs.pop()[0] if follows else low, high))
            return
        self._seen.append(hashes)
        while len(self._seen) > 1 and self._seen[-2].size <= 2 * self._seen[-1].size:
            self._seen[-2:] = [both := np.concatenate(self._seen[-2:])]
            both.sort()

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


def _hashes(texts: list[str]) -> NDArray[np.uint64]:
    """Numbers in place of texts: of a whole number itself, of others 64 bits of a hash with the highest one set."""
    out = np.empty(len(texts), dtype=np.uint64)
    for i, text in enumerate(texts):
        if len(text) < 18 and text.isascii() and text.isdigit() and (text[0] != "0" or text == "0"):
            out[i] = int(text)
        else:
            data = text.encode("utf-8", "surrogatepass")
            out[i] = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") | 2**63
    return out


def _shown(column: Coded, row: int) -> str:
    code = column.codes[row]
    return "nothing" if code < 0 else quote(column.labels[code])


def read_truths(table: Table, column: Coded, base: int, role: str = "done") -> NDArray[np.int64]:
    """Return 1 for true and 0 for not."""
    known = [
        _TRUTHS.get(str(text_of(role, x)).strip().lower(), -1) if x not in (None, "") else -1 for x in column.labels
    ]
    found = np.array([*known, -1], dtype=np.int64)[column.codes]
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise table.fault(base + row, role, f"must be true or false, 1 or 0, got {_shown(column, row)}")
    return found


def read_numbers(table: Table, values: NDArray[Any]) -> NDArray[np.float64]:
    """Return rewards as numbers, NaN for what is none; decimal commas are read where no comma separates columns."""
    if values.dtype.kind in "iufb":
        return values.astype(np.float64)
    numbers = np.full(values.size, np.nan)
    for i, value in enumerate(values.tolist()):
        if table.decimal == "," and isinstance(value, str):
            value = value.replace(",", ".", 1)
        with suppress(TypeError, ValueError, OverflowError):
            numbers[i] = float(value)
    return numbers


def read_rewards(table: Table, spec: LogSpec, values: NDArray[Any], base: int) -> NDArray[np.int64]:
    """Return rewards as steps of the grid; what is no number within the range is refused."""
    numbers = read_numbers(table, values)
    if values.dtype.kind not in "iufb" and np.isnan(numbers).any():
        row = int(np.argmax(np.isnan(numbers)))
        value = values[row]
        if not isinstance(value, float | np.floating) or value == value:
            comma = isinstance(value, str) and _COMMA.fullmatch(value.strip())
            advice = " (decimal commas are read where ';' separates the columns)" if comma else ""
            raise table.fault(base + row, "reward", f"must be a number, got {quote(value)}{advice}")
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


def near_duplicates(texts: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return labels that differ by case, blanks, dashes or the form of a number alone, group by group."""
    groups: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        groups.setdefault(_folded(text), []).append(text)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _folded(text: str) -> str:
    seen = "".join(sign for sign in unicodedata.normalize("NFKC", text) if unicodedata.category(sign) != "Cf")
    plain = " ".join(re.sub(r"[\s_\-]+", " ", seen.casefold()).split())
    negative = "-" if re.match(r"\s*-\s*[0-9.,]", text) else ""
    try:
        return negative + repr(float(plain.replace(",", ".")))
    except ValueError:
        return negative + plain

"""Scan: what a log holds, before anything is believed of it: labels, lengths, ends, gaps and copies, in one reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError
from reprl.sources.logs.ends import DONE, FLAGS, TERMINATED, Lengths, combine_flags
from reprl.sources.logs.label_encoding import Words, blank_missing, in_order, read_numbers, read_truths
from reprl.sources.logs.spec import MISSING
from reprl.sources.logs.tables import Chunk, Coded, Table

RUN = 4
"""Episodes of a run."""
DIFFERENT = 20
"""Contents, from which on chance does not let all of them occur a multiple of some number of times."""
MOST_HASHES = 1 << 20
"""Episodes whose contents are compared; of more, a share that is chosen by contents, so that copies stay together."""
CODES = (99.0, 999.0, 9999.0, 99999.0, 999999.0)
"""Rewards that often stand for nothing, with either sign."""
_LABELLED = ("state", "action", "next_state")


class Copies(NamedTuple):
    """How many episodes have the same content: all that stands in their rows, but for the episode's name."""

    pairs: float
    """Pairs of equal episodes."""
    runs: float
    """Pairs of equal runs of RUN episodes that follow each other, as a block that was copied has them."""
    neighbours: int
    """Episodes that are equal to the one before."""
    factor: int
    """How many times, or a multiple of it, every content occurs; 1 where contents are few."""
    bare_pairs: float
    """Pairs of episodes that are equal but for their rewards."""
    bare_runs: float
    """Pairs of runs that are."""
    bare_factor: int
    """As the factor, rewards left out."""


class Scan(NamedTuple):
    """What a log holds."""

    rows: int
    lengths: Lengths
    labels: dict[str, dict[str, int]]
    """Role → label → in how many rows it stands; next states of rows that are over do not count."""
    stopped: frozenset[str]
    """Next states of rows that are done, where no column tells an end from a time limit."""
    missing: dict[str, tuple[int, int]]
    """Column → in how many rows nothing stands, and the first of them, from 0."""
    pairs: dict[tuple[str, str], int]
    """(state, action) → rows."""
    rewards: tuple[float, float]
    """The least and the largest that is a finite number."""
    copies: Copies
    changes: tuple[int, int, int]
    """Rows whose reward is more than the one before in the episode, which is not 0; less; and rows before which it
    changed twice in one direction."""
    codes: dict[float, int]
    """Rewards that often stand for nothing → rows."""
    usual: float
    """The largest absolute value of all others."""

    @property
    def episodes(self) -> int:
        """All of them."""
        return self.lengths.episodes


def find_labels(
    table: Table,
    allowed: Mapping[str, Iterable[str]] | None = None,
    named: Iterable[str] = (),
    *,
    stopped: bool = False,
) -> dict[str, tuple[str, ...]]:
    """Return the labels of states and actions that a log, or a mask, holds: numbers in order, then texts in theirs.

    Args:
        table: the log.
        allowed: a mask, by labels.
        named: labels that stand for something though they look like nothing.
        stopped: whether next states of rows that are done count, as those of a time limit do.
    """
    mask = allowed or {}
    taken = [text for some in mask.values() for text in some]
    found = scan_of(table, (*named, *mask, *taken))
    after = found.stopped if stopped else ()
    states = (*found.labels["state"], *found.labels.get("next_state", ()), *after, *mask)
    return {"states": in_order(states), "actions": in_order((*found.labels["action"], *taken))}


def scan_of(table: Table, named: Iterable[str] = ()) -> Scan:
    """Scan a log, once; named are labels that stand for something even where they look like nothing, such as "None"."""
    odd = MISSING.intersection(named)
    for known, scan in table.found or ():
        if known == odd:
            found: Scan = scan
            return found
    scan = _scan(table, odd)
    if table.found is not None:
        table.found.append((odd, scan))
    return scan


def _scan(table: Table, odd: frozenset[str]) -> Scan:
    scanning = _Scanning(table, odd)
    for chunk in table.chunks():
        if chunk["episode"].codes.size:
            scanning.add(chunk)
    if not scanning.rows:
        raise InputError(f"{table.name} must have at least one row, got none")
    return scanning.scan()


class Numbered:
    """Labels of one role, numbered as they turn up, with how often each came."""

    def __init__(self, table: Table, role: str) -> None:
        self.words, self.role = Words(table, role, None), role
        self.count = np.zeros(0, dtype=np.int64)

    def add(self, column: Coded, base: int, used: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the numbers of a column's labels, −1 for nothing, and count those of rows that are used."""
        texts = self.words.texts
        found = self.words.check(column, base, used)
        places = [texts.setdefault(text, len(texts)) if text else -1 for text in found]
        self.words.limit(base)
        out = np.array([*places, -1], dtype=np.int64)[column.codes]
        seen = out if used is None else out[used]
        more = np.bincount(seen[seen >= 0], minlength=len(texts))
        more[: self.count.size] += self.count
        self.count = more
        return out

    def counts(self) -> dict[str, int]:
        """Return how often each label came, of those that stand for something."""
        counted = zip(self.words.texts, self.count.tolist(), strict=True)
        return {text: count for text, count in counted if count}


class _Scanning:
    """Scans chunks."""

    def __init__(self, table: Table, odd: frozenset[str]) -> None:
        self._table, self._odd = table, odd
        self._numbered = {role: Numbered(table, role) for role in _LABELLED if role in table.columns}
        self._stopped = Numbered(table, "next_state")
        self._missing: dict[str, tuple[int, int]] = {}
        self._pairs: dict[int, int] = {}
        self._lengths: dict[tuple[int, int], int] = {}
        self._contents, self._bare = Contents(), Contents()
        self._tail = np.full(2, np.nan)  # the last two rewards
        self._changes = np.zeros(3, dtype=np.int64)
        self._codes: dict[float, int] = {}
        self._usual = 0.0
        self._rewards = (np.inf, -np.inf)
        self.rows = 0
        self._last: Any = None
        self._open = (0, 0, np.zeros(2, dtype=np.uint64))  # rows, flag of the last, hashes of the episode that goes on

    def add(self, chunk: Chunk) -> None:
        """Take the next rows."""
        table, base = self._table, self.rows
        size = chunk["episode"].codes.size
        columns: Chunk = {
            role: column if role == "reward" else self._present(role, column) for role, column in chunk.items()
        }
        flags = {role: read_truths(table, columns[role], base, role) for role in FLAGS if role in columns}
        ends = combine_flags(flags, size)
        state, action = (self._numbered[role].add(columns[role], base) for role in ("state", "action"))
        following = np.full(size, -1, dtype=np.int64)
        if "next_state" in columns:
            over = (ends == TERMINATED) | (ends == DONE)
            following = self._numbered["next_state"].add(columns["next_state"], base, ~over)
            self._stopped.add(columns["next_state"], base, ends == DONE)
        reward = read_numbers(table, columns["reward"])
        self._see_rewards(reward)
        self._count_pairs(state, action)
        hashes = np.stack([row_hashes(state, action, paid, following, ends) for paid in (reward, np.zeros(size))])
        self._see_changes(reward, self._follow(columns["episode"], ends, hashes))
        self.rows += size

    def _present(self, role: str, column: Coded) -> Coded:
        column = blank_missing(column, self._odd)
        if role in ("episode", "state", "action"):
            self._miss(role, column.codes < 0)
        return column

    def _see_rewards(self, reward: NDArray[np.float64]) -> None:
        self._miss("reward", np.isnan(reward))
        finite = reward[np.isfinite(reward)]
        if finite.size:
            low, high = self._rewards
            self._rewards = (min(low, float(finite.min())), max(high, float(finite.max())))
            odd = np.isin(np.abs(finite), CODES)
            self._usual = max(self._usual, float(np.abs(finite[~odd]).max(initial=0.0)))
            for code, count in zip(*np.unique(finite[odd], return_counts=True), strict=True):
                self._codes[float(code)] = self._codes.get(float(code), 0) + int(count)

    def _see_changes(self, reward: NDArray[np.float64], step: NDArray[np.int64]) -> None:
        """Count how rewards change within episodes; step is that of every row."""
        known = np.concatenate([self._tail, reward])
        two, one, now = known[:-2], known[1:-1], known[2:]
        rises, falls = ((now > one), (now < one))
        again = (rises & (one > two)) | (falls & (one < two))
        told = (step > 0) & (one != 0.0)
        self._changes += [(rises & told).sum(), (falls & told).sum(), (again & told & (step > 1)).sum()]
        self._tail = known[-2:]

    def _miss(self, role: str, none: NDArray[np.bool_]) -> None:
        if none.any():
            name = self._table.columns[role]
            count, first = self._missing.get(name, (0, self.rows + int(np.argmax(none))))
            self._missing[name] = (count + int(none.sum()), first)

    def _count_pairs(self, state: NDArray[np.int64], action: NDArray[np.int64]) -> None:
        there = (state >= 0) & (action >= 0)
        keys, counts = np.unique((state[there] << 32) | action[there], return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            self._pairs[key] = self._pairs.get(key, 0) + count

    def _follow(self, column: Coded, ends: NDArray[np.int64], hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Tell episodes apart, count their lengths, ends and contents, and return the step of every row.

        hashes, (2, rows), are of all that stands in a row, and of all but the reward.
        """
        codes, labels = column.codes, column.labels
        first = labels[codes[0]] if codes[0] >= 0 else None
        fresh = np.diff(codes, prepend=-2) != 0
        fresh[0] = not self.rows or first != self._last
        self._last = labels[codes[-1]] if codes[-1] >= 0 else None
        begins = np.flatnonzero(fresh)
        rows, flag, total = self._open
        index = np.arange(codes.size)
        since = np.maximum.accumulate(np.where(fresh, index, -1))
        step = np.where(since >= 0, index - since, index + rows)
        mixed = mix(hashes + (step.astype(np.uint64) + np.uint64(1)) * _ODD)
        if begins.size and begins[0] == 0 and rows:
            self._close(np.array([rows]), np.array([flag]), total[:, None])
            rows, total = 0, np.zeros(2, dtype=np.uint64)
        lasts = np.append(begins[begins > 0] - 1, codes.size - 1)
        starts = np.concatenate([[0], lasts[:-1] + 1])
        sums = np.add.reduceat(mixed, starts, axis=1)
        sums[:, 0] += total
        lengths = lasts - starts + 1
        lengths[0] += rows
        self._close(lengths[:-1], ends[lasts[:-1]], sums[:, :-1])
        self._open = (int(lengths[-1]), int(ends[lasts[-1]]), sums[:, -1])
        return step

    def _close(self, lengths: NDArray[Any], ends: NDArray[Any], hashes: NDArray[np.uint64]) -> None:
        """Take finished episodes."""
        keys, counts = np.unique(lengths * 8 + ends + 1, return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            place = divmod(key, 8)
            self._lengths[place] = self._lengths.get(place, 0) + count
        whole, bare = mix(hashes + lengths.astype(np.uint64))
        self._contents.add(whole)
        self._bare.add(bare)

    def scan(self) -> Scan:
        """Return what was found."""
        rows, flag, total = self._open
        self._close(np.array([rows]), np.array([flag]), total[:, None])
        lengths = sorted({length for length, _ in self._lengths})
        number = np.zeros((len(lengths), 5), dtype=np.int64)
        place = {length: i for i, length in enumerate(lengths)}
        for (length, end), found in self._lengths.items():
            number[place[length], end] = found
        states, actions = (list(self._numbered[role].words.texts) for role in ("state", "action"))
        pairs = {(states[key >> 32], actions[key & (2**32 - 1)]): rows for key, rows in self._pairs.items()}
        all_, bare = self._contents, self._bare
        same = (all_.pairs(), all_.runs.pairs(), all_.neighbours, all_.factor())
        copies = Copies(*same, bare.pairs(), bare.runs.pairs(), bare.factor())
        return Scan(
            rows=self.rows,
            lengths=Lengths(np.array(lengths, dtype=np.int64), number),
            labels={role: numbered.counts() for role, numbered in self._numbered.items()},
            stopped=frozenset(self._stopped.counts()),
            missing=self._missing,
            pairs=pairs,
            rewards=self._rewards if self._rewards[0] <= self._rewards[1] else (0.0, 0.0),
            copies=copies,
            changes=(int(self._changes[0]), int(self._changes[1]), int(self._changes[2])),
            codes=self._codes,
            usual=self._usual,
        )


class Repeats:
    """Which of many 64-bit hashes occur more than once: a share of the hashes, chosen by themselves, is kept."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: list[NDArray[np.uint64]] = []
        self._size = self._shift = 0

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Take hashes that are spread evenly."""
        self._kept.append(self._chosen(hashes))
        self._size += self._kept[-1].size
        while self._size > MOST_HASHES:
            self._shift += 1
            self._kept = [self._chosen(np.concatenate(self._kept))]
            self._size = self._kept[0].size

    def _chosen(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return hashes[hashes >> np.uint64(64 - self._shift) == 0] if self._shift else hashes

    def times(self) -> NDArray[np.int64]:
        """Return how often each hash occurs, of those that are kept."""
        if not self._kept:
            return np.zeros(0, dtype=np.int64)
        return np.unique(np.concatenate(self._kept), return_counts=True)[1].astype(np.int64)

    def pairs(self) -> float:
        """Return how many pairs of equal hashes there are, by those that are kept."""
        times = self.times()
        return float((times * (times - 1) // 2).sum()) * 2.0**self._shift


class Contents(Repeats):
    """Contents of episodes in order: which come more than once, alone, after themselves, or in runs."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.runs, self.neighbours = Repeats(), 0
        self._before = np.empty(0, dtype=np.uint64)  # of the last episodes

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Take those of the next episodes."""
        row = np.concatenate([self._before, hashes])
        new = row.size - hashes.size
        super().add(hashes)
        self.neighbours += int((row[max(new, 1) :] == row[max(new, 1) - 1 : -1]).sum())
        size = row.size - RUN + 1
        if size > 0:
            run = np.zeros(size, dtype=np.uint64)
            for i in range(RUN):
                run = mix(run + _ODD) + row[i : i + size]
            self.runs.add(mix(run))
        self._before = row[-(RUN - 1) :]

    def factor(self) -> int:
        """Return how many times, or a multiple of it, every content occurs; 1 where contents are few."""
        times = self.times()
        return int(np.gcd.reduce(times)) if times.size >= DIFFERENT else 1


_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64 bits that look random, for each word: the finish of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * _MIX[0]
    words = (words ^ (words >> np.uint64(27))) * _MIX[1]
    return words ^ (words >> np.uint64(31))


def row_hashes(
    state: NDArray[np.int64],
    action: NDArray[np.int64],
    reward: NDArray[np.float64],
    following: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.uint64]:
    """Return a hash of what stands in every row, but for its episode."""
    out = np.ascontiguousarray(reward + 0.0).view(np.uint64)
    for column in (state, action, following, ends):
        out = mix(out + _ODD) + column.astype(np.uint64)
    return mix(out + _ODD)

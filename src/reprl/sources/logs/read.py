"""Reading: every row of a log is checked, and counted; nothing is kept of it but counts by blocks of whole episodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError
from reprl.mdp.dynamics import Data
from reprl.mdp.homogeneity import StepCounts
from reprl.mdp.outcomes import Outcomes
from reprl.sources.logs.block_bootstrap import BLOCKS, FEWEST, MOST_PAIRS, Blocks, Digits, Numbering, Tally
from reprl.sources.logs.ends import FLAGS, GOES_ON, TRUNCATED, Reading, combine_flags, resolve_ends
from reprl.sources.logs.label_encoding import Episodes, Words, blank_missing, read_rewards, read_truths
from reprl.sources.logs.scan import scan_of
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import Chunk, Table


class Log(NamedTuple):
    """What a log holds."""

    blocks: Blocks
    data: Data
    rows: int
    """Transitions that count."""
    episodes: int
    beyond: int
    """Rows that were left out: after the horizon, or at its last step where such a row tells about every step and does
    not say where it led."""
    cut: int
    """Episodes that stop, before the horizon if there is one, without being done: what followed is not known, and not
    made up."""
    steps: StepCounts | None = None
    """Which steps outcomes came at, where rows tell about all of them."""
    late: NDArray[np.int64] | None = None
    """How often each outcome came in the second half of the episodes."""


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
    ends: NDArray[np.int64]
    """What the row's flags say of the episode's end: one of ``reprl.sources.logs.ends``."""

    def part(self, which: slice) -> _Rows:
        columns: list[Any] = [column[which] for column in self]
        return _Rows(*columns)

    def then(self, other: _Rows) -> _Rows:
        columns: list[Any] = [np.concatenate(pair) for pair in zip(self, other, strict=True)]
        return _Rows(*columns)


def read_log(table: Table, spec: LogSpec, *, pooled: bool = False) -> Log:
    """Read a log whole.

    Args:
        table: its rows; those of an episode stand together, in order.
        spec: the world that it is a log of.
        pooled: whether a row tells about every step, not only its own. One at the last step then counts only where the
            log has a column of next states: else it does not say where it led, which is of account to the others.

    Guarantee:
        Every row is checked, and counted or refused by an error that names file, row and column. Memory is bounded by a
        chunk, 8 bytes an episode unless they are numbered one after the other, and 28 bytes for each of MOST_PAIRS, or
        of FEWEST times the number of outcomes where that is more, and 20 for each outcome; if pooled, 20 bytes more
        for each outcome and binary digit of a step, and some 100 for each outcome.
    """
    lengths = scan_of(table, (*spec.states, *spec.actions)).lengths
    reading = resolve_ends(table, spec, lengths, pooled=pooled)
    counting = _Counting(table, spec, reading, lengths.episodes // 2, pooled=pooled)
    held: _Rows | None = None
    row = 0
    for rows in _translate(table, spec, reading):
        block = rows if held is None else held.then(rows)
        base = row - (held is not None)
        counting.add(block.part(slice(None, -1)), block.part(slice(1, None)), base)
        held = block.part(slice(-1, None))
        row += rows.h.size
    assert held is not None  # the scan found rows
    counting.add(held, None, row - 1)
    if reading.problem:  # after what is wrong with single rows
        raise InputError(reading.problem)
    return counting.log()


def _translate(table: Table, spec: LogSpec, reading: Reading) -> Iterator[_Rows]:
    """Yield the rows of every chunk in numbers."""
    known = {"state": spec.states, "action": spec.actions, "next_state": spec.states}
    words = {role: Words(table, role, labels) for role, labels in known.items()}
    episodes = Episodes(table)
    base, named = 0, {*spec.states, *spec.actions}
    for raw in table.chunks():
        size = raw["episode"].codes.size
        if not size:
            continue
        chunk: Chunk = {
            role: column if role == "reward" else blank_missing(column, named) for role, column in raw.items()
        }
        fresh, h = episodes.follow(chunk["episode"], chunk.get("step"), base)
        ends = combine_flags(
            {role: read_truths(table, chunk[role], base, role) for role in FLAGS if role in chunk}, size
        )
        for role in ("state", "action"):
            words[role].missing(chunk[role].codes, base)
        state, action = (words[role].numbers(chunk[role], base) for role in ("state", "action"))
        following = np.full(size, -1, dtype=np.int64)
        if "next_state" in chunk:
            following = words["next_state"].numbers(chunk["next_state"], base, ~reading.is_over(ends, h))
        yield _Rows(
            fresh=fresh,
            h=h,
            s=state,
            a=action,
            following=following,
            reward=read_rewards(table, spec, chunk["reward"], base),
            ends=ends,
        )
        base += size


class _Counting:
    """Counts checked rows."""

    def __init__(self, table: Table, spec: LogSpec, reading: Reading, half: int, *, pooled: bool) -> None:
        self._half, self._late = half, Digits()
        self._table, self._spec, self._pooled, self._mask = table, spec, pooled, spec.mask()
        self._reading = reading
        self._outcomes, self._slots, self._starts, self._digits = Numbering(), Tally(), Tally(), Digits()
        self._episodes = self._pieces = self._rows = self._beyond = self._cut = 0
        self._blocks = BLOCKS

    def add(self, rows: _Rows, after: _Rows | None, base: int) -> None:
        """Count rows, each with the row that comes after it; None: the log ends here."""
        if not rows.h.size:
            return
        last = np.ones(1, dtype=np.bool_) if after is None else after.fresh
        following = self._following(rows, after, last, base)
        self._check_allowed(rows, base)
        spec, kept = self._spec, rows.h < self._reading.kept
        begins = kept & (rows.h % spec.piece == 0)
        block = (self._pieces + np.cumsum(begins) - 1) % self._blocks
        self._pieces += int(begins.sum())
        kept &= following >= 0
        late = self._episodes + np.cumsum(rows.fresh) > self._half
        self._episodes += int(rows.fresh.sum())
        self._beyond += int((~kept).sum())
        self._rows += int(kept.sum())
        self._cut += int((last & (following != spec.ended) & (rows.h < spec.kept - 1)).sum())
        cell = (rows.h * (not self._pooled) * spec.n_states + rows.s) * spec.n_actions + rows.a
        key = (cell * spec.n_states + following) * (spec.reward_steps + 1) + rows.reward
        numbers = self._outcomes.number(key[kept])
        self._slots.add(block[kept], numbers)
        self._late.add(late[kept].astype(np.int64), numbers)
        if self._pooled:
            self._digits.add(rows.h[kept], numbers)
        self._starts.add(block[rows.fresh], rows.s[rows.fresh])
        while self._blocks >= 2 * FEWEST and self._slots.exceeds(MOST_PAIRS):
            self._blocks //= 2
            for tally in (self._slots, self._starts):
                tally.fold(self._blocks)

    def _check_allowed(self, rows: _Rows, base: int) -> None:
        """Refuse a row that does what may not be done."""
        if self._mask is None:
            return
        out = ~self._mask[0, rows.s, rows.a]
        if out.any():
            row, spec = int(np.argmax(out)), self._spec
            state, action = spec.states[rows.s[row]], spec.actions[rows.a[row]]
            raise self._table.fault(base + row, "action", f"must be allowed in state {state!r}, got {action!r}")

    def _following(self, rows: _Rows, after: _Rows | None, last: NDArray[np.bool_], base: int) -> NDArray[np.int64]:
        """Return the state after every row: as it says, as the next row says, or "ended"; −1 to leave the row out."""
        fault, spec = self._table.fault, self._spec
        reading = self._reading
        goes_on = (rows.ends > GOES_ON) & ~last
        if goes_on.any():
            row = base + int(np.argmax(goes_on)) + 1
            raise fault(row, "episode", "must change after a row that is done, got the same episode again")
        found = rows.following.copy()
        final = rows.h >= reading.final
        if after is not None:
            found[~last & (found < 0)] = after.s[~last & (found < 0)]
            apart = ~last & (found != after.s)
            if apart.any():
                row = int(np.argmax(apart))
                message = (
                    f"must be the next row's state, {spec.states[after.s[row]]!r}, got {spec.states[found[row]]!r}"
                )
                raise fault(base + row, "next_state", message)
        early = last & (rows.ends <= GOES_ON) & ~final
        found[reading.is_over(rows.ends, rows.h) | (early & reading.over)] = spec.ended
        left = (found < 0) & ~final & ((rows.ends == TRUNCATED) | reading.censored | bool(reading.problem))
        unknown = (found < 0) & ~final & ~left
        if unknown.any():
            what = "must say where the last row of an episode leads, or early_ends what that means"
            raise fault(base + int(np.argmax(unknown)), "next_state", f"{what}, got none")
        found[(found < 0) & ~left] = spec.ended
        return found

    def log(self) -> Log:
        """Return what was counted."""
        spec = self._spec
        h, s, a = 1 if self._pooled else spec.horizon, spec.ended, np.arange(spec.n_actions)
        cells = ((np.arange(h)[:, None] * spec.n_states + s) * spec.n_actions + a).ravel()
        zero = int(spec.round_reward(0.0))
        known = self._outcomes.number((cells * spec.n_states + s) * (spec.reward_steps + 1) + zero)
        ranks, keys = self._outcomes.ranks(), self._outcomes.keys
        pairs, steps = np.divmod(keys, spec.reward_steps + 1)
        cell, following = np.divmod(pairs, spec.n_states)
        first = np.zeros(h * spec.n_states * spec.n_actions + 1, dtype=np.int64)
        np.cumsum(np.bincount(cell, minlength=first.size - 1), out=first[1:])
        rows_a_step = 0 if self._pooled else spec.n_states * spec.n_actions
        reward = steps / spec.reward_steps
        shape = (spec.horizon, spec.n_states, spec.n_actions)
        table = Outcomes(*shape, rows_a_step, 0, first, following.astype(np.int32), reward)
        number = min(self._blocks, self._pieces)
        slots, starts = self._slots.sparse(number, ranks), self._starts.sparse(number)
        blocks = Blocks(number, table, slots, starts, ranks[known], self._mask, spec.criterion)
        apart = self._at_steps(cell, table, ranks) if self._pooled else None
        late = self._late.named(ranks)[1:].sum(axis=0)
        return Log(blocks, blocks.total(), self._rows, self._episodes, self._beyond, self._cut, apart, late)

    def _at_steps(self, cell: NDArray[np.int64], table: Outcomes, ranks: NDArray[np.int64]) -> StepCounts:
        """Return which steps the outcomes of a pooled table came at."""
        hits, digits = self._digits.named(ranks), (self._reading.kept - 1).bit_length()
        shape = (self._digits.steps, table.n_states, table.n_actions)
        return StepCounts(cell, table.next_state, table.reward, hits[0], hits[1:], digits, shape)

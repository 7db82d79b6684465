"""Ends: whether the last row of an episode ends it, or only ends what was recorded of it.

An episode is *terminated* when it is over: nothing is earned afterwards. It is *truncated* when a time limit stopped
it, and *censored* when it was no longer observed. What follows the last two is not known, and is not made up: the row
says where it led if there is a column of next states, and is left out if there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import Table

GOES_ON, TERMINATED, TRUNCATED, DONE = range(4)
"""What the flags of a row say: nothing; that the episode is over; that a time limit stopped it; or one of the two, as a
column `done` alone does."""
UNSAID = -1
"""In a log without any such column."""
FLAGS = ("done", "terminated", "truncated")
CHANCE = 1e-3
"""Chance below which it is no coincidence that all episodes that reach the largest length are done there."""


def combine_flags(flags: dict[str, NDArray[np.int64]], size: int) -> NDArray[np.int64]:
    """Return what every row says of its episode's end, from columns of 0 and 1 by role."""
    out = np.full(size, GOES_ON if flags else UNSAID, dtype=np.int64)
    done, over, stopped = (flags.get(role) for role in FLAGS)
    if done is not None:
        out[done == 1] = DONE if over is None and stopped is None else TERMINATED if over is None else TRUNCATED
    if stopped is not None:
        out[stopped == 1] = TRUNCATED
    if over is not None:
        out[over == 1] = TERMINATED
    return out


class Lengths(NamedTuple):
    """How many episodes have each length, by what their last row says."""

    length: NDArray[np.int64]
    """(n,), rising."""
    number: NDArray[np.int64]
    """(n, 5): unsaid, then GOES_ON to DONE."""

    @property
    def episodes(self) -> int:
        """All of them."""
        return int(self.number.sum())

    def said(self, *ends: int, below: int | None = None, at: int | None = None) -> int:
        """Count episodes whose last row says one of these, of a length below a bound or equal to one."""
        which = np.ones(self.length.size, dtype=np.bool_) if below is None else self.length < below
        if at is not None:
            which = self.length == at
        return int(self.number[which][:, [end + 1 for end in ends]].sum())

    def by_end(self, horizon: int) -> dict[str, int]:
        """Count episodes by how they end: flagged, early (before the horizon without a flag), or full (at it)."""
        flags = {"terminated": TERMINATED, "truncated": TRUNCATED, "done": DONE}
        ends = {name: self.said(end) for name, end in flags.items()}
        ends["early"] = self.said(UNSAID, GOES_ON, below=horizon)
        return {**ends, "full": self.episodes - sum(ends.values())}


class Reading(NamedTuple):
    """How the last rows of a log are read."""

    kept: int
    """Rows of an episode that count, from the first."""
    final: int
    """The first step whose successor is of no account."""
    limit: int = -1
    """The step at which DONE is a time limit, by the user's word: the row's next state counts; −1 for none."""
    over: bool = False
    """Whether an episode that stops early without a flag is over."""
    censored: bool = False
    """Whether such an episode was no longer observed: its last row is left out if it does not say where it led."""
    problem: str = ""
    """Why rows must be refused, where some are."""
    limited: bool = False
    """Whether it is that `done` looks like a time limit that nobody has declared."""
    sampled: bool = False
    """Whether the first step that does not count was read off the longest episode, as truncated ones without a next
    state make it: no proof covers that."""
    unclear: bool = False
    """Whether `done` may be an end as well as a time limit, in rows that tell about every step."""
    skewed: int = 0
    """Rows that are left out for having no successor, in a log in which others are kept because they ended: these then
    look more frequent than they are."""

    def is_over(self, ends: NDArray[np.int64], h: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether flags say that an episode is over, for rows of these steps."""
        over: NDArray[np.bool_] = (ends == TERMINATED) | ((ends == DONE) & (h != self.limit))
        return over


def resolve_ends(table: Table, spec: LogSpec, lengths: Lengths, *, pooled: bool) -> Reading:
    """Say how the last rows of a log are to be read.

    Args:
        table: which columns there are.
        spec: the world, and what was said about its ends.
        lengths: of its episodes.
        pooled: whether a row tells about every step.

    Guarantee:
        No row is read as the end of an episode unless a flag or the user says so. What `done` means follows from the
        columns and from what was declared, never from the rows: logs of any size are read alike, or refused. Rows are
        left out by their step, or by having no successor, never by what followed; where that cannot be, ``skewed``
        counts them.
    """
    given, endless = "next_state" in table.columns, spec.criterion.stationary
    flagged = any(role in table.columns for role in FLAGS)
    if endless and not given and not flagged and spec.early_ends is None:
        raise InputError(
            f"{table.name} must have a column next_state, done or terminated for a discount, as nothing else says "
            f"whether an episode ended with its last row, got {', '.join(table.columns.values())}"
        )
    must_say = endless or (pooled and spec.horizon > 1)
    longest = int(lengths.length[-1])
    kept = spec.kept - (must_say and not endless and not given)
    limit, at_limit, unclear = min(longest, spec.kept), -1, must_say and says_done_alone(table)
    declared = must_say and 1 < spec.kept < 2**62
    if declared and not given and "truncated" in table.columns:
        kept = min(kept, spec.kept - 1)
    if unclear and declared and spec.done_at_limit != "terminated":
        if given and spec.done_at_limit == "truncated":
            at_limit = spec.kept - 1
        else:  # by the step, whatever the rows say: some of them may have ended, others were stopped
            kept = min(kept, spec.kept - 1)
    sampled = not given and limit < spec.kept and limit > 1 and lengths.said(TRUNCATED, at=limit) > 0
    if sampled:
        kept = min(kept, limit - 1)
    final = kept if must_say else kept - 1 if kept == spec.kept else kept
    over = spec.early_ends == "terminated"
    left = 0 if given else lengths.said(TRUNCATED, below=final + 1)
    early = lengths.said(UNSAID, GOES_ON, below=final + 1)
    problem = ""
    if not given and early and spec.early_ends is None:
        problem = _early_problem(table, spec, lengths, early, flagged=flagged)
    limited = unclear and longest < spec.kept and spec.done_at_limit != "terminated" and seems_limited(lengths)
    if limited:
        problem = _limit_problem(table, lengths)
    left += early if not given and not over else 0
    skewed = left if lengths.said(TERMINATED, DONE, below=kept + 1) else 0
    return Reading(
        kept=kept,
        final=final,
        limit=at_limit,
        over=over,
        censored=spec.early_ends == "censored",
        problem=problem,
        limited=limited,
        sampled=sampled,
        unclear=unclear,
        skewed=skewed,
    )


def says_done_alone(table: Table) -> bool:
    """Whether `done` is the only flag, so that it may be an end as well as a time limit."""
    return "done" in table.columns and not {"terminated", "truncated"} & set(table.columns)


def seems_limited(lengths: Lengths) -> bool:
    """Whether all of the longest episodes are done where they stop, and the ends before do not explain it."""
    longest = int(lengths.length[-1])
    stopped = lengths.said(DONE, at=longest)
    if longest < 2 or stopped < max(2, int(lengths.number[-1].sum())):
        return False
    rows = int((np.minimum(lengths.length, longest - 1) * lengths.number.sum(axis=1)).sum())
    return bool(((lengths.said(DONE, below=longest) + 1) / (rows + 1)) ** stopped < CHANCE)


def _limit_problem(table: Table, lengths: Lengths) -> str:
    """Say that `done` looks like a time limit that nobody has declared."""
    longest, name = int(lengths.length[-1]), table.columns["done"]
    stopped = lengths.said(DONE, at=longest)
    return (
        f"{table.name} must say what {name!r} after {longest} rows is, got nothing: {stopped:,} of "
        f"{lengths.episodes:,} episodes come so far, and all of them are done there (horizon={longest} if a time limit "
        f"stops them, columns={{'truncated': {name!r}}} if it means that everywhere, done_at_limit='terminated' if "
        "they are over)"
    )


def _early_problem(table: Table, spec: LogSpec, lengths: Lengths, early: int, *, flagged: bool) -> str:
    """Say that episodes stop early and nothing says why."""
    episodes, longest = lengths.episodes, int(lengths.length[-1])
    stop = f"{early:,} of {episodes:,} episodes stop before step {min(spec.kept, longest + 1):,}"
    if not flagged and longest < spec.kept and early == episodes:
        stop = f"all episodes stop before the horizon {spec.kept}, the longest after {longest} rows"
    why = "their last row is not done" if flagged else "no column says why"
    columns = "next_state" if flagged else "next_state, terminated or done"
    return (
        f"{table.name} must say how its episodes end, got none: {stop}, and {why} (early_ends='terminated' if they "
        f"were over, 'censored' if they were no longer observed; or add a column {columns})"
    )

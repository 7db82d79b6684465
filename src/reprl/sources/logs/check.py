"""check_log: what is wrong or odd with a log, before anything is learned from it, and what to do about it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from reprl.errors import InputError, ReprlError, check_int, quote
from reprl.execution.settings import Progress
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import check_discount
from reprl.mdp.homogeneity import BINS, LEVEL, Tallies, bet
from reprl.sources.logs.copies import copied_episodes, count_copies
from reprl.sources.logs.ends import DONE, FLAGS, GOES_ON, UNSAID, Lengths, Reading, resolve_ends
from reprl.sources.logs.label_encoding import near_duplicates
from reprl.sources.logs.read import Log, read_log
from reprl.sources.logs.scan import Scan, find_labels, scan_of
from reprl.sources.logs.spec import LogSpec, check_labels
from reprl.sources.logs.tables import Table, watched_table

SEVERITIES = ("error", "bias", "warning", "note")
"""What a finding means: the log is refused; results would be wrong, or intervals too short; results may not be what you
think; nothing is wrong."""
SHARE = 0.05
"""Share, relative to the most usual action, below which an action hardly is taken."""
LEAST = 100
"""Episodes, or pieces of them where there is no last step, from which on a rehearsal says anything: redrawn logs of one
episode are all alike."""
TOTALS = 20
"""Rows after two changes in one direction, from which on rewards that only ever change so look like a running total."""
FAR = 5.0
"""How many times as large as all others a code must be to look like one."""
PLACEHOLDERS = frozenset(("?", ".", "na", "n/a", "#n/a", "nan", "-99", "-999", "-9999"))
"""Labels, in small letters, that often stand for nothing."""
_FLAG_LIKE = re.compile(
    r"(is_?)?(terminal|terminals|termination|terminations|timeouts?|truncations?|dones?|end|ended)", re.I
)


class Finding(NamedTuple):
    """One thing that was found."""

    severity: str
    """One of SEVERITIES."""
    what: str
    recipe: str = ""
    """What to do, in a line."""

    def __str__(self) -> str:
        """Severity, finding and recipe in a line."""
        return f"{self.severity}: {self.what}{f' → {self.recipe}' if self.recipe else ''}"


@dataclass(frozen=True, kw_only=True)
class LogCheck:
    """What a log holds, and what is wrong or odd with it."""

    name: str
    rows: int
    episodes: int
    lengths: Mapping[str, int]
    """Rows of the shortest, the median and the longest episode."""
    ends: Mapping[str, int]
    """Episodes by how they end: terminated, truncated, done (one of the two), early (none, before the horizon) and full
    (none, at the horizon or after it)."""
    columns: Mapping[str, str]
    """Role → column."""
    unused: tuple[str, ...]
    """Columns without a role."""
    missing: Mapping[str, int]
    """Column → rows in which nothing stands."""
    n_states: int
    n_actions: int
    near_duplicates: Mapping[str, tuple[tuple[str, ...], ...]]
    """Role → labels that differ by case, blanks or form alone."""
    copies: Mapping[str, float]
    """Pairs of episodes with the same content, pairs of equal runs of them, episodes equal to the one before, how many
    times every content occurs, and how many pairs the log's own law explains; −1 where that is not known."""
    support: Mapping[str, float]
    """Pairs of a state and an action: possible, seen, supported; and the share of rows that the threshold removes."""
    practice: Mapping[str, float]
    """How random the behaviour is: the share of rows that do what is most usual in their state, the number of actions
    that are in effect taken in a state, and states in which only one ever is."""
    rewards: tuple[float, float]
    """The least and the largest."""
    findings: tuple[Finding, ...]
    """The worst first."""

    @property
    def worst(self) -> Finding | None:
        """The worst finding, unless it is a note."""
        return next((finding for finding in self.findings if finding.severity != "note"), None)

    @property
    def biased(self) -> bool:
        """Whether the log would be refused, or results would be wrong."""
        return self.worst is not None and self.worst.severity in ("error", "bias")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        document = asdict(self)
        document["findings"] = [finding._asdict() for finding in self.findings]
        document["rewards"] = list(self.rewards)
        document["unused"] = list(self.unused)
        document["near_duplicates"] = {role: [list(g) for g in groups] for role, groups in self.near_duplicates.items()}
        return {**document, "biased": self.biased}

    def __repr__(self) -> str:
        """The log in a line, with the worst finding."""
        found = "nothing is wrong" if self.worst is None else str(self.worst)
        return f"LogCheck({self.rows:,} rows, {self.episodes:,} episodes; {found})"


def check_log(
    log: Any,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    columns: Mapping[str, str | None] | None = None,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    reward_range: tuple[float, float] | None = None,
    stationary: bool = False,
    early_ends: str | None = None,
    done_at_limit: str | None = None,
    progress: bool | Progress = False,
) -> LogCheck:
    """Say what a log holds, and what is wrong or odd with it, before anything is learned from it.

    Args:
        log: as for ``learn_log``; so are all others.
        horizon: None, without a discount, for the longest episode.
        discount: γ.
        columns: role → column.
        states: all labels; None for those in the log.
        actions: the same.
        reward_range: None for what the log holds, which is then named.
        stationary: whether every row tells about all steps.
        early_ends: what episodes are that stop early without a flag.
        done_at_limit: what `done` at the last step says.
        progress: True for a bar while the log is read, or a function told (phase, done, total).

    Returns:
        A document whose findings are ranked, each with what to do about it. A log that cannot be read at all, for want
        of columns, say, is an error; one with bad rows is a finding.
    """
    with watched_table(log, columns, progress) as table:
        return _check_table(
            table,
            (states, actions, reward_range),
            horizon=horizon,
            discount=discount,
            stationary=stationary,
            world={"early_ends": early_ends, "done_at_limit": done_at_limit},
        )


def _check_table(
    table: Table,
    told: tuple[Sequence[Any] | None, Sequence[Any] | None, tuple[float, float] | None],
    *,
    horizon: int | None,
    discount: float | None,
    stationary: bool,
    world: dict[str, Any],
) -> LogCheck:
    """Check an open log; told are labels and the range of rewards, as far as they were given."""
    states, actions, reward_range = told
    given = {name: check_labels(name, x) for name, x in (("states", states), ("actions", actions)) if x is not None}
    named = [text for some in given.values() for text in some]
    scan = scan_of(table, named)
    labels: dict[str, Any] = find_labels(table, named=named, stopped=bool(discount) or stationary) | given
    longest = int(scan.lengths.length[-1])
    length = None if horizon is None else check_int("horizon", horizon, 1, 2**62)
    if discount is not None:
        world |= {"horizon": 1, "discount": check_discount(discount), "length": length}
    else:
        world["horizon"] = longest if length is None else length
    low, high = reward_range or _range_of(scan)
    pooled = stationary or discount is not None
    spec = LogSpec(**labels, reward_range=(low, high), **world)
    trouble: list[Finding] = []
    log: Log | None = None
    try:
        log = read_log(table, spec, pooled=pooled)
    except ReprlError as error:
        if not scan.missing:
            trouble.append(Finding("error", str(error)))
    if reward_range is None and (low, high) != (0.0, 1.0):
        words = f"rewards go from {scan.rewards[0]:g} to {scan.rewards[1]:g}"
        trouble.append(Finding("note", words, f"reward_range=({low:g}, {high:g})"))
    return inspect_log(table, spec, pooled=pooled, log=log, more=trouble)


def _range_of(scan: Scan) -> tuple[float, float]:
    """A range of rewards that holds all of a log's and 0; [0, 1] where that does."""
    low, high = min(0.0, scan.rewards[0]), max(0.0, scan.rewards[1])
    if not math.isfinite(low + high):
        return 0.0, 1.0
    return (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, high)


def inspect_log(
    table: Table, spec: LogSpec, *, pooled: bool, log: Log | None, more: Iterable[Finding] = ()
) -> LogCheck:
    """Return what a log holds, and what is wrong or odd with it.

    Args:
        table: the log.
        spec: what it is a log of.
        pooled: whether rows tell about every step.
        log: what was read of it; None if it was refused.
        more: findings that are known already.
    """
    scan = scan_of(table, (*spec.states, *spec.actions))
    labels = {"states": (*scan.labels["state"], *scan.labels.get("next_state", ())), "actions": scan.labels["action"]}
    near = {name: groups for name, texts in labels.items() if (groups := near_duplicates(texts))}
    support, practice = _support(scan, spec), _practice(scan)
    copies = count_copies(table, spec, scan)
    copied = copied_episodes(scan, copies)
    findings = [
        *more,
        *_of_missing(table, scan),
        *_of_ends(table, spec, scan, pooled=pooled),
        *([Finding("bias", copied, "keep one of each, or say why episodes repeat")] if copied else ()),
        *([] if log is None else _of_halves(spec, log)),
        *_of_rewards(table, scan),
        *_of_labels(near, labels),
        *_of_columns(table),
        *_of_size(scan, spec, support, practice),
    ]
    return LogCheck(
        name=table.name,
        rows=scan.rows,
        episodes=scan.episodes,
        lengths=_lengths(scan),
        ends=scan.lengths.by_end(spec.kept),
        columns=dict(table.columns),
        unused=table.unused,
        missing={name: count for name, (count, _) in scan.missing.items()},
        n_states=len(spec.states),
        n_actions=len(spec.actions),
        near_duplicates=near,
        copies=copies,
        support=support,
        practice=practice,
        rewards=scan.rewards,
        findings=tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))),
    )


def _lengths(scan: Scan) -> dict[str, int]:
    length, below = scan.lengths.length, np.cumsum(scan.lengths.number.sum(axis=1))
    middle = int(length[np.searchsorted(below, (scan.episodes + 1) // 2)])
    return {"shortest": int(length[0]), "median": middle, "longest": int(length[-1])}


def _of_missing(table: Table, scan: Scan) -> list[Finding]:
    roles = {name: role for role, name in table.columns.items()}
    recipes = {
        "reward": "write the reward with a decimal point, 0 where nothing was earned, or leave these episodes out",
        "episode": "give every row the id of its episode",
    }
    usual = "leave these episodes out, or give what is missing a label of its own"
    return [
        Finding(
            "error",
            f"{'no number' if roles[name] == 'reward' else 'nothing'} stands in column {name!r} in {count:,} of "
            f"{scan.rows:,} rows, first in row {first + 1:,}",
            recipes.get(roles[name], usual),
        )
        for name, (count, first) in scan.missing.items()
    ]


def _of_ends(table: Table, spec: LogSpec, scan: Scan, *, pooled: bool) -> list[Finding]:
    lengths, found = scan.lengths, []
    longest, episodes = int(lengths.length[-1]), lengths.episodes
    try:
        reading = resolve_ends(table, spec, lengths, pooled=pooled)
    except InputError as error:
        return [Finding("error", str(error))]
    early = lengths.said(UNSAID, GOES_ON, below=min(reading.final, spec.kept) + 1)
    if reading.limited:
        found.append(Finding("error", reading.problem))
    elif reading.problem:
        what = (
            f"{early:,} of {episodes:,} episodes stop early and nothing says why: taken as over, values would be wrong"
        )
        found.append(
            Finding("bias", what, "early_ends='terminated' or 'censored', or a column next_state or terminated")
        )
    elif early and not reading.over:
        what = (
            f"{early:,} of {episodes:,} episodes stop early, not done: taken as dropout that does not depend on what "
            "would have followed"
        )
        severity = "warning" if spec.early_ends is None else "note"
        found.append(Finding(severity, what, "early_ends='terminated' if they were over"))
    if reading.skewed:
        what = (
            f"{reading.skewed:,} rows do not say where they led and are left out, while rows that end an episode are "
            "kept: ends look more frequent than they are"
        )
        found.append(Finding("bias", what, "add a column next_state"))
    stopped = lengths.said(DONE, at=longest)
    if longest < spec.kept and not spec.criterion.stationary and stopped >= 0.5 * episodes and not reading.problem:
        what = f"{stopped:,} of {episodes:,} episodes are done after {longest} rows, before the horizon {spec.horizon}"
        if spec.done_at_limit != "terminated":
            recipe = f"horizon={longest}, or done_at_limit='terminated' if they end there"
            found.append(Finding("bias", f"{what}: a time limit?", recipe))
    if reading.unclear:
        found.append(_of_limit(spec, lengths, reading))
    return found


def _of_limit(spec: LogSpec, lengths: Lengths, reading: Reading) -> Finding:
    """Say what `done` at the last step is taken for, where nothing but the user's word tells."""
    if reading.limit >= 0:
        what = f"'done' in row {spec.kept:,} of an episode is taken for a time limit, as done_at_limit says"
        ended = lengths.said(DONE, below=spec.kept)
        if not ended:
            return Finding("note", what)
        more = f"; {ended:,} episodes are done earlier, so that some may have ended there too"
        return Finding("bias", what + more, "leave done_at_limit out")
    if reading.kept < spec.kept:
        what = f"row {spec.kept:,} of every episode is left out: 'done' there may be an end or a time limit"
        return Finding("note", what, "done_at_limit='truncated' if it is a time limit, 'terminated' if an end")
    what = "'done' is taken for an end in every row"
    return Finding("note", what, "" if spec.done_at_limit else "horizon=ROWS if there is a time limit")


def _of_halves(spec: LogSpec, log: Log) -> list[Finding]:
    """Say that the first half of the episodes and the second contradict one world, if they do."""
    counts, late = log.data.counts, log.late
    if late is None:
        return []
    first, second = (Tallies.of(Counts(counts.outcomes, hits)) for hits in (counts.hits - late, late))
    bets = bet(first, second, spec.n_states)
    if bets.log_evidence < -math.log(LEVEL):
        return []
    i, place = bets.loudest, spec.environment({})
    number, cell = int(bets.number[i]), int(bets.cell[i])
    h, s, a = np.unravel_index(cell, counts.outcomes.shape)
    event = f"a reward of at least {spec.reward_map.restore(-number / BINS, 1):g}"
    event = f"state {place.labels.state(number)}" if number >= 0 else event
    before, after = bets.hits[:, i] / np.maximum(bets.visits[:, i], 1.0)
    where = place.labels.state(int(s)) if counts.outcomes.pooled else place.cell(int(h), int(s))
    what = (
        "the first half of the episodes and the second contradict one world: after "
        f"{quote(place.labels.action(int(a)))} in {where}, {event} followed {before:.1%} and {after:.1%} of the time"
    )
    recipe = (
        "look for changed codes; learn from each period or site alone; if the file is sorted by outcome, shuffle its "
        "episodes"
    )
    return [Finding("bias", what, recipe)]


def _of_rewards(table: Table, scan: Scan) -> list[Finding]:
    """Say that rewards look like running totals, or like codes of what is missing."""
    found, name = [], table.columns["reward"]
    rises, falls, in_a_row = scan.changes
    if in_a_row >= TOTALS and 0 in (rises, falls):
        how = "fall" if not falls else "rise"
        what = (
            f"column {name!r} looks like a running total: in {rises + falls:,} changes within episodes it never {how}s"
        )
        found.append(Finding("warning", what, "write what each row earned, not the total so far"))
    codes = {code: count for code, count in scan.codes.items() if abs(code) >= FAR * scan.usual > 0.0}
    for code, count in codes.items():
        what = f"{name} {code:g} stands in {count:,} rows, far from all others: does it stand for nothing?"
        found.append(Finding("warning", what, "write what was earned there, or leave these episodes out"))
    return found


def _of_labels(near: Mapping[str, tuple[tuple[str, ...], ...]], labels: Mapping[str, Iterable[str]]) -> list[Finding]:
    found = []
    for name, texts in labels.items():
        odd = sorted({text for text in texts if text.strip().lower() in PLACEHOLDERS})
        if odd:
            what = f"{name} whose label looks like that of nothing: {', '.join(map(quote, odd))}"
            found.append(
                Finding("warning", what, "leave these episodes out, or give what is missing a label of its own")
            )
    for name, groups in near.items():
        shown = "; ".join(", ".join(map(quote, group)) for group in groups[:3]) + ("; …" if len(groups) > 3 else "")
        found.append(Finding("warning", f"{name} that look like one: {shown}", "write each label in one way"))
    return found


def _of_columns(table: Table) -> list[Finding]:
    found = []
    flags = [name for name in table.unused if _FLAG_LIKE.fullmatch(name.strip())]
    if flags and not any(role in table.columns for role in FLAGS):
        what = f"column {flags[0]!r} looks like the end of an episode and is not used"
        found.append(Finding("warning", what, f"columns={{'terminated': {flags[0]!r}}}, or 'truncated' or 'done'"))
    if table.unused:
        found.append(Finding("note", f"columns without a role: {', '.join(map(repr, table.unused))}"))
    return found


def _of_size(scan: Scan, spec: LogSpec, support: Mapping[str, float], practice: Mapping[str, float]) -> list[Finding]:
    found = []
    if scan.episodes < LEAST and not spec.criterion.stationary:
        what = f"there are {scan.episodes} episodes, and {LEAST} are the fewest that anything is promised of"
        found.append(Finding("warning", what, "gather more episodes"))
    removed = int(support["seen"] - support["supported"])
    if removed:
        what = (
            f"{removed:,} of {int(support['seen']):,} pairs of a state and an action have too little support, "
            f"{support['removed_rows']:.1%} of the rows"
        )
        found.append(
            Finding(
                "note",
                what,
                f"practice takes them less than {SHARE:.0%} as often as the most usual action: they are not decided on",
            )
        )
    if practice["one_action"]:
        what = (
            f"in {int(practice['one_action']):,} of {len(scan.labels['state']):,} states one action alone is ever taken"
        )
        found.append(Finding("note", what, "nothing can be learned of others there"))
    return found


def _support(scan: Scan, spec: LogSpec) -> dict[str, float]:
    """How many pairs of a state and an action there are, are seen, and are taken often enough to count."""
    most: dict[str, int] = {}
    for (state, _), count in scan.pairs.items():
        most[state] = max(count, most.get(state, 0))
    weak = [count for (state, _), count in scan.pairs.items() if count < SHARE * most[state]]
    seen = len(scan.pairs)
    return {
        "possible": float(len(spec.states) * len(spec.actions)),
        "seen": float(seen),
        "supported": float(seen - len(weak)),
        "removed_rows": sum(weak) / max(1, scan.rows),
    }


def _practice(scan: Scan) -> dict[str, float]:
    """How random the behaviour is, whatever the step."""
    by_state: dict[str, list[int]] = {}
    for (state, _), count in scan.pairs.items():
        by_state.setdefault(state, []).append(count)
    rows = sum(sum(counts) for counts in by_state.values()) or 1
    entropy = sum(-c * math.log(c / sum(counts)) for counts in by_state.values() for c in counts) / rows
    return {
        "usual_share": sum(max(counts) for counts in by_state.values()) / rows,
        "actions_in_effect": math.exp(entropy),
        "one_action": float(sum(len(counts) == 1 for counts in by_state.values())),
    }

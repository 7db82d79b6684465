"""check_log: what is wrong or odd with a log, before anything is learned from it, and what to do about it."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, ReprlError, check_int, quote
from reprl.execution.settings import Progress
from reprl.mdp.criterion import check_discount
from reprl.mdp.dynamics import Data
from reprl.sources.logs.ends import DONE, FLAGS, GOES_ON, TERMINATED, TRUNCATED, UNSAID, resolve_ends
from reprl.sources.logs.read import read_log
from reprl.sources.logs.scan import RUN, Scan, find_labels, scan_of
from reprl.sources.logs.spec import MISSING, LogSpec, check_labels
from reprl.sources.logs.tables import Chunk, Table, watched_table

SEVERITIES = ("error", "bias", "warning", "note")
"""What a finding means: the log is refused; results would be wrong, or intervals too short; results may not be what you
think; nothing is wrong."""
FEWEST = 100
"""Episodes, below which nothing is promised."""
COPIED = 0.1
"""Pairs of equal episodes, beyond those that the log's own law explains, over the number of episodes, from which on
intervals are too short: their variance is too small by twice that share."""
EXPLAINED = 1.5
"""How many times as many pairs as that law explains are still put down to chance."""
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
    support: float = LogSpec.support,
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
        support: from which relative share on an action counts.
        stationary: whether every row tells about all steps.
        early_ends: what episodes are that stop early without a flag.
        done_at_limit: what `done` at a time limit says.
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
            world={"support": support, "early_ends": early_ends, "done_at_limit": done_at_limit},
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
    try:
        read_log(table, spec, pooled=pooled)
    except ReprlError as error:
        if not scan.missing:
            trouble.append(Finding("error", str(error)))
    if reward_range is None and (low, high) != (0.0, 1.0):
        words = f"rewards go from {scan.rewards[0]:g} to {scan.rewards[1]:g}"
        trouble.append(Finding("note", words, f"reward_range=({low:g}, {high:g})"))
    return inspect_log(table, spec, pooled=pooled, more=trouble)


def _range_of(scan: Scan) -> tuple[float, float]:
    """A range of rewards that holds all of a log's and 0; [0, 1] where that does."""
    low, high = min(0.0, scan.rewards[0]), max(0.0, scan.rewards[1])
    if not math.isfinite(low + high):
        return 0.0, 1.0
    return (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, high)


def inspect_log(table: Table, spec: LogSpec, *, pooled: bool, more: Iterable[Finding] = ()) -> LogCheck:
    """Return what a log holds, and what is wrong or odd with it.

    Args:
        table: the log.
        spec: what it is a log of.
        pooled: whether rows tell about every step.
        more: findings that are known already.
    """
    scan = scan_of(table, (*spec.states, *spec.actions))
    labels = {"states": (*scan.labels["state"], *scan.labels.get("next_state", ())), "actions": scan.labels["action"]}
    near = {name: groups for name, texts in labels.items() if (groups := near_duplicates(texts))}
    support, practice = _support(scan, spec), _practice(scan)
    copies = _copies(table, spec, scan)
    findings = [
        *more,
        *_of_missing(table, scan),
        *_of_ends(table, spec, scan, pooled=pooled),
        *_of_copies(scan, copies),
        *_of_labels(near),
        *_of_columns(table),
        *_of_size(scan, spec, support, practice),
    ]
    lengths = scan.lengths
    ends = {
        "terminated": lengths.said(TERMINATED),
        "truncated": lengths.said(TRUNCATED),
        "done": lengths.said(DONE),
        "early": lengths.said(UNSAID, GOES_ON, below=min(spec.kept, 2**62)),
    }
    return LogCheck(
        name=table.name,
        rows=scan.rows,
        episodes=scan.episodes,
        lengths=_lengths(scan),
        ends={**ends, "full": scan.episodes - sum(ends.values())},
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
        "reward": "write the reward, 0 where nothing was earned, or leave these episodes out",
        "episode": "give every row the id of its episode",
    }
    usual = "leave these episodes out, or give what is missing a label of its own"
    return [
        Finding(
            "error",
            f"nothing stands in column {name!r} in {count:,} of {scan.rows:,} rows, first in row {first + 1:,}",
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
    if reading.problem:
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
    if longest < spec.kept and not spec.criterion.stationary and stopped >= 0.5 * episodes:
        what = f"{stopped:,} of {episodes:,} episodes are done after {longest} rows, before the horizon {spec.horizon}"
        if spec.done_at_limit != "terminated":
            found.append(
                Finding(
                    "bias",
                    f"{what}: a time limit?",
                    f"horizon={longest}, or done_at_limit='terminated' if they end there",
                )
            )
    if reading.limit >= 0 or (
        reading.kept < min(spec.kept, longest) and lengths.said(DONE, at=min(longest, spec.kept))
    ):
        what = f"'done' after {min(longest, spec.kept)} rows is taken for a time limit, not for an end"
        found.append(Finding("note", what, "done_at_limit='terminated' if episodes end there"))
    return found


def near_duplicates(texts: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return labels that differ by case, blanks, dashes or the form of a number alone, group by group."""
    groups: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        groups.setdefault(_folded(text), []).append(text)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _folded(text: str) -> str:
    plain = " ".join(re.sub(r"[\s_\-]+", " ", unicodedata.normalize("NFKC", text).casefold()).split())
    negative = "-" if re.match(r"\s*-\s*[0-9.,]", text) else ""
    try:
        return negative + repr(float(plain.replace(",", ".")))
    except ValueError:
        return negative + plain


def _of_labels(near: Mapping[str, tuple[tuple[str, ...], ...]]) -> list[Finding]:
    found = []
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
    if scan.episodes < FEWEST and not spec.criterion.stationary:
        what = f"there are {scan.episodes} episodes, and {FEWEST} are the fewest that anything is promised of"
        found.append(Finding("warning", what, "gather more episodes"))
    removed = int(support["seen"] - support["supported"])
    if removed:
        what = (
            f"{removed:,} of {int(support['seen']):,} pairs of a state and an action have too little support, "
            f"{support['removed_rows']:.1%} of the rows"
        )
        found.append(Finding("note", what, f"a lower support, now {spec.support:g}, lets them count"))
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
    weak = [count for (state, _), count in scan.pairs.items() if count < spec.support * most[state]]
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


def _copies(table: Table, spec: LogSpec, scan: Scan) -> dict[str, float]:
    """How many pairs of episodes have one content, how many of them the log's law explains, and a common factor."""
    found = {**scan.copies._asdict(), "expected": 0.0}
    if scan.copies.factor > 1 or max(scan.copies[:3]) <= COPIED * scan.episodes:
        return found
    steps = min(int(scan.lengths.length[-1]), spec.kept)
    told: dict[str, Any] = {
        "early_ends": "terminated",
        "reward_range": spec.reward_range,
        "reward_step": spec.reward_step,
    }
    try:
        contents = LogSpec(horizon=steps, states=spec.states, actions=spec.actions, **told)
        expected = expected_pairs(read_log(_without_ends(table, scan, spec), contents).data)
    except ReprlError:  # rows that are refused, or too large a table
        expected = -1.0
    return found | {"expected": expected}


def _without_ends(table: Table, scan: Scan, spec: LogSpec) -> Table:
    """Return a log in which nothing says why episodes stop: those that stop after the same rows are then alike."""
    roles = ("next_state", *FLAGS)
    columns = {role: name for role, name in table.columns.items() if role not in roles}
    number = np.zeros_like(scan.lengths.number)
    number[:, 0] = scan.lengths.number.sum(axis=1)
    known = scan._replace(lengths=scan.lengths._replace(number=number))

    def chunks() -> Iterator[Chunk]:
        for chunk in table.chunks():
            yield {role: column for role, column in chunk.items() if role not in roles}

    odd = MISSING.intersection((*spec.states, *spec.actions))
    return table._replace(columns=columns, chunks=chunks, found=[(odd, known)])


def expected_pairs(data: Data) -> float:
    """Return how many pairs of episodes would have the same content if each were drawn by the law that a log shows.

    Σ over contents of its chance squared, step by step, with unbiased estimates of the squares; steps are apart, and an
    episode is over where it stops.
    """
    cell, following, _, hits = data.counts.rows()
    horizon, n_states, n_actions = data.counts.outcomes.shape
    here = data.counts.visits.sum(axis=2).astype(np.float64)
    place = cell // n_actions
    times, both = hits.astype(np.float64), here.ravel()[place]
    square = times * (times - 1.0) / np.maximum(both * (both - 1.0), 1.0)
    step = place // n_states
    alike: NDArray[np.float64] = np.ones(n_states)
    for h in range(horizon - 1, -1, -1):
        now = step == h
        weights = square[now] * alike[following[now]]
        alike = np.bincount(place[now] % n_states, weights, minlength=n_states).astype(np.float64)
        alike[-1] = 1.0  # an episode that is over has nothing more to be told apart by
    starts = data.starts.astype(np.float64)
    return float(0.5 * (starts * (starts - 1.0) * alike).sum())


def _of_copies(scan: Scan, copies: Mapping[str, float]) -> list[Finding]:
    episodes, recipe = scan.episodes, "keep one of each, or say why episodes repeat"
    if copies["factor"] > 1:
        what = f"every episode stands {copies['factor']:g} times or a multiple of it: copies make intervals too short"
        return [Finding("bias", what, recipe)]
    if copies["expected"] < 0.0:
        return []
    chance = copies["expected"] / max(1.0, 0.5 * episodes * (episodes - 1))  # that two episodes are equal
    explained = {
        "pairs": copies["expected"],
        "runs": 0.5 * episodes**2 * chance**RUN,
        "neighbours": episodes * chance,
    }
    words = {
        "pairs": "pairs of episodes are the same from the first row to the last",
        "runs": f"runs of {RUN} episodes come twice in the same order",
        "neighbours": "episodes are the same as the one before",
    }
    for name, said in words.items():
        if copies[name] - EXPLAINED * explained[name] > COPIED * episodes:
            what = f"{copies[name]:,.0f} {said}, where the log's own law explains {explained[name]:,.0f}"
            return [Finding("bias", f"{what}: copies make intervals too short", recipe)]
    return []

"""How many more episodes of the same practice a decision from a log would need, and which cells wait for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

from reprl.assurance.stopping import Judgement, Rehearsed, Round
from reprl.execution.settings import Execution
from reprl.learning.learner import check_options, make_settings
from reprl.learning.logged import bind_log_rule, end_of, settle, specify
from reprl.learning.settings import LearnOptions, Settings
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data
from reprl.randomness import SharedKey
from reprl.sources.logs.read import Log
from reprl.sources.logs.source import LogSource
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from reprl.sources.source import CertificateSource

FURTHEST = 12
"""Doublings of the log that are tried."""
WAITING = 20
"""Cells that are named, at most."""


class Waiting(NamedTuple):
    """A cell that more episodes would decide."""

    step: int
    state: int
    words: str
    rows: int
    """That the log has there."""
    differ: float
    """Share of the simulated second teams that do something else there."""


class LogPlan(NamedTuple):
    """What a decision from a log of this practice would take."""

    episodes: int
    """In the log."""
    decided: bool
    """Whether the log is enough as it is."""
    factor: int | None
    """How many times as many episodes are needed, a power of 2; None if 2**FURTHEST times as many would not do."""
    reason: str
    """What is missing now."""
    waiting: tuple[Waiting, ...]
    """The most disputed first."""

    @property
    def more(self) -> int | None:
        """Episodes that are missing."""
        return None if self.factor is None else (self.factor - 1) * self.episodes

    def __str__(self) -> str:
        if self.decided:
            return f"the {self.episodes:,} episodes of this log are enough for a decision"
        if self.more is None:
            return f"not even {2**FURTHEST:,} times as many episodes of this practice would do: {self.reason}"
        return (
            f"about {self.more:,} more episodes of this practice, {self.factor} times what there are, would decide, if "
            f"what they show stays as it is; now {self.reason}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {
            **self._asdict(),
            "more": self.more,
            "words": str(self),
            "waiting": [each._asdict() for each in self.waiting],
        }


class Grown(NamedTuple):
    """A log as if it had so many times as many episodes, that show what these show."""

    log: Log
    factor: int

    @property
    def name(self) -> str:
        """For the streams of its rehearsal."""
        return f"plan/{self.factor}"

    def estimate(self) -> Data:
        """Return the counts, multiplied."""
        data = self.log.data
        counts = Counts(data.counts.outcomes, data.counts.hits * self.factor)
        return Data(counts, data.starts * self.factor, data.allowed, data.criterion)

    def redraw(self, share: int, key: int) -> Data:
        """Draw as many episodes as a second team of that size would have."""
        return self.log.blocks.redraw(share, key, self.factor)

    def certificate_source(self) -> CertificateSource | None:
        """None: nothing is proven by data that nobody has."""
        return None


def plan_log(
    log: Any,
    *,
    horizon: int | None = None,
    discount: float | None = None,
    columns: Mapping[str, str | None] | None = None,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    support: float = LogSpec.support,
    reach: float = LogSpec.reach,
    allowed: Any = None,
    early_ends: str | None = None,
    done_at_limit: str | None = None,
    shared_seed: int = 0,
    **options: Unpack[LearnOptions],
) -> LogPlan:
    """Forecast how many more episodes of a log's practice a decision would need; the arguments are ``learn_log``'s.

    Guarantee:
        None: frequencies are taken to stay what they are. The log is rehearsed as if it had 2, 4, 8 … times as many
        episodes, and the first size that passes is named.

    Randomness:
        Shared, at SharedKey(shared_seed), as ``learn_log`` reads it. Data: streams (a hash of the log,
        "rehearsal/plan/FACTOR/…").
    """
    check_options(options)
    world: dict[str, Any] = {"reward_range": reward_range, "support": support, "reach": reach, "allowed": allowed}
    world |= {"early_ends": early_ends, "done_at_limit": done_at_limit, **end_of(horizon, discount)}
    table, tells_all = open_table(log, columns), bool(discount or options.get("stationary"))
    spec = specify(table, states, actions, tells_all=tells_all, **world)
    return plan_spec(table, spec, make_settings(options, spec.environment({})), shared_seed, columns)


def plan_spec(
    log: Any, spec: LogSpec, settings: Settings, shared_seed: int, columns: Mapping[str, str | None] | None = None
) -> LogPlan:
    """Forecast for the log of a world that is specified beforehand, as ``plan_log`` does."""
    settings, key = settle(settings, spec), SharedKey(shared_seed)
    source = LogSource(open_table(log, columns), spec, pooled=settings.pooled)
    rule, stop = bind_log_rule(spec, key, settings, None), Rehearsed(settings.asked, Execution(), spec.reward_map.width)
    read = source.empty().log

    def judge(factor: int) -> Judgement:
        known = Grown(read, factor)
        data = known.estimate()
        return stop.judge(Round(source, known, rule, data, rule.choose(data), last=True))

    now = judge(1)
    factor: int | None = 1
    if not now.enough or now.drift:
        tried = (2**k for k in range(1, FURTHEST + 1))
        factor = None if now.drift else next((k for k in tried if judge(k).enough), None)
    apart = None if now.rehearsal is None else now.rehearsal.apart
    waiting: list[Waiting] = []
    if apart is not None and factor != 1:
        rows, place = read.data.counts.visits.sum(axis=2), spec.environment({})
        cells = sorted(zip(*apart.nonzero(), strict=True), key=lambda cell: -apart[cell])[:WAITING]
        waiting = [
            Waiting(int(h), int(s), place.cell(int(h), int(s)), int(rows[h, s]), float(apart[h, s])) for h, s in cells
        ]
    reason = "" if factor == 1 else now.guarantee.source
    return LogPlan(read.episodes, factor == 1, factor, reason, tuple(waiting))

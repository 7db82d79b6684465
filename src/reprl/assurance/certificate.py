"""Certificates: what one run's own data prove."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import GRID, mean_radius
from reprl.assurance.verdict import Verdict, judge, no_proof, prepare
from reprl.canonical.choice import Rule
from reprl.canonical.preferred import PHASED, PREFERRED, STATIONARY
from reprl.errors import DocumentError, check_choice, check_int, check_probability, quote
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data
from reprl.mdp.policy import Policy
from reprl.sources.source import FIRST, doubling

SOURCES = {
    "calls": "parallel calls, one martingale for each comparison",
    "rounds": "episodes of policies that were fixed before the round, one martingale for each comparison",
    "log": "a log of a fixed behaviour, one martingale for each comparison; cell by cell where steps are pooled",
    "episodes": "episodes of policies that changed with the data, cell by cell",
}
"""Where data come from, and the confidence statements that go with it (docs/proofs/certificate.md §1)."""
SKIPPED = 6
"""Rounds without an interim analysis: they are too small to prove anything."""
HALFWAY = FIRST << SKIPPED
"""Parallel calls from which on a run that is to be certified is also analysed half way between two doublings."""
EVEN = 16
"""Interim analyses that use the same share of δ."""
LATER = 0.2
"""Share of δ for those after them."""
CONFIDENCE = f"Fan's inequality, {GRID} rates, both sides"
FURTHEST = 24
"""Doublings of the data that a forecast tries."""


class CertificateData(NamedTuple):
    """Data that a certificate can be made from, with what must be known of them."""

    data: Data
    source: str
    """One of SOURCES."""
    round: int
    """Of the run, from 1: there is at most one interim analysis in each."""
    fixed_start: bool
    """Whether the environment says that every episode begins in one state; otherwise the start is estimated too."""

    def check(self) -> CertificateData:
        """Return the data if their round can be true."""
        check_choice("certificate data source", self.source, tuple(SOURCES))
        check_int("certificate data round", self.round, 1, 2**16)
        if self.fixed_start and np.count_nonzero(self.data.starts) != 1:
            raise DocumentError(
                f"certificate data starts must be in one state if that is known, got {quote(self.data.starts)}"
            )
        if self.source == "log":
            _check_log(self.data)
        least = _least_round(self.data, self.source)
        if self.round < least:
            raise DocumentError(
                f"certificate data round must be at least {least} for so many {self.source}, got {self.round}"
            )
        return self

    def alpha(self, delta: float) -> float:
        """Return the share of δ that this interim analysis may use: those of all analyses add up to at most δ."""
        if self.source in ("log", "episodes"):  # there is but one
            return delta
        analysis = self.round - SKIPPED
        if analysis <= 0:
            return 0.0
        later = analysis - EVEN
        return delta * ((1.0 - LATER) / EVEN if later <= 0 else LATER / (later * (later + 1)))


def _check_log(data: Data) -> None:
    """Refuse data that cannot be those of a log: its last state is that of ended episodes, whose law is known."""
    counts, episodes = data.counts, int(data.starts.sum())
    steps = counts.outcomes.tallied[0]
    live = counts.visits[:steps, :-1].sum(axis=(1, 2))
    if (counts.visits[:, -1] != episodes).any() or (live > episodes * counts.outcomes.horizon // steps).any():
        raise DocumentError(
            f"certificate data of a log must have {episodes} samples of every cell of the last state, and no more "
            f"rows than episodes at a step, got {counts}"
        )


def certificate_data_of(data: Data, source: str, *, fixed_start: bool = False) -> CertificateData:
    """Return certificate data of the round that their size says.

    source is one of SOURCES but "rounds", of which size does not tell the round: the last one may have been cut.
    """
    check_choice("source", source, tuple(name for name in SOURCES if name != "rounds"))
    return CertificateData(data, source, _least_round(data, source), fixed_start).check()


def _least_round(data: Data, source: str) -> int:
    """The first round that can have so many data; of parallel calls, as if every analysis had been made."""
    size = int(data.starts.sum())
    if source == "calls":
        return len(list(doubling(FIRST, size, HALFWAY)))
    if source == "rounds":
        _, n_states, n_actions = data.counts.outcomes.shape
        return 1 + max(0, math.ceil(math.log2(size / (FIRST * n_states * n_actions / 2)) - 1e-9))
    return 1


class Certificate(NamedTuple):
    """What the data of a run prove about its policy, or which comparisons are still undecided."""

    proven: bool
    """Whether the policy below is f(ξ, M) and loses at most `loss`, with probability 1 − δ over the data."""
    delta: float
    spent: float
    """The share of δ that this interim analysis uses; the others have the rest."""
    source: str
    """Where the data came from: one of SOURCES."""
    round: int
    fixed_start: bool
    shared_seed: int
    epsilon: float | None
    """Asked for, where no quality is."""
    preference: str | tuple[int | str, ...] | None
    followed: tuple[str, int] | None
    """The candidate of a recipe, if the rule was that one candidate."""
    fingerprint: str | None
    """Of the policy: proven, or ahead; None if no policy is."""
    loss: float
    """V* − V^π is at most this; infinite if nothing is known."""
    lead: float
    """By how much the policy's least log weight exceeds the largest of any other; negative if it is not proven."""
    candidate: int
    """Number of the tolerance with the widest proven margin; −1 without a policy."""
    tolerance: float
    margin: float
    """Its proven margin."""
    tightest: tuple[int, int, int] | None
    """The comparison (h, s, a) that attains it."""
    reason: str
    """What is missing; empty if proven."""
    undecided: tuple[tuple[int, int], ...]
    """Cells (h, s) where the heaviest undecided tolerance is open."""
    more: int | None
    """About how many more samples it would take, if frequencies stay; 0 if proven, None if no forecast was made or
    FURTHEST doublings would not do."""
    quality: float | None = None
    """Asked for, where no ε is."""
    baseline: tuple[tuple[int, ...], ...] | None = None
    """What a quality is measured from: actions by states, of every step, or one row for all; None for the most
    preferred action everywhere."""
    share: float | None = None
    """For a quality: the policy earns at least this share of what the best policy earns more than the baseline; None
    where the data do not exclude that this is next to nothing, LEAST_GAIN·H."""
    gain: tuple[float, float] | None = None
    """For a quality: between what V* less the value of the baseline lies."""

    def __str__(self) -> str:
        return self.words()

    def words(self, scale: float | None = None) -> str:
        """What is proven; scale is what rescaled rewards are times in their own units, None where nobody knows."""
        if self.proven:
            share = "" if self.share is None else f"earns at least {self.share:.1%} of the gain, "
            same = "the policy that the rule assigns to the true MDP"
            loss = f"{(scale or 1.0) * self.loss:.3g}{' in rewards rescaled to [0, 1]' if scale is None else ''}"
            return f"{share}loses at most {loss}; with probability ≥ {1 - self.delta:g} this is {same}"
        more = "" if self.more is None else f"; about {self.more:.2g} more samples would do"
        return f"not proven: {self.reason}{more}"


def make_certificate(
    rule: Rule, given: CertificateData, shared_seed: int, delta: float, *, samples: int | None = None
) -> tuple[Certificate, Policy | None]:
    """Say what data prove, and of which policy.

    The rule has no stationary candidates; δ is for all interim analyses together. samples is what the data cost, for a
    forecast of how many more it would take; None for no forecast.

    Guarantee:
        A pure function of its arguments. docs/proofs/certificate.md.
    """
    check_probability("delta", delta)
    spent = given.check().alpha(delta)
    verdict = _judge(rule, given, spent)
    more = 0 if verdict.proven else None if samples is None else _forecast(rule, given, delta, samples)
    known = verdict.policy is not None
    certificate = Certificate(
        proven=verdict.proven,
        delta=delta,
        spent=spent,
        source=given.source,
        round=given.round,
        fixed_start=given.fixed_start,
        shared_seed=shared_seed,
        epsilon=rule.goal.epsilon,
        preference=rule.preference,
        followed=followed_by(rule),
        fingerprint=verdict.policy.fingerprint if verdict.policy is not None else None,
        loss=verdict.loss,
        lead=verdict.lead,
        candidate=rule.first + verdict.tolerance if known else -1,
        tolerance=float(rule.tolerances[verdict.tolerance]) if known else 0.0,
        margin=verdict.margin,
        tightest=verdict.tightest,
        reason=verdict.reason + ("" if verdict.proven else _untaken(given)),
        undecided=tuple(verdict.undecided),
        more=more,
        quality=rule.goal.quality,
        baseline=_rows(rule.baseline),
        share=verdict.share,
        gain=verdict.gain,
    )
    return certificate, verdict.policy


def _untaken(given: CertificateData) -> str:
    """Say how many actions a log never shows in states that it does, for which nothing can be proven; or nothing."""
    if given.source != "log":
        return ""
    visits = given.data.counts.visits.sum(axis=0)
    may = np.ones(visits.shape, dtype=np.bool_) if given.data.allowed is None else given.data.allowed.any(axis=0)
    never = int((may & (visits == 0) & (visits.sum(axis=1, keepdims=True) > 0)).sum())
    if not never:
        return ""
    return f"; {never} allowed pairs of a state and an action were never seen: a mask (allowed) would leave them out"


def _rows(table: NDArray[np.int64] | None) -> tuple[tuple[int, ...], ...] | None:
    """Return a table of actions, (H, S), row by row, or one row if all are equal."""
    if table is None:
        return None
    rows = table[:1] if (table == table[:1]).all() else table
    return tuple(tuple(int(a) for a in row) for row in rows)


def followed_by(rule: Rule) -> tuple[str, int] | None:
    """Return the candidate that is all that a rule has; None for a whole one."""
    if rule.tolerances.size > 1:
        return None
    return (PREFERRED if rule.tolerances.size else PHASED if rule.phased.size else STATIONARY, rule.first)


def _judge(rule: Rule, given: CertificateData, spent: float) -> Verdict:
    if spent <= 0.0:
        return no_proof(f"a run looks at its data from round {SKIPPED + 1} on, and this is round {given.round}")
    by_steps = given.source != "episodes"
    sample = prepare(given.data, by_steps=by_steps, fixed_start=given.fixed_start)
    practice = partial(bound_practice, given.data) if given.source == "log" and rule.baseline is None else None
    return judge(rule, sample, spent, practice=practice)


def bound_practice(data: Data, level: float) -> tuple[float, float]:
    """Bound the expected return of what was done in a log whose episodes all ended or reached the horizon.

    Guarantee:
        Episodes of a fixed behaviour are independent and alike, so that this is `mean_radius` for the mean of their
        returns. Counts hold the mean, and a bound on the variance: standard deviations of rewards at the steps add up
        at most (docs/proofs/certificate.md §9).
    """
    counts, episodes = data.counts, float(data.starts.sum())
    steps, horizon = counts.outcomes.tallied[0], float(counts.outcomes.horizon)
    each = horizon / steps  # steps that one row of the table stands for
    total, ended = episodes * each, counts.reward_sum[:steps, -1, 0] / counts.visits[:steps, -1, 0]
    over = total - counts.visits[:steps, :-1].sum(axis=(1, 2))
    mean = (counts.reward_sum[:steps, :-1].sum(axis=(1, 2)) + over * ended) / total
    square = (counts.reward_square[:steps, :-1].sum(axis=(1, 2)) + over * ended**2) / total
    deviation = each * float(np.sqrt(np.maximum(square - mean * mean, 0.0)).sum())
    value, variance = each * float(mean.sum()), min(deviation**2, 0.25 * horizon**2)
    radius = mean_radius(episodes, max(1.0, horizon), variance, level)
    return max(0.0, value - radius), min(horizon, value + radius)


def _forecast(rule: Rule, given: CertificateData, delta: float, samples: int) -> int | None:
    """Return how many more samples would do, if frequencies stay what they are."""
    for doublings in range(1, FURTHEST + 1):
        factor = 1 << doublings
        if int(given.data.starts.sum()) * factor >= 2**60 or int(given.data.counts.visits.max()) * factor >= 2**60:
            return None
        counts = Counts(given.data.counts.outcomes, given.data.counts.hits * factor)
        data = Data(counts, given.data.starts * factor, given.data.allowed)
        number = max(given.round + doublings, _least_round(data, given.source))
        later = CertificateData(data, given.source, number, given.fixed_start)
        spent = later.alpha(delta)
        if _judge(rule, later, spent).proven:
            return samples * (factor - 1)
    return None

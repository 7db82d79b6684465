"""The verdict: do the data prove what f(ξ, M) is, and that it is good?

Every tolerance gets bounds on its weight and, if all its comparisons are decided, its policy. A policy is proven to be
the world's if its least possible score exceeds the largest that any other could have, with all that is undecided
counted for the other (docs/proofs/certificate.md §6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import ROUND, levels
from reprl.assurance.confidence import Sample, Values
from reprl.assurance.deviation_bounds import DeviationBounds, bound_deviations
from reprl.assurance.loss_bounds import Interval, LossBounds
from reprl.assurance.margin_ratios import Side, compare_margins
from reprl.assurance.occupancy_bounds import OccupancyBounds, bound_occupancy
from reprl.assurance.tolerances import Margin, bound_margin, everywhere, margin_of_other, open_actions
from reprl.assurance.value_bounds import bound_best, bound_policy
from reprl.canonical.choice import CARE, LEAST_MARGIN, NOISE, POOL, Rule, noise_of
from reprl.canonical.preferred import CLEAR
from reprl.errors import InputError
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.mdp.policy import Policy


class Candidate(NamedTuple):
    """What is proven of one tolerance."""

    policy: Policy | None
    """None while some comparison is open."""
    margin: Margin
    keep: Interval
    """What its loss leaves of its weight."""
    value: Interval
    """Of what it prints."""
    cells: NDArray[np.int64]
    """(n, 2): the open cells (h, s)."""
    side: Side

    @property
    def low(self) -> float:
        """Of its weight; 0 while it is undecided."""
        return min(max(self.margin.low, LEAST_MARGIN), CLEAR) * self.keep[0] if self.policy is not None else 0.0

    @property
    def high(self) -> float:
        """Of its weight."""
        return min(max(self.margin.high, LEAST_MARGIN), CLEAR) * self.keep[1]


class Verdict(NamedTuple):
    """What the data prove."""

    policy: Policy | None
    """f(ξ, M), if that is proven; otherwise the policy that is ahead, or None."""
    proven: bool
    reason: str
    """What is missing; empty if nothing is."""
    lead: float
    """By how much the least score of the policy exceeds the largest of any other; negative while it is not proven."""
    score: float
    """That least score."""
    loss: float
    """Upper bound on V* − V^π."""
    share: float | None
    """Lower bound on the share of the gain that it earns; None where ε is absolute or the gain may count
    as the least."""
    gain: Interval | None
    """Bounds on the gain; None where ε is absolute."""
    tolerance: int
    """Number of the tolerance with the widest proven margin; −1 without a policy."""
    margin: float
    """Its proven margin."""
    tightest: tuple[int, int, int] | None
    """The comparison (h, s, a) that attains it."""
    undecided: list[tuple[int, int]]
    """Cells (h, s) at which an undecided tolerance that could matter is open."""


def prepare(data: Data, *, by_steps: bool, fixed_start: bool) -> Sample:
    """Bring data to what kernels read; samples that count at several steps are no martingale by steps."""
    number = data.counts.visits.astype(np.float64)
    by_steps = by_steps and not data.counts.outcomes.pooled
    return Sample(empirical_dynamics(data), number, float(data.starts.sum()), fixed_start, by_steps)


def judge(
    rule: Rule,
    sample: Sample,
    delta: float,
    *,
    practice: Callable[[float], Interval] | None = None,
    shrink: float = 1.0,
) -> Verdict:
    """Say whether data prove what the rule's policy is.

    practice is the value of the baseline, at a level, where the data say it themselves, as a log does; a smaller shrink
    shrinks every radius, for negative controls only.

    Guarantee:
        With probability at least 1 − δ over the data: if proven, the policy is f(ξ, M) of the true M and loses at most
        `loss` (docs/proofs/certificate.md).

    Randomness:
        Shared, at rule.key.derive("policy", fingerprint), as ``choose`` reads it.
    """
    if alike := rule.stationary.size + rule.phased.size:
        raise InputError(
            f"rule must have a model for each step, got one with {alike} candidates for stationary dynamics"
        )
    level = levels(rule.shape, rule.tolerances.size, delta, shrink=shrink)
    values = bound_best(sample, level.compare, level.cell, level.spread)
    visits = _kept(lambda possible: bound_occupancy(sample, possible, level))
    worth = _kept(lambda possible: bound_policy(sample, possible, level.policy, level.worth))
    deviations = bound_deviations(sample, values, level.law)
    done = None if practice is None else practice(level.worth)
    return conclude(rule, Bounds(values, deviations, visits, worth, done))


class Bounds(NamedTuple):
    """Bounds on every quantity of the true MDP that the rule reads."""

    values: Values
    deviations: DeviationBounds
    visits: Callable[[NDArray[np.bool_]], OccupancyBounds]
    """Of a tolerance's plain policy, of which the possible actions, (H, S, A), are known."""
    worth: Callable[[NDArray[np.bool_]], Interval]
    """The value, from the start, of what a tolerance prints, or of the baseline."""
    practice: Interval | None = None
    """The value of what was done in a log, where that is the baseline."""


_T = TypeVar("_T")


def _kept(find: Callable[[NDArray[np.bool_]], _T]) -> Callable[[NDArray[np.bool_]], _T]:
    """Return a function of possible actions that remembers what it has found."""
    found: dict[bytes, _T] = {}

    def remember(possible: NDArray[np.bool_]) -> _T:
        name = possible.tobytes()
        if name not in found:
            found[name] = find(possible)
        return found[name]

    return remember


def conclude(rule: Rule, bounds: Bounds) -> Verdict:
    """Return what bounds prove about the rule's policy, in every MDP within them."""
    limits = _limits(rule, bounds)
    found = [_candidate(rule, bounds, limits, float(tolerance)) for tolerance in rule.tolerances]
    return _weigh(rule, bounds, limits, found)


def _limits(rule: Rule, bounds: Bounds) -> LossBounds:
    """Bound what ε(M) hangs on."""
    baseline, start = None, bounds.values.start
    if rule.goal.quality is not None and bounds.practice is not None:
        baseline = bounds.practice
    elif rule.goal.quality is not None:
        allowed = np.isfinite(bounds.values.gap_low)
        default = rule.order[allowed[:, :, rule.order].argmax(axis=2)]
        table = default if rule.baseline is None else rule.baseline
        baseline = bounds.worth(np.arange(rule.shape[2]) == table[:, :, None])
    return LossBounds(rule.goal, rule.criterion.effective_horizon, (float(start[0]), float(start[1])), baseline)


def _candidate(rule: Rule, bounds: Bounds, limits: LossBounds, tolerance: float) -> Candidate:
    """Put together what is proven of a tolerance."""
    values = bounds.values
    plain = open_actions(values, everywhere(values), rule.order, tolerance)
    visits = bounds.visits(plain)
    chosen = open_actions(values, visits, rule.order, tolerance)
    cells = np.argwhere(chosen.sum(axis=2) != 1)
    margin = bound_margin(values, bounds.deviations, visits, chosen, rule.order, tolerance)
    value = bounds.worth(chosen)
    least, most = limits.used(value)
    return Candidate(
        policy=None if cells.size else Policy(chosen.argmax(axis=2)),
        margin=margin,
        keep=(_keep(most / rule.room), _keep(least / rule.room)),
        value=value,
        cells=cells,
        side=Side(tolerance, plain, visits, chosen, max(margin.high, LEAST_MARGIN)),
    )


def _keep(used: float) -> float:
    return math.pow(max(0.0, 1.0 - used), CARE)


def _weigh(rule: Rule, bounds: Bounds, limits: LossBounds, found: list[Candidate]) -> Verdict:
    """Compare the policies: the least score of one against the largest of any other."""
    printed: dict[Policy, list[int]] = {}
    for number, candidate in enumerate(found):
        if candidate.policy is not None:
            printed.setdefault(candidate.policy, []).append(number)
    open_ones = [number for number, candidate in enumerate(found) if candidate.policy is None]
    least = {
        policy: _log(_pooled(found[j].low for j in group)) + noise_of(rule, policy) for policy, group in printed.items()
    }
    if not least or max(least.values()) == -math.inf:
        return _nothing(found, [found[j] for j in open_ones])
    first = max(least, key=lambda policy: least[policy])
    group = [found[j] for j in printed[first]]
    others = [_rival(rule, bounds, other, first) if other.policy is None else other for other in found]
    share = [_share(rule, bounds, group, other) if other.policy != first else 0.0 for other in others]
    rivals = {"an undecided tolerance": _log(_pooled(share[j] for j in open_ones)) + NOISE}
    for policy, numbers in printed.items():
        if policy != first:
            high = _log(_pooled(share[j] for j in (*numbers, *open_ones))) + noise_of(rule, policy)
            rivals["another policy"] = max(rivals.get("another policy", -math.inf), high)
    worst = max(rivals, key=lambda name: rivals[name])
    lead = noise_of(rule, first) - rivals[worst]
    widest = max(printed[first], key=lambda j: found[j].low)
    h, s, a = found[widest].margin.tightest
    return Verdict(
        policy=first,
        proven=lead > ROUND,
        reason="" if lead > ROUND else f"{worst} may still weigh more",
        lead=lead,
        score=least[first],
        loss=limits.loss(group[0].value)[1],
        share=limits.share(group[0].value),
        gain=limits.gain,
        tolerance=widest,
        margin=found[widest].margin.low,
        tightest=None if h < 0 else (h, s, a),
        undecided=_open_cells([found[j] for j in open_ones]),
    )


def _rival(rule: Rule, bounds: Bounds, open_one: Candidate, first: Policy) -> Candidate:
    """Return an undecided tolerance with what its margin can be if it prints another policy than the first."""
    side, margin = open_one.side, open_one.margin
    sides = bounds.values, bounds.deviations, side.visits, side.chosen, rule.order
    high = min(margin.high, margin_of_other(*sides, side.tolerance, first.table))
    return open_one._replace(margin=margin._replace(high=high), side=side._replace(high=max(high, LEAST_MARGIN)))


def _share(rule: Rule, bounds: Bounds, group: list[Candidate], other: Candidate) -> float:
    """Return what share of the weight of a group of decided tolerances another one's can be, at most."""
    if other.high == 0.0:
        return 0.0
    weight = _pooled(mine.low for mine in group) / other.high
    shares = []
    for mine in group:
        ratio = compare_margins(bounds.values, bounds.deviations, rule.order, mine.side, other.side)
        ratio = min(ratio, max(1.0, mine.margin.low / LEAST_MARGIN))  # for clipped ones
        shares.append(ratio * mine.keep[0] / other.keep[1])
    least = max(weight, _pooled(shares))
    return 1.0 / least if least > 0.0 else math.inf


def _open_cells(open_ones: list[Candidate]) -> list[tuple[int, int]]:
    """The open cells of the undecided tolerance that could weigh most."""
    if not open_ones:
        return []
    heaviest = max(open_ones, key=lambda candidate: candidate.high)
    return [(int(h), int(s)) for h, s in heaviest.cells]


def _nothing(found: list[Candidate], open_ones: list[Candidate]) -> Verdict:
    """No policy has a weight that is proven to be above 0."""
    reason = "no tolerance is decided" if len(open_ones) == len(found) else "no policy is proven to lose little enough"
    return no_proof(reason, _open_cells(open_ones))


def no_proof(reason: str, undecided: Sequence[tuple[int, int]] = ()) -> Verdict:
    """Return the verdict on data that prove nothing of any policy."""
    return Verdict(None, False, reason, -math.inf, -math.inf, math.inf, None, None, -1, 0.0, None, [*undecided])


def _pooled(weights: Iterable[float]) -> float:
    """Return the weight of a policy that has those of several candidates, as ``choose`` pools them."""
    return math.pow(sum(math.pow(weight, POOL) for weight in weights), 1.0 / POOL)


def _log(weight: float) -> float:
    return math.log(weight) if weight > 0.0 else -math.inf

"""The verdict: do the data prove what f(ξ, M) is, and that it is good?

Every tolerance gets bounds on its weight and, if all its comparisons are decided, its policy. A policy is proven to be
the world's if its least possible score exceeds the largest that any other could have, with all that is undecided
counted for the other (docs/proofs/certificate.md §6).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import ROUND, Levels, levels
from reprl.assurance.confidence import Sample, Values
from reprl.assurance.deviation_bounds import DeviationBounds, bound_deviations
from reprl.assurance.margin_ratios import Side, compare_margins
from reprl.assurance.occupancy_bounds import OccupancyBounds, bound_occupancy
from reprl.assurance.tolerances import Margin, bound_margin, open_actions
from reprl.assurance.value_bounds import bound_best, bound_policy
from reprl.canonical.choice import LEAST_MARGIN, NOISE, POOL, Rule, noise_of
from reprl.canonical.preferred import CLEAR
from reprl.errors import InputError
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.mdp.policy import Policy


class Candidate(NamedTuple):
    """What is proven of one tolerance."""

    policy: Policy | None
    """None while some comparison, or some visit against the floor, is open."""
    low: float
    """Of its weight."""
    high: float
    loss: float
    """Upper bound."""
    margin: Margin
    cells: NDArray[np.int64]
    """(n, 2): the open cells (h, s)."""
    chosen: NDArray[np.bool_]
    """(H, S, A): open actions."""
    visits: OccupancyBounds


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


def judge(rule: Rule, sample: Sample, delta: float, *, shrink: float = 1.0) -> Verdict:
    """Say whether data prove what the rule's policy is.

    Args:
        rule: f(ξ, ·), without stationary candidates: they are refused.
        sample: the data.
        delta: probability that what is said to be proven is wrong, at most, for one interim analysis.
        shrink: 1; smaller values shrink every radius, for negative controls only.

    Guarantee:
        With probability at least 1 − δ over the data: if proven, the policy is f(ξ, M) of the true M and loses at most
        `loss` (docs/proofs/certificate.md).

    Randomness:
        Shared, at rule.key.derive("policy", fingerprint), as ``choose`` reads it.
    """
    if rule.stationary.size:
        raise InputError(f"rule must be one for steps apart, got one with {rule.stationary.size} stationary candidates")
    level = levels(rule.shape, rule.tolerances.size, delta, shrink=shrink)
    values = bound_best(sample, level.compare, level.cell, level.spread)
    deviations = bound_deviations(sample, values, level.law)
    visits: dict[bytes, OccupancyBounds] = {}
    worth: dict[bytes, tuple[float, float]] = {}
    found = []
    for tolerance in rule.tolerances:
        chosen = open_actions(values, rule.order, float(tolerance))
        if chosen.tobytes() not in visits:
            visits[chosen.tobytes()] = bound_occupancy(sample, chosen, level)
        seen = visits[chosen.tobytes()]
        margin = bound_margin(values, deviations, seen, chosen, rule.order, float(tolerance), rule.floor)
        found.append(_candidate(rule, sample, level, values, chosen, seen, margin, worth))
    state = _State(sample, values, deviations, level, found)
    return _weigh(rule, state)


class _State(NamedTuple):
    """The confidence state: the sample, and all bounds made from it."""

    sample: Sample
    values: Values
    deviations: DeviationBounds
    level: Levels
    found: list[Candidate]


def _candidate(
    rule: Rule,
    sample: Sample,
    level: Levels,
    values: Values,
    chosen: NDArray[np.bool_],
    visits: OccupancyBounds,
    margin: Margin,
    worth: dict[bytes, tuple[float, float]],
) -> Candidate:
    """Put together what is proven of a tolerance; worth remembers policies that have been valued."""
    printed = chosen.copy()
    below = visits.high < rule.floor - ROUND
    printed[below] = False
    printed[visits.low < rule.floor + ROUND, rule.order[0]] = True
    cells = np.argwhere(printed.sum(axis=2) != 1)
    if printed.tobytes() not in worth:
        worth[printed.tobytes()] = bound_policy(sample, printed, level.policy, level.worth)
    value = worth[printed.tobytes()]
    least, most = max(0.0, float(values.start[0]) - value[1]), float(values.start[1]) - value[0]
    high = min(max(margin.high, LEAST_MARGIN), CLEAR) * _keep(rule, least)
    if cells.size:
        return Candidate(None, 0.0, high, most, margin, cells, chosen, visits)
    low = min(max(margin.low, LEAST_MARGIN), CLEAR) * _keep(rule, most)
    return Candidate(Policy(printed.argmax(axis=2)), low, high, most, margin, cells, chosen, visits)


def _keep(rule: Rule, loss: float) -> float:
    return math.sqrt(max(0.0, 1.0 - loss / rule.room))


def _weigh(rule: Rule, state: _State) -> Verdict:
    """Compare the policies: the least score of one against the largest of any other."""
    found = state.found
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
    share = [_share(rule, state, printed[first], j) if found[j].policy != first else 0.0 for j in range(len(found))]
    rivals = {"an undecided tolerance": _log(_pooled(share[j] for j in open_ones)) + NOISE}
    for policy, group in printed.items():
        if policy != first:
            high = _log(_pooled(share[j] for j in (*group, *open_ones))) + noise_of(rule, policy)
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
        loss=max(found[j].loss for j in printed[first]),
        tolerance=widest,
        margin=found[widest].margin.low,
        tightest=None if h < 0 else (h, s, a),
        undecided=_open_cells([found[j] for j in open_ones]),
    )


def _share(rule: Rule, state: _State, group: list[int], j: int) -> float:
    """Return what share of the weight of a group of decided tolerances another one's can be, at most."""
    found = state.found
    other = found[j]
    if other.high == 0.0:
        return 0.0
    weight = _pooled(found[i].low for i in group) / other.high
    most = max(other.margin.high, LEAST_MARGIN)
    its = Side(float(rule.tolerances[j]), other.chosen, other.visits, most)
    shares = []
    for i in group:
        mine = Side(float(rule.tolerances[i]), found[i].chosen, found[i].visits, found[i].margin.high)
        ratio = compare_margins(state.values, state.deviations, rule.order, rule.floor, mine, its)
        ratio = min(ratio, max(1.0, found[i].margin.low / LEAST_MARGIN))  # for clipped ones
        shares.append(ratio * _keep(rule, found[i].loss))
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
    return Verdict(None, False, reason, -math.inf, -math.inf, math.inf, -1, 0.0, None, [*undecided])


def _pooled(weights: Iterable[float]) -> float:
    """Return the weight of a policy that has those of several candidates, as ``choose`` pools them."""
    return math.pow(sum(math.pow(weight, POOL) for weight in weights), 1.0 / POOL)


def _log(weight: float) -> float:
    return math.log(weight) if weight > 0.0 else -math.inf

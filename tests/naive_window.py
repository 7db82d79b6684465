"""What windows of a decision cost, with dictionaries, lists and loops: by trying every policy, and step by step.

Written from the docstrings of decide.window and docs/proofs/decision.md §5. Laws are the formulas of naive_decision.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tests import naive_decision
from tests.naive_decision import Data

Place = tuple[int, int]
Values = Mapping[Place, float]


class Case(NamedTuple):
    """Data, sizes and a partition into tiers 1 … count, the last of which is ignored if there are several."""

    data: Data
    shape: tuple[int, int, int]
    level: Sequence[Sequence[int]]
    count: int  # type: ignore[assignment]  # tuple.count is of no use here

    @property
    def decided(self) -> list[Place]:
        """Every (h, s) at which an arm is chosen."""
        horizon, n_states, _ = self.shape
        ignored = self.count if self.count > 1 else 0
        return [(h, s) for h in range(horizon) for s in range(n_states) if self.level[h][s] != ignored]

    @property
    def first(self) -> list[Place]:
        """Those of the first step."""
        return [(h, s) for h, s in self.decided if h == 0]

    def seen(self, place: Place) -> bool:
        """Whether every arm has a sample."""
        return all(self.data.get((*place, a)) for a in range(self.shape[2]))

    def score(self, place: Place, arm: int, following: Values) -> float:
        """Mean of reward plus what follows; 0 for an arm without samples."""
        samples = self.data.get((*place, arm), ())
        return sum(r + following[place[0] + 1, x] for x, r in samples) / len(samples) if samples else 0.0

    def scores(self, place: Place, following: Values) -> list[float]:
        """The score of every arm."""
        return [self.score(place, a, following) for a in range(self.shape[2])]

    def backwards(self) -> Iterator[Place]:
        """Every (h, s), last step first."""
        horizon, n_states, _ = self.shape
        return ((h, s) for h in range(horizon - 1, -1, -1) for s in range(n_states))

    def nothing(self) -> dict[Place, float]:
        """What comes after the last step."""
        return {(self.shape[0], s): 0.0 for s in range(self.shape[1])}


def best_values(case: Case) -> dict[Place, float]:
    """The optimal values; a state whose arms were not all seen may be worth all the steps that remain."""
    out = case.nothing()
    for place in case.backwards():
        out[place] = max(case.scores(place, out)) if case.seen(place) else float(case.shape[0] - place[0])
    return out


def policy_values(case: Case, policy: Mapping[Place, int]) -> dict[Place, float]:
    """A policy's own values, ignored states being worth 0."""
    out = case.nothing()
    for place in case.backwards():
        out[place] = case.score(place, policy[place], out) if place in policy else 0.0
    return out


def policies(case: Case) -> Iterator[dict[Place, int]]:
    """Every choice of arms at the decided states."""
    places = case.decided
    for arms in itertools.product(range(case.shape[2]), repeat=len(places)):
        yield dict(zip(places, arms, strict=True))


def drawable(case: Case, policy: Mapping[Place, int], windows: Sequence[float]) -> bool:
    """Whether every arm is within its tier's window of the best, by scores with the policy's own values."""
    own = policy_values(case, policy)
    for (h, s), arm in policy.items():
        scores = case.scores((h, s), own)
        if scores[arm] < max(scores) - windows[case.level[h][s] - 1]:
            return False
    return True


def true_worst_loss(case: Case, windows: Sequence[float]) -> float:
    """The largest loss of a drawable policy at a decided state of the first step: every policy is tried."""
    best, worst = best_values(case), 0.0
    for policy in policies(case):
        if drawable(case, policy, windows):
            own = policy_values(case, policy)
            worst = max([worst, *(best[place] - own[place] for place in case.first)])
    return worst


def worst_loss(case: Case, windows: Sequence[float]) -> float:
    """The bound of docs/proofs/decision.md §5: U − W, W the least value that the windows leave possible."""
    high, low = best_values(case), case.nothing()
    for h, s in case.backwards():
        if (h, s) not in case.decided:
            low[h, s] = 0.0
            continue
        below, above = case.scores((h, s), low), case.scores((h, s), high)
        floor = max(below) - windows[case.level[h][s] - 1]
        possible = [x for x, y in zip(below, above, strict=True) if y >= floor]
        low[h, s] = max(min(possible), floor)
    return max([0.0, *(high[place] - low[place] for place in case.first)])


class Likely(NamedTuple):
    """Laws at mean values, the means, and bounds on the standard deviations."""

    laws: dict[Place, list[float]]
    mean: dict[Place, float]
    deviation: dict[Place, float]


def likely(case: Case, by_tier: Sequence[float], delta: float, mechanism: str) -> Likely:
    """Mean by the laws that the induction has at mean values; D² = Var_a(mean given a) + Σ_a p(a)·(P_a D)²."""
    horizon, n_states, n_actions = case.shape
    found = Likely({}, case.nothing(), case.nothing())
    tiers = range(1, max(case.count, 2))
    for h in range(horizon - 1, -1, -1):
        for s in range(n_states):
            found.mean[h, s] = found.deviation[h, s] = 0.0
        for tier in tiers:
            places = [place for place in case.decided if place[0] == h and case.level[h][place[1]] == tier]
            if not places:
                continue
            rows = [case.scores(place, found.mean) for place in places]
            laws = naive_decision.laws(rows, by_tier[tier - 1], delta / (horizon * len(tiers)), mechanism)
            for place, row, law in zip(places, rows, laws, strict=True):
                mean = sum(p * x for p, x in zip(law, row, strict=True))
                variance = 0.0
                for a in range(n_actions):
                    samples = case.data.get((*place, a), ())
                    inner = sum(found.deviation[h + 1, x] for x, _ in samples) / max(1, len(samples))
                    variance += law[a] * ((row[a] - mean) ** 2 + inner**2)
                found.laws[place] = law
                found.mean[place], found.deviation[place] = mean, math.sqrt(variance)
    return found


def likely_loss(case: Case, by_tier: Sequence[float], delta: float, mechanism: str) -> float:
    """Mean loss plus sqrt(1/δ − 1) deviations, at the worst decided state of the first step."""
    best, found = best_values(case), likely(case, by_tier, delta, mechanism)
    share = math.sqrt(1.0 / delta - 1.0)
    return max([0.0, *(best[place] - found.mean[place] + share * found.deviation[place] for place in case.first)])


def value_law(case: Case, laws: Mapping[Place, Sequence[float]]) -> list[tuple[float, dict[Place, float]]]:
    """Every policy's probability, arms being drawn independently from the laws, with its values."""
    out = []
    for policy in policies(case):
        chance = math.prod(laws[place][arm] for place, arm in policy.items())
        if chance > 0.0:
            out.append((chance, policy_values(case, policy)))
    return out

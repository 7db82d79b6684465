"""The smallest budget at which a learner both replicates and is good, by sequential tests at doubling budgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any, NamedTuple, Protocol

import numpy as np

from reprl.auditing.evidence import Estimate, SequentialTest, student
from reprl.auditing.pairs import KeyRuns, Subject, Trial, run_keys
from reprl.errors import InputError, ReprlError, check_choice, check_int, check_probability, check_real, quote
from reprl.learning.protocol import Learner
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, fresh_seed
from reprl.sources.environment import describe
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.protocol import ACCESSES
from reprl.storage.checkpoints import Checkpoint

LEVEL = 0.05
"""Chance of each of the two errors of a judgement."""
MARGIN = (0.75, 1.5)
"""Disagreement of at most the first times ρ should pass, of at least the second times ρ should fail."""
EVALUATION = 50
"""Episodes with which each policy is valued in a black box."""
STEP = 2.0
RESOLUTION = math.sqrt(2.0)
"""A bracket is not split further than this."""
_CHI_SQUARE = 3.841458820694124
_BEYOND = math.log(64.0)
_NEAR = 64


class Tried(NamedTuple):
    """What pairs of runs showed at one budget."""

    budget: int
    samples: float
    """Mean of what a run drew; a learner may stop before its budget."""
    pairs: int
    disagreements: int
    interval: tuple[float, float]
    """95 %, valid although the pairs were watched one by one."""
    suboptimality: float | None
    """Mean over all runs of the optimal value less the policy's, both exact; None for a black box."""
    value: Estimate | None = None
    """Mean return over episodes of all policies, in a black box; Student's interval, by pair."""

    @property
    def disagreement(self) -> float:
        """Fraction of pairs whose policies differ."""
        return self.disagreements / self.pairs


class Search(NamedTuple):
    """The budgets that were tried, and the smallest one that will do."""

    found: Tried | None
    """The smallest budget that passed, or None."""
    failed: Tried | None
    """The largest budget below it that failed, or the largest of all."""
    points: tuple[Tried, ...]
    """By budget."""
    errors: tuple[str, ...]
    """Why a run failed, at each of them; empty where none did."""

    @property
    def spent(self) -> float:
        """The most samples of a run at any budget tried."""
        return max(point.samples for point in self.points)

    def needed(self, rho: float) -> Crossing | None:
        """Return where disagreement passes ρ, by all points near the answer; None where accuracy decided or nothing."""
        if self.found is None or self.failed is None or self.failed.disagreement <= rho:
            return None
        near = [point for point in self.points if point.budget >= self.found.budget / _NEAR]
        return crossing([(point.samples, point.pairs, point.disagreements) for point in near], rho)


def smallest_budget(
    mdp: TabularMDP | GymnasiumModel,
    make: Callable[[int], Learner],
    *,
    access: str,
    epsilon: float,
    rho: float,
    low: int,
    limit: int,
    pairs: int = 100,
    seed: int | None = None,
    workers: int = 1,
    checkpoint: tuple[Checkpoint, str] | None = None,
    tell: Callable[[Tried], None] | None = None,
) -> Search:
    """Find the smallest budget with disagreement ≤ ρ and mean suboptimality ≤ ε, to a factor of √2.

    make turns a budget into a learner that draws at most so many samples; every pair has a fresh shared key and
    independent data. In a black box nobody knows the best value, so disagreement alone decides, and every point says
    what its policies earn by episodes. tell is told of every point as it is done.

    Guarantee:
        At one budget: a disagreement of at most 0.75·ρ fails, and one of at least 1.5·ρ passes, with probability at
        most 5 % each if the sequential test decides (docs/proofs/audit.md §2). A test that runs out of pairs, as it
        often does in between, passes if at most a share ρ of them differed. Errors over all budgets are not bounded.
        A budget at which a run ends in an error and no policy fails; if all do, the last error is raised.

    Randomness:
        Data stream (seed, "compare/BUDGET") gives the seed of each budget's pairs; see ``run_key``.
    """
    if not isinstance(mdp, TabularMDP | GymnasiumModel):
        raise InputError(f"mdp must be a TabularMDP or a GymnasiumModel, got {quote(mdp)}")
    check_choice("access", access, ACCESSES)
    epsilon, rho = check_real("epsilon", epsilon, 0.0, math.inf), check_probability("rho", rho)
    low, pairs = check_int("low", low, 1, 2**62), check_int("pairs", pairs, 1, 10**6)
    limit = check_int("limit", limit, low, 2**62)
    seed = fresh_seed() if seed is None else check_int("seed", seed, 0, 2**64 - 1)
    world, (kept, name) = describe(mdp), checkpoint or (None, "")
    played = 0 if isinstance(mdp, TabularMDP) else EVALUATION

    def run(budget: int) -> Generator[KeyRuns, None, None]:
        own = int(DataStream(seed, f"compare/{budget}").integers(1)[0])
        subject = Subject(name="learner", access=access, options={}, call=make(budget))
        trial = Trial(env=mdp, world=world, subject=subject, seed=own, runs=2, episodes=played)
        return run_keys(trial, pairs, workers, may_stop=True, checkpoint=kept, name=f"{name}{budget}/")

    def rate(point: Tried, earned: list[float]) -> tuple[Tried, bool]:
        if isinstance(mdp, GymnasiumModel):
            return point._replace(value=student(earned or [0.0], 0.0, float(mdp.horizon))), True
        mean = sum(earned) / point.pairs  # a pair that failed is worth nothing
        loss = max(0.0, float(mdp.initial @ mdp.solve().values[0]) - mean)
        return point._replace(suboptimality=loss), loss <= epsilon

    return search_budgets(run, rate, rho=rho, low=low, limit=limit, tell=tell)


class Pair(Protocol):
    """Two runs of one shared key."""

    @property
    def differ(self) -> bool:
        """Whether their policies differ."""

    @property
    def samples(self) -> tuple[int, ...]:
        """Of each run."""

    @property
    def values(self) -> tuple[float | None, ...] | None:
        """What each policy is worth."""


def search_budgets(
    run: Callable[[int], Generator[Any, None, None]],
    rate: Callable[[Tried, list[float]], tuple[Tried, bool]],
    *,
    rho: float,
    low: int,
    limit: int,
    tell: Callable[[Tried], None] | None = None,
) -> Search:
    """Find the smallest budget at which pairs agree and policies are good.

    run turns a budget into its pairs, each a ``Pair``, which are begun as they are asked for; rate turns a point and
    the mean worth of each pair into the point with that worth, and whether it will do.
    """
    tried: dict[int, tuple[Tried, str]] = {}

    def judge(budget: int) -> tuple[Tried, bool]:
        point, earned, agrees, failure = _try(run(budget), budget, rho)
        point, good = rate(point, earned)
        tried[budget] = point, failure
        if tell is not None:
            tell(point)
        return point, agrees and good

    found, failed = _climb(judge, low, limit)
    points, errors = zip(*(tried[budget] for budget in sorted(tried)), strict=True)
    if all(errors):
        raise InputError(errors[-1])
    return Search(found, failed, points, errors)


def _climb(judge: Callable[[int], tuple[Tried, bool]], low: int, limit: int) -> tuple[Tried | None, Tried | None]:
    """Return the smallest budget that passed and the largest below it that failed.

    Budgets are doubled from `low` until one passes and the next one passes too; disagreement need not fall with the
    budget, and a lucky pass is thus not taken for an answer (at the limit there is no next one). Then the bracket is
    split once, at its geometric middle. A search also ends where a doubled budget is not used.
    """
    failed = found = last = None
    budget = low
    while budget <= limit:
        point, passed = judge(budget)
        if passed and found is not None:
            break
        found, failed = (point, failed) if passed else (None, point)
        if last is not None and point.samples <= 1.01 * last.samples:
            break
        last = point
        budget = round(STEP * budget)
    while found is not None and failed is not None and found.budget > 1.01 * RESOLUTION * failed.budget:
        point, passed = judge(round(math.sqrt(found.budget * failed.budget)))
        found, failed = (point, failed) if passed else (found, point)
    return found, failed


def _try(runs: Generator[Pair, None, None], budget: int, rho: float) -> tuple[Tried, list[float], bool, str]:
    """Run pairs until the sequential test decides or they are used up.

    Returns:
        What they showed, the mean worth of each pair, whether they agree, and why a run failed.
    """
    test = SequentialTest.checked(MARGIN[0] * rho, LEVEL, min(MARGIN[1] * rho, (1.0 + rho) / 2.0))
    hits = keys = samples = 0
    verdict, failure = "undecided", ""
    earned: list[float] = []
    try:
        with closing(runs):
            for found in runs:
                keys += 1
                hits += found.differ
                samples += sum(found.samples)
                worth = [value for value in found.values or () if value is not None]
                earned += [sum(worth) / len(worth)] if worth else []
                verdict = test.decide(hits, keys)
                if verdict != "undecided":
                    break
    except ReprlError as error:  # a pair without two policies: apart, and worth nothing
        keys, hits, samples, failure = keys + 1, hits + 1, samples + 2 * budget, f"a run failed: {error}"
    agrees = not failure and (verdict == "not rejected" or (verdict == "undecided" and hits <= rho * keys))
    point = Tried(budget, samples / (2 * keys), keys, hits, test.interval(hits, keys), None)
    return point, earned, agrees, failure


class Crossing(NamedTuple):
    """Where disagreement passes ρ, in samples a run, with a 95 % interval."""

    samples: float
    low: float
    high: float


def crossing(counts: Sequence[tuple[float, int, int]], rho: float) -> Crossing:
    """Fit disagreement = 1 − exp(−c·samples^−b) to (samples, pairs, disagreements) and read it at ρ.

    Guarantee:
        The most likely answer over all c and ¼ ≤ b ≤ 2, and all that are within χ²₁'s 95 % of its likelihood. That is
        approximate, as any likelihood interval is, but the order in which pairs were stopped does not touch it.
    """
    sizes, pairs, hits = (np.array(column, dtype=float) for column in zip(*counts, strict=True))
    x = np.log(sizes)
    answer = np.linspace(x.min() - _BEYOND, x.max() + _BEYOND, 801)
    falls = np.geomspace(0.25, 2.0, 13)
    rate = -math.log1p(-rho) * np.exp(-falls[:, None, None] * (x - answer[:, None]))
    rate = np.clip(rate, 1e-300, 700.0)
    best = (hits * np.log(-np.expm1(-rate)) - (pairs - hits) * rate).sum(axis=2).max(axis=0)
    kept = answer[best >= best.max() - 0.5 * _CHI_SQUARE]
    return Crossing(*(float(np.exp(end)) for end in (answer[best.argmax()], kept.min(), kept.max())))

"""The fewest episodes at which a run of the paper's algorithm is proven, as far as docs/proofs/whole.md goes.

The algorithm is the paper's without boosting: exploration runs tier by tier, whose records are all kept, sets drawn
jointly, `compact` laws drawn jointly, values rounded jointly, pessimism. What the paper bounds with high probability
and a union, and then boosts, is bounded in expectation here. Nothing is left open: every constant is written there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int, check_probability, check_real

_SHARES = (0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75)
_MOST_TIERS = 4


class Problem(NamedTuple):
    """What is to be proven."""

    n_states: int
    n_actions: int
    horizon: int
    epsilon: float
    rho: float
    delta: float

    @property
    def fractional(self) -> int:
        """F: cells (h, s) on which exploration runs may differ; episodes begin in one state."""
        return self.n_states * (self.horizon - 1) + 1

    @property
    def spread(self) -> float:
        """Σ_h R_h·√S_h, with R_h what a step and those after it can pay and S_h the states that it can begin in."""
        return sum((self.horizon - h) * math.sqrt(self.n_states if h else 1) for h in range(self.horizon))


class Sharp(NamedTuple):
    """Sizes with which a run is proven; tiers 1 … L−1."""

    episodes: float
    """Σ N_ℓ·K_ℓ."""
    runs: tuple[int, ...]
    """N: exploration runs of each tier."""
    lengths: tuple[int, ...]
    """K: episodes of one run."""
    gaps: tuple[float, ...]
    """g: window of the compact laws."""
    widths: tuple[float, ...]
    """w: of the rounding."""
    reach: tuple[float, ...]
    """λ: what K episodes leave under-explored is visited no more than this, in expectation."""
    failures: tuple[float, float, float]
    """δ₁ (noise), δ₂ (starved states), δ₃ (visits of tiers above 1)."""


def visits_left(n_states: int, n_actions: int, horizon: int, episodes: float, failure: float) -> float:
    """Return λ(K): no policy visits what K episodes with c = 1 left under-explored more often, but with probability ι.

    (e−1)·H·(2HSA/K + 4·√(2H³SAℓ/K)), ℓ = log(2SAKH/ι): docs/proofs/whole.md §1.
    """
    cells = n_states * n_actions
    log = math.log(2.0 * cells * episodes * horizon / failure)
    bonus = 4.0 * math.sqrt(2.0 * horizon**3 * cells * log / episodes)
    return (math.e - 1.0) * horizon * (2.0 * horizon * cells / episodes + bonus)


def episodes_for(n_states: int, n_actions: int, horizon: int, reach: float) -> tuple[int, float]:
    """Return the fewest episodes K, and ι, with λ(K) + ι·H ≤ reach: what is expected to be left under-explored."""
    failure = 0.01 * reach / horizon
    episodes = _least(
        lambda k: visits_left(n_states, n_actions, horizon, k, failure) <= 0.99 * reach, f"reach {reach:g}"
    )
    return episodes, failure


def _least(enough: Callable[[float], bool], asked: object) -> int:
    """Return the least number, by bisection, from which on `enough` holds."""
    low, high = 1.0, 2.0
    while not enough(high):
        low, high = high, 2.0 * high
        if high > 1e300:
            raise InputError(f"these settings need more episodes or runs than a float can hold: {asked}")
    while high - low > max(1.0, 1e-9 * high):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return math.ceil(high)


def disagreement(problem: Problem, runs: float, gap: float, width: float) -> float:
    """Bound the probability that a tier parts two runs: its set, an action or a value (docs/proofs/whole.md §2, §3)."""
    arms = 2.0 if problem.n_actions == 2 else 2.0 * problem.n_actions * (problem.n_actions + 1.0)
    sets = 2.0 * math.sqrt(2.0 * math.log(2.0) * problem.fractional / (2.0 * runs - 1.0))
    turn = math.pi * (math.sqrt(arms) / gap + math.sqrt(problem.n_actions) / width)
    return sets + turn * problem.spread / math.sqrt(2.0 * problem.horizon * runs)


def noise(problem: Problem, tiers: int, runs: float, delta_noise: float, delta_starved: float) -> float:
    """Bound the error of every mean in units of what a step can still pay (docs/proofs/whole.md §4)."""
    cells = problem.fractional * (tiers - 1)
    fewest = max(1.0, problem.horizon * runs * delta_starved / cells)
    return math.sqrt(math.log(2.0 * problem.n_actions * cells / delta_noise) / (2.0 * fewest))


def sharp_episodes(
    n_states: int, n_actions: int, horizon: int, *, epsilon: float, rho: float = 0.1, delta: float = 0.1
) -> Sharp:
    """Return the fewest episodes, over tiers and over ways to share out ε and δ, at which a run is proven.

    ε is an accuracy in (0, H), ρ the disagreement, δ the failure.

    Guarantee:
        A run with these sizes, joint coupling, records kept and vector rounding is ρ-replicable and ε-optimal with
        probability 1 − δ on every MDP of these sizes with one start: docs/proofs/whole.md.
    """
    problem = Problem(
        check_int("n_states", n_states, 1),
        check_int("n_actions", n_actions, 2),
        check_int("horizon", horizon, 1),
        check_real("epsilon", epsilon, 0.0, float(horizon)),
        check_probability("rho", rho),
        check_probability("delta", delta),
    )
    found = [
        _sizes(problem, tiers, ignored, window, markov)
        for tiers in range(2, _MOST_TIERS + 1)
        for ignored, window, markov in product(_SHARES, _SHARES, (0.7, 0.8, 0.9))
    ]
    return min(found, key=lambda one: one.episodes)


def _sizes(problem: Problem, tiers: int, ignored: float, window: float, markov: float) -> Sharp:
    """Sizes for L tiers: a share of ε for what is ignored, one of a tier's for its window, one of δ for visits."""
    decided = tiers - 1
    visits_delta = markov * problem.delta
    rest = (problem.delta - visits_delta) / 2.0
    last = ignored * problem.epsilon * visits_delta / problem.horizon
    reach = [last ** (tier / decided) for tier in range(1, tiers)]  # geometric, from 1 visit to the last
    reach[-1] = last
    share = (1.0 - ignored) * problem.epsilon / decided
    runs, gaps, widths, lengths = [], [], [], []
    for tier in range(1, tiers):
        # Tier 1 is visited at most H times, tier ℓ ≥ 2 at most λ_{ℓ−1}/δ₃ times.
        often = float(problem.horizon) if tier == 1 else reach[tier - 2] / visits_delta
        loss = min(float(problem.horizon), share / often)
        gap = window * loss
        width = 0.3 * gap
        left = loss - gap - 2.0 * width
        if left <= 0.0:
            return Sharp(math.inf, (), (), (), (), (), (rest, rest, visits_delta))
        runs.append(_fewest_runs(problem, tiers, gap, width, left, rest))
        gaps.append(gap)
        widths.append(width)
        lengths.append(episodes_for(problem.n_states, problem.n_actions, problem.horizon, reach[tier - 1])[0])
    total = float(sum(n * k for n, k in zip(runs, lengths, strict=True)))
    return Sharp(
        total, tuple(runs), tuple(lengths), tuple(gaps), tuple(widths), tuple(reach), (rest, rest, visits_delta)
    )


def _fewest_runs(problem: Problem, tiers: int, gap: float, width: float, left: float, failure: float) -> int:
    """The fewest runs at which a tier keeps its share of ρ, and four sampling errors fit into the rest of its loss."""
    share = problem.rho / (tiers - 1)

    def enough(runs: float) -> bool:
        error = problem.horizon * noise(problem, tiers, runs, failure, failure)
        return disagreement(problem, runs, gap, width) <= share and 4.0 * error <= left

    return _least(enough, problem)


# A pair that can be played: ρ from the number of runs alone, the loss from a run's own data (docs/proofs/whole.md §6).

_MOST_RUNS = 10**6


class PairSizes(NamedTuple):
    """Sizes of one run of a proven pair by episodes: one tier, `compact` laws and rounding of one width."""

    runs: int
    """N."""
    length: int
    """K: episodes of a run. ρ does not depend on it; the certified loss does."""
    quota: int
    """q: records of every action below which a state is under-explored, at most ⌊Hℓ⌋."""
    window: float
    """g = w: of the compact laws and of the rounding."""
    noise: float
    """ν₀: what the error of every mean must stay below; pessimism is g + ν₀."""
    failure: float
    """ι of an exploration run: all N of them are good except with probability 0.1·δ."""
    rho: float
    """What is proven of two runs."""


def pair_sizes(problem: Problem, window: float, length: int) -> PairSizes:
    """Return the fewest runs N at which two runs part with probability at most ρ, whatever the world.

    Guarantee:
        docs/proofs/whole.md §6: ρ = 2√(2 ln 2·F/(2N − 1)) + π(√c_A + √A)/g·Σ_h R_h√(S_h/(2qN)).
    """
    failure = 0.1 * problem.delta / _MOST_RUNS
    log = math.log(2.0 * problem.n_states * problem.n_actions * length * problem.horizon / failure)
    quota = math.floor(problem.horizon * log)
    arms = 2.0 if problem.n_actions == 2 else 2.0 * problem.n_actions * (problem.n_actions + 1.0)
    turn = math.pi * (math.sqrt(arms) + math.sqrt(problem.n_actions)) / window * problem.spread

    def parted(runs: float) -> float:
        sets = 2.0 * math.sqrt(2.0 * math.log(2.0) * problem.fractional / (2.0 * runs - 1.0))
        return sets + turn / math.sqrt(2.0 * quota * runs)

    runs = _least(lambda n: parted(n) <= problem.rho, problem)
    if runs > _MOST_RUNS:
        raise InputError(f"window must be larger: {window:g} asks for {runs} runs, at most {_MOST_RUNS} are allowed")
    return PairSizes(runs, length, quota, window, 0.02 * window, failure, parted(runs))


def certified_loss(
    problem: Problem, sizes: PairSizes, first_value: NDArray[np.float64], fewest: NDArray[np.float64]
) -> float | None:
    """Bound what a run's policy loses, from its own data; None if a mean is not known well enough.

    Args:
        problem: δ is what the bound may fail with.
        sizes: of the run.
        first_value: (N,) final values V₁ of the exploration runs.
        fewest: (H, S) records of the rarest action of every decided cell, infinite where a cell is ignored.

    Guarantee:
        With probability at least 1 − δ over the run: docs/proofs/whole.md §6.
    """
    visits, rest = 0.8 * problem.delta, 0.1 * problem.delta
    left = np.arange(problem.horizon, 0, -1.0)[:, None]  # what a step and those after it can pay
    means = 2.0 * problem.n_actions * problem.fractional
    if (left * np.sqrt(math.log(means / rest) / (2.0 * fewest)) > sizes.noise).any():
        return None
    reach = float(first_value.mean())  # where every V₁ is a bound, as it is except with probability N·ι
    return problem.horizon * (3.0 * sizes.window + 4.0 * sizes.noise + reach / visits)

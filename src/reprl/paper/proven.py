"""The fewest episodes at which a run of the paper's algorithm is proven, as far as docs/proofs/whole.md goes.

The algorithm is the paper's without boosting: exploration runs whose records are all kept, one set drawn
jointly, `compact` laws drawn jointly, values rounded jointly, pessimism. What the paper bounds with high probability
and a union, and then boosts, is bounded in expectation here. Nothing is left open: every constant is written there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int, check_real
from reprl.paper.runs import Exploration

_SHARES = (0.05, 0.1, 0.15, 0.25, 0.35, 0.45, 0.55)
_WINDOWS = (0.16, 0.2, 0.23, 0.26, 0.28, 0.3, 0.32)
_FAILED = 0.01
"""ι·H as a share of λ̄."""


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
    def turn(self) -> float:
        """What the laws of arms and of rounded values turn by: π·Σ_h R_h·√S_h·(√c_A + √A·1{h > 1}).

        R_h is what a step and those after it can pay, S_h the states that it can begin in, c_A 2 for two actions and
        2A(A+1) for more. Values of the first step enter nothing.
        """
        arms = 2.0 if self.n_actions == 2 else 2.0 * self.n_actions * (self.n_actions + 1.0)
        later = math.sqrt(self.n_states) * self.horizon * (self.horizon - 1) / 2.0  # Σ over h > 1
        return math.pi * (math.sqrt(arms) * (self.horizon + later) + math.sqrt(self.n_actions) * later)


class Sizes(NamedTuple):
    """Sizes of a run with one tier that is decided."""

    runs: int
    """N: exploration runs."""
    length: int
    """K: episodes of one run."""
    quota: int
    """q: records of every action below which a state is under-explored."""
    window: float
    """g: window of the compact laws, and width of the rounding."""
    noise: float
    """ν: what the error of every mean stays below; pessimism is g + ν."""
    failure: float
    """ι of an exploration run."""
    failures: tuple[float, float, float]
    """δ₁ (noise), δ₂ (starved states), δ₃ (visits of what is ignored)."""

    @property
    def episodes(self) -> int:
        """Episodes of all runs."""
        return self.runs * self.length


def visits_left(n_states: int, n_actions: int, horizon: int, episodes: float, failure: float) -> float:
    """Return λ(K): no policy visits what K episodes with c = 1 left under-explored more often, but with probability ι.

    σ_1/K with σ_h = n_h·H + (1 + 1/H)·σ_{h+1} + 2·(H+1)/(H+½)·√(H³ℓ·n_hK), n_h the actions that are offered at a step
    and ℓ = log(2SAKH/ι): docs/proofs/whole.md §1. Episodes begin in one state.
    """
    log = _logarithm(n_states, n_actions, horizon, episodes, failure)

    def step(offered: int) -> float:
        root = math.sqrt(horizon**3 * log * offered * episodes)
        return offered * horizon + 2.0 * (horizon + 1.0) / (horizon + 0.5) * root

    ratio, cells = 1.0 + 1.0 / horizon, n_states * n_actions
    total = step(cells if horizon > 1 else n_actions)
    if horizon > 1:  # steps 2 … H−1 are alike, and 1 follows
        more = math.expm1((horizon - 2) * math.log1p(1.0 / horizon))
        total = step(2 * n_actions) + ratio * (total + more * (total + horizon * step(2 * cells)))
    return total / episodes


def _logarithm(n_states: int, n_actions: int, horizon: int, episodes: float, failure: float) -> float:
    """ℓ of the bonus."""
    return math.log(2.0 * n_states * n_actions * episodes * horizon / failure)


@lru_cache
def episodes_for(n_states: int, n_actions: int, horizon: int, reach: float) -> tuple[int, float]:
    """Return the fewest episodes K, and ι, with λ(K) + ι·H ≤ reach: what is expected to be left under-explored."""
    failure, rest = _FAILED * reach / horizon, (1.0 - _FAILED) * reach
    episodes = _least(lambda k: visits_left(n_states, n_actions, horizon, k, failure) <= rest, f"reach {reach:g}")
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


def disagreement(problem: Problem, runs: float, quota: float, window: float) -> float:
    """Bound the probability that two runs differ: in the set, an action or a value (docs/proofs/whole.md §2, §3)."""
    sets = 2.0 * math.sqrt(2.0 * math.log(2.0) * problem.fractional / (2.0 * runs - 1.0))
    return sets + problem.turn / window / math.sqrt(2.0 * quota * runs)


def noise(problem: Problem, records: float, delta_noise: float, delta_starved: float) -> float:
    """Bound the error of every mean, q·N = records (docs/proofs/whole.md §4)."""
    fewest = max(1.0, records * delta_starved / problem.fractional)
    log = math.log(2.0 * problem.n_actions * problem.fractional / delta_noise)
    return problem.horizon * math.sqrt(log / (2.0 * fewest))


@lru_cache
def proven_sizes(problem: Problem) -> Sizes:
    """Return the fewest episodes, over ways to share out ε and δ, at which a run is proven.

    Guarantee:
        A run with these sizes, joint coupling, records kept and rounded values is ρ-replicable and ε-optimal with
        probability 1 − δ on every MDP of these sizes with one start: docs/proofs/whole.md.
    """
    check_int("n_actions", problem.n_actions, 2)
    check_real("epsilon", problem.epsilon, 0.0, float(problem.horizon))
    found = [_sizes(problem, *shares) for shares in product(_SHARES, _WINDOWS, (0.5, 0.6, 0.7, 0.8))]
    return min(found, key=lambda one: float(one.episodes))


def _sizes(problem: Problem, ignored: float, window: float, markov: float) -> Sizes:
    """Sizes for a share of ε for what is ignored, one of the rest for the window, one of δ for visits."""
    visits_delta = markov * problem.delta
    noise_delta = 0.15 * (problem.delta - visits_delta)  # enters by its logarithm alone
    starved = 0.85 * (problem.delta - visits_delta)
    reach = ignored * problem.epsilon * visits_delta / problem.horizon
    loss = min(float(problem.horizon), (1.0 - ignored) * problem.epsilon / problem.horizon)
    length, failure = episodes_for(problem.n_states, problem.n_actions, problem.horizon, reach)
    quota, gap = find_quota(problem, length, failure), window * loss
    runs = _fewest_runs(problem, quota, gap, (loss - 3.0 * gap) / 4.0, (noise_delta, starved))
    error = noise(problem, float(quota) * runs, noise_delta, starved)
    return Sizes(runs, length, quota, gap, error, failure, (noise_delta, starved, visits_delta))


def find_quota(problem: Problem, length: float, failure: float) -> int:
    """Return q = ⌊Hℓ⌋: with c = 1 a phantom with fewer records has a value of H or more (docs/proofs/whole.md §1)."""
    sizes = (problem.n_states, problem.n_actions, problem.horizon)
    return max(problem.horizon, math.floor(problem.horizon * _logarithm(*sizes, length, failure)))


def _fewest_runs(problem: Problem, quota: int, window: float, left: float, failures: tuple[float, float]) -> int:
    """The fewest runs at which ρ is kept, and the sampling error is what is left of the loss.

    Both conditions are solved for N, up to the 1 of 2N − 1 and rounding, which the loop makes good.
    """
    turned = 2.0 * math.sqrt(2.0 * math.log(2.0) * problem.fractional) + problem.turn / window / math.sqrt(quota)
    known = problem.horizon / left
    records = known * known * math.log(2.0 * problem.n_actions * problem.fractional / failures[0]) / 2.0
    parted = 0.5 * (turned / problem.rho) * (turned / problem.rho)
    erred = records * problem.fractional / (quota * failures[1])
    if not math.isfinite(parted + erred):
        raise InputError(f"these settings need more episodes or runs than a float can hold: {problem}")
    runs = max(1, math.ceil(0.999999999 * max(parted, erred if records > 1.0 else 1.0)))
    while (
        disagreement(problem, runs, quota, window) > problem.rho
        or noise(problem, float(quota) * runs, *failures) > left
    ):
        runs += max(1, runs >> 30)
    return runs


# A pair whose loss is certified from a run's own data (docs/proofs/whole.md §6).

_MOST_RUNS = 10**6


def certified_sizes(problem: Problem, window: float, length: int, quota: int | None = None) -> Sizes:
    """Return the fewest runs N at which two runs differ with probability at most ρ, whatever the environment.

    quota is None for ⌊Hℓ⌋, the largest for which V₁ bounds what is left under-explored without a factor.

    Guarantee:
        docs/proofs/whole.md §6: ρ = 2√(2 ln 2·F/(2N − 1)) + turn/(g·√(2qN)). All N runs are good except with
        probability 0.1·δ.
    """
    failure = 0.1 * problem.delta / _MOST_RUNS
    quota = find_quota(problem, length, failure) if quota is None else check_int("quota", quota, 1, length)
    runs = _least(lambda n: disagreement(problem, n, quota, window) <= problem.rho, problem)
    if runs > _MOST_RUNS:
        raise InputError(f"window must be larger: {window:g} asks for {runs} runs, at most {_MOST_RUNS} are allowed")
    failures = (0.1 * problem.delta, 0.0, 0.8 * problem.delta)
    return Sizes(runs, length, quota, window, 0.04 * window, failure, failures)


def certified_loss(
    problem: Problem, sizes: Sizes, found: Exploration, ignored: NDArray[np.bool_], start: int
) -> float | None:
    """Bound what a run's policy loses, from its own data; None if a mean is not known well enough.

    δ is what the bound may fail with; ignored, (H, S), is the set I that was drawn, start the state in which episodes
    begin.

    Guarantee:
        With probability at least 1 − δ over the run: docs/proofs/whole.md §6.
    """
    rest, _, visits = sizes.failures
    left = np.arange(problem.horizon, 0, -1.0)[:, None]  # what a step and those after it can pay
    fewest = np.where(ignored, np.inf, found.counts.visits.min(axis=2).astype(float))
    means = 2.0 * problem.n_actions * problem.fractional
    if (left * np.sqrt(math.log(means / rest) / (2.0 * fewest)) > sizes.noise).any():
        return None
    # Where every V₁/v bounds what its run left, as it does except with probability N·ι: Markov, or what covers I.
    value = found.first_value / min(1.0, math.sqrt(find_quota(problem, sizes.length, sizes.failure) / sizes.quota))
    reached = ignored.copy()
    reached[0] &= np.arange(problem.n_states) == start
    cover = sum(float(value[found.missed[:, h, s]].min()) for h, s in np.argwhere(reached))
    reach = min(float(value.mean()) / visits, cover)
    return problem.horizon * (3.0 * sizes.window + 4.0 * sizes.noise + reach)

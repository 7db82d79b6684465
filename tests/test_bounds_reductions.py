"""Every reduction of the lower bounds: accuracy, replicability and samples as its lemma states, and the whole chain.

Statistical tests reject a right implementation with probability at most FALSE_ALARM = 1e-6 each; their seeds are fixed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reprl.errors import ReprlError
from reprl.guarantee import Guarantee
from reprl.lab.lower_bounds import hard_mdp as hard
from reprl.lab.lower_bounds import problems, reductions, solvers, sources
from reprl.lab.lower_bounds.problems import Algorithm
from reprl.lab.lower_bounds.simulation import PaddedSource
from reprl.learning.learner import learner
from reprl.randomness import SharedKey
from reprl.sources.parallel import GenerativeModel
from tests.statistics import FALSE_ALARM, exceeds, keeps

ROOT = SharedKey(20250918)
PROMISE = Guarantee.of(rho=0.0, delta=0.01, epsilon=0.05, status="none", source="tests")


def fixed(answer: Any, **changes: Any) -> Algorithm:
    """An algorithm that says the same whatever it sees, after one sample."""

    def run(key: SharedKey, source: Any) -> Any:
        source.count(1)
        return np.asarray(answer, dtype=float)

    return Algorithm(run=run, guarantee=replace(PROMISE, **changes), samples=1)


def cubes(n: int, half_width: float) -> Callable[[int], Any]:
    """A fresh instance of the cube for every pair."""
    return lambda i: problems.cube_instance(n, half_width, ROOT.derive("cubes", i))


def compare(
    algorithm: Algorithm, draw: Callable[[int], Any], source: Callable[[Any, int], Any], excess: Any, pairs: int
) -> None:
    """Run pairs, a fresh key each, and hold the algorithm to its guarantee and its sample count.

    Power at twice the bound: with 200 pairs 0.93 for ρ = 0.2 and 0.04 for δ = 0.05, with 60 pairs 0.12 and 0.0007.
    """
    different = missed = 0
    for i in range(pairs):
        p = draw(i)
        both = [source(p, 2 * i + run) for run in (0, 1)]
        one, two = (algorithm(ROOT.derive("pair", i), one_source) for one_source in both)
        for used in both:
            assert used.samples == algorithm.samples or (not algorithm.exact and used.samples <= algorithm.samples)
        different += not np.array_equal(one, two)
        missed += excess(p, one) > algorithm.guarantee.epsilon
    for hits, bound in ((different, algorithm.guarantee.rho), (missed, algorithm.guarantee.delta)):
        assert exceeds(hits, pairs, min(1.0, bound)) > FALSE_ALARM
        if bound < 0.65:  # beyond that, so few pairs find hardly anything
            assert keeps(hits, pairs, bound, power=0.0, finds=min(0.99, bound + 0.42))


# -------------------------------------------------------------------- what the answers are worth, instance by instance


def test_rounding_to_signs_at_most_doubles_the_error() -> None:
    """Lemma B.1, and it can: v = (0, …) is wrong by |p| and sgn(v) by 2|p|."""
    rng = np.random.default_rng(1)
    for n in rng.integers(1, 30, 500):
        p, v = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n) * rng.choice([0, 0.01, 1])
        source = sources.rademacher(p, 1)
        rounded = reductions.round_to_signs(fixed(v))(ROOT, source)
        assert set(rounded) <= {-1.0, 1.0}
        assert problems.sign_excess(p, rounded) <= 2 * problems.sign_excess(p, v) + 1e-15
        assert source.samples == 1
    assert problems.sign_excess([-0.5], problems.sign([0.0])) == 2 * problems.sign_excess([-0.5], [0.0])


def test_infinity_answers_are_sign_answers_at_twice_the_accuracy_and_not_once() -> None:
    """The remark after Definition B.2 says once; all coordinates wrong just below ε is the counterexample."""
    rng = np.random.default_rng(2)
    for n in rng.integers(1, 30, 300):
        p, v = rng.uniform(-1, 1, n), rng.choice([-1.0, 1.0], n)
        assert problems.sign_excess(p, v) <= 2 * problems.infinity_excess(p, v) + 1e-15
    p = np.full(5, 0.0999)
    assert problems.infinity_excess(p, -np.ones(5)) < 0.1 < problems.sign_excess(p, -np.ones(5))
    assert reductions.signs_from_infinity(fixed(np.ones(3))).guarantee.epsilon == 2 * PROMISE.epsilon


def test_coins_and_infinity_testing_are_one_problem() -> None:
    rng = np.random.default_rng(3)
    for n in rng.integers(1, 30, 300):
        p, v = rng.uniform(0, 1, n), rng.choice([-1.0, 1.0], n)
        coins = reductions.coins_from_infinity(fixed(v))
        answer = coins(ROOT, sources.coins(p, 1))
        assert problems.coin_excess(p, answer) == pytest.approx(problems.infinity_excess(2 * p - 1, v) / 2, abs=1e-15)
        back = reductions.infinity_from_coins(coins)
        assert np.array_equal(back(ROOT, sources.rademacher(2 * p - 1, 1)), v)
        assert back.guarantee.epsilon == PROMISE.epsilon == 2 * coins.guarantee.epsilon
    assert np.array_equal(sources.coins([0.3, 0.8], 4).count(10**6), sources.rademacher([-0.4, 0.6], 4).count(10**6))


def test_signs_of_means_lose_at_most_twice_the_l1_error_over_n() -> None:
    """Theorem B.8 with the 1/n of Definition 7.1, and equality where an estimate is 0 on the wrong side."""
    rng = np.random.default_rng(4)
    for n in rng.integers(1, 30, 500):
        mu = rng.uniform(-1, 1, n)
        v = mu + rng.normal(0, 0.5, n) * (rng.uniform(size=n) < 0.5)
        answer = reductions.signs_from_means(fixed(v), int(n))(ROOT, sources.rademacher(mu, 1))
        assert problems.sign_excess(mu, answer) <= 2 * problems.mean_excess(mu, v) / n + 1e-15
    mu, v = np.array([-0.25, 0.5]), np.array([0.0, 0.5])
    assert problems.sign_excess(mu, problems.sign(v)) == 2 * problems.mean_excess(mu, v) / 2


def cube_class(d: int, extra: int = 0) -> Any:
    """All labelings of d points, with some constant points more."""
    table = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    return np.concatenate([table, np.ones((2**d, extra))], axis=1)


def test_pac_errors_are_half_the_sign_errors() -> None:
    rng = np.random.default_rng(5)
    labels = cube_class(3, 2)
    for _ in range(300):
        p = rng.uniform(-1, 1, 3)
        law = np.zeros((5, 2))
        law[:3] = np.stack([(1 - p) / 6, (1 + p) / 6], axis=1)
        chosen = labels[int(rng.integers(8))]
        assert 2 * problems.pac_excess(law, labels, chosen) == pytest.approx(
            problems.sign_excess(p, chosen[:3]), abs=1e-15
        )


# --------------------------------------------------------------------------------------------- with replicable solvers


@pytest.mark.statistical
def test_self_reduction_keeps_replicability_and_samples() -> None:
    solver = solvers.mean_solver(6, epsilon=0.6, rho=0.2, delta=0.05)
    # An estimate of p read as a soft answer loses |p|(1 − |p|) ≤ 0.25, and at most |v − p| ≤ 0.1 on average more.
    soft = replace(solver, guarantee=replace(solver.guarantee, epsilon=0.4))
    rounded = reductions.round_to_signs(soft)
    assert (rounded.guarantee.epsilon, rounded.guarantee.rho, rounded.samples) == (0.8, 0.2, solver.samples)
    compare(rounded, cubes(6, 0.5), sources.rademacher, problems.sign_excess, 200)


@pytest.mark.statistical
def test_means_solve_signs() -> None:
    solver = reductions.signs_from_means(solvers.mean_solver(8, epsilon=0.8, rho=0.2, delta=0.05), 8)
    assert solver.guarantee.epsilon == pytest.approx(0.2)
    compare(solver, cubes(8, 0.3), sources.rademacher, problems.sign_excess, 200)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["exponential", "compact"])
def test_a_pac_learner_solves_signs(mechanism: str) -> None:
    labels = cube_class(4, 1)
    inner = solvers.pac_learner(labels, epsilon=0.1, rho=0.2, delta=0.04, mechanism=mechanism)
    solver = reductions.signs_from_pac(inner, labels, [0, 1, 2, 3], delta=0.01)
    assert solver.guarantee.epsilon == pytest.approx(0.2)
    assert solver.guarantee.delta == pytest.approx(0.05)
    assert inner.samples / 4 < solver.samples < 1.01 * inner.samples / 4
    compare(solver, cubes(4, 0.6), sources.rademacher, problems.sign_excess, 200)


# --------------------------------------------------------------------------------------------------- RepInftyEstimator


def test_calls_make_the_majority_right_with_exact_tails() -> None:
    for n, delta, inner in itertools.product((1, 5, 100, 10**4), (0.3, 0.01, 1e-6), (0.0, 0.01, 0.2)):
        calls = reductions.infinity_calls(n, delta=delta, inner_delta=inner)
        assert calls % 2 == 1
        assert n * stats.binom.sf(calls // 2, calls, reductions.WRONG_SHARE + inner) <= delta
    assert reductions.infinity_calls(100, delta=0.01) <= 1 + math.ceil(3.23 * math.log(100 / 0.01))


def stubborn(n: int, epsilon: float) -> Algorithm:
    """A sign solver that exploits its licence: two fixed positions wrong, and nonsense once in a hundred keys.

    In 3n = 60 dimensions at accuracy ε two wrong coordinates at ±10ε cost 2·20ε/60 < ε.
    """

    def run(key: SharedKey, source: Any) -> Any:
        answer = problems.sign(2.0 * source.count(10**6) - 10**6)
        answer[:2] *= -1.0
        return -answer if key.derive("nonsense").uniforms(1)[0] < 0.01 else answer

    promise = Guarantee.of(rho=0.0, delta=0.01, epsilon=epsilon, status="none", source="tests")
    return Algorithm(run=run, guarantee=promise, samples=10**6)


@pytest.mark.statistical
def test_permutations_spread_the_errors_of_a_stubborn_solver() -> None:
    n, epsilon, delta = 20, 0.05, 0.05
    inner = stubborn(n, epsilon)
    tester = reductions.infinity_tester(inner, n, delta=delta)
    calls = reductions.infinity_calls(n, delta=delta)
    assert tester.samples == calls * 10**6
    assert tester.guarantee.epsilon == pytest.approx(0.5)
    missed = unpermuted = 0
    for i in range(100):
        q = 0.5 * problems.sign(problems.cube_instance(n, 1.0, ROOT.derive("corner", i)))
        source = sources.rademacher(q, i)
        missed += problems.infinity_excess(q, tester(ROOT.derive(i), source)) >= 0.5
        assert source.samples == tester.samples
        view = PaddedSource(sources.rademacher(q, i), np.arange(3 * n), 0.5)
        answer = inner(ROOT.derive(i), view)
        padded = np.concatenate([q, np.full(n, 0.5), np.full(n, -0.5)])
        # The stub keeps its own promise, and fails ℓ∞-testing without the permutations: the negative control.
        assert problems.sign_excess(padded, answer) < epsilon or np.array_equal(answer[2:], -problems.sign(padded)[2:])
        unpermuted += problems.infinity_excess(q, answer[:n]) >= 0.5
    assert keeps(missed, 100, delta, power=0.00458, finds=0.24)
    assert exceeds(unpermuted, 100, delta) < FALSE_ALARM


@pytest.mark.statistical
def test_infinity_testing_from_a_sign_solver_is_replicable_and_accurate() -> None:
    n, rho = 3, 0.01
    inner = solvers.sign_solver(3 * n, epsilon=0.05, rho=rho, delta=0.01, target="average")
    tester = reductions.infinity_tester(inner, n, delta=0.05)
    calls = reductions.infinity_calls(n, delta=0.05)
    assert tester.guarantee.rho == pytest.approx(calls * rho)
    assert tester.samples == calls * inner.samples
    assert tester.guarantee.status == "proven"

    def draw(i: int) -> Any:
        inside = problems.cube_instance(n, 0.5, ROOT.derive("cube", i))
        return np.where(ROOT.derive("edge", i).uniforms(n) < 0.5, 0.5 * problems.sign(inside), inside)

    compare(tester, draw, sources.rademacher, below(problems.infinity_excess), 100)


def below(excess: Any) -> Any:
    """Count an error at the level itself as a miss: ℓ∞-testing and n coins are strict."""
    return lambda p, v: math.nextafter(excess(p, v), math.inf)


# ----------------------------------------------------------------------------------------------- the chain, end to end

STATES, HORIZON = 4, 3


def call_cost(n_actions: int) -> int:
    """Samples of a parallel call of the hard MDP."""
    public = hard.make_hard_mdp(np.zeros(STATES * HORIZON), n_states=STATES, n_actions=n_actions)
    return int(GenerativeModel(public, 0).samples_per_call)


def rl_solver(epsilon: float, rho: float) -> Algorithm:
    """The paper's learner through the hard MDP, at a size that replicates."""
    settings: dict[str, Any] = {"epsilon": epsilon * HORIZON / 3, "rho": rho, "delta": 0.01}
    return hard.signs_from_reprl(
        learner(rule="paper", constants="scaled", samples=10**6 * call_cost(3), **settings),
        n_states=STATES,
        horizon=HORIZON,
        n_actions=3,
    )


@pytest.mark.statistical
def test_the_rl_learner_solves_signs() -> None:
    solver = rl_solver(0.2, 0.2)
    assert solver.guarantee.epsilon == pytest.approx(0.2)
    assert solver.guarantee.status == "none", "its size is scaled"

    def draw(i: int) -> Any:
        return problems.cube_instance(STATES * HORIZON, [0.1, 0.4, 1.0][i % 3], ROOT.derive("rl", i))

    compare(solver, draw, sources.rademacher, problems.sign_excess, 200)


@pytest.mark.statistical
def test_the_rl_learner_with_too_few_calls_does_not_replicate() -> None:
    """Negative control of the test above."""
    few = hard.signs_from_reprl(
        learner(rule="paper", constants="scaled", epsilon=0.2, rho=0.2, delta=0.01, samples=200 * call_cost(2)),
        n_states=STATES,
        horizon=HORIZON,
    )
    assert few.samples == 400
    different = 0
    for i in range(100):
        p = problems.cube_instance(12, 0.1, ROOT.derive("rl", i))
        one, two = (few(ROOT.derive("pair", i), sources.rademacher(p, 2 * i + run)) for run in (0, 1))
        different += not np.array_equal(one, two)
    assert exceeds(different, 100, 0.2) < FALSE_ALARM


@pytest.mark.statistical
def test_the_rl_learner_solves_infinity_testing_and_coins() -> None:
    n = STATES
    inner = rl_solver(0.05, 0.01)
    tester = reductions.infinity_tester(inner, n, delta=0.05)
    coins = reductions.coins_from_infinity(tester)
    calls = reductions.infinity_calls(n, delta=0.05)
    assert coins.samples == tester.samples == calls * inner.samples
    assert coins.guarantee.rho == pytest.approx(calls * 0.01)
    assert coins.guarantee.epsilon == pytest.approx(0.25)

    def draw(i: int) -> Any:
        inside = problems.cube_instance(n, 0.5, ROOT.derive("chain", i))
        q = np.where(ROOT.derive("chain edge", i).uniforms(n) < 0.5, 0.5 * problems.sign(inside), inside)
        return (q + 1.0) / 2.0

    compare(coins, draw, sources.coins, below(problems.coin_excess), 60)
    compare(tester, lambda i: 2 * draw(i) - 1, sources.rademacher, below(problems.infinity_excess), 60)


def test_paper_constants_are_proven() -> None:
    proven = learner(rule="paper", epsilon=0.5, rho=0.3)
    solver = hard.signs_from_reprl(proven, n_states=2, horizon=1)
    assert solver.guarantee.status == "proven"
    assert problems.sign_excess([0.9, -0.8], solver(ROOT, sources.rademacher([0.9, -0.8], 1))) < 1.5


# ------------------------------------------------------------------------------------------------------------ refusals

BAD: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: hard.signs_from_reprl(learner(access="episodic", rule="paper"), n_states=2, horizon=1),
        "learner must be a reprl learner with access='generative' and rule='paper', not boosted, got",
    ),
    (
        lambda: hard.signs_from_reprl(learner(access="generative"), n_states=2, horizon=1),
        "learner must be a reprl learner with access='generative' and rule='paper', not boosted, got",
    ),
    (
        lambda: hard.signs_from_reprl(lambda model, key: None, n_states=2, horizon=1),  # type: ignore[arg-type]
        "learner must be a reprl learner with access='generative' and rule='paper', not boosted, got",
    ),
    (
        lambda: reductions.infinity_tester(fixed(np.ones(6), epsilon=0.2), 2, delta=0.1),
        r"ten times the solver's epsilon must lie in \(0, 1\], got 2",
    ),
    (
        lambda: reductions.infinity_tester(fixed(np.ones(6), delta=0.4), 2, delta=0.1),
        r"inner delta must lie in \[0, 0.35\), got 0.4",
    ),
    (lambda: reductions.infinity_calls(0, delta=0.1), "n must be a whole number of at least 1, got 0"),
    (lambda: reductions.infinity_calls(3, delta=1.0), r"delta must lie in \(0, 1\), got 1"),
    (
        lambda: reductions.infinity_tester(fixed(np.full(6, 0.5)), 2, delta=0.1)(ROOT, sources.rademacher([0, 0], 1)),
        r"the inner algorithm must answer in \{−1, \+1\} with 6 coordinates, got",
    ),
    (
        lambda: reductions.infinity_tester(fixed(np.ones(6)), 2, delta=0.1)(ROOT, sources.rademacher([0.0], 1)),
        "the source must have 2 coordinates, as the algorithm, got 1",
    ),
    (
        lambda: reductions.signs_from_pac(fixed(np.ones(2)), [[1, 1], [1, -1]], [0, 1]),
        "points must be shattered, with all 4 patterns in the class, got 2",
    ),
    (
        lambda: reductions.signs_from_pac(fixed(np.ones(2)), cube_class(2), [0, 0]),
        r"points must be different numbers from 0 to 1, got \[0, 0\]",
    ),
    (
        lambda: reductions.signs_from_pac(fixed(np.ones(2)), cube_class(2), [0, 5]),
        r"points must be different numbers from 0 to 1, got \[0, 5\]",
    ),
    (lambda: reductions.signs_from_means(fixed(np.ones(2)), 0), "n must be a whole number of at least 1, got 0"),
    (
        lambda: PaddedSource(sources.rademacher([0.0], 1), np.zeros(3, int), 0.5),
        "order must be a permutation of",
    ),
    (
        lambda: rl_solver(0.2, 0.2)(ROOT, sources.rademacher(np.zeros(5), 1)),
        "the source must have 12 coordinates, as the algorithm, got 5",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_refused_with_one_line(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ReprlError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)

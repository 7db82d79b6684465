"""Boosted: what it adds to a learner, what it counts, and mean_return, which it compares candidates with."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import reprl
from reprl.coupling.heavy_hitters import plan_heavy_hitters
from reprl.lab.baselines import make_learner
from reprl.learning.adapters import policy_of
from reprl.paper.boosting import Boosted
from reprl.paper.rep_var_bandit import plan_best_arm
from tests import naive, naive_decision
from tests.statistics import FALSE_ALARM, chi_square_of, exceeds, keeps

Model = reprl.GenerativeModel | reprl.EpisodicModel


def boost(learner: Any, **options: Any) -> Boosted:
    return Boosted(learner=learner, read=policy_of, **options)


def coin_world(chance: float = 0.95) -> reprl.TabularMDP:
    """S = 2, A = 3, H = 2; the first cell pays 1 with the given chance, all others pay about as much."""
    reward = np.full((2, 2, 3), 0.5)
    reward[0, 0, 0] = chance
    return reprl.TabularMDP(np.full((2, 3, 2), 0.5), reward, horizon=2)


@cache
def favourite(key: reprl.SharedKey, first: bool) -> reprl.Policy:
    """The policy that a key likes best, or next best."""
    actions = np.floor(3 * key.uniforms(4)).astype(np.int64).reshape(2, 2)
    actions[0, 0] = (actions[0, 0] + (not first)) % 3
    return reprl.Policy(actions)


def noisy(model: Model, key: reprl.SharedKey) -> reprl.Policy:
    """The key's own policy with probability 0.95, another fixed one otherwise: disagreement 2·0.95·0.05 = 0.095."""
    assert isinstance(model, reprl.GenerativeModel)
    table, slots = model.mdp.outcomes.slots(0, 0, 0)
    paid = model.mdp.outcomes.reward[table] @ model.sample(1).hits[slots]
    return favourite(key, bool(paid))


def scattered(model: Model, key: reprl.SharedKey) -> reprl.Policy:
    """A policy that data alone decide: three in equal parts."""
    assert isinstance(model, reprl.GenerativeModel)
    return reprl.Policy(np.full((2, 2), model.sample(50).hits[0] % 3))


# What boosting adds.


@pytest.mark.statistical
def test_a_noisy_learner_is_boosted_below_what_it_is_rejected_at() -> None:
    """ρ = 0.02 over 400 pairs, false alarm 1e-6. Control: the learner itself is rejected there."""
    mdp, pairs = coin_world(), 400
    boosted = boost(noisy, rho=0.02, delta=0.015, epsilon=1.0, runs=12)
    base_parted = boosted_parted = 0
    for i in range(pairs):
        key = reprl.SharedKey(i)
        one, two = (reprl.GenerativeModel(mdp, 2 * i + half) for half in range(2))
        base_parted += noisy(one, key) != noisy(two, key)
        boosted_parted += boosted(one, key) != boosted(two, key)
    assert keeps(base_parted, pairs, 0.1, power=0.85)
    assert exceeds(base_parted, pairs, 0.02) < FALSE_ALARM
    assert keeps(boosted_parted, pairs, 0.02, power=0.02, finds=0.08)


@pytest.mark.statistical
@pytest.mark.long
def test_the_reprl_learner_can_be_boosted() -> None:
    """On a tied gridworld pairs differ in 20 of 100; false alarm 1e-6. Control: unboosted, it is rejected."""
    mdp, pairs = reprl.make("gridworld-v0", horizon=2, size=2), 200
    base = make_learner("reprl", access="generative", epsilon=0.3, samples=16 * 2 * 4 * 4)
    policies = [base(reprl.GenerativeModel(mdp, i), reprl.SharedKey(i // 2)) for i in range(2 * pairs)]
    assert exceeds(sum(policies[i] != policies[i + 1] for i in range(0, 2 * pairs, 2)), pairs, 0.03) < FALSE_ALARM
    boosted = boost(base, rho=0.03, delta=0.029, epsilon=2.0, runs=10)
    policies = [boosted(reprl.GenerativeModel(mdp, i), reprl.SharedKey(i // 2)) for i in range(50)]
    assert keeps(sum(policies[i] != policies[i + 1] for i in range(0, 50, 2)), 25, 0.03, power=7e-05, finds=0.43)
    best = mdp.evaluate(mdp.solve().policy)
    assert all(mdp.evaluate(policy) >= best - 2.0 for policy in policies)


def test_the_better_of_two_candidates_is_chosen() -> None:
    """Seeds lead to a good or to a bad policy; some seed is good, and the comparison finds it."""
    reward = np.zeros((2, 2, 3))
    reward[:, :, 1] = 1.0
    mdp = reprl.TabularMDP(np.full((2, 3, 2), 0.5), reward, horizon=2)

    def split(model: Model, key: reprl.SharedKey) -> reprl.Policy:
        return reprl.Policy(np.full((2, 2), int(key.uniforms(1)[0] < 0.5)))

    boosted = boost(split, rho=0.1, delta=0.001, epsilon=0.5, runs=2)
    for i in range(20):
        assert boosted(reprl.EpisodicModel(mdp, i), reprl.SharedKey(i)) == reprl.Policy(np.ones((2, 2)))


def test_seeds_are_derived_from_the_key_alone_and_all_are_used() -> None:
    seen: Counter[reprl.SharedKey] = Counter()

    def spy(model: Model, key: reprl.SharedKey, **options: int) -> list[list[int]]:
        seen[key] += 1
        assert options == {"depth": 3}
        return [[0, 0], [0, 0]]

    boosted = boost(spy, rho=0.2, delta=0.1, epsilon=1.0, runs=7)
    policy = boosted(reprl.GenerativeModel(coin_world(), 1), reprl.SharedKey(3), depth=3)
    assert policy == reprl.Policy([[0, 0], [0, 0]])
    assert seen == {reprl.SharedKey(3).derive("seed", i): 14 for i in range(boosted.seeds)}


@given(st.floats(1e-9, 0.49))
def test_there_are_enough_seeds_and_not_many_more(delta: float) -> None:
    """A seed is bad with probability at most 0.32 (see below); all are with probability at most δ/3."""
    seeds = boost(noisy, rho=0.495, delta=delta, epsilon=1.0).seeds
    assert 0.32**seeds <= delta / 3
    assert seeds <= 1 + math.log(3 / delta) / math.log(2)


def test_no_more_than_32_percent_of_seeds_are_bad() -> None:
    """The linear programme behind the number of seeds, by its dual.

    A seed is bad if its likeliest policy has probability c < 0.65 (it then disagrees with itself with probability above
    1 − 0.65² − 0.35²), or c = q ≥ 0.65 and that policy is poor (then it disagrees with probability at least 2q(1−q) and
    fails with probability at least q). Disagreement and failure are at most 0.1 on average. Prices y of disagreement
    and z of failure that cover every kind of bad seed bound their share by 0.1·(y + z).
    """
    y, z = 1 / (1 - 0.65**2 - 0.35**2), 1.0
    for q in np.linspace(0.65, 1.0, 1001):
        assert y * 2 * q * (1 - q) + z * q >= 1 - 1e-12
    assert 0.1 * (y + z) < 0.32


def test_a_learner_without_a_heavy_hitter_is_refused_in_words() -> None:
    boosted = boost(scattered, rho=0.1, delta=0.05, epsilon=1.0, runs=60)
    text = f"^no policy was learned in more than 60% of the runs under any of {boosted.seeds} seeds: .*0.1-replicable"
    with pytest.raises(reprl.ReprlError, match=text):
        boosted(reprl.GenerativeModel(coin_world(), 1), reprl.SharedKey(3))


# Status and ledger.


@pytest.mark.parametrize(
    ("base", "runs", "pulls", "status"),
    [
        ((0.1, 0.1, 0.2, "proven"), None, None, "proven"),
        (None, None, None, "none"),
        ((0.1, 0.1, 0.2, "none"), None, None, "none"),
        ((0.11, 0.1, 0.2, "proven"), None, None, "none"),
        ((0.1, 0.11, 0.2, "proven"), None, None, "none"),
        ((0.1, 0.1, 0.21, "proven"), None, None, "none"),
        ((0.1, 0.1, 0.2, "proven"), 10, None, "none"),
        ((0.1, 0.1, 0.2, "proven"), None, 10, "none"),
    ],
)
def test_the_status_is_proven_only_for_a_proven_learner_and_the_proven_numbers(
    base: tuple[float, float, float, str] | None, runs: int | None, pulls: int | None, status: str
) -> None:
    known = None
    if base is not None:
        known = reprl.Guarantee.of(rho=base[0], delta=base[1], epsilon=base[2], status=base[3], source="here")
    boosted = boost(noisy, rho=0.1, delta=0.05, epsilon=0.4, base=known, runs=runs, pulls=pulls)
    guarantee = boosted.guarantee
    assert guarantee.status == status
    assert (guarantee.rho, guarantee.delta, guarantee.epsilon) == (0.1, 0.05, 0.4)
    assert guarantee.source.startswith("docs/proofs/decision.md §4")
    assert ("nothing is promised" in str(guarantee)) == (status == "none")


@pytest.mark.parametrize("pulls", [None, 37])
def test_every_sample_of_learning_and_of_comparing_is_counted(pulls: int | None) -> None:
    model = reprl.GenerativeModel(coin_world(), 4)
    boosted = boost(noisy, rho=0.2, delta=0.1, epsilon=1.0, runs=9, pulls=pulls)
    boosted(model, reprl.SharedKey(8))
    k = boosted.seeds
    found = {favourite(reprl.SharedKey(8).derive("seed", i), True) for i in range(k)}
    compare = plan_best_arm(len(found), epsilon=0.25, rho=0.1, delta=0.1 / 3).pulls if pulls is None else pulls
    calls = k * (9 + 9) + len(found) * compare
    assert model.ledger.calls == calls
    assert model.ledger.samples == calls * 2 * 3 * 2


def test_with_more_runs_than_candidates_are_needed_only_those_are_drawn() -> None:
    model = reprl.GenerativeModel(coin_world(), 4)
    boosted = boost(noisy, rho=0.2, delta=0.1, epsilon=1.0, runs=50, pulls=1)
    boosted(model, reprl.SharedKey(8))
    k = boosted.seeds
    plan = plan_heavy_hitters(threshold=0.6, tolerance=0.05, rho=0.2 / (2 * k), delta=0.1 / (3 * k))
    assert plan.candidates < 50
    assert model.ledger.calls in {k * (plan.candidates + 50) + arms for arms in range(1, k + 1)}


def test_candidates_that_always_pay_can_be_compared_at_any_number_of_pulls() -> None:
    """Sums of more than 2**53 ones round; a mean return a hair above H must not be taken for a wrong utility."""
    mdp = reprl.TabularMDP(np.full((3, 2, 3), 1 / 3), np.ones((3, 2)), horizon=7, reward_kind="deterministic")

    def steady(model: Model, key: reprl.SharedKey) -> reprl.Policy:
        return reprl.Policy(np.zeros((7, 3), dtype=np.int64))

    zero = reprl.Policy(np.zeros((7, 3), dtype=np.int64))
    returns = [reprl.GenerativeModel(mdp, seed).mean_return(zero, 2**61 + 12345 * seed) for seed in range(50)]
    assert max(returns) > 7.0
    for seed in range(50):
        boosted = boost(steady, rho=0.2, delta=0.1, epsilon=1.0, runs=2, pulls=2**61 + 12345 * seed)
        assert boosted(reprl.GenerativeModel(mdp, seed), reprl.SharedKey(seed)) == zero


def test_a_boosted_learner_needs_a_shared_key() -> None:
    boosted = boost(noisy, rho=0.1, delta=0.05, epsilon=1.0, runs=2)
    with pytest.raises(reprl.ReprlError, match=r"^shared key must be a reprl.SharedKey, got 7$"):
        boosted(reprl.GenerativeModel(coin_world(), 1), 7)  # type: ignore[arg-type]


# mean_return.

POLICY = [[1, 0, 1], [0, 1, 1]]


def case(kind: str, start: Any) -> tuple[reprl.TabularMDP, dict[float, float]]:
    """H = 2, S = 3, A = 2, rewards in quarters that depend on the next state; and the exact law of the return."""
    rng = np.random.default_rng(6)
    transition = rng.dirichlet(np.ones(3), size=(2, 3, 2))
    reward = rng.integers(0, 5, (2, 3, 2, 3)) / 4
    mdp = reprl.TabularMDP(transition, reward, start, reward_kind=kind)
    p, r = naive.by_step(transition, reward, 2)
    return mdp, naive_decision.return_law(p, r, mdp.initial.tolist(), POLICY, kind)


def moments(law: dict[float, float]) -> tuple[float, float, float]:
    """Mean, variance and fourth central moment."""
    mean = sum(x * p for x, p in law.items())
    return mean, *(sum((x - mean) ** k * p for x, p in law.items()) for k in (2, 4))  # type: ignore[return-value]


CASES = list(
    itertools.product(
        (reprl.GenerativeModel, reprl.EpisodicModel), ("bernoulli", "deterministic"), (0, (0.2, 0.5, 0.3))
    )
)


@pytest.mark.statistical
@pytest.mark.parametrize(("access", "kind", "start"), CASES)
def test_single_returns_have_the_exact_law(access: Any, kind: str, start: Any) -> None:
    """False alarm 1e-6. Control: a law with 5 % of its mass moved is rejected."""
    mdp, law = case(kind, start)
    model = access(mdp, 3)
    assert mdp.evaluate(reprl.Policy(POLICY)) == pytest.approx(moments(law)[0])
    tally = Counter(round(model.mean_return(reprl.Policy(POLICY), 1), 12) for _ in range(3000))
    assert set(tally) <= set(law)
    assert chi_square_of(tally, law) > FALSE_ALARM
    high, low = max(law, key=lambda x: law[x]), min(law, key=lambda x: law[x])
    assert chi_square_of(tally, {**law, high: law[high] - 0.05, low: law[low] + 0.05}) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("n", [2, 100, 10**9])
@pytest.mark.parametrize(("access", "kind", "start"), CASES)
def test_mean_returns_have_the_exact_mean_and_variance(access: Any, kind: str, start: Any, n: int) -> None:
    """Normal limits of 3000 means and their squares; false alarm 1e-6. Control: 30 % more variance is rejected."""
    mdp, law = case(kind, start)
    mean, variance, fourth = moments(law)
    model, trials = access(mdp, 4), 3000
    drawn = np.array([model.mean_return(reprl.Policy(POLICY), n) for _ in range(trials)]) - mean
    spread = variance / n
    assert 2 * stats.norm.sf(abs(drawn.mean()) / math.sqrt(spread / trials)) > FALSE_ALARM
    # Fourth central moment of a mean of n: (n·μ₄ + 3n(n−1)σ⁴)/n⁴.
    wobble = math.sqrt(((fourth + 3 * (n - 1) * variance**2) / n**3 - spread**2) / trials)
    square = float((drawn**2).mean())
    assert 2 * stats.norm.sf(abs(square - spread) / wobble) > FALSE_ALARM
    assert 2 * stats.norm.sf(abs(square - 1.3 * spread) / (1.3 * wobble)) < FALSE_ALARM


@pytest.mark.parametrize("start", [0, (0.2, 0.5, 0.3)])
def test_mean_returns_are_counted_and_fresh(start: Any) -> None:
    mdp, _ = case("bernoulli", start)
    extra = 0 if start == 0 else 1
    generative, episodic = reprl.GenerativeModel(mdp, 1), reprl.EpisodicModel(mdp, 1)
    policy = reprl.Policy(POLICY)
    for model in (generative, episodic):
        assert len({model.mean_return(policy, 1000) for _ in range(5)}) > 1
    assert (generative.ledger.calls, generative.ledger.episodes) == (5000, 0)
    assert generative.ledger.samples == 5000 * 6 * (2 + extra)
    assert (episodic.ledger.calls, episodic.ledger.episodes) == (0, 5000)
    assert episodic.ledger.samples == 5000 * (2 + extra)
    again = reprl.GenerativeModel(mdp, 1)
    first = again.mean_return(policy, 1000)
    assert first == reprl.GenerativeModel(mdp, 1).mean_return(policy, 1000)
    assert reprl.GenerativeModel(mdp, 2).mean_return(policy, 1000) != first


@pytest.mark.parametrize("access", [reprl.GenerativeModel, reprl.EpisodicModel])
def test_mean_return_refuses_bad_input(access: Any) -> None:
    model = access(case("bernoulli", 0)[0], 1)
    for n in (0, 1.5, 2**62 + 1):
        with pytest.raises(reprl.ReprlError, match=r"^n must be a whole number from 1 to \d+, got "):
            model.mean_return(reprl.Policy(POLICY), n)
    for call in (partial(model.mean_return, n=1), partial(model.mean_return, n=10**6)):
        with pytest.raises(reprl.ReprlError, match=r"^policy must have shape \(H, S\) = \(2, 3\), got \(1, 3\)$"):
            call(reprl.Policy([[0, 0, 0]]))
    assert model.ledger.samples == 0

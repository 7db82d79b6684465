"""docs/proofs/canonical.md, checked: every formula against a slow version or against samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import reprl
from reprl import SharedKey
from reprl.canonical.choice import NOISE, choose, follow, make_rule
from reprl.canonical.gaps import HIDDEN, Gaps, find_gaps
from reprl.canonical.goal import Goal
from reprl.canonical.preferred import CLEAR, visit_weight, weigh_tolerances
from reprl.learning.learner import ReprlLearner
from reprl.learning.settings import Settings
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics, true_dynamics
from reprl.sources.parallel import GenerativeModel

FALSE_ALARM = 1e-6
ASKED = Goal(epsilon=0.3)


def world(rng: np.random.Generator, horizon: int, n_states: int, n_actions: int, share: float = 1.0) -> Any:
    """A random world; a small share makes its rows sparse."""
    transition = rng.dirichlet(np.full(n_states, share), size=(horizon, n_states, n_actions))
    reward = np.repeat(rng.random((horizon, n_states, n_actions, 1)), n_states, axis=3)
    return reprl.TabularMDP(transition, reward)


def funnel(n_states: int = 12, horizon: int = 4) -> Any:
    """Action 1 spreads over many states that all lead to one risky state; action 0 waits in a sink that pays half."""
    transition = np.zeros((n_states, 2, n_states))
    reward = np.zeros((n_states, 2))
    sink, risky = n_states - 1, n_states - 2
    transition[0, 0, sink] = 1.0
    transition[0, 1, 1:risky] = 1.0 / (risky - 1)
    transition[1:risky, :, risky] = 1.0
    transition[risky, :, [sink, risky]] = 0.5
    transition[sink, :, sink] = 1.0
    reward[sink], reward[risky] = 0.2, 0.5
    return reprl.TabularMDP(transition, reward, horizon=horizon)


def tables(dynamics: Dynamics) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Dense P (H, S, A, S) and mean rewards (H, S, A)."""
    horizon, n_states, n_actions = shape = dynamics.outcomes.shape
    law, pay = np.zeros((*shape, n_states)), np.zeros(shape)
    for h in range(horizon):
        for s in range(n_states):
            for a in range(n_actions):
                rows, slots = dynamics.outcomes.slots(h, s, a)
                np.add.at(law[h, s, a], dynamics.outcomes.next_state[rows], dynamics.probability[slots])
                pay[h, s, a] = dynamics.probability[slots] @ dynamics.outcomes.reward[rows]
    return law, pay


def linearised(law: NDArray[np.float64], gaps: Gaps, h: int, s: int, a: int) -> float:
    """Variance of the first-order error of a gap, one sample per cell: Σ ν²·own, ν followed under the best policy."""
    best = gaps.best[h, s]
    total = gaps.own[h, s, best] + gaps.own[h, s, a]
    flow = law[h, s, best] - law[h, s, a]
    for step in range(h + 1, law.shape[0]):
        states = np.arange(law.shape[1])
        total += float(flow**2 @ gaps.own[step, states, gaps.best[step]])
        flow = flow @ law[step, states, gaps.best[step]]
    return float(total)


@pytest.mark.parametrize("seed", range(6))
def test_the_spread_is_at_least_the_linearised_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = funnel() if seed == 0 else world(rng, 2 + seed % 4, 2 + seed, 2 + seed % 3, share=(0.2, 1.0)[seed % 2])
    dynamics = true_dynamics(mdp)
    gaps = find_gaps(dynamics, np.arange(mdp.n_actions))
    law, _ = tables(dynamics)
    ratios = [
        linearised(law, gaps, h, s, a) / gaps.spread[h, s, a] ** 2
        for h, s, a in np.argwhere(gaps.spread > 0.0).tolist()
    ]
    assert max(ratios) <= 1.0 + 1e-12
    assert np.allclose([gaps.spread[h, s, gaps.best[h, s]] for h in range(mdp.horizon) for s in range(mdp.n_states)], 0)


def measured(mdp: Any, samples: int, runs: int, cell: tuple[int, int, int]) -> float:
    """Variance of an estimated gap, times the samples of each cell."""
    order = np.arange(mdp.n_actions)
    seen = []
    for seed in range(runs):
        model = GenerativeModel(mdp, data_seed=seed)
        data = Data(model.sample(samples), model.draw_starts(samples))
        seen.append(find_gaps(empirical_dynamics(data), order).gap[cell])
    return float(np.var(seen, ddof=1)) * samples


def test_the_spread_is_not_exceeded_by_samples_and_one_without_covariances_is() -> None:
    """200 runs: a spread that is a third too small in variance is found out with probability > 0.99."""
    mdp, samples, runs = funnel(), 4096, 200
    dynamics = true_dynamics(mdp)
    gaps = find_gaps(dynamics, np.arange(2))
    other = 1 - int(gaps.best[0, 0])
    assert gaps.gap[0, 0, other] > 8 * gaps.spread[0, 0, other] / math.sqrt(samples), "no tie: first order is enough"
    variance = measured(mdp, samples, runs, (0, 0, other))
    exceeds = stats.chi2.sf((runs - 1) * variance / gaps.spread[0, 0, other] ** 2, runs - 1)
    assert exceeds > FALSE_ALARM
    law, _ = tables(dynamics)
    apart = (law[0, 0, 0] - law[0, 0, 1])[1:10]
    risky = gaps.own[2, 10, 0]
    assert risky > 0.0
    alone = float(apart**2 @ np.full(9, risky))  # as if the nine states had errors of their own
    assert stats.chi2.sf((runs - 1) * variance / alone, runs - 1) < FALSE_ALARM


@pytest.mark.parametrize("seed", range(8))
def test_a_policy_loses_its_gaps_and_each_is_small_where_it_often_comes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = world(rng, 2 + seed % 4, 3 + seed, 3, share=0.2)
    dynamics = true_dynamics(mdp)
    order = rng.permutation(3)
    gaps = find_gaps(dynamics, order)
    tolerances = np.array([0.4, 0.05, 1e-3])
    found = weigh_tolerances(dynamics, gaps, order, tolerances)
    steps, states = np.indices(gaps.best.shape)
    for j, tolerance in enumerate(tolerances):
        actions = found.actions[j]
        chosen = gaps.gap[steps, states, actions]
        assert found.loss[j] == pytest.approx(float((dynamics.occupancy(actions) * chosen).sum()), abs=1e-12)
        near = order[np.argmax(gaps.gap[:, :, order] <= tolerance, axis=2)]
        visits = np.minimum(dynamics.occupancy(near), 1.0)
        weights = np.array([visit_weight(x) for x in visits.ravel()]).reshape(visits.shape)
        assert (weights * chosen <= tolerance + 1e-12).all()
        assert (weights >= visits).all()  # so that the first policy's visits times the gaps are at most u a cell


def test_what_no_sample_shows_counts_by_what_is_left() -> None:
    mdp = reprl.TabularMDP(np.ones((1, 2, 1)), np.array([[1.0, 1.0]]), horizon=3, reward_kind="deterministic")
    gaps = find_gaps(true_dynamics(mdp), np.arange(2))
    np.testing.assert_allclose(gaps.own[:, 0, 0], HIDDEN * np.array([9.0, 4.0, 1.0]))


def test_a_run_whose_policy_loses_epsilon_in_its_own_data_promises_nothing() -> None:
    mdp = reprl.TabularMDP(np.ones((1, 2, 1)), np.array([[0.0, 0.5]]), horizon=1, reward_kind="deterministic")
    settings = Settings(access="generative")
    loose = ReprlLearner(settings, max_samples=1000, candidate=("preferred", 0)).run(
        GenerativeModel(mdp, data_seed=1), SharedKey(3)
    )
    assert loose.choice is not None
    assert loose.choice.loss == 0.5
    assert loose.guarantee.status == "none"
    assert "loses 0.5 by its own data" in loose.guarantee.source
    tight = ReprlLearner(settings, max_samples=1000, candidate=("preferred", 39)).run(
        GenerativeModel(mdp, data_seed=1), SharedKey(3)
    )
    assert tight.guarantee.status == "rehearsed"


def test_rounding_is_no_variance_over_long_horizons() -> None:
    rng = np.random.default_rng(0)
    mdp = reprl.TabularMDP(
        rng.dirichlet(np.ones(6), size=(6, 2)), np.ones((6, 2)), horizon=400, reward_kind="deterministic"
    )
    model = GenerativeModel(mdp, data_seed=1)
    dynamics = empirical_dynamics(Data(model.sample(99), model.draw_starts(99)))
    gaps = find_gaps(dynamics, np.arange(2))
    left = np.arange(400, 0, -1.0)[:, None, None]
    np.testing.assert_allclose(gaps.own, np.broadcast_to(HIDDEN * left**2, gaps.own.shape), rtol=1e-9)


def test_lead_is_over_another_policy_and_the_margin_is_a_margin() -> None:
    mdp = reprl.TabularMDP(np.ones((1, 2, 1)), np.array([[0.3, 0.9]]), horizon=2)
    for key in range(20):
        found = choose(make_rule(SharedKey(key), (2, 1, 2), goal=ASKED), true_dynamics(mdp))
        assert found.lead > 0.0
        assert found.margin <= CLEAR


def test_two_policies_are_near_a_tie_as_often_as_the_triangle_says() -> None:
    """4000 keys: a chance that is 1.25 times too small is found out with probability > 0.99."""
    keys, near = 4000, 0.1
    draws = np.array([SharedKey(k).derive("policy", name).uniforms(1)[0] for k in range(keys) for name in ("a", "b")])
    hits = int((np.abs(np.diff(NOISE * draws.reshape(keys, 2))[:, 0]) <= near).sum())
    chance = 1.0 - (1.0 - near / NOISE) ** 2
    assert chance <= 2.0 * near / NOISE
    assert stats.binomtest(hits, keys, chance).pvalue > FALSE_ALARM
    assert stats.binomtest(hits, keys, chance / 1.25).pvalue < FALSE_ALARM


def test_scores_that_move_less_than_half_the_lead_do_not_change_the_choice() -> None:
    """Log weights of all tolerances are moved by at most η: sums of weights, and so scores, move no further."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        groups = rng.integers(0, 4, size=24)
        weights = rng.normal(0.0, 1.0, 24)
        noise = NOISE * rng.random(4)
        names = np.unique(groups)
        score = np.array([np.logaddexp.reduce(weights[groups == g]) + noise[g] for g in names])
        lead = float(np.diff(np.sort(score))[-1]) if names.size > 1 else math.inf
        moved = weights + rng.uniform(-0.499, 0.499, 24) * min(lead, 1e3)
        after = np.array([np.logaddexp.reduce(moved[groups == g]) + noise[g] for g in names])
        assert int(np.argmax(after)) == int(np.argmax(score))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 2), (3, 1, 1), (1, 4, 1), (2, 1, 3)])
@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1.0])
def test_the_smallest_worlds_and_accuracies_have_a_policy(shape: tuple[int, int, int], epsilon: float) -> None:
    mdp = world(np.random.default_rng(3), *shape)
    rule = make_rule(SharedKey(2), shape, goal=Goal(epsilon=epsilon))
    found = choose(rule, true_dynamics(mdp))
    assert found.loss < rule.room * epsilon
    assert found.loss == pytest.approx(
        true_dynamics(mdp).policy_loss(find_gaps(true_dynamics(mdp), rule.order).value[0], found.policy.actions)
    )
    same = choose(follow(rule, found.kind, found.candidate), true_dynamics(mdp))
    assert same.policy == found.policy


def test_what_nobody_has_tried_is_left_to_the_most_preferred_action_and_several_starts_count() -> None:
    rng = np.random.default_rng(0)
    mdp = world(rng, 3, 4, 2)
    dynamics = true_dynamics(mdp)._replace(initial=np.array([0.5, 0.0, 0.5, 0.0]))
    tried = dynamics.tried.copy()
    tried[1:, 3] = False
    law = dynamics.probability.copy()
    for h in (1, 2):
        for a in (0, 1):
            law[dynamics.outcomes.slots(h, 3, a)[1]] = 0.0
    holed = dynamics._replace(tried=tried, probability=law)
    rule = make_rule(SharedKey(4), (3, 4, 2), goal=ASKED, preference=[1, 0])
    found = choose(rule, holed)
    assert (found.policy.actions[1:, 3] == 1).all()
    assert math.isfinite(found.loss)
    assert find_gaps(holed, rule.order).value[1, 3] == 0.0


def test_ties_are_settled_by_preference() -> None:
    """Where nothing but exact ties is to be settled, the user's order settles them, whatever the shared seed is."""
    mdp = reprl.TabularMDP(np.ones((1, 3, 1)), np.array([[0.9, 0.1, 0.9]]), horizon=3)
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1]):
        rules = [make_rule(SharedKey(k), (3, 1, 3), goal=ASKED, preference=order) for k in range(10)]
        first = min((0, 2), key=order.index)
        assert all((choose(rule, true_dynamics(mdp)).policy.actions == first).all() for rule in rules)


# §4, why not never.


@pytest.mark.parametrize("shared_seed", range(3))
def test_for_every_key_some_world_on_the_way_parts_half_of_the_pairs(shared_seed: int) -> None:
    """Two coins, twelve tosses of each, by enumeration: where the chance of printing action 0 crosses ½, pairs part."""
    tosses = 12
    rule = make_rule(SharedKey(shared_seed).derive("rule"), (1, 1, 2), goal=ASKED)

    def prints_first(heads: int, others: int) -> bool:
        seen = reprl.TabularMDP(np.ones((1, 2, 1)), np.array([[heads, others]]) / tosses, 0, 1)
        return int(choose(rule, true_dynamics(seen)).policy.actions[0, 0]) == 0

    printed = np.array([[prints_first(i, j) for j in range(tosses + 1)] for i in range(tosses + 1)])
    other = stats.binom.pmf(np.arange(tosses + 1), tosses, 0.5)

    def chance(p: float) -> float:
        return float(stats.binom.pmf(np.arange(tosses + 1), tosses, p) @ printed @ other)

    low, high = 0.01, 0.99
    assert chance(low) < 0.1  # where action 1 is better by 0.49
    assert chance(high) > 0.9
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chance(middle) < 0.5 else (low, middle)
    assert 2.0 * chance(low) * (1.0 - chance(low)) == pytest.approx(0.5, abs=1e-6)
    assert 2.0 * chance(0.01) * (1.0 - chance(0.01)) < 0.2  # the control: far from there they agree

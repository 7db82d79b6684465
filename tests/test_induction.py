"""Tiered induction: against Algorithm 2 in plain loops, its addresses, and its analysis (Section 4.1) exactly."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import reprl
from reprl.mdp.counts import tally
from reprl.mdp.tiers import Tiers
from reprl.paper.rep_rl_bandit import Accuracy, Induction, tiered_induction
from reprl.paper.rep_var_bandit import Decision, multi_best_arm
from tests import naive, naive_decision
from tests.naive_decision import Rule

RULES = [
    Rule(m, c, r) for m, c, r in itertools.product(("compact", "exponential"), ("joint", "product"), (False, True))
]
name = "{0.mechanism}-{0.coupling}-{0.rounding}".format
VECTOR = Decision(rounding=True)
DELTA = 1e-9
"""Failure probability of each exact check below: with fewer than 1000 of them, a false alarm has probability 1e-6."""


def plain(epsilon: float, horizon: int) -> Accuracy:
    """All of ε for the loss of arms, nothing subtracted."""
    return Accuracy(by_tier=(2.0 * epsilon / horizon,), pessimism=0.0)


def sample_rows(
    rng: np.random.Generator, shape: tuple[int, int, int], most: int
) -> list[tuple[int, int, int, int, float]]:
    """Between 1 and most samples in every cell, rewards in tenths."""
    return [
        (h, s, a, int(rng.integers(shape[1])), float(rng.integers(11)) / 10)
        for h, s, a in np.ndindex(shape)
        for _ in range(int(rng.integers(1, most + 1)))
    ]


def data_of(rows: Any) -> naive_decision.Data:
    data: dict[naive_decision.Cell, list[tuple[int, float]]] = defaultdict(list)
    for h, s, a, x, r in rows:
        data[h, s, a].append((x, r))
    return data


def decide(seed: int, rows: Any, tiers: Tiers, shape: Any, decision: Decision | None = None) -> Induction:
    accuracy = Accuracy(by_tier=(0.3, 0.6, 1.2), pessimism=0.2)
    return tiered_induction(
        reprl.SharedKey(seed), tally(rows, shape), tiers, accuracy=accuracy, delta=0.1, decision=decision
    )


# The algorithm.


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_equals_the_algorithm_in_plain_loops(rule: Rule) -> None:
    rng = np.random.default_rng(11)
    for seed in range(12):
        shape = (int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(1, 4)))
        count = int(rng.integers(1, 4))
        tiers = Tiers.from_levels(rng.integers(1, count + 1, shape[:2]), count)
        rows = sample_rows(rng, shape, 4)
        accuracy = Accuracy(by_tier=(0.4, 0.8), pessimism=float(rng.choice([0.0, 0.5, 1.0])))
        fast = tiered_induction(
            reprl.SharedKey(seed),
            tally(rows, shape),
            tiers,
            accuracy=accuracy,
            delta=0.2,
            decision=Decision(**rule._asdict()),
        )
        policy, values = naive_decision.tiered_induction(
            reprl.SharedKey(seed), data_of(rows), shape, tiers, accuracy.by_tier, accuracy.pessimism, 0.2, rule
        )
        assert {place: int(fast.policy.actions[place]) for place in policy} == policy
        for place, value in values.items():
            assert fast.values[place] == pytest.approx(value, abs=1e-12)


def test_scores_and_laws_are_those_of_each_step() -> None:
    shape = (3, 4, 2)
    tiers = Tiers.from_levels([[1, 2, 3, 1], [2, 2, 1, 3], [3, 1, 1, 2]], 3)
    counts = tally(sample_rows(np.random.default_rng(4), shape, 5), shape)
    key, accuracy = reprl.SharedKey(8), Accuracy(by_tier=(0.3, 0.6), pessimism=0.5)
    found = tiered_induction(key, counts, tiers, accuracy=accuracy, delta=0.1, decision=VECTOR)
    for h in range(3):
        np.testing.assert_array_equal(found.scores[h], counts.mean_return(h, found.values[h + 1]))
        for tier in (1, 2):
            states = np.flatnonzero(tiers.level[h] == tier)
            direct = multi_best_arm(
                key.derive("induction", h, tier),
                found.scores[h, states],
                counts.visits[h, states],
                epsilon=accuracy.by_tier[tier - 1],
                delta=0.1 / 6,
                decision=VECTOR,
                scale=3.0 - h,
                among=tiers.level[h] == tier,
            )
            assert np.array_equal(found.policy.actions[h, states], direct.arms)
            np.testing.assert_array_equal(found.laws[h, states], direct.probabilities)
    np.testing.assert_allclose(found.laws.sum(axis=2), 1.0)


def test_a_state_that_changes_tier_moves_no_other_state_s_draws() -> None:
    """Draws are addressed by state, not by rank within the tier."""
    shape = (1, 12, 3)
    counts = tally([(0, s, a, 0, 0.5) for s in range(12) for a in range(3)], shape)  # all arms tie
    accuracy = Accuracy(by_tier=(0.5, 0.5), pessimism=0.0)
    product = Decision(coupling="product")
    actions = []
    for first in (1, 2, 3):
        tiers = Tiers.from_levels([[first] + [1] * 11], 3)
        runs = [
            tiered_induction(reprl.SharedKey(key), counts, tiers, accuracy=accuracy, delta=0.1, decision=product)
            for key in range(20)
        ]
        actions.append([run.policy.actions[0, 1:].tolist() for run in runs])
    assert actions[0] == actions[1] == actions[2]
    assert len({tuple(row) for row in actions[0]}) == 20


def test_ignored_states_take_action_0_and_are_worth_nothing() -> None:
    shape = (2, 3, 3)
    tiers = Tiers.from_levels([[1, 2, 1], [2, 2, 1]], 2)
    rows = [row for row in sample_rows(np.random.default_rng(4), shape, 5) if tiers.level[row[0], row[1]] == 1]
    found = decide(1, rows, tiers, shape)
    assert (found.policy.actions[tiers.ignorable] == 0).all()
    assert (found.values[:2][tiers.ignorable] == 0.0).all()
    assert (found.laws[tiers.ignorable] == [1.0, 0.0, 0.0]).all()


# Addresses: what can move a draw.


@pytest.mark.parametrize("coupling", ["joint", "product"])
def test_data_of_one_place_move_no_draw_at_another(coupling: str) -> None:
    """All rewards are ½, so every law is uniform and the policy shows the draws themselves."""
    shape = (3, 4, 3)
    decision = Decision(coupling=coupling, rounding=True)
    level = np.array([[1, 2, 1, 2]] * 3)
    tiers = Tiers.from_levels(level, 3)
    even = [(h, s, a, s, 0.5) for h, s, a in np.ndindex(shape) for _ in range(3)]  # every state leads to itself
    before = decide(5, even, tiers, shape, decision).policy.actions
    for h, tier in itertools.product(range(3), (1, 2)):
        place = {(h, s) for s in range(4) if level[h, s] == tier}
        bent = [(i, s, a, x, (0.1 * a if (i, s) in place else r)) for i, s, a, x, r in even]
        after = decide(5, bent, tiers, shape, decision).policy.actions
        moved = {(int(i), int(s)) for i, s in np.argwhere(after != before)}
        upstream = {(i, s) for i in range(h) for s in range(4) if level[h, s] == tier}  # whose utilities changed
        assert moved <= place | upstream
        more = [*even, *(row for row in even if row[:2] in place for _ in range(5))]
        assert np.array_equal(decide(5, more, tiers, shape, decision).policy.actions, before)
    gone = Tiers.from_levels(np.where(level == 2, 3, 1), 3)  # tier 2 joins the ignored states
    after = decide(5, even, gone, shape, decision).policy.actions
    assert np.array_equal(after[level == 1], before[level == 1])
    others = [decide(seed, even, tiers, shape, decision).policy.actions for seed in range(20)]
    assert len({actions.tobytes() for actions in others}) == 20  # control: other keys, other draws
    assert len({actions[h, level[h] == t].tobytes() for h in range(3) for t in (1, 2) for actions in others}) > 3


# Exact dynamic programming in the limit.


@pytest.mark.parametrize("mechanism", ["compact", "exponential"])
def test_with_huge_samples_it_is_dynamic_programming(mechanism: str) -> None:
    """10^17 calls: sampling errors below 1e-7. With a tiny ε the policy is the optimal one; with any ε it loses ≤ ε."""
    for seed in range(10):
        mdp = reprl.make("random-mdp-v0", horizon=3, n_states=5, n_actions=3, seed=seed)
        counts = reprl.GenerativeModel(mdp, seed).sample(10**17)
        tiers, best = Tiers.single(3, 5), mdp.solve()
        decision = Decision(mechanism=mechanism, rounding=False)
        for epsilon in (1e-5, 0.05, 0.5):
            accuracy = plain(epsilon, 3)
            found = tiered_induction(
                reprl.SharedKey(seed), counts, tiers, accuracy=accuracy, delta=DELTA, decision=decision
            )
            assert (best.values[0] - mdp.values(found.policy)[0]).max() <= epsilon + 1e-6
            np.testing.assert_allclose(found.values[:3], mdp.values(found.policy)[:3], atol=1e-6)
        accuracy = plain(1e-5, 3)
        found = tiered_induction(
            reprl.SharedKey(seed), counts, tiers, accuracy=accuracy, delta=DELTA, decision=decision
        )
        assert found.policy == best.policy


def test_ties_are_broken_by_the_key_within_the_optimal_actions() -> None:
    mdp = reprl.make("gridworld-v0", horizon=4, size=3)
    counts = reprl.GenerativeModel(mdp, 1).sample(10**15)
    q = np.array([naive_decision.utilities(*tables(mdp), mdp.solve().values, h) for h in range(4)])
    policies = set()
    for seed in range(30):
        found = tiered_induction(
            reprl.SharedKey(seed),
            counts,
            Tiers.single(4, 9),
            accuracy=plain(0.01, 4),
            delta=DELTA,
            decision=Decision(rounding=False),
        )
        chosen = np.take_along_axis(q, found.policy.actions[:, :, None], axis=2)[:, :, 0]
        assert (chosen >= q.max(axis=2) - 0.01).all()
        policies.add(found.policy)
    assert len(policies) > 20


# The analysis, exactly.


def tables(mdp: reprl.TabularMDP) -> tuple[naive.Table, naive.Table]:
    return naive.by_step(mdp.transition, mdp.reward, mdp.horizon)


class Layered:
    """S = 4, H = 3: states 0 and 1 are easy to reach, an optimal policy visits state 2 of tier 2 at most ½ times in
    expectation and state 3, of the last tier, at most `rare` times. One action of state 0 leads to state 3 for sure,
    but is poor."""

    def __init__(self, seed: int, rare: float) -> None:
        rng = np.random.default_rng(seed)
        n_actions = int(rng.integers(2, 4))
        transition = np.zeros((3, 4, n_actions, 4))
        for h, s, a in np.ndindex(3, 4, n_actions):
            third, second = rare / 2 * rng.random(), rng.uniform(0.1, 0.24)
            rest = 1.0 - third - second
            share = rng.random()
            transition[h, s, a] = [rest * share, rest * (1 - share), second, third]
        reward = 0.3 + 0.7 * rng.random((3, 4, n_actions))
        reward[:, 3, 0], reward[:, 3, 1:] = 0.0, 1.0  # what is ignored would have paid
        trap = int(rng.integers(n_actions))
        transition[:, 0, trap] = [0.0, 0.0, 0.0, 1.0]
        reward[:, 0, trap] = 0.0
        transition[:, 3] = [1.0, 0.0, 0.0, 0.0]
        self.mdp = reprl.TabularMDP(transition, reward, 0, reward_kind="bernoulli")
        self.best = self.mdp.solve()
        self.p, self.r = naive.by_step(transition, reward, 3)

    def visits(self, state: int) -> float:
        inside = np.zeros((3, 4), dtype=bool)
        inside[:, state] = True
        return self.mdp.reachability(inside, self.best.policy)

    def run(self, tiers: Tiers, accuracy: Accuracy, seed: int, calls: int, **decision: Any) -> Induction:
        return tiered_induction(
            reprl.SharedKey(seed),
            reprl.GenerativeModel(self.mdp, seed).sample(calls),
            tiers,
            accuracy=accuracy,
            delta=DELTA,
            decision=Decision(**{"rounding": True, **decision}),
        )

    def loss(self, found: Induction) -> float:
        return self.mdp.evaluate(self.best.policy) - self.mdp.evaluate(found.policy)

    def truncated_value(self, found: Induction, k: int, actions: NDArray[np.int64]) -> float:
        p, r = naive_decision.truncated(self.p, self.r, found.values, k)
        return naive.evaluate(p, r, self.mdp.initial.tolist(), actions[:k].tolist())

    def excess(self, found: Induction) -> float:
        """By how much V̄ overestimates the utility of the chosen action anywhere; at most 0 for underestimates."""
        worst = -math.inf
        for h in range(3):
            u = naive_decision.utilities(self.p, self.r, found.values, h)
            for s in range(4):
                worst = max(worst, float(found.values[h, s]) - u[s][int(found.policy.actions[h, s])])
        return worst


def layered(count: int) -> Tiers:
    """States 0 and 1 in tier 1, state 2 in tier 2, state 3 in the last tier of count, which is ignored."""
    return Tiers.from_levels([[1, 1, 2, count]] * 3, count)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", ["compact", "exponential"])
def test_the_analysis_of_truncated_mdps_holds(mechanism: str) -> None:
    """Lemmas 4.9–4.11 with V̄ of real runs; 30 MDPs × DELTA: false alarm below 1e-6. Control: inflated values."""
    epsilon, horizon, count = 1.0, 3, 6
    tiers, accuracy = layered(count), Accuracy.paper(epsilon, horizon, count)
    inflated = Accuracy(by_tier=accuracy.by_tier, pessimism=-1.0)
    for seed in range(30):
        # Ignored: at most ε/(2H²L) visits, as the choice of ζ in Theorem 4.5 would have it.
        case = Layered(seed, rare=epsilon / (2 * horizon**2 * count))
        assert case.visits(2) <= 2.0 ** (1 - 2)
        assert 0.0 < case.visits(3) <= min(2.0 ** (1 - count), epsilon / (2 * horizon**2 * count))
        found = case.run(tiers, accuracy, seed, 10**8, mechanism=mechanism)
        best, learned = case.best.policy.actions, found.policy.actions
        assert case.excess(found) <= 1e-12
        assert (found.values[:3] <= case.mdp.values(found.policy)[:3] + 1e-12).all()
        for h in range(horizon):  # Proof of Lemma 4.9: utilities are not underestimated by much, either
            u = np.array(naive_decision.utilities(case.p, case.r, found.values, h))
            for s in (0, 1, 2):
                tier = int(tiers.level[h, s])
                assert found.values[h, s] >= u[s].max() - 2.0**tier * epsilon / (2 * horizon * count) - 1e-12
        for k in range(1, horizon):
            dropped = case.truncated_value(found, k + 1, best) - case.truncated_value(found, k, best)
            assert dropped <= epsilon / horizon + 1e-12
            assert case.truncated_value(found, k + 1, learned) >= case.truncated_value(found, k, learned) - 1e-12
        assert case.truncated_value(found, horizon, learned) == pytest.approx(case.mdp.evaluate(found.policy))
        assert case.loss(found) <= epsilon
        assert case.loss(found) <= found.guarantee.epsilon
        assert found.guarantee.status == "proven"
        assert case.excess(case.run(tiers, inflated, seed, 10**8, mechanism=mechanism)) > 0.0


@pytest.mark.statistical
@pytest.mark.parametrize("rounding", [False, True])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_an_ignored_tier_costs_at_most_what_is_promised(count: int, rounding: bool) -> None:
    """The ignored state is visited about 2^(1−L) times and would have paid. 15 runs × DELTA: false alarm 1e-6."""
    costs = []
    level = [[1, 1, 1 if count == 2 else 2, count]] * 3
    tiers = Tiers.from_levels(level, count)
    accuracy = Accuracy.paper(0.5, 3, count)
    for seed in range(15):
        case = Layered(seed, rare=2.0 ** (1 - count))
        assert 0.0 < case.visits(3) <= 2.0 ** (1 - count)
        found = case.run(tiers, accuracy, seed, 10**9, rounding=rounding)
        assert found.guarantee.epsilon >= 3 * 2.0 ** (1 - count)
        costs.append(case.loss(found) / found.guarantee.epsilon)
    assert max(costs) <= 1.0
    assert max(costs) > 0.01  # something was really lost


class Lure:
    """H = 2: state 1 is sure to pay v, state 2 pays a little less; an optimal policy never visits state 2."""

    def __init__(self, less: float) -> None:
        transition = np.zeros((2, 3, 2, 3))
        transition[0, 0, 0, 1] = transition[0, 0, 1, 2] = 1.0
        transition[0, 1:, :, 0] = transition[1, :, :, 0] = 1.0
        reward = np.zeros((2, 3, 2))
        reward[1, 1], reward[1, 2] = 0.74, 0.74 - less
        self.mdp = reprl.TabularMDP(transition, reward, 0, reward_kind="deterministic")

    def run(self, pessimism: float, seed: int) -> Induction:
        tiers = Tiers.from_levels([[1, 1, 1], [1, 1, 5]], 8)
        accuracy = Accuracy(by_tier=(0.002, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7), pessimism=pessimism)
        counts = reprl.GenerativeModel(self.mdp, seed).sample(10**12)
        return tiered_induction(reprl.SharedKey(seed), counts, tiers, accuracy=accuracy, delta=DELTA, decision=VECTOR)

    def loss(self, found: Induction) -> float:
        return self.mdp.evaluate(self.mdp.solve().policy) - self.mdp.evaluate(found.policy)


def test_without_pessimism_a_rare_tier_can_lure_the_policy_so_nothing_is_called_proven() -> None:
    """Section 1.3.2: values rounded up draw the policy to a tier whose weight 2^(1−ℓ) is that of the optimal policy."""
    lure = Lure(less=0.12)
    careless = [lure.run(0.0, seed) for seed in range(40)]
    assert max(lure.loss(found) for found in careless) > careless[0].guarantee.epsilon
    assert {found.guarantee.status for found in careless} == {"none"}
    careful = [lure.run(1.0, seed) for seed in range(40)]
    assert all(lure.loss(found) <= found.guarantee.epsilon for found in careful)
    assert {found.guarantee.status for found in careful} == {"proven"}


def test_accuracies_are_the_formulas() -> None:
    paper = Accuracy.paper(0.8, 5, 4)
    assert paper.by_tier == pytest.approx([2 * 0.8 / 160, 4 * 0.8 / 160, 8 * 0.8 / 160])
    assert paper.pessimism == 1.0
    assert Accuracy.paper(0.8, 5, 1).by_tier == pytest.approx([2 * 0.8 / 40])


# Bad input.


def test_an_empty_cell_of_a_decided_tier_is_named() -> None:
    shape = (2, 3, 2)
    rows = [row for row in sample_rows(np.random.default_rng(1), shape, 3) if row[:3] != (1, 2, 1)]
    with pytest.raises(
        reprl.ReprlError, match=r"^cell \(h=1, s=2, a=1\) of tier 1 must have a sample, got 0: .*ignored tier 2$"
    ):
        decide(1, rows, Tiers.from_levels([[1, 1, 1], [1, 1, 1]], 2), shape)
    decide(1, rows, Tiers.from_levels([[1, 1, 1], [1, 1, 2]], 2), shape)


def test_tiers_and_accuracies_that_do_not_fit_are_refused() -> None:
    shape = (2, 3, 2)
    rows = sample_rows(np.random.default_rng(1), shape, 3)
    with pytest.raises(reprl.ReprlError, match=r"^tiers must have shape \(2, 3\) like the data, got \(3, 2\)$"):
        decide(1, rows, Tiers.single(3, 2), shape)
    with pytest.raises(reprl.ReprlError, match=r"^accuracy must be given for 4 tiers, got 3$"):
        decide(1, rows, Tiers.from_levels(np.ones((2, 3), dtype=int), 5), shape)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"delta": 0.0}, r"delta must lie in \(0, 1\), got 0.0"),
        ({"accuracy": Accuracy(by_tier=(0.0,), pessimism=0.0)}, r"accuracy must lie in \(0, inf\), got 0.0"),
        ({"key": 3}, "shared key must be a reprl.SharedKey, got 3"),
        ({"decision": "joint"}, "decision must be a Decision, got 'joint'"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], text: str) -> None:
    good: dict[str, Any] = {
        "key": reprl.SharedKey(1),
        "counts": tally(sample_rows(np.random.default_rng(1), (1, 2, 2), 3), (1, 2, 2)),
        "tiers": Tiers.single(1, 2),
        "accuracy": Accuracy(by_tier=(0.3,), pessimism=0.0),
        "delta": 0.1,
    }
    with pytest.raises(reprl.ReprlError, match=f"^{text}$"):
        tiered_induction(**{**good, **change})

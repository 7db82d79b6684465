"""docs/proofs/fixed-sizes.md: a proven ρ for the canonical rule at a fixed size, checked on pairs and by its parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import reprl
from reprl.assurance.fixed_sizes import FixedSize, fixed_choice, fixed_size
from reprl.canonical.choice import Rule, choose, follow, make_rule
from reprl.canonical.gaps import find_gaps
from reprl.canonical.goal import Goal
from reprl.canonical.preferred import weigh_tolerances
from reprl.mdp.dynamics import empirical_dynamics, true_dynamics
from reprl.randomness import DataStream, SharedKey
from reprl.sources.parallel import call
from tests.statistics import FALSE_ALARM, exceeds, keeps

ACTIONS, NUMBER = 6, 6


def rule_of(key: SharedKey) -> Rule:
    """The canonical rule with the one candidate NUMBER."""
    return follow(make_rule(key.derive("rule"), (1, 1, ACTIONS), goal=Goal(epsilon=0.3)), "preferred", NUMBER)


def ends(key: SharedKey) -> tuple[float, float, float]:
    """The least and the largest tolerance of the candidate over keys, and this key's."""
    every = make_rule(key.derive("rule"), (1, 1, ACTIONS), goal=Goal(epsilon=0.3)).tolerances
    step = math.log(every[NUMBER + 1] / every[NUMBER])
    begin = every[NUMBER] * math.exp(-step * float(key.derive("rule", "tolerance").uniforms(1)[0]))
    return min(begin, begin * math.exp(step)), max(begin, begin * math.exp(step)), float(every[NUMBER])


def test_the_tolerance_of_a_candidate_is_log_uniform_over_keys() -> None:
    found = [ends(SharedKey(seed)) for seed in range(2000)]
    low, high, _ = found[0]
    assert np.allclose([one[:2] for one in found], (low, high))
    assert all(low <= u <= high for _, _, u in found)
    share = np.log([u / low for _, _, u in found]) / math.log(high / low)
    assert stats.kstest(share, "uniform").pvalue > FALSE_ALARM
    assert stats.kstest(share**1.2, "uniform").pvalue < FALSE_ALARM


def policies(calls: int, pairs: int) -> tuple[int, float]:
    """Pairs that part, with gaps spread over the range of the tolerance, and the largest loss."""
    low, high, _ = ends(SharedKey(0))
    gaps = np.array([*np.linspace(low, high, ACTIONS - 1), 0.0])  # the preferred actions are the poorer ones
    mdp = reprl.TabularMDP(np.ones((1, ACTIONS, 1)), 0.6 - gaps[None], 0, 1)
    apart, lost = 0, 0.0
    for number in range(pairs):
        rule = rule_of(SharedKey(number))
        made = []
        for half in range(2):
            model = reprl.GenerativeModel(mdp, DataStream(17, f"{calls}/{number}/{half}").key)
            made.append(choose(rule, empirical_dynamics(call(model, calls))).policy)
            lost = max(lost, float(gaps[made[-1].actions[0, 0]]))
        apart += made[0] != made[1]
    return apart, lost


@pytest.mark.statistical
def test_two_runs_of_the_proven_size_keep_rho_and_few_samples_do_not() -> None:
    """ρ = 0.2, 300 pairs, fresh keys and data, false alarm 1e-6. Control: a millionth of the calls is rejected."""
    low, high, _ = ends(SharedKey(0))
    size = fixed_size(1, ACTIONS, low=low, high=high, rho=0.2, delta=0.05, known_start=True)
    assert size.guarantee.status == "proven"
    apart, lost = policies(size.calls, 300)
    assert keeps(apart, 300, 0.2, power=0.99), apart
    assert lost <= size.guarantee.epsilon
    control, _ = policies(size.calls // 10**6, 300)
    assert exceeds(control, 300, 0.2) < FALSE_ALARM, control


@pytest.mark.parametrize("known", [True, False])
def test_the_formula_of_rho_is_met_with_what_is_spent(known: bool) -> None:
    starts = 1 if known else 7
    size = fixed_size(starts, 4, low=0.02, high=0.03, rho=0.1, delta=0.05, known_start=known)
    near = starts * 3 * 2.0 * size.error / (0.02 * math.log(1.5))
    assert 2.0 * size.missed + near == pytest.approx(0.1)
    each = size.error / (2.0 if known else 4.0)
    events = 2 * starts * 4 + (0 if known else 2 * starts)
    assert events * math.exp(-2.0 * size.calls * each**2) <= size.missed
    assert events * math.exp(-2.0 * (size.calls - 1) * each**2) > size.missed


@pytest.mark.statistical
def test_weighed_gaps_of_drawn_starts_are_known_to_the_stated_error() -> None:
    """x = w·gap with starts drawn: every error within η in 300 runs; control: a hundredth of the calls. H = 1."""
    rng = np.random.default_rng(2)
    start, means = rng.dirichlet(np.ones(5)), rng.uniform(0.2, 0.8, (5, 3))
    size = fixed_size(5, 3, low=0.05, high=0.1, rho=0.2, delta=0.05)

    def worst(calls: int) -> float:
        seen = rng.multinomial(calls, start) / calls
        paid = rng.binomial(calls, means) / calls
        x, found = (
            (2.0 * mu / (1.0 + mu))[:, None] * (r.max(axis=1, keepdims=True) - r)
            for mu, r in ((start, means), (seen, paid))
        )
        return float(np.abs(found - x).max())

    assert keeps(sum(worst(size.calls) > size.error for _ in range(300)), 300, size.missed, power=0.1, finds=0.2)
    few = sum(worst(size.calls // 100) > size.error for _ in range(300))
    assert exceeds(few, 300, size.missed) < FALSE_ALARM


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"n_starts": 0}, "n_starts must be a whole number of at least 1, got 0"),
        ({"n_actions": 1}, "n_actions must be a whole number of at least 2, got 1"),
        ({"low": 0.2}, r"low must lie in \(0, 0.1\), got 0.2"),
        ({"rho": 1.5}, r"rho must lie in \(0, 1\), got 1.5"),
        ({"known_start": True, "n_starts": 2}, "n_starts must be 1 where the start is known, got 2"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], text: str) -> None:
    good: dict[str, Any] = {"n_starts": 3, "n_actions": 4, "low": 0.05, "high": 0.1, "rho": 0.1, "delta": 0.05}
    with pytest.raises(reprl.ReprlError, match=f"^{text}$"):
        fixed_size(**{**good, **change})


# The choice among all tolerances.


def arms(means: list[float], certain: list[bool]) -> reprl.TabularMDP:
    """One step from one start; an arm pays its mean for certain, or 1 with this probability."""
    law, pay = np.zeros((1, 3, len(means), 3)), np.zeros((1, 3, len(means), 3))
    law[..., 0] = 1.0
    for a, (mean, sure) in enumerate(zip(means, certain, strict=True)):
        law[0, 0, a] = (1.0, 0.0, 0.0) if sure else (0.0, 1.0 - mean, mean)
        pay[0, 0, a, 0 if sure else 2] = mean if sure else 1.0
    return reprl.TabularMDP(law, pay, 0, reward_kind="deterministic")


def full_rule(number: int, n_actions: int, epsilon: float) -> Rule:
    return make_rule(SharedKey(number).derive("rule"), (1, 3, n_actions), goal=Goal(epsilon=epsilon))


def parted(mdp: reprl.TabularMDP, epsilon: float, calls: int, pairs: int) -> tuple[int, float]:
    """Pairs of runs of the full rule that part, under fresh keys, and the largest loss of a run."""
    best, apart, lost = mdp.evaluate(mdp.solve().policy), 0, 0.0
    for number in range(pairs):
        rule, made = full_rule(number, mdp.n_actions, epsilon), []
        for half in range(2):
            model = reprl.GenerativeModel(mdp, DataStream(19, f"{calls}/{number}/{half}").key)
            made.append(choose(rule, empirical_dynamics(call(model, calls))).policy)
            lost = max(lost, best - mdp.evaluate(made[-1]))
        apart += made[0] != made[1]
    return apart, lost


def chosen(n_actions: int, **options: Any) -> FixedSize:
    return fixed_choice(n_actions, **{"epsilon": 0.9, "ahead": 0.05, "rho": 0.4, "delta": 0.05, **options})


@pytest.mark.statistical
def test_the_full_rule_keeps_rho_at_its_proven_size_where_one_action_is_ahead() -> None:
    """ρ = 0.4, 150 pairs, false alarm 1e-6. The control is the tie of the next test, which no size mends."""
    size = chosen(3)
    assert size.calls < 2**62
    apart, lost = parted(arms([0.5, 0.35, 0.6], [False, False, False]), 0.9, size.calls, 150)
    assert keeps(apart, 150, 0.4, power=0.99), apart
    assert lost <= 0.9


@pytest.mark.statistical
def test_where_two_actions_tie_for_best_no_size_keeps_a_tenth() -> None:
    """Two keys in five have another policy on either side; so a fifth of the pairs part. False alarm 1e-6."""
    means, certain = [0.369, 0.62, 0.62, 0.468], [True, True, False, True]
    sides = [true_dynamics(arms([*means[:a], 0.62 + 1e-9, *means[a + 1 :]], certain)) for a in (1, 2)]
    rules = [full_rule(number, 4, 0.4) for number in range(300)]
    differ = sum(choose(rule, sides[0]).policy != choose(rule, sides[1]).policy for rule in rules)
    assert 0.3 < differ / 300 < 0.5
    apart, _ = parted(arms(means, certain), 0.4, 2**50, 400)
    assert exceeds(apart, 400, 0.1) < FALSE_ALARM, apart


@pytest.mark.parametrize("seed", range(8))
def test_weights_of_candidates_move_no_more_than_the_proof_says(seed: int) -> None:
    """Exact models within e of each other: w_j·1{π_j = π} by 10e(1 + 1/E), with spreads kept, one best action."""
    rng, error, epsilon = np.random.default_rng(seed), 1e-3, 0.5
    means = [*rng.uniform(0.1, 0.7, 4).tolist(), 0.85]
    rng.shuffle(means)
    coins = [False] * 5
    rule = full_rule(seed, 5, epsilon)
    room, found = rule.room * epsilon, list[tuple[Any, Any, Any]]()
    for moved in (means, [mean + error * float(rng.choice([-1.0, 1.0])) for mean in means]):
        dynamics = true_dynamics(arms(moved, coins))
        gaps = find_gaps(dynamics, rule.order)
        if found:
            gaps = gaps._replace(spread=found[0][2])
        weighed = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances)
        weight = weighed.margin * np.maximum(0.0, 1.0 - weighed.loss / room)
        found.append((weighed.actions[:, 0, 0], weight, gaps.spread))
    (first, one, _), (second, two, _) = found
    same = first == second
    bound = 10.0 * error * (1.0 + 1.0 / room)
    assert np.abs(one - two)[same].max() <= bound
    assert max(one[~same].max(initial=0.0), two[~same].max(initial=0.0)) <= bound


def test_more_calls_are_asked_for_more_and_what_cannot_be_is_refused() -> None:
    base = chosen(3)
    assert base.guarantee.status == "proven"
    assert 4 * 3 * math.exp(-2.0 * base.calls * base.error**2) <= base.missed * (1 + 1e-9)
    harder: list[dict[str, Any]] = [{"rho": 0.3}, {"epsilon": 0.5}, {"ahead": 1e-8}]
    assert all(chosen(3, **one).calls > base.calls for one in harder)
    assert chosen(4).calls > base.calls
    with pytest.raises(reprl.ReprlError, match=r"^epsilon must be larger for the rule's tolerances, got 1e-07$"):
        chosen(3, epsilon=1e-7)
    with pytest.raises(reprl.ReprlError, match=r"^rho and epsilon must be larger"):
        chosen(30, epsilon=0.001, rho=0.01)

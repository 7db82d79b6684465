"""docs/proofs/fixed-sizes.md: a proven ρ for one tolerance of the canonical rule, checked on pairs and by its parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import reprl
from reprl.assurance.fixed_sizes import fixed_size
from reprl.canonical.choice import Rule, choose, follow, make_rule
from reprl.canonical.goal import Goal
from reprl.mdp.dynamics import empirical_dynamics
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

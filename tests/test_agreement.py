"""Approximate agreement: the rule without a choice, shares of decisions, their rehearsal and their audit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.assurance.rehearsal import SPARE, Answer, Likeness, asked_for, rehearse
from reprl.canonical.cellwise import (
    AGREED,
    BELOW,
    NARROW,
    RAMP,
    cell_margins,
    cell_shares,
    choose_agreed,
    find_scale,
    pick_cells,
)
from reprl.canonical.choice import Rule, make_rule
from reprl.canonical.gaps import find_gaps
from reprl.canonical.goal import Goal
from reprl.errors import InputError
from reprl.mdp.dynamics import true_dynamics
from reprl.randomness import DataStream, SharedKey
from tests.statistics import keeps


def world(seed: int = 0, n_states: int = 4, n_actions: int = 3, horizon: int = 3) -> reprl.TabularMDP:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(n_states), (n_states, n_actions))
    return reprl.TabularMDP(transition, rng.uniform(0.0, 1.0, (n_states, n_actions)), 0, horizon)


def rule_of(mdp: reprl.TabularMDP, seed: int = 1, quality: float = 0.9) -> Rule:
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    return make_rule(SharedKey(seed).derive("rule"), shape, goal=Goal(quality=quality))


# --- tolerances of cells ----------------------------------------------------------------------------------------------


def _picked(gap: Any, order: Any, tolerances: Any) -> Any:
    """The plain loop: the first action in order within the tolerance of its cell."""
    actions = np.zeros(gap.shape[:2], dtype=np.int64)
    for cell in np.ndindex(*gap.shape[:2]):
        actions[cell] = next(a for a in order if gap[cell][a] <= tolerances[cell])
    return actions


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_cells_are_picked_as_the_plain_loop_picks_them_and_margins_say_when_they_change(seed: int) -> None:
    mdp, rng = world(seed % 50), np.random.default_rng(seed)
    gaps, order = find_gaps(true_dynamics(mdp), np.arange(3)), rng.permutation(3)
    tolerances = rng.uniform(0.01, 0.6, gaps.gap.shape[:2])
    actions = pick_cells(gaps.gap, order, tolerances, gaps.best)
    assert (actions == _picked(gaps.gap, order, tolerances)).all()
    margins, nearest = cell_margins(gaps, order, tolerances, actions)
    for cell in np.ndindex(*actions.shape):
        a = nearest[cell]
        if a >= 0 and a != gaps.best[cell] and gaps.gap[cell][actions[cell]] > 0.0:
            distance = margins[cell] * gaps.spread[cell][a]
            moved = gaps.gap.copy()
            moved[cell][a] += 1.01 * distance * (1.0 if gaps.gap[cell][a] <= tolerances[cell] else -1.0)
            assert (pick_cells(moved, order, tolerances, gaps.best) != actions).any()


# --- the rule ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_the_policy_loses_what_is_allowed_and_its_scale_is_no_smaller_than_it_must_be(seed: int) -> None:
    mdp = world(seed)
    rule, dynamics = rule_of(mdp), true_dynamics(mdp)
    found = choose_agreed(rule, dynamics)
    assert found.tolerance >= BELOW * found.epsilon / (2.0 * mdp.horizon)
    assert found.loss <= RAMP[1] * found.epsilon
    assert found.loss == pytest.approx(found.best - mdp.evaluate(found.policy))
    gaps = find_gaps(dynamics, rule.order)
    lost = [
        dynamics.policy_loss(gaps.value[0], pick_cells(gaps.gap, rule.order, u * cell_shares(rule), gaps.best))
        for u in np.geomspace(found.epsilon / (2 * mdp.horizon), 1.02 * found.tolerance / BELOW, 400)
    ]
    assert max(lost) >= 0.5 * RAMP[0] * found.epsilon or (found.policy.table == 0).all()
    assert found.kind == AGREED


@pytest.mark.parametrize("seed", range(8))
def test_the_scale_moves_a_little_where_the_world_moves_a_little(seed: int) -> None:
    """No choice: where a path from one world to another moves the scale most, a hundred small steps move it little."""
    one, two = world(seed), world(seed + 100)
    rule = rule_of(one)

    def scale_of(share: float) -> float:
        mixed = reprl.TabularMDP(
            (1.0 - share) * one.transition[0] + share * two.transition[0],
            (1.0 - share) * one.reward[0] + share * two.reward[0],
            0,
            one.horizon,
        )
        dynamics = true_dynamics(mixed)
        gaps = find_gaps(dynamics, rule.order)
        epsilon = rule.goal.allowed_loss(dynamics.policy_loss(gaps.value[0], gaps.default), rule.shape[0])
        return math.log(find_scale(rule, dynamics, gaps, epsilon))

    path = np.linspace(0.0, 1.0, 101)
    steps = np.abs(np.diff([scale_of(share) for share in path]))
    most = int(steps.argmax())
    finer = np.abs(np.diff([scale_of(share) for share in np.linspace(path[most], path[most + 1], 101)]))
    assert finer.max() < 0.1 * steps[most] + 0.03


def test_exact_ties_say_the_preferred_action_and_tolerances_come_from_the_shared_seed() -> None:
    mdp = reprl.TabularMDP(np.full((3, 2, 3), 1 / 3), np.array([[0.5, 0.5], [0.2, 0.9], [0.1, 0.1]]), 0, 4)
    rule = rule_of(mdp)
    assert (choose_agreed(rule, true_dynamics(mdp)).policy.table == [[0, 1, 0]] * 4).all()
    shares = cell_shares(rule)
    assert (shares == shares[0]).all()
    assert shares.min() >= NARROW
    assert shares.max() <= 1.0
    assert not (shares == cell_shares(rule_of(mdp, 2))).all()


# --- shares of decisions ----------------------------------------------------------------------------------------------


def test_disagreement_is_weighted_by_visits_of_the_policy_that_visits_more() -> None:
    mdp = world(3)
    rng = np.random.default_rng(1)
    one, two = (reprl.Policy(rng.integers(3, size=(3, 4))) for _ in range(2))
    expected = 0.0
    for policy in (one, two):
        visits = mdp.occupancy(policy)
        differ = sum(visits[h, s] for h in range(3) for s in range(4) if one.table[h, s] != two.table[h, s])
        expected = max(expected, differ / visits.sum())
    assert one.disagreement(two, mdp) == pytest.approx(expected)
    assert two.disagreement(one, mdp) == pytest.approx(expected)
    assert one.disagreement(one, mdp) == 0.0
    likeness = Likeness(lambda actions: mdp.occupancy(actions))
    assert likeness.share(one, two) == pytest.approx(1.0 - expected)
    assert likeness.share(one, None) == 0.0


def test_steps_after_the_end_of_an_episode_do_not_count() -> None:
    visits = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.1, 0.9]])
    one, two = reprl.Policy([[0, 0, 0]] * 3), reprl.Policy([[0, 1, 0]] * 3)
    assert Likeness(lambda actions: visits).share(one, two) == pytest.approx(1.0 - 0.6 / 3.0)
    assert Likeness(lambda actions: visits, over=(2,)).share(one, two) == pytest.approx(1.0 - 0.6 / 1.6)


@pytest.mark.parametrize(("differing", "passes"), [(0, True), (SPARE, True), (SPARE + 1, False)])
def test_a_rehearsal_counts_teams_that_do_the_same_at_the_share(differing: int, passes: bool) -> None:
    ours, near, far = (reprl.Policy([row] * 10) for row in ([0, 0], [0, 0], [1, 1]))
    near = reprl.Policy([[1, 1], *[[0, 0]] * 9])
    numbers: list[int] = []

    def team(key: SharedKey | None, share: int, draw: int) -> Answer:
        numbers.append(draw)
        return Answer(far if len(numbers) <= differing or (key is not None and len(numbers) % 2) else near, 1.0)

    even = Likeness(lambda actions: np.ones(actions.shape), needed=0.9)
    found = rehearse(team, ours, likeness=even, rho=0.1, epsilon=0.3, stream=DataStream(5, "rehearsal/1"))
    assert found.passed is passes
    assert found.of - found.agree == differing
    assert found.alike == pytest.approx(0.9 * (found.of - differing) / found.of)
    assert found.agreement == 0.9
    assert "90 % of the steps" in str(found)
    assert found.of == asked_for(0.1) if passes else found.of >= asked_for(0.1) // 2


# --- runs, documents and words ----------------------------------------------------------------------------------------


def test_a_run_promises_a_share_and_every_run_says_what_it_expects(tmp_path: Any) -> None:
    mdp = world(1)
    run = reprl.learn(mdp, agreement=0.9, access="generative", shared_seed=3, data_seed=4)
    assert run.guarantee.status == "rehearsed"
    assert (run.guarantee.kind, run.guarantee.agreement) == ("approximate", 0.9)
    assert "same action at ≥ 90 % of the steps with probability ≥ 0.9, " in str(run.guarantee)
    assert run.expected_agreement is not None
    assert 0.9 <= run.expected_agreement <= 1.0
    assert run.value is not None
    assert run.best_value is not None
    assert run.recipe.candidate is None
    stored = reprl.load_run(run.save(tmp_path / "run"))
    assert stored.receipt == run.receipt
    assert stored.recipe.settings.agreement == 0.9
    assert stored.receipt.guarantee.kind == "approximate"
    assert stored.receipt.to_dict()["guarantee"]["promise"] == "approximate"
    assert stored.receipt.to_dict()["rehearsal"]["alike"] == run.expected_agreement
    second = stored.recipe.learn(env=mdp, data_seed=5)
    assert reprl.verify(run, second, mdp).agree
    strict = reprl.learn(mdp, quality=0.5, access="generative", shared_seed=3, data_seed=4)
    assert strict.guarantee.kind == "strict"
    assert strict.expected_agreement is not None
    assert strict.recipe.to_dict()["settings"]["agreement"] == 1.0
    assert strict.receipt.to_dict()["guarantee"]["promise"] == "strict"


def test_two_runs_that_differ_a_little_agree_and_in_much_do_not() -> None:
    from reprl.artifacts.verify import Promised, compare_policies

    mdp = world(2, horizon=10)
    one = reprl.Policy([[0] * 4] * 10)
    near, far = reprl.Policy([[0] * 4] * 9 + [[1] * 4]), reprl.Policy([[1] * 4] * 10)
    for other, agree in ((near, True), (far, False)):
        found = compare_policies(one, other, mdp, promised=Promised(0.9))
        assert (found.same, found.agree) == (False, agree)
        assert not compare_policies(one, other, mdp).agree
    visits = np.ones((10, 4))
    assert compare_policies(one, near, promised=Promised(0.9, (visits, visits))).alike == pytest.approx(0.9)


@pytest.mark.parametrize("agreement", [0.0, -0.1, 1.01, math.nan, "much", True])
def test_an_agreement_that_is_no_share_is_refused(agreement: Any) -> None:
    for call in (reprl.learn, reprl.audit):
        with pytest.raises(InputError, match=r"agreement must lie in \(0, 1\]"):
            call(world(), agreement=agreement)


def test_what_has_no_use_for_an_agreement_refuses_it() -> None:
    mdp = world()
    with pytest.raises(InputError, match=r"agreement must be 1 unless rule='canonical', got 0\.9"):
        reprl.learn(mdp, rule="paper", agreement=0.9)
    with pytest.raises(InputError, match="certify must be left out for an agreement below 1, got True"):
        reprl.learn(mdp, agreement=0.9, certify=True)
    with pytest.raises(InputError, match="candidate must be left out for an agreement below 1"):
        reprl.learn(mdp, agreement=0.9, candidate=("preferred", 1))


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_an_audit_counts_pairs_below_the_share() -> None:
    """A learner that flips one coin for its last step: half of the pairs differ, at a tenth of the steps."""
    mdp = world(2, horizon=10)

    def flips(model: Any, shared_key: Any) -> Any:
        return np.array([[0] * 4] * 9 + [[model.data_seed % 2] * 4])

    flips.access = "generative"  # type: ignore[attr-defined]
    strict, near, nearer = (reprl.audit(mdp, flips, 40, seed=7, agreement=share) for share in (1.0, 0.9, 0.95))
    assert strict.verdict == "rejected"
    assert (strict.promise, strict.agreement) == ("strict", None)
    assert (near.disagreements, near.promise, near.agreement) == (0, "approximate", 0.9)
    assert near.alike == strict.alike == pytest.approx(1.0 - 0.1 * strict.disagreement)
    assert nearer.disagreements == strict.disagreements
    assert reprl.AuditReport.from_json(near.to_json()).to_dict() == near.to_dict()
    assert near.to_dict()["promise"] == "approximate"


@pytest.mark.long
@pytest.mark.statistical
def test_pairs_keep_the_share_and_runs_of_a_fortieth_of_the_samples_do_not() -> None:
    """The promise of ρ = 0.1 on a world without structure; runs cut short by far are the control."""
    mdp, pairs = world(5, 6, 3, 4), 24
    low, samples = 0, []
    for number in range(pairs):
        how: dict[str, Any] = {"agreement": 0.9, "access": "generative", "shared_seed": number}
        one, two = (reprl.learn(mdp, data_seed=1000 * team + number, **how) for team in (1, 2))
        assert one.guarantee.status == two.guarantee.status == "rehearsed"
        low += one.policy.disagreement(two.policy, mdp) > 0.1
        samples += [one.samples, two.samples]
    assert keeps(low, pairs, 0.1, power=0.0009, finds=0.8)
    budget = int(np.median(samples)) // 40
    control = reprl.audit(mdp, "reprl", pairs, seed=5, access="generative", agreement=0.9, samples=budget)
    assert not keeps(control.disagreements, pairs, 0.1, power=0.0009, finds=0.8)

"""First divergence: found where it was planted, in the order in which stages decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.auditing.divergence import Divergence, first_divergence, policy_divergence
from reprl.auditing.exact_quantities import optimal_scores
from reprl.mdp.tiers import Tiers
from reprl.sources.environment import describe

EPISODES: Any = {"access": "episodic", "rule": "paper", "constants": "scaled", "epsilon": 1.0}

MDP = reprl.make("random-mdp-v0", 3, n_states=4, n_actions=3)
WORLD = describe(MDP)


@pytest.fixture(scope="module")
def generative() -> reprl.LearnResult:
    return reprl.learn(MDP, rule="paper", constants="scaled", samples=50 * 36, shared_seed=1, data_seed=2)


@pytest.fixture(scope="module")
def episodic() -> reprl.LearnResult:
    return reprl.learn(MDP, **EPISODES, scale=0.01, shared_seed=1, data_seed=2)


def parted(first: reprl.LearnResult, second: reprl.LearnResult) -> Divergence:
    found = first_divergence(5, first, second, WORLD)
    assert found is not None
    assert found.pair == 5
    mirrored = first_divergence(5, second, first, WORLD)
    assert mirrored is not None
    assert found[:5] == mirrored[:5]
    assert found.margin == (None if mirrored.margin is None else pytest.approx(mirrored.margin))
    return found


def with_details(run: reprl.LearnResult, **changed: Any) -> reprl.LearnResult:
    assert run.details is not None
    return replace(run, details=run.details._replace(**changed))


def with_action(run: reprl.LearnResult, h: int, s: int) -> reprl.LearnResult:
    """The same run with the next action at (h, s)."""
    actions = run.policy.actions.copy()
    actions[h, s] = (actions[h, s] + 1) % MDP.n_actions
    return replace(run, policy=reprl.Policy(actions))


def with_score(run: reprl.LearnResult, h: int, s: int, a: int, shift: float) -> reprl.LearnResult:
    assert run.induction is not None
    scores, laws = run.induction.scores.copy(), run.induction.laws.copy()
    scores[h, s, a] += shift
    laws[h, s] = np.eye(MDP.n_actions)[run.policy.actions[h, s]]
    return with_details(run, induction=run.induction._replace(scores=scores, laws=laws))


def test_equal_policies_do_not_part(generative):
    assert first_divergence(0, generative, replace(generative), WORLD) is None
    assert policy_divergence(0, generative.policy, generative.policy, WORLD, None) is None


def test_arms_are_named_at_the_last_step_that_parts(generative):
    other = with_score(with_action(with_action(generative, 0, 1), 1, 2), 1, 2, 0, 0.25)
    found = parted(generative, other)
    assert (found.stage, found.tier, found.step, found.state) == ("arms", 1, 1, 2)
    assert other.induction is not None
    assert generative.induction is not None
    a, b = generative.policy.actions[1, 2], other.policy.actions[1, 2]
    assert found.actions == (a, b)
    scores = [induction.scores[1, 2] for induction in (generative.induction, other.induction)]
    gaps = [table[a] - table[b] for table in scores]
    assert found.margin == pytest.approx(abs(np.mean(gaps)))
    distance = 0.5 * np.abs(generative.induction.laws[1, 2] - other.induction.laws[1, 2]).sum()
    assert f"laws by {distance:.3g} in total variation" in found.text
    assert f"step 1, state {WORLD.labels.state(2)}" in found.text


def test_of_several_arms_in_one_draw_the_furthest_laws_are_named(generative):
    other = with_action(with_action(generative, 2, 0), 2, 3)
    laws = generative.induction.laws.copy()
    assert other.induction is not None
    laws[2, 3] = np.roll(np.eye(MDP.n_actions)[generative.policy.actions[2, 3]], 1)
    other = with_details(other, induction=other.induction._replace(laws=laws))
    found = parted(generative, other)
    assert (found.step, found.state) == (2, 3)
    assert "1 more cell of this draw" in found.text


def partitioned(run: reprl.LearnResult, level: Any, fractional: Any) -> reprl.LearnResult:
    """The same run with a partition into three tiers, and the fractions that its two sets were drawn from."""
    assert run.explored is not None
    table = np.ones((3, 4), dtype=np.int64)
    mu = np.zeros((2, 3, 4))
    for cell, tier in level.items():
        table[cell] = tier
    for place, fraction in fractional.items():
        mu[place] = fraction
    return with_details(replace(run, tiers=Tiers.from_levels(table, 3)), explored=run.explored._replace(fractional=mu))


def test_partition_comes_before_everything_and_names_the_draw(episodic):
    """Tier 2 parts in two cells, (2, 2) moves with neither; the cell with the fractions furthest apart is named."""
    one = partitioned(episodic, {(1, 3): 2, (2, 1): 3, (2, 2): 2}, {(1, 1, 3): 0.125, (1, 2, 1): 0.625})
    two = partitioned(episodic, {(1, 3): 3, (2, 1): 2, (2, 2): 2}, {(1, 1, 3): 0.25, (1, 2, 1): 0.125})
    found = parted(one, with_action(two, 2, 0))
    assert (found.stage, found.tier, found.step, found.state) == ("partition", 2, 2, 1)
    assert found.margin == pytest.approx(0.5)
    assert "ignored by one run and kept by the other in tier 2" in found.text
    assert "a fraction 0.625 and 0.125 of their runs (and 1 more cell of this draw)" in found.text


def test_an_earlier_tier_parts_before_a_later_one(episodic):
    one = partitioned(episodic, {(0, 0): 2, (2, 3): 2}, {(0, 0, 0): 0.5})
    two = partitioned(episodic, {(0, 0): 1, (2, 3): 3}, {(0, 0, 0): 0.25, (1, 2, 3): 1.0})
    found = parted(one, with_action(two, 2, 0))
    assert (found.stage, found.tier, found.step, found.state, found.margin) == ("partition", 1, 0, 0, 0.25)


def test_sets_that_differ_without_moving_a_tier_do_not_part(episodic):
    ignored = ~episodic.explored.ignored
    other = with_details(with_action(episodic, 2, 0), explored=episodic.explored._replace(ignored=ignored))
    assert parted(episodic, other).stage == "arms"


def test_rounding_is_named_where_it_parts_before_the_arms():
    run = reprl.learn(MDP, rule="paper", constants="scaled", samples=50 * 36, shared_seed=1, data_seed=2)
    assert run.induction is not None
    values = run.induction.values.copy()
    values[2, 1] += 0.3
    other = with_details(with_action(run, 0, 0), induction=run.induction._replace(values=values))
    found = parted(run, other)
    assert (found.stage, found.step, found.state) == ("rounding", 2, 1)
    assert found.margin == pytest.approx(0.3)


@pytest.fixture(scope="module")
def soft() -> reprl.LearnResult:
    return reprl.learn(MDP, access="generative", shared_seed=1, data_seed=2, max_samples=20_000)


@pytest.mark.parametrize("change", [{"attempt": 3}, {"level": 2}], ids=str)
def test_different_tries_part_at_the_try(soft, change):
    first = soft.choice._replace(best=2.0, value=1.9, allowed=0.4, level=1, attempt=0)
    second = first._replace(value=1.8, allowed=0.5, **change)
    found = parted(with_details(soft, choice=first), with_details(with_action(soft, 1, 2), choice=second))
    assert (found.stage, found.tier, found.step, found.state) == ("try", None, None, None)
    assert found.margin == pytest.approx(0.2 / 0.5 - 0.1 / 0.4)
    assert f"try 0 of level 1 and try {second.attempt} of level {second.level} passed" in found.text
    assert "the policies lose 0.25 and 0.4 of what is allowed (0.4, 0.5)" in found.text


def test_one_try_parts_at_the_first_comparison_that_came_out_differently(soft):
    choice = soft.choice._replace(best=2.0, value=1.9, allowed=0.4)
    one = with_details(soft, choice=choice)
    other = with_details(with_action(with_action(soft, 2, 0), 1, 3), choice=choice._replace(value=1.8))
    found = parted(one, other)
    assert (found.stage, found.tier, found.step, found.state) == ("comparison", None, 1, 3)
    assert found.actions == (one.policy.actions[1, 3], other.policy.actions[1, 3])
    assert found.margin == pytest.approx(0.25)
    assert f"in try {choice.attempt} of level {choice.level}" in found.text


def test_a_run_without_stages_parts_at_its_policy(generative):
    bare = replace(generative, details=None)
    found = parted(bare, with_action(bare, 1, 2))
    assert (found.stage, found.step, found.state) == ("policy", 1, 2)


def test_policy_stage_names_last_step_first_state_and_true_gap():
    scores = optimal_scores(MDP)
    one = MDP.solve().policy.actions
    two = one.copy()
    two[0, 0], two[1, 3], two[1, 2] = ((two[cell] + 1) % 3 for cell in ((0, 0), (1, 3), (1, 2)))
    found = policy_divergence(7, reprl.Policy(one), reprl.Policy(two), WORLD, scores)
    assert found is not None
    assert found[:4] == (7, "policy", None, 1)
    assert (found.state, found.actions) == (2, (one[1, 2], two[1, 2]))
    # Q* from the values: one step of the Bellman equation by hand.
    worth = MDP.reward[1, 2] + MDP.transition[1, 2] @ MDP.solve().values[2]
    assert found.margin == pytest.approx(worth[one[1, 2]] - worth[two[1, 2]])
    unknown = policy_divergence(7, reprl.Policy(one), reprl.Policy(two), WORLD, None)
    assert unknown is not None
    assert unknown.margin is None
    assert "not known" in unknown.text


def test_an_exact_tie_is_called_one():
    grid = reprl.make("gridworld-v0")
    one = grid.solve().policy.actions
    two = one.copy()
    two[0, 0] = 2 if one[0, 0] == 1 else 1  # the mirror image of the first move
    found = policy_divergence(0, reprl.Policy(one), reprl.Policy(two), describe(grid), optimal_scores(grid))
    assert found is not None
    assert found.margin == 0.0
    assert found.text == "step 0, state 0,0 start: → against ↓, an exact tie"

"""What a policy loses and what ignoring costs, against dynamic programming in the world that the data are."""

from __future__ import annotations

import numpy as np
import pytest

import reprl
from reprl.learning.loss import best_value, ignoring_cost, policy_loss_bound
from reprl.mdp.dynamics import Data
from reprl.mdp.tiers import Tiers


def exact(mdp: reprl.TabularMDP, times: int = 64) -> Data:
    """Data whose frequencies are the world's own probabilities."""
    law = np.tile(mdp.probability, mdp.horizon if mdp.outcomes.slot_shift else 1)
    hits = np.rint(times * law).astype(np.int64)
    starts = np.rint(times * np.asarray(mdp.initial)).astype(np.int64)
    return Data(reprl.Counts(mdp.outcomes, hits), starts)


@pytest.fixture(scope="module")
def mdp() -> reprl.TabularMDP:
    rng = np.random.default_rng(5)
    transition = rng.multinomial(8, np.full(4, 0.25), size=(3, 4, 2)) / 8.0
    return reprl.TabularMDP(transition, rng.integers(0, 9, (3, 4, 2)) / 8.0, [0.5, 0.25, 0.25, 0.0])


def test_they_are_those_of_the_world_where_data_are_the_world(mdp: reprl.TabularMDP) -> None:
    data, best = exact(mdp), mdp.solve().policy
    assert best_value(data) == pytest.approx(mdp.evaluate(best))
    assert policy_loss_bound(data, best) == pytest.approx(0.0, abs=1e-12)
    for seed in range(20):
        policy = reprl.Policy(np.random.default_rng(seed).integers(0, 2, (3, 4)))
        assert policy_loss_bound(data, policy) == pytest.approx(mdp.evaluate(best) - mdp.evaluate(policy))


def test_ignoring_costs_what_the_best_policy_would_earn_there(mdp: reprl.TabularMDP) -> None:
    """Against the world in which ignored states pay nothing and lead to an extra state for good."""
    data, rng = exact(mdp), np.random.default_rng(1)
    assert ignoring_cost(data, Tiers.single(3, 4)) == 0.0
    for _ in range(20):
        ignored = rng.random((3, 4)) < 0.3
        tiers = Tiers.from_levels(np.where(ignored, 2, 1), 2)
        transition, reward = np.zeros((3, 5, 2, 5)), np.zeros((3, 5, 2))
        transition[:, :4, :, :4], reward[:, :4] = mdp.transition, mdp.reward
        transition[:, 4, :, 4] = 1.0
        for h, s in np.argwhere(ignored):
            transition[h, s], reward[h, s] = np.eye(5)[4], 0.0
        other = reprl.TabularMDP(transition, reward, [*mdp.initial, 0.0])
        expected = best_value(data) - other.evaluate(other.solve().policy)
        assert ignoring_cost(data, tiers) == pytest.approx(expected)
        assert ignoring_cost(data, tiers) <= 3 * mdp.reachability(tiers.ignorable) + 1e-12


def test_a_state_with_an_unseen_action_may_be_worth_all_that_is_left(mdp: reprl.TabularMDP) -> None:
    data = exact(mdp)
    hits = data.counts.hits.copy()
    _, slots = data.counts.outcomes.slots(0, 1, 0)
    hits[slots] = 0
    unseen = Data(reprl.Counts(data.counts.outcomes, hits), data.starts)
    value = mdp.solve().values[0]
    assert best_value(unseen) == pytest.approx(float(mdp.initial @ value) + 0.25 * (3.0 - value[1]))
    never = reprl.Policy(np.zeros((3, 4), dtype=np.int64))
    assert policy_loss_bound(unseen, never) >= 0.25 * 3.0

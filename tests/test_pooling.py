"""Pooled steps: worlds whose law does not depend on the step count every sample at all of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.artifacts.recipe import Recipe
from reprl.errors import ReprlError
from reprl.learning.learner import ReprlLearner
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts, tally
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.randomness import SharedKey
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.parallel import GenerativeModel
from reprl.sources.protocol import Access
from tests.statistics import FALSE_ALARM, exceeds
from tests.test_blackbox import Stairs

GOLDEN = {
    ("gridworld-v0", "generative"): ("3c224eff2d8e41f65d74259b8ec28ca1a59cd5b27b5df091431cba0dfa7b0ba0", 2097152),
    ("gridworld-v0", "episodic"): ("3c224eff2d8e41f65d74259b8ec28ca1a59cd5b27b5df091431cba0dfa7b0ba0", 1050624),
    ("river-swim-v0", "generative"): ("a85ecc7441dd1fc60fcc5fe9d75bfd36aa20d6ca815709c1d10681ba18d5ef50", 3072),
    ("river-swim-v0", "episodic"): ("a85ecc7441dd1fc60fcc5fe9d75bfd36aa20d6ca815709c1d10681ba18d5ef50", 1600),
}
"""Fingerprint and samples of learn(shared_seed=7, data_seed=11), steps pooled."""


def stepwise(mdp: reprl.TabularMDP) -> reprl.TabularMDP:
    """The same world, built step by step: it does not show that its steps are alike."""
    return reprl.TabularMDP(np.array(mdp.transition), np.array(mdp.reward), np.array(mdp.initial))


def random_start() -> reprl.TabularMDP:
    mdp = reprl.make("random-mdp-v0", 4, n_states=5, n_actions=2)
    return reprl.TabularMDP(mdp.transition[0], mdp.reward[0], np.full(5, 0.2), 4)


# Counts.


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 40))
def test_pooled_tallies_are_those_of_rows_that_have_forgotten_their_step(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.integers(0, k, n) for k in (4, 3, 2, 3)] + [rng.integers(0, 3, n) / 2])
    pooled = tally(rows, (4, 3, 2)).pool()
    flat = rows.copy()
    flat[:, 0] = 0
    naive = tally(flat, (1, 3, 2))
    assert pooled.outcomes.pooled
    for h in range(4):
        assert pooled.visits[h].tolist() == naive.visits[0].tolist()
        assert pooled.reward_sum[h].tolist() == naive.reward_sum[0].tolist()
        assert all(
            pooled.successors(h, s, a).tolist() == naive.successors(0, s, a).tolist() for s in range(3) for a in (0, 1)
        )
    assert int(pooled.hits.sum()) == n
    half = rng.integers(0, n + 1)
    parts = [tally(rows[:half], (4, 3, 2)), tally(rows[half:], (4, 3, 2))]
    assert Counts.merge(part.pool() for part in parts) == pooled == Counts.merge(parts).pool()


def test_pooled_counts_are_kept_and_mixed_ones_refused() -> None:
    counts = GenerativeModel(reprl.make("river-swim-v0"), 1).sample(9)
    pooled = counts.pool()
    assert pooled.pool() is pooled
    assert Counts.from_bytes(pooled.to_bytes()) == pooled
    assert pooled.visits.tolist() == np.full((20, 6, 2), 9 * 20).tolist()
    with pytest.raises(ReprlError, match="must both have pooled steps to merge, or neither"):
        Counts.merge([counts, pooled])


# Parallel samples.


@pytest.mark.parametrize(("mdp", "per_call"), [(reprl.make("river-swim-v0"), 12), (random_start(), 11)])
def test_a_pooled_call_costs_one_sample_of_each_state_and_action(mdp: reprl.TabularMDP, per_call: int) -> None:
    model = GenerativeModel(mdp, 3)
    counts = model.pooled.sample(7)
    assert (model.pooled.samples_per_call, model.ledger.samples, model.ledger.calls) == (per_call, 7 * per_call, 7)
    assert int(counts.hits.sum()) == 7 * mdp.n_states * mdp.n_actions
    assert model.pooled.draw_starts(7).sum() == 7
    assert counts == GenerativeModel(mdp, 3).pooled.sample(7)
    assert counts != model.pooled.sample(7)
    assert model.pooled.sample(10**12).visits.max() == 10**12


def test_pooled_samples_have_the_law_of_the_world() -> None:
    """The largest of 200 standardised deviations, 10⁶ samples a cell: above 7 with probability below 1e-9."""
    mdp = random_start()
    law = empirical_dynamics(Data(GenerativeModel(mdp, 5).pooled.sample(10**6), np.ones(5, dtype=np.int64)))
    found, true = law.probability, mdp.probability
    apart = np.abs(found - true) / np.sqrt(true * (1 - true) / 10**6)
    assert apart.max() < 7.0
    wrong = np.abs(np.roll(found, 1) - true) / np.sqrt(true * (1 - true) / 10**6)
    assert wrong.max() > 100.0  # what the same figure says of another law


# learn.


def test_a_black_box_is_pooled_unless_the_user_says_otherwise() -> None:
    def box() -> GymnasiumModel:
        return GymnasiumModel(lambda: Stairs(0.1), 3, reward_range=(0, 1), data_seed=1)

    silent = reprl.learn(box(), shared_seed=1, data_seed=2)
    said = reprl.learn(box(), shared_seed=1, data_seed=2, stationary=True)
    apart = reprl.learn(box(), shared_seed=1, data_seed=2, stationary=False)
    assert [result.settings.stationary for result in (silent, said, apart)] == [True, True, False]
    assert [result.counts.outcomes.pooled for result in (silent, said, apart)] == [True, True, False]
    assert said.policy == silent.policy


@pytest.mark.parametrize("name", list(GOLDEN))
def test_pooled_runs_are_golden(name: tuple[str, Access]) -> None:
    result = reprl.learn(name[0], access=name[1], shared_seed=7, data_seed=11)
    assert (result.policy.fingerprint, result.samples) == GOLDEN[name]
    assert (result.guarantee.status, result.settings.stationary) == ("rehearsed", True)


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_what_a_world_shows_is_taken_and_recorded(access: Access) -> None:
    mdp = reprl.make("random-mdp-v0", 3, n_states=4, n_actions=2)
    shown = reprl.learn(mdp, access=access, shared_seed=7, data_seed=1)
    silent = reprl.learn(stepwise(mdp), access=access, shared_seed=7, data_seed=1)
    apart = reprl.learn(mdp, access=access, shared_seed=7, data_seed=1, stationary=False)
    assert [result.settings.stationary for result in (shown, silent, apart)] == [True, False, False]
    assert [result.counts.outcomes.pooled for result in (shown, silent, apart)] == [True, False, False]
    assert shown.recipe.to_dict()["settings"]["stationary"] is True
    assert apart.recipe.to_dict()["settings"]["stationary"] is False
    assert Recipe.from_json(shown.recipe.to_json()).learn(data_seed=1).policy == shown.policy
    assert Recipe.plan(shown.environment, Settings(access=access), 7).digest == shown.recipe.digest
    assert shown.receipt.visits.tolist() == np.asarray(shown.counts.visits).sum(axis=2).tolist()


def test_a_recipe_without_the_field_means_apart_and_keeps_its_digest() -> None:
    result = reprl.learn("river-swim-v0", horizon=3, shared_seed=7, data_seed=1, stationary=False)
    text = result.recipe.to_json()
    recipe = Recipe.from_json(text)
    assert (recipe.settings.stationary, recipe.digest) == (False, result.recipe.digest)
    document = json.loads(text)
    document["settings"]["stationary"] = "yes"
    with pytest.raises(ReprlError, match=r"recipe settings.stationary must be True, False or None, got 'yes'"):
        Recipe.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stationary": 1}, r"^stationary must be True, False or None, got 1\Z"),
        ({"stationary": "no"}, r"^stationary must be True, False or None, got 'no'\Z"),
        ({"stationary": True, "rule": "paper"}, r"^stationary must be left out unless rule='soft', got True\Z"),
    ],
)
def test_settings_that_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ReprlError, match=words):
        reprl.learn("river-swim-v0", **options)


def test_parallel_samples_of_a_world_whose_steps_differ_are_not_pooled() -> None:
    mdp = stepwise(reprl.make("river-swim-v0", horizon=3))
    with pytest.raises(ReprlError, match="mdp must be time-homogeneous for its steps to be pooled, got TabularMDP"):
        reprl.learn(mdp, access="generative", stationary=True)
    assert reprl.learn(mdp, stationary=True, shared_seed=1, data_seed=2).counts.outcomes.pooled


def test_a_budget_pays_for_pooled_calls() -> None:
    mdp = reprl.make("river-swim-v0")
    model = GenerativeModel(mdp, 1)
    ReprlLearner(Settings(access="generative"), 12 * 50).run(model, SharedKey(1))
    assert model.ledger.samples == 12 * 50


# How often two runs disagree.


def disagreements(pairs: int, **options: Any) -> int:
    mdp = reprl.make("random-mdp-v0", 4, n_states=5, n_actions=3)

    def policy(pair: int, team: int) -> reprl.Policy:
        shared, data = 500 + pair, 2 * pair + team
        return reprl.learn(mdp, access="generative", shared_seed=shared, data_seed=data, **options).policy

    return sum(policy(pair, 0) != policy(pair, 1) for pair in range(pairs))


@pytest.mark.statistical
def test_two_pooled_runs_agree() -> None:
    """30 pairs at ρ = 0.1, false alarm 1e-6; a disagreement of 0.75 is noticed with probability above 0.999.

    The control stops after 2 calls, whatever a rehearsal says: most of its pairs differ, and the test says so.
    """
    assert exceeds(disagreements(30), 30, 0.1) > FALSE_ALARM
    assert exceeds(disagreements(30, max_samples=2 * 15), 30, 0.1) <= FALSE_ALARM

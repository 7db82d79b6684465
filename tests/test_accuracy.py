"""ε is in the units of an environment's own rewards, and the same in every recipe."""

from __future__ import annotations

import json
from typing import Any

import pytest

import reprl
from reprl import ReprlError
from reprl.cli.app import main
from reprl.learning.accuracy import rescale_epsilon
from reprl.mdp.labels import RewardMap
from tests.clinic_log import HORIZON, make_log
from tests.shop import Shop

SEEDS: dict[str, Any] = {"shared_seed": 7, "data_seed": 1}
TAXI: dict[str, Any] = {"access": "generative", "max_samples": 50_000}


def wide() -> reprl.TabularMDP:
    """Rewards from −10 to 20."""
    mdp = reprl.make("random-mdp-v0", horizon=2, n_states=3, n_actions=2)
    labels = reprl.Labels(reward_map=RewardMap(-10.0, 20.0))
    return reprl.TabularMDP(mdp.transition, mdp.reward, mdp.initial, labels=labels)


def test_a_second_team_shares_the_accuracy_and_no_one_rescales_it_twice() -> None:
    mdp = wide()
    run = reprl.learn(mdp, epsilon=9.0, **TAXI, **SEEDS)
    assert run.settings.epsilon == run.guarantee.epsilon == 9.0 / 30.0
    assert run.epsilon == pytest.approx(9.0)
    recipe = reprl.Recipe.from_json(run.recipe.to_json())
    assert recipe.settings.epsilon == 9.0 / 30.0
    second = recipe.learn(data_seed=2, max_samples=50_000, env=mdp)
    assert second.recipe.digest == recipe.digest
    assert second.settings == run.settings


def test_a_black_box_and_a_log_have_units_of_their_own() -> None:
    run = reprl.learn(Shop(), epsilon=6.9, horizon=2, reward_range=Shop.REWARDS, max_samples=300, **SEEDS)
    assert run.settings.epsilon == pytest.approx(0.5)
    log = make_log(60, seed=1)
    found = reprl.learn_log(log, epsilon=2.0, horizon=HORIZON, reward_range=(-1.0, 3.0), shared_seed=7)
    assert found.settings.epsilon == 0.5


def test_audits_take_reward_units_and_so_does_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    mdp = wide()
    assert reprl.audit(mdp, "reprl", 2, access="generative", seed=1, epsilon=9.0).options["epsilon"] == 0.3
    assert reprl.audit(mdp, "greedy", 2, seed=1, epsilon=9.0).options["epsilon"] == 0.3
    words = ["learn", "gym:Taxi-v4", "--horizon", "2", "--access", "generative", "--epsilon", "9"]
    assert main([*words, "--max-samples", "100000", "--shared-seed", "7", "--data-seed", "1", "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert found["epsilon"] == pytest.approx(9.0)
    assert found["recipe"]["settings"]["epsilon"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [
        (
            61.0,
            "epsilon must lie in (0, 60] in the rewards' own units, as rewards over horizon 2 lie between",
        ),
        (0.0, "epsilon must lie in (0, inf), got 0.0"),
        ("much", "epsilon must lie in (0, inf), got 'much'"),
    ],
)
def test_what_is_no_accuracy_is_refused_by_name(epsilon: Any, words: str) -> None:
    with pytest.raises(ReprlError) as caught:
        reprl.learn(wide(), epsilon=epsilon)
    assert words in str(caught.value)
    with pytest.raises(ReprlError):
        rescale_epsilon(epsilon, wide())

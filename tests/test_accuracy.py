"""ε in the rewards' own units and as a share of the spread: converted before any data, the same in every recipe."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl import ReprlError
from reprl.cli.app import main
from reprl.learning.accuracy import EpsilonUnits, rescale_epsilon
from tests.clinic_log import HORIZON, make_log
from tests.shop import Shop

SEEDS: dict[str, Any] = {"shared_seed": 7, "data_seed": 1}


def naive_spread(mdp: reprl.TabularMDP) -> float:
    """Try every policy."""
    tables = itertools.product(range(mdp.n_actions), repeat=mdp.horizon * mdp.n_states)
    values = [mdp.evaluate(np.reshape(table, (mdp.horizon, mdp.n_states))) for table in tables]
    return max(values) - min(values)


@pytest.mark.parametrize("seed", range(4))
def test_a_share_of_the_spread_is_one_of_best_minus_worst(seed):
    generator = np.random.default_rng(seed)
    law = generator.dirichlet(np.ones(3), size=(3, 2))
    mdp = reprl.TabularMDP(law, generator.random((3, 2)), horizon=2, initial=generator.dirichlet(np.ones(3)))
    for share in (0.01, 0.25, 0.999):
        assert rescale_epsilon(share, "spread", mdp) == pytest.approx(share * naive_spread(mdp), rel=1e-5)


@pytest.mark.long
def test_units_change_what_is_given_and_nothing_else(tmp_path):
    taxi = reprl.make("gym:Taxi-v4", horizon=2)  # rewards from -10 to 20
    assert isinstance(taxi, reprl.TabularMDP)
    given: dict[EpsilonUnits, float] = {"original": 9.0, "spread": 0.3 / naive_extremes(taxi), "rescaled": 0.3}
    runs = {
        units: reprl.learn(taxi, epsilon=epsilon, epsilon_units=units, access="generative", max_samples=50_000, **SEEDS)
        for units, epsilon in given.items()
    }
    assert runs["original"].settings.epsilon == pytest.approx(0.3)
    assert runs["spread"].settings.epsilon == pytest.approx(0.3, rel=1e-5)
    assert len({run.policy.fingerprint for run in runs.values()}) == 1
    recipe = runs["original"].recipe
    assert recipe.to_dict()["settings"]["epsilon"] == 9.0 / 30.0
    assert "epsilon_units" not in json.dumps(recipe.to_dict())
    second = recipe.learn(data_seed=2, max_samples=50_000)  # the second team shares it without knowing of units
    assert second.recipe.digest == recipe.digest


def naive_extremes(mdp: reprl.TabularMDP) -> float:
    """Best minus worst by two dynamic programs, written out."""
    best, worst = np.zeros(mdp.n_states), np.zeros(mdp.n_states)
    for h in reversed(range(mdp.horizon)):
        best = (mdp.reward[h] + mdp.transition[h] @ best).max(axis=1)
        worst = (mdp.reward[h] + mdp.transition[h] @ worst).min(axis=1)
    return float(mdp.initial @ (best - worst))


def test_the_share_that_a_result_shows_is_the_one_that_was_asked_for(capsys):
    words = ["learn", "gridworld-v0", "--horizon", "6", "--access", "generative", "--epsilon", "0.4"]
    assert main([*words, "--epsilon-units", "spread", "--shared-seed", "7", "--data-seed", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["epsilon"] == pytest.approx(0.4 * naive_extremes(reprl.make("gridworld-v0", horizon=6)), rel=1e-5)
    assert found["recipe"]["settings"]["epsilon"] == found["epsilon"]
    assert found["epsilon_share_of_spread"] == pytest.approx(0.4, rel=0.2)  # of the spread in its own data


def test_a_black_box_has_units_of_its_own_and_no_spread():
    options: dict[str, Any] = {"horizon": 2, "reward_range": Shop.REWARDS, "max_samples": 300, **SEEDS}
    run = reprl.learn(Shop(), epsilon=6.9, epsilon_units="original", **options)
    assert run.settings.epsilon == pytest.approx(0.5)
    with pytest.raises(ReprlError, match=r"'rescaled' or 'original' where the dynamics are not known .* got 'spread'"):
        reprl.learn(Shop(), epsilon=0.5, epsilon_units="spread", **options)


def test_a_log_has_units_of_its_own_and_no_spread():
    log = make_log(60, seed=1)
    options: dict[str, Any] = {"horizon": HORIZON, "reward_range": (-1.0, 3.0), "shared_seed": 7}
    assert reprl.learn_log(log, epsilon=2.0, epsilon_units="original", **options).settings.epsilon == 0.5
    with pytest.raises(ReprlError, match="got 'spread' for log"):
        reprl.learn_log(log, epsilon=0.5, epsilon_units="spread", **options)


def test_audits_take_units():
    mdp = reprl.make("river-swim-v0", horizon=4, n_states=3)
    epsilon = rescale_epsilon(0.5, "spread", mdp)
    given: dict[str, Any] = {"epsilon": 0.5, "epsilon_units": "spread"}
    report = reprl.audit(mdp, "reprl", 2, access="generative", seed=1, **given)
    assert report.options["epsilon"] == epsilon


REFUSED = [
    (
        {"epsilon": 0.5, "epsilon_units": "euros"},
        "epsilon_units must be one of rescaled, original, spread; got 'euros'",
    ),
    ({"epsilon": 0.5, "epsilon_units": None}, "epsilon_units must be one of rescaled, original, spread; got None"),
    ({"epsilon_units": "spread"}, "epsilon must be given with epsilon_units='spread', got none"),
    ({"epsilon": 1.5, "epsilon_units": "spread"}, "epsilon, as a share of the spread, must lie in (0, 1), got 1.5"),
    (
        {"epsilon": 13.0, "epsilon_units": "original"},
        "epsilon must lie in (0, 4] in the rewards' own units, as rewards over horizon 4",
    ),
    ({"epsilon": 0.0, "epsilon_units": "original"}, "epsilon must lie in (0, inf), got 0.0"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_what_is_no_accuracy_is_refused_by_name(given, words):
    with pytest.raises(ReprlError) as caught:
        reprl.learn("river-swim-v0", horizon=4, **given)
    assert words in str(caught.value)


def test_a_world_where_all_policies_are_worth_the_same_has_no_spread():
    mdp = reprl.TabularMDP(np.full((2, 2, 2), 0.5), np.full((2, 2), 0.5), horizon=3)
    with pytest.raises(ReprlError, match="all policies are worth the same, got 'spread'"):
        reprl.learn(mdp, epsilon=0.1, epsilon_units="spread")


@pytest.mark.long
def test_every_command_with_an_epsilon_takes_its_units(tmp_path: Path, capsys):
    world, units = ["river-swim-v0", "--horizon", "4", "--env-option", "n_states=3"], ["--epsilon-units", "spread"]
    few = ["--access", "generative", "--epsilon", "0.5"]
    wanted = rescale_epsilon(0.5, "spread", reprl.make("river-swim-v0", horizon=4, n_states=3))
    assert main(["twice", *world, *few, *units, "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["runs"][0]["epsilon"] == wanted
    assert main(["audit", *world, *few, *units, "--pairs", "2", "--json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["options"]["epsilon"] == wanted
    assert main(["plan", *world, "--epsilon", "0.5", *units, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == wanted
    assert main(["plan", "-S", "2", "-A", "2", "-H", "2", *units]) == 2
    assert "--epsilon-units must come with ENV, got 'spread'" in capsys.readouterr().err

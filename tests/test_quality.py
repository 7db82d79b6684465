"""What is asked for: a quality, the baseline that it is measured from, and what every screen says of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.artifacts.receipt import Receipt
from reprl.artifacts.recipe import Recipe
from reprl.cli.app import main
from reprl.errors import ReprlError
from reprl.learning.baseline import exact_baseline, exact_loss, resolve_baseline
from reprl.learning.settings import DEFAULT_QUALITY, PAPER_EPSILON, Settings
from reprl.learning.worth import Worth, find_worth
from reprl.report.card import card
from reprl.report.worth import exact_worth
from reprl.rule.soft import LEAST_GAIN
from reprl.sources.environment import open_environment
from tests.shop import Shop


def bandit(*means: float, allowed: Any = None) -> reprl.TabularMDP:
    """One state, one step: what each action pays is its value."""
    arms = len(means)
    return reprl.TabularMDP(np.ones((1, arms, 1)), np.array([means]), horizon=1, allowed=allowed)


def chain(*means: float, horizon: int = 3, allowed: Any = None) -> reprl.TabularMDP:
    """One state for several steps; rewards are what they are, so that estimates are exact."""
    kind: Any = "deterministic"
    return reprl.TabularMDP(
        np.ones((1, len(means), 1)), np.array([means]), horizon=horizon, reward_kind=kind, allowed=allowed
    )


FEW: dict[str, Any] = {"access": "generative", "shared_seed": 3, "data_seed": 5}


# What is asked for


def test_the_default_is_a_quality_and_the_paper_s_rule_keeps_its_epsilon():
    asked = Settings()
    assert (asked.quality, asked.epsilon) == (DEFAULT_QUALITY, None)
    assert (Settings(epsilon=0.2).quality, Settings(epsilon=0.2).epsilon) == (None, 0.2)
    assert (Settings(rule="paper").quality, Settings(rule="paper").epsilon) == (None, PAPER_EPSILON)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quality": 0.0}, r"quality must lie in \(0, 1\), got 0"),
        ({"quality": 1.0}, r"quality must lie in \(0, 1\), got 1"),
        ({"quality": 1.5}, r"quality must lie in \(0, 1\), got 1.5"),
        ({"quality": float("nan")}, r"quality must lie in \(0, 1\), got nan"),
        ({"quality": "high"}, r"quality must lie in \(0, 1\), got 'high'"),
        (
            {"quality": 0.9, "epsilon": 0.1},
            "quality must be left out where epsilon is given, got quality=0.9 and epsil",
        ),
        ({"quality": 0.9, "rule": "paper"}, "quality must be left out unless rule='soft', got 0.9"),
        ({"baseline": [0], "rule": "paper"}, r"baseline must be left out unless rule='soft', got \[0\]"),
        ({"baseline": [0, 1]}, r"baseline must have shape \(H, S\) = \(3, 1\) or \(S,\), got \(1, 2\)"),
        ({"baseline": [[0], [1]]}, r"baseline must have shape \(H, S\) = \(3, 1\) or \(S,\), got \(2, 1\)"),
        ({"baseline": [[[0]]]}, r"baseline: must be a policy, .* got \[\[\[0\]\]\]"),
        ({"baseline": []}, r"baseline: must be a policy, .* got \[\]"),
        ({"baseline": [2]}, r"baseline \[0, 0\] must be an action from 0 to 1, got 2"),
        ({"baseline": [-1]}, r"baseline: actions\[0, 0\] must be an action index"),
        ({"baseline": [0.5]}, r"baseline: actions\[0, 0\] must be an action index .* got 0.5"),
        ({"baseline": 2}, "baseline: action must be a whole number from 0 to 1, got 2"),
        ({"baseline": "wait"}, "baseline: action must name actions among .* got 'wait'"),
        ({"baseline": True}, "baseline: must be a policy, .* got True"),
        ({"baseline": {"a": 1}}, "baseline: must be a policy, .* got {'a': 1}"),
        ({"baseline": lambda state: 7}, "baseline: .*got 7"),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ReprlError, match=f"^{message}") as found:
        reprl.learn(chain(0.2, 0.8), **FEW, **options)
    assert "\n" not in str(found.value)


def test_a_baseline_keeps_to_what_is_allowed():
    masked = bandit(0.9, 0.5, 0.1, allowed=[[False, True, True]])
    with pytest.raises(ReprlError, match=r"^baseline \[0, 0\] must be an action that is allowed there \(1, 2\), got 0"):
        reprl.learn(masked, baseline=[0], **FEW)
    result = reprl.learn(masked, baseline=[2], **FEW)
    assert result.settings.baseline == ((2,),)
    masked = chain(0.9, 0.5, 0.1, allowed=[[False, True, True]])
    assert reprl.learn(masked, **FEW).baseline_value == pytest.approx(1.5)  # the first that is allowed


# The forms of a baseline


FORMS: dict[str, Callable[[reprl.TabularMDP], Any]] = {
    "policy": lambda mdp: reprl.Policy(np.ones((mdp.horizon, mdp.n_states), dtype=int)),
    "stationary policy": lambda mdp: reprl.Policy(np.ones(mdp.n_states, dtype=int)),
    "table": lambda mdp: np.ones((mdp.horizon, mdp.n_states), dtype=int),
    "row": lambda mdp: [1] * mdp.n_states,
    "floats": lambda mdp: np.ones(mdp.n_states),
    "action": lambda mdp: 1,
    "numpy action": lambda mdp: np.int64(1),
    "name": lambda mdp: mdp.labels.actions[1],
    "function": lambda mdp: lambda state: 1,
    "function of the step": lambda mdp: lambda state, step: 1,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_baseline_means_the_same(form: str) -> None:
    mdp = reprl.make("gridworld-v0", horizon=3, size=2)
    found = resolve_baseline(Settings(baseline=FORMS[form](mdp)), mdp)
    assert found.baseline == ((1,) * mdp.n_states,)
    assert resolve_baseline(found, mdp) == found
    assert np.array_equal(np.asarray(found.baseline_actions((3, 4, 4))), np.ones((3, 4)))


def test_rows_that_differ_are_all_kept():
    table = [[0, 1, 2, 3], [0, 1, 2, 3], [3, 1, 2, 0]]
    mdp = reprl.make("gridworld-v0", horizon=3, size=2)
    found = resolve_baseline(Settings(baseline=table), mdp)
    assert found.baseline == tuple(map(tuple, table))
    assert np.array_equal(np.asarray(found.baseline_actions((3, 4, 4))), np.array(table))


def test_the_state_that_only_this_package_knows_may_be_left_out():
    box = open_environment(Shop, 4, Shop.REWARDS)
    assert resolve_baseline(Settings(baseline=[1] * 7), box).baseline == ((*[1] * 7, 0),)
    assert resolve_baseline(Settings(baseline=[1] * 8), box).baseline == ((1,) * 8,)
    assert resolve_baseline(Settings(baseline=lambda stock: 3 if stock < 3 else 0), box).baseline == (
        (3, 3, 3, 0, 0, 0, 0, 0),
    )


@pytest.mark.parametrize("name", ["gridworld-v0", "river-swim-v0", "queue-admission-v0"])
def test_the_exact_baseline_is_what_evaluation_says(name: str) -> None:
    mdp: Any = reprl.make(name)
    for action in range(mdp.n_actions):
        settings = resolve_baseline(Settings(baseline=action), mdp)
        value = exact_baseline(mdp, settings)
        assert value == pytest.approx(mdp.evaluate(np.full((mdp.horizon, mdp.n_states), action)), abs=1e-12)
    gain = float(mdp.initial @ mdp.solve().values[0]) - exact_baseline(mdp, Settings())
    assert exact_loss(mdp, Settings()) == pytest.approx(0.1 * gain, rel=1e-5)


# Values


def test_a_run_says_what_the_policy_the_best_one_and_the_baseline_earn():
    mdp = chain(0.2, 0.8)
    result: Any = reprl.learn(mdp, **FEW)
    assert result.value == result.best_value == pytest.approx(2.4)
    assert result.baseline_value == pytest.approx(0.6)
    assert result.epsilon == pytest.approx(0.1 * (result.best_value - result.baseline_value))
    assert result.guarantee.share == 0.9
    better = reprl.learn(mdp, baseline=[1], **FEW)
    assert better.baseline_value == pytest.approx(2.4)


def test_values_are_in_the_rewards_own_units():
    world: Any = reprl.make("gym:CliffWalking-v1", 20)
    result: Any = reprl.learn(world, quality=0.5, access="generative", shared_seed=1, data_seed=1)
    assert result.best_value == pytest.approx(-13.0, abs=1e-6)
    assert result.baseline_value == pytest.approx(-20.0, abs=1e-6)
    assert result.value >= -13.0 - 0.5 * 7.0
    exact = exact_worth(result.recipe, world, result.policy)
    assert [exact.best, exact.baseline] == pytest.approx([-13.0, -20.0])
    assert exact.value == pytest.approx(result.value, abs=1e-6)


def test_the_paper_s_rule_says_no_values():
    result = reprl.learn(chain(0.2, 0.8), rule="paper", constants="scaled", epsilon=0.5, **FEW)
    assert [result.value, result.best_value, result.baseline_value, result.worth] == [None] * 4
    assert "earns" not in repr(result)


class Found:
    """What a run found, by hand."""

    def __init__(self, value: float, best: float, baseline: float, allowed: float) -> None:
        self.value, self.best, self.baseline, self.allowed = value, best, baseline, allowed


def worth(found: Found, settings: Settings, spread: float | None, actions: int = 1) -> Worth:
    place = reprl.learn(bandit(0.2, 0.8), max_samples=64, **FEW).environment
    result = find_worth(found, settings, place, reprl.Policy([[actions]]), spread)
    assert result is not None
    return result


Q, E = Settings(), Settings(epsilon=0.3)


@pytest.mark.parametrize(
    ("found", "settings", "spread", "action", "short", "ask"),
    [
        (Found(0.7, 0.8, 0.2, 0.06), Q, 0.6, 1, None, ""),
        (Found(0.7, 0.8, 0.2, 0.3), E, 0.6, 1, None, ""),
        (Found(0.5, 0.5, 0.5, 0.0001), Q, 0.0, 1, "all policies earn the same", "there is nothing to choose"),
        (Found(0.6, 0.8, 0.6, 0.3), E, 0.2, 1, "every policy would do", "ask for quality=0.9"),
        (Found(0.8, 0.80002, 0.8, 0.0001), Q, 0.00002, 1, "every policy would do", "ask for epsilon=2e-06"),
        (Found(0.6, 0.8, 0.6, 0.3), E, 0.8, 0, "it is the baseline", "ask for quality=0.9"),
        (Found(0.6, 0.8, 0.6, 0.3), E, 0.8, 1, "no more than the baseline", "ask for quality=0.9"),
        (Found(0.8, 0.80005, 0.8, 0.0001), Q, 0.8, 0, "it is the baseline", "ask for epsilon=5e-06"),
        (Found(0.8, 0.8005, 0.8, 0.0001), E, 0.8, 0, "it is the baseline", "ask for epsilon=5e-05"),
        (Found(0.8004, 0.8005, 0.8, 0.0001), Q, 0.8, 1, "hardly any gain", "ask for epsilon=5e-05"),
        (Found(0.8, 0.8, 0.8, 0.0001), Q, 0.8, 0, "the baseline earns as much as any policy", "nothing to gain"),
        (Found(0.7, 0.8, 0.9, 0.0001), Q, 0.8, 0, "the baseline earns more than any policy", "nothing to gain"),
    ],
)
def test_a_goal_that_is_met_too_easily_is_said_and_another_named(
    found: Found, settings: Settings, spread: float, action: int, short: str | None, ask: str
) -> None:
    note = worth(found, settings, spread, action).note
    if short is None:
        assert note is None
        return
    assert note is not None
    assert note.short == short
    assert ask in note.text
    assert "\n" not in note.text


# Screens


@pytest.fixture(scope="module")
def run() -> Any:
    """A run at the default quality."""
    return reprl.learn(chain(0.2, 0.8), **FEW)


COMMAND = ["river-swim-v0", "--access", "generative", "--shared-seed", "7", "--quality", "0.5"]


def test_commands_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", *COMMAND, "--data-seed", "1", "--out", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert "of the gain" in shown
    assert "always ←" in shown
    assert main(["replicate", str(tmp_path / "run"), "--data-seed", "2"]) in (0, 1)
    assert "of the gain" in capsys.readouterr().out
    assert main(["twice", *COMMAND, "--data-seed", "1", "--data-seed", "2"]) in (0, 1)
    shown = capsys.readouterr().out
    assert re.search(r"earns +exactly [0-9.]+; the best policy", shown)
    assert main(["learn", *COMMAND, "--data-seed", "1", "--baseline", "→", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["baseline"] == "always →"
    assert document["guarantee"]["share"] == 0.5
    assert document["value"] <= document["best_value"]
    gain = document["best_value"] - document["baseline_value"]
    assert document["epsilon"] == pytest.approx(0.5 * max(gain, LEAST_GAIN * 20))
    assert document["recipe"]["settings"]["baseline"] == [[1] * 6]


def test_a_baseline_is_read_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mdp = reprl.make("river-swim-v0")
    path = reprl.Policy(np.ones((mdp.horizon, mdp.n_states), dtype=int)).save(tmp_path / "policy.json")
    assert main(["learn", *COMMAND, "--data-seed", "1", "--baseline", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["recipe"]["settings"]["baseline"] == [[1] * 6]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--epsilon", "0.2"], "quality must be left out where epsilon is given"),
        (["--quality", "2"], "quality must lie in (0, 1), got 2"),
        (["--rule", "paper"], "quality must be left out unless rule='soft', got 0.5"),
        (["--baseline", "up"], "baseline: action must name actions among"),
        (["--baseline", "7"], "baseline: action must be a whole number from 0 to 1, got 7"),
        (["--baseline", "missing.json"], "missing.json"),
    ],
)
@pytest.mark.parametrize("command", ["learn", "twice", "audit"])
def test_commands_refuse_a_bad_goal(
    command: str, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    seeds = {"--shared-seed": "--seed"} if command == "audit" else {}
    assert main([command, *(seeds.get(word, word) for word in COMMAND), *more]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.err.count("\n") == 1


# Logs


def log_of(reward: Callable[[int], float], shares: tuple[float, float], episodes: int = 400) -> dict[str, Any]:
    """Episodes of one step in one state."""
    rng = np.random.default_rng(1)
    action = (rng.random(episodes) < shares[1]).astype(int)
    paid = np.array([float(rng.random() < reward(a)) for a in action])
    return {
        "episode": np.arange(episodes),
        "state": np.array(["home"] * episodes),
        "action": np.array(["old", "new"])[action],
        "reward": paid,
    }


def test_a_log_is_measured_from_current_practice():
    result = reprl.learn_log(log_of(lambda a: (0.2, 0.9)[a], (0.5, 0.5)), horizon=1, shared_seed=1)
    assert result.worth is not None
    assert result.worth.name == "current practice"
    assert result.baseline_value == pytest.approx(0.55, abs=0.07)
    assert result.best_value == pytest.approx(0.9, abs=0.07)
    named = reprl.learn_log(log_of(lambda a: (0.2, 0.9)[a], (0.5, 0.5)), horizon=1, shared_seed=1, baseline="old")
    assert named.worth is not None
    assert named.worth.name == "always old"
    assert named.baseline_value == pytest.approx(0.2, abs=0.07)
    again = named.recipe.learn_log(log_of(lambda a: (0.2, 0.9)[a], (0.5, 0.5)))
    assert again.settings == named.settings


def test_practice_that_is_better_than_any_supported_policy_is_said():
    """The better action is too rare to be supported, yet practice has it now and then."""
    result: Any = reprl.learn_log(log_of(lambda a: (0.1, 1.0)[a], (0.94, 0.06), 2000), horizon=1, shared_seed=1)
    assert result.worth is not None
    assert result.baseline_value > result.best_value
    assert result.worth.note is not None
    assert result.worth.note.short == "the baseline earns more than any policy"
    assert "current practice earns more than any policy that the log supports" in result.worth.note.text
    assert result.worth.note.text in card(result)


# Documents


def test_a_recipe_keeps_quality_and_baseline(tmp_path: Path) -> None:
    recipe = reprl.learn(chain(0.2, 0.8), quality=0.7, baseline=[[0], [1], [0]], **FEW).recipe
    document = recipe.to_dict()["settings"]
    assert (document["epsilon"], document["quality"], document["baseline"]) == (None, 0.7, [[0], [1], [0]])
    again = Recipe.from_json(recipe.to_json())
    assert (again, again.digest) == (recipe, recipe.digest)
    other = replace(recipe, settings=replace(recipe.settings, baseline=None))
    assert other.digest != recipe.digest
    plain = Recipe.plan(recipe.environment, Settings(epsilon=0.3), 3).to_dict()["settings"]
    assert plain["epsilon"] == 0.3
    assert (plain["quality"], plain["baseline"]) == (None, None)


def test_receipts_keep_their_bytes(run: Any) -> None:
    text = run.receipt.to_json()
    assert Receipt.from_json(text).to_json() == text

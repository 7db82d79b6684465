"""Nothing is promised that is not backed: what hand-set sizes, ignored states and vacuous accuracies are said to be."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.canonical.gaps import value_spread
from reprl.cli import app
from reprl.cli.app import main
from reprl.learning.settings import Settings
from reprl.mdp.dynamics import true_dynamics
from reprl.mdp.tiers import Tiers
from reprl.paper.rep_rl_bandit import Accuracy, tiered_induction
from reprl.paper.rep_var_bandit import multi_best_arm

GRID = reprl.make("gridworld-v0", 2, size=2)


@pytest.mark.parametrize(("access", "size"), [("generative", "samples=10000"), ("episodic", "scale=0.01")])
def test_a_scaled_size_promises_nothing_anywhere(
    access: str, size: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["learn", "gridworld-v0", "-H", "2", "--env-option", "size=2", "--access", access, "--rule", "paper"]
    words += [
        "--constants",
        "scaled",
        "-o",
        size,
        "--epsilon",
        "0.5",
        "--shared-seed",
        "1",
        "--data-seed",
        "1",
        "--out",
        str(tmp_path / "run"),
    ]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "nothing is promised: the paper's sizes with every slack" in shown
    assert "disagreement ≤" not in shown
    assert main([*words, "--json", "--force"]) == 0
    document = json.loads(capsys.readouterr().out)
    nothing = {"rho": None, "delta": None, "epsilon": None, "status": "none"}
    for guarantee in (document["guarantee"], document["receipt"]["guarantee"]):
        assert {name: guarantee[name] for name in nothing} == nothing
    page = reprl.write_report(tmp_path / "run", tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Nothing is promised: a second team may learn another policy" in page
    assert "exactly the same policy" not in page


def test_steps_without_a_decided_state_bound_the_loss_by_the_horizon_alone() -> None:
    counts = reprl.GenerativeModel(GRID, 1).sample(100)
    for level, loss, said in (
        ([[2] * 4] * 2, 2.0, "all states of 2 steps are ignored, so no more is known than of any policy"),
        ([[1] * 4, [2] * 4], 2.0, "all states of 1 steps are ignored"),
    ):
        tiers = Tiers.from_levels(np.array(level), 2)
        found = tiered_induction(
            reprl.SharedKey(1), counts, tiers, accuracy=Accuracy.paper(0.3, 2, 2), delta=0.1
        ).guarantee
        assert found.epsilon == loss
        assert found.source.startswith(said)
    some = Tiers.from_levels(np.array([[1, 1, 1, 2]] * 2), 2)
    found = tiered_induction(reprl.SharedKey(1), counts, some, accuracy=Accuracy.paper(0.3, 2, 2), delta=0.1).guarantee
    assert found.source == "docs/proofs/decision.md §3"


def test_means_that_contradict_their_scale_are_refused() -> None:
    ask: dict[str, Any] = {"epsilon": 0.5, "delta": 0.1}
    with pytest.raises(reprl.ReprlError, match=r"means must lie within scale=1 of each other, .* got -7 to 50$"):
        multi_best_arm(reprl.SharedKey(1), [[0, 50], [3, -7]], [100, 100], scale=1, **ask)
    found = multi_best_arm(reprl.SharedKey(1), [[0, 50], [3, -7]], [100, 100], scale=57, **ask)
    assert found.guarantee.status == "proven"
    multi_best_arm(reprl.SharedKey(1), [[5.0, 6.0]], [100], scale=1.0, **ask)  # the interval may lie anywhere


@pytest.mark.parametrize("rule", [[], ["--rule", "paper", "--constants", "scaled"]], ids=["canonical", "paper"])
def test_an_accuracy_that_every_policy_meets_is_said_to_be_one(
    rule: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    low, high = reprl.make("inventory-v0").labels.reward_map
    words = ["learn", "inventory-v0", "-H", "1", "--access", "generative", *rule, "--shared-seed", "1"]
    words += ["--epsilon", f"{0.99 * (high - low)}"]
    assert main([*words, "--json"]) in (0, 1)
    document = json.loads(capsys.readouterr().out)
    assert document["every_policy_is_within_epsilon"] is (document["spread"] <= document["epsilon"])
    assert tuple(document["reward_range"]) == (low, high)
    assert document["epsilon"] == pytest.approx(0.99 * (high - low))
    assert main(words) in (0, 1)
    shown = capsys.readouterr().out
    assert f"ε = {0.99 * (high - low):.4g}; returns lie between" in shown
    assert f"(each reward from {low:g} to {high:g})" in shown
    if document["every_policy_is_within_epsilon"]:
        assert "every policy would do" in shown


def test_examples_on_help_pages_ask_for_something() -> None:
    """Every world in a help page has an ε that not every policy meets, and the actions that are named."""
    seen = 0
    for command in app.app.registered_commands:
        assert command.callback is not None
        for line in re.findall(r"^ *(reprl \w+ [\w-]+-v0 .*)$", inspect.getdoc(command.callback) or "", re.MULTILINE):
            words = shlex.split(line)
            options = dict(zip(words[3::2], words[4::2], strict=False))
            horizon = options.get("--horizon") or options.get("-H")
            mdp = reprl.make(words[2], None if horizon is None else int(horizon))
            assert isinstance(mdp, reprl.TabularMDP)
            assert value_spread(true_dynamics(mdp)) > 0.3, line
            if "--preference" in options:
                names = tuple(options["--preference"].split(","))
                Settings(preference=names).resolve_actions(mdp.labels.actions, mdp.n_actions)
            seen += 1
    assert seen >= 8

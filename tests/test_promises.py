"""Nothing is promised that is not backed: what hand-set sizes, ignored states and vacuous accuracies are said to be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.cli.app import main
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
    for guarantee in (document["guarantee"], document["receipt"]["guarantee"]):
        for promise in (guarantee["quality"], guarantee["same"]):
            assert (promise["risk"], promise["status"]) == (None, "none")
    page = reprl.write_report(tmp_path / "run", tmp_path / "page.html").read_text(encoding="utf-8")
    for label in ("quality", "same policy"):
        assert f"<dt>{label}</dt><dd>nothing is promised" in page
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

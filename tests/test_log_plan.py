"""plan --log: how many more episodes of a practice a decision needs, and which cells wait for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.cli.app import main
from tests.test_logs_certified import make_log, shop

ASKED: dict[str, Any] = {"horizon": 2, "quality": 0.7, "shared_seed": 1}
RARE = np.array([[0.5, 0.5], [0.75, 0.25]])


def test_a_short_log_waits_and_the_forecast_is_enough() -> None:
    """What is said to be enough is enough for a log of that size, which is drawn afresh."""
    mdp = shop(0.7)
    found = reprl.plan_log(make_log(mdp, RARE, 300, 1), **ASKED)
    assert not found.decided
    assert found.factor is not None
    assert found.factor > 1
    assert found.more == (found.factor - 1) * 300
    assert "more episodes of this practice" in str(found)
    assert all(each.rows > 0 for each in found.waiting)
    shares = [each.differ for each in found.waiting]
    assert shares == sorted(shares, reverse=True)
    large = make_log(mdp, RARE, 4 * 300 * found.factor, 2)  # a forecast from 300 episodes: allow a factor of 4
    assert reprl.learn_log(large, **ASKED).guarantee.status == "rehearsed"
    assert reprl.plan_log(large, **ASKED).decided


def test_an_enough_log_needs_nothing_and_the_answer_is_that_of_the_run() -> None:
    log = make_log(shop(), RARE, 20_000, 1)
    found = reprl.plan_log(log, **ASKED)
    assert found.decided is (reprl.learn_log(log, **ASKED).guarantee.status == "rehearsed")
    assert found.more == 0
    assert found.waiting == ()


def test_the_command(tmp_path: Path, capsys: Any) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.DataFrame(make_log(shop(0.7), RARE, 300, 1)).to_csv(tmp_path / "log.csv", index=False)
    words = ["plan", "--log", str(tmp_path / "log.csv"), "--horizon", "2", "--quality", "0.7", "--shared-seed", "1"]
    assert main([*words, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["more"] == (document["factor"] - 1) * 300
    assert main(words) == 1
    assert "more episodes of this practice" in capsys.readouterr().out
    lost = pandas.DataFrame(make_log(shop(0.7), RARE, 300, 1)).drop(columns="next_state")[1:]
    lost = lost[(lost.episode % 9 > 0) | (lost.episode.diff() != 0)]
    lost.to_csv(tmp_path / "lost.csv", index=False)
    cut = ["plan", "--log", str(tmp_path / "lost.csv"), *words[3:]]
    assert main(cut) == 2
    assert "must say how its episodes end" in capsys.readouterr().err
    assert main([*cut, "--early-ends", "censored"]) == 1
    assert main(["plan", "gridworld-v0", "--early-ends", "censored"]) == 2
    assert main(["plan", "gridworld-v0", "--log", str(tmp_path / "log.csv")]) == 2
    assert "ENV must be left out with --log" in capsys.readouterr().err

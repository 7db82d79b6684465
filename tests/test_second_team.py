"""The second team of a log: the same policy from its own log, values computed again, and the two-sample test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import reprl
from reprl import ReprlError
from reprl.artifacts.receipt import Receipt
from reprl.cli.app import main
from tests.shop_log import COIN, HORIZON, make_log, shop

pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")


def answer(capsys: Any, *words: object) -> tuple[int, dict[str, Any]]:
    code = main([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def place(tmp_path_factory: Any) -> Path:
    """Logs of two teams, one of another world, and the run of the first team."""
    folder: Path = tmp_path_factory.mktemp("teams")
    for name, world, seed in (("ours", shop(), 1), ("theirs", shop(), 2), ("other", shop(0.5), 3)):
        pandas.DataFrame(make_log(world, COIN, 20_000, seed)).to_csv(folder / f"{name}.csv", index=False)
    learn = ["learn", "--log", folder / "ours.csv", "--horizon", HORIZON, "--quality", 0.7, "--shared-seed", 1]
    assert main([*map(str, learn), "--out", str(folder / "run")]) == 0
    return folder


def test_a_run_is_repeated_on_another_log(place: Path, tmp_path: Path, capsys: Any) -> None:
    capsys.readouterr()
    code, found = answer(
        capsys, "replicate", place / "run", "--log", place / "theirs.csv", "--out", tmp_path / "second"
    )
    assert code == 0
    assert found["same"] is True
    assert [found["guarantee"][name]["status"] for name in ("quality", "same")] == ["rehearsed"] * 2
    code, found = answer(capsys, "verify", place / "run", tmp_path / "second")
    assert (code, found["same"]) == (0, True)


def test_subgroups_are_no_part_of_a_recipe(place: Path, tmp_path: Path, capsys: Any) -> None:
    """Another team's log need not have the column."""
    rows = pandas.read_csv(place / "ours.csv").assign(sex=lambda log: log.episode % 2)
    rows.to_csv(tmp_path / "groups.csv", index=False)
    learn = ["learn", "--log", tmp_path / "groups.csv", "--horizon", HORIZON, "--quality", 0.7, "--shared-seed", 1]
    learn += ["--out", tmp_path / "run"]
    assert main([*map(str, learn), "--column", "group=sex"]) == 0
    first = reprl.load_run(tmp_path / "run")
    assert first.receipt.beside is not None
    assert [each.name for each in first.receipt.beside.groups] == ["0", "1"]
    assert first.recipe.digest == reprl.load_run(place / "run").recipe.digest
    assert main([*map(str, learn), "--force"]) == 0
    assert main(["replicate", str(tmp_path / "run"), "--log", str(place / "theirs.csv")]) == 0
    capsys.readouterr()


def test_a_wrong_seal_does_not_tell_the_right_one(place: Path, tmp_path: Path) -> None:
    stored = json.loads((place / "run" / "receipt.json").read_text())
    stored["samples"] += 1
    (tmp_path / "receipt.json").write_text(json.dumps(stored))
    with pytest.raises(ReprlError, match="receipt digest must be that of its content, got another") as caught:
        Receipt.load(tmp_path / "receipt.json")
    right = replace(Receipt.load(place / "run" / "receipt.json"), samples=stored["samples"]).digest
    assert right[:12] not in str(caught.value)


def test_value_and_gain_are_computed_again_from_a_log(place: Path, capsys: Any) -> None:
    run, mdp = place / "run", shop()
    code, found = answer(capsys, "verify", run, "--log", place / "ours.csv")
    assert code == 0
    assert found["log"][0]["own"] is True
    assert (*found["log"][0]["value"][1:], *found["log"][0]["gain"]) == tuple(found["log"][0]["stated"])
    code, found = answer(capsys, "verify", run, "--log", place / "theirs.csv")
    assert code == 0
    told = found["log"][0]
    assert told["own"] is False
    policy = reprl.load_run(run).policy.table[:, :2]
    assert told["value"][1] <= mdp.evaluate(reprl.Policy(policy)) <= told["value"][2]
    code, found = answer(capsys, "verify", run, "--log", place / "other.csv")
    assert code == 1
    assert found["log"][0]["contradicted"] is True
    assert main(["verify", str(run)]) == 2
    assert "--log FILE" in capsys.readouterr().err


def test_two_logs_are_compared_with_names_and_a_verdict(place: Path, capsys: Any) -> None:
    both = (place / "ours.csv", place / "theirs.csv")
    code, found = answer(capsys, "verify", "--data", *both, "--horizon", HORIZON)
    assert (code, found["verdict"]) == (0, "not contradicted")
    code, found = answer(capsys, "verify", "--data", place / "ours.csv", place / "other.csv", "--recipe", place / "run")
    assert (code, found["verdict"]) == (1, "different")
    assert "state 0" in found["words"][0] or "state 1" in found["words"][0]
    assert main(["verify", "--data", str(place / "ours.csv"), str(place / "run")]) == 2
    assert main(["verify", "--data", *map(str, both)]) == 2
    capsys.readouterr()

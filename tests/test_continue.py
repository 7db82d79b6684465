"""A run that was stopped, or was undecided, goes on with its samples and ends as if it had never stopped."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import reprl
from reprl.artifacts.recipe import Recipe
from reprl.cli.app import main
from reprl.errors import InputError
from reprl.sources import black_box
from reprl.storage.checkpoints import recall_work
from tests.shop import Shop

HOW: dict[str, Any] = {"horizon": 5, "reward_range": Shop.REWARDS, "quality": 0.999, "shared_seed": 1}
SHOP = [f"{Path(__file__).parent / 'shop.py'}:Shop", "--reward-range", "-4.8", "9"]
NEW = ["learn", *SHOP, "--horizon", "5", "--quality", "0.999", "--shared-seed", "1", "--workers", "1"]


def bytes_of(result: reprl.LearnResult) -> tuple[str, bytes]:
    return result.receipt.digest, result.counts.to_bytes()


SMALL: dict[str, Any] = {"shared_seed": 1, "horizon": 2}
CASES: dict[str, tuple[Any, dict[str, Any], tuple[int, int]]] = {
    "black box": (Shop, HOW, (2000, 6000)),
    "table": ("gridworld-v0", SMALL | {"quality": 0.999}, (2000, 6000)),
    "parallel": ("gridworld-v0", SMALL | {"quality": 0.999, "access": "generative"}, (2000, 6000)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_call_with_more_samples_goes_on(name: str, tmp_path: Path) -> None:
    env, how, limits = CASES[name]
    short = reprl.learn(env, data_seed=3, max_samples=limits[0], checkpoint=tmp_path / "run", **how)
    assert short.guarantee.status == "none"
    long = reprl.learn(env, max_samples=limits[1], checkpoint=tmp_path / "run", **how)
    whole = reprl.learn(env, data_seed=3, max_samples=limits[1], **how)
    assert bytes_of(long) == bytes_of(whole)
    assert bytes_of(short) != bytes_of(whole), "control"


def test_no_batch_is_played_twice_but_for_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[int] = []
    play = black_box._play_box

    def noting(model: Any, actions: Any, episodes: int, *rest: Any) -> Any:
        played.append(episodes)
        return play(model, actions, episodes, *rest)

    monkeypatch.setattr(black_box, "_play_box", noting)
    first = reprl.learn(Shop, data_seed=3, max_samples=2000, checkpoint=tmp_path, **HOW)
    before = sum(played)
    second = reprl.learn(Shop, max_samples=4000, checkpoint=tmp_path, **HOW)
    assert before == first.episodes
    assert sum(played) - second.episodes <= 2 * max(played), "the batches that the first limit cut"
    with pytest.raises(InputError, match=r"must hold tasks of this work, with settings"):
        reprl.learn(Shop, max_samples=4000, checkpoint=tmp_path, **(HOW | {"quality": 0.99}))


def test_the_command_goes_on_and_overwrites_nothing_silently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = str(tmp_path / "run"), str(tmp_path / "whole")
    assert main([*NEW, "--data-seed", "2", "--max-samples", "1500", "--out", out]) == 1
    held = (tmp_path / "run" / "policy.json").read_bytes()
    said = "".join(capsys.readouterr().out.split())
    assert "".join(["tocontinuereprllearn", *SHOP, ".0--continue", out, "--max-samples6000"]) in said
    assert main([*NEW, "--max-samples", "4000", "--out", out]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"reprl: {out} must not hold an undecided run, got one of 1,500")
    assert f"reprl learn --continue {out}" in said
    assert main(["learn", *SHOP, "--continue", out, "--max-samples", "1000"]) == 2
    assert "--max-samples must be more than the 1,500" in capsys.readouterr().err
    assert main(["learn", *SHOP, "--continue", out, "--shared-seed", "3"]) == 2
    assert "--shared-seed must be left out with --continue, got '3'" in capsys.readouterr().err.replace(
        "got 3", "got '3'"
    )
    assert (tmp_path / "run" / "policy.json").read_bytes() == held
    assert main(["learn", *SHOP, "--continue", out, "--max-samples", "4000", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["data_seed"] == 2
    assert main([*NEW, "--data-seed", "2", "--max-samples", "4000", "--out", other]) == 1
    for name in ("policy.json", "recipe.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    digests = [reprl.load_run(folder).receipt.digest for folder in (out, other)]
    assert digests[0] == digests[1]


def test_a_run_that_ended_in_order_has_nothing_to_go_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["learn", "river-swim-v0", "--horizon", "4", "--shared-seed", "1", "--out", str(out)]) == 0
    assert not (out / "tasks").exists()
    held = (out / "policy.json").read_bytes()
    assert main(["learn", "--continue", str(out), "--json"]) == 0
    assert "finished before" in capsys.readouterr().out
    assert (out / "policy.json").read_bytes() == held
    assert main(["learn", "--continue", str(tmp_path / "nowhere")]) == 2
    assert "--continue must name a folder with an unfinished run" in capsys.readouterr().err


@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM", "an exception"])
def test_ctrl_c_says_how_to_go_on(
    by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything was written but tasks; the recipe is read off them."""
    out, count = tmp_path / "run", 0
    number = getattr(signal, by, signal.SIGINT)
    play = black_box._play_box

    def interrupted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == 3 and by == "an exception":
            raise KeyboardInterrupt
        if count == 3:
            os.kill(os.getpid(), number)
        return play(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(black_box, "_play_box", interrupted)
        assert main([*NEW, "--data-seed", "2", "--max-samples", "1500", "--out", str(out)]) == 128 + number
    said = capsys.readouterr().err.strip()
    begun = "ended by a signal" if by == "SIGTERM" else "interrupted"
    assert said == f"reprl: {begun}; finished work is kept; continue with: reprl learn --continue {out}"
    work = recall_work(out / "tasks")
    assert work is not None
    assert not (out / "recipe.json").exists()
    assert main(["learn", *SHOP, "--continue", str(out), "--max-samples", "1500"]) == 1
    stored = reprl.load_run(out)
    assert Recipe.begun(work).digest == stored.recipe.digest
    whole = reprl.learn(Shop, data_seed=2, max_samples=1500, **HOW)
    assert stored.receipt.digest == whole.receipt.digest

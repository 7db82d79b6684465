"""Habits of the ecosystem, and what must neither hang nor be lost: keywords, tables, pages, clusters, full disks."""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import reprl
from reprl.cli.app import main
from reprl.cli.options import whole
from reprl.errors import check_count
from reprl.execution import tasks
from reprl.mdp.labels import Labels
from reprl.report.maps import Maps
from reprl.report.numbers import chosen, percent
from reprl.report.sketch import Sketch
from reprl.sources.environment import describe
from reprl.storage import checkpoints

RIVER = reprl.make("river-swim-v0", horizon=4, n_states=3)


class Coin(gymnasium.Env[Any, Any]):
    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> Any:
        return 1, float(action), True, {}


class OwnBug(Coin):
    def step(self, action: Any) -> Any:
        values: Any = (1, 2, 3, 4)
        one, two, three, four, five = values
        return one, two, three, four, five


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("seed", "'shared_seed' or 'data_seed'"),
        ("n_samples", "'max_samples'"),
        ("total_timesteps", "'max_samples'"),
        ("epsilonn", "'epsilon'"),
        ("gamma", "'discount'"),
        ("n_jobs", "'workers'"),
        ("horizn", "'horizon'"),
        ("shared_sead", "'shared_seed'"),
        ("rewardrange", "'reward_range'"),
    ],
)
def test_a_misspelt_keyword_is_answered_from_all_of_them(given: str, meant: str) -> None:
    with pytest.raises(reprl.ReprlError) as caught:
        reprl.learn(RIVER, **{given: 1})  # type: ignore[arg-type]
    assert f"got {given!r} (did you mean {meant}?)" in str(caught.value)


def test_sizes_may_be_written_as_powers_of_ten() -> None:
    assert check_count("n", 1e6, 1) == 10**6
    assert check_count("n", np.float64(2e3), 1) == 2000
    for bad in (1.5, float("inf"), float("nan"), "1e6", True):
        with pytest.raises(reprl.ReprlError, match="n must be a whole number of at least 1, got"):
            check_count("n", bad, 1)
    assert [whole(text) for text in ("1e6", "1.5e3", "2E2", "7")] == [10**6, 1500, 200, 7]
    for text in ("1.55e1", "1e-2", "1e400", "x", "1.0"):
        with pytest.raises(Exception, match="must be a whole number"):
            whole(text)
    one, two = (reprl.learn(RIVER, data_seed=1, max_samples=n) for n in (1e4, 10_000))
    assert one.receipt.digest == two.receipt.digest
    assert reprl.audit(RIVER, pairs=1, seed=1, max_samples=1e3).options["max_samples"] == 1000


def test_what_environments_get_wrong_is_named() -> None:
    def learn(env: Any) -> None:
        reprl.learn(env, horizon=2, reward_range=(0, 1), max_samples=100)

    with pytest.raises(reprl.ReprlError, match=r"step must return five values .* got four, as before Gymnasium 0\.26"):
        learn(Coin())
    with pytest.raises(ValueError, match="unpack") as caught:
        learn(OwnBug())
    assert not isinstance(caught.value, reprl.ReprlError), "the environment's own bug stays its own"
    with pytest.raises(reprl.ReprlError, match=r"^the factory <function .* must return a gymnasium\.Env, got None"):
        learn(lambda: None)
    law, paid = np.full((2, 2, 2), 0.5), np.ones((2, 2))
    for labels in (Labels(states=("a",)), Labels(states=("a", "b", "c")), Labels(actions=("x",))):
        with pytest.raises(reprl.ReprlError, match=r"^labels\.(states|actions) must be 2 names or none, got [13]"):
            reprl.TabularMDP(law, paid, horizon=2, labels=labels)
    assert reprl.TabularMDP(law, paid, horizon=2, labels=Labels(states=("a", "b"))).labels.state(1) == "b"


def test_policies_act_as_others_do() -> None:
    same, differs = reprl.Policy([[0, 1, 1]] * 4), reprl.Policy([[0, 1, 1], [1, 1, 1]])
    stationary = reprl.Policy([0, 1, 1])
    for policy in (same, stationary):
        assert policy.act(1) == 1
        assert policy.act(np.array([0, 2, 0])).tolist() == [0, 1, 0]
        assert policy.predict(np.array([0, 2]))[0].tolist() == [0, 1]
        assert policy.predict(2, deterministic=True) == (1, None)
    with pytest.raises(reprl.ReprlError, match="step must be"):
        differs.act(1)
    assert np.asarray(same).shape == (4, 3)
    assert np.asarray(stationary).tolist() == [0, 1, 1]
    result = reprl.learn(RIVER, data_seed=1, max_samples=1e4)
    assert isinstance(result.value, float)


def test_states_that_stand_out_are_drawn_first() -> None:
    n = 60
    idle, framed = np.ones((1, n), bool), np.zeros((1, n), bool)
    idle[0, 40:50] = False
    framed[0, 55] = True
    sketch = Sketch(reprl.Policy(np.zeros(n, int)), None, idle, framed)
    states = sketch.states(12)
    assert {*range(40, 50), 55} < {*states}
    assert len(states) == 12
    assert states == sorted(states)


def test_the_slider_opens_at_the_worst_step_and_small_shares_have_digits() -> None:
    world = describe(reprl.make("gridworld-v0", horizon=20))
    weight = np.zeros((20, world.n_states))
    weight[13, 2] = 1.0
    assert Maps(world, weight, worst=True).opens == 13
    assert Maps(world, weight).opens == 0
    assert percent(0.004) == "0.4 %"
    assert chosen([("a", 0.9961), ("b", 0.0039)]) == "a 100%, b 0.39%"


def test_a_page_draws_a_policy_without_steps_once(tmp_path: Path) -> None:
    for world in (describe(reprl.make("gridworld-v0", horizon=20)), describe(RIVER)):
        actions = np.zeros((world.horizon, world.n_states), int)
        seldom = np.zeros(actions.shape, bool)
        framed = seldom.copy()
        seldom[0, 1], framed[2, 1] = True, True
        maps = Maps(world, np.ones(actions.shape))
        _, drawn, _ = maps.policy(actions, seldom, framed).data
        assert len(drawn["rasters"]) == 1
        (raster,) = drawn["rasters"]
        assert raster["every"]
        assert "every step" in (drawn["side"] + drawn["heads"] if drawn["matrix"] else [raster["label"]])
        marks = raster["arrows"] or raster["letters"]
        assert [tuple(mark[1:]) for mark in marks[:3]] == [(False, False), (False, True), (False, False)]
        assert not drawn.get("sliding")
        actions[1, 0] = 1
        _, drawn, _ = maps.policy(actions, seldom, framed).data
        assert drawn["matrix"] or len(drawn["rasters"]) == 20
        assert not drawn["rasters"][0]["every"]
    run = tmp_path / "run"
    reprl.learn(RIVER, data_seed=1, max_samples=1e4).save(run)
    assert reprl.load_run(run).policy.ignores_step, "or this shows nothing"
    reprl.write_report(reprl.load_run(run), tmp_path / "page.html")
    assert ">every step</span>" in (tmp_path / "page.html").read_text()


def test_a_report_takes_the_folder_of_an_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "evidence"
    words = ["river-swim-v0", "--horizon", "4", "--learner", "greedy", "-o", "samples=200", "-n", "3"]
    assert main(["audit", *words, "--out", str(folder)]) in (0, 1)
    assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    assert "greedy" in (tmp_path / "page.html").read_text()
    (folder / "audit.json").unlink()
    assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 2
    assert "got unfinished work" in capsys.readouterr().err


def test_an_audit_on_a_full_disk_ends_with_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The disk fills up after the folder was opened: no pair is kept, and the answer is printed all the same."""
    from reprl.storage import files

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "fill", full)
    monkeypatch.setattr(checkpoints, "_told", [])
    words = ["river-swim-v0", "--horizon", "4", "--learner", "greedy", "-o", "samples=200", "-n", "3", "--seed", "1"]
    assert main(["audit", *words, "--out", str(tmp_path / "evidence")]) == 2
    out, err = capsys.readouterr()
    assert "of 3 pairs" in out
    assert err.count("finished work is not kept") == 1
    assert "No space left on device" in err


def test_a_scheduler_that_does_not_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(tasks, "_ANSWERING", 1)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(5)
        addresses = [f"tcp://127.0.0.1:{mute.getsockname()[1]}", "tcp://127.0.0.1:1", "ftp://127.0.0.1:1", "", "x"]
        for address in addresses:
            began = time.monotonic()
            with (
                pytest.raises(reprl.ReprlError, match="dask must be the address of a running scheduler, got"),
                tasks.cluster(address),
            ):
                pass
            assert time.monotonic() - began < 60, "it must not hang"


NO_WORKERS = """
import sys
from distributed import LocalCluster
from reprl.execution import tasks
tasks._PATIENT, tasks._JOINING = 1, 2
if __name__ == "__main__":
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as empty:
        try:
            with tasks.cluster(empty.scheduler_address):
                pass
        except tasks.WorkerError as error:
            print(error)
"""


@pytest.mark.slow
def test_a_cluster_without_workers_is_said_to_have_none(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    file = tmp_path / "empty.py"
    file.write_text(NO_WORKERS)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=240)
    assert done.stdout.startswith("dask must have a worker within 2 s, got none at")
    assert "no workers yet" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_gymnasium_id_without_its_prefix_is_recognized() -> None:
    with pytest.raises(reprl.ReprlError, match=r"got 'FrozenLake-v1' \(did you mean 'gym:FrozenLake-v1'\?\)"):
        reprl.learn("FrozenLake-v1", horizon=12)
    with pytest.raises(reprl.ReprlError, match=r"did you mean 'gridworld-v0'\?"):
        reprl.learn("gridwrld-v0", horizon=12)

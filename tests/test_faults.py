"""Nothing is lost: faults of environments and processes, outputs opened first, and a share of ``tests.faults``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.artifacts.folder import load_run
from reprl.cli.app import main
from reprl.errors import ReprlError, blame, find_foreign
from reprl.storage import checkpoints

SMALL = ["gridworld-v0", "--horizon", "2", "--env-option", "size=2", "--access", "generative", "--epsilon", "1"]

BOX = """
import gymnasium, os, signal, sys, time
class Coin(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Discrete(2)
    reward_range = (0.0, 1.0)
    played = 0
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        Coin.played += 1
        if Coin.played == 40:
            self.fault()
        return 0, {}
    def step(self, action):
        return int(self.np_random.integers(2)), float(self.np_random.random() < 0.3 + 0.4 * action), False, False, {}
    def fault(self):
        MARK
def make():
    return gymnasium.wrappers.OrderEnforcing(Coin())
"""


@pytest.fixture
def box(tmp_path: Path) -> Any:
    """Write a file with an environment whose fortieth episode does something wrong; return its name."""

    def write(fault: str, episode: int = 40) -> str:
        (tmp_path / "box.py").write_text(BOX.replace("MARK", fault).replace("== 40", f"== {episode}"))
        return f"{tmp_path / 'box.py'}:make"

    return write


def learn(env: str, *words: str) -> int:
    return main(["learn", env, "-H", "2", "--max-samples", "2000", "--shared-seed", "1", "--data-seed", "2", *words])


# Faults of an environment's own code.


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("raise BrokenPipeError(32, 'gone')", "BrokenPipeError: [Errno 32] gone"),
        ("sys.exit(0)", "SystemExit: 0"),
        ("raise EOFError('no more')", "EOFError: no more"),
        ("raise OSError(28, 'full')", "OSError: [Errno 28] full"),
        ("raise MemoryError('much')", "MemoryError: much"),
        ("{}['x' + chr(27)]", r"KeyError: 'x\x1b'"),
    ],
)
def test_a_fault_of_an_environment_shows_its_own_frames(
    box: Any, fault: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert learn(box(fault), "--workers", "1") == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.strip().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert line in lines
    assert "in fault" in shown.err
    assert "in reset of" in lines[-2]
    assert re.fullmatch(r"while exploring .*, episode \d+", lines[-1])
    assert set(re.findall(r'File "([^"]*)"', shown.err)) == {str(Path(box(fault).rpartition(":")[0]).resolve())}
    assert len(lines) < 12


def test_a_fault_in_another_process_shows_the_same(box: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert learn(box("raise BrokenPipeError(32, 'gone')"), "--workers", "2", "--json") == 3
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"error": "BrokenPipeError: [Errno 32] gone"}
    assert "in fault" in shown.err
    assert "pool.py" not in shown.err


def test_marks_are_found_behind_other_errors() -> None:
    with pytest.raises(ValueError, match="deep") as caught:
        blame(ValueError("deep"), "in a test")
    wrapped = RuntimeError()
    wrapped.__context__ = caught.value
    assert find_foreign(wrapped) is not None
    assert find_foreign(RuntimeError()) is None
    with pytest.raises(RuntimeError, match=r"asked to leave Python: SystemExit\(3\)"):
        blame(SystemExit(3), "in a test")


# Processes that play.


def test_an_episode_that_hangs_is_ended(box: Any) -> None:
    name = box("time.sleep(3600)")
    began = time.monotonic()
    assert learn(name, "--workers", "1", "--timeout", "1", "--json") == 2
    assert time.monotonic() - began < 1800
    with pytest.raises(ReprlError, match=r"^timeout must be None for an environment whose dynamics are known, got 1$"):
        reprl.learn("gridworld-v0", timeout=1)


def test_a_process_that_is_killed_is_replaced_and_cannot_be_told(
    box: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = []
    mark = tmp_path / "killed"
    once = f"os.path.exists({str(mark)!r}) or (open({str(mark)!r}, 'w').close(), os.kill(os.getpid(), signal.SIGKILL))"
    for fault, workers in (("pass", "1"), (once, "2")):
        assert learn(box(fault), "--workers", workers, "--json") in (0, 1)
        document = json.loads(capsys.readouterr().out)
        del document["receipt"]["timings"]
        documents.append(document)
    assert mark.exists()
    assert documents[0] == documents[1]
    monkeypatch.setattr("reprl.execution.tasks._ATTEMPTS", 2)
    assert learn(box("os.kill(os.getpid(), signal.SIGKILL)", 1), "--workers", "2") == 2
    assert "got 2 times in a row one that ended with SIGKILL(-9)" in capsys.readouterr().err


class Dying:
    """A learner whose process is killed, the first time."""

    access, name = "generative", "dying"

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, model: Any, shared_key: Any) -> Any:
        if not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.zeros((model.horizon, model.n_states), dtype=int)


def test_an_audit_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    world = reprl.make("gridworld-v0", 2, size=2)
    reports = [
        reprl.audit(world, Dying(tmp_path / mark), 4, seed=1, workers=workers)
        for mark, workers in (("there", 1), ("absent", 2))
    ]
    assert (tmp_path / "absent").exists()
    assert reports[0].to_json() == reports[1].to_json()


# Outputs are opened before work begins.


def test_what_cannot_be_written_is_refused_before_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    target = str(tmp_path / "file" / "x.json")
    for module in ("reprl.auditing.audit.audit", "reprl.artifacts.recipe.learn_as"):
        monkeypatch.setattr(module, lambda *_, **__: pytest.fail("work began"))
    for words in (["audit", *SMALL], ["learn", *SMALL]):
        assert main([*words, "--out", target]) == 2
        assert capsys.readouterr().err.startswith("reprl: cannot write")


def test_missing_folders_are_made_and_kept_only_if_needed(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "audit.json"
    assert main(["audit", *SMALL, "-n", "1", "--out", str(target), "-o", "calls=x"]) == 2
    assert not (tmp_path / "a").exists()
    assert main(["audit", *SMALL, "-n", "1", "--out", str(target), "--json"]) == 0
    assert os.listdir(target.parent) == ["audit.json"]
    assert main(["report", str(target), "--out", str(tmp_path / "c" / "audit.html")]) == 0


def test_work_that_cannot_be_written_at_the_end_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    monkeypatch.setattr(checkpoints, "_told", ["said before"])
    for words, name in ((["audit", *SMALL, "-n", "1", "--seed", "1"], "out.json"), (["learn", *SMALL], "out")):
        assert main([*words, "--json", "--out", str(tmp_path / name)]) == 2
        document = json.loads(capsys.readouterr().out)
        assert document["error"].endswith("No space left on device")
        assert "verdict" in document or len(document["actions"]) == 2
        assert main([*words, "--out", str(tmp_path / name)]) == 2
        shown = capsys.readouterr()
        assert shown.err.startswith("reprl: cannot write")
        assert "samples" in shown.out
        assert os.listdir(tmp_path) == []


def test_a_run_that_is_asked_to_end_leaves_no_trace(tmp_path: Path) -> None:
    out = tmp_path / "new" / "run"
    words = ["learn", "gridworld-v0", "--horizon", "10", "--env-option", "size=6", "--epsilon", "0.0001"]
    child = subprocess.Popen(
        [sys.executable, "-m", "reprl", *words, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not out.exists():
        assert child.poll() is None
        time.sleep(0.02)
    child.terminate()
    assert child.communicate(timeout=300) == ("", "reprl: ended by a signal\n")
    assert child.returncode == 143
    assert os.listdir(tmp_path) == []


# A share of all faults.


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_share_of_all_faults_breaks_nothing() -> None:
    """All of them: python -m tests.faults."""
    command = [sys.executable, "-m", "tests.faults", "--share", "80"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^all +(\d+), 0 broken$", done.stdout, re.MULTILINE)
    assert found is not None
    assert int(found[1]) >= 4


def test_the_harness_sees_what_is_broken(tmp_path: Path) -> None:
    """The control: a run of half a file, and one that is lost after its commit."""
    from tests import faults

    bench = faults.Bench(1)
    (tmp_path / "recipe.json").write_text("{")
    faults._judge(bench, "kill", "here", tmp_path, None, ["goal"], True, -9)
    assert "corrupt" in bench.broken[0]
    faults._judge(bench, "kill", "here", tmp_path / "absent", None, ["goal"], True, -9)
    assert "lost after the commit" in bench.broken[1]
    with pytest.raises(ReprlError):
        load_run(tmp_path)

"""The command as other programs meet it: processes, signals, pipes, full disks and terminals."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import reprl
from reprl.artifacts.folder import TASKS, load_run, open_folder
from reprl.cli.app import main

REPRL = [sys.executable, "-m", "reprl"]
WORLD = ["gridworld-v0", "--horizon", "3", "--env-option", "size=2", "--access", "generative"]
ENDLESS = ["gridworld-v0", "--horizon", "200", "--env-option", "size=40", "--epsilon", "0.000000001"]

BLACK_BOX = """
import gymnasium
class Coin(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)
    reward_range = (0.0, 1.0)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}
    def step(self, action):
        return int(self.np_random.integers(2)), float(self.np_random.random() < 0.3 + 0.4 * action), False, False, {}
def make():
    return Coin()
"""


def run(*words: object, **options) -> subprocess.CompletedProcess[str]:
    command = [*REPRL, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400, **options)


def learn_here(out: Path, shared_seed: int = 1, *options: str) -> None:
    """A run in this process, which is quicker than to start one."""
    assert main(["learn", *WORLD, "--shared-seed", str(shared_seed), "--out", str(out), "--json", *options]) == 0


def wait_for(condition, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_two_processes_with_their_own_data_print_one_fingerprint(tmp_path):
    first = run("learn", *WORLD, "--shared-seed", 7, "--data-seed", 1, "--out", tmp_path / "a", "--json")
    second = run("replicate", tmp_path / "a" / "recipe.json", "--data-seed", 2, "--out", tmp_path / "b", "--json")
    assert (first.returncode, second.returncode) == (0, 0)
    documents = json.loads(first.stdout), json.loads(second.stdout)
    assert documents[0]["fingerprint"] == documents[1]["fingerprint"]
    assert documents[0]["receipt"]["values"] != documents[1]["receipt"]["values"]  # the data were different
    assert main(["verify", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    learn_here(tmp_path / "c", 8, "--preference", "3,2,1,0")
    differ = run("verify", tmp_path / "a", tmp_path / "c")
    assert differ.returncode == 1
    assert "cells differ" in differ.stdout
    assert "different recipes" in differ.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(("code", "fine"), [(0, True), (1, True), (2, False), (3, False)])
def test_a_demo_whose_policies_differ_is_no_failure(tmp_path, code, fine):
    script = tmp_path / "bin" / "reprl"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\nexit {code}\n")
    script.chmod(0o700)
    (tmp_path / ".stamp").touch()
    words = ["make", "demo", f"VENV={tmp_path}"]
    done = subprocess.run(words, capture_output=True, timeout=60, cwd=Path(__file__).parents[1])
    assert (done.returncode == 0) is fine


def test_the_console_script_is_the_module():
    script = Path(sys.executable).with_name("reprl")
    if not script.exists():
        pytest.skip("the package is not installed with its script")
    found = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=300)
    assert found.stdout == f"reprl {reprl.__version__}\n"


def test_an_interrupted_run_leaves_nothing_behind_but_work_to_go_on_with(tmp_path):
    out = tmp_path / "run"
    child = subprocess.Popen(
        [*REPRL, "learn", *ENDLESS, "--shared-seed", "1", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(out.exists)
    time.sleep(1.0)  # into the run
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    printed, complained = child.communicate(timeout=300)
    assert child.returncode == 130
    assert printed == ""
    assert re.match(r"reprl: interrupted(; finished work is kept; continue with: reprl learn --cont.*)?\n$", complained)
    assert not out.exists() or [path.name for path in out.iterdir()] in ([], [TASKS])


def test_a_killed_run_leaves_the_old_files_and_a_free_folder(tmp_path):
    learn_here(tmp_path)
    before = load_run(tmp_path).receipt
    child = subprocess.Popen([*REPRL, "learn", *ENDLESS, "--shared-seed", "1", "--out", str(tmp_path), "--force"])
    wait_for(lambda: any(tmp_path.glob(".reprl-staging-*")))
    child.kill()
    child.wait(timeout=300)
    assert load_run(tmp_path).receipt == before
    learn_here(tmp_path, 1, "--force")
    assert load_run(tmp_path).receipt != before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "policy.json",
        "receipt.json",
        "recipe.json",
    ]


def test_a_second_run_into_a_busy_folder_is_refused(tmp_path):
    learn_here(tmp_path)
    with open_folder(tmp_path, load_run(tmp_path).recipe):
        busy = run("learn", *WORLD, "--shared-seed", 1, "--out", tmp_path, "--force")
    assert (busy.returncode, busy.stdout) == (2, "")
    assert "another run is about to write" in busy.stderr
    assert busy.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["list"], ["--help"], ["nonsense", "--json"]])
def test_a_pipe_that_closes_is_no_news(words):
    child = subprocess.Popen([*REPRL, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    complained = child.stderr.read()
    child.stderr.close()
    assert child.wait(timeout=300) == (2 if words[0] == "nonsense" else 141)
    assert complained == ""


def test_a_first_line_can_be_taken_from_a_pipe():
    shown = subprocess.run(
        f"{sys.executable} -m reprl list | head -1", shell=True, capture_output=True, text=True, timeout=300
    )
    assert shown.stdout.startswith("environment")
    assert shown.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["list"], ["--help"]])
def test_an_output_that_is_full_is_one_line(words):
    with open("/dev/full", "w") as full:
        child = subprocess.run([*REPRL, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert child.returncode == 2
    assert "Traceback" not in child.stderr
    assert child.stderr.count("\n") <= 1


def test_a_folder_that_cannot_be_written_is_refused_before_the_run(tmp_path):
    if os.geteuid() == 0:  # whom permissions do not stop
        target = Path("/proc/reprl")
    else:
        tmp_path.chmod(0o500)
        target = tmp_path / "run"
    refused = run("learn", *ENDLESS, "--out", target)
    tmp_path.chmod(0o700)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"reprl: cannot write to {target}: ")
    assert refused.stderr.count("\n") == 1
    (tmp_path / "file").write_text("")
    assert main(["learn", *ENDLESS, "--out", str(tmp_path / "file")]) == 2


def test_nothing_is_drawn_on_a_pipe_and_a_bar_on_a_terminal(capsys):
    words = ["learn", "river-swim-v0", "-H", "4", "--access", "episodic", "--shared-seed", "1"]
    assert main(words) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert "\x1b" not in quiet.out
    ours, theirs = pty.openpty()
    child = subprocess.Popen([*REPRL, *words], stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    drawn = b""
    while chunk := _read(ours):
        drawn += chunk
    os.close(ours)
    child.communicate(timeout=300)
    assert child.returncode == 0
    assert b"\x1b" in drawn
    assert b"episodes" in drawn


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def test_colours_are_for_terminals_that_want_them():
    def shown(**extra: str) -> bytes:
        ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", **extra}
        child = subprocess.Popen([*REPRL, "list"], stdout=theirs, stderr=subprocess.DEVNULL, env=environment)
        os.close(theirs)
        out = b""
        while chunk := _read(ours):
            out += chunk
        os.close(ours)
        assert child.wait(timeout=300) == 0
        return out

    assert b"\x1b[" in shown()
    assert b"\x1b[3" not in shown(NO_COLOR="1")  # bold may stay, colours may not


def test_an_output_that_is_closed_is_no_error():
    closed = subprocess.run(f"{sys.executable} -m reprl list >&-", shell=True, capture_output=True, timeout=300)
    assert (closed.returncode, closed.stderr) == (0, b"")


@pytest.mark.slow
def test_worker_processes_find_an_environment_in_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(BLACK_BOX)
    words = ["-H", "1", "--shared-seed", "1", "--data-seed", "1", "--json"]
    found = [run("learn", f"{path}:make", *words, "--workers", n) for n in (1, 2)]
    assert [x.returncode for x in found] == [0, 0], found[1].stderr
    assert len({json.loads(x.stdout)["receipt"]["digest"] for x in found}) == 1


def test_an_encoding_without_arrows_is_no_error():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    shown = run("twice", *WORLD, "--shared-seed", 7, env=environment)
    assert shown.returncode in (0, 1)
    assert shown.stderr == ""
    assert "fingerprint" in shown.stdout

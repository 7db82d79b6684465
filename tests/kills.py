"""Work with checkpoints, killed at random moments and started again: are its bytes those of undisturbed work?

``python -m tests.kills`` kills 50 audits and 50 chains of ``reprl learn --continue``. It
says how many came to the same bytes, and what was made twice: runs of an audit, batches of exploration, batches of a
black box. ``--times N`` kills fewer, as CI does. What is killed is a fork of this process, with its kernels.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium
import numpy as np

import reprl
from reprl.cli.app import main
from reprl.sources import black_box

PAIRS = 24


class Noting:
    """A learner that notes every call in a file, a byte each."""

    access = "generative"

    def __init__(self, notes: str, nap: float = 0.0) -> None:
        self.notes, self.nap = notes, nap

    def __call__(self, model: Any, shared_key: Any) -> np.ndarray:
        with open(self.notes, "ab", buffering=0) as file:
            file.write(b".")
        time.sleep(self.nap)
        chosen: np.ndarray = model.sample(4).reward_sum.argmax(axis=2)
        return chosen

    @property
    def calls(self) -> int:
        return os.path.getsize(self.notes)


def audit(learner: Any, folder: Path | None, pairs: int = PAIRS) -> str:
    return reprl.audit("gridworld-v0", learner, pairs, horizon=3, seed=11, checkpoint=folder).to_json()


class Coins(gymnasium.Env[Any, Any]):
    """Two coins that are nearly alike: small, quick, and not decided for a long time."""

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        luck = self.np_random.random()
        return int(luck < 0.3), float(luck < 0.5 + 0.002 * int(action)), False, False, {}


LIMITS = (300, 900, 2500)
"""Samples of a chain: an undecided run, gone on with twice."""


def chain(notes: str, folder: Path | None) -> str:
    """Runs of the command on a black box that are undecided, each going on with the last; or the last one alone."""

    def noting(*arguments: Any) -> Any:
        with open(notes, "ab", buffering=0) as file:
            file.write(b".")
        return play(*arguments)

    play = black_box._play_box
    out = Path(notes).with_suffix(".whole") if folder is None else folder
    world = [f"{Path(__file__)}:Coins", "--reward-range", "0", "1"]
    new = ["learn", *world, "--horizon", "3", "--quality", "0.999", "--shared-seed", "1", "--data-seed", "2"]
    for limit in LIMITS[-1:] if folder is None else LIMITS:
        on = ["learn", *world, "--continue", str(out)]
        words = on if (out / "tasks").exists() else [*new, "--out", str(out)]
        if (out / "receipt.json").exists() and reprl.load_run(out).receipt.samples > limit - 4:
            continue  # killed after this one
        with mock.patch.object(black_box, "_play_box", noting), open(os.devnull, "w") as null, redirect_stdout(null):
            assert main([*words, "--max-samples", str(limit), "--workers", "1"]) == 1, "undecided"
    receipt = json.loads((out / "receipt.json").read_text()) | {"timings": None}
    return json.dumps(receipt) + (out / "policy.json").read_text()


WORKS: dict[str, Callable[[str, Path | None], str]] = {
    "audit": lambda notes, folder: audit(Noting(notes), folder),
    "continue": chain,
}
"""What is killed, by name: a function of a file of notes and a folder, to what must not change."""


def _kept(folder: Path) -> int:
    """Count tasks in a folder that somebody writes to."""
    return sum(name.endswith(".task") for _, _, names in os.walk(folder) for name in names)


def kill(times: int, what: str = "audit", seed: int = 0) -> dict[str, int]:
    """Kill so many; count what came of them."""
    moments, work = random.Random(seed), WORKS[what]
    count = dict.fromkeys(("killed", "killed midway", "same bytes", "tasks kept", "made", "made twice"), 0)
    with tempfile.TemporaryDirectory(prefix="reprl-kills-") as name:
        notes = Path(name, "notes")
        whole = work(str(notes), None)
        once = notes.stat().st_size
        began = time.monotonic()
        work(str(notes), Path(name, "whole"))
        length = time.monotonic() - began
        tasks = len(list(Path(name, "whole").rglob("*.task")))
        for number in range(times):
            folder, notes = Path(name, f"{number}"), Path(name, f"notes-{number}")
            notes.touch()
            child = os.fork()
            if child == 0:
                work(str(notes), folder)
                os._exit(0)
            # By what is kept, not by the clock alone: a machine may be slower now than when the work was timed.
            wanted, late = moments.randrange(tasks), time.monotonic() + 4.0 * length
            while _kept(folder) < wanted and time.monotonic() < late:
                time.sleep(0.001)
            time.sleep(moments.uniform(0.0, length / tasks))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kept = len(list(folder.rglob("*.task")))
            count["killed"] += 1
            count["killed midway"] += 0 < kept < tasks
            count["tasks kept"] += kept
            count["same bytes"] += work(str(notes), folder) == whole
            count["made"] += notes.stat().st_size
            count["made twice"] += notes.stat().st_size - once
    return count


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--times", type=int, default=50, help="how often each is killed")
    number = asked.parse_args().times
    found = {what: kill(number, what) for what in WORKS}
    print(json.dumps(found))
    sys.exit(any(counted["same bytes"] != counted["killed"] for counted in found.values()))

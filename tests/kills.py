"""An audit with checkpoints, killed at random moments and started again: are its bytes those of an undisturbed one?

``python -m tests.kills`` kills 50 audits and says how many came to the same bytes, and how many runs were made twice;
``--times N`` kills fewer, as CI does. The audits are forks of this process, which has its kernels already.
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
from pathlib import Path
from typing import Any

import numpy as np

import reprl

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


def kill(times: int, seed: int = 0) -> dict[str, int]:
    """Kill so many audits; count what came of them."""
    moments = random.Random(seed)
    count = dict.fromkeys(("killed", "killed midway", "same bytes", "pairs kept", "runs", "runs made twice"), 0)
    with tempfile.TemporaryDirectory(prefix="reprl-kills-") as name:
        whole = audit(Noting(f"{name}/notes"), None)
        began = time.monotonic()
        audit(Noting(f"{name}/notes"), Path(name, "whole"))
        length = time.monotonic() - began
        for number in range(times):
            folder, learner = Path(name, f"{number}"), Noting(f"{name}/notes-{number}")
            Path(learner.notes).touch()
            child = os.fork()
            if child == 0:
                audit(learner, folder)
                os._exit(0)
            time.sleep(moments.uniform(0.0, length))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            kept = len(list(folder.rglob("*.task")))
            count["killed"] += 1
            count["killed midway"] += 0 < kept < PAIRS
            count["pairs kept"] += kept
            count["same bytes"] += audit(learner, folder) == whole
            count["runs"] += learner.calls
            count["runs made twice"] += learner.calls - 2 * PAIRS
    return count


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--times", type=int, default=50, help="audits to kill")
    found = kill(asked.parse_args().times)
    print(json.dumps(found))
    sys.exit(found["same bytes"] != found["killed"])

"""Memory: audits stream, and large worlds are not copied for every task.

Every row is a process of its own, whose resident memory is read before the work and at its peak, children included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import reprl

PAGE = "scale.md"
ROWS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("audit", (100, 1)),
    ("audit", (1_000, 1)),
    ("audit", (10_000, 1)),
    ("explore", (716, 25, 20, 1, 1)),
    ("explore", (716, 25, 20, 1, 2)),
    ("explore", (716, 25, 20, 8, 2)),
    ("explore", (100_000, 2, 5, 1, 1)),
    ("explore", (100_000, 2, 5, 1, 2)),
    ("explore", (100_000, 2, 5, 8, 2)),
)


def sparse_world(n_states: int, n_actions: int, horizon: int) -> reprl.TabularMDP:
    """Every action leads to eight states."""
    import scipy.sparse

    generator = np.random.default_rng(1)
    cells, width = n_states * n_actions, 8
    columns = generator.integers(0, n_states, (cells, width))
    table = scipy.sparse.coo_matrix(
        (np.full(cells * width, 1.0 / width), (np.repeat(np.arange(cells), width), columns.ravel())), (cells, n_states)
    )
    return reprl.TabularMDP(table, generator.random((n_states, n_actions)), horizon=horizon)


def audit(pairs: int, workers: int) -> None:
    reprl.audit("gridworld-v0", "greedy", pairs, horizon=3, seed=1, samples=960, access="generative", workers=workers)


def explore(n_states: int, n_actions: int, horizon: int, runs: int, workers: int) -> None:
    from reprl.paper.q_explore import explore as make_runs
    from reprl.paper.runs import RunSettings

    model = reprl.EpisodicModel(sparse_world(n_states, n_actions, horizon), 1)
    _note("world")
    make_runs(model, RunSettings(episodes=2_000), runs, quota=1, purpose="memory", workers=workers)


_notes: dict[str, float] = {}


def _resident() -> float:
    """MiB of this process and its children."""
    total = 0
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        except OSError:
            continue
        if int(fields["PPid"]) == os.getpid() or int(fields["Pid"]) == os.getpid():
            total += int(fields.get("VmRSS", "0 kB").split()[0])
    return total / 1024


def _note(name: str) -> None:
    _notes[name] = _resident()


def _child(work: str, given: list[Any]) -> None:
    """Do one row here and print what it took."""
    {"audit": audit, "explore": explore}[work](*([2, 1] if work == "audit" else [4, 2, 2, 1, 1]))  # kernels
    _note("before")
    peak, done = [_resident()], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            peak.append(max(peak[-1], _resident()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    {"audit": audit, "explore": explore}[work](*given)
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    print(json.dumps({**_notes, "peak": peak[-1], "seconds": seconds}))


def run() -> list[dict[str, Any]]:
    rows = []
    for work, given in ROWS:
        words = [sys.executable, "-m", "benchmarks.memory", json.dumps([work, given])]
        found = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        names = ("S", "A", "H", "runs", "threads") if work == "explore" else ("audit, pairs",)
        what = ", ".join(f"{name} {number:,}" for name, number in zip(names, given, strict=False))
        row = {"work": what, "before, MiB": found["before"]}
        row |= {"with the environment": found.get("world", found["before"]), "peak": found["peak"]}
        rows.append(row)
        print(row, found["seconds"], file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    _child(*json.loads(sys.argv[1]))

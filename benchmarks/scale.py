"""Tasks: what the scheduler costs on empty tasks, and how audits and black boxes gain from a second process.

What a second process gains is a ratio within this run. Dask's tasks go to three workers on loopback, which start here.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import reprl
from reprl.execution.tasks import cluster, count_workers, run_tasks
from reprl.storage.checkpoints import Content, Kept, open_checkpoint
from tests.loopback import Cluster, wait_for
from tests.shop import Shop

PAGE = "scale.md"
TASKS = 10_000
KEPT = 1_000


def nothing(_: None, key: int) -> int:
    return key


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _empty(tasks: int = TASKS, **how: Any) -> float:
    """Seconds for empty tasks, those in which workers are started left out."""
    assert list(run_tasks(nothing, None, range(4), **how)) == [0, 1, 2, 3]
    return _seconds(lambda: sum(run_tasks(nothing, None, range(tasks), **how)))


def _on_dask() -> float:
    with tempfile.TemporaryDirectory() as name:
        made = Cluster(Path(name))
        try:
            with cluster(made.address):
                wait_for(lambda: count_workers(1) == 3)
                return _empty()
        finally:
            made.end()


def _kept() -> float:
    with tempfile.TemporaryDirectory() as name, open_checkpoint(Path(name, "tasks"), {"kind": "benchmark"}) as folder:
        assert folder is not None
        store = Kept(folder, "", lambda n: Content({"n": n}), lambda content: int(content.fields["n"]))
        return _seconds(lambda: sum(run_tasks(nothing, None, range(KEPT), store=store)))


def _audit(workers: int) -> float:
    def audit(pairs: int) -> object:
        return reprl.audit("gridworld-v0", "reprl", pairs, horizon=6, seed=1, access="generative", workers=workers)

    audit(2 * workers)  # kernels and processes
    return _seconds(lambda: audit(40))


def _learn(workers: int) -> float:
    options: dict[str, Any] = {"horizon": 10, "reward_range": Shop.REWARDS, "shared_seed": 1, "data_seed": 2}

    def learn(samples: int) -> object:
        return reprl.learn(Shop, max_samples=samples, workers=workers, **options)

    learn(2000)
    return _seconds(lambda: learn(600_000))


def run() -> list[dict[str, Any]]:
    rows = []

    def add(what: str, seconds: float, tasks: int, base: float | None = None) -> None:
        row = {"work": what, "seconds": seconds, "ms a task": 1e3 * seconds / tasks}
        rows.append(row if base is None else {**row, "× one process": seconds / base})

    def empty(tasks: int, how: str, seconds: float) -> None:
        add(f"{tasks:,} empty tasks, {how}".replace(",", " ", 1), seconds, tasks)

    empty(TASKS, "one process", _empty())
    empty(TASKS, "two threads", _empty(workers=2, threads=True))
    empty(TASKS, "two processes", _empty(workers=2))
    empty(TASKS, "three Dask workers", _on_dask())
    empty(KEPT, "each kept", _kept())
    for what, measure, tasks in (("audit of 40 pairs", _audit, 40), ("shop, 600 000 samples", _learn, 1)):
        one, two = measure(1), measure(2)
        add(f"{what}, one process", one, tasks, one)
        add(f"{what}, two processes", two, tasks, one)
    return rows

"""python -m experiments.price.boxes --out FILE: do black boxes end in a promise, in how long, under weaker promises?

Every environment is played by two workers: two runs that promise a share of the decisions, and two that follow what a
pilot has registered. Each is stored as soon as it is done; one that takes too long is cut by its samples.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
from gymnasium import spaces

import reprl
from experiments.defaults.worlds import INVENTORY, SHOP

AGREEMENT = 0.95


class TwoQueues(gymnasium.Env[Any, Any]):
    """Two queues of at most three customers, seen as MultiDiscrete([4, 4]): serve the first, the second, or wait.

    At a step one more customer comes to the first queue with probability 0.4 and to the second with 0.3; a service
    succeeds with probability 0.9 and 0.6. What waits costs 1 and 2 a customer, a service 0.5.
    """

    REWARDS = (-9.5, 0.0)

    def __init__(self) -> None:
        self.observation_space, self.action_space = spaces.MultiDiscrete([4, 4]), spaces.Discrete(3)
        self.waiting = [0, 0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.waiting = [0, 0]
        return tuple(self.waiting), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        served, first, second = self.np_random.random(3)
        if action < 2 and served < (0.9, 0.6)[int(action)]:
            self.waiting[int(action)] = max(0, self.waiting[int(action)] - 1)
        self.waiting = [min(3, n + (x < p)) for n, x, p in zip(self.waiting, (first, second), (0.4, 0.3), strict=True)]
        reward = -1.0 * self.waiting[0] - 2.0 * self.waiting[1] - (0.5 if action < 2 else 0.0)
        return tuple(self.waiting), reward, False, False, {}


class Box(NamedTuple):
    """A black box, and how it is played."""

    make: Any
    horizon: int
    rewards: tuple[float, float]
    pilot: int
    limit: int


BOXES: dict[str, Box] = {
    "Blackjack": Box("gym:Blackjack-v1", 8, (-1.0, 1.0), 300_000, 2_000_000),
    "shop": Box(SHOP, 10, SHOP().rewards, 30_000, 1_000_000),
    "inventory 30×10": Box(INVENTORY, 20, INVENTORY().rewards, 300_000, 2_000_000),
    "two queues": Box(TwoQueues, 15, TwoQueues.REWARDS, 50_000, 2_000_000),
}


def approximate(name: str) -> list[dict[str, Any]]:
    """Two runs that promise a share of the decisions."""
    box, runs = BOXES[name], []
    for seed in (1, 2):
        began = time.perf_counter()
        how: dict[str, Any] = {"horizon": box.horizon, "reward_range": box.rewards, "max_samples": box.limit}
        runs.append(reprl.learn(box.make, agreement=AGREEMENT, shared_seed=9, data_seed=seed, workers=2, **how))
        seconds = time.perf_counter() - began
    return _rows(name, "approximate", runs, seconds)


def registered(name: str) -> list[dict[str, Any]]:
    """A pilot, and two runs that follow what it registers."""
    box = BOXES[name]
    began = time.perf_counter()
    how: dict[str, Any] = {"horizon": box.horizon, "reward_range": box.rewards, "workers": 2}
    recipe = reprl.register(box.make, pilot=box.pilot, shared_seed=9, data_seed=77, **how)
    pilot, runs = time.perf_counter() - began, []
    world = (
        reprl.from_gymnasium(box.make, horizon=box.horizon, reward_range=box.rewards) if callable(box.make) else None
    )
    for seed in (1, 2):
        began = time.perf_counter()
        runs.append(recipe.learn(env=world, data_seed=seed, workers=2, max_samples=box.limit))
        seconds = time.perf_counter() - began
    return [{**row, "pilot_seconds": round(pilot, 1)} for row in _rows(name, "registered", runs, seconds)]


def _rows(name: str, promise: str, runs: list[Any], seconds: float) -> list[dict[str, Any]]:
    same = runs[0].policy == runs[1].policy
    alike = reprl.verify(*runs).alike
    return [
        {
            "box": name,
            "promise": promise,
            "status": run.guarantee.status,
            "why": run.guarantee.source if run.guarantee.status == "none" else "",
            "samples": run.samples,
            "seconds": round(run.seconds, 1),
            "share_of_gain": None if run.worth is None else run.worth.share,
            "expected_agreement": run.expected_agreement,
            "same": same,
            "alike": alike,
            "last": round(seconds, 1),
        }
        for run in runs
    ]


def main() -> None:
    """Measure, store, print."""
    parser = argparse.ArgumentParser(prog="experiments.price.boxes", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=8)
    given = parser.parse_args()
    ways: tuple[Callable[[str], list[dict[str, Any]]], ...] = (approximate, registered)
    rows: list[dict[str, Any]] = []
    names = [name for name in BOXES if not given.only or name in given.only]
    with ProcessPoolExecutor(given.jobs) as pool:
        jobs = {pool.submit(way, name): (way.__name__, name) for name in names for way in ways}
        for job in as_completed(jobs):
            error = job.exception()
            rows += [{"job": jobs[job], "error": str(error)}] if error else job.result()
            given.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
            print(rows[-1], flush=True)


if __name__ == "__main__":
    main()

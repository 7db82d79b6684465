"""Measurements: pure functions of the plan and of numbers of runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from experiments.search.classic import ClassicModel
from reprl.learning.search import learn_search
from reprl.randomness import DataStream
from reprl.search.settings import SearchSettings

SEED = 20270118
RHO = 0.1


class Task(NamedTuple):
    """What is searched for, and in how many pairs."""

    env: str
    target: float | None
    pairs: int
    limit: int
    """Samples of a run, at most."""
    policy: str = "linear"
    first: int = 0
    """Number of the first pair, which gives its seeds."""
    candidates: int | None = None


TASKS = {
    "CartPole-v1": Task("CartPole-v1", 475.0, 100, 200_000_000),
    "MountainCar-v0": Task("MountainCar-v0", -125.0, 20, 200_000_000),
    "Acrobot-v1": Task("Acrobot-v1", -100.0, 20, 100_000_000),
    "CartPole-v1 again": Task("CartPole-v1", 475.0, 100, 200_000_000, first=1000),
    "MountainCar-v0 again": Task("MountainCar-v0", -125.0, 100, 200_000_000, first=1000),
    "Acrobot-v1 again": Task("Acrobot-v1", -100.0, 20, 100_000_000, first=1000),
    "CartPole-v1 no target": Task("CartPole-v1", None, 10, 50_000_000, first=2000),
    "MountainCar-v0 no target": Task("MountainCar-v0", None, 10, 50_000_000, first=2000),
    "Acrobot-v1 no target": Task("Acrobot-v1", None, 5, 50_000_000, first=2000),
    "Pendulum-v1": Task("Pendulum-v1", -250.0, 4, 40_000_000, "quadratic"),
    "Pendulum-v1 more": Task("Pendulum-v1", -250.0, 10, 40_000_000, "quadratic", first=1000, candidates=16_384),
}


def pairs(name: str, numbers: range) -> dict[str, Any]:
    """Two runs for every shared seed: [number, same], of both certified, reached, samples, mean, threshold, rungs."""
    task = TASKS[name]
    settings = SearchSettings(rho=RHO, target=task.target, policy=task.policy, candidates=task.candidates)
    rows = []
    for number in numbers:
        seeds = [int(word) >> 1 for word in DataStream(SEED, f"search/{name}", number).integers(2)]
        runs = [
            learn_search(ClassicModel(task.env, seed), settings, SEED + number, max_samples=task.limit)
            for seed in seeds
        ]
        one, two = runs
        same = one.policy.fingerprint == two.policy.fingerprint
        rows.append(
            [
                number,
                int(same),
                *(int(run.guarantee.status == "certified") for run in runs),
                *(int(run.details.reached) for run in runs),
                *(run.samples for run in runs),
                *(None if run.value is None else round(run.value, 3) for run in runs),
                *(None if run.certified_return is None else round(run.certified_return, 3) for run in runs),
                *(len(run.details.ladder) for run in runs),
            ]
        )
    return {"rows": rows}

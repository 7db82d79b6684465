"""Environments that need more than `make venv` installs: LunarLander (Box2D) and MuJoCo, through Gymnasium itself.

pip install box2d==2.3.10 mujoco, then python -m experiments.search --only open/. Where a package is missing, what is
stored stays as it is. One pair a row: these environments are slow, and the question is what is reached, at which cost.
"""

from __future__ import annotations

import importlib.util
import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import reprl
from reprl.randomness import DataStream

SEED = 20271118


class Lander:
    """The controller that Gymnasium publishes beside LunarLander (``heuristic``), with constants of its own."""

    def __init__(self, weights: Any) -> None:
        """Take the ten constants."""
        self.weights = [float(each) for each in weights]

    def act(self, seen: Any) -> int:
        """Return the engine to fire."""
        lean, drift, most, hover, turn, spin, height, fall, touch, least = self.weights
        x, y, vx, vy, angle, speed, left, right = (float(each) for each in seen)
        todo = (min(max(x * lean + vx * drift, -most), most) - angle) * turn - speed * spin
        lift = (hover * abs(x) - y) * height - vy * fall
        if left or right:
            todo, lift = 0.0, -vy * touch
        if lift > abs(todo) and lift > least:
            return 2
        return 3 if todo < -least else 1 if todo > least else 0


class Landers:
    """Such controllers near the published one, which is the centre of the first rung."""

    size = 10
    centre = np.array([0.5, 1.0, 0.4, 0.55, 0.5, 1.0, 0.5, 0.5, 0.5, 0.05])

    def from_vector(self, weights: Any) -> Lander:
        """Return the controller with these constants."""
        return Lander(weights)


class Open(NamedTuple):
    """What is asked for, with what a user has to say."""

    env: str
    target: float
    module: str
    """That the environment needs."""
    limit: int
    """Steps of a run, at most."""
    shown: str
    """Of the policies, on the page."""
    options: dict[str, Any]


ALIVE, LANDER = {"reward_range": (0.0, 1.0)}, {"return_range": (-1000.0, 400.0)}
TASKS = {
    "InvertedPendulum": Open(
        "InvertedPendulum-v5", 950.0, "mujoco", 10_000_000, "linear", {"reward_range": (0.0, 1.0)}
    ),
    "Swimmer": Open("Swimmer-v5", 200.0, "mujoco", 5_000_000, "linear", {"return_range": (-500.0, 500.0)}),
    "LunarLander": Open("LunarLander-v3", 200.0, "Box2D", 1_000_000, "linear", LANDER),
    "LunarLander controller": Open(
        "LunarLander-v3", 200.0, "Box2D", 1_000_000, "near the published controller", {**LANDER, "policy": Landers()}
    ),
}


def jobs() -> dict[str, Any]:
    """Return what can be measured here, by name."""
    return {
        f"open/{name}#{number}": partial(run, name, number)
        for name, task in TASKS.items()
        if importlib.util.find_spec(task.module) is not None
        for number in range(2)
    }


class Row(NamedTuple):
    """One run."""

    status: str
    reached: bool
    certified: float | None
    value: float | None
    samples: int
    seconds: float
    """Of the processor."""
    clipped: int
    """Returns outside the range."""
    judged: int
    """Candidates, over all rungs."""
    fingerprint: str


def run(name: str, number: int, seed: int = SEED) -> dict[str, Any]:
    """One of two runs with a shared seed, on data of its own."""
    task, began = TASKS[name], time.process_time()
    found: Any = reprl.learn(
        f"gym:{task.env}",
        learner="search",
        target=task.target,
        shared_seed=seed,
        data_seed=int(DataStream(seed, f"open/{name}").integers(2)[number]) >> 1,
        max_samples=task.limit,
        **task.options,
    )
    spent = round(time.process_time() - began, 1)
    certified, value = (None if x is None else round(x, 2) for x in (found.certified_return, found.value))
    judged = sum(rung.tried for rung in found.details.ladder)
    told = found.guarantee.status, found.details.reached, certified, value, found.samples, spent, found.details.clipped
    return {"run": Row(*told, judged, found.policy.fingerprint[:12])}


def table(measured: dict[str, Any]) -> list[str]:
    """Return the lines of the table in Markdown; none where nothing is stored."""
    lines = []
    for name, task in TASKS.items():
        rows = [Row(*measured[key]["run"]) for key in (f"open/{name}#{k}" for k in range(2)) if key in measured]
        if not rows:
            continue
        status = " and ".join(
            sorted({row.status + ("" if row.certified is None else f", above {row.certified:g}") for row in rows})
        )
        same = "—" if len(rows) < 2 else "yes" if len({row.fingerprint for row in rows}) == 1 else "no"
        samples, seconds = (" and ".join(f"{row[k]:,.0f}" for row in rows) for k in (4, 5))
        lines.append(
            f"| {task.env} | {task.shown} | {task.target:g} | {sum(row.reached for row in rows)} of {len(rows)} "
            f"| {status} | {same} | {samples} | {seconds} |"
        )
    head = "environment", "policies", "target", "reached", "status", "pair equal", "samples", "processor seconds"
    return ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines] if lines else []

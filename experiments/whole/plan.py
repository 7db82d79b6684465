"""The plan as data: worlds, sizes, numbers of pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from reprl.mdp.labels import Labels
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make

EPSILON, RHO, DELTA = 0.5, 0.1, 0.1
SCALE = 0.05
"""Of the runs as a whole: a few seconds each."""
SLOPE_SCALE = 0.05
TIER_SCALE = 0.05
TIERS = 5
"""Least tiers of the run that shows them at work."""
BOOSTED_SCALE = 0.12
"""Of the learners whose boosting is measured by itself, from parallel samples."""
BOOSTING_SCALES = (0.05, 0.1, 0.2)
"""Of boosting's own sizes."""
BOOSTING_PAIRS = 400
SEED = 20261116
PAPER = {"mechanism": "exponential"}
"""The paper's own choice where the library offers another."""
CHUNK = 5


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is spent."""

    pairs: int
    """Pairs of whole runs on every world."""
    slope_pairs: int
    """Pairs of direct runs at every number of states."""
    tier_runs: int
    """Runs that show the tiers at work."""
    states: tuple[int, ...]
    """S of the slopes."""


FULL = Effort(pairs=40, slope_pairs=60, tier_runs=6, states=(2, 3, 4, 6, 8))
QUICK = Effort(pairs=1, slope_pairs=2, tier_runs=1, states=(2, 3))


def side_roads(horizon: int = 5, *, pins: int = 4, slip: float = 0.5) -> TabularMDP:
    """A combination lock with side roads: the right action opens the next pin with probability 1 − slip.

    Otherwise, and after a wrong action, the lock is left for one of two side roads, which go on and pay a little.
    No policy is at pin d with probability above (1 − slip)^d, so every pin is a tier of its own.
    """
    n = pins + 2
    transition, reward = np.zeros((n, 2, n)), np.zeros((n, 2))
    for pin in range(pins):
        right = pin % 2
        transition[pin, right, min(pin + 1, pins - 1)] += 1.0 - slip
        transition[pin, right, pins] += slip
        transition[pin, 1 - right, pins + 1] = 1.0
        reward[pin, right], reward[pin, 1 - right] = 0.8, 0.2
    for road in (pins, pins + 1):
        transition[road, :, road] = 1.0
        reward[road] = (0.45, 0.05) if road == pins else (0.05, 0.35)
    labels = Labels(
        states=(*(f"pin {i}" for i in range(pins)), "side road A", "side road B"),
        actions=("left", "right"),
        name="side-roads",
        description="a lock whose pins are ever harder to reach, with side roads",
    )
    return TabularMDP(transition, reward, 0, horizon, labels=labels)


Build = Callable[[], TabularMDP]
WORLDS: dict[str, Build] = {
    "random-mdp(4,2,3)": partial(make, "random-mdp-v0", 3, n_states=4, n_actions=2),
    "gridworld(4,4,3)": partial(make, "gridworld-v0", 3, size=2),
    "side-roads(6,2,4)": partial(side_roads, 4, slip=0.85),
    "hard-instance(4,2,3)": partial(make, "hard-instance-v0", 3, n_states=4, bias=0.08),
}
TIER_WORLDS: dict[str, Build] = {
    "side-roads(6,2,5)": partial(side_roads, 5, slip=0.8),
    "long chain: river-swim(5,2,5)": partial(make, "river-swim-v0", 5, n_states=5),
}
BOOSTING_WORLDS: dict[str, Build] = {
    "gridworld(4,4,2)": partial(make, "gridworld-v0", 2, size=2),
    "hard-instance(2,2,2)": partial(make, "hard-instance-v0", 2, n_states=2, bias=0.2),
}
GRADES = ("joint", "product")


@dataclass(frozen=True, kw_only=True)
class Theorem:
    """Theorem 4.13 at the paper's own constants, boosting included, on one world."""

    build: Build
    epsilon: float
    rho: float
    """And δ."""
    pairs: int


THEOREM = {
    "hard-instance(2,2,1), ρ = 0.4": Theorem(
        build=partial(make, "hard-instance-v0", 1, n_states=2, bias=0.1), epsilon=0.5, rho=0.4, pairs=20
    ),
    "hard-instance(2,2,1), ρ = 0.2": Theorem(
        build=partial(make, "hard-instance-v0", 1, n_states=2, bias=0.1), epsilon=0.5, rho=0.2, pairs=8
    ),
    "gridworld(4,4,2), ρ = 0.4": Theorem(build=partial(make, "gridworld-v0", 2, size=2), epsilon=0.5, rho=0.4, pairs=3),
}
"""ε may be any: parallel samples are drawn as counts. What takes time is the number of learners, k³/ρ²."""


def slope_world(n_states: int) -> TabularMDP:
    """The hard instance with so many states, H = 2."""
    return make("hard-instance-v0", 2, n_states=n_states, bias=0.15)

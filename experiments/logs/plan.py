"""The plan as data: which worlds, who made the logs, how long they are, how many pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make

RHO = 0.1
SEED = 20261115


class World(NamedTuple):
    """A world, and how sharply those who act in it follow the values of their actions."""

    build: Callable[[], TabularMDP]
    temperature: float


def clinic() -> TabularMDP:
    """The clinic of the tutorial: two drugs that work equally well."""
    better, worse, comfort = (0.2, 0.6, 0.6), (0.4, 0.1, 0.1), (1.0, 0.9, 0.9)
    transition = np.zeros((5, 3, 5))
    for s in range(5):
        for a in range(3):
            transition[s, a, max(s - 1, 0)] += better[a]
            transition[s, a, min(s + 1, 4)] += worse[a]
            transition[s, a, s] += 1 - better[a] - worse[a]
    return TabularMDP(transition, np.outer((1.0, 0.75, 0.5, 0.25, 0.0), comfort), initial=2, horizon=5)


WORLDS = {
    "clinic, H=5": World(clinic, 0.3),
    "gridworld 4×4, H=6": World(lambda: make("gridworld-v0", 6, size=4), 0.1),
    "maintenance, H=8": World(lambda: make("maintenance-v0", 8), 0.5),
    "random-mdp (10,3), H=4": World(lambda: make("random-mdp-v0", 4, n_states=10, n_actions=3), 0.3),
}
SIZES = {100_000: 20, 1_000_000: 10, 10_000_000: 2}
"""Transitions of a log, both halves together → pairs."""


def practice(mdp: TabularMDP, temperature: float) -> NDArray[np.float64]:
    """Return who made the log, (H, S, A): a softmax of Q*, each action with a habit of its own in each state."""
    values = mdp.solve().values
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    habit = np.random.default_rng(SEED).normal(0.0, 0.5, shape[1:])
    out = np.empty(shape)
    for h in range(mdp.horizon):
        score = (mdp.reward[h] + mdp.transition[h] @ values[h + 1]) / temperature + habit
        out[h] = np.exp(score - score.max(axis=1, keepdims=True))
    law: NDArray[np.float64] = out / out.sum(axis=2, keepdims=True)
    return law

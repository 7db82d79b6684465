"""A made-up clinic that keeps a log: a known world, so that what is learned from the log can be checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import reprl
from reprl.randomness import DataStream

STATES = ("well", "mild", "severe")
ACTIONS = ("wait", "drug A", "drug B", "surgery")
HORIZON = 3
BETTER, WORSE, PAID = (0.2, 0.7, 0.7, 0.9), (0.5, 0.1, 0.1, 0.05), (1.0, 0.8, 0.8, 0.4)
HABIT = (0.3, 0.4, 0.28, 0.02)
"""How often each treatment is given; surgery too seldom to count."""


def world() -> reprl.TabularMDP:
    """The clinic as an MDP."""
    transition = np.zeros((3, 4, 3))
    for s in range(3):
        for a in range(4):
            transition[s, a, max(s - 1, 0)] += BETTER[a]
            transition[s, a, min(s + 1, 2)] += WORSE[a]
            transition[s, a, s] += 1 - BETTER[a] - WORSE[a]
    reward = np.outer((1.0, 0.5, 0.0), PAID)
    return reprl.TabularMDP(transition, reward, initial=[0.1, 0.5, 0.4], horizon=HORIZON)


def make_log(episodes: int, seed: int, habit: tuple[float, ...] = HABIT) -> dict[str, NDArray[Any]]:
    """Rows of episodes, in order, drawn by a stream that is the same on every machine."""
    uniforms = DataStream(seed, "clinic log").uniforms(episodes * (3 * HORIZON + 1)).reshape(episodes, -1)
    mdp = world()
    state = np.searchsorted(np.cumsum(mdp.initial)[:-1], uniforms[:, 0])
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in ("state", "action", "reward", "next_state")}
    for h in range(HORIZON):
        action = np.searchsorted(np.cumsum(habit)[:-1], uniforms[:, 3 * h + 1])
        laws = np.cumsum(mdp.transition[h], axis=2)[state, action, :-1]
        following = (uniforms[:, 3 * h + 2, None] >= laws).sum(axis=1)
        paid = (uniforms[:, 3 * h + 3] < mdp.reward[h][state, action]).astype(float)
        for name, column in zip(columns, (state, action, paid, following), strict=True):
            columns[name].append(column)
        state = following
    flat = {name: np.stack(column, axis=1).ravel() for name, column in columns.items()}
    names, treatments = np.array(STATES), np.array(ACTIONS)
    return {
        "episode": np.repeat(np.arange(episodes), HORIZON),
        "step": np.tile(np.arange(HORIZON), episodes),
        "state": names[flat["state"]],
        "action": treatments[flat["action"]],
        "reward": flat["reward"],
        "next_state": names[flat["next_state"]],
    }

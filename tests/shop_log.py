"""A shop of two states whose people keep a log: a known world, so that what is learned from the log can be checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import reprl

HORIZON = 2
GOOD, BAD = 0.9, 0.15
"""How often the good action pays, and the other one."""
COIN = np.full((2, 2), 0.5)
"""The habit of people who take every action as often as the other."""


def shop(worse: float = BAD) -> reprl.TabularMDP:
    """Two states, in which other actions are good; the good one also tends to stay in the first state."""
    transition = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.9, 0.1]]])
    return reprl.TabularMDP(transition, np.array([[GOOD, worse], [worse, 0.8]]), [0.5, 0.5], HORIZON)


def make_log(mdp: reprl.TabularMDP, habit: NDArray[np.float64], episodes: int, seed: int) -> dict[str, Any]:
    """Episodes of people who take every action as often as habit, (S, A), says."""
    rng = np.random.default_rng(seed)
    state = rng.choice(mdp.n_states, episodes, p=mdp.initial)
    rows: dict[str, list[NDArray[Any]]] = {name: [] for name in ("state", "action", "reward", "next_state")}
    for h in range(mdp.horizon):
        action = (rng.random(episodes)[:, None] > np.cumsum(habit, axis=1)[state]).sum(axis=1)
        law = np.cumsum(mdp.transition[h], axis=2)[state, action]
        after = np.minimum((rng.random(episodes)[:, None] > law).sum(axis=1), mdp.n_states - 1)
        paid = (rng.random(episodes) < mdp.reward[h][state, action]).astype(float)
        for name, values in zip(rows, (state, action, paid, after), strict=True):
            rows[name].append(values)
        state = after
    flat = {name: np.stack(values, axis=1).ravel() for name, values in rows.items()}
    return {"episode": np.repeat(np.arange(episodes), mdp.horizon), **flat}

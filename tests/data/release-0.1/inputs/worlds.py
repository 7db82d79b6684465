"""Inputs of commands.json: a black box, a table with a mask, and a function that trains an agent."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import reprl


class Coin(gymnasium.Env[Any, Any]):
    """Two states that are drawn afresh at every step; action 1 pays more often."""

    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        following, paid = int(self.np_random.integers(2)), float(self.np_random.random() < 0.3 + 0.4 * action)
        return following, paid, False, False, {}


def coin() -> Coin:
    """A black box, made by a factory."""
    return Coin()


def masked() -> reprl.TabularMDP:
    """Three actions, of which not every one is allowed everywhere."""
    transition = np.array(
        [
            [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]],
            [[0.4, 0.6], [0.9, 0.1], [0.5, 0.5]],
        ]
    )
    reward = np.array([[0.1, 0.9, 0.5], [0.6, 0.2, 0.5]])
    allowed = np.array([[True, False, True], [True, True, False]])
    return reprl.TabularMDP(transition, reward, 0, 3, allowed=allowed)


def train(env: Any) -> Any:
    """An agent that is no table: it acts by what it saw in its first steps."""
    env.reset()
    paid = np.zeros(2)
    for step in range(10):
        action = step % 2
        _, reward, ended, cut, _ = env.step(action)
        paid[action] += reward
        if ended or cut:
            env.reset()
    best = int(paid.argmax())
    return lambda observation: best if int(observation) == 0 else 1

"""Lanes: episodes of a Gymnasium environment that are played side by side, each with a seed of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from reprl.errors import InputError, blame, quote

Floats = np.ndarray[Any, np.dtype[np.float64]]
Encode = Callable[[Any], Any]
"""From an observation to a flat row of numbers."""


class Lanes(Protocol):
    """Some copies of one environment."""

    width: int
    seen: Floats
    """(width, d): the last observation of each lane."""

    def start(self, lanes: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin an episode in some lanes."""

    def step(self, lanes: Sequence[int], actions: Any) -> tuple[Floats, Any]:
        """Take an action in each of some lanes; return the rewards, and which episodes have ended."""

    def close(self) -> None:
        """Release what the environments hold."""


class EnvLanes:
    """Environments that are stepped one after the other."""

    def __init__(self, envs: Sequence[Any], encode: Encode, size: int) -> None:
        """Take open environments; encode turns an observation into `size` numbers."""
        self.width, self._envs, self._encode = len(envs), list(envs), encode
        self.seen = np.zeros((self.width, size))

    def start(self, lanes: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin an episode in some lanes."""
        for lane, seed in zip(lanes, seeds, strict=True):
            env = self._envs[lane]
            try:
                observation, _ = env.reset(seed=int(seed))
            except (Exception, SystemExit) as error:
                blame(error, f"in reset of {env}")
            self._see(lane, observation)

    def step(self, lanes: Sequence[int], actions: Any) -> tuple[Floats, Any]:
        """Take an action in each of some lanes."""
        rewards, ended = np.empty(len(lanes)), np.empty(len(lanes), dtype=np.bool_)
        for i, lane in enumerate(lanes):
            env, action = self._envs[lane], actions[i]
            try:
                observation, paid, terminated, truncated, _ = env.step(action)
                rewards[i] = paid
            except (Exception, SystemExit) as error:
                blame(error, f"in step of {env}")
            ended[i] = terminated or truncated
            self._see(lane, observation)
        return rewards, ended

    def _see(self, lane: int, observation: Any) -> None:
        row = self._encode(observation)
        if np.shape(row) != self.seen.shape[1:]:
            size = self.seen.shape[1]
            raise InputError(
                f"observation must always have {size} numbers, as its space says, got {quote(observation)}"
            )
        self.seen[lane] = row

    def close(self) -> None:
        """Close the environments."""
        for env in self._envs:
            env.close()


class VectorLanes:
    """The lanes of a gymnasium.vector.VectorEnv that starts a lane when it is told to, with that lane's own seed."""

    def __init__(self, env: Any, size: int) -> None:
        """Take an open vector environment whose autoreset mode is DISABLED."""
        from gymnasium.vector import AutoresetMode

        mode = env.metadata.get("autoreset_mode")
        if mode != AutoresetMode.DISABLED:
            raise InputError(
                f"autoreset_mode of a vector environment must be DISABLED, so that episodes have seeds, got {mode}"
            )
        self.width, self._env = int(env.num_envs), env
        self.seen = np.zeros((self.width, size))
        self._ended = np.ones(self.width, dtype=np.bool_)
        self._begun = False
        self._idle = np.zeros_like(np.asarray(env.action_space.sample()))

    def start(self, lanes: Sequence[int], seeds: Sequence[int]) -> None:
        """Begin an episode in some lanes; the first time in all, which nobody watches in the others."""
        mask = np.zeros(self.width, dtype=np.bool_)
        mask[np.asarray(lanes)] = True
        given: list[int | None] = [None] * self.width
        for lane, seed in zip(lanes, seeds, strict=True):
            given[lane] = int(seed)
        options = None
        if self._begun:
            options = {"reset_mask": mask}
        else:
            given = [0 if seed is None else seed for seed in given]
        observations, _ = self._env.reset(seed=given, options=options)
        self._begun = True
        self._ended[mask] = False
        self.seen[mask] = np.asarray(observations, dtype=np.float64).reshape(self.width, -1)[mask]

    def step(self, lanes: Sequence[int], actions: Any) -> tuple[Floats, Any]:
        """Take an action in each of some lanes; the others are started anew where they have ended, and not watched."""
        where = np.asarray(lanes)
        idle = self._ended.copy()
        idle[where] = False
        if idle.any():
            self._env.reset(seed=[0] * self.width, options={"reset_mask": idle})
            self._ended[idle] = False
        given = self._idle.copy()
        given[where] = actions
        observations, rewards, terminated, truncated, _ = self._env.step(given)
        self._ended |= terminated | truncated
        self.seen[where] = np.asarray(observations, dtype=np.float64).reshape(self.width, -1)[where]
        return np.asarray(rewards, dtype=np.float64)[where], (terminated | truncated)[where]

    def close(self) -> None:
        """Close the environments."""
        self._env.close()

"""Classic control, compiled: the dynamics of Gymnasium's environments for many episodes at once.

The same starts from the same seeds and the same equations; tests/test_search_experiment.py plays both side by side.
Through Gymnasium's own environments a measurement would take a hundred times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from reprl.kernels import njit
from reprl.search.families import NetworkAct
from reprl.search.heads import Pick
from reprl.search.networks import Linear
from reprl.sources.returns import ReturnModel


@njit(cache=True)
def _cartpole(state: Any, actions: Any, seen: Any, paid: Any, over: Any) -> None:
    limit = 12 * 2 * math.pi / 360
    for i in range(len(state)):
        x, x_dot, theta, theta_dot = state[i, 0], state[i, 1], state[i, 2], state[i, 3]
        force = 10.0 if actions[i, 0] == 1.0 else -10.0
        cos, sin = math.cos(theta), math.sin(theta)
        temp = (force + 0.05 * (theta_dot * theta_dot) * sin) / 1.1
        acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * (cos * cos) / 1.1))
        x_acc = temp - 0.05 * acc * cos / 1.1
        x, x_dot = x + 0.02 * x_dot, x_dot + 0.02 * x_acc
        theta, theta_dot = theta + 0.02 * theta_dot, theta_dot + 0.02 * acc
        state[i, 0], state[i, 1], state[i, 2], state[i, 3] = x, x_dot, theta, theta_dot
        over[i] = x < -2.4 or x > 2.4 or theta < -limit or theta > limit
        paid[i] = 1.0
        for k in range(4):
            seen[i, k] = state[i, k]


@njit(cache=True)
def _mountain_car(state: Any, actions: Any, seen: Any, paid: Any, over: Any) -> None:
    for i in range(len(state)):
        velocity = state[i, 1] + ((actions[i, 0] - 1) * 0.001 + math.cos(3 * state[i, 0]) * (-0.0025))
        velocity = min(max(velocity, -0.07), 0.07)
        position = min(max(state[i, 0] + velocity, -1.2), 0.6)
        if position == -1.2 and velocity < 0:
            velocity = 0.0
        state[i, 0], state[i, 1] = position, velocity
        over[i] = position >= 0.5 and velocity >= 0.0
        paid[i] = -1.0
        seen[i, 0], seen[i, 1] = position, velocity


@njit(cache=True)
def _slope(s: Any, torque: float, out: Any) -> None:
    d1 = 0.25 + (1.0 + 0.25 + math.cos(s[1])) + 1.0 + 1.0
    d2 = (0.25 + 0.5 * math.cos(s[1])) + 1.0
    phi2 = 0.5 * 9.8 * math.cos(s[0] + s[1] - math.pi / 2.0)
    phi1 = (
        -0.5 * s[3] ** 2 * math.sin(s[1])
        - 2 * 0.5 * s[3] * s[2] * math.sin(s[1])
        + 1.5 * 9.8 * math.cos(s[0] - math.pi / 2)
        + phi2
    )
    second = (torque + d2 / d1 * phi1 - 0.5 * s[2] ** 2 * math.sin(s[1]) - phi2) / (0.25 + 1.0 - d2**2 / d1)
    out[0], out[1], out[2], out[3] = s[2], s[3], -(d2 * second + phi1) / d1, second


@njit(cache=True)
def _acrobot(state: Any, actions: Any, seen: Any, paid: Any, over: Any) -> None:
    k = np.empty((4, 4))
    for i in range(len(state)):
        s, torque = state[i], actions[i, 0] - 1.0
        _slope(s, torque, k[0])
        _slope(s + 0.1 * k[0], torque, k[1])
        _slope(s + 0.1 * k[1], torque, k[2])
        _slope(s + 0.2 * k[2], torque, k[3])
        for m in range(4):
            s[m] += 0.2 / 6.0 * (k[0, m] + 2 * k[1, m] + 2 * k[2, m] + k[3, m])
        for m in range(2):
            while s[m] > math.pi:
                s[m] -= 2 * math.pi
            while s[m] < -math.pi:
                s[m] += 2 * math.pi
        s[2] = min(max(s[2], -4 * math.pi), 4 * math.pi)
        s[3] = min(max(s[3], -9 * math.pi), 9 * math.pi)
        over[i] = -math.cos(s[0]) - math.cos(s[1] + s[0]) > 1.0
        paid[i] = 0.0 if over[i] else -1.0
        seen[i, 0], seen[i, 1] = math.cos(s[0]), math.sin(s[0])
        seen[i, 2], seen[i, 3] = math.cos(s[1]), math.sin(s[1])
        seen[i, 4], seen[i, 5] = s[2], s[3]


@njit(cache=True)
def _pendulum(state: Any, actions: Any, seen: Any, paid: Any, over: Any) -> None:
    for i in range(len(state)):
        angle, speed = state[i, 0], state[i, 1]
        u = min(max(actions[i, 0], -2.0), 2.0)
        near = ((angle + math.pi) % (2 * math.pi)) - math.pi
        paid[i] = -(near**2 + 0.1 * speed**2 + 0.001 * u**2)
        speed = min(max(speed + (15.0 * math.sin(angle) + 3.0 * u) * 0.05, -8.0), 8.0)
        angle = angle + speed * 0.05
        state[i, 0], state[i, 1] = angle, speed
        over[i] = False
        seen[i, 0], seen[i, 1], seen[i, 2] = math.cos(angle), math.sin(angle), speed


_STEPS: dict[str, Callable[..., None]] = {
    "CartPole-v1": _cartpole,
    "MountainCar-v0": _mountain_car,
    "Acrobot-v1": _acrobot,
    "Pendulum-v1": _pendulum,
}


@lru_cache(maxsize=4096)
def _start(name: str, seed: int) -> tuple[Any, Any]:
    """The state and the observation that Gymnasium's environment starts with."""
    draw = np.random.Generator(np.random.PCG64(seed))
    if name == "CartPole-v1":
        state = draw.uniform(low=-0.05, high=0.05, size=(4,))
        return state, state
    if name == "MountainCar-v0":
        state = np.array([draw.uniform(low=-0.6, high=-0.4), 0.0])
        return state, state
    if name == "Acrobot-v1":
        state = draw.uniform(low=-0.1, high=0.1, size=(4,)).astype(np.float32)
        seen = [math.cos(state[0]), math.sin(state[0]), math.cos(state[1]), math.sin(state[1]), state[2], state[3]]
        return state, np.array(seen)
    high = np.array([math.pi, 1.0])
    state = draw.uniform(low=-high, high=high)
    return state, np.array([math.cos(state[0]), math.sin(state[0]), state[1]])


class Classic(VectorEnv[Any, Any, Any]):
    """One of the four environments, compiled, with a seed of its own for every episode.

    Args:
        name: its id in Gymnasium.
        width: episodes at once.
    """

    def __init__(self, name: str, width: int = 64) -> None:
        """Take the spaces and the time limit of Gymnasium's own environment."""
        self.metadata = {"autoreset_mode": AutoresetMode.DISABLED}
        own = gymnasium.make(name)
        self.spec, self.num_envs = own.spec, width
        assert own.spec is not None
        assert own.spec.max_episode_steps is not None
        self._limit = own.spec.max_episode_steps
        self.single_observation_space, self.single_action_space = own.observation_space, own.action_space
        self.observation_space = batch_space(own.observation_space, width)
        self.action_space = batch_space(own.action_space, width)
        self._name, self._step, (size,) = name, _STEPS[name], own.observation_space.shape or ()
        self._state = np.zeros((width, 2 if name in ("MountainCar-v0", "Pendulum-v1") else 4))
        self._seen = np.zeros((width, size), dtype=np.float32)
        self._steps = np.zeros(width, dtype=np.int64)

    @property
    def unwrapped(self) -> Any:
        """Itself."""
        return self

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start the lanes of the mask, or all, each with its own seed."""
        mask = np.ones(self.num_envs, dtype=bool) if options is None else options["reset_mask"]
        for lane in np.flatnonzero(mask):
            self._state[lane], self._seen[lane] = _start(self._name, seed[lane])
            self._steps[lane] = 0
        return self._seen.copy(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step all lanes."""
        paid, over = np.empty(self.num_envs), np.empty(self.num_envs, dtype=np.bool_)
        self._step(self._state, np.asarray(actions, dtype=np.float64).reshape(-1, 1), self._seen, paid, over)
        self._steps += 1
        return self._seen, paid, over, self._steps >= self._limit, {}


@njit(cache=False)
def _episodes(
    step: Any, state: Any, first: Any, rows: Any, weights: Any, shape: Any, horizon: int, found: Any, steps: Any
) -> None:
    """Play one episode after the other; shape is (offset, scale, quadratic, actions, low, high)."""
    offset, scale, quadratic, n_actions, low, high = shape
    d = first.shape[1]
    x, seen = np.empty(d), np.empty((1, d), dtype=np.float32)
    paid, over, action = np.empty(1), np.empty(1, dtype=np.bool_), np.zeros((1, 1))
    for i in range(len(rows)):
        w, now = weights[rows[i]], state[i : i + 1]
        for k in range(d):
            seen[0, k] = first[i, k]
        total = 0.0
        for t in range(horizon):
            for k in range(d):
                x[k] = (np.float64(seen[0, k]) - offset[k]) / scale[k]
            best, most = 0, -np.inf
            for a in range(w.shape[0]):
                score = w[a, d]
                for k in range(d):
                    score += w[a, k] * x[k]
                if quadratic:
                    place = d + 1
                    for k in range(d):
                        for m in range(k, d):
                            score += w[a, place] * (x[k] * x[m])
                            place += 1
                if score > most:
                    best, most = a, score
            action[0, 0] = best
            if n_actions == 0:
                middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
                action[0, 0] = np.float32(min(max(middle + half * most, low), high))
            step(now, action, seen, paid, over)
            total += paid[0]
            if over[0]:
                steps[i] = t + 1
                break
            steps[i] = t + 1
        found[i] = total


class ClassicModel(ReturnModel):
    """The same as a source of returns that plays whole episodes in a kernel, where the policy is linear."""

    def __init__(self, name: str, data_seed: int) -> None:
        """Take an environment by its id in Gymnasium."""
        super().__init__(lambda: Classic(name), data_seed=data_seed)
        self._name = name

    def play(self, act: Any, rows: Any, words: Any, after_episode: Any = None) -> Any:
        """Play an episode for every seed and return what each earned."""
        act = getattr(act, "__self__", act)
        if not isinstance(act, NetworkAct) or not isinstance(act.network, Linear):
            return super().play(act, rows, words, after_episode)
        starts = [_start(self._name, word) for word in words]
        state = np.array([np.asarray(one[0], dtype=np.float64) for one in starts])
        first = np.array([np.asarray(one[1], dtype=np.float32) for one in starts])
        finite = isinstance(act.head, Pick)
        ends = (0.0, 0.0) if isinstance(act.head, Pick) else (act.head.low[0], act.head.high[0])
        n = act.head.scores
        weights = act.weights.reshape(len(act.weights), n, -1)
        shape = (act.offset, act.scale, act.network.quadratic, n if finite else 0, *ends)
        found, steps = np.empty(len(words)), np.zeros(len(words), dtype=np.int64)
        _episodes(_STEPS[self._name], state, first, np.asarray(rows), weights, shape, self.horizon, found, steps)
        self.ledger.episodes += len(words)
        self.ledger.samples += int(steps.sum())
        return found

"""Quiet MDPs: nearly deterministic, with a rare event that decides. Each also as a black box and as logs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import reprl
from reprl import TabularMDP

Array = NDArray[np.float64]


def two_arms(gap: float = 0.1, chance: float = 0.02) -> TabularMDP:
    """Two arms without noise, but that the first seldom leads to a state that pays 0.6 once."""
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2))
    transition[:, :, 2] = 1.0
    transition[0, 0] = 0.0, chance, 1.0 - chance
    reward[0], reward[1] = (0.4, 0.4 + gap), 0.6
    return TabularMDP(transition, reward, 0, 2, "deterministic")


def quiet_gridworld(slip: float = 0.002) -> TabularMDP:
    """The catalogue's gridworld, in which a move hardly ever slips."""
    found: TabularMDP = reprl.make("gridworld-v0", horizon=6, slip=slip)
    return found


def hidden_door(chance: float = 0.03, horizon: int = 60) -> TabularMDP:
    """The first arm pays 1 once, the second nothing, but seldom leads to a state that pays 1 to the end."""
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2))
    transition[0, 0, 2] = transition[1, :, 1] = transition[2, :, 2] = 1.0
    transition[0, 1] = 0.0, chance, 1.0 - chance
    reward[0, 0], reward[1] = 1.0, 1.0
    return TabularMDP(transition, reward, 0, horizon, "deterministic")


def slow_door(chance: float = 0.03, horizon: int = 8) -> TabularMDP:
    """The second action costs 0.05 and may be repeated; seldom it leads to a state that pays 1 to the end."""
    transition, reward = np.zeros((2, 2, 2)), np.zeros((2, 2))
    transition[0, 0, 0] = transition[1, :, 1] = 1.0
    transition[0, 1] = 1.0 - chance, chance
    reward[0], reward[1] = (0.1, 0.05), 1.0
    return TabularMDP(transition, reward, 0, horizon, "deterministic")


def unseen_reward(chance: float = 0.01, horizon: int = 40) -> TabularMDP:
    """One state; the second action seldom pays 1, and nothing else pays."""
    return TabularMDP(np.ones((1, 2, 1)), [[0.0, chance]], 0, horizon)


def rare_start(chance: float = 0.035) -> TabularMDP:
    """A start that is seldom drawn, where the second action is far better; elsewhere it is a little better."""
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2))
    transition[:, :, 2] = 1.0
    reward[:] = (0.5, 0.6), (0.2, 0.9), (0.5, 0.5)
    return TabularMDP(transition, reward, [1.0 - chance, chance, 0.0], 2, "deterministic")


def no_gain(noise: bool = True) -> TabularMDP:
    """The first action is the best everywhere, by 0.02: the baseline cannot be improved on."""
    transition = np.full((4, 3, 4), 0.25) if noise else np.repeat(np.eye(4)[[1, 2, 3, 0]][:, None], 3, axis=1)
    reward = np.repeat([[0.5, 0.48, 0.48]], 4, axis=0)
    return TabularMDP(transition, reward, 0, 4, "bernoulli" if noise else "deterministic")


def little_gain(gain: float = 0.004) -> TabularMDP:
    """The second action is a little better than the first in one of four states, the others are alike or worse."""
    reward = np.repeat([[0.5, 0.5, 0.45]], 4, axis=0)
    reward[2, 1] += gain
    return TabularMDP(np.full((4, 3, 4), 0.25), reward, 0, 4, "deterministic")


def at_the_limit() -> TabularMDP:
    """Four certain choices, one of which is worth exactly a tenth of the gain, and a rare event that moves the gain."""
    transition, reward = np.zeros((6, 3, 6)), np.zeros((6, 3))
    transition[:, :, 5] = 1.0
    for s in range(4):
        transition[s] = np.eye(6)[s + 1]
    transition[0, 1:, 1], transition[0, 1:, 4] = 0.98, 0.02
    reward[:4] = (0.0, 0.3, 0.3), (0.0, 0.3, 0.3), (0.0, 0.21, 0.3), (0.0, 0.0, 0.0)
    return TabularMDP(transition, reward, 0, 4, "deterministic")


def late_change(chance: float = 0.02, horizon: int = 8) -> TabularMDP:
    """All steps are alike but one, at which the first action seldom loses everything."""
    transition = np.zeros((horizon, 3, 2, 3))
    transition[:, 0, :, 0] = transition[:, 1, :, 1] = transition[:, 2, :, 2] = 1.0
    transition[horizon // 2, 0, 0] = 1.0 - chance, chance, 0.0
    reward = np.broadcast_to([[0.5, 0.48], [0.0, 0.0], [0.5, 0.5]], (horizon, 3, 2))
    return TabularMDP(transition, reward, 0, None, "deterministic")


def with_idle(mdp: TabularMDP) -> TabularMDP:
    """Return an MDP with one more action before the others, which ends everything and pays nothing.

    So the gain over always the first action is V*, and what a quality of 0.9 leaves open is a tenth of V*.
    """
    n_states, n_actions = mdp.n_states, mdp.n_actions
    transition = np.zeros((n_states + 1, n_actions + 1, n_states + 1))
    reward = np.zeros((n_states + 1, n_actions + 1))
    transition[:, 0, -1] = transition[-1, :, -1] = 1.0
    transition[:-1, 1:, :-1], reward[:-1, 1:] = mdp.transition[0], mdp.reward[0]
    return TabularMDP(transition, reward, np.append(mdp.initial, 0.0), mdp.horizon, mdp.reward_kind)


def random_quiet(seed: int) -> TabularMDP:
    """Return a random quiet MDP: every move succeeds and every pay is fixed, but for a few rare events.

    Rare are outcomes, starts, a door to a state that pays to the end, or rewards; each at random, at least one. Half of
    these MDPs have an idle first action.
    """
    rng = np.random.default_rng([411, seed])
    n_states, n_actions, horizon = (int(rng.integers(low, high)) for low, high in ((3, 9), (2, 4), (2, 13)))
    tossed = rng.random(4) < 0.5
    tossed[rng.integers(4)] = True
    outcomes, start, door, coins = tossed
    n = n_states + 1  # the last state lies behind the door
    transition = np.eye(n)[rng.integers(n_states, size=(n, n_actions))]
    transition[-1] = np.eye(n)[-1]
    gaps = rng.choice((0.0, 0.01, 0.03, 0.1, 0.3), (n, n_actions))
    reward = np.maximum(0.0, rng.choice((0.2, 0.4, 0.6), (n, 1)) - gaps)
    reward[-1] = 1.0
    for cell in _cells(rng, n_states, n_actions, 3 if outcomes else 0):
        _mix(transition, cell, int(rng.integers(n_states)), _rare(rng))
    if door:
        (cell,) = _cells(rng, n_states, n_actions, 1)
        reward[cell] *= 0.5
        _mix(transition, cell, n_states, _rare(rng))
    if coins:
        reward = np.where(reward >= 0.59, 1.0, 0.0)
        for cell in _cells(rng, n_states, n_actions, 2):
            reward[cell] = _rare(rng)
    initial = np.eye(n)[0]
    if start:
        initial[0], initial[1] = (1.0 - (chance := _rare(rng))), chance
    mdp = TabularMDP(transition, reward, initial, horizon, "bernoulli" if coins else "deterministic")
    return with_idle(mdp) if rng.random() < 0.5 else mdp


def _rare(rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(np.log(0.002), np.log(0.05))))


def _cells(rng: np.random.Generator, n_states: int, n_actions: int, number: int) -> list[tuple[int, int]]:
    drawn = rng.choice(n_states * n_actions, number, replace=False)
    return [(int(cell) // n_actions, int(cell) % n_actions) for cell in drawn]


def _mix(transition: Array, cell: tuple[int, int], state: int, chance: float) -> None:
    transition[cell] *= 1.0 - chance
    transition[(*cell, state)] += chance


NAMED: dict[str, Callable[[], TabularMDP]] = {
    "two arms": two_arms,
    "quiet gridworld": quiet_gridworld,
    "hidden door": hidden_door,
    "slow door": slow_door,
    "unseen reward": unseen_reward,
    "rare start": rare_start,
    "two arms, rarer": partial(two_arms, 0.2, 0.01),
    "rare start, rarer": partial(rare_start, 0.01),
    "no gain": no_gain,
    "no gain, quiet": partial(no_gain, False),
    "little gain": little_gain,
    "at the limit": at_the_limit,
    "two arms, idle": lambda: with_idle(two_arms(0.03)),
    "hidden door, idle": lambda: with_idle(hidden_door()),
    "rare start, idle": lambda: with_idle(rare_start()),
}


def two_doors(chance: float = 0.03, horizon: int = 60) -> TabularMDP:
    """A rare event leads to a room in which another one leads to all the pay; the sure way pays 0.02 a step."""
    transition, reward = np.zeros((3, 2, 3)), np.zeros((3, 2))
    transition[0, 0, 0] = transition[1, 0, 1] = transition[2, :, 2] = 1.0
    transition[0, 1], transition[1, 1] = (1.0 - chance, chance, 0.0), (0.0, 1.0 - chance, chance)
    reward[:, 0], reward[2] = 0.02, 1.0
    return TabularMDP(transition, reward, 0, horizon, "deterministic")


def crowd(number: int = 60, mass: float = 0.3) -> TabularMDP:
    """Many rare states, each of which hides another best action: together they are met in three episodes of ten."""
    rng = np.random.default_rng(611)
    n = number + 2
    transition, reward = np.zeros((n, 4, n)), np.zeros((n, 4))
    transition[:, :, -1] = 1.0
    transition[0, :, -1], transition[0, :, 1:-1] = 1.0 - mass, mass / number
    reward[1:-1] = 0.1
    reward[1 + np.arange(number), rng.integers(1, 4, number)] = 1.0
    return TabularMDP(transition, reward, 0, 2, "deterministic")


def clock(horizon: int = 9) -> TabularMDP:
    """What is best changes halfway, and one policy for all steps loses about as much as is allowed."""
    transition, reward = np.zeros((3, 3, 3)), np.zeros((3, 3))
    transition[0, 0, 0] = transition[0, 1, 0] = transition[1, :, 1] = transition[2, :, 2] = 1.0
    transition[0, 2] = 0.8, 0.2, 0.0
    reward[0], reward[1] = (0.45, 0.5, 0.3), 0.8
    return TabularMDP(transition, reward, 0, horizon, "deterministic")


NASTY: dict[str, Callable[[], TabularMDP]] = {"two doors": two_doors, "crowd": crowd, "clock": clock}
"""Made against the rule after it had been fixed."""

CHANGING: dict[str, Callable[[], TabularMDP]] = {"late change": late_change}
"""Black boxes whose steps are not quite alike."""


def drawn(first: int, number: int) -> dict[str, Callable[[], TabularMDP]]:
    """Return random quiet MDPs by their seeds."""
    return {f"random {seed}": partial(random_quiet, seed) for seed in range(first, first + number)}


class Box(gymnasium.Env[Any, Any]):
    """An MDP as a Gymnasium environment that publishes nothing; rewards lie in [0, 1]."""

    def __init__(self, mdp: TabularMDP) -> None:
        self.observation_space, self.action_space = spaces.Discrete(mdp.n_states), spaces.Discrete(mdp.n_actions)
        self._initial, self._next = np.cumsum(mdp.initial), np.cumsum(mdp.transition, axis=3)
        self._reward, self._coins, self._at = np.array(mdp.reward), mdp.reward_kind == "bernoulli", (0, 0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._at = 0, self._draw(self._initial)
        return self._at[1], {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        cell = (*self._at, int(action))
        paid = float(self._reward[cell])
        paid = float(self.np_random.random() < paid) if self._coins else paid
        self._at = self._at[0] + 1, self._draw(self._next[cell])
        return self._at[1], paid, False, False, {}

    def _draw(self, law: Array) -> int:
        return int(np.searchsorted(law, self.np_random.random() * law[-1], side="right"))


def make_log(mdp: TabularMDP, episodes: int, seed: int) -> dict[str, NDArray[Any]]:
    """Return a log of a behaviour that takes every action alike often."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in ("state", "action", "reward", "next_state")}
    state = _draw_rows(mdp.initial[None], np.zeros(episodes, dtype=np.int64), rng)
    for h in range(mdp.horizon):
        action = rng.integers(mdp.n_actions, size=episodes)
        paid = mdp.reward[h][state, action]
        paid = (rng.random(episodes) < paid).astype(float) if mdp.reward_kind == "bernoulli" else paid
        following = _draw_rows(mdp.transition[h].reshape(-1, mdp.n_states), state * mdp.n_actions + action, rng)
        for name, column in zip(columns, (state, action, paid, following), strict=True):
            columns[name].append(column)
        state = following
    log = {name: np.stack(found, axis=1).ravel() for name, found in columns.items()}
    return {"episode": np.repeat(np.arange(episodes), mdp.horizon), **log}


def uniform_value(mdp: TabularMDP) -> float:
    """Return what that behaviour earns."""
    value = np.zeros(mdp.n_states)
    for h in reversed(range(mdp.horizon)):
        value = (mdp.reward[h] + mdp.transition[h] @ value).mean(axis=1)
    return float(mdp.initial @ value)


def _draw_rows(laws: Array, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw from laws, (n, S), one for each row."""
    cumulated = np.cumsum(laws, axis=1)
    cumulated /= cumulated[:, -1:]
    below: NDArray[np.int64] = (rng.random(rows.size)[:, None] >= cumulated[rows]).sum(axis=1)
    return below

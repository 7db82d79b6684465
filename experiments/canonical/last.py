"""Worlds of other kinds, made after everything that is measured on them had been fixed, and measured once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from experiments.canonical.worlds import EPSILON, own_random, uniform_walk
from reprl.mdp.tabular import TabularMDP

SEED = 51_770_926


def ladder(n_states: int = 8, n_actions: int = 24, horizon: int = 3) -> TabularMDP:
    """A uniform walk whose arms stand on a ladder from 0 to 2ε/H, so that there is a gap near any tolerance."""
    rng, gap = own_random("ladder", SEED), 2.0 * EPSILON / horizon * np.linspace(0.0, 1.0, n_actions)
    reward = 0.8 - np.stack([rng.permutation(gap) for _ in range(n_states)])
    return TabularMDP(uniform_walk(n_states, n_actions), reward, 0, horizon)


def tree(depth: int = 6) -> TabularMDP:
    """A binary tree with leaves that pay by coins of nearly one bias: all the way down nearly a tie."""
    rng, inner = own_random("tree", SEED), 2**depth - 1
    n = 2 ** (depth + 1) - 1
    kernel, reward = np.zeros((n, 2, n)), np.zeros((n, 2))
    for s in range(inner):
        kernel[s, 0, 2 * s + 1] = kernel[s, 1, 2 * s + 2] = 1.0
    for s in range(inner, n):
        kernel[s, :, s] = 1.0
        reward[s] = 0.5 + 0.15 * rng.uniform(-1.0, 1.0)
    return TabularMDP(kernel, reward, 0, depth + 1)


def maze(size: int = 5, horizon: int = 15, slip: float = 0.3) -> TabularMDP:
    """A maze with walls and slippery ground, every room with a wage of its own."""
    rng, n = own_random("maze", SEED), size * size
    wall = rng.random((n, 4)) < 0.2
    kernel = np.zeros((n, 4, n))
    for s, a in np.ndindex(n, 4):
        for turn, chance in ((0, 1.0 - slip), (1, slip / 2), (3, slip / 2)):
            move = (a + turn) % 4
            row, column = divmod(s, size)
            row += (0, 1, 0, -1)[move]
            column += (1, 0, -1, 0)[move]
            out = wall[s, move] or not (0 <= row < size and 0 <= column < size)
            kernel[s, a, s if out else row * size + column] += chance
    wage = rng.uniform(0.0, 1.0, (n, 1))
    return TabularMDP(kernel, np.repeat(wage * wage, 4, axis=1), 0, horizon)


def corridors(number: int = 10, length: int = 5) -> TabularMDP:
    """Ten corridors to choose from at the start, each worth the same up to a tenth of ε."""
    rng = own_random("corridors", SEED)
    n = 1 + number * length
    kernel, reward = np.zeros((n, number, n)), np.zeros((n, number))
    for i in range(number):
        first = 1 + i * length
        kernel[0, i, first] = 1.0
        for k in range(length):
            kernel[first + k, :, first + min(k + 1, length - 1)] = 1.0
        worth = rng.dirichlet(np.ones(length)) * (1.5 + 0.1 * EPSILON * rng.uniform(-1.0, 1.0))
        reward[first : first + length] = np.minimum(worth, 1.0)[:, None]
    return TabularMDP(kernel, reward, 0, length + 1)


def twins(n_states: int = 8, n_actions: int = 3, horizon: int = 5) -> TabularMDP:
    """A random world and its twin, whose laws are a little off; the first action says which of them is entered."""
    rng = own_random("twins", SEED)
    half = rng.dirichlet(np.full(n_states, 0.7), (n_states, n_actions))
    other = 0.99 * half + 0.01 * rng.dirichlet(np.full(n_states, 0.7), (n_states, n_actions))
    pay = rng.uniform(0.0, 1.0, (n_states, n_actions))
    n = 2 * n_states + 1
    kernel, reward = np.zeros((n, n_actions, n)), np.zeros((n, n_actions))
    for k, law in enumerate((half, other)):
        part = slice(1 + k * n_states, 1 + (k + 1) * n_states)
        kernel[part, :, part], reward[part] = law, pay
    kernel[0, :, 1] = 1.0
    kernel[0, 1] = np.eye(n)[1 + n_states]
    return TabularMDP(kernel, reward, 0, horizon)


def casino(n_states: int = 6, n_actions: int = 4) -> TabularMDP:
    """Machines that hardly ever pay, one of them a little more often."""
    rng = own_random("casino", SEED)
    kernel = rng.dirichlet(np.ones(n_states), (n_states, n_actions))
    share = rng.uniform(0.0, 1.0, (n_states, n_actions))
    reward = 0.01 + 0.02 * share * share * share  # no power, whose last bit depends on the machine
    return TabularMDP(kernel, reward, 0, 3)


def periodic(n_states: int = 8, n_actions: int = 3, horizon: int = 8) -> TabularMDP:
    """Two laws in turn, by even and odd steps."""
    rng = own_random("periodic", SEED)
    laws = rng.dirichlet(np.full(n_states, 0.5), (2, n_states, n_actions))
    pays = rng.uniform(0.0, 1.0, (2, n_states, n_actions))
    steps = np.arange(horizon) % 2
    return TabularMDP(laws[steps], pays[steps], 0)


def crescendo(n_states: int = 10, n_actions: int = 3, horizon: int = 6) -> TabularMDP:
    """Pay that grows with the step, under one law."""
    rng = own_random("crescendo", SEED)
    law = rng.dirichlet(np.full(n_states, 0.5), (n_states, n_actions))
    pay = rng.uniform(0.0, 1.0, (n_states, n_actions))
    grown = pay[None] * ((1.0 + np.arange(horizon)) / horizon)[:, None, None]
    return TabularMDP(np.broadcast_to(law, (horizon, *law.shape)).copy(), grown, 0)


def traps(n_states: int = 10, horizon: int = 25) -> TabularMDP:
    """Three ways on that pay the more, the more often they lead into a trap for good."""
    rng = own_random("traps", SEED)
    n, risk = n_states + 1, np.array((0.002, 0.01, 0.03))
    kernel, reward = np.zeros((n, 3, n)), np.zeros((n, 3))
    law = rng.dirichlet(np.ones(n_states), (n_states, 3))
    kernel[:n_states, :, :n_states] = law * (1.0 - risk)[:, None]
    kernel[:n_states, :, -1] = risk
    kernel[-1, :, -1] = 1.0
    reward[:n_states] = 0.4 + np.array((0.0, 0.05, 0.15)) + rng.uniform(-0.05, 0.05, (n_states, 3))
    return TabularMDP(kernel, reward, 0, horizon)


def two_queues(room: int = 4, horizon: int = 10) -> TabularMDP:
    """One server and two queues; what waits costs, the second queue more."""
    n = (room + 1) ** 2
    kernel, reward = np.zeros((n, 2, n)), np.zeros((n, 2))
    for s, a in np.ndindex(n, 2):
        waiting = list(divmod(s, room + 1))
        reward[s, a] = 1.0 - (waiting[0] + 1.5 * waiting[1]) / (2.5 * room)
        for served, chance in ((1, (0.8, 0.6)[a]), (0, 1.0 - (0.8, 0.6)[a])):
            left = waiting.copy()
            left[a] = max(0, left[a] - served)
            for arrives, p in (((0, 0), 0.35), ((1, 0), 0.35), ((0, 1), 0.3)):
                x, y = (min(room, left[k] + arrives[k]) for k in (0, 1))
                kernel[s, a, x * (room + 1) + y] += chance * p
    return TabularMDP(kernel, reward, 0, horizon)


def needle(n_states: int = 5, n_actions: int = 40) -> TabularMDP:
    """Forty actions, all alike but one in each state, which is better by half of ε."""
    rng = own_random("needle", SEED)
    reward = np.full((n_states, n_actions), 0.4)
    reward[np.arange(n_states), rng.integers(n_actions, size=n_states)] += EPSILON / 2
    return TabularMDP(uniform_walk(n_states, n_actions), reward, 0, 2)


def graph(n_states: int = 40, n_actions: int = 4, horizon: int = 10) -> TabularMDP:
    """A random graph on which every move succeeds, and coins are tossed for pay."""
    rng = own_random("graph", SEED)
    kernel = np.eye(n_states)[rng.integers(n_states, size=(n_states, n_actions))]
    return TabularMDP(kernel, rng.uniform(0.0, 1.0, (n_states, n_actions)), 0, horizon)


def ring(n_states: int = 30, horizon: int = 12) -> TabularMDP:
    """A ring walked left, right or not at all, with tolls everywhere and starts anywhere."""
    rng = own_random("ring", SEED)
    kernel, s = np.zeros((n_states, 3, n_states)), np.arange(n_states)
    for a, way in enumerate((-1, 0, 1)):
        kernel[s, a, (s + way) % n_states] += 0.8
        kernel[s, a, (s + 1) % n_states] += 0.1
        kernel[s, a, (s - 1) % n_states] += 0.1
    reward = np.repeat(rng.uniform(0.2, 0.8, (n_states, 1)), 3, axis=1) - np.array((0.02, 0.0, 0.02))
    return TabularMDP(kernel, reward, np.full(n_states, 1.0 / n_states), horizon)


def swim(n_states: int = 10, horizon: int = 50) -> TabularMDP:
    """A long river and a long swim: a little at the source, much at the sea, and a current."""
    kernel, reward, s = np.zeros((n_states, 2, n_states)), np.zeros((n_states, 2)), np.arange(n_states)
    kernel[s, 0, np.maximum(s - 1, 0)] = 1.0
    kernel[s, 1, np.minimum(s + 1, n_states - 1)] += 0.4
    kernel[s, 1, s] += 0.5
    kernel[s, 1, np.maximum(s - 1, 0)] += 0.1
    reward[0, 0], reward[-1, 1] = 0.05, 1.0
    return TabularMDP(kernel, reward, 0, horizon)


LAST: dict[str, Callable[[], TabularMDP]] = {
    "ladder of 24 arms": ladder,
    "binary tree of 127 states": tree,
    "slippery maze, H=15": maze,
    "ten corridors": corridors,
    "twins": twins,
    "casino, ε = 0.005": casino,
    "two laws in turn": periodic,
    "pay that grows": crescendo,
    "traps, H=25": traps,
    "two queues": two_queues,
    "a needle among 40 actions": needle,
    "deterministic graph": graph,
    "ring with tolls": ring,
    "long river, H=50": swim,
    "ladder of 60 arms": partial(ladder, 4, 60, 2),
    "wide corridors": partial(corridors, 30, 3),
}
SMALLER = {"casino, ε = 0.005": 0.005}
"""ε where it is not that of the others."""

"""Environments made to break a rehearsed promise. Each is fixed; in all, the baseline is the first action."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl import TabularMDP

Floats = NDArray[np.float64]


def table(states: int, actions: int) -> tuple[Floats, Floats]:
    """Return arrays of a world in which every action leads to the last state and pays nothing there."""
    transition = np.zeros((states, actions, states))
    transition[:, :, -1] = 1.0
    return transition, np.zeros((states, actions))


def lead(transition: Floats, state: int, action: int, *outcomes: tuple[int, float]) -> None:
    """Let an action lead to some states with some probabilities."""
    transition[state, action] = 0.0
    for target, chance in outcomes:
        transition[state, action, target] += chance


def tied_arms() -> TabularMDP:
    """Four times: something certain, or a hall with twenty tied coins that are worth a third of ε more.

    The largest of twenty estimates is too large by c/√n, so the choice before the hall drifts with n; simulated teams
    drift alike.
    """
    transition, reward = table(9, 20)
    for k in range(4):
        lead(transition, k, 2, (4 + k, 1.0))
        reward[k, 1] = 0.5 - 0.05 * (0.2 + 0.06 * k)
        lead(transition, k, 1, (8, 1.0))
        reward[4 + k] = 0.5
    reward[:4, 3:] = 0.0
    return TabularMDP(transition, reward, np.r_[np.full(4, 0.25), np.zeros(5)], 2)


def hidden_room() -> TabularMDP:
    """One visit in a hundred opens a room of ordinary value; the first action stays there and pays nothing."""
    transition, reward = np.zeros((2, 2, 2)), np.array([[0.1, 0.5], [0.0, 0.5]])
    transition[0, 0, 0] = transition[1, 0, 1] = transition[1, 1, 0] = 1.0
    transition[0, 1] = 0.99, 0.01
    return TabularMDP(transition, reward, 0, 20, "deterministic")


def trap_by_step() -> TabularMDP:
    """An action that is a little better leads to a trap with probability .03; it harms after one step alone."""
    steps, bad = 12, 4
    transition, reward = np.zeros((steps, 3, 2, 3)), np.zeros((steps, 3, 2))
    transition[:, 0, 0, 0], transition[:, 0, 1, 0], transition[:, 0, 1, 1] = 1.0, 0.97, 0.03
    transition[:, 1, :, 0] = transition[:, 2, :, 2] = 1.0
    reward[:, 0] = 0.51, 0.55
    reward[:, 1] = 0.8
    transition[bad, 1, :, 0], transition[bad, 1, :, 2], reward[bad, 1] = 0.0, 1.0, 0.0
    return TabularMDP(transition, reward, 0, steps, "deterministic")


def coin(certain: float, gain: float = 0.0) -> TabularMDP:
    """A coin, and something certain that is a hair better; perhaps beside a place with a real gain."""
    rows = [(0, 0, 0, 0.5, 0.0), (0, 0, 0, 0.5, 1.0), (0, 1, 0, 1.0, certain)]
    rows += [(1, 0, 0, 1.0, 0.3), (1, 1, 0, 1.0, 0.3 + gain)]
    initial = [0.5, 0.5] if gain else [1.0, 0.0]
    return TabularMDP.from_outcomes(rows, n_states=2, n_actions=2, horizon=1, initial=initial)


def many_places(number: int, chance: float, gain: float = 0.0) -> TabularMDP:
    """Going out leads to one of so many places with this probability in all; in each the first action loses all."""
    out, end = number + 1, number + 2
    transition, reward = table(number + 3, 2)
    lead(transition, 0, 0, (end, 1.0))
    lead(transition, 0, 1, (out, 1.0 - chance), *((1 + k, chance / number) for k in range(number)))
    reward[1 : number + 1, 1] = reward[out] = 1.0
    reward[0, 1] = gain
    return TabularMDP(transition, reward, 0, 2, "deterministic")


def lucky_arms() -> TabularMDP:
    """Twenty coins a little worse than what is certain: one of them looks best while samples are few."""
    rows = [(0, 0, 0, 1.0, 0.5), (0, 21, 0, 1.0, 0.53)]
    rows += [(0, a, 0, p, r) for a in range(1, 21) for r, p in ((1.0, 0.45), (0.0, 0.55))]
    return TabularMDP.from_outcomes(rows, n_states=1, n_actions=22, horizon=1, initial=0)


def rare_pay() -> TabularMDP:
    """Something small for certain, or twice as much on average, once in fifty times."""
    rows = [(0, 0, 0, 1.0, 0.0), (0, 1, 0, 1.0, 0.01), (0, 2, 0, 0.02, 1.0), (0, 2, 0, 0.98, 0.0)]
    return TabularMDP.from_outcomes(rows, n_states=1, n_actions=3, horizon=1, initial=0)


def stopping(ways: int = 20, length: int = 10) -> TabularMDP:
    """A walk that pays at its end, and many ways to stop before, which pay nearly as much."""
    transition, reward = table(length + 1, ways + 2)
    for s in range(length):
        reward[s, 1:-1] = 0.5 + 0.03 * s
        if s < length - 1:
            lead(transition, s, ways + 1, (s + 1, 1.0))
    reward[length - 1, ways + 1] = 0.85
    return TabularMDP(transition, reward, 0, length)


def chaos() -> TabularMDP:
    """Four states, ten actions, eighty steps: averages by Boltzmann's weights would not be a non-expansion here."""
    rng = np.random.default_rng(20261120)
    transition = np.eye(4)[rng.integers(4, size=(4, 10))]
    return TabularMDP(0.9 * transition + 0.025, rng.uniform(0.3, 0.7, (4, 10)), 0, 80)


def heavy_tails() -> TabularMDP:
    """Three places with four arms; an arm pays 2^-k with a probability of about 2^-1.2(9 - k)."""
    pays, rows = 2.0 ** -np.arange(10), []
    for s in range(3):
        for a in range(4):
            law = 2.0 ** (-1.2 * np.arange(9, -1, -1)) * (1.0 + 0.3 * ((a + s) % 4) * (np.arange(10) < 4))
            rows += [(s, a, (s + 1) % 3, p, r) for p, r in zip(law / law.sum(), pays, strict=True)]
    return TabularMDP.from_outcomes(rows, n_states=3, n_actions=4, horizon=4, initial=0)


def changing(steps: int = 8) -> TabularMDP:
    """Dynamics that change halfway: from then on the other action goes up."""
    transition, reward = np.zeros((steps, 5, 3, 5)), np.zeros((steps, 5, 3))
    for h, s, a in np.ndindex(steps, 5, 3):
        up = 0.1 if a == 0 else 0.8 if (a == 1) == (h < steps // 2) else 0.3
        transition[h, s, a, min(s + 1, 4)] += up
        transition[h, s, a, max(s - 1, 0)] += 1.0 - up
        reward[h, s, a] = s / 4.0
    return TabularMDP(transition, reward, 1, steps)


class World(NamedTuple):
    """An environment and how it is learned."""

    build: Callable[[], TabularMDP]
    access: str = "generative"
    stationary: bool | None = None
    min_probability: float = 0.0  # where it is true, so that promises come early
    most: int = 2**20  # samples of a (step, state, action)
    pairs: int = 40


def worlds() -> dict[str, World]:
    """Return the environments by name."""
    common = 0.02
    return {
        "tied noisy arms before a decision": World(tied_arms, min_probability=common),
        "hidden room, pooled": World(hidden_room, pairs=200),
        "hidden room, by episodes": World(hidden_room, "episodic", most=2**16),
        "trap at its own step": World(trap_by_step),
        "coin against a hair more": World(lambda: coin(0.504), min_probability=common, pairs=200),
        "coin beside a real gain": World(lambda: coin(0.52, 0.2), min_probability=common, pairs=200),
        "fifty outcomes of .02": World(lambda: many_places(50, 1.0), min_probability=common),
        "fifty beside a real gain": World(lambda: many_places(50, 1.0, 1.0), min_probability=common),
        "twenty lucky arms": World(lucky_arms, min_probability=common),
        "rare pay": World(rare_pay),
        "many ways to stop": World(stopping, min_probability=common),
        "Boltzmann chaos": World(chaos, min_probability=common, most=2**16),
        "three hundred rare places": World(lambda: many_places(300, 0.3), most=2**16),
        "heavy-tailed rewards": World(heavy_tails),
        "changing, stated stationary": World(changing, "episodic", True, most=2**16),
        "changing, by step": World(changing, "episodic", False, most=2**16),
    }

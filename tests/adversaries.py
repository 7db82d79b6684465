"""Worlds made to part two runs: each broke the printed ρ of a learner whose sizes were calibrated on others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reprl.mdp.tabular import TabularMDP


class Adversary(NamedTuple):
    """A world and the accuracy at which it hurts."""

    mdp: TabularMDP
    epsilon: float = 0.3


def equal_gaps(n_states: int = 10, horizon: int = 3, epsilon: float = 0.3) -> Adversary:
    """Every gap is ε/H, in every state and step."""
    reward = 0.5 + epsilon / horizon / 2 * np.array([-1.0, 1.0])
    transition = np.full((n_states, 2, n_states), 1.0 / n_states)
    return Adversary(TabularMDP(transition, np.tile(reward, (n_states, 1)), horizon=horizon), epsilon)


def arms(share: float = 0.85, n_arms: int = 16, epsilon: float = 0.3) -> Adversary:
    """One step, eight bandits, one arm better than all others by a share of ε."""
    reward = np.full((8, n_arms), 0.5)
    reward[:, -1] += share * epsilon
    flat = np.full(8, 1.0 / 8)
    return Adversary(TabularMDP(np.full((8, n_arms, 8), 1.0 / 8), reward, horizon=1, initial=flat), epsilon)


def heaven_or_hell(horizon: int, n: int = 6, share: float = 0.8, epsilon: float = 0.3) -> Adversary:
    """n starts lead to heaven or hell for good, with probabilities that differ by a share of ε/H between actions."""
    transition, reward = np.zeros((n + 2, 2, n + 2)), np.zeros((n + 2, 2))
    for s in range(n):
        tilt = np.array([1.0, -1.0]) * (1 if s % 2 else -1) * share * epsilon / horizon / 2
        transition[s, :, n], transition[s, :, n + 1] = 0.5 + tilt, 0.5 - tilt
    transition[n, :, n] = transition[n + 1, :, n + 1] = 1.0
    reward[n] = 1.0
    initial = np.append(np.full(n, 1.0 / n), [0.0, 0.0])
    return Adversary(TabularMDP(transition, reward, horizon=horizon, initial=initial), epsilon)


def hub(n_states: int = 40, rare: float = 0.0017, seed: int = 0) -> Adversary:
    """A hub from which many states are reached, each so seldom that it is at the edge of what matters."""
    transition = np.zeros((n_states, 2, n_states))
    transition[0, :, 2:] = rare
    transition[0, :, 1] = 1.0 - rare * (n_states - 2)
    transition[1:, :, 0] = 1.0
    reward = np.random.default_rng(seed).uniform(0.2, 0.8, (n_states, 2))
    return Adversary(TabularMDP(transition, reward, horizon=3))


def funnel(n: int = 12, horizon: int = 4, seed: int = 0) -> Adversary:
    """n starts choose between two bottlenecks: errors of a bottleneck's value move all the gaps together."""
    left, right, end = n, n + 1, n + 2
    transition, reward = np.zeros((n + 3, 2, n + 3)), np.zeros((n + 3, 2))
    transition[:n, 0, left] = transition[:n, 1, right] = transition[end, :, end] = 1.0
    reward[:n, 0], reward[:n, 1] = 0.5, 0.5 + np.random.default_rng(seed).uniform(-0.1, 0.1, n)
    for s, pays in ((left, 0.5), (right, 0.48)):
        transition[s, :, s], transition[s, :, end], reward[s] = 0.9, 0.1, pays
    initial = np.append(np.full(n, 1.0 / n), np.zeros(3))
    return Adversary(TabularMDP(transition, reward, horizon=horizon, initial=initial))


def small_accuracy(epsilon: float = 0.001, seed: int = 0) -> Adversary:
    """Five states, all actions lead on alike, and gaps of one to three ε."""
    draw = np.random.default_rng(seed)
    transition = np.repeat(draw.dirichlet(np.ones(5), (5, 1)), 3, axis=1)
    gaps = np.column_stack([np.zeros(5), draw.uniform(1.0, 3.0, (5, 2)) * epsilon])
    return Adversary(TabularMDP(transition, 0.5 - draw.permuted(gaps, axis=1), horizon=2), epsilon)


def twins(seed: int = 0) -> Adversary:
    """A world without structure, in which every action comes twice."""
    draw = np.random.default_rng(seed)
    transition, reward = draw.dirichlet(np.ones(10), (10, 3)), draw.uniform(size=(10, 3))
    return Adversary(TabularMDP(np.repeat(transition, 2, axis=1), np.repeat(reward, 2, axis=1), horizon=4))

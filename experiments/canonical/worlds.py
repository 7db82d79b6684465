"""Worlds that the rule and its rehearsal were not tuned on: each is built to be awkward in one way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.tabular import TabularMDP

Array = NDArray[np.float64]
EPSILON = 0.3
TINY = 0.001
SEED = 88_310_457


def own_random(name: str, seed: int = SEED) -> np.random.Generator:
    """A generator of the world's own, so that no world moves another."""
    return np.random.default_rng([seed, *name.encode()])


def equal_gaps(n_states: int, n_actions: int, horizon: int) -> TabularMDP:
    """A uniform walk in which every action but one is exactly ε/H worse."""
    rng = own_random(f"equal{n_states}")
    reward = np.full((n_states, n_actions), 0.5 - EPSILON / horizon / 2)
    reward[np.arange(n_states), rng.integers(n_actions, size=n_states)] += EPSILON / horizon
    return TabularMDP(uniform_walk(n_states, n_actions), reward, np.full(n_states, 1 / n_states), horizon)


def near_window(n_states: int, n_actions: int, horizon: int, low: float, high: float) -> TabularMDP:
    """A uniform walk in which the gaps lie around ε/H, one action of each state being the best."""
    rng = own_random(f"window{n_actions}")
    gap = EPSILON / horizon * rng.uniform(low, high, (n_states, n_actions))
    gap[np.arange(n_states), rng.integers(n_actions, size=n_states)] = 0.0
    return TabularMDP(uniform_walk(n_states, n_actions), 0.7 - gap, np.full(n_states, 1 / n_states), horizon)


def heaven_or_hell(horizon: int, n_states: int = 9) -> TabularMDP:
    """States that lead to heaven or hell for good, with chances whose values are 0.8·ε/H apart."""
    rng = own_random(f"heaven{horizon}")
    size = n_states + 2
    kernel, reward = np.zeros((horizon, size, 2, size)), np.zeros((horizon, size, 2))
    kernel[:, -2, :, -2] = kernel[:, -1, :, -1] = 1.0
    reward[:, -2] = 1.0
    sign = rng.choice((-1.0, 1.0), n_states)
    for h in range(horizon):
        half = 0.4 * EPSILON / horizon / max(1, horizon - h - 1)
        chance = 0.5 + half * np.stack([sign, -sign], axis=1)
        kernel[h, :n_states, :, -2], kernel[h, :n_states, :, -1] = chance, 1.0 - chance
    initial = np.append(np.full(n_states, 1 / n_states), (0.0, 0.0))
    return TabularMDP(kernel, reward, initial)


def hub(n_states: int, chance: float) -> TabularMDP:
    """A hub that leads to many states, each with a small chance, in which the actions differ at random."""
    rng = own_random(f"hub{n_states}")
    rare = n_states - 2
    kernel, reward = np.zeros((n_states, 2, n_states)), np.zeros((n_states, 2))
    kernel[0, :, 2:] = chance
    kernel[0, :, 1] = 1.0 - rare * chance
    kernel[1:, :, 0] = 1.0
    reward[1] = (0.52, 0.47)
    reward[2:] = rng.uniform(0.0, 1.0, (rare, 2))
    return TabularMDP(kernel, reward, 0, 3)


def funnel(width: int = 12) -> TabularMDP:
    """Ten and more states whose better action depends on one uncertain bottleneck that they all share."""
    rng = own_random("funnel")
    n = width + 5
    gate, pay, heaven, hell = width + 1, width + 2, width + 3, width + 4
    kernel, reward = np.zeros((n, 2, n)), np.zeros((n, 2))
    kernel[0, :, 1 : width + 1] = 1 / width
    kernel[1 : width + 1, 0, gate] = kernel[1 : width + 1, 1, pay] = 1.0
    reward[1 : width + 1, 1] = 0.5 + EPSILON / 4 * rng.uniform(-1.0, 1.0, width)
    kernel[gate, :, heaven] = kernel[gate, :, hell] = 0.5
    for s in (pay, heaven, hell):
        kernel[s, :, s] = 1.0
    reward[heaven] = 1.0
    return TabularMDP(kernel, reward, 0, 4)


def tiny_gaps() -> TabularMDP:
    """Five states and two actions that are one to three of a tiny ε apart."""
    rng = own_random("tiny")
    kernel = np.repeat(rng.dirichlet(np.full(5, 2.0), 5)[:, None], 2, axis=1)
    shift = TINY * np.linspace(1.0, 3.0, 5) * rng.choice((-1.0, 1.0), 5)
    kernel[:, 1, 0] += shift
    kernel[:, 1, 4] -= shift
    reward = np.zeros((5, 2))
    reward[0] = 1.0
    kernel = np.clip(kernel, 0.0, None)
    return TabularMDP(kernel / kernel.sum(axis=2, keepdims=True), reward, 1, 3)


def duplicated(n_states: int = 10, n_actions: int = 3, copies: int = 2, horizon: int = 4) -> TabularMDP:
    """A Dirichlet world whose actions come several times, in another order in every state."""
    rng = own_random("duplicated")
    kernel = np.tile(rng.dirichlet(np.ones(n_states), (n_states, n_actions)), (1, copies, 1))
    reward = np.tile(rng.uniform(0.0, 1.0, (n_states, n_actions)), (1, copies))
    for s in range(n_states):
        order = rng.permutation(copies * n_actions)
        kernel[s], reward[s] = kernel[s, order], reward[s, order]
    return TabularMDP(kernel, reward, 0, horizon)


def dirichlet(
    name: str, shape: tuple[int, int, int], *, alpha: float = 1.0, starts: int = 1, absorbing: int = 0
) -> TabularMDP:
    """Random rows and rewards; several starts or absorbing states where asked for. shape is (S, A, H)."""
    rng = own_random(name)
    n_states, n_actions, horizon = shape
    kernel = rng.dirichlet(np.full(n_states, alpha), (n_states, n_actions))
    kernel = np.where(kernel < 1e-6, 0.0, kernel)
    reward = rng.uniform(0.0, 1.0, (n_states, n_actions))
    for s in range(n_states - absorbing, n_states):
        kernel[s] = np.eye(n_states)[s]
        reward[s] = rng.uniform()
    initial = np.zeros(n_states)
    initial[:starts] = rng.dirichlet(np.ones(starts))
    return TabularMDP(kernel / kernel.sum(axis=2, keepdims=True), reward, initial, horizon)


def sparse(name: str, shape: tuple[int, int, int], support: int) -> TabularMDP:
    """Every cell leads to a few random states. shape is (S, A, H)."""
    rng = own_random(name)
    n_states, n_actions, horizon = shape
    kernel = np.zeros((n_states, n_actions, n_states))
    for s, a in np.ndindex(n_states, n_actions):
        kernel[s, a, rng.choice(n_states, support, replace=False)] = rng.dirichlet(np.ones(support))
    return TabularMDP(kernel, rng.uniform(0.0, 1.0, (n_states, n_actions)), 0, horizon)


def changing(n_states: int = 10, n_actions: int = 3, horizon: int = 4) -> TabularMDP:
    """A random world whose law is another one at every step."""
    rng = own_random("changing")
    kernel = rng.dirichlet(np.ones(n_states), (horizon, n_states, n_actions))
    return TabularMDP(kernel, rng.uniform(0.0, 1.0, (horizon, n_states, n_actions)), 0)


def many_scales(n_states: int = 12, n_actions: int = 3, horizon: int = 4) -> TabularMDP:
    """A uniform walk whose gaps are powers of two, from 0.4 to 0.0002."""
    rng = own_random("scales")
    gap = 0.4 * 2.0 ** -rng.uniform(0.0, 11.0, (n_states, n_actions))
    gap[np.arange(n_states), rng.integers(n_actions, size=n_states)] = 0.0
    return TabularMDP(uniform_walk(n_states, n_actions), 0.8 - gap, 0, horizon)


def chain(length: int = 12, horizon: int = 16) -> TabularMDP:
    """A slow chain to a prize, beside which every state has a rare side room with a choice of its own."""
    rng = own_random("chain")
    n = 2 * length
    kernel, reward = np.zeros((n, 2, n)), np.zeros((n, 2))
    for s in range(length):
        kernel[s, 0, max(s - 1, 0)] += 0.97
        kernel[s, 1, min(s + 1, length - 1)] += 0.9
        kernel[s, 1, max(s - 1, 0)] += 0.07
        kernel[s, :, length + s] += 0.03
        kernel[length + s, :, s] = 1.0
        reward[length + s] = rng.uniform(0.0, 0.6, 2)
    reward[0, 0], reward[length - 1, 1] = 0.05, 1.0
    return TabularMDP(kernel, reward, 0, horizon)


def jackpots(n_states: int = 10, horizon: int = 5) -> TabularMDP:
    """Safe pay, or rare tickets to a state that pays well; about the same in the mean."""
    rng = own_random("jackpots")
    n = n_states + 1
    kernel, reward = np.zeros((n, 3, n)), np.zeros((n, 3))
    kernel[:n_states, :, :n_states] = 1 / n_states
    for a, chance in ((1, 0.02), (2, 0.1)):
        kernel[:n_states, a] *= 1.0 - chance
        kernel[:n_states, a, -1] = chance
    kernel[-1, :, -1] = 1.0
    reward[:n_states] = 0.3 + rng.uniform(-0.02, 0.02, (n_states, 3)) - np.array((0.0, 0.02, 0.1))
    reward[-1] = 1.0
    return TabularMDP(kernel, reward, 0, horizon)


def uniform_walk(n_states: int, n_actions: int) -> Array:
    """Whatever is done, every state is as likely to follow as the others."""
    return np.full((n_states, n_actions, n_states), 1.0 / n_states)


HELD_OUT: dict[str, Callable[[], TabularMDP]] = {
    "all gaps ε/H, S=12 A=2 H=3": partial(equal_gaps, 12, 2, 3),
    "all gaps ε/H, S=20 A=4 H=5": partial(equal_gaps, 20, 4, 5),
    "16 arms at 0.85·ε/H": partial(near_window, 6, 17, 2, 0.85, 0.85),
    "8 arms around ε/H": partial(near_window, 10, 8, 3, 0.7, 1.3),
    "heaven or hell H=10": partial(heaven_or_hell, 10),
    "heaven or hell H=20": partial(heaven_or_hell, 20),
    "hub, 38 rare states": partial(hub, 40, 0.0017),
    "hub, 100 rare states": partial(hub, 102, 0.0017),
    "funnel": funnel,
    "tiny ε": tiny_gaps,
    "duplicated actions": duplicated,
    "sparse Dirichlet rows": partial(dirichlet, "rows", (15, 3, 5), alpha=0.1),
    "near ties at many scales": many_scales,
    "chain with rare rooms": chain,
    "several starts": partial(dirichlet, "starts", (12, 3, 4), starts=4),
    "absorbing states": partial(dirichlet, "absorbing", (12, 3, 5), alpha=0.5, absorbing=4),
    "law changes every step": changing,
    "rare jackpots": jackpots,
    "sparse S=100": partial(sparse, "hundred", (100, 3, 5), 5),
    "sparse S=200": partial(sparse, "two hundred", (200, 2, 5), 4),
}
BY_EPISODES = (
    "all gaps ε/H, S=12 A=2 H=3",
    "heaven or hell H=10",
    "hub, 38 rare states",
    "funnel",
    "duplicated actions",
    "sparse Dirichlet rows",
    "chain with rare rooms",
    "absorbing states",
)

"""Worlds made against rehearsals: ties of best actions that differ in noise, and events at the edge of what is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments.quiet.worlds import random_quiet
from reprl import TabularMDP

Build = Callable[[], TabularMDP]


@dataclass(frozen=True)
class Tie:
    """A world in which two best actions of every state tie, one of them noisy and the other not.

    What the rule's margins use is the variance of *the* best action, so f jumps at such a world: each run calls one of
    the two the best, by the toss of its data, whatever its size. Other actions lie close to what may be lost.
    """

    seed: int
    horizon: int = 1
    relative: bool = True
    """Whether gaps are laid out for a quality of 0.9, and not for ε = 0.3."""
    shift: float = 0.0
    """What the action without noise pays more: 0 for an exact tie."""

    def __call__(self) -> TabularMDP:
        """Every state has a twin in which it pays what a coin decides; where one goes does not depend on actions."""
        rng = np.random.default_rng([511, self.seed, self.horizon, int(self.relative)])
        places, n_actions = int(rng.integers(1, 4)), int(rng.integers(2, 5)) + 1
        n = 2 * places
        moves = rng.dirichlet(np.ones(places), places) if self.horizon > 1 else np.full((places, places), 1.0 / places)
        transition, reward = np.zeros((n, n_actions, n)), np.zeros((n, n_actions, n))
        for place in range(places):
            means, noisy = self._actions(rng, n_actions)
            for a in range(n_actions):
                chance = means[a] if noisy[a] else 0.0
                for state in (2 * place, 2 * place + 1):
                    transition[state, a, 0::2] = moves[place] * (1.0 - chance)
                    transition[state, a, 1::2] = moves[place] * chance
                    reward[state, a, 0::2], reward[state, a, 1::2] = 0.0 if noisy[a] else means[a], 1.0
        initial = np.zeros(n)
        initial[0::2] = rng.dirichlet(np.ones(places))
        return TabularMDP(transition, reward, initial, self.horizon, "deterministic")

    def _actions(self, rng: np.random.Generator, n_actions: int) -> tuple[list[float], list[bool]]:
        """Mean rewards of the actions of a place, and which of them are coins."""
        top = float(rng.uniform(0.6, 0.9))
        worst = top * float(rng.uniform(0.6, 1.0))
        allowed = 0.1 * worst if self.relative else 0.3 / self.horizon
        first = int(self.relative)
        tied = first + np.sort(rng.choice(n_actions - first, 2, replace=False))
        coin = int(tied[rng.integers(2)])
        means, noisy = [], []
        for a in range(n_actions):
            if a in tied:
                means.append(top + (0.0 if a == coin else self.shift))
                noisy.append(a == coin)
            else:
                gap = worst if self.relative and a == 0 else allowed * float(rng.uniform(0.2, 2.0))
                means.append(max(0.0, top - gap))
                noisy.append(bool(rng.random() < 0.5))
        return means, noisy


def rare_start(chance: float = 0.006) -> TabularMDP:
    """A start that is drawn so seldom that a run may end without it; there the first action costs all."""
    reward = np.array([[0.5, 0.52, 0.3], [0.0, 0.9, 0.95]])
    transition = np.zeros((2, 3, 2))
    transition[:, :, 0] = 1.0
    return TabularMDP(transition, reward, [1.0 - chance, chance], 1, "deterministic")


def rare_outcome(chance: float = 0.008, horizon: int = 12) -> TabularMDP:
    """The better action seldom breaks something for good; to wait never does, and earns less."""
    transition, reward = np.zeros((2, 2, 2)), np.array([[0.5, 0.55], [0.0, 0.0]])
    transition[0, 0, 0] = transition[1, :, 1] = 1.0
    transition[0, 1] = 1.0 - chance, chance
    return TabularMDP(transition, reward, 0, horizon, "deterministic")


def small_reward(horizon: int = 4) -> TabularMDP:
    """Two coins of small probability, of which the second is worth twice the first, and a state that leads back."""
    transition = np.full((2, 3, 2), 0.5)
    return TabularMDP(transition, [[0.0, 0.004, 0.008], [0.0, 0.006, 0.003]], 0, horizon)


def double_door(horizon: int = 40, chance: float = 0.06) -> TabularMDP:
    """Only two rare events in a row lead to where everything is paid: neither alone changes anything."""
    transition, reward = np.zeros((3, 2, 3)), np.array([[0.1, 0.05], [0.1, 0.05], [1.0, 1.0]])
    transition[0, 0, 0] = transition[1, 0, 1] = 1.0
    transition[0, 1] = 1.0 - chance, chance, 0.0
    transition[1, 1] = 0.0, 1.0 - chance, chance
    transition[2, :, 2] = 1.0
    return TabularMDP(transition, reward, 0, horizon, "deterministic")


def knife_edge(seed: int, relative: bool = True) -> TabularMDP:
    """Coins whose gaps leave holes of like width, and that lose 0.8 to 0.9 of what may be lost."""
    rng = np.random.default_rng([512, seed, int(relative)])
    n_states = 4
    transition = np.repeat(rng.dirichlet(np.ones(n_states), n_states)[:, None], 4, axis=1)
    allowed = 0.08 if relative else 0.3 / 3.0
    gaps = allowed * np.array([8.0 if relative else 1.6, *rng.uniform(0.8, 0.9, 2), 0.0])
    reward = 0.85 - gaps + rng.uniform(-0.002, 0.002, (n_states, 4))
    return TabularMDP(transition, np.clip(reward, 0.0, 1.0), rng.dirichlet(np.ones(n_states)), 3)


TIES: dict[str, dict[str, Build]] = {
    "q=0.9": {
        **{f"tie {seed}": Tie(seed) for seed in (119, 71, 27)},
        **{f"tie {seed}, H=3": Tie(seed, 3) for seed in (37, 20)},
        "tie 119, nearly": Tie(119, shift=1e-3),
    },
    "ε=0.3": {
        **{f"tie {seed}": Tie(seed, relative=False) for seed in (97, 84, 6, 88)},
        "tie 21, H=3": Tie(21, 3, relative=False),
        "tie 84, nearly": Tie(84, relative=False, shift=1e-3),
    },
}
"""By what is asked, ties at which f jumps for most keys, of 120 worlds with H = 1 and 40 with H = 3 of each kind."""
OTHERS: dict[str, Build] = {
    "rarer start": rare_start,
    "rare break": rare_outcome,
    "small reward": small_reward,
    "double door": double_door,
    "knife edge 0": partial(knife_edge, 0),
    "knife edge 1": partial(knife_edge, 1),
    **{f"random quiet {seed}": partial(random_quiet, seed) for seed in (93001, 93002, 93003)},
}

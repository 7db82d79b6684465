"""MDPs whose price is measured: those of the design's table, and a generator of several kinds by seed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import reprl
from experiments.pairs import best_value, first_action_value
from experiments.quiet.worlds import random_quiet
from reprl import TabularMDP

TARGETS: dict[str, Callable[[], TabularMDP]] = {
    "gridworld-v0": partial(reprl.make, "gridworld-v0"),
    "two-goals-v0": partial(reprl.make, "two-goals-v0"),
    "CliffWalking H=20": partial(reprl.make, "gym:CliffWalking-v1", 20),
    "queue-admission-v0": partial(reprl.make, "queue-admission-v0"),
    "FrozenLake H=12": partial(reprl.make, "gym:FrozenLake-v1", 12),
    "FrozenLake H=40": partial(reprl.make, "gym:FrozenLake-v1", 40),
    "inventory-v0": partial(reprl.make, "inventory-v0"),
    "random-mdp-v0": partial(reprl.make, "random-mdp-v0"),
    "maintenance-v0": partial(reprl.make, "maintenance-v0"),
    "river-swim-v0": partial(reprl.make, "river-swim-v0"),
}


def traps(n_states: int = 10, horizon: int = 25) -> TabularMDP:
    """Three ways on that pay the more, the more often they lead into a trap for good."""
    rng = np.random.default_rng([51_770_926, *b"traps"])
    n, risk = n_states + 1, np.array((0.002, 0.01, 0.03))
    kernel, reward = np.zeros((n, 3, n)), np.zeros((n, 3))
    law = rng.dirichlet(np.ones(n_states), (n_states, 3))
    kernel[:n_states, :, :n_states] = law * (1.0 - risk)[:, None]
    kernel[:n_states, :, -1] = risk
    kernel[-1, :, -1] = 1.0
    reward[:n_states] = 0.4 + np.array((0.0, 0.05, 0.15)) + rng.uniform(-0.05, 0.05, (n_states, 3))
    return TabularMDP(kernel, reward, 0, horizon)


PHASED: dict[str, Callable[[], TabularMDP]] = {"traps H=25": traps}
"""No stationary policy is good enough, and one that changes at any step is near some tolerance."""

Generator = Callable[[np.random.Generator], TabularMDP]


def sparse(rng: np.random.Generator) -> TabularMDP:
    """Every cell leads to a few random states; coins are tossed for pay."""
    n_states, n_actions, support = rng.integers(8, 25), rng.integers(2, 5), rng.integers(2, 5)
    transition = np.zeros((n_states, n_actions, n_states))
    for cell in np.ndindex(n_states, n_actions):
        transition[cell][rng.choice(n_states, support, replace=False)] = rng.dirichlet(np.ones(support))
    return TabularMDP(transition, rng.uniform(0.0, 1.0, (n_states, n_actions)), 0, int(rng.integers(3, 10)))


def dirichlet(rng: np.random.Generator) -> TabularMDP:
    """Dense random rows; in every third world they change with the step."""
    n_states, n_actions, horizon = rng.integers(5, 15), rng.integers(2, 5), int(rng.integers(3, 8))
    steps = (horizon,) if rng.random() < 1 / 3 else ()
    transition = rng.dirichlet(np.full(n_states, rng.choice((0.3, 1.0))), (*steps, n_states, n_actions))
    reward = rng.uniform(0.0, 1.0, (*steps, n_states, n_actions))
    return TabularMDP(transition, reward, 0, None if steps else horizon)


def gridworld(rng: np.random.Generator) -> TabularMDP:
    """A square with a few walls, a goal that pays once, and moves that slip."""
    size, horizon, slip = int(rng.integers(3, 6)), int(rng.integers(6, 13)), float(rng.choice((0.0, 0.05, 0.2)))
    n = size * size
    walls = set(rng.choice(np.arange(1, n - 1), size - 2, replace=False).tolist())
    transition, reward = np.zeros((n, 4, n)), np.zeros((n, 4))
    for s in range(n):
        row, column = divmod(s, size)
        ends = []
        for down, right in ((-1, 0), (0, 1), (1, 0), (0, -1)):
            y, x = row + down, column + right
            inside = 0 <= y < size and 0 <= x < size and y * size + x not in walls
            ends.append(y * size + x if inside else s)
        for a, end in enumerate(ends):
            transition[s, a, end] += 1.0 - slip
            for other in ends:
                transition[s, a, other] += slip / 4
    goal = n - 1 if rng.random() < 0.5 else int(rng.choice([s for s in range(size, n) if s not in walls]))
    transition[goal] = np.eye(n)[goal]
    reward[goal] = 1.0
    return TabularMDP(transition, reward, 0, horizon, "deterministic")


def chain(rng: np.random.Generator) -> TabularMDP:
    """A chain with little pay at its beginning and much at its end, against a current."""
    n, horizon = int(rng.integers(4, 10)), int(rng.integers(8, 25))
    forth, back = rng.uniform(0.4, 0.95), rng.uniform(0.0, 0.1)
    transition, reward, s = np.zeros((n, 2, n)), np.zeros((n, 2)), np.arange(n)
    transition[s, 0, np.maximum(s - 1, 0)] = 1.0
    transition[s, 1, np.minimum(s + 1, n - 1)] += forth * (1.0 - back)
    transition[s, 1, s] += (1.0 - forth) * (1.0 - back)
    transition[s, 1, np.maximum(s - 1, 0)] += back
    reward[0, 0], reward[-1, 1] = rng.uniform(0.01, 0.2), 1.0
    return TabularMDP(transition, reward, 0, horizon, str(rng.choice(("deterministic", "bernoulli"))))


def queue(rng: np.random.Generator) -> TabularMDP:
    """A queue that is served slowly, faster at a cost, or not entered; what waits costs."""
    room, horizon = int(rng.integers(5, 13)), int(rng.integers(5, 16))
    arrives, served = rng.uniform(0.3, 0.7), np.sort(rng.uniform(0.2, 0.9, 3))
    cost = np.array((0.0, *np.sort(rng.uniform(0.02, 0.3, 2))))
    transition, reward = np.zeros((room + 1, 3, room + 1)), np.zeros((room + 1, 3))
    for s, a in np.ndindex(room + 1, 3):
        reward[s, a] = 1.0 - 0.7 * s / room - cost[a]
        for done, p in ((1, served[a]), (0, 1.0 - served[a])):
            for new, q in ((1, arrives), (0, 1.0 - arrives)):
                transition[s, a, min(room, max(0, s - done) + new)] += p * q
    return TabularMDP(transition, np.clip(reward, 0.0, 1.0), 0, horizon, "deterministic")


def quiet(rng: np.random.Generator) -> TabularMDP:
    """A quiet world: nearly deterministic, with rare events."""
    return random_quiet(int(rng.integers(10**6, 2**31)))


KINDS: dict[str, Generator] = {
    "sparse": sparse,
    "dirichlet": dirichlet,
    "gridworld": gridworld,
    "chain": chain,
    "queue": queue,
    "quiet": quiet,
}
USEFUL = 0.01
"""A world in which the best policy earns less than this more than the baseline is drawn again."""


def generate(kind: str, seed: int) -> TabularMDP:
    """Return a world of a kind; a seed always gives the same one."""
    for attempt in range(100):
        mdp = KINDS[kind](np.random.default_rng([528, seed, attempt, *kind.encode()]))
        if best_value(mdp) - first_action_value(mdp) >= USEFUL:
            return mdp
    raise AssertionError(f"no useful world of kind {kind} with seed {seed}")


def generated(first: int, each: int) -> dict[str, Callable[[], TabularMDP]]:
    """Return so many worlds of each kind, by seeds from the first on."""
    return {f"{kind} {seed}": partial(generate, kind, seed) for seed in range(first, first + each) for kind in KINDS}

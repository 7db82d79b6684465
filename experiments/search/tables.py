"""Small black boxes with finite observations: a search over tables beside the canonical rule, at 90 % of the gain."""

from __future__ import annotations

import math
import time
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

import reprl
from experiments.defaults.worlds import blackjack
from reprl.learning.baseline import exact_loss
from reprl.learning.settings import Settings
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream
from reprl.sources.gymnasium.model import to_gymnasium
from tests.shop import Shop

LIMIT = 1_000_000
"""Steps of a run, at most."""


class Box(NamedTuple):
    """A world that is played by episodes alone, and its dynamics, by which the target is set."""

    world: TabularMDP
    env: Any
    rewards: tuple[float, float]


def _stock(states: int, orders: int, customers: int) -> TabularMDP:
    """The shop with other sizes; rewards are rescaled from [−4.8, 9] · customers / 3."""
    low, high = (end * customers / 3 for end in Shop.REWARDS)
    chances: dict[tuple[int, int, int, float], float] = {}
    for stock, order, come in np.ndindex(states, orders, customers + 1):
        full = min(states - 1, stock + order)
        sold = min(full, come)
        earned = 3.0 * sold - 1.0 * order - 0.3 * (full - sold)
        key = (stock, order, full - sold, (earned - low) / (high - low))
        chances[key] = chances.get(key, 0.0) + math.comb(customers, come) / 2.0**customers
    rows = [(s, a, z, p, r) for (s, a, z, r), p in chances.items()]
    return TabularMDP.from_outcomes(rows, n_states=states, n_actions=orders, horizon=10, initial=0)


@cache
def box(name: str) -> Box:
    """Return one of the four."""
    if name == "Blackjack H=8":
        return Box(blackjack(8), "gym:Blackjack-v1", (-1.0, 1.0))
    if name == "FrozenLake H=40":
        world = reprl.make("gym:FrozenLake-v1", 40)
        return Box(world, partial(to_gymnasium, world), (0.0, 1.0))
    if name == "shop H=10":
        return Box(_stock(7, 4, 3), Shop, Shop.REWARDS)
    world = _stock(30, 10, 9)
    return Box(world, partial(to_gymnasium, world), (0.0, 1.0))


NAMES = ("Blackjack H=8", "FrozenLake H=40", "shop H=10", "inventory 30×10 H=10")


def target_of(found: Box) -> float:
    """Return 90 % of the way from the baseline to the best return, in the rewards' own units."""
    world, (low, high) = found.world, found.rewards
    best = float(world.initial @ world.solve().values[0])
    value = best - exact_loss(world, Settings(quality=0.9))
    return world.horizon * low + (high - low) * value


def run(name: str, way: str, number: int, seed: int) -> dict[str, Any]:
    """Two runs of one shared seed: [same], and of both status, samples, mean return, seconds."""
    found = box(name)
    seeds = [int(word) >> 1 for word in DataStream(seed, f"tables/{name}/{way}", number).integers(2)]
    how: dict[str, Any] = {"horizon": found.world.horizon, "reward_range": found.rewards, "max_samples": LIMIT}
    if way == "search":
        how |= {"learner": "search", "target": target_of(found)}
    runs, seconds = [], []
    for each in seeds:
        began = time.perf_counter()
        runs.append(reprl.learn(found.env, shared_seed=seed + number, data_seed=each, **how))
        seconds.append(round(time.perf_counter() - began, 1))
    same = runs[0].policy == runs[1].policy
    rows = [[r.guarantee.status, int(r.samples), r.value, s] for r, s in zip(runs, seconds, strict=True)]
    return {"same": int(same), "target": target_of(found), "runs": rows}

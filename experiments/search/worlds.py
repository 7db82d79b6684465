"""Small environments with their exact MDPs; a search plays them as black boxes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

import reprl
from reprl import TabularMDP

Rows = list[tuple[float, ...]]


class World(NamedTuple):
    """An environment: its exact MDP, with rewards rescaled to [0, 1], and what a user would give to ``learn``."""

    build: Callable[[], TabularMDP]
    rewards: tuple[float, float] = (0.0, 1.0)
    """Range in original units."""
    box: Any = None
    """A black box: a factory or an id; None if dynamics are published."""

    def original(self, value: float, horizon: int) -> float:
        """Return a return in the environment's own units."""
        low, high = self.rewards
        return value * (high - low) + horizon * low


class Store(gymnasium.Env[Any, Any]):
    """A store with a stock of at most `room`; up to `orders` pieces are ordered, then up to `buyers` customers come.

    A piece sold brings 3, one ordered costs 1, one kept overnight `keep`.
    """

    def __init__(self, room: int, orders: int, buyers: int, keep: float) -> None:
        self.observation_space, self.action_space = spaces.Discrete(room + 1), spaces.Discrete(orders + 1)
        self.room, self.orders, self.buyers, self.keep, self.stock = room, orders, buyers, keep, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.stock = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.stock, reward = self.trade(self.stock, int(action), int(self.np_random.binomial(self.buyers, 0.5)))
        return self.stock, reward, False, False, {}

    def trade(self, stock: int, order: int, customers: int) -> tuple[int, float]:
        full = min(self.room, stock + order)
        sold = min(full, customers)
        return full - sold, 3.0 * sold - 1.0 * order - self.keep * (full - sold)

    @property
    def rewards(self) -> tuple[float, float]:
        return -self.orders - self.keep * self.room, 3.0 * self.buyers

    def exact(self, horizon: int) -> TabularMDP:
        low, high = self.rewards
        rows: Rows = []
        for stock, order, customers in np.ndindex(self.room + 1, self.orders + 1, self.buyers + 1):
            left, earned = self.trade(stock, order, customers)
            chance = math.comb(self.buyers, customers) / 2.0**self.buyers
            rows.append((stock, order, left, chance, (earned - low) / (high - low)))
        sizes: dict[str, Any] = {"n_states": self.room + 1, "n_actions": self.orders + 1, "horizon": horizon}
        return TabularMDP.from_outcomes(merged(rows), **sizes, initial=0)


def merged(rows: Rows) -> Rows:
    """Add up the chances of outcomes that look alike; the chance is the last entry but one."""
    found: dict[tuple[float, ...], float] = {}
    for *cell, chance, reward in rows:
        key = (*cell, round(reward, 9))
        found[key] = found.get(key, 0.0) + chance
    return [(*key[:-1], chance, key[-1]) for key, chance in found.items()]


SHOP, INVENTORY = partial(Store, 6, 3, 3, 0.3), partial(Store, 29, 9, 12, 0.1)

CARDS = {card: (4.0 if card == 10 else 1.0) / 13.0 for card in range(1, 11)}


@cache
def dealer_ends(total: int, ace: bool) -> dict[int, float]:
    """Return the law of the dealer's final score, 0 if bust, from a hand's hard total and whether it has an ace."""
    best = total + 10 if ace and total + 10 <= 21 else total
    if best >= 17:
        return {best if best <= 21 else 0: 1.0}
    out: dict[int, float] = {}
    for card, chance in CARDS.items():
        for end, p in dealer_ends(total + card, ace or card == 1).items():
            out[end] = out.get(end, 0.0) + chance * p
    return out


def blackjack(horizon: int = 8) -> TabularMDP:
    """Gymnasium's Blackjack-v1, exactly: at step 0 a soft 21 is a natural, which beats every other 21."""
    ended = 32 * 11 * 2
    rows: Rows = []
    for h, total, shown, soft in np.ndindex(horizon, 32, 11, 2):
        state = (total * 11 + shown) * 2 + soft
        rows += [(h, state, 0, ended, p, (r + 1) / 2) for r, p in stick(h, total, shown, soft).items()]
        for card, chance in CARDS.items():
            after = hit(total, soft, card)
            target = ended if after is None else (after[0] * 11 + shown) * 2 + after[1]
            rows.append((h, state, 1, target, chance, 0.0 if after is None else 0.5))
    rows += [(h, ended, a, ended, 1.0, 0.5) for h in range(horizon) for a in (0, 1)]
    sizes: dict[str, Any] = {"n_states": ended + 1, "n_actions": 2, "horizon": horizon}
    return TabularMDP.from_outcomes(merged(rows), **sizes, initial=deal())


def stick(h: int, total: int, shown: int, soft: int) -> dict[float, float]:
    """Return the law of the reward. Hands that cannot occur are treated alike."""
    out: dict[float, float] = {}
    for card, chance in CARDS.items():
        natural = {shown, card} == {1, 10}
        for end, p in dealer_ends(shown + card, shown == 1 or card == 1).items():
            reward = float((total > end) - (total < end))
            if h == 0 and soft and total == 21 and not natural:
                reward = 1.0
            out[reward] = out.get(reward, 0.0) + chance * p
    return out


def hit(total: int, soft: int, card: int) -> tuple[int, int] | None:
    """Return (total, usable ace) with one more card, None if bust."""
    hard = total - 10 * soft + card
    if hard > 21:
        return None
    usable = (soft or card == 1) and hard + 10 <= 21
    return (hard + 10, 1) if usable else (max(hard, 0), 0)


def deal() -> Any:
    initial = np.zeros(32 * 11 * 2 + 1)
    for (one, p), (two, q), (shown, r) in (
        (a, b, c) for a in CARDS.items() for b in CARDS.items() for c in CARDS.items()
    ):
        soft = int(1 in (one, two))
        initial[((one + two + 10 * soft) * 11 + shown) * 2 + soft] += p * q * r
    return initial


def _gym(id: str, horizon: int, **options: Any) -> Callable[[], TabularMDP]:
    return partial(reprl.make, f"gym:{id}", horizon, **options)


WORLDS: dict[str, World] = {
    "FrozenLake H=40": World(_gym("FrozenLake-v1", 40)),
    "Blackjack H=8": World(blackjack, (-1.0, 1.0), "gym:Blackjack-v1"),
    "shop H=10": World(partial(SHOP().exact, 10), SHOP().rewards, SHOP),
    "inventory 30×10 H=20": World(partial(INVENTORY().exact, 20), INVENTORY().rewards, INVENTORY),
}

"""A shop as a Gymnasium environment that publishes nothing: the small black box that tests and measurements share."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium import spaces


class Shop(gymnasium.Env[Any, Any]):
    """Seven states, the stock 0 … 6; order 0, 1, 2 or 3 pieces a day, then 0 … 3 customers come.

    A piece sold brings 3, one ordered costs 1, one kept overnight 0.3; the reward lies in REWARDS.
    """

    REWARDS = (-4.8, 9.0)

    def __init__(self) -> None:
        """Open for business."""
        self.observation_space, self.action_space = spaces.Discrete(7), spaces.Discrete(4)
        self.stock = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin with an empty stock."""
        super().reset(seed=seed)
        self.stock = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Order, sell, keep."""
        self.stock, reward = self.trade(self.stock, int(action), self.customers())
        return self.stock, reward, False, False, {}

    def customers(self) -> int:
        """Draw how many come."""
        return int(self.np_random.binomial(3, 0.5))

    @staticmethod
    def trade(stock: int, order: int, customers: int) -> tuple[int, float]:
        """Return what a day leaves in stock, and what it earns."""
        full = min(6, stock + order)
        sold = min(full, customers)
        return full - sold, 3.0 * sold - 1.0 * order - 0.3 * (full - sold)


class Season(Shop):
    """A shop whose customers come oftener from some day on."""

    def __init__(self, days: int = 5, before: float = 0.4, after: float = 0.6) -> None:
        """Open, with the days of the slack season and how often each of three customers comes in it and after it."""
        super().__init__()
        self.days, self.before, self.after, self.day = days, before, after, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin with the first day."""
        self.day = 0
        return super().reset(seed=seed, options=options)

    def customers(self) -> int:
        """Draw how many come."""
        self.day += 1
        return int(self.np_random.binomial(3, self.before if self.day <= self.days else self.after))

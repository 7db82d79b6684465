"""The plan as data: which environments, asked how."""

from __future__ import annotations

from typing import Any, NamedTuple

import reprl
from experiments.defaults.worlds import WORLDS, World
from experiments.pairs import DEFAULT, RHO, Asked, first_action_value

FEWER = 10
"""Pairs at most, for black boxes and where a run takes more than a minute or two."""
SLOW = 100.0


class Case(NamedTuple):
    """Pairs of runs in one environment, by the access that is the default."""

    world: str
    asked: Asked = DEFAULT

    @property
    def name(self) -> str:
        return f"{self.asked.name}/{self.world}"

    @property
    def environment(self) -> World:
        return WORLDS[self.world]

    def build(self) -> reprl.TabularMDP:
        return self.environment.build()

    def baseline(self, mdp: reprl.TabularMDP) -> float:
        return first_action_value(mdp)

    def pairs(self, most: int) -> int:
        slow = self.environment.box is not None or self.environment.seconds > SLOW
        return min(most, FEWER) if slow else most

    def run(self, mdp: reprl.TabularMDP, team: int, shared_seed: int, data_seed: int) -> reprl.LearnResult:
        world = self.environment
        options: dict[str, Any] = {
            **self.asked.options,
            "rho": RHO,
            "shared_seed": shared_seed,
            "data_seed": data_seed,
            "max_samples": world.limit,
        }
        if world.box is None:
            return reprl.learn(mdp, **options)
        return reprl.learn(world.box, horizon=mdp.horizon, reward_range=world.rewards, **options)


def cases() -> list[Case]:
    return [Case(world) for world in WORLDS]

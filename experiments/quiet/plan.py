"""The plan as data: which worlds, which data both teams have, what is asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import reprl
from experiments.pairs import COARSE, DEFAULT, RHO, Asked, first_action_value
from experiments.quiet.worlds import CHANGING, NAMED, NASTY, Box, drawn, make_log, uniform_value

SEED = 28
DATA = ("parallel", "episodes", "mixed", "patient", "box", "blind", "log", "logs")
"""What the two teams have: parallel samples; episodes; one of each; parallel samples, of which the second team takes
more, as it asks for a smaller ρ; a black box that is said to be stationary; one of which nothing is said; logs of
different sizes, of which the smaller seldom suffices for a promise; logs that both may suffice."""
BOXES = ("two arms", "slow door", "rare start", "rare start, idle")
LIMITS = {"parallel": 2**30, "patient": 2**30, "mixed": 2**28, "episodes": 2**28, "box": 10**6, "blind": 10**6}
"""max_samples of a run: one that is not sure by then promises nothing."""
LOGS, ROWS = {"log": (100, 50_000), "logs": (25_000, 50_000)}, 400_000
"""Episodes in the logs of the two teams, and the most rows of a log."""


class Case(NamedTuple):
    """Pairs of runs on one quiet world."""

    world: str
    data: str
    asked: Asked
    build: Callable[[], reprl.TabularMDP]
    limit: int | None = None

    @property
    def name(self) -> str:
        return f"{self.data}/{self.asked.name}/{self.world}"

    def baseline(self, mdp: reprl.TabularMDP) -> float:
        """Return what a quality is measured from: always the first action, or on logs what they show."""
        return uniform_value(mdp) if self.data in LOGS else first_action_value(mdp)

    def run(self, mdp: reprl.TabularMDP, team: int, shared_seed: int, data_seed: int) -> reprl.LearnResult:
        options: dict[str, Any] = {
            **self.asked.options,
            "shared_seed": shared_seed,
            "rho": RHO,
        }
        if self.data in LOGS:
            labels: dict[str, Any] = {
                "states": range(mdp.n_states),
                "actions": range(mdp.n_actions),
                "stationary": True,
            }
            log = make_log(mdp, min(LOGS[self.data][team], ROWS // mdp.horizon), data_seed)
            return reprl.learn_log(log, horizon=mdp.horizon, **labels, **options)
        options |= {"data_seed": data_seed, "max_samples": self.limit or LIMITS[self.data]}
        if self.data in ("box", "blind"):
            said: dict[str, Any] = {"stationary": True} if self.data == "box" else {}
            return reprl.learn(partial(Box, mdp), horizon=mdp.horizon, reward_range=(0.0, 1.0), **said, **options)
        by_episodes = self.data == "episodes" or (self.data == "mixed" and team == 1)
        options["access"] = "episodic" if by_episodes else "generative"
        if self.data == "patient" and team == 1:
            options["rho"] = RHO / 10
        return reprl.learn(mdp, **options)


def cases(first: int, number: int) -> list[Case]:
    """Return every case: the named worlds, and random ones by their seeds."""
    tables = {**NAMED, **NASTY, **drawn(first, number)}
    boxes = {world: NAMED[world] for world in BOXES}
    worlds = {**dict.fromkeys(DATA, tables), "box": boxes, "blind": {**boxes, **CHANGING}}
    return [
        Case(world, data, asked, build)
        for data in DATA
        for world, build in worlds[data].items()
        for asked in (DEFAULT, COARSE)
    ]

"""The plan as data: worlds, numbers of runs, sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from reprl.canonical.goal import Goal

from reprl.mdp.catalogue import catalogue
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make

EPSILON, QUALITY, DELTA = Goal(epsilon=0.3), Goal(quality=0.9), 0.05
ANY = Goal(epsilon=1.0)
"""So large that the loss of a single candidate hardly ever leaves it without weight."""
SEED = 20261115
MOST = 2**23
"""Calls per cell at which a run gives up."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is spent."""

    keys: int
    """Shared seeds of a world; two runs each."""
    episodic_keys: int
    """The same by episodes; the parallel runs of these seeds are their partners."""
    runs: int
    """Runs on boundary worlds, with radii as they are."""
    control_runs: int
    """The same for every control."""
    alone_runs: int
    """Runs beside the boundary of one candidate, as proven and with halved radii."""


FULL = Effort(keys=10, episodic_keys=2, runs=10_000, control_runs=500, alone_runs=40_000)
QUICK = Effort(keys=1, episodic_keys=1, runs=60, control_runs=60, alone_runs=100)

Build = Callable[[], TabularMDP]
LEFT_OUT = ("gambler-v0",)
"""Worlds of the catalogue that are not certified: they mask actions, which no certificate covers."""
WORLDS: dict[str, Build] = {
    "hard S=16 H=3 bias 0.08": partial(make, "hard-instance-v0", 3, n_states=16, bias=0.08),
    **{entry.id: partial(make, entry.id) for entry in catalogue() if entry.id not in LEFT_OUT},
    "random-mdp(10,4,3)": partial(make, "random-mdp-v0", 3, n_states=10, n_actions=4),
    "random-mdp(10,3,4)": partial(make, "random-mdp-v0", 4, n_states=10, n_actions=3),
    "river-swim(5,2,6)": partial(make, "river-swim-v0", 6, n_states=5),
}
BY_EPISODES: dict[str, tuple[Build, int]] = {
    "combination-lock-v0": (WORLDS["combination-lock-v0"], 2**34),
    "two-goals-v0": (WORLDS["two-goals-v0"], 2**34),
}
"""With the most samples of a run."""
QUICK_WORLDS = ("hard S=16 H=3 bias 0.08",)

TINY = ((1, 2, 1), (2, 2, 2), (3, 2, 2), (2, 3, 2), (4, 2, 2), (2, 2, 3))
"""(S, A, H) of boundary worlds."""
TINY_CALLS = (1024, 8192)
SINGLE = ((1, 2, 1), (1, 3, 1), (2, 2, 1), (2, 2, 2))
"""(S, A, H) of worlds beside a boundary of one candidate."""
SMALL_DELTA = 1e-4
"""δ there: what a single comparison misses at halved radii, about one run in 400, is far above it."""
STRENGTHS = (1.0, 0.5, 0.25, 0.125)
"""What radii are multiplied by: 1 as they are, the others are controls."""

COVERAGE_RUNS = 300
"""Data sets whose intervals are held against the truth, for every way and strength."""
COVERAGE_STRENGTHS = (1.0, 0.5, 0.25, 0.125)
COVERAGE_WAYS = {
    "calls": "parallel calls, by steps",
    "planned": "episodes of policies fixed beforehand, by steps",
    "adaptive": "episodes of an explorer that adapts, by cells",
}

"""The plan as data: which worlds, by which access, how many pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from experiments.canonical.last import LAST, SMALLER
from experiments.canonical.worlds import BY_EPISODES, HELD_OUT, TINY
from reprl.mdp.catalogue import catalogue
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make
from tests.shop import Shop

EPSILON, RHO = 0.3, 0.1
SEED = 20261116


class Case(NamedTuple):
    """Pairs of runs on one world."""

    group: str
    """"targets", "catalogue", "held out" or "made last"."""
    world: str
    access: str
    build: Callable[[], TabularMDP]
    epsilon: float = EPSILON
    most: int | None = None
    """max_samples."""
    target: float | None = None
    """Samples that the design asks for, in the mean."""
    pairs: int | None = None
    """Fewer than the effort's, where a pair is slow; more, where pairs had come apart."""
    stationary: bool | None = None
    """False where steps are not pooled although the world shows that they could be."""

    @property
    def name(self) -> str:
        """What it is stored under."""
        return f"{self.group}/{self.access}/{self.world}"


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is spent."""

    pairs: int
    """Pairs of a case."""
    chunk: int
    """Pairs that are measured, and stored, together."""
    rival_pairs: int
    """Most pairs at each budget of a rival's search."""
    rehearsed_pairs: int
    """Pairs at each fixed size."""
    seeds: int
    """Shared seeds whose policies are counted."""
    sampled_seeds: int
    """The same for rule="sampled"."""


FULL = Effort(pairs=40, chunk=10, rival_pairs=60, rehearsed_pairs=40, seeds=100, sampled_seeds=30)
QUICK = Effort(pairs=2, chunk=2, rival_pairs=4, rehearsed_pairs=2, seeds=5, sampled_seeds=2)

GENERATIVE, EPISODIC = "generative", "episodic"
FROZEN = partial(make, "gym:FrozenLake-v1", 12)


ELSEWHERE = ("icu-sepsis-v0",)
"""Measured by an experiment of its own."""
MASKED = ("gambler-v0",)
"""Worlds with a mask of actions, which rivals do not take."""
CATALOGUE = tuple(entry.id for entry in catalogue() if entry.id not in ELSEWHERE)


def _targets() -> list[Case]:
    grid, swim = partial(make, "gridworld-v0", 6, size=4), partial(make, "river-swim-v0", 6, n_states=5)
    hard = partial(make, "hard-instance-v0", 3, n_states=16, bias=0.08)
    seeds = [partial(make, "random-mdp-v0", 4, n_states=10, n_actions=3, seed=seed) for seed in range(4)]
    return [
        Case("targets", "gridworld 4×4 H=6", GENERATIVE, grid, target=5e5),
        Case("targets", "gridworld 4×4 H=6", EPISODIC, grid, target=5e5),
        Case("targets", "hard instance S=16 H=3 bias 0.08", GENERATIVE, hard, target=3e4),
        *(
            Case("targets", f"random-mdp(10,3,4) seed {n}", EPISODIC, build, target=2e7)
            for n, build in enumerate(seeds)
        ),
        Case("targets", "river-swim(5,2,6)", EPISODIC, swim, target=3e5),
        Case("targets", "FrozenLake H=12 ε=0.02", EPISODIC, FROZEN, epsilon=0.02, most=2**31, target=2e7),
    ]


def _catalogue() -> list[Case]:
    return [
        Case("catalogue", name, GENERATIVE, partial(make, name), pairs=_pairs(name, GENERATIVE)) for name in CATALOGUE
    ]


APART = ("near ties at many scales", "chain with rare rooms", "duplicated actions", "absorbing states")
"""Worlds that are measured without pooling as well."""
PAIRS = {"sparse S=200": 20, "sparse S=100": 20, "hub, 100 rare states": 20}
"""Fewer pairs than the effort's, as these are slow."""
FEWEST, MORE = 60, 200
"""Pairs on worlds made last, and where some of the first were apart."""
PARTED = (
    "all gaps ε/H, S=20 A=4 H=5",
    "8 arms around ε/H",
    "absorbing states",
    "law changes every step",
    "rare jackpots",
    "chain with rare rooms, steps apart",
    "absorbing states, steps apart",
    "gambler-v0",
)
"""Which these are, by parallel samples alone."""
PARTED_BOTH_WAYS = (
    "ladder of 24 arms",
    "ladder of 60 arms",
    "twins",
    "casino, ε = 0.005",
    "two laws in turn",
    "pay that grows",
    "two queues",
)
"""And by episodes too."""


def _pairs(world: str, access: str) -> int | None:
    parted = world in PARTED_BOTH_WAYS or (world in PARTED and access == GENERATIVE)
    return MORE if parted else PAIRS.get(world)


def _held_out() -> list[Case]:
    out = []
    for access in (GENERATIVE, EPISODIC):
        for world in HELD_OUT if access == GENERATIVE else BY_EPISODES:
            epsilon = TINY if world == "tiny ε" else EPSILON
            pairs = _pairs(world, access)
            out.append(Case("held out", world, access, HELD_OUT[world], epsilon, 2**36, pairs=pairs))
    for world in APART:
        name = f"{world}, steps apart"
        pairs = _pairs(name, GENERATIVE)
        out.append(Case("held out", name, GENERATIVE, HELD_OUT[world], most=2**36, stationary=False, pairs=pairs))
    return out


def _made_last() -> list[Case]:
    return [
        Case(
            "made last",
            world,
            access,
            build,
            SMALLER.get(world, EPSILON),
            2**36,
            pairs=_pairs(world, access) or FEWEST,
        )
        for access in (GENERATIVE, EPISODIC)
        for world, build in LAST.items()
    ]


def cases(quick: bool = False) -> list[Case]:
    """Return every case, what matters most first."""
    out = [*_targets(), *_held_out(), *_made_last(), *_catalogue()]
    return [case for case in out if case.world in QUICK_WORLDS] if quick else out


QUICK_WORLDS = ("hard instance S=16 H=3 bias 0.08", "tiny ε", "hard-instance-v0")

IN_HEAD_TO_HEAD = {
    "gridworld-v0": "gridworld 4×4",
    "random-mdp-v0": "random-mdp",
    "two-goals-v0": "two-goals",
    "combination-lock-v0": "combination-lock",
}
"""Catalogue worlds whose rivals are in experiments/head_to_head/data.json, at the same horizon, ε and ρ."""
RIVALS = ("greedy", "reprl (compact)", "karbasi-gaussian (correlated)", "karbasi-softmax")
"""Whose budgets are searched on the other worlds: whoever was best somewhere in the head-to-head."""
RIVAL_LIMIT = 2**38

SIZES = tuple(2**k for k in range(5, 17, 2))
"""Parallel calls at which a rehearsal is held against the truth."""
REHEARSED: dict[str, Callable[[], TabularMDP]] = {
    "gridworld 4×4": partial(make, "gridworld-v0"),
    "river-swim": partial(make, "river-swim-v0"),
    "random-mdp(10,3,4) seed 1": partial(make, "random-mdp-v0", 4, seed=1),
    "inventory": partial(make, "inventory-v0"),
    "maintenance": partial(make, "maintenance-v0"),
    **{name: HELD_OUT[name] for name in ("heaven or hell H=10", "duplicated actions", "hub, 38 rare states")},
    "chain with rare rooms": HELD_OUT["chain with rare rooms"],
}
LARGER = {"chain with rare rooms": (2**17, 2**19)}
"""More sizes, where the others are too small to agree at."""

LISTED: dict[str, Callable[[], TabularMDP]] = {
    **{name: partial(make, name) for name in CATALOGUE if name not in MASKED},
    **{f"random-mdp(10,3,4) seed {seed}": partial(make, "random-mdp-v0", 4, seed=seed) for seed in range(2)},
    **{name: HELD_OUT[name] for name in ("funnel", "duplicated actions", "all gaps ε/H, S=12 A=2 H=3")},
}

COSTS = {"S=716 A=25 H=20": (716, 25, 20, 30), "S=5000 A=4 H=10": (5000, 4, 10, 30)}
"""(S, A, H, successors of a cell)."""
COST_CALLS = (2**5, 2**10)
"""Parallel calls at which one look is timed."""

BOXES: dict[str, tuple[Any, dict[str, Any]]] = {
    "shop, H=10, stationary=True": (Shop, {"horizon": 10, "reward_range": Shop.REWARDS, "stationary": True}),
    "Blackjack, H=8, stationary=True": (
        "gym:Blackjack-v1",
        {"horizon": 8, "reward_range": (-1.0, 1.0), "stationary": True},
    ),
    "Blackjack, H=8": ("gym:Blackjack-v1", {"horizon": 8, "reward_range": (-1.0, 1.0)}),
}
"""Black boxes, whose every episode is played: environment and options."""

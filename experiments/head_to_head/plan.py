"""The plan as data: which instances, which learners, which sizes, how much evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reprl.lab.baselines import learners, make_learner
from reprl.mdp.catalogue import hard_instance
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make
from reprl.sources.episodes import EpisodicModel
from reprl.sources.parallel import GenerativeModel

EPSILON, RHO = 0.3, 0.1
HORIZON = 3
"""Of the hard instances."""
CLEAR = 0.8
"""Bias of their decided states; a policy that ignores it loses 0.4 > ε."""
NEAR = 0.12
"""Bias at which two arms are 0.08 apart, 0.8 of the window ε/H: the worst case of laws with such windows."""
SEED = 20261115


def hard(n_states: int, n_actions: int = 2, bias: float = 0.0) -> TabularMDP:
    """A uniform walk; even states tie all actions (or have two `bias` apart), odd ones have one clearly best action.

    With two actions this is the catalogue's hard instance for biases (bias, ±0.8, …).
    """
    if n_actions == 2:
        row = [bias if s % 2 == 0 else CLEAR * (1 if s % 4 == 1 else -1) for s in range(n_states)]
        return hard_instance(np.tile(row, (HORIZON, 1)))
    reward = np.full((HORIZON, n_states, n_actions), 2.0 / 3.0)
    for s in range(1, n_states, 2):
        reward[:, s] = (2.0 - CLEAR) / 3.0
        reward[:, s, s // 2 % n_actions] = (2.0 + CLEAR) / 3.0
    walk = np.full((n_states, n_actions, n_states), 1.0 / n_states)
    return TabularMDP(walk, reward, np.full(n_states, 1.0 / n_states), HORIZON)


INSTANCES: dict[str, Callable[[], TabularMDP]] = {
    "gridworld 4×4": lambda: make("gridworld-v0"),
    "random-mdp": lambda: make("random-mdp-v0"),
    "two-goals": lambda: make("two-goals-v0"),
    "river-swim": lambda: make("river-swim-v0", 12),
    "combination-lock": lambda: make("combination-lock-v0"),
    **{f"hard-instance S={n}": partial(hard, n) for n in (8, 16, 32, 64)},
}


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is spent."""

    pairs: dict[str, int]
    """Most pairs at each budget of the table, by access."""
    limit: dict[str, int]
    """Largest budget, by access."""
    scouts: int
    """Most pairs at each budget while a sweep's point is looked for."""
    around: int
    """Pairs at each of three budgets around it."""


FULL = Effort(
    pairs={"generative": 60, "episodic": 16},
    limit={"generative": 2**40, "episodic": 2**22},
    scouts=12,
    around=200,
)
QUICK = Effort(
    pairs={"generative": 8, "episodic": 3},
    limit={"generative": 2**24, "episodic": 2**13},
    scouts=6,
    around=8,
)
QUICK_INSTANCES = ("combination-lock", "hard-instance S=8")
QUICK_LEARNERS = ("reprl (joint)", "greedy", "ucbvi")


class Contender(NamedTuple):
    """A learner with its options, and how it samples."""

    label: str
    name: str
    """In ``reprl.learners()``."""
    access: str
    options: Mapping[str, Any]

    def make(self, budget: int) -> Any:
        """Return the learner that spends at most a budget."""
        extra = {"access": self.access} if self.name == "reprl" else {}
        return make_learner(self.name, samples=budget, **extra, **self.options)

    def first_budget(self, mdp: TabularMDP) -> int:
        """Return the first budget of a search: a parallel call, or an episode for each cell and two more."""
        if self.access == "generative":
            return GenerativeModel(mdp, 0).samples_per_call
        return EpisodicModel(mdp, 0).samples_per_episode * (mdp.horizon * mdp.n_states * mdp.n_actions + 2)


VARIANTS: dict[tuple[str, str], dict[str, dict[str, Any]]] = {
    ("reprl", "generative"): {
        "reprl (joint)": {"rule": "paper", "constants": "scaled", "coupling": "joint"},
        "reprl (product)": {"rule": "paper", "constants": "scaled", "coupling": "product"},
    },
    ("reprl", "episodic"): {"reprl (joint)": {"rule": "paper", "constants": "scaled", "coupling": "joint"}},
    ("karbasi-gaussian", "generative"): {
        "karbasi-gaussian (shared)": {"coupling": "shared"},
        "karbasi-gaussian (correlated)": {"coupling": "correlated"},
    },
}
"""Learners that take part under other names than their own: (name, access) → label → options."""


def contenders(epsilon: float, rho: float) -> list[Contender]:
    """Return who takes part, parallel sampling first, each asked for ε and ρ."""
    out = []
    for access in ("generative", "episodic"):
        for entry in learners():
            if access in entry.access:
                asked = {"epsilon": epsilon, "rho": rho}
                aims = {key: value for key, value in asked.items() if key in entry.options}
                for label, options in VARIANTS.get((entry.name, access), {entry.name: {}}).items():
                    out.append(Contender(label, entry.name, access, {**aims, **options}))
    return out


SOFT = Contender(
    "reprl (joint, 4ε)",
    "reprl",
    "generative",
    {"epsilon": 4 * EPSILON, "rho": RHO, "rule": "paper", "constants": "scaled", "coupling": "joint"},
)
"""As soft as the rivals' presets, whose grids and noise are 4·ε/H and not ε/H wide, and judged at ε like all others."""


class Cell(NamedTuple):
    """One entry of the table."""

    instance: str
    contender: Contender

    @property
    def name(self) -> str:
        """What it is stored under."""
        return f"table/{self.contender.access}/{self.instance}/{self.contender.label}"


class Point(NamedTuple):
    """One point of a sweep."""

    sweep: str
    value: float
    contender: Contender
    states: int
    actions: int
    epsilon: float
    rho: float
    bias: float

    @property
    def name(self) -> str:
        """What it is stored under."""
        return f"sweep/{self.sweep}/{self.value:g}/{self.contender.label}"

    @property
    def x(self) -> float:
        """What samples are plotted against."""
        return 1.0 / self.value if self.sweep in ("epsilon", "rho") else self.value


SWEEPS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "states": ("S, half of the states tied", "states", (4, 8, 16, 32, 64)),
    "near": ("S, half of the states nearly tied", "states", (4, 8, 16, 32)),
    "actions": ("A, all actions tied", "actions", (2, 4, 8)),
    "epsilon": ("1/ε", "epsilon", (0.1, 0.2, 0.4)),
    "rho": ("1/ρ", "rho", (0.05, 0.1, 0.2)),
}
"""Sweep → (what samples are plotted against, the field that varies, its values)."""
SWEPT = ("reprl (joint)", "reprl (product)", "rpvi", "karbasi-softmax", "list-robust")
"""The learners of every sweep."""
MORE = {
    "states": ("karbasi-grid", "karbasi-gaussian (shared)", "karbasi-gaussian (correlated)"),
    "near": (SOFT.label,),
}
"""More learners of a sweep. Greedy never meets ρ at ties."""
THEORY = {
    "reprl (joint)": {"states": 2, "near": 2, "actions": 1, "epsilon": 2, "rho": 2},
    "reprl (product)": {"states": 3, "near": 3, "actions": 1, "epsilon": 2, "rho": 2},
    "rpvi": {"states": 3, "near": 3, "actions": 3, "epsilon": 2, "rho": 2},
    "karbasi-grid": {"states": 3, "near": 3, "actions": 3, "epsilon": 2, "rho": 2},
    "karbasi-gaussian (shared)": {},
    "karbasi-gaussian (correlated)": {"states": 2, "near": 2, "actions": 2, "epsilon": 2, "rho": 2},
    "karbasi-softmax": {"states": 3, "near": 3, "actions": 1, "epsilon": 2, "rho": 2},
    "list-robust": {"states": 3, "near": 3, "actions": 3, "epsilon": 2, "rho": 2},
}
"""Exponents of total samples in the papers' bounds, logarithms left out."""
QUICK_SWEEPS = {"states": (4, 8)}


def cells(quick: bool) -> list[Cell]:
    """Return the table's entries, parallel sampling first."""
    out = []
    for instance in INSTANCES:
        if not quick or instance in QUICK_INSTANCES:
            out += [Cell(instance, one) for one in (*contenders(EPSILON, RHO), SOFT)]
    if quick:
        out = [cell for cell in out if cell.contender.label in QUICK_LEARNERS]
    return sorted(out, key=lambda cell: cell.contender.access != "generative")


def points(quick: bool) -> list[Point]:
    """Return the sweeps' points."""
    out = []
    for sweep, (_, field, values) in SWEEPS.items():
        labels = QUICK_LEARNERS if quick else SWEPT + MORE.get(sweep, ())
        for value in QUICK_SWEEPS.get(sweep, ()) if quick else values:
            base = {"states": 8, "actions": 2, "epsilon": EPSILON, "rho": RHO, field: value}
            sizes, aims = (int(base["states"]), int(base["actions"])), (base["epsilon"], base["rho"])
            bias = NEAR if sweep == "near" else 0.0
            known = [one for one in (*contenders(*aims), SOFT) if one.access == "generative"]
            out += [Point(sweep, value, one, *sizes, *aims, bias) for one in known if one.label in labels]
    return out

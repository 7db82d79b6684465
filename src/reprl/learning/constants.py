"""Presets: how many samples, and how ε is shared out. "paper" is proven, "practical" is calibrated.

Every constant that the paper pins is used as it stands; those it leaves as Θ(1) or "sufficiently large" and that a
formula needs are set to 1 and listed in UNPINNED.
"""

from __future__ import annotations

import math

from reprl.coupling.correlated import DEFAULT_BLOCK, block_size
from reprl.decide.best_arm import paper_requirement
from reprl.decide.induction import Accuracy

PRESETS = ("practical", "paper")

UNPINNED: dict[str, float] = {
    "ζ ≪ ε/(H² log⁵(SAH/εδ)), Theorem 4.5": 1.0,
    "polylogarithms hidden in Õ, Theorems 4.13, 6.1, A.5": 1.0,
    "constants of the rivals' and the lower bounds' rates": 1.0,
}
"""Constants that no statement of the paper fixes, with the value used where one is needed."""

GENERATIVE_CONSTANT = {"joint": 3.6, "blocked": 3.6, "product": 0.7}
"""Fitted constants of the practical number of parallel calls; experiments/calibration prints them from its data."""

EXPONENTIAL_FACTOR = 8.0
"""Calls for the exponential mechanism over those for compact: twice what its worst instance, all arms tied, needed."""


def paper_calls(
    n_states: int,
    n_actions: int,
    horizon: int,
    *,
    epsilon: float,
    rho: float,
    delta: float,
    coupling: str,
    block: int = DEFAULT_BLOCK,
) -> int:
    """Return the parallel calls m at which the paper's induction is ρ-replicable and ε-optimal with probability 1 − δ.

    Each of the H steps solves S best-arm problems with utilities in [0, H]: accuracy ε/(4H) (one tier), that is ε/(4H²)
    after scaling to [0, 1], replicability ρ/H, failure min(δ, ρ)/H; m is the smallest with S/m at most what
    Proposition 3.6 asks.
    """
    accuracy = Accuracy.paper(epsilon, horizon, 1).by_tier[0] / horizon
    bound = paper_requirement(
        n_states,
        n_actions,
        epsilon=accuracy,
        rho=rho / horizon,
        delta=min(delta, rho) / horizon,
        coupling=coupling,
        block=block,
    )
    return math.ceil(n_states / bound)


def practical_calls(
    n_states: int,
    n_actions: int,
    horizon: int,
    *,
    epsilon: float,
    rho: float,
    coupling: str,
    block: int = DEFAULT_BLOCK,
    mechanism: str = "compact",
) -> int:
    """Return a calibrated number of parallel calls: constant · S·B·H⁴/(ε²ρ²), at least 100.

    B counts the groups of states that are coupled separately: 1 for joint, ⌈S/block⌉ for blocked, S for product. Of the
    four powers of H two come from the window ε/H inside which arms are drawn and two from adding up H steps. The number
    of actions does not enter; n_actions is there so that every rule is called alike. docs/calibration.md has the fit.
    """
    groups = -(-n_states // block_size(n_states, coupling, block))
    size = GENERATIVE_CONSTANT[coupling] * n_states * groups * horizon**4 / (epsilon * rho) ** 2
    if mechanism == "exponential":
        size *= EXPONENTIAL_FACTOR
    return max(100, math.ceil(size))

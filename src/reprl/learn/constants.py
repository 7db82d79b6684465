"""Presets: how many samples, and how ε is shared out. "paper" is proven, "practical" is calibrated.

Every constant that the paper pins is used as it stands; those it leaves as Θ(1) or "sufficiently large" are set to 1 and
listed in UNPINNED.
"""

from __future__ import annotations

import math

from reprl.decide.best_arm import paper_requirement
from reprl.decide.induction import Accuracy

PRESETS = ("practical", "paper")

UNPINNED = {
    "ζ in Thm l. 1228 (ζ ≪ ε/(H² log⁵))": 1.0,
    "C and the power of log A in m (l. 1654)": 1.0,
}
"""Constants that no statement of the paper fixes, with the value used where one is needed."""

GENERATIVE_CONSTANT = {"joint": 0.1, "blocked": 0.1, "product": 0.1}
"""Fitted constant of the practical number of parallel calls; experiments/calibration/generative.py makes it."""


def paper_calls(
    n_states: int, n_actions: int, horizon: int, *, epsilon: float, rho: float, delta: float, coupling: str
) -> int:
    """Return the parallel calls m at which the paper's induction is ρ-replicable and ε-optimal with probability 1 − δ.

    Each of the H steps solves S best-arm problems with utilities in [0, H]: accuracy ε/(4H) (one tier), i.e. ε/(4H²) after
    scaling to [0, 1], replicability ρ/H, failure min(δ, ρ)/H; m is the smallest with S/m at most what l. 920 requires.
    """
    accuracy = Accuracy.paper(epsilon, horizon, 1).by_tier[0] / horizon
    bound = paper_requirement(
        n_states,
        n_actions,
        epsilon=accuracy,
        rho=rho / horizon,
        delta=min(delta, rho) / horizon,
        coupling=coupling,
    )
    return math.ceil(n_states / bound)


def practical_calls(
    n_states: int, n_actions: int, horizon: int, *, epsilon: float, rho: float, delta: float, coupling: str
) -> int:
    """Return a calibrated number of parallel calls."""
    raise NotImplementedError

"""Presets of the rule "sampled": "paper", whose sizes are written here, and "practical", which stops by rehearsal.

Every constant that the paper pins is used as it stands; those it leaves as Θ(1) or "sufficiently large" and that a
formula needs are set to 1: that of ζ ≪ ε/(H² log⁵(SAH/εδ)) (Theorem 4.5), the polylogarithms hidden in Õ (Theorems
4.13, 6.1, A.5), and those of the rivals' and the lower bounds' rates.
"""

from __future__ import annotations

import math

from reprl.coupling.grade import Grade
from reprl.decide.best_arm import paper_requirement
from reprl.decide.induction import Accuracy

PRESETS = ("practical", "paper")


def paper_calls(
    n_states: int, n_actions: int, horizon: int, *, epsilon: float, rho: float, delta: float, grade: Grade
) -> int:
    """Return the parallel calls m at which the paper's induction is ρ-replicable and ε-optimal with probability 1 − δ.

    Each of the H steps solves S best-arm problems with utilities in [0, H]: accuracy ε/(4H) (one tier), that is ε/(4H²)
    after scaling to [0, 1], replicability ρ/H, failure min(δ, ρ)/H; m is the smallest with S/m at most what
    Proposition 3.6 asks.
    """
    accuracy = Accuracy.paper(epsilon, horizon, 1).by_tier[0] / horizon
    share, failure = rho / horizon, min(delta, rho) / horizon
    bound = paper_requirement(n_states, n_actions, epsilon=accuracy, rho=share, delta=failure, grade=grade)
    return math.ceil(n_states / bound)

"""The sweep as data: which solvers, which sizes, how much evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Series(NamedTuple):
    """One solver of sign-one-way marginals."""

    name: str
    target: str
    coupling: str


class Point(NamedTuple):
    """One measurement: a solver at one (n, ρ, ε)."""

    series: Series
    sweep: str
    n: int
    rho: float
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is spent on each measurement."""

    pairs: int = 400
    """Pairs of runs behind each of the three sample sizes around the answer, the shared key integrated out."""
    draws: int = 512
    """Draws behind each integral."""
    scouts: int = 60
    """Pairs that look for the neighbourhood of the answer, three times."""
    accuracy_runs: int = 100
    """Runs whose accuracy is checked exactly, on each of the instance families."""
    real_pairs: int = 500
    """Pairs run for real, fresh key each, at the sample size found; a tenth of it for n = 64, jointly."""
    learner_pairs: int = 400
    """Pairs of the RL learner at each of five sample sizes."""
    bootstraps: int = 400


QUICK = Effort(pairs=40, draws=128, scouts=12, accuracy_runs=20, real_pairs=30, learner_pairs=12, bootstraps=100)
FULL = Effort()

JOINT = Series("joint, every coordinate", "every", "joint")
AVERAGE = Series("joint, on average", "average", "joint")
PRODUCT = Series("product, every coordinate", "every", "product")

SIZES = (4, 8, 16, 32, 64, 128, 256)
RHOS = (0.02, 0.04, 0.08, 0.16, 0.3)
EPSILONS = (0.05, 0.1, 0.2, 0.4)
BASE_N, BASE_RHO, BASE_EPSILON = 32, 0.1, 0.2
BASE = {"n": BASE_N, "rho": BASE_RHO, "epsilon": BASE_EPSILON}
DELTA = 0.01
REAL_LIMIT = 64
"""Largest n whose joint search is run for real: its work grows about 1.19-fold with every coordinate."""

LEARNER_STATES = (2, 4, 8, 16, 32)
LEARNER_HORIZON = 4
EDGES = (0.25, 0.5, 0.75, 0.9, 0.97)
"""Biases u·gap/2 in every coordinate, to look for an instance that is worse than the cube."""
EDGE_N, WORST_EDGE = 64, 0.9
"""Where u is varied, and the u at which n is."""
LARGE_N = 32
"""From here on a slope in n is also fitted by itself: below, few coordinates make the race milder than its bound."""


def points() -> list[Point]:
    """Return every measurement of the sweep."""
    out = [Point(series, "n", n, BASE_RHO, BASE_EPSILON) for series in (JOINT, AVERAGE, PRODUCT) for n in SIZES]
    out += [Point(series, "rho", BASE_N, rho, BASE_EPSILON) for series in (JOINT, AVERAGE) for rho in RHOS]
    out += [Point(series, "epsilon", BASE_N, BASE_RHO, eps) for series in (JOINT, AVERAGE) for eps in EPSILONS]
    return out

"""Radii: how far a mean of bounded samples can be from its expectation, by one inequality for all statements.

The inequality is Fan's (in the form of Howard et al.): for |X − μ| ≤ D and 0 < λD < 1 the expectation of
exp(λ(X − μ) − ψ(λD)/D²·(X − μ)²) is at most 1, with ψ(y) = −log(1 − y) − y. Products over samples that come one after
the other are supermartingales, whatever decides how many there are. Each statement is made for K values of λ at once
(docs/proofs/certificate.md §2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from reprl.kernels import njit

GRID = 14
"""K: values of λ, each half of the one before."""
TOP = 0.9
"""Largest λ·D."""
ROUND = 1e-9
"""Distances below this are rounding: nothing is decided by them."""
STEEP = 0.98
"""The same for visits, whose variables are nearly always 0."""
SHARES = {
    "compare": 0.3,
    "cell": 0.06,
    "spread": 0.04,
    "law": 0.04,
    "policy": 0.04,
    "worth": 0.07,
    "unseen": 0.39,
    "onward": 0.01,
    "reach": 0.04,
    "reach_cell": 0.01,
}
"""How δ is shared out over the kinds of statements."""


class Levels(NamedTuple):
    """log(number of statements of a kind / its share of δ), for each kind."""

    compare: float
    """V* and differences of two actions, one martingale each."""
    cell: float
    """The mean of reward plus V* in a cell."""
    spread: float
    """Variances."""
    law: float
    """Probabilities of successors."""
    policy: float
    """Values of the policies that tolerances print and of the baseline, in every cell."""
    worth: float
    """The same, from the start: twice, for two sets of λ, and the mean of the starts."""
    unseen: float
    """Visits of the tolerances' plain policies, one martingale each, for the largest λ and from above: it says that
    what is never seen is rare."""
    onward: float
    """The same as `unseen`, from every state on."""
    reach: float
    """The same, for every other λ and both sides."""
    reach_cell: float
    """The same, cell by cell."""


def levels(shape: tuple[int, int, int], candidates: int, delta: float, *, shrink: float = 1.0) -> Levels:
    """Count the statements and share δ out.

    candidates is J; a smaller shrink shrinks radii by about this factor, for negative controls only.
    """
    horizon, n_states, n_actions = shape
    states = horizon * n_states
    cells, both = states * n_actions, 2 * GRID
    visited, valued = candidates, candidates + 1  # plain policies; printed ones and the baseline
    many = {
        "compare": both * (cells * (n_actions - 1) // 2 + states + 3),
        "cell": both * cells,
        "spread": both * cells,
        "law": both * (cells + 1) * n_states,
        "policy": both * valued * 2 * states,
        "worth": both * valued * 6,
        "unseen": visited * states,
        "onward": visited * states * states,
        "reach": both * visited * states,
        "reach_cell": both * visited * states * (cells + 1),
    }
    logs = {name: math.log(number / (SHARES[name] * delta)) for name, number in many.items()}
    return Levels(**{name: shrink**2 * log for name, log in logs.items()})


@njit(cache=True, nogil=True)
def psi(y: float) -> float:
    """Return −log(1 − y) − y, never less than it is."""
    if y < 1e-3:
        return y * y * (0.5 + y * (1.0 / 3.0 + 0.5 * y))
    return -math.log1p(-y) - y


@njit(cache=True, nogil=True)
def mean_radius(n: float, span: float, variance: float, log: float) -> float:
    """Return how far the mean of n samples is from its expectation, at most; valid for all n at once.

    The samples, n > 0, differ by at most span ≥ 1; variance is about their own mean, or more.
    """
    radius = span
    for _ in range(
        4
    ):  # squares are about the expectation: variance + radius², and every radius that holds gives another
        least = radius
        for k in range(GRID):
            rate = TOP * 0.5**k
            spread = variance + radius * radius
            if rate * span > TOP:  # no statement for this λ
                continue
            least = min(least, log / (rate * n) + psi(rate * span) / (rate * span * span) * spread)
        radius = least
    return radius


@njit(cache=True, nogil=True, inner=True)
def share_radius(n: float, square: float, log: float) -> float:
    """Return how far the mean of n samples in [0, 1] is from its expectation, given their mean square, or more."""
    least = 1.0
    for k in range(GRID):
        rate = STEEP * 0.5**k
        least = min(least, log / (rate * n) + psi(rate) / rate * square)
    return least

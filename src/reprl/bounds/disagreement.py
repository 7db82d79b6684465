"""How often a coupling parts two product laws, the shared key integrated out: no search, any number of coordinates.

Measuring a disagreement of 1 % by running pairs needs thousands of pairs, and the search of a joint coupling may be out
of reach for hundreds of coordinates. But given the two runs' laws P and Q, the exponential race
(docs/proofs/coupling.md §1) disagrees with probability exactly
1 − E_{x∼P}[1/(1 + E_{y∼P}(L(y)/L(x) − 1)₊ + Q(P=0)/L(x))], L = Q/P, whose two expectations are estimated here by the
same draws from P (docs/proofs/lower-bounds.md §7).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.correlated import DEFAULT_BLOCK, METHODS
from reprl.errors import ReprlError, check_array, check_choice, check_distribution, check_int
from reprl.randomness import DataStream


def race_disagreement(
    first: ArrayLike,
    second: ArrayLike,
    stream: DataStream,
    *,
    method: str = "joint",
    block: int = DEFAULT_BLOCK,
    draws: int = 1024,
) -> float:
    """Estimate the probability, over the shared key, that `correlated_sample` gives two runs different choices.

    Args:
        first: (n, 2) laws of one run.
        second: (n, 2) laws of the other.
        stream: private randomness of the estimate.
        method: as in correlated_sample.
        block: as in correlated_sample.
        draws: points of P behind each expectation.

    Guarantee:
        Exact for "product" (1 − Π(1 − TV_i)) and for laws that part surely; otherwise the error has standard deviation
        at most ½/√draws per block and a bias of order 1/draws.

    Randomness:
        Words 0, 1, … of the stream.
    """
    p, q = _coins("first", first), _coins("second", second)
    if p.shape != q.shape:
        raise ReprlError(f"both products must have one shape, got {p.shape} and {q.shape}")
    method = check_choice("method", method, METHODS)
    if method == "product":
        return float(1.0 - np.prod(1.0 - np.abs(p - q)))
    size = p.size if method == "joint" else min(p.size, check_int("block", block, 1))
    draws = check_int("draws", draws, 2, 2**24)
    uniforms = stream.uniforms(draws * p.size).reshape(draws, p.size)
    agree = 1.0
    for low in range(0, p.size, size):
        part = slice(low, low + size)
        agree *= 1.0 - _one_race(p[part], q[part], uniforms[:, part])
    return 1.0 - agree


def _one_race(p: NDArray[np.float64], q: NDArray[np.float64], uniforms: NDArray[np.float64]) -> float:
    """Evaluate the formula of the module for one block of coins with heads probabilities p and q."""
    heads = uniforms < p
    with np.errstate(divide="ignore", invalid="ignore"):
        # −inf where the other run cannot go; a coin that cannot land this way here is never drawn.
        up, down = np.log(q) - np.log(p), np.log1p(-q) - np.log1p(-p)
    ratio = np.sort(np.where(heads, up, down).sum(axis=1))
    shared = np.where(p > 0.0, q, 0.0) + np.where(p < 1.0, 1.0 - q, 0.0)
    outside = 1.0 - float(np.prod(shared))
    alive = ratio > -math.inf
    logs = ratio[alive]
    if logs.size == 0:
        return 1.0
    weights = np.exp(logs - logs[-1])
    above = np.cumsum(weights[::-1])[::-1] / weights - np.arange(logs.size, 0, -1)
    excess = np.maximum(above, 0.0) / max(ratio.size - 1, 1)
    with np.errstate(over="ignore"):
        same = 1.0 / (1.0 + excess + outside * np.exp(-logs))
    return float(1.0 - same.sum() / ratio.size)


def _coins(name: str, laws: ArrayLike) -> NDArray[np.float64]:
    """Return the probability of outcome 1 of every row."""
    table = check_array(name, laws, 2)
    if table.shape[0] < 1 or table.shape[1] != 2:
        raise ReprlError(f"{name} must have shape (n, 2) with n at least 1, got {table.shape}")
    check_distribution(name, table)
    heads: NDArray[np.float64] = table[:, 1] / table.sum(axis=1)
    return heads

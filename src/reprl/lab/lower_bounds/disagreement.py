"""How often a coupling parts two product laws, the shared key integrated out: no search, any number of coordinates.

Measuring a disagreement of 1 % by running pairs needs thousands of pairs, and the search of a joint coupling may be out
of reach for hundreds of coordinates. But given the two runs' laws P and Q, the exponential race
(docs/proofs/coupling.md §1) agrees with probability exactly Σ_x P(x)/S(P(x)/Q(x)), S(r) = Σ_y max(P(y), r·Q(y)). Both
sums are estimated here by the same draws from (P + Q)/2 (docs/proofs/lower-bounds.md §7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.spec import COUPLINGS
from reprl.errors import InputError, check_array, check_choice, check_distribution, check_int
from reprl.randomness import DataStream


def race_disagreement(
    first: ArrayLike, second: ArrayLike, stream: DataStream, *, coupling: str = "joint", draws: int = 1024
) -> float:
    """Estimate the probability, over the shared key, that `correlated_sample` gives two runs different choices.

    Both are (n, k) laws; half of the draws behind each sum are from each of them.

    Guarantee:
        Exact for "product" (row by row) and for equal laws; otherwise an estimate whose error is of order 1/√draws, its
        weights being bounded by 2.

    Randomness:
        Words 0, 1, … of the stream.
    """
    check_choice("coupling", coupling, COUPLINGS)
    p, q = _laws("first", first), _laws("second", second)
    if p.shape != q.shape:
        raise InputError(f"both products must have one shape, got {p.shape} and {q.shape}")
    n, k = p.shape
    if coupling == "product":
        apart = np.abs(p - q).sum(axis=1) / 2.0 if k == 2 else 1.0 - _row_agreement(p, q)
        return float(1.0 - np.prod(1.0 - apart))
    draws = check_int("draws", draws, 2, 2**24)
    half = (draws + 1) // 2
    uniforms = stream.uniforms(2 * half * n).reshape(2, half, n)
    chosen = np.concatenate([_choose(law, part) for law, part in zip((p, q), uniforms, strict=True)])
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.log(q) - np.log(p)
    ratios = gain[np.arange(n), chosen]
    return max(0.0, 1.0 - _agreement(ratios.sum(axis=1)))


def _choose(laws: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Turn (draws, n) uniforms into outcomes of each row's law, the last outcome at the lower end."""
    chosen = np.full(uniforms.shape, laws.shape[1] - 1)
    edge = np.zeros(laws.shape[0])
    for j in range(laws.shape[1] - 1, 0, -1):
        edge += laws[:, j]
        chosen -= uniforms >= edge
    return chosen


def _agreement(ratio: NDArray[np.float64]) -> float:
    """Evaluate the formula of the module from log Q/P of draws of which half are from each law.

    ±inf where only one law goes. A way that neither goes is never drawn.
    """
    ratio = np.sort(ratio)
    with np.errstate(over="ignore", invalid="ignore"):
        first = 2.0 / (1.0 + np.exp(ratio))  # P/M at the draw, M = (P + Q)/2
        second = 2.0 / (1.0 + np.exp(-ratio))  # Q/M
        above = np.concatenate([np.cumsum(second[::-1])[::-1][1:], [0.0]])
        total = np.cumsum(first) + np.where(above > 0.0, above * np.exp(-ratio), 0.0)
    return float(np.divide(first, total, out=np.zeros_like(first), where=first > 0.0).sum())


def _row_agreement(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the formula over the outcomes of each row."""
    agree = np.zeros(p.shape[0])
    for x in range(p.shape[1]):
        met = (p[:, x] > 0.0) & (q[:, x] > 0.0)
        waits = np.maximum(p[met] / p[met, x, None], q[met] / q[met, x, None])
        agree[met] += 1.0 / waits.sum(axis=1)
    return agree


def _laws(name: str, laws: ArrayLike) -> NDArray[np.float64]:
    """Return laws whose rows add up to 1 exactly."""
    table = check_array(name, laws, 2)
    if table.shape[0] < 1 or table.shape[1] < 2:
        raise InputError(f"{name} must have shape (n, k) with n at least 1 and k at least 2, got {table.shape}")
    check_distribution(name, table)
    normalised: NDArray[np.float64] = table / table.sum(axis=1, keepdims=True)
    return normalised

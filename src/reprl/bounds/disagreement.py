"""How often a coupling parts two product laws, the shared key integrated out: no search, any number of coordinates.

Measuring a disagreement of 1 % by running pairs needs thousands of pairs, and the search of a joint coupling may be out
of reach for hundreds of coordinates. But given the two runs' laws P and Q, the exponential race
(docs/proofs/coupling.md §1) agrees with probability exactly Σ_x P(x)/S(P(x)/Q(x)), S(r) = Σ_y max(P(y), r·Q(y)). Both
sums are estimated here by the same draws from (P + Q)/2 (docs/proofs/lower-bounds.md §7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.grade import JOINT, Grade
from reprl.errors import ReprlError, check_array, check_distribution, check_int
from reprl.randomness import DataStream


def race_disagreement(
    first: ArrayLike, second: ArrayLike, stream: DataStream, *, grade: Grade = JOINT, draws: int = 1024
) -> float:
    """Estimate the probability, over the shared key, that `correlated_sample` gives two runs different choices.

    Args:
        first: (n, 2) laws of one run.
        second: (n, 2) laws of the other.
        stream: private randomness of the estimate.
        grade: how the rows are coupled.
        draws: points behind each sum, half of them from each law; rounded up to an even number.

    Guarantee:
        Exact for "product" (1 − Π(1 − TV_i)) and for equal laws; otherwise an estimate whose error is of order 1/√draws
        per block, its weights being bounded by 2.

    Randomness:
        Words 0, 1, … of the stream.
    """
    p, q = _coins("first", first), _coins("second", second)
    if p.shape != q.shape:
        raise ReprlError(f"both products must have one shape, got {p.shape} and {q.shape}")
    if grade.method == "product":
        return float(1.0 - np.prod(1.0 - np.abs(p - q)))
    draws = check_int("draws", draws, 2, 2**24)
    half = (draws + 1) // 2
    uniforms = stream.uniforms(2 * half * p.size).reshape(2, half, p.size)
    heads = np.concatenate([uniforms[0] < p, uniforms[1] < q])
    agree = 1.0
    for part in grade.blocks(p.size):
        agree *= _agreement(p[part], q[part], heads[:, part])
    return max(0.0, 1.0 - agree)


def _agreement(p: NDArray[np.float64], q: NDArray[np.float64], heads: NDArray[np.bool_]) -> float:
    """Evaluate the formula of the module for one block of coins, from draws of which half are from each law."""
    with np.errstate(divide="ignore", invalid="ignore"):
        up, down = np.log(q) - np.log(p), np.log1p(-q) - np.log1p(-p)
    # log Q/P of every draw, rising; ±inf where only one law goes. A way that neither goes is never drawn.
    ratio = np.sort(np.where(heads, up, down).sum(axis=1))
    with np.errstate(over="ignore", invalid="ignore"):
        first = 2.0 / (1.0 + np.exp(ratio))  # P/M at the draw, M = (P + Q)/2
        second = 2.0 / (1.0 + np.exp(-ratio))  # Q/M
        above = np.concatenate([np.cumsum(second[::-1])[::-1][1:], [0.0]])
        total = np.cumsum(first) + np.where(above > 0.0, above * np.exp(-ratio), 0.0)
    return float(np.divide(first, total, out=np.zeros_like(first), where=first > 0.0).sum())


def _coins(name: str, laws: ArrayLike) -> NDArray[np.float64]:
    """Return the probability of outcome 1 of every row."""
    table = check_array(name, laws, 2)
    if table.shape[0] < 1 or table.shape[1] != 2:
        raise ReprlError(f"{name} must have shape (n, 2) with n at least 1, got {table.shape}")
    check_distribution(name, table)
    heads: NDArray[np.float64] = table[:, 1] / table.sum(axis=1)
    return heads

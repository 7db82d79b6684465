"""correlated_sample: draw from a product of small laws so that two runs with similar laws draw the same outcomes.

Lemma 2.12 (one law), Lemma 2.13 (product), and the joint sampling of Algorithms 1 and 5 of the paper.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.gumbel_field import SLICE, begin, find_winner, make_search
from reprl.coupling.spec import COUPLINGS
from reprl.errors import InputError, check_array, check_choice, check_distribution, check_int, rounding_of
from reprl.kernels import njit
from reprl.randomness import SharedKey, check_shared_key, philox, unit

DEFAULT_MAX_NODES = 5 * 10**7
"""Some seconds of work: 4 s for two outcomes and 8 s for four, a core of 2020."""


class Draw(NamedTuple):
    """A correlated sample and the work it took."""

    choice: NDArray[np.int64]
    """(n,) chosen outcomes."""
    nodes: int
    """Tree nodes expanded; 0 for product."""


def correlated_sample(
    key: SharedKey,
    probabilities: ArrayLike,
    method: str = "joint",
    *,
    max_nodes: int = DEFAULT_MAX_NODES,
) -> NDArray[np.int64]:
    """Draw one outcome from each of n categorical laws, coupled across runs through the shared key.

    Args:
        key: shared randomness; the same key in both runs.
        probabilities: (n, k), each row a law.
        method: "joint" couples the whole product, "product" each row by itself.
        max_nodes: work guard of the joint search, which refuses to go on, after seconds by default.

    Returns:
        (n,) chosen outcomes. An outcome of probability 0 is never chosen.

    Guarantee:
        The choice has exactly the product law. Two runs with laws at total variation TV differ with probability at most
        2TV/(1+TV) of the whole product (joint), or the sum of that over rows (product; for k = 2 the sum of TV). Proof:
        docs/proofs/coupling.md §1–3.

    Randomness:
        Shared only: product reads words of `key` by row number, joint the nodes of a tree. No data can move a draw.
    """
    return draw(key, probabilities, method, max_nodes=max_nodes).choice


def draw(
    key: SharedKey, probabilities: ArrayLike, method: str = "joint", *, max_nodes: int = DEFAULT_MAX_NODES
) -> Draw:
    """Like correlated_sample, and also report the work."""
    check_choice("method", method, COUPLINGS)
    laws, words = _laws(probabilities), check_shared_key(key).words
    max_nodes = check_int("max_nodes", max_nodes, 1, 2**62)
    n, k = laws.shape
    choice = np.zeros(n, dtype=np.int64)
    if method == "product":
        draw_rows(words[0], words[1], laws, choice)
        return Draw(choice, 0)
    with np.errstate(divide="ignore"):
        penalty = np.log(laws.max(axis=1, keepdims=True)) - np.log(laws)
    search = make_search(n, k)
    begin(search, words[0], words[1], k)
    while search.progress[0] > 0:
        find_winner(words[0], words[1], penalty, search, int(search.progress[1]) + SLICE, choice)
        if search.progress[1] > max_nodes:
            raise InputError(
                f"joint coupling of {n} rows passed max_nodes={max_nodes}: choose 'product' instead of 'joint', or "
                "allow more nodes"
            )
    return Draw(choice, int(search.progress[1]))


def disagreement_bound(first: ArrayLike, second: ArrayLike, method: str = "joint") -> float:
    """Bound the probability that two runs with these two products of (n, k) laws choose differently.

    Guarantee:
        An upper bound. TV of what is drawn together is bounded by sqrt(1 − affinity²), at most Σ TV of its rows
        (coupling.md §3).
    """
    p, q = _laws(first), _laws(second)
    if p.shape != q.shape:
        raise InputError(f"both products must have one shape, got {p.shape} and {q.shape}")
    n, k = p.shape
    tv = 0.5 * np.abs(p - q).sum(axis=1)
    if method == "product" and k == 2:
        return float(1.0 - np.prod(1.0 - tv))
    # 1 − affinity = ½ Σ (√p − √q)², written so that nearly equal laws keep their distance.
    root = np.where((p == 0.0) & (q == 0.0), 1.0, np.sqrt(p) + np.sqrt(q))
    with np.errstate(divide="ignore"):
        log_affinity = np.log1p(-np.minimum(0.5 * (((p - q) / root) ** 2).sum(axis=1), 1.0))
    starts = np.arange(0, n, 1 if method == "product" else n)
    hellinger = np.sqrt(-np.expm1(2.0 * np.add.reduceat(log_affinity, starts)))
    block_tv = np.minimum(np.minimum(hellinger, np.add.reduceat(tv, starts)), 1.0)
    return float(1.0 - np.prod(1.0 - 2.0 * block_tv / (1.0 + block_tv)))


def _laws(probabilities: ArrayLike) -> NDArray[np.float64]:
    laws = check_array("probabilities", probabilities, 2)
    if 0 in laws.shape:
        raise InputError(f"probabilities must have at least one row and one column, got shape {laws.shape}")
    normalised, rounding = np.empty(laws.shape), rounding_of(probabilities)
    if not _normalise(laws, rounding, normalised):
        check_distribution("probabilities", laws, rounding)
    return normalised


@njit(cache=True, error_model="numpy")
def _normalise(laws: NDArray[np.float64], rounding: float, out: NDArray[np.float64]) -> bool:
    """Write each row over its total into out, summed left to right; return whether every row was a law."""
    n, k = laws.shape
    good = True
    for i in range(n):
        total = 0.0
        for j in range(k):
            good &= laws[i, j] >= 0.0
            total += laws[i, j]
        good &= abs(total - 1.0) <= rounding
        for j in range(k):
            out[i, j] = laws[i, j] / total
    return good


@njit(cache=True)
def draw_rows(key: np.uint64, lane: np.uint64, laws: NDArray[np.float64], out: NDArray[np.int64]) -> None:
    """Couple each row by itself: a shared uniform for two outcomes, a shared exponential race for more."""
    n, k = laws.shape
    for i in range(n):
        row = np.uint64(i)
        if k == 2:
            out[i] = 0 if unit(philox(key, lane, row)[0]) < laws[i, 0] else 1
            continue
        winner = 0
        shortest = math.inf
        for j in range(0, k, 2):
            words = philox(key, lane + np.uint64(j >> 1), row)
            for half in range(min(2, k - j)):
                law = laws[i, j + half]
                wait = -math.log(unit(words[half])) / law if law > 0.0 else math.inf
                if wait < shortest:
                    shortest = wait
                    winner = j + half
        out[i] = winner

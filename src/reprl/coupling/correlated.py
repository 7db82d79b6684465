"""correlated_sample: draw from a product of small laws so that two runs with similar laws draw the same outcomes.

Lemma 2.12 (one law), Lemma 2.13 (product), and the joint sampling of Algorithms 1 and 5 of the paper.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.custom import Coupling, check_choices, check_custom, function_of
from reprl.coupling.gumbel_field import find_winners, make_search
from reprl.coupling.spec import COUPLINGS, DEFAULT_BLOCK, JOINT, CouplingSpec
from reprl.errors import InputError, check_array, check_distribution, check_int, rounding_of
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
    method: str | Coupling = "joint",
    block: int = DEFAULT_BLOCK,
    *,
    first: int = 0,
    max_nodes: int = DEFAULT_MAX_NODES,
) -> NDArray[np.int64]:
    """Draw one outcome from each of n categorical laws, coupled across runs through the shared key.

    Args:
        key: shared randomness; the same key in both runs.
        probabilities: (n, k), each row a law.
        method: "joint" couples the whole product, "blocked" each run of `block` rows, "product" each row; "auto" is
            joint while there are at most 2⁴⁰ outcomes in all, and else blocks of that size: by (n, k) alone. Or a
            custom ``Coupling``, with its own guarantee.
        block: rows per block for "blocked".
        first: number of the first row, so that one list may be drawn in several calls; a multiple of `block` for
            "blocked", 0 for "joint".
        max_nodes: work guard of the search in each block, which refuses to go on, after seconds by default.

    Returns:
        (n,) chosen outcomes. An outcome of probability 0 is never chosen.

    Guarantee:
        The choice has exactly the product law. Two runs with laws at total variation TV differ with probability at most
        2TV/(1+TV) of the whole product (joint), the sum of that over blocks (blocked) or over rows (product; for k = 2
        the sum of TV). Proof: docs/proofs/coupling.md §1–3.

    Randomness:
        Shared only: product reads words of `key` by row number, the others nodes of a tree per block number. Neither
        data nor the order or split of calls can move a draw.
    """
    check_custom("method", method, COUPLINGS)
    laws = _laws(probabilities)
    return _draw(key, laws, CouplingSpec.resolve(method, block, *laws.shape), first, max_nodes).choice


def draw(
    key: SharedKey,
    probabilities: ArrayLike,
    coupling: CouplingSpec = JOINT,
    *,
    first: int = 0,
    max_nodes: int = DEFAULT_MAX_NODES,
) -> Draw:
    """Like correlated_sample, and also report the work."""
    return _draw(key, _laws(probabilities), coupling, first, max_nodes)


def _draw(key: SharedKey, laws: NDArray[np.float64], coupling: CouplingSpec, first: int, max_nodes: int) -> Draw:
    words = check_shared_key(key).words
    first = check_int("first", first, 0, 2**62)
    max_nodes = check_int("max_nodes", max_nodes, 1, 2**62)
    n, k = laws.shape
    if coupling.custom:
        if first:
            raise InputError(f"first must be 0 for a custom coupling, got {first}")
        return Draw(check_choices(function_of("coupling", coupling.method)(key, laws), laws, coupling.name), 0)
    choice = np.zeros(n, dtype=np.int64)
    if coupling.method == "product":
        draw_rows(words[0], words[1], np.uint64(first), laws, choice)
        return Draw(choice, 0)
    if coupling.method == "joint" and first:
        raise InputError(f"first must be 0 for method='joint', got {first}")
    first_block, inside = divmod(first, coupling.block)
    if inside:
        raise InputError(f"first must be a multiple of block={coupling.block}, got {first}")
    with np.errstate(divide="ignore"):
        penalty = np.log(laws.max(axis=1, keepdims=True)) - np.log(laws)
    size = coupling.size(n)
    nodes = np.full(coupling.count(n), -1, dtype=np.int64)
    search = make_search(size, k)
    while nodes[-1] < 0:
        find_winners(words[0], words[1], first_block, size, penalty, search, choice, nodes)
        expanded = np.where(nodes < 0, -1 - nodes, nodes)
        if expanded.max() > max_nodes:
            low = first + int(np.argmax(expanded > max_nodes)) * size
            high = min(low + size, first + n) - 1
            raise InputError(
                f"coupling of rows {low} to {high} passed max_nodes={max_nodes}: choose method='blocked' with a "
                f"smaller block (now method={coupling.method!r}, block={size}), method='auto' or method='product', "
                "or allow more nodes"
            )
    return Draw(choice, int(nodes.sum()))


def disagreement_bound(first: ArrayLike, second: ArrayLike, coupling: CouplingSpec = JOINT) -> float:
    """Bound the probability that two runs with these two products of (n, k) laws choose differently.

    Guarantee:
        An upper bound. TV of a block is bounded by sqrt(1 − affinity²), at most Σ TV of its rows (coupling.md §3).
    """
    p, q = _laws(first), _laws(second)
    if p.shape != q.shape:
        raise InputError(f"both products must have one shape, got {p.shape} and {q.shape}")
    n, k = p.shape
    tv = 0.5 * np.abs(p - q).sum(axis=1)
    if coupling.method == "product" and k == 2:
        return float(1.0 - np.prod(1.0 - tv))
    # 1 − affinity = ½ Σ (√p − √q)², written so that nearly equal laws keep their distance.
    root = np.where((p == 0.0) & (q == 0.0), 1.0, np.sqrt(p) + np.sqrt(q))
    with np.errstate(divide="ignore"):
        log_affinity = np.log1p(-np.minimum(0.5 * (((p - q) / root) ** 2).sum(axis=1), 1.0))
    starts = coupling.starts(n)
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
def draw_rows(
    key: np.uint64, lane: np.uint64, first: np.uint64, laws: NDArray[np.float64], out: NDArray[np.int64]
) -> None:
    """Couple each row by itself: a shared uniform for two outcomes, a shared exponential race for more."""
    n, k = laws.shape
    for i in range(n):
        row = first + np.uint64(i)
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

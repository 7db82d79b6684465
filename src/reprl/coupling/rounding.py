"""round_vector: give two nearby vectors the same rounded value. Lemma 2.14 of the paper, stronger and simpler."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.correlated import DEFAULT_MAX_NODES, draw
from reprl.coupling.spec import COUPLINGS
from reprl.errors import InputError, check_array, check_choice, check_real
from reprl.randomness import SharedKey, check_shared_key

ROUNDINGS = (*COUPLINGS, "grid")
_MAX_CELL = 2.0**52


def round_vector(
    key: SharedKey,
    x: ArrayLike,
    *,
    width: float,
    method: str = "joint",
    max_nodes: int = DEFAULT_MAX_NODES,
) -> NDArray[np.float64]:
    """Round every coordinate of x to a shared lattice of the given width.

    Args:
        key: shared randomness; the same key in both runs.
        x: (n,) real numbers.
        width: spacing of the lattice.
        method: "joint" or "product" go up with probability sin²(πf/2) at fraction f of a cell, coupled in that way;
            "grid" rounds to the centres of a randomly shifted grid, coordinate by coordinate.
        max_nodes: work guard of the coupling.

    Returns:
        (n,) rounded values: within width of x, within width / 2 for "grid".

    Guarantee:
        Two runs with inputs at distance Δ differ with probability at most (π/width)·‖Δ‖₂ for "joint",
        (π/(2·width))·‖Δ‖₁ for "product" and ‖Δ‖₁/width for "grid". Proof: docs/proofs/coupling.md §4.

    Randomness:
        Shared only, at `key`: as in correlated_sample, or one uniform per coordinate for "grid".
    """
    check_shared_key(key)
    vector = check_array("x", x, 1)
    if vector.size == 0:
        raise InputError("x must have at least one coordinate, got an empty vector")
    width = check_real("width", width, 0.0, math.inf)
    method = check_choice("method", method, ROUNDINGS)
    with np.errstate(over="ignore"):  # an infinite cell is refused below
        cell = vector / width
    if not (np.abs(cell) < _MAX_CELL).all():
        raise InputError(f"width must exceed max|x|/2**52 = {np.abs(vector).max() / _MAX_CELL:g}, got {width:g}")
    if method == "grid":
        shift = key.uniforms(vector.size)
        centres: NDArray[np.float64] = width * (np.floor(cell - shift) + 0.5 + shift)
        return centres
    below = np.floor(cell)
    up = np.sin(0.5 * math.pi * (cell - below)) ** 2
    # Outcomes are named by the parity of the lattice point, so that neighbouring cells agree on the name of their
    # common corner.
    odd_below = below % 2.0
    odd = np.where(odd_below == 1.0, 1.0 - up, up)
    parity = draw(key, np.stack([1.0 - odd, odd], axis=1), method, max_nodes=max_nodes).choice
    rounded: NDArray[np.float64] = width * (below + (parity != odd_below))
    return rounded


def rounding_bound(difference: ArrayLike, *, width: float, method: str = "joint") -> float:
    """Bound the probability that round_vector separates inputs whose coordinates differ by these (n,) bounds.

    Guarantee:
        An upper bound, docs/proofs/coupling.md §4; 1 when it says nothing.
    """
    gap = np.abs(check_array("difference", difference, 1))
    width = check_real("width", width, 0.0, math.inf)
    method = check_choice("method", method, ROUNDINGS)
    with np.errstate(over="ignore"):
        cells = np.minimum(gap / width, 1.0)  # a gap of one cell or more leaves nothing to promise
    if method == "grid":
        return min(1.0, float(cells.sum()))
    if method == "product":
        return min(1.0, 0.5 * math.pi * float(cells.sum()))
    return min(1.0, math.pi * float(np.sqrt((cells**2).sum())))

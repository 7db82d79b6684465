"""Proposals: weights of candidate policies, a function of the shared seed and of indices alone.

Every operation is exact: a weight is a sum of integers divided by a power of two. So the bits are the same on any
machine and with any version of NumPy. That the law is nearly, not exactly, normal does not matter to a search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reprl.errors import check_int
from reprl.randomness import SharedKey

Floats = np.ndarray[Any, np.dtype[np.float64]]
Wholes = np.ndarray[Any, np.dtype[np.int64]]

_TERMS = 12
"""Uniforms that are added up: their variance is then 1."""
_GRID = 2.0**32
KEPT = 0.4
"""Share of the weights that a masked proposal changes."""
SIZES = 3
"""Steps away from the centre have the size 1, 1/2 or 1/4; smaller ones gather at the centre's own return."""
SPREAD = 5
"""The weights of one input are multiplied by 1, 4, 16, 64 or 256: which inputs matter, and in which units, is not known
beforehand. A policy in which few inputs dominate is often a good one."""


CONSTANT = -2
"""In place of an input: the weight of the constant 1. Half of the first proposals have none, which suits systems whose
rest position is the origin of the observations."""


def near_normals(key: SharedKey, n: int) -> Floats:
    """Return n draws with mean 0 and variance 1: sums of twelve uniforms, less six, in multiples of 2**-32.

    Guarantee:
        Each draw is exact in binary arithmetic, and so the same everywhere.

    Randomness:
        Shared: uniforms 12·i, …, 12·i + 11 of the key's address give draw i.
    """
    uniforms = key.uniforms(_TERMS * check_int("n", n, 0, 2**26))
    wholes = (uniforms * _GRID).astype(np.int64).reshape(n, _TERMS).sum(axis=1)
    draws: Floats = (wholes - _TERMS // 2 * (2**32 - 1)).astype(np.float64) / _GRID
    return draws


def propose_normal(key: SharedKey, scale: Floats, inputs: Wholes, centre: Floats | None) -> Floats:
    """Return the weights of one candidate.

    Args:
        key: the address of the candidate.
        scale: (size,) powers of two: how large each weight is.
        inputs: (size,) the input that each weight belongs to; CONSTANT, or −1 for none.
        centre: what to propose near; None for a proposal out of nothing.

    Randomness:
        Shared: the key's own draws; those at "spread" and "constant" without a centre; those at "size" and "mask" with
        one.
    """
    normals = near_normals(key, scale.size)
    if centre is None:
        powers = np.append(2.0 * np.floor(SPREAD * key.derive("spread").uniforms(int(inputs.max()) + 1)), 0.0)
        first: Floats = np.ldexp(scale * normals, powers[np.maximum(inputs, -1)].astype(np.int64))
        without = key.derive("constant").uniforms(1)[0] < 0.5
        return np.where(inputs == CONSTANT, 0.0, first) if without else first
    own = np.ldexp(1.0, np.frexp(centre)[1] - 1)  # the power of two below a weight's own size
    step = np.where(centre == 0.0, scale, np.maximum(own, 0.25 * scale)) * normals
    size = 0.5 ** int(key.derive("size").uniforms(1)[0] * SIZES)
    mask = key.derive("mask").uniforms(scale.size + 1)
    if mask[0] < 0.5:
        kept = mask[1:] < KEPT
        kept[int(np.argmin(mask[1:]))] = True  # a step that changes nothing would propose the centre again
        step = np.where(kept, step, 0.0)
    near: Floats = centre + size * step
    return near


def propose_table(key: SharedKey, n_cells: int, n_actions: int, centre: Floats | None) -> Floats:
    """Return a table of actions, (cells,) as floats: a random one, or the centre with few cells drawn again.

    Randomness:
        Shared: the key's own draws, and with a centre those at "size" and "mask".
    """
    drawn = np.floor(key.uniforms(n_cells) * n_actions)
    if centre is None:
        return drawn
    share = 0.5 ** (1 + int(key.derive("size").uniforms(1)[0] * max(1.0, np.ceil(np.log2(n_cells)))))
    mask = key.derive("mask").uniforms(n_cells)
    changed = mask < share
    changed[int(np.argmin(mask))] = True
    changed &= drawn != centre
    if not changed.any():  # it drew what was there: one cell takes the next action
        cell = int(np.argmin(mask))
        drawn[cell], changed[cell] = (centre[cell] + 1) % n_actions, True
    near: Floats = np.where(changed, drawn, centre)
    return near

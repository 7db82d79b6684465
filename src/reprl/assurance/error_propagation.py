"""Weights: how far errors of cells can carry, along the ways of a policy of which plausible actions are known.

The error of a value of a *fixed* policy in the empirical model is one martingale over steps, with the policy's
empirical occupancy as weights. The best policy is fixed but unknown: weights are those of one policy in the set plus
all that the others could add, or those of the worst way of all (docs/proofs/certificate.md §3).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import GRID, TOP
from reprl.assurance.confidence import Floats, Sample, Values
from reprl.kernels import njit


@njit(cache=True, nogil=True)
def rate_of(sample: Sample, k: int) -> float:
    """Return λ number k: the first are so large that only the last steps, or none, have a part in them."""
    horizon = sample.dynamics.outcomes.horizon
    return TOP * 2.0 ** (math.ceil(math.log2(horizon)) - k) * sample.starts / horizon


@njit(cache=True, nogil=True, inner=True)
def pour(sample: Sample, h: int, s: int, a: int, weight: float, flow: Floats) -> None:
    """Add where a cell leads to, in the empirical model."""
    outcomes, law = sample.dynamics.outcomes, sample.dynamics.probability
    row, shift = h * outcomes.row_shift + s * outcomes.n_actions + a, h * outcomes.slot_shift
    for e in range(outcomes.first[row], outcomes.first[row + 1]):
        flow[outcomes.next_state[e]] += weight * law[e + shift]


@njit(cache=True, nogil=True)
def spread_mass(sample: Sample, possible: NDArray[np.bool_], mass: Floats) -> None:
    """Fill mass, (H, S), with upper bounds on the visits of a policy of possible actions, in the empirical model."""
    outcomes = sample.dynamics.outcomes
    mass[0] = sample.dynamics.initial
    flow = np.zeros(outcomes.n_states)
    for h in range(outcomes.horizon - 1):
        for y in range(outcomes.n_states):
            if mass[h, y] == 0.0:
                continue
            flow[:] = 0.0
            for a in range(outcomes.n_actions):
                if possible[h, y, a] and sample.number[h, y, a] > 0.0:  # one without samples may lead anywhere
                    part = np.zeros(outcomes.n_states)
                    pour(sample, h, y, a, 1.0, part)
                    flow = np.maximum(flow, part)
            mass[h + 1] += mass[h, y] * flow
        mass[h + 1] = np.minimum(mass[h + 1], 1.0)


@njit(cache=True, nogil=True)
def follow(sample: Sample, out: Values, step: int, flow: Floats, exponent: Floats, norms: Floats) -> None:
    """Follow signed weights, (S,), from a step on: add what they do to exponents, (K,), and errors, norms[1].

    Two bounds, of which the smaller is kept for each λ: under the base policy, with what others may add, and along the
    worst way of all. norms[0] is the square root of the exponent.
    """
    ways = np.zeros((2, GRID))
    moved = max(flow[flow > 0.0].sum(), -flow[flow < 0.0].sum())  # no weight is larger, whatever the policy
    for k in range(GRID):
        ways[0, k], ways[1, k] = exponent[k], norms[1, k]
        for y in range(flow.size):
            ways[0, k] += moved * abs(flow[y]) * out.path[k, step, y]
            ways[1, k] += abs(flow[y]) * out.path_long[k, step, y]
    wide = np.zeros(GRID)
    _follow_base(sample, out, step, flow, exponent, wide, norms[1])
    for k in range(GRID):
        norms[0, k] = math.sqrt(exponent[k]) + wide[k]
        if ways[0, k] + ways[1, k] < norms[0, k] ** 2 + norms[1, k]:
            norms[0, k], norms[1, k] = math.sqrt(ways[0, k]), ways[1, k]


@njit(cache=True, nogil=True, inner=True)
def _follow_base(
    sample: Sample, out: Values, step: int, flow: Floats, exponent: Floats, wide: Floats, long: Floats
) -> None:
    """Follow weights under the base policy; add up exponents and what others may add."""
    outcomes, law = sample.dynamics.outcomes, sample.dynamics.probability
    there = np.zeros(outcomes.n_states)
    for h in range(step, outcomes.horizon):
        there[:] = 0.0
        moving = False
        for y in range(outcomes.n_states):
            weight = flow[y]
            if weight == 0.0:
                continue
            size, a = abs(weight), out.base[h, y]
            for k in range(GRID):
                exponent[k] += size * size * out.top[k, h, y]
                wide[k] += size * out.wide[k, h, y]
                long[k] += size * (out.slack[k, h, y] + out.long[k, h, y])
            if sample.number[h, y, a] == 0.0:
                continue
            row, shift = h * outcomes.row_shift + y * outcomes.n_actions + a, h * outcomes.slot_shift
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                there[outcomes.next_state[e]] += weight * law[e + shift]
            moving = True
        flow[:] = there
        if not moving:
            return


@njit(cache=True, nogil=True, inner=True)
def pair_norms(sample: Sample, out: Values, h: int, s: int, b: int, a: int, own: bool, norms: Floats) -> None:
    """Fill norms, (2, K), with those of Q(b) − Q(a): square root of the exponent, and errors that are added up.

    Without their own cells they are those of where the two lead to.
    """
    flow = np.zeros(sample.dynamics.outcomes.n_states)
    exponent = np.zeros(GRID)
    norms[:] = 0.0
    for action, sign in ((b, 1.0), (a, -1.0)):
        if sample.number[h, s, action] > 0.0:
            pour(sample, h, s, action, sign, flow)
            for k in range(GRID if own else 0):
                exponent[k] += max(out.rate[k, h, s, action], 0.0)
                norms[1, k] += out.error[h, s, action] if out.rate[k, h, s, action] < 0.0 else 0.0
    follow(sample, out, h + 1, flow, exponent, norms)


@njit(cache=True, nogil=True, inner=True)
def radius_of(sample: Sample, norms: Floats, level: float) -> float:
    """Return the smallest radius over all λ."""
    if not sample.by_steps:
        return float(norms[1, 0])
    least = math.inf
    for k in range(GRID):
        least = min(least, level / rate_of(sample, k) + norms[0, k] ** 2 + norms[1, k])
    return least


@njit(cache=True, nogil=True, inner=True)
def _extend(sample: Sample, out: Values, h: int, s: int, a: int) -> None:
    """Let the worst way from a state go through an action, if that is worse."""
    if sample.number[h, s, a] == 0.0:
        return
    outcomes, law = sample.dynamics.outcomes, sample.dynamics.probability
    row, shift = h * outcomes.row_shift + s * outcomes.n_actions + a, h * outcomes.slot_shift
    for k in range(GRID):
        rate = out.rate[k, h, s, a]
        path, long = (rate, 0.0) if rate >= 0.0 else (0.0, out.error[h, s, a])
        for e in range(outcomes.first[row], outcomes.first[row + 1]):
            path += law[e + shift] * out.path[k, h + 1, outcomes.next_state[e]]
            long += law[e + shift] * out.path_long[k, h + 1, outcomes.next_state[e]]
        out.path[k, h, s] = max(out.path[k, h, s], path)
        out.path_long[k, h, s] = max(out.path_long[k, h, s], long)


@njit(cache=True, nogil=True, inner=True)
def divert(sample: Sample, out: Values, h: int, s: int) -> None:
    """Fill what a plausible action can do to errors in place of the base: in its own cell, and by where it leads."""
    norms = np.zeros((2, GRID))
    for a in range(sample.dynamics.outcomes.n_actions):
        if not out.plausible[h, s, a]:
            continue
        for k in range(GRID):
            if sample.number[h, s, a] > 0.0:
                out.top[k, h, s] = max(out.top[k, h, s], out.rate[k, h, s, a])
                if out.rate[k, h, s, a] < 0.0:
                    out.slack[k, h, s] = max(out.slack[k, h, s], out.error[h, s, a])
        _extend(sample, out, h, s, a)
        if a != out.base[h, s]:
            pair_norms(sample, out, h, s, a, out.base[h, s], False, norms)
            for k in range(GRID):
                out.wide[k, h, s] = max(out.wide[k, h, s], norms[0, k])
                out.long[k, h, s] = max(out.long[k, h, s], norms[1, k])

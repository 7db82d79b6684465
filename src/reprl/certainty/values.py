"""Values: intervals for V*, for the gaps V* − Q* and for variances; and for the value of a given policy.

From the last step back. The error of a value of a *fixed* policy in the empirical model is one martingale over steps,
with the policy's empirical occupancy as weights. The best policy is fixed but unknown: a set of plausibly best actions
is kept in every state, empirical values are ranges over it, and weights are those of one policy in it plus all that the
others could add (docs/proofs/certificate.md §3).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.certainty.radius import GRID, ROUND, TOP, mean_radius, psi
from reprl.mdp.dynamics import Dynamics
from reprl.rule.gaps import TIE

Floats = NDArray[np.float64]

WIDER = 32.0
"""How much larger λ may be for values from the start, whose weights may all be small."""


class Sample(NamedTuple):
    """What a run has seen, ready for kernels."""

    dynamics: Dynamics
    """Relative frequencies."""
    number: Floats
    """(H, S, A): samples of each cell."""
    starts: float
    """N: episodes or calls; the scale of all rates."""
    fixed_start: bool
    """Whether the start is known to be one state."""
    by_steps: bool
    """Whether numbers at a step do not depend on outcomes of that step or later ones; otherwise cells are added up."""


class Values(NamedTuple):
    """Bounds on values, and what later bounds need of them."""

    low: Floats
    """(H+1, S): V ≥ low."""
    high: Floats
    """(H+1, S): V ≤ high."""
    hat_low: Floats
    """(H+1, S): least value, in the empirical model, of a policy that takes plausible actions only."""
    hat_high: Floats
    """(H+1, S): and the largest."""
    plausible: NDArray[np.bool_]
    """(H, S, A): actions that may be the policy's."""
    base: NDArray[np.int64]
    """(H, S): one of them."""
    error: Floats
    """(H, S, A): bound on the error of the mean of reward plus next value."""
    square: Floats
    """(H, S, A): bound on the mean square of reward plus next value about its expectation."""
    rate: Floats
    """(K, H, S, A): what weight² is multiplied by in the exponent, for each λ; negative where errors are added up."""
    top: Floats
    """(K, H, S): the largest rate of a plausible action."""
    slack: Floats
    """(K, H, S): the largest error of a plausible action that is added up."""
    wide: Floats
    """(K, H, S): norm of how far another plausible action could divert later weights, square roots of exponents."""
    long: Floats
    """(K, H, S): the same, errors that are added up."""
    path: Floats
    """(K, H+1, S): the largest sum of rates along the way of plausible actions: another bound on an exponent."""
    path_long: Floats
    """(K, H+1, S): the same, errors that are added up."""
    gap_low: Floats
    """(H, S, A)."""
    gap_high: Floats
    """(H, S, A)."""
    own_low: Floats
    """(H, S, A): variance of reward plus next value."""
    own_high: Floats
    """(H, S, A)."""
    start: Floats
    """(2,): low and high of the value from the start."""


def bound_best(sample: Sample, compare: float, cell: float, spread: float) -> Values:
    """Bound V*, gaps and variances; the arguments are levels."""
    out = _blank(sample)
    _solve(sample, compare, cell, spread, True, out)
    _begin(sample, out, compare)
    return out


def bound_policy(sample: Sample, possible: NDArray[np.bool_], policy: float, worth: float) -> tuple[float, float]:
    """Bound the value, from the start, of a policy of which the possible actions, (H, S, A), are known."""
    out = _blank(sample)
    out.plausible[:] = possible
    _solve(sample, policy, policy, policy, False, out)
    _begin(sample, out, worth)
    return float(out.start[0]), float(out.start[1])


def _blank(sample: Sample) -> Values:
    horizon, n_states, n_actions = sample.dynamics.outcomes.shape
    shape = (horizon, n_states, n_actions)
    ends = (horizon + 1, n_states)
    return Values(
        np.zeros(ends),
        np.zeros(ends),
        np.zeros(ends),
        np.zeros(ends),
        np.ones(shape, dtype=np.bool_),
        np.zeros(shape[:2], dtype=np.int64),
        np.zeros(shape),
        np.zeros(shape),
        np.full((GRID, *shape), -1.0),
        np.zeros((GRID, *shape[:2])),
        np.zeros((GRID, *shape[:2])),
        np.zeros((GRID, *shape[:2])),
        np.zeros((GRID, *shape[:2])),
        np.zeros((GRID, *ends)),
        np.zeros((GRID, *ends)),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(2),
    )


@njit(cache=True, nogil=True)
def _solve(sample: Sample, compare: float, cell: float, spread: float, best: bool, out: Values) -> None:
    """Fill out from the last step back; where best is False the plausible actions are given."""
    outcomes = sample.dynamics.outcomes
    n_actions = outcomes.n_actions
    hat = np.zeros((3, n_actions))  # least and largest empirical value of each action, and its mean reward
    for h in range(outcomes.horizon - 1, -1, -1):
        most = float(outcomes.horizon - h)
        span = min(most, 1.0 + out.high[h + 1].max() - out.low[h + 1].min())
        for s in range(outcomes.n_states):
            for a in range(n_actions):
                if best or out.plausible[h, s, a]:
                    _cell(sample, out, h, s, a, span, most, cell, spread, best, hat[:, a])
            _pick(sample, out, h, s, hat)
            if best:
                _compare(sample, out, h, s, compare, hat)
            _divert(sample, out, h, s)
            _settle(sample, out, h, s, compare, hat, most)


@njit(cache=True, nogil=True)
def _rate(sample: Sample, k: int) -> float:
    """Return λ number k: the first is so large that only the last step has a part in it."""
    horizon = sample.dynamics.outcomes.horizon
    return TOP * 2.0 ** (math.ceil(math.log2(horizon)) - k) * sample.starts / horizon


@njit(cache=True, nogil=True)
def _cell(
    sample: Sample,
    out: Values,
    h: int,
    s: int,
    a: int,
    span: float,
    most: float,
    cell: float,
    spread: float,
    best: bool,
    hat: Floats,
) -> None:
    """Fill what is known of one cell by itself."""
    outcomes, law = sample.dynamics.outcomes, sample.dynamics.probability
    n = sample.number[h, s, a]
    if n == 0.0:
        hat[0], hat[1], hat[2] = 0.0, most, 0.0
        out.error[h, s, a], out.own_high[h, s, a] = span, 0.25 * span * span
        return
    row, shift = h * outcomes.row_shift + s * outcomes.n_actions + a, h * outcomes.slot_shift
    first, last = outcomes.first[row], outcomes.first[row + 1]
    hat[:] = 0.0
    mean, half = 0.0, 0.0
    for e in range(first, last):
        z, p = outcomes.next_state[e], law[e + shift]
        hat[0] += p * (outcomes.reward[e] + out.hat_low[h + 1, z])
        hat[1] += p * (outcomes.reward[e] + out.hat_high[h + 1, z])
        hat[2] += p * outcomes.reward[e]
        mean += p * (outcomes.reward[e] + 0.5 * (out.low[h + 1, z] + out.high[h + 1, z]))
        half += p * 0.5 * (out.high[h + 1, z] - out.low[h + 1, z])
    variance, blur = 0.0, 0.0
    for e in range(first, last):
        z, p = outcomes.next_state[e], law[e + shift]
        x = outcomes.reward[e] + 0.5 * (out.low[h + 1, z] + out.high[h + 1, z]) - mean
        e_z = 0.5 * (out.high[h + 1, z] - out.low[h + 1, z])
        variance += p * x * x
        blur += p * e_z * e_z
    largest = min((math.sqrt(variance) + math.sqrt(blur)) ** 2, 0.25 * span * span)
    error = mean_radius(n, span, largest, cell)
    out.error[h, s, a], out.square[h, s, a] = error, largest + error * error
    for k in range(GRID):
        rate = _rate(sample, k)
        if sample.by_steps and rate * most <= TOP * n:
            c = span / n
            out.rate[k, h, s, a] = psi(rate * c) / (rate * c * c) * out.square[h, s, a] / n
    if best:
        _own(sample, out, h, s, a, span, mean, half, spread)


@njit(cache=True, nogil=True)
def _own(
    sample: Sample, out: Values, h: int, s: int, a: int, span: float, mean: float, half: float, spread: float
) -> None:
    """Fill the bounds on the variance of reward plus next value; mean is of the middles, half of the half-widths."""
    outcomes, law = sample.dynamics.outcomes, sample.dynamics.probability
    n, error = sample.number[h, s, a], out.error[h, s, a]
    row, shift = h * outcomes.row_shift + s * outcomes.n_actions + a, h * outcomes.slot_shift
    variance, blur, fourth, stretch = 0.0, 0.0, 0.0, 0.0
    for e in range(outcomes.first[row], outcomes.first[row + 1]):
        z, p = outcomes.next_state[e], law[e + shift]
        x = outcomes.reward[e] + 0.5 * (out.low[h + 1, z] + out.high[h + 1, z]) - mean
        width = 0.5 * (out.high[h + 1, z] - out.low[h + 1, z])
        d = width + half + error
        variance += p * x * x
        blur += p * width * width
        fourth += p * x**4
        stretch += p * (d * (2.0 * abs(x) + d)) ** 2
    largest = min((math.sqrt(variance) + math.sqrt(blur)) ** 2, 0.25 * span * span)
    noise = (math.sqrt(max(0.0, fourth - variance * variance)) + math.sqrt(stretch)) ** 2
    apart = mean_radius(n, span * span, min(noise, 0.25 * span**4), spread)
    least = max(0.0, math.sqrt(variance) - math.sqrt(blur)) ** 2
    out.own_low[h, s, a] = least - apart if least - apart > TIE else 0.0
    out.own_high[h, s, a] = min(largest + error * error + apart, 0.25 * span * span)


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
                    _pour(sample, h, y, a, 1.0, part)
                    flow = np.maximum(flow, part)
            mass[h + 1] += mass[h, y] * flow
        mass[h + 1] = np.minimum(mass[h + 1], 1.0)


@njit(cache=True, nogil=True)
def _follow(sample: Sample, out: Values, step: int, flow: Floats, exponent: Floats, norms: Floats) -> None:
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _pour(sample: Sample, h: int, s: int, a: int, weight: float, flow: Floats) -> None:
    """Add where a cell leads to, in the empirical model."""
    outcomes, law = sample.dynamics.outcomes, sample.dynamics.probability
    row, shift = h * outcomes.row_shift + s * outcomes.n_actions + a, h * outcomes.slot_shift
    for e in range(outcomes.first[row], outcomes.first[row + 1]):
        flow[outcomes.next_state[e]] += weight * law[e + shift]


@njit(cache=True, nogil=True)
def _pair(sample: Sample, out: Values, h: int, s: int, b: int, a: int, own: bool, norms: Floats) -> None:
    """Fill norms, (2, K), with those of Q(b) − Q(a): square root of the exponent, and errors that are added up.

    Without their own cells they are those of where the two lead to.
    """
    flow = np.zeros(sample.dynamics.outcomes.n_states)
    exponent = np.zeros(GRID)
    norms[:] = 0.0
    for action, sign in ((b, 1.0), (a, -1.0)):
        if sample.number[h, s, action] > 0.0:
            _pour(sample, h, s, action, sign, flow)
            for k in range(GRID if own else 0):
                exponent[k] += max(out.rate[k, h, s, action], 0.0)
                norms[1, k] += out.error[h, s, action] if out.rate[k, h, s, action] < 0.0 else 0.0
    _follow(sample, out, h + 1, flow, exponent, norms)


@njit(cache=True, nogil=True)
def _radius(sample: Sample, norms: Floats, level: float) -> float:
    """Return the smallest radius over all λ."""
    if not sample.by_steps:
        return float(norms[1, 0])
    least = math.inf
    for k in range(GRID):
        least = min(least, level / _rate(sample, k) + norms[0, k] ** 2 + norms[1, k])
    return least


@njit(cache=True, nogil=True)
def _difference(
    sample: Sample, out: Values, h: int, s: int, b: int, a: int, level: float, hat: Floats, norms: Floats
) -> tuple[float, float]:
    """Return bounds on Q*(b) − Q*(a), and fill norms."""
    _pair(sample, out, h, s, b, a, True, norms)
    radius = _radius(sample, norms, level)
    if sample.number[h, s, a] == 0.0 or sample.number[h, s, b] == 0.0:
        return hat[0, b] - hat[1, a] - radius, hat[1, b] - hat[0, a] + radius
    flow = np.zeros(sample.dynamics.outcomes.n_states)
    _pour(sample, h, s, b, 1.0, flow)
    _pour(sample, h, s, a, -1.0, flow)
    low = high = hat[2, b] - hat[2, a]
    for z in range(flow.size):
        ends = flow[z] * out.hat_low[h + 1, z], flow[z] * out.hat_high[h + 1, z]
        low += min(ends[0], ends[1])
        high += max(ends[0], ends[1])
    return low - radius, high + radius


@njit(cache=True, nogil=True)
def _pick(sample: Sample, out: Values, h: int, s: int, hat: Floats) -> None:
    """Fill the base action: of the plausible ones that were tried, the best in the empirical model."""
    top = -1.0
    for a in range(sample.dynamics.outcomes.n_actions):
        if out.plausible[h, s, a]:
            middle = hat[0, a] + hat[1, a] if sample.number[h, s, a] > 0.0 else -0.5
            if middle > top:
                out.base[h, s], top = a, middle


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _divert(sample: Sample, out: Values, h: int, s: int) -> None:
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
            _pair(sample, out, h, s, a, out.base[h, s], False, norms)
            for k in range(GRID):
                out.wide[k, h, s] = max(out.wide[k, h, s], norms[0, k])
                out.long[k, h, s] = max(out.long[k, h, s], norms[1, k])


@njit(cache=True, nogil=True)
def _compare(sample: Sample, out: Values, h: int, s: int, level: float, hat: Floats) -> None:
    """Fill the plausibly best actions of a state, and the gaps."""
    n_actions = sample.dynamics.outcomes.n_actions
    most = float(sample.dynamics.outcomes.horizon - h)
    norms = np.zeros((2, GRID))
    base = out.base[h, s]
    out.gap_low[h, s] = 0.0
    out.gap_high[h, s] = 0.0
    for a in range(n_actions):  # against the base first: whoever is surely worse is nobody's rival
        if a != base:
            low, high = _difference(sample, out, h, s, base, a, level, hat, norms)
            out.plausible[h, s, a] = low <= ROUND
            out.gap_low[h, s, a], out.gap_high[h, s, a] = max(0.0, low), max(0.0, high)
            out.gap_high[h, s, base] = max(out.gap_high[h, s, base], -low)
            out.gap_low[h, s, base] = max(out.gap_low[h, s, base], -high)
    for b in range(n_actions):
        if b == base or not out.plausible[h, s, b]:
            continue
        for a in range(n_actions):
            if a not in (base, b):
                low, high = _difference(sample, out, h, s, b, a, level, hat, norms)
                out.gap_low[h, s, a] = max(out.gap_low[h, s, a], low)
                out.gap_high[h, s, a] = max(out.gap_high[h, s, a], high)
    for a in range(n_actions):
        if a != base and out.gap_low[h, s, a] > ROUND:
            out.plausible[h, s, a] = False
        out.gap_high[h, s, a] = min(out.gap_high[h, s, a], most)


@njit(cache=True, nogil=True)
def _settle(sample: Sample, out: Values, h: int, s: int, level: float, hat: Floats, most: float) -> None:
    """Fill the range of empirical values of a state, and the bounds on its value."""
    low, high = math.inf, -math.inf
    for a in range(sample.dynamics.outcomes.n_actions):
        if out.plausible[h, s, a]:
            low, high = min(low, hat[0, a]), max(high, hat[1, a])
    out.hat_low[h, s], out.hat_high[h, s] = low, high
    flow = np.zeros(sample.dynamics.outcomes.n_states)
    flow[s] = 1.0
    norms, exponent = np.zeros((2, GRID)), np.zeros(GRID)
    _follow(sample, out, h, flow, exponent, norms)
    radius = _radius(sample, norms, level)
    out.low[h, s], out.high[h, s] = max(0.0, low - radius), min(most, high + radius)


@njit(cache=True, nogil=True)
def _begin(sample: Sample, out: Values, level: float) -> None:
    """Fill the bounds on the value from the start; a start that is sampled is one more cell, before all others."""
    outcomes, initial = sample.dynamics.outcomes, sample.dynamics.initial
    most = float(outcomes.horizon)
    error, square, span = 0.0, 0.0, 1.0
    if not sample.fixed_start:
        error, square, span = _start(sample, out, level)
    norms, exponent = np.zeros((2, GRID)), np.zeros(GRID)
    for k in range(0 if sample.fixed_start else GRID):
        rate, c = _rate(sample, k), span / sample.starts
        if sample.by_steps and rate * most <= TOP * sample.starts:
            exponent[k] = psi(rate * c) / (rate * c * c) * square / sample.starts
        else:
            norms[1, k] = error
    _follow(sample, out, 0, initial.copy(), exponent, norms)
    radius = _radius(sample, norms, level)
    if sample.by_steps:
        radius = min(radius, _spread_out(sample, out, level, error))
    low = high = 0.0
    for s in range(outcomes.n_states):
        low += initial[s] * out.hat_low[0, s]
        high += initial[s] * out.hat_high[0, s]
    out.start[0], out.start[1] = max(0.0, low - radius), min(most, high + radius)


@njit(cache=True, nogil=True)
def _start(sample: Sample, out: Values, level: float) -> tuple[float, float, float]:
    """Return a bound on the error of the mean value of starts, on their mean square, and what they differ by."""
    initial, most = sample.dynamics.initial, float(sample.dynamics.outcomes.horizon)
    middle = 0.5 * (out.low[0] + out.high[0])
    half = 0.5 * (out.high[0] - out.low[0])
    mean, variance, blur = 0.0, 0.0, 0.0
    for s in range(initial.size):
        mean += initial[s] * middle[s]
        blur += initial[s] * half[s] * half[s]
    for s in range(initial.size):
        variance += initial[s] * (middle[s] - mean) ** 2
    span = min(most, max(1.0, out.high[0].max() - out.low[0].min()))
    largest = min((math.sqrt(variance) + math.sqrt(blur)) ** 2, 0.25 * span * span)
    error = mean_radius(sample.starts, span, largest, level)
    return error, largest + error * error, span


@njit(cache=True, nogil=True)
def _spread_out(sample: Sample, out: Values, level: float, start: float) -> float:
    """Return another radius for the value from the start: weights that are spread out allow for larger λ.

    No plausible policy visits a state more often than `mass` says, in the empirical model. A cell takes part for a λ if
    λ·weight·(steps left) ≤ TOP·samples, which is known before its samples are. Where the largest weight says so it
    surely does; elsewhere both cases are counted. A start that is sampled is left out.
    """
    outcomes, law = sample.dynamics.outcomes, sample.dynamics.probability
    mass = np.zeros((outcomes.horizon, outcomes.n_states))
    spread_mass(sample, out.plausible, mass)
    least = math.inf
    for k in range(GRID):
        rate = _rate(sample, k) * WIDER
        ways = np.zeros(outcomes.n_states)
        for h in range(outcomes.horizon - 1, -1, -1):
            here = np.zeros(outcomes.n_states)
            span = min(float(outcomes.horizon - h), 1.0 + out.high[h + 1].max() - out.low[h + 1].min())
            for s in range(outcomes.n_states):
                for a in range(outcomes.n_actions):
                    n = sample.number[h, s, a]
                    if mass[h, s] == 0.0 or n == 0.0 or not out.plausible[h, s, a]:
                        continue
                    total = _weighed(rate, mass[h, s], n, span, float(outcomes.horizon - h), out, h, s, a)
                    row, shift = h * outcomes.row_shift + s * outcomes.n_actions + a, h * outcomes.slot_shift
                    for e in range(outcomes.first[row], outcomes.first[row + 1]):
                        total += law[e + shift] * ways[outcomes.next_state[e]]
                    here[s] = max(here[s], total)
            ways = here
        least = min(least, level / rate + float(sample.dynamics.initial @ ways))
    return least + start


@njit(cache=True, nogil=True)
def _weighed(
    rate: float, mass: float, n: float, span: float, steps: float, out: Values, h: int, s: int, a: int
) -> float:
    """Return what a cell adds to the radius for each unit of a weight of at most mass."""
    x = min(rate * mass * span / n, TOP)
    part = rate * mass * psi(x) / (x * x) * out.square[h, s, a] / n
    return part if rate * mass * steps <= TOP * n else part + out.error[h, s, a]

"""Values: intervals for V*, for the gaps V* − Q* and for variances; and for the value of a given policy.

From the last step back. A set of plausibly best actions is kept in every state, empirical values are ranges over it,
and their errors are what ``weights`` says (docs/proofs/certificate.md §3).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.concentration import GRID, ROUND, TOP, mean_radius, psi
from reprl.assurance.confidence import Floats, Sample, Values
from reprl.assurance.error_propagation import divert, follow, pair_norms, pour, radius_of, rate_of
from reprl.assurance.start import begin
from reprl.canonical.gaps import HIDDEN
from reprl.kernels import njit


def bound_best(sample: Sample, compare: float, cell: float, spread: float) -> Values:
    """Bound V*, gaps and variances; the arguments are levels."""
    out = _blank(sample)
    _solve(sample, compare, cell, spread, True, out)
    begin(sample, out, compare)
    return out


def bound_policy(sample: Sample, possible: NDArray[np.bool_], policy: float, worth: float) -> tuple[float, float]:
    """Bound the value, from the start, of a policy of which the possible actions, (H, S, A), are known."""
    out = _blank(sample)
    out.plausible[:] = possible
    _solve(sample, policy, policy, policy, False, out)
    begin(sample, out, worth)
    return float(out.start[0]), float(out.start[1])


def _blank(sample: Sample) -> Values:
    horizon, n_states, _ = shape = sample.dynamics.outcomes.shape
    states, ends = (horizon, n_states), (horizon + 1, n_states)
    blank = {name: np.zeros(ends) for name in ("low", "high", "hat_low", "hat_high")}
    blank |= {name: np.zeros(shape) for name in ("error", "square", "gap_low", "gap_high", "own_low", "own_high")}
    blank |= {name: np.zeros((GRID, *states)) for name in ("top", "slack", "wide", "long")}
    blank |= {name: np.zeros((GRID, *ends)) for name in ("path", "path_long")}
    plausible, base = sample.dynamics.allowed.copy(), np.zeros(states, dtype=np.int64)
    return Values(plausible=plausible, base=base, rate=np.full((GRID, *shape), -1.0), start=np.zeros(2), **blank)


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
                if out.plausible[h, s, a]:  # all that are allowed, where the best is looked for
                    _cell(sample, out, h, s, a, span, most, cell, spread, best, hat[:, a])
            _pick(sample, out, h, s, hat)
            if best:
                _compare(sample, out, h, s, compare, hat)
            divert(sample, out, h, s)
            _settle(sample, out, h, s, compare, hat, most)


@njit(cache=True, nogil=True, inner=True)
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
        out.error[h, s, a] = span
        out.own_low[h, s, a], out.own_high[h, s, a] = HIDDEN * most * most, 0.25 * span * span + HIDDEN * most * most
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
        rate = rate_of(sample, k)
        if sample.by_steps and rate * most <= TOP * n:
            c = span / n
            out.rate[k, h, s, a] = psi(rate * c) / (rate * c * c) * out.square[h, s, a] / n
    if best:
        _own(sample, out, h, s, a, span, mean, half, spread)
        out.own_low[h, s, a] += HIDDEN * most * most
        out.own_high[h, s, a] += HIDDEN * most * most


@njit(cache=True, nogil=True, inner=True)
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
    out.own_low[h, s, a] = max(0.0, least - apart)
    out.own_high[h, s, a] = min(largest + error * error + apart, 0.25 * span * span)


@njit(cache=True, nogil=True, inner=True)
def _difference(
    sample: Sample, out: Values, h: int, s: int, b: int, a: int, level: float, hat: Floats, norms: Floats
) -> tuple[float, float]:
    """Return bounds on Q*(b) − Q*(a), and fill norms."""
    pair_norms(sample, out, h, s, b, a, True, norms)
    radius = radius_of(sample, norms, level)
    if sample.number[h, s, a] == 0.0 or sample.number[h, s, b] == 0.0:
        return hat[0, b] - hat[1, a] - radius, hat[1, b] - hat[0, a] + radius
    flow = np.zeros(sample.dynamics.outcomes.n_states)
    pour(sample, h, s, b, 1.0, flow)
    pour(sample, h, s, a, -1.0, flow)
    low = high = hat[2, b] - hat[2, a]
    for z in range(flow.size):
        ends = flow[z] * out.hat_low[h + 1, z], flow[z] * out.hat_high[h + 1, z]
        low += min(ends[0], ends[1])
        high += max(ends[0], ends[1])
    return low - radius, high + radius


@njit(cache=True, nogil=True, inner=True)
def _pick(sample: Sample, out: Values, h: int, s: int, hat: Floats) -> None:
    """Fill the base action: of the plausible ones that were tried, the best in the empirical model."""
    top = -1.0
    for a in range(sample.dynamics.outcomes.n_actions):
        if out.plausible[h, s, a]:
            middle = hat[0, a] + hat[1, a] if sample.number[h, s, a] > 0.0 else -0.5
            if middle > top:
                out.base[h, s], top = a, middle


@njit(cache=True, nogil=True, inner=True)
def _compare(sample: Sample, out: Values, h: int, s: int, level: float, hat: Floats) -> None:
    """Fill the plausibly best actions of a state, and the gaps."""
    n_actions = sample.dynamics.outcomes.n_actions
    most = float(sample.dynamics.outcomes.horizon - h)
    norms = np.zeros((2, GRID))
    base = out.base[h, s]
    out.gap_low[h, s] = 0.0
    out.gap_high[h, s] = 0.0
    for a in range(n_actions):  # what may not be done is in no comparison: its gap is infinite
        if not sample.dynamics.allowed[h, s, a]:
            out.gap_low[h, s, a] = out.gap_high[h, s, a] = math.inf
    for a in range(n_actions):  # against the base first: whoever is surely worse is nobody's rival
        if a != base and sample.dynamics.allowed[h, s, a]:
            low, high = _difference(sample, out, h, s, base, a, level, hat, norms)
            out.plausible[h, s, a] = low <= ROUND
            out.gap_low[h, s, a], out.gap_high[h, s, a] = max(0.0, low), max(0.0, high)
            out.gap_high[h, s, base] = max(out.gap_high[h, s, base], -low)
            out.gap_low[h, s, base] = max(out.gap_low[h, s, base], -high)
    for b in range(n_actions):
        if b == base or not out.plausible[h, s, b]:
            continue
        for a in range(n_actions):
            if a not in (base, b) and sample.dynamics.allowed[h, s, a]:
                low, high = _difference(sample, out, h, s, b, a, level, hat, norms)
                out.gap_low[h, s, a] = max(out.gap_low[h, s, a], low)
                out.gap_high[h, s, a] = max(out.gap_high[h, s, a], high)
    for a in range(n_actions):
        if a != base and out.gap_low[h, s, a] > ROUND:
            out.plausible[h, s, a] = False
        if sample.dynamics.allowed[h, s, a]:
            out.gap_high[h, s, a] = min(out.gap_high[h, s, a], most)


@njit(cache=True, nogil=True, inner=True)
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
    follow(sample, out, h, flow, exponent, norms)
    radius = radius_of(sample, norms, level)
    out.low[h, s], out.high[h, s] = max(0.0, low - radius), min(most, high + radius)

"""The start: bounds on the value of a policy, or of the best one, from where episodes begin.

Weights from there are often all small, and larger λ are allowed (docs/proofs/certificate.md §3).
"""

from __future__ import annotations

import math

import numpy as np

from reprl.assurance.concentration import GRID, TOP, mean_radius, psi
from reprl.assurance.confidence import Sample, Values
from reprl.assurance.error_propagation import follow, radius_of, rate_of, spread_mass
from reprl.kernels import njit

WIDER = 32.0
"""How much larger λ may be for values from the start."""


@njit(cache=True, nogil=True)
def begin(sample: Sample, out: Values, level: float) -> None:
    """Fill the bounds on the value from the start; a start that is sampled is one more cell, before all others."""
    outcomes, initial = sample.dynamics.outcomes, sample.dynamics.initial
    most = float(outcomes.horizon)
    error, square, span = 0.0, 0.0, 1.0
    if not sample.fixed_start:
        error, square, span = _start(sample, out, level)
    norms, exponent = np.zeros((2, GRID)), np.zeros(GRID)
    for k in range(0 if sample.fixed_start else GRID):
        rate, c = rate_of(sample, k), span / sample.starts
        if sample.by_steps and rate * most <= TOP * sample.starts:
            exponent[k] = psi(rate * c) / (rate * c * c) * square / sample.starts
        else:
            norms[1, k] = error
    follow(sample, out, 0, initial.copy(), exponent, norms)
    radius = radius_of(sample, norms, level)
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


@njit(cache=True, nogil=True, inner=True)
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
        rate = rate_of(sample, k) * WIDER
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


@njit(cache=True, nogil=True, inner=True)
def _weighed(
    rate: float, mass: float, n: float, span: float, steps: float, out: Values, h: int, s: int, a: int
) -> float:
    """Return what a cell adds to the radius for each unit of a weight of at most mass."""
    x = min(rate * mass * span / n, TOP)
    part = rate * mass * psi(x) / (x * x) * out.square[h, s, a] / n
    error = 0.0 if rate * mass * steps <= TOP * n else out.error[h, s, a]
    return float(part + error)

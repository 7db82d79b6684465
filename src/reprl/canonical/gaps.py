"""Gaps: how far every action is from the best one, and how much one sample per cell tells about it.

Q* and V* by plain dynamic programming; no choice enters them, so they are Lipschitz in the model. The spread of a gap
bounds the standard deviation of its estimate times √n, when every cell has n samples: a property of the world that no
sample size enters (docs/proofs/canonical.md §3).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.backup import in_order
from reprl.mdp.dynamics import Dynamics
from reprl.mdp.outcomes import Outcomes

TIE = 1e-12
"""Gaps below this are rounding: exact ties."""
HIDDEN = 0.02
"""Variance of a cell that no sample need have shown, in units of what could still be earned, squared: about that of an
event of this probability. Without it a world without noise would look infinitely firm, until its first rare event."""
NEAR_TIE = 4.0
"""Standard errors within which the data do not tell an action from the best one."""


class Gaps(NamedTuple):
    """V*, the gaps V* − Q*, and their spreads."""

    value: NDArray[np.float64]
    """(H+1, S): 0 where nothing was tried; discounted, (2, S), the second row γ times the first."""
    gap: NDArray[np.float64]
    """(H, S, A): V* − Q*; infinite for an action that nobody has tried."""
    spread: NDArray[np.float64]
    """(H, S, A): of the gap, for one sample in every cell."""
    own: NDArray[np.float64]
    """(H, S, A): variance of reward plus next value in one sample, and HIDDEN."""
    best: NDArray[np.int64]
    """(H, S): the first best action in the order of preference."""
    default: NDArray[np.int64]
    """(H, S): the most preferred action that may be taken."""
    deviation: NDArray[np.float64]
    """(H+1, S): of V*, for one sample in every cell."""
    near: NDArray[np.bool_]
    """(H, S, A) and"""
    rank: NDArray[np.float64]
    """(S, A): as in ``Ties``; nothing for f itself."""


def find_gaps(dynamics: Dynamics, order: NDArray[np.int64]) -> Gaps:
    """Solve a model.

    order, (A,), the most preferred action first, breaks exact ties and nothing else.
    """
    horizon, n_states, n_actions = dynamics.outcomes.shape
    shape = (horizon, n_states, n_actions)
    gaps = Gaps(
        np.zeros((horizon + 1, n_states)),
        np.empty(shape),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros((horizon, n_states), dtype=np.int64),
        order[dynamics.allowed[:, :, order].argmax(axis=2)],
        np.zeros((horizon + 1, n_states)),
        np.zeros(shape, dtype=np.bool_),
        np.zeros(shape[1:]),
    )
    criterion, law = dynamics.criterion, (dynamics.outcomes, dynamics.probability)
    known = *law, dynamics.tried
    gaps.value[-1] = criterion.continuation(*law, dynamics.tried)
    hidden = HIDDEN * criterion.remaining**2
    _solve(*known, order, gaps, hidden, np.zeros(n_states))
    gaps.deviation[-1] = criterion.deviations(*law, gaps.best, gaps.own)
    if gaps.deviation[-1].any():  # it depends on the best actions and their variances
        _solve(*known, order, gaps, hidden, np.zeros(n_states))
    return gaps


@njit(cache=True, nogil=True)
def _solve(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    tried: NDArray[np.bool_],
    order: NDArray[np.int64],
    gaps: Gaps,
    hidden: NDArray[np.float64],
    scratch: NDArray[np.float64],
) -> None:
    """Fill gaps from the last step back; values and deviations behind it are there already. hidden is (H,)."""
    deviation = gaps.deviation
    for h in range(outcomes.horizon - 1, -1, -1):
        for s in range(outcomes.n_states):
            best = np.int64(-1)
            for i in range(order.size):
                a = order[i]
                gaps.gap[h, s, a] = math.inf
                if tried[h, s, a]:
                    mean = _moments(outcomes, law, gaps.value, gaps.own, hidden[h], h, s, a)
                    gaps.gap[h, s, a] = mean
                    if best < 0 or mean > gaps.gap[h, s, best] + TIE:
                        best = a
            if best < 0:
                gaps.best[h, s] = gaps.default[h, s]
                continue
            top = gaps.gap[h, s, best]
            gaps.best[h, s] = best
            gaps.value[h, s] = top
            for a in range(order.size):
                if tried[h, s, a]:
                    apart = top - gaps.gap[h, s, a]
                    gaps.gap[h, s, a] = apart if apart > TIE else 0.0
                    if a != best:
                        passed = _passed(outcomes, law, h, s, best, a, deviation[h + 1], scratch)
                        variance = gaps.own[h, s, a] + gaps.own[h, s, best] + passed * passed
                        gaps.spread[h, s, a] = math.sqrt(variance)
            passed = 0.0
            row = h * outcomes.row_shift + s * outcomes.n_actions + best
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                passed += law[e + h * outcomes.slot_shift] * deviation[h + 1, outcomes.next_state[e]]
            deviation[h, s] = math.sqrt(gaps.own[h, s, best] + passed * passed)


class Ties(NamedTuple):
    """Actions that data do not tell from the best, and which of them is to be called the best."""

    near: NDArray[np.bool_]
    """(H, S, A): the best action as well, where there are others."""
    rank: NDArray[np.float64]
    """(S, A): the largest is the best."""


def find_ties(dynamics: Dynamics, gaps: Gaps, number: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the actions, (H, S, A), within NEAR_TIE standard errors of the best one, from samples of each cell."""
    near = np.isfinite(gaps.gap) & (gaps.gap <= NEAR_TIE * _standard_errors(dynamics, gaps, number))
    return np.asarray(near & (near.sum(axis=2, keepdims=True) > 1))


def _standard_errors(dynamics: Dynamics, gaps: Gaps, number: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the standard error of every gap, (H, S, A).

    Spreads are filled anew from what a cell's samples leave unknown of its mean: their variance over their number, and
    what an event as rare as one in that number could add. HIDDEN, which belongs to f, is no error of the data.
    """
    remaining, several = dynamics.criterion.remaining[:, None, None], np.maximum(number, 1)
    own = np.maximum(gaps.own - HIDDEN * remaining**2, 0.0) / several + (remaining / several) ** 2
    filled = gaps._replace(own=own, spread=gaps.spread.copy(), deviation=gaps.deviation.copy())
    return break_ties(dynamics, filled, Ties(np.zeros_like(gaps.near), np.zeros_like(gaps.rank))).spread


def break_ties(dynamics: Dynamics, gaps: Gaps, ties: Ties) -> Gaps:
    """Return gaps whose spreads are those beside a tie, on the side where another of the tied actions is the best.

    Values, gaps and variances stay as they are; spreads are of comparisons with the best action, and are filled anew,
    at this step and at earlier ones (docs/proofs/canonical.md §4, "Where W still jumps").
    """
    gaps, scratch = gaps._replace(near=ties.near, rank=ties.rank), np.zeros(dynamics.outcomes.n_states)
    law = dynamics.outcomes, dynamics.probability
    _retie(*law, dynamics.tried, gaps, scratch)
    if gaps.deviation[-1].any():
        gaps.deviation[-1] = dynamics.criterion.deviations(*law, gaps.best, gaps.own)
        _retie(*law, dynamics.tried, gaps, scratch)
    return gaps


@njit(cache=True, nogil=True)
def _retie(
    outcomes: Outcomes, law: NDArray[np.float64], tried: NDArray[np.bool_], gaps: Gaps, scratch: NDArray[np.float64]
) -> None:
    """Choose the best action of every tie anew, and fill spreads and deviations from the last step back."""
    deviation = gaps.deviation
    for h in range(outcomes.horizon - 1, -1, -1):
        for s in range(outcomes.n_states):
            best = gaps.best[h, s]
            if not tried[h, s, best]:
                continue
            for a in range(outcomes.n_actions):
                if gaps.near[h, s, a] and tried[h, s, a] and gaps.rank[s, a] > gaps.rank[s, best]:
                    best = np.int64(a)
            before = gaps.best[h, s]
            gaps.best[h, s] = best
            for a in range(outcomes.n_actions):
                if tried[h, s, a] and a != best:
                    passed = _passed(outcomes, law, h, s, best, a, deviation[h + 1], scratch)
                    gaps.spread[h, s, a] = math.sqrt(gaps.own[h, s, a] + gaps.own[h, s, best] + passed * passed)
            if best != before:  # the two are compared with each other; the former best is not exactly the best now
                gaps.spread[h, s, best] = gaps.spread[h, s, before]
                gaps.gap[h, s, before] = max(gaps.gap[h, s, before], 2.0 * TIE)
            passed = 0.0
            row = h * outcomes.row_shift + s * outcomes.n_actions + best
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                passed += law[e + h * outcomes.slot_shift] * deviation[h + 1, outcomes.next_state[e]]
            deviation[h, s] = math.sqrt(gaps.own[h, s, best] + passed * passed)


@njit(cache=True, nogil=True, inner=True)
def _moments(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    value: NDArray[np.float64],
    own: NDArray[np.float64],
    hidden: float,
    h: int,
    s: int,
    a: int,
) -> float:
    """Return the mean of reward plus next value in a cell and store the variance."""
    row = h * outcomes.row_shift + s * outcomes.n_actions + a
    mean = 0.0
    for e in range(outcomes.first[row], outcomes.first[row + 1]):
        weight = law[e + h * outcomes.slot_shift]
        mean += weight * (outcomes.reward[e] + value[h + 1, outcomes.next_state[e]])
    variance = 0.0
    for e in range(outcomes.first[row], outcomes.first[row + 1]):
        weight = law[e + h * outcomes.slot_shift]
        x = outcomes.reward[e] + value[h + 1, outcomes.next_state[e]] - mean
        variance += weight * x * x
    own[h, s, a] = variance + hidden
    return mean


@njit(cache=True, nogil=True, inner=True)
def _passed(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    h: int,
    s: int,
    best: int | np.int64,
    other: int,
    deviation: NDArray[np.float64],
    scratch: NDArray[np.float64],
) -> float:
    """Return Σ_y |P(y | best) − P(y | other)|·deviation(y); scratch is zeros, and stays so."""
    total = 0.0
    for sign in (1.0, -1.0):
        row = h * outcomes.row_shift + s * outcomes.n_actions + (best if sign > 0 else other)
        for e in range(outcomes.first[row], outcomes.first[row + 1]):
            scratch[outcomes.next_state[e]] += sign * law[e + h * outcomes.slot_shift]
    for a in (best, other):
        row = h * outcomes.row_shift + s * outcomes.n_actions + a
        for e in range(outcomes.first[row], outcomes.first[row + 1]):
            y = outcomes.next_state[e]
            total += abs(scratch[y]) * deviation[y]
            scratch[y] = 0.0
    return total


class _Averaged(NamedTuple):
    """What of gaps is another where they are averaged: a row for each phase."""

    gap: NDArray[np.float64]
    spread: NDArray[np.float64]
    best: NDArray[np.int64]


def average_gaps(dynamics: Dynamics, gaps: Gaps, order: NDArray[np.int64], phases: NDArray[np.int64]) -> Gaps:
    """Return the gaps of Q* averaged over the steps of each phase: what a policy that says the same in it is chosen by.

    A step counts for a state as often as a walk of random actions is there. So nothing enters that no episode could
    show, and no choice does.

    phases, (H,), are those of every step, rising from 0; order, (A,), breaks exact ties and nothing else.

    Returns:
        gap, spread, best and default of every phase, as of a step. An action counts if it was tried at every step of
        the phase at which the state can be reached; a spread is the average of what it is at these, as for errors that
        all have one sign (docs/proofs/canonical.md §10).
    """
    shares = np.zeros((dynamics.outcomes.horizon, dynamics.outcomes.n_states))
    shares[0] = dynamics.initial
    law = dynamics.outcomes, dynamics.probability
    _walk_at_random(*law, dynamics.tried, shares)
    allowed = common_actions(dynamics, phases)
    default = order[allowed[:, :, order].argmax(axis=2)]
    filled = _Averaged(np.full(allowed.shape, math.inf), np.zeros(allowed.shape), default.copy())
    read = gaps.gap, gaps.own, gaps.deviation
    scratch, begins = np.zeros(dynamics.outcomes.n_states), [*first_steps(phases).tolist(), phases.size]
    for phase, steps in enumerate(pairwise(begins)):  # fewer arrays than Gaps has: they are compiled sooner
        _average(*law, order, *read, gaps.near, gaps.rank, shares, steps, phase, filled, scratch)
    return gaps._replace(**filled._asdict(), default=default)


@njit(cache=True, nogil=True)
def _walk_at_random(
    outcomes: Outcomes, law: NDArray[np.float64], tried: NDArray[np.bool_], visits: NDArray[np.float64]
) -> None:
    """Fill Pr[x_h = s], (H, S), after the first row, of a walk that takes every tried action as often as any other."""
    for h in range(outcomes.horizon - 1):
        for s in range(outcomes.n_states):
            number = 0  # a loop: Numba's sum takes seconds to compile
            for a in range(outcomes.n_actions):
                number += tried[h, s, a]
            if visits[h, s] <= 0.0 or number == 0:
                continue
            for a in range(outcomes.n_actions):
                row = h * outcomes.row_shift + s * outcomes.n_actions + a
                for e in range(outcomes.first[row], outcomes.first[row + 1] if tried[h, s, a] else 0):
                    weight = law[e + h * outcomes.slot_shift] / number
                    visits[h + 1, outcomes.next_state[e]] += visits[h, s] * weight


def common_actions(dynamics: Dynamics, phases: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return the actions that may be taken at every step of a phase, (phases, S, A)."""
    return np.logical_and.reduceat(dynamics.allowed, first_steps(phases), axis=0)


def first_steps(phases: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first step of each phase; phases, (H,), are those of every step, rising from 0."""
    return np.searchsorted(phases, np.arange(phases[-1] + 1))


@njit(cache=True, nogil=True, inner=True)
def _first_of_tie(
    near: NDArray[np.bool_], rank: NDArray[np.float64], visits: NDArray[np.float64], s: int, best: np.int64
) -> np.int64:
    """Return the action of the largest rank among those that tie with the best at every step that counts."""
    for a in range(near.shape[2]):
        if rank[s, a] > rank[s, best]:
            tied = True
            for h in range(near.shape[0]):
                tied = tied and (visits[h, s] <= 0.0 or near[h, s, a])
            if tied:
                best = np.int64(a)
    return best


@njit(cache=True, nogil=True)
def _average(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    order: NDArray[np.int64],
    gap: NDArray[np.float64],
    own: NDArray[np.float64],
    deviation: NDArray[np.float64],
    near: NDArray[np.bool_],
    rank: NDArray[np.float64],
    visits: NDArray[np.float64],
    steps: tuple[int, int],
    phase: int,
    out: _Averaged,
    scratch: NDArray[np.float64],
) -> None:
    """Fill a phase of out, of steps[0] ≤ h < steps[1]; visits, (H, S), say how much a step counts in a state.

    scratch is zeros, and stays so.
    """
    begin, end = steps
    for s in range(outcomes.n_states):
        all_visits = 0.0
        for h in range(begin, end):
            all_visits += visits[h, s]
        if all_visits <= 0.0:
            continue
        best = np.int64(-1)
        for i in range(order.size):
            a = order[i]
            total = 0.0
            for h in range(begin, end):
                if visits[h, s] > 0.0:
                    total += visits[h, s] / all_visits * gap[h, s, a]
            out.gap[phase, s, a] = total
            if math.isfinite(total) and (best < 0 or total < out.gap[phase, s, best] - TIE):
                best = a
        if best < 0:
            continue
        least, before = out.gap[phase, s, best], best
        best = _first_of_tie(near[begin:end], rank, visits[begin:end], s, best)
        out.best[phase, s] = best
        for a in range(order.size):
            if not math.isfinite(out.gap[phase, s, a]):
                continue
            apart = out.gap[phase, s, a] - least
            out.gap[phase, s, a] = apart if apart > TIE else 0.0
            total = 0.0
            for h in range(begin, end if a != best else begin):
                if visits[h, s] > 0.0:
                    passed = _passed(outcomes, law, h, s, best, a, deviation[h + 1], scratch)
                    spread = math.sqrt(own[h, s, a] + own[h, s, best] + passed * passed)
                    total += visits[h, s] / all_visits * spread
            out.spread[phase, s, a] = total
        if best != before:
            out.spread[phase, s, best] = out.spread[phase, s, before]
            out.gap[phase, s, before] = 2.0 * TIE


def value_spread(dynamics: Dynamics) -> float:
    """Return how much the best policy is worth more than the worst, from the start; untried actions do not count.

    An ε of at least this is met by every policy.
    """
    return float(in_order(dynamics.initial, dynamics.extreme_values() - dynamics.extreme_values(-1.0)))

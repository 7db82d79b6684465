"""cellwise: a tolerance of its own for every cell, and the rule for approximate agreement that is made of them.

In every cell the first action in the order of preference is taken whose gap is within the cell's tolerance. Where runs
need to agree only at a share of the steps, every state's tolerance is a shared random share of one scale, and the scale
is a continuous function of the world: there is no choice that could change whole policies (docs/proofs/agreement.md).
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.choice import Choice, Rule, find_goal
from reprl.canonical.gaps import Gaps, find_gaps
from reprl.canonical.preferred import CLEAR
from reprl.kernels import njit
from reprl.mdp.dynamics import Dynamics

AGREED = "agreed"
"""The kind of what this rule chooses, as stored documents call it."""
NARROW = 0.5
"""A cell's tolerance is at least this share of the scale, so that exact ties are far inside."""
SCALES, STEPS, FINE = 48, 2, 16
"""Scales that the loss is computed at: STEPS in every octave from ε/(2H) up, where no policy can lose more than ε/2,
and FINE between two of them where it counts."""
RAMP = (0.4, 0.95)
"""A scale counts in full while the policy loses at most the first share of ε(M), and not at all from the second on."""
DECAY = 8.0
"""How fast scales stop to count above a range of scales that lose too much."""
BELOW = 0.6
"""The share of that scale that is taken, so that what would cost too much is far from being tolerated."""


def choose_agreed(rule: Rule, dynamics: Dynamics, practice: float | None = None) -> Choice:
    """Return the policy of approximate agreement in a model.

    The rule's candidates are not read; practice is as in ``choose``.

    Guarantee:
        A pure function of all, and the scale is continuous in M but for the grid that it is computed on. Where the
        loss grows with the scale, the policy loses at most RAMP[1]·ε(M) in M; no run promises anything of a policy
        that loses ε(M) or more (docs/proofs/agreement.md §2).

    Randomness:
        Shared, at rule.key.derive("cells"): one uniform for every state, in order, the same at all steps.
    """
    gaps = find_gaps(dynamics, rule.order)
    goal = find_goal(rule, dynamics, gaps, practice)
    scale = find_scale(rule, dynamics, gaps, goal.epsilon)
    tolerances = scale * cell_shares(rule)
    table = pick_cells(gaps.gap, rule.order, tolerances, gaps.best)
    loss = dynamics.policy_loss(gaps.value[0], table)
    margin, tightest = cell_margin(gaps, rule.order, tolerances, table, dynamics.occupancy(table))
    return Choice(
        policy=rule.policy(table),
        kind=AGREED,
        candidate=0,
        tolerance=scale,
        margin=margin,
        lead=math.inf,
        loss=loss,
        value=goal.best - loss,
        tightest=tightest,
        baseline=goal.baseline,
        epsilon=goal.epsilon,
    )


def cell_shares(rule: Rule) -> NDArray[np.float64]:
    """Return which share of the scale the tolerance of each cell is, (H, S): one for each state, at all steps.

    Randomness:
        Shared, at rule.key.derive("cells").
    """
    rows, n_states, _ = rule.shape
    drawn = NARROW + (1.0 - NARROW) * rule.key.derive("cells").uniforms(n_states)
    return np.ascontiguousarray(np.broadcast_to(drawn, (rows, n_states)))


def find_scale(rule: Rule, dynamics: Dynamics, gaps: Gaps, epsilon: float) -> float:
    """Return the scale of the tolerances.

    Let L(u) be the loss of the policy at scale u and φ(u) its weight, which falls linearly from 1 to 0 while L goes
    through RAMP·ε. The scale is BELOW times ∫ φ(u)·exp(−DECAY·b(u)) du, b(u) = ∫ (1 − φ(v)) dv/v up to u: scales count
    as long as no range of smaller ones loses too much. L has steps, and as the world moves their places and heights
    move continuously; so does the integral.
    """
    horizon, shares = rule.criterion.effective_horizon, cell_shares(rule)
    scales: list[float] = np.minimum(
        epsilon / (2.0 * horizon) * 2.0 ** (np.arange(SCALES) / STEPS), 2.0 * horizon
    ).tolist()

    def weight(scale: float) -> float:
        table = pick_cells(gaps.gap, rule.order, scale * shares, gaps.best)
        loss = dynamics.policy_loss(gaps.value[0], table)
        return min(1.0, max(0.0, (RAMP[1] - loss / epsilon) / (RAMP[1] - RAMP[0])))

    found, bad, before = scales[0], 0.0, 1.0
    for low, high in pairwise(scales):
        after = weight(high)
        pieces = 1 if after == before else FINE
        step = (high - low) / pieces
        for number in range(pieces):
            here = after if number == pieces - 1 else weight(low + (number + 1) * step)
            bad += (1.0 - here) * math.log1p(step / (low + number * step))
            found += here * math.exp(-DECAY * bad) * step
        before = after
        if DECAY * bad > 10.0:
            break
    return BELOW * found


@njit(cache=True, nogil=True)
def pick_cells(
    gap: NDArray[np.float64], order: NDArray[np.int64], tolerances: NDArray[np.float64], best: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the first action in order whose gap is within the cell's tolerance, (H, S); where nothing is, the best."""
    actions = best.copy()
    for h in range(gap.shape[0]):
        for s in range(gap.shape[1]):
            for i in range(order.size):
                if math.isfinite(gap[h, s, order[i]]) and gap[h, s, order[i]] <= tolerances[h, s]:
                    actions[h, s] = order[i]
                    break
    return actions


def cell_margin(
    gaps: Gaps,
    order: NDArray[np.int64],
    tolerances: NDArray[np.float64],
    actions: NDArray[np.int64],
    visits: NDArray[np.float64],
) -> tuple[float, tuple[int, int, int] | None]:
    """Return the smallest standardised distance of a comparison that can change a visited cell, and which it is."""
    margins, nearest = cell_margins(gaps, order, tolerances, actions)
    margins = np.where(visits > 0.0, margins, CLEAR)
    h, s = np.unravel_index(int(margins.argmin()), margins.shape)
    least = float(margins[h, s])
    return least, None if least >= CLEAR else (int(h), int(s), int(nearest[h, s]))


@njit(cache=True, nogil=True)
def cell_margins(
    gaps: Gaps, order: NDArray[np.int64], tolerances: NDArray[np.float64], actions: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return, for every cell, the smallest standardised distance of a comparison that can change it, and its action.

    The comparisons are those of ``preferred._margin``, without weights.
    """
    margins, nearest = np.full(actions.shape, CLEAR), np.full(actions.shape, -1)
    for h in range(actions.shape[0]):
        for s in range(actions.shape[1]):
            chosen, passed = actions[h, s], False
            for i in range(order.size):
                a = order[i]
                gap, spread = gaps.gap[h, s, a], gaps.spread[h, s, a]
                if not math.isfinite(gap):
                    continue
                if a == chosen:
                    passed = True
                    if gap == 0.0:
                        continue
                    distance = tolerances[h, s] - gap
                elif not passed:
                    distance = gap - tolerances[h, s]
                elif gaps.gap[h, s, chosen] == 0.0:
                    distance = gap + tolerances[h, s]
                else:
                    break
                if spread > 0.0 and distance < margins[h, s] * spread:
                    margins[h, s] = distance / spread
                    nearest[h, s] = a
    return margins, nearest

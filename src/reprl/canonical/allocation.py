"""Sample allocation: which samples the tightest comparisons wait for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.cellwise import cell_margins
from reprl.canonical.choice import Rule, weigh_candidates
from reprl.canonical.gaps import Gaps, average_gaps, find_gaps
from reprl.canonical.preferred import phases_of
from reprl.kernels import njit
from reprl.mdp.backup import one_hot
from reprl.mdp.dynamics import Dynamics
from reprl.mdp.outcomes import Outcomes

NEAR = 8.0
"""Candidates whose margin is at most so many times smaller than the widest may still win."""
ASIDE = 0.02
"""Weight of what no comparison waits for, relative to the largest."""
FOCUS = 1e4
"""Weight of the cell that counts most where every cell has a tolerance of its own, relative to that of a cell without
samples, of which ``plan_visits`` wants some: what could be there is explored by batches of its own."""
MOST_CELLS = 64
"""Cells with tolerances of their own that are followed."""


def allocate_samples(rule: Rule, dynamics: Dynamics, epsilon: float) -> NDArray[np.float64]:
    """Return how much a sample of each cell would help to tell what the rule's policy is.

    Returns:
        (H, S, A), at most about 1. For the tightest comparison of every candidate that may still win: its relative
        variance is Σ (ν/distance)²·(variance of the cell)/n, with ν the difference of where the best action and the
        other lead under the best policy; the coefficients of 1/n are added up. Elsewhere a little of the cell's own
        variance.
    """
    gaps = find_gaps(dynamics, rule.order)
    weighed = weigh_candidates(rule, dynamics, gaps)
    may_win = {
        kind: (found.loss < rule.room * epsilon) & (found.tightest[:, 0] >= 0) for kind, found in weighed.items()
    }
    widest = max((float(weighed[kind].margin[may].max()) for kind, may in may_win.items() if may.any()), default=0.0)
    out = np.zeros(dynamics.outcomes.shape)
    add = dynamics.criterion.either(_add, _add_discounted)
    for kind, found in weighed.items():
        phases = phases_of(kind, out.shape[0])
        compared = gaps if phases is None else average_gaps(dynamics, gaps, rule.order, phases)
        for j in np.flatnonzero(may_win[kind] & (found.margin * NEAR > widest)):
            h, s, a = (int(i) for i in found.tightest[j])
            row = h if phases is None else int(phases[h])
            distance = max(float(found.margin[j]), 1e-6) * float(compared.spread[row, s, a])
            best, steps = int(compared.best[row, s]), [h] if phases is None else np.flatnonzero(phases == row).tolist()
            for step in steps:  # of an average: the mean of squares is at least the square of the mean
                scale = 1.0 / (distance**2 * len(steps))
                if best != a:
                    add(dynamics, gaps, step, s, best, a, scale, out)
    largest = out.max()
    return out / largest + ASIDE * gaps.own if largest > 0.0 else gaps.own


def allocate_cells(
    order: NDArray[np.int64], dynamics: Dynamics, tolerances: NDArray[np.float64], actions: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the same where every cell has a tolerance of its own and counts by how often it is visited.

    order is (A,), tolerances and the policy's actions are (H, S).

    Returns:
        (H, S, A), as ``allocate_samples``, times FOCUS; only the MOST_CELLS cells that count most, visits over the
        squared margin, are followed.
    """
    gaps = find_gaps(dynamics, order)
    margins, nearest = cell_margins(gaps, order, tolerances, actions)
    weight = dynamics.occupancy(actions) / np.maximum(margins, 1e-3) ** 2
    weight[nearest < 0] = 0.0
    out, add = np.zeros(dynamics.outcomes.shape), dynamics.criterion.either(_add, _add_discounted)
    for cell in np.argsort(-weight, axis=None, kind="stable")[:MOST_CELLS]:
        h, s = (int(i) for i in np.unravel_index(cell, weight.shape))
        a, best = int(nearest[h, s]), int(gaps.best[h, s])
        if weight[h, s] > 0.0 and gaps.spread[h, s, a] > 0.0 and a != best:
            add(dynamics, gaps, h, s, best, a, float(weight[h, s] / gaps.spread[h, s, a] ** 2), out)
    largest = out.max()
    return FOCUS * (out / largest + ASIDE * gaps.own if largest > 0.0 else gaps.own)


def _add_discounted(
    dynamics: Dynamics, gaps: Gaps, h: int, s: int, best: int, a: int, scale: float, out: NDArray[np.float64]
) -> None:
    """As ``_add``, with all later visits of a cell together: its error is one."""
    outcomes, law, criterion = dynamics.outcomes, dynamics.probability, dynamics.criterion
    leads = np.zeros(outcomes.n_states)
    for action, sign in ((best, 1.0), (a, -1.0)):
        here, slots = outcomes.slots(h, s, action)
        np.add.at(leads, outcomes.next_state[here], sign * criterion.factor * law[slots])
    play = one_hot(gaps.best[0], outcomes.n_actions)
    weight = play * criterion.play_occupancy(outcomes, law, play, leads)[:, None]
    weight[s, best] += 1.0
    weight[s, a] -= 1.0
    out[h] += scale * weight**2 * gaps.own[h]


def _add(
    dynamics: Dynamics, gaps: Gaps, h: int, s: int, best: int, a: int, scale: float, out: NDArray[np.float64]
) -> None:
    """Add what samples tell about one comparison of two actions, following both forward under the best policy."""
    here, there = np.zeros((2, dynamics.outcomes.n_states))
    _follow(dynamics.outcomes, dynamics.probability, gaps.best, gaps.own, h, s, best, a, scale, here, there, out)


@njit(cache=True, nogil=True)
def _follow(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    chosen: NDArray[np.int64],
    own: NDArray[np.float64],
    h: int,
    s: int,
    best: int,
    a: int,
    scale: float,
    here: NDArray[np.float64],
    there: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """As ``_add``; here and there, (S,), are zeros."""
    for action, sign in ((best, 1.0), (a, -1.0)):
        out[h, s, action] += scale * own[h, s, action]
        row = h * outcomes.row_shift + s * outcomes.n_actions + action
        for e in range(outcomes.first[row], outcomes.first[row + 1]):
            here[outcomes.next_state[e]] += sign * law[e + h * outcomes.slot_shift]
    for step in range(h + 1, outcomes.horizon):
        for y in range(outcomes.n_states):
            there[y] = 0.0
        for y in range(outcomes.n_states):
            if here[y] == 0.0:
                continue
            action = chosen[step, y]
            out[step, y, action] += scale * here[y] * here[y] * own[step, y, action]
            row = step * outcomes.row_shift + y * outcomes.n_actions + action
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                there[outcomes.next_state[e]] += here[y] * law[e + step * outcomes.slot_shift]
        here, there = there, here

"""preferred: actions within a tolerance of the best count as equal, and of those the most preferred is taken.

What an action costs in a state counts by how often the policy comes there: where it hardly ever comes, nearly all
actions are good enough, and where it never comes, the most preferred one is taken. A *stationary* policy says the same
at every step: it is chosen by gaps that are averaged over the steps, and has far fewer comparisons to get wrong. A
*phased* one may change a few times, the more often the nearer the end. Each candidate is a tolerance u; its margin is
how far the world is from one in which it would print another policy, in units of what one sample per cell tells.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.gaps import Gaps, average_gaps
from reprl.kernels import njit
from reprl.mdp.dynamics import Dynamics

PREFERRED, STATIONARY, PHASED = "preferred", "steady", "phased"
"""Kinds of candidates, by the words that stored documents have for them."""
LONGER = 3
"""How many times longer a phase is than the one after it; the last is one step."""
CLEAR = 1e3
"""Margins are not told apart beyond this: no comparison is near."""


class Candidates(NamedTuple):
    """What each tolerance prints, how firmly, and at what loss."""

    actions: NDArray[np.int64]
    """(J, H, S)."""
    margin: NDArray[np.float64]
    """(J,): the smallest distance of a comparison that can change the policy, over its spread; at most CLEAR."""
    loss: NDArray[np.float64]
    """(J,): V* − V^π from the start."""
    tightest: NDArray[np.int64]
    """(J, 3): the (h, s, a) of that comparison; −1 where none is near."""


def weigh_tolerances(
    dynamics: Dynamics,
    gaps: Gaps,
    order: NDArray[np.int64],
    tolerances: NDArray[np.float64],
    phases: NDArray[np.int64] | None = None,
) -> Candidates:
    """Apply the rule with every tolerance.

    phases are as ``phases_of`` returns them: one action is chosen for all steps of a phase, by gaps that are averaged
    over them, and a state counts by its largest visit; None for every step by itself.

    Guarantee:
        The loss is exact in the model: V* − V^π = Σ_h E_π[gap(·, π)] (performance difference, docs/proofs/canonical.md
        §2). Cells that the policy never visits, in this model or by an event that no sample has shown, say the most
        preferred action as long as the event's probability times what could be lost there stays below u/2 (§5, §12).
    """
    horizon, n_states, _ = dynamics.outcomes.shape
    n = tolerances.size
    found = Candidates(
        np.empty((n, horizon, n_states), dtype=np.int64), np.empty(n), np.empty(n), np.empty((n, 3), dtype=np.int64)
    )
    compared = gaps if phases is None else average_gaps(dynamics, gaps, order, phases)
    picked = compared.gap, compared.best, compared.default
    row = np.arange(horizon) if phases is None else phases
    rows = int(row[-1]) + 1
    plain, weighed = (np.empty((n, rows, n_states), dtype=np.int64) for _ in range(2))
    moved = np.empty(n, dtype=np.bool_)
    _pick(*picked, order, tolerances, np.ones((rows, n_states)), plain, moved)
    for j, end in _runs(moved):  # neighbours often pick the same, and then visit the same
        visits = dynamics.occupancy(plain[j][row])
        peaks = None if phases is None else _largest(visits, phases)
        seen = np.minimum(visits if peaks is None else peaks.visits, 1.0)
        _pick(*picked, order, tolerances[j:end], seen, weighed[j:end], moved[j:end])
        tightest = found.tightest[j:end]
        _margin(
            compared.gap, compared.spread, order, tolerances[j:end], seen, weighed[j:end], found.margin[j:end], tightest
        )
        if peaks is not None:
            near = tightest[:, 0] >= 0
            tightest[near, 0] = peaks.step[tightest[near, 0], tightest[near, 1]]
        for first, last in _runs(moved[j:end]):
            found.actions[j + first : j + last] = weighed[j + first][row]
            found.loss[j + first : j + last] = dynamics.policy_loss(gaps.value[0], found.actions[j + first])
    return found


def _runs(moved: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return (first, behind the last) of every run of tolerances that pick the same."""
    return list(pairwise([*np.flatnonzero(moved).tolist(), moved.size]))


def phases_of(kind: str, horizon: int) -> NDArray[np.int64] | None:
    """Return the phase of every step, (H,), in which a policy of a kind says the same; None if it may always change.

    The last phase is the last step, and each is LONGER times as long as the one after it: near the end there is ever
    less to lose later on, and what is best changes faster. The first is what is left.
    """
    if kind == PREFERRED:
        return None
    phases = np.zeros(horizon, dtype=np.int64)
    end, length = horizon, 1
    while kind == PHASED and end > length:
        end -= length
        length *= LONGER
        phases[end:] += 1
    return phases


class _Peaks(NamedTuple):
    """Where a policy is most often in each phase, (phases, S)."""

    visits: NDArray[np.float64]
    step: NDArray[np.int64]


def _largest(visits: NDArray[np.float64], phases: NDArray[np.int64]) -> _Peaks:
    """Return the largest visits of a state in each phase, and the first step that has them."""
    found = _Peaks(
        np.empty((int(phases[-1]) + 1, visits.shape[1])),
        np.empty((int(phases[-1]) + 1, visits.shape[1]), dtype=np.int64),
    )
    for phase, begin in enumerate(np.searchsorted(phases, range(len(found.visits)))):
        inside = visits[phases == phase]
        found.visits[phase], found.step[phase] = inside.max(axis=0), begin + inside.argmax(axis=0)
    return found


def count_equal(
    dynamics: Dynamics, gaps: Gaps, order: NDArray[np.int64], tolerance: float, phases: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return how many actions count as equal in each cell, (H, S), with one tolerance; 0 where nothing is compared.

    The arguments are those of ``weigh_tolerances``, and so are the comparisons.
    """
    compared = gaps if phases is None else average_gaps(dynamics, gaps, order, phases)
    picked = compared.gap, compared.best, compared.default
    row = np.arange(dynamics.outcomes.horizon) if phases is None else phases
    plain = np.empty(compared.best.shape, dtype=np.int64)
    one = np.array([tolerance])
    _pick(*picked, order, one, np.ones(plain.shape), plain[None], np.empty(1, dtype=np.bool_))
    visits = dynamics.occupancy(plain[row])
    _count(compared, tolerance, np.minimum(visits if phases is None else _largest(visits, phases).visits, 1.0), plain)
    return plain[row]


@njit(cache=True, nogil=True)
def _count(gaps: Gaps, tolerance: float, visits: NDArray[np.float64], equal: NDArray[np.int64]) -> None:
    """Fill equal, (H, S), with how many actions are good enough, as ``_pick`` judges them."""
    for h in range(equal.shape[0]):
        for s in range(equal.shape[1]):
            weight, found = visit_weight(visits[h, s]), 0
            for a in range(gaps.gap.shape[2] if visits[h, s] > 0.0 else 0):
                gap = gaps.gap[h, s, a]
                found += math.isfinite(gap) and weight * gap <= tolerance
            equal[h, s] = found


@njit(cache=True, nogil=True)
def visit_weight(visits: float) -> float:
    """Return by how much a gap counts in a cell that is visited with a probability: 0 for never, 1 for always."""
    return 2.0 * visits / (1.0 + visits)


@njit(cache=True, nogil=True, inner=True)
def weight_spread(visits: float) -> float:
    """Return the spread of the weight of a cell, if one episode says whether it is visited."""
    return 2.0 / ((1.0 + visits) * (1.0 + visits)) * math.sqrt(visits * (1.0 - visits))


def decided_cells(visits: NDArray[np.float64], kind: str) -> NDArray[np.bool_]:
    """Return where a policy of a kind ever comes, (H, S); it decides for a state at all steps of a phase."""
    phases = phases_of(kind, len(visits))
    return (visits if phases is None else _largest(visits, phases).visits[phases]) > 0.0


@njit(cache=True, nogil=True)
def _pick(
    gap: NDArray[np.float64],
    best: NDArray[np.int64],
    default: NDArray[np.int64],
    order: NDArray[np.int64],
    tolerances: NDArray[np.float64],
    visits: NDArray[np.float64],
    actions: NDArray[np.int64],
    moved: NDArray[np.bool_],
) -> None:
    """Fill actions, (J, H, S), with the most preferred ones that are good enough for each tolerance.

    An action is good enough if its gap, weighed by visits, is within the tolerance; one that nobody has tried never is.
    The default is taken where the policy never comes, and where nothing was tried. moved, (J,), is whether any action
    is not as with the tolerance before; the first is.
    """
    for j in range(tolerances.size):
        moved[j] = j == 0
        for h in range(visits.shape[0]):
            for s in range(visits.shape[1]):
                action, weight = best[h, s], visit_weight(visits[h, s])
                if visits[h, s] <= 0.0:
                    action = default[h, s]
                for i in range(order.size if visits[h, s] > 0.0 else 0):
                    a = order[i]
                    if math.isfinite(gap[h, s, a]) and weight * gap[h, s, a] <= tolerances[j]:
                        action = a
                        break
                moved[j] = moved[j] or action != actions[j - 1, h, s]
                actions[j, h, s] = action


@njit(cache=True, nogil=True)
def _margin(
    gaps: NDArray[np.float64],
    spreads: NDArray[np.float64],
    order: NDArray[np.int64],
    tolerances: NDArray[np.float64],
    visits: NDArray[np.float64],
    actions: NDArray[np.int64],
    margin: NDArray[np.float64],
    tightest: NDArray[np.int64],
) -> None:
    """Fill in, for every tolerance, the smallest standardised distance of a comparison that can change the policy.

    Those are: actions preferred to the chosen one, which are too far from the best; the chosen one, which is not; and,
    where it is the best itself, the others, which would have to overtake it by the tolerance. tightest, (J, 3), says
    which one it is.
    """
    for j in range(tolerances.size):
        least, tolerance = CLEAR, tolerances[j]
        tightest[j, 0] = tightest[j, 1] = tightest[j, 2] = -1
        for h in range(visits.shape[0]):
            for s in range(visits.shape[1]):
                if visits[h, s] <= 0.0:  # margins of cells that are hardly visited grow without bound: nothing jumps
                    continue
                weight, unsure = visit_weight(visits[h, s]), weight_spread(visits[h, s])
                chosen, passed = actions[j, h, s], False
                for i in range(order.size):
                    a = order[i]
                    gap = gaps[h, s, a]
                    if not math.isfinite(gap):
                        continue
                    spread = math.hypot(weight * spreads[h, s, a], unsure * gap)
                    if a == chosen:
                        passed = True
                        if gap == 0.0:
                            continue
                        distance = tolerance - weight * gap
                    elif not passed:
                        distance = weight * gap - tolerance
                    elif gaps[h, s, chosen] == 0.0:  # the weight multiplies a gap of 0: its error does not count
                        distance, spread = weight * gap + tolerance, weight * spreads[h, s, a]
                    else:
                        break
                    if spread > 0.0 and distance < least * spread:
                        least = distance / spread
                        tightest[j, 0], tightest[j, 1], tightest[j, 2] = h, s, a
        margin[j] = least

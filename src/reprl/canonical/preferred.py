"""preferred: actions within a tolerance of the best count as equal, and of those the most preferred is taken.

What an action costs in a state counts by how often the policy comes there: where it hardly ever comes, nearly all
actions are good enough, and where it never comes, the most preferred one is taken. A *stationary* policy says the same
at every step: it is chosen by gaps that are averaged over the steps, and has far fewer comparisons to get wrong. A
*phased* one may change a few times, the more often the nearer the end. Each candidate is a tolerance u; its margin is
how far the world is from one in which it would print another policy, in units of what one sample per cell tells.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.gaps import Gaps, average_gaps, first_steps
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

    tables: NDArray[np.int64]
    """(K, H, S): policies; neighbouring tolerances often have the same one."""
    table: NDArray[np.int64]
    """(J,), rising: which of these it prints."""
    margin: NDArray[np.float64]
    """(J,): the smallest distance of a comparison that can change the policy, over its spread; at most CLEAR."""
    loss: NDArray[np.float64]
    """(J,): V* − V^π from the start."""
    tightest: NDArray[np.int64]
    """(J, 3): the (h, s, a) of that comparison; −1 where none is near."""

    @property
    def actions(self) -> NDArray[np.int64]:
        """(J, H, S)."""
        return self.tables[self.table]


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
    compared = gaps if phases is None else average_gaps(dynamics, gaps, order, phases)
    picked = compared.gap, compared.best, compared.default, order, tolerances
    row = np.arange(dynamics.outcomes.horizon) if phases is None else phases
    actions = np.empty((tolerances.size, *compared.best.shape), dtype=np.int64)
    moved, one = np.empty(tolerances.size, dtype=np.bool_), np.zeros(tolerances.size, dtype=np.int64)
    _pick(*picked, np.ones((1, *compared.best.shape)), one, actions, moved)
    visits = dynamics.occupancy(actions[moved].take(row, axis=1))  # neighbours often pick, and then visit, the same
    seen, group = np.minimum(_largest(visits, phases), 1.0), np.cumsum(moved) - 1
    _pick(*picked, seen, group, actions, moved)
    margin, tightest = np.full(tolerances.size, CLEAR), np.full((tolerances.size, 3), -1)
    _margin(compared.gap, compared.spread, order, tolerances, seen, group, actions, margin, tightest)
    if phases is not None:
        _find_peaks(visits, group, phases, tightest)
    tables, table = actions[moved].take(row, axis=1), np.cumsum(moved) - 1
    return Candidates(tables, table, margin, dynamics.policy_losses(gaps.value[0], tables)[table], tightest)


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


def _largest(visits: NDArray[np.float64], phases: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Return the largest visits of a state in each phase, (…, phases, S), of those at each step, (…, H, S)."""
    if phases is None:
        return visits
    return np.maximum.reduceat(visits, first_steps(phases), axis=-2)


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
    one, first = np.array([tolerance]), np.zeros(1, dtype=np.int64)
    _pick(*picked, order, one, np.ones((1, *plain.shape)), first, plain[None], np.empty(1, dtype=np.bool_))
    _count(compared, tolerance, np.minimum(_largest(dynamics.occupancy(plain[row]), phases), 1.0), plain)
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
    return (visits if phases is None else _largest(visits, phases)[phases]) > 0.0


@njit(cache=True, nogil=True)
def _pick(
    gap: NDArray[np.float64],
    best: NDArray[np.int64],
    default: NDArray[np.int64],
    order: NDArray[np.int64],
    tolerances: NDArray[np.float64],
    visits: NDArray[np.float64],
    group: NDArray[np.int64],
    actions: NDArray[np.int64],
    moved: NDArray[np.bool_],
) -> None:
    """Fill actions, (J, H, S), with the most preferred ones that are good enough for each tolerance.

    An action is good enough if its gap, weighed by visits[group[j]], (K, H, S), is within tolerance j; one that nobody
    has tried never is. The default is taken where the policy never comes, and where nothing was tried. moved, (J,), is
    whether any action is not as with the tolerance before; the first is.
    """
    for j in range(tolerances.size):
        moved[j], k = j == 0, group[j]
        for h in range(best.shape[0]):
            for s in range(best.shape[1]):
                often = visits[k, h, s]
                action, weight = best[h, s] if often > 0.0 else default[h, s], visit_weight(often)
                for i in range(order.size if often > 0.0 else 0):
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
    group: NDArray[np.int64],
    actions: NDArray[np.int64],
    margin: NDArray[np.float64],
    tightest: NDArray[np.int64],
) -> None:
    """Lower margin, (J,), to the smallest standardised distance of a comparison that can change the policy.

    Those are: actions preferred to the chosen one, which are too far from the best; the chosen one, which is not; and,
    where it is the best itself, the others, which would have to overtake it by the tolerance. tightest, (J, 3), says
    which one it is; visits[group[j]], (K, H, S), are those for tolerance j.
    """
    for h in range(actions.shape[1]):
        for s in range(actions.shape[2]):
            weight = unsure = 0.0
            for j in range(tolerances.size):
                often = visits[group[j], h, s]
                if often <= 0.0:  # margins of cells that are hardly visited grow without bound: nothing jumps
                    continue
                if j == 0 or group[j] != group[j - 1]:
                    weight, unsure = visit_weight(often), weight_spread(often)
                least, tolerance = margin[j], tolerances[j]
                chosen, passed = actions[j, h, s], False
                for i in range(order.size):
                    a = order[i]
                    gap = gaps[h, s, a]
                    if not math.isfinite(gap):
                        continue
                    spread, more = weight * spreads[h, s, a], unsure * gap
                    if a == chosen:
                        passed = True
                        if gap == 0.0:
                            continue
                        distance = tolerance - weight * gap
                    elif not passed:
                        distance = weight * gap - tolerance
                    elif gaps[h, s, chosen] == 0.0:  # the weight multiplies a gap of 0: its error does not count
                        distance, more = weight * gap + tolerance, 0.0
                    else:
                        break
                    if least > 0.0 and distance >= least * (1.001 * (spread + more)):
                        continue  # a sum is larger than hypot, which takes long
                    spread = math.hypot(spread, more)
                    if spread > 0.0 and distance < least * spread:
                        least = distance / spread
                        tightest[j, 0], tightest[j, 1], tightest[j, 2] = h, s, a
                margin[j] = least


@njit(cache=True, nogil=True)
def _find_peaks(
    visits: NDArray[np.float64], group: NDArray[np.int64], phases: NDArray[np.int64], tightest: NDArray[np.int64]
) -> None:
    """Put, for the phase in tightest, (J, 3), its first step with the most visits of the state, (K, H, S)."""
    for j in range(group.size):
        phase, most = tightest[j, 0], -1.0
        for h in range(phases.size if phase >= 0 else 0):
            often = visits[group[j], h, tightest[j, 1]]
            if phases[h] == phase and often > most:
                tightest[j, 0], most = h, often

"""registered: a candidate that is chosen once, on pilot data, and published for every later run to follow.

A published choice need not replicate, so it may be made among far more candidates than f could choose from: every cell
has a tolerance of its own, in the widest hole between the cell's gaps; steps may be taken together in blocks; and any
order of the actions will do. What later runs then print is a function of the world alone (docs/proofs/agreement.md §4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.cellwise import cell_margins, pick_cells
from reprl.canonical.choice import Choice, Rule, find_goal
from reprl.canonical.gaps import Gaps, average_gaps, common_actions, find_gaps
from reprl.canonical.preferred import CLEAR
from reprl.errors import InputError, quote
from reprl.kernels import njit
from reprl.mdp.dynamics import Dynamics
from reprl.storage import fields as f

REGISTERED = "registered"
"""The kind of candidate, as stored documents call it."""
ROOM = 0.6
"""What a candidate may lose on the pilot data, as a share of ε(M): so much is left for what they do not show."""
ASIDE = 0.15
"""Share of ε(M) that cells may cost together which are hardly visited and so say the default action."""
ORDERS, CUTS = 6, 6
"""Orders of the actions that are tried, and places at which blocks of steps may begin."""
HALVINGS = 14
"""Of the interval in which the largest margin is sought that the loss allows."""
RARE = 1e-4
"""A cell that is visited less often counts as if it were visited this often."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The candidate: which action every cell takes, as a function of its gaps."""

    starts: tuple[int, ...]
    """The first step of every block; steps of a block do the same."""
    order: tuple[int, ...]
    """Actions, the most preferred first."""
    tolerances: NDArray[np.float64]
    """(blocks, S): actions whose gap, averaged over the block, is within this count as equal; infinite where the most
    preferred action is taken that is allowed."""

    def check(self, horizon: int, n_states: int, n_actions: int) -> Cells:
        """Return the candidate if it fits an environment of these sizes."""
        rises = all(a < b for a, b in zip(self.starts, self.starts[1:], strict=False))
        if not self.starts or self.starts[0] != 0 or not rises or self.starts[-1] >= horizon:
            raise InputError(
                f"candidate cells.starts must rise from 0 to at most {horizon - 1}, got {quote(list(self.starts))}"
            )
        if sorted(self.order) != list(range(n_actions)):
            allowed = f"every action from 0 to {n_actions - 1} once"
            raise InputError(f"candidate cells.order must name {allowed}, got {quote(list(self.order))}")
        shape = (len(self.starts), n_states)
        if self.tolerances.shape != shape or not (self.tolerances > 0.0).all():
            raise InputError(
                f"candidate cells.tolerances must be {shape[0]} x {shape[1]} numbers above 0, got an array of shape "
                f"{self.tolerances.shape}"
            )
        return self

    @property
    def least(self) -> float:
        """The smallest tolerance; 1 where all are infinite."""
        finite = self.tolerances[np.isfinite(self.tolerances)]
        return float(finite.min()) if finite.size else 1.0

    def rows(self, horizon: int) -> NDArray[np.int64]:
        """Return the block of every step, (H,)."""
        return np.searchsorted(self.starts, np.arange(horizon), side="right") - 1


class Registration(NamedTuple):
    """By whom, when and on which data a candidate was chosen; the data are not used again."""

    by: Annotated[str, f.printable()]
    at: Annotated[str, f.printable()]
    """The day, in UTC."""
    samples: Annotated[int, f.whole(1)]
    """Of the pilot."""
    episodes: Annotated[int, f.whole()]
    data_seed: Annotated[int | None, f.optional(f.SEED)]
    """Of the pilot; None for a log. It is published, since nobody may use it again."""
    log: Annotated[str | None, f.optional(f.printable())]
    """Digest of the pilot's log; None where there was none."""
    considered: Annotated[int, f.whole(1)]
    """Candidates that were weighed."""
    margin: Annotated[float, f.real()]
    """Of the one that was chosen, on the pilot data."""

    def check_fresh(self, data_seed: int, *, log: bool) -> None:
        """Refuse the pilot's data."""
        if log and self.log == log_digest(data_seed):
            raise InputError(
                f"log must be another one than the pilot's, got the one with digest {self.log}: it has chosen the "
                "registered candidate, and ρ speaks of fresh data"
            )
        if not log and self.data_seed == data_seed:
            raise InputError(
                f"data_seed must be another one than the pilot's, got {data_seed}: its data have chosen the registered "
                "candidate, and ρ speaks of fresh data"
            )


def log_digest(data_seed: int) -> str:
    """Return the digest of a log, of which its data seed is made."""
    return f"{data_seed:016x}"


class Published(NamedTuple):
    """A registered candidate, as a run follows it."""

    cells: Cells
    registration: Registration


def choose_registered(
    rule: Rule, cells: Cells, dynamics: Dynamics, practice: float | None = None, pooled: Dynamics | None = None
) -> Choice:
    """Return what a registered candidate prints in a model.

    practice is as in ``choose``; pooled is the model in which the candidate is applied, where it is another one than
    that in which the loss counts.

    Guarantee:
        A pure function of all; no shared draw is read.
    """
    gaps = find_gaps(dynamics, rule.order)
    goal = find_goal(rule, dynamics, gaps, practice)
    where, read = (dynamics, gaps) if pooled is None else (pooled, find_gaps(pooled, rule.order))
    blocks = block_gaps(where, read, rule.order, cells.rows(dynamics.outcomes.horizon))
    table, margins, nearest = _print(where, blocks, cells)
    visits = dynamics.occupancy(table)
    loss = dynamics.policy_loss(gaps.value[0], table)
    margins = np.where(_block_visits(visits, cells.starts) > 0.0, margins, CLEAR)
    block, s = np.unravel_index(int(margins.argmin()), margins.shape)
    least = float(margins[block, s])
    return Choice(
        policy=rule.policy(table),
        kind=REGISTERED,
        candidate=0,
        tolerance=cells.least,
        margin=least,
        lead=math.inf,
        loss=loss,
        value=goal.best - loss,
        tightest=None if least >= CLEAR else (int(cells.starts[block]), int(s), int(nearest[block, s])),
        baseline=goal.baseline,
        epsilon=goal.epsilon,
    )


def block_gaps(dynamics: Dynamics, gaps: Gaps, order: NDArray[np.int64], phases: NDArray[np.int64]) -> Gaps:
    """Return gaps, spreads, best and default actions of blocks of steps, (blocks, S, A) and (blocks, S).

    Those of one step are the step's own; of several, averages as in ``average_gaps``, over actions that are allowed at
    all of them.
    """
    if phases[-1] + 1 == phases.size:
        return gaps
    found = average_gaps(dynamics, gaps, order, phases)
    return found._replace(gap=np.where(common_actions(dynamics, phases), found.gap, math.inf))


def count_within(rule: Rule, cells: Cells, dynamics: Dynamics) -> NDArray[np.int64]:
    """Return how many actions are within the tolerance of each cell, (H, S); 0 where it is infinite."""
    phases = cells.rows(dynamics.outcomes.horizon)
    blocks = block_gaps(dynamics, find_gaps(dynamics, rule.order), rule.order, phases)
    within = (blocks.gap <= cells.tolerances[:, :, None]).sum(axis=2)
    return np.where(np.isfinite(cells.tolerances), within, 0)[phases]


def _print(
    dynamics: Dynamics, blocks: Gaps, cells: Cells
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """The table, (H, S), and, by block and state, the margin of each action and the nearest comparison."""
    order, phases = np.array(cells.order), cells.rows(dynamics.outcomes.horizon)
    rows = pick_cells(blocks.gap, order, cells.tolerances, blocks.best)
    default = _default(dynamics, order, phases)
    rows = np.where(np.isfinite(cells.tolerances), rows, default)
    margins, nearest = cell_margins(blocks, order, cells.tolerances, rows)
    margins = np.where(np.isfinite(cells.tolerances), margins, CLEAR)
    return np.ascontiguousarray(rows[phases]), margins, nearest


def _default(dynamics: Dynamics, order: NDArray[np.int64], phases: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most preferred action that is allowed at all steps of a block, (blocks, S)."""
    return np.asarray(order[common_actions(dynamics, phases)[:, :, order].argmax(axis=2)])


def _block_visits(visits: NDArray[np.float64], starts: Sequence[int]) -> NDArray[np.float64]:
    """The most visits of a state in each block, (blocks, S)."""
    return np.maximum.reduceat(visits, list(starts), axis=0)


class Firmest(NamedTuple):
    """What a pilot chose."""

    cells: Cells
    margin: float
    """In units of one sample for every cell, or for every visit of it."""
    considered: int


def find_firmest(
    rule: Rule, dynamics: Dynamics, practice: float | None = None, *, pooled: bool, by_visits: bool
) -> Firmest | None:
    """Choose the candidate with the widest margin among those that lose little enough.

    pooled says that the law does not depend on the step, so that steps may be taken together; by_visits, that a cell is
    sampled as often as it is visited, and not as often as every other.

    Returns:
        None if no candidate loses at most ROOM·ε(M).
    """
    gaps = find_gaps(dynamics, rule.order)
    epsilon = find_goal(rule, dynamics, gaps, practice).epsilon
    best: Firmest | None = None
    considered = 0
    for starts in _structures(dynamics.outcomes.horizon, pooled=pooled):
        phases = Cells(starts, (), np.empty(0)).rows(dynamics.outcomes.horizon)
        if not common_actions(dynamics, phases).any(axis=2).all():
            continue
        blocks = block_gaps(dynamics, gaps, rule.order, phases)
        for order in _orders(rule, blocks):
            for cells, margin in _climb(dynamics, gaps, blocks, starts, order, epsilon, by_visits=by_visits):
                considered += 1
                if cells is not None and (best is None or margin > best.margin):
                    best = Firmest(cells, margin, 0)
    return None if best is None else best._replace(considered=considered)


def _structures(horizon: int, *, pooled: bool) -> Iterator[tuple[int, ...]]:
    """Blocks of steps: one for each step and, if steps are alike, one for all, and up to two cuts on a grid."""
    yield tuple(range(horizon))
    if pooled and horizon > 1:
        places = sorted({round(x) for x in np.linspace(0, horizon, CUTS + 2)[1:-1]} - {0, horizon})
        places = sorted({*places, horizon - 1})
        for number in range(3):
            for cuts in combinations(places, number):
                if len(cuts) + 1 < horizon:
                    yield (0, *cuts)


def _orders(rule: Rule, blocks: Gaps) -> list[NDArray[np.int64]]:
    """The rule's own order; unless the user has named one, also others, with each action first that is best often."""
    if rule.preference is not None:
        return [rule.order]
    often = np.bincount(blocks.best.ravel(), minlength=rule.order.size)
    front = [int(a) for a in np.argsort(-often, kind="stable")]
    found = [rule.order, np.array(front)]
    found += [np.array([a, *(b for b in rule.order if b != a)]) for a in front]
    unique = {tuple(order.tolist()): order for order in found}
    return list(unique.values())[:ORDERS]


def _climb(
    dynamics: Dynamics,
    gaps: Gaps,
    blocks: Gaps,
    starts: tuple[int, ...],
    order: NDArray[np.int64],
    epsilon: float,
    *,
    by_visits: bool,
) -> Iterator[tuple[Cells | None, float]]:
    """Seek the largest margin that the loss allows, by halving; yield each candidate, None if it loses too much."""
    weight = np.ones(blocks.best.shape)
    low, high = math.log(1e-4), math.log(CLEAR)
    for number in range(HALVINGS + 1):
        level = math.exp(low if number == 0 else (low + high) / 2.0)
        tolerances = _widest(blocks.gap, blocks.spread, order, level / np.sqrt(weight))
        cells = Cells(starts, tuple(order.tolist()), tolerances)
        cells, loss, visits = _set_aside(dynamics, gaps, blocks, cells, epsilon)
        seen = _block_visits(visits, starts)
        if by_visits:
            weight = np.clip(seen, RARE, 1.0)
        if loss > ROOM * epsilon:
            yield None, 0.0
            if number == 0:
                return
            high = (low + high) / 2.0
            continue
        _, margins, _ = _print(dynamics, blocks, cells)
        yield cells, float(np.where(seen > 0.0, margins * np.sqrt(weight), CLEAR).min())
        low = low if number == 0 else (low + high) / 2.0


def _set_aside(
    dynamics: Dynamics, gaps: Gaps, blocks: Gaps, cells: Cells, epsilon: float
) -> tuple[Cells, float, NDArray[np.float64]]:
    """Let cells that are hardly visited say the default action; also return the loss, and the visits, (H, S)."""
    table, _, _ = _print(dynamics, blocks, cells)
    visits = dynamics.occupancy(table)
    phases = cells.rows(len(table))
    default = _default(dynamics, np.array(cells.order), phases)[phases]
    gap = np.take_along_axis(gaps.gap, default[:, :, None], axis=2)[:, :, 0]
    most = dynamics.criterion.remaining[:, None]
    cost = np.add.reduceat(visits * np.where(np.isfinite(gap), gap, most), list(cells.starts), axis=0)
    ranked = np.sort(cost, axis=None)
    kept = int(np.searchsorted(np.cumsum(ranked), ASIDE * epsilon))
    limit = ranked[kept - 1] if kept else -1.0
    aside = Cells(cells.starts, cells.order, np.where(cost <= limit, math.inf, cells.tolerances))
    table, _, _ = _print(dynamics, blocks, aside)
    return aside, dynamics.policy_loss(gaps.value[0], table), dynamics.occupancy(table)


@njit(cache=True, nogil=True)
def _widest(
    gap: NDArray[np.float64], spread: NDArray[np.float64], order: NDArray[np.int64], level: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return, for each cell, a tolerance in the widest hole of the least costly action whose margin is at least level.

    Actions that some tolerance picks are tried from the best one on; the last is the first in order, which every large
    tolerance picks, and whose tolerance is infinite.
    """
    out = np.full(gap.shape[:2], math.inf)
    for b in range(gap.shape[0]):
        for s in range(gap.shape[1]):
            chosen, least = -1, math.inf
            for i in range(order.size):  # what a tolerance of 0 picks, or nothing was tried
                if gap[b, s, order[i]] < least:
                    chosen, least = i, gap[b, s, order[i]]
            while chosen > 0:
                following = -1  # the next action that a larger tolerance picks
                for i in range(chosen):
                    if following < 0 or gap[b, s, order[i]] < gap[b, s, order[following]]:
                        following = i
                if not math.isfinite(gap[b, s, order[following]]):
                    break
                own = gap[b, s, order[chosen]]
                low, high = own, gap[b, s, order[following]]
                for _ in range(30):
                    middle = 0.5 * (low + high)
                    if _lower(gap[b, s], spread[b, s], order, chosen, middle) < _upper(
                        gap[b, s], spread[b, s], order, chosen, middle
                    ):
                        low = middle
                    else:
                        high = middle
                u = 0.5 * (low + high)
                below = _lower(gap[b, s], spread[b, s], order, chosen, u)
                if u > 0.0 and min(below, _upper(gap[b, s], spread[b, s], order, chosen, u)) >= level[b, s]:
                    out[b, s] = u
                    break
                chosen = following
    return out


@njit(cache=True, nogil=True, inner=True)
def _upper(
    gap: NDArray[np.float64], spread: NDArray[np.float64], order: NDArray[np.int64], chosen: int, u: float
) -> float:
    """How far the actions that are preferred to the chosen one are from being good enough."""
    least = CLEAR
    for i in range(chosen):
        a = order[i]
        if math.isfinite(gap[a]) and spread[a] > 0.0:
            least = min(least, (gap[a] - u) / spread[a])
    return least


@njit(cache=True, nogil=True, inner=True)
def _lower(
    gap: NDArray[np.float64], spread: NDArray[np.float64], order: NDArray[np.int64], chosen: int, u: float
) -> float:
    """How far the chosen action is from being too far from the best, or, if it is the best, from being overtaken."""
    a = order[chosen]
    if gap[a] > 0.0:
        return (u - gap[a]) / spread[a] if spread[a] > 0.0 else CLEAR
    least = CLEAR
    for i in range(chosen + 1, order.size):
        other = order[i]
        if math.isfinite(gap[other]) and spread[other] > 0.0:
            least = min(least, (gap[other] + u) / spread[other])
    return least

"""How f makes a policy of a model: one object for each kind of promise.

Strict: a choice among tolerances, or the one that a recipe has published. Approximate: a tolerance for every state, and
no choice. Registered: what was chosen on pilot data, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.allocation import allocate_cells, allocate_samples
from reprl.canonical.cellwise import cell_shares, choose_agreed
from reprl.canonical.choice import Choice, Rule, choose
from reprl.canonical.gaps import Ties, find_gaps, find_ties
from reprl.canonical.preferred import count_equal, decided_cells, phases_of
from reprl.canonical.registered import Published, choose_registered, count_within
from reprl.mdp.dynamics import Dynamics


class Selection(Protocol):
    """How a policy is made of a model. Every method is a pure function of what it is given."""

    @property
    def followed(self) -> bool:
        """Whether a candidate that a recipe has published is followed, of which fresh keys say nothing."""

    @property
    def cellwise(self) -> bool:
        """Whether every cell has a tolerance of its own: under the weaker promises."""

    def choose(
        self, rule: Rule, dynamics: Dynamics, practice: float | None, ties: Ties | None, pooled: Callable[[], Dynamics]
    ) -> Choice:
        """Return f(ξ, M); `pooled` makes the model of pooled steps, the rest is as in ``choice.choose``."""

    def afresh(self) -> Selection:
        """Return the same with no published candidate: what another key would select by."""

    def near_ties(self, rule: Rule, dynamics: Dynamics, visits: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return the actions that data do not tell from the best, (H, S, A); None if there are none that matter."""

    def weigh_cells(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.float64]:
        """Return how much a sample of each cell would help to tell what the policy is."""

    def decided(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.bool_]:
        """Return (H, S): where the policy decides by data, not by default."""

    def count_equal(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.int64]:
        """Return how many actions count as equal in each cell, (H, S); 0 where nothing is compared."""


@dataclass(frozen=True)
class AmongTolerances:
    """The strict rule: one tolerance for all cells, chosen among the rule's candidates."""

    followed: bool = False
    """Whether only the candidate is left that a recipe has published."""
    cellwise = False

    def choose(
        self, rule: Rule, dynamics: Dynamics, practice: float | None, ties: Ties | None, pooled: Callable[[], Dynamics]
    ) -> Choice:
        """Choose among the rule's candidates."""
        return choose(rule, dynamics, practice, ties)

    def afresh(self) -> AmongTolerances:
        """Return the choice among all candidates."""
        return AmongTolerances()

    def near_ties(self, rule: Rule, dynamics: Dynamics, visits: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Return near ties: only this choice reads spreads, which jump where the best action changes."""
        near = find_ties(dynamics, find_gaps(dynamics, rule.order), visits)
        return near if near.any() else None

    def weigh_cells(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.float64]:
        """Return what would tell the candidates apart that may still win."""
        return allocate_samples(rule, dynamics, choice.epsilon)

    def decided(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.bool_]:
        """Return where the policy ever comes."""
        return decided_cells(dynamics.occupancy(choice.policy.table), choice.kind)

    def count_equal(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.int64]:
        """Return how many actions are within the chosen tolerance."""
        phases = phases_of(choice.kind, rule.shape[0])
        return count_equal(dynamics, find_gaps(dynamics, rule.order), rule.order, choice.tolerance, phases)


@dataclass(frozen=True)
class Approximate:
    """The rule of approximate agreement: every state has a shared random share of one scale."""

    followed = False
    cellwise = True

    def choose(
        self, rule: Rule, dynamics: Dynamics, practice: float | None, ties: Ties | None, pooled: Callable[[], Dynamics]
    ) -> Choice:
        """Return the policy of approximate agreement; no tie can flip it."""
        return choose_agreed(rule, dynamics, practice)

    def afresh(self) -> Approximate:
        """Return itself: nothing is published."""
        return self

    def near_ties(self, rule: Rule, dynamics: Dynamics, visits: NDArray[np.int64]) -> None:
        """Return None: no spread is read."""

    def weigh_cells(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.float64]:
        """Return what would tell on which side of its tolerance each gap is."""
        return allocate_cells(rule.order, dynamics, self._tolerances(rule, choice), choice.policy.table)

    def decided(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.bool_]:
        """Return where anything was tried."""
        return np.asarray(dynamics.tried.any(axis=2))

    def count_equal(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.int64]:
        """Return how many actions are within each cell's tolerance."""
        gaps = find_gaps(dynamics, rule.order)
        return np.asarray((gaps.gap <= self._tolerances(rule, choice)[:, :, None]).sum(axis=2))

    def _tolerances(self, rule: Rule, choice: Choice) -> NDArray[np.float64]:
        """The tolerance of every cell, (H, S)."""
        return choice.tolerance * cell_shares(rule)


@dataclass(frozen=True)
class Registered:
    """A candidate that was chosen on pilot data, and published for every later run to follow."""

    published: Published
    pools: bool = False
    """Whether it is applied to pooled steps, though data by step say what its policy loses."""
    followed = True
    cellwise = True

    def choose(
        self, rule: Rule, dynamics: Dynamics, practice: float | None, ties: Ties | None, pooled: Callable[[], Dynamics]
    ) -> Choice:
        """Return what the candidate prints; no tie can flip it."""
        return choose_registered(rule, self.published.cells, dynamics, practice, pooled() if self.pools else None)

    def afresh(self) -> AmongTolerances:
        """Return the strict rule's own choice."""
        return AmongTolerances()

    def near_ties(self, rule: Rule, dynamics: Dynamics, visits: NDArray[np.int64]) -> None:
        """Return None: no spread is read."""

    def weigh_cells(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.float64]:
        """Return what would tell on which side of its tolerance each gap is."""
        order, tolerances = np.array(self.published.cells.order), self._tolerances(rule)
        return allocate_cells(order, dynamics, tolerances, choice.policy.table)

    def decided(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.bool_]:
        """Return where anything was tried, and the candidate does not say the default in any case."""
        return np.asarray(dynamics.tried.any(axis=2) & np.isfinite(self._tolerances(rule)))

    def count_equal(self, rule: Rule, dynamics: Dynamics, choice: Choice) -> NDArray[np.int64]:
        """Return how many actions are within each cell's tolerance."""
        return count_within(rule, self.published.cells, dynamics)

    def _tolerances(self, rule: Rule) -> NDArray[np.float64]:
        """The tolerance of every cell, (H, S)."""
        return self.published.cells.tolerances[self.published.cells.rows(rule.shape[0])]

"""The rule bound to its candidates and to how it reads data: from samples to f(ξ, ·) of the model that they show.

A run either chooses among all candidates or follows the one that a recipe has published. Samples that were drawn on
demand are read as frequencies; of a log the rule reads what is supported.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.allocation import allocate_samples
from reprl.canonical.choice import Choice, Rule, choose, follow, with_key
from reprl.canonical.gaps import find_gaps, value_spread
from reprl.canonical.preferred import decided_cells
from reprl.canonical.supported import Supported, draw_thresholds, find_supported, weigh_unknown_states
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics, without_unseen
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.sources.optimism import find_unknown
from reprl.sources.source import Wish

_LARGE = 1 << 16
"""Outcomes of a table from which on it is worth while to leave out those that nobody has seen."""
UNKNOWN = 0.1
"""Share of ε that under-sampled cells may be worth when a run stops."""


class Found(NamedTuple):
    """What the rule makes of data."""

    choice: Choice
    model: Supported
    """The model that it was chosen in."""

    @property
    def policy(self) -> Policy:
        """f(ξ, ·) of the data."""
        return self.choice.policy

    @property
    def best(self) -> float:
        """V* from the start, in the model."""
        return self.choice.best

    def loss_of(self, policy: Policy) -> float:
        """Return what another policy loses in the model."""
        worth = self.dynamics.policy_loss(np.zeros(self.dynamics.initial.size), policy.table)
        return self.choice.best + worth

    @property
    def dynamics(self) -> Dynamics:
        """Of the model."""
        return self.model.dynamics


class Reader(Protocol):
    """How a rule reads data."""

    @property
    def scope(self) -> str:
        """What a promise must add."""

    @property
    def ended(self) -> tuple[int, ...]:
        """States in which nothing is decided."""

    def read(self, key: SharedKey, data: Data) -> Supported:
        """Return the model that the rule is applied to."""

    def unknown(self, data: Data) -> float:
        """Return the optimistic value of cells that hardly were sampled though they could have been."""

    def slack(self, model: Supported) -> float:
        """Return what no sample of this source can tell: it is added to ε."""


class TableReader:
    """Reads samples that were drawn on demand: relative frequencies."""

    scope = " (docs/rehearsal.md)"
    ended: tuple[int, ...] = ()

    def read(self, key: SharedKey, data: Data) -> Supported:
        """Return the empirical model; every state counts, and every action that was tried."""
        dynamics = empirical_dynamics(data)
        if dynamics.probability.size >= _LARGE:
            dynamics = without_unseen(dynamics)
        return Supported(dynamics, np.ones(dynamics.outcomes.shape[:2]), dynamics.tried)

    def unknown(self, data: Data) -> float:
        """Return what under-sampled cells could be worth."""
        return find_unknown(data).worth

    def slack(self, model: Supported) -> float:
        """Nothing: every cell can be sampled."""
        return 0.0


class LogReader(NamedTuple):
    """Reads a log: actions and states that it supports."""

    min_action_share: float
    """Share of an action, relative to the most usual one, from which on it counts; up to a shared factor of 2 less."""
    min_visit_share: float
    """Share of the episodes that must come to a state; the same."""
    ended: tuple[int]
    scope: str = "; against policies that keep to actions which the log supports (docs/logs.md)"

    def read(self, key: SharedKey, data: Data) -> Supported:
        """Return what the log supports."""
        thresholds = draw_thresholds(key, self.min_action_share, self.min_visit_share)
        return find_supported(data, thresholds, *self.ended)

    def unknown(self, data: Data) -> float:
        """Nothing: what the log hardly has is in the slack."""
        return 0.0

    def slack(self, model: Supported) -> float:
        """Return what states that the log hardly reaches could be worth."""
        return weigh_unknown_states(model)


class BoundRule(NamedTuple):
    """f(ξ, ·) of data: a rule, with all its candidates or one, and its reader."""

    rule: Rule
    reader: Reader
    followed: bool = False
    """Whether only the candidate is left that a recipe has published."""

    @classmethod
    def bind(cls, rule: Rule, reader: Reader, candidate: tuple[str, int] | None) -> BoundRule:
        """Bind a rule to all its candidates, or to one (kind, number)."""
        return cls(rule if candidate is None else follow(rule, *candidate), reader, candidate is not None)

    def choose(self, data: Data) -> Found:
        """Return f(ξ, ·) of the model that data show."""
        model = self.reader.read(self.rule.key, data)
        practice = model.practice if self.rule.baseline is None else None
        return Found(choose(self.rule, model.dynamics, practice), model)

    def under(self, key: SharedKey) -> BoundRule:
        """Return the rule, with all its candidates, under another key."""
        return BoundRule(with_key(self.rule, key), self.reader)

    def wanted(self, found: Found) -> Wish:
        """Return how much a sample of each cell would help to tell what the policy is."""
        epsilon = found.choice.epsilon
        return Wish(allocate_samples(self.rule, found.dynamics, epsilon), UNKNOWN * epsilon)

    def values(self, found: Found) -> NDArray[np.float64]:
        """Return (H+1, S): V* in the model."""
        return find_gaps(found.dynamics, self.rule.order).value

    def decided(self, found: Found) -> NDArray[np.bool_]:
        """Return (H, S): where the policy decides by data, not by default."""
        visits = found.dynamics.occupancy(found.policy.table)
        decided = decided_cells(visits, found.choice.kind) & (found.model.known > 0)
        decided[:, list(self.reader.ended)] = False
        return decided

    def spread(self, found: Found) -> float:
        """Return how much the best policy is worth more than the worst; the price of support is no loss."""
        return value_spread(found.dynamics._replace(tried=found.model.full))

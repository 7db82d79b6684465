"""The rule bound to how it selects a policy and to how it reads data: from samples to f(ξ, ·) of what they show.

Samples that were drawn on demand are read as frequencies; of a log the rule reads what is supported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.choice import Choice, Rule, follow, with_key
from reprl.canonical.gaps import Ties, find_gaps, value_spread
from reprl.canonical.registered import Published
from reprl.canonical.selection import AmongTolerances, Approximate, Registered, Selection
from reprl.canonical.supported import Supported, draw_thresholds, find_supported, read_all, weigh_unknown_states
from reprl.mdp.basis import DATA, DEFAULT, PREFERENCE
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


class Reader:
    """How a rule reads data; what is not said otherwise is of a reader that leaves nothing out."""

    scope: str
    """What a promise must add."""
    ended: tuple[int, ...]
    """States in which nothing is decided."""

    @property
    def over(self) -> tuple[int, ...]:
        """States in which an episode is over, whose steps do not count."""
        return self.ended

    def read(self, key: SharedKey, data: Data) -> Supported:
        """Return the model that the rule is applied to."""
        raise NotImplementedError

    def unknown(self, data: Data) -> float:
        """Return the optimistic value of cells that hardly were sampled though they could have been."""
        return 0.0

    def untried(self, data: Data, dynamics: Dynamics) -> NDArray[np.bool_]:
        """Return (H, S): cells with an unknown quantity that a promise depends on."""
        return np.zeros(dynamics.outcomes.shape[:2], dtype=np.bool_)

    def slack(self, model: Supported) -> float:
        """Return what no sample of this source can tell: it is added to ε."""
        return 0.0

    def for_proof(self) -> Reader:
        """Return how data are read for a certificate."""
        return self


@dataclass(frozen=True)
class TableReader(Reader):
    """Reads samples that were drawn on demand: relative frequencies."""

    over: tuple[int, ...] = ()
    scope: str = " (docs/rehearsal.md)"
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

    def untried(self, data: Data, dynamics: Dynamics) -> NDArray[np.bool_]:
        """Return where some action that may be taken never was."""
        return np.asarray((dynamics.allowed & ~dynamics.tried).any(axis=2))


@dataclass(frozen=True)
class LogReader(Reader):
    """Reads a log: actions and states that it supports; what it hardly has is in the slack."""

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

    def untried(self, data: Data, dynamics: Dynamics) -> NDArray[np.bool_]:
        """Return states that nobody has seen; the promise does not cover what the log does not support."""
        return np.broadcast_to(data.counts.visits.sum(axis=(0, 2)) == 0, dynamics.outcomes.shape[:2])

    def slack(self, model: Supported) -> float:
        """Return what states that the log hardly reaches could be worth."""
        return weigh_unknown_states(model)

    def for_proof(self) -> WholeLog:
        """Without thresholds: a certificate is about the world itself, whatever the log supports."""
        return WholeLog(self.ended)


@dataclass(frozen=True)
class WholeLog(Reader):
    """Reads all of a log, for a certificate, which bounds what is not known."""

    ended: tuple[int]
    scope: str = "; of logs of one fixed practice in a world of these labels alone (docs/proofs/certificate.md §9)"

    def read(self, key: SharedKey, data: Data) -> Supported:
        """Return relative frequencies."""
        return read_all(data, *self.ended)


class BoundRule(NamedTuple):
    """f(ξ, ·) of data: a rule, how it selects a policy, and how it reads data."""

    rule: Rule
    reader: Reader
    selection: Selection = AmongTolerances()

    @classmethod
    def bind(
        cls, rule: Rule, reader: Reader, candidate: tuple[str, int] | Published | None, agreement: float = 1.0
    ) -> BoundRule:
        """Bind a rule to all its candidates, to one (kind, number), or to one that was registered."""
        if isinstance(candidate, Published):
            candidate.cells.check(*rule.shape)
            return cls(rule, reader, Registered(candidate))
        if agreement < 1.0:
            return cls(rule, reader, Approximate())
        if candidate is not None:
            return cls(follow(rule, *candidate), reader, AmongTolerances(followed=True))
        return cls(rule, reader)

    @property
    def followed(self) -> bool:
        """Whether it follows a published candidate, of which fresh keys say nothing."""
        return self.selection.followed

    @property
    def published(self) -> Published | None:
        """The registered candidate; None where none is followed."""
        return self.selection.published if isinstance(self.selection, Registered) else None

    def choose(self, data: Data, ties: Ties | None = None) -> Found:
        """Return f(ξ, ·) of the model that data show; `ties` as in ``choose``."""
        model = self.reader.read(self.rule.key, data)
        practice = model.practice if self.rule.baseline is None else None

        def pooled() -> Dynamics:
            return self.reader.read(self.rule.key, data.pool()).dynamics

        return Found(self.selection.choose(self.rule, model.dynamics, practice, ties, pooled), model)

    def ties(self, data: Data, found: Found) -> NDArray[np.bool_] | None:
        """Return the actions that data do not tell from the best, (H, S, A); None if there are none that matter."""
        return self.selection.near_ties(self.rule, found.dynamics, data.counts.visits)

    def under(self, key: SharedKey) -> BoundRule:
        """Return the rule, with all its candidates, under another key."""
        return BoundRule(with_key(self.rule, key), self.reader, self.selection.afresh())

    def for_proof(self) -> BoundRule:
        """Return the rule that a certificate is about: a policy may change at every step; of all that data show."""
        rule = self.rule._replace(stationary=np.empty(0), phased=np.empty(0), handicap=0.0)
        return self._replace(rule=rule, reader=self.reader.for_proof())

    def wanted(self, found: Found) -> Wish:
        """Return how much a sample of each cell would help to tell what the policy is."""
        weight = self.selection.weigh_cells(self.rule, found.dynamics, found.choice)
        return Wish(weight, UNKNOWN * found.choice.epsilon)

    def values(self, found: Found) -> NDArray[np.float64]:
        """Return (H+1, S): V* in the model."""
        return find_gaps(found.dynamics, self.rule.order).value

    def decided(self, found: Found) -> NDArray[np.bool_]:
        """Return (H, S): where the policy decides by data, not by default."""
        decided = self.selection.decided(self.rule, found.dynamics, found.choice) & (found.model.known > 0)
        decided[:, list(self.reader.ended)] = False
        return decided

    def occupancy(self, found: Found) -> NDArray[np.float64]:
        """Return how often the policy comes to each cell in the model, (H, S), as long as an episode lasts."""
        visits = found.dynamics.occupancy(found.policy.table).copy()
        visits[:, list(self.reader.over)] = 0.0
        return visits

    def deciders(self, found: Found) -> NDArray[np.int64]:
        """Return (H, S): who decides each cell, by its place in DECIDERS."""
        equal = self.selection.count_equal(self.rule, found.dynamics, found.choice)
        equal[found.model.known <= 0.0] = 0
        equal[:, list(self.reader.ended)] = 0
        return np.select([equal == 1, equal > 1], [DATA, PREFERENCE], DEFAULT).astype(np.int64)

    def spread(self, found: Found) -> float:
        """Return how much the best policy is worth more than the worst; the price of support is no loss."""
        return value_spread(found.dynamics._replace(tried=found.model.full))

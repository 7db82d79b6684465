"""What both practical learners of the paper's rule share: how they decide, when they may stop, what they promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reprl.assurance.rehearsal import Rehearsal
from reprl.assurance.stopping import Judgement, Round, Second, ask_teams, not_passed
from reprl.canonical.gaps import value_spread
from reprl.execution.settings import Execution
from reprl.guarantee import Guarantee
from reprl.learning.loss import best_value, policy_loss_bound
from reprl.learning.result import PaperDetails, Run
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers
from reprl.paper.rep_rl_bandit import Induction, tiered_induction
from reprl.randomness import SharedKey
from reprl.sources.source import Wish

CLEARLY = 2.0
"""A loss that is above ε by so many standard deviations of V* will not go away with more data."""


def decide(key: SharedKey, counts: Counts, tiers: Tiers, settings: Settings) -> Induction:
    """Turn data and a partition into a policy, as the settings say.

    Randomness:
        Shared, at key.derive("decide").
    """
    _, n_states, n_actions = counts.outcomes.shape
    return tiered_induction(
        key.derive("decide"),
        counts,
        tiers,
        accuracy=settings.paper.accuracy(tiers),
        delta=settings.asked.failure,
        decision=settings.paper.decision(n_states, n_actions),
    )


class Induced(NamedTuple):
    """What the induction makes of data."""

    induction: Induction
    best: float
    """V* from the start, in the data; optimistic of what is unseen."""

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.induction.policy


class InductionRule(NamedTuple):
    """The paper's induction on one partition, as a rule of the loop."""

    key: SharedKey
    tiers: Tiers
    settings: Settings
    followed: bool = False

    def choose(self, data: Data) -> Induced:
        """Decide on data."""
        return Induced(decide(self.key, data.counts, self.tiers, self.settings), best_value(data))

    def under(self, key: SharedKey) -> InductionRule:
        """Return the same rule under another key."""
        return self._replace(key=key)

    def wanted(self, found: Induced) -> Wish:
        """The same weight for all cells."""
        return Wish(np.ones(found.induction.values[:-1].shape), 0.0)


@dataclass(frozen=True)
class PracticalRehearsed:
    """Stop when simulated second teams agree, and the loss is at most ε, or clearly above it: more data are of no use.

    Guarantee:
        Status "rehearsed" if the rehearsal passed and the run's own data put the loss at ε or less, otherwise "none".
    """

    settings: Settings
    execution: Execution

    def judge(self, now: Round) -> Judgement:
        """Rehearse the round."""
        found, asked = now.found, self.settings.asked
        second = Second(model=empirical_dynamics(now.known.data))
        rehearsal = ask_teams(now, found.policy, asked, self.execution, second)
        over = (loss := policy_loss_bound(now.known.data, found.policy)) - asked.epsilon
        enough = rehearsal.passed and (over <= 0.0 or over > CLEARLY * rehearsal.error)
        guarantee = self._promise(rehearsal, loss, now.source.ran_out)
        return Judgement(enough, found, guarantee, rehearsal=rehearsal)

    def _promise(self, rehearsal: Rehearsal, loss: float, ran_out: str) -> Guarantee:
        asked = self.settings.asked
        if loss > asked.epsilon:
            return asked.promise("none", f"this run's own data put the loss at {loss:.3g}")
        why = not_passed(rehearsal, asked.epsilon)
        if why:
            return asked.promise("none", f"{ran_out}: {why}")
        return asked.promise("rehearsed", f"{rehearsal} (docs/rehearsal.md)")


def by_hand(settings: Settings, what: str) -> Guarantee:
    """Promise nothing of a size that was set by hand."""
    return settings.asked.promise("none", f"the number of {what} was set by hand and nobody rehearsed it")


def paper_run(
    settings: Settings,
    guarantee: Guarantee,
    data: Data,
    tiers: Tiers,
    details: PaperDetails,
    rehearsal: Rehearsal | None = None,
) -> Run:
    """Put the result of the paper's rule together; a partition that exploration has found is not proven to be one."""
    induction = details.induction
    if details.explored is not None:
        induction = induction._replace(guarantee=replace(induction.guarantee, status="heuristic"))
    return Run(
        policy=induction.policy,
        guarantee=guarantee,
        settings=settings,
        tiers=tiers,
        counts=data.counts,
        values=induction.values,
        rehearsal=rehearsal,
        spread=value_spread(empirical_dynamics(data)),
        details=details._replace(induction=induction),
    )

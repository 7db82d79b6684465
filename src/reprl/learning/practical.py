"""What both learners of the rule "sampled" share: how they decide, when they may stop, what they promise."""

from __future__ import annotations

from typing import NamedTuple

from reprl.assurance.rehearsal import Rehearsal
from reprl.guarantee import Guarantee
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts
from reprl.mdp.tiers import Tiers
from reprl.paper.rep_rl_bandit import Induction, tiered_induction
from reprl.randomness import SharedKey

CLEARLY = 2.0
"""A loss that is above ε by so many standard deviations of V* will not go away with more data."""


class Verdict(NamedTuple):
    """What a run knows of its policy after a round."""

    rehearsal: Rehearsal
    loss: float
    """V* − V^π in the run's own data."""


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
        accuracy=settings.accuracy(tiers),
        delta=settings.failure,
        decision=settings.decision(n_states, n_actions),
    )


def may_stop(verdict: Verdict, epsilon: float) -> bool:
    """Whether more data would be of no use: second teams agree, and the loss is at most ε, or clearly above it."""
    over = verdict.loss - epsilon
    return verdict.rehearsal.passed and (over <= 0.0 or over > CLEARLY * verdict.rehearsal.error)


def rehearsed_promise(settings: Settings, verdict: Verdict) -> Guarantee:
    """What was asked for, if the rehearsal passed and the run's own data put the loss at ε or less; else nothing."""
    rehearsal = verdict.rehearsal
    if verdict.loss > settings.epsilon:
        return settings.promise("none", f"this run's own data put the loss at {verdict.loss:.3g}")
    if rehearsal.passed:
        return settings.promise("rehearsed", f"{rehearsal} (docs/rehearsal.md)")
    if rehearsal.error >= settings.epsilon:
        why = f"the best value is only known to a standard deviation of {rehearsal.error:.3g}"
    else:
        why = f"only {rehearsal}"
    return settings.promise("none", f"out of samples before it was sure: {why}")


def by_hand(settings: Settings, what: str) -> Guarantee:
    """Promise nothing of a size that was set by hand."""
    return settings.promise("none", f"the number of {what} was set by hand and nobody rehearsed it")

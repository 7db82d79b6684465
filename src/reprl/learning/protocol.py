"""What a learner is, and what it returns.

A learner is anything that can be called as learner(model, shared_key): it draws its samples from the model and its
shared randomness from the key. ``reprl.check_learner`` tells whether one keeps to that. A function of a gymnasium.Env
becomes a learner in ``reprl.learning.adapters``, which also reads what learners return.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.assurance.certificate import Certificate, Witness
from reprl.assurance.coverage import Coverage
from reprl.assurance.rehearsal import Rehearsal
from reprl.canonical.choice import Choice
from reprl.errors import InputError
from reprl.guarantee import Guarantee
from reprl.learning.settings import ACCESSES, Settings
from reprl.mdp.counts import Counts
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers
from reprl.paper.boosting import Ballot
from reprl.paper.constants import Constants
from reprl.paper.rep_level_explore import Explored
from reprl.paper.rep_rl_bandit import Induction
from reprl.randomness import SharedKey


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A policy with the way to it, from a learner that shows its stages; one that has none returns the policy alone."""

    policy: Policy
    guarantee: Guarantee
    settings: Settings
    tiers: Tiers
    """Which cells were decided; the last of several tiers is left to the default action."""
    counts: Counts
    values: NDArray[np.float64]
    """(H+1, S): the values that the decision computed."""
    choice: Choice | None = None
    """What the canonical rule chose, and how firmly; None for the rule "sampled"."""
    rehearsal: Rehearsal | None = None
    """What simulated second teams did; None where nobody asked them."""
    certificate: Certificate | None = None
    """What the run's own data prove; None where nobody asked for a proof."""
    witness: Witness | None = None
    """The data that a certificate is, or could be, made from; None for the rule "sampled"."""
    spread: float | None = None
    """How much the best policy is worth more than the worst, in the run's own model: an ε of at least this is met by
    every policy."""
    followed: bool = False
    """Whether the run took the candidate that a recipe had published, instead of choosing afresh."""
    induction: Induction | None = None
    """Laws and scores behind the policy, for the rule "sampled"."""
    explored: Explored | None = None
    """Fractional and drawn ignorable sets, for access "episodic"."""
    constants: Constants | None = None
    """Every constant of the paper's algorithm, where its whole was run."""
    ballots: tuple[Ballot, ...] = ()
    """What the learners printed that were boosted, seed by seed. Tiers, counts, values, induction and what was explored
    are then those of the first learner that printed the policy."""
    drift: str = ""
    """What shows that steps are not alike, though the run was told so, and so that it promises nothing."""
    coverage: Coverage | None = None
    """How far a log speaks of the policy; None where samples were drawn."""

    def __repr__(self) -> str:
        """What it came to, on one line."""
        return f"{type(self).__name__}(policy {self.policy.short_fingerprint}, {self.guarantee.status})"

    @property
    def tolerance(self) -> float | None:
        """Actions within this of the best counted as equal; None for the rule "sampled"."""
        return None if self.choice is None else self.choice.tolerance

    @property
    def met_by_all(self) -> bool:
        """Whether every policy is within ε of the best, as far as the run can tell."""
        return self.spread is not None and self.spread <= self.settings.epsilon

    @property
    def undecided(self) -> list[tuple[int, int]]:
        """The cells (h, s) in which some simulated second team would do something else, the most disputed first."""
        if self.rehearsal is None:
            return []
        apart = self.rehearsal.apart
        cells = [(int(h), int(s)) for h, s in np.argwhere(apart > 0.0)]
        return sorted(cells, key=lambda cell: -apart[cell])


class Learner(Protocol):
    """learner(model, shared_key) → a Run, a policy, or anything else that ``adapters.policy_of`` reads as one.

    It may say more of itself: ``name``, for people, and ``access``, the model that it needs ("generative" for Parallel,
    "episodic" for Episodic, which is also what is taken for granted).
    """

    def __call__(self, model: Any, shared_key: SharedKey, /, *args: Any, **options: Any) -> Run | Policy | ArrayLike:
        """Learn from fresh samples of the model."""


def name_of(learner: object) -> str:
    """Return the name that people know a learner by."""
    name = getattr(learner, "name", None) or getattr(learner, "__name__", None)
    return name if isinstance(name, str) else type(learner).__name__


def access_of(learner: object, asked: str | None = None) -> str:
    """Return the access that a learner says it needs, or was asked for; episodes where nobody says."""
    needed = getattr(learner, "access", None)
    needed = needed if needed in ACCESSES else None
    if needed is not None and asked is not None and asked != needed:
        raise InputError(f"access must be {needed!r} for {name_of(learner)}, got {asked!r}")
    return asked or needed or "episodic"


def least_budget(model: Any, access: str) -> int:
    """Return the smallest budget that is worth a try: a parallel call, or an episode for each cell and two more."""
    if access == "generative":
        return int(model.samples_per_call)
    return int(model.samples_per_episode * (model.horizon * model.n_states * model.n_actions + 2))


def number_within(samples: int, each: int, what: str) -> int:
    """Return how many units of `each` samples a budget pays for, at least one."""
    if samples < each:
        raise InputError(f"samples must be at least {each}, {what}, got {samples}")
    return min(samples, 2**62) // each

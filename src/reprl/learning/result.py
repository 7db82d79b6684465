"""LearnResult: a policy with its guarantee, what every learner has, and details of its learner's kind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.certificate import Certificate, CertificateData
from reprl.assurance.coverage import Coverage
from reprl.assurance.practice import Beside
from reprl.assurance.rehearsal import Rehearsal
from reprl.canonical.choice import Choice
from reprl.canonical.registered import Published
from reprl.execution.terminal import visible
from reprl.guarantee import Guarantee, shared_out
from reprl.learning.papers import RunResult
from reprl.learning.settings import Settings
from reprl.learning.worth import Worth, find_worth
from reprl.mdp.basis import Basis
from reprl.mdp.counts import Counts
from reprl.mdp.interface import Interface
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers
from reprl.paper.boosting import Ballot
from reprl.paper.constants import Constants
from reprl.paper.rep_level_explore import Explored
from reprl.paper.rep_rl_bandit import Induction
from reprl.sources.environment import Environment
from reprl.sources.logs.check import LogCheck
from reprl.sources.protocol import Ledger

if TYPE_CHECKING:
    import pandas as pd

    from reprl import Receipt, Recipe


class CanonicalDetails(NamedTuple):
    """The way of the canonical rule to its policy."""

    choice: Choice
    """What it chose, and how firmly."""
    followed: bool = False
    """Whether it took the candidate that a recipe had published, instead of choosing afresh."""
    drift: str = ""
    """What shows that steps are not alike, though the run was told so, and so that it promises nothing."""
    certificate: Certificate | None = None
    """What the run's own data prove; None where nobody asked for a proof."""
    certificate_data: CertificateData | None = None
    """The data that a certificate is, or could be, made from."""
    apart: str = ""
    """What showed that the steps of a black box are not alike, after which they were kept apart; empty if nothing."""
    published: Published | None = None
    """The registered candidate that it followed."""
    tried: tuple[str, ...] = ()
    """Digests of other recipes for which a proof was sought from the same data, as far as its folder knows."""


class LogDetails(NamedTuple):
    """The way of the canonical rule to its policy, on a log."""

    choice: Choice
    coverage: Coverage
    """How far the log speaks of the policy."""
    followed: bool = False
    drift: str = ""
    basis: Basis | None = None
    """Who decided each cell, and what the log shows there; the policy carries it too."""
    certificate: Certificate | None = None
    certificate_data: CertificateData | None = None
    """Only where a proof was asked for: counts say more of a log than a receipt does."""
    tried: tuple[str, ...] = ()
    beside: Beside | None = None
    """The policy beside practice; None with a discount."""
    check: LogCheck | None = None
    """What is wrong or odd with the log."""
    published: Published | None = None


class PaperDetails(NamedTuple):
    """The way of the paper's algorithm to its policy."""

    induction: Induction
    """Laws and scores behind the policy."""
    explored: Explored | None = None
    """Fractional and drawn ignorable sets, where there were episodes."""
    constants: Constants | None = None
    """Every constant, where the full algorithm was run."""
    ballots: tuple[Ballot, ...] = ()
    """What the learners printed that were boosted, seed by seed. Tiers, counts, values, induction and what was explored
    are then those of the first learner that printed the policy."""


Details: TypeAlias = CanonicalDetails | LogDetails | PaperDetails


class Record(NamedTuple):
    """What a run was made with, and what it cost."""

    environment: Environment
    shared_seed: int
    data_seed: int
    samples: int
    episodes: int
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class LearnResult(RunResult):
    """Result of ``learn``: the policy, its guarantee, estimated values and what the run cost."""

    policy: Policy
    guarantee: Guarantee
    settings: Settings
    tiers: Tiers
    """Which cells were decided; the last of several tiers is left to the default action."""
    counts: Counts
    values: NDArray[np.float64]
    """(H+1, S): the values that the decision computed."""
    details: Details | None = None
    """What only its kind of learner has; each is also an attribute of the result."""
    rehearsal: Rehearsal | None = None
    """What simulated second teams did; None where nobody asked them."""
    spread: float | None = None
    """How much the best policy is worth more than the worst, in the run's own model: an ε of at least this is met by
    every policy."""
    occupancy: NDArray[np.float64] | None = None
    """(H, S): how often the policy comes to each cell in the run's own model, as long as an episode lasts; None where
    the rule is not the canonical one."""
    record: Record | None = None
    """Seeds, environment and cost, of ``learn`` and ``learn_log``."""

    def recorded(
        self, environment: Environment, interface: Interface, seeds: tuple[int, int], ledger: Ledger, began: float
    ) -> LearnResult:
        """Return the result as ``learn`` gives it: what it was made with, and a policy that knows its environment."""
        seconds = time.perf_counter() - began
        record = Record(environment, *seeds, ledger.samples, ledger.episodes, seconds)
        return replace(self, policy=Policy(self.policy, interface, self.basis), record=record)

    @property
    def _made(self) -> Record:
        if self.record is None:
            raise AttributeError("a run of a learner has no record of its own: reprl.learn makes one")
        return self.record

    @property
    def environment(self) -> Environment:
        """What was learned in."""
        return self._made.environment

    @property
    def choice(self) -> Choice | None:
        """What the canonical rule chose, and how firmly; None for the paper's rule."""
        return self.details.choice if isinstance(self.details, CanonicalDetails | LogDetails) else None

    @property
    def followed(self) -> bool:
        """Whether the run took the candidate that a recipe had published, instead of choosing afresh."""
        return isinstance(self.details, CanonicalDetails | LogDetails) and self.details.followed

    @property
    def published(self) -> Published | None:
        """The registered candidate that the run followed; None for any other run."""
        return self.details.published if isinstance(self.details, CanonicalDetails | LogDetails) else None

    @property
    def drift(self) -> str:
        """What shows that steps are not alike, though the run was told so; empty if nothing does."""
        return self.details.drift if isinstance(self.details, CanonicalDetails | LogDetails) else ""

    @property
    def apart(self) -> str:
        """What showed that the steps of a black box are not alike, after which they were kept apart; or empty."""
        return self.details.apart if isinstance(self.details, CanonicalDetails) else ""

    @property
    def certificate(self) -> Certificate | None:
        """What the run's own data prove; None where nobody asked for a proof."""
        return self.details.certificate if isinstance(self.details, CanonicalDetails | LogDetails) else None

    @property
    def certificate_data(self) -> CertificateData | None:
        """The data that a certificate is, or could be, made from."""
        return self.details.certificate_data if isinstance(self.details, CanonicalDetails | LogDetails) else None

    @property
    def tried(self) -> tuple[str, ...]:
        """Digests of other recipes for which a proof was sought from the same data, as far as its folder knows."""
        return self.details.tried if isinstance(self.details, CanonicalDetails | LogDetails) else ()

    def also_tried(self, others: Sequence[str]) -> LearnResult:
        """Return the result of a run whose data were asked for a proof under other recipes before: k cost k·δ."""
        others = sorted({*self.tried, *others} - {self.recipe.digest})
        if not others or not isinstance(self.details, CanonicalDetails | LogDetails):
            return self
        guarantee, certificate = self.guarantee, self.certificate
        if guarantee.status == "certified" and certificate is not None:
            guarantee = shared_out(guarantee, certificate.delta, 1 + len(others))
        return replace(self, details=self.details._replace(tried=tuple(others)), guarantee=guarantee)

    @property
    def coverage(self) -> Coverage | None:
        """How far a log speaks of the policy; None where samples were drawn."""
        return self.details.coverage if isinstance(self.details, LogDetails) else None

    @property
    def basis(self) -> Basis | None:
        """Who decided each cell, and what the log shows there; None where samples were drawn."""
        return self.details.basis if isinstance(self.details, LogDetails) else None

    @property
    def beside(self) -> Beside | None:
        """The policy beside the practice of a log: changed cells, hidden factors, other settings, subgroups."""
        return self.details.beside if isinstance(self.details, LogDetails) else None

    @property
    def check(self) -> LogCheck | None:
        """What is wrong or odd with the log; None where samples were drawn."""
        return self.details.check if isinstance(self.details, LogDetails) else None

    @property
    def induction(self) -> Induction | None:
        """Laws and scores behind the policy; None for the canonical rule."""
        return self.details.induction if isinstance(self.details, PaperDetails) else None

    @property
    def explored(self) -> Explored | None:
        """Fractional and drawn ignorable sets; None for the canonical rule and for parallel samples."""
        return self.details.explored if isinstance(self.details, PaperDetails) else None

    @property
    def constants(self) -> Constants | None:
        """Every constant of the paper's algorithm, where it was run in full."""
        return self.details.constants if isinstance(self.details, PaperDetails) else None

    @property
    def ballots(self) -> tuple[Ballot, ...]:
        """What the learners printed that were boosted, seed by seed."""
        return self.details.ballots if isinstance(self.details, PaperDetails) else ()

    @property
    def tolerance(self) -> float | None:
        """Actions within this of the best counted as equal; None for the paper's rule."""
        return None if self.choice is None else self.choice.tolerance

    @property
    def epsilon(self) -> float:
        """What the policy may lose, in units of value: as asked, or what the quality comes to in this run's data."""
        return self.settings.epsilon or (0.0 if self.choice is None else self.choice.epsilon)

    @property
    def value(self) -> float | None:
        """What the policy earns, in the environment's own reward units, estimated from this run's data."""
        return self._original(None if self.choice is None else self.choice.value)

    @property
    def best_value(self) -> float | None:
        """What the best policy earns, in the same units."""
        return self._original(None if self.choice is None else self.choice.best)

    @property
    def baseline_value(self) -> float | None:
        """What the baseline earns, in the same units: always the most preferred action, unless you name another."""
        return self._original(None if self.choice is None else self.choice.baseline)

    @property
    def worth(self) -> Worth | None:
        """These three together, in words; None for the paper's rule."""
        made = self._made
        return find_worth(self.choice, self.settings, made.environment, self.policy, made.shared_seed, self.spread)

    def _original(self, value: float | None) -> float | None:
        return None if value is None or self.record is None else self.environment.original_return(value)

    @property
    def met_by_all(self) -> bool:
        """Whether every policy is within ε of the best, as far as the run can tell."""
        return self.spread is not None and self.spread <= self.epsilon

    @property
    def undecided(self) -> list[tuple[int, int]]:
        """The cells (h, s) in which some simulated second team would do something else, the most disputed first."""
        if self.rehearsal is None:
            return []
        apart = self.rehearsal.apart
        cells = [(int(h), int(s)) for h, s in np.argwhere(apart > 0.0)]
        return sorted(cells, key=lambda cell: -apart[cell])

    @property
    def expected_agreement(self) -> float | None:
        """The share of an episode's decisions that a second team is expected to take alike, by the rehearsal.

        On average over simulated teams, of an exact promise as of an approximate one; None where nobody rehearsed.
        """
        return None if self.rehearsal is None else self.rehearsal.alike

    @property
    def recipe(self) -> Recipe:
        """Everything a second team needs to repeat this run on fresh data."""
        from reprl import Recipe

        return Recipe.of(self)

    @property
    def receipt(self) -> Receipt:
        """What this run produced, for the record."""
        from reprl import Receipt

        return Receipt.of(self)

    def __repr__(self) -> str:
        if self.record is None:
            return f"Run(policy {self.policy.short_fingerprint}, {self.guarantee.status})"
        words, worth = f"{self.guarantee.status}, {self.samples:,} samples", self.worth
        if self.guarantee.status != "none":
            words = f"ρ ≤ {self.guarantee.rho:.3g} {words}"
            if self.rehearsal is not None and self.rehearsal.agree < self.rehearsal.of:
                words += f", {self.rehearsal.agree} of {self.rehearsal.of} teams of this seed agree"
        if worth is not None:
            words += f", {visible(worth.brief)}"
        words += f", policy {self.policy.short_fingerprint}"
        return f"LearnResult({visible(self.environment.title)}: {words})"

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each step and state: action, samples, value, the share of simulated teams that differ."""
        return self.receipt.to_pandas(self.policy)


Run = LearnResult
"""What a learner of this package returns: a result without a record."""

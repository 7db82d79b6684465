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
    """Details of a run of the canonical rule."""

    choice: Choice
    """The candidate that the rule chose, with its margin."""
    followed: bool = False
    """Whether the run used the candidate of a recipe instead of choosing one."""
    drift: str = ""
    """Evidence against stationary dynamics, which the user declared; the run then promises nothing."""
    certificate: Certificate | None = None
    """The certificate; None if no proof was asked for."""
    certificate_data: CertificateData | None = None
    """The data for a certificate."""
    apart: str = ""
    """Evidence against stationary dynamics of a black box, which then got a model for each step; or empty."""
    published: Published | None = None
    """The registered candidate that the run followed."""
    tried: tuple[str, ...] = ()
    """Digests of other recipes that were tried on the same data, as recorded in its folder."""


class LogDetails(NamedTuple):
    """Details of a run of the canonical rule on a log."""

    choice: Choice
    coverage: Coverage
    """What the log shows about the policy."""
    followed: bool = False
    drift: str = ""
    basis: Basis | None = None
    """Whether data, preference or default decided each cell; stored in the policy too."""
    certificate: Certificate | None = None
    certificate_data: CertificateData | None = None
    """Only if a proof was asked for, because counts reveal more of a log than a receipt."""
    tried: tuple[str, ...] = ()
    beside: Beside | None = None
    """Comparison of the policy with practice; None with a discount."""
    check: LogCheck | None = None
    """What is wrong or odd with the log."""
    published: Published | None = None


class PaperDetails(NamedTuple):
    """Details of a run of the paper's algorithm."""

    induction: Induction
    """Distributions and scores of the actions."""
    explored: Explored | None = None
    """Fractional and drawn ignorable sets; None with parallel samples."""
    constants: Constants | None = None
    """Every constant of the full algorithm."""
    ballots: tuple[Ballot, ...] = ()
    """Policies of the boosted learners, seed by seed. Tiers, counts, values, induction and exploration are then those
    of the first learner with the returned policy."""


Details: TypeAlias = CanonicalDetails | LogDetails | PaperDetails


class Record(NamedTuple):
    """Environment, seeds and cost of a run."""

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
    """The decided cells; in the last of several tiers the default action is taken."""
    counts: Counts
    values: NDArray[np.float64]
    """(H+1, S): estimated values."""
    details: Details | None = None
    """Details of the kind of learner; each is also an attribute of the result."""
    rehearsal: Rehearsal | None = None
    """Result of the rehearsal; None if there was none."""
    spread: float | None = None
    """Value of the best policy minus that of the worst, in the run's own model. Every policy meets an ε of at least
    this."""
    occupancy: NDArray[np.float64] | None = None
    """(H, S): expected visits of the policy to each cell in an episode, in the run's own model; None unless the rule is
    canonical."""
    record: Record | None = None
    """Environment, seeds and cost, for ``learn`` and ``learn_log``."""

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
        """The environment."""
        return self._made.environment

    @property
    def choice(self) -> Choice | None:
        """The candidate that the rule chose, with its margin; None for the paper's rule."""
        return self.details.choice if isinstance(self.details, CanonicalDetails | LogDetails) else None

    @property
    def followed(self) -> bool:
        """Whether the run used the candidate of a recipe instead of choosing one."""
        return isinstance(self.details, CanonicalDetails | LogDetails) and self.details.followed

    @property
    def published(self) -> Published | None:
        """The registered candidate that the run followed; None for any other run."""
        return self.details.published if isinstance(self.details, CanonicalDetails | LogDetails) else None

    @property
    def drift(self) -> str:
        """Evidence against stationary dynamics that the user declared; empty if there is none."""
        return self.details.drift if isinstance(self.details, CanonicalDetails | LogDetails) else ""

    @property
    def apart(self) -> str:
        """What contradicted stationary dynamics of a black box, so that each step got its own model; or empty."""
        return self.details.apart if isinstance(self.details, CanonicalDetails) else ""

    @property
    def certificate(self) -> Certificate | None:
        """The certificate; None if no proof was asked for."""
        return self.details.certificate if isinstance(self.details, CanonicalDetails | LogDetails) else None

    @property
    def certificate_data(self) -> CertificateData | None:
        """The data for a certificate."""
        return self.details.certificate_data if isinstance(self.details, CanonicalDetails | LogDetails) else None

    @property
    def tried(self) -> tuple[str, ...]:
        """Digests of other recipes that were tried on the same data, as recorded in its folder."""
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
        """What the log shows about the policy; None without a log."""
        return self.details.coverage if isinstance(self.details, LogDetails) else None

    @property
    def basis(self) -> Basis | None:
        """Whether data, preference or default decided each cell; None without a log."""
        return self.details.basis if isinstance(self.details, LogDetails) else None

    @property
    def beside(self) -> Beside | None:
        """The policy beside the practice of a log: changed cells, hidden factors, other settings, subgroups."""
        return self.details.beside if isinstance(self.details, LogDetails) else None

    @property
    def check(self) -> LogCheck | None:
        """Findings of ``check_log``; None without a log."""
        return self.details.check if isinstance(self.details, LogDetails) else None

    @property
    def induction(self) -> Induction | None:
        """Distributions and scores of the actions; None for the canonical rule."""
        return self.details.induction if isinstance(self.details, PaperDetails) else None

    @property
    def explored(self) -> Explored | None:
        """Fractional and drawn ignorable sets; None for the canonical rule and for parallel samples."""
        return self.details.explored if isinstance(self.details, PaperDetails) else None

    @property
    def constants(self) -> Constants | None:
        """Every constant of the paper's full algorithm; None otherwise."""
        return self.details.constants if isinstance(self.details, PaperDetails) else None

    @property
    def ballots(self) -> tuple[Ballot, ...]:
        """Policies of the boosted learners, seed by seed."""
        return self.details.ballots if isinstance(self.details, PaperDetails) else ()

    @property
    def tolerance(self) -> float | None:
        """Actions within this of the best counted as equal; None for the paper's rule."""
        return None if self.choice is None else self.choice.tolerance

    @property
    def epsilon(self) -> float:
        """The allowed loss in reward units: as asked, or estimated from the quality and this run's data."""
        return self._allowed if self.record is None else self._allowed * self.environment.scale

    @property
    def _allowed(self) -> float:
        """The same for rewards in [0, 1]."""
        return self.settings.epsilon or (0.0 if self.choice is None else self.choice.epsilon)

    @property
    def value(self) -> float | None:
        """Expected return of the policy, in reward units, estimated from this run's data."""
        return self._original(None if self.choice is None else self.choice.value)

    @property
    def best_value(self) -> float | None:
        """Expected return of the best policy, in the same units."""
        return self._original(None if self.choice is None else self.choice.best)

    @property
    def baseline_value(self) -> float | None:
        """Expected return of the baseline, in the same units."""
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
        """Whether every policy is within ε of the best, by the run's own model."""
        return self.spread is not None and self.spread <= self._allowed

    @property
    def undecided(self) -> list[tuple[int, int]]:
        """Cells (h, s) in which simulated second teams take another action, those with most such teams first."""
        if self.rehearsal is None:
            return []
        apart = self.rehearsal.apart
        cells = [(int(h), int(s)) for h, s in np.argwhere(apart > 0.0)]
        return sorted(cells, key=lambda cell: -apart[cell])

    @property
    def expected_agreement(self) -> float | None:
        """Expected share of an episode's steps at which a second team takes the same action, by the rehearsal.

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
        return self.receipt.to_pandas(self.policy, self.environment)


Run = LearnResult
"""What a learner of this package returns: a result without a record."""

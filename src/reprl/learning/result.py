"""LearnResult: a policy with its guarantee, what every learner has, and details of its learner's kind."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.verdict import Verdict
from reprl.execution.terminal import visible
from reprl.guarantee import Guarantee
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
from reprl.rule.soft import Choice
from reprl.sources.environment import Environment
from reprl.sources.logs.check import LogCheck
from reprl.sources.logs.coverage import Coverage
from reprl.sources.logs.practice import Beside
from reprl.sources.protocol import Ledger

if TYPE_CHECKING:
    import pandas as pd

    from reprl import Receipt, Recipe


class SoftDetails(NamedTuple):
    """Details of a run of the default rule."""

    choice: Choice
    """What the rule printed, and what it is worth in the run's own model."""
    verdict: Verdict
    """What simulated second teams said."""
    drift: str = ""
    """Evidence against stationary dynamics that were stated."""
    needed: float | None = None
    """Samples that equality is forecast to need; None if it is there, or beyond the forecast."""


class LogDetails(NamedTuple):
    """Details of a run of the default rule on a log."""

    choice: Choice
    verdict: Verdict
    coverage: Coverage
    """What the log shows about the policy."""
    drift: str = ""
    basis: Basis | None = None
    """Whether data, preference or default decided each cell; stored in the policy too."""
    beside: Beside | None = None
    """Comparison of the policy with practice; None with a discount."""
    check: LogCheck | None = None
    """What is wrong or odd with the log."""


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


Details: TypeAlias = SoftDetails | LogDetails | PaperDetails


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
    spread: float | None = None
    """Value of the best policy minus that of the worst, in the run's own model. Every policy meets an ε of at least
    this."""
    occupancy: NDArray[np.float64] | None = None
    """(H, S): expected visits of the policy to each cell in an episode, in the run's own model; None for
    the paper's rule."""
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
        """What the rule printed; None for the paper's rule."""
        return self.details.choice if isinstance(self.details, SoftDetails | LogDetails) else None

    @property
    def verdict(self) -> Verdict | None:
        """What simulated second teams said; None for the paper's rule."""
        return self.details.verdict if isinstance(self.details, SoftDetails | LogDetails) else None

    @property
    def drift(self) -> str:
        """Evidence against stationary dynamics that were stated; empty if there is none."""
        return self.details.drift if isinstance(self.details, SoftDetails | LogDetails) else ""

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
        """Distributions and scores of the actions; None for the default rule."""
        return self.details.induction if isinstance(self.details, PaperDetails) else None

    @property
    def explored(self) -> Explored | None:
        """Fractional and drawn ignorable sets; None for the default rule and for parallel samples."""
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
    def epsilon(self) -> float:
        """The allowed loss in reward units: as asked, or estimated from the quality and this run's data."""
        return self._allowed if self.record is None else self._allowed * self.environment.scale

    @property
    def _allowed(self) -> float:
        """The same for rewards in [0, 1]."""
        return self.settings.epsilon or (0.0 if self.choice is None else self.choice.allowed)

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
        return find_worth(self.choice, self.settings, made.environment, self.policy, self.spread)

    def _original(self, value: float | None) -> float | None:
        return None if value is None or self.record is None else self.environment.original_return(value)

    @property
    def undecided(self) -> list[tuple[int, int]]:
        """Cells (h, s) in which simulated second teams take another action, those with most such teams first."""
        if self.verdict is None:
            return []
        apart = self.verdict.apart
        cells = [(int(h), int(s)) for h, s in np.argwhere(apart > 0.0)]
        return sorted(cells, key=lambda cell: -apart[cell])

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
        promised, worth = self.guarantee, self.worth
        words = f"quality {promised.quality.status}, same policy {promised.same.status}, {self.samples:,} samples"
        if worth is not None:
            words += f", {visible(worth.brief)}"
        words += f", policy {self.policy.short_fingerprint}"
        return f"LearnResult({visible(self.environment.title)}: {words})"

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each step and state: action, samples, value, the share of simulated teams that differ."""
        return self.receipt.to_pandas(self.policy, self.environment)


Run = LearnResult
"""What a learner of this package returns: a result without a record."""

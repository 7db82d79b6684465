"""SearchResult: a policy that a search found, with the ladder that led to it and what is certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from reprl.execution.terminal import visible
from reprl.guarantee import Guarantee
from reprl.learning.papers import RunResult
from reprl.mdp.labels import Origin
from reprl.mdp.policy import Policy
from reprl.search.scan import Undecided
from reprl.search.settings import SearchSettings
from reprl.sources.returns import Range

if TYPE_CHECKING:
    from reprl import SearchReceipt, SearchRecipe


class Estimate(NamedTuple):
    """A mean return with a 95 % interval, in reward units."""

    mean: float
    low: float
    high: float
    episodes: int


class RungRecord(NamedTuple):
    """One scan of a ladder."""

    rung: int
    level: float
    """The level that the rung asked for."""
    threshold: float
    """The level and a shared draw: what a candidate's mean return must exceed."""
    candidate: int | None
    """The first that does; None if none of all tried does, or one is undecided."""
    tried: int
    episodes: int
    samples: int
    earned: Estimate | None
    """What the winner earned in the rung's own episodes."""


class SearchDetails(NamedTuple):
    """Details of a search."""

    ladder: tuple[RungRecord, ...]
    reached: bool
    """Whether the target was passed; without one, whether the level next to the bound of returns was."""
    undecided: Undecided | None
    """The candidate that samples ran out on, in the last rung."""
    baseline: Estimate | None
    """What the policy earns that is there before the search: always the first action, or the family's own centre."""
    clipped: int
    """Returns outside the return range that the user gave."""

    @property
    def winner(self) -> RungRecord | None:
        """The rung whose winner is printed; None where nothing passed."""
        return next((rung for rung in reversed(self.ladder) if rung.candidate is not None), None)


def first_difference(one: SearchDetails, two: SearchDetails) -> str:
    """Say at which rung the ladders of two runs first differ; empty if they do not."""
    for a, b in zip(one.ladder, two.ladder, strict=False):
        if (a.candidate, a.threshold) != (b.candidate, b.threshold):
            found = " and ".join("none" if x.candidate is None else f"candidate {x.candidate}" for x in (a, b))
            return f"they differ from rung {a.rung}, threshold {a.threshold:.5g}: {found}"
    return ""


class SearchRecord(NamedTuple):
    """Environment, seeds and cost of a run."""

    environment: str
    origin: Origin | None
    horizon: int
    reward_range: Range | None
    return_range: Range | None
    digest: str
    shared_seed: int
    data_seed: int
    samples: int
    episodes: int
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchResult(RunResult):
    """Result of a search: the policy, its guarantee and the rungs that led to it."""

    policy: Policy
    guarantee: Guarantee
    settings: SearchSettings
    details: SearchDetails
    record: SearchRecord

    @property
    def _made(self) -> SearchRecord:
        return self.record

    @property
    def environment(self) -> str:
        """Name of the environment."""
        return self.record.environment

    @property
    def estimate(self) -> Estimate | None:
        """Mean return of the policy, with an interval; None if no policy passed."""
        winner = self.details.winner
        return self.details.baseline if winner is None else winner.earned

    @property
    def value(self) -> float | None:
        """Mean return of the policy, in reward units."""
        return None if self.estimate is None else self.estimate.mean

    @property
    def best_value(self) -> float | None:
        """Not known of a search: None. ``record.return_range`` bounds it."""
        return None

    @property
    def baseline_value(self) -> float | None:
        """Mean return of the policy before the search, in reward units."""
        return None if self.details.baseline is None else self.details.baseline.mean

    @property
    def certified_return(self) -> float | None:
        """Certified lower bound on the mean return; None if nothing is certified."""
        winner = self.details.winner
        return None if winner is None else winner.threshold

    @property
    def recipe(self) -> SearchRecipe:
        """Everything a second team needs to repeat this run on fresh data."""
        from reprl import SearchRecipe

        return SearchRecipe.of(self)

    @property
    def receipt(self) -> SearchReceipt:
        """What this run produced, for the record."""
        from reprl import SearchReceipt

        return SearchReceipt.of(self)

    def __repr__(self) -> str:
        above = "" if self.certified_return is None else f", return > {self.certified_return:.4g}"
        words = f"{self.guarantee.status}{above}, {self.samples:,} samples, policy {self.policy.short_fingerprint}"
        return f"SearchResult({visible(self.environment)}: {words})"

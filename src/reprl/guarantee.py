"""Guarantee: what is promised, and what supports the promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from reprl.errors import check_choice, check_real

STATUSES = ("proven", "certified", "rehearsed", "none")
"""From the strongest support to none."""


@dataclass(frozen=True)
class Promise:
    """One statement, with what supports it."""

    status: str
    """One of STATUSES. ``proven``: a proof in docs/proofs holds for the constants in use. ``certified``: proven from
    the run's own data. ``rehearsed``: simulated second teams agree (docs/rehearsal.md). ``none``: no promise."""
    risk: float
    """Largest probability that the statement is false; without meaning where nothing is promised."""
    source: str
    """Where the proof is, what the simulation gave, or why nothing is promised."""

    def __post_init__(self) -> None:
        """Refuse figures that promise nothing."""
        check_choice("guarantee status", self.status, STATUSES)
        check_real("guarantee risk", self.risk, 0.0, float("inf"), open_low=False)


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What a result promises: two statements, each judged by itself."""

    quality: Promise
    """That the policy is good: it loses at most ε, or earns the share of the gain that was asked for."""
    same: Promise
    """That a second run, with the same shared seed and fresh data, gives exactly this output."""
    epsilon: float
    """ε, in the units of the algorithm's own statement; where a share was asked for, estimated from the run's data."""
    share: float | None = None
    """The share of the gain over the baseline that the policy earns; None where ε is absolute."""
    assumed: str = ""
    """What rests on the user's word; empty if nothing does."""

    def __post_init__(self) -> None:
        """Refuse figures that promise nothing."""
        check_real("guarantee epsilon", self.epsilon, 0.0, float("inf"), open_low=False)
        if self.share is not None:
            check_real("guarantee share", self.share, 0.0, 1.0)

    @classmethod
    def of(cls, *, rho: float, delta: float, epsilon: float, status: str, source: str) -> Guarantee:
        """Return a guarantee whose two statements have one support."""
        return cls(quality=Promise(status, delta, source), same=Promise(status, rho, source), epsilon=epsilon)

    def but(
        self,
        *,
        rho: float | None = None,
        delta: float | None = None,
        epsilon: float | None = None,
        source: str | None = None,
    ) -> Guarantee:
        """Return the guarantee with other figures, of the same support."""
        quality, same = self.quality, self.same
        return Guarantee(
            quality=Promise(quality.status, self.delta if delta is None else delta, source or quality.source),
            same=Promise(same.status, self.rho if rho is None else rho, source or same.source),
            epsilon=self.epsilon if epsilon is None else epsilon,
            share=self.share,
            assumed=self.assumed,
        )

    def without(self, why: str) -> Guarantee:
        """Return the same figures with nothing promised, and why."""
        return Guarantee.of(rho=self.rho, delta=self.delta, epsilon=self.epsilon, status="none", source=why)

    @property
    def rho(self) -> float:
        """Largest probability that two runs with one shared key and independent data give different outputs."""
        return self.same.risk

    @property
    def delta(self) -> float:
        """Largest probability that the accuracy is missed."""
        return self.quality.risk

    @property
    def status(self) -> str:
        """The weaker of the two."""
        return max(self.quality.status, self.same.status, key=STATUSES.index)

    @property
    def source(self) -> str:
        """Of the weaker of the two."""
        return (self.same if self.status == self.same.status else self.quality).source

    @property
    def decided(self) -> bool:
        """Whether both are better than none."""
        return self.status != "none"

    def __str__(self) -> str:
        """Two lines for people."""
        return "\n".join(self.words())

    def words(self, scale: float = 1.0) -> tuple[str, str]:
        """Return what is promised, a line for each; scale is what rescaled rewards are times in their units."""
        if self.quality.status == "none":
            good = f"quality: nothing is promised: {self.quality.source}"
        else:
            what = f"loses at most {scale * self.epsilon:.3g}"
            if self.share is not None:
                what = f"earns at least {100 * self.share:.4g} % of the gain over the baseline"
            chance = f"with probability ≥ {1 - self.delta:.3g}"
            good = f"quality: {what}, {chance} [{self.quality.status}: {self.quality.source}]"
        if self.same.status == "none":
            same = f"same policy: nothing is promised: {self.same.source}"
        else:
            chance = f"with probability ≥ {1 - self.rho:.3g}"
            same = f"same policy: a second team prints it {chance} [{self.same.status}: {self.same.source}]"
        assumed = f"; assumed: {self.assumed}" if self.assumed else ""
        return good, same + assumed


class Asked(NamedTuple):
    """What a run is asked for: the policy is within ε of the best but with probability δ, two runs differ with ρ."""

    epsilon: float
    """0 where a quality is asked for and no data have said yet what it comes to."""
    rho: float
    delta: float
    quality: float | None = None
    """The share of the gain that the policy earns at least; None where ε is absolute."""

    @property
    def failure(self) -> float:
        """δ of an induction: at most ρ, since a failure may also make two runs differ."""
        return min(self.delta, self.rho)

    def promise(self, status: str, source: str) -> Guarantee:
        """Return the asked figures with a status for both statements."""
        return Guarantee.of(rho=self.rho, delta=self.delta, epsilon=self.epsilon, status=status, source=source)

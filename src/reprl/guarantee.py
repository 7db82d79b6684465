"""Guarantee: what is promised, and how well founded the promise is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from reprl.errors import check_choice, check_real

STATUSES = ("proven", "certified", "rehearsed", "heuristic", "none")
"""From the best founded to what nothing supports."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A promise about one algorithm, as a value that travels with its result.

    ``proven``: a written argument in docs/proofs holds with the constants that ran. ``certified``: proven from the
    run's own data. ``rehearsed``: simulated second teams came to the same policy (docs/rehearsal.md). ``heuristic``:
    scaled constants. ``none``: nothing supports the figures, which are then not shown. No figure without its status.
    """

    rho: float
    """Probability that two runs with one shared key and independent data give different outputs, at most."""
    delta: float
    """Probability that the accuracy below is missed, at most."""
    epsilon: float
    """Accuracy, in the units of the algorithm's own statement."""
    status: str
    """One of STATUSES."""
    source: str
    """Where the argument or the calibration is written down."""
    quality: float | None = None
    """Where a share of the gain was asked for, that share; ε is then what it comes to in this run's own data."""

    def __post_init__(self) -> None:
        """Refuse figures that promise nothing."""
        check_real("guarantee rho", self.rho, 0.0, float("inf"), open_low=False)
        check_real("guarantee delta", self.delta, 0.0, float("inf"), open_low=False)
        check_real("guarantee epsilon", self.epsilon, 0.0, float("inf"), open_low=False)
        if self.quality is not None:
            check_real("guarantee quality", self.quality, 0.0, 1.0)
        check_choice("guarantee status", self.status, STATUSES)

    def __str__(self) -> str:
        """One line for people, status included."""
        if self.status == "none":
            return f"nothing is promised: {self.source}"
        good = f"suboptimality ≤ {self.epsilon:.3g}"
        if self.quality is not None:
            good = f"at least {self.quality:.3g} of what the best policy earns more than the baseline"
        return (
            f"disagreement ≤ {self.rho:.3g}, {good} with probability ≥ {1 - self.delta:.3g} "
            f"[{self.status}: {self.source}]"
        )


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

    @property
    def certified_delta(self) -> float:
        """δ of a certificate that keeps both promises: accuracy with δ, and agreement of two with ρ = 2δ."""
        return min(self.delta, self.rho / 2.0)

    def promise(self, status: str, source: str) -> Guarantee:
        """Return the asked figures with a status."""
        return Guarantee(
            rho=self.rho,
            delta=self.delta,
            epsilon=self.epsilon,
            status=status,
            source=source,
            quality=self.quality,
        )

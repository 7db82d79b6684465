"""Guarantee: what is promised, and what supports the promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from reprl.errors import check_choice, check_real

PROMISES = {
    "strict": "with probability at least 1 − ρ, two runs that share only the shared seed learn exactly the same policy",
    "registered": "with probability at least 1 − ρ, two runs that follow the published candidate, on data that were "
    "not used to choose it, learn exactly the same policy; under a strict promise each run makes its own choice",
    "approximate": "with probability at least 1 − ρ, two runs that share only the shared seed take the same action at "
    "the stated share of an episode's steps; a strict promise asks for exactly the same policy",
}
"""Kinds of promises, and what ρ refers to under each."""
STATUSES = ("proven", "certified", "rehearsed", "heuristic", "none")
"""From the strongest support to none."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What a result promises, with a status that says what supports it.

    ``proven``: a proof in docs/proofs holds for the constants in use. ``certified``: proven from the run's own data.
    ``rehearsed``: simulated second teams learned the same policy (docs/rehearsal.md). ``heuristic``: no proof covers
    the constants. ``none``: nothing is promised, and no numbers are shown.
    """

    rho: float
    """Largest probability that two runs with one shared key and independent data give different outputs."""
    delta: float
    """Largest probability that the accuracy below is missed."""
    epsilon: float
    """Accuracy, in the units of the algorithm's own statement."""
    status: str
    """One of STATUSES."""
    source: str
    """Where the proof or the simulation is described, or why nothing is promised."""
    quality: float | None = None
    """The share of the gain that was asked for, if any; ε is then estimated from this run's own data."""
    agreement: float = 1.0
    """Share of the steps of an episode, weighted by how often they are reached, at which two runs take the same action;
    1 for exactly the same policy."""
    registered: bool = False
    """Whether ρ is about runs that follow a published candidate."""

    def __post_init__(self) -> None:
        """Refuse figures that promise nothing."""
        check_real("guarantee rho", self.rho, 0.0, float("inf"), open_low=False)
        check_real("guarantee delta", self.delta, 0.0, float("inf"), open_low=False)
        check_real("guarantee epsilon", self.epsilon, 0.0, float("inf"), open_low=False)
        if self.quality is not None:
            check_real("guarantee quality", self.quality, 0.0, 1.0)
        check_agreement("guarantee agreement", self.agreement)
        check_choice("guarantee status", self.status, STATUSES)

    @property
    def kind(self) -> str:
        """Which of PROMISES it is."""
        return "approximate" if self.agreement < 1.0 else "registered" if self.registered else "strict"

    def __str__(self) -> str:
        """One line for people, status included."""
        return self.words()

    def words(self, scale: float = 1.0) -> str:
        """The same; scale is what rescaled rewards are times in their own units."""
        if self.status == "none":
            return f"nothing is promised: {self.source}"
        good = f"suboptimality ≤ {scale * self.epsilon:.3g}"
        if self.quality is not None:
            good = f"at least {self.quality:.3g} of the best policy's gain over the baseline"
        same = f"disagreement ≤ {self.rho:.3g}"
        if self.agreement < 1.0:
            same = f"same action at ≥ {100 * self.agreement:.3g} % of the steps with probability ≥ {1 - self.rho:.3g}"
        return f"{same}, {good} with probability ≥ {1 - self.delta:.3g} [{self.status}: {self.source}]"


def shared_out(promised: Guarantee, delta: float, tries: int) -> Guarantee:
    """Return what is left of a certified promise whose data were asked for a proof under several recipes.

    Args:
        promised: status "certified", for one recipe.
        delta: of one certificate.
        tries: k, the recipes. By a union bound k·δ holds for all of them, and no less is proven.
    """
    words = f"{promised.source}; {tries} recipes were tried on these data, which cost {tries}·δ"
    if 2.0 * tries * delta >= 1.0:
        return replace(promised, status="none", source=words, quality=None)
    return replace(promised, rho=2.0 * tries * delta, delta=tries * delta, source=words)


class Asked(NamedTuple):
    """What a run is asked for: the policy is within ε of the best but with probability δ, two runs differ with ρ."""

    epsilon: float
    """0 where a quality is asked for and no data have said yet what it comes to."""
    rho: float
    delta: float
    quality: float | None = None
    """The share of the gain that the policy earns at least; None where ε is absolute."""
    agreement: float = 1.0
    """The share of the steps at which two policies must take the same action."""

    @property
    def failure(self) -> float:
        """δ of an induction: at most ρ, since a failure may also make two runs differ."""
        return min(self.delta, self.rho)

    @property
    def certified_delta(self) -> float:
        """δ of a certificate that keeps both promises: accuracy with δ, and agreement of two with ρ = 2δ."""
        return min(self.delta, self.rho / 2.0)

    def promise(self, status: str, source: str, *, registered: bool = False) -> Guarantee:
        """Return the asked figures with a status; registered says whether a published candidate was followed."""
        return Guarantee(
            rho=self.rho,
            delta=self.delta,
            epsilon=self.epsilon,
            status=status,
            source=source,
            quality=self.quality,
            agreement=self.agreement,
            registered=registered,
        )


def meets(share: float, agreement: float) -> bool:
    """Return whether a computed share of like decisions is the agreed one or more, up to rounding."""
    return share >= agreement - 1e-9


def check_agreement(name: str, agreement: object) -> float:
    """Return the share of steps if it is one, in (0, 1]."""
    return check_real(name, agreement, 0.0, 1.0, open_high=False)

"""Confirmation: does a published policy earn more than it is said to? The answer, its certificate and its receipt."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self

from reprl.errors import DocumentError
from reprl.execution.terminal import Shown, visible
from reprl.search.betting import Levels, MeanTest
from reprl.storage import fields as f
from reprl.storage.fields import Document, Kind, Sealed, with_fields

FORMAT = "reprl-confirmation"
VERDICTS = ("confirmed", "refuted", "undecided")
STATUSES = ("certified", "rehearsed", "none")
_SUMMED = 1e-6
"""Two sums of one set of log factors, in different orders, differ by less."""


def _number(low: Any = -math.inf, high: Any = math.inf) -> Kind:
    return f.real(low, high)


@dataclass(frozen=True, kw_only=True)
class Confirmation(Sealed, Shown):
    """The answer to a claim about a policy's return, from a team's own episodes or log.

    Guarantee:
        Status "certified": if the policy earns at most `target`, "confirmed" is said with probability at most `delta`;
        if it earns at least that, so is "refuted". This needs returns in `return_range` and a policy that was fixed
        before these episodes (docs/proofs/search.md §5). "rehearsed", from a log: an approximate interval. "none":
        undecided when the samples ran out.
    """

    environment: Annotated[str, f.printable()]
    environment_digest: Annotated[str, f.SHA256]
    """Of its dynamics, or of what a black box declares; for a log, of the log."""
    policy: Annotated[str, f.printable()]
    """What kind it is, or its name."""
    fingerprint: Annotated[str | None, f.optional(f.SHA256)]
    """None for a policy that has none: code, or a model of another library."""
    horizon: Annotated[int, f.whole(1)]
    """Steps of an episode, at most."""
    return_range: Annotated[tuple[float, float], f.many(_number(), 2)]
    """Bounds of a return, in the rewards' own units."""
    target: Annotated[float, _number(lambda at: at.return_range[0], lambda at: at.return_range[1])]
    delta: Annotated[float, f.real(0.0, 0.5, open_low=True)]
    verdict: Annotated[str, f.choice(VERDICTS)]
    status: Annotated[str, f.choice(STATUSES)]
    mean: Annotated[float, _number()]
    """Of the returns of all episodes that were played; by a log, the policy's estimated value."""
    interval: Annotated[tuple[float, float], f.many(_number(), 2)]
    """Of the expected return: each end holds at all times with probability 1 − δ; from a log, approximately."""
    returns: Annotated[
        tuple[tuple[float, int], ...], f.many(f.row("a return and how often it came", _number(), f.whole(1)))
    ]
    """What the certificate rests on: every return up to the verdict and how often it came; empty for a log."""
    episodes: int
    """That decided: up to the verdict."""
    played: int
    """Episodes in all: a batch is played to its end."""
    samples: int
    """Steps in all, and random starts where the environment's ledger counts them; rows of a log."""
    unseen: Annotated[float | None, f.optional(f.real())]
    """What the policy could earn besides where the log has never done what it says; None without a log."""
    data_commitment: Annotated[str, f.SHA256]
    """Hash of what is confirmed and the data seed, or the log; never the seed itself."""
    package_version: Annotated[str, f.printable()]
    seconds: float
    """Not part of the digest."""

    @property
    def test(self) -> MeanTest:
        """The test that decided."""
        return MeanTest.checked(*self.return_range, self.target, Levels(self.delta, self.delta))

    @cached_property
    def log_wealth(self) -> tuple[float, float] | None:
        """Log of what the bets own against "at most the target" and "at least the target"; None for a log."""
        if not self.returns:
            return None
        values, counts = zip(*self.returns, strict=True)
        return self.test.log_wealth(values, counts)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what ``to_json`` wrote; a verdict that its returns do not prove is refused."""
        return super().from_json(text).check()

    def check(self) -> Self:
        """Return it if its verdict follows from its returns; for a log, from its interval."""
        if sum(count for _, count in self.returns) != (self.episodes if self.unseen is None else 0):
            raise DocumentError(f"confirmation returns must be those of {self.episodes} episodes, got others")
        if (self.unseen is None) != (self.status != "rehearsed") and self.verdict != "undecided":
            raise DocumentError(f"confirmation status must be 'rehearsed' exactly for a log, got {self.status!r}")
        if self.verdict not in self._supported():
            raise DocumentError(f"confirmation verdict must follow from its returns, got {self.verdict!r}")
        if (self.status == "none") != (self.verdict == "undecided"):
            raise DocumentError(f"confirmation status must be 'none' exactly if undecided, got {self.status!r}")
        return self

    def _supported(self) -> set[str]:
        """The verdicts that the data allow."""
        found = {"undecided"}
        above, below = self.log_wealth or (0.0, 0.0)
        needed = -math.log(self.delta) - _SUMMED
        if above >= needed if self.unseen is None else self.interval[0] > self.target:
            found.add("confirmed")
        if below >= needed if self.unseen is None else self.interval[1] < self.target:
            found.add("refuted")
        return found

    def __repr__(self) -> str:
        claim = f"{visible(self.policy)} earns more than {self.target:g} on {visible(self.environment)}"
        return (
            f"Confirmation({claim}: {self.verdict} [{self.status}], mean {self.mean:.6g} of {self.played:,} episodes)"
        )


_TABLE = with_fields(Confirmation, package_version={"digest": f.SHA256})
Confirmation._document = Document("confirmation", FORMAT, 1, Confirmation, _TABLE)

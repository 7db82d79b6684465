"""Progress after each round: what simulated teams say, and estimated values."""

from __future__ import annotations

from typing import Any, NamedTuple

from reprl.assurance.verdict import Verdict
from reprl.execution.progress import Report
from reprl.execution.settings import Progress
from reprl.learning.loop import Round
from reprl.learning.worth import Worth
from reprl.mdp.criterion import criterion_of
from reprl.mdp.labels import Labels, RewardMap


class RoundFigures(NamedTuple):
    """What is known after a round. Values are in the environment's own reward units."""

    round: int
    """From 1."""
    samples: int
    """Of all rounds so far."""
    agree: int
    """Simulated second teams that print this policy."""
    content: int
    """Those that do not say that it loses more than is allowed."""
    of: int
    """Those that were asked; 0 where the policy is not good enough by the run's own data."""
    value: float
    best_value: float
    baseline_value: float
    good: bool
    """Whether the quality is known."""
    same: bool
    """Whether a second team would print the policy; the run then stops."""

    def __str__(self) -> str:
        """One line for people."""
        parts = [f"round {self.round}: {self.samples:,} samples"]
        if self.of:
            known = "known" if self.good else "not known"
            parts.append(f"quality {known}, {self.agree} of {self.of} simulated teams print this policy")
        else:
            parts.append("quality not known")
        parts.append(Worth(self.value, self.best_value, self.baseline_value, "").brief)
        return "; ".join(parts)


class RoundTeller:
    """Tells somebody how far a run is, and about each round.

    Args:
        tell: who is told; after a round, a phase that is a ``Report``.
        model: where samples come from.
    """

    def __init__(self, tell: Progress, model: Any) -> None:
        labels = getattr(getattr(model, "mdp", model), "labels", Labels())
        self._units: RewardMap = getattr(model, "reward_map", labels.reward_map)
        self._steps, self._ledger = criterion_of(model).effective_horizon, model.ledger
        self.progress = tell

    def end(self, now: Round, verdict: Verdict) -> None:
        """Tell of a round that is over."""
        figures = RoundFigures(
            round=now.number + 1,
            samples=self._ledger.samples,
            agree=verdict.agree,
            content=verdict.content,
            of=verdict.teams,
            value=self._original(now.choice.value),
            best_value=self._original(now.choice.best),
            baseline_value=self._original(now.choice.baseline),
            good=verdict.good,
            same=verdict.same,
        )
        self.progress(Report(str(figures), figures), now.samples.size, now.samples.size)

    def _original(self, value: float) -> float:
        return self._units.low * self._steps + value * (self._units.high - self._units.low)

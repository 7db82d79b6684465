"""Progress after each round: agreement of simulated teams, estimated values, and a forecast."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

from reprl.assurance.stopping import Judgement, Rehearsed, Round, StopRule
from reprl.execution.progress import Report
from reprl.execution.settings import Progress
from reprl.learning.expected import count_words, stored_range, time_words
from reprl.learning.settings import Settings
from reprl.learning.worth import Worth
from reprl.mdp.criterion import criterion_of
from reprl.mdp.labels import Labels, RewardMap


class RoundFigures(NamedTuple):
    """What is known after a round. Values are in the environment's own reward units."""

    round: int
    samples: int
    """Of all rounds so far."""
    agree: int | None
    """Simulated second teams that learn this policy; None without a rehearsal."""
    of: int | None
    """Those that were asked."""
    pairs_agree: int | None
    """Pairs of teams, under a fresh shared seed each, that come to one policy; they are asked where teams differ."""
    pairs: int | None
    expected_agreement: float | None
    """Expected share of an episode's steps at which a second team takes the same action."""
    value: float
    best_value: float
    baseline_value: float
    sure: bool
    """Whether the run is decided and stops here."""
    forecast: tuple[float, float, float] | None
    """Samples of the whole run, low, typical, high, by stored runs that needed more than these; None if it ends here,
    or nothing is stored."""
    seconds_left: tuple[float, float] | None
    """How long that may still take, low and high, at the pace of the last rounds."""

    def __str__(self) -> str:
        """One line for people."""
        parts = [f"round {self.round}: {self.samples:,} samples"]
        if self.of is not None:
            fresh = f", {self.pairs_agree} of {self.pairs} pairs under fresh seeds" if self.pairs else ""
            parts.append(f"{self.agree} of {self.of} simulated teams agree{fresh}")
        if self.expected_agreement is not None:
            parts.append(f"{100.0 * self.expected_agreement:.3g} % of decisions alike")
        parts.append(Worth(self.value, self.best_value, self.baseline_value, "").brief)
        if self.sure:
            parts.append("sure")
        if self.forecast is not None and self.seconds_left is not None:
            low, _, high = map(count_words, self.forecast)
            early, late = map(time_words, self.seconds_left)
            spent = f"all {low} samples" if low == high else f"{low} to {high} samples in all"
            parts.append(f"{spent} expected, {late if early == late else f'{early} to {late}'} more")
        return "; ".join(parts)


class RoundTeller:
    """Tells somebody how far a run is, and about each round.

    Args:
        tell: who is told; after a round, a phase that is a ``Report``.
        model: where samples come from.
        settings: what is asked for.
        stop: when the run stops.
        limit: samples that may be drawn; None for any number.
    """

    def __init__(self, tell: Progress, model: Any, settings: Settings, stop: StopRule, limit: int | None) -> None:
        """Start the clock."""
        self._tell, self._settings, self._limit = tell, settings, math.inf if limit is None else float(limit)
        self._rehearsed = isinstance(stop, Rehearsed)
        labels = getattr(getattr(model, "mdp", model), "labels", Labels())
        self._units: RewardMap = getattr(model, "reward_map", labels.reward_map)
        self._steps = criterion_of(model).effective_horizon
        self._begun, self._played, self._drawn = time.perf_counter(), 0.0, 0
        """When the round began, the seconds of it in which samples were drawn, and the samples before it."""

    def progress(self, phase: str, done: int, total: int) -> None:
        """Pass on how far the episodes of a round are."""
        now = time.perf_counter()
        self._begun, self._played = (now, 0.0) if done == 0 else (self._begun, now - self._begun)
        self._tell(phase, done, total)

    def end(self, now: Round, judgement: Judgement) -> None:
        """Tell of a round that is over."""
        samples, rehearsal, choice = now.source.ledger.samples, judgement.rehearsal, judgement.found.choice
        goes_on = self._rehearsed and not judgement.enough and not now.last
        forecast = self._forecast(now, samples) if goes_on else None
        left = None if forecast is None else (self._left(samples, forecast[0]), self._left(samples, forecast[2]))
        figures = RoundFigures(
            round=now.known.round,
            samples=samples,
            agree=None if rehearsal is None else rehearsal.agree,
            of=None if rehearsal is None else rehearsal.of,
            pairs_agree=None if rehearsal is None else rehearsal.pairs_agree,
            pairs=None if rehearsal is None else rehearsal.pairs,
            expected_agreement=None if rehearsal is None else rehearsal.alike,
            value=self._original(choice.value),
            best_value=self._original(choice.best),
            baseline_value=self._original(choice.baseline),
            sure=judgement.enough and not judgement.drift,
            forecast=forecast,
            seconds_left=left,
        )
        self._tell(Report(str(figures), figures), now.known.size, now.known.size)
        self._begun, self._played, self._drawn = time.perf_counter(), 0.0, samples

    def _original(self, value: float) -> float:
        return self._units.low * self._steps + value * (self._units.high - self._units.low)

    def _forecast(self, now: Round, samples: int) -> tuple[float, float, float]:
        table = now.data.counts.outcomes
        cells = (1 if table.pooled else table.horizon) * table.n_states * table.n_actions
        promise = self._settings.asked.promise("none", "").kind
        low, typical, high = stored_range(self._settings, cells, samples, promise)
        return min(low, self._limit), min(typical, self._limit), min(high, self._limit)

    def _left(self, done: int, samples: float) -> float:
        """Extrapolate: a round takes an analysis, whose time does not grow with the data, and its samples."""
        analysis = time.perf_counter() - self._begun - self._played
        rounds = max(1.0, math.log2(samples / max(1, done)))
        return rounds * analysis + (samples - done) * self._played / max(1, done - self._drawn)

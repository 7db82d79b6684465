"""Scan: the first candidate, in shared order, whose mean return is above a threshold.

f(ξ, world) = min{j : μ_j > θ}. Data answer one question for each candidate, above or below; nothing else has to match
between two teams, neither sizes nor the number of interim analyses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from reprl.randomness import SharedKey
from reprl.search.families import Family
from reprl.sources.returns import Play, Returns

Floats = np.ndarray[Any, np.dtype[np.float64]]
FIRST = 2
"""Episodes after which a candidate is first judged: a poor one is often out by then."""
AHEAD = 16
"""Candidates that are given their first episodes together; this is a part of the algorithm, so that every number of
workers plays the same episodes."""
EARLY = 16
"""Episodes that a candidate may be given before all earlier ones are judged; on more of them only its turn decides."""


class State(Protocol):
    """What a test knows after some samples."""

    @property
    def verdict(self) -> str:
        """One of "above", "below" and "undecided"."""

    @property
    def samples(self) -> int:
        """Samples up to the verdict."""


class Test(Protocol):
    """Is the mean of samples above or below a threshold? ``reprl.search.betting.MeanTest`` is one."""

    def begin(self) -> Any:
        """Return the state before the first sample."""

    def bet(self, bets: Any, samples: Any) -> Any:
        """Return the state after further samples."""

    def progress(self, bets: Any) -> float:
        """Return how near a verdict is, from 0 to 1, to size the next batch by."""


Judge = Callable[[int], Test]
"""From the number of a candidate to its test."""


class Undecided(NamedTuple):
    """A candidate that samples ran out on."""

    candidate: int
    episodes: int
    mean: float


class Scanned(NamedTuple):
    """What a scan came to."""

    winner: int | None
    """The first candidate above; None if none of all is, or a candidate is undecided."""
    weights: Floats | None
    """Of the winner."""
    returns: Floats
    """Of the winner, in order; empty without one."""
    tried: int
    """Candidates that were judged."""
    undecided: Undecided | None = None


class _Arm:
    """A candidate while it is judged."""

    def __init__(self, number: int, weights: Floats, test: Test) -> None:
        self.number, self.weights, self.test, self.state = number, weights, test, test.begin()
        self.returns: list[Floats] = []
        self.played = 0

    @property
    def verdict(self) -> str:
        """What its test says."""
        return str(self.state.verdict)

    @property
    def mean(self) -> float:
        """Of all its returns."""
        return float(np.concatenate(self.returns).mean()) if self.played else math.nan

    def see(self, returns: Floats) -> None:
        """Judge further returns."""
        self.returns.append(returns)
        self.played += returns.size
        self.state = self.test.bet(self.state, returns)

    @property
    def wants(self) -> int:
        """Episodes to play next: what the evidence so far says is missing, and at most as many as there were."""
        if self.verdict != "undecided":
            return 0
        if self.played == 0:
            return FIRST
        near = self.test.progress(self.state)
        missing = math.ceil(1.05 * self.played * (1.0 / near - 1.0)) if near > 0.0 else self.played
        return min(max(missing, 1 + self.played // 8), self.played)


class Rung(NamedTuple):
    """What is scanned: candidates of a family, near a centre where there is one."""

    key: SharedKey
    number: int
    family: Family
    centre: Floats | None
    candidates: int

    def weights(self, j: int) -> Floats:
        """Return the weights of candidate j; the centre is candidate 0 of its rung.

        Randomness:
            Shared, at ("search", "proposal", rung, j).
        """
        if j == 0 and self.centre is not None:
            return self.centre
        return self.family.propose(self.key.derive("search", "proposal", self.number, j), self.centre)


def scan(rung: Rung, returns: Returns, judge: Judge, tell: Callable[[int], None] | None = None) -> Scanned:
    """Judge candidates in order until one is above.

    Args:
        rung: the candidates.
        returns: where samples come from.
        judge: the test of each candidate.
        tell: called with the number of a candidate before it is judged.

    Guarantee:
        If every verdict is right, the winner is f(ξ, world), for any data.
    """
    for first in (0, *range(1, rung.candidates, AHEAD)):  # the first, often a centre that passes, comes alone
        last = min(rung.candidates, first + AHEAD) if first else 1
        arms = [_Arm(j, rung.weights(j), judge(j)) for j in range(first, last)]
        for turn, arm in enumerate(arms):
            if tell is not None:
                tell(arm.number)
            while arm.verdict == "undecided":
                if not _play(rung, returns, arms[turn:]):
                    return Scanned(None, None, np.empty(0), arm.number, Undecided(arm.number, arm.played, arm.mean))
            if arm.verdict == "above":
                return Scanned(arm.number, arm.weights, np.concatenate(arm.returns), arm.number + 1)
    return Scanned(None, None, np.empty(0), rung.candidates)


def _play(rung: Rung, returns: Returns, arms: Sequence[_Arm]) -> bool:
    """Play the candidate whose turn it is, the first, and with it others that are still early; False if none can be."""
    wanted = [arm.wants if i == 0 else min(arm.wants, EARLY - arm.played) for i, arm in enumerate(arms)]
    afford = returns.affordable()
    plays = []
    for arm, count in zip(arms, wanted, strict=True):
        given = max(0, count if afford is None else min(count, afford))
        afford = None if afford is None else afford - given
        if given:
            plays.append((arm, given))
    if not plays or plays[0][0] is not arms[0]:
        return False
    found = returns.play([Play(arm.weights, f"search/{rung.number}/{arm.number}", arm.played, n) for arm, n in plays])
    for (arm, _), seen in zip(plays, found, strict=True):
        arm.see(seen)
    return True

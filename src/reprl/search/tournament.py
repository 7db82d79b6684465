"""Tournament: the first candidate, in shared order, whose mean return is within a tolerance of the best of all.

f(ξ, world) = min{j : μ_j ≥ max_i μ_i − τ}. No return has to be named. Every candidate has an interval for its mean, at
all times; the answer is known when all earlier candidates are clearly farther below the best than τ, and j is clearly
nearer. Which candidates are played, and how often, has no effect on the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from reprl.randomness import SharedKey
from reprl.search.families import Family
from reprl.search.ladder import Climb, Step, counted
from reprl.search.scan import Rung, Scanned, Undecided
from reprl.sources.returns import Play, Returns

Floats = np.ndarray[Any, np.dtype[np.float64]]
Interval = Callable[[Floats], tuple[float, float]]
"""From the returns of a candidate to an interval for their mean, which holds at all times for all of them."""
FIRST = 8
"""Episodes that every candidate is given."""


class _Entrant:
    """A candidate and what is known of its mean return."""

    def __init__(self, number: int, weights: Floats) -> None:
        self.number, self.weights = number, weights
        self.returns: Floats = np.empty(0)
        self.mean, self.low, self.high = math.nan, -math.inf, math.inf

    def see(self, returns: Floats, interval: Interval) -> None:
        """Take in further returns."""
        self.returns = np.concatenate((self.returns, returns))
        self.mean = float(self.returns.mean())
        low, high = interval(self.returns)
        self.low, self.high = max(self.low, low), min(self.high, high)  # all of them hold together


def compete(
    rung: Rung, returns: Returns, tolerance: float, interval: Interval, tell: Callable[[int], None] | None = None
) -> tuple[Scanned, float]:
    """Play candidates until the first that is within the tolerance of the best is known.

    Args:
        rung: the candidates.
        returns: where samples come from.
        tolerance: τ, in the units of returns.
        interval: for the mean of one candidate.
        tell: called with the number of the candidate that is judged.

    Returns:
        What was found, and the lower end of the winner's interval.

    Guarantee:
        If every interval holds, the winner is f(ξ, world), for any data (docs/proofs/search.md §7).
    """
    field = [_Entrant(j, rung.weights(j)) for j in range(rung.candidates)]
    if not _play(rung, returns, [(each, FIRST) for each in field], interval):
        return Scanned(None, None, np.empty(0), 0, Undecided(0, 0, math.nan)), -math.inf
    while True:
        best = max(field, key=lambda each: (each.low, -each.number))
        first = next((each for each in field if each.high >= best.low - tolerance), best)  # best: an interval is false
        if tell is not None:
            tell(first.number)
        top = max(field, key=lambda each: (each.high, -each.returns.size))
        if first.low > top.high - tolerance:
            return Scanned(first.number, first.weights, first.returns, rung.candidates), first.low
        asked = {first.number: first, top.number: top}
        leader = max(field, key=lambda each: (each.mean, -each.number))
        asked[leader.number] = leader
        few = 2 * min(each.returns.size for each in asked.values())
        plays = [(each, each.returns.size) for each in asked.values() if each.returns.size <= few]
        if not _play(rung, returns, plays, interval):
            cut = Undecided(first.number, first.returns.size, first.mean)
            return Scanned(None, None, np.empty(0), first.number, cut), -math.inf


def _play(rung: Rung, returns: Returns, plays: Sequence[tuple[_Entrant, int]], interval: Interval) -> bool:
    """Play candidates for so many episodes each, or as many as can be afforded; False if that is none."""
    afford = returns.affordable()
    if afford is not None and (total := sum(count for _, count in plays)) > afford:
        plays = [(each, count * afford // total) for each, count in plays if count * afford >= total]
    if not plays:
        return False
    asked = [Play(e.weights, f"search/{rung.number}/{e.number}", e.returns.size, count) for e, count in plays]
    for (each, _), seen in zip(plays, returns.play(asked), strict=True):
        each.see(seen, interval)
    return True


def improve(
    key: SharedKey,
    returns: Returns,
    family: Family,
    tolerance: float,
    interval: Callable[[int, int], Interval],
    *,
    entrants: int,
    near: int,
    rungs: int,
    tell: Callable[[int, int], None] | None = None,
) -> Climb:
    """Hold a tournament, then others near the last winner, until that winner is still within the tolerance.

    Args:
        key: ξ.
        returns: where samples come from.
        family: what is proposed.
        tolerance: of a round it is between this and twice this, by a shared draw.
        interval: from a round and the number of its candidates to intervals of their means.
        entrants: candidates of a round without a centre.
        near: of a round near one.
        rungs: rounds, at most.
        tell: called with the round and the candidate that is judged.

    Randomness:
        Shared: tolerances at ("search", "tolerance", round), proposals at ("search", "proposal", round, candidate).
    """
    steps: list[Step] = []
    centre, weights, floor = family.centre, None, -math.inf
    for number in range(rungs):
        tau = tolerance * (1.0 + float(key.derive("search", "tolerance", number).uniforms(1)[0]))
        rung = Rung(key, number, family, centre, entrants if centre is None else near)
        say = None if tell is None else partial(tell, number)
        play = partial(compete, rung, returns, tau, interval(number, rung.candidates), say)
        (found, low), samples, episodes = counted(returns, play)
        steps.append(Step(number, low, low, found, samples, episodes, tau))
        if found.undecided is not None:
            return Climb(tuple(steps), weights, floor, False, found.undecided)
        stays = centre is not None and found.winner == 0
        centre = weights = found.weights
        floor = low
        if stays:
            return Climb(tuple(steps), weights, floor, True, None)
    return Climb(tuple(steps), weights, floor, False, None)

"""Ladder: scans at rising levels, each near the winner of the last, until the aim is reached or nothing passes.

A rung tries the level `floor + step`, or the aim where that is less. If a candidate passes, the floor rises to the
rung's threshold and the step doubles; if none does, the step shrinks. Which rungs there are depends on verdicts
alone, and these are the same in both teams; so levels, centres and thresholds are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reprl.randomness import SharedKey
from reprl.search.families import Family
from reprl.search.scan import Judge, Rung, Scanned, Undecided, scan
from reprl.sources.returns import Range, Returns

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Aim(NamedTuple):
    """Where a ladder leads."""

    bounds: Range
    """Of returns."""
    level: float
    """The highest level: a run that passes it is done."""
    resolution: float
    """The smallest step."""
    width: float
    """How far thresholds lie above their levels, at most, as a share of the step; at the aim, by `room`."""
    room: float
    """Between the highest level and the largest threshold."""
    shrink: float = 0.5
    """What a rung without a winner multiplies the step by, before there is any winner; later it is halved."""
    failures: int | None = None
    """Rungs in a row without a winner after which it stops, once there is one; None for no limit."""


class Step(NamedTuple):
    """One rung: the level, its threshold, and what the scan said."""

    rung: int
    level: float
    threshold: float
    found: Scanned
    samples: int
    """Steps of the environment that the rung took."""
    episodes: int


class Climb(NamedTuple):
    """All rungs, and the weights of the last winner."""

    steps: tuple[Step, ...]
    weights: Floats | None
    floor: float
    """The highest threshold that was passed."""
    reached: bool
    """Whether the aim was passed."""
    undecided: Undecided | None


def climb(
    key: SharedKey,
    returns: Returns,
    family: Family,
    aim: Aim,
    judge: Callable[[int, float], Judge],
    *,
    candidates: int,
    near: int,
    rungs: int,
    tell: Callable[[int, int], None] | None = None,
) -> Climb:
    """Climb from the lower bound of returns.

    Args:
        key: ξ.
        returns: where samples come from.
        family: what is proposed.
        aim: where to.
        judge: from a rung and its threshold to the tests of its candidates.
        candidates: of a rung without a centre, at most.
        near: of a rung near one.
        rungs: at most.
        tell: called with the rung and the candidate that is judged.

    Randomness:
        Shared: thresholds at ("search", "threshold", rung), proposals at ("search", "proposal", rung, candidate).
    """
    steps: list[Step] = []
    ledger = returns.model.ledger
    centre, weights, floor = family.centre, None, aim.bounds.low
    step, failed = aim.level - floor, 0
    for number in range(rungs):
        level = min(aim.level, floor + step)
        width = aim.room if level == aim.level else min(aim.width * (level - floor), aim.level - level)
        threshold = level + width * float(key.derive("search", "threshold", number).uniforms(1)[0])
        rung = Rung(key, number, family, centre, candidates if centre is None else near)
        say = None if tell is None else partial(tell, number)
        samples, episodes = ledger.samples, ledger.episodes
        found = scan(rung, returns, judge(number, threshold), say)
        steps.append(Step(number, level, threshold, found, ledger.samples - samples, ledger.episodes - episodes))
        if found.undecided is not None:
            return Climb(tuple(steps), weights, floor, False, found.undecided)
        if found.winner is None:
            step = (level - floor) * (aim.shrink if weights is None else 0.5)
            failed += weights is not None
            if step < aim.resolution or failed == aim.failures:
                break
            continue
        centre, failed = found.weights, 0
        weights = centre
        if level == aim.level:
            return Climb(tuple(steps), weights, threshold, True, None)
        step, floor = 2.0 * (level - floor), threshold
    return Climb(tuple(steps), weights, floor, False, None)

"""Rounds: data come in rounds that double, until a run is sure or may draw no more. The same for both rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from reprl.errors import InputError, check_int
from reprl.mdp.dynamics import Data
from reprl.sources.protocol import Parallel, mask_of

FIRST = 32
"""Parallel calls of the first round; by episodes, episodes per state and action."""
LIMITS = {"generative": 2**44, "tables": 2**38, "black box": 2**28}
"""Samples at which a run gives up that nobody has limited: counts cost no time, episodes of a black box do."""

Progress = Callable[[str, int, int], None]
"""Told of a phase: its name, what is done of it, all of it."""


def most_of(model: Any, access: str, limit: int | None, unit: int) -> int:
    """Return how many samples a run may draw.

    Args:
        model: where they come from.
        access: how.
        limit: what the user allows; None for LIMITS.
        unit: what the least thing costs that can be done at all.
    """
    if limit is None:
        limit = LIMITS["generative" if access == "generative" else "black box" if model.arrays is None else "tables"]
        return max(limit, unit)
    return check_int("max_samples", limit, unit)


def check_limit(max_samples: int | None, needed: int) -> None:
    """Refuse a size, fixed beforehand, that would pass what the user allows."""
    if max_samples is not None and needed > check_int("max_samples", max_samples, 1):
        raise InputError(f"max_samples must be at least {needed} for these settings, got {max_samples}")


def doubling(first: int, most: int, halfway: int | None = None) -> Iterator[int]:
    """Sizes of all rounds together: each twice the last, the final one the most that is allowed.

    Args:
        first: that of the first round, even.
        most: that of the last.
        halfway: from this size on also the middle between two of them; None for no such thing.
    """
    size = first
    while size < most:
        yield size
        if halfway is not None and halfway <= size and 3 * size < 2 * most:
            yield 3 * size // 2
        size *= 2
    yield most


def call(model: Parallel, calls: int) -> Data:
    """Make parallel calls."""
    return Data(model.sample(calls), model.draw_starts(calls), mask_of(model))


def telling(progress: Progress, phase: str) -> Callable[[int, int], None]:
    """Return what tells of one phase."""
    return lambda done, total: progress(phase, done, total)

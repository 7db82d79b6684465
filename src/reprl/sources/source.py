"""DataSource: the interface between the loop and the samples of a run.

A new source implements the protocol below; the loop, the rule and the verdict need nothing else from it
(CONTRIBUTING.md, "A new source").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data
from reprl.mdp.evidence import Evidence, lay_out
from reprl.sources.protocol import Ledger

FIRST = 32
"""Parallel calls of the first round; by episodes, episodes per state and action."""
LIMITS = {"generative": 2**44, "tables": 2**38, "black box": 2**28}
"""Largest numbers of samples without max_samples: counts cost no time, episodes of a black box do."""

Soft = Callable[[Evidence], NDArray[np.float64]]
"""The rule's soft policy, laws of actions (H, S, A), of what is known: what a source that plays should play."""


class Samples(NamedTuple):
    """What a run has seen, in two halves; which half a sample belongs to never depends on what it shows."""

    one: Data
    two: Data
    criterion: Criterion
    """Of the environment."""
    fixed_start: bool = False
    """Whether the environment says that every episode begins in one state."""
    exact: tuple[int, ...] = ()
    """States whose law is known."""
    round: int = 0
    steps: tuple[Counts, Counts] | None = None
    """The same samples by step, where they are pooled because somebody says that the steps are alike."""
    spent: int = 0
    """Number of samples used, if the source counts them."""

    @property
    def data(self) -> Data:
        """Both halves."""
        return self.one + self.two

    @property
    def size(self) -> int:
        """Parallel calls or episodes."""
        return int(self.one.starts.sum() + self.two.starts.sum())

    def evidence(self) -> Evidence:
        """Return the samples as the rule reads them."""
        halves = self.one.under(self.criterion), self.two.under(self.criterion)
        return lay_out(*halves, exact=self.exact, fixed_start=self.fixed_start, gamma=self.criterion.discount or 0.0)

    def by_step(self) -> Evidence:
        """Return the samples by step, where pooling is contradicted."""
        assert self.steps is not None
        one, two = (
            Data(counts, half.starts, half.allowed)
            for counts, half in zip(self.steps, (self.one, self.two), strict=True)
        )
        return lay_out(one, two, exact=self.exact, fixed_start=self.fixed_start)


class DataSource(Protocol):
    """Where samples come from: parallel calls, episodes."""

    @property
    def ledger(self) -> Ledger:
        """What the samples have cost."""

    @property
    def data_seed(self) -> int:
        """Of the private streams."""

    def sizes(self, limit: int | None) -> Sequence[int]:
        """Return the number of units after each round; the limit is in samples, None for the source's."""

    def empty(self) -> Samples:
        """Return what is known before the first sample."""

    def gather(self, known: Samples, size: int, soft: Soft) -> Samples:
        """Bring the samples to a size."""

    def exhausted(self, known: Samples) -> bool:
        """Whether nothing more can be gathered, before the last size is reached."""

    def drift(self, known: Samples) -> str:
        """Say what contradicts that steps are alike, where they are pooled; empty if nothing does."""


def most_samples(limit: int | None, usual: int, unit: int) -> int:
    """Return how many samples a run may draw.

    usual is one of LIMITS, unit what the smallest useful piece costs.
    """
    return max(usual, unit) if limit is None else check_int("max_samples", limit, unit)


def check_limit(max_samples: int | None, needed: int) -> None:
    """Refuse a size, fixed beforehand, that would pass what the user allows."""
    if max_samples is not None and needed > check_int("max_samples", max_samples, 1):
        raise InputError(f"max_samples must be at least {needed} for these settings, got {max_samples}")


def doubling(first: int, most: int) -> Iterator[int]:
    """Sizes of all rounds together: each twice the last, the final one the most that is allowed."""
    size = first
    while size < most:
        yield size
        size *= 2
    yield most

"""DataSource: the interface between the loop and the samples of a run.

A new source implements the protocol below; the loop, the rules and the stop rules need nothing else from it
(CONTRIBUTING.md, "A new source").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data, redraw_data
from reprl.sources.protocol import Ledger

FIRST = 32
"""Parallel calls of the first round; by episodes, episodes per state and action."""
LIMITS = {"generative": 2**44, "tables": 2**38, "black box": 2**28}
"""Largest numbers of samples without max_samples: counts cost no time, episodes of a black box do."""
RAN_OUT = "the samples ran out before the run was decided"


class Wish(NamedTuple):
    """Where more samples would help."""

    weight: NDArray[np.float64]
    """(H, S, A): how much a sample of each cell would help."""
    bearable: float
    """Accepted optimistic value of under-sampled cells; while it is larger, every other batch goes there."""


Wanted = Callable[[], Wish]
"""Computes a wish; a source that cannot choose cells does not call it."""


class CertificateSource(NamedTuple):
    """Data for a certificate, with the properties that it depends on."""

    data: Data
    kind: str
    """One of ``reprl.assurance.certificate.SOURCES``."""
    round: int
    fixed_start: bool
    """Whether the environment says that every episode begins in one state."""


class Samples(Protocol):
    """The samples of a run so far; immutable."""

    @property
    def name(self) -> str:
        """Of the round, for the streams of its rehearsal."""

    def estimate(self) -> Data:
        """Return what a rule reads."""

    def redraw(self, share: int, key: int, /) -> Data:
        """Return the data of a second team, one unit for every `share` of these, drawn by a private key."""

    def certificate_source(self) -> CertificateSource | None:
        """Return the data that a certificate may be made from; None if no certificate covers them."""


class TableSamples(NamedTuple):
    """Samples that were drawn on demand, as counts."""

    data: Data
    """Of all rounds, their steps pooled or not."""
    criterion: Criterion
    """Of the environment."""
    kind: str
    """As in CertificateSource."""
    fixed_start: bool
    round: int = 0
    planned: Data | None = None
    """Of the last round alone, where its policies were all fixed before it began."""
    steps: Counts | None = None
    """The same samples by step, if they are pooled because the user says so."""
    spent: int = 0
    """Number of samples used, if the source counts them."""

    @property
    def name(self) -> str:
        """The number of the round."""
        return str(self.round)

    @property
    def size(self) -> int:
        """Parallel calls or episodes."""
        return int(self.data.starts.sum())

    def apart(self) -> TableSamples:
        """Return the same samples by step, for a run whose samples contradict pooling."""
        assert self.steps is not None
        return self._replace(data=Data(self.steps, self.data.starts, self.data.allowed), steps=None)

    def estimate(self) -> Data:
        """Return the data as the environment's criterion reads them."""
        return self.data.under(self.criterion)

    def redraw(self, share: int, key: int) -> Data:
        """Draw every cell of a second team from this run's frequencies."""
        return redraw_data(self.estimate(), share, key)

    def certificate_source(self) -> CertificateSource | None:
        """Return all data, or those of the last round if it was planned; none covers a discount."""
        if self.criterion.stationary:
            return None
        data = self.data if self.planned is None else self.planned
        return CertificateSource(data, self.kind, self.round, self.fixed_start)


S = TypeVar("S", bound=Samples)


class DataSource(Protocol[S]):
    """Where samples come from: parallel calls, episodes, a log."""

    @property
    def ledger(self) -> Ledger:
        """What the samples have cost."""

    @property
    def data_seed(self) -> int:
        """Of the private streams."""

    fixed_start: bool
    """Whether the environment says that every episode begins in one state."""
    ran_out: str
    """Why a run that needs more samples promises nothing."""
    claim: str
    """The option that pooled the steps, if they are pooled."""

    def sizes(self, limit: int | None) -> Sequence[int]:
        """Return the number of units after each round; the limit is in samples, None for the source's."""

    def empty(self) -> S:
        """Return what is known before the first sample."""

    def gather(self, known: S, size: int, wanted: Wanted | None) -> S:
        """Bring the samples to a size."""

    def exhausted(self, known: S) -> bool:
        """Whether nothing more can be gathered, before the last size is reached."""

    def drift(self, known: S) -> str:
        """Say what contradicts that steps are alike, where they are pooled; empty if nothing does."""

    def shortage(self, known: S) -> str:
        """Say why there are too few units for a rehearsal to mean anything; empty if there are enough."""

    def hint(self, known: S) -> str:
        """Say what a run that ran out could do otherwise; empty if nothing."""


def most_samples(limit: int | None, usual: int, unit: int) -> int:
    """Return how many samples a run may draw.

    usual is one of LIMITS, unit what the smallest useful piece costs.
    """
    return max(usual, unit) if limit is None else check_int("max_samples", limit, unit)


def check_limit(max_samples: int | None, needed: int) -> None:
    """Refuse a size, fixed beforehand, that would pass what the user allows."""
    if max_samples is not None and needed > check_int("max_samples", max_samples, 1):
        raise InputError(f"max_samples must be at least {needed} for these settings, got {max_samples}")


def doubling(first: int, most: int, halfway: int | None = None) -> Iterator[int]:
    """Sizes of all rounds together: each twice the last, the final one the most that is allowed.

    From `halfway` on there is also the middle between two of them; None for no such thing.
    """
    size = first
    while size < most:
        yield size
        if halfway is not None and halfway <= size and 3 * size < 2 * most:
            yield 3 * size // 2
        size *= 2
    yield most

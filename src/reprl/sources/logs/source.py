"""A log as a DataSource: nothing can be sampled, so it is read once, and second teams are drawn from its episodes."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from reprl.errors import InputError
from reprl.mdp.dynamics import Data
from reprl.sources.logs.check import LEAST, inspect_log
from reprl.sources.logs.ends import resolve_ends
from reprl.sources.logs.read import Log, read_log
from reprl.sources.logs.scan import scan_of
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import Table
from reprl.sources.protocol import Ledger
from reprl.sources.source import CertificateSource, Wanted


class LogSamples(NamedTuple):
    """All of a log, or nothing of it yet."""

    log: Log
    name: str = "log"

    def estimate(self) -> Data:
        """Return the counts of all episodes."""
        return self.log.data

    def redraw(self, share: int, key: int) -> Data:
        """Draw whole episodes, with replacement."""
        return self.log.blocks.redraw(share, key)

    def certificate_source(self) -> CertificateSource:
        """Return the counts of all episodes; that an ended one stays so is known (docs/proofs/certificate.md §9)."""
        return CertificateSource(self.log.data, "log", 1, False)


class LogSource:
    """A log of episodes as a DataSource; a unit is an episode.

    Args:
        table: its rows.
        spec: what it is a log of.
        pooled: whether a row tells about every step.
    """

    fixed_start = False
    ran_out = "the log is too short for a decision"

    def __init__(self, table: Table, spec: LogSpec, *, pooled: bool) -> None:
        self._log, self._spec = read_log(table, spec, pooled=pooled), spec
        self.check = inspect_log(table, spec, pooled=pooled, log=self._log)
        lengths = scan_of(table, (*spec.states, *spec.actions)).lengths
        self._sampled = resolve_ends(table, spec, lengths, pooled=pooled).sampled
        self.ledger = Ledger(samples=self._log.rows, episodes=self._log.episodes)
        self.data_seed = seed_of(self._log.data)
        self.claim = spec.criterion.either("stationary=True", "a discount")

    def check_proof(self) -> None:
        """Refuse a log whose rows are no fair sample, a premise of certificates (docs/proofs/certificate.md §9)."""
        why = str(self.check.worst) if self.check.biased else ""
        if self._sampled:
            why = "which rows count was read off its longest episode, as there is no column next_state"
        if why:
            raise InputError(f"certify must be False unless every row is a fair draw, got a log that is not: {why}")

    def check_practice(self) -> None:
        """Refuse a log that does not show what practice earns: episodes were cut off, or their last rows left out."""
        lost = (
            self._log.cut if not self._log.beyond or not self._log.data.counts.outcomes.pooled else self._log.episodes
        )
        if lost:
            raise InputError(
                f"certify must come with epsilon or a baseline for a log in which {lost} episodes do not show their "
                "whole return, as a quality is measured from what practice earns, got neither"
            )

    def sizes(self, limit: int | None) -> list[int]:
        """Return the one size that there is."""
        return [self._log.episodes]

    def empty(self) -> LogSamples:
        """Return the log, which was read before the run began."""
        return LogSamples(self._log)

    def gather(self, known: LogSamples, size: int, wanted: Wanted | None) -> LogSamples:
        """Return the log: nothing can be added to it."""
        return known

    def exhausted(self, known: LogSamples) -> bool:
        """Never before the last size."""
        return False

    def drift(self, known: LogSamples) -> str:
        """Say what contradicts that the log's steps are alike, where they were pooled, if anything does."""
        return "" if self._log.steps is None else self._log.steps.judge().drift(self._spec.environment({}).labels)

    def shortage(self, known: LogSamples) -> str:
        """Say that there are too few episodes to redraw."""
        number = self._log.blocks.number
        few = f"it can be redrawn from {number} episodes, where {LEAST} are the fewest that show how logs differ"
        return "" if number >= LEAST else few

    def hint(self, known: LogSamples) -> str:
        """Nothing: a log is as long as it is."""
        return ""


def seed_of(data: Data) -> int:
    """Return the data seed of a log: a hash of its counts, the same for the same episodes in any order of the file."""
    parts = (b"reprl-log 1\n", data.counts.digest.encode(), data.starts.astype("<i8").tobytes())
    return int.from_bytes(hashlib.sha256(b"".join(parts)).digest()[:8], "little")

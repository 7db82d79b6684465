"""A log as a source: nothing can be sampled, so it is read once, and second teams are drawn from its episodes."""

from __future__ import annotations

import hashlib

from reprl.mdp.dynamics import Data
from reprl.sources.logs.check import LEAST, inspect_log
from reprl.sources.logs.read import read_log
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import Table
from reprl.sources.protocol import Ledger


class LogSource:
    """A log of episodes; a unit is an episode.

    Args:
        table: its rows.
        spec: what it is a log of.
        pooled: whether a row tells about every step.
    """

    def __init__(self, table: Table, spec: LogSpec, *, pooled: bool) -> None:
        self.log, self._spec = read_log(table, spec, pooled=pooled), spec
        self.check = inspect_log(table, spec, pooled=pooled, log=self.log)
        self.ledger = Ledger(samples=self.log.rows, episodes=self.log.episodes)
        self.data_seed = seed_of(self.log.data)

    def drift(self) -> str:
        """Say what contradicts that the log's steps are alike, where they were pooled, if anything does."""
        return "" if self.log.steps is None else self.log.steps.judge().drift(self._spec.environment({}).labels)

    def shortage(self) -> str:
        """Say that there are too few episodes to redraw."""
        number = self.log.blocks.number
        few = f"it can be redrawn from {number} episodes, where {LEAST} are the fewest that show how logs differ"
        return "" if number >= LEAST else few


def seed_of(data: Data) -> int:
    """Return the data seed of a log: a hash of its counts, the same for the same episodes in any order of the file."""
    parts = (b"reprl-log 1\n", data.counts.digest.encode(), data.starts.astype("<i8").tobytes())
    return int.from_bytes(hashlib.sha256(b"".join(parts)).digest()[:8], "little")

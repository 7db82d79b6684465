"""Values of Algorithm 4 (QExplore): how an exploration run behaves, what a batch is told, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import check_int, check_real
from reprl.mdp.counts import Counts
from reprl.paper.q_agent import Schedule, make_schedule
from reprl.randomness import fill_words
from reprl.storage.checkpoints import Checkpoint, Content, Kept
from reprl.storage.fields import many, read_fields, whole, wholes


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How one exploration run behaves."""

    episodes: int
    """K."""
    bonus: float = 2.0
    """c of the bonus; 2 is what Azuma's inequality asks for."""
    guide: float = 1.0
    """Bonus of real actions relative to phantoms; 1 in theory."""
    failure: float = 0.01
    """ι, inside the logarithm of the bonus."""

    def __post_init__(self) -> None:
        """Check every field."""
        check_int("episodes", self.episodes, 1, 2**62)
        check_real("bonus", self.bonus, 0.0, float("inf"))
        check_real("guide", self.guide, 0.0, 1.0, open_low=False, open_high=False)
        check_real("failure", self.failure, 0.0, 1.0)

    def schedule(self, n_states: int, n_actions: int, horizon: int) -> Schedule:
        """Tabulate the rates and bonuses of such a run."""
        sizes = (n_states, n_actions, horizon)
        return make_schedule(*sizes, episodes=self.episodes, bonus=self.bonus, guide=self.guide, failure=self.failure)


class Orders(NamedTuple):
    """What every run of a batch does."""

    settings: RunSettings
    quotas: NDArray[np.int64]
    """Records that every action of a state needs, one or several numbers."""
    key: int
    """Philox key of the data stream; lane = run."""


class Exploration(NamedTuple):
    """What a batch of runs found."""

    runs: int
    short: NDArray[np.int64]
    """(quotas, H, S): runs in which some action of (h, s) had fewer records than the quota: s ∈ I_h."""
    missed: NDArray[np.uint8]
    """(runs, H, S): how many of the quotas each run missed there."""
    counts: Counts
    """All recorded outcomes; independent draws given their numbers."""
    first_value: NDArray[np.float64]
    """(runs,): the agent's final V₁ at the start, which bounds reachability of what is under-explored (Lemma 5.6)."""
    starts: NDArray[np.int64]
    """(S,): how many episodes began in each state."""


class Batch(NamedTuple):
    """What a batch of runs found, and what it cost."""

    found: Exploration
    episodes: int
    samples: int


def keep_batches(checkpoint: Checkpoint) -> Kept[Batch]:
    """Return where batches of runs are kept when they are done."""
    return Kept(checkpoint, "", _write_batch, _read_batch)


_TASK = {
    "runs": whole(),
    "sizes": many(whole(), 3),
    "starts": wholes(lambda at: (at.sizes[2],)),
    "episodes": whole(),
    "samples": whole(),
}


def _write_batch(batch: Batch) -> Content:
    found = batch.found
    fields = {"runs": found.runs, "sizes": list(found.short.shape), "starts": found.starts.tolist()}
    fields |= {"episodes": batch.episodes, "samples": batch.samples}
    tables = (found.short.astype("<i8"), found.first_value.astype("<f8"), found.missed)
    return Content(fields, b"".join(table.tobytes() for table in tables) + found.counts.to_bytes())


def _read_batch(content: Content) -> Batch:
    fields = read_fields("task", content.fields, _TASK, joint=" ")
    runs, sizes = fields["runs"], fields["sizes"]
    tables, rest = [], content.data
    for kind, shape in (("<i8", sizes), ("<f8", [runs]), ("u1", [runs, *sizes[1:]])):
        length = int(np.prod(shape)) * np.dtype(kind).itemsize
        table = np.frombuffer(rest[:length], dtype=kind).reshape(shape)
        tables.append(table.astype(table.dtype.newbyteorder("=")))
        rest = rest[length:]
    short, first_value, missed = tables
    found = Exploration(runs, short, missed, Counts.from_bytes(rest), first_value, fields["starts"].copy())
    return Batch(found, fields["episodes"], fields["samples"])


def join(first: Exploration, second: Exploration) -> Exploration:
    """Return two batches of runs with one set of orders as one."""
    return Exploration(
        first.runs + second.runs,
        first.short + second.short,
        np.concatenate([first.missed, second.missed]),
        first.counts + second.counts,
        np.concatenate([first.first_value, second.first_value]),
        first.starts + second.starts,
    )


def resample_missed(seen: Exploration, share: int, key: int, lane: int) -> NDArray[np.float64]:
    """Return the mean number of quotas, (H, S), that runs drawn from these with replacement missed.

    Args:
        seen: a batch of runs.
        share: one run is drawn for every `share` of them, and at least one.
        key: of a private data stream.
        lane: of it.
    """
    words = np.empty(max(1, seen.runs // share), dtype=np.uint64)
    fill_words(np.uint64(key), np.uint64(lane), np.uint64(0), words)
    drawn = ((words >> np.uint64(11)) * 2.0**-53 * seen.runs).astype(np.int64)
    times = np.bincount(drawn, minlength=seen.runs).astype(np.float64)
    total: NDArray[np.float64] = np.tensordot(times, seen.missed, axes=1)  # whole numbers: no order of sums matters
    return total / words.size

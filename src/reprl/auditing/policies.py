"""Policies: how many different ones an audit saw, where they get, and what they earn in a black box."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.auditing.evidence import Estimate, estimate, student
from reprl.mdp.environment import cells_of
from reprl.storage.fields import SHARE, whole, wholes

_EARNED = estimate(0.0, lambda at: float(at.environment.horizon))


class MonteCarlo(NamedTuple):
    """What policies earn in a black box, by episodes played for that alone; Student's intervals, by shared key."""

    episodes: Annotated[int, whole(1)]
    """For each policy; those of one key are valued on the same episodes."""
    value: Annotated[Estimate, _EARNED]
    """Mean return, in units of [0, 1] a step."""
    gap: Annotated[Estimate, _EARNED]
    """|difference| of the two policies of a designated pair; noise makes it larger, never smaller on average."""


class Policies(NamedTuple):
    """What there is to say of the policies themselves."""

    over_runs: Annotated[int, whole(1)]
    """Distinct policies over all runs: the length of the list of all answers that this learner gave."""
    over_seeds: Annotated[int, whole(1, lambda at: at.pairs)]
    """Distinct policies over shared seeds, the first run of each."""
    most_common: Annotated[float, SHARE]
    """Share of the runs that ended in the most frequent policy."""
    reached: Annotated[NDArray[np.bool_], wholes(cells_of, 0, 1, bool)]
    """(H, S): the cells that some policy reaches or, in a black box, that an episode of these policies came to."""
    apart: Annotated[int, whole(0, lambda at: at.pairs)]
    """Designated pairs that differ in a reached cell; in a black box, in one that the pair's own policies came to."""
    monte_carlo: MonteCarlo | None
    """None where values are exact, or no episodes were asked for."""


class PolicyCounts:
    """Counts policies over keys; a digest of each is all that is kept."""

    def __init__(self, shape: tuple[int, int], reachable: NDArray[np.bool_] | None) -> None:
        self.runs: Counter[bytes] = Counter()
        self.firsts: set[bytes] = set()
        self.reachable = reachable
        self.visits = np.zeros(shape, dtype=np.int64)
        self.apart = 0
        self.values: list[float] = []
        self.gaps: list[float] = []

    def add(self, actions: NDArray[np.int32], visits: NDArray[np.int64] | None, values: Sequence[float] | None) -> None:
        """Count the runs of one key."""
        digests = [hashlib.sha256(table.tobytes()).digest() for table in actions]
        self.runs.update(digests)
        self.firsts.add(digests[0])
        where = actions[0] != actions[1]
        if visits is not None:
            self.visits += visits
            where = where & (visits > 0)
        elif self.reachable is not None:
            where = where & self.reachable
        self.apart += bool(where.any())
        if visits is not None and values is not None:
            self.values.append(float(np.mean(values)))
            self.gaps.append(abs(values[0] - values[1]))

    def found(self, horizon: int, episodes: int) -> Policies:
        """What all keys showed."""
        played = None
        if self.values:
            most = float(horizon)
            played = MonteCarlo(episodes, student(self.values, 0.0, most), student(self.gaps, 0.0, most))
        reached = self.reachable
        if reached is None:
            reached = self.visits > 0 if played else np.ones(self.visits.shape, dtype=np.bool_)
        common = max(self.runs.values()) / self.runs.total()
        return Policies(len(self.runs), len(self.firsts), common, reached, self.apart, played)

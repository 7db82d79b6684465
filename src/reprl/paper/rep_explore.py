"""Algorithm 5 (RepExplore): one tier's set of states to ignore, the same in two runs, and data outside it.

A *stage* makes m runs to see which states are under-explored, how often (the fractional set μ̂), draws the set I from
the product of Bernoullis B(μ̂) by correlated sampling, and makes M more runs for data. There is one stage per tier.

The records of all m + M runs can be kept. Which states are under-explored depends on the numbers of records alone, and
given these the records are fresh draws, so the paper need not discard those of the m runs. This requires an M that was
fixed beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.correlated import draw
from reprl.errors import check_int
from reprl.paper.runs import RunSettings
from reprl.randomness import SharedKey


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of exploration: which runs, how many, and the quota."""

    run: RunSettings
    """How every run behaves."""
    partition_runs: int
    """m: runs that estimate μ̂."""
    data_runs: int
    """M: further runs, which only collect data."""
    quota: int
    """Records per action below which a state is under-explored; H in the paper."""

    def __post_init__(self) -> None:
        """Check every field."""
        check_int("partition_runs", self.partition_runs, 1, 2**31)
        check_int("data_runs", self.data_runs, 0, 2**31)
        check_int("quota", self.quota, 1, 2**62)


def draw_ignored(key: SharedKey, mu: NDArray[np.float64], coupling: str) -> NDArray[np.bool_]:
    """Draw I ~ B(μ̂): every (h, s) with probability mu[h, s], by correlated sampling over all of them."""
    inside = mu.reshape(-1)
    drawn = draw(key, np.stack([1.0 - inside, inside], axis=1), coupling).choice
    chosen: NDArray[np.bool_] = drawn.reshape(mu.shape) == 1
    return chosen

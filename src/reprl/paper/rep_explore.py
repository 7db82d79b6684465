"""Algorithm 5 (RepExplore): one tier's set of states to ignore, the same in two runs, and data outside it.

A *stage* makes m runs to see which states are under-explored, how often (the fractional set μ̂), draws the set I from
the product of Bernoullis B(μ̂) by correlated sampling, and makes M more runs for data. The paper has one stage per tier.
A stage may also settle several tiers from one set of runs.

Each tier has a *ladder* of quotas: a run's set is then the one of a quota drawn at random from the ladder, averaged
over that draw. The law of I stays the same, and its fractions vary less from one batch of runs to the next. The paper's
ladder has one rung, H.

The records of all m + M runs can be kept. Which states are under-explored depends on the numbers of records alone, and
given these the records are fresh draws, so the paper need not discard those of the m runs. This requires an M that was
fixed beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.correlated import draw
from reprl.coupling.spec import CouplingSpec
from reprl.errors import InputError, check_int, quote
from reprl.paper.runs import Exploration, RunSettings
from reprl.randomness import SharedKey


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of exploration: which runs, how many, and the quotas of the tiers that it settles."""

    run: RunSettings
    """How every run behaves."""
    partition_runs: int
    """m: runs that estimate μ̂."""
    data_runs: int
    """M: further runs, which only collect data."""
    quotas: tuple[tuple[int, ...], ...]
    """One ladder per tier settled: records per action below which a state is under-explored; (H,) in the paper."""

    def __post_init__(self) -> None:
        """Check every field."""
        check_int("partition_runs", self.partition_runs, 1, 2**31)
        check_int("data_runs", self.data_runs, 0, 2**31)
        if not self.quotas:
            raise InputError("quotas must name at least one tier, got none")
        for ladder in self.quotas:
            if not isinstance(ladder, tuple) or not ladder:
                raise InputError(f"a ladder of quotas must be a tuple of at least one rung, got {quote(ladder)}")
            for quota in ladder:
                check_int("quota", quota, 1, 2**62)

    @property
    def rungs(self) -> tuple[int, ...]:
        """All quotas, ladder after ladder."""
        return tuple(quota for ladder in self.quotas for quota in ladder)

    def fractional(self, seen: Exploration) -> list[NDArray[np.float64]]:
        """μ̂ of each tier, (H, S): the fraction of runs, and of rungs, for which a state was under-explored."""
        parts = np.split(seen.short, np.cumsum([len(ladder) for ladder in self.quotas])[:-1])
        return [part.sum(axis=0) / (len(part) * seen.runs) for part in parts]

    def episodes(self) -> int:
        """Episodes that the stage plays."""
        return (self.partition_runs + self.data_runs) * self.run.episodes


def draw_ignored(key: SharedKey, mu: NDArray[np.float64], coupling: CouplingSpec) -> NDArray[np.bool_]:
    """Draw I ~ B(μ̂): every (h, s) with probability mu[h, s], by correlated sampling over all of them."""
    inside = mu.reshape(-1)
    drawn = draw(key, np.stack([1.0 - inside, inside], axis=1), coupling).choice
    chosen: NDArray[np.bool_] = drawn.reshape(mu.shape) == 1
    return chosen

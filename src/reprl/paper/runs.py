"""Values of Algorithm 4 (QExplore): how an exploration run behaves, what a batch is told, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import check_int, check_real
from reprl.mdp.counts import Counts
from reprl.paper.q_agent import Schedule, make_schedule


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
    quota: int
    """Records that every action of a state needs."""
    key: int
    """Philox key of the data stream; lane = run."""


class Exploration(NamedTuple):
    """What a batch of runs found."""

    runs: int
    short: NDArray[np.int64]
    """(H, S): runs in which some action of (h, s) had fewer records than the quota: s ∈ I_h."""
    missed: NDArray[np.bool_]
    """(runs, H, S): which runs those were."""
    counts: Counts
    """All recorded outcomes; independent draws given their numbers."""
    first_value: NDArray[np.float64]
    """(runs,): the agent's final V₁ at the start, which bounds reachability of what is under-explored (Lemma 5.6)."""
    starts: NDArray[np.int64]
    """(S,): how many episodes began in each state."""

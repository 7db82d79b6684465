"""BaselineTask: what every baseline is given, and how many samples it may draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from reprl.errors import InputError
from reprl.learning.protocol import number_within
from reprl.mdp.counts import Counts
from reprl.randomness import SharedKey

MOST = 2**62
"""Samples that a ledger can be charged with."""

Preset = Callable[[], float]
"""A number of calls or episodes; called only where it is needed, as it may be more than a float can hold."""


class BaselineTask(NamedTuple):
    """One run of a baseline: where it samples, what is asked for, and its budget."""

    model: Any
    """Parallel or Episodic, as the baseline needs."""
    key: SharedKey
    """The shared key at the baseline's own address."""
    epsilon: float
    rho: float
    delta: float
    paper: bool
    """Whether sizes are those of the baseline's own paper, or practical ones."""
    samples: int | None
    """The budget; None for the preset's own number."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return self.model.horizon, self.model.n_states, self.model.n_actions

    @property
    def cells(self) -> int:
        """N = H·S·A."""
        return math.prod(self.shape)

    def sample(self, *, paper: Preset, practical: Preset) -> Counts:
        """Make one batch of parallel calls: as many as the budget pays for, or as the preset says."""
        unit, preset = self.model.samples_per_call, paper if self.paper else practical
        paid = (
            _counted(preset, unit) if self.samples is None else number_within(self.samples, unit, "one parallel call")
        )
        counts: Counts = self.model.sample(paid)
        return counts

    def episodes(self, *, paper: Preset, practical: Preset) -> int:
        """Return the number of episodes: as many as the budget pays for, or as the preset says."""
        unit, preset = self.model.samples_per_episode, paper if self.paper else practical
        return _counted(preset, unit) if self.samples is None else number_within(self.samples, unit, "one episode")

    def hoeffding_calls(self, error: float, failure: float) -> float:
        """Calls after which all N estimates of Q* are within `error` except with probability `failure`.

        Errors of the steps add up, and step h averages values of range H − h: H(H+1)/2·sqrt(log(2N/failure)/(2n)).
        """
        reach = self.shape[0] * (self.shape[0] + 1) / 2.0
        return math.ceil(reach**2 * math.log(2.0 * self.cells / failure) / (2.0 * error**2))


def _counted(preset: Preset, unit: int) -> int:
    """Return the preset's number of units, unless no ledger can hold their samples."""
    try:
        number = preset()
        total = number * unit
    except (OverflowError, ZeroDivisionError):
        number = total = float("inf")
    if not total <= MOST:
        raise InputError(
            f"these settings need {total:.3g} samples; at most 2**62 can be counted: relax epsilon, rho or delta, use "
            "constants='practical', or give a budget with samples"
        )
    return max(1, -int(-number // 1))

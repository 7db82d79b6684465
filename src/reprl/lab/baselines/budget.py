"""How many samples a rival may draw: a budget of its user, or its preset's own number."""

from __future__ import annotations

import math
from collections.abc import Callable

from reprl.errors import InputError, check_real
from reprl.learning.protocol import number_within
from reprl.sources.protocol import Episodic, Model, Parallel, check_model

MOST = 2**62
"""Samples that a ledger can be charged with."""


def calls_within(model: Parallel, samples: int | None, preset: Callable[[], float]) -> int:
    """Return the parallel calls of a run: as many as the budget pays for, or the preset's number."""
    each = model.samples_per_call
    return _preset(preset, each) if samples is None else number_within(samples, each, "one parallel call")


def episodes_within(model: Episodic, samples: int | None, preset: Callable[[], float]) -> int:
    """Return the episodes of a run: as many as the budget pays for, or the preset's number."""
    each = model.samples_per_episode
    return _preset(preset, each) if samples is None else number_within(samples, each, "one episode")


def _preset(preset: Callable[[], float], each: int) -> int:
    try:
        number = preset()
        total = number * each
    except (OverflowError, ZeroDivisionError):
        number = total = float("inf")
    if not total <= MOST:
        raise InputError(
            f"these settings need {total:.3g} samples; at most 2**62 can be counted: relax epsilon, rho or delta, use "
            "constants='practical', or give a budget with samples"
        )
    return max(1, -int(-number // 1))


def check_task(model: Model, access: str, name: str, epsilon: float) -> None:
    """Refuse a model of the wrong kind, and an accuracy that every policy has."""
    check_model(model, access, name)
    check_real("epsilon", epsilon, 0.0, float(model.horizon), open_high=False)


def hoeffding_calls(model: Parallel, error: float, failure: float) -> float:
    """Calls after which all N estimates of Q* are within `error` except with probability `failure`.

    Errors of the steps add up, and step h averages values of range H − h: H(H+1)/2·sqrt(log(2N/failure)/(2n)).
    """
    shape = (model.horizon, model.n_states, model.n_actions)
    reach = shape[0] * (shape[0] + 1) / 2.0
    return math.ceil(reach**2 * math.log(2.0 * math.prod(shape) / failure) / (2.0 * error**2))

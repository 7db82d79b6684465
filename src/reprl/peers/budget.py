"""How many samples a rival may draw: a budget of its user, or its preset's own number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reprl.errors import ReprlError, check_real, quote
from reprl.mdp.access import EpisodicModel, GenerativeModel

MOST = 2**62
"""Samples that a ledger can be charged with."""


def calls_within(model: GenerativeModel, samples: int | None, preset: Callable[[], float]) -> int:
    """Return the parallel calls of a run: as many as the budget pays for, or the preset's number."""
    each = model.samples_per_call
    if samples is not None:
        return _within(samples, each, "one parallel call")
    return _preset(preset, each)


def episodes_within(model: Any, samples: int | None, preset: Callable[[], float]) -> int:
    """Return the episodes of a run: as many as the budget pays for, or the preset's number."""
    each = most_samples_per_episode(model)
    if samples is not None:
        return _within(samples, each, "one episode")
    return _preset(preset, each)


def most_samples_per_episode(model: Any) -> int:
    """Return the samples of a full episode; a black box may count one for its start."""
    return model.samples_per_episode if isinstance(model, EpisodicModel) else int(model.horizon) + 1


def _within(samples: int, each: int, what: str) -> int:
    if samples < each:
        raise ReprlError(f"samples must be at least {each}, {what}, got {samples}")
    return min(samples, MOST) // each


def _preset(preset: Callable[[], float], each: int) -> int:
    try:
        number = preset()
        total = number * each
    except (OverflowError, ZeroDivisionError):
        number = total = float("inf")
    if not total <= MOST:
        raise ReprlError(
            f"these settings need {total:.3g} samples; at most 2**62 can be counted: relax epsilon, rho or delta, use "
            "constants='practical', or give a budget with samples"
        )
    return max(1, -int(-number // 1))


def check_generative(model: Any, name: str) -> GenerativeModel:
    """Return model if it samples in parallel."""
    if not hasattr(model, "samples_per_call"):
        raise ReprlError(f"model must be a reprl.GenerativeModel for {name}, got {quote(model)}")
    sampled: GenerativeModel = model
    return sampled


def check_episodic(model: object, name: str) -> Any:
    """Return model if it can be explored by episodes: an EpisodicModel or anything with reset, step and sizes."""
    needed = ("reset", "step", "n_states", "n_actions", "horizon", "ledger")
    missing = [part for part in needed if not hasattr(model, part)]
    if missing:
        raise ReprlError(f"model must be episodic for {name} (it has no {missing[0]}), got {quote(model)}")
    return model


def check_accuracy(epsilon: float, horizon: int) -> None:
    """Refuse an accuracy that every policy has."""
    check_real("epsilon", epsilon, 0.0, float(horizon), open_high=False)

"""Mechanisms: scores → a law over arms, with a bound on how far the laws of two runs can differ.

``exponential`` is the paper's (Theorem 3.3, Algorithm 1); ``compact`` is ours and never picks an arm far from the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_array, check_probability, check_real

MechanismName = Literal["compact", "exponential"]
MECHANISMS = get_args(MechanismName)


class Selection(NamedTuple):
    """Laws over arms, and what is known about them."""

    probabilities: NDArray[np.float64]
    """(n, k): one law per row of scores."""
    loss: float
    """An arm more than this below the best score of its row is picked with probability at most `failure`."""
    failure: float
    """Probability, over all rows together, that some pick loses more than `loss`."""
    total_variation: Callable[[ArrayLike], float]
    """Bound on the total variation between two runs' products of laws, from bounds on |score difference|: a number, one
    per row (n, 1), or one per arm (n, k)."""


def compact(scores: ArrayLike, *, epsilon: float) -> Selection:
    """Weigh an arm by sin²((π/2)·(1 − gap/ε)), gap being its distance from the best score of its row; 0 from ε on.

    Guarantee:
        loss = ε with failure 0. If two runs' scores differ by at most η[s, a], then
        TV ≤ (π/2ε)·sqrt(Σ_s Σ_a (η[s,a] + max_b η[s,b])²). Proof: docs/proofs/coupling.md §5.
    """
    values = _scores(scores)
    epsilon = check_real("epsilon", epsilon, 0.0, math.inf)
    closeness = np.clip(1.0 - (values.max(axis=1, keepdims=True) - values) / epsilon, 0.0, 1.0)
    weights = np.sin(0.5 * math.pi * closeness) ** 2
    shape = values.shape

    def total_variation(perturbation: ArrayLike) -> float:
        eta = _perturbation(perturbation, shape)
        turn = 0.5 * math.pi / epsilon * (eta + eta.max(axis=1, keepdims=True))
        if shape[1] == 1:
            return 0.0
        return min(1.0, math.sqrt(float((turn**2).sum())))

    return Selection(weights / weights.sum(axis=1, keepdims=True), epsilon, 0.0, total_variation)


def exponential(scores: ArrayLike, *, epsilon: float, delta: float, temperature: float | None = None) -> Selection:
    """Weigh an arm by exp(t · score).

    Args:
        scores: (n, k) empirical utilities.
        epsilon: accuracy that sets the temperature.
        delta: failure probability that sets the temperature.
        temperature: t itself; None for the paper's 2·log(3nk/δ)/ε (Algorithm 1).

    Guarantee:
        loss = log(nk/failure)/t with failure = δ/3; at the paper's t that is ε/2. If two runs' scores differ by at
        most η[s] in row s, then TV ≤ sqrt(1 − exp(−t²·Σ η[s]²/4)) ≤ (t/2)·‖η‖₂. Proof: docs/proofs/coupling.md §6.
    """
    values = _scores(scores)
    epsilon = check_real("epsilon", epsilon, 0.0, math.inf)
    delta = check_probability("delta", delta)
    n, k = values.shape
    t = 2.0 * math.log(3.0 * n * k / delta) / epsilon if temperature is None else temperature
    t = check_real("temperature", t, 0.0, math.inf)
    weights = np.exp(t * (values - values.max(axis=1, keepdims=True)))

    def total_variation(perturbation: ArrayLike) -> float:
        eta = _perturbation(perturbation, (n, k)).max(axis=1)
        turn = 0.5 * t * math.hypot(*eta)
        return 0.0 if k == 1 else math.sqrt(-math.expm1(-turn * turn))

    failure = delta / 3.0
    return Selection(
        weights / weights.sum(axis=1, keepdims=True), math.log(n * k / failure) / t, failure, total_variation
    )


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    values = check_array("scores", scores, 2)
    if 0 in values.shape:
        raise InputError(f"scores must have at least one row and one column, got shape {values.shape}")
    return values


def _perturbation(perturbation: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    eta = check_array("perturbation", perturbation, (0, 1, 2))
    if eta.ndim == 1:
        eta = eta[:, None]
    try:
        eta = np.broadcast_to(eta, shape)
    except ValueError:
        raise InputError(
            f"perturbation must be a number, one per row or one per arm {shape}, got {eta.shape}"
        ) from None
    if (eta < 0).any():
        raise InputError(f"perturbation must not be negative, got {eta.min():g}")
    return eta

"""The planner of list-replicable reinforcement learning (Zhang et al. 2025), with its tolerance drawn in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reprl.lab.baselines.budget import calls_within, check_task, hoeffding_calls
from reprl.mdp.planning import empirical_values
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.protocol import Parallel

LIST_WIDTH = 1.0
"""Practical largest tolerance: this · ε/H."""
LIST_CALLS = 2.5e-5
"""Practical calls of list-robust: this · (N·H²/(ρ·ε))², N = H·S·A."""


def list_robust(
    model: Parallel,
    shared_key: SharedKey,
    *,
    epsilon: float = 0.3,
    rho: float = 0.1,
    delta: float = 0.1,
    constants: str = "practical",
    samples: int | None = None,
) -> Policy:
    """Estimate Q*, take in every cell the first action within one random tolerance of the best (arXiv:2512.00553).

    The paper draws the tolerance in private and bounds the number of policies that can come out: in the true values a
    tolerance moves the policy only where it passes a gap, so there are at most N + 1 of them, N = H·S·A. Here the
    tolerance comes from the shared key, which turns the short list into one policy for most keys.

    Guarantee:
        "paper": tolerance uniform in (0, w], w = (ε/H)/(1 + ρ/(4N)), estimate within ε₀ = ρw/(8N) except with
        probability min(δ, ρ/4). The policy loses at most H(w + 2ε₀) = ε. Estimated gaps are within 2ε₀ of the true
        ones, so two runs part only if the tolerance lies within 2ε₀ of one of N gaps: probability at most
        4Nε₀/w + ρ/2 = ρ. The samples are ours: the paper's algorithm explores by episodes.

    Randomness:
        Shared: coordinate 0 of address ("list-robust"). Data: one batch of the model.
    """
    key = check_shared_key(shared_key).derive("list-robust")
    check_task(model, "generative", "list-robust", epsilon)
    horizon = model.horizon
    cells = horizon * model.n_states * model.n_actions
    width = epsilon / horizon / (1.0 + 0.25 * rho / cells)

    def preset() -> float:
        if constants == "paper":
            return hoeffding_calls(model, 0.125 * rho * width / cells, min(delta, rho / 4.0))
        return LIST_CALLS * (cells * horizon**2 / (rho * epsilon)) ** 2

    scores = empirical_values(model.sample(calls_within(model, samples, preset)))
    largest = width if constants == "paper" else LIST_WIDTH * epsilon / horizon
    return first_within(scores, largest * float(key.uniforms(1)[0]))


def first_within(scores: NDArray[np.float64], tolerance: float) -> Policy:
    """Return the policy that takes the first action whose score (H, S, A) is within a tolerance of the best."""
    near = scores >= scores.max(axis=2, keepdims=True) - tolerance
    return Policy(near.argmax(axis=2))

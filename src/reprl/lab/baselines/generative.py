"""Baselines that sample in parallel: greedy, rPVI, the three of Karbasi et al. (2023), and list-robust.

All of them make one batch of parallel calls. A call shows one outcome of every (h, s, a) and step h reads those of its
own cells only, so every phase of a backward induction has fresh samples, as the papers ask.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from reprl.coupling.correlated import correlated_sample
from reprl.coupling.rounding import round_vector
from reprl.coupling.spec import count_draws
from reprl.lab.baselines.task import BaselineTask
from reprl.mdp.counts import Counts
from reprl.mdp.planning import empirical_values, greedy_policy
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey

GREEDY_CALLS = 0.1
"""Practical calls of greedy: this · H²/ε²."""
RPVI_WIDTH = 4.0
"""Practical width of rPVI's grids: this · ε/H."""
RPVI_CALLS = 0.001
"""Practical calls of rPVI: this · (N·H²/(ρ·ε))², N = H·S·A."""
GRID_WIDTH = 4.0
"""Practical width of karbasi-grid's grids: this · ε/H."""
GRID_CALLS = 0.001
"""Practical calls of karbasi-grid: this · (N·H²/(ρ·ε))²."""
GAUSSIAN_NOISE = 2.0
"""Practical noise: this · ε/(H·sqrt(log(N + 1)))."""
GAUSSIAN_CALLS = {"shared": 0.004, "correlated": 0.018}
"""Practical calls of karbasi-gaussian: this · (H/(ρ·σ))² · (H·S)², or H·S where the draw is joint."""
JOINT_BITS = 40.0
"""Largest log₂ A^(H·S) at which karbasi-gaussian draws its policy jointly."""
SOFTMAX_TEMPERATURE = 1.0
"""Practical inverse temperature: this · H·log(A)/ε."""
SOFTMAX_CALLS = 0.004
"""Practical calls of karbasi-softmax: this · (H·S·t·H/ρ)², t the inverse temperature."""
LIST_WIDTH = 1.0
"""Practical largest tolerance of list-robust: this · ε/H."""
LIST_CALLS = 2.5e-5
"""Practical calls of list-robust: this · (N·H²/(ρ·ε))²."""


def greedy(task: BaselineTask) -> Policy:
    """Model-based greedy: equal samples in every cell, empirical backward induction, lowest action on ties.

    Guarantee:
        "paper": ε-optimal with probability 1 − δ, by Hoeffding's inequality in every cell: step h's samples are
        independent of the values they are averaged with. Nothing is promised about two runs.

    Randomness:
        Shared: none. Data: one batch of the model.
    """
    counts = task.sample(
        paper=lambda: task.hoeffding_calls(task.epsilon / 2.0, task.delta / 2.0),
        practical=lambda: GREEDY_CALLS * (task.shape[0] / task.epsilon) ** 2,
    )
    return greedy_policy(empirical_values(counts))


def rpvi(task: BaselineTask) -> Policy:
    """Replicable phased value iteration (Eaton, Hussing, Kearns, Sorrell 2023), finite-horizon: phases are the steps.

    Each Q_h(s, a) = E[r + V_{h+1}(s')] is one replicable statistical query: the mean of fresh samples, rounded to the
    centre of a cell of a shifted grid with an offset of its own; V_{h+1} is the maximum of the *rounded* values. The
    policy is greedy for them.

    Guarantee:
        "paper": τ = ε/(2H), ρ_SQ = ρ/N, δ_SQ = min(δ/N, ρ_SQ/4) for N = H·S·A queries with values in [0, H]: all
        queries are within τ, so the policy loses at most 2Hτ, and all agree with probability 1 − ρ.

    Randomness:
        Shared: coordinate s·A + a of address ("rpvi", h). Data: one batch of the model.
    """
    horizon, cells, epsilon = task.shape[0], task.cells, task.epsilon
    tau, rho_query = epsilon / (2.0 * horizon), task.rho / cells
    delta_query = min(task.delta / cells, rho_query / 4.0)
    slack = rho_query + 1.0 - 2.0 * delta_query

    def paper() -> float:
        precision = tau / horizon * (rho_query - 2.0 * delta_query) / slack
        return math.log(2.0 / delta_query) / (2.0 * precision**2)

    width = 2.0 * tau / slack if task.paper else RPVI_WIDTH * epsilon / horizon
    counts = task.sample(paper=paper, practical=lambda: RPVI_CALLS * _rounding_calls(task))
    return greedy_policy(phased_values(task.key, counts, width))


def phased_values(key: SharedKey, counts: Counts, width: float) -> NDArray[np.float64]:
    """Return rPVI's action values, (H, S, A): every mean rounded on a grid of its own, and carried on as rounded."""
    horizon, n_states, n_actions = counts.outcomes.shape
    scores = np.empty((horizon, n_states, n_actions))
    value = np.zeros(n_states)
    for h in reversed(range(horizon)):
        means = counts.mean_return(h, value).ravel()
        scores[h] = round_vector(key.derive(h), means, width=width, method="grid").reshape(n_states, n_actions)
        value = scores[h].max(axis=1)
    return scores


def karbasi_grid(task: BaselineTask) -> Policy:
    """Estimate Q*, round all N coordinates on a shifted grid, be greedy (Karbasi, Velegkas, Yang, Zhou 2023).

    Unlike in rPVI the estimate is an ordinary one, rounded once, at the end.

    Guarantee:
        "paper": grid of width α = (ε/H)/(1 + ρ'/N), estimate within ε₀ = ρ'α/(2N), ρ' = ρ/2, except with probability
        min(δ, ρ/4): ε₀ + α/2 = ε/(2H), so the policy loses at most ε, and two runs round apart with probability at
        most 2Nε₀/α + ρ/2 = ρ. Hoeffding stands in for the minimax estimator that the paper cites.

    Randomness:
        Shared: coordinate s·A + a of address ("karbasi-grid", h). Data: one batch of the model.
    """
    horizon, cells, rho = task.shape[0], task.cells, task.rho
    width = task.epsilon / horizon / (1.0 + 0.5 * rho / cells)
    counts = task.sample(
        paper=lambda: task.hoeffding_calls(0.25 * rho * width / cells, min(task.delta, rho / 4.0)),
        practical=lambda: GRID_CALLS * _rounding_calls(task),
    )
    scores = empirical_values(counts)
    if not task.paper:
        width = GRID_WIDTH * task.epsilon / horizon
    rounded = [round_vector(task.key.derive(h), scores[h].ravel(), width=width, method="grid") for h in range(horizon)]
    return greedy_policy(np.reshape(rounded, task.shape))


def karbasi_gaussian(task: BaselineTask, *, coupling: str = "shared") -> Policy:
    """Estimate Q*, add Gaussian noise to all N coordinates, be greedy (Karbasi et al. 2023).

    The paper shows that the laws of two runs are close; how the outputs are made equal is a choice. "shared" adds the
    same noise in both runs. "correlated" draws the greedy policy itself, whose law is a product over (h, s) of the laws
    of argmax_a (Q̂ + noise), by correlated sampling: jointly while A^(H·S) ≤ 2⁴⁰, row by row beyond.

    Guarantee:
        "paper", "correlated": noise σ = ε/(4H·sqrt(2·log(4N/δ))), estimate within ε₀ = ρσ·sqrt(2π)/(8·sqrt(N)) except
        with probability min(δ/2, ρ/4): the noise stays below ε/(4H) in every coordinate, the policy loses at most ε,
        and TV ≤ ‖Δ‖₂/(σ·sqrt(2π)) ≤ ρ/4 couples to a disagreement of at most ρ where the draw is joint. "shared" has
        the same law and no bound of its own in the paper.

    Randomness:
        Shared: coordinate s·A + a of address ("karbasi-gaussian", "noise", h), or correlated_sample at
        ("karbasi-gaussian", "policy"), row h·S + s. Data: one batch of the model.
    """
    shape, cells, rho = task.shape, task.cells, task.rho
    horizon, rows = shape[0], shape[0] * shape[1]
    method = "joint" if rows * math.log2(max(shape[2], 2)) <= JOINT_BITS else "product"
    if task.paper:
        sigma = task.epsilon / (4.0 * horizon * math.sqrt(2.0 * math.log(4.0 * cells / task.delta)))
    else:
        sigma = GAUSSIAN_NOISE * task.epsilon / (horizon * math.sqrt(math.log(cells + 1.0)))

    def paper() -> float:
        error = rho * sigma * math.sqrt(2.0 * math.pi) / (8.0 * math.sqrt(cells))
        return task.hoeffding_calls(error, min(task.delta / 2.0, rho / 4.0))

    def practical() -> float:
        coupled = float(rows * count_draws(method, rows)) if coupling == "correlated" else rows**2
        return GAUSSIAN_CALLS[coupling] * coupled * (horizon / (rho * sigma)) ** 2

    scores = empirical_values(task.sample(paper=paper, practical=practical))
    if coupling == "shared":
        noise = [ndtri(task.key.derive("noise", h).uniforms(scores[h].size)) for h in range(horizon)]
        return greedy_policy(scores + sigma * np.reshape(noise, shape))
    laws = argmax_laws(scores.reshape(-1, shape[2]) / sigma)
    return Policy(correlated_sample(task.key.derive("policy"), laws, method).reshape(shape[:2]))


def karbasi_softmax(task: BaselineTask) -> Policy:
    """Estimate Q*, draw every action from a softmax of inverse temperature t ≈ log A·H/ε (Karbasi et al. 2023).

    The paper's output is the stochastic policy, and its promise that those of two runs are close: approximately
    replicable. Here actions are drawn from it state by state with shared randomness (correlated sampling of each row),
    so that close laws mostly give equal tables.

    Guarantee:
        "paper": t = 2H·log(A)/ε loses ε/2 by the softmax in *expectation* over draws; estimate within
        ε₀ = min(ε/(4H), ρ/(8·H·S·t)) except with probability min(δ, ρ/4): each row's law moves by TV ≤ 2tε₀, and the
        rows differ with probability at most 2·H·S·2tε₀ + ρ/2 = ρ.

    Randomness:
        Shared: row h·S + s of address ("karbasi-softmax"). Data: one batch of the model.
    """
    (horizon, n_states, n_actions), rho = task.shape, task.rho
    rows = horizon * n_states
    scale = 2.0 if task.paper else SOFTMAX_TEMPERATURE
    temperature = scale * horizon * math.log(max(n_actions, 2)) / task.epsilon

    def paper() -> float:
        error = min(task.epsilon / (4.0 * horizon), rho / (8.0 * rows * temperature))
        return task.hoeffding_calls(error, min(task.delta, rho / 4.0))

    counts = task.sample(paper=paper, practical=lambda: SOFTMAX_CALLS * (rows * temperature * horizon / rho) ** 2)
    scores = empirical_values(counts).reshape(rows, n_actions)
    weights = np.exp(temperature * (scores - scores.max(axis=1, keepdims=True)))
    laws = weights / weights.sum(axis=1, keepdims=True)
    return Policy(correlated_sample(task.key, laws, "product").reshape(horizon, n_states))


def list_robust(task: BaselineTask) -> Policy:
    """Estimate Q*, take in every cell the first action within one random tolerance of the best (arXiv:2512.00553).

    This is the planner of list-replicable reinforcement learning (Zhang et al. 2025). The paper draws the tolerance in
    private and bounds the number of policies that can come out: in the true values a tolerance moves the policy only
    where it passes a gap, so there are at most N + 1 of them, N = H·S·A. Here the tolerance comes from the shared key,
    which turns the short list into one policy for most keys.

    Guarantee:
        "paper": tolerance uniform in (0, w], w = (ε/H)/(1 + ρ/(4N)), estimate within ε₀ = ρw/(8N) except with
        probability min(δ, ρ/4). The policy loses at most H(w + 2ε₀) = ε. Estimated gaps are within 2ε₀ of the true
        ones, so two runs differ only if the tolerance lies within 2ε₀ of one of N gaps: probability at most
        4Nε₀/w + ρ/2 = ρ. The samples are ours: the paper's algorithm explores by episodes.

    Randomness:
        Shared: coordinate 0 of address ("list-robust"). Data: one batch of the model.
    """
    horizon, cells, rho = task.shape[0], task.cells, task.rho
    width = task.epsilon / horizon / (1.0 + 0.25 * rho / cells)
    counts = task.sample(
        paper=lambda: task.hoeffding_calls(0.125 * rho * width / cells, min(task.delta, rho / 4.0)),
        practical=lambda: LIST_CALLS * _rounding_calls(task),
    )
    largest = width if task.paper else LIST_WIDTH * task.epsilon / horizon
    return first_within(empirical_values(counts), largest * float(task.key.uniforms(1)[0]))


def first_within(scores: NDArray[np.float64], tolerance: float) -> Policy:
    """Return the policy that takes the first action whose score (H, S, A) is within a tolerance of the best."""
    near = scores >= scores.max(axis=2, keepdims=True) - tolerance
    return Policy(near.argmax(axis=2))


def argmax_laws(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Pr[argmax_a (score_a + standard normal) = a] for every row, (n, A).

    Σ over a fixed grid of z of φ(z − score_a) Π_{b≠a} Φ(z − score_b): the trapezoidal rule, whose error for a Gaussian
    integrand at this spacing is below the rounding of doubles. Probabilities below 1e-12 are set to 0.
    """
    z = np.arange(-9.0, 9.0 + 0.0625, 0.125)
    gaps = z - (scores - scores.max(axis=1, keepdims=True))[..., None]
    below, laws = ndtr(gaps), np.empty_like(scores)
    for a in range(scores.shape[1]):
        others = np.prod(np.delete(below, a, axis=1), axis=1)
        laws[:, a] = (np.exp(-0.5 * gaps[:, a] ** 2) * others).sum(axis=1)
    laws /= laws.sum(axis=1, keepdims=True)
    laws[laws < 1e-12] = 0.0
    whole: NDArray[np.float64] = laws / laws.sum(axis=1, keepdims=True)
    return whole


def _rounding_calls(task: BaselineTask) -> float:
    """(N·H²/(ρ·ε))²: how the calls grow that round N values apart with probability ρ."""
    return (task.cells * task.shape[0] ** 2 / (task.rho * task.epsilon)) ** 2

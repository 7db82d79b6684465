"""window: how wide the windows of a decision may be while the policies that it draws stay ε-optimal.

A window of ε/H per step is safe in every MDP and far too narrow in most: where arms tie exactly, or where the gap is
wider than the window, drawing from it costs nothing. Data tell how much it costs, by one pass over the empirical MDP.
How wide a window then becomes is a single number, and two runs agree on it after rounding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.rounding import round_vector
from reprl.decide.best_arm import select
from reprl.decide.induction import Accuracy
from reprl.errors import check_probability, check_real
from reprl.mdp.counts import Counts
from reprl.mdp.tiers import Tiers
from reprl.randomness import SharedKey, check_shared_key

GRID = math.log(1.3)
"""Width of the grid of log stretches."""
BAND = 0.3
"""Share of ε over which the limit of `is_accurate` is spread."""
_HALVINGS = 40


def shared_stretch(
    key: SharedKey, counts: Counts, tiers: Tiers, *, accuracy: Accuracy, epsilon: float, delta: float, mechanism: str
) -> float:
    """Return a factor ≥ 1 for all windows, at most the widest that these data allow, the same in two similar runs.

    Args:
        key: shared randomness; the same key in both runs.
        counts: data on which the windows are judged.
        tiers: the partition.
        accuracy: the windows to be stretched.
        epsilon: accuracy that the policies of the stretched windows shall have. `likely_loss` may rise and fall; the
            factor is rounded down from one at which the bound is ε, and not judged again.
        delta: failure probability of the induction; also the share of the shared randomness that may miss epsilon.
        mechanism: "compact" or "exponential".

    Guarantee:
        Two runs whose widest stretches are a factor e^d apart differ with probability at most (π/2)·d/GRID, and d/GRID
        on average over where they lie on the grid.

    Randomness:
        Shared, at key.
    """
    check_shared_key(key)
    widest = widest_stretch(counts, tiers, accuracy=accuracy, epsilon=epsilon, delta=delta, mechanism=mechanism)
    rounded = round_vector(key, [math.log(widest) - GRID], width=GRID, method="product")[0]
    return math.exp(max(0.0, float(rounded)))


def widest_stretch(
    counts: Counts, tiers: Tiers, *, accuracy: Accuracy, epsilon: float, delta: float, mechanism: str
) -> float:
    """Return a factor at which `loss_bound` is ε; 1 if it is more without stretching, H-wide windows if never."""
    epsilon = check_real("epsilon", epsilon, 0.0, math.inf)
    check_probability("delta", delta)

    def fits(log: float) -> bool:
        return loss_bound(counts, tiers, accuracy.stretched(math.exp(log)), delta=delta, mechanism=mechanism) <= epsilon

    low, high = 0.0, math.log(max(1.0, 2.0 * counts.outcomes.horizon / accuracy.by_tier[0]))
    if fits(high):
        return math.exp(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return math.exp(low)


def is_accurate(key: SharedKey, loss: float, epsilon: float) -> bool:
    """Decide whether a bound on the loss is good enough, alike in two similar runs.

    Guarantee:
        True for loss ≤ (1 − BAND)·ε, False for loss > ε; two runs whose bounds are d apart decide differently with
        probability at most d/(BAND·ε).

    Randomness:
        Shared, at key.
    """
    return loss <= epsilon * (1.0 - BAND * float(check_shared_key(key).uniforms(1)[0]))


def ignored_starts(counts: Counts, tiers: Tiers, starts: NDArray[np.int64]) -> float:
    """Return what ignored states of the first step may cost: their share of the starts times what they may be worth.

    The bounds below speak of decided states alone.
    """
    worth = np.where(tiers.ignorable[0], best_values(counts)[0], 0.0)
    return float(starts @ worth / starts.sum())


def best_values(counts: Counts) -> NDArray[np.float64]:
    """Return the best values of the empirical MDP, (H+1, S); unseen states are worth the steps that remain."""
    horizon, n_states, _ = counts.outcomes.shape
    upper = np.zeros((horizon + 1, n_states))
    for h in reversed(range(horizon)):
        best = np.nan_to_num(counts.mean_return(h, upper[h + 1])).max(axis=1)
        upper[h] = np.where(counts.visits[h].min(axis=1) > 0, best, float(horizon - h))
    return upper


def loss_bound(counts: Counts, tiers: Tiers, accuracy: Accuracy, *, delta: float, mechanism: str) -> float:
    """Return `likely_loss`, or `worst_loss` where it is smaller; that one holds for windows, so for "compact" alone."""
    likely = likely_loss(counts, tiers, accuracy, delta=delta, mechanism=mechanism)
    return min(likely, worst_loss(counts, tiers, accuracy)) if mechanism == "compact" else likely


def likely_loss(counts: Counts, tiers: Tiers, accuracy: Accuracy, *, delta: float, mechanism: str) -> float:
    """Bound how much worse than the best the policy is, but for a share δ of the shared randomness.

    Guarantee:
        In the empirical MDP, from every decided state of the first step, for arms drawn independently from the laws
        that the induction has when values are their means: mean loss plus sqrt(1/δ − 1) standard deviations (Cantelli's
        inequality). A state whose arms were not all seen may be worth as much as the steps that remain.

    The mean follows the laws; given the arm, the deviation of an average is at most the average of the deviations, so
    Var ≤ Var_a(mean given a) + Σ_a p(a)·(P_a sd)².
    """
    horizon, n_states, _ = counts.outcomes.shape
    mean, deviation = np.zeros(n_states), np.zeros(n_states)
    inner = delta / (horizon * len(tiers.decided))
    for h in reversed(range(horizon)):
        scores = np.nan_to_num(counts.mean_return(h, mean))
        spread = np.nan_to_num(counts.mean_return(h, deviation) - counts.mean_return(h, np.zeros(n_states)))
        mean, deviation = np.zeros(n_states), np.zeros(n_states)
        for tier in tiers.decided:
            rows = tiers.level[h] == tier
            if not rows.any():
                continue
            law = select(mechanism, scores[rows], accuracy.by_tier[tier - 1], inner).probabilities
            mean[rows] = (law * scores[rows]).sum(axis=1)
            between = (law * (scores[rows] - mean[rows, None]) ** 2).sum(axis=1)
            deviation[rows] = np.sqrt(between + (law * spread[rows] ** 2).sum(axis=1))
    loss = best_values(counts)[0] - mean + math.sqrt(1.0 / delta - 1.0) * deviation
    return float(loss[~tiers.ignorable[0]].max(initial=0.0))


def worst_loss(counts: Counts, tiers: Tiers, accuracy: Accuracy) -> float:
    """Bound how much worse than the best any policy can be that the induction draws from these windows.

    Guarantee:
        In the empirical MDP, from every decided state of the first step: the best value minus the value of a policy
        whose every arm is within its window of the best score, scores being computed with the policy's own values and 0
        for ignored states. A state whose arms were not all seen may be worth as much as the steps that remain.
        Non-decreasing in every window.

    By induction from the last step, V* ≤ U and the policy's values ≥ W: an arm can only be drawn if its score under U
    reaches the best score under W less the window, and what is drawn has at least that score, and at least the least
    score under W of an arm that can be drawn.
    """
    horizon, n_states, _ = counts.outcomes.shape
    windows = np.append([accuracy.by_tier[tier - 1] / 2.0 for tier in tiers.decided], 0.0)
    upper, lower = best_values(counts), np.zeros(n_states)
    for h in reversed(range(horizon)):
        high, low = np.nan_to_num(counts.mean_return(h, upper[h + 1])), np.nan_to_num(counts.mean_return(h, lower))
        floor = low.max(axis=1) - windows[np.minimum(tiers.level[h], windows.size) - 1]
        drawn = high >= floor[:, None]
        lower = np.maximum(np.where(drawn, low, np.inf).min(axis=1), floor)
        lower[tiers.ignorable[h]] = 0.0
    decided = ~tiers.ignorable[0]
    return float((upper[0] - lower)[decided].max(initial=0.0))

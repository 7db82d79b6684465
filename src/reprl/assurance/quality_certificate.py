"""Certificate of quality: a proof, from a run's own data, that a policy loses little, however it was chosen from them.

No statement names the policy, and all hold for all numbers of samples at once (docs/proofs/certificate-quality.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, quote
from reprl.kernels import njit
from reprl.mdp.evidence import Evidence
from reprl.mdp.model import Model, worth

Floats = NDArray[np.float64]
RATES, TOP, ROUND = 14, 0.9, 1e-9
"""λ is TOP, TOP/2, TOP/4, …, and λ·span at most TOP; ROUND is more than rounding of numbers can do."""


class QualityCertificate(NamedTuple):
    """What is proven of a policy, in units of value: V* − V^π ≤ loss and V* − V^baseline ≥ gain."""

    loss: float
    gain: float
    quality: float
    """The policy earns at least this share of the true gain; −∞ if there may be none."""


class Facts(NamedTuple):
    """A model whose last row is the start, 1/n of each row (0 where the law is known), and the levels of statements."""

    model: Model
    rarity: Floats
    levels: Floats


def certify_quality(
    evidence: Evidence, policy: NDArray[np.int64], baseline: Floats, delta: float, *, shrink: float = 1.0
) -> QualityCertificate:
    """Bound what a policy, (H, S), loses, and what the best one gains.

    Args:
        evidence: of a run with a horizon, by parallel calls or by episodes; steps may share their samples.
        policy: chosen in any way from the evidence.
        baseline: (H, S, A): laws of actions, fixed before the data. One that draws counts as the best of what it draws.
        delta: probability that anything is wrong.
        shrink: radii shrink by about this factor; for negative controls only.

    Guarantee:
        With probability 1 − delta all certificates of all policies at all looks of a run are true.
    """
    model, n_states = evidence.model, evidence.model.initial.size
    if model.gamma:
        raise InputError(f"evidence must have a horizon to be certified, got discount {quote(model.gamma)}")
    first, reward = np.append(model.first, model.first[-1] + n_states), np.append(model.reward, np.zeros(n_states))
    ahead, law = np.append(model.next_state, np.arange(n_states, dtype=np.int32)), np.append(model.law, model.initial)
    with_start = model._replace(first=first, next_state=ahead, reward=reward, law=law)
    samples = np.append(evidence.samples, evidence.starts.sum())
    known = np.append(evidence.exact, evidence.fixed_start) & (samples > 0)
    rarity = np.where(known, 0.0, 1.0 / np.maximum(samples, ROUND))
    many = np.array([4 * RATES * (model.allowed.size + 1), RATES * rarity.size * n_states, rarity.size])
    levels = np.log(many / (np.array([0.6, 0.3, 0.1]) * delta)) + n_states * np.log([1.0, 1.0, 2.0])
    facts = Facts(with_start, rarity, shrink**2 * levels)
    base, band = bound_values(facts, baseline > 0.0)[1, -1, 0], bound_values(facts, model.allowed)
    value, loss = bound_loss(facts, policy, band)
    gain = max(value, band[0, -1, 0]) - base - ROUND
    quality = 1.0 - (loss + ROUND) / gain if gain > 0.0 else -math.inf
    if value > base + ROUND:  # then the share of the gain that is lost rises with V*
        quality = max(quality, (value - base - ROUND) / (band[1, -1, 0] - base))
    return QualityCertificate(loss + ROUND, float(gain), float(quality))


@njit(cache=True, inner=True)
def radius(square: float, rarity: float, log: float, span: float) -> float:
    """Return how far a mean is from its expectation, at most span; square is the mean square about that, or about 0."""
    least = span if rarity > 0.0 else 0.0
    for k in range(RATES):
        rate = TOP * 0.5**k
        if rate * span <= TOP:
            bend = (-math.log1p(-rate * span) - rate * span) / (rate * span) ** 2
            least = min(least, log * rarity / rate + rate * square * bend)
    return least


@njit(cache=True, inner=True)
def bound_row(facts: Facts, row: int, band: Floats, left: float) -> tuple[float, float, float]:
    """Bound the mean, at most left, of reward and a fixed value in a band, (2, S), and the error of its estimate."""
    model, span = facts.model, min(left, 1.0 + band[1].max() - band[0].min())
    least, most, variance, blur = worth(model, row, band[0]), worth(model, row, band[1]), 0.0, 0.0
    for e in range(model.first[row], model.first[row + 1]):
        low, high = band[0, model.next_state[e]], band[1, model.next_state[e]]
        variance += model.law[e] * (model.reward[e] + 0.5 * (low + high - least - most)) ** 2
        blur += model.law[e] * (0.5 * (high - low)) ** 2
    square, error = min(math.sqrt(variance) + math.sqrt(blur), 0.5 * span) ** 2, span
    for _ in range(4):  # squares are about the expectation: every error that holds gives another one
        error = min(error, radius(square + error * error, facts.rarity[row], facts.levels[0], span))
    return max(0.0, least - error), min(left, most + error), error


@njit(cache=True, nogil=True)
def bound_values(facts: Facts, mask: NDArray[np.bool_]) -> Floats:
    """Return bounds, (2, H+2, S), of the best values under a mask; step −1 is the start."""
    horizon, n_states, n_actions = mask.shape
    band = np.zeros((2, horizon + 2, n_states))
    for h in range(horizon - 1, -2, -1):
        for s in range(n_states if h >= 0 else 1):
            for a in range(n_actions if h >= 0 else 1):
                if h < 0 or mask[h, s, a]:
                    row = h * facts.model.shift + s * n_actions + a if h >= 0 else facts.rarity.size - 1
                    low, high, _ = bound_row(facts, row, band[:, h + 1], float(horizon - max(h, 0)))
                    band[0, h, s], band[1, h, s] = max(band[0, h, s], low), max(band[1, h, s], high)
    return band


@njit(cache=True, nogil=True)
def bound_loss(facts: Facts, policy: NDArray[np.int64], band: Floats) -> tuple[float, float]:
    """Bound V^π from below and V* − V^π from above, from the start, given the bounds of V*."""
    model, (horizon, n_states, n_actions) = facts.model, facts.model.allowed.shape
    value, loss = np.zeros((horizon + 2, n_states)), np.zeros((horizon + 2, n_states))
    for h in range(horizon - 1, -2, -1):
        ahead, later, left = band[:, h + 1], loss[h + 1], float(horizon - max(h, 0))
        middle, half = 0.5 * (ahead[0] + ahead[1]), 0.5 * (ahead[1] - ahead[0])
        for s in range(n_states if h >= 0 else 1):
            row = h * model.shift + s * n_actions + policy[h, s] if h >= 0 else facts.rarity.size - 1
            law, error, gap = law_of(model, row), bound_row(facts, row, ahead, left)[2], 0.0
            spill = (later * (law == 0.0)).max() * min(1.0, facts.levels[2] * facts.rarity[row])
            for z in range(n_states):
                spill += later[z] * radius(law[z], facts.rarity[row], facts.levels[1], 1.0) if law[z] > 0.0 else 0.0
            for b in range(n_actions if h >= 0 else 0):
                if b != policy[h, s] and model.allowed[h, s, b]:
                    rival = row + b - policy[h, s]
                    blur = (np.abs(law_of(model, rival) - law) * half).sum()
                    apart = worth(model, rival, middle) - worth(model, row, middle) + blur
                    gap = max(gap, apart + error + bound_row(facts, rival, ahead, left)[2])
            value[h, s] = max(0.0, worth(model, row, value[h + 1]) - error - min(spill, later.max()))
            loss[h, s] = min(band[1, h, s] - value[h, s], gap + min((law * later).sum() + spill, later.max()))
    return value[-1, 0], loss[-1, 0]


@njit(cache=True, inner=True)
def law_of(model: Model, row: int) -> Floats:
    """Return a row's law of the next state, (S,)."""
    law = np.zeros(model.initial.size)
    for e in range(model.first[row], model.first[row + 1]):
        law[model.next_state[e]] += model.law[e]
    return law

"""Algorithm 2 (RepRLBandit): tiered backward induction, from data and a partition to a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_probability, check_real
from reprl.guarantee import Guarantee
from reprl.mdp.counts import Counts
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers, first_empty
from reprl.paper.rep_var_bandit import Decision, check_decision, multi_best_arm
from reprl.randomness import SharedKey, check_shared_key

_SOURCE = "docs/proofs/decision.md §3"


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """How the accuracy ε is shared out over steps and tiers."""

    by_tier: tuple[float, ...]
    """Accuracy of the best-arm problems of tier 1, 2, … in units of value."""
    pessimism: float
    """What is subtracted from every value, as a fraction of its tier's accuracy: 1 in the paper."""

    @classmethod
    def paper(cls, epsilon: float, horizon: int, tiers: int) -> Accuracy:
        """ε_ℓ = 2^ℓ ε/(8HL), all of it subtracted (Algorithm 2, RepRLBandit)."""
        return cls(
            by_tier=tuple(2.0**t * epsilon / (8.0 * horizon * tiers) for t in range(1, max(tiers, 2))), pessimism=1.0
        )


class Induction(NamedTuple):
    """A policy, the values it was built on, and what is proven about it."""

    policy: Policy
    values: NDArray[np.float64]
    """(H+1, S): the (pessimistic) values V̄ that utilities were computed with."""
    laws: NDArray[np.float64]
    """(H, S, A): the law that each action was drawn from; a point mass on action 0 where states are ignored."""
    scores: NDArray[np.float64]
    """(H, S, A): the empirical utilities r + V̄(s')."""
    guarantee: Guarantee
    """Computed from the data's sizes; its rho is 1 when nothing is proven."""


def tiered_induction(
    key: SharedKey, counts: Counts, tiers: Tiers, *, accuracy: Accuracy, delta: float, decision: Decision | None = None
) -> Induction:
    """Turn data and a partition into a policy, step by step from the last.

    Args:
        key: shared randomness; the same key in both runs.
        counts: data; every cell of a decided tier needs a sample.
        tiers: the partition, which two runs are supposed to share.
        accuracy: ε_ℓ and pessimism.
        delta: failure probability of the whole induction.
        decision: mechanism, coupling and rounding.

    Guarantee:
        As returned, computed from the sizes: the sum over (h, ℓ) of the bandits' own. It supposes that both runs have
        one partition and at least these sizes, and that with several tiers some optimal policy visits tier ℓ ≥ 2 at
        most 2^{1−ℓ} times. Proof: docs/proofs/decision.md §3, after Section 4.1 of the paper.

    Randomness:
        Shared, at key.derive("induction", h, tier), one coordinate per state, whatever the data and the partition.
    """
    check_shared_key(key)
    _check_fit(counts, tiers, accuracy)
    delta = check_probability("delta", delta)
    decision = Decision(rounding=False) if decision is None else check_decision(decision)
    horizon, n_states, n_actions = counts.outcomes.shape
    actions = np.zeros((horizon, n_states), dtype=np.int64)
    values = np.zeros((horizon + 1, n_states))
    scores = np.empty((horizon, n_states, n_actions))
    laws = np.zeros((horizon, n_states, n_actions))
    laws[:, :, 0] = 1.0
    parts: list[tuple[int, Guarantee]] = []
    drift = 0.0
    for h in reversed(range(horizon)):
        scores[h] = counts.mean_return(h, values[h + 1])
        wander = 0.0
        for tier in tiers.decided:
            inside = tiers.level[h] == tier
            if not inside.any():
                continue
            epsilon = check_real("accuracy", accuracy.by_tier[tier - 1], 0.0, float("inf"))
            found = multi_best_arm(
                key.derive("induction", h, tier),
                scores[h, inside],
                counts.visits[h, inside],
                epsilon=epsilon,
                delta=delta / (horizon * len(tiers.decided)),
                decision=decision,
                scale=float(horizon - h),
                drift=drift,
                among=inside,
            )
            actions[h, inside] = found.arms
            laws[h, inside] = found.probabilities
            values[h, inside] = np.clip(found.values - accuracy.pessimism * epsilon, 0.0, horizon - h)
            parts.append((tier, found.guarantee))
            wander = max(wander, 2.0 * found.noise)
        drift = 0.0 if decision.rounding else drift + wander
    guarantee = _compose(parts, tiers, accuracy, horizon)
    return Induction(Policy(actions), values, laws, scores, guarantee)


def _check_fit(counts: Counts, tiers: Tiers, accuracy: Accuracy) -> None:
    """Refuse data that miss a cell of a decided tier, and an accuracy that misses a tier."""
    empty = first_empty(counts, tiers)
    if empty is not None:
        raise InputError(
            f"cell (h={empty[0]}, s={empty[1]}, a={empty[2]}) of tier {tiers.level[empty[:2]]} must have a sample, "
            f"got 0: collect more data or move the state to the ignored tier {tiers.count}"
        )
    if len(accuracy.by_tier) < len(tiers.decided):
        raise InputError(f"accuracy must be given for {len(tiers.decided)} tiers, got {len(accuracy.by_tier)}")


def _compose(parts: list[tuple[int, Guarantee]], tiers: Tiers, accuracy: Accuracy, horizon: int) -> Guarantee:
    """Add up what the bandits promise, each tier weighted by how much of it an optimal policy can visit.

    Proven where values of tiers above 1 are underestimates: otherwise the learned policy may be drawn to a tier that
    the optimal one hardly visits, and the weights are not its own. A step whose states are all ignored is visited by
    every policy, so the partition's premise fails, and H is all that bounds the loss.
    """
    proven = all(tier == 1 or error.epsilon <= accuracy.pessimism * accuracy.by_tier[tier - 1] for tier, error in parts)
    loss = horizon * 2.0 ** (1 - tiers.count) if tiers.count > 1 else 0.0
    for tier in tiers.decided:
        steps = [part.epsilon for level, part in parts if level == tier]
        pessimism = accuracy.pessimism * accuracy.by_tier[tier - 1]
        terms = [2.0 * error + max(pessimism, error) for error in steps]
        if terms:
            loss += sum(terms) if tier == 1 else 2.0 ** (1 - tier) * max(terms)
    source, lost = _SOURCE, int(tiers.ignorable.all(axis=1).sum())
    if lost > 2.0 ** (1 - tiers.count):
        source = f"all states of {lost} steps are ignored, so no more is known than of any policy; {_SOURCE}"
        loss = float(horizon)
    return Guarantee(
        rho=min(1.0, sum(part.rho for _, part in parts)),
        delta=sum(part.delta for _, part in parts),
        epsilon=loss,
        status="proven" if proven else "heuristic",
        source=source,
    )

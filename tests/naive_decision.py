"""Slow, obvious versions of the decision stage, written from the text of the paper and of docs/proofs/decision.md.

RepVarBandit (Algorithm 1), RepRLBandit (Algorithm 2), niceness (Definition 4.4), truncated MDPs (Definition 4.8), with
dictionaries, lists and loops. Laws are formulas, joint couplings are enumerated; only the product coupling is the
package's own, which has references elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

import reprl
from reprl.mdp.tiers import Tiers
from tests import naive, naive_coupling

Cell = tuple[int, int, int]
Data = Mapping[Cell, Sequence[tuple[int, float]]]
"""(h, s, a) → the samples (next state, reward)."""


class Rule(NamedTuple):
    """How arms are chosen."""

    mechanism: str
    coupling: str
    rounding: bool


class Arms(NamedTuple):
    """Chosen arms, their values, and the laws they were drawn from."""

    arms: list[int]
    values: list[float]
    laws: list[list[float]]


def compact_law(scores: Sequence[float], gap: float) -> list[float]:
    """sin²((π/2)(1 − distance from the best / gap)), nothing from a distance of gap on."""
    best = max(scores)
    weights = [math.sin(0.5 * math.pi * max(0.0, 1.0 - (best - x) / gap)) ** 2 for x in scores]
    return [w / sum(weights) for w in weights]


def exponential_law(scores: Sequence[float], temperature: float) -> list[float]:
    """∝ exp(t · score)."""
    best = max(scores)
    weights = [math.exp(temperature * (x - best)) for x in scores]
    return [w / sum(weights) for w in weights]


def laws(rows: Sequence[Sequence[float]], epsilon: float, delta: float, mechanism: str) -> list[list[float]]:
    """The law of every instance: compact with gap ε/2, or the paper's t = 2·log(3SA/δ)/ε."""
    if mechanism == "compact":
        return [compact_law(row, epsilon / 2.0) for row in rows]
    t = 2.0 * math.log(3.0 * len(rows) * len(rows[0]) / delta) / epsilon
    return [exponential_law(row, t) for row in rows]


def couple(key: reprl.SharedKey, rows: Sequence[Sequence[float]], coupling: str) -> list[int]:
    """Draw from the product of laws: every leaf of the tree is tried."""
    if coupling == "product":
        return [int(x) for x in reprl.correlated_sample(key, rows, "product")]
    return [*naive_coupling.enumerate_winner(key, rows)]


def round_values(key: reprl.SharedKey, x: Sequence[float], epsilon: float, rule: Rule) -> list[float]:
    """Leave, or round to a lattice of width ε/2 by named corners."""
    if not rule.rounding:
        return list(x)
    width = epsilon / 2.0
    below = [math.floor(v / width) for v in x]
    up = [math.sin(0.5 * math.pi * (v / width - low)) ** 2 for v, low in zip(x, below, strict=True)]
    by_parity = [[1.0 - u, u] if low % 2 == 0 else [u, 1.0 - u] for u, low in zip(up, below, strict=True)]
    parity = couple(key, by_parity, rule.coupling)
    return [width * (low if low % 2 == odd else low + 1) for low, odd in zip(below, parity, strict=True)]


def multi_best_arm(
    key: reprl.SharedKey,
    means: Sequence[Sequence[float]],
    epsilon: float,
    delta: float,
    rule: Rule,
    among: Sequence[bool] | None = None,
) -> Arms:
    """RepVarBandit, Algorithm 1; coordinates that hold no instance have nothing to choose and are worth 0."""
    among = [True] * len(means) if among is None else among
    table = laws(means, epsilon, delta, rule.mechanism)
    nothing = [1.0] + [0.0] * (len(means[0]) - 1)
    rows = iter(table)
    everywhere = couple(key.derive("arms"), [next(rows) if here else nothing for here in among], rule.coupling)
    arms = [a for a, here in zip(everywhere, among, strict=True) if here]
    chosen = iter([means[s][a] for s, a in enumerate(arms)])
    vector = [next(chosen) if here else 0.0 for here in among]
    rounded = round_values(key.derive("rounding"), vector, epsilon, rule)
    return Arms(arms, [v for v, here in zip(rounded, among, strict=True) if here], table)


def disagreement_bound(
    sizes: Sequence[float],
    n_arms: int,
    epsilon: float,
    delta: float,
    rule: Rule,
    scale: float = 1.0,
    drift: float = 0.0,
) -> float:
    """C(Δ) + W(Δ) + 2δ/3 of docs/proofs/decision.md §2, draw by draw."""
    n = len(sizes)
    noise = [scale * math.sqrt(math.log(6.0 * n * n_arms / delta) / (2.0 * m)) for m in sizes]
    apart = [2.0 * x + drift for x in noise]
    block = {"joint": n, "product": 1}[rule.coupling]
    t = 2.0 * math.log(3.0 * n * n_arms / delta) / epsilon
    total = 2.0 * delta / 3.0
    rounding = 0.0
    for low in range(0, n, block):
        square = sum(x * x for x in apart[low : low + block])
        if rule.mechanism == "compact":  # every arm's weight turns by at most π/(2·gap) times twice the row's Δ
            tv = min(1.0, 0.5 * math.pi / (epsilon / 2.0) * math.sqrt(n_arms * 4.0 * square))
        else:
            tv = math.sqrt(1.0 - math.exp(-t * t * square / 4.0))
        total += 2.0 * tv / (1.0 + tv) if n_arms > 1 else 0.0
        if rule.rounding:
            cells = [min(1.0, x / (epsilon / 2.0)) for x in apart[low : low + block]]
            size = sum(cells) / 2.0 if rule.coupling == "product" else math.sqrt(sum(c * c for c in cells))
            rounding += math.pi * size
    return min(1.0, total + min(1.0, rounding))


def niceness(visits: Mapping[Cell, int], level: Sequence[Sequence[int]], count: int, n_actions: int) -> list[float]:
    """2^−ℓ Σ_h sqrt(Σ_{s ∈ S_h^ℓ} 1/min_a n) for every decided tier ℓ."""
    out = []
    for tier in range(1, max(count, 2)):
        total = 0.0
        for h, row in enumerate(level):
            inverse = 0.0
            for s, here in enumerate(row):
                if here == tier:
                    fewest = min(visits[h, s, a] for a in range(n_actions))
                    inverse += 1.0 / fewest if fewest else math.inf
            total += math.sqrt(inverse)
        out.append(total / 2.0**tier)
    return out


def tiered_induction(
    key: reprl.SharedKey,
    data: Data,
    shape: Cell,
    tiers: Tiers,
    by_tier: Sequence[float],
    pessimism: float,
    delta: float,
    rule: Rule,
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], float]]:
    """RepRLBandit, Algorithm 2: action and value V̄ of every (h, s)."""
    horizon, n_states, n_actions = shape
    decided = 1 if tiers.count == 1 else tiers.count - 1
    policy: dict[tuple[int, int], int] = {}
    value = {(horizon, s): 0.0 for s in range(n_states)}
    for h in range(horizon - 1, -1, -1):
        utilities = {
            (s, a): [r + value[h + 1, x] for x, r in data.get((h, s, a), ())]
            for s in range(n_states)
            for a in range(n_actions)
        }
        for tier in range(1, tiers.count + 1):
            states = [s for s in range(n_states) if tiers.level[h, s] == tier]
            if tier > decided:
                for s in states:
                    policy[h, s], value[h, s] = 0, 0.0
            elif states:
                means = [[sum(utilities[s, a]) / len(utilities[s, a]) for a in range(n_actions)] for s in states]
                epsilon = by_tier[tier - 1]
                place = key.derive("induction", h, tier)
                among = [s in states for s in range(n_states)]
                found = multi_best_arm(place, means, epsilon, delta / (horizon * decided), rule, among)
                for s, arm, estimate in zip(states, found.arms, found.values, strict=True):
                    policy[h, s] = arm
                    value[h, s] = min(max(estimate - pessimism * epsilon, 0.0), float(horizon - h))
    return policy, value


def utilities(p: naive.Table, r: naive.Table, values: ArrayLike, h: int) -> list[list[float]]:
    """True utilities of step h when what follows is worth values: [s][a]."""
    following = [float(v) for v in np.asarray(values)[h + 1]]
    return [naive.action_values(p, r, h, s, following) for s in range(len(following))]


def truncated(p: naive.Table, r: naive.Table, values: ArrayLike, k: int) -> tuple[naive.Table, naive.Table]:
    """The MDP of the first k steps whose last reward is r + V̄_k(next state); k = H changes nothing as V̄_H = 0."""
    bonus = [float(v) for v in np.asarray(values)[k]]
    last = [[[x + bonus[t] for t, x in enumerate(cell)] for cell in row] for row in r[k - 1]]
    return p[:k], [*r[: k - 1], last]


def return_law(
    p: naive.Table, r: naive.Table, initial: Sequence[float], actions: Sequence[Sequence[int]], kind: str
) -> dict[float, float]:
    """Law of the total reward of one episode, totals rounded to 12 digits."""
    law: Counter[float] = Counter()
    for path, chance in naive.trajectory_law(p, r, initial, actions, kind).items():
        law[round(sum(path[2::2]), 12)] += chance  # type: ignore[assignment]
    return dict(law)


def greedy(counts: reprl.Counts) -> reprl.Policy:
    """What everyone does first: the lowest action with the best empirical utility, step by step from the last."""
    horizon, n_states, _ = counts.outcomes.shape
    actions = np.zeros((horizon, n_states), dtype=np.int64)
    value = np.zeros(n_states)
    for h in range(horizon - 1, -1, -1):
        scores = counts.mean_return(h, value)
        actions[h], value = scores.argmax(axis=1), scores.max(axis=1)
    return reprl.Policy(actions)

"""Slow, obvious versions of what reprl computes fast, written from the definitions with plain loops.

Nothing here imports reprl, and nothing here is clever: a test compares a kernel with the loop that defines it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

Table = list[list[list[list[float]]]]
"""[h][s][a][next state]."""


def philox4x32(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Philox4x32-10 of Salmon, Moraes, Dror and Shaw (2011), in whole numbers: four 32-bit words of one block."""
    mask = 2**32 - 1
    x, k = list(counter), list(key)
    for _ in range(10):
        left, right = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(right >> 32) ^ x[1] ^ k[0], right & mask, (left >> 32) ^ x[3] ^ k[1], left & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return x


def words(key: int, lane: int, start: int, n: int) -> list[int]:
    """The 64-bit words numbered start, …, start + n − 1: word i is half (i mod 2) of block ⌊i/2⌋ of the lane."""
    mask = 2**32 - 1
    out = []
    for i in range(start, start + n):
        block = i // 2
        x = philox4x32([block & mask, block >> 32, lane & mask, lane >> 32], [key & mask, key >> 32])
        out.append(x[2] | x[3] << 32 if i % 2 else x[0] | x[1] << 32)
    return out


def by_step(transition: ArrayLike, reward: ArrayLike, horizon: int) -> tuple[Table, Table]:
    """Write any accepted form of transition and reward out as [h][s][a][next state]."""
    p, r = np.asarray(transition, dtype=float), np.asarray(reward, dtype=float)
    n_states, n_actions = p.shape[-3], p.shape[-2]
    cell = (n_states, n_actions)

    def mean(h: int, s: int, a: int, t: int) -> float:
        if r.shape == cell:
            return float(r[s, a])
        if r.shape == (horizon, *cell):
            return float(r[h, s, a])
        if r.ndim == 3:
            return float(r[s, a, t])
        return float(r[0 if r.shape[0] == 1 else h, s, a, t])

    def law(h: int, s: int, a: int, t: int) -> float:
        return float(p[s, a, t]) if p.ndim == 3 else float(p[h, s, a, t])

    def table(entry) -> Table:
        return [
            [[[entry(h, s, a, t) for t in range(n_states)] for a in range(n_actions)] for s in range(n_states)]
            for h in range(horizon)
        ]

    return table(law), table(mean)


def action_values(p: Table, r: Table, h: int, s: int, value: Sequence[float]) -> list[float]:
    """Q_h(s, a) = Σ_t p(t) (r(t) + value(t)) for every action a."""
    return [sum(p[h][s][a][t] * (r[h][s][a][t] + value[t]) for t in range(len(value))) for a in range(len(p[h][s]))]


def backward_induction(p: Table, r: Table) -> tuple[list[list[float]], list[list[int]]]:
    """Optimal values [h][s] for h = 0, …, H and the lowest optimal action [h][s]."""
    n_states = len(p[0])
    values = [[0.0] * n_states]
    actions: list[list[int]] = []
    for h in reversed(range(len(p))):
        q = [action_values(p, r, h, s, values[0]) for s in range(n_states)]
        values.insert(0, [max(row) for row in q])
        actions.insert(0, [row.index(max(row)) for row in q])
    return values, actions


def policy_values(p: Table, r: Table, actions: Sequence[Sequence[int]]) -> list[list[float]]:
    """Expected reward to go of a policy, [h][s] for h = 0, …, H."""
    n_states = len(p[0])
    values = [[0.0] * n_states]
    for h in reversed(range(len(p))):
        values.insert(0, [action_values(p, r, h, s, values[0])[actions[h][s]] for s in range(n_states)])
    return values


def evaluate(p: Table, r: Table, initial: Sequence[float], actions: Sequence[Sequence[int]]) -> float:
    """Expected total reward of a policy."""
    values = policy_values(p, r, actions)
    return sum(initial[s] * values[0][s] for s in range(len(initial)))


def occupancy(p: Table, initial: Sequence[float], actions: Sequence[Sequence[int]]) -> list[list[float]]:
    """Pr[x_h = s] under a policy, [h][s] for h = 0, …, H − 1."""
    n_states = len(initial)
    mass = [list(initial)]
    for h in range(len(p) - 1):
        following = [0.0] * n_states
        for s in range(n_states):
            for t in range(n_states):
                following[t] += mass[h][s] * p[h][s][actions[h][s]][t]
        mass.append(following)
    return mass


def visits(
    p: Table, initial: Sequence[float], inside: Sequence[Sequence[bool]], actions: Sequence[Sequence[int]]
) -> float:
    """Σ_h Pr[x_h ∈ inside_h] under a policy."""
    mass = occupancy(p, initial, actions)
    return sum(mass[h][s] for h in range(len(p)) for s in range(len(initial)) if inside[h][s])


def all_policies(horizon: int, n_states: int, n_actions: int) -> Iterator[list[list[int]]]:
    """Every deterministic, time-dependent policy."""
    for flat in itertools.product(range(n_actions), repeat=horizon * n_states):
        yield [list(flat[h * n_states : (h + 1) * n_states]) for h in range(horizon)]


def best_visits(p: Table, initial: Sequence[float], inside: Sequence[Sequence[bool]]) -> float:
    """The most visits of any policy, by trying them all."""
    n_states, n_actions = len(initial), len(p[0][0])
    return max(visits(p, initial, inside, actions) for actions in all_policies(len(p), n_states, n_actions))


def outcome_law(p: Table, r: Table, h: int, s: int, a: int, reward_kind: str) -> dict[tuple[int, float], float]:
    """Law of (next state, reward) in one cell, possible outcomes only."""
    law: dict[tuple[int, float], float] = {}
    for t, chance in enumerate(p[h][s][a]):
        mean = r[h][s][a][t]
        if reward_kind == "deterministic":
            law[t, mean] = chance
        else:
            law[t, 0.0], law[t, 1.0] = chance * (1.0 - mean), chance * mean
    return {outcome: chance for outcome, chance in law.items() if chance > 0.0}


def trajectory_law(
    p: Table, r: Table, initial: Sequence[float], actions: Sequence[Sequence[int]], reward_kind: str
) -> dict[tuple[float, ...], float]:
    """Law of whole episodes (x_0, x_1, r_0, x_2, r_1, …) under a policy."""
    paths: dict[tuple[float, ...], float] = {(s,): chance for s, chance in enumerate(initial) if chance > 0.0}
    for h in range(len(p)):
        longer = {}
        for path, weight in paths.items():
            s = int(path[-2] if h else path[0])
            for (t, reward), chance in outcome_law(p, r, h, s, actions[h][s], reward_kind).items():
                longer[(*path, t, reward)] = weight * chance
        paths = longer
    return paths

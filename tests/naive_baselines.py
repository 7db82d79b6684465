"""Slow, obvious versions of the baselines, written from the papers' statements with plain loops. Nothing imports reprl.

A world is given by `draw(episode, number, h, s, a)`, which returns (next state, reward), and `start(episode)`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

Draw = Callable[[int, int, int, int], tuple[int, float]]
Start = Callable[[int], int]
Table = list[list[list[float]]]


def lowest_best(row: Sequence[float]) -> int:
    """The first index of the largest entry."""
    return list(row).index(max(row))


def ucb_h(
    sizes: tuple[int, int, int], start: Start, draw: Draw, *, episodes: int, c: float, delta: float
) -> tuple[list[list[int]], Table]:
    """Optimistic Q-learning (Jin et al. 2018, Algorithm 1) for (H, S, A)."""
    H, S, A = sizes
    q = [[[float(H)] * A for _ in range(S)] for _ in range(H)]
    v = [[float(H)] * S for _ in range(H)] + [[0.0] * S]
    n = [[[0] * A for _ in range(S)] for _ in range(H)]
    iota = math.log(S * A * episodes * H / delta)
    for k in range(episodes):
        s = start(k)
        for h in range(H):
            a = lowest_best(q[h][s])
            following, reward = draw(k, h, s, a)
            n[h][s][a] += 1
            t = n[h][s][a]
            rate = (H + 1) / (H + t)
            bonus = c * math.sqrt(H**3 * iota / t)
            q[h][s][a] = (1 - rate) * q[h][s][a] + rate * (reward + v[h + 1][following] + bonus)
            v[h][s] = min(float(H), max(q[h][s]))
            s = following
    return [[lowest_best(q[h][s]) for s in range(S)] for h in range(H)], q


class Seen:
    """What an agent has seen: every transition, by cell."""

    def __init__(self, sizes: tuple[int, int, int]) -> None:
        self.sizes = sizes
        self.steps: dict[tuple[int, int, int], list[tuple[int, float]]] = defaultdict(list)

    def values(
        self, bonus: Callable[[int, int], float], *, reward: bool = True, unseen: float = math.inf
    ) -> tuple[Table, list[list[float]]]:
        """Q_h = mean of r + V_{h+1}, plus bonus(h, n), and V_h = min(H − h, max Q_h), by backward induction."""
        H, S, A = self.sizes
        q = [[[0.0] * A for _ in range(S)] for _ in range(H)]
        v = [[0.0] * S for _ in range(H + 1)]
        for h in reversed(range(H)):
            for s in range(S):
                for a in range(A):
                    seen = self.steps[h, s, a]
                    if not seen:
                        q[h][s][a] = unseen
                        continue
                    total = 0.0  # outcome by outcome, rounded as a table of counts is: actions tie exactly, and often
                    for (t, r), count in sorted(Counter(seen).items()):
                        total += count * ((r if reward else 0.0) + v[h + 1][t])
                    q[h][s][a] = total / len(seen) + bonus(h, len(seen))
                v[h][s] = min(float(H - h), max(q[h][s]))
        return q, v


def optimistic_play(
    sizes: tuple[int, int, int],
    start: Start,
    draw: Draw,
    *,
    episodes: int,
    bonus: Callable[[int, int], float],
    reward: bool = True,
    growth: float = 0.0,
    stop: float = -1.0,
) -> tuple[Seen, int]:
    """Follow the optimistic plan, made anew after each episode, or when some cell has grown by `growth`."""
    seen, starts = Seen(sizes), set()
    q, _ = seen.values(bonus, reward=reward)
    planned = dict.fromkeys([(h, s, a) for h in range(sizes[0]) for s in range(sizes[1]) for a in range(sizes[2])], 0)
    for k in range(episodes):
        s = start(k)
        starts.add(s)
        for h in range(sizes[0]):
            a = lowest_best(q[h][s])
            following, paid = draw(k, h, s, a)
            seen.steps[h, s, a].append((following, paid))
            s = following
        grown = [c for c, n in planned.items() if len(seen.steps[c]) > n and len(seen.steps[c]) >= growth * n]
        if grown:
            q, v = seen.values(bonus, reward=reward)
            planned = {cell: len(seen.steps[cell]) for cell in planned}
            if max(v[0][x] for x in starts) <= stop:
                return seen, k + 1
    return seen, episodes


def greedy(q: Table) -> list[list[int]]:
    """The lowest best action everywhere."""
    return [[lowest_best(row) for row in rows] for rows in q]


def round_on_grid(x: float, width: float, shift: float) -> float:
    """The centre of the cell [width·(i + shift), width·(i + 1 + shift)) that holds x."""
    i = math.floor(x / width - shift)
    return width * (i + shift + 0.5)


def phased_values(
    sizes: tuple[int, int, int],
    samples: Callable[[int, int, int], list[tuple[int, float, int]]],
    rounding: Callable[[int, int, int, float], float],
    *,
    carry_rounded: bool,
) -> Table:
    """Backward induction on samples (next state, reward, how often), every value rounded.

    rPVI carries the rounded values on to the next phase, Karbasi et al. round what an ordinary induction found.
    """
    H, S, A = sizes
    value = [0.0] * S
    out: Table = []
    for h in reversed(range(H)):
        raw = [[0.0] * A for _ in range(S)]
        for s in range(S):
            for a in range(A):
                rows = samples(h, s, a)
                raw[s][a] = sum(n * (r + value[t]) for t, r, n in rows) / sum(n for _, _, n in rows)
        rounded = [[rounding(h, s, a, raw[s][a]) for a in range(A)] for s in range(S)]
        value = [max(row) for row in (rounded if carry_rounded else raw)]
        out.insert(0, rounded)
    return out


def first_within(q: Table, tolerance: float) -> list[list[int]]:
    """In every cell the first action whose value is at least the best one less the tolerance (Zhang et al. 2025)."""
    out: list[list[int]] = []
    for rows in q:
        out.append([])
        for row in rows:
            a = 0
            while row[a] < max(row) - tolerance:
                a += 1
            out[-1].append(a)
    return out


def rmax_plan(
    sizes: tuple[int, int, int], known: dict[tuple[int, int, int], tuple[list[float], float]]
) -> list[list[int]]:
    """The optimal policy where unknown pairs are worth H − h."""
    H, S, A = sizes
    value = [0.0] * S
    policy: list[list[int]] = []
    for h in reversed(range(H)):
        q = [[float(H - h)] * A for _ in range(S)]
        for s in range(S):
            for a in range(A):
                if (h, s, a) in known:
                    law, reward = known[h, s, a]
                    q[s][a] = reward + sum(law[t] * value[t] for t in range(S))
        policy.insert(0, [lowest_best(row) for row in q])
        value = [max(row) for row in q]
    return policy


def rmax(
    sizes: tuple[int, int, int],
    play: Callable[[list[list[int]]], tuple[list[list[list[int]]], list[list[float]]]],
    *,
    episodes: int,
    reach: float,
    width: float,
    threshold_shift: Callable[[int], float],
    grid_shift: Callable[[int, int, int, int], float],
    rounds: int,
) -> list[list[int]]:
    """Replicable R-max: plan, play, threshold, round, freeze; until nothing becomes known."""
    H, S, _ = sizes
    known: dict[tuple[int, int, int], tuple[list[float], float]] = {}
    policy = rmax_plan(sizes, known)
    for number in range(rounds):
        following, paid = play(policy)
        threshold = max(1.0, reach * episodes * (1 + threshold_shift(number)))
        fresh = {}
        for h in range(H):
            for s in range(S):
                a, n = policy[h][s], sum(following[h][s])
                if (h, s, a) in known or n < threshold:
                    continue
                law = []
                for t in range(S):
                    share = round_on_grid(following[h][s][t] / n, width, grid_shift(h, s, a, t))
                    law.append(share if share > width / 2 else 0.0)
                if sum(law) == 0:
                    law = [1.0] * S
                reward = round_on_grid(paid[h][s] / n, width, grid_shift(h, s, a, S))
                fresh[h, s, a] = ([x / sum(law) for x in law], min(1.0, max(0.0, reward)))
        if not fresh:
            break
        known.update(fresh)
        policy = rmax_plan(sizes, known)
    return policy

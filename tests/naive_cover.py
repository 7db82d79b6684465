"""cover written with lists, dictionaries and loops, one episode at a time; and the exact law of what a batch shows.

Nothing here imports reprl. A world is a function from (h, s, a) to a list of (probability, next state, reward).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from random import Random

World = Callable[[int, int, int], list[tuple[float, int, float]]]
Record = tuple[int, int, int, int, float]
"""(h, s, a, next state, reward)."""
Table = tuple[tuple[Record, int], ...]
"""Tallies of records, sorted."""


def as_table(records: Mapping[Record, int]) -> Table:
    """Tallies as something that can be counted itself."""
    return tuple(sorted((record, n) for record, n in records.items() if n))


def play(world: World, start: Sequence[float], actions: Sequence[Sequence[int]], n: int, random: Random) -> Table:
    """Play n episodes, one after the other."""
    records: Counter[Record] = Counter()
    for _ in range(n):
        state = random.choices(range(len(start)), start)[0]
        for h, row in enumerate(actions):
            rows = world(h, state, row[state])
            _, following, reward = random.choices(rows, [p for p, _, _ in rows])[0]
            records[h, state, row[state], following, reward] += 1
            state = following
    return as_table(records)


def trajectories(
    world: World, start: Sequence[float], actions: Sequence[Sequence[int]]
) -> Iterator[tuple[float, list[Record]]]:
    """Every episode that can happen, with its probability."""

    def go_on(h: int, state: int, chance: float, seen: list[Record]) -> Iterator[tuple[float, list[Record]]]:
        if h == len(actions):
            yield chance, seen
            return
        action = actions[h][state]
        for p, following, reward in world(h, state, action):
            yield from go_on(h + 1, following, chance * p, [*seen, (h, state, action, following, reward)])

    for state, p in enumerate(start):
        if p > 0.0:
            yield from go_on(0, state, p, [])


def law_of_batch(world: World, start: Sequence[float], actions: Sequence[Sequence[int]], n: int) -> dict[Table, float]:
    """The law of the tallies of n independent episodes, by going through all of them."""
    law: Counter[Table] = Counter()
    for batch in product(list(trajectories(world, start, actions)), repeat=n):
        chance, records = 1.0, Counter[Record]()
        for p, seen in batch:
            chance *= p
            records.update(seen)
        law[as_table(records)] += chance  # type: ignore[assignment]
    return dict(law)


def worths(
    tallies: Mapping[Record, int], weight: Callable[[int, int, int], float], shape: tuple[int, int, int]
) -> dict[tuple[int, int, int], float]:
    """Expected sum of bonuses from every (h, s, a) on, if the best is done after it, in the empirical model."""
    horizon, n_states, n_actions = shape
    q: dict[tuple[int, int, int], float] = {}
    for h in reversed(range(horizon)):
        for s, a in product(range(n_states), range(n_actions)):
            rows = [(record[3], n) for record, n in tallies.items() if record[:3] == (h, s, a)]
            total = sum(n for _, n in rows)
            q[h, s, a] = (weight(h, s, a) + 1.0 / (total + 1.0)) / (total + 0.5) ** 2
            for following, n in rows:
                if h + 1 < horizon:
                    q[h, s, a] += n / total * max(q[h + 1, following, b] for b in range(n_actions))
    return q

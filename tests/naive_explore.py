"""QAgent and QExplore written from the paper with lists and loops, one word at a time; and exact reachability.

Nothing here imports reprl. `record_real` makes the variant that the paper warns of: it also keeps what real actions
showed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests import naive

Alias = tuple[list[int], list[int]]
"""Rows and buckets of an alias table, as draws.py lays them out."""


class World(NamedTuple):
    """An MDP as the kernel sees it, in lists."""

    n_states: int
    n_actions: int
    horizon: int
    row_shift: int
    slot_shift: int
    n_slots: int
    next_state: list[int]
    table: Alias
    start_state: list[int]
    start: Alias


class Agent(NamedTuple):
    """Bonus constant, bonus of real actions relative to phantoms, failure probability, and K."""

    bonus: float
    guide: float
    failure: float
    episodes: int


def world_of(arrays: Any) -> World:
    """Copy EpisodeArrays into lists."""
    table = arrays.outcomes
    return World(
        table.n_states,
        table.n_actions,
        table.horizon,
        table.row_shift,
        table.slot_shift,
        table.next_state.size + (table.horizon - 1) * table.slot_shift,
        table.next_state.tolist(),
        (arrays.table.row.tolist(), arrays.table.bucket.tolist()),
        arrays.start_state.tolist(),
        (arrays.start.row.tolist(), arrays.start.bucket.tolist()),
    )


def draw(alias: Alias, row: int, word: int) -> int:
    """The top b bits of the word pick a bucket of the row, the others are compared with its cutoff."""
    rows, buckets = alias
    first_bucket, shift = rows[row] // 64, rows[row] % 64
    high, low = word >> shift, word & ((1 << shift) - 1)
    cutoff, pair = buckets[2 * (first_bucket + high)], buckets[2 * (first_bucket + high) + 1]
    return pair % 2**32 if low < cutoff else pair // 2**32


class Explorer:
    """One run of QExplore: Q[h][s][action], actions A, …, 2A − 1 being the phantoms of 0, …, A − 1."""

    def __init__(self, world: World, agent: Agent, key: int, run: int, *, record_real: bool = False) -> None:
        S, A, H = world.n_states, world.n_actions, world.horizon
        self.world, self.agent, self.key, self.run, self.record_real = world, agent, key, run, record_real
        self.log = math.log(2.0 * S * A * agent.episodes * H / agent.failure)
        self.q = [[[float(H)] * (2 * A) for _ in range(S)] for _ in range(H)]
        self.q[H - 1] = [[-math.inf] * A + [float(H)] * A for _ in range(S)]
        self.value = [[float(H)] * S for _ in range(H)] + [[0.0] * S]
        self.visits = [[[0] * (2 * A) for _ in range(S)] for _ in range(H)]
        self.hits = [0] * world.n_slots
        self.position = 0
        self.samples = 0
        self.last: dict[tuple[int, int, int], int] = {}
        self._words: list[int] = []

    def word(self) -> int:
        """The next word of the run's stream."""
        at = self.position % 32
        if at == 0:
            self._words = naive.words(self.key, self.run, self.position, 32)
        self.position += 1
        self.samples += 1
        return self._words[at]

    def choice(self, h: int, s: int) -> int:
        """The lowest of the actions with the largest Q."""
        return self.q[h][s].index(max(self.q[h][s]))

    def learn(self, h: int, s: int, action: int, future: float) -> None:
        """One update of Q-learning with bonus and reward 0."""
        H = self.world.horizon
        self.visits[h][s][action] += 1
        t = self.visits[h][s][action]
        rate = (H + 1.0) / (H + t)
        bonus = self.agent.bonus * math.sqrt(H**3 * self.log) / math.sqrt(t)
        if action < self.world.n_actions:
            bonus *= self.agent.guide
        self.q[h][s][action] = (1.0 - rate) * self.q[h][s][action] + rate * (future + bonus)
        self.value[h][s] = min(float(H), max(self.q[h][s]))

    def record(self, h: int, s: int, a: int, e: int) -> None:
        self.hits[e + h * self.world.slot_shift] += 1
        self.last[h, s, a] = e

    def episode(self) -> None:
        """Play until a phantom is taken; there is one at the last step at the latest."""
        world, A = self.world, self.world.n_actions
        s = world.start_state[0]
        if len(world.start_state) > 1:
            s = world.start_state[draw(world.start, 0, self.word())]
        for h in range(world.horizon):
            action = self.choice(h, s)
            a = action % A
            e = draw(world.table, h * world.row_shift + s * A + a, self.word())
            if action >= A:
                self.record(h, s, a, e)
                self.learn(h, s, action, 0.0)
                return
            if self.record_real:
                self.record(h, s, a, e)
            following = world.next_state[e]
            self.learn(h, s, action, self.value[h + 1][following])
            s = following
        raise AssertionError("the last step offers only phantoms")

    def short(self, quota: int) -> list[list[bool]]:
        """Which (h, s) have an action with fewer records than the quota."""
        A = self.world.n_actions
        return [[min(row[A:]) < quota for row in step] for step in self.visits]


def reachability(
    p: naive.Table, inside: Sequence[Sequence[bool]], *, n_states: int, n_actions: int
) -> list[list[float]]:
    """Most visits to the set that any policy expects from (h, s) on: R_h(s) = 1{s ∈ I_h} + max_a Σ p R_{h+1}."""
    reach = [[0.0] * n_states]
    for h in reversed(range(len(p))):
        reach.insert(
            0,
            [
                inside[h][s] + max(sum(p[h][s][a][t] * reach[0][t] for t in range(n_states)) for a in range(n_actions))
                for s in range(n_states)
            ],
        )
    return reach

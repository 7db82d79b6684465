"""Totals: the runs of all keys of an audit, added up key by key."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reprl.auditing.divergence import Divergence
from reprl.auditing.exact_quantities import TIE
from reprl.auditing.pairs import KeyRuns, Trial
from reprl.auditing.policies import PolicyCounts
from reprl.auditing.record import Cell, Spread
from reprl.mdp.tabular import TabularMDP

MAX_CELLS = 100
"""Disagreeing cells that a report lists."""


class Totals:
    """Sums over keys, so that memory does not grow with them beyond a few numbers each."""

    def __init__(self, trial: Trial) -> None:
        world = trial.world
        self.scores, self.episodes = trial.scores, trial.episodes
        self.keys, self.hits, self.samples = 0, 0, 0
        self.rate = 0.0
        self.apart = np.zeros((world.horizon, world.n_states))
        self.stake = np.zeros((world.horizon, world.n_states))
        self.choices = np.zeros((world.horizon, world.n_states, world.n_actions), dtype=np.int32)
        self.distinct: list[int] = []
        self.gaps: list[float] = []
        self.values: list[float] = []
        self.divergences: list[Divergence] = []
        self.policies = PolicyCounts(self.apart.shape, trial.reachable)

    def add(self, found: KeyRuns) -> int:
        """Count the runs of one key, and return how many pairs differ so far."""
        actions = found.actions
        n_pairs = len(actions) * (len(actions) - 1) // 2
        self.keys += 1
        self.samples += sum(found.samples)
        groups = [int(n) for n in np.unique(actions.reshape(len(actions), -1), axis=0, return_counts=True)[1]]
        self.distinct.append(len(groups))
        self.hits += not np.array_equal(actions[0], actions[1])
        self.rate += 1.0 - sum(n * (n - 1) // 2 for n in groups) / n_pairs
        together = np.zeros(self.apart.shape)
        for a in range(self.choices.shape[2]):
            chose = (actions == a).sum(axis=0)
            self.choices[:, :, a] += chose.astype(np.int32)
            together += chose * (chose - 1) // 2
        self.apart += 1.0 - together / n_pairs
        if self.scores is not None:
            worth = np.take_along_axis(self.scores[None], actions[..., None].astype(np.int64), axis=3)[..., 0]
            np.maximum(self.stake, worth.max(axis=0) - worth.min(axis=0), out=self.stake)
        self.policies.add(actions, found.visits, found.values)
        if found.values is not None:
            self.values.extend(found.values)
            self.gaps.extend(abs(one - two) for one, two in combinations(found.values, 2))
        if found.divergence is not None:
            self.divergences.append(found.divergence)
        return self.hits

    def cells(
        self, by_cell: NDArray[np.float64], weights: NDArray[np.float64] | None, reached: NDArray[np.bool_]
    ) -> tuple[Cell, ...]:
        """The disagreeing cells that are reached, those that matter most first."""
        places = np.argwhere((by_cell > 0.0) & reached)
        often = self.policies.visits if weights is None and self.policies.values else weights
        weight = by_cell if often is None else by_cell * often
        order = sorted((-float(weight[h, s]), -float(by_cell[h, s]), int(h), int(s)) for h, s in places)
        return tuple(self._cell(h, s, by_cell, weights) for _, _, h, s in order[:MAX_CELLS])

    def _cell(self, h: int, s: int, by_cell: NDArray[np.float64], weights: NDArray[np.float64] | None) -> Cell:
        chose = self.choices[h, s]
        order = np.argsort(-chose, kind="stable")
        actions = tuple((int(a), float(chose[a] / chose.sum())) for a in order if chose[a])
        stake = None if self.scores is None else float(self.stake[h, s])
        if stake is not None and stake <= TIE:
            stake = 0.0
        reach = None if weights is None else float(weights[h, s])
        visited = None
        if self.policies.values:
            visited = float(self.policies.visits[h, s] / (self.policies.runs.total() * self.episodes))
        return Cell(h, s, float(by_cell[h, s]), reach, stake, actions, visited)


def loss_of(mdp: TabularMDP, values: list[float]) -> Spread:
    """What policies of these values lose against the best."""
    best = float(mdp.initial @ mdp.solve().values[0])
    return spread_of([best - value for value in values])


def spread_of(figures: list[float]) -> Spread:
    """Mean and maximum."""
    return Spread(float(np.mean(figures)), float(np.max(figures)))

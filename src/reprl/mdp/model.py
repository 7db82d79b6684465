"""Model: a true or an estimated MDP as one flat table, and the two passes over it: solve (backward), occupancy (forward).

A discounted model has one row of cells and γ > 0. A pass is then repeated, with γ times its first row behind its last,
until nothing moves. Sums go in the order of the table, so that results are the same bits everywhere.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit, read_only
from reprl.mdp.tabular import TabularMDP

STILL = 1e-15
"""A repeated pass ends when its first row moves by no more, or when γ to the number of passes is no more: rounding may
keep a row moving for ever."""


class Model(NamedTuple):
    """Cell (h, s, a) owns the outcomes first[row] ≤ e < first[row + 1] with row = h·shift + s·A + a."""

    first: NDArray[np.int64]
    next_state: NDArray[np.int32]
    reward: NDArray[np.float64]
    law: NDArray[np.float64]
    """Probability of every outcome within its row."""
    shift: int
    """Rows between a step and the next: 0 where all steps share their rows, S·A otherwise."""
    allowed: NDArray[np.bool_]
    """(H, S, A); H is 1 in a discounted model."""
    initial: NDArray[np.float64]
    """(S,)"""
    gamma: float
    """0 where there is a horizon."""

    @property
    def length(self) -> float:
        """The most that rewards in [0, 1] can add up to: H, or 1/(1 − γ)."""
        return 1.0 / (1.0 - self.gamma) if self.gamma else float(len(self.allowed))


@njit(cache=True, inner=True)
def worth(model: Model, row: int, following: NDArray[np.float64]) -> float:
    """Return the mean of reward and next value in a row."""
    total = 0.0
    for e in range(model.first[row], model.first[row + 1]):
        total += model.law[e] * (model.reward[e] + following[model.next_state[e]])
    return total


@njit(cache=True, inner=True)
def still(model: Model, values: NDArray[np.float64], moved: float) -> bool:
    """Whether a backward pass was the last; else put γ times the first row behind the last one."""
    if model.gamma == 0.0 or moved <= STILL:
        return True
    last = values.shape[0] - 1
    for s in range(values.shape[1]):
        values[last, s] = model.gamma * values[0, s]
    return False


@njit(cache=True, nogil=True)
def solve(model: Model, values: NDArray[np.float64], gaps: NDArray[np.float64]) -> None:
    """Fill V*, (H+1, S), and how much less than V* each allowed action is worth, (H, S, A): ∞ where it is not allowed."""
    horizon, n_states, n_actions = model.allowed.shape
    values[:], left = 0.0, 1.0
    while True:
        moved, left = 0.0, left * model.gamma
        for h in range(horizon - 1, -1, -1):
            for s in range(n_states):
                best = -math.inf
                for a in range(n_actions):
                    gaps[h, s, a] = -math.inf
                    if model.allowed[h, s, a]:
                        gaps[h, s, a] = worth(model, h * model.shift + s * n_actions + a, values[h + 1])
                        best = max(best, gaps[h, s, a])
                for a in range(n_actions):
                    gaps[h, s, a] = best - gaps[h, s, a]
                moved, values[h, s] = max(moved, abs(best - values[h, s])), best
        if still(model, values, min(moved, left)):
            return


@njit(cache=True, nogil=True)
def evaluate(model: Model, play: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Fill the values, (H+1, S), of laws of actions, (H, S, A)."""
    horizon, n_states, n_actions = model.allowed.shape
    values[:], left = 0.0, 1.0
    while True:
        moved, left = 0.0, left * model.gamma
        for h in range(horizon - 1, -1, -1):
            for s in range(n_states):
                total = 0.0
                for a in range(n_actions):
                    if play[h, s, a] > 0.0:
                        total += play[h, s, a] * worth(model, h * model.shift + s * n_actions + a, values[h + 1])
                moved, values[h, s] = max(moved, abs(total - values[h, s])), total
        if still(model, values, min(moved, left)):
            return


@njit(cache=True, nogil=True)
def occupancy(model: Model, play: NDArray[np.float64], visits: NDArray[np.float64]) -> None:
    """Fill Pr[x_h = s], (H, S), or Σ_t γ^t Pr[x_t = s], (1, S), for laws of actions, (H, S, A)."""
    horizon, n_states, n_actions = model.allowed.shape
    here, there = model.initial.copy(), np.zeros(n_states)
    visits[:] = 0.0
    while True:
        for h in range(horizon):
            there[:] = 0.0
            for s in range(n_states):
                visits[h, s] += here[s]
                for a in range(n_actions if h + 1 < horizon or model.gamma > 0.0 else 0):
                    if here[s] > 0.0 and play[h, s, a] > 0.0:
                        mass, row = here[s] * play[h, s, a], h * model.shift + s * n_actions + a
                        for e in range(model.first[row], model.first[row + 1]):
                            there[model.next_state[e]] += mass * model.law[e]
            here, there = there, here
        left = 0.0
        for s in range(n_states):
            here[s] *= model.gamma
            left += here[s]
        if left <= STILL:
            return


@njit(cache=True)
def from_start(model: Model, values: NDArray[np.float64]) -> float:
    """Return the mean value over the start."""
    total = 0.0
    for s in range(model.initial.size):
        total += model.initial[s] * values[0, s]
    return total


def true_model(mdp: TabularMDP) -> Model:
    """Return a known MDP as a model."""
    table, gamma = mdp.outcomes, mdp.discount or 0.0
    allowed = np.ones(table.shape, dtype=np.bool_) if mdp.allowed is None else np.array(mdp.allowed, order="C")
    law, initial = read_only(mdp.probability), read_only(np.asarray(mdp.initial))
    return Model(table.first, table.next_state, table.reward, law, table.row_shift, allowed, initial, gamma)


def one_hot(actions: NDArray[np.int64], n_actions: int) -> NDArray[np.float64]:
    """Return a policy, (H, S), as laws of actions, (H, S, A)."""
    return np.equal.outer(actions, np.arange(n_actions)).astype(np.float64)

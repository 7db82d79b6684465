"""Outcomes: the sparse table of what one sample can show, and the two kernels that read it.

One sample of a cell (h, s, a) is one *outcome*: a pair (next state, reward). A Bernoulli reward of mean r turns a
successor into two outcomes, reward 0 and reward 1; a deterministic reward into one. So the law of a cell is one
categorical distribution, a data set is one whole number per outcome, and next states and rewards may depend on each
other freely.

Rows of a time-homogeneous table are shared by all steps: ``row_shift`` is 0, nothing is copied, and tallies get their
own slots per step through ``slot_shift``. Where the steps' tallies are added up too, the table is *pooled*: both shifts
are 0, and every step reads the same slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit, read_only


class Outcomes(NamedTuple):
    """Rows of outcomes: cell (h, s, a) owns first[row] ≤ e < first[row + 1] with row = h·row_shift + s·A + a."""

    horizon: int
    n_states: int
    n_actions: int
    row_shift: int
    """Rows between a step and the next: 0 when all steps share one table, S·A otherwise."""
    slot_shift: int
    """Tally slots between a step and the next: the number of outcomes when steps share a table but not their tallies, 0
    otherwise."""
    first: NDArray[np.int64]
    next_state: NDArray[np.int32]
    reward: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, S, A)."""
        return self.horizon, self.n_states, self.n_actions

    @property
    def n_slots(self) -> int:
        """Length of an array that holds one number per step and outcome."""
        return self.next_state.size + (self.horizon - 1) * self.slot_shift

    @property
    def pooled(self) -> bool:
        """Whether all steps share their rows and their tallies."""
        return self.row_shift == 0 and self.slot_shift == 0

    @property
    def tallied(self) -> tuple[int, int, int]:
        """(H, S, A), or (1, S, A) where the steps' tallies are pooled: the cells that have tallies of their own."""
        return (1 if self.pooled else self.horizon), self.n_states, self.n_actions

    def protected(self) -> Outcomes:
        """Return the table with read-only arrays, as kernels are compiled for these."""
        flags = (self.first.flags, self.next_state.flags, self.reward.flags)
        if not any(flag.writeable for flag in flags):
            return self
        first, next_state = read_only(self.first), read_only(self.next_state)
        return self._replace(first=first, next_state=next_state, reward=read_only(self.reward))

    def slots(self, h: int, s: int, a: int) -> tuple[slice, slice]:
        """The outcomes of a cell, as a slice of the table, and their tally slots, as a slice of an array of n_slots."""
        row = h * self.row_shift + s * self.n_actions + a
        low, high = int(self.first[row]), int(self.first[row + 1])
        return slice(low, high), slice(low + h * self.slot_shift, high + h * self.slot_shift)

    def same_table(self, other: Outcomes) -> bool:
        """Whether tallies over self and other count the same things slot by slot."""
        return self[:5] == other[:5] and all(
            mine is theirs or np.array_equal(mine, theirs)
            for mine, theirs in (
                (self.first, other.first),
                (self.next_state, other.next_state),
                (self.reward, other.reward),
            )
        )


@njit(cache=True)
def expected_return(
    outcomes: Outcomes,
    weight: NDArray[np.float64] | NDArray[np.int64],
    weight_shift: int,
    h: int,
    value: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Fill out (S, A) with Σ weight · (reward + value[next state]) over the outcomes of step h, in table order."""
    for s in range(outcomes.n_states):
        for a in range(outcomes.n_actions):
            row = h * outcomes.row_shift + s * outcomes.n_actions + a
            total = 0.0
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                total += weight[e + h * weight_shift] * (outcomes.reward[e] + value[outcomes.next_state[e]])
            out[s, a] = total


@njit(cache=True)
def step_forward(
    outcomes: Outcomes,
    probability: NDArray[np.float64],
    h: int,
    actions: NDArray[np.int64],
    mass: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Fill out (S,) with the state distribution of step h + 1, given that of step h and the actions taken there."""
    for s in range(outcomes.n_states):  # one by one: to fill a whole array takes longer to compile
        out[s] = 0.0
    for s in range(outcomes.n_states):
        if mass[s] == 0.0:
            continue
        row = h * outcomes.row_shift + s * outcomes.n_actions + actions[s]
        for e in range(outcomes.first[row], outcomes.first[row + 1]):
            out[outcomes.next_state[e]] += mass[s] * probability[e]

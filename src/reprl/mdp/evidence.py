"""Evidence: what a run has seen, in two halves, laid out as the rule reads it and as simulated teams redraw it.

Behind the outcomes that samples have shown, every row has three places for one that none has shown: it leads to the
worst state with the least reward, to the best with the largest, or to the lossy one with a middle reward. In the run's
own estimate they have probability 0, but in a row without samples, which leads to the worst state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data, full_mask
from reprl.mdp.model import Model, solve

WORST, BEST, LOSSY = 0, 1, 2
"""The places for outcomes that no sample has shown, by number."""
REWARDS = (0.0, 1.0, 0.5)


class Evidence(NamedTuple):
    """Samples of a run by half, and the models that they show."""

    model: Model
    """The run's own estimate."""
    hits: NDArray[np.int64]
    """(2, outcomes): by half."""
    starts: NDArray[np.int64]
    """(2, S): by half."""
    exact: NDArray[np.bool_]
    """(rows,): rows whose law is known. They are never redrawn."""
    fixed_start: bool
    """Whether the environment says that every episode begins in one state."""

    @property
    def total(self) -> NDArray[np.int64]:
        """Both halves, (outcomes,)."""
        return np.asarray(self.hits.sum(axis=0))

    @property
    def samples(self) -> NDArray[np.int64]:
        """(rows,): the samples of each row."""
        return np.add.reduceat(self.total, self.model.first[:-1])

    def allow(self, allowed: NDArray[np.bool_]) -> Evidence:
        """Return the evidence with other actions allowed, (H, S, A)."""
        allowed = np.ascontiguousarray(allowed[: len(self.model.allowed)])
        return self._replace(model=estimate(self.model._replace(allowed=allowed), self.total))

    def half(self, number: int) -> Model:
        """Return the estimate of one half alone; rows without samples lead to its worst state."""
        starts = self.starts[number] if self.starts[number].any() else self.starts.sum(axis=0)
        return estimate(self.model._replace(initial=starts / starts.sum()), self.hits[number])

    def crossed(self) -> NDArray[np.float64]:
        """Return the laws of the halves, (2, outcomes); a row that one of them lacks keeps the pooled law in both."""
        laws = np.array([frequencies(self.model.first, half) for half in self.hits])
        missing = (np.add.reduceat(self.hits, self.model.first[:-1], axis=1) == 0).any(axis=0)
        return np.where(np.repeat(missing, np.diff(self.model.first)), self.model.law, laws)


def lay_out(
    one: Data, two: Data, *, exact: tuple[int, ...] = (), fixed_start: bool = False, gamma: float = 0.0
) -> Evidence:
    """Lay two halves of a run's samples out.

    Args:
        one: the first half; steps pooled in both or in none.
        two: the second half.
        exact: states whose rows are known.
        fixed_start: whether the environment says that every episode begins in one state.
        gamma: of a discounted environment, whose steps are pooled; 0 where there is a horizon.
    """
    both = (one + two).counts
    table, allowed = both.outcomes, full_mask(one.allowed, both.outcomes.shape)
    steps, n_states, n_actions = table.tallied
    copies = steps if table.slot_shift else 1
    lengths = np.tile(np.diff(table.first), copies)
    halves = [(Counts(table, np.zeros_like(both.hits)) + each.counts).hits for each in (one, two)]
    seen = both.hits > 0
    rows = np.repeat(np.arange(lengths.size), lengths)[seen]
    kept = np.bincount(rows, minlength=lengths.size)
    first = np.concatenate([[0], np.cumsum(kept + len(REWARDS))])
    slots = np.arange(rows.size) + len(REWARDS) * rows
    next_state, reward = np.zeros(first[-1], np.int32), np.tile(0.0, first[-1])
    hits = np.zeros((2, first[-1]), dtype=np.int64)
    next_state[slots], reward[slots] = np.tile(table.next_state, copies)[seen], np.tile(table.reward, copies)[seen]
    reward[first[1:, None] - len(REWARDS) + np.arange(len(REWARDS))] = REWARDS
    for half, found in zip(hits, halves, strict=True):
        half[slots] = found[seen]
    starts = np.array([one.starts, two.starts])
    shift = 0 if steps == 1 and table.horizon > 1 else n_states * n_actions
    if gamma:
        shift, allowed = 0, allowed[:1]
    law, initial = np.zeros(first[-1]), starts.sum(axis=0) / starts.sum()
    model = estimate(Model(first, next_state, reward, law, shift, allowed, initial, gamma), hits.sum(axis=0))
    known = np.zeros((steps, n_states, n_actions), dtype=np.bool_)
    known[:, list(exact)] = True
    return Evidence(model, hits, starts, known.ravel(), fixed_start)


def estimate(model: Model, hits: NDArray[np.int64]) -> Model:
    """Return the model of relative frequencies, in which rows without samples lead to the worst state.

    That is the state with the least V*, averaged over steps, where they lead to state 0.
    """
    law = frequencies(model.first, hits)
    found = model._replace(law=law, next_state=_lead(model, WORST, 0))
    empty = np.add.reduceat(hits, model.first[:-1]) == 0
    if not empty.any():
        return found
    values, gaps = np.empty((len(model.allowed) + 1, model.initial.size)), np.empty(model.allowed.shape)
    solve(found, values, gaps)
    return found._replace(next_state=_lead(model, WORST, int(values[1:].mean(axis=0).argmin())))


def hopeful(model: Model, samples: NDArray[np.int64], values: NDArray[np.float64]) -> Model:
    """Return the model in which rows without samples lead to the best state, by values (H+1, S), and pay most."""
    law = model.law.copy()
    empty = model.first[1:][samples == 0]
    law[empty - len(REWARDS) + WORST], law[empty - len(REWARDS) + BEST] = 0.0, 1.0
    return model._replace(law=law, next_state=_lead(model, BEST, int(values[1:].mean(axis=0).argmax())))


def _lead(model: Model, place: int, state: int) -> NDArray[np.int32]:
    """Return next states in which one place of every row leads to a state."""
    found = model.next_state.copy()
    found[model.first[1:] - len(REWARDS) + place] = state
    return found


def frequencies(first: NDArray[np.int64], hits: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return relative frequencies within each row; where there are none, 1 for the place of the worst state."""
    law = np.empty(hits.size)
    _normalise(first, hits, law)
    return law


@njit(cache=True, nogil=True)
def _normalise(first: NDArray[np.int64], hits: NDArray[np.int64], law: NDArray[np.float64]) -> None:
    """Fill law with the relative frequencies of each row."""
    for row in range(first.size - 1):
        total = 0
        for e in range(first[row], first[row + 1]):
            total += hits[e]
        for e in range(first[row], first[row + 1]):
            law[e] = hits[e] / total if total > 0 else 0.0
        if total == 0:
            law[first[row + 1] - 3] = 1.0

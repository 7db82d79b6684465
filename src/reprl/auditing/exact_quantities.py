"""Exact quantities of an environment whose dynamics are known: action values, and how likely cells can be reached."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.outcomes import expected_return
from reprl.mdp.tabular import TabularMDP

TIE = 1e-9
"""Two actions whose optimal values differ by no more than this are an exact tie."""
_COLUMNS = 256


def optimal_scores(mdp: TabularMDP) -> NDArray[np.float64]:
    """Return Q*, (H, S, A): what an action is worth if the best actions follow."""
    values = mdp.solve().values
    scores = np.empty((mdp.horizon, mdp.n_states, mdp.n_actions))
    for h in range(mdp.horizon):
        expected_return(mdp.outcomes, mdp.probability, 0, h, values[h + 1], scores[h])
    return scores


def reachable(mdp: TabularMDP) -> NDArray[np.bool_]:
    """Return the cells, (H, S), that some policy reaches with positive probability."""
    found = np.zeros((mdp.horizon, mdp.n_states), dtype=np.bool_)
    found[0] = mdp.initial > 0.0
    kernels = _kernels(mdp)
    for h in range(mdp.horizon - 1):
        from_here = np.repeat(found[h], mdp.n_actions)
        if mdp.allowed is not None:
            from_here &= mdp.allowed[h].ravel()
        found[h + 1] = kernels[h if len(kernels) > 1 else 0].T @ from_here.astype(np.float64) > 0.0
    return found


def largest_reach(mdp: TabularMDP, cells: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return max_π Pr[x_h = s] of every marked cell, (H, S); 0 elsewhere.

    Of a discounted world (1 − γ)·Σ_t γ^t Pr[x_t = s], (1, S): the chance to be there when a step of γ^t's law ends.
    """
    most = np.zeros(cells.shape)
    if mdp.criterion.stationary:
        for s in np.flatnonzero(cells[0]):
            most[0, s] = (1.0 - mdp.criterion.gamma) * mdp.reachability(np.arange(mdp.n_states)[None] == s)
        return most
    columns = np.flatnonzero(cells.any(axis=0))
    for low in range(0, columns.size, _COLUMNS):
        part = columns[low : low + _COLUMNS]
        most[:, part] = _most_visits(mdp, part)
    return np.where(cells, np.minimum(most, 1.0), 0.0)


def _most_visits(mdp: TabularMDP, states: NDArray[np.intp]) -> NDArray[np.float64]:
    """(H, n): the greatest probability of being in each of n states at each step, by induction from that step back."""
    targets = np.zeros((mdp.n_states, states.size))
    targets[states, np.arange(states.size)] = 1.0
    kernels = _kernels(mdp)
    most = np.empty((mdp.horizon, states.size))
    if len(kernels) == 1:  # one table for all steps: h steps before the target look the same wherever the target is
        for h in range(mdp.horizon):
            most[h] = mdp.initial @ targets
            targets = _best(kernels[0] @ targets, mdp.n_actions)
        return most
    for h in range(mdp.horizon):
        here = targets
        for back in reversed(range(h)):
            here = _best(kernels[back] @ here, mdp.n_actions)
        most[h] = mdp.initial @ here
    return most


def _best(rows: NDArray[np.float64], n_actions: int) -> NDArray[np.float64]:
    best: NDArray[np.float64] = rows.reshape(-1, n_actions, rows.shape[1]).max(axis=1)
    return best


def _kernels(mdp: TabularMDP) -> list[Any]:
    """Sparse (S·A, S) transition matrices, one per step or one for all."""
    from scipy.sparse import csr_array

    table, rows = mdp.outcomes, mdp.n_states * mdp.n_actions
    kernels = []
    for start in range(0, table.first.size - 1, rows):
        first = table.first[start : start + rows + 1]
        part = slice(int(first[0]), int(first[-1]))
        kernels.append(
            csr_array((mdp.probability[part], table.next_state[part], first - first[0]), shape=(rows, mdp.n_states))
        )
    return kernels

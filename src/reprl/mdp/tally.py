"""tally: observed steps of any environment, brought together as Counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import ReprlError, check_array, check_int
from reprl.mdp.counts import Counts
from reprl.mdp.outcomes import Outcomes

_MAX_CELLS = 2**28


def tally(samples: ArrayLike, shape: tuple[int, int, int]) -> Counts:
    """Count observed steps.

    Args:
        samples: (n, 5) rows (h, s, a, next state, reward), steps from 0, rewards in [0, 1].
        shape: (H, S, A).

    Guarantee:
        The table lists the outcomes that were seen, per step, sorted by (next state, reward): the result does not
        depend on the order of the rows, and ``Counts.merge`` of parts is the tally of the whole.
    """
    rows = check_array("samples", np.empty((0, 5)) if np.size(samples) == 0 else samples, 2)
    horizon, n_states, n_actions = (check_int(name, n, 1) for name, n in zip("HSA", shape, strict=True))
    if horizon * n_states * n_actions > _MAX_CELLS:
        raise ReprlError(f"shape must have at most {_MAX_CELLS} cells to be counted, got {shape}")
    _check_rows(rows, (horizon, n_states, n_actions, n_states))
    h, s, a, following = rows[:, :4].astype(np.int64).T
    cell, reward = (h * n_states + s) * n_actions + a, rows[:, 4] + 0.0  # -0.0 becomes 0.0
    order = np.lexsort((reward, following, cell))
    cell, following, reward = cell[order], following[order], reward[order]
    fresh = np.ones(cell.size, dtype=np.bool_)
    fresh[1:] = (np.diff(cell) != 0) | (np.diff(following) != 0) | (np.diff(reward) != 0)
    hits = np.diff(np.flatnonzero(fresh), append=cell.size).astype(np.int64)
    first = np.zeros(horizon * n_states * n_actions + 1, dtype=np.int64)
    np.cumsum(np.bincount(cell[fresh], minlength=first.size - 1), out=first[1:])
    successor: NDArray[np.int32] = following[fresh].astype(np.int32)
    table = Outcomes(horizon, n_states, n_actions, n_states * n_actions, 0, first, successor, reward[fresh])
    return Counts(table, hits)


def _check_rows(rows: NDArray[np.float64], sizes: tuple[int, int, int, int]) -> None:
    """Refuse rows that are not steps of an environment of these sizes."""
    if rows.shape[1] != 5:
        raise ReprlError(f"samples must have shape (n, 5), got {rows.shape}")
    index = rows[:, :4]
    bad = (index != np.floor(index)) | (index < 0) | (index >= sizes)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise ReprlError(f"samples[{row}, {column}] must be an index below {sizes[column]}, got {rows[row, column]:g}")
    outside = (rows[:, 4] < 0.0) | (rows[:, 4] > 1.0)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise ReprlError(f"samples[{row}, 4] must be a reward in [0, 1], got {rows[row, 4]:g}")

"""discretize: a Box of observations cut into cells, for people who want tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reprl.sources.gymnasium.cells import CellEnv, Discretized


def discretize(
    env: Any, bins: int | Sequence[int], low: float | Sequence[float] | None = None, high: Any = None
) -> CellEnv | Discretized:
    """Cut the Box that an environment observes into cells, so that a table can be learned in it.

    Args:
        env: a Gymnasium id, a factory, or an open environment.
        bins: cells of every coordinate, or of each; 1 leaves a coordinate out.
        low: where cells begin, for all coordinates or for each; what lies below belongs to the first cell. None for
            the bounds of the Box, which must then be finite.
        high: where they end; the same.

    Returns:
        A factory for an id or a factory, and an environment for an open one: whatever ``learn`` takes.

    Guarantee:
        The cell of an observation is a function of it, the bins and the bounds. Cells are no states: what follows in
        one may depend on more than the cell (docs/environments.md, "A Box as a table").
    """
    from reprl.sources.gymnasium.cells import cut  # imports Gymnasium, which opening the name must not

    return cut(env, bins, low, high)

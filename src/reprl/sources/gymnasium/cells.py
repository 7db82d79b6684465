"""Cells of a Box of observations, for ``reprl.discretize``. Importing this imports Gymnasium."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from reprl.errors import InputError, check_int, quote
from reprl.mdp.spaces import MAX_SIZE
from reprl.sources.gymnasium.model import make_env

Env = gymnasium.Env[Any, Any]


class Grid(NamedTuple):
    """Cells of equal width in every coordinate; the outermost ones go on without end."""

    bins: tuple[int, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of cells."""
        return prod(self.bins)

    def cell(self, observation: Any) -> int:
        """Return the number of the cell that an observation lies in: mixed radix, the first coordinate first."""
        number = 0
        for x, bins, low, high in zip(np.ravel(observation).tolist(), *self, strict=True):
            if x != x:
                raise InputError(f"observation must be numbers, got {quote(observation)}")
            share = (x - low) / (high - low)
            number = number * bins + (0 if share <= 0.0 else bins - 1 if share >= 1.0 else int(share * bins))
        return number

    def name(self, cell: int) -> str:
        """Return the bounds of a cell, such as "x0 < -0.8, 0 ≤ x2 < 0.1", for every coordinate that is cut."""
        parts = []
        for i, bins, low, high in reversed(list(zip(range(len(self.bins)), *self, strict=True))):
            cell, digit = divmod(cell, bins)
            left, right = (f"{low + k * (high - low) / bins:.4g}" for k in (digit, digit + 1))
            if bins > 1:
                inside = f"{left} ≤ x{i} < {right}"
                parts.append(f"x{i} < {right}" if digit == 0 else f"x{i} ≥ {left}" if digit == bins - 1 else inside)
        return ", ".join(reversed(parts)) or "all"


class CellEnv(gymnasium.ObservationWrapper[Any, Any, Any]):
    """An environment that shows the number of a cell in place of an observation from a Box."""

    def __init__(self, env: Env, grid: Grid) -> None:
        """Cut the observations of an environment."""
        super().__init__(env)
        self.grid = grid
        self.observation_space: Any = spaces.Discrete(grid.size)

    def observation(self, observation: Any) -> int:
        """Return the number of a cell."""
        return self.grid.cell(observation)

    def cell_name(self, cell: int) -> str:
        """Return the bounds of a cell, which is its name on pages."""
        return self.grid.name(cell)


class Discretized(NamedTuple):
    """A factory of environments whose observations are cut: it can be opened again, and sent to other processes."""

    source: Any
    grid: Grid

    def __call__(self) -> CellEnv:
        """Open the environment."""
        return CellEnv(make_env(self.source), self.grid)


def cut(env: Any, bins: Any, low: Any, high: Any) -> CellEnv | Discretized:
    """As ``reprl.discretize`` says."""
    opened = make_env(env)
    try:
        grid = _grid(opened.observation_space, bins, low, high)
    finally:
        if opened is not env:
            opened.close()
    return CellEnv(opened, grid) if opened is env else Discretized(env, grid)


def _grid(space: Any, bins: Any, low: Any, high: Any) -> Grid:
    if not isinstance(space, spaces.Box) or np.dtype(space.dtype).kind not in "fiu":
        raise InputError(f"discretize needs an environment that observes a Box of numbers, got {quote(space)}")
    n = int(np.prod(space.shape, dtype=np.int64))
    many = [check_int("bins", each, 1, MAX_SIZE) for each in _each("bins", bins, n)]
    ends = []
    for name, given, own in (("low", low, space.low), ("high", high, space.high)):
        end = (
            np.asarray(own, dtype=np.float64).ravel()
            if given is None
            else np.array(_each(name, given, n), dtype=object)
        )
        ends.append([_finite(name, end[i], i, many[i]) for i in range(n)])
    for i, (below, above) in enumerate(zip(*ends, strict=True)):
        if not below < above:
            raise InputError(f"low[{i}] must be less than high[{i}], got {below:g} and {above:g}")
    grid = Grid(tuple(many), tuple(ends[0]), tuple(ends[1]))
    if grid.size >= MAX_SIZE:
        raise InputError(f"bins must make fewer than {MAX_SIZE} cells, got {grid.size}")
    return grid


def _each(name: str, given: Any, n: int) -> list[Any]:
    """A value for every coordinate."""
    if np.ndim(given) == 0:
        return [given] * n
    values = list(np.ravel(np.asarray(given, dtype=object)))
    if len(values) != n:
        raise InputError(f"{name} must be one number, or one for each of {n} coordinates, got {len(values)}")
    return values


def _finite(name: str, value: Any, i: int, bins: int) -> float:
    """A bound that cells can be measured from; of a coordinate that is not cut, any will do."""
    if bins == 1:
        return 0.0 if name == "low" else 1.0
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number) or abs(number) > 1e30:
        cut = f"to cut coordinate {i} into {bins} cells"
        raise InputError(f"{name}[{i}] must be a finite number {cut}, got {value}: give {name}=")
    return number

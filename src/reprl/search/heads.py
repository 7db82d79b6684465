"""Heads: from scores to an action of a space. Argmax with ties by index for finite actions, clipping for a Box."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reprl.errors import InputError, quote

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Pick(NamedTuple):
    """One of finitely many actions in each component: Discrete, MultiDiscrete or MultiBinary."""

    sizes: tuple[int, ...]
    """Actions of each component."""
    start: tuple[int, ...]
    """The first action of each."""
    shape: tuple[int, ...] | None
    """Of the array that the environment takes; None for a bare number."""
    dtype: str = "int64"

    @property
    def scores(self) -> int:
        """Scores that it reads."""
        return sum(self.sizes)

    def choose(self, scores: Floats) -> Any:
        """Return the actions for rows of scores, (n,) or (n, *shape)."""
        if self.shape is None:
            return scores.argmax(axis=1) + self.start[0]
        ends = np.cumsum(self.sizes)
        parts = [scores[:, end - size : end].argmax(axis=1) for size, end in zip(self.sizes, ends, strict=True)]
        found = np.stack(parts, axis=1) + np.array(self.start)
        return found.astype(self.dtype).reshape(len(scores), *self.shape)


class Clip(NamedTuple):
    """A Box: a score of 0 is the middle of a bounded coordinate, ±1 its ends; an unbounded one is its score."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    """Bounds in row order; ±inf where there is none."""
    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def scores(self) -> int:
        """Scores that it reads."""
        return len(self.low)

    def choose(self, scores: Floats) -> Any:
        """Return the actions for rows of scores, (n, *shape)."""
        low, high = np.array(self.low), np.array(self.high)
        bounded = np.isfinite(low) & np.isfinite(high)
        middle = np.where(bounded, 0.5 * np.where(bounded, low, 0.0) + 0.5 * np.where(bounded, high, 0.0), 0.0)
        half = np.where(bounded, 0.5 * np.where(bounded, high, 0.0) - 0.5 * np.where(bounded, low, 0.0), 1.0)
        found = np.clip(middle + half * scores, low, high)
        return found.astype(self.dtype).reshape(len(scores), *self.shape)


Head = Pick | Clip


def head_of(space: Any) -> Head:
    """Return the head for a space of actions."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return Pick((int(space.n),), (int(space.start),), None)
    if isinstance(space, spaces.MultiDiscrete):
        sizes, start = (tuple(map(int, part.ravel())) for part in (space.nvec, space.start))
        return Pick(sizes, start, tuple(space.nvec.shape), np.dtype(space.dtype).name)
    if isinstance(space, spaces.MultiBinary):
        shape = tuple(space.shape)
        n = int(np.prod(shape))
        return Pick((2,) * n, (0,) * n, shape, np.dtype(space.dtype).name)
    if isinstance(space, spaces.Box) and np.dtype(space.dtype).kind == "f":
        low, high = (tuple(map(float, bound.ravel())) for bound in (space.low, space.high))
        return Clip(low, high, tuple(space.shape), np.dtype(space.dtype).name)
    allowed = "Discrete, MultiDiscrete, MultiBinary or a Box of real numbers"
    raise InputError(f"action space must be {allowed} for a search, got {quote(space)}")

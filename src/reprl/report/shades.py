"""Shades: a table of cells as an image, and how values become shades."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.report.numbers import number

LEVELS = 24
"""Shades of a sequential palette."""
CATEGORIES = 8
"""Colours of actions, lines and bars; an environment with more actions gets shades by index instead."""
Levels = NDArray[np.int64]
NONE, BLANK = -1, -2
"""Levels of a cell without a value, and of a place where there is no cell."""


class Key(NamedTuple):
    """An entry of a legend: a colour by its class, what stands on it, and what it means."""

    colour: str
    text: str
    sign: str = ""


class Scale(NamedTuple):
    """How values become shades."""

    ramp: str
    levels: Levels
    keys: Sequence[Key]
    ends: tuple[str, str] | None = None
    """What the lightest and the darkest shade stand for, where shades are continuous."""
    log: bool = False


def image(levels: Levels) -> dict[str, Any]:
    """Return a table of levels as strokes (class, path): each level one, along the runs of equal cells; and a mesh."""
    rows, columns = levels.shape
    strokes: dict[int, list[str]] = {}
    for y, row in enumerate(levels.tolist()):
        x = 0
        while x < columns:
            end = x + 1
            while end < columns and row[end] == row[x]:
                end += 1
            strokes.setdefault(row[x], []).append(f"M{x} {y}h{end - x}")
            x = end
    paths = [(colour(level), "".join(parts)) for level, parts in sorted(strokes.items()) if level != BLANK]
    mesh = ""
    if rows * columns <= 1500 and columns <= 60:
        mesh = "".join(f"M{x} 0v{rows}" for x in range(columns + 1)) + "".join(
            f"M0 {y}h{columns}" for y in range(rows + 1)
        )
    return {"rows": rows, "columns": columns, "strokes": paths, "mesh": mesh}


def colour(level: int) -> str:
    """Return the class of a level."""
    return "none" if level == NONE else f"l{level}"


def shade(
    values: NDArray[np.float64],
    ramp: str = "blue",
    *,
    low: float | None = None,
    high: float | None = None,
    log: bool = False,
    none: str = "",
) -> Scale:
    """Return shades from low to high; with `none`, cells of value 0 are left out and the legend calls them that."""
    known = values > 0 if none else np.ones(values.shape, dtype=bool)
    shown = values[known] if known.any() else np.zeros(1)
    bottom = float(shown.min()) if low is None else low
    top = float(shown.max()) if high is None else high
    log = log and bottom > 0 and top > 20 * bottom
    flat = top <= bottom
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.log(values / bottom) / math.log(top / bottom) if log else (values - bottom) / (top - bottom)
    share = np.full(values.shape, 0.5) if flat else share
    levels = np.where(known, np.clip(share * (LEVELS - 1), 0, LEVELS - 1).round(), NONE).astype(np.int64)
    keys = [Key(colour(LEVELS // 2), f"{number(bottom)} everywhere")] if flat and known.any() else []
    if none and not known.all():
        keys.append(Key("none", none))
    return Scale(ramp, levels, keys, None if flat else (number(bottom), number(top)), log)


def ranks(values: Levels, count: int, noun: str, last: str = "") -> Scale:
    """Return one shade for each of the whole numbers 1 … count, the first darkest; `last` explains the last."""
    steps = np.array(
        [(count - k) * (LEVELS - 4) // (count - 1) + 2 for k in range(1, count + 1)] if count > 1 else [15]
    )
    shown = list(range(1, count + 1)) if count <= 8 else [1, 2, count // 2, count]
    tail = f": {last}" if last else ""
    keys = [Key(colour(steps[k - 1]), f"{noun} {k}{tail if k == count else ''}") for k in shown]
    return Scale("blue", steps[values - 1], keys)

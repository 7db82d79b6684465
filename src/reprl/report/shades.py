"""Shades: a table of cells as an image, and how values become shades."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.report.page import escape, number
from reprl.report.theme import LEVELS

Levels = NDArray[np.int64]
NONE, BLANK = -1, -2
"""Levels of a cell without a value, and of a place where there is no cell."""


class Scale(NamedTuple):
    """How values become shades."""

    ramp: str
    levels: Levels
    legend: str


def cells(levels: Levels) -> str:
    """Return a table of levels as an image: each level one stroke, drawn along the runs of equal cells."""
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
    paths = "".join(
        f'<path class="{"none" if level == NONE else f"l{level}"}" d="{"".join(parts)}"/>'
        for level, parts in sorted(strokes.items())
        if level != BLANK
    )
    lines = ""
    if rows * columns <= 1500 and columns <= 60:
        d = "".join(f"M{x} 0v{rows}" for x in range(columns + 1)) + "".join(
            f"M0 {y}h{columns}" for y in range(rows + 1)
        )
        lines = f'<path class="lines" d="{d}"/>'
    return (
        f'<svg viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" aria-hidden="true">'
        f'<g transform="translate(0 .5)">{paths}</g>{lines}</svg>'
    )


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
    if flat:
        body = (
            f'<span class="key {ramp}"><i class="l{LEVELS // 2}"></i>{escape(number(bottom))} everywhere</span>'
            if known.any()
            else ""
        )
    else:
        kind = "<span>(log scale)</span>" if log else ""
        ends = (f"<span>{escape(number(end))}</span>" for end in (bottom, top))
        body = f'<span class="ramp {ramp}"></span>'.join(ends) + kind
    rest = f'<span class="key"><i class="none"></i>{escape(none)}</span>' if none and not known.all() else ""
    return Scale(ramp, levels, f'<div class="legend">{body}{rest}</div>')


def ranks(values: Levels, count: int, noun: str, last: str = "") -> Scale:
    """Return one shade for each of the whole numbers 1 … count, the first darkest; `last` explains the last."""
    steps = np.array(
        [(count - k) * (LEVELS - 4) // (count - 1) + 2 for k in range(1, count + 1)] if count > 1 else [15]
    )
    levels = steps[values - 1]
    shown = list(range(1, count + 1)) if count <= 8 else [1, 2, count // 2, count]
    tail = f": {last}" if last else ""
    keys = "".join(
        f'<span class="key"><i class="l{steps[k - 1]}"></i>{noun} {k}{tail if k == count else ""}</span>' for k in shown
    )
    return Scale("blue", levels, f'<div class="legend blue">{keys}</div>')

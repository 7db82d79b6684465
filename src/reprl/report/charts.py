"""Charts: an interval against ρ, curves over samples, bars; text keeps its size, only the drawing stretches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from reprl.report.page import escape, power
from reprl.report.theme import CATEGORIES

_SHAPES, _FEW = 6, 4
_APART = "probability that two runs end in different policies"
_LEAST, _MOST = 1e-280, 1e280
"""What a logarithmic axis shows at most: further out, floating-point numbers have no room for its margins."""
_FINEST = 1e-290
"""A linear axis that would end below this ends at 1: its steps would be 0."""


class Axis(NamedTuple):
    """A linear or logarithmic range."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def over(cls, values: Sequence[float], *, log: bool = False, zero: bool = False, most: float = math.inf) -> Axis:
        """Return a range that holds the values with some air."""
        low, high = min(values), max(values)
        if log:
            least, greatest = (math.log(min(max(end, _LEAST), _MOST)) for end in (low, high))
            air = max(math.log(1.15), 0.04 * (greatest - least))
            return cls(math.exp(least - air), math.exp(greatest + air), True)
        top = min(most, high * 1.12)
        return cls(0.0 if zero else low, top if top > _FINEST else 1.0)

    def place(self, value: float) -> float:
        """Return where a value lies, in per cent, ends included."""
        if self.log:
            bottom = math.log(self.low)
            share = (math.log(max(value, self.low)) - bottom) / (math.log(self.high) - bottom)
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100.0 * min(1.0, max(0.0, share))

    def ticks(self) -> list[tuple[float, str]]:
        """Return some four to seven (value, label)."""
        return self._powers() if self.log else self._steps()

    def _steps(self) -> list[tuple[float, str]]:
        raw = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(raw))
        step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [(k * step, f"{k * step:.6g}") for k in range(first, int(self.high / step + 1e-9) + 1)]

    def _powers(self) -> list[tuple[float, str]]:
        bottom, top = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        stride = max(1, math.ceil((top - bottom) / 9))
        parts = (1,) if top - bottom > 3 else (1, 3) if top - bottom > 1 else (1, 2, 5)
        marks = [(m, k) for k in range(bottom, top + 1, stride) for m in parts]
        return [
            (m * 10.0**k, power(k) if m == 1 else f"{m} × {power(k)}")
            for m, k in marks
            if self.low <= m * 10.0**k <= self.high
        ]


class Line(NamedTuple):
    """One curve: (x, y, low, high, text for the tooltip) at every point."""

    name: str
    points: Sequence[tuple[float, float, float, float, str]]


def curves(lines: Sequence[Line], x: Axis, y: Axis, *, x_name: str, y_name: str, rule: tuple[float, str]) -> str:
    """Return curves, a rule across and a legend; bands of more than a few curves show when one is pointed at."""
    drawing, dots, keys = [], [], []
    for k, line in enumerate(lines):
        own = f'class="s{k % CATEGORIES}" data-series="{k}"'
        dot = f'class="dot s{k % CATEGORIES} shape{k % _SHAPES}"'
        places = [(x.place(a), 100 - y.place(b), 100 - y.place(c), 100 - y.place(d)) for a, b, c, d, _ in line.points]
        upper = "L".join(f"{a:.2f} {d:.2f}" for a, _, _, d in places)
        lower = "L".join(f"{a:.2f} {c:.2f}" for a, _, c, _ in reversed(places))
        path = "L".join(f"{a:.2f} {b:.2f}" for a, b, _, _ in places)
        if places:
            drawing.append(f'<g {own}><path class="band" d="M{upper}L{lower}Z"/><path class="line" d="M{path}"/></g>')
        dots += [
            f'<i {dot} data-series="{k}" tabindex="0" style="left:{a:.2f}%;top:{b:.2f}%" data-tip="{escape(tip)}"></i>'
            for (a, b, _, _), (*_, tip) in zip(places, line.points, strict=True)
        ]
        keys.append(f'<span class="key" data-series="{k}"><i {dot}></i>{escape(line.name)}</span>')
    level, name = rule
    legend = f'<div class="legend">{"".join(keys)}</div>' if len(lines) > 1 else ""
    return (
        f'<div class="curves{" many" if len(lines) > _FEW else ""}">{legend}<div class="chart">'
        f'<p class="y-name">{escape(y_name)}</p>{_scale(y, "y")}<div class="plot">'
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">'
        f"{_grid(x, y)}{''.join(drawing)}</svg>"
        f'<div class="rule" style="top:{100 - y.place(level):.2f}%"><span>{escape(name)}</span></div>'
        f'{"".join(dots)}</div>{_scale(x, "x")}<p class="x-name">{escape(x_name)}</p></div></div>'
    )


def _scale(axis: Axis, side: str) -> str:
    edge = "left" if side == "x" else "bottom"
    marks = "".join(
        f'<span style="{edge}:{axis.place(value):.2f}%">{escape(label)}</span>' for value, label in axis.ticks()
    )
    return f'<div class="{side}-scale" aria-hidden="true">{marks}</div>'


def _grid(x: Axis, y: Axis | None = None) -> str:
    d = "".join(f"M{x.place(value):.2f} 0v100" for value, _ in x.ticks())
    if y is not None:
        d += "".join(f"M0 {100 - y.place(value):.2f}h100" for value, _ in y.ticks())
    return f'<path class="mesh" d="{d}"/>'


def interval(low: float, value: float, high: float, rho: float, tip: str, name: str = _APART) -> str:
    """Return a measured rate, that of the event with this name, and its exact interval on one axis with the claim ρ."""
    axis = Axis.over((high, rho), zero=True, most=1.0)
    left, right, mark = axis.place(low), axis.place(high), axis.place(rho)
    side = " flip" if mark > 70 else ""
    return (
        f'<div class="chart flat"><div class="plot interval" data-tip="{escape(tip)}" tabindex="0">'
        f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">{_grid(axis)}</svg>'
        f'<div class="span" style="left:{left:.2f}%;width:{max(0.4, right - left):.2f}%"></div>'
        f'<i class="dot" style="left:{axis.place(value):.2f}%;top:50%"></i>'
        f'<div class="post{side}" style="left:{mark:.2f}%"><span>ρ = {rho:g}</span></div></div>'
        f'{_scale(axis, "x")}<p class="x-name">{escape(name)}</p></div>'
    )


class Bar(NamedTuple):
    """One bar; an open one is a lower limit."""

    name: str
    value: float
    label: str
    tip: str
    solid: bool = True
    colour: int = 0


def bars(rows: Sequence[Bar], axis: Axis) -> str:
    """Return horizontal bars."""
    lines = "".join(
        f'<div class="bar s{bar.colour % CATEGORIES}{"" if bar.solid else " open"}" data-tip="{escape(bar.tip)}" '
        f'tabindex="0"><p class="bar-name">{escape(bar.name)}<span>{escape(bar.label)}</span></p>'
        f'<div class="track"><div class="fill" style="width:{axis.place(bar.value):.2f}%"></div></div></div>'
        for bar in rows
    )
    return f'<div class="chart flat bars">{lines}{_scale(axis, "x")}</div>'


def tally(rows: Sequence[tuple[str, int]], noun: str) -> str:
    """Return bars of whole numbers from 0."""
    most = max((count for _, count in rows), default=0) or 1
    return bars([Bar(name, n, f"{n:,} {noun}", f"{name}: {n:,} {noun}") for name, n in rows], Axis(0.0, most))

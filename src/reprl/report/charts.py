"""Charts: what an interval against ρ, curves over samples and bars show; pictures.html draws them on these axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

_FINEST = 1e-290
"""A linear axis that would end below this ends at 1: its steps would be 0."""


class Axis(NamedTuple):
    """A range."""

    low: float
    high: float
    whole: bool = False
    """Whether only whole numbers are marked."""

    @classmethod
    def over(cls, values: Sequence[float], *, zero: bool = False, most: float = math.inf) -> Axis:
        """Return a range that holds the values with some air."""
        low, high = min(values), max(values)
        top = min(most, high * 1.12)
        return cls(0.0 if zero else low, top if top > _FINEST else 1.0)

    def place(self, value: float) -> float:
        """Return where a value lies, in per cent, ends included."""
        share = (value - self.low) / (self.high - self.low)
        return 100.0 * min(1.0, max(0.0, share))

    def ticks(self) -> list[tuple[float, str]]:
        """Return some four to seven (value, label)."""
        raw = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(raw))
        step = unit * next(m for m in (1, 2, 5, 10) if m * unit >= raw * 0.999)
        step = max(step, 1.0) if self.whole else step
        first = math.ceil(self.low / step - 1e-9)
        return [(k * step, f"{k * step:.6g}") for k in range(first, int(self.high / step + 1e-9) + 1)]


class Interval(NamedTuple):
    """A measured rate and its exact interval, against the claim ρ."""

    value: float
    ends: tuple[float, float]
    rho: float
    counts: str
    """What it was measured by, in words."""
    name: str = "probability that two runs end in different policies"
    """Of the event."""

    @property
    def axis(self) -> Axis:
        """From 0 to where both the interval and the claim are in sight."""
        return Axis.over((self.ends[1], self.rho), zero=True, most=1.0)


class Point(NamedTuple):
    """A point of a curve with its interval, and what is said where somebody points at it."""

    x: float
    y: float
    low: float
    high: float
    tip: str


class Curves(NamedTuple):
    """Curves by name, and a level across."""

    x: Axis
    y: Axis
    x_name: str
    y_name: str
    level: float
    label: str
    """Of the level."""
    lines: Sequence[tuple[str, Sequence[Point]]]


class Bar(NamedTuple):
    """One bar; an open one is a lower limit."""

    name: str
    value: float
    label: str
    tip: str
    solid: bool = True
    colour: int = 0


class Bars(NamedTuple):
    """Horizontal bars."""

    x: Axis
    rows: Sequence[Bar]

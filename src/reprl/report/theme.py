"""Theme: the colours of a report, safe for the colour-blind, as CSS variables for light and dark."""

from __future__ import annotations

from importlib.resources import files

LEVELS = 24
"""Shades of a sequential palette."""
CATEGORIES = 8
"""Colours of actions, lines and bars; an environment with more actions gets shades by index instead."""

# One hue each, so that order shows by lightness alone; the low end lies near the card, whichever the theme.
_RAMPS = {
    "blue": {
        "light": ("#eaf1f8", "#b9d3ea", "#74a9d6", "#2f74b5", "#123f73"),
        "dark": ("#1e2b3a", "#234c77", "#2f77b8", "#74b2e6", "#dceeff"),
    },
    "orange": {
        "light": ("#faf0e9", "#f6cfae", "#ec9a5e", "#c9591b", "#7a2a07"),
        "dark": ("#2c251f", "#6b3514", "#b9591c", "#f0994f", "#ffe6cd"),
    },
}

# Okabe and Ito's colours, black left out and one violet added, lightened for the dark.
_HUES = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#3a9bd9", "#6a4fb3", "#7a7a7a"),
    "dark": ("#4aa8e8", "#ff8f3f", "#2fcf9f", "#eb9cc8", "#e8c547", "#8fd0ff", "#ab94f2", "#b5b5b5"),
}


HUES = _HUES["light"]
"""The same where a page cannot choose: in notebooks, drawn thin enough for light and dark."""


def stylesheet() -> str:
    """Return the whole style of a page."""
    light, dark = (";".join(_variables(name)) for name in ("light", "dark"))
    rules = [f":root{{{light}}}", f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"]
    for ramp in _RAMPS:
        rules += [f".{ramp} .l{i}{{stroke:var(--{ramp}{i})}}" for i in range(LEVELS)]
        stops = ",".join(f"var(--{ramp}{i})" for i in range(LEVELS))
        rules.append(f".ramp.{ramp}{{background:linear-gradient(90deg,{stops})}}")
        rules += [f".{ramp} i.l{i}{{background:var(--{ramp}{i})}}" for i in range(LEVELS)]
    for i in range(CATEGORIES):
        tint = f"color-mix(in oklab,var(--hue{i}) 34%,var(--card))"
        rules.append(f".action .l{i}{{stroke:{tint}}}.action i.l{i}{{background:{tint}}}.s{i}{{--own:var(--hue{i})}}")
    asset = files("reprl.report").joinpath("report.css").read_text(encoding="utf-8")
    return "\n".join(rules) + "\n" + asset


def script() -> str:
    """Return the whole script of a page."""
    return files("reprl.report").joinpath("report.js").read_text(encoding="utf-8")


def _variables(theme: str) -> list[str]:
    lines = [f"--hue{i}:{colour}" for i, colour in enumerate(_HUES[theme])]
    for ramp, stops in _RAMPS.items():
        lines += [f"--{ramp}{i}:{_blend(stops[theme], i / (LEVELS - 1))}" for i in range(LEVELS)]
    return lines


def _blend(stops: tuple[str, ...], position: float) -> str:
    """Return the colour at a position in [0, 1] along evenly spaced stops."""
    place = position * (len(stops) - 1)
    left = min(int(place), len(stops) - 2)
    low, high = (bytes.fromhex(stop[1:]) for stop in stops[left : left + 2])
    share = place - left
    return "#" + bytes(round(a + (b - a) * share) for a, b in zip(low, high, strict=True)).hex()

"""Figures of the canonical learner; reads stored data only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from experiments.canonical.present import WAYS, rehearsals, summaries
from reprl.auditing.evidence import exact_interval

Data = dict[str, Any]
COLOURS = ("#0b6e99", "#c1440e", "#7a5195", "#8a8d0f", "#222222", "#4fb0d6", "#e08a3c", "#b18bc9", "#777777")
MARKERS = "osd^vPX*D"


def draw(data: Data, folder: Path) -> None:
    """Draw rehearsals against the truth, and what every world costs."""
    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    _draw_rehearsals(rehearsals(data), folder / "canonical-rehearsal.svg")
    _draw_costs(data, folder / "canonical.svg")


def _draw_rehearsals(found: list[Data], path: Path) -> None:
    figure, axis = plt.subplots(figsize=(7, 5.5), layout="constrained")
    axis.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1)
    axis.axhline(0.9, color="0.8", linewidth=0.8)
    for number, world in enumerate(dict.fromkeys(one["world"] for one in found)):
        points = [one for one in found if one["world"] == world]
        x = [one["predicted"] for one in points]
        y = [1 - one["apart"] / one["pairs"] for one in points]
        ends = [exact_interval(one["pairs"] - one["apart"], one["pairs"]) for one in points]
        spread = [
            [m - low for m, (low, _) in zip(y, ends, strict=True)],
            [high - m for m, (_, high) in zip(y, ends, strict=True)],
        ]
        style: Data = {"color": COLOURS[number % 9], "marker": MARKERS[number % 9], "markersize": 5, "linewidth": 0.8}
        axis.errorbar(x, y, yerr=spread, capsize=2, elinewidth=0.6, label=world, **style)
    axis.set(xlabel="predicted: simulated second teams that agree", ylabel="measured: pairs of real runs that agree")
    axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    axis.grid(alpha=0.25, linewidth=0.4)
    if found:
        axis.legend(frameon=False, fontsize=7)
    _save(figure, path)


def _draw_costs(data: Data, path: Path) -> None:
    """A line for each world: parallel samples above, steps by episodes below."""
    found = [one for group in ("targets", "catalogue", "held out", "made last") for one in summaries(data, group)]
    worlds = list(dict.fromkeys((one.case.group, one.case.world) for one in found))
    figure, axis = plt.subplots(figsize=(8, 0.22 * len(worlds) + 1.5), layout="constrained")
    for access, (lower, colour, marker) in {
        "generative": (-0.17, COLOURS[0], "o"),
        "episodic": (0.17, COLOURS[1], "s"),
    }.items():
        for one in (one for one in found if one.case.access == access):
            y = worlds.index((one.case.group, one.case.world)) + lower
            axis.plot([one.median, one.high], [y, y], color=colour, linewidth=1)
            axis.plot(one.median, y, marker, color=colour, markersize=3.5)
            axis.plot(one.mean, y, "|", color=colour, markersize=7)
            if one.case.target:
                axis.plot(one.case.target, y, "<", color=colour, markersize=5, markerfacecolor="none")
        axis.plot([], [], marker, color=colour, markersize=3.5, label=WAYS[access])
    axis.set(xscale="log", xlabel="samples a run: median (dot) to 90 % quantile, mean (bar), target (hollow)")
    axis.set_yticks(range(len(worlds)), [world for _, world in worlds], fontsize=7)
    axis.set_ylim(len(worlds) - 0.4, -0.6)
    axis.grid(alpha=0.25, linewidth=0.4, axis="x")
    axis.legend(frameon=False, fontsize=7, loc="upper right")
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)

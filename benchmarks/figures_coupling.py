"""Draw the figures of docs/figures about coupling: `python -m benchmarks.figures_coupling [folder]`.

The work of joint draws is that of data/joint_search.json (benchmarks.coupling); rounding is played again.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from benchmarks.coupling import FAMILIES, STORED
from reprl.coupling.rounding import round_vector, rounding_bound
from reprl.randomness import SharedKey

STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "legend.frameon": False,
    "svg.hashsalt": "reprl",  # the same file from the same figures
    "svg.fonttype": "none",
}
COLOURS = {"0.5": "#0072b2", "0.7": "#009e73", "0.9": "#d55e00", "0.99": "#cc79a7", "random": "#555555"}


def search_cost(path: Path) -> None:
    """Nodes and time of a joint draw against n, next to the 2ⁿ outcomes that enumeration would visit."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    stored = json.loads(STORED.read_text("utf-8"))["growth"]
    for family in FAMILIES:
        n, nodes, seconds = zip(*stored[family], strict=True)
        label = "p uniform in (0, 1)" if family == "random" else f"p = {family}"
        left.plot(n, nodes, "o-", color=COLOURS[family], label=label)
        right.plot(n, seconds, "o-", color=COLOURS[family], label=label)
    n_all = np.arange(5, 61)
    left.plot(n_all, 2.0**n_all, "--", color="black", linewidth=1.2, label="2ⁿ outcomes")
    left.set(yscale="log", xlabel="coins n", ylabel="nodes expanded", ylim=(1, 1e13), title="Work of one joint draw")
    right.set(yscale="log", xlabel="coins n", ylabel="seconds", title="Time on one core")
    left.legend(fontsize=8)
    _save(figure, path)


def rounding_disagreement(path: Path, trials: int = 4000, distance: float = 0.05) -> None:
    """How often two runs round to different vectors, against n, at a fixed distance ‖Δ‖₂."""
    sizes = [1, 2, 4, 6, 9, 12, 16, 20, 25, 30, 36, 42, 49]
    figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    for method, colour in (("product", "#d55e00"), ("joint", "#0072b2")):
        rates = np.array([_rate(method, n, trials, distance) for n in sizes])
        error = 1.96 * np.sqrt(rates * (1 - rates) / trials)
        axes.errorbar(sizes, rates, error, fmt="o-", color=colour, capsize=2, label=f"{method}, measured")
    bound = rounding_bound([distance], width=1.0)
    axes.axhline(bound, linestyle="--", color="#0072b2", linewidth=1.2, label="joint, bound (π/w)·‖Δ‖₂")
    grown = [min(1.0, 0.5 * math.pi * distance * math.sqrt(n)) for n in sizes]
    axes.plot(sizes, grown, "--", color="#d55e00", linewidth=1.2, label="product, bound (π/2w)·‖Δ‖₁")
    axes.set(xlabel="coordinates n", ylabel="two runs differ", ylim=(0, 0.6))
    axes.set_title(f"Rounding two vectors at ‖Δ‖₂ = {distance:g} w")
    axes.legend(fontsize=8)
    _save(figure, path)


def _rate(method: str, n: int, trials: int, distance: float) -> float:
    move = np.full(n, 0.5 * distance / math.sqrt(n))
    hits = 0
    for i in range(trials):
        key = SharedKey(i).derive("figure", method, n)
        first, second = (round_vector(key, x, width=1.0, method=method) for x in (0.5 - move, 0.5 + move))
        hits += not np.array_equal(first, second)
    return hits / trials


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
    plt.close(figure)
    print(path)


def main(folder: Path, suffix: str = ".svg") -> None:
    """Draw every figure into folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(STYLE):
        search_cost(folder / f"joint-search-cost{suffix}")
        rounding_disagreement(folder / f"rounding-disagreement{suffix}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"), *sys.argv[2:3])

"""Figure and tables of the sweep; reads stored data only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

Data = dict[str, Any]
SHOWN = (4, 32, 256)
"""Dimensions in the table; the figure has all points."""
START, END = "<!-- tables: python -m experiments.lower_bounds -->\n", "<!-- end of tables -->\n"
COLOURS = ("#0b6e99", "#c1440e", "#7a5195", "#8a8d0f", "#222222")
MARKERS = "osd^v"
TITLES = {"n": "dimension n", "rho": "1/ρ", "epsilon": "1/ε"}
LETTERS = {"n": "n", "rho": "ρ", "epsilon": "ε"}
LEARNER = "RL learner, H = 4"


def draw(data: Data, path: Path) -> None:
    """Draw samples against n, 1/ρ and 1/ε beside the bound n/(ρ²ε²), with slopes, and their ratio to it."""
    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    figure, axes = plt.subplots(2, 2, figsize=(11, 8.5), layout="constrained")
    names = list(dict.fromkeys(row["series"] for row in data["points"]))
    for axis, sweep in zip(axes.flat, TITLES, strict=False):
        groups = [[row for row in data["points"] if (row["series"], row["sweep"]) == (name, sweep)] for name in names]
        if sweep == "n":
            groups.append(data["learner"])
        for number, (name, rows) in enumerate(zip([*names, LEARNER], groups, strict=False)):
            _line(axis, rows, sweep, f"{name}: {_slope(data, name, sweep)}", number)
        bound = [row["n"] / (row["rho"] * row["epsilon"]) ** 2 for row in groups[0]]
        label = f"n/(ρ²ε²): {1 if sweep == 'n' else 2}"
        axis.plot([_x(row, sweep) for row in groups[0]], bound, "--", color="0.5", label=label)
        fixed = [f"{LETTERS[key]} = {value:g}" for key, value in data["base"].items() if key != sweep]
        _dress(axis, groups[0], sweep, "vector samples to disagreement ρ", ", ".join(fixed))
        axis.legend(title="slope (95 % interval)", frameon=False, fontsize=7.5, title_fontsize=7.5)
        if sweep == "n":
            for number, rows in enumerate(groups):
                _ratio(axes[1, 1], rows, number)
            axes[1, 1].axhline(1.0, linestyle="--", color="0.5")
            _dress(axes[1, 1], groups[0], "n", "samples · ρ²ε²/n", ", ".join(fixed))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _dress(axis: Any, rows: list[Data], sweep: str, what: str, title: str) -> None:
    axis.set(xscale="log", yscale="log", xlabel=TITLES[sweep], ylabel=what)
    ticks = [_x(row, sweep) for row in rows]
    axis.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    axis.grid(alpha=0.25, linewidth=0.4)
    axis.set_title(title, fontsize=9)


def _slope(data: Data, name: str, sweep: str) -> str:
    for row in data["slopes"]:
        if (row["series"], row["sweep"]) == (name, sweep):
            return f"{row['slope']:.2f} ({row['low']:.2f} … {row['high']:.2f})"
    return "—"


def _x(row: Data, sweep: str) -> float:
    return float(row["n"] if sweep == "n" else 1.0 / row[sweep])


def _style(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4, "linewidth": 1.2}


def _ratio(axis: Any, rows: list[Data], number: int) -> None:
    axis.plot([row["n"] for row in rows], [row["ratio"] for row in rows], **_style(number))


def _line(axis: Any, rows: list[Data], sweep: str, name: str, number: int) -> None:
    if not rows:
        return
    y = [row["samples"] for row in rows]
    spread = [
        [abs(m - row["interval"][0]) for m, row in zip(y, rows, strict=True)],
        [abs(row["interval"][1] - m) for m, row in zip(y, rows, strict=True)],
    ]
    axis.errorbar([_x(row, sweep) for row in rows], y, yerr=spread, capsize=2, label=name, **_style(number))


def tables(data: Data) -> str:
    """Return the tables of the page as Markdown."""
    return "\n".join([_slopes(data), _points(data), _learner(data), _edges(data)])


def _slopes(data: Data) -> str:
    lines = ["| solver | samples against | slope | 95 % interval | lower bound |", "|---|---|---|---|---|"]
    for row in data["slopes"]:
        cells = (row["series"], TITLES[row["sweep"]], f"{row['slope']:.2f}", f"{row['low']:.2f} … {row['high']:.2f}")
        lines.append(f"| {' | '.join(cells)} | {row['bound']} |")
    return "\n".join(lines) + "\n"


def _points(data: Data) -> str:
    head = "| solver | n | ρ | ε | samples m | 95 % interval | m ρ²ε²/n | proven m | run for real | worst error/ε |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for row in data["points"]:
        if row["sweep"] != "n" or row["n"] not in SHOWN:
            continue
        real = row.get("real")
        shown = f"{real['different']}/{real['pairs']}" if real else "—"
        low, high = row["interval"]
        worst = max(row["worst_excess"].values())
        lines.append(
            f"| {row['series']} | {row['n']} | {row['rho']:g} | {row['epsilon']:g} | {row['samples']:,} | {low:,.0f} … "
            f"{high:,.0f} | {row['ratio']:.2f} | {row['proven']:,} | {shown} | {worst:.2f} |"
        )
    return "\n".join(lines) + "\n"


def _learner(data: Data) -> str:
    lines = [
        "| S | H | n = SH | vectors | 95 % interval | ratio to n/(ρ²ε²) | worst error/ε |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in data["learner"]:
        low, high = row["interval"]
        lines.append(
            f"| {row['n_states']} | {row['horizon']} | {row['n']} | {row['samples']:,} | {low:,.0f} … {high:,.0f} | "
            f"{row['ratio']:.2f} | {row['worst_excess']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def _edges(data: Data) -> str:
    lines = ["| all biases at u·gap/2, u = | n | samples m | m ρ²ε²/n |", "|---|---|---|---|"]
    rows = [row for row in data["edges"] if row["n"] in (64, 256)]
    lines += [f"| {row['u']:g} | {row['n']} | {row['samples']:,} | {row['ratio']:.2f} |" for row in rows]
    return "\n".join(lines) + "\n"

"""Figure and tables of the sweep; reads stored data only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

Data = dict[str, Any]
START, END = "<!-- tables: python -m experiments.lower_bounds -->\n", "<!-- end of tables -->\n"
COLOURS = ("#0b6e99", "#c1440e", "#7a5195", "#8a8d0f", "#222222")
MARKERS = "osd^v"
TITLES = {"n": "dimension n", "rho": "1/ρ", "epsilon": "1/ε"}


def draw(data: Data, path: Path) -> None:
    """Draw samples against n, 1/ρ and 1/ε with the bound n/(ρ²ε²) beside them."""
    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
    names = list(dict.fromkeys(row["series"] for row in data["points"]))
    for axis, sweep in zip(axes, TITLES, strict=True):
        for number, name in enumerate(names):
            rows = [row for row in data["points"] if row["series"] == name and row["sweep"] == sweep]
            _line(axis, rows, sweep, name, number)
        if sweep == "n":
            _line(axis, data["learner"], "n", "RL learner through the hard MDP, H = 4", len(names))
        rows = [row for row in data["points"] if row["series"] == names[0] and row["sweep"] == sweep]
        bound = [row["n"] / (row["rho"] * row["epsilon"]) ** 2 for row in rows]
        axis.plot([_x(row, sweep) for row in rows], bound, "--", color="0.5", label="n/(ρ²ε²)")
        axis.set(xscale="log", yscale="log", xlabel=TITLES[sweep], ylabel="vector samples to disagreement ρ")
        axis.grid(alpha=0.25, which="both", linewidth=0.4)
        fixed = {key: value for key, value in data["base"].items() if key != sweep}
        text = ", ".join(f"{ {'n': 'n', 'rho': 'ρ', 'epsilon': 'ε'}[key] } = {value:g}" for key, value in fixed.items())
        axis.set_title(text, fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _x(row: Data, sweep: str) -> float:
    return float(row["n"] if sweep == "n" else 1.0 / row[sweep])


def _line(axis: Any, rows: list[Data], sweep: str, name: str, number: int) -> None:
    if not rows:
        return
    y = [row["samples"] for row in rows]
    spread = [
        [abs(m - row["interval"][0]) for m, row in zip(y, rows, strict=True)],
        [abs(row["interval"][1] - m) for m, row in zip(y, rows, strict=True)],
    ]
    axis.errorbar(
        [_x(row, sweep) for row in rows],
        y,
        yerr=spread,
        color=COLOURS[number],
        marker=MARKERS[number],
        markersize=4,
        linewidth=1.2,
        capsize=2,
        label=name,
    )


def tables(data: Data) -> str:
    """Return the tables of the page as Markdown."""
    return "\n".join([_slopes(data), _points(data), _learner(data), _edges(data)])


def insert_tables(page: Path, data: Data) -> None:
    """Put the tables between their marks in the page."""
    text = page.read_text()
    head, _, rest = text.partition(START)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{START}\n{tables(data)}\n{END}{tail}")


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
    lines = ["| all biases at u·gap/2, u = | samples m | m ρ²ε²/n |", "|---|---|---|"]
    lines += [f"| {row['u']:g} | {row['samples']:,} | {row['ratio']:.2f} |" for row in data["edges"]]
    return "\n".join(lines) + "\n"

"""The figure and tables of the search; reads stored data only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.search import boxes
from experiments.search.measure import TASKS, Task
from experiments.search.tables import table as tables_of_boxes

Data = dict[str, Any]
START, END = "<!-- tables: python -m experiments.search -->\n", "<!-- end of tables -->\n"


def rows_of(data: Data, name: str) -> list[list[Any]]:
    """All pairs of an environment."""
    return [row for key, found in data["measured"].items() if key.startswith(f"pairs/{name}#") for row in found["rows"]]


def _aim(task: Task) -> str:
    return "none" if task.target is None else f"{task.target:g}"


def _more(task: Task) -> str:
    """What sets a row apart: another option, or other seeds."""
    if task.candidates != Task._field_defaults["candidates"]:
        return f", `candidates={task.candidates}`"
    return " (second batch)" if task.first and task.target is not None else ""


def tables(data: Data) -> str:
    """Return all tables in Markdown."""
    lines = [
        "| environment, policy | target | pairs equal | runs that are certified | such pairs that differ "
        "| reached the target | samples, median (mean) | worst mean return |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, task in TASKS.items():
        rows = rows_of(data, name)
        if not rows:
            continue
        same, n = sum(row[1] for row in rows), len(rows)
        certified = sum(row[2] + row[3] for row in rows)
        differ = sum(row[2] and row[3] and not row[1] for row in rows)
        flag = 2 if task.target is None else 4  # certified, or past the target
        reached = [(row[flag + i], row[8 + i]) for row in rows for i in range(2)]
        worst = min((value for passed, value in reached if passed and value is not None), default=None)
        samples = np.array([row[6 + i] for row in rows for i in range(2)], dtype=float)
        shown = "—" if worst is None else f"{worst:.1f}"
        lines.append(
            f"| {task.env}, {task.policy}{_more(task)} | {_aim(task)} | {same} of {n} "
            f"| {certified} of {2 * n} | {differ} | "
            f"{'—' if task.target is None else f'{sum(passed for passed, _ in reached)} of {2 * n}'} | "
            f"{np.median(samples):,.0f} ({samples.mean():,.0f}) | {shown} |"
        )
    lines += boxes.table(data["measured"]) + tables_of_boxes(data["measured"])
    return "\n".join(lines)


def draw(data: Data, folder: Path) -> None:
    """Draw samples of all runs, by environment."""
    plt.rcParams["svg.hashsalt"] = "reprl"
    figure, axes = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
    names = [name for name in TASKS if rows_of(data, name)]
    for place, name in enumerate(names):
        rows = rows_of(data, name)
        for status, colour, label in (
            (1, "#0072b2", "certified"),
            (0, "#d55e00", "cut: nothing promised"),
        ):
            found = [row[6 + i] for row in rows for i in range(2) if row[2 + i] == status]
            spread = np.linspace(-0.25, 0.25, len(found)) if len(found) > 1 else np.zeros(len(found))
            axes.scatter(found, place + spread, s=8, color=colour, label=label if place == 0 or status == 0 else None)
    axes.set(xscale="log", xlabel="samples of a run", yticks=range(len(names)), yticklabels=names)
    axes.invert_yaxis()
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(handles.values(), handles.keys(), fontsize=7, frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "search.svg", metadata={"Date": None})
    plt.close(figure)

"""Figures and tables of the comparison; reads stored data only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

from experiments.head_to_head.measure import slopes
from experiments.head_to_head.plan import SWEEPS, THEORY

Data = dict[str, Any]
START, END = "<!-- tables: python -m experiments.head_to_head -->\n", "<!-- end of tables -->\n"
STYLES = {
    "reprl (joint)": ("#0b6e99", "o"),
    "reprl (joint, 4ε)": ("#0b3c5d", "*"),
    "reprl (product)": ("#4fb0d6", "s"),
    "rpvi": ("#c1440e", "^"),
    "karbasi-grid": ("#e08a3c", "v"),
    "karbasi-gaussian (shared)": ("#7a5195", "d"),
    "karbasi-gaussian (correlated)": ("#b18bc9", "D"),
    "karbasi-softmax": ("#8a8d0f", "P"),
    "list-robust": ("#cc3377", "h"),
    "greedy": ("#777777", "x"),
    "replicable-rmax": ("#c1440e", "^"),
    "ucb-h": ("#999999", "x"),
    "ucbvi": ("#555555", "+"),
    "reward-free-ucbvi": ("#222222", "1"),
}
ACCESSES = {"generative": "parallel sampling", "episodic": "episodes"}


def draw(data: Data, folder: Path) -> None:
    """Draw the table and the sweeps."""
    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    _draw_table(data, folder / "head-to-head.svg")
    _draw_sweeps(data, folder / "head-to-head-slopes.svg")


def _draw_table(data: Data, path: Path) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
    for axis, (access, title) in zip(axes, ACCESSES.items(), strict=True):
        rows = _rows(data, access)
        names = list(dict.fromkeys(row["instance"] for row in rows))
        learners = list(dict.fromkeys(row["learner"] for row in rows))
        for number, learner in enumerate(learners):
            colour, marker = STYLES[learner]
            shift = 0.7 * ((number + 0.5) / len(learners) - 0.5)
            for row in (row for row in rows if row["learner"] == learner):
                y = names.index(row["instance"]) + shift
                if row["reached"]:
                    if row["needed"]:
                        axis.plot(row["needed"][1:], [y, y], color=colour, linewidth=1)
                    axis.plot(_size(row), y, marker, color=colour, markersize=5)
                else:
                    axis.plot(row["limit"], y, ">", color=colour, markersize=6, markerfacecolor="none")
            axis.plot([], [], marker, color=colour, label=learner)
        axis.set(xscale="log", xlabel="samples a run", title=f"{title} (hollow: not reached)")
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.grid(alpha=0.25, linewidth=0.4, axis="x")
        for y in range(1, len(names)):
            axis.axhline(y - 0.5, color="0.85", linewidth=0.6)
        if learners:
            axis.legend(frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)
    _save(figure, path)


def _draw_sweeps(data: Data, path: Path) -> None:
    rows = [row for name, row in data["measured"].items() if name.startswith("sweep/") and row["samples"] is not None]
    fits = {(fit["sweep"], fit["learner"]): fit for fit in slopes(data["measured"])}
    figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    for axis, (sweep, (title, _, _)) in zip(axes.flat, SWEEPS.items(), strict=False):
        axis.set(xscale="log", yscale="log", xlabel=title, ylabel="samples to disagreement ρ")
        for learner in dict.fromkeys(row["learner"] for row in rows):
            chosen = [row for row in rows if (row["sweep"], row["learner"]) == (sweep, learner)]
            if not chosen:
                continue
            fit = fits.get((sweep, learner))
            label = f"{learner}: {_fit(fit)}" if fit else learner
            y = [row["samples"] for row in chosen]
            spread = [
                [max(0.0, m - row["interval"][0]) for m, row in zip(y, chosen, strict=True)],
                [max(0.0, row["interval"][1] - m) for m, row in zip(y, chosen, strict=True)],
            ]
            colour, marker = STYLES[learner]
            x = [row["x"] for row in chosen]
            axis.errorbar(x, y, yerr=spread, color=colour, marker=marker, markersize=4, linewidth=1, label=label)
            axis.set_xticks(x, [f"{tick:.3g}" for tick in x])
        axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        axis.grid(alpha=0.25, linewidth=0.4)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(title="slope (95 % interval)", frameon=False, fontsize=6.5, title_fontsize=6.5)
    axes.flat[-1].axis("off")
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def tables(data: Data) -> str:
    """Return the tables of the page as Markdown."""
    parts = []
    for access, title in ACCESSES.items():
        if _rows(data, access):
            parts += [f"**Samples a run, {title}**\n", _overview(_rows(data, access))]
    parts += ["**Slopes**\n", _slopes(data)]
    return "\n".join(parts)


def _rows(data: Data, access: str) -> list[Data]:
    return [row for name, row in data["measured"].items() if name.startswith(f"table/{access}/")]


def _overview(rows: list[Data]) -> str:
    learners = list(dict.fromkeys(row["learner"] for row in rows))
    lines = [f"| instance | {' | '.join(learners)} |", "|---" * (len(learners) + 1) + "|"]
    for instance in dict.fromkeys(row["instance"] for row in rows):
        here = {row["learner"]: row for row in rows if row["instance"] == instance}
        best = min((_size(row) for row in here.values() if row["reached"]), default=0.0)
        found = [_entry(here.get(learner), best) for learner in learners]
        lines.append(f"| {instance} | {' | '.join(found)} |")
    return "\n".join(lines) + "\n"


def _size(row: Data) -> float:
    """Samples needed: by the fitted curve, or the smallest budget that passed where there is none."""
    return float(row["needed"][0] if row["needed"] else row["samples"])


def _entry(row: Data | None, best: float) -> str:
    if row is None:
        return "—"
    if not row["reached"]:
        return f"not reached at {_short(row['limit'])}"
    if row["needed"]:
        middle, low, high = row["needed"]
        text = f"{_short(middle)} ({_short(low)} … {_short(high)})"
    else:
        text = f"≤ {_short(row['samples'])}"
    return f"**{text}**" if _size(row) == best else text


def _short(number: float) -> str:
    """3.6e7 for 35 600 000."""
    mantissa, _, exponent = f"{number:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def _slopes(data: Data) -> str:
    """Return a row for each learner: fitted slope, its interval, and the exponent of the bound after a bar."""
    found: dict[str, dict[str, str]] = {}
    for fit in slopes(data["measured"]):
        bound = THEORY.get(fit["learner"], {}).get(fit["sweep"], "—")
        found.setdefault(fit["learner"], {})[fit["sweep"]] = f"{_fit(fit)}; {bound}"
    lines = [f"| learner | {' | '.join(title for title, *_ in SWEEPS.values())} |", "|---" * (len(SWEEPS) + 1) + "|"]
    lines += [
        f"| {learner} | {' | '.join(row.get(sweep, '—') for sweep in SWEEPS)} |" for learner, row in found.items()
    ]
    return "\n".join(lines) + "\n"


def _fit(fit: Data) -> str:
    return f"{fit['slope']:.2f} ({fit['low']:.2f} … {fit['high']:.2f})"

"""The figure and tables of certificates; reads stored data only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binomtest

from experiments.certificates import plan

Data = dict[str, Any]
START, END = "<!-- tables: python -m experiments.certificates -->\n", "<!-- end of tables -->\n"


def part(data: Data, kind: str) -> dict[str, Data]:
    """Measurements of a kind by what follows in their names."""
    return {name.partition("/")[2]: found for name, found in data["measured"].items() if name.startswith(f"{kind}/")}


def tables(data: Data) -> str:
    """Return the tables of the page as Markdown."""
    return "\n".join([_validity(data), _coverage(data), _costs(data), _episodes(data)])


def _validity(data: Data) -> str:
    lines = [
        "| what is beside a boundary | radii | δ | runs | certified | falsely | exact test of “at most δ” |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind, what, delta in (
        ("validity", "f, all candidates", plan.DELTA),
        ("alone", "one candidate", plan.SMALL_DELTA),
    ):
        found: dict[str, list[int]] = {}
        for name, one in part(data, kind).items():
            sums = found.setdefault(name.partition("#")[0], [0, 0, 0])
            for i, field in enumerate(("runs", "certified", "false")):
                sums[i] += one[field]
        for strength, (runs, certified, false) in found.items():
            p = binomtest(false, runs, delta, alternative="greater").pvalue
            verdict = f"rejected, p = {p:.1e}" if p < 1e-6 else "holds"
            name = "as proven" if float(strength) == 1 else f"about × {float(strength):g}"
            lines.append(f"| {what} | {name} | {delta:g} | {runs:,} | {certified:,} | {false:,} | {verdict} |")
    return "\n".join(lines) + "\n"


def _coverage(data: Data) -> str:
    """Return the data sets in which some interval misses, by how much radii are shrunk; ✗ where the test rejects."""
    found: dict[str, dict[str, str]] = {}
    for name, one in part(data, "coverage").items():
        way, _, strength = name.partition("/")
        p = binomtest(one["missed"], one["runs"], plan.DELTA, alternative="greater").pvalue
        radii = "radii × 1" if float(strength) == 1 else f"× {float(strength):g}"
        found.setdefault(way, {})[radii] = f"{one['missed']}/{one['runs']}" + (" ✗" if p < 1e-6 else "")
    head = list(dict.fromkeys(radii for row in found.values() for radii in row))
    lines = [f"| some interval misses, δ = {plan.DELTA:g} | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    lines += [f"| {plan.COVERAGE_WAYS[way]} | {' | '.join(row.values())} |" for way, row in found.items()]
    return "\n".join(lines) + "\n"


def _costs(data: Data) -> str:
    lines = [
        "| environment, quality 0.9 | certified | calls per cell, median | 90 % | pairs that differ | not f(ξ, M) |",
        "|---|---|---|---|---|---|",
    ]
    for world, one in part(data, "cost").items():
        calls = np.array([row[i] for row in one["rows"] for i in (1, 2)], dtype=float)
        done = calls[calls > 0]
        both = [row for row in one["rows"] if row[1] and row[2]]
        apart = sum(1 - row[5] for row in both)
        wrong = sum((row[1] > 0) - row[3] + (row[2] > 0) - row[4] for row in one["rows"])
        median, high = (f"{np.quantile(done, q):.2g}" if done.size else "–" for q in (0.5, 0.9))
        lines.append(f"| {world} | {done.size}/{calls.size} | {median} | {high} | {apart}/{len(both)} | {wrong} |")
    return "\n".join(lines) + "\n"


def _episodes(data: Data) -> str:
    lines = [
        "| environment, by episodes | status | steps | proven loss | f(ξ, M) | parallel runs of the seed |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in part(data, "episodes").items():
        world, _, number = name.partition("#")
        partner = part(data, "cost").get(world, {"rows": []})["rows"]
        rows = [row for row in partner if row[0] == int(number)]
        same = f"same as {sum(row[3] + row[4] for row in rows)} of {2 * len(rows)}" if one["right"] else "–"
        right = "yes" if one["right"] else "no"
        lines.append(f"| {world} | {one['status']} | {one['samples']:.2g} | {one['loss']:.3g} | {right} | {same} |")
    return "\n".join(lines) + "\n"


def draw(data: Data, folder: Path) -> None:
    """Draw what it takes to be certified."""
    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    found = part(data, "cost")
    figure, axis = plt.subplots(figsize=(8, 0.32 * len(found) + 1.6), layout="constrained")
    for y, one in enumerate(found.values()):
        calls = np.array([row[i] for row in one["rows"] for i in (1, 2)], dtype=float)
        done = calls[calls > 0]
        if done.size:
            axis.plot([done.min(), done.max()], [y, y], color="#c1440e", linewidth=1.5)
            axis.plot(np.median(done), y, "s", color="#c1440e", markersize=5)
    axis.set(xscale="log", xlabel="parallel calls (samples per cell)")
    axis.set_yticks(range(len(found)), list(found), fontsize=8)
    axis.invert_yaxis()
    axis.grid(alpha=0.25, linewidth=0.4)
    axis.set_title("certified runs: median and range", fontsize=9)
    figure.savefig(folder / "certificates.svg", metadata={"Date": None})
    plt.close(figure)

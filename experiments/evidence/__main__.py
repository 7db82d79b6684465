"""python -m experiments.evidence [--quick]: measure the paper's decision by itself, and its phantom actions.

A decision is Algorithm 1 in one step: S states with A arms each, m coins behind every mean, no world around it. The
shared key is integrated out, so that a joint draw needs no search; pairs that draw for real stand beside. Takes some
minutes of one core, and rewrites experiments/evidence/data.json, docs/figures/evidence.svg and the tables in
docs/evidence.md.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import reprl
from experiments.head_to_head.measure import slope
from experiments.lower_bounds.measure import where_parted
from experiments.lower_bounds.sweep import Effort
from experiments.runner import Experiment, Job
from reprl.auditing.evidence import exact_interval
from reprl.lab.lower_bounds.disagreement import race_disagreement
from reprl.paper.rep_var_bandit import Decision, multi_best_arm, select
from reprl.randomness import DataStream
from tests import naive_explore
from tests.test_qexplore import dependence, fork, kernel_hits, naive_hits, small

START, END = "<!-- tables: python -m experiments.evidence -->\n", "<!-- end of tables -->\n"
SEED, DELTA, NEAR = 20261116, 0.1, 0.8
"""NEAR: the gap of the worse arms over the window ε/2 of `compact`, where noise moves its law most."""
PAIRS, DRAWS, DRAWN = 400, 4096, 600
"""Pairs behind each size, points behind each integral, pairs that draw for real."""
METHODS = ("joint", "product")
MECHANISMS = ("exponential", "compact")
"""The paper's (Algorithm 1), and ours."""
SWEEPS: dict[str, tuple[str, tuple[float, ...]]] = {
    "states": ("S", (4, 8, 16, 32, 64, 128, 256, 512, 1024)),
    "actions": ("A", (2, 4, 8, 16, 32, 64, 128, 256)),
    "epsilon": ("1/ε", (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)),
    "rho": ("1/ρ", (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4)),
}
BOUND = {"states": {"joint": 2, "product": 3}, "actions": 1, "epsilon": 2, "rho": 2}
LATE = {"states": 64, "actions": 32, "epsilon": 5, "rho": 10}
"""From where a slope is fitted once more, by itself: few coordinates make the race milder than its bound."""
MOST = {"states": 256, "actions": 64}
"""Up to where the exponential mechanism is measured; with the logarithm taken out nothing bends beyond."""
REAL = {"states": (4, 8, 16, 32), "actions": (4, 8)}
"""Where pairs draw for real as well: the joint search ends there."""
PHANTOM = {"fork": fork, "random": small}
Data = dict[str, Any]


class Point(NamedTuple):
    """One decision."""

    states: int = 8
    actions: int = 2
    epsilon: float = 0.4
    rho: float = 0.1
    mechanism: str = "compact"

    @property
    def logarithm(self) -> float:
        """log(3SA/δ): ε/2 times the temperature of the paper's mechanism."""
        return math.log(3.0 * self.states * self.actions / DELTA)

    @property
    def means(self) -> NDArray[np.float64]:
        """One arm at a half, the others a little worse: where noise moves the mechanism's law most.

        For the exponential mechanism that is where the best arm has probability ½: a gap of log(A − 1)/t.
        """
        steep = math.log(max(1, self.actions - 1)) / (2.0 * self.logarithm)
        gap = (NEAR / 2.0 if self.mechanism == "compact" else steep) * self.epsilon
        found = np.full((self.states, self.actions), 0.5 - gap)
        found[:, 0] = 0.5
        return found


def parting(point: Point, method: str, m: int, pairs: range) -> NDArray[np.float64]:
    """Return how likely each pair of decisions parts, from m fresh coins an arm each, over the shared key."""
    out = np.empty(len(pairs))
    for j, i in enumerate(pairs):
        rng = np.random.default_rng([SEED, i, m])
        one, two = (
            select(point.mechanism, rng.binomial(m, point.means) / m, point.epsilon, DELTA).probabilities
            for _ in range(2)
        )
        out[j] = race_disagreement(one, two, DataStream(i, f"integral/{m}"), coupling=method, draws=DRAWS)
    return out


def drawn_apart(point: Point, method: str, m: int, pairs: int) -> int:
    """Count the pairs of decisions, from m fresh coins an arm each and a fresh key, whose arms differ anywhere."""
    decision = Decision(mechanism=point.mechanism, coupling=method, rounding=False)
    count = 0
    for i in range(pairs):
        rng = np.random.default_rng([SEED, 1, i, m])
        runs = [
            multi_best_arm(
                reprl.SharedKey(i),
                rng.binomial(m, point.means) / m,
                np.full(point.states, m),
                epsilon=point.epsilon,
                delta=DELTA,
                decision=decision,
            )
            for _ in range(2)
        ]
        count += not np.array_equal(runs[0].arms, runs[1].arms)
    return count


def measure(mechanism: str, sweep: str, value: float, method: str, quick: bool) -> Data:
    """Find where pairs part with probability ρ, in coins of all arms together."""
    varied: Data = {sweep: value if sweep in ("epsilon", "rho") else int(value)}
    point = Point(mechanism=mechanism)._replace(**varied)
    effort = Effort(pairs=10, scouts=5) if quick else Effort(pairs=PAIRS, scouts=40)
    found = where_parted(lambda m, pairs: parting(point, method, m, pairs), point.rho, 256, effort)
    arms, m = point.states * point.actions, round(found["samples"])
    row = {
        "mechanism": mechanism,
        "sweep": sweep,
        "method": method,
        "x": 1.0 / value if sweep in ("epsilon", "rho") else value,
    }
    row |= {"samples": arms * found["samples"], "interval": [arms * end for end in found["interval"]], "m": m}
    if value in REAL.get(sweep, ()):
        pairs = 20 if quick else DRAWN
        row["drawn"] = [drawn_apart(point, method, m, pairs), pairs]
    return row


def phantom(world: str, runs: int, slow: int) -> Data:
    """p-values that records are independent given their numbers: as they are kept, and with real outcomes kept too."""
    mdp, agent = PHANTOM[world](), naive_explore.Agent(0.1, 0.01, 0.01, 40)
    return {
        "phantom": dependence(mdp, kernel_hits(mdp, agent, runs)),
        "runs": runs,
        "real": dependence(mdp, naive_hits(mdp, agent, slow, record_real=True)),
        "slow": slow,
    }


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement."""
    points = {
        f"{mechanism}/{sweep}/{value:g}/{method}": partial(measure, mechanism, sweep, value, method, quick)
        for mechanism in MECHANISMS
        for sweep, (_, values) in SWEEPS.items()
        for method in METHODS
        for value in (values[:2] if quick else values)
        if mechanism == "compact" or value <= MOST.get(sweep, math.inf)
    }
    runs = (200, 50) if quick else (20_000, 400)
    return {**{f"phantom/{world}": partial(phantom, world, *runs) for world in PHANTOM}, **points}


def head(quick: bool) -> Data:
    """Return what the data are measured with."""
    return {"seed": SEED, "near": NEAR, "quick": quick, "pairs": PAIRS, "draws": DRAWS, "drawn": DRAWN}


def points_of(data: Data, mechanism: str, sweep: str, method: str) -> list[Data]:
    """Return what was measured along a sweep."""
    _, values = SWEEPS[sweep]
    rows = [data["measured"].get(f"{mechanism}/{sweep}/{value:g}/{method}") for value in values]
    return [row for row in rows if row is not None]


def slopes(data: Data) -> list[Data]:
    """Fit every sweep; once more from LATE on, where the bend is behind; and with the logarithm taken out.

    The sizes of the exponential mechanism have a factor log²(3SA/δ), which grows along S and A and bends a power law.
    """
    out = []
    for mechanism, sweep, method in itertools.product(MECHANISMS, SWEEPS, METHODS):
        found = points_of(data, mechanism, sweep, method)
        logs = [Point(**{sweep: int(row["x"])}).logarithm for row in found] if sweep in ("states", "actions") else []
        for least, over in ((0, 0), (LATE[sweep], 0), (0, 2), (LATE[sweep], 2)):
            if over and (mechanism == "compact" or not logs):
                continue
            chosen = [i for i, row in enumerate(found) if row["x"] >= least]
            if len(chosen) < 3:
                continue
            spread = [np.log(found[i]["interval"][1] / found[i]["interval"][0]) / 3.92 for i in chosen]
            size = [found[i]["samples"] / (logs[i] ** over if over else 1.0) for i in chosen]
            fit = slope([found[i]["x"] for i in chosen], size, spread)
            name = {"mechanism": mechanism, "sweep": sweep, "method": method, "least": least, "over": over}
            out.append({**name, "points": len(chosen), **fit})
    return out


def draw(data: Data, folder: Path) -> None:
    """Draw the four sweeps."""
    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    fits = {
        (fit["mechanism"], fit["sweep"], fit["method"]): fit for fit in slopes(data) if fit["least"] and not fit["over"]
    }
    lines = list(itertools.product(MECHANISMS, METHODS))
    colours = ("#b5541c", "#e8a87c", "#0b6e99", "#4fb0d6")
    figure, axes = plt.subplots(2, 2, figsize=(8.5, 6.6), layout="constrained")
    for axis, (sweep, (label, _)) in zip(axes.flat, SWEEPS.items(), strict=True):
        for (mechanism, method), colour in zip(lines, colours, strict=True):
            rows = points_of(data, mechanism, sweep, method)
            if rows:
                y = [row["samples"] for row in rows]
                error = np.abs(
                    np.array([[m - row["interval"][0], row["interval"][1] - m] for m, row in zip(y, rows, strict=True)])
                )
                fit = fits.get((mechanism, sweep, method))
                text = f"{mechanism}, {method}" + (f": {fit['slope']:.2f}" if fit else "")
                axis.errorbar(
                    [row["x"] for row in rows], y, yerr=error.T, color=colour, marker="o", markersize=4, label=text
                )
        axis.set(xscale="log", yscale="log", xlabel=label, title=f"against {label}")
        shown = sorted({row["x"] for row in data["measured"].values() if row.get("sweep") == sweep})
        axis.set_xticks(shown, [f"{x:g}" for x in shown])
        axis.minorticks_off()
        axis.grid(alpha=0.25, linewidth=0.4)
        axis.legend(frameon=False, title=f"slope from {LATE[sweep]} on", fontsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel("coins until two decisions differ\nwith probability ρ")
    figure.savefig(folder / "evidence.svg", metadata={"Date": None})
    plt.close(figure)


def tables(data: Data) -> str:
    """Return slopes, and what phantom actions do."""
    lines = ["| mechanism | coins against | joint; bound | product; bound | points |", "|---" * 5 + "|"]
    found: dict[tuple[str, str, int], dict[str, str]] = {}
    for fit in slopes(data):
        bound = BOUND[fit["sweep"]]
        exponent = bound[fit["method"]] if isinstance(bound, dict) else bound
        name = SWEEPS[fit["sweep"]][0] + (f", from {fit['least']}" if fit["least"] else "")
        name += ", over log²(3SA/δ)" if fit["over"] else ""
        text = f"{fit['slope']:.2f} ({fit['low']:.2f} … {fit['high']:.2f}); {exponent}"
        found.setdefault((fit["mechanism"], name, fit["points"]), {})[fit["method"]] = text
    lines += [f"| {m} | {name} | {row['joint']} | {row['product']} | {n} |" for (m, name, n), row in found.items()]
    head = [f"{mechanism}, {method}" for mechanism in ("exponential", "compact") for method in ("joint", "product")]
    lines += ["", f"| pairs that differ in real draws, ρ = 0.1 | {' | '.join(head)} |", "|---" * 5 + "|"]
    drawn: dict[str, dict[str, str]] = {}
    for row in data["measured"].values():
        if "drawn" in row:
            apart, pairs = row["drawn"]
            low, high = exact_interval(apart, pairs)
            point = Point()._replace(**{row["sweep"]: row["x"]})
            size = f"S = {point.states:g}, A = {point.actions:g}"
            text = f"{apart / pairs:.3f} ({low:.3f} … {high:.3f})"
            drawn.setdefault(size, {})[f"{row['mechanism']}, {row['method']}"] = text
    lines += [f"| {size} | {' | '.join(row[name] for name in head)} |" for size, row in drawn.items()]
    lines += [
        "",
        "| environment | records of phantom actions: p-value (runs) | real outcomes kept too: p-value (runs) |",
        "|---|---|---|",
    ]
    for world in PHANTOM:
        row = data["measured"].get(f"phantom/{world}")
        if row is not None:
            lines.append(f"| {world} | {row['phantom']:.2g} ({row['runs']:,}) | {row['real']:.1g} ({row['slow']:,}) |")
    return "\n".join(lines) + "\n"


EXPERIMENT = Experiment(
    name="evidence", page="evidence.md", jobs=jobs, head=head, draw=draw, tables=tables, marks=(START, END)
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

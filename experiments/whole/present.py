"""The figure and tables of the whole algorithm; reads stored data only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from experiments.whole import plan
from reprl.auditing.evidence import exact_interval

Data = dict[str, Any]
START, END = "<!-- tables: python -m experiments.whole -->\n", "<!-- end of tables -->\n"


def part(data: Data, kind: str) -> dict[str, Data]:
    """Measurements of a kind by what follows in their names."""
    return {name.partition("/")[2]: found for name, found in data["measured"].items() if name.startswith(f"{kind}/")}


def rows_of(data: Data) -> dict[str, list[Data]]:
    """All pairs of every world."""
    found: dict[str, list[Data]] = {}
    for name, one in part(data, "pairs").items():
        found.setdefault(name.partition("#")[0], []).extend(one["rows"])
    return found


def tables(data: Data) -> str:
    """Return the tables of the page as Markdown."""
    return "\n".join([_pairs(data), _grown(data), _theorem(data), _tiers(data), _slopes(data)])


def share(hits: int, trials: int) -> str:
    """A frequency with its exact 95 % interval."""
    low, high = exact_interval(hits, trials)
    return f"{hits}/{trials} [{low:.3f}, {high:.3f}]"


def _pairs(data: Data) -> str:
    lines = [
        "| environment | pairs that differ | loss, mean | loss, largest | samples a run | cells in tiers 1, 2, 3 | "
        "failed runs |",
        "|---|---|---|---|---|---|---|",
    ]
    for world, rows in rows_of(data).items():
        losses = [x for row in rows for x in row["losses"]]
        samples = np.mean([x for row in rows for x in row["samples"]])
        levels = np.mean([x for row in rows for x in row["tiers"]], axis=0)
        failed = sum(row["failed"] for row in rows)
        lines.append(
            f"| {world} | {share(sum(row['apart'] for row in rows), len(rows))} | {np.mean(losses):.4f} | "
            f"{max(losses):.4f} | {samples:.2g} | {', '.join(f'{x:.1f}' for x in levels)} | {failed}/{2 * len(rows)} |"
        )
    return "\n".join(lines) + "\n"


def _grown(data: Data) -> str:
    lines = [
        "| environment, parallel | calls of a learner | learners that differ | boosting at scale | learners a seed | "
        "pulls | heavy hitters differ | boosted ones that differ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, one in part(data, "boosting").items():
        world, _, scale = name.rpartition("/")
        base, runs = one["base"][0] / one["base"][1], one["candidates"] + one["frequencies"]
        lines.append(
            f"| {world} | {one['calls']} | {base:.3f} | {scale} | {runs} | {one['pulls']} | "
            f"{one['sets']}/{one['pairs'] - one['failed']} | {share(one['apart'], one['pairs'])} |"
        )
    return "\n".join(lines) + "\n"


def _theorem(data: Data) -> str:
    lines = [
        "| Theorem 4.13 at the paper's constants | learners a run | samples a run | seconds a run | status | "
        "learners under one seed that differ, at most | loss, largest | pairs that differ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    found: dict[str, list[Data]] = {}
    for name, one in part(data, "theorem").items():
        found.setdefault(name.partition("#")[0], []).append(one)
    for name, rows in found.items():
        samples, seconds = np.mean([x for row in rows for x in row["samples"]]), np.median([x["seconds"] for x in rows])
        lines.append(
            f"| {name} | {rows[0]['learners']:,} | {samples:.2g} | {seconds:.0f} | {rows[0]['status']} | "
            f"{max(row['base'] for row in rows):.2g} | {max(x for row in rows for x in row['losses']):.3g} | "
            f"{share(sum(row['apart'] for row in rows), len(rows))} |"
        )
    return "\n".join(lines) + "\n"


def _tiers(data: Data) -> str:
    lines = [
        "| environment | tier | cells | records of the rarest action | visits, at most | by the policy | ε_ℓ | "
        "error of V̄ × visits | niceness ÷ ζ |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    losses = [
        "| environment | runs | loss with pessimism | without | largest with | without |",
        "|---|---|---|---|---|---|",
    ]
    for world, one in part(data, "tiers").items():
        for i in range(one["tiers"]):
            ignored = i == one["tiers"] - 1
            accuracy = "–" if ignored else f"{one['by_tier'][i]:.3g}"
            nice = "–" if ignored or not one["cells"][i] else f"{one['nice'][i] / one['zeta']:.3f}"
            lines.append(
                f"| {world} | {i + 1}{', ignored' if ignored else ''} | {one['cells'][i]:.1f} | "
                f"{one['samples'][i]:.2g} | {one['reach'][i]:.3g} | {one['visits'][i]:.3g} | {accuracy} | "
                f"{one['error'][i]:.3g} | {nice} |"
            )
        means = {name: (np.mean(x), max(x), len(x)) for name, x in one["losses"].items()}
        losses.append(
            f"| {world} | {means['with'][2]} | {means['with'][0]:.4f} | {means['without'][0]:.4f} | "
            f"{means['with'][1]:.4f} | {means['without'][1]:.4f} |"
        )
    return "\n".join(lines) + "\n\n" + "\n".join(losses) + "\n"


def slope(x: list[float], y: list[float]) -> tuple[float, float, float]:
    """Return the slope of log y on log x by least squares, with a 95 % t-interval."""
    from scipy import stats

    fit = stats.linregress(np.log(x), np.log(y))
    half = float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr)
    return float(fit.slope), float(fit.slope) - half, float(fit.slope) + half


def needed(states: list[float], found: list[Data], level: float) -> tuple[float, float, float]:
    """Return the slope of the samples at which pairs part with a probability, which falls like 1/√samples.

    The interval is a parametric bootstrap over the numbers of pairs apart, (apart + ½)/(pairs + 1) being the share.
    """
    pairs = np.array([one["pairs"] for one in found])
    apart = np.array([one["apart"] for one in found], dtype=float)
    samples = np.log([one["samples"] for one in found])

    def fit(hits: Any) -> float:
        shares = (hits + 0.5) / (pairs + 1.0)
        return float(np.polyfit(np.log(states), samples + 2.0 * np.log(shares / level), 1)[0])

    again = np.random.default_rng(0).binomial(pairs, apart / pairs, (2000, len(found)))
    low, high = np.quantile([fit(one.astype(float)) for one in again], [0.025, 0.975])
    return fit(apart), float(low), float(high)


def _slopes(data: Data) -> str:
    measured = part(data, "slope")
    fits = [
        "| coupling | S | pairs that differ | slope in S of the samples drawn | of the samples needed for one "
        "disagreement |",
        "|---|---|---|---|---|",
    ]
    for grade in plan.GRADES:
        found = {int(name.partition("/")[2]): one for name, one in measured.items() if name.startswith(f"{grade}/")}
        if len(found) >= 3:
            states = [float(n) for n in found]
            drawn = slope(states, [one["samples"] for one in found.values()])
            equal = needed(states, [*found.values()], plan.RHO)
            cells = (f"{x:.2f} [{low:.2f}, {high:.2f}]" for x, low, high in (drawn, equal))
            sizes = ", ".join(map(str, found))
            apart, pairs = (sum(one[name] for one in found.values()) for name in ("apart", "pairs"))
            fits.append(f"| {grade} | {sizes} | {share(apart, pairs)} | {' | '.join(cells)} |")
    return "\n".join(fits) + "\n"


def draw(data: Data, folder: Path) -> None:
    """Draw the tiers at work: where states are, what they get, and what errors weigh."""
    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    found = part(data, "tiers")
    figure, axes = plt.subplots(len(found), 3, figsize=(10, 2.9 * len(found)), layout="constrained", squeeze=False)
    for row, (world, one) in zip(axes, found.items(), strict=True):
        count, x = one["tiers"], np.arange(1, one["tiers"] + 1)
        level = np.array(one["level"]).T
        row[0].imshow(level, cmap=plt.get_cmap("viridis_r", count), vmin=0.5, vmax=count + 0.5, aspect="auto")
        for (s, h), tier in np.ndenumerate(level):
            dark = "white" if tier > count // 2 else "black"
            row[0].text(h, s, "·" if tier == count else str(tier), ha="center", va="center", color=dark)
        row[0].set_yticks(range(len(one["states"])), one["states"], fontsize=7)
        row[0].set(title=f"{world}: tier (· ignored)", xlabel="step")
        row[1].bar(x, np.maximum(one["samples"], 0.5), color="#0b6e99")
        row[1].set(yscale="log", title="records of the rarest action, mean", xlabel="tier")
        row[2].bar(x - 0.2, one["error"], 0.4, color="#c1440e", label="error of V̄ × visits")
        row[2].bar(x + 0.2, one["visits"], 0.4, color="#8a8d0f", label="visits by the policy")
        row[2].set(yscale="log", ylim=(1e-4, 20), title="what errors weigh", xlabel="tier")
        row[2].set_xticks(x)
        row[2].legend(frameon=False, fontsize=7)
    figure.savefig(folder / "whole-tiers.svg", metadata={"Date": None})
    plt.close(figure)

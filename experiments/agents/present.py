"""The figure and the table of docs/agents.md, from stored audits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

BLUE, ORANGE = "#3465a4", "#ce5c00"


def draw(data: dict[str, Any], folder: Path) -> None:
    """Distance of each pair with its interval, one row for each audit."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "reprl"
    from matplotlib import pyplot as plt

    measured = data["measured"]
    figure, all_axes = plt.subplots(1, 2, figsize=(8.2, 1.0 + 0.95 * len(measured)), width_ratios=(3, 2))
    left, right = all_axes
    for row, found in enumerate(measured.values()):
        n = len(found["pairs"])
        for k, pair in enumerate(found["pairs"]):
            y = row + 0.7 * ((k + 0.5) / n - 0.5)
            low, high = pair["interval"]
            far = pair["distance"] > found["gamma"]
            left.plot([100 * low, 100 * high], [y, y], color="#aaaaaa", lw=1)
            left.plot(100 * pair["distance"], y, "o", ms=4, color=ORANGE if far else BLUE)
            right.plot(pair["returns"], [y, y], "-", color="#aaaaaa", lw=1)
            right.plot(pair["returns"], [y, y], "o", ms=4, color=ORANGE if far else BLUE)
    gamma = next(iter(measured.values()))["gamma"]
    left.axvline(100 * gamma, color="#555555", lw=0.8, ls="--")
    left.set_xlabel(f"% of states met in which the two act differently (dashed: γ = {gamma:g})")
    right.set_xlabel("mean return of the two agents")
    for axes in all_axes:
        axes.set_ylim(len(measured) - 0.5, -0.5)
        axes.set_yticks(range(len(measured)), list(measured) if axes is left else [""] * len(measured))
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(left=-2)
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "agents.svg", metadata={"Date": None})
    plt.close(figure)


def tables(data: dict[str, Any]) -> str:
    """One row for each audit."""
    lines = [
        "",
        "| trained | samples a training | pairs at a distance above γ, of | chance of such a pair, 95 % | mean "
        "distance, 95 % | the same in every state met | return, 95 % | returns of a pair differ by, 95 % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in data["measured"].items():
        low, high = found["interval"]
        same = sum(pair["distance"] == 0.0 for pair in found["pairs"])
        lines.append(
            f"| {name} | {found['samples']:,.0f} | {found['disagreements']} of {len(found['pairs'])} | "
            f"{low:.2f} to {high:.2f} | {_estimate(found['distance'], '.1%')} | {same} of {len(found['pairs'])} | "
            f"{_estimate(found['value'], '.4g')} | {_estimate(found['gap'], '.3g')} |"
        )
    return "\n".join([*lines, ""])


def _estimate(figures: list[float], form: str) -> str:
    mean, low, high = figures
    return f"{mean:{form}} ({low:{form}} to {high:{form}})"

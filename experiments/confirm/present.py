"""The tables of docs/confirm.md, from stored data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, binomtest

from experiments.confirm import plan

Data = dict[str, Any]


def draw(data: Data, folder: Path) -> None:
    """There is no figure."""


def total(data: Data, start: str) -> dict[str, int]:
    """The sum over all chunks of a measurement."""
    chunks = [found for name, found in data["measured"].items() if name.partition("#")[0] == start]
    return {key: sum(chunk[key] for chunk in chunks) for key in (chunks[0] if chunks else {})}


def tables(data: Data) -> str:
    """Error rates, prices and published policies."""
    lines = [
        "",
        "| policies just below the target | policies | false confirmations | p-value of δ | power 0.99 from |",
        "|---|---|---|---|---|",
    ]
    for name in plan.STRENGTHS:
        found = total(data, f"below/{name}")
        if found:
            lines.append(_rate(f"betting, {name}", found["false"], found["policies"], data["delta"]))
    found = total(data, "below/as proven")
    if found:
        lines.append(_rate("t-test, 32 episodes", found["fixed"], found["policies"], data["delta"]))
        lines.append(_rate("t-test after 8, 16, … 2000", found["looks"], found["policies"], data["delta"]))
    lines += [
        "",
        "| scans of bandits beside a threshold | pairs | an answer false | answers differ | p-value of ρ "
        "| power 0.99 from |",
        "|---|---|---|---|---|---|",
    ]
    for by in ("naive", "search"):
        for name in plan.STRENGTHS:
            found = total(data, f"scans/{by}/{name}")
            if found:
                chance = binomtest(found["wrong"], found["pairs"], data["rho"], alternative="greater").pvalue
                answers = f"{found['pairs']:,} | {found['wrong']:,} | {found['different']:,}"
                least = detected(found["pairs"], data["rho"])
                lines.append(f"| {by} scan, {name} | {answers} | {_p(chance)} | {least:.1%} |")
    lines += [
        "",
        "| a policy above the target | betting, episodes: median (90 %) | confirmed | t-test that confirms 95 % |",
        "|---|---|---|---|",
    ]
    for case in plan.CASES:
        found = data["measured"].get(f"episodes/{case}")
        if found:
            sizes = np.array([n for n, verdict in found["rows"] if verdict == "above"])
            middle, late = np.quantile(sizes, (0.5, 0.9))
            share = f"{sizes.size} of {len(found['rows'])}"
            lines.append(f"| {case} | {middle:,.0f} ({late:,.0f}) | {share} | {found['t_test']:,} |")
    lines += [
        "",
        "| published | target | verdict | mean return | interval | episodes | t-test that confirms 95 % | steps "
        "| seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in data["measured"].items():
        if name.startswith("published/"):
            lines.append(_row(name.partition("/")[2], found))
            if "box" in found:
                lines.append(_row(f"{name.partition('/')[2]}, Gymnasium's own", found["box"]))
    return "\n".join([*lines, ""])


def _rate(name: str, hits: int, trials: int, bound: float) -> str:
    chance = binomtest(hits, trials, bound, alternative="greater").pvalue
    return f"| {name} | {trials:,} | {hits:,} | {_p(chance)} | {detected(trials, bound):.1%} |"


def detected(trials: int, bound: float, level: float = 0.05, power: float = 0.99) -> float:
    """Return the least rate, in steps of 0.1 %, that the binomial test at this level rejects with this probability."""
    critical = binom.isf(level, trials, bound)  # more hits than this are rejected
    rates = np.arange(np.ceil(1000 * bound), 1001) / 1000
    return float(rates[np.argmax(binom.sf(critical, trials, rates) >= power)])


def _p(chance: float) -> str:
    return "< 10⁻⁶" if chance < 1e-6 else f"{chance:.2g}"


def _row(name: str, found: Data) -> str:
    low, high = found["interval"]
    return (
        f"| {name} | {found['target']:g} | {found['verdict']} [{found['status']}] | {found['mean']:.4g} | "
        f"{low:.4g} to {high:.4g} | {found['episodes']:,} | {found['t_test']:,} | "
        f"{found['samples']:,} | {found['seconds']:.1f} |"
    )

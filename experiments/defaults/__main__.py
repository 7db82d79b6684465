"""python -m experiments.defaults --jobs N --out FILE: what does a new user get who sets nothing but the environment?

Pairs of runs at the default quality, judged by the exact MDP in the environment's own reward units. On versions without
quality, ε is a tenth of the gain over always the first action, computed from the exact MDP. A run that was stopped goes
on where it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.defaults import plan
from experiments.defaults.worlds import WORLDS
from experiments.pairs import by_case, chunks, count, measure_jobs, read_options
from experiments.runner import Job


def main() -> None:
    """Measure, store, print."""
    options = read_options("defaults", __doc__, pairs=40, chunk=1, more=lambda parser: None)
    jobs: dict[str, Job] = {}
    for case in plan.cases():
        jobs |= chunks(case, case.pairs(options.pairs), options.chunk)
    data = measure_jobs(options, {"experiment": "defaults"}, jobs, lambda name: 2 * options.chunk * _seconds(name))
    print(table(data["measured"]))


def _seconds(name: str) -> float:
    return WORLDS[name.partition("/")[2].partition("#")[0]].seconds


def table(measured: dict[str, Any]) -> str:
    """Return a row for each environment; values and shares are medians over runs."""
    lines = [
        "| environment | value | best | baseline | share of the gain | smallest | samples | s a run | pairs that "
        "differ | quality missed | no promise |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in by_case(measured).items():
        world = name.partition("/")[2]
        known, seen = WORLDS[world], count(found)
        values = np.array([value for row in found["rows"] for value in row[4]])
        gain = found["best"] - found["baseline"]
        shares = (values - found["baseline"]) / gain if gain > 0.0 else np.ones_like(values)
        median, best, baseline = (
            known.original(value, found["horizon"]) for value in (np.median(values), found["best"], found["baseline"])
        )
        lines.append(
            f"| {world} | {median:.4g} | {best:.4g} | {baseline:.4g} | {100 * np.median(shares):.0f} % | "
            f"{100 * shares.min():.0f} % | {np.median(seen.samples):.2g} | {seen.seconds:.1f} | {seen.apart} | "
            f"{seen.missed} | {seen.unpromised} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()

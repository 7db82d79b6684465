"""python -m experiments.quiet --jobs N --out FILE: does a promise hold where much is never seen?

Pairs of runs on quiet worlds, with one shared seed and independent data. A break of ρ is a pair in which both runs
promise and the policies differ, a break of δ a run that promises and loses more than was asked. Each is tested by an
exact binomial test at a false-alarm rate of 1e-6. A run that was stopped goes on where it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.pairs import by_case, chunks, count, measure_jobs, read_options
from experiments.quiet import plan
from experiments.runner import Job

SECONDS = {
    "parallel": 0.8,
    "patient": 2.5,
    "mixed": 0.8,
    "episodes": 1.0,
    "box": 4.0,
    "blind": 8.0,
    "log": 1.0,
    "logs": 1.0,
}
"""Of a run, roughly."""


def main() -> None:
    """Measure, store, print."""
    options = read_options("quiet", __doc__, pairs=20, chunk=10, more=_own_options)
    jobs: dict[str, Job] = {}
    cases = plan.cases(options.given.first, options.given.random)
    for case in cases:
        jobs |= chunks(case, options.pairs, options.chunk)
    head = {"experiment": "quiet", "seed": plan.SEED, "logs": list(plan.LOGS["log"])}
    data = measure_jobs(options, head, jobs, lambda name: 2 * options.chunk * SECONDS.get(name.partition("/")[0], 1.0))
    print(table(data["measured"]))


def _own_options(parser: Any) -> None:
    parser.add_argument("--random", type=int, default=10, help="number of random quiet worlds")
    parser.add_argument("--first", type=int, default=0, help="seed of the first of them")


def table(measured: dict[str, Any]) -> str:
    """Return a row for each kind of data and what was asked, over all worlds, and the worlds where something broke."""
    lines = [
        "| data | asked | environments | pairs that differ | ε missed | interval misses | no promise | "
        "samples, median | environments with pairs that differ, or runs that miss |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cases = {name: count(found) for name, found in by_case(measured).items()}
    for group in dict.fromkeys(name.rpartition("/")[0] for name in cases):
        seen = {name.rpartition("/")[2]: one for name, one in cases.items() if name.rpartition("/")[0] == group}
        apart, missed, uncovered = (_share(seen, part) for part in ("apart", "missed", "uncovered"))
        broken = [
            f"{world} {one.apart}" + (f", {one.missed} missed" if one.missed.failures else "")
            for world, one in seen.items()
            if one.apart.failures or one.missed.failures
        ]
        samples = np.median([np.median(one.samples) for one in seen.values()])
        silent = sum(one.unpromised for one in seen.values())
        cells = (*group.split("/"), len(seen), apart, missed, uncovered, silent, f"{samples:.2g}", "; ".join(broken))
        lines.append(f"| {' | '.join(str(cell) or '–' for cell in cells)} |")
    rejected = [name for name, one in cases.items() if one.rejected]
    listed = f": {', '.join(rejected)}" if rejected else ""
    return "\n".join([*lines, "", f"rejected at 1e-6: {len(rejected)} of {len(cases)}{listed}"])


def _share(seen: dict[str, Any], part: str) -> str:
    failures, trials = (sum(getattr(getattr(one, part), x) for one in seen.values()) for x in ("failures", "trials"))
    return f"{failures}/{trials}" if trials else "–"


if __name__ == "__main__":
    main()

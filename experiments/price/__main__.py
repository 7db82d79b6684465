"""python -m experiments.price --jobs N --out FILE: what does replicability cost, over an accurate policy alone?

The price is the number of samples at which the default learner stops, over the number at which greedy planning on the
same kind of data first loses no more than asked in 18 of 20 runs (in hindsight, by doubling). Both take parallel
samples. --first chooses the seeds of the generated worlds, so that worlds can be held out: the default range is for
tuning, others are not.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.pairs import by_case, chunks, count, measure_jobs, read_options
from experiments.price.measure import Case, greedy_samples
from experiments.price.worlds import TARGETS, generated
from experiments.runner import Job

SECONDS = {"greedy": 5.0, "pairs": 4.0}
"""Of a search for the size, and of a run, roughly."""


def main() -> None:
    """Measure, store, print."""
    options = read_options("price", __doc__, pairs=10, chunk=5, more=_own_options)
    worlds = {f"generated/{name}": build for name, build in generated(options.given.first, options.given.each).items()}
    worlds |= {} if options.given.first else {f"targets/{name}": build for name, build in TARGETS.items()}
    jobs: dict[str, Job] = {}
    for name, build in worlds.items():
        case = Case("pairs", name, build)
        jobs[f"greedy/{name}"] = partial(greedy_samples, case)
        jobs |= chunks(case, options.pairs, options.chunk)
    data = measure_jobs(options, {"experiment": "price"}, jobs, partial(_seconds, options.chunk))
    print(table(data["measured"]))


def _own_options(parser: Any) -> None:
    parser.add_argument("--first", type=int, default=0, help="seed of the first generated world of each kind")
    parser.add_argument("--each", type=int, default=5, help="generated worlds of each of the six kinds")


def _seconds(chunk: int, name: str) -> float:
    return SECONDS["greedy"] if name.startswith("greedy/") else 2 * chunk * SECONDS["pairs"]


def prices(measured: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is known of every world for which both were measured."""
    out: dict[str, dict[str, Any]] = {}
    for name, found in by_case({key: row for key, row in measured.items() if key.startswith("pairs/")}).items():
        world = name.partition("/")[2]
        least = measured.get(f"greedy/{world}", {}).get("samples")
        if least is None:
            continue
        seen = count(found)
        out[world] = {
            "allowed": found["allowed"],
            "greedy": least,
            "seen": seen,
            "runs": np.array(seen.samples) / least,
        }
    return out


def table(measured: dict[str, Any]) -> str:
    """Return a row for each world, and one for each group."""
    lines = [
        "| world | ε | greedy | ours, median | price | 10 % … 90 % | apart | quality missed | no promise | s a run |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    found = prices(measured)
    for world, row in found.items():
        low, middle, high = np.quantile(row["runs"], (0.1, 0.5, 0.9))
        seen = row["seen"]
        lines.append(
            f"| {world} | {row['allowed']:.2g} | {row['greedy']:.2g} | {np.median(seen.samples):.2g} | {middle:.3g} | "
            f"{low:.3g} … {high:.3g} | {seen.apart} | {seen.missed} | {seen.unpromised} | {seen.seconds:.1f} |"
        )
    for group in ("targets", "generated"):
        rows = [row for world, row in found.items() if world.startswith(group)]
        if rows:
            lines += ["", f"{group}: {_summary(rows)}"]
    return "\n".join(lines)


def _summary(rows: list[dict[str, Any]]) -> str:
    """Say what the worlds of a group have in common. A run that promised nothing counts with the samples it took."""
    medians = [float(np.median(row["runs"])) for row in rows]
    low, middle, high = np.quantile(medians, (0.1, 0.5, 0.9))
    apart, missed = (sum(getattr(row["seen"], name).failures for row in rows) for name in ("apart", "missed"))
    both, promised = (sum(getattr(row["seen"], name).trials for row in rows) for name in ("apart", "missed"))
    nothing = sum(row["seen"].unpromised for row in rows)
    return (
        f"{len(rows)} worlds, median price {middle:.3g} ({low:.3g} … {high:.3g}); {apart} of {both} pairs apart, "
        f"{missed} of {promised} runs lose more than asked, {nothing} promise nothing"
    )


if __name__ == "__main__":
    main()

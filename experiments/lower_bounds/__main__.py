"""python -m experiments.lower_bounds [--quick]: run the sweep, store its data, draw the figure and the table.

The full sweep takes about ten minutes on one core and rewrites experiments/lower_bounds/data.json,
docs/figures/lower-bounds.svg and the tables in docs/lower-bounds.md. --quick takes about a minute and writes to --out.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.lower_bounds import measure, present
from experiments.lower_bounds.sweep import (
    BASE,
    DELTA,
    EDGE_N,
    EDGES,
    FULL,
    JOINT,
    LARGE_N,
    LEARNER_STATES,
    QUICK,
    SIZES,
    WORST_EDGE,
    Effort,
    Point,
    points,
)
from experiments.runner import insert
from reprl.randomness import STREAM_VERSION

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def collect(effort: Effort) -> dict[str, Any]:
    """Measure every point of the sweep."""
    rows = []
    for serial, point in enumerate(points()):
        start = time.perf_counter()
        found = measure.samples_needed(point, effort)
        found["worst_excess"] = measure.accuracy(point, found["gap"], found["samples"], effort.accuracy_runs)
        if point.sweep == "n":
            found["real"] = measure.real_runs(point, found["gap"], found["samples"], effort.real_pairs, serial)
        row = {
            "series": point.series.name,
            "sweep": point.sweep,
            "n": point.n,
            "rho": point.rho,
            "epsilon": point.epsilon,
        }
        rows.append(row | found)
        print(
            f"{row}: {found['samples']} vectors, ratio {found['ratio']:.3g}, {time.perf_counter() - start:.1f} s",
            flush=True,
        )
    learner = []
    for n_states in LEARNER_STATES:
        start = time.perf_counter()
        learner.append(measure.learner_point(n_states, BASE["rho"], BASE["epsilon"], effort.learner_pairs))
        print(
            f"learner S={n_states}: {learner[-1]['samples']} vectors, {time.perf_counter() - start:.1f} s", flush=True
        )
    edges = [(EDGE_N, u) for u in EDGES] + [(n, WORST_EDGE) for n in SIZES if n != EDGE_N]
    edge = [measure.edge(Point(JOINT, "n", n, BASE["rho"], BASE["epsilon"]), u, effort) for n, u in edges]
    return {
        "effort": asdict(effort),
        "delta": DELTA,
        "base": BASE,
        "stream_version": STREAM_VERSION,
        "points": rows,
        "learner": learner,
        "edges": edge,
        "slopes": slopes(rows, learner, edge),
    }


def tell(what: str, start: float) -> None:
    """Print one line of progress."""
    print(f"{what}, {time.perf_counter() - start:.1f} s", flush=True)


def slopes(
    rows: list[dict[str, Any]], learner: list[dict[str, Any]], edge: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Fit every sweep of every series: samples against n, 1/ρ or 1/ε."""
    out = []
    worst = sorted((row for row in edge if row["u"] == WORST_EDGE), key=lambda row: row["n"])
    for name, sweep in dict.fromkeys((row["series"], row["sweep"]) for row in rows):
        chosen = [row for row in rows if (row["series"], row["sweep"]) == (name, sweep)]
        x = [row["n"] if sweep == "n" else 1.0 / row[sweep] for row in chosen]
        fit = measure.slope(x, [row["samples"] for row in chosen])
        out.append({"series": name, "sweep": sweep, "bound": 1 if sweep == "n" else 2, **fit})
    large = [row for row in rows if (row["series"], row["sweep"]) == (JOINT.name, "n") and row["n"] >= LARGE_N]
    for name, chosen in (
        (f"{JOINT.name}, n ≥ {LARGE_N}", large),
        (f"{JOINT.name}, all biases at {WORST_EDGE}·gap/2", worst),
        (f"{JOINT.name}, all biases at {WORST_EDGE}·gap/2, n ≥ {LARGE_N}", [r for r in worst if r["n"] >= LARGE_N]),
        ("RL learner, H = 4", learner),
    ):
        fit = measure.slope([row["n"] for row in chosen], [row["samples"] for row in chosen])
        out.append({"series": name, "sweep": "n", "bound": 1, **fit})
    return out


def main(argv: list[str] | None = None) -> None:
    """Run, store, draw."""
    parser = argparse.ArgumentParser(prog="experiments.lower_bounds", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small sweep that shows that everything runs")
    parser.add_argument("--draw-only", action="store_true", help="redraw figure and table from the stored data")
    parser.add_argument("--out", type=Path, help="folder for the results; the repository's own by default")
    options = parser.parse_args(argv)
    if options.quick and options.out is None:
        options.out = Path("out/lower_bounds")
    data_file = (options.out or HERE) / "data.json"
    if not options.draw_only:
        data = collect(QUICK if options.quick else FULL)
        data_file.parent.mkdir(parents=True, exist_ok=True)
        data_file.write_text(json.dumps(data, indent=1) + "\n")
    data = json.loads(data_file.read_text())
    figure = (options.out or ROOT / "docs" / "figures") / "lower-bounds.svg"
    present.draw(data, figure)
    page = ROOT / "docs" / "lower-bounds.md"
    if options.out is None:
        insert(page, (present.START, present.END), present.tables(data))
    else:
        (options.out / "tables.md").write_text(present.tables(data))
    print(f"wrote {data_file} and {figure}")


if __name__ == "__main__":
    main()

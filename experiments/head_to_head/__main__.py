"""python -m experiments.head_to_head [--quick] [--only TEXT]: measure what is missing, then draw figures and tables.

Every measurement is stored as soon as it is done, and a run that was stopped goes on where it was. The full experiment
takes about an hour of one core and rewrites experiments/head_to_head/data.json, docs/figures/head-to-head*.svg and
the tables in docs/head-to-head.md. --quick takes under a minute and writes to --out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from experiments.head_to_head import measure, plan, present
from reprl.errors import ReprlError
from reprl.files import write_atomic
from reprl.randomness import STREAM_VERSION

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
Job = Callable[[], dict[str, Any]]


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under, what matters most first."""
    effort = plan.QUICK if quick else plan.FULL
    table = {entry.name: partial(measure.cell, entry, effort) for entry in plan.cells(quick)}
    sweeps = {entry.name: partial(measure.point, entry, effort) for entry in plan.points(quick)}
    presets = {f"preset/{name}": partial(measure.preset, name, effort) for name in plan.PRESETS[-1 if quick else 0 :]}
    everything = {**table, **sweeps, **presets}
    order = ("table/generative/", "sweep/states/", "table/", "")
    return {name: everything[name] for start in order for name in everything if name.startswith(start)}


def load(file: Path, quick: bool) -> dict[str, Any]:
    """Return what is stored, or an empty store; a store of another plan is refused."""
    head = {
        "effort": asdict(plan.QUICK if quick else plan.FULL),
        "epsilon": plan.EPSILON,
        "rho": plan.RHO,
        "seed": plan.SEED,
        "stream_version": STREAM_VERSION,
    }
    if not file.exists():
        return {**head, "measured": {}}
    data: dict[str, Any] = json.loads(file.read_text())
    different = [name for name, value in head.items() if data.get(name) != value]
    if different:
        raise ReprlError(f"{file} was measured with another {', '.join(different)}: move it away to start again")
    return data


def collect(file: Path, quick: bool, only: list[str], workers: int = 1) -> dict[str, Any]:
    """Measure what is missing and store it, one measurement at a time."""
    data = load(file, quick)
    todo = jobs(quick)
    wanted = {
        name: job
        for name, job in todo.items()
        if name not in data["measured"] and (not only or any(text in name for text in only))
    }
    runs = (delayed(_timed)(name, job) for name, job in wanted.items())
    for name, found, seconds in Parallel(n_jobs=workers, return_as="generator_unordered")(runs):
        data["measured"][name] = found
        data["measured"] = {key: data["measured"][key] for key in todo if key in data["measured"]}
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode())
        shown = "not reached" if found["samples"] is None else f"{found['samples']:.3g} samples"
        print(f"{name}: {shown}, {seconds:.1f} s", flush=True)
    return data


def _timed(name: str, job: Job) -> tuple[str, dict[str, Any], float]:
    start = time.perf_counter()
    return name, job(), time.perf_counter() - start


def main(argv: list[str] | None = None) -> None:
    """Measure, store, draw."""
    parser = argparse.ArgumentParser(prog="experiments.head_to_head", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small version that shows that everything runs")
    parser.add_argument("--only", action="append", default=[], help="measure only what has this text in its name")
    parser.add_argument("--draw-only", action="store_true", help="measure nothing: redraw from the stored data")
    parser.add_argument("--workers", type=int, default=1, help="processes; they cannot change the data")
    parser.add_argument("--out", type=Path, help="folder for the results; the repository's own by default")
    options = parser.parse_args(argv)
    if options.quick and options.out is None:
        options.out = Path("out/head_to_head")
    file = (options.out or HERE) / "data.json"
    if options.draw_only:  # what was measured under another plan or stream version is still what was measured
        data = json.loads(file.read_text())
    else:
        data = collect(file, options.quick, options.only, options.workers)
    present.draw(data, options.out or ROOT / "docs" / "figures")
    if options.out is None:
        present.insert_tables(ROOT / "docs" / "head-to-head.md", data)
    else:
        (options.out / "tables.md").write_text(present.tables(data))
    print(f"wrote {file}, figures and tables")


if __name__ == "__main__":
    main()

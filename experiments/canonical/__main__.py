"""python -m experiments.canonical [--quick] [--only TEXT]: measure what is missing, then draw figures and tables.

Measurements are stored as they are done, ten pairs at a time, and a run that was stopped goes on where it was. The full
experiment takes an hour or two on two cores and rewrites experiments/canonical/data.json, docs/figures/canonical*.svg
and the tables in docs/canonical.md. --quick takes a minute or two and writes to --out.
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

from experiments.canonical import figures, measure, plan, present
from reprl.errors import ReprlError
from reprl.files import write_atomic
from reprl.randomness import STREAM_VERSION

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
Job = Callable[[], dict[str, Any]]


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under; a chunk of a case's pairs has its number after "#"."""
    effort = plan.QUICK if quick else plan.FULL
    out: dict[str, Job] = {}
    for first in range(0, effort.pairs, effort.chunk):
        for case in plan.cases(quick):
            numbers = range(first, min(first + effort.chunk, case.pairs or effort.pairs))
            if numbers:
                out[f"{case.name}#{first}"] = partial(measure.pairs, case, numbers)
    for label in plan.RIVALS:
        for world in _without_rivals(quick):
            out[f"rival/{world}/{label}"] = partial(measure.rival, world, label, effort)
    for world in ("gridworld 4×4",) if quick else plan.REHEARSED:
        for calls in plan.SIZES[:1] if quick else plan.SIZES + plan.LARGER.get(world, ()):
            out[f"rehearsed/{world}/{calls}"] = partial(measure.rehearsed, world, calls, effort)
    for rule in ("canonical", "sampled"):
        for world in ("hard-instance-v0",) if quick else plan.LISTED:
            out[f"listed/{rule}/{world}"] = partial(measure.listed, world, rule, effort)
    for size in () if quick else plan.COSTS:
        out[f"cost/{size}"] = partial(measure.cost, size)
    out["drawn"] = measure.drawn
    return out


def _without_rivals(quick: bool) -> list[str]:
    """Catalogue worlds that the head-to-head has not measured."""
    return [] if quick else [name for name in plan.CATALOGUE if name not in plan.IN_HEAD_TO_HEAD]


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


def store(file: Path, data: dict[str, Any]) -> None:
    """Write the data, one measurement a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    head = {name: value for name, value in data.items() if name != "measured"}
    lines = [f"{json.dumps(name, ensure_ascii=False)}: {_line(found)}" for name, found in data["measured"].items()]
    text = json.dumps(head, ensure_ascii=False)[:-1] + ', "measured": {\n' + ",\n".join(lines) + "\n}}\n"
    write_atomic(file, text.encode())


def _line(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


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
        store(file, data)
        print(f"{name}: {seconds:.1f} s", flush=True)
    return data


def _timed(name: str, job: Job) -> tuple[str, dict[str, Any], float]:
    start = time.perf_counter()
    return name, job(), time.perf_counter() - start


def main(argv: list[str] | None = None) -> None:
    """Measure, store, draw."""
    parser = argparse.ArgumentParser(prog="experiments.canonical", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small version that shows that everything runs")
    parser.add_argument("--only", action="append", default=[], help="measure only what has this text in its name")
    parser.add_argument("--draw-only", action="store_true", help="measure nothing: redraw from the stored data")
    parser.add_argument("--workers", type=int, default=1, help="processes; they cannot change the data")
    parser.add_argument("--out", type=Path, help="folder for the results; the repository's own by default")
    options = parser.parse_args(argv)
    if options.quick and options.out is None:
        options.out = Path("out/canonical")
    file = (options.out or HERE) / "data.json"
    if not options.draw_only:
        collect(file, options.quick, options.only, options.workers)
    data = load(file, options.quick)
    figures.draw(data, options.out or ROOT / "docs" / "figures")
    if options.out is None:
        present.insert_tables(ROOT / "docs" / "canonical.md", data)
    else:
        (options.out / "tables.md").write_text(present.tables(data))
    print(f"wrote {file}, figures and tables")


if __name__ == "__main__":
    main()

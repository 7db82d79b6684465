"""python -m experiments.certificates [--quick] [--only TEXT]: measure what is missing, then draw the figure and tables.

Measurements are stored as they are done; a run that was stopped goes on where it was. The full experiment takes about
half an hour on two cores and rewrites experiments/certificates/data.json, docs/figures/certificates.svg and the tables
in docs/certificates.md. --quick takes a minute and writes to --out.
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

from experiments.certificates import measure, plan, present
from reprl.errors import ReprlError
from reprl.files import write_atomic
from reprl.randomness import STREAM_VERSION

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CHUNK = 2_500
Job = Callable[[], dict[str, Any]]


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under."""
    effort = plan.QUICK if quick else plan.FULL
    out: dict[str, Job] = {}
    for strength in plan.STRENGTHS:
        runs = effort.runs if strength == 1.0 else effort.control_runs
        for first in range(0, runs, CHUNK):
            numbers = range(first, min(first + CHUNK, runs))
            out[f"validity/{strength}#{first}"] = partial(measure.validity, strength, numbers)
    for world in plan.QUICK_WORLDS if quick else plan.WORLDS:
        out[f"cost/{world}"] = partial(measure.cost, world, range(effort.keys))
    for world in () if quick else plan.BY_EPISODES:
        for number in range(effort.episodic_keys):
            out[f"episodes/{world}#{number}"] = partial(measure.episodes, world, number)
    return out


def load(file: Path, quick: bool) -> dict[str, Any]:
    """Return what is stored, or an empty store; a store of another plan is refused."""
    head = {
        "effort": asdict(plan.QUICK if quick else plan.FULL),
        "epsilon": plan.EPSILON,
        "delta": plan.DELTA,
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
    lines = [
        f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(found, ensure_ascii=False, separators=(',', ':'))}"
        for name, found in data["measured"].items()
    ]
    text = json.dumps(head, ensure_ascii=False)[:-1] + ', "measured": {\n' + ",\n".join(lines) + "\n}}\n"
    write_atomic(file, text.encode())


def collect(file: Path, quick: bool, only: list[str], workers: int = 1) -> None:
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


def _timed(name: str, job: Job) -> tuple[str, dict[str, Any], float]:
    start = time.perf_counter()
    return name, job(), time.perf_counter() - start


def main(argv: list[str] | None = None) -> None:
    """Measure, store, draw."""
    parser = argparse.ArgumentParser(prog="experiments.certificates", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small version that shows that everything runs")
    parser.add_argument("--only", action="append", default=[], help="measure only what has this text in its name")
    parser.add_argument("--draw-only", action="store_true", help="measure nothing: redraw from the stored data")
    parser.add_argument("--workers", type=int, default=1, help="processes; they cannot change the data")
    parser.add_argument("--out", type=Path, help="folder for the results; the repository's own by default")
    options = parser.parse_args(argv)
    if options.quick and options.out is None:
        options.out = Path("out/certificates")
    file = (options.out or HERE) / "data.json"
    if not options.draw_only:
        collect(file, options.quick, options.only, options.workers)
    data = load(file, options.quick)
    present.draw(data, options.out or ROOT / "docs" / "figures")
    if options.out is None:
        present.insert_tables(ROOT / "docs" / "certificates.md", data)
    else:
        (options.out / "tables.md").write_text(present.tables(data))
    print(f"wrote {file}, the figure and tables")


if __name__ == "__main__":
    main()

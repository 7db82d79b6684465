"""python -m experiments.logs [--quick] [--only TEXT]: measure what is missing, then write the table of docs/logs.md.

Measurements are stored as they are done, and a run that was stopped goes on where it was. All of it takes half an hour
on one core.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from experiments.logs import measure, plan, present
from reprl.files import write_atomic
from reprl.randomness import STREAM_VERSION

HERE = Path(__file__).parent
FILE, PAGE = HERE / "data.json", HERE.parent.parent / "docs" / "logs.md"


def jobs() -> dict[str, tuple[str, int, int]]:
    """Return every measurement by the name it is stored under."""
    return {
        f"{world}/{size}#{number}": (world, size, number)
        for size, pairs in plan.SIZES.items()
        for number in range(pairs)
        for world in plan.WORLDS
    }


def load(file: Path) -> dict[str, Any]:
    """Return what is stored, if it is of this stream version."""
    if not file.exists():
        return {"stream_version": STREAM_VERSION, "measured": {}}
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    if data["stream_version"] != STREAM_VERSION:
        raise SystemExit(f"{file} is of stream version {data['stream_version']}, this is {STREAM_VERSION}: remove it")
    return data


def main() -> None:
    """Measure, store, present."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one pair of each, up to 10⁵ transitions, stored nowhere")
    parser.add_argument("--only", default="", help="only measurements whose name contains this")
    options = parser.parse_args()
    data = {"measured": {}} if options.quick else load(FILE)
    for name, job in jobs().items():
        if options.only not in name or name in data["measured"]:
            continue
        if options.quick and (job[1] > 10**5 or job[2] > 0):
            continue
        data["measured"][name] = measure.pair(*job)
        print(name, flush=True)
        if not options.quick:
            write_atomic(FILE, (json.dumps(data, indent=None, ensure_ascii=False) + "\n").encode())
    if options.quick:
        print(present.tables(data["measured"]))
        return
    text = PAGE.read_text("utf-8")
    before, after = text.split(present.START)[0], text.split(present.END)[1]
    table = present.tables(data["measured"])
    write_atomic(PAGE, f"{before}{present.START}\n{table}{present.END}{after}".encode())


if __name__ == "__main__":
    main()

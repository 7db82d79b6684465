"""Long logs: seconds and memory of reading files of 10⁶ to 10⁸ rows.

Rows are random, 20 states, 3 actions, 10 steps an episode; a file is written in a stream, read whole in a process of
its own, whose resident memory is told before the first row and at its peak, then learned from, with the check and all
that a page shows, and removed. REPRL_ROWS=1e6,1e8 says how
many rows, REPRL_LOGS=csv,parquet,named in which files: `named` is Parquet with episodes that are texts, not numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

PAGE = "logs.md"
N_STATES, N_ACTIONS, STEPS, AT_ONCE = 20, 3, 10, 10**6
ASKED: dict[str, Any] = {
    "horizon": STEPS,
    "early_ends": "terminated",
    "states": list(map(str, range(N_STATES))),
    "actions": list(map(str, range(N_ACTIONS))),
}


def write(path: Path, rows: int, *, named: bool) -> None:
    """Write a log in a stream."""
    import pyarrow
    from pyarrow import compute, csv, parquet

    generator = np.random.default_rng(1)
    writer: Any = None
    for begin in range(0, rows, AT_ONCE):
        size = min(AT_ONCE, rows - begin)
        episode = pyarrow.array(np.arange(begin, begin + size) // STEPS)
        if named:
            episode = compute.binary_join_element_wise("patient", episode.cast(pyarrow.string()), "-")
        columns = {
            "episode": episode,
            "state": generator.integers(N_STATES, size=size, dtype=np.int32),
            "action": generator.integers(N_ACTIONS, size=size, dtype=np.int32),
            "reward": generator.integers(2, size=size).astype(np.float64),
        }
        table = pyarrow.table(columns)
        if writer is None:
            kind = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
            writer = kind(str(path), table.schema)
        writer.write(table)
    writer.close()


def _peak() -> int:
    """The most MiB that this process has held; what getrusage says would be its parent's, if that had more."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) // 1024


def _child(path: str) -> None:
    """Read a log here and print what it took."""
    import reprl
    from reprl.sources.logs.read import read_log
    from reprl.sources.logs.spec import LogSpec
    from reprl.sources.logs.tables import open_table

    spec = LogSpec(**{name: tuple(x) if isinstance(x, list) else x for name, x in ASKED.items()})
    small = {"episode": [1, 2], "state": [1, 2], "action": [1, 2], "reward": [0.0, 1.0]}
    reprl.learn_log(small, **ASKED)  # kernels
    read_log(open_table(small), spec).blocks.redraw(4, 1)  # kernels
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401 - its memory is none of the log's

    before = _peak()
    began = time.perf_counter(), time.process_time()
    found = read_log(open_table(path), spec)
    seconds = time.perf_counter() - began[0], time.process_time() - began[1]
    began = time.perf_counter(), 0.0
    found.blocks.redraw(4, 1)
    told = {"blocks": found.blocks.number, "s": seconds[0], "CPU s": seconds[1]}
    told["redraw, ms"] = 1e3 * (time.perf_counter() - began[0])
    told |= {"MiB before": before, "MiB at most": _peak()}
    del found
    began = time.perf_counter(), time.process_time()
    reprl.learn_log(path, **ASKED)
    told |= {"learn, s": time.perf_counter() - began[0], "learn, CPU s": time.process_time() - began[1]}
    print(json.dumps({**told, "learn, MiB at most": _peak()}))


def run() -> list[dict[str, Any]]:
    sizes = [int(float(text)) for text in os.environ.get("REPRL_ROWS", "1e6,1e7,1e8").split(",")]
    kinds = os.environ.get("REPRL_LOGS", "csv,parquet,named").split(",")
    found = []
    for rows in sizes:
        for kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / ("log.csv" if kind == "csv" else "log.parquet")
                write(path, rows, named=kind == "named")
                size = path.stat().st_size >> 20
                words = [sys.executable, "-m", "benchmarks.logs", str(path)]
                done = subprocess.run(words, check=True, capture_output=True, text=True)
            found.append({"rows": rows, "file": kind, "its MiB": size, **json.loads(done.stdout)})
            print(found[-1], file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    _child(sys.argv[1])

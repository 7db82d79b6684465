"""The front door: seconds until `import reprl` and help pages are done, beside loading everything.

Every figure is the median of fresh processes, taken in turns. The last row is the CPU time of a first ``learn`` whose
kernels are all to be compiled, once for each version. REPRL_BEFORE=path/to/an/older/src adds a column for that
version and the quotient of the two.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPEATS = 9
SOURCE = Path(__file__).parents[1] / "src"
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import reprl": ["-c", "import reprl"],
    "reprl --help": ["-m", "reprl", "--help"],
    "reprl list --help": ["-m", "reprl", "list", "--help"],
    "every public name": ["-c", "import reprl; [getattr(reprl, name) for name in dir(reprl)]"],
}


def _seconds(arguments: list[str], source: Path) -> float:
    start = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _first_learn(source: Path) -> float:
    """User CPU seconds of a first run with an empty cache of kernels."""
    command = [sys.executable, "-c", 'import reprl; reprl.learn("gridworld-v0", horizon=6, shared_seed=7, data_seed=1)']
    with tempfile.TemporaryDirectory() as cache:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache}, check=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def run() -> list[dict[str, Any]]:
    older = os.environ.get("REPRL_BEFORE")
    versions = {"now": SOURCE} | ({"before": Path(older)} if older else {})
    for version in versions.values():  # bytecode and file cache
        _seconds(COMMANDS["every public name"], version)
    rows: list[dict[str, Any]] = []
    for name, arguments in COMMANDS.items():
        taken: dict[str, list[float]] = {version: [] for version in versions}
        for _ in range(REPEATS):
            for version, source in versions.items():
                taken[version].append(_seconds(arguments, source))
        row = {"command": name} | {f"{version} (s)": statistics.median(taken[version]) for version in versions}
        rows.append(row)
    first = {f"{version} (s)": _first_learn(source) for version, source in versions.items()}
    rows.append({"command": "first learn, nothing compiled (CPU)"} | first)
    for row in rows if older else ():
        row["before / now"] = row["before (s)"] / row["now (s)"]
    return rows

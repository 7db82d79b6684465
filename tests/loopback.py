"""A Dask scheduler and three workers on loopback, each a process of its own, for tests and benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATH = os.pathsep.join([str(ROOT / "src"), str(ROOT)])


class Cluster:
    """A scheduler and three workers on loopback; `processes` are the scheduler and then the workers."""

    def __init__(self, folder: Path) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        place = folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(place), "--no-dashboard")
        wait_for(place.exists)
        for _ in range(3):
            self._start(
                "worker", "--scheduler-file", str(place), "--nthreads", "1", "--no-nanny", "--no-dashboard",
                "--local-directory", str(folder),
            )  # fmt: skip
        self.address: str = json.loads(place.read_text())["address"]

    def _start(self, kind: str, *words: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words]
        environment = {**os.environ, "PYTHONPATH": PATH}
        self.processes.append(subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def wait_for(condition: Any, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)

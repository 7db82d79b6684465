"""Runs by episodes of tables of 100, 300 and 1000 states: CPU seconds for 10⁶ samples, and their exponent in S.

The worlds are `random-mdp-v0` with four actions, ten successors and H = 10. Every run is undecided and stops at the
same number of samples; kernels are warm.
"""

from __future__ import annotations

import math
import time
from typing import Any

import reprl

PAGE = "scale.md"
SIZES, SAMPLES = (100, 300, 1000), 10**6


def measure(n_states: int, samples: int) -> tuple[int, float]:
    """Return the samples of a run and its CPU seconds."""
    world = reprl.make("random-mdp-v0", horizon=10, n_states=n_states, n_actions=4, support=10)
    start = time.process_time()
    run = reprl.learn(world, access="episodic", quality=0.99, shared_seed=1, data_seed=2, max_samples=samples)
    return run.samples, time.process_time() - start


def run() -> list[dict[str, Any]]:
    measure(SIZES[0], 20_000)  # compiles
    rows: list[dict[str, Any]] = []
    for n_states in SIZES:
        samples, seconds = measure(n_states, SAMPLES)
        rows.append({"S": n_states, "samples": samples, "CPU s per 10⁶ samples": round(seconds * 1e6 / samples, 1)})
    first, *_, last = (row["CPU s per 10⁶ samples"] for row in rows)
    rows[-1]["exponent in S"] = round(math.log(last / first) / math.log(SIZES[-1] / SIZES[0]), 2)
    return rows

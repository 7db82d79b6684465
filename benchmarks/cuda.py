"""Exploration on a GPU: whether its bits are those of the CPU, and how many steps it makes in a second.

Every row is a batch of runs that the GPU makes, timed whole, with what is brought there and back, after one that
compiles the kernels; and the same batch on all cores of the CPU, compared bit by bit. Without a GPU there is one line
that says so.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.explore import BONUS, GUIDE, SIZES, world
from reprl.errors import ReprlError
from reprl.paper.gpu import find_gpu, on_gpu
from reprl.paper.q_explore import explore
from reprl.paper.runs import Exploration, RunSettings
from reprl.sources.episodes import EpisodicModel

PAGE = "scale.md"
EPISODES = 50_000
REPEATS = 2
FEW = (16, 256, 4096)


def same_bits(one: Exploration, other: Exploration) -> bool:
    """Whether two batches found the same, to the last bit."""
    pairs = zip((one.counts.hits, *one[1:3], *one[4:]), (other.counts.hits, *other[1:3], *other[4:]), strict=True)
    return all(mine.dtype == theirs.dtype and mine.tobytes() == theirs.tobytes() for mine, theirs in pairs)


def timed(work: Callable[[], Exploration]) -> tuple[float, Exploration]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def measure(sizes: tuple[int, int, int], runs: int, episodes: int) -> dict[str, Any]:
    mdp, settings, cores = world(sizes), RunSettings(episodes=episodes, bonus=BONUS, guide=GUIDE), os.cpu_count() or 1
    samples = []

    def batch(workers: int = 1) -> Exploration:
        model = EpisodicModel(mdp, 7)
        found = explore(model, settings, runs, quotas=(1, 4, 30), purpose="gpu", workers=workers)
        samples.append(model.ledger.samples)
        return found

    with on_gpu():
        batch()
        there, found = min((timed(batch) for _ in range(REPEATS)), key=lambda pair: pair[0])
    here, expected = timed(lambda: batch(cores))
    return {
        "(S, A, H)": str(sizes),
        "runs": runs,
        "steps": samples[0],
        "Gsteps/s": samples[0] / there / 1e9,
        f"× {cores} cores": here / there,
        "same bits": same_bits(found, expected) and len(set(samples)) == 1,
    }


def run() -> list[dict[str, Any]]:
    try:
        machine = find_gpu()
    except ReprlError as error:
        return [{"GPU": str(error)}]
    print(f"{machine.name}, {machine.width} runs in flight", file=sys.stderr)
    rows = [measure(sizes, machine.width, EPISODES // sizes[2]) for sizes in SIZES]
    rows += [measure(SIZES[1], runs, EPISODES) for runs in (*FEW, 2 * machine.width)]
    return rows

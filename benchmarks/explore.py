"""Exploration: the kernel against the same algorithm in C, scaling over workers, memory, and rlberry.

`kernel / C` is time over time on one core, so at most 1 means as fast as C: `qexplore.c` beside this file, built -O3
for this machine and checked bit for bit. Repeats are interleaved and the best of each kept, so that other work on the
machine hits both alike; one core is timed by its own clock, which stands still while other work has the core. rlberry's
optimistic Q-learning, which its releases up to 0.6 have, is timed when an interpreter that can import it is named:
RLBERRY_PYTHON=/path/to/python python -m benchmarks explore.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.tabular import TabularMDP
from reprl.paper.q_agent import Agent, Schedule, explore_episodes, make_agent, make_schedule, restart
from reprl.paper.q_explore import explore
from reprl.paper.runs import RunSettings
from reprl.sources.environment import make
from reprl.sources.episodes import EpisodicModel
from reprl.sources.protocol import EpisodeArrays

Row = dict[str, Any]

SIZES = ((5, 2, 3), (20, 4, 5), (50, 4, 5), (200, 5, 10))
BONUS, GUIDE, FAILURE = 0.1, 0.01, 0.01
EPISODES = 200_000
REPEATS = 25
FLAGS = ("-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC")

_i64, _u64, _f64, _at = ctypes.c_int64, ctypes.c_uint64, ctypes.c_double, ctypes.c_void_p


class _World(ctypes.Structure):
    _fields_ = (
        *((name, _i64) for name in ("horizon", "n_states", "n_actions", "row_shift", "slot_shift")),
        *((name, _at) for name in ("next_state", "row", "bucket")),
        ("n_starts", _i64),
        *((name, _at) for name in ("start_state", "start_row", "start_bucket")),
    )


class _Schedule(ctypes.Structure):
    _fields_ = (("scale", _f64), ("guide", _f64), ("rate", _at), ("bonus", _at))


class _Agent(ctypes.Structure):
    _fields_ = tuple((name, _at) for name in ("q", "visits", "choice", "value", "hits"))


class Job(NamedTuple):
    """One exploration run, ready for either kernel."""

    arrays: EpisodeArrays
    schedule: Schedule
    agent: Agent
    hits: NDArray[np.int64]
    episodes: int


def world(sizes: tuple[int, int, int]) -> TabularMDP:
    """A random MDP with at most four successors per cell."""
    n_states, n_actions, horizon = sizes
    return make("random-mdp-v0", horizon=horizon, n_states=n_states, n_actions=n_actions, support=min(4, n_states))


def make_job(mdp: TabularMDP, episodes: int) -> Job:
    arrays = EpisodicModel(mdp, 0).arrays
    sizes = (mdp.n_states, mdp.n_actions, mdp.horizon)
    schedule = make_schedule(*sizes, episodes=episodes, bonus=BONUS, guide=GUIDE, failure=FAILURE)
    return Job(arrays, schedule, make_agent(*sizes), np.zeros(mdp.outcomes.n_slots, dtype=np.int64), episodes)


def run_numba(job: Job, key: int, run: int) -> int:
    """One run from fresh tables; return the samples drawn."""
    outcomes = job.arrays.outcomes
    restart(job.agent, outcomes.n_states, outcomes.n_actions, outcomes.horizon)
    job.hits[:] = 0
    where = (np.uint64(key), np.uint64(run), 0)
    samples: int = explore_episodes(job.arrays, job.agent, job.schedule, *where, job.episodes, job.hits)[1]
    return samples


def build(folder: Path) -> ctypes.CDLL:
    """Compile the C version."""
    library = folder / "qexplore.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, *FLAGS, str(Path(__file__).with_name("qexplore.c")), "-o", str(library), "-lm"], check=True
    )
    loaded = ctypes.CDLL(str(library))
    loaded.explore_run.restype = _i64
    loaded.explore_run.argtypes = (_at, _at, _at, _u64, _u64, _i64)
    return loaded


def run_c(library: ctypes.CDLL, job: Job, key: int, run: int) -> int:
    """The same run in C."""
    world, agent, schedule = job.arrays, job.agent, job.schedule
    there = _World(
        *world.outcomes[:5],
        *(array.ctypes.data for array in (world.outcomes.next_state, world.table.row, world.table.bucket)),
        world.start_state.size,
        *(array.ctypes.data for array in (world.start_state, world.start.row, world.start.bucket)),
    )
    rates = _Schedule(schedule.scale, schedule.guide, schedule.rate.ctypes.data, schedule.bonus.ctypes.data)
    tables = _Agent(*(a.ctypes.data for a in (agent.q, agent.visits, agent.choice, agent.value, job.hits)))
    job.hits[:] = 0
    refs = (ctypes.byref(there), ctypes.byref(rates), ctypes.byref(tables))
    return int(library.explore_run(*refs, key, run, job.episodes))


def same_bits(one: Job, other: Job) -> bool:
    """Whether two kernels left the same tables and tallies."""
    pairs = zip((*one.agent[:4], one.hits), (*other.agent[:4], other.hits), strict=True)
    return all(mine.tobytes() == theirs.tobytes() for mine, theirs in pairs)


def best_of(repeats: int, clock: Callable[[], float], *actions: Callable[[], Any]) -> list[float]:
    """Least seconds of each action, repeats interleaved."""
    best = [float("inf")] * len(actions)
    for _ in range(repeats):
        for i, action in enumerate(actions):
            start = clock()
            action()
            best[i] = min(best[i], clock() - start)
    return best


def against_c(library: ctypes.CDLL, sizes: tuple[int, int, int], episodes: int, repeats: int) -> Row:
    """Time one run of both kernels."""
    mdp = world(sizes)
    ours, theirs = make_job(mdp, episodes), make_job(mdp, episodes)
    samples = run_numba(ours, 7, 1)
    same = samples == run_c(library, theirs, 7, 1) and same_bits(ours, theirs)
    numba, c = best_of(repeats, time.thread_time, lambda: run_numba(ours, 7, 1), lambda: run_c(library, theirs, 7, 1))
    return {
        "(S, A, H)": str(sizes),
        "what": "kernel / C, one core",
        "ratio": numba / c,
        "Msteps/s": samples / numba / 1e6,
        "C Msteps/s": samples / c / 1e6,
        "same bits": same,
    }


def scaling(sizes: tuple[int, int, int], runs: int, episodes: int, repeats: int) -> Row:
    """Time a batch of runs by one worker over the same by two, by the clock on the wall.

    `cpu` is the processor time of two workers over that of one: at 1 they cost each other nothing, and what the ratio
    lacks of 2 was spent waiting for a core. `2 processes` is the same ratio for two processes that share nothing and do
    half of the batch each, measured in turn with the others: what the machine has to give.
    """
    model, settings = EpisodicModel(world(sizes), 0), RunSettings(episodes=episodes, bonus=BONUS, guide=GUIDE)

    def batch(workers: int) -> Callable[[], Any]:
        return lambda: explore(model, settings, runs, quota=sizes[2], purpose="speed", workers=workers)

    pipes = [Pipe() for _ in range(2)]
    halves = [Process(target=_half, args=(end, sizes, runs // 2, settings), daemon=True) for _, end in pipes]

    def apart() -> None:
        for start, _ in pipes:
            start.send(True)
        for start, _ in pipes:
            start.recv()

    for half in halves:
        half.start()
    apart()
    batch(2)()
    before = model.ledger.samples
    batch(1)()
    samples = model.ledger.samples - before
    one, two, ceiling = best_of(repeats, time.perf_counter, batch(1), batch(2), apart)
    busy_one, busy_two = best_of(repeats, time.process_time, batch(1), batch(2))
    for half in halves:
        half.terminate()
    return {
        "(S, A, H)": str(sizes),
        "what": "1 worker / 2 workers",
        "ratio": one / two,
        "2 processes": one / ceiling,
        "Msteps/s": samples / two / 1e6,
        "cpu": busy_two / busy_one,
    }


def _half(end: Connection, sizes: tuple[int, int, int], runs: int, settings: RunSettings) -> None:
    """Make half of a batch whenever asked."""
    model = EpisodicModel(world(sizes), 0)
    while end.recv():
        explore(model, settings, runs, quota=sizes[2], purpose="speed")
        end.send(True)


def memory(sizes: tuple[int, int, int], episodes: int) -> Row:
    """Peak memory of a batch at K and at 100·K episodes: Python's own accounting, and growth of the process."""
    model = EpisodicModel(world(sizes), 0)
    peaks, resident = [], []
    for k in (episodes, episodes, 100 * episodes):  # the first only warms up
        tracemalloc.start()
        explore(model, RunSettings(episodes=k, bonus=BONUS, guide=GUIDE), 4, quota=sizes[2], purpose="memory")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        resident.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return {
        "(S, A, H)": str(sizes),
        "what": "peak memory at 100·K / K",
        "ratio": peaks[2] / peaks[1],
        "peak kB": peaks[2] / 1e3,
        "process grew kB": resident[2] - resident[1],
    }


_RLBERRY = """
import json, sys, time
import numpy as np
from rlberry.agents import OptQLAgent
from rlberry.envs.finite import FiniteMDP
spec = json.load(sys.stdin)
P, H, K = np.array(spec["transition"]), spec["horizon"], spec["episodes"]
env = FiniteMDP(np.zeros(P.shape[:2]), P, initial_state_distribution=0)
agent = OptQLAgent(env, gamma=1.0, horizon=H)
agent.fit(budget=200)  # compiles what it compiles
start = time.perf_counter()
agent.fit(budget=K)
print(json.dumps(K * H / (time.perf_counter() - start)))
"""


def against_rlberry(sizes: tuple[int, int, int], python: str, episodes: int = 2000) -> Row:
    """Steps per second against rlberry's optimistic Q-learning on the same MDP, in its own interpreter."""
    mdp = world(sizes)
    spec = json.dumps({"transition": mdp.transition[0].tolist(), "horizon": mdp.horizon, "episodes": episodes})
    done = subprocess.run([python, "-c", _RLBERRY], input=spec, capture_output=True, text=True, check=True)
    theirs = float(json.loads(done.stdout.splitlines()[-1]))
    job = make_job(mdp, EPISODES)
    samples = run_numba(job, 7, 1)
    ours = samples / best_of(5, time.perf_counter, lambda: run_numba(job, 7, 1))[0]
    return {
        "(S, A, H)": str(sizes),
        "what": "kernel / rlberry, steps per second",
        "ratio": ours / theirs,
        "Msteps/s": ours / 1e6,
    }


def run() -> list[Row]:
    rows: list[Row] = []
    if shutil.which(os.environ.get("CC", "cc")) is None:
        print("no C compiler here: the comparison with C is left out", file=sys.stderr)
    else:
        with tempfile.TemporaryDirectory() as folder:
            library = build(Path(folder))
            rows += [against_c(library, sizes, EPISODES, REPEATS) for sizes in SIZES]
    rows += [scaling(sizes, 32, EPISODES // 4, 8) for sizes in SIZES]
    rows += [memory(sizes, 2000) for sizes in SIZES]
    python = os.environ.get("RLBERRY_PYTHON")
    if python:
        rows += [against_rlberry(sizes, python) for sizes in SIZES[:2]]
    else:
        print("RLBERRY_PYTHON is not set: the comparison with rlberry is left out", file=sys.stderr)
    return rows

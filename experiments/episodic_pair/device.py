"""Exploration runs of a small world by compiled code: `runs.cu`, for a GPU (nvcc) or one core (a C++ compiler).

`reprl.paper.gpu` serves every world from tables in the GPU's memory. Here all tables of a run are known to be small, so
they live in shared memory, and nothing is needed there but CUDA's own compiler. The bits are those of the CPU.
"""

from __future__ import annotations

import ctypes
import math
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from reprl.errors import InputError
from reprl.mdp.counts import Counts
from reprl.paper.q_agent import mark_short
from reprl.paper.runs import Exploration, RunSettings
from reprl.sources.episodes import EpisodicModel

SOURCE = Path(__file__).with_name("runs.cu")
COMPILERS = {
    "gpu": ("nvcc", "-O3", "-std=c++17", "-arch=native", "-fmad=false", "-Xcompiler", "-fPIC", "-shared"),
    "core": ("g++", "-O2", "-std=c++17", "-x", "c++", "-ffp-contract=off", "-fPIC", "-shared"),
}
SLICE = 200_000
"""Episodes of a run after which the host is told how far it is."""


@cache
def build(kind: str, *sizes: str) -> Any:
    """Compile `play` for a world's sizes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "runs.so"
        words = [*COMPILERS[kind], *sizes, "-o", str(out), str(SOURCE)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(f"{words[0]} must compile {SOURCE.name}, got: {done.stderr[-300:]}")
        return ctypes.CDLL(str(out)).play


class Device:
    """Plays runs in one world: compiled for its sizes when it is made.

    Args:
        model: an MDP in memory whose episodes begin in one state.
        kind: "gpu" or "core".
    """

    def __init__(self, model: EpisodicModel, kind: str) -> None:
        world = model.arrays
        if world is None or world.start_state.size != 1:
            raise InputError("model must be an MDP in memory whose episodes begin in one state, got another")
        self._model, self._world, self.rate = model, world, 0.0
        horizon, n_states, n_actions = world.outcomes.shape
        sizes = {"STATES": n_states, "ACTIONS": n_actions, "STEPS": horizon, "SLOTS": world.outcomes.n_slots}
        sizes |= {"ROWS": world.table.row.size, "BUCKETS": world.table.bucket.size // 2}
        self._play = build(kind, *(f"-D{name}={value}" for name, value in sizes.items()))

    def explore(self, settings: RunSettings, runs: int, quota: int, purpose: str, *, loud: bool = False) -> Exploration:
        """Return what `reprl.paper.q_explore.explore` would, bit by bit; `rate` becomes the samples of a second.

        Randomness:
            As there: the model's next data stream, lane = run.
        """
        outcomes, table = self._world.outcomes, self._world.table
        horizon, n_states, n_actions = outcomes.shape
        cells, begun, key = horizon * n_states, time.perf_counter(), self._model.fresh_stream(f"explore/{purpose}").key
        if settings.guide != 1.0 or settings.episodes >= 2**32:
            raise InputError(f"settings must have guide 1 and fewer than 2**32 episodes, got {settings}")

        def tell(done: int) -> None:
            if loud:
                print(f"{done} of {settings.episodes} episodes, {time.perf_counter() - begun:.0f} s", flush=True)

        q, value = np.zeros(runs * cells * 2 * n_actions), np.zeros((runs, cells))
        visits, position = np.zeros((runs, cells * 2 * n_actions), np.uint32), np.zeros(runs, np.int64)
        hits = np.zeros(outcomes.n_slots, np.uint64)
        told, following = ctypes.CFUNCTYPE(None, ctypes.c_longlong)(tell), outcomes.next_state.astype(np.int32)
        log = math.log(2.0 * n_states * n_actions * settings.episodes * horizon / settings.failure)
        error = self._play(
            ctypes.c_int(runs),
            ctypes.c_ulonglong(int(key)),
            ctypes.c_double(settings.bonus * math.sqrt(horizon**3 * log)),
            ctypes.c_longlong(settings.episodes),
            ctypes.c_longlong(SLICE),
            *(
                ctypes.c_int(int(n))
                for n in (self._world.start_state[0], outcomes.row_shift, outcomes.slot_shift, following.size)
            ),
            *(
                np.ascontiguousarray(one).ctypes
                for one in (table.row, table.bucket, following, q, value, visits, position, hits)
            ),
            told,
        )
        if error:
            raise InputError(f"the device must play every run, got error {error}")
        self._model.ledger.episodes += runs * settings.episodes
        self._model.ledger.samples += int(position.sum())
        self.rate = float(position.sum()) / (time.perf_counter() - begun)
        short, missed = np.zeros((1, horizon, n_states), np.int64), np.zeros((runs, horizon, n_states), np.uint8)
        for run in range(runs):
            mark_short(visits[run].astype(np.int64), np.array([quota]), short, missed[run])
        starts = visits[:, : n_states * 2 * n_actions].reshape(runs, n_states, -1).sum(axis=(0, 2), dtype=np.int64)
        first = np.array([self._world.initial @ row[:n_states] for row in value])
        return Exploration(runs, short, missed, Counts(outcomes, hits.astype(np.int64)), first, starts)

"""Algorithm 4 (QExplore): many independent runs of reward-free exploration, over threads for an MDP in memory.

Every run restarts its agent and reads its own lane of the data stream. Counts are whole numbers, added up, so neither
the split of runs over workers nor their order can change a result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

import numpy as np

from reprl.errors import check_int
from reprl.mdp.counts import Counts
from reprl.mdp.outcomes import Outcomes
from reprl.paper.black_box import explore_black_box
from reprl.paper.q_agent import Agent, explore_episodes, make_agent, mark_short, restart, zeros_apart
from reprl.paper.runs import Exploration, Orders, RunSettings
from reprl.sources.protocol import EpisodeArrays, Episodic

_SLICE = 2_000_000
"""Samples after which a run looks up: what bounds the wait after Ctrl-C."""


def explore(
    model: Episodic,
    settings: RunSettings,
    runs: int,
    *,
    quota: int,
    purpose: str,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Exploration:
    """Make independent exploration runs.

    Args:
        model: where samples come from, an MDP in memory or a black box; its ledger is charged.
        settings: episodes per run, bonus.
        runs: how many.
        quota: records that every action of a state needs.
        purpose: name of the data stream, for people: every batch of a model reads a fresh one.
        workers: threads, or processes for a black box.
        progress: called from this thread now and then with the episodes done and the episodes of the batch.

    Guarantee:
        Given the numbers of records, the records of all cells are independent draws from the cells' laws (Corollary
        5.7). Bytes do not depend on workers.

    Randomness:
        Data stream (data seed, "explore/" + purpose + number of the model's batch), lane = run. A black box is seeded
        with one word of it per episode.
    """
    runs = check_int("runs", runs, 1, 2**31)
    workers = check_int("workers", workers, 1, 1024)
    quota = check_int("quota", quota, 1, 2**62)
    stream = model.fresh_stream(f"explore/{purpose}")
    orders = Orders(settings, quota, stream.key)
    world = model.arrays
    if world is None:
        return explore_black_box(model, orders, runs, workers, progress)
    batch = _Threads(world, orders, runs, workers)
    try:
        return batch.work(progress)
    finally:  # samples of an interrupted batch count too
        model.ledger.episodes += batch.episodes
        model.ledger.samples += batch.samples


class _Tables:
    """One worker's tables."""

    def __init__(self, outcomes: Outcomes) -> None:
        horizon, n_states, n_actions = outcomes.shape
        self.agent: Agent = make_agent(n_states, n_actions, horizon)
        self.hits = zeros_apart(outcomes.n_slots, np.int64)
        self.short = np.zeros((horizon, n_states), dtype=np.int64)
        self.starts = np.zeros(n_states, dtype=np.int64)
        self.episodes = 0
        self.samples = 0


class _Threads:
    """Worker threads that take runs from one list until it is empty or they are told to stop."""

    def __init__(self, world: EpisodeArrays, orders: Orders, runs: int, workers: int) -> None:
        self.world = world
        horizon, n_states, n_actions = world.outcomes.shape
        self.length = orders.settings.episodes
        self.quota = orders.quota
        self.key = np.uint64(orders.key)
        self.schedule = orders.settings.schedule(n_states, n_actions, horizon)
        self.first_value = np.empty(runs)
        self.missed = np.zeros((runs, horizon, n_states), dtype=np.bool_)
        self.tables = [_Tables(world.outcomes) for _ in range(min(workers, runs))]
        self._left: Iterator[int] = iter(range(runs))
        self._lock = threading.Lock()
        self._stop = threading.Event()

    @property
    def episodes(self) -> int:
        """Episodes made so far."""
        return sum(tables.episodes for tables in self.tables)

    @property
    def samples(self) -> int:
        """Samples drawn so far."""
        return sum(tables.samples for tables in self.tables)

    def work(self, progress: Callable[[int, int], None] | None) -> Exploration:
        """Make all runs, and return what they found; an interrupt stops all workers at their next slice."""
        total = self.first_value.size * self.length
        with ThreadPoolExecutor(len(self.tables)) as pool:
            try:
                jobs: set[Future[None]] = {pool.submit(self._serve, tables) for tables in self.tables}
                while jobs:
                    done, jobs = wait(jobs, timeout=0.2, return_when=FIRST_EXCEPTION)
                    for job in done:
                        job.result()
                    if progress is not None:
                        progress(self.episodes, total)
            except BaseException:
                self._stop.set()
                raise
        first = self.tables[0]
        for tables in self.tables[1:]:
            first.hits += tables.hits
            first.short += tables.short
            first.starts += tables.starts
        counts = Counts(self.world.outcomes, first.hits)
        return Exploration(self.first_value.size, first.short, self.missed, counts, self.first_value, first.starts)

    def _serve(self, tables: _Tables) -> None:
        while not self._stop.is_set():
            with self._lock:
                run = next(self._left, None)
            if run is None:
                return
            self._explore(tables, run)

    def _explore(self, tables: _Tables, run: int) -> None:
        """One run, in slices."""
        horizon, n_states, n_actions = self.world.outcomes.shape
        per_slice = max(1, _SLICE // horizon)
        restart(tables.agent, n_states, n_actions, horizon)
        done, position = 0, 0
        while done < self.length and not self._stop.is_set():
            episodes = min(per_slice, self.length - done)
            position, samples = explore_episodes(
                self.world, tables.agent, self.schedule, self.key, np.uint64(run), position, episodes, tables.hits
            )
            tables.samples += samples
            tables.episodes += episodes
            done += episodes
        mark_short(tables.agent.visits, self.quota, tables.short, self.missed[run])
        first = tables.agent.visits[: 2 * n_states * n_actions]  # an episode takes one action at step 0
        tables.starts += first.reshape(n_states, -1).sum(axis=1)
        self.first_value[run] = self.world.initial @ tables.agent.value[:n_states]

"""QExplore: many independent runs of reward-free exploration (Algorithm 4), over threads.

Every run restarts its agent and reads its own lane of the data stream. Tallies are whole numbers, added up, so
neither the split of runs over workers nor their order can change a result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.errors import check_int, check_real
from reprl.explore.qagent import Agent, explore_episodes, make_agent, make_schedule, restart, zeros_apart
from reprl.mdp.access import Episodic, EpisodicModel
from reprl.mdp.counts import Counts

_SLICE = 2_000_000
"""Samples after which a run looks up: what bounds the wait after Ctrl-C."""


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How one exploration run behaves."""

    episodes: int
    """K."""
    bonus: float = 2.0
    """c of the bonus; 2 is what Azuma's inequality asks for."""
    guide: float = 1.0
    """Bonus of real actions relative to phantoms; 1 in theory."""
    failure: float = 0.01
    """ι, inside the logarithm of the bonus."""

    def __post_init__(self) -> None:
        """Check every field."""
        check_int("episodes", self.episodes, 1, 2**62)
        check_real("bonus", self.bonus, 0.0, float("inf"))
        check_real("guide", self.guide, 0.0, 1.0, open_low=False, open_high=False)
        check_real("failure", self.failure, 0.0, 1.0)


class Exploration(NamedTuple):
    """What a batch of runs found."""

    runs: int
    short: NDArray[np.int64]
    """(quotas, H, S): runs in which some action of (h, s) had fewer records than the quota: s ∈ I_h."""
    counts: Counts
    """All recorded outcomes; independent draws given their numbers."""
    first_value: NDArray[np.float64]
    """(runs,): the agent's final V₁ at the start, which bounds reachability of what is under-explored (Lemma 5.6)."""
    starts: NDArray[np.int64]
    """(S,): how many episodes began in each state."""


def explore(
    model: Episodic,
    settings: RunSettings,
    runs: int,
    *,
    quotas: tuple[int, ...],
    purpose: str,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Exploration:
    """Make independent exploration runs.

    Args:
        model: where samples come from, an MDP in memory or a black box; its ledger is charged.
        settings: episodes per run, bonus.
        runs: how many.
        quotas: records that every action of a state needs, one or several levels.
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
    levels = np.array([check_int("quota", q, 1, 2**62) for q in quotas], dtype=np.int64)
    key = model.fresh_stream(f"explore/{purpose}").key
    if not isinstance(model, EpisodicModel):
        from reprl.explore.blackbox import Orders, explore_black_box  # which needs what is defined here

        return explore_black_box(model, Orders(settings, levels, key), runs, workers, progress)
    crew = _Crew(model, settings, levels, key, runs)
    try:
        crew.work(workers, progress)
    finally:  # what an interrupted batch has drawn is spent too
        model.ledger.episodes += sum(desk.episodes for desk in crew.desks)
        model.ledger.samples += sum(desk.samples for desk in crew.desks)
    hits, short, starts = crew.desks[0].hits, crew.desks[0].short, crew.desks[0].starts
    for desk in crew.desks[1:]:
        hits += desk.hits
        short += desk.short
        starts += desk.starts
    return Exploration(runs, short, Counts(model.mdp.outcomes, hits), crew.first_value, starts)


class _Desk:
    """One worker's tables."""

    def __init__(self, model: EpisodicModel, n_levels: int) -> None:
        self.agent: Agent = make_agent(model.n_states, model.n_actions, model.horizon)
        self.hits = zeros_apart(model.mdp.outcomes.n_slots, np.int64)
        self.short = np.zeros((n_levels, model.horizon, model.n_states), dtype=np.int64)
        self.starts = np.zeros(model.n_states, dtype=np.int64)
        self.episodes = 0
        self.samples = 0


class _Crew:
    """Workers that take runs off one list until it is empty or someone calls stop."""

    def __init__(
        self, model: EpisodicModel, settings: RunSettings, levels: NDArray[np.int64], key: int, runs: int
    ) -> None:
        self.model = model
        self.settings = settings
        self.levels = levels
        self.key = np.uint64(key)
        self.schedule = make_schedule(
            model.n_states,
            model.n_actions,
            model.horizon,
            episodes=settings.episodes,
            bonus=settings.bonus,
            guide=settings.guide,
            failure=settings.failure,
        )
        self.first_value = np.empty(runs)
        self.desks: list[_Desk] = []
        self._left: Iterator[int] = iter(range(runs))
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def work(self, workers: int, progress: Callable[[int, int], None] | None) -> None:
        """Run everything; an interrupt stops all workers at their next slice."""
        _ = self.model.arrays
        self.desks = [_Desk(self.model, self.levels.size) for _ in range(min(workers, self.first_value.size))]
        total = self.first_value.size * self.settings.episodes
        with ThreadPoolExecutor(len(self.desks)) as pool:
            try:
                jobs: set[Future[None]] = {pool.submit(self._serve, desk) for desk in self.desks}
                while jobs:
                    done, jobs = wait(jobs, timeout=0.2, return_when=FIRST_EXCEPTION)
                    for job in done:
                        job.result()
                    if progress is not None:
                        progress(sum(desk.episodes for desk in self.desks), total)
            except BaseException:
                self._stop.set()
                raise

    def _serve(self, desk: _Desk) -> None:
        while not self._stop.is_set():
            with self._lock:
                run = next(self._left, None)
            if run is None:
                return
            self._explore(desk, run)

    def _explore(self, desk: _Desk, run: int) -> None:
        """One run, in slices."""
        model, world = self.model, self.model.arrays
        per_slice = max(1, _SLICE // model.horizon)
        restart(desk.agent, model.n_states, model.n_actions, model.horizon)
        done, position = 0, 0
        while done < self.settings.episodes and not self._stop.is_set():
            episodes = min(per_slice, self.settings.episodes - done)
            position, samples = explore_episodes(
                world, desk.agent, self.schedule, self.key, np.uint64(run), position, episodes, desk.hits
            )
            desk.samples += samples
            desk.episodes += episodes
            done += episodes
        mark_short(desk.agent.visits, self.levels, desk.short)
        first = desk.agent.visits[: 2 * model.n_states * model.n_actions]  # an episode takes one action at step 0
        desk.starts += first.reshape(model.n_states, -1).sum(axis=1)
        self.first_value[run] = model.mdp.initial @ desk.agent.value[: model.n_states]


@njit(cache=True, nogil=True)
def mark_short(visits: NDArray[np.int64], levels: NDArray[np.int64], short: NDArray[np.int64]) -> None:
    """Add 1 to short[level, h, s] where some phantom action of (h, s) was taken fewer than levels[level] times."""
    horizon, n_states = short.shape[1], short.shape[2]
    width = visits.size // (horizon * n_states)
    for h in range(horizon):
        for s in range(n_states):
            base = (h * n_states + s) * width
            fewest = visits[base + width // 2]
            for a in range(width // 2 + 1, width):
                fewest = min(fewest, visits[base + a])
            for level in range(levels.size):
                if fewest < levels[level]:
                    short[level, h, s] += 1

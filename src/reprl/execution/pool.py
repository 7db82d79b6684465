"""Crew: those who play a black box, this process alone or several, each with its own copy of the environment.

Processes and environments are opened once and serve many jobs, because a batch of episodes may take less time than
opening them. How they are started, heard and ended is the matter of ``mates``. Where joblib is told of a cluster, its
workers play instead, each with a copy that it keeps from job to job (``tasks``).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, TypeVar

from reprl.errors import InputError
from reprl.execution.tasks import count_hands, named_backend, run_tasks
from reprl.execution.workers import TICK, Mates
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.protocol import Episodic
from reprl.storage.checkpoints import Checkpoint

T = TypeVar("T")
Progress = Callable[[int, int], None]


class Crew:
    """A context that ends the processes it has started; none are before the first job.

    Args:
        model: the environment; its ledger is charged with what everybody spends. If it has a timeout, episodes are
            played in another process, which can be ended, even for one worker.
        workers: processes; 1 for this one alone. A backend that joblib is told of has its own number.
        checkpoint: where finished batches are kept.
    """

    def __init__(self, model: Episodic, workers: int = 1, checkpoint: Checkpoint | None = None) -> None:
        """Start nothing yet."""
        self.model = model
        self.workers = count_hands(workers)
        self.checkpoint = checkpoint
        self._timeout: float | None = getattr(model, "timeout", None)
        self._mates: Mates | None = None
        self._copy: _Copy | None = None

    def __enter__(self) -> Crew:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End all processes: after their current episode, or at once after an interrupt."""
        if self._mates is not None:
            self._mates.close(kill=not (error is None or isinstance(error, Exception)))

    def work(
        self, job: Callable[..., T], parts: Sequence[tuple[Any, ...]], total: int, progress: Progress | None = None
    ) -> list[T]:
        """Do all parts of a job.

        Args:
            job: a function of a module, called as job(model, *part, after_episode).
            parts: at most one for each worker.
            total: episodes of all parts.
            progress: called now and then with the episodes done and the total.

        Returns:
            What each part gave, in order.

        Guarantee:
            Every sample is charged; of an interrupted job, what other processes had told by then. A part whose process
            is killed is done again by another one, with the same seeds, and charged once. If a part fails, its error is
            raised once the others have stopped.
        """
        if self.workers == 1 and self._timeout is None:
            tell = _teller(progress, total)
            return [job(self.model, *part, tell) for part in parts]
        if named_backend() is not None:
            return self._send(job, parts, total, progress)
        mates = self._mates = self._mates or Mates(self._pack(), self._timeout)
        try:
            told = None if progress is None else lambda done: progress(done, total)
            return mates.work(job, parts, told)
        finally:
            episodes, samples = mates.collect()
            self.model.ledger.episodes += episodes
            self.model.ledger.samples += samples

    def _send(
        self, job: Callable[..., T], parts: Sequence[tuple[Any, ...]], total: int, progress: Progress | None
    ) -> list[T]:
        """Have the workers of a backend that joblib is told of do all parts."""
        copy = self._copy = self._copy or _Copy(self._pack())
        found, episodes = [], 0
        for gave, played, samples in run_tasks(_play, copy, [(job, part) for part in parts]):
            found.append(gave)
            episodes += played
            self.model.ledger.episodes += played
            self.model.ledger.samples += samples
            if progress is not None:
                progress(episodes, total)
        return found

    def _pack(self) -> bytes:
        """Return what opens the environment in another process."""
        import cloudpickle  # comes with Gymnasium

        alone = "workers must be 1" + ("" if self._timeout is None else " and timeout None")
        if not isinstance(self.model, GymnasiumModel) or not self.model.reopens:
            given = f"an environment that is given open: pass an id or a factory, got {self.workers}"
            raise InputError(f"{alone} for {given}")
        try:
            packed: bytes = cloudpickle.dumps(self.model)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise InputError(f"{alone} for a factory that cannot be sent to a process: {error}") from None
        return packed


@dataclass
class _Copy:
    """An environment as it is sent to a worker, who opens it once."""

    packed: bytes

    @cached_property
    def model(self) -> GymnasiumModel:
        """The worker's own."""
        model: GymnasiumModel = pickle.loads(self.packed)
        return model


def _play(copy: _Copy, asked: tuple[Callable[..., Any], tuple[Any, ...]]) -> tuple[Any, int, int]:
    """Do a part of a job in a worker: what it gave, its episodes and its samples."""
    job, part = asked
    ledger = copy.model.ledger
    before = ledger.episodes, ledger.samples
    with Crew(copy.model) as crew:
        (gave,) = crew.work(job, [part], 0)
    return gave, ledger.episodes - before[0], ledger.samples - before[1]


def _teller(progress: Progress | None, total: int) -> Callable[[], None] | None:
    """Return what reports the episodes of this process now and then."""
    if progress is None:
        return None
    done, due = 0, time.monotonic()

    def tell() -> None:
        nonlocal done, due
        done += 1
        now = time.monotonic()
        if now >= due or done == total:
            due = now + TICK
            progress(done, total)

    return tell

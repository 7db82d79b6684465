"""Crew: those who play a black box, this process alone or several, each with its own copy of the environment.

Processes and environments are opened once and serve many jobs, because a batch of episodes may take less time than
opening them. How they are started, heard and ended is the matter of ``mates``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pickle import PicklingError
from types import TracebackType
from typing import Any, TypeVar

from reprl.errors import ReprlError
from reprl.explore.mates import TICK, Mates
from reprl.mdp.access import Episodic
from reprl.mdp.gymnasium.model import GymnasiumModel

T = TypeVar("T")
Progress = Callable[[int, int], None]


class Crew:
    """A context that ends the processes it has started; none are before the first job.

    Args:
        model: the environment; its ledger is charged with what everybody spends. If it has a timeout, episodes are
            played in another process, which can be ended, even for one worker.
        workers: processes; 1 for this one alone.
    """

    def __init__(self, model: Episodic, workers: int = 1) -> None:
        """Start nothing yet."""
        self.model = model
        self.workers = workers
        self._timeout: float | None = getattr(model, "timeout", None)
        self._mates: Mates | None = None

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
        mates = self._mates = self._mates or Mates(self._pack(), self._timeout)
        try:
            told = None if progress is None else lambda done: progress(done, total)
            return mates.work(job, parts, told)
        finally:
            episodes, samples = mates.collect()
            self.model.ledger.episodes += episodes
            self.model.ledger.samples += samples

    def _pack(self) -> bytes:
        """Return what opens the environment in another process."""
        import cloudpickle  # comes with Gymnasium

        alone = "workers must be 1" + ("" if self._timeout is None else " and timeout None")
        if not isinstance(self.model, GymnasiumModel) or not self.model.reopens:
            given = f"an environment that is given open: pass an id or a factory, got {self.workers}"
            raise ReprlError(f"{alone} for {given}")
        try:
            packed: bytes = cloudpickle.dumps(self.model)
        except (PicklingError, TypeError, AttributeError) as error:
            raise ReprlError(f"{alone} for a factory that cannot be sent to a process: {error}") from None
        return packed


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

"""Crew: those who play a black box, this process alone or several, each with its own copy of the environment.

Processes and environments are opened once and serve many jobs, because a batch of episodes may take less time than
opening them. What they have spent is read off a small file that all of them see.
"""

from __future__ import annotations

import atexit
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from pathlib import Path
from pickle import PicklingError, loads
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reprl.errors import ReprlError
from reprl.mdp.access import Episodic
from reprl.mdp.gymnasium.model import GymnasiumModel

_TICK = 0.2
"""Seconds between two reports of progress."""
_IDLE = 300.0
"""Seconds after which a process ends that nobody asks for anything: its parent may be gone."""

T = TypeVar("T")
Progress = Callable[[int, int], None]


class _Office(NamedTuple):
    """What a crew of several processes shares."""

    pool: Any
    folder: tempfile.TemporaryDirectory[str]
    board: NDArray[np.int64]
    """(workers + 1, 2): episodes and samples of each part of the job; the last row is not 0 when all are to stop."""


class Crew:
    """A context that ends the processes it has started; none are before the first job.

    Args:
        model: the environment; its ledger is charged with what everybody spends.
        workers: processes; 1 for this one alone.
    """

    def __init__(self, model: Episodic, workers: int = 1) -> None:
        """Start nothing yet."""
        self.model = model
        self.workers = workers
        self._office: _Office | None = None

    def __enter__(self) -> Crew:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End all processes: after their current episode, or at once after an interrupt."""
        self._close(kill=not (error is None or isinstance(error, Exception)))

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
            Every sample is charged; of an interrupted job, all but those of episodes that were cut short in another
            process. If a part fails, its error is raised once the others have stopped.
        """
        if self.workers == 1:
            tell = _teller(progress, total)
            return [job(self.model, *part, tell) for part in parts]
        office = self._office = self._office or self._open()
        board = office.board
        board[...] = 0
        try:
            jobs = [office.pool.submit(_serve, office.folder.name, job, part, i) for i, part in enumerate(parts)]
            waiting = set(jobs)
            try:
                while waiting:
                    done, waiting = wait(waiting, timeout=_TICK, return_when=FIRST_EXCEPTION)
                    for ended in done:
                        ended.result()
                    if progress is not None:
                        progress(int(board[:-1, 0].sum()), total)
            except Exception:  # one process has failed: the others end after their current episode
                board[-1] = 1
                wait(jobs)
                raise
            return [ended.result() for ended in jobs]
        except BaseException as error:
            if not isinstance(error, Exception):
                office.pool.shutdown(wait=True, kill_workers=True)
            raise
        finally:
            self.model.ledger.episodes += int(board[:-1, 0].sum())
            self.model.ledger.samples += int(board[:-1, 1].sum())

    def _open(self) -> _Office:
        """Start processes of our own: loky's common ones are joblib's, which counts on its own kind of them."""
        import cloudpickle  # comes with Gymnasium
        from joblib.externals.loky import ProcessPoolExecutor

        if not isinstance(self.model, GymnasiumModel) or not self.model.reopens:
            raise ReprlError(
                f"workers must be 1 for an environment that is given open: pass an id or a factory, got {self.workers}"
            )
        try:
            packed = cloudpickle.dumps(self.model)
        except (PicklingError, TypeError, AttributeError) as error:
            raise ReprlError(f"workers must be 1 for a factory that cannot be sent to a process: {error}") from None
        folder = tempfile.TemporaryDirectory(prefix="reprl-", ignore_cleanup_errors=True)
        place = Path(folder.name)
        (place / "model").write_bytes(packed)
        board = np.memmap(place / "board", dtype=np.int64, mode="w+", shape=(self.workers + 1, 2))
        pool = ProcessPoolExecutor(self.workers, timeout=_IDLE, initializer=_ignore_interrupts)
        return _Office(pool, folder, board)

    def _close(self, *, kill: bool) -> None:
        if self._office is not None:
            self._office.pool.shutdown(wait=True, kill_workers=kill)
            self._office.folder.cleanup()
            self._office = None


_opened: dict[str, tuple[GymnasiumModel, NDArray[np.int64]]] = {}
"""In a process of a crew: its copy of the environment, and the board, by folder."""


def _ignore_interrupts() -> None:
    """Leave Ctrl-C, which a terminal sends to every process, to the one that started this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _desk(folder: str) -> tuple[GymnasiumModel, NDArray[np.int64]]:
    """Open the environment the first time it is needed here, to be closed when the process ends."""
    if folder not in _opened:
        model: GymnasiumModel = loads((Path(folder) / "model").read_bytes())
        board = np.memmap(Path(folder) / "board", dtype=np.int64, mode="r+").reshape(-1, 2)
        atexit.register(model.close)
        _opened[folder] = model, board
    return _opened[folder]


def _serve(folder: str, job: Callable[..., T], part: tuple[Any, ...], number: int) -> T:
    """Do one part of a job in this process."""
    model, board = _desk(folder)
    ledger, parent = model.ledger, os.getppid()
    episodes, samples = ledger.episodes, ledger.samples

    def post() -> None:
        board[number] = ledger.episodes - episodes, ledger.samples - samples
        if board[-1, 0] or os.getppid() != parent:
            raise ReprlError("another process has failed")

    try:
        return job(model, *part, post)
    finally:
        board[number] = ledger.episodes - episodes, ledger.samples - samples


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
            due = now + _TICK
            progress(done, total)

    return tell

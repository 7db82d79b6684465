"""WorkerPool: this process, or several, each with its own copy of an environment that they play.

Processes and environments are opened once and serve many jobs, because a batch of episodes may take less time than
opening them. The processes are loky's, the executor behind joblib. Two pipes join them to this process. On one they
tell how far they are; when the other one closes, they end. Where joblib is told of a cluster, its workers play instead,
each with a copy that it keeps from job to job (``tasks``).
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from functools import cached_property
from multiprocessing import Pipe
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar

from reprl.errors import InputError, WorkerError
from reprl.execution.tasks import (
    Package,
    begin_process,
    count_death,
    count_workers,
    named_backend,
    pack,
    run_tasks,
    unpack,
)
from reprl.storage.checkpoints import Checkpoint

TICK = 0.2
"""Seconds between two reports of progress."""
_GRACE = 5.0
"""Seconds that an episode may still take when all are to end."""
_OPENING = 120.0
"""Seconds that a process may take to start and open its environment, where an episode has a limit."""
_REPORT = struct.Struct("=3q")
"""The number of a part, and its episodes and samples so far: short enough to be written to a pipe at once."""

T = TypeVar("T")
Part = tuple[Any, ...]


class Playable(Protocol):
    """An environment. Copies of it can be played if it also ``reopens`` and can be pickled; it may have a timeout."""

    ledger: Any
    """It counts episodes and samples."""


class _Answer(NamedTuple):
    """What a worker says of a part of a job."""

    episodes: int
    samples: int
    done: bool = False
    found: Any = None
    error: bytes = b""
    """Why it failed, pickled."""


class WorkerPool:
    """A context that ends the processes it has started; none are before the first job.

    Args:
        model: the environment; its ledger is charged with what all processes spend. If it has a timeout, episodes are
            played in another process, which can be ended, even for one worker.
        workers: processes; 1 for this one alone. A backend that joblib is told of has its own number.
        checkpoint: where finished batches are kept.
    """

    def __init__(self, model: Playable, workers: int = 1, checkpoint: Checkpoint | None = None) -> None:
        """Start nothing yet."""
        self.model = model
        self.workers = count_workers(workers)
        self.checkpoint = checkpoint
        self._timeout: float | None = getattr(model, "timeout", None)
        self._processes: _Processes | None = None

    def __enter__(self) -> WorkerPool:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End all processes: after their current episode, or at once after an interrupt."""
        self._close(error)

    def work(
        self,
        job: Callable[..., T],
        parts: Sequence[Part],
        total: int,
        progress: Callable[[int, int], None] | None = None,
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
            after = None if progress is None else _Ticker(lambda done: progress(done, total), total)
            return [job(self.model, *part, after) for part in parts]
        told: dict[int, _Answer] = {}
        try:
            for number, answer in self._play(job, dict(enumerate(parts)), told):
                told[number] = answer
                if answer.error:
                    raise pickle.loads(answer.error)
                if progress is not None:
                    progress(sum(one.episodes for one in told.values()), total)
        except BaseException as error:
            told |= self._close(error)
            raise
        finally:
            self.model.ledger.episodes += sum(one.episodes for one in told.values())
            self.model.ledger.samples += sum(one.samples for one in told.values())
        return [told[number].found for number in range(len(parts))]

    def _play(
        self, job: Callable[..., Any], left: dict[int, Part], told: dict[int, _Answer]
    ) -> Iterator[tuple[int, _Answer]]:
        """Have others do all parts, by number; if a process is killed, new ones do what is left."""
        if named_backend() is not None:
            yield from enumerate(run_tasks(_play_copy, self._packed, [(job, part) for part in left.values()]))
            return
        deaths = 0
        while left:
            processes = self._processes = self._processes or _Processes(self._packed, self.workers)
            try:
                for number, answer in processes.play(job, left, self._timeout):
                    if answer.done:
                        deaths = 0
                        del left[number]
                    yield number, answer
            except BrokenExecutor as error:
                self._processes = None
                processes.close(kill=True)
                deaths = count_death(deaths, error)
                for number in left:  # what it has shown is lost, and comes again
                    told.pop(number, None)

    def _close(self, error: BaseException | None) -> dict[int, _Answer]:
        processes, self._processes = self._processes, None
        return {} if processes is None else processes.close(kill=not (error is None or isinstance(error, Exception)))

    @cached_property
    def _packed(self) -> Package:
        """What opens the environment in another process."""
        alone = "workers must be 1" + ("" if self._timeout is None else " and timeout None")
        if not getattr(self.model, "reopens", False):
            given = f"an environment that is given open: pass an id or a factory, got {self.workers}"
            raise InputError(f"{alone} for {given}")
        return pack(self.model, f"{alone} for a factory that cannot be sent to a process")


class _Processes:
    """Processes of this machine, from their start to their end."""

    def __init__(self, packed: Package, workers: int) -> None:
        """Start none yet."""
        from joblib.externals.loky import ProcessPoolExecutor

        self._inbox, outbox = Pipe(duplex=False)
        lifeline, self._lifeline = Pipe(duplex=False)
        self._theirs = outbox, lifeline  # every process gets them when it starts
        arguments = (os.getpid(), packed, outbox, lifeline)
        self._executor: Any = ProcessPoolExecutor(workers, initializer=_begin, initargs=arguments)
        self._running: dict[Future[_Answer], int] = {}
        self._stuck = False

    def play(
        self, job: Callable[..., Any], parts: dict[int, Part], timeout: float | None
    ) -> Iterator[tuple[int, _Answer]]:
        """Do parts, by number; yield how far each is, now and then, and how it ended."""
        heard = dict.fromkeys(parts, time.monotonic() + _OPENING)
        mask = getattr(signal, "pthread_sigmask", lambda *_: ())  # Ctrl-C is for this process, not for those it starts
        before = mask(getattr(signal, "SIG_BLOCK", 0), {signal.SIGINT})
        try:
            self._running = {self._executor.submit(_play_part, job, number, parts[number]): number for number in parts}
        finally:
            mask(getattr(signal, "SIG_SETMASK", 0), before)
        while self._running:
            ended, _ = wait(self._running, TICK, FIRST_COMPLETED)
            for number, answer in self._read():
                heard[number] = time.monotonic()
                yield number, answer
            for future in ended:
                answer = future.result()
                yield self._running.pop(future), answer
            late = [one for one, n in self._running.items() if time.monotonic() - heard[n] > (timeout or 0) + 2 * TICK]
            if timeout is not None and late:
                del self._running[late[0]]  # nobody waits for its end
                self._stuck = True
                raise WorkerError(f"an episode must end within {timeout:g} s (timeout), got one that did not")

    def _read(self) -> Iterator[tuple[int, _Answer]]:
        while self._inbox.poll():
            number, *spent = _REPORT.unpack(self._inbox.recv_bytes())
            yield number, _Answer(*spent)

    def close(self, *, kill: bool) -> dict[int, _Answer]:
        """End all processes, after their current episode or at once; return the last that those cut short have told."""
        self._lifeline.close()
        ended, others = wait(self._running, 0.0 if kill else _GRACE)
        told = {number: answer for number, answer in self._read() if number in self._running.values()}
        told |= {self._running[one]: one.result() for one in ended if one.exception() is None}
        # Loky leaves behind the thread that feeds its queue, which may free a semaphore while this process exits, too
        # late to tell loky's resource tracker; that would warn of a leak.
        feeder = getattr(getattr(self._executor, "_call_queue", None), "_thread", None)
        self._executor.shutdown(wait=True, kill_workers=kill or self._stuck or bool(others))
        if feeder is not None:
            feeder.join(_GRACE)
        for end in (self._inbox, *self._theirs):
            end.close()
        return told


class _Ticker:
    """Called after every episode; tells now and then how many there were, and when all are done."""

    def __init__(self, tell: Callable[[int], None], total: int = -1) -> None:
        self._tell, self._total, self._done, self._due = tell, total, 0, 0.0

    def __call__(self) -> None:
        self._done += 1
        now = time.monotonic()
        if now >= self._due or self._done == self._total:
            self._due = now + TICK
            self._tell(self._done)


# The other side: what runs in a worker.

_mine: dict[str, Any] = {}
"""What a worker process is given when it begins."""


def _play_copy(packed: Package, asked: tuple[Callable[..., Any], Part], after: Any = None) -> _Answer:
    """Do a part of a job with a worker's own copy of the environment, which it opens once."""
    (job, part), model = asked, unpack(packed)
    ledger = model.ledger
    ledger.episodes = ledger.samples = 0
    found = job(model, *part, after)
    return _Answer(ledger.episodes, ledger.samples, True, found)


def _begin(parent: int, packed: Package, outbox: Any, lifeline: Any) -> None:
    """Begin a process. What an environment prints goes to standard error, and no interrupt reaches it."""
    begin_process(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    with suppress(OSError):
        os.dup2(2, 1)
    ending = threading.Event()
    _mine.update(packed=packed, outbox=outbox, ending=ending)

    def attend() -> None:
        """When the pipe closes, see to it that this process ends, whatever its environment does."""
        with suppress(EOFError, OSError):
            lifeline.recv_bytes()
        ending.set()
        time.sleep(_GRACE)
        os._exit(1)

    threading.Thread(target=attend, daemon=True).start()


def _play_part(job: Callable[..., Any], number: int, part: Part) -> _Answer:
    """Do a part of a job in a process of a pool, and tell now and then how far it is."""
    packed: Package = _mine["packed"]
    ledger: Any = None

    def tell(_: int) -> None:
        with suppress(OSError):  # nobody reads it any more
            _mine["outbox"].send_bytes(_REPORT.pack(number, ledger.episodes, ledger.samples))

    def after() -> None:
        tick()
        if _mine["ending"].is_set():
            raise WorkerError("another process has failed")

    tick = _Ticker(tell)
    try:
        model = unpack(packed)
        if "close" not in _mine:
            _mine["close"] = atexit.register(model.close)
        ledger = model.ledger
        ledger.episodes = ledger.samples = 0
        tell(0)
        return _play_copy(packed, (job, part), after)
    except (Exception, SystemExit) as error:
        spent = (0, 0) if ledger is None else (ledger.episodes, ledger.samples)
        return _Answer(spent[0], spent[1], error=_pack(error))


def _pack(error: BaseException) -> bytes:
    """Pickle an error, or one that says the same, so that it can be raised elsewhere."""
    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(error)
        if not isinstance(pickle.loads(packed), Exception):
            raise TypeError
    except Exception:  # whatever a foreign error does when it is pickled
        said = RuntimeError(f"{type(error).__name__}: {error}")
        said.__dict__.update({name: value for name, value in error.__dict__.items() if type(value) in (str, list)})
        packed = cloudpickle.dumps(said)
    return packed

"""Mates: other processes that play copies of one environment, and that end when the one who started them does.

Each is a fresh interpreter, joined to this process by two pipes and nothing else: no files, no pool that is shared with
other libraries. The end of a pipe is the end of the one at its other side. So a mate whose parent is gone ends by
itself, and a parent whose mate was killed starts another, which does the same part again: a part is a function of its
seeds, and who does it cannot be seen in the result.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

from reprl.errors import WorkerError, find_foreign

if TYPE_CHECKING:
    from reprl.sources.gymnasium.model import GymnasiumModel

TICK = 0.2
"""Seconds between two reports of progress."""
_GRACE = 5.0
"""Seconds that an episode may still take when all are to end."""
_OPENING = 120.0
"""Seconds that a process may take to start and open its environment, where an episode has a limit."""
_ATTEMPTS = 3
"""Processes that may die over one part."""
_START = "import sys; sys.path[:] = {path!r}; from reprl.execution.workers import serve; serve()"

T = TypeVar("T")


class _Word(NamedTuple):
    """What a mate says."""

    kind: str
    """"ready", "tick", "done" or "failed"."""
    episodes: int = 0
    samples: int = 0
    content: Any = None
    """Of "done" what the part gave, of "failed" the error, pickled."""


class _Mate:
    """One process, seen from here."""

    def __init__(self, number: int, model: bytes, inbox: queue.SimpleQueue[tuple[_Mate, _Word | None]]) -> None:
        """Start it and have it open the environment."""
        command = [sys.executable, "-P", "-c", _START.format(path=[place for place in sys.path if type(place) is str])]
        with _uninterrupted():
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number, self.part, self.heard, self.ready = number, b"", time.monotonic(), False
        self.episodes = self.samples = 0
        self._ear = threading.Thread(target=self._hear, args=(inbox,), daemon=True)
        self._ear.start()
        self.send(model)

    def send(self, data: bytes) -> None:
        """Send something; that nobody is there to take it is found out by who listens."""
        assert self.process.stdin is not None
        with suppress(OSError):
            pickle.dump(data, self.process.stdin)
            self.process.stdin.flush()

    def _hear(self, inbox: queue.SimpleQueue[tuple[_Mate, _Word | None]]) -> None:
        assert self.process.stdout is not None
        with suppress(Exception), self.process.stdout as answers:  # whatever half a word may raise
            while True:
                inbox.put((self, _Word(*pickle.load(answers))))
        inbox.put((self, None))

    def note(self, word: _Word) -> None:
        """Take down how far it is."""
        self.heard, self.ready = time.monotonic(), True
        self.episodes, self.samples = word.episodes, word.samples

    def how_it_ended(self) -> str:
        """In words."""
        code = self.process.wait()
        return f"was ended by signal {-code}" if code < 0 else f"left with code {code}"

    def close(self, end: float) -> None:
        """Wait until it has ended by itself, or end it."""
        with suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            self.process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._ear.join()


class Mates:
    """The processes of a crew; they are started when a part is there for them.

    Args:
        model: the environment, pickled.
        timeout: seconds that an episode may take; None for any time.
    """

    def __init__(self, model: bytes, timeout: float | None) -> None:
        """Start nothing yet."""
        self._model, self._timeout = model, timeout
        self._mates: dict[int, _Mate] = {}
        self._inbox: queue.SimpleQueue[tuple[_Mate, _Word | None]] = queue.SimpleQueue()

    def work(
        self, job: Callable[..., T], parts: Sequence[tuple[Any, ...]], progress: Callable[[int], None] | None
    ) -> list[T]:
        """Do all parts of a job, one in each process; see ``Crew.work``."""
        import cloudpickle

        found: dict[int, T] = {}
        deaths = [0] * len(parts)
        for number, part in enumerate(parts):
            self._assign(number, cloudpickle.dumps((job, part)))
        try:
            while len(found) < len(parts):
                for mate, word in self._listen():
                    if word is None:
                        deaths[mate.number] += 1
                        self._replace(mate, deaths[mate.number])
                        continue
                    mate.note(word)
                    if word.kind == "failed":
                        raise pickle.loads(word.content)
                    if word.kind == "done":
                        found[mate.number], mate.part = word.content, b""
                self._check_time()
                if progress is not None:
                    progress(sum(mate.episodes for mate in self._mates.values()))
        except BaseException as error:
            self.close(kill=not isinstance(error, Exception))
            raise
        return [found[number] for number in range(len(parts))]

    def collect(self) -> tuple[int, int]:
        """Return the episodes and samples of the last job, as far as they were told, and forget them."""
        spent = [(mate.episodes, mate.samples) for mate in self._mates.values()]
        for mate in self._mates.values():
            mate.episodes = mate.samples = 0
            if mate.process.returncode is not None:
                mate.part = b""
        self._mates = {number: mate for number, mate in self._mates.items() if mate.process.returncode is None}
        return sum(episodes for episodes, _ in spent), sum(samples for _, samples in spent)

    def close(self, *, kill: bool = False) -> None:
        """End all processes: after their current episode, or at once."""
        end = time.monotonic() + (0.0 if kill else _GRACE)
        for mate in self._mates.values():
            with suppress(OSError):
                assert mate.process.stdin is not None
                mate.process.stdin.close()
        for mate in self._mates.values():
            mate.close(end)
        while not self._inbox.empty():  # the last words of those who were cut short
            mate, word = self._inbox.get()
            if word is not None and mate.part:
                mate.note(word)

    def _assign(self, number: int, part: bytes) -> None:
        mate = self._mates.get(number) or _Mate(number, self._model, self._inbox)
        self._mates[number] = mate
        mate.part, mate.heard = part, time.monotonic()
        mate.send(part)

    def _listen(self) -> Iterator[tuple[_Mate, _Word | None]]:
        """Yield what mates of this job say, or have said, within a tick; None for one that has died."""
        with suppress(queue.Empty):
            mate, word = self._inbox.get(timeout=TICK)
            while True:
                if self._mates.get(mate.number) is mate:
                    yield mate, word
                mate, word = self._inbox.get_nowait()

    def _replace(self, dead: _Mate, deaths: int) -> None:
        """Give the part of a process that has died to another one."""
        how = dead.how_it_ended()
        dead.close(0.0)
        del self._mates[dead.number]
        if not dead.part:
            return
        if deaths >= _ATTEMPTS:
            raise WorkerError(
                f"a process that plays the environment must live, got {deaths} in a row that did not: the last {how}; "
                "if memory is short, take fewer workers"
            )
        self._assign(dead.number, dead.part)

    def _check_time(self) -> None:
        if self._timeout is None:
            return
        for mate in self._mates.values():
            limit = self._timeout + 2 * TICK + (0.0 if mate.ready else _OPENING)
            if mate.part and time.monotonic() - mate.heard > limit:
                mate.process.kill()
                raise WorkerError(f"an episode must end within {self._timeout:g} s (timeout), got one that did not")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Start a process that Ctrl-C, which a terminal sends to all, does not reach: it is for who started it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# The other side: what runs in such a process.


def serve() -> None:
    """Open the environment that comes first, then do every part that comes, until nobody is there to send one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _redirect()
    orders: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    ending = threading.Event()
    threading.Thread(target=_attend, args=(requests, orders, ending), daemon=True).start()
    try:
        _serve(orders, answers, ending)
    except BrokenPipeError:
        os._exit(1)


def _redirect() -> None:
    """Let what an environment prints go to standard error: standard output is a pipe with words for the parent."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(null, 1)


def _attend(requests: IO[bytes], orders: queue.SimpleQueue[bytes | None], ending: threading.Event) -> None:
    """Take orders; when there will be none, see to it that this process ends, whatever its environment does."""
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            orders.put(pickle.load(requests))
    ending.set()
    orders.put(None)
    time.sleep(_GRACE)
    os._exit(1)


def _serve(orders: queue.SimpleQueue[bytes | None], answers: IO[bytes], ending: threading.Event) -> None:
    def say(*word: Any) -> None:
        pickle.dump(word, answers)
        answers.flush()

    packed = orders.get()
    if packed is None:
        return
    try:
        model: GymnasiumModel = pickle.loads(packed)
    except (Exception, SystemExit) as error:
        say("failed", 0, 0, _pack(error))
        return
    say("ready")
    try:
        while (order := orders.get()) is not None:
            _do(model, order, say, ending)
    finally:
        model.close()


def _do(model: GymnasiumModel, order: bytes, say: Callable[..., None], ending: threading.Event) -> None:
    """Do one part and say what came of it."""
    ledger, parent, due = model.ledger, os.getppid(), 0.0
    before = ledger.episodes, ledger.samples

    def spent() -> tuple[int, int]:
        return ledger.episodes - before[0], ledger.samples - before[1]

    def post() -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due:
            due = now + TICK
            say("tick", *spent())
            if os.getppid() != parent:  # a child of his may hold the pipe open
                ending.set()
        if ending.is_set():
            raise WorkerError("another process has failed")

    try:
        job, part = pickle.loads(order)
        found = job(model, *part, post)
    except BrokenPipeError as error:
        if find_foreign(error) is None:
            raise
        say("failed", *spent(), _pack(error))
    except (Exception, SystemExit) as error:
        say("failed", *spent(), _pack(error))
    else:
        say("done", *spent(), found)


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

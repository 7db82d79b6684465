"""Tasks: many independent pieces of work, done by this process, by others beside it, or on a cluster.

A task is a function of what all tasks have in common and of its own key. So a result does not show which worker made
it, in which order, or how often: results are put together by key, and a task that ran twice counts once. Joblib finds
the workers, ours or those of ``joblib.parallel_config(backend=…)``. What is common is packed once, and unpacked once in
every worker (docs/scale.md).
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, TypeVar

from reprl.errors import DependencyError, InputError, ReprlError, WorkerError, quote

WINDOW = 64
"""Tasks for each worker that may be begun before the first of them is handed on: what bounds memory."""
_ATTEMPTS = 3
"""Times in a row that workers may be killed with no task done in between."""
_INLINE = 1 << 16
"""Bytes that are sent to a cluster with every batch of tasks; more is given to every worker once, beforehand."""
_JOINING = 60
"""Seconds that the first worker of a cluster may take to join it."""
_PATIENT, _ANSWERING = 10, 10
"""Seconds after which it is said that there is none yet, and those that a scheduler may take to answer."""
_OPENED = 4
"""Packages that a thread keeps unpacked."""

K = TypeVar("K")
R = TypeVar("R")
_inside: ContextVar[bool] = ContextVar("inside a task", default=False)
_mine = threading.local()


class Store(Protocol[R]):
    """Where finished tasks are kept."""

    def get(self, key: Any, /) -> R | None:
        """Return what a task gave, None if it is not there."""

    def put(self, key: Any, found: R, /) -> None:
        """Keep what a task gave."""


def run_tasks(
    task: Callable[[Any, K], R],
    common: Any,
    keys: Sequence[K],
    *,
    workers: int | None = 1,
    window: int | None = None,
    threads: bool = False,
    store: Store[R] | None = None,
) -> Generator[R, None, None]:
    """Do a task for every key and yield what each gives, in the order of the keys.

    Args:
        task: a function of what is common and of a key, and of nothing else.
        common: what all tasks need.
        keys: different ones.
        workers: processes; a backend that ``joblib.parallel_config`` names has its own number, unless this is over 1.
            None for this process alone, whatever is named: for tasks that take less time than they need to travel.
        window: for a reader who may stop: so many tasks are begun at a time, and none is handed on before all these
            are done, so that stopping early leaves no running tasks. None for a reader of everything.
        threads: whether threads will do, if no backend is named: for tasks that spend their time in kernels.
        store: of finished tasks: those in it are not done again, and every other is put there as soon as it is done.

    Guarantee:
        The same results for any workers and any backend. A task whose worker is killed is done again. A task inside
        a task is done where it is. A ReprlError of a task is raised when its turn comes, so that a reader who stops
        before it never sees it. Memory holds at most one window of results.
    """
    number, backend = count_workers(workers), named_backend()
    alone = backend is None or getattr(backend, "supports_sharedmem", False)  # a single worker is this process
    if workers is None or (number == 1 and alone):
        for key in keys:
            found = None if store is None else store.get(key)
            if found is None:
                found = task(common, key)
                if store is not None:
                    store.put(key, found)
            yield found
        return
    job = _Job(task, common, workers, threads)
    width = window or WINDOW * number
    for low in range(0, len(keys), width):
        yield from _run_window(job, keys[low : low + width], store, eager=window is None)


def count_workers(workers: int | None) -> int:
    """Return how many tasks are done at once: the workers asked for, or those of a named backend; 1 inside a task."""
    if workers is None or _inside.get():
        return 1
    if named_backend() is None:
        return workers
    from joblib import effective_n_jobs

    return max(1, int(effective_n_jobs(workers if workers > 1 else None)))


def named_backend() -> Any | None:
    """Return the backend that ``joblib.parallel_config`` names; None if it names none, and inside a task."""
    if _inside.get() or "joblib" not in sys.modules:  # who has not imported it has named none
        return None
    from joblib.parallel import get_active_backend

    one, other = (get_active_backend(prefer=kind)[0] for kind in ("threads", "processes"))
    return one if type(one) is type(other) else None  # a preference counts only where nothing is named


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Have all tasks done by the Dask cluster whose scheduler has this address; None for no cluster."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        needed = "dask must be installed for a cluster (pip install 'reprl[dask]')"
        raise DependencyError(f"{needed}, got {address}") from None
    from joblib import parallel_config

    _check_scheduler(address)
    connect: Any = Client  # which has no types
    try:
        client = connect(address, timeout=_ANSWERING, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"dask must be the address of a running scheduler, got {quote(address)}: {error}") from None
    with client:
        _await_worker(client, address)
        with parallel_config(backend="dask", client=client):
            yield


def _check_scheduler(address: str) -> None:
    """Refuse an address at which no scheduler answers, before a client is made that would wait, and complain."""
    import asyncio

    from distributed import comm, core, security

    dask: Any = SimpleNamespace(comm=comm, core=core, security=security)  # which have no types
    wanted = "dask must be the address of a running scheduler"
    scheme, _, place = address.partition("://")
    if scheme == "inproc":
        return

    async def ask() -> None:
        keys, connect = dask.security.Security(), dask.core.rpc
        how = {"timeout": _ANSWERING, "connection_args": keys.get_connection_args("client")}
        scheduler = connect(dask.comm.resolve_address(address), **how)
        try:
            await asyncio.wait_for(scheduler.identity(), _ANSWERING)
        finally:
            await scheduler.close_rpc()

    try:
        dask.comm.parse_host_port(place or address)
        asyncio.run(ask())
    except Exception as error:  # of whatever kind: nothing that can be used is there
        reason = " ".join(str(error).split()) or f"no answer within {_ANSWERING} s"
        found = f"got {quote(address)}: {quote(reason, 200)}"
        raise InputError(f"{wanted}, {found} (such as tcp://127.0.0.1:8786)") from None


def _await_worker(client: Any, address: str) -> None:
    """Wait for the first worker, and say so when it takes long."""
    for seconds, last in ((_PATIENT, False), (_JOINING - _PATIENT, True)):
        try:
            client.wait_for_workers(1, timeout=seconds)
            return
        except TimeoutError:
            if last:
                waited = f"dask must have a worker within {_JOINING} s"
                raise WorkerError(f"{waited}, got none at {quote(address)}") from None
            print(f"reprl: no workers yet at {address}: waiting up to {_JOINING - _PATIENT} s", file=sys.stderr)


class Package(NamedTuple):
    """The task and what is common, pickled."""

    token: str
    data: Any
    """An array of bytes, which joblib lays in shared memory if it is large."""


class _Job:
    """A task and what is common, ready to be sent to workers with every key."""

    def __init__(self, task: Callable[[Any, K], R], common: Any, workers: int, threads: bool) -> None:
        backend = named_backend()
        self._client = getattr(backend, "client", None)
        self._future: Any = None
        self._common: Any = (task, common) if threads and backend is None else pack((task, common))
        streams = backend is None or getattr(backend, "supports_return_generator", False)
        self.how: dict[str, Any] = {
            "n_jobs": workers if backend is None or workers > 1 else None,
            "return_as": "generator_unordered" if streams else "list",
            "prefer": "threads" if threads and backend is None else "processes",
        }
        if backend is None and not threads:
            self.how |= {"backend": "loky", "initializer": begin_process, "initargs": (os.getpid(),)}
        if self._client is not None:
            # A cluster is far away: it has a whole window in hand, task by task: no worker waits for the next one.
            self.how |= {"pre_dispatch": "all", "batch_size": 1}

    @property
    def handle(self) -> Any:
        """The task and what is common: themselves for threads, a package, or a cluster's future of a large one."""
        if self._client is None or self._common.data.nbytes <= _INLINE:
            return self._common
        if self._future is None:  # given to all workers: what one alone has dies with it
            (self._future,) = self._client.scatter([self._common], broadcast=True)
        return self._future

    def renew(self) -> None:
        """Give what is common to the workers again: those who had it may be dead."""
        self._future = None


def pack(content: object, what: str = "workers must be 1 for what cannot be sent to another process") -> Package:
    """Pickle something for another process, or say what must be for something that cannot be pickled."""
    import cloudpickle  # comes with Gymnasium
    import numpy as np

    try:
        data: bytes = cloudpickle.dumps(content)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InputError(f"{what}: {error}") from None
    return Package(hashlib.sha256(data).hexdigest(), np.frombuffer(data, dtype=np.uint8))


def _run_window(job: _Job, keys: Sequence[K], store: Store[R] | None, *, eager: bool) -> Iterator[R]:
    """Do the tasks of one window and hand them on in order: eagerly as they come, or once all are done."""
    kept = [None if store is None else store.get(key) for key in keys]
    found: dict[int, Any] = {place: item for place, item in enumerate(kept) if item is not None}
    turn = 0
    for place, item in _do_all(job, {place: key for place, key in enumerate(keys) if place not in found}):
        if store is not None and not isinstance(item, ReprlError):
            store.put(keys[place], item)
        found[place] = item
        while eager and turn in found:
            yield _raised(found.pop(turn))
            turn += 1
    yield from (_raised(found.pop(place)) for place in range(turn, len(keys)))


def _raised(item: Any) -> Any:
    if isinstance(item, ReprlError):
        raise item
    return item


def _do_all(job: _Job, left: dict[int, K]) -> Iterator[tuple[int, Any]]:
    """Do the tasks of all keys, by place, in any order; those whose workers are killed are done again by others."""
    from joblib import Parallel, delayed

    deaths = 0
    while left:
        handle = job.handle
        jobs = (delayed(_do)(handle, place, key, os.getpid()) for place, key in [*left.items()])
        try:
            with _quiet(Parallel(**job.how)(jobs)) as answers:
                for place, item in answers:
                    deaths = 0
                    if place in left:  # a task that was done twice counts once
                        del left[place]
                        yield place, item
        except Exception as error:
            # The pool of processes is broken, or Dask has lost one worker too many.
            if not isinstance(error, BrokenExecutor) and not type(error).__module__.startswith("distributed"):
                raise
            deaths = count_death(deaths, error)
            job.renew()


def count_death(deaths: int, error: Exception) -> int:
    """Return how often in a row workers were killed, this time too; raise if that is too often."""
    if deaths + 1 < _ATTEMPTS:
        return deaths + 1
    codes = re.findall(r"\w+\(-?\d+\)", str(error))  # as loky says them
    how = f"one that ended with {codes[0]}" if codes else "one that was killed"
    raise WorkerError(
        f"worker processes must live, got {_ATTEMPTS} times in a row {how}; if memory is short, take fewer workers"
    ) from None


@contextmanager
def _quiet(jobs: Any) -> Iterator[Any]:
    """Leave no work behind, without joblib's warning that some of it was in vain."""
    try:
        yield jobs
    finally:
        if hasattr(jobs, "close"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                jobs.close()


# The other side: what runs in a worker.


def _do(handle: Any, place: int, key: Any, parent: int) -> tuple[int, Any]:
    _end_with(parent)
    token = _inside.set(True)
    try:
        task, common = unpack(handle) if isinstance(handle, Package) else handle
        return place, task(common, key)
    except ReprlError as error:
        return place, error
    finally:
        _inside.reset(token)


def unpack(package: Package) -> Any:
    """Unpickle a package, once in a thread: an environment is played by one at a time."""
    opened: dict[str, Any] = _mine.__dict__.setdefault("opened", {})
    if package.token not in opened:
        while len(opened) >= _OPENED:
            del opened[next(iter(opened))]
        opened[package.token] = pickle.loads(package.data.data)
    return opened[package.token]


def begin_process(parent: int) -> None:
    """Begin a worker process; one whose parent has ended by now has no work."""
    if os.getppid() != parent:
        os._exit(1)
    _end_with(parent)


@cache
def _end_with(parent: int) -> None:
    """Have a process that another one has started end when that one does, whatever it is computing then."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    if os.getppid() == parent:  # a thread, or a process on another machine, ends by itself
        threading.Thread(target=watch, daemon=True).start()

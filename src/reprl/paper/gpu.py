"""Algorithm 4 (QExplore) on a GPU: the kernels of `reprl.paper.q_agent`, one thread for each run.

Nothing is written twice: `port` takes the code of a kernel and gives the names in it another meaning, so that products
and sums are rounded one by one and counts are added atomically. A thread does what a worker does on the CPU, word for
word of the same lane, and counts are whole numbers, so counts and choices are the same bits (tests/test_gpu.py,
``python -m benchmarks cuda``).

The compiler, numba-cuda-mlir (extra ``cuda``), is loaded when the first batch needs it. docs/scale.md says why it, and
what was measured.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import DependencyError, InputError
from reprl.mdp.counts import Counts
from reprl.mdp.draws import draw_outcome
from reprl.paper.q_agent import Schedule, add_count, explore_episodes, mark_short, refill, restart, update
from reprl.paper.runs import Exploration, Orders
from reprl.randomness import philox
from reprl.sources.protocol import EpisodeArrays

_BLOCK = 32
"""Threads of a block."""
_PER_CORE = 128
"""Runs in flight for each multiprocessor."""
_SHARE = 0.9
"""Part of the free memory that runs in flight may take."""
_SLICE = 200_000
"""Samples of a run after which the host looks up."""
_WORDS = 2
"""Random words that a thread holds: one block of its stream."""

_wanted: ContextVar[bool] = ContextVar("exploration on a GPU", default=False)


@contextmanager
def on_gpu() -> Iterator[None]:
    """Have exploration runs of MDPs in memory made by the GPU; refuse where there is none.

    Guarantee:
        The same bits as on the CPU. Nothing falls back to it: what cannot be done on the GPU is an error.
    """
    find_gpu()
    token = _wanted.set(True)
    try:
        yield
    finally:
        _wanted.reset(token)


def is_wanted() -> bool:
    """Whether `on_gpu` is in force."""
    return _wanted.get()


def refuse(what: str) -> None:
    """Refuse what a GPU cannot do, if one is asked for."""
    if _wanted.get():
        raise InputError(f"a GPU must be given exploration of an MDP in memory, got {what}")


class Bodies(NamedTuple):
    """What a run does, compiled."""

    begin: Any
    advance: Any
    finish: Any


class Machine(NamedTuple):
    """Where runs are made: a GPU, or what stands in for one in tests."""

    name: str
    width: int
    """Runs in flight, at most."""
    bodies: Bodies
    launch: Callable[..., None]
    """(body, n, world, fleet, work): calls body(i, world, fleet, work) for every i < n."""
    to: Callable[[NDArray[Any]], Any]
    """Brings an array there."""
    back: Callable[[Any], NDArray[Any]]
    """Brings it back."""
    empty: Callable[..., Any]
    """(shape, dtype): an array there, with anything in it."""
    free: Callable[[], int]
    """Bytes that are free there."""


class Fleet(NamedTuple):
    """The agents of all runs in flight, row by row (`reprl.paper.q_agent.Agent`), and how far each has read."""

    q: NDArray[np.float64]
    visits: NDArray[np.integer[Any]]
    choice: NDArray[np.integer[Any]]
    value: NDArray[np.float64]
    words: NDArray[np.uint64]
    position: NDArray[np.int64]
    """(runs, 1): words of its stream that each has used."""


class Work(NamedTuple):
    """What the runs in flight do, and what they add to."""

    schedule: Schedule
    key: np.uint64
    first: np.uint64
    """Number of the first of them."""
    episodes: int
    hits: NDArray[np.int64]
    quotas: NDArray[np.int64]
    short: NDArray[np.int64]
    missed: NDArray[np.uint8]
    starts: NDArray[np.int64]


def begin_run(i: int, world: EpisodeArrays, fleet: Fleet, work: Work) -> None:
    """Let run i forget everything."""
    outcomes = world.outcomes
    agent: Any = (fleet.q[i], fleet.visits[i], fleet.choice[i], fleet.value[i], fleet.words[i])
    restart(agent, outcomes.n_states, outcomes.n_actions, outcomes.horizon)
    fleet.position[i, 0] = 0


def advance_run(i: int, world: EpisodeArrays, fleet: Fleet, work: Work) -> None:
    """Let run i make some episodes."""
    agent: Any = (fleet.q[i], fleet.visits[i], fleet.choice[i], fleet.value[i], fleet.words[i])
    lane = work.first + np.uint64(i)
    position, _ = explore_episodes(
        world, agent, work.schedule, work.key, lane, fleet.position[i, 0], work.episodes, work.hits
    )
    fleet.position[i, 0] = position


def finish_run(i: int, world: EpisodeArrays, fleet: Fleet, work: Work) -> None:
    """Judge run i by the quotas, and count where its episodes began."""
    mark_short(fleet.visits[i], work.quotas, work.short, work.missed[i])
    width = 2 * world.outcomes.n_actions
    for s in range(world.outcomes.n_states):
        began = 0
        for a in range(width):
            began += fleet.visits[i, s * width + a]
        add_count(work.starts, s, began)


def port_bodies(jit: Callable[[Any], Any], **names: Any) -> Bodies:
    """Compile what runs do, with all that it calls, for another machine.

    Args:
        jit: compiles a function that others call.
        names: what `times`, `plus` and `add_count` are there.
    """
    names |= {"_MASK": _WORDS - 1, "_ALONE": False}

    def port(function: Any) -> Any:
        """Compile a kernel's own code, where the names above mean something else."""
        source = getattr(function, "py_func", function)
        code: Any = FunctionType(source.__code__, {**source.__globals__, **names}, source.__name__)
        names[source.__name__] = jit(code)
        return names[source.__name__]

    for function in (philox, draw_outcome, refill, update, explore_episodes, restart, mark_short):
        port(function)
    return Bodies(port(begin_run), port(advance_run), port(finish_run))


class Flight:
    """A batch of runs, made some thousands at a time; episodes and samples say what has been spent so far.

    Args:
        machine: where they are made.
        world: the MDP's sampling tables.
        orders: what every run does.
        runs: how many.

    Randomness:
        Data stream of the orders, lane = run.
    """

    def __init__(self, machine: Machine, world: EpisodeArrays, orders: Orders, runs: int) -> None:
        self.episodes, self.samples = 0, 0
        self._machine, self._world, self._orders, self._runs = machine, world, orders, runs
        horizon, n_states, _ = world.outcomes.shape
        self._missed = np.zeros((runs, horizon, n_states), dtype=np.uint8)
        self._first_value = np.empty(runs)
        tables = np.zeros(world.outcomes.n_slots, dtype=np.int64), np.zeros(n_states, dtype=np.int64)
        short = np.zeros((orders.quotas.size, horizon, n_states), dtype=np.int64)
        self._hits, self._starts, self._short = (machine.to(table) for table in (*tables, short))
        self._columns = _columns(world.outcomes.shape, orders.settings.episodes)
        each = horizon * n_states + sum(n * np.dtype(kind).itemsize for n, kind in self._columns)
        self._width = min(machine.width, int(_SHARE * machine.free()) // each)
        if self._width < 1:
            raise InputError(f"a GPU must have {each / _SHARE:.3g} bytes free for a run, got {machine.free():.3g}")

    def work(self, progress: Callable[[int, int], None] | None) -> Exploration:
        """Make all runs, and return what they found."""
        total = self._runs * self._orders.settings.episodes
        there = _map_arrays(self._machine.to, self._world)
        for first in range(0, self._runs, self._width):
            for _ in self._fly(there, first, min(self._width, self._runs - first)):
                if progress is not None:
                    progress(self.episodes, total)
        hits, short, starts = (self._machine.back(table) for table in (self._hits, self._short, self._starts))
        counts = Counts(self._world.outcomes, hits)
        return Exploration(self._runs, short, self._missed, counts, self._first_value, starts)

    def _fly(self, there: Any, first: int, n: int) -> Iterator[None]:
        """Make the runs first, …, first + n − 1, in slices."""
        horizon, n_states, n_actions = self._world.outcomes.shape
        machine, settings = self._machine, self._orders.settings
        fleet = Fleet(*(machine.empty((n, size), kind) for size, kind in self._columns))
        schedule = _map_arrays(machine.to, settings.schedule(n_states, n_actions, horizon))
        key, lane = np.uint64(self._orders.key), np.uint64(first)
        quotas, missed = machine.to(self._orders.quotas), machine.to(self._missed[first : first + n])
        work = Work(schedule, key, lane, 0, self._hits, quotas, self._short, missed, self._starts)
        begin, advance, finish = machine.bodies
        machine.launch(begin, n, there, fleet, work)
        per_slice, done, before = max(1, _SLICE // horizon), 0, self.samples
        while done < settings.episodes:
            episodes = min(per_slice, settings.episodes - done)
            machine.launch(advance, n, there, fleet, work._replace(episodes=episodes))
            done += episodes
            self.episodes += n * episodes
            self.samples = before + int(machine.back(fleet.position).sum())
            yield
        machine.launch(finish, n, there, fleet, work)
        self._missed[first : first + n] = machine.back(work.missed)
        value = machine.back(fleet.value)
        for i in range(n):  # one by one, as on the CPU: the order of a sum is part of its bits
            self._first_value[first + i] = self._world.initial @ value[i, :n_states]


def _columns(sizes: tuple[int, int, int], episodes: int) -> list[tuple[int, type[np.generic]]]:
    """Return length and kind of the tables of one run in a fleet, with the smallest numbers that count far enough."""
    horizon, n_states, n_actions = sizes
    cells, width = horizon * n_states, 2 * n_actions
    return [
        (cells * width, np.float64),
        (cells * width, _smallest(episodes)),
        (cells, _smallest(width)),
        (cells + n_states, np.float64),
        (_WORDS, np.uint64),
        (1, np.int64),
    ]


def _smallest(most: int) -> type[np.integer[Any]]:
    """Return the smallest whole numbers that count so far: what bounds the speed is how much of the tables is near."""
    return next((kind for kind in (np.uint8, np.uint16, np.int32) if most <= np.iinfo(kind).max), np.int64)


def _map_arrays(function: Callable[[NDArray[Any]], Any], value: Any) -> Any:
    """Apply a function to all arrays in a named tuple, and in named tuples within it."""
    if isinstance(value, tuple):
        return type(value)(*(_map_arrays(function, part) for part in value))
    return function(value) if isinstance(value, np.ndarray) else value


@cache
def find_gpu() -> Machine:
    """Return the GPU, or say what is missing."""
    try:
        from numba_cuda_mlir import cuda
    except ImportError:
        raise DependencyError(
            "numba-cuda-mlir must be installed for a GPU (pip install 'reprl[cuda]'), got none"
        ) from None
    try:
        device = cuda.get_current_device()
    except cuda.CudaSupportError as error:
        said = " ".join(str(error).split()).removeprefix("Error at driver init: ").rstrip(" :.")
        raise InputError(f"a GPU must be there for exploration on one, got none: {said}") from None

    def add(table: Any, at: Any, number: int) -> None:
        cuda.atomic.add(table, at, number)

    @cache
    def kernel(body: Any) -> Any:
        def serve(n: int, world: Any, fleet: Any, work: Any) -> None:
            i = cuda.grid(1)
            if i < n:
                body(i, world, fleet, work)

        return cuda.jit(serve)

    def launch(body: Any, n: int, *arguments: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few threads are what few runs need
            kernel(body)[-(-n // _BLOCK), _BLOCK](n, *arguments)
        cuda.synchronize()

    def jit(function: Any) -> Any:
        return cuda.jit(function, device=True)

    rounded = {"times": cuda.libdevice.dmul_rn, "plus": cuda.libdevice.dadd_rn}
    width = _PER_CORE * device.MULTIPROCESSOR_COUNT
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    bodies = port_bodies(jit, **rounded, add_count=jit(add))
    move = cuda.to_device, lambda there: there.copy_to_host(), cuda.device_array
    return Machine(name, width, bodies, launch, *move, lambda: int(cuda.current_context().get_memory_info().free))

"""Exploration on a GPU: the bits of the CPU. What stands in for one runs the same bodies; where one is, it does too."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
from numba import njit

import reprl
from reprl.errors import ReprlError
from reprl.paper import gpu
from reprl.paper import q_agent as qagent
from reprl.paper.gpu import Machine, find_gpu, on_gpu, port_bodies
from reprl.paper.q_explore import explore
from reprl.paper.runs import RunSettings
from reprl.sources.episodes import EpisodicModel
from reprl.sources.protocol import Ledger
from tests.shop import Shop
from tests.test_qexplore import world

WORLDS = ("random", "starts", "lock", "gridworld")


def launch(body: Any, n: int, *arguments: Any) -> None:
    for i in range(n):
        body(i, *arguments)


@cache
def stand_in(**names: Any) -> Machine:
    """The bodies of the GPU's threads, run one after the other by the CPU, three runs at a time."""
    return Machine("CPU", 3, port_bodies(njit, **names), launch, np.copy, np.copy, np.empty, lambda: 10**9)


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stand-in be the GPU, and look up often."""
    machine = stand_in()
    monkeypatch.setattr(gpu, "find_gpu", lambda: machine)
    monkeypatch.setattr(gpu, "_SLICE", 150)


@pytest.fixture
def real() -> None:
    """The GPU of this machine."""
    find_gpu.cache_clear()
    try:
        find_gpu()
    except ReprlError as error:
        pytest.skip(str(error))


def batch(name: str, runs: int, episodes: int = 200, **options: Any) -> tuple[bytes, Ledger]:
    """Everything that a batch finds, as bytes, and what it cost."""
    model = EpisodicModel(world(name), 3)
    settings = RunSettings(episodes=episodes, bonus=0.1, guide=0.01)
    found = explore(model, settings, runs, quotas=(4, 1, 30), purpose="test", **options)
    tables = (found.counts.hits, found.short, found.missed, found.first_value, found.starts)
    assert [table.dtype for table in tables] == ["i8", "i8", "u1", "f8", "i8"]
    return b"".join(table.tobytes() for table in tables), model.ledger


@pytest.mark.parametrize("name", WORLDS)
def test_the_bits_are_those_of_the_cpu(name: str, other: None) -> None:
    told: list[tuple[int, int]] = []
    with on_gpu():
        found = batch(name, 7, progress=lambda *news: told.append(news))
    assert found == batch(name, 7)
    assert told == sorted(told)
    assert told[-1] == (7 * 200, 7 * 200)
    assert len(told) > 3, "the host looks up between slices"


@pytest.mark.parametrize("episodes", [255, 256, 70_000])
def test_tables_of_small_numbers_count_far_enough(episodes: int, other: None) -> None:
    with on_gpu():
        found = batch("lock", 1, episodes)
    assert found == batch("lock", 1, episodes)


def test_a_product_that_is_rounded_otherwise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the bits depend on how products are rounded, and the names do reach the kernels."""
    machine = stand_in(times=njit(lambda x, y: np.nextafter(x * y, 0.0)))
    monkeypatch.setattr(gpu, "find_gpu", lambda: machine)
    with on_gpu():
        found = batch("random", 2)
    assert found != batch("random", 2)


def test_the_cpu_fuses_no_product_with_a_sum() -> None:
    update: Any = qagent.update
    kernel: Any = njit(update.py_func)
    agent = qagent.make_agent(2, 2, 2)
    kernel(agent, RunSettings(episodes=10).schedule(2, 2, 2), 0, 0, 4, 1.0)
    (text,) = kernel.inspect_asm().values()
    assert "mulsd" in text or "fmul" in text
    assert "fmadd" not in text
    assert "fmla" not in text


def test_a_learner_cannot_tell(other: None) -> None:
    def learn() -> str:
        grid = reprl.make("gridworld-v0", horizon=2, size=2)
        asked: dict[str, Any] = {"rule": "sampled", "access": "episodic", "shared_seed": 1, "data_seed": 2, "runs": 2}
        return reprl.learn(grid, **asked).receipt.digest

    with on_gpu():
        there = learn()
    assert there == learn()


def test_what_was_spent_before_an_interrupt_is_charged(other: None) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    model = EpisodicModel(world("random"), 3)
    with on_gpu(), pytest.raises(KeyboardInterrupt):
        explore(model, RunSettings(episodes=200), 7, quotas=(4,), purpose="test", progress=stop)
    assert 0 < model.ledger.episodes < 7 * 200
    assert model.ledger.samples >= model.ledger.episodes


def test_what_is_in_flight_fits_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    most: list[int] = []

    def note(body: Any, n: int, *arguments: Any) -> None:
        most.append(n)
        launch(body, n, *arguments)

    small = stand_in()._replace(launch=note, free=lambda: 6_000)
    monkeypatch.setattr(gpu, "find_gpu", lambda: small)
    with on_gpu():
        found = batch("random", 5)
        assert max(most) == 2, "a run of this world has tables of 2.1 kB"
        monkeypatch.setattr(gpu, "find_gpu", lambda: small._replace(free=lambda: 100))
        with pytest.raises(ReprlError, match=r"a GPU must have .* bytes free for a run, got 100"):
            batch("random", 5)
    assert found == batch("random", 5)


def test_a_black_box_is_refused_not_played_elsewhere(other: None) -> None:
    options: dict[str, Any] = {"horizon": 2, "reward_range": Shop.REWARDS, "rule": "sampled", "runs": 2}
    with on_gpu(), pytest.raises(ReprlError, match="must be given exploration of an MDP in memory, got a black box"):
        reprl.learn(Shop, **options)


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba_cuda_mlir", None)
    find_gpu.cache_clear()
    with pytest.raises(ReprlError, match=r"numba-cuda-mlir must be installed .*reprl\[cuda\]"), on_gpu():
        raise AssertionError("nothing falls back to the CPU")
    find_gpu.cache_clear()


def test_nobody_pays_for_a_gpu_who_asks_for_none() -> None:
    program = """
import sys, reprl
reprl.learn("gridworld-v0", horizon=2, rule="sampled", runs=2, shared_seed=1, data_seed=2)
print([name for name in sys.modules if name.startswith(("numba_cuda", "cuda", "numba.cuda.cudadrv"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.filterwarnings("ignore")  # of the compiler: few threads
def test_the_bits_of_a_gpu_are_those_of_the_cpu(name: str, real: None) -> None:
    with on_gpu():
        found = batch(name, 300, 3000)
    assert found == batch(name, 300, 3000)

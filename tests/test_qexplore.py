"""Batches of exploration runs: bytes, ledger, lanes, interrupts; what is recorded; what is left under-explored."""

from __future__ import annotations

import hashlib
import math
import signal
import subprocess
import sys
import threading
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import reprl
from reprl.errors import ReprlError
from reprl.mdp.tabular import TabularMDP
from reprl.paper import q_explore as qexplore
from reprl.paper.q_agent import explore_episodes, make_agent, make_schedule, restart
from reprl.paper.q_explore import explore
from reprl.paper.runs import Exploration, RunSettings
from reprl.randomness import DataStream
from reprl.sources.episodes import EpisodicModel
from tests import naive_explore
from tests.statistics import FALSE_ALARM, chi_square, exceeds, keeps

SETTINGS = RunSettings(episodes=200, bonus=0.1, guide=0.01)


@cache
def world(name: str = "random") -> TabularMDP:
    if name == "starts":
        rng = np.random.default_rng(1)
        kernel = rng.dirichlet(np.ones(4), size=(3, 4, 2))
        return TabularMDP(kernel, np.zeros((3, 4, 2)), rng.dirichlet(np.ones(4)))
    if name == "lock":
        return reprl.make("combination-lock-v0", horizon=6, n_states=6, n_actions=2)
    if name == "gridworld":
        return reprl.make("gridworld-v0", horizon=6, size=4)
    return reprl.make("random-mdp-v0", horizon=4, n_states=8, n_actions=3, support=3)


def batch(model: EpisodicModel, runs: int, **options: Any) -> Exploration:
    return explore(model, SETTINGS, runs, **{"quota": 4, "purpose": "test", **options})


def encode(found: Exploration) -> bytes:
    return found.counts.to_bytes() + found.short.tobytes() + found.first_value.tobytes()


def naive_runs(name: str, seed: int, purpose: str, runs: int) -> list[naive_explore.Explorer]:
    key = DataStream(seed, f"explore/{purpose}/1").key
    agent = naive_explore.Agent(SETTINGS.bonus, SETTINGS.guide, SETTINGS.failure, SETTINGS.episodes)
    slow = [
        naive_explore.Explorer(naive_explore.world_of(EpisodicModel(world(name), 0).arrays), agent, key, run)
        for run in range(runs)
    ]
    for one in slow:
        for _ in range(SETTINGS.episodes):
            one.episode()
    return slow


# Bytes, ledger, lanes.


@pytest.mark.parametrize("name", ["random", "starts"])
def test_bytes_do_not_depend_on_workers_or_slices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = encode(batch(EpisodicModel(world(name), 3), 7, quota=4))
    for workers in (2, 3, 20):
        assert encode(batch(EpisodicModel(world(name), 3), 7, quota=4, workers=workers)) == first
    monkeypatch.setattr(qexplore, "_SLICE", 50)
    assert encode(batch(EpisodicModel(world(name), 3), 7, quota=4, workers=2)) == first


def test_bytes_are_those_of_this_stream_version() -> None:
    """Whole numbers only: the last digit of a logarithm may differ between machines."""
    found = [batch(EpisodicModel(world(), 3), 5, quota=quota) for quota in (1, 4)]
    short = b"".join(one.short.astype("<i8").tobytes() for one in found)
    digest = hashlib.sha256(found[0].counts.to_bytes() + short).hexdigest()
    assert digest == "efdbbfe906dd4c9a3e0cffcd904a3eacdd88cc5cfa9191624e92dcacb81c7619"


@pytest.mark.parametrize("name", ["random", "starts", "lock"])
def test_a_batch_is_the_sum_of_naive_runs_and_the_ledger_is_exact(name: str) -> None:
    model = EpisodicModel(world(name), 11)
    told: list[tuple[int, int]] = []
    found = batch(model, 3, quota=3, progress=lambda *news: told.append(news))
    slow = naive_runs(name, 11, "test", 3)
    assert found.counts.hits.tolist() == np.sum([one.hits for one in slow], axis=0).tolist()
    assert found.short.tolist() == np.sum([one.short(3) for one in slow], axis=0).tolist()
    assert found.missed.tolist() == [one.short(3) for one in slow]
    expected = [sum(p * v for p, v in zip(world(name).initial, one.value[0], strict=True)) for one in slow]
    np.testing.assert_allclose(found.first_value, expected, rtol=1e-12)
    samples = sum(one.samples for one in slow)
    assert (model.ledger.samples, model.ledger.episodes, model.ledger.calls) == (samples, 3 * SETTINGS.episodes, 0)
    assert told == sorted(told)
    assert told[-1] == (3 * SETTINGS.episodes, 3 * SETTINGS.episodes)
    batch(model, 3)
    assert model.ledger.episodes == 6 * SETTINGS.episodes
    assert model.ledger.samples > samples


def test_runs_and_purposes_and_seeds_read_their_own_lanes() -> None:
    def hits(runs: int, seed: int = 3, purpose: str = "test") -> NDArray[np.int64]:
        return batch(EpisodicModel(world(), seed), runs, purpose=purpose).counts.hits

    third = np.array(naive_runs("random", 3, "test", 3)[2].hits)
    assert (hits(3) - hits(2) == third).all(), "a run must not depend on how many there are"
    assert not np.array_equal(hits(1), third)
    assert not np.array_equal(hits(2), hits(2, purpose="other"))
    assert not np.array_equal(hits(2), hits(2, seed=4))


def test_every_batch_of_a_model_is_fresh() -> None:
    """A learner that is run again on one model must see new data, or boosting would count copies."""
    model = EpisodicModel(world(), 3)
    first, second = (batch(model, 2).counts for _ in range(2))
    assert first != second
    assert first == batch(EpisodicModel(world(), 3), 2).counts
    streams = {model.fresh_stream("x").key for _ in range(3)}
    assert len(streams) == 3


# Interrupts.


def test_an_exception_in_one_worker_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*arguments: Any) -> tuple[int, int]:
        if int(arguments[4]) == 2:
            raise RuntimeError("run 2 fails")
        return explore_episodes(*arguments)

    monkeypatch.setattr(qexplore, "explore_episodes", failing)
    model = EpisodicModel(world(), 3)
    before = threading.active_count()
    settings = RunSettings(episodes=10**7)
    with pytest.raises(RuntimeError, match="run 2 fails"):
        explore(model, settings, 10**6, quota=4, purpose="test", workers=3)
    assert threading.active_count() == before
    assert model.ledger.episodes < 100 * settings.episodes
    assert model.ledger.samples >= model.ledger.episodes


def test_an_exception_in_progress_stops_everything_and_is_charged() -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    model = EpisodicModel(world(), 3)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        explore(model, RunSettings(episodes=2**50), 4, quota=4, purpose="test", workers=2, progress=stop)
    assert threading.active_count() == before
    assert model.ledger.samples >= model.ledger.episodes > 0


_LONG_RUN = """
import threading
import reprl
from reprl.paper.q_explore import explore
from reprl.paper.runs import RunSettings
from reprl.sources.episodes import EpisodicModel

model = EpisodicModel(reprl.make("random-mdp-v0", horizon=4), 1)
explore(model, RunSettings(episodes=10), 1, quota=4, purpose="warm")
told = []
def progress(done, total):
    if not told:
        print("working", flush=True)
    told.append(done)
try:
    explore(model, RunSettings(episodes=2**50), 100, quota=4, purpose="long", workers=2, progress=progress)
except KeyboardInterrupt:
    print("stopped", threading.active_count(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
def test_ctrl_c_stops_a_long_run() -> None:
    """The run would take centuries; a minute is allowed, so that a busy machine passes too."""
    child = subprocess.Popen([sys.executable, "-c", _LONG_RUN], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        assert (child.returncode, out) == (0, "stopped 1\n")
    finally:
        child.kill()
        child.wait()


# What is refused.


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"episodes": 0}, "episodes must be a whole number from 1"),
        ({"episodes": 1.5}, "episodes must be"),
        ({"episodes": 2**63}, "episodes must be"),
        ({"bonus": 0.0}, r"bonus must lie in \(0, inf\), got 0.0"),
        ({"bonus": math.nan}, "bonus must"),
        ({"bonus": math.inf}, "bonus must"),
        ({"guide": 1.5}, r"guide must lie in \[0, 1\], got 1.5"),
        ({"guide": -0.1}, "guide must"),
        ({"failure": 0.0}, r"failure must lie in \(0, 1\), got 0.0"),
        ({"failure": 1.0}, "failure must"),
    ],
)
def test_bad_settings(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ReprlError, match=text):
        RunSettings(**{"episodes": 10, **options})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"runs": 0}, "runs must be a whole number"),
        ({"runs": 2**63}, "runs must be"),
        ({"workers": 0}, "workers must be"),
        ({"workers": 1.0}, "workers must be"),
        ({"quota": 0}, "quota must be"),
        ({"quota": 2**63}, "quota must be"),
        ({"purpose": "line\nbreak"}, "purpose must be"),
    ],
)
def test_bad_batches(options: dict[str, Any], text: str) -> None:
    model = EpisodicModel(world(), 3)
    with pytest.raises(ReprlError, match=text):
        batch(model, options.pop("runs", 2), **options)
    assert model.ledger.samples == 0


# What is recorded.


def kernel_hits(mdp: TabularMDP, agent: naive_explore.Agent, runs: int) -> NDArray[np.int64]:
    """(runs, slots): the records of each run by itself."""
    sizes = (mdp.n_states, mdp.n_actions, mdp.horizon)
    arrays, tables = EpisodicModel(mdp, 0).arrays, make_agent(*sizes)
    schedule = make_schedule(
        *sizes, episodes=agent.episodes, bonus=agent.bonus, guide=agent.guide, failure=agent.failure
    )
    hits = np.zeros((runs, mdp.outcomes.n_slots), dtype=np.int64)
    for run in range(runs):
        restart(tables, *sizes)
        explore_episodes(arrays, tables, schedule, np.uint64(99), np.uint64(run), 0, agent.episodes, hits[run])
    return hits


def naive_hits(mdp: TabularMDP, agent: naive_explore.Agent, runs: int, *, record_real: bool) -> NDArray[np.int64]:
    arrays = naive_explore.world_of(EpisodicModel(mdp, 0).arrays)
    hits = []
    for run in range(runs):
        one = naive_explore.Explorer(arrays, agent, 99, run, record_real=record_real)
        for _ in range(agent.episodes):
            one.episode()
        hits.append(one.hits)
    return np.array(hits)


def cells(mdp: TabularMDP) -> list[tuple[slice, slice]]:
    return [mdp.outcomes.slots(*cell) for cell in np.ndindex(*mdp.outcomes.shape)]


def dependence(mdp: TabularMDP, hits: NDArray[np.int64]) -> float:
    """p-value, all cells together, that records are independent draws given the numbers of records.

    Given those numbers, outcome e of cell i is seen Binomial(n_i, p_e) times in a run, independently of every number of
    records n_j. So Σ_runs (n_j − mean)(hits_e − n_i p_e) has mean 0 and a known variance: a normal test for each
    (e, j), corrected for how many there are.
    """
    numbers = np.stack([hits[:, slots].sum(axis=1) for _, slots in cells(mdp)], axis=1)
    weights = numbers - numbers.mean(axis=0)
    worst, tests = 0.0, 0
    for i, (table, slots) in enumerate(cells(mdp)):
        law = mdp.probability[table]
        for e in range(law.size if law.size > 2 else law.size - 1):
            surplus = hits[:, slots][:, e] - numbers[:, i] * law[e]
            variance = (weights**2 * (numbers[:, i] * law[e] * (1.0 - law[e]))[:, None]).sum(axis=0)
            use = variance > 100.0
            z = (weights * surplus[:, None]).sum(axis=0)[use] / np.sqrt(variance[use])
            worst, tests = max(worst, float(np.abs(z).max(initial=0.0))), tests + int(use.sum())
    assert tests > 0
    return min(1.0, tests * 2.0 * float(stats.norm.sf(worst)))


def fork() -> TabularMDP:
    """A coin at the first step decides which of two states has a record at the second."""
    kernel = np.zeros((2, 3, 1, 3))
    kernel[0, :, 0, 1:] = 0.5
    kernel[1, :, 0, :] = 1.0 / 3.0
    return TabularMDP(kernel, np.zeros((2, 3, 1)))


def small() -> TabularMDP:
    return TabularMDP(np.random.default_rng(5).dirichlet(np.ones(3), size=(3, 3, 2)), np.zeros((3, 3, 2)))


@pytest.mark.statistical
@pytest.mark.parametrize("make", [fork, small])
def test_records_are_independent_given_their_numbers(make: Any) -> None:
    """False alarm 1e-6. Control: with the outcomes of real actions in the data too, the same test rejects."""
    mdp, agent = make(), naive_explore.Agent(0.1, 0.01, 0.01, 40)
    assert dependence(mdp, kernel_hits(mdp, agent, 6000)) > FALSE_ALARM
    assert dependence(mdp, naive_hits(mdp, agent, 400, record_real=False)) > FALSE_ALARM
    assert dependence(mdp, naive_hits(mdp, agent, 400, record_real=True)) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["random", "starts", "gridworld"])
def test_records_have_the_law_of_their_cell(name: str) -> None:
    """Chi-square over all cells, 400 runs pooled; false alarm 1e-6. Control: laws shifted by two per cent."""
    mdp = world(name)
    found = explore(
        EpisodicModel(mdp, 8), RunSettings(episodes=3000, bonus=0.1, guide=0.01), 400, quota=1, purpose="law"
    )
    laws = [(found.counts.hits[slots], mdp.probability[table]) for table, slots in cells(mdp)]
    laws = [(seen, law) for seen, law in laws if seen.sum() > 0 and law.size > 1]
    assert chi_square(laws) > FALSE_ALARM
    shifted = [(seen, 0.98 * law + 0.02 * np.eye(law.size)[0]) for seen, law in laws]
    assert chi_square(shifted) < FALSE_ALARM


# What is left under-explored.


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["random", "lock", "gridworld"])
def test_what_stays_under_explored_is_hard_to_reach(name: str) -> None:
    """λ = 0.1 except in 5 % of runs, with the practical constants; false alarm 1e-6. Control: too few episodes."""
    mdp, runs = world(name), 120
    size = mdp.n_states * mdp.n_actions * mdp.horizon

    def failures(episodes: int) -> int:
        settings = RunSettings(episodes=episodes, bonus=0.1, guide=0.01)
        found = 0
        for i in range(runs):
            short = explore(EpisodicModel(mdp, i), settings, 1, quota=mdp.horizon, purpose="reach").short
            found += mdp.reachability(short > 0) > 0.1
        return found

    assert keeps(failures(50 * size), runs, 0.05, power=0.00794, finds=0.22)
    assert exceeds(failures(size), runs, 0.05) < FALSE_ALARM

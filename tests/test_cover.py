"""Covering exploration: the law of a batch, planning, the ledger, known states, and bytes whoever plays."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import reprl
from reprl.errors import ReprlError
from reprl.execution.pool import WorkerPool
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream
from reprl.sources.black_box import as_counts, known_records, play_episodes
from reprl.sources.episodes import EpisodicModel, walk
from reprl.sources.exploration import AdaptiveEpisodes, cover, plan_visits
from reprl.sources.gymnasium.model import GymnasiumModel, to_gymnasium
from reprl.sources.optimism import weigh_unknown
from reprl.sources.protocol import Ledger, no_data
from reprl.sources.tallies import TableTallies, open_tallies, play
from tests import naive_cover
from tests.shop import Shop
from tests.statistics import FALSE_ALARM, chi_square_of
from tests.test_blackbox import Faulty, Stairs, stairs

POLICY = np.array([[1, 0], [0, 1]])


def world_of(mdp: TabularMDP) -> naive_cover.World:
    """The law of every cell, as a list."""

    def law(h: int, s: int, a: int) -> list[tuple[float, int, float]]:
        table, _ = mdp.outcomes.slots(h, s, a)
        columns = (mdp.probability[table], mdp.outcomes.next_state[table], mdp.outcomes.reward[table])
        return [(float(p), int(y), float(r)) for p, y, r in zip(*columns, strict=True)]

    return law


def records_of(counts: Counts) -> dict[naive_cover.Record, int]:
    records: dict[naive_cover.Record, int] = {}
    for cell in np.ndindex(*counts.outcomes.shape):
        table, slots = counts.outcomes.slots(*cell)
        columns = (counts.outcomes.next_state[table], counts.outcomes.reward[table], counts.hits[slots])
        records |= {(*cell, int(y), float(r)): int(n) for y, r, n in zip(*columns, strict=True) if n}
    return records


def two_rooms(stay: float = 0.7) -> TabularMDP:
    transition = np.array([[[stay, 1 - stay], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]])
    reward = np.array([[0.25, 0.5], [1.0, 0.0]])
    kind = "deterministic"
    return TabularMDP(transition, reward, initial=np.array([0.6, 0.4]), horizon=2, reward_kind=kind)


def random_mdp(seed: int, n_states: int = 4, n_actions: int = 3, horizon: int = 3) -> TabularMDP:
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(n_states, 0.3), size=(horizon, n_states, n_actions))
    transition = np.where(transition < 0.05, 0.0, transition)
    transition /= transition.sum(axis=-1, keepdims=True)
    reward = rng.uniform(size=(horizon, n_states, n_actions))
    return TabularMDP(transition, reward, initial=rng.dirichlet(np.ones(n_states)), horizon=horizon)


# The law of a batch.


@pytest.mark.statistical
@pytest.mark.parametrize("how", ["few", "counts", "episodes", "naive"])
def test_a_batch_has_the_law_of_independent_episodes(how: str) -> None:
    """The whole table of two episodes at once. False alarm 1e-6; control: a world that is off by 0.2 in one cell."""
    mdp, batches = two_rooms(), 2000
    actions = POLICY.tolist()
    laws = [
        naive_cover.law_of_batch(world_of(other), list(other.initial), actions, 2) for other in (mdp, two_rooms(0.5))
    ]
    tally: Counter[naive_cover.Table] = Counter()
    if how == "naive":
        random = Random(5)
        tally.update(naive_cover.play(world_of(mdp), list(mdp.initial), actions, 2, random) for _ in range(batches))
    elif how == "few":
        model = EpisodicModel(mdp, 3)
        tally.update(naive_cover.as_table(records_of(play(model, POLICY, 2).counts)) for _ in range(batches))
    elif how == "counts":
        for seed in range(batches):
            hits = walk(mdp.outcomes, mdp.probability, mdp.initial, POLICY, 2, DataStream(seed, "counts").key)
            tally[naive_cover.as_table(records_of(Counts(mdp.outcomes, hits)))] += 1
    else:
        black = GymnasiumModel(lambda: to_gymnasium(mdp), 2, reward_range=(0, 1), data_seed=3)
        longer = np.pad(POLICY, ((0, 0), (0, black.n_states - 2)))
        for _ in range(batches):
            found = records_of(play(black, longer, 2).counts)
            tally[naive_cover.as_table({record: n for record, n in found.items() if record[1] < 2})] += 1
    assert chi_square_of(tally, laws[0]) > FALSE_ALARM
    assert chi_square_of(tally, laws[1]) < FALSE_ALARM


@pytest.mark.parametrize("seed", range(5))
def test_planning_finds_the_largest_sum_of_bonuses(seed: int) -> None:
    mdp = random_mdp(seed)
    model, rng = EpisodicModel(mdp, seed), np.random.default_rng(seed)
    weight = rng.uniform(size=mdp.outcomes.shape) if seed else None
    data = play(model, rng.integers(3, size=(3, 4)), 5) + play(model, rng.integers(3, size=(3, 4)), 6)
    chosen = plan_visits(empirical_dynamics(data), data.counts.visits, weight, model)
    tallies = records_of(data.counts)
    q = naive_cover.worths(tallies, lambda *cell: 1.0 if weight is None else weight[cell], mdp.outcomes.shape)
    for h, s in np.ndindex(3, 4):
        best = max(q[h, s, a] for a in range(3))
        assert q[h, s, int(chosen[h, s])] == pytest.approx(best, rel=1e-12)
    worst = {(h, s): min(range(3), key=lambda a: q[h, s, a]) for h, s in np.ndindex(3, 4)}
    assert any(q[h, s, a] < 0.9 * max(q[h, s, b] for b in range(3)) for (h, s), a in worst.items()), "control"


# What every batch keeps to.


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), episodes=st.integers(1, 300), rounds=st.integers(1, 3))
def test_what_is_recorded_is_possible_and_paid_for(seed: int, episodes: int, rounds: int) -> None:
    mdp = random_mdp(seed)
    model, data = EpisodicModel(mdp, seed), None
    told: list[tuple[int, int]] = []
    for _ in range(rounds):
        data = cover(model, data or no_data(model), episodes, progress=lambda *news: told.append(news))
    assert data is not None
    played = rounds * episodes
    assert model.ledger == Ledger(samples=played * 4, episodes=played)
    assert data.starts.sum() == played
    assert (data.counts.visits.sum(axis=(1, 2)) == played).all()
    np.testing.assert_array_equal(data.counts.visits[0].sum(axis=1), data.starts)
    world = world_of(mdp)
    for h, s, a, following, reward in records_of(data.counts):
        assert any((y, r) == (following, reward) and p > 0.0 for p, y, r in world(h, s, a))
    into = np.zeros((3, 4), dtype=np.int64)
    for (h, _, _, following, _), n in records_of(data.counts).items():
        into[h, following] += n
    np.testing.assert_array_equal(into[:-1], data.counts.visits[1:].sum(axis=2))
    assert told[-1] == (episodes, episodes)


@settings(max_examples=30, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32), fall=st.sampled_from([0.0, 0.4, 1.0]))
def test_episodes_may_be_split_anyhow(data: st.DataObject, seed: int, fall: float) -> None:
    n = data.draw(st.integers(1, 60))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    actions = np.array(data.draw(st.lists(st.integers(0, 1), min_size=12, max_size=12))).reshape(3, 4)
    model = stairs(seed=seed, fall=fall)
    whole = play(model, actions, n)
    ledger, stream = Ledger(), DataStream(seed, "cover/1")
    records, starts = known_records(model, n), np.zeros(4, dtype=np.int64)
    for part in pairwise([0, *cuts, n]):
        alone = stairs(seed=0, fall=fall)
        found, begun = play_episodes(alone, actions, stream, range(*part), None)
        records.update(found)
        starts += begun
        ledger.samples += alone.ledger.samples
        ledger.episodes += alone.ledger.episodes
    assert as_counts(records, (3, 4, 2)) == whole.counts
    assert starts.tolist() == whole.starts.tolist() == [n, 0, 0, 0]
    assert ledger == model.ledger
    free = 3 * 2 * n
    assert model.ledger == Ledger(samples=n + int(whole.counts.hits.sum()) - free, episodes=n)


@pytest.mark.parametrize("pooled", [False, True])
def test_tallies_that_grow_are_those_of_all_batches_together(pooled: bool) -> None:
    """Of few episodes, drawn one by one, and of many, drawn as counts, on a table of its own."""
    mdp = reprl.make("random-mdp-v0", 3, n_states=6, n_actions=2, stationary=pooled)
    one, other = (EpisodicModel(mdp, 8) for _ in range(2))
    growing = open_tallies(one, no_data(one, pooled=pooled), None)
    assert isinstance(growing, TableTallies)
    data, rng = no_data(other, pooled=pooled), np.random.default_rng(1)
    for episodes in (1, 3, 40, 5000):
        actions = rng.integers(2, size=(3, 6))
        growing.play(actions, episodes, None)
        more = play(other, actions, episodes)
        data += more.pool() if pooled else more
        seen, whole = growing.dynamics(), empirical_dynamics(data)
        assert seen is not None
        assert encode(growing.data()) == encode(data)
        assert growing.seen == np.count_nonzero(data.counts.hits) == seen.probability.size
        np.testing.assert_array_equal(growing.visits(), data.counts.visits)
        np.testing.assert_array_equal(seen.probability, whole.probability[data.counts.hits > 0])
        np.testing.assert_array_equal(seen.tried, whole.tried)
        weight = rng.uniform(size=(3, 6, 2))
        plans = [plan_visits(model, data.counts.visits, weight, one) for model in (seen, whole)]
        assert plans[0].tolist() == plans[1].tolist()
    assert one.ledger == other.ledger


def test_a_limit_is_spent_and_moves_no_batch_before_it() -> None:
    """Episodes that end early leave samples for others; a larger limit begins with the same batches."""
    drawn = []
    for limit in (3000, 9000):
        model = stairs(seed=5, fall=0.9)
        source = AdaptiveEpisodes(model, WorkerPool(model), pooled=True)
        known, early = source.empty(), []
        for size in source.sizes(limit):
            known = source.gather(known, size, None)
            early.append(encode(known.data))
            if source.exhausted(known):
                break
        assert limit - model.samples_per_episode < model.ledger.samples == known.spent <= limit
        assert model.ledger.episodes > limit / model.samples_per_episode, "control: full length would have paid fewer"
        drawn.append(early)
    assert len(drawn[0]) > 2
    assert drawn[0][:-1] == drawn[1][: len(drawn[0]) - 1]


# Known states.


def test_states_whose_law_is_known_are_not_explored_and_not_feared() -> None:
    model = stairs(4, fall=1.0)
    data = cover(model, no_data(model), 400)
    assert (data.counts.visits[:, 3] == 400).all()
    dynamics = empirical_dynamics(data)
    assert (plan_visits(dynamics, data.counts.visits, None, model)[:, 3] == 0).all()
    unsure = data.counts.visits < 16
    feared = unsure.copy()
    feared[:, 3] = True
    assert weigh_unknown(dynamics, unsure).worth < 0.1
    assert weigh_unknown(dynamics, feared).worth > 0.5, (
        "control: with no record, ended episodes would be the great unknown"
    )


def test_two_runs_of_learn_agree_where_episodes_end() -> None:
    runs = [
        reprl.learn(
            partial(Stairs, 0.5), horizon=3, reward_range=(-1, 1), access="episodic", shared_seed=4, data_seed=i
        )
        for i in (1, 2)
    ]
    assert runs[0].policy == runs[1].policy
    assert runs[0].counts != runs[1].counts
    assert [run.guarantee.status for run in runs] == ["rehearsed", "rehearsed"]
    assert runs[0].values[:, 3].tolist() == [1.5, 1.0, 0.5, 0.0]


# Processes.


def encode(data: Data) -> bytes:
    return data.counts.to_bytes() + data.starts.tobytes()


class Noted(Stairs):
    """Writes down in a folder when it is opened and closed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(0.3)
        self.note = folder / str(len(list(folder.iterdir())))
        while self.note.exists():
            self.note = self.note.with_name(self.note.name + "x")
        self.note.write_text("open")

    def close(self) -> None:
        self.note.write_text("closed")


def test_bytes_do_not_depend_on_who_plays_and_nobody_opens_twice(tmp_path: Path) -> None:
    first = stairs(seed=7, fall=0.3)
    alone = cover(first, no_data(first), 300)
    for workers in (2, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        model = GymnasiumModel(partial(Noted, folder), 3, reward_range=(0, 1), data_seed=7)
        told: list[tuple[int, int]] = []
        with WorkerPool(model, workers) as pool:
            shared = cover(model, no_data(model), 300, pool=pool, progress=lambda *news, told=told: told.append(news))
        assert encode(shared) == encode(alone)
        assert model.ledger == first.ledger
        assert told == sorted(told)
        assert told[-1] == (300, 300)
        notes = [note.read_text() for note in folder.iterdir()]
        assert sorted(notes) == ["closed"] * (len(notes) - 1) + ["open"], "the model's own stays open"
        assert 2 <= len(notes) <= workers + 1
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(x) for x in (-1, -2)) == [1, 2], "joblib still works"


@pytest.mark.parametrize("workers", [1, 2])
def test_what_goes_wrong_is_named_with_its_episode(workers: int) -> None:
    message = r"^reward at step [123] must lie in .*, got 1\.5 \(cover/\d+, episode \d+\)$"
    model = GymnasiumModel(lambda: Faulty("reward"), 3, reward_range=(0, 1), data_seed=1)
    with WorkerPool(model, workers) as pool, pytest.raises(ReprlError, match=message):
        cover(model, no_data(model), 2000, pool=pool)
    assert model.ledger.samples > 100, "what was drawn before is charged"
    model = GymnasiumModel(lambda: Faulty("step"), 3, reward_range=(0, 1), data_seed=1)
    with WorkerPool(model, workers) as pool, pytest.raises(ZeroDivisionError) as caught:
        cover(model, no_data(model), 2000, pool=pool)
    assert any("cover/" in note and "episode" in note for note in caught.value.__notes__)


def test_an_open_environment_is_played_by_this_process_alone() -> None:
    env = Stairs()
    model = GymnasiumModel(env, 3, reward_range=(0, 1), data_seed=1)
    with (
        WorkerPool(model, 2) as pool,
        pytest.raises(ReprlError, match=r"^workers must be 1 for an environment that is "),
    ):
        cover(model, no_data(model), 20, pool=pool)
    assert (model.ledger, env.steps) == (Ledger(), 0)


_LONG_RUN = """
import reprl
from reprl.sources.protocol import no_data
from reprl.sources.tallies import play
from reprl.execution.pool import WorkerPool
from reprl.sources.gymnasium.model import GymnasiumModel
import numpy as np

model = GymnasiumModel("FrozenLake-v1", 4, data_seed=1)
told = []
def progress(done, total):
    if done and not told:
        told.append(done)
        print("working", flush=True)
try:
    with WorkerPool(model, {workers}) as pool:
        play(model, np.zeros((4, 17), dtype=np.int64), 2**40, pool=pool, progress=progress)
except KeyboardInterrupt:
    print("stopped", model.ledger.samples >= model.ledger.episodes > 0, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_everybody(workers: int) -> None:
    """The batch would take years. The signal goes to the whole group, as from a terminal."""
    child = subprocess.Popen(
        [sys.executable, "-c", _LONG_RUN.replace("{workers}", str(workers))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=120)
        assert (child.returncode, out, err) == (0, "stopped True\n", "")
    finally:
        child.kill()
        child.wait()


def test_a_pool_that_is_stopped_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that frees a semaphore while Python exits makes loky's resource tracker warn of a leak."""
    from joblib.externals.loky.backend.queues import Queue

    feed = Queue._feed

    def linger(*given: Any) -> None:
        feed(*given)
        time.sleep(0.5)

    monkeypatch.setattr(Queue, "_feed", staticmethod(linger))

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    model, before = GymnasiumModel("FrozenLake-v1", 4, data_seed=1), set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), WorkerPool(model, 2) as pool:
        play(model, np.zeros((4, 17), dtype=np.int64), 2**40, pool=pool, progress=stop)
    assert set(threading.enumerate()) <= before


# Bytes.

FINGERPRINTS = ("885e3623997b3317", "3b14dee56e5e9654")
"""An MDP in memory, and a black box. A change here is a new stream version."""


def fingerprint(model: Any, weight: NDArray[np.float64] | None = None) -> str:
    data = cover(model, cover(model, no_data(model), 100), 250, weight)
    return hashlib.sha256(encode(data)).hexdigest()[:16]


def test_fixed_seeds_give_fixed_bytes() -> None:
    memory = fingerprint(EpisodicModel(two_rooms(), 11), np.linspace(0.0, 1.0, 8).reshape(2, 2, 2))
    black = fingerprint(GymnasiumModel(Shop, 5, reward_range=Shop.REWARDS, data_seed=11))
    assert (memory, black) == FINGERPRINTS

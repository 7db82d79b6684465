"""Exploring and learning through reset and step alone: bytes, ledger, ended episodes, bad environments, Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import reprl
from reprl.errors import ReprlError
from reprl.execution.progress import progress_bar
from reprl.mdp.counts import Counts
from reprl.mdp.draws import draw_outcome
from reprl.mdp.tabular import TabularMDP
from reprl.paper.black_box import explore_runs
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import Stage
from reprl.paper.rep_level_explore import find_partition
from reprl.paper.runs import Exploration, Orders, RunSettings
from reprl.randomness import DataStream
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel, to_gymnasium
from reprl.sources.protocol import Ledger, Observation
from tests.statistics import FALSE_ALARM, chi_square
from tests.test_qexplore import dependence, fork

SETTINGS = RunSettings(episodes=150, bonus=0.1, guide=0.01)


class Stairs(gymnasium.Env[Any, Any]):
    """Three stairs: action 1 climbs with probability 0.8, the top pays 1, and a fall from it ends the episode."""

    def __init__(self, fall: float = 0.0) -> None:
        self.observation_space, self.action_space = spaces.Discrete(3), spaces.Discrete(2)
        self.fall, self.stair, self.steps, self.over = fall, 0, 0, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.stair, self.over = 0, False
        return 0, {}

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        assert not self.over, "an ended episode must not be stepped"
        self.steps += 1
        if action == 1 and self.np_random.random() < 0.8:
            self.stair = min(2, self.stair + 1)
        self.over = self.stair == 2 and self.np_random.random() < self.fall
        return self.stair, float(self.stair == 2), self.over, False, {}


def exact_stairs(horizon: int) -> TabularMDP:
    climb = np.array([[0.2, 0.8, 0.0], [0.0, 0.2, 0.8], [0.0, 0.0, 1.0]])
    pays = np.zeros((3, 2, 3))
    pays[:, :, 2] = 1.0
    return TabularMDP(np.stack([np.eye(3), climb], axis=1), pays, horizon=horizon, reward_kind="deterministic")


def stairs(horizon: int = 3, *, seed: int = 1, fall: float = 0.0) -> GymnasiumModel:
    return GymnasiumModel(lambda: Stairs(fall), horizon, reward_range=(0, 1), data_seed=seed)


def batch(model: Any, runs: int, **options: Any) -> Exploration:
    return explore(model, SETTINGS, runs, **{"quota": 4, "purpose": "test", **options})


def encode(found: Exploration) -> bytes:
    return found.counts.to_bytes() + found.short.tobytes() + found.first_value.tobytes()


# The same agent.


class Replay:
    """A model without tables whose outcomes are read from the words that the kernel reads for a TabularMDP."""

    known: Mapping[int, float] = {}

    def __init__(self, mdp: TabularMDP, seed: int, episodes: int) -> None:
        self.n_states, self.n_actions, self.horizon = mdp.n_states, mdp.n_actions, mdp.horizon
        self.ledger, self.data_seed, self.samples_per_episode = Ledger(), seed, mdp.horizon + 1
        self.arrays, self.episodes, self.key = EpisodicModel(mdp, 0).arrays, episodes, 0
        self.run = self.episode = self.position = self.h = self.state = 0

    def fresh_stream(self, purpose: str) -> DataStream:
        stream = DataStream(self.data_seed, f"{purpose}/1")
        self.key, self.run, self.episode = stream.key, -1, self.episodes
        return stream

    def word(self) -> np.uint64:
        stream = DataStream(self.data_seed, "explore/test/1", self.run)
        assert stream.key == self.key
        self.position += 1
        return np.uint64(stream.integers(1, self.position - 1)[0])

    def reset(self) -> int:
        if self.episode == self.episodes:
            self.run, self.episode, self.position = self.run + 1, 0, 0
        self.episode += 1
        self.h, self.state = 0, int(self.arrays.start_state[0])
        if self.arrays.start_state.size > 1:
            self.state = int(self.arrays.start_state[draw_outcome(self.arrays.start, 0, self.word())])
        return self.state

    def step(self, action: int) -> Observation:
        outcomes = self.arrays.outcomes
        row = self.h * outcomes.row_shift + self.state * self.n_actions + action
        e = draw_outcome(self.arrays.table, row, self.word())
        self.h, self.state = self.h + 1, int(outcomes.next_state[e])
        return Observation(self.state, float(outcomes.reward[e]), self.h == self.horizon)


def outcomes_of(counts: Counts) -> dict[tuple[int, ...], list[tuple[int, float, int]]]:
    listing = {}
    for cell in np.ndindex(*counts.outcomes.shape):
        table, slots = counts.outcomes.slots(*cell)
        columns = (counts.outcomes.next_state[table], counts.outcomes.reward[table], counts.hits[slots])
        listing[cell] = sorted((int(t), float(r), int(n)) for t, r, n in zip(*columns, strict=True) if n)
    return listing


@pytest.mark.parametrize("random_start", [False, True])
def test_given_the_same_outcomes_the_agent_does_what_it_does_with_tables(random_start: bool) -> None:
    mdp = reprl.make("random-mdp-v0", horizon=3, n_states=4, n_actions=2, support=2)
    if random_start:
        mdp = TabularMDP(mdp.transition, mdp.reward, np.array([0.5, 0.0, 0.25, 0.25]))
    fast = batch(EpisodicModel(mdp, 5), 2)
    slow = batch(Replay(mdp, 5, SETTINGS.episodes), 2)
    assert outcomes_of(fast.counts) == outcomes_of(slow.counts)
    assert fast.short.tolist() == slow.short.tolist()
    if random_start:  # a black box does not know how it starts: the mean over what was seen
        assert np.abs(fast.first_value - slow.first_value).max() < 0.2
    else:
        assert fast.first_value.tolist() == slow.first_value.tolist()


# Bytes and ledger.


def test_bytes_do_not_depend_on_workers_or_on_what_the_model_did_before() -> None:
    models = [stairs(seed=7, fall=0.3) for _ in range(4)]
    models[1].reset()
    models[1].step(1)
    before = models[1].ledger.samples
    first, used = batch(models[0], 5), batch(models[1], 5)
    assert encode(first) == encode(used)
    assert models[1].ledger.samples - before == models[0].ledger.samples
    for model, workers in zip(models[2:], (2, 3), strict=True):
        told: list[tuple[int, int]] = []
        found = batch(model, 5, workers=workers, progress=lambda *news, told=told: told.append(news))
        assert encode(found) == encode(first)
        assert model.ledger == models[0].ledger
        assert told[-1] == (750, 750)
    assert encode(batch(models[0], 5)) != encode(first), "the next batch is fresh"
    assert encode(batch(stairs(seed=8, fall=0.3), 5)) != encode(first)


def test_runs_are_addressed_one_by_one() -> None:
    """Run 2 alone, on an environment that has played no other, is what it is in a batch."""
    key = DataStream(7, "explore/test/1").key
    orders = Orders(SETTINGS, 4, key)
    alone = [explore_runs(stairs(seed=0), orders, [run], None) for run in (2, 0, 1)]
    whole = batch(stairs(seed=7), 3)
    total: Counter[tuple[int, int, float]] = Counter()
    for part in alone:
        total.update(part.records)
    free = 3 * 3 * 2 * SETTINGS.episodes
    assert sum(total.values()) == whole.counts.hits.sum() - free
    for (cell, following, reward), n in total.items():
        assert (following, reward, n) in outcomes_of(whole.counts)[cell // 8, cell % 8 // 2, cell % 2]
    values = {run: value for part in alone for run, value in part.first_value.items()}
    assert [values[run] for run in range(3)] == whole.first_value.tolist()


def test_the_ledger_counts_starts_and_steps_and_progress_ends_at_the_total() -> None:
    env = Stairs()
    model = GymnasiumModel(env, 3, reward_range=(0, 1), data_seed=2)
    told: list[tuple[int, int]] = []
    batch(model, 4, progress=lambda *news: told.append(news))
    assert model.ledger == Ledger(samples=600 + env.steps, episodes=600)
    assert told == sorted(told)
    assert told[-1] == (600, 600)


# Ended episodes.


def test_the_ended_state_is_known_free_and_never_under_explored() -> None:
    env = Stairs(fall=1.0)
    model = GymnasiumModel(env, 6, reward_range=(-1, 1), data_seed=2)
    assert model.known == {3: 0.5}
    found = batch(model, 4)
    assert not found.short[:, 3].any()
    assert found.short[:, :2].any()
    assert (found.counts.visits[:, 3] == 600).all()
    assert found.counts.mean_return(2, np.array([0.0, 0.0, 0.0, 2.0]))[3].tolist() == [2.5, 2.5]
    assert model.ledger.samples == 600 + env.steps  # Stairs itself refuses a step after the end
    records = found.counts.hits.sum() - 6 * 2 * 600
    assert 0 < records < 600, "an episode that ends under a real action records nothing"
    top = found.counts.successors(2, 1, 1)
    assert top[2] == 0
    assert top[3] > 0


# What is recorded.


@pytest.mark.statistical
def test_records_are_independent_draws_of_the_law_of_their_cell() -> None:
    """False alarm 1e-6 each. Controls: a law shifted by a tenth; the outcomes of real actions among the records."""
    mdp, runs = fork(), 400
    model = GymnasiumModel(lambda: to_gymnasium(mdp), 2, reward_range=(0, 1), data_seed=3)
    orders = Orders(RunSettings(episodes=40, bonus=0.1, guide=0.01), 1, model.fresh_stream("law").key)
    hits = np.zeros((runs, mdp.outcomes.n_slots), dtype=np.int64)
    for run in range(runs):
        for (cell, following, reward), n in explore_runs(model, orders, [run], None).records.items():
            table, slots = mdp.outcomes.slots(cell // 4, cell % 4, 0)
            where = (mdp.outcomes.next_state[table] == following) & (mdp.outcomes.reward[table] == reward)
            hits[run, slots] += where * n
    assert hits.sum() == model.ledger.episodes == 40 * runs
    assert dependence(mdp, hits) > FALSE_ALARM
    pairs = [mdp.outcomes.slots(*cell) for cell in np.ndindex(*mdp.outcomes.shape)]
    seen = [(hits[:, slots].sum(axis=0), mdp.probability[table]) for table, slots in pairs]
    seen = [(tallies, law) for tallies, law in seen if tallies.sum()]
    assert chi_square(seen) > FALSE_ALARM
    assert chi_square([(tallies, 0.9 * law + 0.1 * np.eye(law.size)[0]) for tallies, law in seen]) < FALSE_ALARM


# Learning.


SCALED: dict[str, Any] = {"access": "episodic", "rule": "paper", "constants": "scaled", "scale": 0.01, "epsilon": 1.5}


def learn(env: Any, **options: Any) -> reprl.LearnResult:
    return reprl.learn(env, **{**SCALED, "shared_seed": 3, **options})


def test_two_runs_of_learn_agree_and_are_near_optimal() -> None:
    exact = exact_stairs(2)
    first, second = (learn(Stairs, horizon=2, reward_range=(0, 1), data_seed=seed) for seed in (1, 2))
    assert first.policy == second.policy
    assert first.counts != second.counts
    assert exact.evaluate(exact.solve().policy) - exact.evaluate(first.policy.actions[:, :3]) <= 0.3
    assert first.guarantee.status == "none"
    assert (first.environment.id, first.environment.n_states, first.environment.horizon) == (None, 4, 2)
    assert first.environment.digest == second.environment.digest == stairs(2).digest != stairs(3).digest


def test_every_way_to_name_an_environment_gives_the_same_run() -> None:
    id = "reprl-tests/Stairs-v0"
    gymnasium.register(id, lambda **options: Stairs(**options), disable_env_checker=True)
    try:
        ways: list[tuple[Any, dict[str, Any]]] = [
            (Stairs, {"horizon": 2, "reward_range": (0, 1)}),
            (Stairs(), {"horizon": 2, "reward_range": (0, 1)}),
            (stairs(2, seed=99), {"max_samples": 10**6}),
            (f"gym:{id}", {"horizon": 2, "reward_range": (0, 1), "workers": 2}),  # registered in this process alone
        ]
        results = [learn(env, data_seed=1, **options) for env, options in ways]
    finally:
        del gymnasium.registry[id]
    for other in results:
        assert other.policy == results[0].policy
        assert other.counts == results[0].counts
        assert (other.samples, other.episodes, other.data_seed) == (results[0].samples, results[0].episodes, 1)
    assert [result.environment.id for result in results] == [None, None, None, f"gym:{id}"]
    assert dict(results[3].environment.options) == {"reward_range": (0, 1)}


def test_a_published_environment_may_be_learned_as_a_black_box() -> None:
    model = GymnasiumModel("FrozenLake-v1", 2, data_seed=5)
    result = learn(model, data_seed=5)
    assert result.policy.actions.shape == (2, 17)
    assert model.ledger.samples == 0, "the model that was passed in is not charged"
    assert result.tiers.ignorable[0].tolist() == [False] + 15 * [True] + [False]


def test_an_environment_that_publishes_its_dynamics_is_read() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False, map_name="4x4")
    assert reprl.learn(env, horizon=4, rule="paper").environment.n_states == 16


def test_boosting_measures_policies_by_playing_them() -> None:
    model = stairs(2, fall=1.0)
    policy = [[1, 1, 1, 0], [1, 1, 1, 0]]
    assert abs(model.mean_return(reprl.Policy(policy), 4000) - 0.64) < 0.04
    assert model.ledger.episodes == 4000
    with pytest.raises(ReprlError, match=r"^policy must have shape \(H, S\) = \(2, 4\), got \(1, 4\)$"):
        model.mean_return(reprl.Policy([[0] * 4]), 1)


# Progress.


def test_the_bar_shows_phase_episodes_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar(False, "episodes") as silent:
        assert silent is None
    with progress_bar(True, "episodes") as tell:
        assert tell is not None
        tell("stage 1 of 1: partition", 1, 2)
    assert capsys.readouterr().err.strip() == "", "nothing when piped"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar(True, "episodes") as tell:
        assert tell is not None
        for done in (0, 500, 1500):
            tell("stage 1 of 1: partition", done, 2000)
            time.sleep(0.15)
    shown = capsys.readouterr().err
    assert "stage 1 of 1: partition" in shown
    assert "1,500 of 2,000 episodes" in shown
    assert "0:00:0" in shown


# Bad environments and bad requests.


class Faulty(Stairs):
    """Does one thing wrong in its hundredth step."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def reset(self, **options: Any) -> tuple[int, dict[str, Any]]:
        if self.steps >= 100 and self.fault == "reset":
            raise OSError("the simulator is gone")
        return super().reset(**options)

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        seen, paid, ended, _, info = super().step(action)
        if self.steps < 100:
            return seen, paid, ended, False, info
        if self.fault == "step":
            raise ZeroDivisionError("a bug")
        if self.fault in ("reward", "text"):
            paid = 1.5 if self.fault == "reward" else "much"
        return 3 if self.fault == "state" else seen, paid, ended, self.fault == "limit", info


@pytest.mark.parametrize(
    ("fault", "message", "workers"),
    [
        ("reward", r"reward at step [123] must lie in reward_range \[0, 1\], got 1\.5", 1),
        ("reward", r"reward at step [123] must lie in reward_range \[0, 1\], got 1\.5", 2),
        ("text", r"reward at step [123] must lie in reward_range \[0, 1\], got 'much'", 1),
        ("state", r"observation must be a member of Discrete\(3\), got 3 at step [123]", 1),
        ("limit", r".* truncated an episode at step [12]: lift its time limit or .*", 1),
    ],
)
def test_a_wrong_environment_is_named_with_run_episode_and_step(fault: str, message: str, workers: int) -> None:
    model = GymnasiumModel(lambda: Faulty(fault), 3, reward_range=(0, 1), data_seed=1)
    with pytest.raises(ReprlError, match=rf"^{message} \(run \d, episode \d+\)$"):
        batch(model, 2, workers=workers)
    assert model.ledger.samples > 100, "what was drawn before is charged"


@pytest.mark.parametrize(
    ("fault", "kind", "workers"),
    [("reset", OSError, 1), ("step", ZeroDivisionError, 1), ("step", ZeroDivisionError, 2)],
)
def test_errors_of_the_environment_come_through_with_their_place(
    fault: str, kind: type[Exception], workers: int
) -> None:
    model = GymnasiumModel(lambda: Faulty(fault), 3, reward_range=(0, 1), data_seed=1)
    with pytest.raises(kind) as caught:
        batch(model, 2, workers=workers)
    assert any("run" in note and "episode" in note for note in caught.value.__notes__)


def test_the_horizon_cuts_an_environment_that_never_ends() -> None:
    env = Stairs()
    batch(GymnasiumModel(env, 2, reward_range=(0, 1), data_seed=1), 2)
    assert 300 <= env.steps <= 600


def test_exploration_that_sees_nothing_is_an_error() -> None:
    few = RunSettings(episodes=1)
    stage = Stage(run=few, partition_runs=3, data_runs=3, quota=5)
    text = (
        r"^exploration must settle some state of step 0, got none after 3 runs of 1 episodes: 5 records of every "
        r"action in a run are too many for the 1 state that episodes began in, at horizon 3; rule='soft' needs "
    )
    for model in (stairs(), EpisodicModel(exact_stairs(3), 1)):
        with pytest.raises(ReprlError, match=text):
            find_partition(reprl.SharedKey(1), model, (stage,), coupling="joint")
        assert model.ledger.episodes == 3


CASES: list[tuple[Callable[[], Any], dict[str, Any], str]] = [
    (
        stairs,
        {"access": "generative"},
        r"access must be 'episodic' for a black box, got 'generative' for Gymnasium",
    ),
    (stairs, {"horizon": 3}, r"horizon must be left out for an environment that has one, got 3"),
    (stairs, {"reward_range": (0, 1)}, r"reward_range must be left out for an environment that has one, got \(0, 1\)"),
    (stairs, {"max_samples": 100}, r"max_samples must be at least \d+ for these settings, got 100"),
    (stairs, {"epsilon": 4}, r"epsilon must lie in \(0, 3\]"),
    (Stairs, {"reward_range": (0, 1)}, r"horizon must be given for a Gymnasium environment, got None"),
    (Stairs, {"horizon": 3}, r"reward_range must be given as \(low, high\)"),
    (Stairs, {"horizon": 3, "reward_range": (0, 1), "workers": 2}, r"workers must be 1 for an environment .* got 2"),
    (lambda: "gym:Blackjack-v1", {"reward_range": (0, 1)}, r"horizon must be given for a Gymnasium environment"),
    (lambda: "gridworld-v0", {"reward_range": (0, 1)}, r"option of gridworld-v0 must be one of .*'reward_range'"),
    (lambda: 7, {"horizon": 3}, r"env must be a TabularMDP, a GymnasiumModel, an id, or a gymnasium\.Env or a factory"),
    (lambda: lambda: 7, {"horizon": 3}, r"the factory .* must return a gymnasium\.Env, got 7"),
]


@pytest.mark.parametrize(("env", "options", "message"), CASES)
def test_bad_requests_are_one_line_and_draw_nothing(
    env: Callable[[], Any], options: dict[str, Any], message: str
) -> None:
    given = env()
    with pytest.raises(ReprlError, match=f"^{message}") as caught:
        learn(given, **options)
    assert "\n" not in str(caught.value)
    assert getattr(given, "steps", 0) == 0


def test_a_factory_that_cannot_travel_needs_one_worker() -> None:
    env = Stairs()
    env.socket = (i for i in range(3))  # type: ignore[attr-defined]  # a generator cannot be pickled
    model = GymnasiumModel(lambda: env if env.fall == 0 else Stairs(), 3, reward_range=(0, 1), data_seed=1)
    with pytest.raises(ReprlError, match=r"^workers must be 1 for a factory that cannot be sent to a process"):
        batch(model, 2, workers=2)
    batch(model, 2)


# Ctrl-C.

_LONG_RUN = """
import gymnasium
from reprl.paper.q_explore import explore
from reprl.paper.runs import RunSettings
from reprl.sources.gymnasium.model import GymnasiumModel

model = GymnasiumModel("FrozenLake-v1", 4, data_seed=1)
told = []
def progress(done, total):
    if done and not told:
        told.append(done)
        print("working", flush=True)
try:
    explore(model, RunSettings(episodes=2**40), 9, quota=4, purpose="long", workers={workers}, progress=progress)
except KeyboardInterrupt:
    print("stopped", model.ledger.samples >= model.ledger.episodes > 0, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT")
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_a_long_run(workers: int) -> None:
    """The run would take years; a minute is allowed, so that a busy machine passes too."""
    program = _LONG_RUN.replace("{workers}", str(workers))
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "working\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out, err) == (0, "stopped True\n", "")
    finally:
        child.kill()
        child.wait()

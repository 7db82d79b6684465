"""Logs with a discount: what is counted and redrawn, values against other solvers, and two teams with two logs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

import reprl
from reprl.artifacts.recipe import Recipe
from reprl.cli.app import main
from reprl.mdp.dynamics import empirical_dynamics
from reprl.randomness import DataStream
from reprl.sources.logs import tables
from reprl.sources.logs.coverage import find_coverage, value_of_practice
from reprl.sources.logs.read import Log, read_log
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from tests import naive_logs
from tests.statistics import keeps
from tests.test_logs import EPISODES, outcomes_of

GAMMA = 0.9
RIVER: dict[str, Any] = {"discount": GAMMA, "states": range(6), "actions": range(2), "epsilon": 0.5}


def make_log(world: reprl.TabularMDP, episodes: int, length: int, seed: int) -> dict[str, NDArray[Any]]:
    """What people who take every action as often as the others record; nobody comes to an end."""
    uniforms = DataStream(seed, "discounted log").uniforms(episodes * (3 * length + 1)).reshape(episodes, -1)
    law = np.cumsum(world.transition[0], axis=2)
    state = np.searchsorted(np.cumsum(world.initial)[:-1], uniforms[:, 0], side="right")
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in ("state", "action", "reward", "next_state")}
    for t in range(length):
        action = (uniforms[:, 3 * t + 1] * world.n_actions).astype(np.int64)
        following = (uniforms[:, 3 * t + 2, None] >= law[state, action, :-1]).sum(axis=1)
        paid = (uniforms[:, 3 * t + 3] < world.reward[0][state, action]).astype(float)
        for name, column in zip(columns, (state, action, paid, following), strict=True):
            columns[name].append(column)
        state = following
    flat = {name: np.stack(column, axis=1).ravel() for name, column in columns.items()}
    return {"episode": np.repeat(np.arange(episodes), length), **flat}


def river() -> reprl.TabularMDP:
    world = reprl.make("river-swim-v0", discount=GAMMA)
    assert isinstance(world, reprl.TabularMDP)
    return world


def read(log: Any, **spec: Any) -> Log:
    given: dict[str, Any] = {"horizon": 1, "discount": GAMMA, "states": range(6), "actions": range(2)} | spec
    return read_log(open_table(log), LogSpec(**given), pooled=True)


def arrays(found: Log) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Visits, mean rewards and laws as tables, (S, A) and (S, A, S)."""
    plain = empirical_dynamics(found.data)
    _, n_states, n_actions = plain.outcomes.shape
    mean, law = np.zeros((n_states, n_actions)), np.zeros((n_states, n_actions, n_states))
    for s, a in np.ndindex(n_states, n_actions):
        cell, slots = plain.outcomes.slots(0, s, a)
        np.add.at(law[s, a], plain.outcomes.next_state[cell], plain.probability[slots])
        mean[s, a] = plain.probability[slots] @ plain.outcomes.reward[cell]
    return found.data.counts.visits[0], mean, law


# What is read


@settings(max_examples=60, deadline=None, derandomize=True)
@given(EPISODES, st.integers(1, 5), st.one_of(st.none(), st.integers(1, 6)), st.integers(1, 3))
def test_counting_by_pieces_is_the_plain_loop(episodes: Any, piece: int, length: int | None, few: int) -> None:
    rows = [
        {"episode": number, "state": s, "action": a, "reward": r, "done": i + 1 == len(steps)}
        for number, steps in enumerate(episodes)
        for i, (s, a, r) in enumerate(steps)
    ]
    log = {name: [row[name] for row in rows] for name in rows[0]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "CHUNK", few)
        patch.setattr("reprl.sources.logs.read.BLOCKS", 2)
        patch.setattr(naive_logs, "BLOCKS", 2)
        patch.setattr(LogSpec, "piece", piece)
        told: dict[str, Any] = {"length": length, "done_at_limit": "terminated"}
        spec = LogSpec(horizon=1, discount=GAMMA, states=tuple("xyz"), actions=tuple("ab"), **told)
        found = read_log(open_table(log), spec, pooled=True)
        expected = naive_logs.count_rows(rows, length or 10**9, piece)
    assert outcomes_of(found, spec) == dict(sum((block[0] for block in expected), start=Counter()))
    assert found.blocks.number == len(expected)
    for number, (seen, starts) in enumerate(expected):
        for kept, wanted in ((found.blocks.slots, seen), (found.blocks.starts, starts)):
            assert int(kept.hits[kept.block == number].sum()) == sum(wanted.values())
    left_out = sum(max(0, len(steps) - (length or 10**9)) for steps in episodes)
    assert (found.beyond, found.episodes) == (left_out, len(episodes))


def test_one_long_episode_is_redrawn_by_pieces_whether_its_beginning_is_among_them() -> None:
    found = read(make_log(river(), 1, 9000, 1))
    piece = LogSpec(horizon=1, discount=GAMMA, states=("x",), actions=("a",)).piece
    assert (found.episodes, found.blocks.number) == (1, -(-9000 // piece))
    assert (found.cut, found.data.criterion.discount) == (1, GAMMA)
    sizes = set()
    for key in range(20):
        data = found.blocks.redraw(4, key)
        assert data.starts.sum() >= 1
        sizes.add(int(data.counts.visits[0, :6].sum()))
    assert len(sizes) <= 20
    assert all(abs(size - 9000 / 4) < 2 * piece for size in sizes)


def test_where_a_row_leads_must_be_known_where_there_is_no_last_step() -> None:
    log = {
        "episode": [1, 1],
        "state": ["x", "y"],
        "action": ["a", "a"],
        "reward": [0.0, 1.0],
        "next_state": ["y", None],
    }
    told: dict[str, Any] = {"states": ("x", "y"), "actions": ("a",)}
    with pytest.raises(reprl.ReprlError, match="row 2, column 'next_state' must say where the last row of an episode"):
        read(log, **told)
    assert read(log, length=1, **told).rows == 1
    with pytest.raises(reprl.ReprlError, match="length must come with a discount, got 3"):
        LogSpec(horizon=2, length=3, **told)


# What the rule makes of it


def test_practice_is_worth_what_a_linear_system_says() -> None:
    found = read(make_log(river(), 40, 60, 3))
    visits, mean, law = arrays(found)
    play = visits / np.maximum(visits.sum(axis=1, keepdims=True), 1)
    move, paid = np.einsum("sa,say->sy", play, law), (play * mean).sum(axis=1)
    value = np.linalg.solve(np.eye(7) - GAMMA * move, paid)
    start = found.data.starts / found.data.starts.sum()
    assert value_of_practice(found.data) == pytest.approx(float(start @ value), rel=1e-12)


# Learning


@pytest.fixture(scope="module")
def result() -> reprl.LearnResult:
    return reprl.learn_log(make_log(river(), 4000, 50, 1), shared_seed=3, **RIVER)


def test_a_long_log_teaches_what_a_linear_program_finds(result: reprl.LearnResult) -> None:
    """V* of the log's own frequencies as the least V with V ≥ r + γPV; its policy is the true world's."""
    found = read(make_log(river(), 4000, 50, 1))
    _, mean, law = arrays(found)
    rows = GAMMA * law - np.eye(7)[:, None, :]
    least = linprog(np.ones(7), A_ub=rows.reshape(-1, 7), b_ub=-mean.ravel(), bounds=(None, None))
    assert least.x is not None
    assert result.values is not None
    assert result.values[0] == pytest.approx(least.x, abs=1e-6)
    best = river().solve().policy.actions
    assert np.array_equal((mean + GAMMA * law @ least.x).argmax(axis=1)[:6], best)
    assert result.guarantee.status == "rehearsed"
    assert result.policy.stationary
    assert river().evaluate(best) - river().evaluate(result.policy.actions[:6]) < 0.5
    coverage = result.coverage
    assert coverage is not None
    off = abs(river().evaluate(result.policy.actions[:6]) - coverage.value)
    assert off < coverage.value_high - coverage.value_low  # two half-widths: four standard deviations
    assert coverage.gain_low > 0.0
    assert (coverage.rows, coverage.beyond, coverage.cut) == (200_000, 0, 4000)


def test_the_second_team_has_the_recipe_and_a_log_of_its_own(result: reprl.LearnResult, tmp_path: Path) -> None:
    run = reprl.load_run(result.save(tmp_path / "first"))
    assert (run.recipe.environment.discount, run.recipe.environment.horizon) == (GAMMA, 1)
    assert run.recipe.environment.options["discount"] == GAMMA
    assert run.recipe.settings.stationary
    second = run.recipe.learn_log(make_log(river(), 20, 9000, 2))  # fewer, longer episodes
    assert second.policy == result.policy
    assert second.recipe.digest == run.recipe.digest
    text = run.recipe.to_json()
    for old, new in (('"discount": 0.9', '"discount": 0.8'), ('"horizon": 1,', '"horizon": 2,')):
        with pytest.raises(reprl.ReprlError, match=r"discount|horizon"):
            Recipe.from_json(text.replace(old, new, 1)).learn_log(make_log(river(), 3, 10, 1))


def test_an_end_that_pays_nothing_more_and_rewards_of_other_units() -> None:
    """Stop at once for 1, or go on for 0.4 a step: with γ = 0.9 going on is worth 4, with γ = 0.5 less than 1."""
    rng = np.random.default_rng(1)
    rows: dict[str, list[Any]] = {name: [] for name in ("episode", "state", "action", "reward", "next_state", "done")}
    for episode in range(3000):
        for _ in range(30):
            stop = bool(rng.random() < 0.2)
            values = (episode, "on", "stop" if stop else "go", 10.0 if stop else 4.0, "on", stop)
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
            if stop:
                break
    for discount, best, worth in ((0.9, "go", 40.0), (0.5, "stop", 10.0)):
        told: dict[str, Any] = {"reward_range": (-10, 10), "epsilon": 0.1, "shared_seed": 2}
        found = reprl.learn_log(rows, discount=discount, **told)
        assert found.guarantee.status == "rehearsed"
        assert found.environment.labels.actions[found.policy.actions[0]] == best
        assert found.coverage is not None
        floor = -10.0 / (1.0 - discount)
        assert 20.0 * found.coverage.value + floor == pytest.approx(worth, abs=0.01)


@pytest.mark.long
@pytest.mark.statistical
def test_two_logs_agree_as_promised() -> None:
    """20 pairs under fresh shared seeds; false alarm 1e-6 at ρ = 0.1."""
    apart = sure = 0
    for number in range(20):
        logs = (make_log(river(), 2400, 60, 2 * number + half) for half in (0, 1))
        runs = [reprl.learn_log(log, shared_seed=number, **RIVER) for log in logs]
        if all(run.guarantee.status == "rehearsed" for run in runs):
            sure += 1
            apart += runs[0].policy != runs[1].policy
    assert sure >= 16
    assert keeps(apart, sure, 0.1, power=0.0005, finds=0.75)


@pytest.mark.statistical
def test_the_interval_covers_the_value() -> None:
    """120 logs of 25 episodes of 300 rows, redrawn by pieces; false alarm 1e-6 at 10 % outside."""
    policy = reprl.Policy(np.array([1, 1, 1, 1, 1, 1, 0]))
    truth, decided = river().evaluate(policy.actions[:6]), np.ones((1, 7), dtype=np.bool_)
    outside = narrow = 0
    for number in range(120):
        found = read(make_log(river(), 25, 300, 5000 + number))
        stream = DataStream(number, "test")
        got = find_coverage(found, policy, decided, lambda _: policy, unknown=0.0, stream=stream)
        outside += not got.value_low <= truth <= got.value_high
        middle, half = (got.value_low + got.value_high) / 2, (got.value_high - got.value_low) / 6
        narrow += abs(truth - middle) > half
    assert keeps(outside, 120, 0.1, power=0.05, finds=0.35)
    assert not keeps(narrow, 120, 0.1, power=0.05, finds=0.35)  # the control: a third of the width


def test_the_command_line_learns_replicates_and_masks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for team in (1, 2):
        frame = pandas.DataFrame(make_log(river(), 4000, 50, team)).rename(columns={"state": "place"})
        frame.to_csv(tmp_path / f"{team}.csv", index=False)
    pairs = [(s, a) for s in range(6) for a in range(2)]
    pandas.DataFrame(pairs, columns=["place", "action"]).to_csv(tmp_path / "mask.csv", index=False)
    pandas.DataFrame(pairs[:-1], columns=["place", "action"]).to_csv(tmp_path / "less.csv", index=False)
    pandas.DataFrame(pairs[:-2], columns=["place", "action"]).to_csv(tmp_path / "few.csv", index=False)
    (tmp_path / "hole.csv").write_text("place,action\n0,1\n1,\n", encoding="utf-8")
    base = ["learn", "--log", str(tmp_path / "1.csv"), "--column", "state=place", "--epsilon", "0.5", "--json"]
    base += ["--discount", "0.9", "--shared-seed", "3"]
    assert main([*base, "--allowed", str(tmp_path / "mask.csv"), "--out", str(tmp_path / "a")]) == 0
    first = json.loads(capsys.readouterr().out)
    assert np.shape(first["actions"]) == (7,)
    assert first["recipe"]["environment"]["options"]["allowed"] == [[0, 1]] * 6
    again = ["replicate", str(tmp_path / "a"), "--log", str(tmp_path / "2.csv"), "--json"]
    assert main([*again, "--out", str(tmp_path / "b")]) == 0
    assert json.loads(capsys.readouterr().out)["same"]
    assert main(["verify", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    page = reprl.write_report(tmp_path / "a", tmp_path / "a.html").read_text("utf-8")
    assert "discount 0.9" in page
    capsys.readouterr()
    for name, message in (
        ("less.csv", "column 'action' must be allowed in state '5', got '1'"),
        ("few.csv", "allowed must say what may be done in every state, got nothing for '5'"),
        ("hole.csv", "hole.csv, row 2, column 'action' must not be empty, got nothing"),
        ("1.parquet", "no such file"),
    ):
        assert main([*base, "--allowed", str(tmp_path / name)]) == 2
        assert message in json.loads(capsys.readouterr().out)["error"]
    assert main(["learn", "gridworld-v0", "--allowed", "mask.csv"]) == 2
    assert "--allowed must come with --log" in capsys.readouterr().err

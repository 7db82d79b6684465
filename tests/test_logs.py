"""Logs: what is read, what is refused, what the rule makes of it, and whether two halves agree."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import reprl
from reprl.artifacts.recipe import Recipe
from reprl.assurance.log_teams import LogRule
from reprl.lab.baselines import empirical_values, greedy_policy
from reprl.learning.settings import Settings
from reprl.randomness import DataStream
from reprl.sources.environment import describe
from reprl.sources.logs import block_bootstrap as blocks
from reprl.sources.logs import tables
from reprl.sources.logs.coverage import value_of_practice
from reprl.sources.logs.read import Log, read_log
from reprl.sources.logs.scan import find_labels
from reprl.sources.logs.source import seed_of
from reprl.sources.logs.spec import ENDED, LogSpec
from reprl.sources.logs.tables import open_table
from tests import naive_logs
from tests.clinic_log import ACTIONS, HABIT, HORIZON, STATES, make_log, world

CLINIC: dict[str, Any] = {"horizon": HORIZON, "states": STATES, "actions": ACTIONS}


def small(**changes: Any) -> dict[str, Any]:
    """Two patients: one leaves on day 1, one stays; columns may be changed, or taken out by None."""
    log: dict[str, Any] = {
        "episode": ["p", "p", "q", "q", "q"],
        "step": [0, 1, 0, 1, 2],
        "state": ["ill", "well", "ill", "ill", "well"],
        "action": ["treat", "wait", "wait", "treat", "wait"],
        "reward": [0.0, 1.0, 0.0, 0.5, 1.0],
        "next_state": ["well", None, "ill", "well", "well"],
        "done": [False, True, False, False, False],
    }
    log |= changes
    return {name: column for name, column in log.items() if column is not None}


def read(log: Any, columns: Any = None, **spec: Any) -> Log:
    table = open_table(log, columns)
    given: dict[str, Any] = {"horizon": 3, **find_labels(table)} | spec
    return read_log(table, LogSpec(**given))


def outcomes_of(found: Log, spec: LogSpec) -> dict[tuple[Any, ...], int]:
    """Counts by label, without what is known of "ended"."""
    table, names = found.data.counts.outcomes, (*spec.states, ENDED)
    out = {}
    for h in range(spec.horizon):
        for s in range(spec.ended):
            for a, action in enumerate(spec.actions):
                cell, _ = table.slots(h, s, a)
                for e in range(cell.start, cell.stop):
                    reward = round(float(table.reward[e]), 9)
                    key = (h, names[s], action, names[table.next_state[e]], reward)
                    out[key] = int(found.data.counts.hits[e])
    return {key: hits for key, hits in out.items() if hits}


# What is read


def test_a_small_log_is_counted_by_hand() -> None:
    found = read(small(), horizon=2)
    spec = LogSpec(horizon=2, states=("ill", "well"), actions=("treat", "wait"))
    assert outcomes_of(found, spec) == {
        (0, "ill", "treat", "well", 0.0): 1,
        (1, "well", "wait", ENDED, 1.0): 1,
        (0, "ill", "wait", "ill", 0.0): 1,
        (1, "ill", "treat", "well", 0.5): 1,
    }
    assert (found.rows, found.episodes, found.beyond, found.cut) == (4, 2, 1, 0)
    assert found.data.starts.tolist() == [2, 0, 0]
    # An ended episode stays ended and pays 0, whatever is done: known, not counted as seen.
    assert found.data.counts.visits[:, spec.ended].tolist() == [[2, 2], [2, 2]]
    assert found.data.counts.reward_sum[:, spec.ended].max() == 0.0


def test_an_episode_that_is_cut_off_is_not_made_to_end() -> None:
    found = read(small(done=None, next_state=["well", "ill", "ill", "well", "well"]), horizon=4)
    assert (found.cut, found.rows) == (2, 5)
    spec = LogSpec(horizon=4, states=("ill", "well"), actions=("treat", "wait"))
    assert {key[3] for key in outcomes_of(found, spec)} == {"ill", "well"}


def test_without_next_states_the_next_row_tells() -> None:
    bare = read(small(next_state=None, done=None), early_ends="terminated")
    whole = read(small(next_state=["well", "", "ill", "well", ""], done=[0, 1, 0, 0, 1]))
    assert bare.data.counts == whole.data.counts
    assert bare.cut == 0


def test_every_source_gives_the_same_counts(tmp_path: Path) -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    log = make_log(400, 1)
    frame = pandas.DataFrame(log)
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_csv(tmp_path / "log.csv.gz", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "log.csv").read_bytes())
    lines = (tmp_path / "log.csv").read_text().replace("drug A", '"drug\nA"').splitlines(keepends=True)
    (tmp_path / "quoted.csv").write_text("".join(lines), newline="")
    structured = np.empty(1200, dtype=[(name, column.dtype) for name, column in log.items()])
    for name, column in log.items():
        structured[name] = column
    sources = [frame, frame.astype({"state": "category"}), arrow.Table.from_pandas(frame), structured]
    sources += [str(tmp_path / name) for name in ("log.csv", "log.csv.gz", "log.parquet", "bom.csv")]
    expected = read(log)
    assert all(read(source).data.counts == expected.data.counts for source in sources)
    labels = find_labels(open_table(tmp_path / "quoted.csv"))
    assert labels["actions"] == ("drug\nA", "drug B", "surgery", "wait")
    assert read(str(tmp_path / "quoted.csv")).data.counts == expected.data.counts


def test_labels_of_any_kind_are_known_by_their_texts() -> None:
    texts = read(small(state=["0", "1", "0", "0", "1"], next_state=["1", "", "0", "1", "1"]))
    numbers = read(small(state=[0, 1, 0, 0, 1], next_state=[1.0, float("nan"), 0.0, 1.0, 1.0]))
    assert texts.data.counts == numbers.data.counts
    pairs = [("a", 0), ("a", 1), ("a", 0), ("a", 0), ("a", 1)]
    assert find_labels(open_table(small(state=pairs, next_state=None)))["states"] == ("('a', 0)", "('a', 1)")
    assert find_labels(open_table(small(action=[10, 9, -1, 9, 10])))["actions"] == ("-1", "9", "10")
    assert find_labels(open_table(small(action=["b", "10", "9", "b", "9"])))["actions"] == ("9", "10", "b")


def test_chunks_do_not_change_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(50, 3)
    for changed in (log, {name: column for name, column in log.items() if name != "next_state"}):
        expected = read(changed)
        for size in (1, 2, 7):
            monkeypatch.setattr(tables, "CHUNK", size)
            found = read(changed)
            assert found.data.counts == expected.data.counts
            assert found.blocks.redraw(2, 5).counts == expected.blocks.redraw(2, 5).counts
        monkeypatch.undo()


EPISODES = st.lists(
    st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), st.sampled_from([0.0, 0.25, 1.0])), min_size=1),
    min_size=1,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(EPISODES, st.integers(1, 4), st.booleans(), st.integers(1, 3))
def test_counting_is_the_plain_loop(episodes: Any, horizon: int, ends: bool, few: int) -> None:
    rows = [
        {"episode": number, "state": s, "action": a, "reward": r, "done": ends and i + 1 == len(steps)}
        for number, steps in enumerate(episodes)
        for i, (s, a, r) in enumerate(steps)
    ]
    if not ends:
        for row in rows:
            del row["done"]
    log = {name: [row[name] for row in rows] for name in rows[0]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "CHUNK", few)
        for module in ("block_bootstrap", "read"):
            patch.setattr(f"reprl.sources.logs.{module}.BLOCKS", 2)
        patch.setattr(naive_logs, "BLOCKS", 2)
        spec = LogSpec(horizon=horizon, states=tuple("xyz"), actions=tuple("ab"), early_ends="terminated")
        found = read_log(open_table(log), spec)
        expected = naive_logs.count_rows(rows, horizon)
    assert outcomes_of(found, spec) == dict(sum((block[0] for block in expected), start=Counter()))
    assert found.blocks.number == len(expected)
    for number, (_, starts) in enumerate(expected):
        mine = found.blocks.starts.block == number
        got = {
            spec.states[s]: n
            for s, n in zip(found.blocks.starts.thing[mine], found.blocks.starts.hits[mine], strict=True)
        }
        assert got == dict(starts)


def test_rewards_are_brought_to_the_range_and_the_grid() -> None:
    found = read(small(reward=[-2.0, 3.0, 0.0, 0.5, 3.0]), reward_range=(-2.0, 3.0), reward_step=0.1)
    rewards = np.unique(found.data.counts.outcomes.reward)
    assert rewards == pytest.approx([0.0, 0.4, 0.5, 1.0])
    ended = found.data.counts.reward_sum[:, 2] / found.data.counts.visits[:, 2]
    assert ended == pytest.approx(0.4)  # what 0 is, rescaled


# What is refused

REFUSED = {
    "no such column": (small(action=None), "log must have the column 'action'"),
    "no rows": ({name: [] for name in small()}, "must have at least one row, got none"),
    "lengths": (small(reward=[0.0]), "columns of one length"),
    "gap": (small(step=[0, 2, 0, 1, 2]), "row 2, column 'step' must be 1 after the row before, got 2"),
    "late": (small(step=[0, 1, 1, 2, 3]), "row 3, column 'step' must be 0 at the beginning of an episode, got 1"),
    "first": (small(step=[5, 6, 5, 6, 7]), "row 1, column 'step' must begin with 0 or 1, got 5"),
    "no step": (small(step=[0, 1, 0, None, 2]), "row 4, column 'step' must be 1 after the row before, got nothing"),
    "NaN": (small(reward=[0.0, 1.0, float("nan"), 0.5, 1.0]), "row 3, column 'reward' must be a number in the reward"),
    "range": (
        small(reward=[0.0, 7.0, 0.0, 0.5, 1.0]),
        "row 2, column 'reward' must be a number in the reward range [0",
    ),
    "text": (small(reward=[0.0, 1.0, 0.0, "much", 1.0]), "row 4, column 'reward' must be a number, got 'much'"),
    "again": (small(episode=["p", "q", "p", "p", "p"], step=None), "row 3, column 'episode' must keep the rows of an"),
    "after done": (small(episode=["p"] * 5, step=None), "row 3, column 'episode' must change after a row that is done"),
    "done?": (small(done=[0, 1, 0, "perhaps", 0]), "row 4, column 'done' must be true or false, 1 or 0, got 'perhaps'"),
    "mixed": (
        small(state=["ill", 1, "ill", "ill", "well"]),
        "row 2, column 'state' must be a text, as in the rows bef",
    ),
    "empty": (small(action=["treat", None, "wait", "treat", "wait"]), "row 2, column 'action' must not be empty"),
    "unhashable": (
        small(action=[["t"], "w", "w", "t", "w"]),
        "row 1, column 'action' must be a label that can be hashed",
    ),
    "long": (
        small(state=["x" * 2000, "y", "x", "x", "y"], next_state=None),
        "row 1, column 'state' label must have 1 to",
    ),
    "elsewhere": (
        small(next_state=["ill", None, "ill", "well", "well"]),
        "row 1, column 'next_state' must be the next ro",
    ),
    "nowhere": (
        small(next_state=["well", None, "ill", "well", None]),
        "row 5, column 'next_state' must say where the las",
    ),
    "open end": (
        small(next_state=None, done=[0, 0, 0, 0, 1]),
        "1 of 2 episodes stop before step 4, and their last row is not done",
    ),
    "two axes": (small(reward=np.zeros((5, 2))), "column 'reward' must have one axis"),
    "no log": (7, "log must be a path to CSV or Parquet"),
    "no columns": ({1: [2]}, "log must have the column 'episode'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_logs_are_refused_by_row_and_column(case: str) -> None:
    log, message = REFUSED[case]
    with pytest.raises(reprl.ReprlError) as refused:
        read(log, horizon=4)
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "log.csv cannot be read: 'Empty CSV file'"),
        ("episode,state,action,reward\n", "must have at least one row, got none"),
        ("episode,state,state,reward\n1,2,3,4\n", "must have one column 'state', got 2"),
        ("patient,state,action,reward\n", "must have the column 'episode', the episode; got 'patient, state"),
        ("episode;state;action;reward\n", "must have at least one row, got none"),
        ("episode state action reward\n", "must have the column 'episode'"),
        ("episode;state;action;prize\n", "must have the column 'reward'"),
        ("episode,state,action,reward\n1,x,a,0\n1,x,a\n", "row 2 cannot be read: 'CSV parse error: Expected 4 columns"),
        ("episode,state,action,reward\n1,x,a,0\n1,x,a,0,9\n", "row 2 cannot be read"),
        ('episode,state,action,reward\n1,"x,a,0\n', "row 1 cannot be read"),
        ("episode,state,action,reward\n1,x,a,0\n1,x,,0\n", "row 2, column 'action' must not be empty"),
        ("episode,state,action,reward\n1,x,a,0\n1,x,a,\n", "row 2, column 'reward' must be a number, got ''"),
        ("episode,state,action,reward\n1,x,a,nan\n", "row 1, column 'reward' must be a number in the reward range"),
        ("episode,state,action,reward\n1,x,a,0\n1,\xff,a,0\n", "row 2 cannot be read"),
    ],
)
def test_bad_files_are_refused_by_file_row_and_column(tmp_path: Path, text: str, message: str) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(reprl.ReprlError) as refused:
        read(path)
    assert str(refused.value).startswith(str(path))
    assert message in str(refused.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.parquet").write_bytes(b"PAR1 this is none PAR1")
    (tmp_path / "log.csv.gz").write_bytes(b"no gzip")
    for name, message in (
        ("log.parquet", "cannot be read"),
        ("log.csv.gz", "cannot be read"),
        ("log.xlsx", "log must be a file that ends in .csv, .csv.gz, .parquet"),
        ("none.csv", "no such file"),
    ):
        with pytest.raises(reprl.ReprlError, match=message):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number from 1"),
        ({"reward_range": (1, 2)}, "reward_range must be (low, high) with low ≤ 0 ≤ high"),
        ({"reward_step": 0.3}, "reward_step must be 1 over a whole number"),
        ({"states": "ab"}, "states must be a list of labels"),
        ({"states": ["x", "x"]}, "states must name every label once, got 'x' twice"),
        ({"actions": []}, "actions must be a list of at least one label"),
        ({"actions": ["treat"]}, "row 2, column 'action' must be one of the 1 labels that are known ('treat'"),
        ({"columns": {"colour": "x"}}, "columns must be one of episode"),
        ({"columns": {"state": None}}, "columns['state'] must be the name of a column"),
        ({"rule": "paper"}, "rule must be 'soft' for a log"),
        ({"access": "generative"}, "access must be 'episodic' for a log"),
        ({"horizon": None}, "horizon must be given for a log, or a discount, got neither"),
        ({"discount": 1}, "discount must lie in (0, 0.9999], got 1"),
        ({"discount": "x"}, "discount must be a number in (0, 0.9999], got 'x'"),
        ({"discount": 0.9, "horizon": 0}, "horizon must be a whole number from 1"),
        ({"discount": 0.9, "stationary": False}, "stationary must be True, or left out, for a log with a discount"),
        ({"discount": 0.9, "epsilon": 11}, "epsilon must lie in (0, 10]"),
        ({"allowed": [[0]]}, "states and actions must be given with allowed, whose order is theirs"),
        ({"allowed": {"ill": ["treat", "wait"]}}, "allowed must say what may be done in every state, got nothing for"),
        ({"allowed": {"ill": ["treat"], "well": ["wait"]}}, "must be allowed in state 'ill', got 'wait'"),
        ({"allowed": {"ill": [], "well": ["wait"]}}, "allowed['ill'] must be a list of at least one label"),
        ({"allowed": {1: ["wait"], "1": ["wait"]}}, "allowed must name every state once, got '1' twice"),
        ({"allowed": {"x": ["treat"]}, "states": ["ill", "well"]}, "allowed must name states among 'ill', 'well'; got"),
        ({"allowed": "mask.txt"}, "allowed must be a file that ends in .csv"),
        ({"epsilon": 9}, "epsilon must lie in (0, 3]"),
        ({"flavour": 1}, "option must be one of"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(reprl.ReprlError) as refused:
        reprl.learn_log(small(), **({"horizon": 3} | options))
    assert message in str(refused.value)


def test_too_many_outcomes_are_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_OUTCOMES", 300)
    log = {"episode": np.arange(500), "state": ["x"] * 500, "action": ["a"] * 500, "reward": np.linspace(0, 1, 500)}
    with pytest.raises(reprl.ReprlError, match=r"a larger reward_step, such as 0.01"):
        read(log, horizon=1)
    assert read(log, reward_step=0.01, horizon=1).rows == 500


def test_nothing_but_numpy_is_needed_for_arrays() -> None:
    program = (
        "import sys\nfor name in ('pandas', 'pyarrow', 'minari'): sys.modules[name] = None\n"
        "import reprl\nfrom tests.clinic_log import make_log\n"
        "from reprl.sources.logs import read, scan, spec, tables\n"
        "table = tables.open_table(make_log(50, 1))\n"
        "print(read.read_log(table, spec.LogSpec(horizon=3, **scan.find_labels(table))).episodes)\n"
        "try: reprl.learn_log('README.csv', horizon=3)\nexcept reprl.ReprlError as error: print(error)\n"
        "open(sys.argv[1], 'w').write('x')\n"
        "try: reprl.learn_log(sys.argv[1], horizon=3)\nexcept reprl.ReprlError as error: print(error)\n"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", program, f"{folder}/x.csv"], capture_output=True, text=True, check=True
        )
    first, second, third = done.stdout.splitlines()
    assert first == "50"
    assert "no such file" in second
    assert "pip install '.[logs]'" in third


def test_a_dataset_of_minaris_form_is_read() -> None:
    from gymnasium import spaces

    class Episode:
        def __init__(self, seen: list[int], taken: list[int], paid: list[float], over: bool) -> None:
            self.observations, self.actions, self.rewards = np.array(seen), np.array(taken), np.array(paid)
            self.terminations = np.array([False] * (len(taken) - 1) + [over])

    class Dataset:
        observation_space, action_space = spaces.Discrete(3), spaces.Discrete(2)

        def iterate_episodes(self) -> Any:
            return iter([Episode([0, 1, 2], [1, 0], [0.0, 1.0], True), Episode([0, 0], [0], [0.5], False)])

    found = read(Dataset(), horizon=2)
    spec = LogSpec(horizon=2, states=("0", "1"), actions=("0", "1"))
    assert outcomes_of(found, spec) == {
        (0, "0", "1", "1", 0.0): 1,
        (1, "1", "0", ENDED, 1.0): 1,
        (0, "0", "0", "0", 0.5): 1,
    }
    assert found.cut == 1
    with pytest.raises(reprl.ReprlError, match="columns must be left out for a Minari dataset"):
        open_table(Dataset(), {"state": "x"})


# Redrawing by whole episodes


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 9)), max_size=12), max_size=6),
    st.integers(0, 3),
    st.integers(1, 8),
)
def test_a_tally_is_a_counter_whatever_waits_and_folds(chunks: Any, folds: int, waiting: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_WAITING", waiting)
        tally, expected = blocks.Tally(), Counter[tuple[int, int]]()
        number = 8
        for i, chunk in enumerate(chunks):
            pairs = np.array(chunk, dtype=np.int64).reshape(-1, 2)
            tally.add(pairs[:, 0] % number, pairs[:, 1])
            expected.update((block, thing) for block, thing in chunk)
            if i < folds:
                number //= 2
                tally.fold(number)
        together = Counter[tuple[int, int]]()
        for (block, thing), hits in expected.items():
            together[block % number, thing] += hits
        for most in (0, 3, len(together) - 1, len(together)):
            assert tally.exceeds(most) == (len(together) > most)
        found = tally.sparse(number, np.arange(10)[::-1].copy())
    got = zip(found.block.tolist(), found.thing.tolist(), found.hits.tolist(), strict=True)
    assert {(block, 9 - thing): hits for block, thing, hits in got} == dict(together)


def test_how_far_blocks_are_put_together_does_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(2000, 4)
    monkeypatch.setattr("reprl.sources.logs.read.MOST_PAIRS", 5200)
    numbers = set()
    for size in (17, 500, 10_000):
        monkeypatch.setattr(tables, "CHUNK", size)
        found = read(log, **CLINIC)
        numbers.add((found.blocks.number, found.blocks.redraw(2, 5).digest))
        assert found.blocks.slots.thing.size <= 5200
    assert len(numbers) == 1
    assert 128 < numbers.pop()[0] < 512


def test_episodes_that_are_numbered_are_kept_as_runs_and_noticed_when_they_return() -> None:
    numbers = [3, 4, 5, 9, 6, 7, 8, 1, 2]
    log: dict[str, list[Any]] = {"episode": numbers, "state": ["x"] * 9, "action": ["a"] * 9, "reward": [0.0] * 9}
    with pytest.MonkeyPatch.context() as patch:
        for size in (1, 2, 3, 9):
            patch.setattr(tables, "CHUNK", size)
            assert read(log, horizon=1).episodes == 9
            for back in numbers[:-1]:
                again = {name: [*column, column[-1]] for name, column in log.items()} | {"episode": [*numbers, back]}
                with pytest.raises(reprl.ReprlError, match=f"row 10, column 'episode' .* got '{back}' again"):
                    read(again)


def test_redrawn_logs_are_made_of_whole_episodes() -> None:
    """Every episode has its own reward level at both steps: a redrawn log never mixes them."""
    n = 40
    log = {"episode": np.repeat(np.arange(n), 2), "state": ["s"] * 2 * n, "action": ["a"] * 2 * n}
    log["reward"] = np.repeat(np.arange(n) / n, 2)
    found = read(log, horizon=2)
    for key in range(20):
        hits = found.blocks.redraw(1, key).counts
        first, second = (hits.hits[hits.outcomes.slots(h, 0, 0)[1]] for h in (0, 1))
        assert np.array_equal(first, second)
        assert first.sum() == n
    assert found.blocks.redraw(2, 1).starts.sum() == n // 2
    assert found.blocks.total().counts == found.data.counts
    # The control: cells redrawn on their own do mix them.
    total, rng = found.data.counts, np.random.default_rng(1)
    rows = [total.hits[total.outcomes.slots(h, 0, 0)[1]] for h in (0, 1)]
    first, second = (rng.multinomial(n, row / n) for row in rows)
    assert not np.array_equal(first, second)


def test_blocks_are_put_together_where_memory_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(2000, 4)
    whole = read(log, **CLINIC)
    monkeypatch.setattr(tables, "CHUNK", 500)
    monkeypatch.setattr("reprl.sources.logs.read.MOST_PAIRS", 400)
    found = read(log, **CLINIC)
    assert (whole.blocks.number, found.blocks.number) == (512, 128)
    assert found.data.counts == whole.data.counts
    for number in (0, 127):  # a block holds every 128th episode, whenever it was put together
        rows = {name: column[(log["episode"] % 128) == number] for name, column in log.items()}
        expected = outcomes_of(read(rows, **CLINIC), LogSpec(**CLINIC))
        mine = found.blocks.slots.block == number
        assert int(found.blocks.slots.hits[mine].sum()) == sum(expected.values())
        assert int(mine.sum()) == len(expected)


def test_blocks_have_the_variance_of_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variance of a redrawn sum, by 64 blocks of 32 episodes, against the episodes' own; ±6 standard deviations."""
    monkeypatch.setattr("reprl.sources.logs.read.BLOCKS", 64)
    found = read(make_log(2048, 5), **CLINIC)
    sums = [found.blocks.redraw(1, key).counts.reward_sum[:, :3].sum() for key in range(400)]
    returns = make_log(2048, 5)["reward"].reshape(-1, HORIZON).sum(axis=1)
    ratio = np.var(sums) / (2048 * returns.var())
    assert abs(ratio - 1.0) < 6.0 * np.sqrt(2 / 64 + 2 / 400)


# What the rule makes of it


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 3]), st.booleans())
def test_practice_is_read_as_the_plain_loop_reads_it(seed: int, horizon: int, pooled: bool) -> None:
    rng, ended = np.random.default_rng(seed), 3
    visits = rng.poisson(rng.choice([0.0, 0.5, 20.0, 400.0], (1 if pooled else horizon, 4, 3)))
    mask = rng.random((horizon, 4, 3)) < 0.7
    mask[np.arange(horizon)[:, None], np.arange(4), rng.integers(3, size=4)] = True
    rule = LogRule.bind(reprl.SharedKey(seed), mask, ended, stationary=pooled, quality=0.9, epsilon=None)
    allowed, asked = rule.read(visits)
    may, law, order = naive_logs.read_practice(visits.tolist(), mask.tolist(), rule.least, rule.shift, ended)
    assert allowed.tolist() == may
    assert asked.baseline == pytest.approx(np.array(law), abs=1e-15)
    assert asked.order.tolist() == order


def test_what_practice_must_do_is_shared_and_within_a_factor_of_two() -> None:
    def bind(seed: int) -> LogRule:
        mask = np.ones((1, 2, 2), dtype=np.bool_)
        return LogRule.bind(reprl.SharedKey(seed), mask, 1, stationary=False, quality=0.9, epsilon=None)

    drawn = [bind(seed) for seed in range(50)]
    assert (drawn[7].least, *drawn[7].shift) == (bind(7).least, *bind(7).shift)
    assert all(0.05 <= one.least <= 0.1 for one in drawn)
    assert len({one.least for one in drawn}) == 50


# Learning


@pytest.fixture(scope="module")
def result() -> reprl.LearnResult:
    return reprl.learn_log(make_log(40_000, 1), **CLINIC, epsilon=0.3, shared_seed=2)


def test_a_log_teaches_a_good_policy_without_what_it_does_not_support(result: reprl.LearnResult) -> None:
    assert result.guarantee.status == "rehearsed"
    assert result.samples == 120_000
    assert result.episodes == 40_000
    decided = ~result.tiers.ignorable
    assert ACTIONS.index("surgery") not in result.policy.actions[decided]
    found = result.coverage
    assert found is not None
    truth = world().evaluate(result.policy.actions[:, :3])
    assert found.value_low < truth < found.value_high
    mean = make_log(40_000, 1)["reward"].reshape(-1, HORIZON).sum(axis=1).mean()
    assert found.practice == pytest.approx(mean, abs=1e-9)
    assert found.gain_low > 0.0
    assert 0.0 < found.alike < 1.0
    assert found.covered > 0.95
    same = reprl.learn_log(make_log(40_000, 1), **CLINIC, epsilon=0.3, shared_seed=2)
    assert same.receipt == result.receipt


def test_fingerprints_stay_what_they_are(result: reprl.LearnResult) -> None:
    found = (result.policy.short_fingerprint, f"{seed_of(read(make_log(50, 2), **CLINIC).data):016x}")
    assert found == ("06d755422ffa", "ad325d8b24111e00")


def test_a_short_log_promises_nothing() -> None:
    short = reprl.learn_log(make_log(60, 1), **CLINIC, shared_seed=7)
    assert short.guarantee.status == "none"
    assert "it can be redrawn from 60 episodes, where 100 are the fewest" in short.guarantee.source


def test_a_log_of_few_episodes_promises_nothing_however_alike_they_are() -> None:
    for episodes, status in ((1, "none"), (99, "none"), (100, "rehearsed")):
        log = {"episode": np.repeat(np.arange(episodes), 2), "state": ["x", "y"] * episodes}
        log |= {"action": ["a", "b"] * episodes, "reward": [0.0, 1.0] * episodes}
        found = reprl.learn_log(log, horizon=2, shared_seed=1, epsilon=0.3)
        assert found.guarantee.status == status
        if status == "none":
            assert f"redrawn from {episodes} episodes, where 100 are the fewest" in found.guarantee.source


def test_recipes_and_receipts_of_logs(tmp_path: Path, result: reprl.LearnResult) -> None:
    run = reprl.load_run(result.save(tmp_path / "first"))
    assert run.receipt == result.receipt
    assert run.receipt.coverage == result.coverage
    assert run.recipe.of_log
    assert Recipe.from_json(run.recipe.to_json()).digest == run.recipe.digest
    renamed = {f"my {name}": column for name, column in make_log(40_000, 2).items()}
    columns = {name.removeprefix("my "): name for name in renamed}
    second = run.recipe.learn_log(renamed, columns=columns)
    assert second.recipe.digest == run.recipe.digest
    assert second.policy == result.policy
    assert second.receipt.data_commitment != result.receipt.data_commitment
    with pytest.raises(reprl.ReprlError, match="stands for a log"):
        run.recipe.learn()
    with pytest.raises(reprl.ReprlError, match="must be 'log' to learn from a log"):
        Recipe.plan(describe(reprl.make("river-swim-v0")), Settings(), 1).learn_log({})


def test_an_edited_recipe_of_a_log_is_refused(result: reprl.LearnResult) -> None:
    text = result.recipe.to_json()
    for old, new, message in (
        ('"reward_step": 9.5367431640625e-07', '"reward_step": 0.01', "sizes, discount and digest of a log must be"),
        ('"reward_step": 9.5367431640625e-07', '"reward_step": "much"', "reward_step must lie in"),
        ('"early_ends"', '"late_ends"', "options of a log must be"),
        ('"columns": {', '"columns": 3, "more": {', "options of a log must be"),
    ):
        assert old in text
        with pytest.raises(reprl.ReprlError, match=message):
            Recipe.from_json(text.replace(old, new)).learn_log(make_log(10, 1))


@pytest.mark.long
@pytest.mark.statistical
def test_halves_of_a_log_agree_as_promised_and_greedy_does_not() -> None:
    """40 pairs of logs; false alarm 1e-6 at ρ = 0.1; with 15 sure pairs, 0.7 apart would be seen with power 0.7."""
    pairs = 40
    apart = greedy = sure = 0
    for number in range(pairs):
        logs = (make_log(32_000, 2 * number + half) for half in (0, 1))
        runs = [reprl.learn_log(log, **CLINIC, epsilon=0.3, shared_seed=number) for log in logs]
        if all(run.guarantee.status == "rehearsed" for run in runs):
            sure += 1
            apart += runs[0].policy != runs[1].policy
        plain = [greedy_policy(empirical_values(run.counts)).actions[:, :3] for run in runs]
        greedy += not np.array_equal(plain[0], plain[1])
    assert sure >= 15
    assert binomtest(apart, sure, 0.1, alternative="greater").pvalue > 1e-6
    assert binomtest(greedy, pairs, 0.1, alternative="greater").pvalue < 1e-6  # the control: two equal drugs


@pytest.mark.statistical
def test_the_interval_covers_the_value() -> None:
    """50 logs: an interval that covers with probability 0.9 at least; false alarm 1e-6, power 0.92 at 0.55."""
    truth = world().evaluate(np.tile([0, 1, 1], (HORIZON, 1)))
    policy = reprl.Policy(np.tile([0, 1, 1, 0], (HORIZON, 1)))
    from reprl.sources.logs.coverage import find_coverage

    inside = narrow = 0
    for number in range(50):
        found = read(make_log(500, 1000 + number), **CLINIC)
        decided = np.ones((HORIZON, 4), dtype=np.bool_)
        stream = DataStream(number, "test")
        got = find_coverage(found, policy, decided, lambda _: policy, unknown=0.0, stream=stream)
        inside += got.value_low <= truth <= got.value_high
        middle, half = (got.value_low + got.value_high) / 2, (got.value_high - got.value_low) / 6
        narrow += abs(truth - middle) <= half
    assert binomtest(inside, 50, 0.9, alternative="less").pvalue > 1e-6
    assert binomtest(narrow, 50, 0.9, alternative="less").pvalue < 1e-6  # the control: a third of the width


def test_practice_is_worth_the_mean_return() -> None:
    log = make_log(300, 9)
    data = read(log, **CLINIC).data
    assert value_of_practice(data) == pytest.approx(log["reward"].reshape(-1, HORIZON).sum(axis=1).mean())
    assert HABIT[0] > HABIT[3]


def _walk(episodes: int, seed: int) -> dict[str, Any]:
    """Three states in a ring; "go" moves on with probability 0.8, "stay" never; state 2 pays."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[int]] = {name: [] for name in ("episode", "state", "action", "reward", "next_state")}
    for episode in range(episodes):
        s = int(rng.integers(3))
        for _ in range(4):
            a = int(rng.integers(2))
            following = (s + 1) % 3 if a and rng.random() < 0.8 else s
            for name, value in zip(rows, (episode, s, a, int(s == 2), following), strict=True):
                rows[name].append(value)
            s = following
    return {name: np.array(column) for name, column in rows.items()}


def test_pooled_steps_add_up_what_steps_apart_count() -> None:
    table, spec = open_table(_walk(200, 1)), LogSpec(horizon=4, states=("0", "1", "2"), actions=("0", "1"))
    apart, pooled = read_log(table, spec), read_log(table, spec, pooled=True)
    assert pooled.data.counts.outcomes.pooled
    assert (pooled.rows, pooled.episodes) == (apart.rows, apart.episodes)
    living = slice(0, 3)
    assert np.array_equal(pooled.data.counts.visits[0, living], apart.data.counts.visits[:, living].sum(axis=0))
    by_step = apart.data.counts.pool().visits[0, living]
    assert np.array_equal(pooled.data.counts.visits[2, living], by_step)


def test_a_log_with_steps_alike_is_learned_from_and_repeated_by_its_recipe() -> None:
    told: dict[str, Any] = {"horizon": 4, "states": range(3), "actions": range(2), "shared_seed": 3, "stationary": True}
    first, second = (reprl.learn_log(_walk(4000, seed), **told) for seed in (1, 2))
    assert first.policy == second.policy
    assert first.guarantee.status == "rehearsed"
    assert first.recipe.settings.stationary
    assert first.recipe.learn_log(_walk(4000, 5)).policy == first.policy
    assert first.policy.actions[0, :3].tolist() == [1, 1, 0]


def test_a_mask_of_a_log_is_kept_to_checked_and_published() -> None:
    log = _walk(3000, 1)
    log["action"][log["state"] == 1] = 1
    told: dict[str, Any] = {"horizon": 4, "states": range(3), "actions": range(2), "shared_seed": 3, "stationary": True}
    allowed = np.array([[True, True], [False, True], [True, True]])
    found = reprl.learn_log(log, allowed=allowed, **told)
    assert (found.policy.actions[:, 1] == 1).all()
    assert found.environment.options["allowed"] == [[0, 1], [1], [0, 1]]
    assert found.recipe.learn_log(log).policy == found.policy
    wrong = _walk(50, 2)
    first = wrong["episode"] == 0
    wrong["state"][first], wrong["next_state"][first], wrong["action"][first] = 1, 1, 0
    with pytest.raises(reprl.ReprlError, match=r"row 1\b.*action.*must be allowed in state '1', got '0'"):
        reprl.learn_log(wrong, allowed=allowed, **told)
    by_label = reprl.learn_log(log, allowed={2: [0, 1], 1: [1], 0: [0, 1]}, **told)
    assert by_label.recipe.digest == found.recipe.digest
    for bad in ([[0], [1]], [[0], [], [1]], [[0], [5], [1]], "all"):
        with pytest.raises(reprl.ReprlError, match="allowed"):
            reprl.learn_log(log, allowed=bad, **told)

"""reprl learn --log, reprl replicate --log, reprl verify: two teams, two logs."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reprl.artifacts.folder import load_run
from reprl.cli.app import main
from reprl.report.write import write_report
from tests.clinic_log import ACTIONS, STATES, make_log

Call = Callable[..., tuple[int, str, str]]
COLUMNS = {"episode": "patient", "step": "day", "state": "health", "action": "treatment", "reward": "quality"}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command line; return its exit code, what it printed and what it complained about."""

    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hospitals' logs, disjoint; the second calls its columns by their roles."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("logs")
    for name, seed, names in (("north.csv", 1, COLUMNS), ("south.csv", 2, {})):
        log = make_log(60_000, seed)
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow([names.get(role, role) for role in log])
            rows.writerows(zip(*(column.tolist() for column in log.values()), strict=True))
    return folder


def test_two_teams_with_two_logs(logs: Path, tmp_path: Path, call: Call) -> None:
    north, south = tmp_path / "north", tmp_path / "south"
    options = ["--horizon", 3, "--shared-seed", 3, "--actions", ",".join(ACTIONS), "--states", ",".join(STATES)]
    options += [f"--column={role}={name}" for role, name in COLUMNS.items()]
    options += ["--epsilon", 0.5]  # these logs are too short for more
    code, out, _ = call("learn", "--log", logs / "north.csv", *options, "--out", north)
    assert code == 0
    for line in ("among         policies of actions that practice takes often enough", "gain ", "alike "):
        assert line in out
    assert re.search(r"keep private +the log", out)
    run = load_run(north)
    assert run.recipe.environment.options["columns"] == {**COLUMNS, "next_state": "next_state"}
    code, out, err = call("replicate", north, "--log", logs / "south.csv", "--out", south)
    assert code == 2
    assert "must have the column 'patient'" in err
    names = [f"--column={role}={role}" for role in COLUMNS]
    code, out, _ = call("replicate", north, "--log", logs / "south.csv", *names, "--out", south, "--json")
    document = json.loads(out)
    assert (code, document["same"]) == (0, True)
    assert document["data_seed"] is None  # a hash of the log stays at home
    assert document["coverage"]["rows"] == 180_000
    code, out, _ = call("verify", north, south)
    assert (code, "same policy" in out, "note" in out) == (0, True, False)
    code, out, _ = call("verify", north, north)
    assert "both runs read one log" in out
    page = write_report(run, tmp_path / "north.html").read_text("utf-8")
    assert re.search(r"95 % interval [\d.]+ to [\d.]+; practice", page)
    assert "docs/logs.md" in page


def test_what_does_not_go_with_a_log_is_refused(logs: Path, tmp_path: Path, call: Call) -> None:
    log = ["--log", logs / "south.csv"]
    for words, message in (
        (["learn"], "ENV must be given, or --log FILE"),
        (["learn", "gridworld-v0", *log, "-H", 3], "ENV must be left out with --log, got 'gridworld-v0'"),
        (["learn", *log], "--horizon or --discount must be given with --log"),
        (["learn", *log, "-H", 3, "--data-seed", 3], "--data-seed must be left out with --log, got 3"),
        (["learn", *log, "-H", 3, "--max-samples", 3], "--max-samples must be left out with --log"),
        (["learn", *log, "-H", 3, "--column", "state"], "--column must be ROLE=NAME, every role once, got 'state'"),
        (["learn", *log, "-H", 3, "--column", "mood=x"], "columns must be one of episode"),
        (["learn", *log, "-H", 3, "--states", "a,,b"], "--states must be labels between commas, got 'a,,b'"),
        (["learn", *log, "-H", 3, "--states", "a,b"], "row 1, column 'state' must be one of the 2 labels"),
        (["learn", *log, "-H", 3, "--reward-range", 0, 0.5], "column 'reward' must be a number in the reward range"),
        (["learn", *log, "-H", 3, "--rule", "paper"], "rule must be 'soft' for a log"),
        (["learn", "--log", tmp_path / "none.csv", "-H", 3], "no such file"),
    ):
        code, _, err = call(*words)
        assert code == 2, words
        assert message in err, words
    assert not list(tmp_path.iterdir())


def test_a_short_log_is_undecided(tmp_path: Path, call: Call) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "short.csv"
    path.write_text("episode,state,action,reward\n1,x,a,0\n1,y,b,1\n2,x,b,0\n2,x,a,1\n", encoding="utf-8")
    code, out, _ = call("learn", "--log", path, "-H", 2, "--shared-seed", 1, "--epsilon", 0.3)
    assert code == 1
    assert "undecided: the log ended before this run could promise anything" in out
    assert "nothing is promised: it can be redrawn from 2 episodes, where 100 are the fewest" in out

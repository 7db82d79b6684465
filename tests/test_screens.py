"""What commands print on a screen of 80 columns: one snapshot for each.

To take them again: ``REPRL_SNAPSHOTS=1 pytest tests/test_screens.py``, and read the difference.
"""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest

from reprl.cli.app import main
from tests.clinic_log import make_log

SCREENS = Path(__file__).parent / "data" / "screens"
GRID = ["gridworld-v0", "--horizon", "6", "--shared-seed", "7"]
LOG = ["--horizon", "3", "--shared-seed", "7", "--quality", "0.5", "-o", "stationary=true"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, and the runs that other screens are about."""
    folder = tmp_path_factory.mktemp("screens")
    log = make_log(10_000, 1)
    with open(folder / "clinic.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(log)
        rows.writerows(zip(*(column.tolist() for column in log.values()), strict=True))
    for name, seed, most in (("run", "1", "3000000"), ("short", "4", "100000")):
        how = ["--data-seed", seed, "--max-samples", most]
        assert main(["learn", *GRID, *how, "--out", str(folder / name), "--json"]) == 0
    return folder


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("decided", ["learn", *GRID, "--data-seed", "1", "--out", "new"], 0),
        ("quality", ["learn", *GRID, "--data-seed", "1", "--max-samples", "100000", "--out", "new"], 0),
        ("undecided", ["learn", *GRID, "--data-seed", "1", "--max-samples", "2000", "--min-probability", "0.02"], 1),
        ("log", ["learn", "--log", "clinic.csv", *LOG, "--out", "new"], 0),
        ("twice", ["twice", *GRID, "--data-seed", "1", "--data-seed", "2"], 0),
        ("different", ["twice", *GRID, "--data-seed", "1", "--data-seed", "2", "--max-samples", "2000"], 1),
        ("verify", ["verify", "run", "short"], 0),
        ("confirm-quality", ["confirm", "run", "--quality", "0.9", "--data-seed", "5"], 0),
        ("confirm-target", ["confirm", "run", "--target", "0.4", "--data-seed", "5"], 0),
    ],
)
def test_a_screen_is_as_it_was_last_read(
    name: str,
    words: list[str],
    code: int,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for each in place.iterdir():
        (tmp_path / each.name).symlink_to(each)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    capsys.readouterr()
    assert main(words) == code
    shown = re.sub(r"\d+\.\d s\b", "0.0 s", capsys.readouterr().out)
    assert max(map(len, shown.splitlines())) <= 80
    stored = SCREENS / f"{name}.txt"
    if os.environ.get("REPRL_SNAPSHOTS"):
        stored.write_text(shown, encoding="utf-8")
    assert shown == stored.read_text(encoding="utf-8")

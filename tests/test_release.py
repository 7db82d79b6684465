"""Files of the last release read, verify and make pages; where its rule has no part, the same seeds give the same."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

import reprl
from reprl.cli.app import main
from reprl.errors import ReprlError
from reprl.mdp.policy import Policy
from tests.release import COMMANDS, RELEASE, inside, perform

RUNS = sorted(path.parent.name for path in RELEASE.glob("*/recipe.json"))
EVIDENCE = sorted(path.name for path in RELEASE.glob("*.json") if path.name != "commands.json")
VERSION = "0.1.0"
"""Of the release; every record names it."""


def stored(name: str) -> dict[str, bytes]:
    """What a command of the release wrote, by file."""
    return written(RELEASE, name)


def written(folder: Path, name: str) -> dict[str, bytes]:
    """The files of one command, without their seconds."""
    places = [folder / f"{name}.json", *sorted((folder / name).rglob("*"))]
    files = {str(path.relative_to(folder)): path.read_bytes() for path in places if path.is_file()}
    seconds = re.compile(rb'"seconds": [^,}\s]+')
    return {
        file: seconds.sub(b'"seconds": 0', content) if file.endswith(".json") else content
        for file, content in files.items()
        if not file.endswith((".task", "work.json"))
    }


def others(name: str) -> list[Path]:
    """The stored runs that a command reads."""
    return [RELEASE / word for word in shlex.split(COMMANDS[name]) if word in RUNS and word != name]


RULE_CHANGED = "its rule is another one than this release's; use the release that wrote it, 0.1.0"
REFUSED = ("followed", "afresh", "second-log", "certify")
"""Commands that would apply the rule of this release to a run of that one."""
KEPT = ("sampled-few", "paper", "audit-few", "audit-greedy", "agents", "verify-same", "verify-different", "play")
"""Commands in which neither the canonical rule nor a rehearsal nor boosting has a part: all that they say is the same,
as no address of a draw has changed since."""
VERSIONED = ("stream_version", "digest", "recipe_digest", "data_commitment")
"""What names the version, or is a hash of what does."""
OTHERWISE = ("places", "remarks")
"""What is found or said in another way since: states that agents differ in, which are now those in which a pair was
seen to differ, and the words of remarks."""


def check_kept(found: Any, old: Any, where: str = "") -> None:
    """Fail unless a document says all that an old one said; it may say more."""
    if isinstance(old, dict):
        assert isinstance(found, dict), where
        for name, value in old.items():
            if name not in (*VERSIONED, *OTHERWISE) and not (name == "recipe" and isinstance(value, str)):
                assert name in found, f"{where}.{name}"
                check_kept(found[name], value, f"{where}.{name}")
    elif isinstance(old, list):
        assert isinstance(found, list), where
        assert len(found) == len(old), where
        for i, (one, other) in enumerate(zip(found, old, strict=True)):
            check_kept(one, other, f"{where}[{i}]")
    else:
        assert found == old, where


def redo(name: str, folder: Path, *more: str) -> dict[str, Any]:
    """Run a command of the release in a folder with the stored runs that it reads."""
    with inside(folder):
        for source in others(name):
            shutil.copytree(source, folder / source.name)
        return perform(name, *more)


@pytest.mark.parametrize("name", KEPT)
def test_the_same_seeds_give_the_same_results(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reprl, "__version__", VERSION)
    answer = redo(name, tmp_path)
    check_kept(answer, json.loads((RELEASE / "answers" / f"{name}.json").read_text()))
    found, old = written(tmp_path, name), stored(name)
    assert set(found) == set(old)
    for file, content in old.items():
        if file.endswith(("recipe.json", "receipt.json", "policy.json", f"{name}.json")):
            check_kept(json.loads(found[file]), json.loads(content), file)
        else:
            assert found[file] == content, file


@pytest.mark.parametrize("name", REFUSED)
def test_another_rule_is_not_applied_to_a_run_of_the_release(name: str, tmp_path: Path) -> None:
    answer = redo(name, tmp_path)
    assert answer["code"] == 2
    assert answer["document"]["error"].endswith(RULE_CHANGED)
    assert not (tmp_path / name).exists()


NEW_ROWS = ("reprl canonical, agreement 0.95", "reprl canonical, registered", "reprl sharp")
"""Which the release did not have."""


def test_a_plan_has_the_same_rows_beside_those_of_the_default_learner(tmp_path: Path) -> None:
    old = json.loads((RELEASE / "answers" / "plan.json").read_text())["document"]
    found = redo("plan", tmp_path)["document"]
    rows = [
        [(row["algorithm"].replace("this paper", "Hopkins et al."), row["access"]) for row in plan["rows"][2:]]
        for plan in (found, old)
    ]
    assert [row for row in rows[0] if row[0] not in NEW_ROWS] == rows[1]


def test_another_seed_gives_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the comparison: it notices one seed."""
    monkeypatch.setattr(reprl, "__version__", VERSION)
    redo("paper", tmp_path, "--data-seed", "2")
    found, kept = written(tmp_path, "paper"), stored("paper")
    check_kept(json.loads(found["paper/recipe.json"]), json.loads(kept["paper/recipe.json"]))
    with pytest.raises(AssertionError):
        check_kept(json.loads(found["paper/receipt.json"]), json.loads(kept["paper/receipt.json"]))


@pytest.mark.parametrize("name", RUNS)
def test_a_run_folder_reads_verifies_and_makes_a_page(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RELEASE / name
    run = reprl.load_run(folder)
    assert run.receipt.package_version == VERSION
    assert Policy.load(folder / "policy.json") == run.policy
    receipt = json.loads((folder / "receipt.json").read_text())
    assert (run.receipt.digest, run.policy.fingerprint) == (receipt["digest"], receipt["fingerprint"])
    assert run.recipe.digest == receipt["recipe"]
    assert run.recipe.to_json() == (folder / "recipe.json").read_text()
    assert run.receipt.to_json() == (folder / "receipt.json").read_text()
    again = {name: value for name, value in run.policy.to_dict().items() if name != "names"}  # sealed since
    assert again == json.loads((folder / "policy.json").read_text())
    assert main(["verify", str(folder), str(folder)]) == 0
    assert main(["report", str(folder), "-o", str(tmp_path / "run.html")]) == 0
    assert run.policy.short_fingerprint in (tmp_path / "run.html").read_text()
    assert "same policy" in capsys.readouterr().out


@pytest.mark.parametrize("name", EVIDENCE)
def test_stored_evidence_reads_and_makes_a_page(name: str, tmp_path: Path) -> None:
    kind: Any = {"comparison.json": reprl.Comparison, "agents.json": reprl.AgentReport}.get(name, reprl.AuditReport)
    assert kind.load(RELEASE / name).to_json() == (RELEASE / name).read_text()
    assert main(["report", str(RELEASE / name), "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").stat().st_size > 5_000


def test_finished_pairs_of_the_release_are_not_mixed_with_pairs_of_this_one(tmp_path: Path) -> None:
    shutil.copytree(RELEASE / "audit-folder", tmp_path / "audit-folder")
    tasks = {path: path.stat().st_mtime_ns for path in (tmp_path / "audit-folder").rglob("*.task")}
    assert len(tasks) == 2
    with inside(tmp_path):
        answer = perform("audit-folder")
    assert answer["code"] == 2
    assert "stream_version" in answer["document"]["error"]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "audit-folder").rglob("*.task")} == tasks


def test_a_damaged_run_of_the_release_is_refused(tmp_path: Path) -> None:
    """The control of reading: one digit of a receipt is enough."""
    shutil.copytree(RELEASE / "parallel", tmp_path / "run")
    receipt = tmp_path / "run" / "receipt.json"
    receipt.write_text(receipt.read_text().replace('"samples": 2048', '"samples": 2049'))
    with pytest.raises(ReprlError, match="digest must be"):
        reprl.load_run(tmp_path / "run")

"""Files of the last release read, verify and make pages; the same commands with the same seeds write the same bytes."""

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
from tests.release import COMMANDS, RELEASE, inside, perform, pretty

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


@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_seeds_give_the_same_bytes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reprl, "__version__", VERSION)
    with inside(tmp_path):
        for source in others(name):
            shutil.copytree(source, tmp_path / source.name)
        answer = perform(name)
    kept = json.loads((RELEASE / "answers" / f"{name}.json").read_text())
    found, old = written(tmp_path, name), stored(name)
    if "log" in name:  # its sums go through BLAS, which adds in another order on another processor
        answer, kept = rounded(answer), rounded(kept)
        for file in {file for file in found if file.endswith("receipt.json")}:
            assert rounded(json.loads(found.pop(file))) == rounded(json.loads(old.pop(file)))
    assert pretty(answer) == pretty(kept)
    assert found == old


def rounded(document: Any) -> Any:
    """Return a document with numbers to twelve digits, without the digests of receipts, which cover all of them."""
    if isinstance(document, dict):
        return {name: rounded(value) for name, value in document.items() if name != "digest"}
    if isinstance(document, list):
        return [rounded(value) for value in document]
    return float(f"{document:.12g}") if isinstance(document, float) else document


def test_another_seed_gives_other_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: seconds alone are left out of the comparison."""
    monkeypatch.setattr(reprl, "__version__", VERSION)
    with inside(tmp_path):
        perform("parallel", "--data-seed", "2")
    found, kept = written(tmp_path, "parallel"), stored("parallel")
    assert found["parallel/recipe.json"] == kept["parallel/recipe.json"]
    assert found["parallel/policy.json"] == kept["parallel/policy.json"]  # they replicate
    assert found["parallel/receipt.json"] != kept["parallel/receipt.json"]
    assert found["parallel/counts.bin"] != kept["parallel/counts.bin"]


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
    assert run.policy.to_json() == (folder / "policy.json").read_text()
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


def test_a_certificate_of_the_release_is_computed_again() -> None:
    folder = RELEASE / "certified"
    assert main(["certify", "--check", str(folder / "receipt.json"), "--counts", str(folder / "counts.bin")]) == 0


def test_finished_pairs_of_the_release_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RELEASE / "audit-folder", tmp_path / "audit-folder")
    tasks = {path: path.stat().st_mtime_ns for path in (tmp_path / "audit-folder").rglob("*.task")}
    assert len(tasks) == 2
    monkeypatch.setattr(reprl, "__version__", VERSION)
    with inside(tmp_path):
        answer = perform("audit-folder")
    assert pretty(answer) == (RELEASE / "answers" / "audit-folder.json").read_text()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "audit-folder").rglob("*.task")} == tasks


def test_a_damaged_run_of_the_release_is_refused(tmp_path: Path) -> None:
    """The control of reading: one digit of a receipt is enough."""
    shutil.copytree(RELEASE / "parallel", tmp_path / "run")
    receipt = tmp_path / "run" / "receipt.json"
    receipt.write_text(receipt.read_text().replace('"samples": 2048', '"samples": 2049'))
    with pytest.raises(ReprlError, match="digest must be"):
        reprl.load_run(tmp_path / "run")

"""Documents: what earlier releases wrote stays readable byte for byte; what has no JSON form is shown or refused."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.artifacts.folder import StoredRun
from reprl.auditing.comparison import Comparison
from reprl.errors import ReprlError, hint
from reprl.mdp.criterion import Criterion
from reprl.mdp.environment import ENVIRONMENT
from reprl.mdp.labels import Labels
from reprl.mdp.policy import check_policy
from reprl.sources.environment import Environment, describe
from reprl.storage.documents import decode, plain
from reprl.storage.fields import read_fields, real

STORED = Path(__file__).parent / "data" / "documents"
KINDS: dict[str, Any] = {
    "audit": reprl.AuditReport,
    "comparison": Comparison,
    "policy": reprl.Policy,
    "receipt": reprl.Receipt,
    "recipe": reprl.Recipe,
}


STAMPED = ("recipe", "receipt")
"""Kinds that name their stream version: other versions are refused."""
FOLDERS = (STORED, STORED.parent / "version-1")
VERSIONS = {
    path: json.loads(path.read_text()).get("stream_version")
    for folder in FOLDERS
    for path in sorted(folder.glob("*.json"))
}
"""Every stored document, and the stream version that it names, if any."""
PAST = [path for path, version in VERSIONS.items() if version == 1]
KEPT = [path.name for path in VERSIONS if path not in PAST]
RUNS: dict[str, dict[str, Any]] = {
    "generative-canonical": {"access": "generative"},
    "generative-paper": {"rule": "paper", "constants": "scaled", "samples": 10**5},
    "episodic-canonical": {"access": "episodic"},
    "episodic-paper": {"access": "episodic", "rule": "paper", "constants": "scaled", "scale": 0.02},
}
FRESH = [f"{kind}-{run}.json" for kind in StoredRun._fields for run in RUNS]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the documents of this release, and those of earlier ones that it still reads."""
    folder = tmp_path_factory.mktemp("documents")
    for path in VERSIONS:
        if path not in PAST:
            shutil.copy(path, folder)
    mdp = reprl.make("gridworld-v0", 3, size=2)
    for run, options in RUNS.items():
        result = reprl.learn(mdp, epsilon=1.0, shared_seed=7, data_seed=1, **options)
        for kind in StoredRun._fields:
            getattr(result, kind).save(folder / f"{kind}-{run}.json")
    return folder


def kind_of(name: str) -> str:
    return name.partition("-")[0].removesuffix(".json")


@pytest.mark.parametrize("name", KEPT + FRESH)
def test_documents_are_read_and_written_again_byte_for_byte(name: str, written: Path, tmp_path: Path) -> None:
    again = KINDS[kind_of(name)].load(written / name).save(tmp_path / name)
    assert again.read_bytes() == (written / name).read_bytes()


def test_there_are_documents_of_both_kinds() -> None:
    assert {kind_of(path.name) for path in PAST} == {*STAMPED}
    assert {kind_of(name) for name in KEPT} >= {*KINDS} - {*STAMPED}


@pytest.mark.parametrize("path", PAST, ids=lambda path: path.name)
def test_documents_of_an_earlier_stream_version_are_refused_by_name(path: Path) -> None:
    """Their seeds mean other draws now. The control is above: documents that hold no seeds are still read."""
    kind = kind_of(path.name)
    allowed = "must be 3 for this release of reprl, or 2 to be read only"
    with pytest.raises(
        ReprlError, match=rf"{kind} (version must be 2 for this release of reprl|stream_version {allowed}), got 1$"
    ):
        KINDS[kind].load(path)


@pytest.mark.parametrize("name", [name for name in FRESH if kind_of(name) in STAMPED])
@pytest.mark.parametrize("version", [0, 1, 4, "3", None, True, 3.0])
def test_only_the_last_two_stream_versions_are_read(name: str, version: Any, written: Path) -> None:
    document = {**json.loads((written / name).read_text()), "stream_version": version}
    line = rf"^{kind_of(name)} stream_version must be 3 for this release of reprl, or 2 to be read only, got "
    with pytest.raises(ReprlError, match=line):
        KINDS[kind_of(name)].from_json(json.dumps(document))


@pytest.mark.parametrize("run", RUNS)
def test_runs_belong_together(run: str, written: Path) -> None:
    recipe, receipt, policy = (KINDS[kind].load(written / f"{kind}-{run}.json") for kind in StoredRun._fields)
    whole = StoredRun(recipe, receipt, policy).check()
    assert whole.environment.labels.states == whole.receipt.labels.states != ()
    assert whole.recipe.make().digest == whole.recipe.environment.digest


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "NaN", b"\xff", "[" * 100_000, '{"format": 1}', '{"a": 1, "a": 1}']
)
def test_no_reader_takes_what_is_no_document(kind: str, text: str | bytes) -> None:
    with pytest.raises(ReprlError, match=f"^{kind} "):
        KINDS[kind].from_json(text)


@pytest.mark.parametrize("name", KEPT + FRESH)
def test_every_field_is_needed_and_no_other_is_taken(name: str, written: Path) -> None:
    noun = kind_of(name)
    document = json.loads((written / name).read_text())
    for field in [field for field in document if field not in ("format", "version", "names")]:  # older ones have none
        less = {key: value for key, value in document.items() if key != field}
        with pytest.raises(ReprlError, match=f"^{noun} must have the field '{field}'"):
            KINDS[noun].from_json(json.dumps(less))
    with pytest.raises(ReprlError, match=f"^{noun} must have only the fields .* got 'comment'"):
        KINDS[noun].from_json(json.dumps({**document, "comment": ""}))


@pytest.mark.parametrize("name", KEPT + FRESH)
def test_junk_in_any_field_is_refused_or_means_what_it_says(name: str, written: Path) -> None:
    kind = KINDS[kind_of(name)]
    document = json.loads((written / name).read_text())
    for field in document:
        junk: Any
        for junk in (None, True, -1, 7, 0.5, 1e999, "maybe", [], [[]], {}, [{}], {"a": 1}):
            changed = {**document, field: junk}
            with contextlib.suppress(ReprlError):
                assert json.loads(kind.from_json(json.dumps(changed)).to_json()) == changed


def test_names_that_do_not_fit_the_environment_are_refused() -> None:
    document = json.loads((STORED / "audit-fixed.json").read_text())
    for names, message in (
        ({"grid": [5, 1]}, "audit environment.labels.grid must be at most 4 by 4"),
        ({"grid": [0, 1]}, "audit environment.labels.grid must be a whole number of at least 1, got 0"),
        ({"states": ["a"]}, "audit environment.labels.states must be 4 texts or none, got 1"),
        ({"actions": [1] * 4}, r"audit environment.labels.actions\[0\] must be text, got 1"),
    ):
        place = {**document["environment"], "labels": {**document["environment"]["labels"], **names}}
        with pytest.raises(ReprlError, match=message):
            reprl.AuditReport.from_json(json.dumps({**document, "environment": place}))


def test_an_environment_is_described_with_names_that_fit() -> None:
    mdp = reprl.make("gridworld-v0", 3, size=2)
    found = describe(mdp)
    assert (found.id, found.horizon, found.n_states, found.n_actions) == ("gridworld-v0", 3, 4, 4)
    assert (found.digest, found.labels, found.title) == (mdp.digest, mdp.labels, "gridworld-v0")
    assert found.cell(1, 0) == "step 1, state 0,0 start"
    mdp.labels = Labels("ice", states=("few",), actions=(1, 2, 3, 4))  # type: ignore[arg-type]
    assert describe(mdp).labels == Labels("ice", actions=("1", "2", "3", "4"))
    with pytest.raises(ReprlError, match=r"policy must have shape \(H, S\) = \(3, 4\), got \(1, 1\)"):
        check_policy([[0]], found)
    with pytest.raises(ReprlError, match=r"action \[0, 0\] must be from 0 to 3, got 4"):
        check_policy([[4] * 4] * 3, found)


def test_an_environment_survives_a_document() -> None:
    labels = Labels("n", states=("a", "b", "c"), grid=(1, 3))
    place = Environment("x", {"a": [1, None]}, Criterion(2), 3, 2, labels=labels)
    document = json.loads(json.dumps(ENVIRONMENT.write(place, 0)))
    assert read_fields("it", {"environment": document}, {"environment": ENVIRONMENT}) == {"environment": place}


def test_values_without_a_json_form_are_shown_or_refused() -> None:
    value = {"a": (np.int64(3), np.float32(0.5)), "b": np.zeros(2), 1: None}
    assert plain(value) == {"a": [3, 0.5], "b": [0.0, 0.0], "1": None}
    assert plain([float("nan"), {1}]) == ["nan", "{1}"]
    for odd in (float("nan"), {1}, {1: 2}, [print], np.longdouble(1)):
        with pytest.raises(TypeError):
            plain(odd, strict=True)


def test_numbers_keep_the_type_in_which_they_were_written() -> None:
    document = decode('{"a": 1, "b": 1.0}', "it")
    found = read_fields("it", document, {"a": real(), "b": real()})
    assert [type(found[name]) for name in ("a", "b")] == [int, float]
    with pytest.raises(ReprlError, match=r"it.a must lie in \[0, 0.5\], got 1"):
        read_fields("it", document, {"a": real(0.0, 0.5), "b": real()})


def test_a_hint_names_what_is_near() -> None:
    assert hint("gready", ["greedy", "rpvi"]) == " (did you mean 'greedy'?)"
    assert hint("xyz", ["greedy"]) == hint(3, ["greedy"]) == ""

"""Documents: what was written is read and written again byte for byte; what has no JSON form is shown or refused."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.artifacts.folder import StoredRun
from reprl.errors import ReprlError, hint
from reprl.mdp.criterion import Criterion
from reprl.mdp.environment import ENVIRONMENT
from reprl.mdp.labels import Labels
from reprl.mdp.policy import check_policy
from reprl.sources.environment import Environment, describe
from reprl.storage.documents import decode, plain
from reprl.storage.fields import read_fields, real
from tests.report_samples import audit_document

KINDS: dict[str, Any] = {
    "audit": reprl.AuditReport,
    "policy": reprl.Policy,
    "receipt": reprl.Receipt,
    "recipe": reprl.Recipe,
}


STAMPED = ("recipe", "receipt")
"""Kinds that name their stream version: other versions are refused."""
RUNS: dict[str, dict[str, Any]] = {
    "generative-soft": {"access": "generative"},
    "generative-paper": {"rule": "paper", "constants": "scaled", "samples": 10**5},
    "episodic-soft": {"access": "episodic"},
    "episodic-paper": {"access": "episodic", "rule": "paper", "constants": "scaled", "scale": 0.02},
}
FRESH = ["audit.json", *(f"{kind}-{run}.json" for kind in StoredRun._fields for run in RUNS)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents of every kind."""
    folder = tmp_path_factory.mktemp("documents")
    mdp = reprl.make("gridworld-v0", 3, size=2)
    reprl.AuditReport.from_json(json.dumps(audit_document(mdp))).save(folder / "audit.json")
    for run, options in RUNS.items():
        result = reprl.learn(mdp, epsilon=1.0, shared_seed=7, data_seed=1, **options)
        for kind in StoredRun._fields:
            getattr(result, kind).save(folder / f"{kind}-{run}.json")
    return folder


def kind_of(name: str) -> str:
    return name.partition("-")[0].removesuffix(".json")


@pytest.mark.parametrize("name", FRESH)
def test_documents_are_read_and_written_again_byte_for_byte(name: str, written: Path, tmp_path: Path) -> None:
    again = KINDS[kind_of(name)].load(written / name).save(tmp_path / name)
    assert again.read_bytes() == (written / name).read_bytes()


@pytest.mark.parametrize("name", FRESH)
@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.0])
def test_other_versions_are_refused_in_one_line(name: str, version: Any, written: Path) -> None:
    noun, document = kind_of(name), json.loads((written / name).read_text())
    for field in ("version", "stream_version") if noun in STAMPED else ("version",):
        newer = r" \(a newer release wrote it\)" if (field, version) == ("version", 2) else ""
        with pytest.raises(ReprlError, match=rf"^{noun} {field} must be 1 for this release of reprl, got .*{newer}$"):
            KINDS[noun].from_json(json.dumps({**document, field: version}))


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


@pytest.mark.parametrize("name", FRESH)
def test_every_field_is_needed_and_no_other_is_taken(name: str, written: Path) -> None:
    noun = kind_of(name)
    document = json.loads((written / name).read_text())
    for field in [field for field in document if field not in ("format", "version")]:
        less = {key: value for key, value in document.items() if key != field}
        with pytest.raises(ReprlError, match=f"^{noun} must have the field '{field}'"):
            KINDS[noun].from_json(json.dumps(less))
    with pytest.raises(ReprlError, match=f"^{noun} must have only the fields .* got 'comment'"):
        KINDS[noun].from_json(json.dumps({**document, "comment": ""}))


@pytest.mark.parametrize("name", FRESH)
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
    document = audit_document(reprl.make("gridworld-v0", 3, size=2))
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
    document = json.loads(json.dumps(ENVIRONMENT.write(place)))
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

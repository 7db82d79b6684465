"""Documents: what earlier releases wrote stays readable byte for byte; what has no JSON form is shown or refused."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.artifacts.folder import StoredRun
from reprl.auditing.comparison import Comparison
from reprl.documents import Reader, decode, plain
from reprl.errors import ReprlError, hint
from reprl.mdp.environment import Environment, describe
from reprl.mdp.policy import check_policy
from reprl.mdp.tabular import Labels

STORED = Path(__file__).parent / "data" / "documents"
KINDS: dict[str, Any] = {
    "audit": reprl.AuditReport,
    "comparison": Comparison,
    "policy": reprl.Policy,
    "receipt": reprl.Receipt,
    "recipe": reprl.Recipe,
}


@pytest.mark.parametrize("name", sorted(path.name for path in STORED.iterdir()))
def test_stored_documents_are_read_and_written_again_byte_for_byte(name: str, tmp_path: Path) -> None:
    kind = KINDS[name.partition("-")[0].removesuffix(".json")]
    again = kind.load(STORED / name).save(tmp_path / name)
    assert again.read_bytes() == (STORED / name).read_bytes()


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_stored_runs_belong_together(access: str) -> None:
    recipe, receipt, policy = (KINDS[kind].load(STORED / f"{kind}-{access}.json") for kind in StoredRun._fields)
    run = StoredRun(recipe, receipt, policy).check()
    assert run.environment.labels.states == run.receipt.labels.states != ()
    assert run.recipe.make().digest == run.recipe.environment.digest


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "NaN", b"\xff", "[" * 100_000, '{"format": 1}', '{"a": 1, "a": 1}']
)
def test_no_reader_takes_what_is_no_document(kind: str, text: str | bytes) -> None:
    with pytest.raises(ReprlError, match=f"^{kind} "):
        KINDS[kind].from_json(text)


@pytest.mark.parametrize("name", sorted(path.name for path in STORED.iterdir()))
def test_every_field_is_needed_and_no_other_is_taken(name: str) -> None:
    noun = name.partition("-")[0].removesuffix(".json")
    document = json.loads((STORED / name).read_text())
    for field in [field for field in document if field not in ("format", "version")]:
        less = {key: value for key, value in document.items() if key != field}
        with pytest.raises(ReprlError, match=f"^{noun} must have the field '{field}'"):
            KINDS[noun].from_json(json.dumps(less))
    with pytest.raises(ReprlError, match=f"^{noun} must have only the fields .* got 'comment'"):
        KINDS[noun].from_json(json.dumps({**document, "comment": ""}))


@pytest.mark.parametrize("name", sorted(path.name for path in STORED.iterdir()))
def test_junk_in_any_field_is_refused_or_means_what_it_says(name: str) -> None:
    kind = KINDS[name.partition("-")[0].removesuffix(".json")]
    document = json.loads((STORED / name).read_text())
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
    place = Environment("x", {"a": [1, None]}, 2, 3, 2, labels=Labels("n", states=("a", "b", "c"), grid=(1, 3)))
    document = Reader("it", {"environment": json.loads(json.dumps(place.as_dict()))}, ["environment"])
    assert Environment.read(document) == place


def test_values_without_a_json_form_are_shown_or_refused() -> None:
    value = {"a": (np.int64(3), np.float32(0.5)), "b": np.zeros(2), 1: None}
    assert plain(value) == {"a": [3, 0.5], "b": [0.0, 0.0], "1": None}
    assert plain([float("nan"), {1}]) == ["nan", "{1}"]
    for odd in (float("nan"), {1}, {1: 2}, [print], np.longdouble(1)):
        with pytest.raises(TypeError):
            plain(odd, strict=True)


def test_numbers_keep_the_type_in_which_they_were_written() -> None:
    reader = Reader("it", decode('{"a": 1, "b": 1.0}', "it"), ["a", "b"])
    assert [type(reader.real(name)) for name in ("a", "b")] == [int, float]
    with pytest.raises(ReprlError, match=r"it.a must lie in \[0, 0.5\], got 1"):
        reader.real("a", 0.0, 0.5)


def test_a_hint_names_what_is_near() -> None:
    assert hint("gready", ["greedy", "rpvi"]) == " (did you mean 'greedy'?)"
    assert hint("xyz", ["greedy"]) == hint(3, ["greedy"]) == ""

"""Reports: what is read, what is refused, and what ends up in the file."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

import reprl
from reprl.mdp.labels import Labels
from reprl.report import write_report
from reprl.report.charts import Axis
from reprl.report.page import templates
from reprl.report.shades import BLANK, NONE, image, ranks, shade
from tests import report_samples

SIX_MEGABYTES = 6_000_000


@pytest.fixture(scope="module")
def grid() -> reprl.TabularMDP:
    return reprl.make("gridworld-v0", size=4, horizon=6)


@pytest.fixture(scope="module")
def result(grid: reprl.TabularMDP) -> reprl.LearnResult:
    return reprl.learn(grid, access="generative", shared_seed=7, data_seed=1)


@pytest.fixture(scope="module")
def run(result: reprl.LearnResult) -> dict[str, Any]:
    return report_samples.documents_of(result)


def written(source: object, folder: Path) -> str:
    path = write_report(source, folder / "report.html")
    assert path.stat().st_size < SIX_MEGABYTES
    return path.read_text(encoding="utf-8")


def figures(page: str) -> list[str]:
    return re.findall(r'data-figure="([^"]+)"', page)


def save_run(documents: dict[str, Any], folder: Path) -> Path:
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


RUN_FIGURES = ["policy", "tiers", "samples", "values", "undecided"]


def test_run_folder_has_every_figure_and_the_fingerprint(run: dict[str, Any], tmp_path: Path) -> None:
    page = written(save_run(run, tmp_path), tmp_path)
    assert figures(page) == RUN_FIGURES
    assert run["policy"]["fingerprint"] in page
    assert "rehearsed" in page
    assert re.search(r"\[rehearsed: \d+ of \d+ simulated teams\]", page)
    assert f'recipe digest</dt><dd class="digest">{run["receipt"]["recipe"]}' in page
    assert "State names unknown" not in page
    assert "0,0 start" in page


def test_folder_mappings_and_result_give_the_same_page(
    run: dict[str, Any], result: reprl.LearnResult, tmp_path: Path
) -> None:
    page = written(save_run(run, tmp_path), tmp_path)
    assert written(run, tmp_path) == page
    without_time = re.compile(r"<dt>seconds</dt><dd>[^<]*</dd>")
    assert without_time.sub("", written(result, tmp_path)) == without_time.sub("", page)


def test_report_imports_no_module_that_an_id_names(run: dict[str, Any], tmp_path: Path) -> None:
    recipe = reprl.Recipe.from_json(json.dumps(run["recipe"]))
    mdp = reprl.make("gridworld-v0", size=4, horizon=6)
    result = reprl.learn(mdp, access="generative", shared_seed=7, data_seed=1)
    evil = recipe.environment._replace(id="gym:antigravity:Evil-v0", options={})
    assert result.record is not None
    named = replace(result, record=result.record._replace(environment=evil))
    assert "gym:antigravity:Evil-v0" in written(named, tmp_path)
    import sys

    assert "antigravity" not in sys.modules


def test_audit_has_every_figure(grid: reprl.TabularMDP, tmp_path: Path) -> None:
    document = report_samples.audit_document(grid)
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    page = written(path, tmp_path)
    assert figures(page) == ["interval", "distinct", "by-cell", "by-cell-weighted"]
    assert '<span class="badge bad">ρ = 0.1 rejected</span>' in page
    assert "23 of 50" in page
    assert "verified" not in page
    assert written(document, tmp_path) == page


def test_real_audit(tmp_path: Path) -> None:
    report = reprl.audit(reprl.make("combination-lock-v0", n_states=3, horizon=3), pairs=3, access="generative")
    page = written(report, tmp_path)
    assert {"interval", "distinct", "by-cell", "by-cell-weighted"} <= set(figures(page))
    assert written(report.save(tmp_path / "audit.json"), tmp_path) == page


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "</script><b>", "\"'><img src=x onerror=alert(1)>", "a\u2028b"]
)
def test_names_are_escaped(grid: reprl.TabularMDP, tmp_path: Path, name: str) -> None:
    audit = report_samples.audit_document(grid)
    audit["learner"] = name
    audit["options"] = {name: name}
    audit["environment"] |= {"id": name, "options": {name: [name]}}
    audit["environment"]["labels"] = {"name": name, "states": [name] * 16, "actions": [name] * 4, "grid": [4, 4]}
    audit["first_divergence"][0] |= {"text": name, "stage": name}
    for document in (audit,):
        page = written(document, tmp_path)
        assert page.count("<script") == page.count("</script>") == 2
        assert "<img" not in page
        data = re.search(r'id="cells">(.*?)</script>', page, re.DOTALL)
        assert data is not None
        cells_data = json.loads(data[1])
        if document is audit:
            assert cells_data["states"][0] == name


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "{{ 7 * 7 }}{% x %}"]
)
def test_no_back_end_obeys_a_name(name: str, tmp_path: Path) -> None:
    labels = Labels(name, name, (name, name), (name, name + "2"), (1, 2))
    mdp = reprl.TabularMDP([[[0.9, 0.1], [0.2, 0.8]]] * 2, [[0.0, 0.1], [0.3, 1.0]], horizon=2, labels=labels)
    result = reprl.learn(mdp, shared_seed=7, data_seed=1, access="generative")
    other = reprl.learn(mdp, shared_seed=7, data_seed=2, access="generative", preference=(1, 0))
    audit = reprl.audit(mdp, "greedy", 4, samples=200, seed=1)
    pages = [written(result, tmp_path), written(audit, tmp_path)]
    pages.append(write_report(result, tmp_path / "pair.html", second=other).read_text(encoding="utf-8"))
    pages += [thing._repr_html_() for thing in (result, result.policy, audit)]
    for page in pages:
        assert page.count("<script") == page.count("</script>") == (2 if "<!doctype" in page else 0)
        assert "<img" not in page
        assert escape(name) in page
    for template in resources.files("reprl.report").joinpath("templates").iterdir():
        assert not re.search(r"\|\s*safe|autoescape", template.read_text(encoding="utf-8")), template.name
    assert templates().autoescape is True


def test_page_asks_for_nothing_from_outside(run: dict[str, Any], tmp_path: Path) -> None:
    page = written(run, tmp_path)
    assert not re.findall(r"https?://|@import|url\(|src=", page)
    assert "default-src 'none'" in page


def changed(document: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**copy.deepcopy(document), **fields}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "reprl-audits"}, "must say format 'reprl-audit', .*, got 'reprl-audits'"),
        ({"version": 2}, r"audit version must be 1 .* got 2 \(a newer release wrote it\)"),
        ({"version": True}, "audit version must be 1 .* got True"),
        ({"verdict": "verified"}, "audit verdict must be one of rejected, not rejected, undecided; got 'verified'"),
        ({"rho": 1.5}, r"audit rho must lie in \[0, 1\], got 1.5"),
        ({"disagreements": 51}, "audit disagreements must be a whole number from 0 to 50, got 51"),
        ({"by_cell": [[0.0]]}, "audit by_cell must be a list of 6 items, got 1 items"),
        ({"by_cell": [[float("nan")] * 16] * 6}, "must be finite"),
        ({"interval": [0.1]}, "audit interval must be a list of 2 items, got 1 items"),
        ({"environment": None}, "audit environment must be an object"),
        ({"learner": 3}, "audit learner must be text, got 3"),
        ({"cells": [{"step": 9}]}, r"audit cells\[0\] must have the field 'state'"),
        ({"options": {"x": object()}}, "must hold JSON values only"),
    ],
)
def test_bad_audits_are_refused(grid: Any, tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(reprl.ReprlError, match=message):
        write_report(changed(report_samples.audit_document(grid), **fields), tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("field", ["rho", "pairs", "by_cell", "first_divergence", "environment"])
def test_audit_with_a_missing_field_is_refused(grid: Any, tmp_path: Path, field: str) -> None:
    document = report_samples.audit_document(grid)
    del document[field]
    with pytest.raises(reprl.ReprlError, match=f"audit must have the field '{field}'"):
        write_report(document, tmp_path / "x.html")


@pytest.mark.parametrize("source", [None, 3, [1], {}, {"recipe": {}}, {"recipe": 1, "receipt": 2, "policy": 3}])
def test_other_sources_are_refused(tmp_path: Path, source: object) -> None:
    with pytest.raises(reprl.ReprlError, match="must"):
        write_report(source, tmp_path / "x.html")


def test_files_that_cannot_be_read_are_refused(run: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    with pytest.raises(reprl.ReprlError, match="no such file"):
        write_report(tmp_path / "absent.json", out)
    folder = tmp_path / "run"
    folder.mkdir()
    save_run(run, folder)
    (folder / "receipt.json").unlink()
    with pytest.raises(reprl.ReprlError, match=r"receipt\.json"):
        write_report(folder, out)
    with pytest.raises(reprl.ReprlError, match="one file of a run: give the folder"):
        write_report(folder / "recipe.json", out)
    text = tmp_path / "text.json"
    text.write_bytes(b"\xff{")
    with pytest.raises(reprl.ReprlError, match=r"text\.json: report source must be a JSON document"):
        write_report(text, out)
    text.write_text("[1]")
    with pytest.raises(reprl.ReprlError, match=r"text\.json: report source must say format .* got \[1\]"):
        write_report(text, out)
    with pytest.raises(reprl.ReprlError, match="cannot write"):
        write_report(run, text / "x.html")
    assert not out.exists()


def test_parts_of_different_runs_are_refused(run: dict[str, Any], grid: Any, tmp_path: Path) -> None:
    other = report_samples.run_documents(grid, epsilon=0.5)
    with pytest.raises(reprl.ReprlError, match="receipt must belong to its recipe"):
        write_report({**run, "recipe": other["recipe"]}, tmp_path / "x.html")
    policy = json.loads(reprl.Policy(np.zeros((6, 16), dtype=int)).to_json())
    with pytest.raises(reprl.ReprlError, match="receipt fingerprint must be its policy's"):
        write_report({**run, "policy": policy}, tmp_path / "x.html")


def test_large_table_stays_small_and_says_what_is_left_out(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    shape = (150, 400)
    document = report_samples.audit_document(reprl.make("gridworld-v0", size=2, horizon=2))
    document["environment"] |= {"horizon": shape[0], "n_states": shape[1]}
    document["environment"]["labels"] |= {"states": [], "grid": None}
    document |= {
        "by_cell": generator.random(shape),
        "by_cell_weighted": generator.random(shape),
        "first_divergence": [],
        "policies": {**document["policies"], "reached": np.ones(shape, dtype=int)},
    }
    page = written(document, tmp_path)
    assert "120 of 150 steps are drawn" in page
    assert "The 40 most relevant of 400 states are drawn." in page


def test_cells_draws_every_level_once_over_runs() -> None:
    drawn = image(np.array([[3, 3, NONE], [BLANK, 3, 4]]))
    assert drawn["strokes"] == [("none", "M2 0h1"), ("l3", "M0 0h2M1 1h1"), ("l4", "M2 1h1")]


def test_shades_are_monotone_and_leave_zero_out() -> None:
    scale = shade(np.array([[0.0, 1.0], [10.0, 1000.0]]), log=True, none="no samples")
    assert scale.levels[0, 0] == NONE
    assert scale.levels[0, 1] == 0 < scale.levels[1, 0] < scale.levels[1, 1] == 23
    assert scale.log
    assert scale.ends == ("1", "1,000")
    assert [key.text for key in scale.keys] == ["no samples"]
    flat = shade(np.full((2, 2), 7.0))
    assert [key.text for key in flat.keys] == ["7 everywhere"]
    tiers = ranks(np.array([[1, 2, 3]]), 3, "tier").levels[0]
    assert tiers[0] > tiers[1] > tiers[2]


def test_axis_places_and_ticks() -> None:
    axis = Axis(2.0, 6.0)
    assert axis.place(4.0) == pytest.approx(50.0)
    assert axis.place(1.0) == 0.0
    assert [label for _, label in Axis(0.0, 1.0).ticks()] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    for low, high in ((3.0, 3.2), (5.0, 70.0), (1.0, 1e30)):
        assert len(Axis.over((low, high)).ticks()) <= 12

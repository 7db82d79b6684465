"""Pages are drawn from stored data: drawing again changes no table and no number, and corrects one that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import pytest

from benchmarks.__main__ import marks, module_of, names
from benchmarks.coupling import FAMILIES, effort, laws_of
from benchmarks.table import markdown
from experiments.__main__ import experiments
from experiments.numbers import fill, look_ups
from experiments.pages import searched
from experiments.runner import ROOT, Experiment, between
from experiments.stored import kept

PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "website" / "index.md"]
    if "<!--n:" in page.read_text("utf-8")
)


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def test_every_look_up_has_its_page() -> None:
    assert sorted(look_ups()) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_filling_in_changes_no_number(page: str) -> None:
    assert fill(text_of(page), look_ups()[page], page) == text_of(page)


@pytest.mark.parametrize("one", experiments(), ids=lambda one: one.name)
def test_drawing_again_changes_no_table(one: Experiment) -> None:
    data = json.loads((ROOT / "experiments" / one.name / "data.json").read_text("utf-8"))
    text = text_of(f"docs/{one.page}")
    assert between(text, one.marks, one.tables(data)) == text


@pytest.mark.long
@pytest.mark.parametrize("one", experiments(), ids=lambda one: one.name)
def test_drawing_again_changes_no_figure(one: Experiment, tmp_path: Path) -> None:
    data = json.loads((ROOT / "experiments" / one.name / "data.json").read_text("utf-8"))
    with mpl.rc_context():
        mpl.rcdefaults()
        one.draw(data, tmp_path)
    drawn = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert drawn == {name: (ROOT / "docs" / "figures" / name).read_bytes() for name in drawn}


@pytest.mark.parametrize("name", [name for name in names() if hasattr(module_of(name), "PAGE")])
def test_drawing_again_changes_no_table_of_a_benchmark(name: str) -> None:
    text = text_of(f"docs/{module_of(name).PAGE}")
    assert between(text, marks(name), markdown(kept(name))) == text


@pytest.mark.parametrize("family", FAMILIES)
def test_the_stored_joint_search_is_that_of_the_code(family: str) -> None:
    found = {n: effort(laws_of(family, n), keys=5).nodes for n in (10, 20, 30)}
    assert found == {n: searched(family, n) for n in found}

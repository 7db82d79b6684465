"""Pages and the site: links lead somewhere, figures are shown, tables are those of stored data."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.test_paper_map import rows as paper_rows

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(path: Path) -> set[str]:
    """The headings of a page as code hosts and the site address them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    return set(plain)


def dead_links(path: Path, text: str) -> list[str]:
    dead = []
    for target in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)):
        file, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = (path.parent / file).resolve() if file else path
        if not place.exists() or (anchor and place.suffix == ".md" and anchor not in anchors(place)):
            dead.append(target)
    return dead


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    assert dead_links(path, path.read_text("utf-8")) == []


def test_the_evidence_has_every_row_of_the_paper() -> None:
    """Its first column is the map's, with the name where the paper has no statement of its own."""
    wanted = [row["name"] if row["paper"] == "–" else row["paper"] for row in paper_rows()]
    text = (ROOT / "docs" / "evidence.md").read_text("utf-8").split("## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    assert [row[0] for row in cells[2:]] == wanted, "a row of docs/paper-map.md needs one in docs/evidence.md"
    assert all(len(row) == 5 and row[1] not in ("", "–") and row[2] not in ("", "–") for row in cells[2:])


def quoted(text: str) -> str:
    return f'"{text}"'


EXAMPLES = {
    "beyond_tables": ("same policy",),
    "published_network": ("same policy",),
    "sepsis": ("716 states: 0.792 survive",),
    "confirm_a_claim": ("controller: confirmed [certified]", "lazy: refuted [certified]"),
    "five_minutes": ("the same policy: True", "repeats the recipe: True"),
    "audit_your_learner": ("q_learning 5 of 5 pairs differ", "reprl 0 of 3 pairs differ"),
    "two_hospitals": ("south, by its own log: confirmed", "moderate state: drug A"),
    "theorems": ("largest excess over 2TV/(1 + TV): -",),
}


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)
    page = (ROOT / "docs" / "examples.md").read_text("utf-8")
    assert all(f"examples/{name}.py" in page for name in EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name == "sepsis" else name for name in EXAMPLES]
)
def test_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "icu_sepsis":
        pytest.importorskip("icu_sepsis", reason="reads the files of the package icu-sepsis")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert all(text in shown for text in EXAMPLES[name]), shown


@pytest.mark.long
def test_the_site_is_built_without_a_warning_and_asks_the_network_for_nothing(tmp_path: Path) -> None:
    """In a process of its own: kernels are not compiled for it."""
    import subprocess
    import sys

    pytest.importorskip("sphinx")
    pytest.importorskip("furo")
    done = subprocess.run(
        [sys.executable, "-m", "website", "--out", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    html = tmp_path / "html"
    assert (html / "index.html").is_file()
    assert "<math" in (html / "docs" / "proofs" / "coupling.html").read_text("utf-8")
    reference = (html / "api" / "coupling.html").read_text("utf-8")
    assert re.search(r'href="\.\./docs/proofs/coupling\.html#[^"]+">proofs/coupling §\d', reference)
    for page in html.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text("utf-8"))
        assert not loaded, page.name

"""Pages and the site: links lead somewhere, figures are shown, tables and numbers are those of stored data."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from experiments.__main__ import experiments
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


def test_dead_links_are_found_out() -> None:
    page = ROOT / "docs" / "gallery.md"
    assert dead_links(page, "[a](nowhere.md) [b](peers.md#nowhere) [c](peers.md) `[d](code.md)` [e](https://a.b)") == [
        "nowhere.md",
        "peers.md#nowhere",
    ]


def test_every_figure_is_shown_on_a_page() -> None:
    shown = {(path.parent / target).resolve() for path in PAGES for target in LINK.findall(path.read_text("utf-8"))}
    figures = {path.resolve() for path in (ROOT / "docs" / "figures").rglob("*.*")}
    assert figures
    assert sorted(path.name for path in figures - shown) == []


def test_the_evidence_has_every_row_of_the_paper() -> None:
    """Its first column is the map's, with the name where the paper has no statement of its own."""
    wanted = [row["name"] if row["paper"] == "–" else row["paper"] for row in paper_rows()]
    text = (ROOT / "docs" / "evidence.md").read_text("utf-8").split("## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    assert [row[0] for row in cells[2:]] == wanted, "a row of docs/paper-map.md needs one in docs/evidence.md"
    assert all(len(row) == 5 and row[1] not in ("", "–") and row[2] not in ("", "–") for row in cells[2:])


@pytest.mark.parametrize("one", experiments(), ids=lambda one: one.name)
def test_pages_show_the_tables_of_their_stored_data(one: Any) -> None:
    start, end = one.marks
    shown = (ROOT / "docs" / one.page).read_text("utf-8").partition(start)[2].partition(end)[0]
    assert shown.strip() == one.tables(stored(one.name)).strip()


@cache
def stored(name: str) -> Any:
    return json.loads((ROOT / "experiments" / name / "data.json").read_text("utf-8"))


def short(number: float) -> str:
    mantissa, _, exponent = f"{number:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def needed(row: Any) -> float:
    return float((row["needed"][0] if row["needed"] else row["samples"]) if row["reached"] else "inf")


def ratios(access: str, *, only: Callable[[str], bool], worlds: Callable[[str], bool]) -> list[float]:
    """On each world, the least that any such learner needs, over what the default learner drew at its own size."""
    measured, out = stored("head_to_head")["measured"], []
    for name, own in measured.items():
        world = name.removeprefix(f"own/{access}/")
        if name.startswith(f"own/{access}/") and worlds(world):
            start = f"table/{access}/{world}/"
            found = [needed(row) for key, row in measured.items() if key.startswith(start) and only(key[len(start) :])]
            out.append(min(found) / own["samples"])
    return out


def tied(world: str) -> bool:
    return world.startswith(("gridworld", "two-goals", "hard"))


def rival(learner: str) -> bool:
    return not learner.startswith("reprl")


def one_world(name: str, learner: str) -> str:
    (found,) = ratios("generative", only=lambda label: label == learner, worlds=lambda world: world == name)
    return f"{found:.2f}"


def slope_of(sweep: str, learner: str, *, interval: bool = True) -> str:
    from experiments.head_to_head.measure import slopes

    (fit,) = [f for f in slopes(stored("head_to_head")["measured"]) if (f["sweep"], f["learner"]) == (sweep, learner)]
    return f"{fit['slope']:.2f}" + (f" ({fit['low']:.2f} … {fit['high']:.2f})" if interval else "")


def decision(sweep: str, method: str, least: int = 0) -> str:
    from experiments.evidence.__main__ import slopes

    fits = [fit for fit in slopes(stored("evidence")) if fit["sweep"] == sweep and fit["method"] == method]
    (fit,) = [fit for fit in fits if fit["least"] == least]
    return f"{fit['slope']:.2f} ({fit['low']:.2f} … {fit['high']:.2f})"


def front(field: str) -> Any:
    return [team[field] for team in stored("front")["measured"].values()]


def own(field: str, access: str = "") -> list[Any]:
    return [row[field] for name, row in stored("head_to_head")["measured"].items() if name.startswith(f"own/{access}")]


def span(found: list[float]) -> list[str]:
    return [f"{min(found):.0f}", f"{max(found):.0f}"]


TEAMS = r"wenty teams came to (\d+) policy with reprl(?:,| and) to (\d+)"
NUMBERS: list[tuple[str, str, Callable[[], list[str]]]] = [
    ("README.md", TEAMS, lambda: [str(len(set(front(name)))) for name in ("fingerprint", "greedy_fingerprint")]),
    ("website/index.md", TEAMS, lambda: [str(len(set(front(name)))) for name in ("fingerprint", "greedy_fingerprint")]),
    ("README.md", r"([\d,]+) samples and about a second", lambda: [f"{front('samples')[0]:,}"]),
    ("website/index.md", r"drew ([\d,]+) samples in about a second", lambda: [f"{front('samples')[0]:,}"]),
    (
        "README.md",
        r"takes\s+([\d.e]+) to ([\d.e]+) parallel samples",
        lambda: [short(min(own("samples", "generative"))), short(max(own("samples", "generative")))],
    ),
    (
        "README.md",
        r"need (\d+) to\s+(\d+) times as many, in hindsight",
        lambda: span(
            ratios(
                "generative",
                only=lambda learner: rival(learner) and learner != "greedy",
                worlds=lambda world: world != "combination-lock",
            )
        ),
    ),
    (
        "docs/head-to-head.md",
        r"none of its (\d+) pairs came apart",
        lambda: [str(sum(own("pairs")))] if not sum(own("disagreements")) else [],
    ),
    (
        "docs/head-to-head.md",
        r"best rival in hindsight needs (\d+) to (\d+) times as many parallel",
        lambda: span(ratios("generative", only=rival, worlds=tied)),
    ),
    (
        "docs/head-to-head.md",
        r"rPVI\s+(\d+) to (\d+) times as many",
        lambda: span(ratios("generative", only=lambda learner: learner == "rpvi", worlds=tied)),
    ),
    (
        "docs/head-to-head.md",
        r"replicable R-max needs (\d+) times the steps",
        lambda: span(ratios("episodic", only=lambda learner: learner == "replicable-rmax", worlds=tied))[:1],
    ),
    ("docs/head-to-head.md", r"greedy in hindsight needs ([\d.]+) times", lambda: [one_world("river-swim", "greedy")]),
    ("docs/head-to-head.md", r"on random-mdp ([\d.]+) times", lambda: [one_world("random-mdp", "greedy")]),
    (
        "docs/head-to-head.md",
        r"At exact ties they are (.*?) and\s+(.*?):",
        lambda: [slope_of("states", f"reprl ({one})") for one in ("joint", "product")],
    ),
    (
        "docs/head-to-head.md",
        r"steep, they are (.*?) and (\S+ \(.*?\))\.",
        lambda: [slope_of("near", f"reprl ({one})") for one in ("joint", "product")],
    ),
    (
        "docs/head-to-head.md",
        r"slopes in S, ([\d.]+) and ([\d.]+) for a bound of 3",
        lambda: [slope_of(sweep, "list-robust", interval=False) for sweep in ("states", "near")],
    ),
    (
        "docs/head-to-head.md",
        r"softmax have ([\d.]+), ([\d.]+) and ([\d.]+), as",
        lambda: [slope_of("states", one, interval=False) for one in ("rpvi", "karbasi-grid", "karbasi-softmax")],
    ),
    ("docs/head-to-head.md", r"\(joint\) has ([\d.]+ \(.*?\)) for", lambda: [slope_of("actions", "reprl (joint)")]),
    (
        "docs/evidence.md",
        r"\| S²A parallel samples jointly .*? \| ([\d.]+ \(.*?\)) at exact ties, (.*?) at near ties",
        lambda: [slope_of(sweep, "reprl (joint)") for sweep in ("states", "near")],
    ),
    (
        "docs/evidence.md",
        r"By states (\S+ \(.*?\)) for a.*? Jointly (\S+ \(.*?\)) for a bound of 2, and (\S+ \(.*?\)) from 12",
        lambda: [decision("states", "product"), decision("states", "joint"), decision("states", "joint", 12)],
    ),
    (
        "docs/evidence.md",
        r"In 1/ε (\S+ \(.*?\)) and (\S+ \(.*?\)), in 1/ρ (\S+ \(.*?\)) and (\S+ \(.*?\)), for",
        lambda: [decision(sweep, method) for sweep in ("epsilon", "rho") for method in ("joint", "product")],
    ),
    (
        "docs/evidence.md",
        r"\*\*A\.\*\* (\S+ \(.*?\)) and (\S+ \(.*?\)), \*\*well",
        lambda: [decision("actions", method) for method in ("joint", "product")],
    ),
    ("docs/evidence.md", r"rPVI ([\d.]+ \(.*?\)) for S³", lambda: [slope_of("states", "rpvi")]),
]
"""(page, what is written there with its numbers in groups, the same numbers from stored data)."""


@pytest.mark.parametrize(
    ("page", "written", "look_up"), NUMBERS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_numbers_in_prose_are_those_of_stored_data(page: str, written: str, look_up: Callable[[], list[str]]) -> None:
    found = re.findall(written, (ROOT / page).read_text("utf-8"))
    assert len(found) == 1, f"{page} should say this once: {written}"
    assert list(found[0] if isinstance(found[0], tuple) else found) == look_up()


EXAMPLES = {
    "five_minutes": ("the same policy: True", "follows the recipe: True"),
    "audit_your_learner": ("q_learning 5 of 5 pairs differ", "reprl 0 of 3 pairs differ"),
    "two_hospitals": ("the same policy: True", "moderate state: drug A"),
    "theorems": ("largest excess over 2TV/(1 + TV): -",),
    "own_rule": ("rounded on a fixed grid: 58 of 60",),
}


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)
    page = (ROOT / "docs" / "examples.md").read_text("utf-8")
    assert all(f"examples/{name}.py" in page for name in EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert all(text in shown for text in EXAMPLES[name]), shown


@pytest.mark.slow
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
    start = (html / "index.html").read_text("utf-8")
    assert "two-policies.svg" in start
    assert "<math" in (html / "docs" / "proofs" / "coupling.html").read_text("utf-8")
    reference = (html / "api" / "coupling.html").read_text("utf-8")
    assert re.search(r'href="\.\./docs/proofs/coupling\.html#[^"]+">proofs/coupling §\d', reference)
    for page in html.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text("utf-8"))
        assert not loaded, page.name

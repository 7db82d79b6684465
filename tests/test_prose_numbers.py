"""Numbers in the prose of pages: each is that of stored data or of the code, or is named as no measurement.

The scanner reads a page without its code, links, headings and formulas, and without tables between marks, which are
compared as a whole elsewhere. What then looks measured has to stand in a group of a pattern of NUMBERS, whose look-up
gives the same number, or in a text of PLAIN, which says why it is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from benchmarks.__main__ import marks, module_of, names
from benchmarks.coupling import FAMILIES, effort, laws_of
from benchmarks.table import markdown
from tests.prose import NUMBERS, PLAIN
from tests.stored import ROOT, LookUp, kept, rival_line, rivals, searched

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
PAGES.append("website/index.md")
NOT_PROSE = re.compile(
    r"```.*?```|^ {4}(?! ).*?$|`[^`\n]*`(?: \([\d.]+\))?"  # code, and options with their defaults
    r"|<!-- (?:tables|figures|experiments)\b.*?<!-- end of .*?-->"
    r"|^#.*?$|!\[.*?\]|\]\(.*?\)|arXiv:[\d.]+"  # headings, captions, links
    r"|(?:Theorem|Lemma|Corollary|Definition|Proposition|Section|Algorithm)s? [\dA-B][\d.A-B–, ]*(?:and [\dA-B][\d.]*)?"
    r"|\b(?:19[5-9]|20[0-2])\d\b|95 %"  # years; the level of every interval
    r"|[=≤≥<>]\s?[\d.,·⁰¹²³⁴-⁹⁻e+-]+(?: %)?",  # settings and formulas
    re.DOTALL | re.MULTILINE,
)
NUMBER = r"\d(?:[\d.,]*\d)?"
MEASURED = re.compile(
    rf"(?<![\w.,/])(?:{NUMBER}(?:·10[⁰¹²³⁴-⁹⁻]+|e[+-]?\d+)|10[⁰¹²³⁴-⁹⁻]+|10\^{NUMBER}"  # scientific
    rf"|{NUMBER}\s?%|{NUMBER}\sof\s(?:the\s)?{NUMBER}"  # shares
    rf"|\d{{1,3}}(?:[,\u202f ]\d{{3}})+|\d{{4,}}|\d+\.\d+"  # from a thousand on, decimals
    rf"|{NUMBER}(?=\s(?:CPU|s|seconds?|minutes?|[kMG]i?B|samples|steps|calls|pairs|times|runs|episodes|teams)\b)"
    r")(?!\w)"
)
PAPER_LINES = re.compile(r"(?<=\| )(?:(?:proof )?\d{3,4}(?:, |–|(?= \|)))+(?= \|)|\bline \d{3,4}")
"""On the map from the paper: cells of line numbers of the paper's source, and such a number in a sentence."""


def text_of(page: str) -> str:
    text = (ROOT / page).read_text("utf-8")
    return PAPER_LINES.sub(lambda found: " " * len(found[0]), text) if page == "docs/paper-map.md" else text


def places(pattern: str, text: str) -> list[re.Match[str]]:
    """Where a pattern stands; a blank of the pattern is any white space."""
    return list(re.finditer(pattern.replace(" ", r"\s+"), text, re.DOTALL))


def numbers(text: str) -> Iterator[re.Match[str]]:
    """What looks measured in the prose of a page."""
    return MEASURED.finditer(NOT_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text))


def unaccounted(text: str, compared: list[str], plain: list[str]) -> list[str]:
    """Numbers that stand neither in a group of a pattern nor in one of the texts, with what is around them."""
    spans = [
        found.span(i) for one in compared for found in places(one, text) for i in range(1, len(found.groups()) + 1)
    ]
    spans += [found.span() for one in plain for found in places(re.escape(one).replace(r"\ ", " "), text)]
    return [
        " ".join(text[max(0, found.start() - 40) : found.end() + 30].split())
        for found in numbers(text)
        if not all(any(start <= end <= stop for start, stop in spans) for end in found.span())
    ]


@pytest.mark.parametrize(
    ("page", "written", "look_up"),
    [(page, *entry) for page, entries in NUMBERS.items() for entry in entries],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_numbers_in_prose_are_those_of_stored_data(page: str, written: str, look_up: LookUp) -> None:
    found = places(written, text_of(page))
    assert len(found) == 1, f"{page} should say this once: {written}"
    assert list(found[0].groups()) == look_up()


@pytest.mark.parametrize("page", PAGES)
def test_no_number_stands_in_prose_without_its_data(page: str) -> None:
    compared = [written for written, _ in NUMBERS.get(page, [])]
    assert unaccounted(text_of(page), compared, list(PLAIN.get(page, {}))) == []


def test_what_is_listed_is_needed() -> None:
    """A text of PLAIN stands on its page and holds a number that nothing else accounts for."""
    for page, plain in PLAIN.items():
        for one in plain:
            rest = [other for other in plain if other != one]
            compared = [written for written, _ in NUMBERS.get(page, [])]
            assert unaccounted(text_of(page), compared, rest), f"{page} does not need {one!r}"


def test_numbers_without_data_are_found_out() -> None:
    text = (
        "Took 3.2 s and 1.5·10⁷ calls,\n12 of\n40 pairs, 7 %, 10^48, 1e-6 (ε = 0.3, `0.5`, Lemma 4.1, three, 12 cells)."
    )
    assert [" ".join(found[0].split()) for found in numbers(text)] == [
        "3.2",
        "1.5·10⁷",
        "12 of 40",
        "7 %",
        "10^48",
        "1e-6",
    ]
    assert PAPER_LINES.sub("", "| 946, 2304 | 283, proof 29 | 12–34 | 2964, proof 3590 | 3037–3044 | (line 601) |") == (
        "|  | 283, proof 29 | 12–34 |  |  | () |"
    )
    assert unaccounted(text, [r"Took ([\d.]+) s and (\S+) calls, (\d+ of \d+)", r"pairs, 7 %, (\S+), "], ["7 %"]) == [
        "·10⁷ calls, 12 of 40 pairs, 7 %, 10^48, 1e-6 (ε = 0.3, `0.5`, Lemma 4.1, t"
    ]


@pytest.mark.parametrize("name", names())
def test_what_benchmarks_stored_is_what_pages_show(name: str) -> None:
    page = getattr(module_of(name), "PAGE", None)
    if page is not None:
        start, end = marks(name)
        shown = text_of(f"docs/{page}").partition(start)[2].partition(end)[0]
        assert shown.strip() == markdown(kept(name)).strip()


def test_the_table_of_rivals_is_that_of_stored_data() -> None:
    shown = dict(re.findall(r"^\| ([a-z-]+(?:, \w+)?) (\| .*\(\d\).*\|)$", text_of("docs/peers.md"), re.MULTILINE))
    names = [one["learner"] for one in rivals()]
    aliases = {"karbasi-gaussian": "karbasi-gaussian, shared"}
    assert shown == {aliases.get(name, name): rival_line(name) for name in names}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_stored_joint_search_is_that_of_the_code(family: str) -> None:
    found = {n: effort(laws_of(family, n), keys=5).nodes for n in (10, 20, 30)}
    assert found == {n: searched(family, n) for n in found}

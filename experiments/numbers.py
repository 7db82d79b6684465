"""Numbers and tables of pages: each stands between two marks and is filled in from stored data or from the code.

A mark names a look-up of the page, in lower case: ``<!--n:KEY-->16 to 871<!--/-->``, or ``KEY.1`` for one of several
values. Look-ups are in ``experiments/*/numbers.py`` and ``experiments/pages.py``, by page. A table of TABLES there
stands between lines ``<!-- KEY -->`` and ``<!-- end -->``. ``python -m experiments.numbers`` fills in all of them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from experiments.runner import between
from experiments.stored import ROOT, LookUp

MARK = re.compile(r"<!--n:([a-z][\w-]*)(?:\.(\d+))?-->(.*?)<!--/-->", re.DOTALL)
BEGIN = re.compile(r"<!--n:[a-z]")
FIRST = re.compile(r"^[ \t>*+-]*<!--n:.*$", re.MULTILINE)
"""A mark that begins a line would be a block of HTML in Markdown."""


@cache
def look_ups() -> dict[str, dict[str, LookUp]]:
    """Return the look-ups of every page, by key."""
    return _gather("NUMBERS")


@cache
def tables() -> dict[str, dict[str, Callable[[], str]]]:
    """Return what writes the tables of every page, by key; an experiment of the runner writes its own."""
    return _gather("TABLES")


def _gather(name: str) -> dict[str, dict[str, Any]]:
    here = Path(__file__).parent
    modules = ["pages", *(f"{path.parent.name}.numbers" for path in sorted(here.glob("*/numbers.py")))]
    found: dict[str, dict[str, Any]] = {}
    for module in modules:
        for page, known in getattr(importlib.import_module(f"experiments.{module}"), name, {}).items():
            found[page] = found.get(page, {}) | known
    return found


def fill(text: str, known: dict[str, LookUp], page: str = "the page") -> str:
    """Return a page with its numbers filled in; a mark without a look-up is refused, and a look-up without a mark."""
    begins = FIRST.search(text)
    if begins:
        raise ValueError(f"{page}: a mark must not begin a line, got {begins[0][:60]!r}")
    marks = {(key, int(index or 0)) for key, index, _ in MARK.findall(text)}
    values = {key: look_up() for key, look_up in known.items()}
    there = {(key, i) for key, found in values.items() for i in range(len(found))}
    if marks != there or len(BEGIN.findall(text)) != len(MARK.findall(text)):
        wrong = sorted(marks ^ there)
        raise ValueError(f"{page}: every mark needs a value and every value one mark; check {wrong}")

    def value(mark: re.Match[str]) -> str:
        found = values[mark[1]][int(mark[2] or 0)]
        same = " ".join(mark[3].split()) == " ".join(found.split())  # a line may end within it
        return mark[0] if same else mark[0].replace(f"-->{mark[3]}<!--", f"-->{found}<!--")

    return MARK.sub(value, text)


def fill_page(page: str) -> None:
    """Fill in the tables and numbers of a page, named from the root of the repository."""
    path = ROOT / page
    text = filled = path.read_text("utf-8")
    for key, table in tables().get(page, {}).items():
        filled = between(filled, (f"<!-- {key} -->", "<!-- end -->"), table())
    filled = fill(filled, look_ups().get(page, {}), page)
    if filled != text:
        path.write_text(filled, "utf-8")


if __name__ == "__main__":
    for one in look_ups():
        fill_page(one)

"""reprl docs: the documentation that came with this installation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from reprl.cli.answer import Answer
from reprl.cli.options import argument
from reprl.errors import InputError, hint, quote

if TYPE_CHECKING:
    from rich.console import Console


_NUMBER_MARKS = re.compile(r"<!--(?:n:[\w.-]+|/)-->")
"""Around numbers that experiments fill in (experiments/numbers.py)."""


def _complete_page(incomplete: str) -> list[tuple[str, str]]:
    return [(name, _title(path)) for name, path in _pages().items() if name.startswith(incomplete)]


def docs(
    page: str | None = argument(
        "[PAGE]", "A page, such as rehearsal or proofs/canonical. Default: list them.", None, _complete_page
    ),
) -> Answer:
    """Show a page of the documentation, and its path; "docs/rehearsal.md" is the page rehearsal.

    reprl docs

    reprl docs rehearsal
    """
    pages = _pages()
    if page is None:
        titles = {name: _title(path) for name, path in pages.items()}
        return Answer({"pages": titles}, lambda console: _list(console, titles))
    name = page.removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        raise InputError(f"page must be one of {', '.join(pages)}; got {quote(page)}{hint(name, pages)}")
    path = pages[name]
    text = _NUMBER_MARKS.sub("", path.read_text(encoding="utf-8"))
    return Answer({"page": name, "path": str(path), "text": text}, lambda console: _show(console, path, text))


def _pages() -> dict[str, Path]:
    """Name → file: inside the package where it was installed, beside the sources where it runs from them."""
    package = Path(__file__).parents[1]
    for folder in (package / "docs", package.parents[1] / "docs"):
        if folder.is_dir():
            found = sorted(folder.rglob("*.md"))
            return {path.relative_to(folder).with_suffix("").as_posix(): path for path in found}
    raise InputError(f"the documentation must lie in {package / 'docs'}, got no such folder: install reprl again")


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def _list(console: Console, titles: dict[str, str]) -> None:
    from reprl.execution.terminal import fact_rows

    console.print(fact_rows([*titles.items()]))


def _show(console: Console, path: Path, text: str) -> None:
    from rich.markdown import Markdown

    console.print(Markdown(text) if console.is_terminal else text, soft_wrap=not console.is_terminal)
    console.print(str(path), style="dim", soft_wrap=True)

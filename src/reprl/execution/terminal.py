"""What people see of texts that others wrote: control codes as what they are, never obeyed by a terminal."""

from __future__ import annotations

import codecs
import unicodedata
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.measure import Measurement
    from rich.table import Table

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that move the cursor, turn the line around, or cannot be encoded."""
_KEPT = "\n\t\u200c\u200d"
"""Line ends, tabs, and the joiners that some scripts need."""


LIKE_ASCII = "reprl-like-ascii"
"""How to encode what an encoding lacks: by the signs below, by the letter under an accent, else as a question mark."""
_SPELLED = """→ > ← < ↑ ^ ↓ v ≤ <= ≥ >= ≠ != ± +- × x · . − - – - — - … ... ’ ' “ " ” " √ sqrt ∞ inf ² 2 █ # ● * • *
✓ yes
ε epsilon ρ rho δ delta ξ xi μ mu π pi τ tau γ gamma Σ sum"""
_SIGNS = {
    **dict(zip(_SPELLED.split()[::2], _SPELLED.split()[1::2], strict=True)),
    **dict.fromkeys("─━╌┄", "-"),
    **dict.fromkeys("│┃", "|"),
    **dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+"),
    "\u00a0": " ",
}


def _like_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_SIGNS.get(sign) or _under(sign) for sign in error.object[error.start : error.end]), error.end


def _under(sign: str) -> str:
    return unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode() or "?"


codecs.register_error(LIKE_ASCII, _like_ascii)


def visible(text: str) -> str:
    r"""Return a text in which every control code is written out, such as \x1b for an escape."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(_shown(sign) for sign in text)


def _shown(sign: str) -> str:
    if sign in _KEPT or unicodedata.category(sign) not in _HIDDEN:
        return sign
    return sign.encode("unicode_escape").decode("ascii")


class Visible:
    """Anything that rich can show, with the control codes in its texts written out."""

    def __init__(self, content: RenderableType) -> None:
        """Take what is to be shown."""
        self.content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Show it; styles are ours and stay."""
        from rich.segment import Segment

        for piece in console.render(self.content, options):
            yield piece if piece.control else Segment(visible(piece.text), piece.style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """As wide as what it holds."""
        from rich.measure import Measurement

        return Measurement.get(console, options, self.content)


def fact_rows(rows: Sequence[tuple[str, object]]) -> Table:
    """Return a list of names and figures; a long name takes two lines where a fingerprint needs the room."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    longest = max((len(word) for _, value in rows for word in str(value).split()), default=0)
    table.add_column(max_width=80 - 2 - min(longest, 64), style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value if isinstance(value, Text) else Text(str(value)))
    return table


def plain_table(*heads: str) -> Table:
    """Return an empty table that reads well with and without a terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def open_card(record: object) -> str:
    """Return the HTML that a notebook shows of a record.

    Renderers stand above the records that they show, so they are opened by name, and only when something is shown.
    """
    html: str = import_module("reprl.report.card").card(record)
    return html


def open_rich(record: object) -> Visible:
    """Return what a terminal shows of a record; opened like a card."""
    return Visible(import_module("reprl.report.terminal").render(record))


class Shown:
    """A record that notebooks and terminals show by its summary."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Show it in a notebook."""
        return open_card(self)

    def __rich__(self) -> Visible:
        """Show it on a terminal."""
        return open_rich(self)

    def show(self, console: Console | None = None) -> None:
        """Print it on a terminal."""
        from rich.console import Console

        (console or Console()).print(self)

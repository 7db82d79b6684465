"""Summary: what there is to say of a record, as data. A terminal, a page and a notebook's card show the same words.

An element says where it is shown (`on`); what is folded or left out for lack of room is for the one who shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Flag, auto
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from reprl.report.maps import Maps
    from reprl.report.sketch import Sketch


class On(Flag):
    """Where an element is shown."""

    TERMINAL = auto()
    PAGE = auto()
    CARD = auto()
    HTML = PAGE | CARD
    ALL = TERMINAL | HTML


class Strong(str):
    """A part of a sentence that stands out."""

    __slots__ = ()


class Line(NamedTuple):
    """A sentence."""

    parts: tuple[str, ...]
    on: On = On.ALL
    tone: str = ""
    """"bad" for a warning that nobody should overlook."""


def line(*parts: str, on: On = On.ALL) -> Line:
    """Return a sentence of these parts."""
    return Line(parts, on)


class Badge(NamedTuple):
    """The answer in a word or two."""

    text: str
    tone: str = "plain"
    """good, warn, bad or plain."""
    on: On = On.ALL


class Fact(NamedTuple):
    """A name and a figure, with what is to be said of it; or a name and a sentence."""

    label: str
    value: str
    note: str = ""
    """Goes on where the value ends."""
    on: On = On.ALL
    prose: bool = False
    """Whether the value is a sentence, for which a tile is too small."""
    folded: bool = False
    """Whether a page shows it behind a fold, for specialists."""

    @property
    def text(self) -> str:
        """Value and note in a line."""
        return f"{self.value} {self.note}".rstrip()


class Cell(NamedTuple):
    """A cell of a table that is more than a text."""

    text: str
    note: str = ""
    look: str = ""
    """"digest", "strong", or the tone of a badge."""


class Table(NamedTuple):
    """Rows under a head."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: Sequence[Sequence[str | Cell]]
    caption: str = ""
    on: On = On.ALL
    first: int = 10
    """Rows that are seen at once."""
    total: int = 0
    """Rows that there are, where not all are given."""

    @property
    def more(self) -> int:
        """Rows that there are besides those at once in sight."""
        return max(self.total, len(self.rows)) - min(self.first, len(self.rows))


class Figure(NamedTuple):
    """A picture of a page: what is drawn, and by which macro of pictures.html."""

    name: str
    title: str
    caption: str
    kind: str
    data: Any
    wide: bool = False


class Listing(NamedTuple):
    """Settings by name; shown on pages."""

    title: str
    items: Mapping[str, Any]


Block = Figure | Table | Listing


class Section(NamedTuple):
    """Blocks that belong together."""

    blocks: Sequence[Block]
    title: str = ""
    note: str = ""
    fold: str = ""
    """What a page shows in its place until it is opened; empty for a section that is open."""


class Mark(NamedTuple):
    """A fingerprint."""

    title: str
    digest: str
    remark: str


class Summary(NamedTuple):
    """All that is said of a record."""

    kind: str
    """What the record is: run, audit, …"""
    title: str
    badge: Badge | None = None
    subject: str = ""
    """What a terminal says beside the badge, where others have a title."""
    lines: Sequence[Line] = ()
    facts: Sequence[Fact] = ()
    sections: Sequence[Section] = ()
    warning: str = ""
    """The last words, on a terminal."""
    sketches: Sequence[Sketch] = ()
    """Small pictures of policies, for terminals and cards."""
    lead: str = ""
    """What the record is of, in a line; this and the rest is for pages."""
    heading: str = ""
    caption: str = ""
    mark: Mark | None = None
    maps: Maps | None = None
    """The numbers behind the maps."""

    def tables(self, on: On) -> list[Table]:
        """The tables that are shown there."""
        return [x for section in self.sections for x in section.blocks if isinstance(x, Table) and x.on & on and x.rows]

"""What a terminal shows of a summary: pictures of policies, the answer, figures, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from reprl.execution.terminal import fact_rows
from reprl.report.records import summarize
from reprl.report.sketch import WHOLE, Sketch, Square
from reprl.report.summary import Cell, On, Strong, Summary
from reprl.report.summary import Table as Rows

STATES = 24
"""Of a policy without a grid."""
_WIDTH = 100
_TONES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red", "plain": "bold green"}
_DOT = "·"


class Shown(NamedTuple):
    """A summary that rich can print."""

    summary: Summary

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        it = self.summary
        if it.sketches:
            yield from _pictures(it.sketches, min(options.max_width, _WIDTH) // len(it.sketches) - 4)
        if it.badge is not None and On.TERMINAL in it.badge.on:
            yield Text.assemble((it.badge.text, _TONES[it.badge.tone]), f" {it.subject}".rstrip())
        yield from (_line(each.parts) for each in it.lines if On.TERMINAL in each.on)
        if facts := [(fact.label, fact.text) for fact in it.facts if On.TERMINAL in fact.on]:
            yield fact_rows(facts)
        for table in it.tables(On.TERMINAL):
            yield Text()
            yield _table(table)
        if it.warning:
            yield Text(it.warning, "yellow")


def render(record: object) -> Shown:
    """Return what to print of a summary, or of a record that has one."""
    return Shown(record if isinstance(record, Summary) else summarize(record))


def _line(parts: tuple[str, ...]) -> Text:
    return Text.assemble(*((part, "bold" if isinstance(part, Strong) else "") for part in parts))


def _table(found: Rows) -> Table:
    table = Table(title=Text(found.title), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.caption_justify = "left"
    for head in found.head:
        table.add_column(head, overflow="fold")
    for row in found.rows[: found.first]:
        table.add_row(*map(_cell, row))
    table.caption = Text(f"and {found.more:,} more" if found.more else "")
    return table


def _cell(cell: str | Cell) -> Text:
    if isinstance(cell, str):
        return Text(cell)
    return Text.assemble((cell.text, "bold" if cell.look in ("strong", "digest") else ""), f" {cell.note}".rstrip())


def _pictures(sketches: Sequence[Sketch], width: int) -> Iterator[RenderableType]:
    """Draw policies side by side; where two differ stands out, cells without a decision are a dot."""
    panels = [
        Panel((_rows if sketch.grid is None else _grids)(sketch, width), title=Text(sketch.title), expand=False)
        for sketch in sketches
    ]
    yield Columns(panels) if len(panels) > 1 else panels[0]
    if sketches[0].idles:
        yield Text(f"{_DOT} {sketches[0].idles}", "dim")
    yield Text(WHOLE, "dim")


def _square(sketch: Sketch, square: Square) -> Text:
    if square.framed and not sketch.frame:
        return Text(square.name, "bold reverse red")
    return Text(_DOT, "dim") if square.idle else Text(square.name, "bold")


def _grids(sketch: Sketch, width: int) -> RenderableType:
    """A small map for every step."""
    world = sketch.world
    glyph = max((len(world.labels.action(a)) for a in range(world.n_actions)), default=1)
    across = max(1, width // max((sketch.grid or (0, 0))[1] * (glyph + 1) + 2, 9))
    grid = Table.grid(padding=(0, 3, 0, 0))
    maps = []
    for h in sketch.steps:
        squares = [[_square(sketch, each) for each in row] for row in sketch.board(h)]
        lines = [Text(" ").join(_padded(cell, glyph) for cell in row) for row in squares]
        maps.append(Text("\n").join([Text(sketch.step(h)), *lines]))
    for low in range(0, len(maps), across):
        last = low + across >= len(maps)
        grid.add_row(*(each if last else each.append("\n") for each in maps[low : low + across]))
    return _with_rest(grid, sketch.hidden(sketch.policy.n_states))


def _padded(text: Text, width: int) -> Text:
    text.pad_right(width - len(text))
    return text


def _rows(sketch: Sketch, width: int) -> RenderableType:
    """A row for every state, a column for every step; steps that do not fit beside each other go below."""
    from rich.console import Group

    states = sketch.states(STATES)
    names = [Text(sketch.world.labels.state(s)) for s in states]
    squares = {h: [_square(sketch, sketch.square(h, s)) for s in states] for h in sketch.steps}
    first = max([cell_len("state"), *(name.cell_len for name in names)])
    wide = {h: max([len(sketch.step(h, "")), *(cell.cell_len for cell in squares[h])]) + 1 for h in sketch.steps}
    parts: list[list[int]] = [[]]
    for h in sketch.steps:
        if parts[-1] and first + sum(wide[k] for k in parts[-1]) + wide[h] > width:
            parts.append([])
        parts[-1].append(h)
    tables = []
    for part in parts:
        table = Table(box=None, pad_edge=False)
        for head in ("state", *(sketch.step(h, "") for h in part)):
            table.add_column(head, no_wrap=True)
        for s, name in enumerate(names):
            table.add_row(name, *(squares[h][s] for h in part))
        tables.append(_with_rest(table, "" if part is parts[-1] else " "))
    return _with_rest(Group(*tables), sketch.hidden(len(states)))


def _with_rest(table: RenderableType, rest: str) -> RenderableType:
    from rich.console import Group

    return Group(table, Text(rest)) if rest else table

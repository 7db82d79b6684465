"""Plain-text tables of benchmark rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def render(rows: Sequence[Mapping[str, object]]) -> str:
    """Align rows under the union of their columns; a missing value is left blank."""
    columns, cells = _cells(rows)
    widths = [max([len(name), *(len(line[i]) for line in cells)]) for i, name in enumerate(columns)]
    lines = []
    for line in [columns, ["─" * width for width in widths], *cells]:
        first, *others = zip(line, widths, strict=True)
        lines.append("  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]).rstrip())
    return "\n".join(lines)


def markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """Write the same table for a page."""
    columns, cells = _cells(rows)
    lines = [columns, ["---"] * len(columns), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cells(rows: Sequence[Mapping[str, object]]) -> tuple[list[str], list[list[str]]]:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return columns, [[_show(row.get(name)) for name in columns] for row in rows]


def _show(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)

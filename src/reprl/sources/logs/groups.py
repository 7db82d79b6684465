"""Subgroups: the episodes of a log, part by part, as a column names them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from reprl.errors import InputError
from reprl.sources.logs.spec import text_of
from reprl.sources.logs.tables import GROUP, Chunk, Coded, Table

MOST = 50
"""Subgroups, at most."""
MISSING = "(missing)"


def open_groups(table: Table) -> dict[str, Table]:
    """Return the rows of every subgroup as a table, by its label; it must be the same in all rows of an episode."""
    names: dict[str, None] = {}
    last: tuple[Any, str] | None = None
    row = 0
    for chunk in table.chunks():
        texts = _texts(chunk[GROUP])
        group = np.array([*texts, MISSING], dtype=object)[chunk[GROUP].codes]
        episodes = chunk["episode"]
        same = episodes.codes[1:] == episodes.codes[:-1]
        changed = same & (group[1:] != group[:-1])
        here = (episodes.labels[episodes.codes[0]] if episodes.codes[0] >= 0 else None, str(group[0]))
        if changed.any() or (last is not None and last[0] == here[0] and last[1] != here[1]):
            place = row + (int(np.argmax(changed)) + 1 if changed.any() else 0)
            raise table.fault(place, GROUP, "must be the same in all rows of an episode, got another")
        names.update(dict.fromkeys(map(str, dict.fromkeys(group.tolist()))))
        if len(names) > MOST:
            raise InputError(
                f"subgroup must be a column of at most {MOST} labels, got more in {table.columns[GROUP]!r}"
            )
        last = (episodes.labels[episodes.codes[-1]] if episodes.codes[-1] >= 0 else None, str(group[-1]))
        row += group.size
    return {name: _part(table, name) for name in sorted(names)}


def _texts(column: Coded) -> list[str]:
    return [text_of("subgroup", label) for label in column.labels]


def _part(table: Table, name: str) -> Table:
    """The rows of one subgroup."""

    def chunks() -> Iterator[Chunk]:
        for chunk in table.chunks():
            group = np.array([*_texts(chunk[GROUP]), MISSING], dtype=object)[chunk[GROUP].codes]
            kept = group == name
            if kept.any():
                yield {
                    role: Coded(part.codes[kept], part.labels) if isinstance(part, Coded) else part[kept]
                    for role, part in chunk.items()
                    if role != GROUP
                }

    columns = {role: column for role, column in table.columns.items() if role != GROUP}
    return table._replace(columns=columns, chunks=chunks, size=0, found=None)

"""Tables of the stored measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.logs import plan

START, END = "<!-- experiments.logs: tables -->", "<!-- end of tables -->"
_COLUMNS = (
    "environment",
    "transitions",
    "pairs",
    "reprl: pairs that differ",
    "of those with two promises",
    "runs with a promise",
    "greedy: pairs that differ",
    "fitted: pairs that differ",
    "greedy, fitted: differ where reprl decides",
    "largest loss: reprl, greedy, fitted, practice",
    "unknown",
    "in interval",
    "CPU s a half",
)


def tables(measured: Mapping[str, Any]) -> str:
    """Return one row for each world and size that was measured."""
    lines = []
    for world in plan.WORLDS:
        for size in plan.SIZES:
            rows = [row for name, row in measured.items() if name.startswith(f"{world}/{size}#")]
            if rows:
                lines.append(_row(world, size, rows))
    head = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|\n"
    return head + "\n".join(lines) + "\n"


def _row(world: str, size: int, rows: list[Any]) -> str:
    def apart(name: str, what: str = "apart", among: list[Any] = rows) -> str:
        return f"{sum(row[name][what] > 0 for row in among)}/{len(among)}"

    both = [row for row in rows if all(row["sure"])]
    sure = sum(sum(row["sure"]) for row in rows)
    inside, runs = sum(sum(row["inside"]) for row in rows), 2 * len(rows)
    loss = ", ".join(f"{max(row[name]['loss'] for row in rows):.3f}" for name in ("reprl", "greedy", "fitted"))
    unknown = sum(sum(row["unknown"]) for row in rows) / runs
    seconds = sorted(row["seconds"] for row in rows)[len(rows) // 2]
    cells = (
        world,
        f"10{'⁵⁶⁷'[len(str(size)) - 6]}",
        str(len(rows)),
        apart("reprl"),
        apart("reprl", among=both),
        f"{sure}/{runs}",
        apart("greedy"),
        apart("fitted"),
        f"{apart('greedy', 'apart_decided')}, {apart('fitted', 'apart_decided')}",
        f"{loss}, {rows[0]['practice']:.3f}",
        f"{unknown:.2f}",
        f"{inside}/{runs}",
        f"{seconds:.1f}",
    )
    return f"| {' | '.join(cells)} |"

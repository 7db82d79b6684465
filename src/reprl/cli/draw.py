"""Policies and comparisons for people: arrows on a grid, a small table elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from reprl.artifacts.verify import Verification
    from reprl.mdp.policy import Policy
    from reprl.sources.environment import Environment

MAX_STEPS = 12
MAX_STATES = 24
_MAX_WIDTH = 100
_IDLE = "·"


def facts(rows: Sequence[tuple[str, object]]) -> Table:
    """A list of names and figures."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value if isinstance(value, Text) else Text(str(value)))
    return table


def table_of(*heads: str) -> Table:
    """An empty table that reads well with and without a terminal."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def print_policies(
    console: Console, policies: Sequence[Policy], world: Environment, titles: Sequence[str], idle: NDArray[np.bool_]
) -> None:
    """Draw policies side by side; cells in which they differ stand out, those without a decision are a dot."""
    apart = np.zeros(policies[0].table.shape, dtype=bool)
    for policy in policies[1:]:
        apart |= policy.differs(policies[0])
    width = min(console.width, _MAX_WIDTH) // len(policies) - 4
    panels: list[RenderableType] = []
    for policy, title in zip(policies, titles, strict=True):
        if world.labels.grid is None:
            picture: RenderableType = _rows(policy, world, apart, idle)
        else:
            picture = _grids(policy, world, apart, idle, width)
        panels.append(Panel(picture, title=Text(title), expand=False))
    console.print(Columns(panels) if len(panels) > 1 else panels[0])
    if idle.any():
        console.print(f"{_IDLE} no decision: hardly ever reached, or the episode is over", style="dim")
    console.print("within ε of the best as a whole; a single action may look odd", style="dim")


def _cell(
    policy: Policy, world: Environment, h: int, s: int, apart: NDArray[np.bool_], idle: NDArray[np.bool_]
) -> Text:
    if apart[h, s]:
        return Text(world.labels.action(int(policy.table[h, s])), "bold reverse red")
    return Text(_IDLE, "dim") if idle[h, s] else Text(world.labels.action(int(policy.table[h, s])), "bold")


def _grids(
    policy: Policy, world: Environment, apart: NDArray[np.bool_], idle: NDArray[np.bool_], width: int
) -> RenderableType:
    """A small map for every step."""
    assert world.labels.grid is not None
    rows, columns = world.labels.grid
    glyph = max((len(world.labels.action(a)) for a in range(world.n_actions)), default=1)
    each = max(columns * (glyph + 1) + 2, 9)
    across = max(1, width // each)
    steps = min(policy.horizon, MAX_STEPS)
    grid = Table.grid(padding=(0, 3, 0, 0))
    for low in range(0, steps, across):
        maps = []
        for h in range(low, min(low + across, steps)):
            text = Text("every step\n" if policy.stationary else f"step {h}\n", style="")
            for s in range(min(rows * columns, world.n_states)):
                cell = _cell(policy, world, h, s, apart, idle)
                text.append_text(cell)
                text.append(" " * (glyph - len(cell)))
                text.append("\n" if s % columns == columns - 1 else " ")
            text.rstrip()
            if low + across < steps:
                text.append("\n")
            maps.append(text)
        grid.add_row(*maps)
    if steps < policy.horizon:
        return Group(grid, Text(f"… and {policy.horizon - steps} more steps"))
    return grid


def _rows(policy: Policy, world: Environment, apart: NDArray[np.bool_], idle: NDArray[np.bool_]) -> RenderableType:
    """A row for every state, a column for every step."""
    steps, states = min(policy.horizon, MAX_STEPS), min(policy.n_states, MAX_STATES)
    table = Table(box=None, pad_edge=False)
    table.add_column("state", no_wrap=True)
    for h in range(steps):
        table.add_column("every step" if policy.stationary else str(h), no_wrap=True)
    for s in range(states):
        cells = (_cell(policy, world, h, s, apart, idle) for h in range(steps))
        table.add_row(Text(world.labels.state(s)), *cells)
    hidden = [
        f"{total - shown} more {what}"
        for total, shown, what in ((policy.n_states, states, "states"), (policy.horizon, steps, "steps"))
        if total > shown
    ]
    return Group(table, Text(f"… and {' and '.join(hidden)}")) if hidden else table


def print_comparison(console: Console, comparison: Verification) -> None:
    """Say whether two policies are the same; if not, where and by how much."""
    if comparison.same:
        console.print(Text("same policy", "bold green"))
        return
    console.print(Text("different policies", "bold red"))
    if comparison.different is None:
        if comparison.shapes is not None:
            console.print(f"their shapes (H, S) differ: {comparison.shapes[0]} and {comparison.shapes[1]}")
        else:
            console.print("only fingerprints are known; give policies or run folders to see where")
        return
    cells = comparison.cells or 1
    console.print(
        f"{comparison.different} of {cells} cells differ ({comparison.different / cells:.2%}); first of them:"
    )
    table = table_of("step", "state", "first", "second")
    for cell in comparison.first:
        names = (Text(comparison.labels.action(a)) for a in cell.actions)
        table.add_row(str(cell.step), Text(comparison.labels.state(cell.state)), *names)
    console.print(table)
    if comparison.values is not None:
        a, b = comparison.values
        console.print(f"values {a:.6g} and {b:.6g}: a difference of {abs(a - b):.3g}")

"""Names: what a report calls states and actions."""

from __future__ import annotations

from typing import NamedTuple

from reprl.sources.environment import Environment
from reprl.sources.logs.spec import ID as LOG
from reprl.storage.documents import plain

_DIRECTIONS = {
    **dict.fromkeys(("→", "right", "east"), 0),
    **dict.fromkeys(("↓", "down", "south"), 90),
    **dict.fromkeys(("←", "left", "west"), 180),
    **dict.fromkeys(("↑", "up", "north"), 270),
}


_JOINTS = (", ", " × ", " / ", " | ")
"""What stands between the two parts of an action's name."""


class Axes(NamedTuple):
    """Actions that are pairs, as their names say: one choice down, one across."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    """(row, column) of each action."""


def axes(world: Environment) -> Axes | None:
    """Return the two choices that every action makes, if the names have two parts and all combinations are there."""
    for joint in _JOINTS:
        parts = [name.split(joint) for name in world.labels.actions]
        if not parts or any(len(pair) != 2 for pair in parts):
            continue
        rows, columns = (tuple(dict.fromkeys(pair[i] for pair in parts)) for i in (0, 1))
        places = tuple((rows.index(one), columns.index(two)) for one, two in parts)
        if min(len(rows), len(columns)) > 1 and len(set(places)) == len(rows) * len(columns) == len(parts):
            return Axes(rows, columns, places)
    return None


def directions(world: Environment) -> list[int] | None:
    """Return where each action points, in degrees clockwise from right, if all of them point somewhere."""
    turns = [_DIRECTIONS[name] for name in map(_folded, world.labels.actions) if name in _DIRECTIONS]
    return turns if len(turns) == world.n_actions else None


def _folded(name: str) -> str:
    return name.strip().lower()


def describe_world(world: Environment, description: str = "") -> str:
    """Describe an environment in a line; an audit carries no words of its own for it."""
    if world.id == LOG:  # labels, thresholds and columns are for specialists
        return " · ".join(
            part
            for part in (description, f"{world.n_states - 1:,} states, {world.n_actions:,} actions, {world.criterion}")
            if part
        )
    options = ", ".join(f"{name} {value}" for name, value in plain(world.options).items())
    sizes = f"{world.n_states:,} states, {world.n_actions:,} actions, " if world.n_states else ""
    parts = (description, f"{sizes}{world.criterion}", options)
    return " · ".join(part for part in parts if part)


def state_name(world: Environment, s: int) -> str:
    """Return the name of a state, or its number."""
    return world.labels.states[s] if s < len(world.labels.states) else f"state {s}"


def action_name(world: Environment, a: int) -> str:
    """Return the name of an action, or its number."""
    return world.labels.actions[a] if a < len(world.labels.actions) else f"action {a}"


def unnamed(world: Environment) -> str:
    """Return why states or actions have no names; empty when they have."""
    found = (("states", world.labels.states), ("actions", world.labels.actions))
    missing = [noun for noun, names in found if not names]
    return f"the environment names no {' and no '.join(missing)}" if missing else ""


def short_names(world: Environment) -> list[str]:
    """Return one to three characters for each action: its name without what all share, or its number."""
    plain = [str(a) for a in range(world.n_actions)]
    names = [name.strip() for name in world.labels.actions]
    if not names:
        return plain
    if (pairs := axes(world)) is not None:
        ends = [tuple(part.split()[-1][:2] for part in side) for side in (pairs.rows, pairs.columns)]
        if all(len(set(side)) == len(side) for side in ends):
            return [f"{ends[0][r]}·{ends[1][c]}" for r, c in pairs.places]
    words = [name.split() for name in names]
    while all(len(parts) > 1 for parts in words) and len({parts[0] for parts in words}) == 1:
        words = [parts[1:] for parts in words]
    for length in (1, 2, 3):
        cut = [" ".join(parts)[:length] for parts in words]
        if all(cut) and len(set(cut)) == len(cut):
            return [text.upper() if text.isalpha() and length == 1 else text for text in cut]
    return plain

"""Names: what a report calls states and actions."""

from __future__ import annotations

from reprl.mdp.environment import Environment

_DIRECTIONS = {
    **dict.fromkeys(("→", "right", "east"), 0),
    **dict.fromkeys(("↓", "down", "south"), 90),
    **dict.fromkeys(("←", "left", "west"), 180),
    **dict.fromkeys(("↑", "up", "north"), 270),
}


def directions(world: Environment) -> list[int] | None:
    """Return where each action points, in degrees clockwise from right, if all of them point somewhere."""
    turns = [_DIRECTIONS[name] for name in map(_folded, world.labels.actions) if name in _DIRECTIONS]
    return turns if len(turns) == world.n_actions else None


def _folded(name: str) -> str:
    return name.strip().lower()


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
    words = [name.split() for name in names]
    while all(len(parts) > 1 for parts in words) and len({parts[0] for parts in words}) == 1:
        words = [parts[1:] for parts in words]
    for length in (1, 2, 3):
        cut = [" ".join(parts)[:length] for parts in words]
        if all(cut) and len(set(cut)) == len(cut):
            return [text.upper() if text.isalpha() and length == 1 else text for text in cut]
    return plain

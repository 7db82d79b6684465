"""Labels: names and layout for people, and how documents hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from reprl.errors import DocumentError, InputError, quote
from reprl.storage.documents import MAX_TEXT, digest
from reprl.storage.fields import Fields, Kind, optional, row, whole


class RewardMap(NamedTuple):
    """The affine map that brought original rewards from [low, high] to [0, 1]."""

    low: float = 0.0
    high: float = 1.0

    @property
    def width(self) -> float:
        """What rescaled rewards are times in their own units."""
        return self.high - self.low

    def forward(self, reward: float) -> float:
        """Return an original reward in units of [0, 1]."""
        return (reward - self.low) / (self.high - self.low)

    def restore(self, total: float, horizon: float) -> float:
        """Return a total of horizon rewards, or its expectation, in original units; discounted, of 1/(1 − γ)."""
        return horizon * self.low + total * (self.high - self.low)


class Labels(NamedTuple):
    """Names of states and actions, and the layout of pictures."""

    name: str = "mdp"
    description: str = ""
    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    grid: tuple[int, int] | None = None
    """(rows, columns) when state s sits at row s // columns, column s % columns; later states are off the grid."""
    reward_map: RewardMap = RewardMap()
    """How rewards were brought to [0, 1]; by default they were there already."""

    def check(self, n_states: int, n_actions: int) -> Labels:
        """Return the labels if there is a name for each state and action, or for none."""
        for what, names, wanted in (("states", self.states, n_states), ("actions", self.actions, n_actions)):
            if isinstance(names, str) or len(names) not in (0, wanted):
                raise InputError(f"labels.{what} must be {wanted} names or none, got {len(names)}: {quote(names)}")
        return self

    @property
    def digest(self) -> str | None:
        """SHA-256 of the names of states and actions, in order; None where neither have names."""
        if not self.states and not self.actions:
            return None
        return digest({"format": "reprl-names 1", "states": list(self.states), "actions": list(self.actions)})

    def difference(self, other: Labels) -> str:
        """Say where names differ first, of states or actions that both have names for; empty if nowhere."""
        for noun, mine, theirs in (("action", self.actions, other.actions), ("state", self.states, other.states)):
            if not mine or not theirs or mine == theirs:
                continue
            if len(mine) != len(theirs):
                return f"there are {len(mine)} names of {noun}s in the first and {len(theirs)} in the second"
            i = next(i for i, (one, two) in enumerate(zip(mine, theirs, strict=True)) if one != two)
            return f"{noun} {i} is {quote(mine[i])} in the first and {quote(theirs[i])} in the second"
        return ""

    def state(self, s: int) -> str:
        """The name of a state, or its number."""
        return self.states[s] if s < len(self.states) else str(s)

    def action(self, a: int) -> str:
        """The name of an action, or its number."""
        return self.actions[a] if a < len(self.actions) else str(a)


class Origin(NamedTuple):
    """The call of ``make`` that built an environment, so that a second team can repeat it."""

    id: str
    options: Mapping[str, Any]
    """Everything but the horizon."""


def printable_labels(labels: Labels) -> Labels:
    """Shorten unchecked names, and make them printable in one line."""

    def text(name: object) -> str:
        return "".join(x if x.isprintable() else " " for x in str(name))[:MAX_TEXT]

    return Labels(
        name=text(labels.name),
        description=text(labels.description),
        states=tuple(map(text, labels.states)),
        actions=tuple(map(text, labels.actions)),
        grid=None if labels.grid is None else (int(labels.grid[0]), int(labels.grid[1])),
    )


def label_fields(text: Kind, n_states: Any, n_actions: Any = None) -> dict[str, Kind]:
    """Return the fields of names in a document, for so many states and actions; None where that is not known."""
    return {
        "name": text,
        "description": text,
        "states": _names_of(text, n_states),
        "actions": _names_of(text, n_actions),
        "grid": optional(row("[rows, columns] or null", whole(1, None), whole(1, None))),
    }


def _names_of(text: Kind, count: Any) -> Kind:
    def read(where: str, value: Any, at: Fields) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise DocumentError(f"{where} must be a list of texts, got {quote(value)}")
        if value and at(count) not in (None, len(value)):
            raise DocumentError(f"{where} must be {at(count)} texts or none, got {len(value)}")
        return tuple(text.read(f"{where}[{i}]", item, at) for i, item in enumerate(value))

    return Kind(read)

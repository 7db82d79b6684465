"""Sketch: a policy as terminals and cards have room for it: a small map for every step, or a row for a state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.interface import Interface
from reprl.mdp.policy import Policy
from reprl.report.names import action_name, directions, short_names, state_name
from reprl.sources.environment import Environment

STEPS = 12
_TURNS = {0: "→", 90: "↓", 180: "←", 270: "↑"}
IDLE = "hardly ever reached by the policy, or the episode is over"
WHOLE = "quality is of the whole policy: a single action may be worse than the best one"


class Square(NamedTuple):
    """A cell of the table."""

    action: int
    name: str
    """Of the action."""
    sign: str
    """The same in a character or two."""
    title: str
    """Step, state and action in words."""
    idle: bool
    """Whether nothing was decided there."""
    framed: bool


class Sketch:
    """What to draw of a policy.

    Names are those that the policy carries where world is None; nothing was decided where idle, (H, S), and what is
    framed, (H, S), stands out. frame says what that means; empty where it goes without saying: terminals draw no
    others.
    """

    def __init__(
        self,
        policy: Policy,
        world: Environment | None = None,
        idle: NDArray[np.bool_] | None = None,
        framed: NDArray[np.bool_] | None = None,
        frame: str = "framed: a simulated second team takes another action",
        title: str = "",
    ) -> None:
        if world is None:
            interface = policy.interface or Interface()
            n_actions = max(len(interface.labels.actions), int(policy.table.max()) + 1)
            world = interface.world(policy.horizon, policy.n_states, n_actions)
        none = np.zeros(policy.table.shape, dtype=bool)
        self.policy, self.world, self.title = policy, world, title or world.title
        self.idle: NDArray[np.bool_] = none if idle is None else idle
        self.framed: NDArray[np.bool_] = none if framed is None else framed
        self.once = bool((policy.table == policy.table[0]).all())
        """Whether it does the same at every step, and is drawn once."""
        if self.once:
            self.idle, self.framed = self.idle.min(axis=0, keepdims=True), self.framed.max(axis=0, keepdims=True)
        self.steps = range(1 if self.once else min(policy.horizon, STEPS))
        grid, turns = world.labels.grid, directions(world)
        self.grid = grid if grid is not None and min(grid) > 1 and grid[0] * grid[1] <= policy.n_states else None
        self.signs = short_names(world) if turns is None else [_TURNS[turn] for turn in turns]
        self.frame = frame if self.framed.any() else ""
        self.idles = IDLE if self.idle.any() else ""

    def step(self, h: int, word: str = "step ") -> str:
        """A step in words."""
        return "every step" if self.once else f"{word}{h}"

    def states(self, most: int) -> list[int]:
        """Return the states to draw where so many fit: those that stand out, then those with a decision."""
        order = np.lexsort((self.idle.min(axis=0), 1 - self.framed.max(axis=0)))
        return sorted(order[:most].tolist())

    def state(self, s: int) -> str:
        """A state by its name, or its number."""
        return state_name(self.world, s)

    def square(self, h: int, s: int) -> Square:
        """Return a cell."""
        a = int(self.policy.table[h, s])
        name, sign = action_name(self.world, a), self.signs[a] if a < len(self.signs) else str(a)
        title = f"{self.step(h)}, {self.state(s)}: {name}"
        return Square(a, name.removeprefix("action "), sign, title, bool(self.idle[h, s]), bool(self.framed[h, s]))

    def board(self, h: int) -> Iterator[list[Square]]:
        """Return the rows of the grid at a step."""
        rows, columns = self.grid or (0, 0)
        for row in range(rows):
            yield [self.square(h, row * columns + column) for column in range(columns)]

    def actions(self) -> list[tuple[int, str, str]]:
        """Return number, sign and name of the actions that the policy takes."""
        used = np.unique(self.policy.table).tolist()
        names = [(a, self.signs[a], action_name(self.world, a).removeprefix("action ")) for a in used]
        return [(a, sign, "" if sign == name else name) for a, sign, name in names]

    def hidden(self, states: int) -> str:
        """Say what is left out where so many states are drawn."""
        steps = 0 if self.once else self.policy.horizon - len(self.steps)
        left = ((self.policy.n_states - states, "states"), (steps, "steps"))
        said = " and ".join(f"{count:,} more {noun}" for count, noun in left if count > 0)
        return f"… and {said}" if said else ""

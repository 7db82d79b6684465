"""Maps: a quantity at every step and state, on the environment's own grid or as a table of coloured cells.

Everything here says what is in which cell; pictures.html draws it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.report.names import action_name, axes, directions, short_names, state_name, unnamed
from reprl.report.shades import BLANK, CATEGORIES, NONE, Key, Levels, Scale, colour, image
from reprl.report.summary import Figure
from reprl.sources.environment import Environment

MAX_CELLS = 12_000
"""Cells that a page draws at most; of a larger table it draws the part that matters most, and says so."""
MAX_STEPS = 120
_STRIP = 12
"""Grids side by side at most; longer horizons get a slider."""
_LABELLED = 40
"""States whose names fit beside a table."""
_NAMED_COLUMNS = 8
"""States whose names fit above one."""
_WIDTH = 880
"""Pixels of a wide card beside the names of states, in which actions may be written out."""
_LETTERED = 24
"""Columns that leave room for a letter."""
EVERY = "every step"
_LISTED = 5_000
"""States that a page lists."""


class Moves(NamedTuple):
    """The actions to write into cells, (H, S), where they are faint, and where they are disputed."""

    actions: NDArray[np.int64]
    faint: NDArray[np.bool_]
    disputed: NDArray[np.bool_]

    def at(self, place: Any) -> Moves:
        """Return a part."""
        return Moves(self.actions[place], self.faint[place], self.disputed[place])


Drawing = dict[str, Any]
"""One map, as pictures.html takes it: rasters for each step or one for all, what stands in their cells, a legend."""


class Maps:
    """The figures over (h, s) of one page, and the numbers that its tooltips show.

    weight, (H, S), makes a state worth drawing where not all fit; worst opens a slider at the step with the largest
    weight.
    """

    def __init__(self, world: Environment, weight: NDArray[np.float64], *, worst: bool = False) -> None:
        H, S = world.horizon, world.n_states
        self.world = world
        self.steps = np.unique(np.linspace(0, H - 1, min(H, MAX_STEPS)).round().astype(np.int64))
        grid = world.labels.grid
        if grid is not None and grid[0] * grid[1] > S:
            grid = None
        room = max(1, MAX_CELLS // self.steps.size)
        room = min(room, _LABELLED) if grid is None else room  # without a place of its own, a state needs its name
        self.states = np.sort(np.argsort(-weight.sum(axis=0), kind="stable")[:room])
        self.grid = grid if grid is not None and min(grid) > 1 and self.states.size == S else None
        self.down = self.grid is None and grid is not None and (grid[0] == 1 or self.states.size > _LABELLED)
        """Whether steps go down and states across."""
        self.names = [action_name(world, a) for a in range(world.n_actions)]
        self.short = short_names(world)
        self.axes = axes(world)
        self.ramp = "action" if world.n_actions <= CATEGORIES else "actions"
        """The class of colours that tell actions apart."""
        self.opens = int(np.argmax(weight[self.steps].max(axis=1))) if worst else 0
        """Which of the steps a slider shows first."""
        self._told: list[tuple[str, NDArray[Any], Sequence[str]]] = []

    @property
    def note(self) -> str:
        """What the reader must know about the layout."""
        lines = ["Steps and states count from 0."]
        if missing := unnamed(self.world):
            lines.append(f"State names unknown: {missing}.")
        if self.steps.size < self.world.horizon:
            lines.append(f"{self.steps.size} of {self.world.horizon} steps are drawn, evenly spaced.")
        if self.states.size < self.world.n_states:
            lines.append(f"The {self.states.size:,} most relevant of {self.world.n_states:,} states are drawn.")
        if self.grid is not None and self.grid[0] * self.grid[1] < self.world.n_states:
            off = ", ".join(state_name(self.world, s) for s in range(self.grid[0] * self.grid[1], self.world.n_states))
            lines.append(f"States off the grid come last: {off[:200]}.")
        lines.append("Point at a cell, or tap it, for its numbers; the same cell is marked in every map.")
        return " ".join(lines)

    @property
    def listed(self) -> bool:
        """Whether states are so many that a table to search in serves better than a map alone."""
        return self.grid is None and self.world.n_states > _LABELLED

    @property
    def sliding(self) -> bool:
        """Whether the grids are shown one step at a time."""
        return self.grid is not None and self.steps.size > _STRIP

    def tell(self, label: str, values: NDArray[Any], names: Sequence[str] = ()) -> None:
        """Add a table to the tooltips; names replace whole numbers."""
        self._told.append((label, values, names))

    def data(self) -> dict[str, Any]:
        """Return what the script needs: names, and every table by selected step and state."""
        tables = []
        for label, values, names in self._told:
            part = np.asarray(values)[np.ix_(self.steps, self.states)]
            whole = bool((part == np.floor(part)).all())
            rows = [[int(x) if whole else float(f"{x:.4g}") for x in row] for row in part.tolist()]
            tables.append({"label": label, "names": list(names), "values": rows})
        return {
            "steps": self.steps.tolist(),
            "states": [state_name(self.world, int(s)) for s in self.states],
            "columns": 0 if self.grid is None else self.grid[1],
            "down": self.down,
            "tables": tables,
        }

    def figure(self, name: str, title: str, caption: str, *scales: Scale, tabs: Sequence[str] = ()) -> Figure:
        """Return a figure of one map, or of several of which one is shown at a time."""
        drawn = [self.draw(scale, ", ".join((title, *tabs[i : i + 1]))) for i, scale in enumerate(scales)]
        return Figure(name, title, caption, "maps", [*zip(tabs or [""], drawn, strict=True)])

    def policy(
        self,
        actions: NDArray[np.int64],
        ignored: NDArray[np.bool_],
        disputed: NDArray[np.bool_] | None = None,
        words: tuple[str, str] = ("Policy", "some simulated second team takes another action"),
    ) -> Figure:
        """Return the figure of the policy: arrows on a grid, letters and colours elsewhere; disputed cells framed."""
        framed = np.zeros(ignored.shape, dtype=bool) if disputed is None else disputed
        once = _alike(actions)
        if once:
            ignored, framed = (np.broadcast_to(row, actions.shape) for row in (ignored.all(0), framed.any(0)))
        crossed = self.axes is not None and self.ramp == "actions"
        keys = [
            Key(colour(a), "" if name.removeprefix("action ") == short else name, short)
            for a, (name, short) in enumerate(zip(self.names, self.short, strict=True))
            if not crossed
        ]
        if ignored.any():
            keys.append(Key("none", "ignored: too rarely reached to matter"))
        if framed.any():
            keys.append(Key("framed", words[1]))
        scale = Scale(self.ramp, np.where(ignored, NONE, actions), keys)
        drawn = self.draw(scale, "policy", Moves(actions, ignored, framed))
        text = f"What to do in each state, {'at every step' if once else 'from the first step to the last'}."
        return Figure("policy", words[0], text, "policy", (self, drawn, self.crossed() if crossed else None), wide=True)

    def tints(self) -> list[str]:
        """Return the colours of more actions than the theme has: by both choices of a pair, or around the circle."""
        found = []
        for a in range(self.world.n_actions if self.ramp == "actions" else 0):
            tint = f"color-mix(in oklab,oklch(.65 .17 {137.508 * a % 360:.1f}) 42%,var(--card))"
            if self.axes is not None:
                (r, c), rows, columns = self.axes.places[a], len(self.axes.rows) - 1, len(self.axes.columns) - 1
                one, two = (
                    f"color-mix(in oklab,var(--hue{k}) {100 * share:.0f}%,var(--card))"
                    for k, share in ((1, r / rows), (0, c / columns))
                )
                tint = f"color-mix(in oklab,{one},{two})"
            found.append(tint)
        return found

    def crossed(self) -> tuple[Sequence[str], list[tuple[str, list[Key]]]]:
        """Return the legend of actions that are pairs: one choice across, one down."""
        assert self.axes is not None
        at = {place: a for a, place in enumerate(self.axes.places)}
        columns = range(len(self.axes.columns))
        rows = [
            (name, [Key(colour(at[r, c]), "", self.short[at[r, c]]) for c in columns])
            for r, name in enumerate(self.axes.rows)
        ]
        return self.axes.columns, rows

    def listing(
        self, actions: NDArray[np.int64], ignored: NDArray[np.bool_], visits: NDArray[np.float64]
    ) -> dict[str, Any]:
        """Return a policy over many states as a table: the stretches of equal actions of each, and its samples.

        States with most samples, where there are too many for a page; all tables are (H, S).
        """
        total = visits.sum(axis=0)
        states = np.sort(np.argsort(-total, kind="stable")[:_LISTED]).tolist()
        rows = []
        for s in states:
            kinds = np.where(ignored[:, s], NONE, actions[:, s])
            starts = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), kinds.size]
            parts = [(int(kinds[low]), high - low) for low, high in pairwise(starts)]
            named = [(colour(a), n, "" if a == NONE else self.names[a]) for a, n in parts]
            rows.append((state_name(self.world, s), named, total[s]))
        return {
            "ramp": self.ramp,
            "steps": self.world.criterion.steps,
            "rows": rows,
            "left": self.world.n_states - len(states),
        }

    def draw(self, scale: Scale, title: str, moves: Moves | None = None) -> Drawing:
        """Return one map, with actions in its cells if given: once, if they are the same at every step."""
        once = moves is not None and _alike(moves.actions)
        part = np.ix_(self.steps[: 1 if once else None], self.states)
        levels = scale.levels[part]
        moves = None if moves is None else moves.at(part)
        if self.grid is None:
            return self._matrix(scale, levels, title, moves, once=once)
        width = max(92, 26 * self.grid[1])
        count = len(levels)
        wide, half, phone = (_even(count, max(1, room // width)) for room in (1040, 500, 320))
        panels = [self._panel(i, levels[i], title, None if moves is None else moves.at(i)) for i in range(count)]
        if once:
            panels[0] |= {"title": f"{title}, {EVERY}", "label": EVERY, "every": True}
        style, sliding = f"--wide:{wide};--half:{half};--phone:{phone}", self.sliding and not once
        return {"scale": scale, "rasters": panels, "style": style, "sliding": sliding, "matrix": False}

    def _panel(self, i: int, levels: Levels, title: str, moves: Moves | None) -> Drawing:
        """Return the grid of one step."""
        columns = (self.grid or (0, 0))[1]
        rows = math.ceil(levels.size / columns)
        board = np.full(rows * columns, BLANK)
        board[: levels.size] = levels
        label, turns = self.world.criterion.step(int(self.steps[i])), directions(self.world)
        found = {
            "title": f"{title}, {label}",
            "label": label,
            "step": i,
            "every": False,
            "style": f"aspect-ratio:{columns}/{rows}",
        }
        found |= image(board.reshape(rows, columns))
        if moves is None or turns is None:
            return found | {"letters": self._marks(moves, rows, columns), "arrows": ()}
        return found | {"arrows": [(turns[a], *how) for a, *how in self._marks(moves, 1, 1)], "letters": ()}

    def _marks(self, moves: Moves | None, rows: int, columns: int) -> list[tuple[int, bool, bool]]:
        """Return (action, faint, disputed) of every cell, where there is room for a letter."""
        full = moves is None or columns > _LETTERED or rows > 60
        return [] if full else [*zip(*(table.ravel().tolist() for table in moves or ()), strict=True)]

    def _matrix(self, scale: Scale, levels: Levels, title: str, moves: Moves | None, *, once: bool) -> Drawing:
        """Return a table of steps and states with names beside it."""
        names = [state_name(self.world, int(s)) for s in self.states]
        steps = [EVERY] if once else [str(h) for h in self.steps.tolist()]
        if self.down:
            left, top = steps, names if len(names) <= _NAMED_COLUMNS else [str(s) for s in self.states.tolist()]
        else:
            left, top, levels = names, steps, levels.T
            moves = None if moves is None else Moves(moves.actions.T, moves.faint.T, moves.disputed.T)
        rows, columns = levels.shape
        height = 26 if rows <= 24 else 20 if rows <= 60 else max(3, 1200 // rows)
        raster = {"title": title, "step": None, "every": once, "style": f"height:{rows * height}px"} | image(levels)
        return {
            "scale": scale,
            "rasters": [raster | {"letters": self._marks(moves, rows, columns), "arrows": ()}],
            "matrix": True,
            "heads": top,
            "side": left,
            "height": height,
            "down": self.down,
            "named": top is names,
            "wordy": columns * (7.5 * max(map(len, self.names)) + 10) <= _WIDTH,
        }


def _alike(actions: NDArray[np.int64]) -> bool:
    """Whether there are several steps, and actions, (H, S), are the same at each."""
    return len(actions) > 1 and bool((actions == actions[0]).all())


def _even(count: int, most: int) -> int:
    """Return how many to a row, at most so many, so that the last row is fullest."""
    options = range(max(1, (most + 1) // 2), min(most, count) + 1)
    return min(options, key=lambda n: (-count % n, -n), default=count)

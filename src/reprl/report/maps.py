"""Maps: a quantity at every step and state, on the environment's own grid or as a table of coloured cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.report.names import Axes, action_name, axes, directions, short_names, state_name, unnamed
from reprl.report.page import escape, figure
from reprl.report.shades import BLANK, NONE, Levels, Scale, cells
from reprl.report.theme import CATEGORIES
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


class Moves(NamedTuple):
    """The actions to write into cells, (H, S), where they are faint, and where they are disputed."""

    actions: NDArray[np.int64]
    faint: NDArray[np.bool_]
    disputed: NDArray[np.bool_]

    def at(self, place: Any) -> Moves:
        """Return a part."""
        return Moves(self.actions[place], self.faint[place], self.disputed[place])

    @property
    def turned(self) -> Moves:
        """Steps and states changed about."""
        return Moves(self.actions.T, self.faint.T, self.disputed.T)


class Maps:
    """The figures over (h, s) of one page, and the numbers that its tooltips show.

    Args:
        world: sizes and names.
        weight: (H, S), what makes a state worth drawing where not all fit.
    """

    def __init__(self, world: Environment, weight: NDArray[np.float64]) -> None:
        """Choose the steps and states to draw and how to lay them out."""
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
        self.steps_down = self.grid is None and grid is not None and (grid[0] == 1 or self.states.size > _LABELLED)
        self.tables: list[dict[str, Any]] = []
        self.short = short_names(world)
        self.axes = axes(world)

    @property
    def note(self) -> str:
        """What the reader must know about the layout; plain text."""
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

    def slider(self) -> str:
        """Return the control of the step, where the grids do not fit side by side."""
        if not self.sliding:
            return ""
        last = self.steps.size - 1
        return (
            '<div class="slider card js-only"><label for="step">Step <output id="step-shown">0</output></label>'
            f'<input type="range" id="step" min="0" max="{last}" value="0"></div>'
        )

    def data(self) -> dict[str, Any]:
        """Return what the script needs: names, and every table by selected step and state."""
        return {
            "steps": self.steps.tolist(),
            "states": [state_name(self.world, int(s)) for s in self.states],
            "columns": 0 if self.grid is None else self.grid[1],
            "down": self.steps_down,
            "tables": self.tables,
        }

    def tell(self, label: str, values: NDArray[np.float64] | NDArray[np.int64], names: Sequence[str] = ()) -> None:
        """Add a table to the tooltips; names replace whole numbers."""
        part = np.asarray(values)[np.ix_(self.steps, self.states)]
        whole = bool((part == np.floor(part)).all())
        rows = (
            [[int(x) for x in row] for row in part.tolist()]
            if whole
            else [[float(f"{x:.4g}") for x in row] for row in part.tolist()]
        )
        self.tables.append({"label": label, "names": list(names), "values": rows})

    def figure(self, name: str, title: str, caption: str, scale: Scale, wide: bool = False) -> str:
        """Return a card with one map."""
        body = self._draw(scale.ramp, scale.levels, title) + scale.legend
        return figure(name, title, caption, body, wide)

    def layers(self, name: str, title: str, caption: str, layers: Sequence[tuple[str, Scale]]) -> str:
        """Return a card with several maps, one of them shown at a time."""
        tabs = "".join(
            f'<button type="button" data-layer="{i}">{escape(tab)}</button>' for i, (tab, _) in enumerate(layers)
        )
        maps = "".join(
            f'<div class="layer" data-layer="{i}"><p class="layer-name">{escape(tab)}</p>'
            f"{self._draw(scale.ramp, scale.levels, f'{title}, {tab}')}{scale.legend}</div>"
            for i, (tab, scale) in enumerate(layers)
        )
        control = f'<div class="tabs js-only">{tabs}</div>' if len(layers) > 1 else ""
        return figure(name, title, caption, f'<div class="layers">{control}{maps}</div>')

    def policy(
        self,
        actions: NDArray[np.int64],
        ignored: NDArray[np.bool_],
        disputed: NDArray[np.bool_] | None = None,
        words: tuple[str, str] = ("Policy", "some simulated second team does something else"),
    ) -> str:
        """Return the card of the policy: arrows on a grid, letters and colours elsewhere; disputed cells framed.

        Args:
            actions: (H, S).
            ignored: (H, S), where nothing was decided.
            disputed: (H, S), what is framed.
            words: the title, and what a frame means.
        """
        levels = np.where(ignored, NONE, actions)
        framed = np.zeros(ignored.shape, dtype=bool) if disputed is None else disputed
        legend = self._policy_legend(bool(ignored.any()), words[1] if framed.any() else "")
        body = self.style() + self._draw(self.ramp, levels, "policy", Moves(actions, ignored, framed)) + legend
        return figure("policy", words[0], "What to do in each state, from the first step to the last.", body, wide=True)

    @property
    def ramp(self) -> str:
        """The class of colours that tell actions apart."""
        return "action" if self.world.n_actions <= CATEGORIES else "actions"

    def style(self) -> str:
        """Return the colours of more actions than the theme has: by both choices of a pair, or around the circle."""
        if self.ramp == "action":
            return ""
        rules = []
        for a in range(self.world.n_actions):
            tint = f"color-mix(in oklab,oklch(.65 .17 {137.508 * a % 360:.1f}) 42%,var(--card))"
            if self.axes is not None:
                (r, c), rows, columns = self.axes.places[a], len(self.axes.rows) - 1, len(self.axes.columns) - 1
                one, two = (
                    f"color-mix(in oklab,var(--hue{k}) {100 * share:.0f}%,var(--card))"
                    for k, share in ((1, r / rows), (0, c / columns))
                )
                tint = f"color-mix(in oklab,{one},{two})"
            rules.append(f".actions .l{a}{{stroke:{tint}}}.actions i.l{a}{{background:{tint}}}")
        return f"<style>{''.join(rules)}</style>"

    def _policy_legend(self, some_ignored: bool, framed: str) -> str:
        keys = [] if self.axes is None or self.ramp == "action" else [self._crossed(self.axes)]
        for a in range(0 if keys else self.world.n_actions):
            name = action_name(self.world, a)
            text = "" if name.removeprefix("action ") == self.short[a] else escape(name)
            keys.append(f'<span class="key"><i class="l{a}">{escape(self.short[a])}</i>{text}</span>')
        if some_ignored:
            reason = "ignored: too rarely reached to matter"
            keys.append(f'<span class="key"><i class="none"></i>{reason}</span>')
        if framed:
            keys.append(f'<span class="key"><i class="framed"></i>{escape(framed)}</span>')
        return f'<div class="legend {self.ramp}">{"".join(keys)}</div>'

    def _crossed(self, pairs: Axes) -> str:
        """The legend of actions that are pairs: one choice down, one across."""
        number = {place: a for a, place in enumerate(pairs.places)}
        top = "".join(f'<th scope="col">{escape(name)}</th>' for name in pairs.columns)
        rows = "".join(
            f'<tr><th scope="row">{escape(name)}</th>'
            + "".join(
                f'<td><i class="l{number[r, c]}">{escape(self.short[number[r, c]])}</i></td>'
                for c in range(len(pairs.columns))
            )
            + "</tr>"
            for r, name in enumerate(pairs.rows)
        )
        return f'<table class="crossed"><thead><tr><th></th>{top}</tr></thead><tbody>{rows}</tbody></table>'

    def _draw(self, ramp: str, levels: Levels, title: str, moves: Moves | None = None) -> str:
        """Return the cells of one map, and the actions in them if given."""
        part = np.ix_(self.steps, self.states)
        levels = levels[part]
        if moves is not None:
            moves = moves.at(part)
        if self.grid is None:
            return self._matrix(ramp, levels, title, moves)
        panels = "".join(
            self._panel(i, ramp, levels[i], title, None if moves is None else moves.at(i))
            for i in range(self.steps.size)
        )
        return f'<div class="panels{" sliding" if self.sliding else ""}" style="{self._columns()}">{panels}</div>'

    def _columns(self) -> str:
        """How many grids stand side by side in a wide card, in a half one and on a phone."""
        width = max(92, 26 * (self.grid or (0, 0))[1])
        wide, half, phone = (_even(self.steps.size, max(1, room // width)) for room in (1040, 500, 320))
        return f"--wide:{wide};--half:{half};--phone:{phone}"

    def _panel(self, i: int, ramp: str, levels: Levels, title: str, moves: Moves | None) -> str:
        """Return the grid of one step."""
        columns = (self.grid or (0, 0))[1]
        rows = math.ceil(levels.size / columns)
        board = np.full(rows * columns, BLANK)
        board[: levels.size] = levels
        inside = "" if moves is None else self._arrows(moves, columns, rows)
        h = int(self.steps[i])
        step = self.world.criterion.step(h, "h =")
        return (
            f'<div class="panel" data-step="{i}"><p class="step">{step}</p>'
            f'<div class="raster {ramp}" tabindex="0" role="img" aria-label="{escape(title)}, step {h}" '
            f'data-step="{i}" data-rows="{rows}" data-columns="{columns}" style="aspect-ratio:{columns}/{rows}">'
            f"{cells(board.reshape(rows, columns))}{inside}</div></div>"
        )

    def _arrows(self, moves: Moves, columns: int, rows: int) -> str:
        turns = directions(self.world)
        if turns is None:
            return self._letters(moves, columns, rows)
        marks = []
        for s, (a, faint) in enumerate(zip(moves.actions.tolist(), moves.faint.tolist(), strict=True)):
            place = f"translate({s % columns + 0.5:g} {s // columns + 0.5:g})rotate({turns[a]})"
            marks.append(f'<use href="#arrow" transform="{place}" class="{"dim" if faint else ""}"/>')
        for s in np.flatnonzero(moves.disputed).tolist():
            corner = f'x="{s % columns + 0.06:g}" y="{s // columns + 0.06:g}"'
            marks.append(f'<rect class="framed" {corner} width=".88" height=".88"/>')
        return f'<svg class="arrows" viewBox="0 0 {columns} {rows}" aria-hidden="true">{"".join(marks)}</svg>'

    def _letters(self, moves: Moves, columns: int, rows: int) -> str:
        if columns > _LETTERED or rows > 60:
            return ""
        names = [action_name(self.world, a) for a in range(self.world.n_actions)]
        wordy = self.grid is None and columns * (7.5 * max(map(len, names)) + 10) <= _WIDTH
        text = [
            f'<span class="full">{escape(name)}</span><span class="brief">{escape(short)}</span>'
            if wordy and name != short
            else escape(short)
            for name, short in zip(names, self.short, strict=True)
        ]
        marks = "".join(
            f'<b class="{"dim" if faint else ""}{" framed" if disputed else ""}">{text[a]}</b>'
            for a, faint, disputed in zip(*(table.ravel().tolist() for table in moves), strict=True)
        )
        shape = f"grid-template:repeat({rows},minmax(0,1fr))/repeat({columns},minmax(0,1fr))"
        return f'<div class="letters" style="{shape}" aria-hidden="true">{marks}</div>'

    def _matrix(self, ramp: str, levels: Levels, title: str, moves: Moves | None) -> str:
        """Return a table of steps and states with names beside it."""
        names = [state_name(self.world, int(s)) for s in self.states]
        steps = [str(h) for h in self.steps.tolist()]
        if self.steps_down:
            left, top = steps, names if len(names) <= _NAMED_COLUMNS else [str(s) for s in self.states.tolist()]
        else:
            left, top = names, steps
            levels = levels.T
            moves = None if moves is None else moves.turned
        rows, columns = levels.shape
        inside = "" if moves is None else self._letters(moves, columns, rows)
        height = 26 if rows <= 24 else 20 if rows <= 60 else max(3, 1200 // rows)
        return (
            f'<div class="matrix{" narrow" if self.steps_down else ""}">'
            f'<p class="axis">{"step ↓ state →" if self.steps_down else "state ↓ step →"}</p>'
            f"{_heads(top, top is names)}{_side(left, height)}"
            f'<div class="raster {ramp}" tabindex="0" role="img" aria-label="{escape(title)}" data-rows="{rows}" '
            f'data-columns="{columns}" style="height:{rows * height}px">{cells(levels)}{inside}</div></div>'
        )


def _even(count: int, most: int) -> int:
    """Return how many to a row, at most so many, so that the last row is fullest."""
    options = range(max(1, (most + 1) // 2), min(most, count) + 1)
    return min(options, key=lambda n: (-count % n, -n), default=count)


def _heads(names: list[str], long: bool) -> str:
    stride = math.ceil(len(names) / 12)
    marks = "".join(
        f'<span style="grid-column:{k + 1}">{escape(name)}</span>' for k, name in enumerate(names) if k % stride == 0
    )
    shape = f"grid-template-columns:repeat({len(names)},minmax(0,1fr))"
    return f'<div class="heads{" names" if long else ""}" style="{shape}">{marks}</div>'


def _side(names: list[str], height: int) -> str:
    stride = math.ceil(16 / height)
    marks = "".join(
        f'<span title="{escape(name)}">{escape(name)}</span>' if k % stride == 0 else "<span></span>"
        for k, name in enumerate(names)
    )
    return f'<div class="side" style="grid-template-rows:repeat({len(names)},{height}px)">{marks}</div>'

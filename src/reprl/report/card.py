"""Card: what a notebook shows of a policy, a run, an audit or a comparison; colours fit a light and a dark page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.folder import StoredRun
from reprl.artifacts.verify import Verification
from reprl.auditing.agent_record import GRADE, AgentReport
from reprl.auditing.comparison import Comparison, worth_words
from reprl.auditing.policies import policy_lines
from reprl.auditing.record import AuditReport, Cell
from reprl.errors import InputError, quote
from reprl.learning.result import LearnResult
from reprl.mdp.interface import Interface
from reprl.mdp.policy import Policy
from reprl.report.names import action_name, directions, short_names, state_name
from reprl.report.page import escape, number, percent
from reprl.report.theme import HUES
from reprl.sources.environment import Environment

_STEPS, _STATES, _ROWS = 12, 16, 6
"""Steps and states of a map, and rows of a table, that a card shows."""
_TURNS = {0: "→", 90: "↓", 180: "←", 270: "↑"}
_TONES = {"good": "#0b8f62", "warn": "#b87400", "bad": "#c8322e", "plain": "#6b7785"}
_STATUS = {"proven": "good", "certified": "good", "rehearsed": "good", "heuristic": "warn", "none": "bad"}
_VERDICT = {"rejected": "bad", "not rejected": "plain", "undecided": "warn"}
_MONO = "font-family:ui-monospace,Menlo,Consolas,monospace"
_MUTED = "opacity:.7;font-size:12px"
_CELL = "text-align:left;padding:3px 12px 3px 0;border:0;background:none"


def card(thing: object) -> str:
    """Return the HTML that a notebook shows of an object.

    Args:
        thing: a Policy, a result of ``learn`` or ``load_run``, an audit, a comparison, or a verification of two runs.
    """
    if isinstance(thing, Policy):
        world = _world(thing)
        return _card(f"Policy for {world.title}", _print(thing), _map(thing, world))
    if isinstance(thing, LearnResult | StoredRun):
        return _run(thing)
    if isinstance(thing, AuditReport):
        return _audit(thing)
    if isinstance(thing, AgentReport):
        return _agents(thing)
    if isinstance(thing, Comparison):
        return _comparison(thing)
    if isinstance(thing, Verification):
        return _verification(thing)
    raise InputError(f"card must be of a policy, a run, an audit or a comparison, got {quote(thing)}")


def _run(run: LearnResult | StoredRun) -> str:
    record = run.receipt
    world, promise, found = run.environment, record.guarantee, record.rehearsal
    if promise.status == "none":
        said = "Nothing is promised of this policy."
    else:
        said = (
            "A second run on fresh data ends in this very policy with probability ≥ "
            f"{percent(max(0.0, 1 - promise.rho))}; it is within {number(promise.epsilon)} of the best with "
            f"probability ≥ {percent(max(0.0, 1 - promise.delta))}."
        )
    lines = [f"{_badge(promise.status, _STATUS[promise.status])} {escape(said)}"]
    if found is not None:
        lines.append(f"Rehearsal: {escape(found)}.")
    episodes = f" in {record.episodes:,} episodes" if record.episodes else ""
    seed = f"shared seed {run.recipe.shared_seed}, to be published"
    lines.append(f"{record.samples:,} samples{episodes}, {record.seconds:.3g} s · {seed}")
    idle = record.tiers.ignorable
    disputed = None if found is None else found.apart > 0.0
    return _card(world.title, _print(run.policy), _lines(lines), _map(run.policy, world, idle, disputed))


def _audit(report: AuditReport) -> str:
    low, high = report.interval
    head = (
        f"{_badge(f'ρ = {report.rho:g} {report.verdict}', _VERDICT[report.verdict])} {report.disagreements} of "
        f"{report.pairs} pairs differ; 95\u00a0% interval [{low:.3g}, {high:.3g}]."
    )
    said = [f"{escape(line)}." for line in policy_lines(report)]
    lines = [head, *said, f"{number(round(report.samples))} samples a run · repeat with seed {report.seed}"]
    rows = [
        (
            f"step {cell.step}, {state_name(report.environment, cell.state)}",
            percent(cell.disagreement),
            _often(cell),
            "—" if cell.stake is None else "exact tie" if cell.stake == 0.0 else number(cell.stake),
            ", ".join(f"{action_name(report.environment, a)} {share:.0%}" for a, share in cell.actions[:4]),
        )
        for cell in report.cells[:_ROWS]
    ]
    played = any(cell.visited is not None for cell in report.cells)
    head_row = ("where", "differ", "visited" if played else "reachable", "at stake", "chosen")
    table = _table(head_row, rows, len(report.cells))
    return _card(f"Audit: {report.learner} on {report.environment.title}", _lines(lines), table)


def _often(cell: Cell) -> str:
    """How often a cell can be, or was, come to."""
    often = cell.visited if cell.reachability is None else cell.reachability
    return "—" if often is None else percent(often)


def _agents(report: AgentReport) -> str:
    low, high = report.interval
    tone = "bad" if report.verdict == "rejected" else "plain"
    claim = f"ρ = {report.rho:g} at γ = {report.gamma:g} {report.verdict}"
    count = (
        f"{report.disagreements} of {len(report.pairs)} pairs act differently in more than {percent(report.gamma)} of "
        f"the states met; 95\u00a0% interval [{low:.3g}, {high:.3g}]."
    )
    mean = report.distance
    lines = [
        f"{_badge(claim, tone)} {count}",
        f"Grade: {GRADE} · mean distance {mean.mean:.3g} [{mean.low:.3g}, {mean.high:.3g}]",
        f"{number(round(report.samples))} samples a training · repeat with seed {report.seed}",
    ]
    rows = [
        (
            str(k),
            percent(pair.distance),
            f"{percent(pair.interval[0])} to {percent(pair.interval[1])}",
            f"{pair.returns[0]:.4g} and {pair.returns[1]:.4g}",
        )
        for k, pair in enumerate(report.pairs[:_ROWS])
    ]
    table = _table(("pair", "distance", "95 %", "returns"), rows, len(report.pairs))
    return _card(f"Agents: {report.learner} on {report.environment}", _lines(lines), table)


def _comparison(found: Comparison) -> str:
    rows = [
        (
            row.learner,
            row.access,
            "not reached" if row.samples is None else number(round(row.samples)),
            f"{row.shown.disagreement:.2g} [{row.shown.interval[0]:.2g}, {row.shown.interval[1]:.2g}]",
            worth_words(row.shown),
        )
        for row in sorted(found.rows, key=lambda row: (row.access, row.samples is None, row.samples or 0.0))
    ]
    target = f"disagreement ≤ {found.rho:g}" + ("" if found.black_box else f" and mean loss ≤ {found.epsilon:g}")
    line = f"Samples a run to {target}; up to {found.pairs} pairs"
    head = ("learner", "access", "samples", "disagreement there", "value" if found.black_box else "loss")
    return _card(f"Comparison on {found.environment.title}", _lines([escape(line)]), _table(head, rows, len(rows)))


def _verification(found: Verification) -> str:
    mark = _badge("same policy", "good") if found.same else _badge("different policies", "bad")
    lines = [mark]
    if found.different is not None and found.cells is not None and not found.same:
        lines[0] += f" in {found.different:,} of {found.cells:,} cells"
    if found.values is not None:
        lines.append(f"Values {found.values[0]:.6g} and {found.values[1]:.6g}.")
    names = found.labels
    rows = [
        (f"step {cell.step}, {names.state(cell.state)}", *(names.action(a) for a in cell.actions))
        for cell in found.first[:_ROWS]
    ]
    return _card("Two runs", _lines(lines), _table(("where", "first", "second"), rows, found.different or 0))


def _world(policy: Policy) -> Environment:
    """A record with the names that a policy carries."""
    interface = policy.interface or Interface()
    n_actions = max(len(interface.labels.actions), int(policy.table.max()) + 1)
    return interface.world(policy.horizon, policy.n_states, n_actions)


def _map(
    policy: Policy,
    world: Environment,
    idle: NDArray[np.bool_] | None = None,
    disputed: NDArray[np.bool_] | None = None,
) -> str:
    """Steps side by side on a grid; elsewhere a row for every state."""
    none = np.zeros(policy.table.shape, dtype=bool)
    paint = _Paint(world, policy, none if idle is None else idle, none if disputed is None else disputed)
    steps = range(min(policy.horizon, _STEPS))
    grid = world.labels.grid
    if grid is not None and min(grid) > 1 and grid[0] * grid[1] <= min(policy.n_states, 144):
        body = "".join(_board(paint, h, grid) for h in steps)
        body = f'<div style="display:flex;flex-wrap:wrap;gap:10px 16px">{body}</div>'
        rest = _rest((policy.horizon - len(steps), "steps"))
    else:
        states = range(min(policy.n_states, _STATES))
        heads = "".join(f'<th style="{_CELL};{_MUTED};text-align:center;padding:0 2px">{h}</th>' for h in steps)
        rows = "".join(
            f'<tr style="background:none"><td style="{_CELL}">{escape(state_name(world, s))}</td>'
            + "".join(f'<td style="border:0;padding:1px">{paint(h, s)}</td>' for h in steps)
            + "</tr>"
            for s in states
        )
        corner = f'<th style="{_CELL};{_MUTED}">state ↓ step →</th>'
        body = f'<table style="border-collapse:collapse;margin:0;font-size:13px"><tr>{corner}{heads}</tr>{rows}</table>'
        rest = _rest((policy.n_states - len(states), "states"), (policy.horizon - len(steps), "steps"))
    return f'<div style="overflow-x:auto;margin-top:10px">{body}</div>{rest}{paint.legend()}'


def _board(paint: _Paint, h: int, grid: tuple[int, int]) -> str:
    rows, columns = grid
    inside = "".join(paint(h, s) for s in range(rows * columns))
    shape = f"display:grid;grid-template-columns:repeat({columns},22px);gap:1px"
    return f'<div><div style="{_MUTED}">{paint.step(h)}</div><div style="{shape}">{inside}</div></div>'


class _Paint:
    """The cells of a map: an arrow or a short name on the colour of its action."""

    def __init__(
        self, world: Environment, policy: Policy, idle: NDArray[np.bool_], disputed: NDArray[np.bool_]
    ) -> None:
        turns = directions(world)
        self.world, self.policy, self.idle, self.disputed = world, policy, idle, disputed
        self.signs = short_names(world) if turns is None else [_TURNS[turn] for turn in turns]

    def step(self, h: int) -> str:
        """What a row of the table is for."""
        return "every step" if self.policy.stationary else f"step {h}"

    def __call__(self, h: int, s: int) -> str:
        a = int(self.policy.table[h, s])
        title = f"{self.step(h)}, {state_name(self.world, s)}: {action_name(self.world, a)}"
        frame = f";outline:2px solid {_TONES['bad']};outline-offset:-2px" if self.disputed[h, s] else ""
        if self.idle[h, s]:
            return f'<div title="{escape(title)}" style="{_box(None)}{frame}">·</div>'
        return f'<div title="{escape(title)}" style="{_box(a)}{frame}">{escape(self.signs[a])}</div>'

    def _said(self, a: int) -> str:
        name = action_name(self.world, a)
        return "" if name.removeprefix("action ") == self.signs[a] else name

    def legend(self) -> str:
        """What colours and signs mean; the actions that the policy takes, where there are many."""
        used = sorted({int(a) for a in np.unique(self.policy.table)})
        keys = [
            f'<span style="display:inline-flex;gap:5px;align-items:center"><span style="{_box(a)}">'
            f"{escape(self.signs[a])}</span>{escape(self._said(a))}</span>"
            for a in used[:_STATES]
        ]
        if self.idle.any():
            keys.append("<span>· no decision: hardly ever reached</span>")
        if self.disputed.any():
            keys.append("<span>framed: a simulated second team does something else</span>")
        more = f"<span>and {len(used) - _STATES} more actions</span>" if len(used) > _STATES else ""
        inside = "".join(keys) + more
        return f'<div style="display:flex;flex-wrap:wrap;gap:4px 14px;margin-top:8px;{_MUTED}">{inside}</div>'


def _box(a: int | None) -> str:
    tint = "#8884" if a is None else f"{HUES[a % len(HUES)]}59"
    return (
        f"display:inline-grid;place-items:center;min-width:22px;height:22px;padding:0 2px;box-sizing:border-box;"
        f"border-radius:3px;font-size:13px;line-height:1;background:{tint}"
    )


def _rest(*hidden: tuple[int, str]) -> str:
    said = " and ".join(f"{count:,} more {noun}" for count, noun in hidden if count > 0)
    return f'<div style="{_MUTED};margin-top:4px">… and {said}</div>' if said else ""


def _card(title: str, *parts: str) -> str:
    head = f'<div style="font-size:15px;font-weight:650">{escape(title)}</div>'
    frame = (
        "border:1px solid #8886;border-radius:10px;padding:12px 16px;max-width:860px;line-height:1.5;font-size:13.5px"
    )
    return f'<div class="reprl-card" style="{frame}">{head}{"".join(parts)}</div>'


def _print(policy: Policy) -> str:
    steps = "every step" if policy.stationary else f"{policy.horizon:,} steps"
    size = f"{steps}, {policy.n_states:,} states"
    whole = policy.fingerprint
    return f'<div style="{_MUTED}"><span style="{_MONO}" title="{whole}">{whole[:12]}</span> · {size}</div>'


def _lines(lines: Iterable[str]) -> str:
    """Lines of HTML."""
    return "".join(f'<div style="margin-top:4px">{line}</div>' for line in lines)


def _badge(text: str, tone: str) -> str:
    colour = _TONES[tone]
    style = f"background:{colour}2e;border:1px solid {colour};border-radius:99px;padding:0 9px;font-weight:600"
    return f'<span style="{style};white-space:nowrap">{escape(text)}</span>'


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]], total: int) -> str:
    if not rows:
        return ""
    top = "".join(f'<th style="{_CELL};{_MUTED};font-weight:500">{escape(name)}</th>' for name in head)
    body = "".join(
        '<tr style="background:none">' + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    table = f'<table style="border-collapse:collapse;margin:8px 0 0;font-size:13px"><tr>{top}</tr>{body}</table>'
    return f'<div style="overflow-x:auto">{table}</div>{_rest((total - len(rows), "rows"))}'

"""What a terminal shows of an audit, an audit of agents, or a comparison."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from reprl.auditing.agent_record import AgentReport
from reprl.auditing.comparison import Comparison, worth_words
from reprl.auditing.record import AuditReport
from reprl.report import agents_terminal, audit_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType


def render(record: AuditReport | AgentReport | Comparison) -> RenderableType:
    """Return what to print."""
    if isinstance(record, AuditReport):
        return audit_terminal.render(record)
    return agents_terminal.render(record) if isinstance(record, AgentReport) else _comparison(record)


def _comparison(self: Comparison) -> Table:
    """Return a table, the cheapest learner of each access first."""
    name = self.environment.labels.name
    box = self.black_box
    target = f"disagreement ≤ {self.rho:g}" + ("" if box else f" and mean loss ≤ {self.epsilon:g}")
    title = f"Samples a run to {target}: {name}"
    table = Table(title=Text(title), title_justify="left", box=None)
    table.add_column("learner")
    table.add_column("access")
    for name in ("samples", "by the fitted curve", "disagreement there", "value, by episodes" if box else "loss"):
        table.add_column(name, justify="right")
    for row in sorted(self.rows, key=lambda row: (row.access, row.samples or math.inf)):
        shown, needed = row.shown, row.needed
        low, high = shown.interval
        samples = f"{row.samples:,.0f}" if row.samples is not None else f"not reached at {row.limit:,.0f}"
        fitted = "" if needed is None else f"{needed.samples:.2g} [{needed.low:.2g}, {needed.high:.2g}]"
        rate = f"{shown.disagreement:.2g} [{low:.2g}, {high:.2g}]"
        table.add_row(Text(row.learner), row.access, samples, fitted, rate, worth_words(shown))
    table.caption = f"to a factor of √2, up to {self.pairs} pairs a budget; repeat with seed {self.seed}"
    table.caption_justify = "left"
    return table

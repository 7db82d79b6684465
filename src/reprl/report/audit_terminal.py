"""An audit for the terminal: the verdict, the cells that disagree and how much they matter, what parted first."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reprl.auditing.divergence import STAGES
from reprl.auditing.evidence import fewest_to_reject
from reprl.auditing.policies import policy_lines
from reprl.auditing.record import AuditReport, Cell

_ROWS = 10
_COLOURS = {"rejected": "bold red", "not rejected": "bold green", "undecided": "bold yellow"}


def render(report: AuditReport) -> Group:
    """Return the page."""
    parts: list[RenderableType] = [*_headline(report)]
    if report.cells:
        parts += [Text(), _cells(report)]
    if report.first_divergence:
        parts += [Text(), _divergences(report)]
    return Group(*parts)


def _headline(report: AuditReport) -> list[Text]:
    low, high = report.interval
    title = Text.assemble(
        (f"ρ = {report.rho:g} {report.verdict}", _COLOURS[report.verdict]),
        f" at level {report.level:g}: {report.learner} on {report.environment.labels.name}, {report.access}",
    )
    kind = "at all times" if report.sequential else "exact"
    lines = [
        title,
        Text(
            f"{report.disagreements} of {report.pairs} pairs differ: disagreement {report.disagreement:.3g}, "
            f"95 % interval [{low:.3g}, {high:.3g}] ({kind})"
        ),
        Text(_meaning(report)),
    ]
    if report.runs_per_key > 2:
        lines.append(
            Text(
                f"{report.runs_per_key} runs a key: the estimate averages all their pairs, test and interval count the "
                f"first two runs of each key; up to {max(report.distinct)} distinct policies under one key"
            )
        )
    if report.value_gap is not None and report.suboptimality is not None:
        gap, loss = report.value_gap, report.suboptimality
        lines.append(
            Text(
                f"values of a pair differ by {gap.mean:.3g} on average, {gap.max:.3g} at most; "
                f"loss against the best policy {loss.mean:.3g}, {loss.max:.3g} at most"
            )
        )
    lines += [Text(line) for line in policy_lines(report)]
    lines.append(Text(f"{report.samples:,.0f} samples a run; repeat this audit with seed {report.seed}"))
    return lines


def _meaning(report: AuditReport) -> str:
    """What the verdict says and what it does not."""
    if report.sequential:
        if report.verdict == "rejected":
            return f"a learner with disagreement ≤ {report.rho:g} is ever rejected with probability ≤ {report.level:g}"
        if report.verdict == "not rejected":
            return (
                f"a learner with disagreement ≥ {report.alternative:g} would be let pass with probability "
                f"≤ {report.level:g}; nothing is proven about {report.rho:g} itself"
            )
        return f"{report.pairs} pairs decide neither against ≤ {report.rho:g} nor against ≥ {report.alternative:g}"
    if report.verdict == "rejected":
        return f"if disagreement were ≤ {report.rho:g}, so many would differ with probability {report.p_value:.2g}"
    needed = fewest_to_reject(report.pairs, report.rho, report.level)
    if needed is None:
        return f"too few pairs: not even {report.pairs} of {report.pairs} could reject; ask for more"
    return f"{needed} of {report.pairs} would reject; fewer do not prove that the learner replicates"


def _cells(report: AuditReport) -> Table:
    known = report.cells[0].reachability is not None
    visited = report.cells[0].visited is not None
    apart = report.by_cell > 0.0
    if report.policies is not None:
        apart = apart & report.policies.reached
    more = int(apart.sum()) - min(_ROWS, len(report.cells))
    table = Table(title="Where runs disagree, what matters most first", title_justify="left", box=None)
    for name in (
        "step",
        "state",
        "disagree",
        *(("reachable", "at stake") if known else ("visited",) if visited else ()),
        "chosen",
    ):
        table.add_column(name, justify="left" if name in ("state", "chosen") else "right")
    for cell in report.cells[:_ROWS]:
        stakes = _stakes(cell) if known else (f"{cell.visited:.1%}",) if visited else ()
        table.add_row(
            str(cell.step),
            Text(report.environment.labels.state(cell.state)),
            f"{cell.disagreement:.1%}",
            *stakes,
            Text(_chosen(report, cell)),
        )
    if more > 0:
        table.caption = f"and {more} more" + (
            f"; {len(report.ties)} of {len(report.cells)} listed are exact ties" if known else ""
        )
    return table


def _stakes(cell: Cell) -> tuple[str, str]:
    assert cell.reachability is not None
    assert cell.stake is not None
    return f"{cell.reachability:.1%}", "exact tie" if cell.stake == 0.0 else f"{cell.stake:.3g}"


def _chosen(report: AuditReport, cell: Cell) -> str:
    return ", ".join(f"{report.environment.labels.action(a)} {share:.0%}" for a, share in cell.actions[:4])


def _divergences(report: AuditReport) -> Table:
    counts = Counter(item.stage for item in report.first_divergence)
    table = Table(title="What parted first", title_justify="left", box=None)
    table.add_column("stage")
    table.add_column("pairs", justify="right")
    table.add_column("closest call")
    for stage in STAGES:
        if counts[stage]:
            items = [item for item in report.first_divergence if item.stage == stage]
            closest = min(items, key=lambda item: float("inf") if item.margin is None else item.margin)
            table.add_row(stage, str(counts[stage]), Text(closest.text))
    return table

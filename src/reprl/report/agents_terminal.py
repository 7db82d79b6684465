"""An audit of agents for the terminal: the verdict and its grade, pairs, and the states that part them."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from reprl.auditing.agent_record import GRADE, AgentReport
from reprl.auditing.evidence import fewest_to_reject

_COLOURS = {"rejected": "bold red", "not rejected": "bold green"}
_ROWS = 20


def render(report: AgentReport) -> Group:
    """Return the page."""
    low, high = report.interval
    n = len(report.pairs)
    claim = f"ρ = {report.rho:g} at γ = {report.gamma:g} {report.verdict}"
    lines = [
        Text.assemble(
            (claim, _COLOURS[report.verdict]),
            f" at level {report.level:g}: {report.learner} on {report.environment}; grade: {GRADE}",
        ),
        Text(
            f"{report.disagreements} of {n} pairs act differently in more than {report.gamma:.0%} of the states they "
            f"meet; 95 % interval [{low:.3g}, {high:.3g}] (exact)"
        ),
        Text(_meaning(report)),
        Text(
            f"mean distance {report.distance.mean:.3g}, 95 % interval [{report.distance.low:.3g}, "
            f"{report.distance.high:.3g}]; {report.identical} of {n} pairs did the same in every state met"
        ),
    ]
    if report.value is not None and report.gap is not None:
        lines.append(
            Text(
                f"return {report.value.mean:.4g} [{report.value.low:.4g}, {report.value.high:.4g}]; returns of a pair "
                f"differ by {report.gap.mean:.3g} [{report.gap.low:.3g}, {report.gap.high:.3g}] (Student's intervals)"
            )
        )
    lines.append(Text(f"{report.samples:,.0f} samples a training; repeat this audit with seed {report.seed}"))
    parts: list[RenderableType] = [*lines, Text(), _pairs(report)]
    if report.places:
        parts += [Text(), _places(report)]
    return Group(*parts)


def _meaning(report: AgentReport) -> str:
    if report.verdict == "rejected":
        return f"if at most a share {report.rho:g} were so, so many would be with probability {report.p_value:.2g}"
    needed = fewest_to_reject(len(report.pairs), report.rho, report.level)
    if needed is None:
        return f"too few pairs: not even {len(report.pairs)} of them could reject; ask for more"
    return f"{needed} would reject; fewer prove nothing, and nothing is said of states that no agent met"


def _pairs(report: AgentReport) -> Table:
    table = Table(title="Pairs of trainings", title_justify="left", box=None)
    for name in ("pair", "distance", "95 %", "episodes alike", "returns", "difference", "95 %"):
        table.add_column(name, justify="right")
    for k, pair in enumerate(report.pairs[:_ROWS]):
        change = pair.difference
        table.add_row(
            str(k),
            f"{pair.distance:.1%}",
            f"{pair.interval[0]:.1%} to {pair.interval[1]:.1%}",
            f"{pair.alike} of {report.episodes}",
            f"{pair.returns[0]:.4g} and {pair.returns[1]:.4g}",
            f"{pair.returns[0] - pair.returns[1]:+.3g}",
            "" if change is None else f"{change.low:+.3g} to {change.high:+.3g}",
        )
    if len(report.pairs) > _ROWS:
        table.caption = f"and {len(report.pairs) - _ROWS} more"
    return table


def _places(report: AgentReport) -> Table:
    table = Table(title="States in which most pairs part", title_justify="left", box=None)
    for name, side in (("step", "right"), ("observation", "left"), ("pairs apart", "right"), ("chosen", "left")):
        table.add_column(name, justify="right" if side == "right" else "left")
    for place in report.places:
        chosen = ", ".join(f"{action} {share:.0%}" for action, share in place.actions)
        table.add_row(str(place.step), Text(place.observation), f"{place.apart:.0%}", Text(chosen))
    return table

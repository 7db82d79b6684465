"""reprl check-log: what is wrong or odd with a log, before anything is learned from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reprl.cli.answer import DIFFERENT, FINE, Answer, progress_wanted
from reprl.cli.options import (
    DONE_AT_LIMIT,
    EARLY_ENDS,
    LOG_COLUMN,
    argument,
    option,
    read_columns,
    read_labels,
)

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.sources.logs.check import LogCheck


def check_log(
    file: Path = argument("FILE", "The log: .csv, .csv.gz or .parquet."),
    *,
    horizon: int | None = option("H, the steps of an episode. Default: the longest.", "-H"),
    discount: float | None = option("Discount factor γ, instead of a horizon."),
    column: list[str] | None = LOG_COLUMN,
    states: str | None = option("Labels of the states. Default: those found in it.", metavar="A,B,…"),
    actions: str | None = option("Labels of the actions. Default: those found in it.", metavar="A,B,…"),
    reward_range: tuple[float, float] | None = option(
        "Bounds of the reward. Default: those found in it.", metavar="LOW HIGH"
    ),
    stationary: bool = option("The dynamics do not depend on the step: every row counts for all steps.", default=False),
    early_ends: str | None = EARLY_ENDS,
    done_at_limit: str | None = DONE_AT_LIMIT,
) -> Answer:
    """Summarize a log, and list what is wrong or odd with it: exit code 1 if results would be wrong.

    Findings are ranked, each with a remedy. "error": the log is refused. "bias": values would be wrong, or intervals
    too short. "warning": results may not be what you think. "note": nothing is wrong.

    reprl check-log clinic.csv --horizon 5
    """
    from reprl.sources.logs.check import check_log as check

    found = check(
        file,
        horizon=horizon,
        discount=discount,
        columns=read_columns(column),
        states=read_labels("--states", states),
        actions=read_labels("--actions", actions),
        reward_range=reward_range,
        stationary=stationary,
        early_ends=early_ends,
        done_at_limit=done_at_limit,
        progress=progress_wanted(),
    )
    return Answer(found.to_dict(), lambda console: _show(console, found), DIFFERENT if found.biased else FINE)


def _show(console: Console, found: LogCheck) -> None:
    from reprl.execution.terminal import fact_rows

    lengths, support, practice = found.lengths, found.support, found.practice
    rows: list[tuple[str, object]] = [
        ("rows", f"{found.rows:,} in {found.episodes:,} episodes"),
        ("lengths", f"{lengths['shortest']:,} to {lengths['longest']:,} rows, median {lengths['median']:,}"),
        ("ends", ", ".join(f"{count:,} {name}" for name, count in found.ends.items() if count)),
        ("labels", f"{found.n_states:,} states, {found.n_actions:,} actions"),
        ("rewards", f"{found.rewards[0]:g} to {found.rewards[1]:g}"),
        (
            "support",
            f"{int(support['supported']):,} of {int(support['possible']):,} pairs of a state and an action, "
            f"{int(support['seen']):,} seen; the threshold removes {support['removed_rows']:.1%} of the rows",
        ),
        (
            "behaviour",
            f"{practice['usual_share']:.0%} of the rows take the most usual action of their state; "
            f"the effective number of actions is {practice['actions_in_effect']:.2g}",
        ),
        ("columns", ", ".join(role if role == name else f"{name} ({role})" for role, name in found.columns.items())),
    ]
    rows += [("not used", ", ".join(found.unused))] if found.unused else []
    rows += [(finding.severity, str(finding).partition(": ")[2]) for finding in found.findings]
    console.print(fact_rows(rows))
    if found.worst is None:
        console.print("nothing is wrong with this log")

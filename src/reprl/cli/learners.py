"""reprl learners: ours and the baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reprl.cli.answer import Answer

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.lab.baselines.registry import LearnerEntry


def learners() -> Answer:
    """List the learners that an audit or a comparison can name, with their options and defaults.

    reprl audit gridworld-v0 --learner ucbvi -o samples=100000

    Learners with access "box" are for audit-agents: their observations are real numbers (a Box).
    """
    from reprl.lab.baselines.boxes import box_learners
    from reprl.lab.baselines.registry import learners as every

    entries = [*every(), *box_learners()]
    document = {
        "learners": [
            {**entry._asdict(), "access": list(entry.access), "options": dict(entry.options)} for entry in entries
        ]
    }
    return Answer(document, lambda console: _show(console, entries))


def _show(console: Console, entries: list[LearnerEntry]) -> None:
    from reprl.execution.terminal import plain_table

    table = plain_table("learner", "access", "replicable", "what it does", "options")
    for entry in entries:
        options = " ".join(f"{name}={value}" for name, value in entry.options.items())
        replicable = "yes" if entry.replicable else "no"
        table.add_row(entry.name, " or ".join(entry.access), replicable, entry.description, options)
    console.print(table)

"""reprl list: the environments and the learners that have a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprl.cli.answer import Answer
from reprl.cli.options import argument
from reprl.errors import check_choice

if TYPE_CHECKING:
    from rich.console import Console

_KINDS = ("environments", "learners")


def list_(
    kind: str | None = argument("[KIND]", "environments or learners. Default: both.", None),
) -> Answer:
    """List environments and learners by name, with their options and defaults.

    An environment may also be gym:ID for one of Gymnasium, or file.py:NAME for your own; a learner file.py:NAME. The
    access of a learner says what it needs: parallel samples of a table (generative), episodes (episodic), or episodes
    whose observations are real numbers (box).

    reprl list

    reprl list environments

    reprl list learners --json
    """
    if kind is not None:
        check_choice("KIND", kind, _KINDS)
    document = {name: _entries(name) for name in _KINDS if kind in (None, name)}
    return Answer(document, lambda console: _show(console, document))


def _entries(kind: str) -> list[dict[str, Any]]:
    if kind == "environments":
        from reprl.mdp.catalogue import catalogue

        return [{**entry._asdict(), "options": dict(entry.options)} for entry in catalogue()]
    from reprl.lab.baselines.boxes import box_learners
    from reprl.lab.baselines.registry import learners

    found = [*learners(), *box_learners()]
    return [{**entry._asdict(), "access": list(entry.access), "options": dict(entry.options)} for entry in found]


def _show(console: Console, document: dict[str, list[dict[str, Any]]]) -> None:
    from reprl.execution.terminal import plain_table

    heads = {
        "environments": ("environment", "what it is"),
        "learners": ("learner", "access", "replicable", "what it does"),
    }
    for kind, entries in document.items():
        table = plain_table(*heads[kind], "options")
        for entry in entries:
            if kind == "environments":
                facts = [entry["id"], entry["description"]]
            else:
                replicable = "yes" if entry["replicable"] else "no"
                facts = [entry["name"], " or ".join(entry["access"]), replicable, entry["description"]]
            table.add_row(*facts, " ".join(f"{name}={value}" for name, value in entry["options"].items()))
        console.print(table)

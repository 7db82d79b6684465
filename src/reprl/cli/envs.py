"""reprl envs: the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reprl.cli.answer import Answer

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.mdp.catalogue import CatalogueEntry


def envs() -> Answer:
    """List the environments that come with reprl, with their options and defaults.

    ENV may also be gym:ID for a Gymnasium environment, or file.py:NAME for your own.

    reprl learn gridworld-v0 --horizon 8 --env-option size=5 --env-option slip=0.1
    """
    from reprl.mdp.catalogue import catalogue

    entries = catalogue()
    document = {"environments": [{**entry._asdict(), "options": dict(entry.options)} for entry in entries]}
    return Answer(document, lambda console: _show(console, entries))


def _show(console: Console, entries: list[CatalogueEntry]) -> None:
    from reprl.execution.terminal import plain_table

    table = plain_table("environment", "what it is", "options")
    for entry in entries:
        table.add_row(entry.id, entry.description, " ".join(f"{name}={value}" for name, value in entry.options.items()))
    console.print(table)
    console.print("also gym:ID for Gymnasium's, and file.py:NAME for your own")

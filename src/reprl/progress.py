"""progress_bar: how far long work has come, for people at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID


@contextmanager
def progress_bar(show: bool, unit: str) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield whom to tell (phase, units done, units of the phase): a bar on standard error, or nobody."""
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    count = TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(phase, total=total)
            bar.update(tasks[phase], completed=done, total=total)

        yield tell

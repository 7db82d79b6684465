"""progress_bar: how far long work has come, for people at a terminal."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

_PAUSE = 0.2
"""Seconds between two pictures of a bar in a notebook."""

if TYPE_CHECKING:
    from rich.progress import TaskID

    from reprl.execution.settings import Progress


@contextmanager
def progress_bar(show: bool | Progress, unit: str) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield whom to tell (phase, units done, units of the phase): a bar, the caller's own function, or nobody."""
    if not isinstance(show, bool) or not show:
        yield show or None
        return
    if _in_notebook():
        with _notebook_bar(unit) as tell:
            yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    count = TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bar.add_task(phase, total=total)
            bar.update(tasks[phase], completed=done, total=total)

        yield tell


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this, which shows HTML; no package is imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


@contextmanager
def _notebook_bar(unit: str) -> Iterator[Callable[[str, int, int], None]]:
    """Draw the browser's own progress bar, which needs no widgets, and take it away at the end."""
    from IPython.display import display

    handle = display({"text/html": ""}, raw=True, display_id=True)  # type: ignore[no-untyped-call]
    drawn = 0.0

    def show(text: str) -> None:
        handle.update({"text/html": text}, raw=True)

    def tell(phase: str, done: int, total: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn < _PAUSE and done < total:
            return
        drawn = now
        words = html.escape(f"{phase}: {done:,} of {total:,} {unit}")
        show(f'<progress value="{done}" max="{max(total, 1)}"></progress> {words}')

    try:
        yield tell
    finally:
        show("")

"""progress_bar: how far long work has come, for people at a terminal or a notebook."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

_PAUSE = 0.2
"""Seconds between two pictures of a bar in a notebook."""
_LINES = 8
"""Reports that a bar shows."""

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reprl.execution.settings import Progress


class Report(str):
    """A phase that is over: a line for people, which also has its figures."""

    figures: Any

    def __new__(cls, line: str, figures: Any) -> Report:
        """Take a line, and what it says as a value."""
        made = super().__new__(cls, line)
        made.figures = figures
        return made


@contextmanager
def progress_bar(show: bool | Progress, unit: str) -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield whom to tell (phase, units done, units of the phase): a bar, the caller's own function, or nobody."""
    if not isinstance(show, bool) or not show:
        yield show or None
        return
    with _notebook_bar(unit) if _in_notebook() else _terminal_bar(unit) as tell:
        yield tell


@contextmanager
def _terminal_bar(unit: str) -> Iterator[Callable[[str, int, int], None]]:
    """Draw the last reports, and a bar for each phase since; nothing stays, and nothing is drawn when piped."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    from reprl.execution.terminal import visible

    said: list[Text] = []

    class Bars(Bar):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield from said
            yield from super().get_renderables()

    count = TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}")
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), count, TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def tell(phase: str, done: int, total: int) -> None:
            if isinstance(phase, Report):
                said[:] = [*said, Text(visible(phase), style="dim")][-_LINES:]
                while tasks:
                    bar.remove_task(tasks.popitem()[1])
                return
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
    drawn, said = 0.0, ""

    def show(text: str) -> None:
        handle.update({"text/html": text}, raw=True)

    def tell(phase: str, done: int, total: int) -> None:
        nonlocal drawn, said
        now = time.monotonic()
        if isinstance(phase, Report):
            said = f"<br>{html.escape(phase)}"
            return
        if now - drawn < _PAUSE and done < total:
            return
        drawn = now
        words = html.escape(f"{phase}: {done:,} of {total:,} {unit}")
        show(f'<progress value="{done}" max="{max(total, 1)}"></progress> {words}{said}')

    try:
        yield tell
    finally:
        show("")

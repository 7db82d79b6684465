"""Execution: how work is done. Nothing in it changes a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reprl.errors import InputError, check_int, check_real, quote
from reprl.storage.checkpoints import Checkpoint

Progress = Callable[[str, int, int], None]
"""Called with a phase, the units of it that are done, and all its units; a phase that is over may be a ``Report``."""


def check_progress(progress: object) -> None:
    """Refuse what is neither a flag, for a bar, nor a function that can be told."""
    if not isinstance(progress, bool) and not callable(progress):
        raise InputError(
            f"progress must be True or False, or a function of (phase, done, total), got {quote(progress)}"
        )


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Who does the work, what they may take, where finished parts are kept, and who is told.

    Guarantee:
        Results are the same for every Execution.
    """

    workers: int = 1
    """Processes for a black box and for audits, threads for large tables."""
    timeout: float | None = None
    """Seconds that an episode of a black box may take; None for any time."""
    checkpoint: Checkpoint | None = None
    """Where finished parts are kept."""
    progress: Progress | None = None
    """Who is told how far the work is."""

    def __post_init__(self) -> None:
        """Check every field."""
        check_int("workers", self.workers, 1, 1024)
        if self.timeout is not None:
            check_real("timeout", self.timeout, 0.0, 1e9)
        if self.progress is not None and not callable(self.progress):
            raise InputError(f"progress must be a function of (phase, done, total) or None, got {quote(self.progress)}")

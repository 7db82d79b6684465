"""Answer: what a command found, to be shown to a person or printed as one JSON document."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

FINE, DIFFERENT, BAD_INPUT, FAULT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141
"""Exit codes; 1 also stands for "rejected" and "undecided", 3 for an error in reprl or in an environment's own code."""
UNDECIDED = DIFFERENT
"""Of a run whose samples ran out before it was sure: an answer, and not the one that was hoped for."""


class Answer(NamedTuple):
    """What a command found."""

    document: dict[str, Any]
    """For --json."""
    show: Callable[[Console], None]
    """For people."""
    code: int = FINE


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print an answer on standard output, whole or with an error."""
    if as_json:
        sys.stdout.write(json.dumps(answer.document, allow_nan=False) + "\n")
    elif sys.stdout.isatty():
        answer.show(_make_console())
    else:
        console = _make_console()
        with console.capture() as capture:
            answer.show(console)
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())
    sys.stdout.flush()


def print_error(message: str, as_json: bool) -> None:
    """Print one line: on standard error, or as JSON on standard output."""
    line = " ".join(message.split())
    if as_json:
        sys.stdout.write(json.dumps({"error": line}) + "\n")
        sys.stdout.flush()
    else:
        sys.stderr.write(f"reprl: {line}\n")


def _make_console() -> Console:
    """Return a console for standard output; a pipe is as wide as it needs to be, so that no line is folded."""
    from rich.console import Console

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=1000 if piped else None, highlight=False, markup=False, emoji=False)


def progress_wanted() -> bool:
    """Whether someone watches standard error."""
    return sys.stderr.isatty()

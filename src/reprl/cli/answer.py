"""Answer: what a command found, to be shown to a person or printed as one JSON document."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from reprl.execution.terminal import Visible, visible

if TYPE_CHECKING:
    from rich.console import Console

    from reprl.mdp.tabular import TabularMDP
    from reprl.sources.gymnasium.model import GymnasiumModel

FINE, DIFFERENT, BAD_INPUT, FAULT, ENDED, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 128, 130, 141
"""Exit codes; 1 also stands for "rejected" and "undecided", 3 for an error in reprl or in an environment's own code;
128 and its number for another signal that ended the work."""
UNDECIDED = DIFFERENT
"""Of a run whose samples ran out while it was undecided."""

HINTS: list[str] = []
"""What the line of a command that is interrupted adds: how to go on. Typer drops notes of an exception."""


class Answer(NamedTuple):
    """What a command found."""

    document: dict[str, Any]
    """For --json."""
    show: Callable[[Console], None]
    """For people."""
    code: int = FINE
    unsaved: str = ""
    """Why it could not be written where it should, if so: work that is done is shown all the same."""


def evidence_answer(found: Any, unsaved: str) -> Answer:
    """The answer that an audit is."""
    code = BAD_INPUT if unsaved else DIFFERENT if found.verdict == "rejected" else FINE
    return Answer(found.to_dict(), lambda console: console.print(found), code, unsaved)


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print an answer on standard output, whole or with an error."""
    if as_json:
        trouble = {"error": answer.unsaved} if answer.unsaved else {}
        sys.stdout.write(json.dumps({**answer.document, **trouble}, allow_nan=False) + "\n")
    elif sys.stdout.isatty():
        answer.show(_make_console())
    else:
        console = _make_console()
        with console.capture() as capture:
            answer.show(console)
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())
    sys.stdout.flush()
    if answer.unsaved and not as_json:
        print_error(answer.unsaved, as_json)


def print_error(message: str, as_json: bool) -> None:
    """Print one line: on standard error, or as JSON on standard output."""
    line = " ".join(message.split())
    if as_json:
        sys.stdout.write(json.dumps({"error": line}) + "\n")
        sys.stdout.flush()
    else:
        sys.stderr.write(f"reprl: {visible(line)}\n")


def _make_console() -> Console:
    """Return a console for standard output; a pipe is as wide as it needs to be, so that no line is folded."""
    from rich.console import Console, ConsoleRenderable, RenderHook

    class Hook(RenderHook):
        """Nothing that others wrote reaches a terminal as a control code."""

        def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
            return [Visible(content) for content in renderables]

    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    console = Console(width=1000 if piped else None, highlight=False, markup=False, emoji=False)
    console.push_render_hook(Hook())
    return console


def progress_wanted() -> bool:
    """Whether someone watches standard error."""
    return sys.stderr.isatty()


def announce(world: TabularMDP | GymnasiumModel, runs: int = 1) -> None:
    """Say at once what is learned in, where someone watches; later, if so, that kernels have to be compiled."""
    if not progress_wanted():
        return
    from rich.console import Console

    from reprl.kernels import tell_compiling
    from reprl.sources.environment import describe

    def say(line: str) -> None:
        Console(stderr=True, highlight=False, markup=False).print(visible(line), style="dim", soft_wrap=True)

    place, many = describe(world), f", {runs} runs" if runs > 1 else ""
    say(f"learning in {place.title}: {place.n_states:,} states, {place.n_actions} actions{many}")
    tell_compiling(lambda: say("compiling kernels, once: later runs find them in a cache"))

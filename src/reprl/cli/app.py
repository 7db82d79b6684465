"""The reprl command: commands in one place, errors in one line, exit codes that mean something."""

from __future__ import annotations

import inspect
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import Annotated, Any

import typer
import typer.core

from reprl.cli.answer import (
    BAD_INPUT,
    BROKEN_PIPE,
    ENDED,
    FAULT,
    FINE,
    HINTS,
    INTERRUPTED,
    Answer,
    print_answer,
    print_error,
)
from reprl.cli.audit import audit
from reprl.cli.check_log import check_log
from reprl.cli.confirm import confirm
from reprl.cli.learn import learn
from reprl.cli.list import list_
from reprl.cli.options import as_typer
from reprl.cli.register import register
from reprl.cli.replicate import replicate
from reprl.cli.report import report
from reprl.cli.signals import ending_in_order
from reprl.cli.twice import twice
from reprl.cli.verify import verify
from reprl.errors import InputError, ReprlError, find_foreign
from reprl.execution.terminal import LIKE_ASCII, visible

HELP = """
Reinforcement learning whose policies replicate on fresh data.

There are two seeds. The [bold]shared seed[/bold] is public: every run of a recipe uses it. The [bold]data seed[/bold]
is private: every run draws its own, and with it its own samples. Two runs with the same shared seed and independent
data learn exactly the same policy with probability at least 1 − ρ.

Exit codes: 0 success; 1 the answer is "different", "rejected" or "undecided"; 2 invalid input; 3 an error in reprl or
in the environment's own code.
"""
EPILOG = "Try: reprl twice gridworld-v0 --horizon 6"


class _Command(typer.core.TyperCommand):
    """A command whose flags show no type: there is nothing to write after one."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, that of --help included."""
        return _bare_flags(super().get_params(ctx))


class _Group(typer.core.TyperGroup):
    """The same for the program itself."""

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, that of --help included."""
        return _bare_flags(super().get_params(ctx))


def _bare_flags(params: Any) -> Any:
    for parameter in params:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = " "
    return params


app = typer.Typer(cls=_Group, rich_markup_mode="rich", no_args_is_help=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        from reprl import __version__

        print(f"reprl {__version__}")
        raise typer.Exit


def _paragraphs(text: str | None) -> str:
    """Join the lines of each paragraph, which the help page wraps by itself."""
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text or "").split("\n\n"))


@app.callback(help=_paragraphs(HELP), epilog=EPILOG)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None: ...


for _command in (twice, learn, register, replicate, verify, audit, confirm, check_log, report, list_):
    _help = _paragraphs(_command.__doc__)
    app.command(_command.__name__.strip("_").replace("_", "-"), cls=_Command, help=_help)(as_typer(_command))


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code; bad input is one line, never a traceback."""
    words = sys.argv[1:] if argv is None else argv
    as_json = "--json" in words
    HINTS.clear()
    with ending_in_order() as asked:
        try:
            _tolerate_any_text()
            answer = _dispatch(words)
            if isinstance(answer, Answer):
                print_answer(answer, as_json)
                return answer.code
            sys.stdout.flush()
            return answer
        except BaseException as error:  # whatever it is, it ends in a line and a code
            return _explain(error, as_json, asked)


def _explain(error: BaseException, as_json: bool, asked: list[int]) -> int:
    """Say what went wrong, and return the exit code; asked are the signals that have come.

    An error after a signal is one of its consequences, whatever it looks like.
    """
    if asked and not isinstance(error, BrokenPipeError):
        by_key = asked[0] == signal.SIGINT
        said = "interrupted" if by_key else "ended by a signal"
        return _complain("; ".join([said, *HINTS]), as_json, ENDED + asked[0])
    foreign = find_foreign(error)
    if foreign is not None:  # of an environment's own code, whatever its kind: its frames alone
        notes = getattr(foreign.error, "__notes__", ())
        sys.stderr.write(visible(foreign.frames + "".join(f"{note}\n" for note in notes)))
        return _complain(_name(foreign.error), True, FAULT) if as_json else FAULT
    match error:
        case BrokenPipeError():
            _silence()
            return BROKEN_PIPE
        case KeyboardInterrupt():
            return _complain("; ".join(["interrupted", *HINTS]), as_json, INTERRUPTED)
        case MemoryError():
            return _complain("not enough memory for this: take a smaller environment or fewer workers", as_json)
        case OSError():
            place = f": {error.filename}" if error.filename else ""
            return _complain(f"cannot go on: {error.strerror or error}{place}", as_json)
        case ReprlError():
            return _complain(str(error), as_json)
    sys.stderr.write(visible("".join(traceback.format_exception(error))))  # ours: to be seen in full
    return _complain(_name(error), True, FAULT) if as_json else FAULT


def _name(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _dispatch(words: list[str]) -> Answer | int:
    """Parse and run; usage errors become ours."""
    try:
        outcome = app(args=words, prog_name="reprl", standalone_mode=False)
    except typer.Abort as error:
        raise error.__cause__ or error.__context__ or KeyboardInterrupt from None
    except SystemExit as error:  # how typer leaves when a pipe breaks under its help
        if find_foreign(error) is not None:
            raise
        if "_REPRL_COMPLETE" in os.environ:  # a shell has got what it asked for
            return FINE
        raise BrokenPipeError from None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        text = error.format_message()
        if not text.strip() or "\n" in text:  # a bare command, which has got its help page
            sys.stdout.write(text)
            return BAD_INPUT
        raise InputError(f"{text} (see {_help_of(error)})") from None
    if outcome == INTERRUPTED:
        raise KeyboardInterrupt
    return outcome if isinstance(outcome, Answer | int) else FINE


def _help_of(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'reprl'} --help"


def _complain(message: str, as_json: bool, code: int = BAD_INPUT) -> int:
    try:
        print_error(message, as_json)
    except OSError:  # nobody can be told
        _silence()
    return code


def _tolerate_any_text() -> None:
    """Show what a terminal's encoding lacks in signs that it has, not fail; write a closed output nowhere."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=LIKE_ASCII)


def _silence() -> None:
    """Let the interpreter leave without a word about an output that is gone."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

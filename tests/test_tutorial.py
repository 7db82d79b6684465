"""The tutorial, followed to the letter: files are written, commands run, and what it shows must be what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# (\w+\.py)\n")
CODE = re.compile(r"# exit code (\d+)$")


class File(NamedTuple):
    """A Python block whose first line is a comment with the file's name."""

    name: str
    text: str


class Command(NamedTuple):
    """A line after "$ " in a console block, and the lines that it shows up to the next one."""

    line: str
    code: int
    shown: str


def read_steps(text: str) -> list[File | Command]:
    """Return what a reader is to do, in order; a block that could not be followed is an error."""
    steps: list[File | Command] = []
    for language, body in BLOCK.findall(text):
        if language == "python":
            name = NAME.match(body)
            assert name, f"a Python block must begin with a comment that names its file:\n{body}"
            steps.append(File(name[1], body))
        else:
            assert language == "console", f"a block must be python or console, got {language!r}:\n{body}"
            assert body.startswith("$ "), f"a console block must begin with a command:\n{body}"
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                code = CODE.search(line)
                steps.append(Command(line, int(code[1]) if code else 0, shown))
    return steps


def plain(text: str) -> list[str]:
    """Lines with single spaces, empty ones left out: figures of other lengths move columns and borders."""
    lines = (re.sub(r"[─ ]+", " ", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def occurs(shown: str, printed: str) -> bool:
    """Whether all of what was printed is what is shown; … stands for any text, alone in a line for any lines."""
    pattern = ""
    for line in plain(shown):
        pattern += r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in plain(printed))) is not None


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("page", "least"), [("tutorial", 10), ("register", 6)])
def test_every_step_does_what_the_tutorial_shows(tmp_path, page, least):
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "PYTHONUTF8": "1"}
    ran = 0
    for step in read_steps((DOCS / f"{page}.md").read_text(encoding="utf-8")):
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.text, encoding="utf-8")
            continue
        done = subprocess.run(
            step.line, shell=True, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=300
        )
        printed = done.stdout + done.stderr
        assert done.returncode == step.code, f"$ {step.line}\nexit code {done.returncode}\n{printed}"
        assert occurs(step.shown, printed), f"$ {step.line}\nprinted\n{printed}\nand not\n{step.shown}"
        ran += 1
    assert ran >= least


def test_names_in_the_text_are_files_of_its_steps():
    """Every FILE.py:name that is typed is defined in a block."""
    steps = read_steps((DOCS / "tutorial.md").read_text(encoding="utf-8"))
    files = {step.name: step.text for step in steps if isinstance(step, File)}
    typed = [pair for step in steps if isinstance(step, Command) for pair in re.findall(r"(\w+\.py):(\w+)", step.line)]
    assert typed
    assert all(f"def {name}(" in files[file] for file, name in typed)


def test_steps_are_read_in_order():
    text = "One.\n```python\n# a.py\nx = 1\n```\n```console\n$ ls a.py\na.py\n$ false  # exit code 1\n```\n"
    assert read_steps(text) == [
        File("a.py", "# a.py\nx = 1\n"),
        Command("ls a.py", 0, "a.py\n"),
        Command("false  # exit code 1", 1, ""),
    ]


@pytest.mark.parametrize("block", ["```sh\n$ ls\n```", "```python\nx = 1\n```", "```console\nls\n```", "```\nls\n```"])
def test_a_block_that_nobody_would_run_is_an_error(block):
    with pytest.raises(AssertionError, match="block must"):
        read_steps(block)


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        ("run 1   run 2\nsamples 5, … s\nsame policy\n", True),
        ("run 1 run 2\n…\nsame policy\n", True),
        ("…\nsame policy\n", True),
        ("run 1 run 2\n…\n", True),
        ("run 1 run 2\nsamples 6, … s\nsame policy\n", False),
        ("run 1 run 2\nsame policy\n", False),
        ("same policy\n", False),
        ("…\nsame\n", False),
        ("", False),
    ],
)
def test_what_is_shown_is_held_against_all_that_was_printed(shown, same):
    assert occurs(shown, "run 1  run 2\n\nsamples  5, 0.1 s\nsame policy  \n") is same

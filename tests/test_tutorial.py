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
def test_every_step_does_what_the_tutorial_shows(tmp_path):
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "PYTHONUTF8": "1"}
    ran = 0
    for step in read_steps((DOCS / "tutorial.md").read_text(encoding="utf-8")):
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
    assert ran >= 10

"""The worked example from a log to a signed receipt, followed to the letter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_tutorial import File, plain, read_steps

PAGE = Path(__file__).parents[1] / "docs" / "committee.md"


def occurs(line: str, printed: list[str]) -> bool:
    """Whether a line is among those that were printed; … stands for any text."""
    pattern = ".*".join(map(re.escape, line.split("…")))
    return any(re.search(pattern, other) for other in printed)


@pytest.mark.long
@pytest.mark.slow
def test_every_step_of_the_example_does_what_it_shows(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for step in read_steps(PAGE.read_text("utf-8")):
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.text, "utf-8")
            continue
        line = (
            step.line.replace("reprl ", f"{sys.executable} -m reprl ", 1)
            if step.line.startswith("reprl")
            else step.line
        )
        run = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "COLUMNS": "400"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert run.returncode == step.code, f"{step.line}\n{run.stdout}\n{run.stderr}"
        for shown in plain(step.shown):
            assert occurs(shown, plain(run.stdout)), f"{step.line}\n{shown!r} is not among\n{run.stdout}"
    page = (tmp_path / "page.html").read_text("utf-8")
    for words in ("By this log the policy earns", "What would change", "Subgroups", "could explain the gain away"):
        assert words in page

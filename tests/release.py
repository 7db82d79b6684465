"""Commands of the last release, whose files and answers lie in tests/data/release-0.1, and how to run them again.

``commands.json`` lists them in order. Each runs as ``reprl … --json`` with fixed seeds, in a folder with the files
of ``inputs``. The files that it wrote lie under its name, and its JSON document in ``answers``. Release 0.1.0 wrote all
of them; do not write them again with other code.
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

RELEASE = Path(__file__).parent / "data" / "release-0.1"
COMMANDS: dict[str, str] = json.loads((RELEASE / "commands.json").read_text())
NOT_FIXED = ("seconds", "timings")
"""What seeds do not fix."""


def fixed(document: Any) -> Any:
    """Return a document without what seeds do not fix."""
    if isinstance(document, dict):
        return {name: fixed(value) for name, value in document.items() if name not in NOT_FIXED}
    return [fixed(value) for value in document] if isinstance(document, list) else document


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder that holds the inputs of the commands."""
    for source in (RELEASE / "inputs").iterdir():
        if source.is_file():
            shutil.copy(source, folder)
    with contextlib.chdir(folder):
        yield


def perform(name: str, *more: str) -> dict[str, Any]:
    """Run a command of the list here; return its exit code and its document, as far as seeds fix it."""
    from reprl.cli.app import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main([*shlex.split(COMMANDS[name]), *more, "--json"])
    return {"code": code, "document": fixed(json.loads(printed.getvalue()))}


def pretty(document: Any) -> str:
    """Return a document as the text that is stored."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def write(folder: Path, names: Iterable[str]) -> None:
    """Write what the commands give to a folder: how the fixtures were made."""
    (folder / "answers").mkdir(parents=True, exist_ok=True)
    with inside(folder):
        for name in names:
            answer = perform(name)
            print(name, answer["code"], answer["document"].get("error", ""), file=sys.stderr)
            (folder / "answers" / f"{name}.json").write_text(pretty(answer))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:] or COMMANDS)

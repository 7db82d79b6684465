"""Run one benchmark, or list them all.

A benchmark is a module here with a `run() -> list[dict]`, one dictionary per line of its table. Modules without one
(scripts that draw figures) are not listed. One with a `PAGE` is shown there: `--store` keeps what it measures in
benchmarks/data, and puts it into that page; `--draw-only` does so again with all that is stored.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import table
from experiments.runner import ROOT, insert
from reprl.storage.files import write_atomic

DATA = Path(__file__).parent / "data"


def marks(name: str) -> tuple[str, str]:
    """Return the lines of a page between which a benchmark stands."""
    return f"<!-- tables: python -m benchmarks {name} -->\n", "<!-- end of tables -->\n"


def names() -> list[str]:
    """Return what may be run."""
    found = pkgutil.iter_modules([str(DATA.parent)])
    return [one.name for one in found if "\ndef run()" in (DATA.parent / f"{one.name}.py").read_text("utf-8")]


def module_of(name: str) -> ModuleType:
    """Import a benchmark: none needs what another does."""
    return importlib.import_module(f"benchmarks.{name}")


def show(name: str) -> None:
    """Put what a benchmark has stored into its page."""
    rows = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    insert(ROOT / "docs" / module_of(name).PAGE, marks(name), table.markdown(rows))


def main(arguments: list[str]) -> int:
    known = names()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run one benchmark, or list them all.")
    parser.add_argument("name", nargs="?", help="one of: " + ", ".join(known))
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    parser.add_argument("--store", action="store_true", help="keep the rows, and show them in the documentation")
    parser.add_argument("--draw-only", action="store_true", help="measure nothing: show again what is stored")
    options = parser.parse_args(arguments)
    if options.draw_only:
        for name in known:
            if hasattr(module_of(name), "PAGE"):
                show(name)
        return 0
    if options.name is None:
        for name in known:
            print(f"{name:12} {(module_of(name).__doc__ or '').strip().splitlines()[0]}")
        return 0
    if options.name not in known:
        print(f"name must be one of {', '.join(known)}; got {options.name!r}", file=sys.stderr)
        return 2
    module = module_of(options.name)
    if options.store and not hasattr(module, "PAGE"):
        print(f"{options.name} is shown in no page: --store is for those that are", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = module.run()
    if options.store:
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        write_atomic(DATA / f"{options.name}.json", f"[\n{lines}\n]\n".encode())
        show(options.name)
    print(json.dumps(rows, ensure_ascii=False, indent=1) if options.json else table.render(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

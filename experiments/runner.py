"""How an experiment is run: measure what is missing, store each measurement as it is done, draw figures and tables.

A run that was stopped goes on where it was. Measurements are tasks (``reprl.execution.tasks``): neither processes nor
the cluster that joblib is told of can change them, and each is stored as soon as it is done, whatever its turn.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reprl.errors import ReprlError
from reprl.execution.tasks import cluster, run_tasks
from reprl.randomness import STREAM_VERSION
from reprl.storage.files import write_atomic

ROOT = Path(__file__).parent.parent
Job = Callable[[], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A plan of measurements and how they are shown."""

    name: str
    """Of its folder here."""
    page: str
    """In docs/, whose tables are its own."""
    jobs: Callable[[bool], dict[str, Job]]
    """From whether it is the quick version to every measurement, by the name it is stored under."""
    head: Callable[[bool], dict[str, Any]]
    """What the stored data were measured with."""
    tables: Callable[[dict[str, Any]], str]
    marks: tuple[str, str]
    """Lines of the page between which they stand."""
    draw: Callable[[dict[str, Any], Path], object] = lambda data, folder: None
    """Draw the figures in a folder; nothing where the tables say it all."""
    extra: str | None = None
    """Of reprl, that measuring needs beyond what `make venv` installs."""
    needs: tuple[str, ...] = ()
    """Modules of that extra."""

    @property
    def lacks(self) -> str | None:
        """Say what is missing to measure it here."""
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        return f"{self.name} needs {', '.join(missing)}: pip install 'reprl[{self.extra}]'" if missing else None

    def load(self, file: Path, quick: bool) -> dict[str, Any]:
        """Return what is stored, or an empty store; a store of another plan is refused."""
        return load(file, self.head(quick))

    def collect(self, file: Path, quick: bool, only: list[str], workers: int = 1) -> dict[str, Any]:
        """Measure what is missing and store it, one measurement at a time."""
        jobs = self.jobs(quick)
        return collect(file, self.head(quick), jobs, [name for name in jobs if selected(name, only)], workers)

    def main(self, argv: list[str] | None, about: str | None) -> None:
        """Measure, store, draw."""
        parser = argparse.ArgumentParser(prog=f"experiments.{self.name}", description=about)
        parser.add_argument("--quick", action="store_true", help="a small version that shows that everything runs")
        parser.add_argument("--only", action="append", default=[], help="measure only what has this text in its name")
        parser.add_argument("--draw-only", action="store_true", help="measure nothing: redraw from the stored data")
        parser.add_argument("--workers", type=int, default=1, help="processes; they cannot change the data")
        parser.add_argument("--dask", metavar="ADDRESS", help="measure on this Dask cluster")
        parser.add_argument("--out", type=Path, help="folder for the results; the repository's own by default")
        options = parser.parse_args(argv)
        if options.quick and options.out is None:
            options.out = Path("out") / self.name
        file = (options.out or ROOT / "experiments" / self.name) / "data.json"
        if options.draw_only:  # what was measured under another plan or stream version is still what was measured
            data = json.loads(file.read_text())
        elif self.lacks:
            parser.exit(2, f"{self.lacks}\n")
        else:
            with cluster(options.dask):
                data = self.collect(file, options.quick, options.only, options.workers)
        import matplotlib as mpl

        from experiments.numbers import fill_page  # which asks every experiment

        with mpl.rc_context():  # how one experiment draws is none of the next one's
            mpl.rcdefaults()
            self.draw(data, options.out or ROOT / "docs" / "figures")
        if options.out is None:
            insert(ROOT / "docs" / self.page, self.marks, self.tables(data))
            fill_page(f"docs/{self.page}")
        else:
            (options.out / "tables.md").write_text(self.tables(data))
        print(f"wrote {file}, figures and tables")


def load(file: Path, head: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored, or an empty store; a store of another plan is refused."""
    head = {**head, "stream_version": STREAM_VERSION}
    if not file.exists():
        return {**head, "measured": {}}
    data: dict[str, Any] = json.loads(file.read_text())
    different = [name for name, value in head.items() if data.get(name) != value]
    if different:
        raise ReprlError(f"{file} was measured with another {', '.join(different)}: move it away to start again")
    return data


def collect(file: Path, head: dict[str, Any], jobs: Mapping[str, Job], todo: list[str], workers: int) -> dict[str, Any]:
    """Measure what is missing of what is to do, in that order, and store each measurement as it is done."""
    data = load(file, head)
    wanted = {name: jobs[name] for name in todo if name not in data["measured"]}
    order = [*jobs, *(name for name in data["measured"] if name not in jobs)]
    for _ in run_tasks(_measure, wanted, [*wanted], workers=workers, store=_Stored(file, data, order)):
        pass
    return data


def selected(name: str, only: list[str]) -> bool:
    """Say whether a measurement is among those asked for: all, or those whose names hold one of the texts."""
    return not only or any(text in name for text in only)


class _Stored:
    """Measurements in one file, which is written anew with every one that is done."""

    def __init__(self, file: Path, data: dict[str, Any], order: list[str]) -> None:
        self.file, self.data, self.order = file, data, order

    def get(self, name: str, /) -> None:
        """Only what is missing is asked for."""

    def put(self, name: str, done: tuple[dict[str, Any], float], /) -> None:
        found, seconds = done
        measured = {**self.data["measured"], name: found}
        self.data["measured"] = {key: measured[key] for key in self.order if key in measured}
        store(self.file, self.data)
        print(f"{name}: {seconds:.1f} s", flush=True)


def insert(page: Path, marks: tuple[str, str], tables: str) -> None:
    """Put tables between their marks in a page."""
    page.write_text(between(page.read_text(), marks, tables))


def between(text: str, marks: tuple[str, str], tables: str) -> str:
    """Return a page with tables between their marks."""
    start, end = marks
    head, _, rest = text.partition(start)
    return f"{head}{start}\n{tables}\n{end}{rest.partition(end)[2]}"


def store(file: Path, data: dict[str, Any]) -> None:
    """Write the data, one measurement a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    head = {name: value for name, value in data.items() if name != "measured"}
    lines = [f"{json.dumps(name, ensure_ascii=False)}: {_line(found)}" for name, found in data["measured"].items()]
    text = json.dumps(head, ensure_ascii=False)[:-1] + ', "measured": {\n' + ",\n".join(lines) + "\n}}\n"
    write_atomic(file, text.encode())


def _line(found: dict[str, Any]) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def _measure(jobs: Mapping[str, Job], name: str) -> tuple[dict[str, Any], float]:
    start = time.perf_counter()
    return jobs[name](), time.perf_counter() - start

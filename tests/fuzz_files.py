"""Damaged and forged files against everything that reads them.

A share runs with the tests (test_fuzz_files.py); the rest behind one command:

    make fuzz                                 # or python -m tests.fuzz_files --files 100000 --seed 1

Every file must end in a value that can be written, read and shown again, or in a ReprlError of one line. Receipts are
sealed anew after every forgery, as a forger would. It prints what was tried, what was refused and what was accepted,
the slowest file and the largest memory; the first file that ends otherwise is printed and kept.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import hashlib
import io
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import reprl
from tests import fuzz_folders
from tests.forgery import damage, forge, reseal, to_bytes
from tests.report_samples import audit_document, run_documents

MAX_MESSAGE = 2000
MAX_MEMORY = 1 << 19
"""KiB that the files of one kind may take more than what was taken before: half a GiB."""
HUNG = 120
"""Seconds after which a file counts as one that hangs its reader."""


class Target(NamedTuple):
    """A kind of file."""

    name: str
    samples: tuple[dict[str, Any], ...]
    """Good documents of it."""
    read: Callable[[bytes], Any]
    """Do with a file all that a reader may do; raises a ReprlError or returns a value."""
    seal: Callable[[dict[str, Any]], None] = lambda document: None
    """Make a forged document agree with itself again, as far as a forger can."""
    make: Callable[[random.Random], bytes] | None = None
    """Makes a bad file; None for one that is forged from a sample or damaged."""


class Outcome(NamedTuple):
    """What a file ended in."""

    refused: str | None
    """The error, or None if it was accepted."""
    seconds: float


def _shown(source: Any) -> None:
    """Draw the page, which must be whole text."""
    with tempfile.TemporaryDirectory() as folder, mock.patch("os.fsync"):  # nothing here outlives a crash
        page = reprl.write_report(source, Path(folder) / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")


def _read_recipe(data: bytes) -> Any:
    recipe = reprl.Recipe.from_json(data)
    assert reprl.Recipe.from_json(recipe.to_json()).digest == recipe.digest
    return recipe


def _read_receipt(data: bytes) -> Any:
    receipt = reprl.Receipt.from_json(data)
    assert reprl.Receipt.from_json(receipt.to_json()) == receipt
    assert str(receipt.guarantee)
    return receipt


def _read_policy(data: bytes) -> Any:
    policy = reprl.Policy.from_json(data)
    assert reprl.Policy.from_json(policy.to_json()) == policy
    return policy


def _read_audit(data: bytes) -> Any:
    from rich.console import Console

    report = reprl.AuditReport.from_json(data)
    assert reprl.AuditReport.from_json(report.to_json()).to_json() == report.to_json()
    report.show(Console(file=io.StringIO()))
    assert repr(report)
    _shown(report)
    return report


def targets() -> tuple[Target, ...]:
    """Every kind of file with good samples: both rules, both kinds of access, with and without a promise."""
    return _targets()


@functools.cache
def _targets() -> tuple[Target, ...]:
    grid, swim = reprl.make("gridworld-v0", horizon=3, size=2), reprl.make("river-swim-v0", horizon=4, n_states=3)
    large = reprl.make("two-goals-v0", horizon=3, size=3)
    runs = (
        run_documents(grid, epsilon=0.5),
        run_documents(swim, epsilon=0.5, access="episodic", preference=(1, 0), max_samples=4000),
        run_documents(grid, rule="paper"),
        run_documents(swim, rule="paper", access="episodic", constants="scaled", scale=0.02, epsilon=1.0),
    )
    return (
        Target("recipe", tuple(run["recipe"] for run in runs), _read_recipe),
        Target("receipt", tuple(run["receipt"] for run in runs), _read_receipt, reseal),
        Target("policy", tuple(run["policy"] for run in runs), _read_policy),
        Target("audit", (audit_document(grid), audit_document(large, "not rejected")), _read_audit),
        Target("run folder", (), fuzz_folders.read_folder, make=fuzz_folders.make_folder),
    )


def make_file(rng: random.Random, target: Target) -> bytes:
    """Make one bad file, or now and then a good one."""
    if target.make is not None:
        return target.make(rng)
    document = rng.choice(target.samples)
    if rng.random() < 0.35:
        return damage(rng, to_bytes(document))
    forged = forge(rng, document)
    target.seal(forged)
    return to_bytes(forged)


def try_file(target: Target, data: bytes) -> Outcome:
    """Read a file; anything but a value or a ReprlError of one line escapes."""
    began = time.perf_counter()
    try:
        target.read(data)
    except reprl.ReprlError as error:
        text = str(error)
        assert text, "an error must say something"
        assert len(text.splitlines()) == 1, f"an error must be one line, got {text!r}"
        assert len(text) <= MAX_MESSAGE, f"an error must be short, got {len(text)} characters"
        return Outcome(text, time.perf_counter() - began)
    return Outcome(None, time.perf_counter() - began)


class Tally(NamedTuple):
    """What became of the files of one kind."""

    files: int
    refused: int
    reasons: int
    """Different openings of errors."""
    slowest: float


def fuzz(target: Target, files: int, seed: int, *, watched: bool = False) -> Tally:
    """Try files; the first that ends otherwise is kept among the temporary files and its error raised.

    If watched, a file that takes longer than HUNG ends the process with its traceback.
    """
    rng = random.Random(f"{target.name} {seed}")
    reasons: Counter[str] = Counter()
    refused, slowest = 0, 0.0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(files):
        data = make_file(rng, target)
        if watched:
            faulthandler.dump_traceback_later(HUNG, exit=True)
        try:
            outcome = try_file(target, data)
        except BaseException:
            kept = Path(tempfile.gettempdir()) / f"reprl-fuzz-{hashlib.sha256(data).hexdigest()[:12]}"
            kept.write_bytes(data)
            print(f"{target.name}: the file {kept} ended otherwise", file=sys.stderr)
            raise
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used
        assert more < MAX_MEMORY, f"a file took {more >> 10} MiB: {data[:2000]!r}"
        slowest = max(slowest, outcome.seconds)
        if outcome.refused is not None:
            refused += 1
            reasons[" ".join(outcome.refused.split()[:5])] += 1
    faulthandler.cancel_dump_traceback_later()
    return Tally(files, refused, len(reasons), slowest)


def main() -> int:
    """Fuzz all kinds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000, help="files in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one kind of file, such as 'run folder'")
    given = parser.parse_args()
    kinds = [target for target in targets() if given.only in (None, target.name)]
    if not kinds:
        parser.error(f"--only must be one of {', '.join(target.name for target in targets())}, got {given.only!r}")
    each = -(-given.files // len(kinds))
    print(f"{'kind':12} {'files':>8} {'refused':>8} {'accepted':>8} {'reasons':>8} {'slowest':>9}")
    for target in kinds:
        found = fuzz(target, each, given.seed, watched=True)
        accepted = found.files - found.refused
        figures = f"{found.files:8} {found.refused:8} {accepted:8} {found.reasons:8} {found.slowest:7.3f} s"
        print(f"{target.name:12} {figures}", flush=True)
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Damaged and forged files against everything that reads them.

A share runs with the tests (test_fuzz_files.py); the rest behind one command:

    make fuzz                                 # or python -m tests.fuzz_files --files 100000 --seed 1

Every file must end in a value that can be written, read and shown again, or in a ReprlError of one line. Receipts are
sealed anew after every forgery, as a forger would. It prints what was tried, what was refused and what was accepted,
the slowest file and the largest memory; the first file that ends otherwise is printed and kept.
"""

from __future__ import annotations

import argparse
import copy
import functools
import hashlib
import io
import json
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
from reprl.artifacts.folder import POLICY, RECEIPT, RECIPE, load_run
from reprl.artifacts.verify import compare_policies, load_evidence
from reprl.documents import digest
from tests.report_samples import audit_document, comparison_document, run_documents

MAX_MESSAGE = 2000
MAX_MEMORY = 1 << 19
"""KiB that the files of one kind may take more than what was taken before: half a GiB."""
_RAW = "@raw@"
"""Begins a text that is put into the file without its quotation marks."""
NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 7, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 2**100, 10**400, -(2**70), True, False),
    *(0.5, 1.0, -0.5, 5e-324, 1e-300, 1e300, 1.7e308, -1e308, -0.0, 0.1 + 0.2),
    *(f"{_RAW}{text}" for text in ("1e999", "-1e999", "NaN", "Infinity", "1e-400", "9" * 30, "1E+2", "-0")),
)
TEXTS: tuple[Any, ...] = (
    *(
        "",
        "a",
        "0",
        "none",
        "proven",
        "\x00",
        "\x1b[31mred",
        "\u202e",
        "é",
        "\U0001f600",
        "x" * 3000,
        "0" * 64,
        "f" * 64,
    ),
    *("canonical", "sampled", "<script>alert(1)</script>", "../../etc/passwd", "gym:no_such_module:Foo-v0", "\n\n"),
    *(f"{_RAW}{text}" for text in (r'"\ud800"', r'"\udc00\ud800"', r'"a\u0000"', '"', "'a'", "nul", "[", "}", ",")),
)
NESTS: tuple[Any, ...] = ([], {}, [[]], [None], [[1]], {"a": 1}, [1, 2, 3], [[0.5] * 3] * 3, [[]] * 50, None)
DEEP = f"{_RAW}{'[' * 3000}{']' * 3000}"


class Target(NamedTuple):
    """A kind of file."""

    name: str
    samples: tuple[dict[str, Any], ...]
    """Good documents of it."""
    read: Callable[[bytes], Any]
    """Do with a file all that a reader may do; raises a ReprlError or returns a value."""
    seal: Callable[[dict[str, Any]], None] = lambda document: None
    """Make a forged document agree with itself again, as far as a forger can."""


class Outcome(NamedTuple):
    """What a file ended in."""

    refused: str | None
    """The error, or None if it was accepted."""
    seconds: float


def forge(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """Return a copy in which some values, names or shapes are others."""
    forged = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        parent, name = _place(rng, forged)
        if parent is None:
            continue
        action = rng.random()
        if action < 0.1:
            del parent[name]
        elif action < 0.2 and isinstance(parent, dict):
            parent[rng.choice(("x", "format", "", "__class__", str(name) + " "))] = parent[name]
        elif action < 0.25 and isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(parent[name]))
        else:
            parent[name] = _other(rng, parent[name])
    return forged


def _place(rng: random.Random, node: Any) -> tuple[Any, Any]:
    """A random place in a document, any depth as likely as another."""
    parent, name = None, None
    while isinstance(node, dict | list) and node:
        parent, name = node, rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        node = parent[name]
        if rng.random() < 0.3:
            break
    return parent, name


def _other(rng: random.Random, value: Any) -> Any:
    """Another value: often of the same kind, so that it passes the first checks."""
    pick = rng.random()
    if pick < 0.02:
        return DEEP
    if isinstance(value, bool | int | float) and pick < 0.75:
        if pick < 0.4 and not isinstance(value, bool) and abs(value) < 1e100:
            return rng.choice((value + 1, value - 1, value * 2, -value, value * 10**9, float(value), value / 3))
        return rng.choice(NUMBERS)
    if isinstance(value, str) and pick < 0.7:
        return rng.choice(TEXTS) if pick < 0.5 else value[: rng.randrange(len(value) + 1)]
    if isinstance(value, list) and pick < 0.6:
        return value[: rng.randrange(len(value) + 1)] if pick < 0.3 else value + value[-1:] * rng.choice((1, 1, 40))
    return copy.deepcopy(rng.choice((*NUMBERS, *TEXTS, *NESTS)))


def to_bytes(document: dict[str, Any]) -> bytes:
    """Write a forged document, raw texts without their quotation marks."""
    text = json.dumps(document)
    while (start := text.find(f'"{_RAW}')) >= 0:
        inner, end = json.decoder.scanstring(text, start + 1)  # type: ignore[attr-defined]
        text = text[:start] + inner.removeprefix(_RAW) + text[end:]
    return text.encode("utf-8", "surrogatepass")


def damage(rng: random.Random, data: bytes) -> bytes:
    """Return a file with flipped bits, a stretch cut out, doubled or written over, or its end missing."""
    bytes_ = bytearray(data)
    low, high = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    high = min(high, low + rng.choice((1, 4, 64, len(data))))
    way = rng.randrange(5)
    if way == 0:
        for _ in range(rng.choice((1, 1, 2, 8))):
            bytes_[rng.randrange(len(bytes_))] ^= 1 << rng.randrange(8)
    elif way == 1:
        del bytes_[low:high]
    elif way == 2:
        bytes_[high:high] = bytes_[low:high]
    elif way == 3:
        bytes_[low:high] = rng.randbytes(rng.choice((1, 2, 16)))
    else:
        del bytes_[low:]
    return bytes(bytes_)


def _reseal(document: dict[str, Any]) -> None:
    """Give a receipt the digest of what it says now."""
    body = {name: value for name, value in document.items() if name not in ("digest", "timings")}
    try:
        plain = json.loads(to_bytes(body), parse_constant=lambda name: 1 // 0)
        document["digest"] = digest(plain)
    except (ValueError, RecursionError, ZeroDivisionError, OverflowError):
        return


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


def _read_comparison(data: bytes) -> Any:
    from rich.console import Console

    comparison = reprl.Comparison.from_json(data)
    assert reprl.Comparison.from_json(comparison.to_json()).to_json() == comparison.to_json()
    Console(file=io.StringIO()).print(comparison)
    _shown(comparison)
    return comparison


FILES = (RECIPE, RECEIPT, POLICY)


def _read_folder(data: bytes) -> Any:
    """A run folder, its three files in one, with a line between that no JSON document has."""
    parts = data.split(b"\n\x00\n")
    with tempfile.TemporaryDirectory() as folder:
        for name, part in zip(FILES, parts, strict=False):
            (Path(folder) / name).write_bytes(part)
        evidence = load_evidence(Path(folder))
        compare_policies(evidence.policy or evidence.fingerprint, evidence.fingerprint).as_dict()
        with mock.patch("reprl.artifacts.folder.time.sleep"):  # no other run is moving in
            run = load_run(folder)
            _shown(folder)
        return run


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
        run_documents(grid, rule="sampled", calls=2**62),
        run_documents(swim, rule="sampled", runs=2, access="episodic"),
    )
    return (
        Target("recipe", tuple(run["recipe"] for run in runs), _read_recipe),
        Target("receipt", tuple(run["receipt"] for run in runs), _read_receipt, _reseal),
        Target("policy", tuple(run["policy"] for run in runs), _read_policy),
        Target("audit", (audit_document(grid), audit_document(large, "not rejected")), _read_audit),
        Target("comparison", (comparison_document(grid),), _read_comparison),
        Target("run folder", runs, _read_folder),
    )


def make_file(rng: random.Random, target: Target) -> bytes:
    """Make one bad file, or now and then a good one."""
    document = rng.choice(target.samples)
    if target.name == "run folder":
        parts = {name: to_bytes(part) for name, part in document.items()}
        name = rng.choice(list(parts))
        if rng.random() < 0.5:
            forged = forge(rng, document[name])
            if name == "receipt":
                _reseal(forged)
            parts[name] = to_bytes(forged)
        else:
            parts[name] = damage(rng, parts[name])
        return b"\n\x00\n".join(parts.values())
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


def fuzz(target: Target, files: int, seed: int) -> Tally:
    """Try files; the first that ends otherwise is kept beside the working folder and its error raised."""
    rng = random.Random(f"{target.name} {seed}")
    reasons: Counter[str] = Counter()
    refused, slowest = 0, 0.0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(files):
        data = make_file(rng, target)
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
        found = fuzz(target, each, given.seed)
        accepted = found.files - found.refused
        figures = f"{found.files:8} {found.refused:8} {accepted:8} {found.reasons:8} {found.slowest:7.3f} s"
        print(f"{target.name:12} {figures}", flush=True)
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Mutated log files end in counts or in a ReprlError of one line: no other exception, no hang, no flood of memory.

REPRL_MUTATED sets how many files are tried.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

import reprl
from reprl.sources.logs.read import read_log
from reprl.sources.logs.scan import find_labels
from reprl.sources.logs.spec import LogSpec
from reprl.sources.logs.tables import open_table
from tests.clinic_log import make_log

MUTATED = int(os.environ.get("REPRL_MUTATED", "600"))
NASTY = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b'"',
    b"\n",
    b"\r",
    b",",
    b",,,,,,",
    b"nan",
    b"-inf",
    b"1e999",
    b"-0.0",
    b"9" * 40,
    b"\xef\xbb\xbf",
    "é\u2028\u202e".encode(),
    b"=1+1",
    b"None",
    b"true",
    b"x" * 3000,
)


def originals(folder: Path) -> dict[str, bytes]:
    """A good log in every format, small enough to be mutated thousands of times."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_log(6, 1))
    frame["done"] = False
    frame.to_csv(folder / "good.csv", index=False)
    frame.to_parquet(folder / "good.parquet")
    text = (folder / "good.csv").read_bytes()
    return {".csv": text, ".csv.gz": gzip.compress(text, mtime=0), ".parquet": (folder / "good.parquet").read_bytes()}


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Change a file in one to four places: bytes, fields, lines, its length."""
    for _ in range(rng.randint(1, 4)):
        at, kind = rng.randrange(len(data) + 1), rng.randrange(7)
        if kind == 0:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + rng.choice(NASTY) + data[at:]
        elif kind == 2:
            data = data[:at]
        elif kind == 3:
            data = data[:at] + data[at + rng.randrange(1, 40) :]
        else:
            lines = data.split(b"\n")
            one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            if kind == 4:
                lines[one], lines[other] = lines[other], lines[one]
            elif kind == 5:
                lines.insert(one, lines[other])
            else:
                fields = lines[one].split(b",")
                fields[rng.randrange(len(fields))] = rng.choice(NASTY)
                lines[one] = b",".join(fields)
            data = b"\n".join(lines)
    return data


def attempt(path: Path) -> str:
    """Check and read a file; "read", or "refused" by one line. Anything else escapes and fails the test."""
    try:
        checked = reprl.check_log(path, horizon=3)
        assert all(len(str(finding).splitlines()) == 1 for finding in checked.findings)
        assert json.dumps(checked.to_dict(), allow_nan=False)
        refused = any(finding.severity == "error" for finding in checked.findings)
    except reprl.ReprlError:
        refused = True
    try:
        table = open_table(path)
        labels = find_labels(table)
        found = read_log(table, LogSpec(horizon=3, states=labels["states"], actions=labels["actions"]))
        assert found.rows > 0
        assert not refused or path.suffix != ".csv"
        return "read"
    except reprl.ReprlError as error:
        text = str(error)
        assert len(text.splitlines()) == 1
        assert len(text) < 1000
        return "refused"


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rng = random.Random(20261115)
    good = originals(tmp_path)
    assert all(attempt(_written(tmp_path, ending, data)) == "read" for ending, data in good.items())
    seen: Counter[tuple[str, str]] = Counter()
    tracemalloc.start()
    for number in range(MUTATED):
        ending = (".csv", ".csv.gz", ".csv", ".parquet")[number % 4]
        data = mutate(good[".csv"], rng) if ending == ".csv.gz" and rng.random() < 0.5 else b""
        data = gzip.compress(data, 1) if data else mutate(good[ending], rng)
        seen[ending, attempt(_written(tmp_path, ending, data))] += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**27
    assert seen[".csv", "refused"] > MUTATED // 10
    assert seen[".csv", "read"] > 0  # the control: mutations are not all fatal


def _written(folder: Path, ending: str, data: bytes) -> Path:
    path = folder / f"log{ending}"
    path.write_bytes(data)
    return path

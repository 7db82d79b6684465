"""Flip single bits in the kernel cache: nothing wrong may run.

`python -m tests.flips` learns once with a fresh cache. Then it flips one bit at a time in its files and reads each: all
must be noticed. Then it flips one bit in every file at once and learns again: the policy must be the same. Results are
lines of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reprl import kernels

LEARN = ["-m", "reprl", "learn", "river-swim-v0", "--horizon", "4", "--shared-seed", "1", "--data-seed", "2", "--json"]
LIMIT = ["--max-samples", "20000"]


def learn(cache: Path) -> tuple[int, str]:
    """Return exit code and fingerprint of a run with this cache."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, *LEARN, *LIMIT], capture_output=True, text=True, env=env, timeout=1200)
    try:
        return done.returncode, json.loads(done.stdout)["receipt"]["fingerprint"]
    except (ValueError, KeyError):
        return done.returncode, done.stderr[-300:]


def flip(file: Path, rng: random.Random) -> bytes:
    """Flip one bit of a file; return what was there."""
    whole = file.read_bytes()
    bit = rng.randrange(8 * len(whole))
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    file.write_bytes(damaged)
    return whole


def flips(cache: Path, times: int, rng: random.Random) -> dict[str, int]:
    """Flip one bit at a time, and count the files that were believed all the same."""
    files, believed = sorted(cache.rglob("*.nbc")), 0
    for _ in range(times):
        file = rng.choice(files)
        whole = flip(file, rng)
        try:
            kernels._read_entry(file)
            believed += 1
        except ValueError:
            pass
        file.write_bytes(whole)
    return {"files": len(files), "flips": times, "believed": believed}


def run(number: int) -> dict[str, object]:
    """Learn, damage every file, learn twice again."""
    rng = random.Random(number)
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place)
        first = learn(cache)
        single = flips(cache, 1000, rng) if number == 0 else {}
        files = sorted(cache.rglob("*.nbc"))
        for file in files:
            flip(file, rng)
        second, third = learn(cache), learn(cache)
    same = first == second == third
    return {"run": number, "damaged": len(files), "same": same, "answers": [first, second, third], **single}


def main() -> None:
    """Read the numbers of runs and of processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with ThreadPoolExecutor(given.workers) as pool:
        for line in pool.map(run, range(given.runs)):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

"""Gives every test process its own cache of compiled kernels, made afresh when any source file changes.

Numba's own cache looks only at the file a kernel is written in, so a kernel that calls one in another file keeps the
old code when that other file changes. And two processes that save two signatures of one kernel at once can file the
code of one under the name of the other. Both would let a test run code that is not in the tree.
"""

import hashlib
import os
import shutil
from pathlib import Path

_ROOT = Path(__file__).resolve().parent


def _source_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted((_ROOT / "src").rglob("*.py")):
        digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _own_cache() -> Path:
    worker = _ROOT / ".pytest_cache" / "numba" / os.environ.get("PYTEST_XDIST_WORKER", "main")
    current = worker / _source_digest()
    for old in worker.glob("*"):
        if old != current:
            shutil.rmtree(old, ignore_errors=True)
    return current


# Numba reads this when it is first imported, which is later than this file.
os.environ["NUMBA_CACHE_DIR"] = str(_own_cache())
# Test workers are told a width of 80; what is piped has none.
os.environ.pop("COLUMNS", None)

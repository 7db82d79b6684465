"""reprl warm-up: what learning needs is compiled before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_warm_up_fills_the_cache_and_then_finds_nothing_to_do(tmp_path: Path) -> None:
    """Compiled anew into a cache of its own by another process; run again, every signature is there."""
    command = [sys.executable, "-m", "reprl", "warm-up", "--json"]
    where = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [subprocess.run(command, env=where, capture_output=True, check=True, text=True) for _ in range(2)]
    found = [json.loads(run.stdout) for run in runs]
    assert [each["compiled"] for each in found] == [True, False]

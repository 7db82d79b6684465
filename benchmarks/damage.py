"""Damage: work that is killed, faults while files are written, and files that are damaged or forged; what came of each.

Half of all faults; REPRL_DAMAGE=0.1 tries a tenth of everything else, 10 ten times as much.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.faults import inject
from tests.fuzz_files import Target, fuzz, targets
from tests.kills import kill

PAGE = "security.md"
KILLS, SHARE, FILES, FOLDERS = 50, 2, 4000, 1000


def run() -> list[dict[str, Any]]:
    size = float(os.environ.get("REPRL_DAMAGE", "1"))
    rows: list[dict[str, Any]] = []

    def add(what: str, work: Callable[[], dict[str, Any]]) -> None:
        began = time.perf_counter()
        rows.append({"what": what, **work()})
        print(f"{what}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)

    names = {"audit": "audits", "continue": "chains of `reprl learn --continue`"}
    for what, name in names.items():
        add(f"{name} killed and started again", partial(_killed, round(KILLS * size), what))
    add("faults while runs and audits are written", partial(_injected, SHARE))
    for target in targets():
        files = FOLDERS if target.name == "run folder" else FILES
        add(f"{target.name}: damaged or forged", partial(_forged, target, round(files * size)))
    return rows


def _killed(times: int, what: str) -> dict[str, Any]:
    found = kill(times, what)
    return {
        "tried": found["killed"],
        "as it must be": found["same bytes"],
        "struck midway": found["killed midway"],
        "made": found["made"],
        "made twice": found["made twice"],
    }


def _injected(share: int) -> dict[str, Any]:
    found = inject(share)
    tried = sum(found.injected.values())
    return {"tried": tried, "as it must be": tried - len(found.broken)}


def _forged(target: Target, files: int) -> dict[str, Any]:
    """A file that ends otherwise ends the benchmark."""
    found = fuzz(target, files, 1, watched=True)
    return {"tried": files, "as it must be": files, "refused": found.refused, "slowest, s": found.slowest}

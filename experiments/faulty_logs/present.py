"""The table of the stored measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.faulty_logs.worlds import FAULTS

START, END = "<!-- experiments.faulty_logs: tables -->", "<!-- end of tables -->"
WORDS = {
    "none": "no fault",
    "dropout": "10 % dropout at every step, no flags, half of the logs without next states",
    "flagged dropout": "the same beside true ends, which are flagged",
    "time limit": "`done` at the horizon is a time limit, `stationary=True`",
    "early limit": "`done` after 4 rows is a time limit, horizon 6",
    "copies": "60 episodes, ten times",
    "block": "the first half again at the end",
    "doubled": "half of the episodes twice, side by side",
    "near-duplicates": "30 % of the states written in capitals, with a blank",
    "ends": "no fault; episodes end by chance and say so",
    "dropout, told": "dropout, and the user has said so",
    "flagged dropout, told": "flagged dropout with next states, and the user has said so",
    "early limit, told": "no fault: the time limit after 4 rows is the horizon",
}
_COLUMNS = ("log", "logs", "refused", "bias named", "warned", "nothing said")


def tables(measured: Mapping[str, Any]) -> str:
    """Return one row for each kind."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for kind in FAULTS:
        rows = [row for name, row in measured.items() if name.split("#")[0] == kind]
        said = [sum(row["said"] == word for row in rows) for word in ("refused", "bias", "warning", "")]
        if rows:
            lines.append(f"| {' | '.join([WORDS[kind], str(len(rows)), *map(str, said)])} |")
    return "\n".join(lines)

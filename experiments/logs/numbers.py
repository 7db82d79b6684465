"""Numbers of its pages, looked up in the stored data of experiments.logs and in the code."""

from __future__ import annotations

import json
import math
from typing import Any

import reprl
from experiments.stored import ROOT, LookUp, code, default, measured, percent


def logs(*, longer: bool = False) -> list[Any]:
    """Return all pairs of halves of logs, or those of more than 10⁵ transitions."""
    return [one for name, one in measured("logs").items() if not (longer and "/100000#" in name)]


def apart(pairs: list[Any]) -> int:
    """Return how many pairs of our policies differ."""
    return sum(one["reprl"]["apart"] > 0 for one in pairs)


def inside(pairs: list[Any]) -> tuple[int, int]:
    """Return how many intervals hold the true value, and of how many."""
    return sum(sum(one["inside"]) for one in pairs), 2 * len(pairs)


def ten_million() -> list[str]:
    """Return CPU seconds and MiB of learning from 10⁷ rows of CSV."""
    rows = json.loads((ROOT / "benchmarks" / "data" / "logs.json").read_text("utf-8"))
    found = next(row for row in rows if row["rows"] == 10**7 and row["file"] == "csv")
    return [f"{found['learn, CPU s']:.0f}", f"{found['learn, MiB at most']}"]


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/logs.md": {
        "each-log-shorter": lambda: [f"{(least := code('reprl.mdp.criterion.LENGTH'))}", percent(least)],
        "each-up-blocks": lambda: [str(code("reprl.sources.logs.block_bootstrap.BLOCKS"))],
        "recipe-support-action": lambda: [f"{default(reprl.learn_log, 'support')}"],
        "al-reach-state": lambda: [f"{default(reprl.learn_log, 'reach')}"],
        "other-up-blocks": lambda: [str(code("reprl.sources.logs.block_bootstrap.BLOCKS"))] * 2,
        "halves-level": lambda: [f"{code('reprl.mdp.homogeneity.LEVEL')}"],
        "ten-million-rows": ten_million,
        "log-fewer-episodes": lambda: [str(code("reprl.sources.logs.source.LEAST"))],
        "were-sure-them": lambda: [
            str(len(both := [one for one in logs() if all(one["sure"])])),
            "some" if apart(both) else "none",
            str(len(logs())),
            str(apart(logs())),
            str(apart(logs()) - apart(logs(longer=True))),
        ],
        "says-so-greedy": lambda: [
            str(inside(logs())[1]),
            str(inside(logs())[0]),
            percent(inside(logs())[0] / inside(logs())[1]),
            "{} of the {}".format(*inside(logs(longer=True))),
            percent(inside(logs(longer=True))[0] / inside(logs(longer=True))[1]),
        ],
    },
    "docs/proofs/logs.md": {
        "standard-deviation-so": lambda: [percent(math.sqrt(2 / code("reprl.sources.logs.block_bootstrap.BLOCKS")))],
    },
}

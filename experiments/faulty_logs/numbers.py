"""Numbers of its page, looked up in the stored data."""

from __future__ import annotations

from typing import Any

from experiments.faulty_logs.present import held, unbiased
from experiments.faulty_logs.worlds import SOUND
from experiments.stored import LookUp, measured, percent


def open_ones() -> list[Any]:
    """Return the measurements with an interval in which no bias was named."""
    return unbiased(measured("faulty_logs").values())


def said() -> list[str]:
    """Whether a fault was silent, and whether a sound log was complained of."""
    rows = [(name.split("#")[0], row["said"]) for name, row in measured("faulty_logs").items()]
    silent = sum(not word for kind, word in rows if kind not in SOUND and "told" not in kind)
    blamed = sum(bool(word) for kind, word in rows if kind in SOUND)
    return [str(silent or "none"), str(blamed or "no")]


def shares() -> list[str]:
    """Intervals that hold, of how many, in value and in gain, with the shares; misses, and those that are too high."""
    rows = open_ones()
    value, gain = held(rows, "value"), held(rows, "gain")
    high = sum(truth < low for low, _, truth in (row["value"] for row in rows))
    figures = [str(value), str(len(rows)), str(gain), percent(round(value / len(rows), 2))]
    return [*figures, percent(round(gain / len(rows), 2)), str(high), str(len(rows) - value)]


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/logs.md": {"faults-said": said, "faulty-intervals-held": shares},
}

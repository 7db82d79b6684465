"""Numbers of its page, looked up in the stored data."""

from __future__ import annotations

from experiments.faulty_logs.worlds import SOUND
from experiments.stored import LookUp, measured


def said() -> list[str]:
    """Whether a fault was silent, and whether a sound log was complained of."""
    rows = [(name.split("#")[0], row["said"]) for name, row in measured("faulty_logs").items()]
    silent = sum(not word for kind, word in rows if kind not in SOUND and "told" not in kind)
    blamed = sum(bool(word) for kind, word in rows if kind in SOUND)
    return [str(silent or "none"), str(blamed or "no")]


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/logs.md": {"faults-said": said},
}

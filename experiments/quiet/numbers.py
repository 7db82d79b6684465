"""Numbers of its page, looked up in the stored data of experiments.quiet."""

from __future__ import annotations

from experiments.pairs import DEFAULT, RHO, Count, Counts, by_case, count
from experiments.quiet.__main__ import table
from experiments.stored import LookUp, measured


def cases(*data: str) -> dict[str, Counts]:
    """Return what pairs at the default quality came to, by world."""
    starts = tuple(f"{one}/{DEFAULT.name}/" for one in data)
    return {name: count(found) for name, found in by_case(measured("quiet")).items() if name.startswith(starts)}


def worst() -> list[str]:
    """Return the largest share of pairs that differ, and where."""
    name, seen = max(cases("parallel", "episodes").items(), key=lambda one: one[1].apart.failures / one[1].apart.trials)
    return [f"{seen.apart.failures} of {seen.apart.trials}", name.rpartition("/")[2]]


def missed() -> list[str]:
    """Return how many runs of all rows lost more than asked, and of how many."""
    seen = [count(found).missed for found in by_case(measured("quiet")).values()]
    return [str(sum(one.failures for one in seen)), f"{sum(one.trials for one in seen):,}"]


def shown(file: str) -> str:
    """Return the table of a file of stored pairs."""
    return table(measured("quiet", file=file))


SHARED_LUCK = "parallel/q=0.9/rare start, rarer"
"""The case in which one small error of the model changes the policy under most keys at once."""


def shared_luck() -> list[str]:
    """Return how many pairs differ there under the former rehearsal and under the present one, and of how many."""
    seen = [count(by_case(measured("quiet", file=file))[SHARED_LUCK]).apart for file in ("luck.json", "data.json")]
    return [str(number) for one in seen for number in (one.failures, one.trials)]


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/proofs/canonical.md": {"luck-measured": shared_luck},
    "docs/quiet.md": {
        "quiet-pairs": lambda: [
            str(min(one.pairs for one in cases(data).values())) for data in ("parallel", "episodes", "logs")
        ],
        "quiet-power": lambda: [str(next(k for k in range(100) if Count(k, 100, RHO).rejected))],
        "quiet-worst": worst,
        "quiet-missed": missed,
        "quiet-luck": shared_luck,
    },
}


TABLES = {"docs/quiet.md": {"now": lambda: shown("data.json")}}

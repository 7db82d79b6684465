"""Numbers of its pages, looked up in the stored data of experiments.icu_sepsis and in the code."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import reprl
from experiments.stored import LookUp, measured, phrases


@cache
def icu() -> Any:
    """Return the benchmark's world with its mask."""
    return reprl.make("icu-sepsis-v0")


def icu_values(horizon: int = 20) -> dict[str, float]:
    """Return the values by dynamic programming."""
    found: dict[str, float] = measured("icu_sepsis")[f"baselines/{horizon}"]
    return found


def icu_runs(*kinds: str) -> list[Any]:
    """Return the runs of some kinds."""
    return [one for name, one in measured("icu_sepsis").items() if name.partition("#")[0] in kinds]


def icu_loss() -> float:
    """Return what the one policy of the runs that draw samples loses."""
    (loss,) = {one["loss"] for one in icu_runs("parallel", "episodes")}
    return float(loss)


def agreeing(what: str, kind: str) -> list[int]:
    """Return how many simulated teams, or pairs, agreed in the runs of a kind."""
    sources = [one["source"] for one in icu_runs(kind)]
    return [int(re.findall(rf"(\d+) of \d+ {what}", source)[0]) for source in sources]


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/icu-sepsis.md": {
        "environments-md-states": lambda: [
            f"{icu().n_states * icu().n_actions:,}".replace(",", " "),
            f"{int(icu().allowed[0].sum()):,}".replace(",", " "),
            f"{int((icu().allowed[0].sum(axis=1) == 1).sum())} of the {icu().n_states}",
        ],
        "column-agrees-benchmark": lambda: sorted(
            {f"{icu_values(500)[x]:.2f}" for x in ("clinicians", "random admissible")}
        ),
        "lie-within-each": lambda: [f"{icu_values()['best admissible'] - icu_values()['worst']:.2f}"],
        "call-costs-samples": lambda: [f"{int(icu().allowed[0].sum()):,}".replace(",", " ")],
        "each-team-patients": lambda: sorted({f"{one['episodes']:,}".replace(",", " ") for one in icu_runs("log")}),
        "gives-up-over": lambda: [
            f"{icu_loss():.3f}",
            f"{icu_values()['best admissible'] - icu_values()['worst']:.2f}",
            f"{icu_values()['best admissible'] - icu_loss() - icu_values()['clinicians']:.3f}",
        ],
        "parallel-samples-simulated": lambda: sorted(
            {f"{number} of 40" for number in agreeing("simulated", "parallel")}
        ),
        "seeds-which-simulated": lambda: phrases(
            [
                *{f"{number} of 40" for number in agreeing("pairs", "episodes")},
                str(agreeing("simulated", "episodes")[0]),
                f"{agreeing('simulated', 'episodes')[1]} of 20",
            ],
            "{}",
            "{} and {}",
        ),
        "supported-settled-gb": lambda: sorted({f"{one['peak_mb'] / 1000:.0f}" for one in icu_runs("log")}),
    },
}

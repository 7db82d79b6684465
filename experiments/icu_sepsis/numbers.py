"""Numbers of its pages, looked up in the stored data of experiments.icu_sepsis and in the code."""

from __future__ import annotations

from functools import cache
from typing import Any

import reprl
from experiments.icu_sepsis.__main__ import QUALITY
from experiments.stored import LookUp, measured, percent, power


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
    found = measured("icu_sepsis")
    return [one for kind in kinds for one in found[kind]["teams"]]


def agreed() -> list[Any]:
    """Return the runs that promise a share of the decisions."""
    return icu_runs("parallel", "episodes")


def share(runs: list[Any], whose: str) -> float:
    """Return the least share of what can be gained over one of the benchmark's policies."""
    low, best = icu_values()[whose], icu_values()["best admissible"]
    return float((min(one["value"] for one in runs) - low) / (best - low))


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
        "gain-asked": lambda: [
            f"{icu_values()['best admissible'] - icu_values()['first admissible']:.3f}",
            f"{(1.0 - QUALITY) * (icu_values()['best admissible'] - icu_values()['first admissible']):.4f}",
        ],
        "call-costs-samples": lambda: [f"{int(icu().allowed[0].sum()):,}".replace(",", " ")],
        "each-team-patients": lambda: sorted({f"{one['episodes']:,}".replace(",", " ") for one in icu_runs("log")}),
        "agreed-gain": lambda: [percent(share(agreed(), "first admissible")), percent(share(agreed(), "clinicians"))],
        "agreed-steps": lambda: sorted(
            f"{measured('icu_sepsis')[kind]['alike']:.1%}" for kind in ("parallel", "episodes")
        ),
        "strict-runs": lambda: [
            power(max(one["samples"] for one in icu_runs("parallel, exact"))),
            percent(share(icu_runs("parallel, exact"), "first admissible")),
        ],
        "supported-settled-gb": lambda: sorted({f"{one['peak_mb'] / 1000:.0f}" for one in icu_runs("log")}),
    },
}

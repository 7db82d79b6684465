"""python -m experiments.discounted [--quick] [--only TEXT]: measure what is missing, then write tables of the page.

Pairs of runs on discounted worlds at the default quality, a fresh shared seed each and independent data; best values by
QuantEcon's policy iteration, which shares no code with ours. The full experiment takes about a quarter of an hour on
one core.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from experiments.runner import Experiment, Job
from reprl.auditing.evidence import exact_interval
from reprl.learning.learner import learn
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make

SEED, RHO = 20261116, 0.1
WORLDS: dict[str, tuple[str, float]] = {
    "river swim, γ = 0.95": ("river-swim-v0", 0.95),
    "gridworld 4×4, γ = 0.9": ("gridworld-v0", 0.9),
}
ACCESSES = ("generative", "episodic")
PAIRS, CHUNK = 40, 10
START, END = "<!-- experiments.discounted: tables -->", "<!-- end of tables -->"
_COLUMNS = (
    "environment",
    "access",
    "pairs",
    "that differ",
    "95 % interval",
    "with a promise",
    "samples, mean",
    "best value",
    "smallest share of the gain",
    "CPU s",
)


def solve_independently(mdp: TabularMDP) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return V*, (S,), by policy iteration of QuantEcon."""
    from quantecon.markov import DiscreteDP

    found = DiscreteDP(np.array(mdp.reward[0]), np.array(mdp.transition[0]), mdp.discount)
    values: np.ndarray[Any, np.dtype[np.float64]] = found.solve(method="policy_iteration").v
    return values


def pairs(world: str, access: str, numbers: range) -> dict[str, Any]:
    """Two runs for each number, with a shared seed of their own."""
    import time

    id, discount = WORLDS[world]
    mdp = make(id, discount=discount)
    assert isinstance(mdp, TabularMDP)
    best = float(mdp.initial @ solve_independently(mdp))
    baseline = mdp.evaluate(np.zeros(mdp.n_states, dtype=np.int64))
    rows = []
    for number in numbers:
        began = time.process_time()
        how: dict[str, Any] = {"access": access, "rho": RHO}
        runs = [learn(mdp, shared_seed=SEED + number, data_seed=2 * number + team, **how) for team in (0, 1)]
        rows.append(
            {
                "same": runs[0].policy == runs[1].policy,
                "sure": [run.guarantee.status == "rehearsed" for run in runs],
                "samples": [run.samples for run in runs],
                "share": [(mdp.evaluate(run.policy) - baseline) / (best - baseline) for run in runs],
                "seconds": round((time.process_time() - began) / 2, 2),
            }
        )
    return {"best": best, "rows": rows}


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement by the name it is stored under."""
    total, chunk = (2, 1) if quick else (PAIRS, CHUNK)
    return {
        f"{world}/{access}#{first}": partial(pairs, world, access, range(first, first + chunk))
        for world in WORLDS
        for access in ACCESSES
        for first in range(0, total, chunk)
    }


def head(quick: bool) -> dict[str, Any]:
    """Return what the data are measured with."""
    return {"quality": 0.9, "rho": RHO, "seed": SEED, "pairs": 2 if quick else PAIRS}


def tables(data: dict[str, Any]) -> str:
    """Return a row for each world and access."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for world in WORLDS:
        for access in ACCESSES:
            found = [one for name, one in data["measured"].items() if name.startswith(f"{world}/{access}#")]
            if found:
                rows = [row for one in found for row in one["rows"]]
                lines.append(_row(world, access, found[0]["best"], rows))
    return "\n".join(lines)


def _row(world: str, access: str, best: float, rows: list[dict[str, Any]]) -> str:
    apart = sum(not row["same"] for row in rows)
    low, high = exact_interval(apart, len(rows))
    sure = sum(sum(row["sure"]) for row in rows)
    samples = float(np.mean([row["samples"] for row in rows]))
    cells = (
        world,
        "parallel" if access == "generative" else "episodes",
        str(len(rows)),
        str(apart),
        f"{low:.2f} … {high:.2f}",
        f"{sure}/{2 * len(rows)}",
        f"{samples:.2g}",
        f"{best:.3g}",
        f"{100 * min(min(row['share']) for row in rows):.0f} %",
        f"{np.mean([row['seconds'] for row in rows]):.1f}",
    )
    return f"| {' | '.join(cells)} |"


EXPERIMENT = Experiment(
    name="discounted",
    page="discounting.md",
    jobs=jobs,
    head=head,
    tables=tables,
    marks=(START, END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

"""python -m experiments.icu_sepsis [--access NAME] [--epsilon X] [--max-samples N]: measure, store, draw."""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import reprl
from reprl.mdp.icu import ENDS, LEVELS, Numbers, read_numbers

HERE = Path(__file__).resolve().parent
FIGURE = HERE.parent.parent / "docs" / "figures" / "icu-sepsis.svg"


def baselines(numbers: Numbers, horizon: int) -> dict[str, float]:
    """Returns of the benchmark's own policies and of the extremes, by dynamic programming on its arrays alone."""
    cells = np.einsum("ijk,ijk->ij", numbers.transition, numbers.reward)
    expert = np.where(numbers.expert.sum(axis=1, keepdims=True) > 0, numbers.expert, 1.0)
    laws = {"expert": expert, "random": np.ones_like(expert), "random admissible": 1.0 * numbers.admissible}
    found = {}
    for name, law in laws.items():
        law = law / law.sum(axis=1, keepdims=True)
        move, pay = np.einsum("ij,ijk->ik", law, numbers.transition), (law * cells).sum(axis=1)
        value = np.zeros(len(law))
        for _ in range(horizon):
            value = pay + move @ value
        found[name] = float(numbers.initial @ value)
    best, worst = np.zeros(len(expert)), np.zeros(len(expert))
    for _ in range(horizon):
        best = np.where(numbers.admissible, cells + numbers.transition @ best, -np.inf).max(axis=1)
        worst = np.where(numbers.admissible, cells + numbers.transition @ worst, np.inf).min(axis=1)
    return {
        **found,
        "best admissible": float(numbers.initial @ best),
        "worst admissible": float(numbers.initial @ worst),
    }


def measure(mdp: reprl.TabularMDP, team: int, **options: Any) -> tuple[reprl.LearnResult, dict[str, Any]]:
    """One run, and what it says of itself beside what the true model says of it."""
    began = time.process_time()
    result = reprl.learn(mdp, shared_seed=2024, data_seed=team, **options)
    best = mdp.evaluate(mdp.solve().policy)
    assert mdp.allowed is not None
    kept = np.take_along_axis(mdp.allowed, result.policy.actions[..., None], axis=2)
    return result, {
        "samples": result.samples,
        "episodes": result.episodes,
        "status": result.guarantee.status,
        "source": result.guarantee.source,
        "loss": best - mdp.evaluate(result.policy),
        "inadmissible": int((~kept).sum()),
        "spread": result.spread,
        "cpu_seconds": round(time.process_time() - began, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def draw(mdp: reprl.TabularMDP, numbers: Numbers, policy: reprl.Policy) -> None:
    """Doses, weighed by how often they are given: the clinicians' and the policy's."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "reprl"
    from matplotlib import pyplot

    visits = mdp.occupancy(policy)[:, : -len(ENDS)]
    ours = np.zeros(LEVELS**2)
    np.add.at(ours, policy.actions[:, : visits.shape[1]], visits)
    state = visits.sum(axis=0)
    theirs = state @ numbers.expert[: visits.shape[1]]
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    for axis, title, doses in zip(axes, ("clinicians, in the same states", "the policy"), (theirs, ours), strict=True):
        _square(axis, title, doses / doses.sum())
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, metadata={"Date": None})


def _square(axis: Any, title: str, shares: NDArray[np.float64]) -> None:
    table = shares.reshape(LEVELS, LEVELS)
    axis.imshow(table, cmap="Blues", vmin=0.0, vmax=0.6, origin="lower")
    for fluids, vasopressors in np.ndindex(LEVELS, LEVELS):
        share = table[fluids, vasopressors]
        axis.text(vasopressors, fluids, f"{share:.0%}", ha="center", va="center", color="w" if share > 0.3 else "k")
    axis.set(title=title, xlabel="vasopressors", ylabel="fluids")


def main() -> None:
    """Measure what is asked for and add it to what is stored."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--access", default="generative")
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--max-samples", type=float, default=None)
    given = parser.parse_args()
    mdp, numbers = reprl.make("icu-sepsis-v0"), read_numbers()
    path = HERE / "data.json"
    data = json.loads(path.read_text()) if path.exists() else {"runs": {}}
    data["baselines"] = {str(horizon): baselines(numbers, horizon) for horizon in (20, 500)}
    limit = None if given.max_samples is None else int(given.max_samples)
    options = {"access": given.access, "epsilon": given.epsilon, "max_samples": limit}
    runs = [measure(mdp, team, **options) for team in (1, 2)]
    key = f"{given.access}, epsilon {given.epsilon:g}, at most {limit}"
    data["runs"][key] = {"equal": runs[0][0].policy == runs[1][0].policy, "teams": [figures for _, figures in runs]}
    path.write_text(json.dumps(data, indent=1) + "\n")
    draw(mdp, numbers, runs[0][0].policy)
    print(json.dumps(data["runs"][key], indent=1))


if __name__ == "__main__":
    main()

"""Measure the episodic learner at its practical constants: pairs of runs, disagreement, loss and steps.

``python -m experiments.calibration.episodic`` runs what is missing and prints the table; results are stored after every
world. ``--quick`` measures one small world with few pairs and stores nothing.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from scipy.stats import binomtest

import reprl
from experiments.calibration.pairs import DATA

STORE = DATA / "episodic.json"
RHO = 0.1
WORLDS: dict[str, tuple[str, dict[str, Any], float]] = {
    "random-mdp (10,3,4)": ("random-mdp-v0", {"n_states": 10, "n_actions": 3, "horizon": 4}, 0.3),
    "gridworld 4×4, H=6": ("gridworld-v0", {"size": 4, "horizon": 6}, 0.3),
    "combination-lock (6,2,6)": ("combination-lock-v0", {"n_states": 6, "n_actions": 2, "horizon": 6}, 0.3),
    "river-swim (6,2,8)": ("river-swim-v0", {"n_states": 6, "horizon": 8}, 0.3),
}
QUICK = {"combination-lock (4,2,4)": ("combination-lock-v0", {"n_states": 4, "n_actions": 2, "horizon": 4}, 0.3)}


def measure(id: str, options: dict[str, Any], epsilon: float, pairs: int, workers: int) -> dict[str, Any]:
    """Run pairs with fresh shared seeds and independent data."""
    mdp = reprl.make(id, **options)
    assert isinstance(mdp, reprl.TabularMDP)
    best = mdp.evaluate(mdp.solve().policy)
    different = parted = 0
    worst, steps = 0.0, []
    for pair in range(pairs):
        runs = [
            reprl.learn(
                mdp,
                access="episodic",
                epsilon=epsilon,
                rho=RHO,
                shared_seed=pair,
                data_seed=2 * pair + half,
                workers=workers,
            )
            for half in range(2)
        ]
        different += runs[0].policy != runs[1].policy
        parted += bool((runs[0].tiers.level != runs[1].tiers.level).any())
        worst = max(worst, *(best - mdp.evaluate(run.policy) for run in runs))
        steps += [run.samples for run in runs]
    interval = binomtest(different, pairs).proportion_ci(0.95, "exact")
    return {
        "pairs": pairs,
        "disagreements": different,
        "interval": [interval.low, interval.high],
        "p_value": binomtest(different, pairs, RHO, alternative="greater").pvalue,
        "partitions_apart": parted,
        "worst_loss": worst,
        "best_value": best,
        "epsilon": epsilon,
        "mean_steps": sum(steps) / len(steps),
        "most_steps": max(steps),
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The stored results as a Markdown table."""
    lines = [
        "| world | ε | disagreement (95 %) | partitions apart | worst loss | mean steps | most steps |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        low, high = row["interval"]
        lines.append(
            f"| {name} | {row['epsilon']} | {row['disagreements']}/{row['pairs']} ({low:.3f}–{high:.3f}) "
            f"| {row['partitions_apart']}/{row['pairs']} | {row['worst_loss']:.3f} "
            f"| {row['mean_steps']:.2g} | {row['most_steps']:.2g} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, store it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=None, help="names of worlds")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        print(table({name: measure(*world, pairs=5, workers=1) for name, world in QUICK.items()}))
        return
    rows = json.loads(STORE.read_text()) if STORE.exists() else {}
    for name, world in WORLDS.items():
        if name not in rows and (options.only is None or name in options.only):
            rows[name] = measure(*world, pairs=options.pairs, workers=options.workers)
            STORE.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()

"""Measure the episodic learner at its practical constants: pairs of runs, disagreement, loss and steps.

``python -m experiments.calibration.episodic`` runs what is missing and prints the table; results are stored after every
world. ``--quick`` measures one small world with few pairs and stores nothing.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, NamedTuple

import reprl
from experiments.calibration.pairs import DATA
from reprl.learning.episodic import run_episodic

STORE = DATA / "episodic.json"
SEED = 0
"""Of every audit: shared keys and data follow from it."""


class World(NamedTuple):
    """One measurement: an environment and what is asked of the learner."""

    id: str
    options: dict[str, Any]
    epsilon: float = 0.3
    rho: float = 0.1
    pairs: int = 100


WORLDS: dict[str, World] = {
    "random-mdp (10,3,4)": World("random-mdp-v0", {"n_states": 10, "n_actions": 3, "horizon": 4}),
    "gridworld 4×4, H=6": World("gridworld-v0", {"size": 4, "horizon": 6}),
    "combination-lock (6,2,6)": World("combination-lock-v0", {"n_states": 6, "n_actions": 2, "horizon": 6}),
    "river-swim (6,2,8)": World("river-swim-v0", {"n_states": 6, "horizon": 8}),
    "FrozenLake, H=12": World("gym:FrozenLake-v1", {"horizon": 12}, epsilon=0.1),
}
"""What the constants were chosen on."""
HELD_OUT: dict[str, World] = {
    "random-mdp (6,4,3), seed 5": World(
        "random-mdp-v0", {"n_states": 6, "n_actions": 4, "horizon": 3, "seed": 5}, epsilon=0.4, pairs=60
    ),
    "random-mdp (8,2,5), seed 9": World(
        "random-mdp-v0", {"n_states": 8, "n_actions": 2, "horizon": 5, "seed": 9}, epsilon=0.5, pairs=60
    ),
    "random-mdp (10,3,4), seed 2": World(
        "random-mdp-v0", {"n_states": 10, "n_actions": 3, "horizon": 4, "seed": 2}, rho=0.2, pairs=60
    ),
    "gridworld 3×3, H=5": World("gridworld-v0", {"size": 3, "horizon": 5}, epsilon=0.1, pairs=60),
    "two-goals, H=5": World("two-goals-v0", {"horizon": 5}, epsilon=0.2, pairs=60),
    "river-swim (5,2,6), ε=0.02": World("river-swim-v0", {"n_states": 5, "horizon": 6}, epsilon=0.02, pairs=60),
    "maintenance, H=5": World("maintenance-v0", {"horizon": 5}, pairs=60),
    "queue-admission, H=5": World("queue-admission-v0", {"horizon": 5}, pairs=60),
    "inventory, H=4": World("inventory-v0", {"horizon": 4}, pairs=60),
}
"""What they were then tried on."""
QUICK = {
    "combination-lock (4,2,4)": World("combination-lock-v0", {"n_states": 4, "n_actions": 2, "horizon": 4}, pairs=5)
}


def measure(world: World, workers: int) -> dict[str, Any]:
    """Audit the learner, and note of every run what an audit does not keep: its partition, windows and steps."""
    mdp, pairs = reprl.make(world.id, **world.options), world.pairs
    assert isinstance(mdp, reprl.TabularMDP)
    settings = reprl.Settings(access="episodic", epsilon=world.epsilon, rho=world.rho)
    runs: list[tuple[bytes, float, int]] = []

    def noted(model: reprl.EpisodicModel, shared_key: reprl.SharedKey) -> reprl.Policy:
        run = run_episodic(model, shared_key, settings, workers=workers)
        runs.append((run.explored.tiers.level.tobytes(), run.stretch, model.ledger.samples))
        return run.induction.policy

    report = reprl.audit(mdp, noted, pairs, rho=world.rho, access="episodic", seed=SEED)
    assert report.suboptimality is not None
    both = list(zip(runs[::2], runs[1::2], strict=True))
    return {
        "pairs": pairs,
        "disagreements": report.disagreements,
        "interval": list(report.interval),
        "p_value": report.p_value,
        "partitions_apart": sum(one[0] != two[0] for one, two in both),
        "stretches_apart": sum(one[1] != two[1] for one, two in both),
        "worst_loss": report.suboptimality.max,
        "best_value": mdp.evaluate(mdp.solve().policy),
        "epsilon": world.epsilon,
        "rho": world.rho,
        "mean_steps": report.samples,
        "most_steps": max(steps for _, _, steps in runs),
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The stored results as a Markdown table."""
    lines = [
        "| world | ε | ρ | disagreement (95 %) | partitions, windows apart | worst loss | mean steps | most steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        low, high = row["interval"]
        cells = [
            name,
            row["epsilon"],
            row["rho"],
            f"{row['disagreements']}/{row['pairs']} ({low:.3f}–{high:.3f})",
            f"{row['partitions_apart']}, {row['stretches_apart']}",
            f"{row['worst_loss']:.3f}",
            f"{row['mean_steps']:.2g}",
            f"{row['most_steps']:.2g}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is missing, store it, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=None, help="names of worlds")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if options.quick:
        print(table({name: measure(world, workers=1) for name, world in QUICK.items()}))
        return
    rows = json.loads(STORE.read_text()) if STORE.exists() else {}
    for name, world in (WORLDS | HELD_OUT).items():
        if name not in rows and (options.only is None or name in options.only):
            rows[name] = measure(world, workers=options.workers)
            STORE.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()

"""python -m experiments.episodic_pair [--device gpu] [--rho R --epsilon E --window G --episodes K] [--out FILE].

Two runs of the paper's algorithm by episodes (exploration, one tier, induction) in a world of two states, two actions
and two steps, with one shared seed and independent data, at sizes for which ρ is proven (docs/proofs/whole.md §6). The
loss is certified from each run's data. Writes one JSON document. The defaults are for one H200: some 10¹¹ episodes a
run. `--rho 0.45 --epsilon 1.9 --window 0.2 --episodes 500000` is a dry run of minutes on a CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from reprl.coupling.spec import JOINT
from reprl.lab.sharp import PairSizes, Problem, certified_loss, pair_sizes
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import draw_ignored
from reprl.paper.rep_level_explore import stack_tiers
from reprl.paper.rep_rl_bandit import Accuracy, tiered_induction
from reprl.paper.rep_var_bandit import Decision
from reprl.paper.runs import RunSettings
from reprl.randomness import SharedKey
from reprl.sources.episodes import EpisodicModel

SHARED_SEED = 20261118


def world() -> TabularMDP:
    """Two states that mix, one start; the better actions differ, and one choice is close."""
    return TabularMDP(np.full((2, 2, 2), 0.5), np.array([[0.7, 0.4], [0.5, 0.55]]), 0, 2)


def run(mdp: TabularMDP, problem: Problem, sizes: PairSizes, data_seed: int, workers: int = 1) -> dict[str, Any]:
    """One run: its policy, what it loses at most by its own data, and what it cost."""
    start, key = time.perf_counter(), SharedKey(SHARED_SEED)
    model = EpisodicModel(mdp, data_seed)
    settings = RunSettings(episodes=sizes.length, bonus=1.0, guide=1.0, failure=sizes.failure)
    found = explore(model, settings, sizes.runs, quotas=(sizes.quota,), purpose="pair", workers=workers)
    ignored = draw_ignored(key.derive("ignore"), found.short[0] / sizes.runs, JOINT)
    tiers = stack_tiers(ignored[None])
    pessimism = (sizes.window + sizes.noise) / (2.0 * sizes.window)
    induction = tiered_induction(
        key.derive("decide"),
        found.counts,
        tiers,
        accuracy=Accuracy(by_tier=(2.0 * sizes.window,), pessimism=pessimism),
        delta=problem.delta,
        decision=Decision(mechanism="compact", coupling="joint", rounding="vector"),
    )
    fewest = np.where(ignored, np.inf, found.counts.visits.min(axis=2).astype(float))
    best = mdp.evaluate(mdp.solve().policy)
    return {
        "policy": induction.policy.actions.tolist(),
        "values": induction.values.tolist(),
        "ignored": ignored.astype(int).tolist(),
        "first_value": float(found.first_value.mean()),
        "certified_loss": certified_loss(problem, sizes, found.first_value, fewest),
        "loss": best - mdp.evaluate(Policy(induction.policy.actions)),
        "episodes": model.ledger.episodes,
        "samples": model.ledger.samples,
        "seconds": round(time.perf_counter() - start, 1),
    }


def pair(problem: Problem, window: float, length: int, *, gpu: bool = False, workers: int = 1) -> dict[str, Any]:
    """Two runs with independent data, held against each other."""
    sizes, mdp = pair_sizes(problem, window, length), world()
    place: Any = contextlib.nullcontext()
    if gpu:
        from reprl.paper.gpu import on_gpu

        place = on_gpu()
    with place:
        runs = [run(mdp, problem, sizes, seed, workers) for seed in (1, 2)]
    same = runs[0]["policy"] == runs[1]["policy"] and runs[0]["values"] == runs[1]["values"]
    return {"problem": problem._asdict(), "sizes": sizes._asdict(), "same": same, "runs": runs}


def main() -> None:
    """Read the options, play the pair, write what came out."""
    parser = argparse.ArgumentParser(prog="experiments.episodic_pair", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--rho", type=float, default=0.2, help="and δ")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--window", type=float, default=0.07)
    parser.add_argument("--episodes", type=int, default=4_000_000, help="K, of one exploration run")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    problem = Problem(2, 2, 2, options.epsilon, options.rho, options.rho)
    found = pair(problem, options.window, options.episodes, gpu=options.device == "gpu", workers=options.workers)
    text = json.dumps(found, indent=1)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()

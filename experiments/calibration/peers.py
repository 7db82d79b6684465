"""Practical constants of the rivals: which softness each does best with, and how many samples it then needs.

Usage: python -m experiments.calibration.peers [NAME …]. For every rival and candidate softness (width of a grid, noise,
temperature, bonus) and every world, find the smallest power of two of samples per run that meets the goal: disagreement
of at most ρ among PAIRS pairs (asked of the replicable rivals only), and at most a share δ of the runs losing more than
ε. The softness with the least geometric mean among those that miss the goal in no world, or in the fewest, is the
rival's; its sample constant is about the largest ratio of need to formula. Prints one Markdown table per rival.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import reprl
from reprl.lab.baselines import generative, make_learner, optimistic, rmax
from reprl.lab.baselines.registry import Baseline

RHO, DELTA, SEED = 0.1, 0.1, 0
PAIRS = {True: 60, False: 10}
"""Pairs of runs at every budget, for the replicable rivals and for the others, of which only the loss is asked."""
EPSILON = {True: 0.3, False: 0.1}
"""Accuracy asked for, of the replicable rivals and of the others, which would have it for nothing at 0.3."""
DATA = Path(__file__).parent / "data" / "peers.json"

WORLDS: dict[str, dict[str, Any]] = {
    "gridworld-v0": {"size": 3, "horizon": 4},
    "random-mdp-v0": {"n_states": 6, "n_actions": 3, "horizon": 3},
    "two-goals-v0": {"size": 3, "horizon": 5, "slip": 0.1},
    "river-swim-v0": {"n_states": 5, "horizon": 10},
    "inventory-v0": {"capacity": 3, "horizon": 4},
    "maintenance-v0": {"n_states": 4, "horizon": 6},
    "combination-lock-v0": {"n_states": 6, "n_actions": 3, "horizon": 6},
    "hard-instance-v0": {"n_states": 6, "horizon": 3},
}


class Trial(NamedTuple):
    """One rival's softness, and where to set it."""

    module: Any
    constant: str
    candidates: tuple[float, ...]
    options: dict[str, Any]
    samples_constant: str
    """What the preset's number of samples is proportional to."""


TRIALS: dict[str, Trial] = {
    "rpvi": Trial(generative, "RPVI_WIDTH", (0.5, 1.0, 2.0, 4.0, 8.0), {}, "RPVI_CALLS"),
    "karbasi-grid": Trial(generative, "GRID_WIDTH", (0.5, 1.0, 2.0, 4.0, 8.0), {}, "GRID_CALLS"),
    "karbasi-gaussian": Trial(
        generative, "GAUSSIAN_NOISE", (0.5, 1.0, 2.0, 4.0), {"coupling": "shared"}, "GAUSSIAN_CALLS"
    ),
    "karbasi-gaussian, correlated": Trial(
        generative, "GAUSSIAN_NOISE", (0.5, 1.0, 2.0, 4.0), {"coupling": "correlated"}, "GAUSSIAN_CALLS"
    ),
    "karbasi-softmax": Trial(generative, "SOFTMAX_TEMPERATURE", (0.5, 1.0, 2.0, 4.0), {}, "SOFTMAX_CALLS"),
    "list-robust": Trial(generative, "LIST_WIDTH", (0.5, 1.0, 2.0, 4.0, 8.0), {}, "LIST_CALLS"),
    "replicable-rmax": Trial(rmax, "RMAX_WIDTH", (1.0, 2.0, 4.0), {}, "RMAX_VISITS"),
    "ucb-h": Trial(optimistic, "UCB_H_BONUS", (0.01, 0.03, 0.1, 0.3), {}, "UCB_H_EPISODES"),
    "ucbvi": Trial(optimistic, "UCBVI_BONUS", (0.01, 0.03, 0.1, 0.3), {}, "UCBVI_EPISODES"),
    "reward-free-ucbvi": Trial(optimistic, "REWARD_FREE_BONUS", (0.01, 0.03, 0.1, 0.3), {}, "REWARD_FREE_EPISODES"),
    "greedy": Trial(generative, "GREEDY_CALLS", (1.0,), {}, "GREEDY_CALLS"),
}


class Outcome(NamedTuple):
    """What runs at one budget showed."""

    disagreement: float
    missed: float
    """Share of runs that lose more than ε."""
    mean_loss: float
    spent: float
    """Mean samples per run: a rival may stop before its budget."""


def measure(mdp: reprl.TabularMDP, learner: Baseline, pairs: int) -> Outcome:
    """Audit a rival, and note of every run how much its policy loses."""
    best = mdp.evaluate(mdp.solve().policy)
    losses: list[float] = []

    def noted(model: Any, shared_key: reprl.SharedKey) -> reprl.Policy:
        policy = learner(model, shared_key)
        losses.append(best - mdp.evaluate(policy))
        return policy

    report = reprl.audit(mdp, noted, pairs, access=learner.access, seed=SEED)
    missed = np.mean(np.array(losses) > EPSILON[learner.replicable])
    return Outcome(report.disagreement, float(missed), float(np.mean(losses)), report.samples)


def least(meets: Callable[[int], tuple[bool, Outcome]], low: int, high: int) -> tuple[int | None, Outcome]:
    """The smallest power of two in [2^low, 2^high] that meets a goal: strides of 3 in the exponent, then bisection."""
    top, reach = high, low
    good, outcome = meets(reach)
    while not good:
        if reach == top:
            return None, outcome
        low, reach = reach + 1, min(top, reach + 3)
        good, outcome = meets(reach)
    high = reach
    while low < high:
        middle = (low + high) // 2
        good, seen = meets(middle)
        if good:
            high, outcome = middle, seen
        else:
            low = middle + 1
    return high, outcome


def formula(name: str, trial: Trial, mdp: reprl.TabularMDP) -> float:
    """Samples of the preset with its constant at 1; of one round for replicable-rmax."""
    asked: list[float] = []
    old = getattr(trial.module, trial.samples_constant)
    setattr(trial.module, trial.samples_constant, dict.fromkeys(old, 1.0) if isinstance(old, dict) else 1.0)
    hook = "calls_within" if hasattr(trial.module, "calls_within") else "episodes_within"
    real = getattr(trial.module, hook)

    class _AskedError(Exception):
        pass

    def ask(model: Any, samples: int | None, preset: Callable[[], float]) -> int:
        each = model.samples_per_call if hook == "calls_within" else model.samples_per_episode
        asked.append(preset() * each)
        raise _AskedError

    setattr(trial.module, hook, ask)
    try:
        learner = make_learner(name.split(",")[0], **trial.options)
        learner = make_learner(learner.name, epsilon=EPSILON[learner.replicable], **trial.options)
        model = reprl.GenerativeModel(mdp, 0) if learner.access == "generative" else reprl.EpisodicModel(mdp, 0)
        learner(model, reprl.SharedKey(0))
    except _AskedError:
        pass
    finally:
        setattr(trial.module, hook, real)
        setattr(trial.module, trial.samples_constant, old)
    return asked[0]


def sweep(name: str) -> list[dict[str, Any]]:
    """All worlds and candidates of one rival."""
    trial = TRIALS[name]
    plain = name.split(",")[0]
    rows = []
    for softness in trial.candidates:
        if trial.constant != trial.samples_constant:
            setattr(trial.module, trial.constant, softness)
        for world, options in WORLDS.items():
            mdp = reprl.make(world, **options)
            assert isinstance(mdp, reprl.TabularMDP)
            replicable = make_learner(plain).replicable

            def meets(
                exponent: int, mdp: Any = mdp, replicable: bool = replicable, plain: str = plain
            ) -> tuple[bool, Outcome]:
                asked = EPSILON[replicable]
                learner = make_learner(plain, epsilon=asked, samples=2**exponent, **trial.options)
                seen = measure(mdp, learner, PAIRS[replicable])
                return seen.missed <= DELTA and (not replicable or seen.disagreement <= RHO), seen

            cells = math.prod(mdp.outcomes.shape)
            low = math.ceil(math.log2(cells * 2 * (cells if plain == "replicable-rmax" else 1)))
            need, seen = least(meets, low, 56 if replicable else 21)
            rows.append(
                {"learner": name, "softness": softness, "world": world, "log2 samples": need, **seen._asdict(),
                 "formula": formula(name, trial, mdp),
                 "rounds": math.ceil(rmax.RMAX_ROUNDS * cells) + 1 if plain == "replicable-rmax" else 1}
            )  # fmt: skip
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def table(name: str, rows: list[dict[str, Any]]) -> None:
    """Print one rival's measurements."""
    print(f"\n### {name}\n")
    print("| softness | geometric mean of samples | worst mean loss | missed | constant: median | largest |")
    print("| --- | --- | --- | --- | --- | --- |")
    for softness in sorted({row["softness"] for row in rows}):
        mine = [row for row in rows if row["softness"] == softness]
        met = [row for row in mine if row["log2 samples"] is not None]
        mean = 2 ** np.mean([row["log2 samples"] for row in met]) if met else math.nan
        ratios = [2 ** row["log2 samples"] / row["rounds"] / row["formula"] for row in met]
        loss = max(row["mean_loss"] for row in met)
        print(
            f"| {softness:g} | {mean:.2g} | {loss:.3f} | {len(mine) - len(met)} of {len(mine)} "
            f"| {np.median(ratios):.2g} | {max(ratios):.2g} |"
        )


def main(names: list[str]) -> None:
    """Measure the named rivals, or all, and print their tables."""
    for name in names or list(TRIALS):
        start = time.perf_counter()
        rows = sweep(name)
        stored = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else []
        stored = [row for row in stored if row["learner"] != name] + rows
        table(name, rows)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        DATA.write_text("[\n" + ",\n".join(json.dumps(row) for row in stored) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

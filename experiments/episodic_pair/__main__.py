"""python -m experiments.episodic_pair [--only TEXT] [--workers N]: proven pairs of runs by episodes.

Two runs of the paper's algorithm by episodes (exploration, one tier, induction) with one shared seed and independent
data, at sizes for which ρ is proven (docs/proofs/whole.md). *Before*: the loss is proven before the first episode too.
*Certified*: it is certified from each run's own data. Exploration runs are played by a GPU where there is one with
nvcc, else by a core; the bits are the same. Rewrites experiments/episodic_pair/data.json and the table in
docs/whole.md.
"""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.episodic_pair.device import Device
from experiments.runner import Experiment, Job
from reprl.coupling.spec import JOINT
from reprl.mdp.tabular import TabularMDP
from reprl.paper.rep_explore import draw_ignored
from reprl.paper.rep_level_explore import stack_tiers
from reprl.paper.rep_rl_bandit import Accuracy, tiered_induction
from reprl.paper.rep_var_bandit import Decision
from reprl.paper.runs import RunSettings
from reprl.paper.sharp import PairSizes, Problem, certified_loss, disagreement, pair_sizes, sharp_episodes
from reprl.randomness import DataStream, SharedKey
from reprl.sources.environment import make
from reprl.sources.episodes import EpisodicModel

START, END = "<!-- tables: python -m experiments.episodic_pair -->\n", "<!-- end of pairs -->\n"
SEED = 20261118
Data = dict[str, Any]


class Plan(NamedTuple):
    """Pairs of one kind."""

    sizes: tuple[int, int, int]
    """S, A, H."""
    epsilon: float
    rho: float
    """And δ."""
    pairs: int
    length: int | None = None
    """K, and"""
    quota: int | None = None
    """q, where the loss is certified from data; None where it is proven before."""

    @property
    def problem(self) -> Problem:
        """What is asked."""
        return Problem(*self.sizes, self.epsilon, self.rho, self.rho)

    @property
    def chosen(self) -> PairSizes:
        """Sizes of a run."""
        if self.length is not None:
            window = self.epsilon / (self.sizes[2] * 3.16)  # H·(3g + 4·0.04g) = ε
            return pair_sizes(self.problem, window, self.length, self.quota)
        found = sharp_episodes(*self.sizes, epsilon=self.epsilon, rho=self.rho, delta=self.rho)
        (runs,), (length,), (quota,), (window,) = found.runs, found.lengths, found.quotas, found.windows  # one tier
        (failure,), rho = found.iota(self.sizes[2]), disagreement(self.problem, runs, quota, window)
        return PairSizes(runs, length, quota, window, found.noises[0], failure, rho)


PLANS = {
    "certified/2,2,2": Plan((2, 2, 2), 0.5, 0.1, 8, 20_000, 1000),
    "before/2,2,1": Plan((2, 2, 1), 0.5, 0.1, 1),
    "before/2,2,2": Plan((2, 2, 2), 1.0, 0.3, 1),
    "certified/4,2,3": Plan((4, 2, 3), 1.0, 0.1, 1, 400_000, 1500),
    "before/2,2,2 at 0.2": Plan((2, 2, 2), 1.0, 0.2, 1),
}
QUICK = {"certified/2,2,2": Plan((2, 2, 2), 1.9, 0.4, 1, 8_000, 400)}


def world(n_states: int = 2, n_actions: int = 2, horizon: int = 2) -> TabularMDP:
    """Two states that mix, one start, one choice close; or a random world."""
    if n_states > 2:
        return make("random-mdp-v0", horizon, n_states=n_states, n_actions=n_actions)
    return TabularMDP(np.full((2, 2, 2), 0.5), np.array([[0.7, 0.4], [0.5, 0.55]]), 0, horizon)


def find_kind() -> str:
    """Say what plays exploration runs here."""
    return "gpu" if shutil.which("nvcc") and Path("/dev/nvidia0").exists() else "core"


def run(plan: Plan, number: int, half: int, kind: str) -> Data:
    """One run: its policy, what it loses at most by its own data, and what it cost."""
    begun, problem, sizes, mdp = time.perf_counter(), plan.problem, plan.chosen, world(*plan.sizes)
    key = SharedKey(SEED).derive("pair", *plan.sizes, number)
    model = EpisodicModel(mdp, DataStream(SEED, f"{plan}/{number}/{half}").key)
    device = Device(model, kind)
    settings = RunSettings(episodes=sizes.length, bonus=1.0, guide=1.0, failure=sizes.failure)
    found = device.explore(settings, sizes.runs, sizes.quota, "pair", loud=kind == "gpu")
    ignored = draw_ignored(key.derive("ignore"), found.short[0] / sizes.runs, JOINT)
    induction = tiered_induction(
        key.derive("decide"),
        found.counts,
        stack_tiers(ignored[None]),
        accuracy=Accuracy(by_tier=(2.0 * sizes.window,), pessimism=(sizes.window + sizes.noise) / (2.0 * sizes.window)),
        delta=problem.delta,
        decision=Decision(mechanism="compact", coupling="joint", rounding="vector"),
    )
    (start,) = np.flatnonzero(mdp.initial).tolist()
    return {
        "policy": induction.policy.actions.tolist(),
        "values": induction.values[1:].tolist(),  # those of the first step enter nothing
        "ignored": ignored.astype(int).tolist(),
        "first_value": float(found.first_value.mean()),
        "certified": None if plan.length is None else certified_loss(problem, sizes, found, ignored, start),
        "loss": mdp.evaluate(mdp.solve().policy) - mdp.evaluate(induction.policy),
        "episodes": model.ledger.episodes,
        "samples": model.ledger.samples,
        "rate": float(f"{device.rate:.3g}"),
        "device": kind,
        "seconds": round(time.perf_counter() - begun, 1),
    }


def measure(plan: Plan, number: int) -> Data:
    """Two runs with independent data, held against each other."""
    runs = [run(plan, number, half, find_kind()) for half in range(2)]
    same = all(runs[0][name] == runs[1][name] for name in ("policy", "values"))
    return {"sizes": plan.chosen._asdict(), "same": same, "runs": runs}


def jobs(quick: bool) -> dict[str, Job]:
    """Return every pair."""
    plans = QUICK if quick else PLANS
    return {f"{name}#{i}": partial(measure, plan, i) for name, plan in plans.items() for i in range(plan.pairs)}


def head(quick: bool) -> Data:
    """Return what the data are measured with."""
    return {"seed": SEED, "quick": quick}


def tables(data: Data) -> str:
    """Return one row for every plan of which a pair was played."""
    plans = QUICK if data["quick"] else PLANS
    lines = [
        "| S, A, H | ε | ρ = δ | loss | runs × episodes | quota | samples of a run | largest loss | pairs that differ "
        "| played by |",
        "|---" * 10 + "|",
    ]
    for name, plan in plans.items():
        found = [one for key, one in data["measured"].items() if key.partition("#")[0] == name]
        if not found:
            continue
        runs, sizes = [one for pair in found for one in pair["runs"]], found[0]["sizes"]
        losses = [one["certified"] for one in runs if one["certified"] is not None]
        stated = f"certified in {len(losses)} of {len(runs)}: {max(losses, default=float('nan')):.3g}"
        stated = "proven before" if plan.length is None else stated
        seconds = sum(one["seconds"] for one in runs) / len(runs)
        rate = max(one["rate"] for one in runs)
        lines.append(
            f"| {', '.join(map(str, plan.sizes))} | {plan.epsilon:g} | {plan.rho:g} | {stated} | "
            f"{sizes['runs']:,} × {sizes['length']:,} | {sizes['quota']:,} | {runs[0]['samples']:.2g} | "
            f"{max(one['loss'] for one in runs):.3g} | {sum(not one['same'] for one in found)}/{len(found)} | "
            f"{runs[0]['device']}, {seconds:.2g} s a run, {rate:.2g} steps/s |"
        )
    return "\n".join(lines) + "\n"


EXPERIMENT = Experiment(
    name="episodic_pair",
    page="whole.md",
    jobs=jobs,
    head=head,
    draw=lambda data, folder: None,
    tables=tables,
    marks=(START, END),
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

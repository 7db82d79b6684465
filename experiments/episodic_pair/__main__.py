"""python -m experiments.episodic_pair [--only TEXT] [--workers N]: proven pairs of runs by episodes.

Two runs of the paper's algorithm by episodes (exploration, one tier, induction) with one shared seed and independent
data, at sizes for which ρ is proven (docs/proofs/whole.md). *Before*: the loss is proven before the first episode too.
*Certified*: it is certified from each run's own data. Rewrites experiments/episodic_pair/data.json and the table in
docs/whole.md.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.runner import Experiment, Job
from reprl.mdp.tabular import TabularMDP
from reprl.paper.proven import Problem, Sizes, certified_loss, certified_sizes, proven_sizes
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import draw_ignored
from reprl.paper.rep_level_explore import stack_tiers
from reprl.paper.rep_rl_bandit import Accuracy, tiered_induction
from reprl.paper.rep_var_bandit import Decision
from reprl.paper.runs import RunSettings
from reprl.randomness import DataStream, SharedKey
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
    def chosen(self) -> Sizes:
        """Sizes of a run."""
        if self.length is None:
            return proven_sizes(self.problem)
        window = self.epsilon / (self.sizes[2] * 3.16)  # H·(3g + 4·0.04g) = ε
        return certified_sizes(self.problem, window, self.length, self.quota)


PLANS = {
    "certified/2,2,2": Plan((2, 2, 2), 0.5, 0.1, 8, 20_000, 1000),
    "before/2,2,1": Plan((2, 2, 1), 0.5, 0.1, 1),
}
QUICK = {"certified/2,2,2": Plan((2, 2, 2), 1.9, 0.4, 1, 8_000, 400)}


def world(horizon: int = 2) -> TabularMDP:
    """Two states that mix, one start, one choice close."""
    return TabularMDP(np.full((2, 2, 2), 0.5), np.array([[0.7, 0.4], [0.5, 0.55]]), 0, horizon)


def run(plan: Plan, number: int, half: int) -> Data:
    """One run: its policy, what it loses at most by its own data, and what it cost."""
    begun, problem, sizes, mdp = time.perf_counter(), plan.problem, plan.chosen, world(plan.sizes[2])
    key = SharedKey(SEED).derive("pair", *plan.sizes, number)
    model = EpisodicModel(mdp, DataStream(SEED, f"{plan}/{number}/{half}").key)
    settings = RunSettings(episodes=sizes.length, bonus=1.0, guide=1.0, failure=sizes.failure)
    found = explore(model, settings, sizes.runs, quota=sizes.quota, purpose="pair")
    ignored = draw_ignored(key.derive("ignore"), found.short / sizes.runs, "joint")
    induction = tiered_induction(
        key.derive("decide"),
        found.counts,
        stack_tiers(ignored[None]),
        accuracy=Accuracy(by_tier=(2.0 * sizes.window,), pessimism=(sizes.window + sizes.noise) / (2.0 * sizes.window)),
        delta=problem.delta,
        decision=Decision(mechanism="compact", coupling="joint", rounding=True),
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
        "seconds": round(time.perf_counter() - begun, 1),
    }


def measure(plan: Plan, number: int) -> Data:
    """Two runs with independent data, held against each other."""
    runs = [run(plan, number, half) for half in range(2)]
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
        "| S, A, H | ε | ρ = δ | loss | runs × episodes | quota | samples of a run | largest loss | "
        "pairs that differ |",
        "|---" * 9 + "|",
    ]
    for name, plan in plans.items():
        found = [one for key, one in data["measured"].items() if key.partition("#")[0] == name]
        if not found:
            continue
        runs, sizes = [one for pair in found for one in pair["runs"]], found[0]["sizes"]
        losses = [one["certified"] for one in runs if one["certified"] is not None]
        stated = f"certified in {len(losses)} of {len(runs)}: {max(losses, default=float('nan')):.3g}"
        stated = "proven before" if plan.length is None else stated
        lines.append(
            f"| {', '.join(map(str, plan.sizes))} | {plan.epsilon:g} | {plan.rho:g} | {stated} | "
            f"{sizes['runs']:,} × {sizes['length']:,} | {sizes['quota']:,} | {runs[0]['samples']:.2g} | "
            f"{max(one['loss'] for one in runs):.3g} | {sum(not one['same'] for one in found)}/{len(found)} |"
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

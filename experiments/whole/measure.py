"""Measurements: pure functions of the plan and of numbers of runs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.whole import plan
from reprl.errors import ReprlError
from reprl.execution.settings import Execution
from reprl.learning.full import run_paper
from reprl.learning.learner import make_settings
from reprl.learning.protocol import Run
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.mdp.tiers import Tiers, check_niceness
from reprl.paper.constants import Constants
from reprl.paper.full import ignore_starved
from reprl.paper.rep_level_explore import rep_level_explore
from reprl.paper.rep_rl_bandit import Induction, tiered_induction
from reprl.randomness import DataStream, SharedKey
from reprl.sources.episodes import EpisodicModel
from reprl.sources.parallel import GenerativeModel

Array = NDArray[np.float64]


def settings(**options: Any) -> Settings:
    """Ask for the paper's algorithm at scaled sizes, by episodes."""
    asked = {"epsilon": plan.EPSILON, "rho": plan.RHO, "delta": plan.DELTA, "rule": "paper", "constants": "scaled"}
    return make_settings({**asked, **plan.PAPER, "access": "episodic", **options})


def _run(mdp: TabularMDP, asked: Settings, name: str, number: int, half: int) -> tuple[Run | None, int]:
    """One run of a pair, None if boosting found no heavy hitter, and its samples."""
    model = EpisodicModel(mdp, DataStream(plan.SEED, f"{name}/{number}/{half}").key)
    key = SharedKey(plan.SEED).derive(name, number)
    try:
        return run_paper(model, key, asked), model.ledger.samples
    except ReprlError as error:
        if "no policy was learned" not in str(error):
            raise
        return None, model.ledger.samples


def pairs(world: str, numbers: range) -> dict[str, Any]:
    """Pairs of whole runs: rows of what they came to."""
    mdp, asked = plan.WORLDS[world](), settings(scale=plan.SCALE, boosted=True)
    best = mdp.evaluate(mdp.solve().policy)
    rows = []
    for number in numbers:
        (one, first), (two, second) = (_run(mdp, asked, world, number, half) for half in range(2))
        runs = [run for run in (one, two) if run is not None]
        row = {
            "number": number,
            "apart": int(one is None or two is None or one.policy != two.policy),
            "failed": 2 - len(runs),
            "samples": [first, second],
            "losses": [round(best - mdp.evaluate(run.policy), 6) for run in runs],
            "tiers": [_levels(run) for run in runs],
        }
        rows.append(row)
    return {"digest": mdp.digest[:16], "shape": [mdp.n_states, mdp.n_actions, mdp.horizon], "rows": rows}


def _levels(run: Run) -> list[int]:
    """How many cells (h, s) are in each tier."""
    return [int((run.tiers.level == tier).sum()) for tier in range(1, run.tiers.count + 1)]


def boosting(world: str, scale: float, pairs: int) -> dict[str, Any]:
    """Learners of one size from parallel samples, boosted at sizes that grow; and where the boosted part."""
    mdp, asked = plan.BOOSTING_WORLDS[world](), settings(scale=plan.BOOSTED_SCALE, access="generative", boosted=True)
    task = asked.paper.task(mdp.n_states, mdp.n_actions, mdp.horizon)
    sizes = Constants.scaled(scale, task)
    names = ("candidates", "frequencies", "pulls")
    used = replace(Constants.scaled(plan.BOOSTED_SCALE, task), **{name: getattr(sizes, name) for name in names})
    apart = sets = total = failed = 0
    base = 0.0
    for number in range(pairs):
        key = SharedKey(plan.SEED).derive("boosting", world, number)
        found: list[Run] = []
        for half in range(2):
            seed = DataStream(plan.SEED, f"boosting/{world}/{scale}/{number}/{half}").key
            try:
                found.append(run_paper(GenerativeModel(mdp, seed), key, asked, constants=used))
            except ReprlError as error:
                if "no policy was learned" not in str(error):
                    raise
        if len(found) < 2:
            failed, apart = failed + 1, apart + 1
            continue
        one, two = found
        apart += int(one.policy != two.policy)
        sets += int([x.heavy for x in one.ballots] != [x.heavy for x in two.ballots])
        for mine, theirs in zip(one.ballots, two.ballots, strict=True):
            learners = mine.candidates.total() + mine.frequencies.total()
            base += mine.parts_from(theirs) * learners
            total += learners
    sizes_of = {name: getattr(used, name) for name in ("calls", *names)}
    return {"pairs": pairs, "apart": apart, "sets": sets, "failed": failed, "base": [round(base, 3), total], **sizes_of}


def theorem(name: str, number: int, workers: int = 1) -> dict[str, Any]:
    """One pair of runs of Theorem 4.13 at the paper's own constants: cost, time, and whether they agree.

    Threads change nothing but the seconds, which are of all of them.
    """
    asked = plan.THEOREM[name]
    mdp, wanted = asked.build(), {"epsilon": asked.epsilon, "rho": asked.rho, "delta": asked.rho}
    chosen = settings(access="generative", constants="paper", boosted=True, **wanted)
    key, best = SharedKey(plan.SEED).derive("theorem", name, number), mdp.evaluate(mdp.solve().policy)
    models = [GenerativeModel(mdp, DataStream(plan.SEED, f"theorem/{name}/{number}/{half}").key) for half in range(2)]
    start = time.perf_counter()
    one, two = (run_paper(model, key, chosen, execution=Execution(workers=workers)) for model in models)
    parts = [mine.parts_from(theirs) for mine, theirs in zip(one.ballots, two.ballots, strict=True)]
    return {
        "apart": int(one.policy != two.policy),
        "status": one.guarantee.status,
        "losses": [round(best - mdp.evaluate(run.policy), 9) for run in (one, two)],
        "samples": [model.ledger.samples for model in models],
        "learners": one.constants.learners if one.constants else 0,
        "base": max(parts),
        "seconds": round(workers * (time.perf_counter() - start) / 2, 1),
    }


def slope(n_states: int, grade: str, numbers: range) -> dict[str, Any]:
    """Pairs of direct runs, ρ asked of one learner: samples and how many pairs differ."""
    mdp = plan.slope_world(n_states)
    asked = settings(scale=plan.SLOPE_SCALE, coupling=grade)
    apart, samples = 0, []
    for number in numbers:
        runs = [_run(mdp, asked, f"slope/{n_states}/{grade}", number, half) for half in range(2)]
        policies = [run.policy for run, _ in runs if run is not None]
        apart += int(policies[0] != policies[1])
        samples += [spent for _, spent in runs]
    constants = asked.paper.constants_for(n_states, mdp.n_actions, mdp.horizon, mdp.horizon)
    return {
        "pairs": len(numbers),
        "apart": apart,
        "samples": float(np.mean(samples)),
        "sizes": [constants.partition_runs, *constants.data_runs, *constants.episodes],
    }


def tiers(world: str, runs: int) -> dict[str, Any]:
    """What tiers do: direct runs with many of them, with the paper's pessimism and without."""
    mdp = plan.TIER_WORLDS[world]()
    asked = settings(scale=plan.TIER_SCALE)
    task = asked.paper.task(mdp.n_states, mdp.n_actions, mdp.horizon)
    constants = Constants.scaled(plan.TIER_SCALE, task, least_tiers=plan.TIERS)
    best = mdp.evaluate(mdp.solve().policy)
    found: list[dict[str, Any]] = []
    losses: dict[str, list[float]] = {"with": [], "without": []}
    for number in range(runs):
        model = EpisodicModel(mdp, DataStream(plan.SEED, f"tiers/{world}/{number}").key)
        key = SharedKey(plan.SEED).derive("tiers", world, number)
        explored = rep_level_explore(key.derive("explore"), model, constants.stages(), coupling=task.coupling)
        partition = ignore_starved(explored.tiers, explored.counts)
        for name, pessimism in (("with", 1.0), ("without", 0.0)):
            induction = tiered_induction(
                key.derive("decide"),
                explored.counts,
                partition,
                accuracy=replace(constants, pessimism=pessimism).accuracy,
                delta=constants.delta,
                decision=asked.paper.decision,
            )
            losses[name].append(best - mdp.evaluate(induction.policy))
            if pessimism:
                found.append(_by_tier(mdp, explored.counts, partition, induction, constants))
    keys = ("cells", "samples", "reach", "visits", "error", "nice")
    mean = {key: np.mean([one[key] for one in found], axis=0).round(6).tolist() for key in keys}
    return {
        "shape": [mdp.n_states, mdp.n_actions, mdp.horizon],
        "states": [mdp.labels.state(s) for s in range(mdp.n_states)],
        "tiers": constants.tiers,
        "zeta": constants.zeta,
        "by_tier": list(constants.by_tier),
        "level": found[0]["level"],
        "best": best,
        "losses": {name: np.round(values, 6).tolist() for name, values in losses.items()},
        **mean,
    }


def _by_tier(
    mdp: TabularMDP, counts: Counts, partition: Tiers, induction: Induction, constants: Constants
) -> dict[str, Any]:
    """Cells, records of the rarest action, reachability, visits, error of values and niceness of every tier."""
    level, count = partition.level, partition.count
    value, occupancy = _values(mdp, induction.policy), mdp.occupancy(induction.policy)
    error = np.abs(induction.values[:-1] - value)
    fewest = counts.visits.min(axis=2)
    nice = check_niceness(counts, partition, constants.zeta).by_tier
    rows: dict[str, Any] = {name: [] for name in ("cells", "samples", "reach", "visits", "error")}
    for tier in range(1, count + 1):
        inside = level == tier
        visits = float(occupancy[inside].sum())
        rows["cells"].append(int(inside.sum()))
        rows["samples"].append(float(fewest[inside].mean()) if inside.any() else 0.0)
        rows["reach"].append(float(mdp.reachability(inside)))
        rows["visits"].append(visits)
        rows["error"].append(float((occupancy * error)[inside].sum()))
    return {**rows, "nice": [*np.nan_to_num(nice, posinf=0.0).tolist()], "level": level.tolist()}


def _values(mdp: TabularMDP, policy: Policy) -> Array:
    """(H, S): what a policy is worth from every cell on."""
    values = np.zeros((mdp.horizon + 1, mdp.n_states))
    transition, reward = mdp.transition, mdp.reward
    for h in reversed(range(mdp.horizon)):
        for s in range(mdp.n_states):
            a = int(policy.actions[h, s])
            values[h, s] = reward[h, s, a] + transition[h, s, a] @ values[h + 1]
    return values[:-1]

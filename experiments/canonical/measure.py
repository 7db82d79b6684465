"""Measure: pairs of runs, rivals' budgets, rehearsals against the truth, lists of policies, what a decision costs."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from typing import Any, cast

import numpy as np

import reprl
from experiments.canonical.plan import (
    BOXES,
    COST_CALLS,
    COSTS,
    EPSILON,
    LISTED,
    REHEARSED,
    RHO,
    RIVAL_LIMIT,
    SEED,
    Case,
    Effort,
)
from reprl.assurance.rehearsal import Answer, Rehearsal, rehearse
from reprl.auditing.compare import Contender, contenders, run_row
from reprl.canonical.choice import Choice, Rule, choose, make_rule, with_key
from reprl.canonical.gaps import find_gaps
from reprl.canonical.goal import Goal
from reprl.mdp.dynamics import Data, empirical_dynamics, redraw, true_dynamics
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, SharedKey
from reprl.sources.environment import make
from reprl.sources.parallel import GenerativeModel
from reprl.sources.protocol import Access
from tests.shop import Shop

Found = dict[str, Any]


def seed_of(name: str, number: int = 0) -> int:
    """A seed of a measurement's own: no other measurement moves it."""
    return int(DataStream(SEED, name).integers(1, number)[0]) >> 1


def pairs(case: Case, numbers: range) -> Found:
    """Run pairs: a fresh shared seed each, independent data, the size that the learner chooses itself.

    Returns:
        The world's digest, and a row for each pair: its number, samples of both runs, whether their policies differ,
        the loss of both, and whether each run was sure.
    """
    mdp = case.build()
    best = float(mdp.initial @ mdp.solve().values[0])
    rows = []
    for number in numbers:
        runs = [
            reprl.learn(
                mdp,
                epsilon=case.epsilon,
                rho=RHO,
                access=cast(Access, case.access),
                max_samples=case.most,
                stationary=case.stationary,
                shared_seed=seed_of(f"{case.name}/shared", number),
                data_seed=seed_of(f"{case.name}/data", 2 * number + team),
            )
            for team in (0, 1)
        ]
        apart = int(runs[0].policy != runs[1].policy)
        loss = [round(max(0.0, best - mdp.evaluate(run.policy)), 6) for run in runs]
        sure = [int(run.guarantee.status == "rehearsed") for run in runs]
        rows.append([number, *(run.samples for run in runs), apart, *loss, *sure])
    return {"digest": mdp.digest[:16], "rows": rows}


def rival(world: str, label: str, effort: Effort) -> Found:
    """Search a rival's smallest budget in hindsight, as the head-to-head does."""
    found = run_row(
        LISTED[world](),
        _contender(label),
        epsilon=EPSILON,
        rho=RHO,
        pairs=effort.rival_pairs,
        limit=RIVAL_LIMIT,
        seed=seed_of(f"rival/{world}/{label}"),
    ).to_dict()
    return {name: found[name] for name in ("samples", "needed", "limit", "failed", "disagreements", "pairs", "reached")}


def _contender(label: str) -> Contender:
    if label == "reprl (compact)":
        return Contender(label, "reprl", "generative", {"epsilon": EPSILON, "rho": RHO, "rule": "sampled"})
    names = [label.partition(" ")[0]]
    known = contenders(names, access="generative", epsilon=EPSILON, rho=RHO)
    return next(one for one in known if one.label == label)


def rehearsed(world: str, calls: int, effort: Effort) -> Found:
    """Hold rehearsals of runs with a fixed number of calls against what second runs really do.

    Returns:
        A row for each pair: whether the two runs differ, then for each run: simulated teams that agree, teams,
        simulated pairs that agree, pairs asked, and whether the rehearsal passed.
    """
    mdp = REHEARSED[world]()
    rows = []
    for number in range(effort.rehearsed_pairs):
        rule = _rule(mdp, seed_of(f"rehearsed/{world}/shared", number))
        policies, row = [], []
        for team in (0, 1):
            model = _source(mdp, seed_of(f"rehearsed/{world}/{calls}", 2 * number + team))
            data = Data(model.sample(calls), model.draw_starts(calls))
            choice = choose(rule, empirical_dynamics(data))
            found = _rehearse(rule, data, choice, model.data_seed)
            policies.append(choice.policy)
            row += [found.agree, found.of, found.pairs_agree, found.pairs, int(found.passed)]
        rows.append([int(policies[0] != policies[1]), *row])
    return {"samples": calls * model.samples_per_call, "rows": rows}


def _rehearse(rule: Rule, data: Data, choice: Choice, data_seed: int) -> Rehearsal:
    """Rehearse as a run does in its first round."""

    def team(key: SharedKey | None, share: int, draw: int) -> Answer:
        found = choose(rule if key is None else with_key(rule, key), redraw(data, share, draw))
        return Answer(found.policy, found.value + found.loss)

    stream = DataStream(data_seed, "rehearsal/1")
    return rehearse(team, choice.policy, rho=RHO, epsilon=choice.epsilon, stream=stream)


def _rule(mdp: TabularMDP, shared_seed: int, epsilon: float = EPSILON) -> Rule:
    key, steady = SharedKey(shared_seed).derive("rule"), mdp.stationary
    return make_rule(key, mdp.outcomes.shape, goal=Goal(epsilon), stationary=steady)


def _source(mdp: TabularMDP, data_seed: int) -> Any:
    """What a run samples: where the world shows that steps are alike, once for all of them."""
    model = GenerativeModel(mdp, data_seed)
    return model.pooled if mdp.stationary else model


def listed(world: str, rule: str, effort: Effort) -> Found:
    """Count the distinct policies over shared seeds: of the canonical rule in the true world, of sampled runs."""
    mdp = LISTED[world]()
    seeds = [
        seed_of(f"listed/{world}", i) for i in range(effort.seeds if rule == "canonical" else effort.sampled_seeds)
    ]
    if rule == "canonical":
        truth = true_dynamics(mdp)
        policies = [choose(_rule(mdp, seed), truth).policy.fingerprint for seed in seeds]
    else:
        policies = [
            reprl.learn(mdp, rule="sampled", access="generative", shared_seed=seed, data_seed=i).policy.fingerprint
            for i, seed in enumerate(seeds)
        ]
    shares = sorted((policies.count(one) for one in set(policies)), reverse=True)
    return {"seeds": len(seeds), "shares": shares}


def drawn() -> Found:
    """The policy of the README's gridworld, with what the true world says of it."""
    result = reprl.learn("gridworld-v0", horizon=6, epsilon=EPSILON, rho=RHO, shared_seed=7, data_seed=1)
    mdp = make("gridworld-v0", 6)
    truth = true_dynamics(mdp)
    gaps = find_gaps(truth, np.arange(mdp.n_actions))
    actions = result.policy.actions
    lost = np.take_along_axis(gaps.gap, actions[..., None], axis=2)[..., 0]
    assert result.choice is not None
    return {
        "samples": result.samples,
        "tolerance": result.choice.tolerance,
        "loss": float(mdp.initial @ mdp.solve().values[0]) - mdp.evaluate(result.policy),
        "best": float(mdp.initial @ mdp.solve().values[0]),
        "actions": actions.tolist(),
        "gap": np.round(lost, 4).tolist(),
        "visits": np.round(truth.occupancy(actions), 6).tolist(),
    }


def cost(size: str) -> Found:
    """Time a decision and a rehearsal in a process of their own, whose memory is then theirs alone."""
    command = [sys.executable, "-m", "experiments.canonical.measure", size]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: Found = json.loads(done.stdout.splitlines()[-1])
    return found


def box(world: str) -> Found:
    """Two runs on a black box with two processes each, timed by the clock once everything is compiled."""
    env, options = BOXES[world]
    rows = []
    for data_seed, most in ((0, 2000), (1, None), (2, None)):
        clock = time.perf_counter()
        found = reprl.learn(
            env, epsilon=EPSILON, rho=RHO, shared_seed=7, data_seed=data_seed, workers=2, max_samples=most, **options
        )
        seconds = round(time.perf_counter() - clock, 1)
        rows.append([found.samples, seconds, found.guarantee.status, found.policy.fingerprint[:12]])
    return {"rows": rows[1:]}


def shop_table(stationary: bool) -> Found:
    """What the shop would take of steps, as a table whose episodes cost no time: ten shared seeds."""
    low, high = Shop.REWARDS
    chances: dict[tuple[int, int, int, float], float] = {}
    for stock, order, customers in np.ndindex(7, 4, 4):
        left, earned = Shop.trade(stock, order, customers)
        outcome = (stock, order, left, (earned - low) / (high - low))
        chances[outcome] = chances.get(outcome, 0.0) + math.comb(3, customers) / 8.0
    rows = [(s, a, z, p, r) for (s, a, z, r), p in chances.items()]
    mdp = TabularMDP.from_outcomes(rows, n_states=7, n_actions=4, horizon=10, initial=0)
    runs = [
        reprl.learn(mdp, epsilon=EPSILON, rho=RHO, shared_seed=seed, data_seed=seed, stationary=stationary)
        for seed in range(10)
    ]
    return {"samples": [run.samples for run in runs], "sure": sum(run.guarantee.status == "rehearsed" for run in runs)}


def _cost(size: str) -> Found:
    """Seconds of one core for each part, and the peak of memory."""
    _look(_world(4, 2, 3, 2), 32)  # compile first
    n_states, n_actions, horizon, support = COSTS[size]
    mdp = _world(n_states, n_actions, horizon, support)
    built = _peak()
    looks = [_look(mdp, calls) for calls in COST_CALLS]
    return {"mdp_bytes": built, "peak_bytes": _peak(), "looks": looks}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _world(n_states: int, n_actions: int, horizon: int, support: int) -> TabularMDP:
    rng = np.random.default_rng([SEED, n_states])
    kernel = np.zeros((n_states, n_actions, n_states))
    successors = rng.integers(n_states, size=(n_states, n_actions, support))
    np.put_along_axis(kernel, successors, rng.exponential(size=successors.shape), axis=2)
    kernel /= kernel.sum(axis=2, keepdims=True)
    return TabularMDP(kernel, rng.uniform(0.0, 1.0, (n_states, n_actions)), 0, horizon)


def _look(mdp: TabularMDP, calls: int) -> Found:
    """One look of a run: choose, then rehearse; its parts timed."""
    rule = _rule(mdp, seed_of("cost"))
    model = _source(mdp, 1)
    seconds: Found = {"calls": calls}
    clock = time.process_time()

    def lap(part: str) -> None:
        nonlocal clock
        seconds[part] = round(time.process_time() - clock, 3)
        clock = time.process_time()

    data = Data(model.sample(calls), model.draw_starts(calls))
    lap("sample")
    dynamics = empirical_dynamics(data)
    lap("frequencies")
    choice = choose(rule, dynamics)
    lap("choose")
    redraw(data, 2, 1)
    lap("redraw")
    found = _rehearse(rule, data, choice, model.data_seed)
    lap("rehearse")
    return {**seconds, "agree": found.agree, "of": found.of, "pairs": found.pairs, "kind": choice.kind}


if __name__ == "__main__":
    print(json.dumps(_cost(sys.argv[1])))

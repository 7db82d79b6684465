"""Measurements: pure functions of the plan and of numbers of runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from reprl.assurance.certificate import HALFWAY, certificate_data_of, make_certificate
from reprl.assurance.concentration import levels
from reprl.assurance.confidence import Sample
from reprl.assurance.deviation_bounds import bound_deviations
from reprl.assurance.occupancy_bounds import bound_occupancy
from reprl.assurance.value_bounds import bound_best, bound_policy
from reprl.canonical.choice import Rule, choose, follow, make_rule
from reprl.canonical.gaps import find_gaps
from reprl.canonical.goal import Goal
from reprl.canonical.preferred import weigh_tolerances
from reprl.sources.tallies import play

from experiments.certificates import plan
from reprl.assurance.verdict import judge, prepare
from reprl.learning.learner import learn
from reprl.mdp.dynamics import Data, true_dynamics
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, SharedKey
from reprl.sources.episodes import EpisodicModel
from reprl.sources.exploration import cover
from reprl.sources.parallel import GenerativeModel, call
from reprl.sources.protocol import no_data
from reprl.sources.source import doubling


def _rule(mdp: TabularMDP, shared_seed: int, goal: Goal) -> Rule:
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    return make_rule(SharedKey(shared_seed).derive("rule"), shape, goal=goal)


def _certify(mdp: TabularMDP, rule: Rule, shared_seed: int, data_seed: int) -> tuple[int, Policy | None, float]:
    """As learn(access="generative", certify=True) looks at its data: calls, the proven policy, its loss bound."""
    model = GenerativeModel(mdp, data_seed)
    data = None
    for size in doubling(HALFWAY, plan.MOST, HALFWAY):
        data = call(model, size) if data is None else data + call(model, size - int(data.starts.sum()))
        certificate_data = certificate_data_of(data, "calls", fixed_start=bool(mdp.fixed_start))
        certificate, policy = make_certificate(rule, certificate_data, shared_seed, plan.DELTA)
        if certificate.proven:
            return size, policy, certificate.loss
    return 0, None, 0.0


def cost(world: str, numbers: range) -> dict[str, Any]:
    """Two certified runs of every shared seed: rows [seed, calls, calls, right, right, same, largest loss bound]."""
    mdp = plan.WORLDS[world]()
    rows = []
    for number in numbers:
        rule = _rule(mdp, plan.SEED + number, plan.QUALITY)
        truth = choose(rule, true_dynamics(mdp))
        runs = [_certify(mdp, rule, plan.SEED + number, 2 * number + i) for i in range(2)]
        right = [int(policy == truth.policy) for _, policy, _ in runs]
        same = int(runs[0][1] is not None and runs[0][1] == runs[1][1])
        rows.append([number, runs[0][0], runs[1][0], *right, same, round(max(runs[0][2], runs[1][2]), 6), truth.kind])
    return {"shape": [mdp.horizon, mdp.n_states, mdp.n_actions], "rows": rows}


def episodes(world: str, number: int) -> dict[str, Any]:
    """A certified run by episodes, held against the truth."""
    build, most = plan.BY_EPISODES[world]
    mdp, seed = build(), plan.SEED + number
    result = learn(mdp, shared_seed=seed, data_seed=number, certify=True, delta=plan.DELTA, max_samples=most)
    truth = choose(_rule(mdp, seed, plan.QUALITY), true_dynamics(mdp))
    return {
        "samples": result.samples,
        "episodes": result.episodes,
        "status": result.guarantee.status,
        "right": int(result.policy == truth.policy),
        "fingerprint": result.policy.fingerprint,
        "loss": round(result.guarantee.epsilon, 6),
    }


def boundary_world(number: int, *, alone: bool) -> tuple[TabularMDP, Rule, Policy]:
    """A tiny world beside a boundary of f(ξ, ·), or of one candidate alone: 0.1 % of a reward from the other side."""
    sizes = plan.SINGLE if alone else plan.TINY
    n_states, n_actions, horizon = sizes[number % len(sizes)]
    rng = np.random.default_rng(DataStream(plan.SEED, f"{'alone' if alone else 'tiny'}/{number}").key)
    while True:
        shared_seed = int(rng.integers(2**32))
        candidate = int(rng.integers(1, 12)) if alone else None
        transition = rng.dirichlet(np.ones(n_states), (n_states, n_actions))
        reward = rng.uniform(0.1, 0.9, (n_states, n_actions))

        def world(x: float, transition: Any = transition, reward: Any = reward) -> TabularMDP:
            changed = reward.copy()
            changed[0, 0] = x
            return TabularMDP(transition, changed, 0, horizon)

        rule = _rule(world(0.5), shared_seed, plan.ANY if alone else plan.EPSILON)
        rule = rule if candidate is None else follow(rule, "preferred", candidate)

        def policy(x: float, world: Any = world, rule: Rule = rule) -> Policy:
            return choose(rule, true_dynamics(world(x))).policy

        low, high = 0.05, 0.95
        first = policy(low)
        if first == policy(high):
            continue
        while high - low > 1e-4:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if policy(middle) == first else (low, middle)
        side = low - 5e-4 if rng.integers(2) else high + 5e-4
        return world(side), rule, policy(side)


def validity(strength: float, numbers: range, *, alone: bool = False) -> dict[str, Any]:
    """Runs on boundary worlds, one look each: how many were certified, and how many of those falsely.

    With one candidate alone, as a recipe publishes it, a single comparison stands between a run and a false
    certificate, and δ is small: the sharpest test of radii that there is.
    """
    certified = false = 0
    delta = plan.SMALL_DELTA if alone else plan.DELTA
    every = 50  # runs of one world
    for block in range(numbers.start, numbers.stop, every):
        mdp, rule, truth = boundary_world(block // every, alone=alone)
        for number in range(block, min(block + every, numbers.stop)):
            model = GenerativeModel(mdp, number)
            data = call(model, plan.TINY_CALLS[number % len(plan.TINY_CALLS)])
            sample = prepare(data, by_steps=True, fixed_start=True)
            verdict = judge(rule, sample, delta, shrink=strength)
            certified += verdict.proven
            false += verdict.proven and verdict.policy != truth
    return {"runs": len(numbers), "certified": int(certified), "false": int(false)}


def misses(mdp: TabularMDP, sample: Sample, rule: Rule, delta: float, *, shrink: float) -> bool:
    """Whether any interval that a certificate rests on misses the truth: values, gaps, variances, spreads, visits."""
    level = levels(rule.shape, rule.tolerances.size, delta, shrink=shrink)
    values = bound_best(sample, level.compare, level.cell, level.spread)
    deviations = bound_deviations(sample, values, level.law)
    truth = true_dynamics(mdp)
    gaps = find_gaps(truth, rule.order)
    counts = gaps.spread > 0.0
    actions = weigh_tolerances(truth, gaps, rule.order, rule.tolerances[:1]).actions[0]
    chosen = np.arange(mdp.n_actions) == actions[:, :, None]
    visits = bound_occupancy(sample, chosen, level)
    occupancy = truth.occupancy(actions)
    worth = bound_policy(sample, chosen, level.policy, level.worth)
    value = mdp.evaluate(Policy(actions))
    tiny = 1e-9
    return bool(
        (gaps.value < values.low - tiny).any()
        or (gaps.value > values.high + tiny).any()
        or (gaps.gap < values.gap_low - tiny).any()
        or (gaps.gap > values.gap_high + tiny).any()
        or (gaps.own < values.own_low - tiny).any()
        or (gaps.own > values.own_high + tiny).any()
        or (gaps.spread < deviations.low - tiny)[counts].any()
        or (gaps.spread > deviations.high + tiny)[counts].any()
        or (occupancy < visits.low - tiny).any()
        or (occupancy > visits.high + tiny).any()
        or not worth[0] - tiny <= value <= worth[1] + tiny
    )


def _gather(way: str, mdp: TabularMDP, number: int) -> Data:
    """Data of a run: calls, episodes of eight policies drawn beforehand, or of an explorer that adapts."""
    if way == "calls":
        return call(GenerativeModel(mdp, number), 400)
    model = EpisodicModel(mdp, number)
    if way == "adaptive":
        return cover(model, no_data(model, pooled=False), 2400)
    rng = np.random.default_rng(DataStream(plan.SEED, f"policies/{number}").key)
    policies = rng.integers(mdp.n_actions, size=(8, mdp.horizon, mdp.n_states))
    data = [play(model, actions, 300) for actions in policies]
    return sum(data[1:], data[0])


def coverage(way: str, strength: float, numbers: range) -> dict[str, Any]:
    """Data sets of small random worlds: in how many some interval misses the truth, radii times the strength."""
    missed = 0
    for number in numbers:
        rng = np.random.default_rng(DataStream(plan.SEED, f"coverage/{number % 30}").key)
        transition = rng.dirichlet(np.ones(3), (3, 2))
        mdp = TabularMDP(transition, rng.uniform(0.0, 1.0, (3, 2)), 0, 2)
        sample = prepare(_gather(way, mdp, number), by_steps=way != "adaptive", fixed_start=True)
        missed += misses(mdp, sample, _rule(mdp, plan.SEED + number, plan.EPSILON), plan.DELTA, shrink=strength)
    return {"runs": len(numbers), "missed": int(missed)}

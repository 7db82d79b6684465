"""constants="proven": runs by episodes at the sizes of docs/proofs/whole.md, what they promise, cost and refuse."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from experiments.episodic_pair import __main__ as pair_experiment
from reprl.learning.full import PROVEN_LIMIT, run_paper
from reprl.learning.settings import Settings
from reprl.paper import plan, proven
from reprl.paper.constants import Constants, Task
from reprl.paper.runs import RunSettings

PROVEN: dict[str, Any] = {"rule": "paper", "constants": "proven"}
SMALL: dict[str, Any] = {**PROVEN, "epsilon": 0.9, "rho": 0.9, "delta": 0.9}
"""A large ρ and δ: half a million episodes."""


def world(horizon: int = 1, **options: Any) -> reprl.TabularMDP:
    start = options.get("initial", 0)
    return reprl.TabularMDP(np.full((2, 2, 2), 0.5), np.array([[0.7, 0.2], [0.1, 0.9]]), start, horizon)


def task(s: int, a: int, h: int, epsilon: float, rho: float, delta: float) -> Task:
    return Task(s, a, h, epsilon, rho, delta, "episodic", "joint", boosted=False)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 12), st.integers(2, 6), st.integers(1, 6), st.floats(0.02, 0.99), *[st.floats(0.01, 0.95)] * 2)
def test_what_runs_meets_every_condition_of_the_proof(
    s: int, a: int, h: int, share: float, rho: float, delta: float
) -> None:
    """§1 to §4, read off the constants that a run is given: the loss is H·(2g + 3ν + b) + H·λ̄/δ₃."""
    epsilon = share * h
    found = Constants.proven(task(s, a, h, epsilon, rho, delta))
    problem = proven.Problem(s, a, h, epsilon, rho, delta)
    noise_delta, starved, visits = proven.proven_sizes(problem).failures
    assert noise_delta + starved + visits <= delta * (1 + 1e-9)
    runs, (length,), (accuracy,) = found.partition_runs, found.episodes, found.by_tier
    window, pessimism = accuracy / 2, found.pessimism * accuracy
    error = proven.noise(problem, float(found.quota) * runs, noise_delta, starved)
    assert pessimism >= (window + error) * (1 - 1e-12)
    left = proven.visits_left(s, a, h, length, found.failure) + found.failure * h
    assert h * (2 * window + 3 * error + pessimism) + h * left / visits <= epsilon * (1 + 1e-6)
    assert proven.disagreement(problem, runs, found.quota, window) <= rho
    (bonus,) = found.bonus
    run = RunSettings(episodes=length, bonus=bonus, guide=found.guide, failure=found.failure)
    assert (
        math.sqrt(h**3 / found.quota) * run.schedule(s, a, h).scale / math.sqrt(h**3) >= h
    )  # case 1 of exploration §2
    assert (found.keep_records, found.guide, found.tiers, found.data_runs, found.learners) == (True, 1.0, 2, (0,), 1)
    assert found.total == runs * length


def test_no_fewer_runs_or_episodes_meet_them_and_the_experiment_plays_the_same() -> None:
    found = Constants.proven(task(2, 2, 1, 0.5, 0.1, 0.1))
    problem = proven.Problem(2, 2, 1, 0.5, 0.1, 0.1)
    window = found.by_tier[0] / 2
    assert proven.disagreement(problem, found.partition_runs - 1, found.quota, window) > 0.1
    chosen = pair_experiment.PLANS["before/2,2,1"].chosen
    assert (chosen.runs, (chosen.length,), chosen.quota) == (found.partition_runs, found.episodes, found.quota)
    assert (chosen.window, chosen.failure) == (window, found.failure)
    assert (chosen.window + chosen.noise) / (2 * chosen.window) == found.pessimism


def test_sizes_grow_as_the_page_says() -> None:
    """§5: two tiers ask for S²A³·H¹²/(ε⁴ρ²δ²) episodes, up to logarithms."""
    base: dict[str, Any] = {"s": 32, "a": 32, "h": 64, "epsilon": 1.0, "rho": 0.01, "delta": 0.01}
    small = Constants.proven(task(**base)).total
    for name, power in {"s": 2, "a": 3, "h": 12, "epsilon": -4, "rho": -2, "delta": -2}.items():
        factor = 16 if power > 0 else 1 / 16
        large = Constants.proven(task(**{**base, name: base[name] * factor})).total
        assert math.log(large / small, factor) == pytest.approx(power, abs=0.2), name


def test_a_run_is_proven_and_every_sample_is_counted() -> None:
    mdp = world()
    constants = Constants.proven(task(2, 2, 1, 0.9, 0.9, 0.9))
    first, second = (reprl.learn(mdp, **SMALL, shared_seed=3, data_seed=seed) for seed in (1, 2))
    for run in (first, second):
        assert run.constants == constants
        assert run.guarantee.status == "proven"
        assert (run.guarantee.rho, run.guarantee.delta, run.guarantee.epsilon) == (0.9, 0.9, 0.9)
        assert "docs/proofs/whole.md" in run.guarantee.source
        assert run.samples == run.episodes == constants.total == int(run.counts.hits.sum())
        assert run.tiers.level.tolist() == [[1, 2]]  # no episode begins in the other state
        assert mdp.evaluate(run.policy) == pytest.approx(0.7)
    assert first.policy == second.policy
    assert not np.array_equal(first.counts.hits, second.counts.hits)
    recipe = reprl.Recipe.from_json(first.recipe.to_json())
    assert recipe.settings.constants == "proven"
    again = recipe.learn(data_seed=1, env=mdp, workers=2)
    assert np.array_equal(again.counts.hits, first.counts.hits)
    assert again.policy == first.policy


def test_other_sizes_promise_nothing() -> None:
    asked, model = Settings(**SMALL), reprl.EpisodicModel(world(), 1)
    fewer = replace(asked.paper.constants_for(2, 2, 1, 1), partition_runs=20)
    found = run_paper(model, reprl.SharedKey(1), asked, constants=fewer)
    assert (found.guarantee.status, found.guarantee.source) == ("none", "constants were set by hand")


def test_the_cost_is_said_before_anything_starts() -> None:
    asked: dict[str, Any] = {**PROVEN, "epsilon": 0.5}
    needed = Constants.proven(task(2, 2, 1, 0.5, 0.1, 0.1)).total
    assert needed > PROVEN_LIMIT
    with pytest.raises(reprl.ReprlError) as refused:
        reprl.learn(world(), **asked, shared_seed=1, data_seed=1)
    assert f"max_samples={needed}, got None" in str(refused.value)
    assert re.search(
        r"19760 runs of 955905 episodes here, up to 1.89e\+10 samples, about \S+ hours", str(refused.value)
    )
    with pytest.raises(reprl.ReprlError, match=rf"^max_samples must be at least {needed} for these settings, got 5$"):
        reprl.learn(world(), **asked, max_samples=5)
    rows = {row.algorithm: row for row in plan(n_states=2, n_actions=2, horizon=1, epsilon=0.5)}
    assert (rows["proven, joint"].samples, rows["proven, joint"].kind) == (needed, "exact")
    rows = {row.algorithm: row for row in plan(n_states=2, n_actions=2, horizon=3, epsilon=0.5)}
    assert rows["proven, joint"].samples == 3 * Constants.proven(task(2, 2, 3, 0.5, 0.1, 0.1)).total
    assert rows["proven, joint"].kind == "at most"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"access": "generative"}, "access must be 'episodic' for constants='proven', got 'generative'"),
        ({"mechanism": "exponential"}, "mechanism must be 'compact' for constants='proven', got 'exponential'"),
        ({"coupling": "product"}, "coupling must be 'joint' for constants='proven', got 'product'"),
        ({"boosted": True}, "boosted must be False for constants='proven', got True"),
        ({"scale": 0.5}, "scale must be left out unless constants='scaled', got 0.5"),
        ({"samples": 30}, "samples must be left out unless constants='scaled', got 30"),
        ({"epsilon": 1.0}, r"epsilon must lie in \(0, 1\), got 1"),
        ({"rule": "soft"}, "constants must be left out unless rule='paper', got 'proven'"),
    ],
)
def test_what_the_proof_does_not_cover_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(reprl.ReprlError, match=f"^{words}"):
        reprl.learn(world(), **{**SMALL, **options}, shared_seed=1, data_seed=1)


def test_worlds_that_the_proof_does_not_cover_are_refused() -> None:
    line = "^environment must be an MDP in memory with one start state for constants='proven', got "
    with pytest.raises(reprl.ReprlError, match=line + "2 of them$"):
        reprl.learn(world(initial=np.array([0.5, 0.5])), **SMALL)
    with pytest.raises(reprl.ReprlError, match=line + "a black box$"):
        reprl.learn("gym:Blackjack-v1", horizon=2, reward_range=(-1, 1), **SMALL)
    with pytest.raises(reprl.ReprlError, match=r"^n_actions must be a whole number of at least 2, got 1$"):
        reprl.learn(reprl.TabularMDP(np.ones((1, 1, 1)), np.array([[0.5]]), 0, 1), **SMALL)
    with pytest.raises(reprl.ReprlError, match=r"^proven sizes ask for .* episodes in all; at most 2\*\*62 can be"):
        reprl.learn(world(8), **{**SMALL, "epsilon": 0.001}, max_samples=2**60)

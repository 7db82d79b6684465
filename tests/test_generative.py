"""The paper's rule from parallel samples: promises over pairs of runs, budgets, ledger, bytes, and what it refuses."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.coupling.spec import Coupling
from reprl.learning.full import run_paper
from reprl.learning.learner import learner as bound_learner
from reprl.learning.settings import Settings
from reprl.paper import plan
from reprl.paper.constants import Constants, least_units
from reprl.paper.rep_rl_bandit import Induction
from reprl.sources.episodes import EpisodicModel
from reprl.sources.parallel import GenerativeModel
from tests import naive_decision
from tests.statistics import FALSE_ALARM, exceeds, keeps

EPSILON = 0.3
learn = partial(reprl.learn, rule="paper")
learner_of = partial(bound_learner, rule="paper")
generative = partial(Settings, rule="paper")
WAYS = list(itertools.product(("joint", "product"), ("compact", "exponential")))


@cache
def world(id: str) -> reprl.TabularMDP:
    if id == "gridworld":
        return reprl.make("gridworld-v0", horizon=4, size=3)
    return reprl.make("random-mdp-v0", horizon=3, n_states=8, n_actions=3)


def pair(id: str, i: int, **options: Any) -> list[reprl.LearnResult]:
    """Two runs with one fresh shared seed and independent data."""
    return [learn(world(id), shared_seed=i, data_seed=2 * i + half, **options) for half in range(2)]


def planned(mdp: reprl.TabularMDP, settings: Settings) -> Constants:
    return settings.paper.constants_for(
        mdp.n_states, mdp.n_actions, mdp.horizon, reprl.GenerativeModel(mdp, 0).samples_per_call
    )


def by_hand(mdp: reprl.TabularMDP, calls: int, shared: int, data: int, **options: Any) -> reprl.LearnResult:
    """A run of so many calls, which the settings do not ask for."""
    settings = generative(**options)
    few = replace(planned(mdp, settings), calls=calls)
    return run_paper(reprl.GenerativeModel(mdp, data), reprl.SharedKey(shared), settings, constants=few)


# What is promised.


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("id", "coupling", "mechanism", "rho"),
    [
        ("random", "joint", "compact", 0.05),
        ("random", "joint", "exponential", 0.1),
        ("random", "product", "compact", 0.1),
        ("random", "product", "exponential", 0.05),
        ("gridworld", "joint", "compact", 0.05),
        ("gridworld", "joint", "compact", 0.1),
        ("gridworld", "joint", "exponential", 0.05),
        ("gridworld", "product", "compact", 0.05),
        ("gridworld", "product", "exponential", 0.1),
    ],
)
def test_with_the_papers_constants_runs_agree_and_are_near_optimal(
    id: str, coupling: str, mechanism: str, rho: float
) -> None:
    """Over 200 pairs; false alarm 1e-6. Control: the greedy learner below."""
    pairs, mdp = 200, world(id)
    best = mdp.evaluate(mdp.solve().policy)
    options = {"epsilon": EPSILON, "rho": rho, "delta": rho, "constants": "paper"}
    parted = 0
    for i in range(pairs):
        runs = pair(id, i, coupling=coupling, mechanism=mechanism, **options)
        parted += runs[0].policy != runs[1].policy
        assert all(mdp.evaluate(run.policy) >= best - EPSILON for run in runs)
    assert keeps(parted, pairs, rho, power=0.04, finds=rho + 0.17)
    result = runs[0]
    assert result.guarantee == reprl.Guarantee.of(
        rho=rho, delta=rho, epsilon=EPSILON, status="proven", source="docs/proofs/decision.md §3"
    )
    sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "horizon": mdp.horizon}
    rows = {row.algorithm: row for row in plan(**sizes, epsilon=EPSILON, rho=rho, delta=rho)}
    assert result.samples == rows[f"paper, {coupling}"].samples
    assert result.samples == int(result.counts.visits[0, 0, 0]) * mdp.n_states * mdp.n_actions * mdp.horizon
    assert result.episodes == 0


@pytest.mark.statistical
@pytest.mark.parametrize("coupling", ["joint", "product"])
def test_a_greedy_learner_with_as_many_samples_is_rejected(coupling: Coupling) -> None:
    """Control: on the tied gridworld the argmax of empirical means parts in most pairs. False alarm 1e-6."""
    mdp = world("gridworld")
    settings = generative(epsilon=EPSILON, constants="paper", coupling=coupling)
    calls = planned(mdp, settings).calls
    policies = [naive_decision.greedy(reprl.GenerativeModel(mdp, i).sample(calls)) for i in range(400)]
    parted = sum(policies[2 * i] != policies[2 * i + 1] for i in range(200))
    assert exceeds(parted, 200, 0.1) < FALSE_ALARM


def induction_of(run: reprl.LearnResult) -> Induction:
    assert run.induction is not None
    return run.induction


def computed_rho(mdp: reprl.TabularMDP, calls: int, **options: Any) -> float:
    return induction_of(by_hand(mdp, calls, 0, 0, **options)).guarantee.rho


@pytest.mark.statistical
@pytest.mark.parametrize(("coupling", "mechanism"), WAYS)
def test_the_rho_computed_from_the_calls_bounds_the_disagreement(coupling: str, mechanism: str) -> None:
    """With calls that promise about 0.4 and no more; false alarm 1e-6. Controls: unshared seeds, 3 calls."""
    mdp, pairs = world("gridworld"), 100
    options = {"epsilon": 2.0, "coupling": coupling, "mechanism": mechanism, "delta": 0.02}
    low, high = 2**10, 2**50
    while high - low > high // 20:
        middle = math.isqrt(low * high) + 1
        low, high = (low, middle) if computed_rho(mdp, middle, **options) <= 0.4 else (middle, high)
    rho = computed_rho(mdp, high, **options)
    assert 0.3 < rho <= 0.4
    runs = [[by_hand(mdp, high, i, 2 * i + half, **options) for half in range(2)] for i in range(pairs)]
    assert keeps(sum(a.policy != b.policy for a, b in runs), pairs, rho, power=0.88)
    assert keeps(sum(not np.array_equal(a.values, b.values) for a, b in runs), pairs, rho, power=0.88)
    unshared = sum(runs[i][0].policy != runs[i + 1][1].policy for i in range(pairs - 1))
    assert exceeds(unshared, pairs - 1, rho) < FALSE_ALARM
    few = [[by_hand(mdp, 3, i, 2 * i + half, **options) for half in range(2)] for i in range(50)]
    assert exceeds(sum(a.policy != b.policy for a, b in few), 50, rho) < FALSE_ALARM


def test_a_promise_is_proven_only_where_every_computed_figure_meets_it() -> None:
    mdp = world("random")
    enough = learn(mdp, epsilon=EPSILON, shared_seed=1, data_seed=2)
    assert enough.guarantee.status == "proven"
    for calls in (planned(mdp, generative(epsilon=EPSILON)).calls // 10**6, 10):
        result = by_hand(mdp, calls, 1, 2, epsilon=EPSILON)
        computed = induction_of(result).guarantee
        assert computed.rho > 0.1 or computed.epsilon > EPSILON
        assert (result.guarantee.status, result.guarantee.source) == ("none", "constants were set by hand")


# Budgets.


@pytest.mark.parametrize("coupling", ["joint", "product"])
def test_a_budget_is_met_by_the_largest_scale_within_it(coupling: Coupling) -> None:
    mdp = world("random")
    settings = generative(constants="scaled", coupling=coupling)
    least = 72 * least_units(settings.paper.task(mdp.n_states, mdp.n_actions, mdp.horizon))
    for samples in (least, 10 * least + 71, 10**9, 10**12 + 5):
        asked: dict[str, Any] = {"constants": "scaled", "coupling": coupling, "shared_seed": 1, "data_seed": 2}
        result = learn(mdp, samples=samples, **asked)
        assert samples - 72 < result.samples <= samples
        assert result.samples == int(result.counts.visits.sum())
        assert result.constants is not None
        assert learn(mdp, scale=result.constants.scale, **asked).policy == result.policy
        assert result.guarantee.status == "none"
        assert f"to the power {result.constants.scale:g}" in result.guarantee.source
        again = reprl.Recipe.from_json(result.recipe.to_json())
        assert again.learn(data_seed=2, env=mdp).policy == result.policy
        assert (again.settings.samples, again.settings.scale) == (samples, None)
    with pytest.raises(reprl.ReprlError, match=rf"^samples must pay for at least {least // 72} parallel calls"):
        learn(mdp, constants="scaled", coupling=coupling, samples=least - 1)


def test_a_budget_pays_for_random_starts_and_whole_episodes() -> None:
    fixed = world("random")
    spread = reprl.TabularMDP(fixed.transition, fixed.reward, np.full(8, 1 / 8))
    assert learn(spread, constants="scaled", samples=10**6, data_seed=1).samples <= 10**6
    result = learn(spread, constants="scaled", samples=10**8, access="episodic", epsilon=1.5, data_seed=1)
    assert result.constants is not None
    assert 0.99e8 < result.constants.total * 4 <= 10**8
    assert result.samples <= 10**8


# Ledger and seeds.


SCALED: dict[str, Any] = {"constants": "scaled", "samples": 72 * 1000}


def test_every_sample_is_counted_also_those_of_a_random_start() -> None:
    fixed = world("random")
    spread = reprl.TabularMDP(fixed.transition, fixed.reward, np.full(8, 1 / 8))
    for mdp, start in ((fixed, 0), (spread, 1)):
        result = learn(mdp, **SCALED, shared_seed=1, data_seed=2)
        calls = int(result.counts.visits[0, 0, 0])
        assert result.samples == calls * (8 * 3 * 3 + start)
        assert (result.counts.visits == calls).all()


def test_a_random_start_is_one_row_of_every_call_and_every_episode() -> None:
    """The reduction to a fixed start adds a step 0 with one state and one decision, by step and pooled alike."""
    world = reprl.make("river-swim-v0", horizon=3)
    transition, reward = world.transition[0], world.reward[0]
    n_states, n_actions = reward.shape
    for start, rows in ((0, 0), (np.full(n_states, 1.0 / n_states), 1)):
        mdp = reprl.TabularMDP(transition, reward, start, horizon=3)
        by_step, pooled = GenerativeModel(mdp, 1), GenerativeModel(mdp, 1).pooled
        assert by_step.samples_per_call == 3 * n_states * n_actions + rows
        assert pooled.samples_per_call == n_states * n_actions + rows
        assert EpisodicModel(mdp, 1).samples_per_episode == 3 + rows
        for model in (by_step, pooled):
            model.sample(5)
            assert model.draw_starts(5).sum() == 5
            assert model.ledger.samples == 5 * model.samples_per_call


def test_results_say_which_seeds_ran_and_can_be_had_again() -> None:
    first = learn(world("random"), **SCALED)
    again = learn(world("random"), **SCALED, shared_seed=first.shared_seed, data_seed=first.data_seed)
    assert (first.policy, first.counts) == (again.policy, again.counts)
    other = learn(world("random"), **SCALED)
    assert other.shared_seed == first.shared_seed == 0
    assert other.data_seed != first.data_seed
    assert learn(world("random"), **SCALED, shared_seed=None).shared_seed != 0  # drawn
    assert first.settings == generative(**SCALED)


def test_the_shared_seed_moves_no_data_and_the_data_seed_no_draw() -> None:
    results = {
        (shared, data): by_hand(world("gridworld"), 10**12, shared, data)
        for shared, data in itertools.product(range(2), range(2))
    }
    assert results[0, 0].counts == results[1, 0].counts
    assert results[0, 0].counts != results[0, 1].counts
    assert results[0, 0].policy == results[0, 1].policy
    assert results[0, 0].policy != results[1, 0].policy


def test_a_learner_is_the_same_run_as_learn() -> None:
    options: dict[str, Any] = {**SCALED, "coupling": "product"}
    model = reprl.GenerativeModel(world("random"), 5)
    policy = learner_of(**options)(model, reprl.SharedKey(6))
    assert policy == learn(world("random"), shared_seed=6, data_seed=5, **options).policy
    assert model.ledger.calls == 1000


# Same bytes.

GOLDEN = [
    (
        "gridworld",
        {"coupling": "product", "mechanism": "exponential"},
        "431bd84c18e1c93007df92907e5b1f8f073f125316217fcf3345b0174c525b68",
        "7ed90bbf3c41cef6e0e2ee17b57bf3afd937228adee2c04dee5efc421336cf7b",
    ),
]
"""World, options, fingerprint, digest of the counts. A change here is a new stream version."""


def golden_run(id: str, options: dict[str, Any]) -> list[str]:
    found = by_hand(world(id), 5000, 7, 11, epsilon=EPSILON, **options)
    return [found.policy.fingerprint, found.counts.digest]


@pytest.mark.parametrize(("id", "options", "fingerprint", "digest"), GOLDEN)
def test_fixed_seeds_give_fixed_bytes(id: str, options: dict[str, Any], fingerprint: str, digest: str) -> None:
    assert golden_run(id, options) == [fingerprint, digest]


_SCRIPT = """
import json, sys
from tests.test_generative import GOLDEN, golden_run
json.dump([golden_run(id, options) for id, options, _, _ in GOLDEN], sys.stdout)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("hash_seed", "threads"), [("0", "1"), ("1234", "2")])
def test_other_processes_give_the_same_bytes(hash_seed: str, threads: str) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    assert json.loads(done.stdout) == [[fingerprint, digest] for _, _, fingerprint, digest in GOLDEN]


# Settings.


def test_the_access_follows_from_the_rule_and_its_constants() -> None:
    assert Settings().access == Settings(rule="paper", constants="proven").access == "episodic"
    assert generative().access == generative(constants="scaled").access == "generative"
    assert generative(constants="scaled", access="episodic").access == "episodic"


@pytest.mark.parametrize("boosted", [False, True])
def test_the_papers_constants_are_refused_by_episodes_with_their_number(boosted: bool) -> None:
    words = r"^constants='paper' by episodes ask for [\d.]+e\+\d+ of them: use access='generative', or "
    with pytest.raises(reprl.ReprlError, match=words):
        learn(world("random"), access="episodic", boosted=boosted)


# Bad input.


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"epsilon": 3.1}, r"epsilon must lie in \(0, 3\], as values lie in \[0, H\], got 3.1"),
        ({"epsilon": 0.0}, r"epsilon must lie in \(0, inf\), got 0.0"),
        ({"epsilon": math.nan}, r"epsilon must lie in \(0, inf\), got nan"),
        ({"rho": 0.0}, r"rho must lie in \(0, 1\), got 0.0"),
        ({"rho": 1.0}, r"rho must lie in \(0, 1\), got 1.0"),
        ({"rho": "0.1"}, r"rho must lie in \(0, 1\), got '0.1'"),
        ({"delta": 1.5}, r"delta must lie in \(0, 1\), got 1.5"),
        ({"delta": -0.1}, r"delta must lie in \(0, 1\), got -0.1"),
        ({"espilon": 0.3}, r"option must be one of epsilon, .*, baseline; got 'espilon' \(did you mean .*"),
        ({"access": "psychic"}, r"access must be one of .*generative.*; got 'psychic'"),
        ({"coupling": "tight"}, r"coupling must be one of joint, product; got 'tight'"),
        ({"mechanism": "softmax"}, r"mechanism must be one of compact, exponential; got 'softmax'"),
        ({"constants": "magic"}, r"constants must be one of paper, scaled, proven; got 'magic'"),
        ({"boosted": 1}, r"boosted must be True or False, got 1"),
        ({"samples": 10}, r"samples must be left out unless constants='scaled', got 10"),
        ({"constants": "scaled", "samples": 0}, r"samples must be a whole number from 1 to \d+, got 0"),
        (
            {"constants": "scaled", "samples": 10, "scale": 0.1},
            r"samples must be left out where .*, got 10",
        ),
        ({"max_samples": 719}, r"max_samples must be at least \d+ for these settings, got 719"),
        ({"shared_seed": -1}, r"shared seed must be a whole number from 0 to \d+, got -1"),
        ({"data_seed": 0.5}, r"data seed must be a whole number from 0 to \d+, got 0.5"),
        (
            {"epsilon": 1e-6, "constants": "paper"},
            r"the paper's constants ask for .*; at most 2\*\*62 .*",
        ),
        (
            {"epsilon": 1e-200, "constants": "paper"},
            r"these settings need more samples than a float can hold: relax epsilon=1e-200.*",
        ),
        ({"rho": 1e-300, "constants": "paper"}, r"these settings need more samples than .*rho=1e-300.*"),
    ],
)
def test_bad_options_are_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(reprl.ReprlError, match=f"^{text}$"):
        learn(world("random"), **change)


@pytest.mark.parametrize("env", [None, 3, [[0.5]], reprl.SharedKey(1)])
def test_an_environment_of_the_wrong_type_is_refused(env: Any) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^env must be a TabularMDP, a GymnasiumModel, an id, or "):
        learn(env)


def test_an_unknown_environment_is_quoted() -> None:
    with pytest.raises(reprl.ReprlError, match=r"^environment must be one of .*; got 'gridwrold-v0'"):
        learn("gridwrold-v0")


def test_a_learner_needs_a_generative_model_and_a_key() -> None:
    learner = learner_of()
    with pytest.raises(reprl.ReprlError, match=r"^model must be a reprl.GenerativeModel for access='generative', got "):
        learner(reprl.EpisodicModel(world("random"), 1), reprl.SharedKey(1))
    with pytest.raises(reprl.ReprlError, match=r"^shared key must be a reprl.SharedKey, got 1$"):
        learner(reprl.GenerativeModel(world("random"), 1), 1)  # type: ignore[arg-type]
    with pytest.raises(reprl.ReprlError, match=r"^option must be one of .*; got 'scales' \(did you mean 'scale'\?\)$"):
        learner_of(scales=1)  # type: ignore[call-arg]

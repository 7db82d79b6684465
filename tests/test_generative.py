"""learn from parallel samples: its promises over pairs of runs, its ledger, its bytes, and what it refuses."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.coupling.spec import CouplingName
from reprl.learning.learner import learner as bound_learner
from reprl.learning.practical import decide
from reprl.learning.practical_parallel import plan_calls
from reprl.learning.settings import Settings
from reprl.paper.rep_rl_bandit import Induction
from reprl.sources.episodes import EpisodicModel
from reprl.sources.parallel import GenerativeModel
from tests import naive_decision
from tests.statistics import FALSE_ALARM, exceeds, keeps

EPSILON = 0.3
learn = partial(reprl.learn, access="generative", rule="sampled")
learner_of = partial(bound_learner, access="generative", rule="sampled")
generative = partial(Settings, access="generative", rule="sampled")
WAYS = list(itertools.product(("joint", "product"), ("compact", "exponential")))


@cache
def world(id: str) -> reprl.TabularMDP:
    if id == "gridworld":
        return reprl.make("gridworld-v0", horizon=4, size=3)
    return reprl.make("random-mdp-v0", horizon=3, n_states=8, n_actions=3)


def pair(id: str, i: int, **options: Any) -> list[reprl.LearnResult]:
    """Two runs with one fresh shared seed and independent data."""
    return [learn(world(id), shared_seed=i, data_seed=2 * i + half, **options) for half in range(2)]


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
    assert result.guarantee == reprl.Guarantee(
        rho=rho, delta=rho, epsilon=EPSILON, status="proven", source="docs/proofs/decision.md §3"
    )
    sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "horizon": mdp.horizon}
    rows = {row.algorithm: row for row in reprl.plan(**sizes, epsilon=EPSILON, rho=rho, delta=rho) if row.exact}
    assert result.samples == rows[f"reprl {coupling}, paper"].samples
    assert result.samples == int(result.counts.visits[0, 0, 0]) * mdp.n_states * mdp.n_actions * mdp.horizon
    assert result.episodes == 0


@pytest.mark.statistical
@pytest.mark.parametrize("coupling", ["joint", "product"])
def test_a_greedy_learner_with_as_many_samples_is_rejected(coupling: CouplingName) -> None:
    """Control: on the tied gridworld the argmax of empirical means parts in most pairs. False alarm 1e-6."""
    mdp = world("gridworld")
    settings = generative(epsilon=EPSILON, constants="paper", coupling=coupling)
    calls = plan_calls(reprl.GenerativeModel(mdp, 0), settings)
    policies = [naive_decision.greedy(reprl.GenerativeModel(mdp, i).sample(calls)) for i in range(400)]
    parted = sum(policies[2 * i] != policies[2 * i + 1] for i in range(200))
    assert exceeds(parted, 200, 0.1) < FALSE_ALARM


def induction_of(run: reprl.LearnResult) -> Induction:
    assert run.induction is not None
    return run.induction


def computed_rho(mdp: reprl.TabularMDP, calls: int, **options: Any) -> float:
    return induction_of(learn(mdp, shared_seed=0, data_seed=0, calls=calls, **options)).guarantee.rho


@pytest.mark.statistical
@pytest.mark.parametrize("rounding", ["none", "vector", "grid"])
@pytest.mark.parametrize(("coupling", "mechanism"), WAYS)
def test_the_rho_computed_from_hand_set_calls_bounds_the_disagreement(
    coupling: str, mechanism: str, rounding: str
) -> None:
    """With calls that promise about 0.4 and no more; false alarm 1e-6. Controls: unshared seeds, 3 calls."""
    mdp, pairs = world("gridworld"), 100
    options = {"epsilon": 2.0, "coupling": coupling, "mechanism": mechanism, "rounding": rounding, "delta": 0.02}
    low, high = 2**10, 2**50
    while high - low > high // 20:
        middle = math.isqrt(low * high) + 1
        low, high = (low, middle) if computed_rho(mdp, middle, **options) <= 0.4 else (middle, high)
    rho = computed_rho(mdp, high, **options)
    assert 0.3 < rho <= 0.4
    runs = [pair("gridworld", i, calls=high, **options) for i in range(pairs)]
    assert keeps(sum(a.policy != b.policy for a, b in runs), pairs, rho, power=0.88)
    if rounding != "none":
        values = sum(not np.array_equal(a.values, b.values) for a, b in runs)
        assert keeps(values, pairs, rho, power=0.88)
    unshared = sum(runs[i][0].policy != runs[i + 1][1].policy for i in range(pairs - 1))
    assert exceeds(unshared, pairs - 1, rho) < FALSE_ALARM
    few = [pair("gridworld", i, calls=3, **options) for i in range(50)]
    assert exceeds(sum(a.policy != b.policy for a, b in few), 50, rho) < FALSE_ALARM


# By rehearsal.


@pytest.mark.parametrize("id", ["random", "gridworld"])
def test_practical_runs_are_rehearsed_and_say_so(id: str) -> None:
    """Rounds double from 32 calls; the last one is whole, and its rehearsal is what the result shows."""
    mdp = world(id)
    result = learn(mdp, epsilon=EPSILON, shared_seed=1, data_seed=2)
    calls = result.samples // reprl.GenerativeModel(mdp, 0).samples_per_call
    assert calls.bit_count() == 1
    assert (result.counts.visits == calls).all()
    rehearsal = result.rehearsal
    assert rehearsal is not None
    assert rehearsal.passed
    assert result.guarantee == generative(epsilon=EPSILON).asked.promise(
        "rehearsed", f"{rehearsal} (docs/rehearsal.md)"
    )
    again = decide(reprl.SharedKey(1), result.counts, result.tiers, result.settings)
    assert again.policy == result.policy
    assert result.choice is None
    assert result.tolerance is None


def test_a_run_that_is_out_of_samples_promises_nothing() -> None:
    mdp = world("random")
    result = learn(mdp, max_samples=72 * 100, shared_seed=1, data_seed=2)
    assert result.samples == 72 * 100
    assert result.guarantee.status == "none"
    assert result.guarantee.source.startswith("the samples ran out before the run was decided: ")
    assert str(result.guarantee).startswith("nothing is promised: ")
    assert result.undecided


def test_calls_set_by_hand_are_not_rehearsed_and_promise_nothing() -> None:
    result = learn(world("random"), calls=1, shared_seed=1, data_seed=2)
    assert result.rehearsal is None
    assert result.guarantee.status == "none"
    assert result.guarantee.source == "the number of parallel calls was set by hand and nobody rehearsed it"


def test_a_loss_that_stays_above_epsilon_ends_a_run_without_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agreement alone is not enough, and more data would not help."""
    monkeypatch.setattr("reprl.learning.practical.policy_loss_bound", lambda *_: EPSILON + 2.5)
    result = learn(world("random"), epsilon=EPSILON, shared_seed=1, data_seed=2)
    assert result.rehearsal is not None
    assert result.rehearsal.passed
    assert (result.guarantee.status, result.guarantee.source) == ("none", "this run's own data put the loss at 2.8")


def hostile(id: str) -> reprl.TabularMDP:
    """Worlds on which sizes that were fitted to others part about half of all pairs."""
    if id == "every gap a window":
        return reprl.TabularMDP(np.full((10, 2, 10), 0.1), np.tile([0.55, 0.45], (10, 1)), horizon=3)
    transition = np.zeros((3, 17, 3))
    transition[0, :, 1] = 0.5 - 0.85 * 0.15 * (np.arange(17) > 0)
    transition[0, :, 2] = 1.0 - transition[0, :, 1]
    transition[1, :, 1] = transition[2, :, 2] = 1.0
    reward = np.zeros((3, 17))
    reward[1] = 1.0
    return reprl.TabularMDP(transition, reward, horizon=2)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "id", [pytest.param("every gap a window", marks=pytest.mark.long), "sixteen arms at 0.85 of the window"]
)
def test_runs_agree_on_worlds_that_nobody_calibrated_on(id: str) -> None:
    """40 pairs at their own sizes; false alarm 1e-6, power 0.92 at a disagreement of one half. Control: 16 calls."""
    mdp, pairs = hostile(id), 40
    runs = [[learn(mdp, shared_seed=i, data_seed=2 * i + half) for half in range(2)] for i in range(pairs)]
    assert all(run.guarantee.status == "rehearsed" for both in runs for run in both)
    assert keeps(sum(one.policy != two.policy for one, two in runs), pairs, 0.1, power=0.0028, finds=0.49)
    best = mdp.evaluate(mdp.solve().policy)
    assert max(best - mdp.evaluate(run.policy) for both in runs for run in both) <= EPSILON
    few = [
        [learn(mdp, shared_seed=i, data_seed=2 * i + half, calls=16).policy for half in range(2)] for i in range(pairs)
    ]
    assert exceeds(sum(one != two for one, two in few), pairs, 0.1) < FALSE_ALARM


def test_a_promise_is_proven_only_where_every_computed_figure_meets_it() -> None:
    options: dict[str, Any] = {"epsilon": EPSILON, "constants": "paper", "shared_seed": 1, "data_seed": 2}
    asked = generative(epsilon=EPSILON, constants="paper")
    enough = plan_calls(reprl.GenerativeModel(world("random"), 0), asked)
    for calls, status in ((enough, "proven"), (enough // 10**6, "none"), (10, "none")):
        result = learn(world("random"), calls=calls, **options)
        computed = induction_of(result).guarantee
        assert result.guarantee.status == status
        assert (computed.rho <= 0.1 and computed.epsilon <= EPSILON and computed.delta <= 0.1) == (status == "proven")
        assert (result.guarantee.rho, result.guarantee.epsilon, result.guarantee.delta) == (0.1, EPSILON, 0.1)


# Ledger and seeds.


def test_every_sample_is_counted_also_those_of_a_random_start() -> None:
    fixed = world("random")
    spread = reprl.TabularMDP(fixed.transition, fixed.reward, np.full(8, 1 / 8))
    for mdp, start in ((fixed, 0), (spread, 1)):
        result = learn(mdp, calls=50, shared_seed=1, data_seed=2)
        assert result.samples == 50 * (8 * 3 * 3 + start)
        assert (result.counts.visits == 50).all()


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
    first = learn("gridworld-v0", calls=40)
    again = learn("gridworld-v0", calls=40, shared_seed=first.shared_seed, data_seed=first.data_seed)
    assert (first.policy, first.counts) == (again.policy, again.counts)
    other = learn("gridworld-v0", calls=40)
    assert other.shared_seed == first.shared_seed == 0
    assert other.data_seed != first.data_seed
    assert learn("gridworld-v0", calls=40, shared_seed=None).shared_seed != 0  # drawn
    assert first.settings == generative(calls=40, stationary=False)


def test_the_shared_seed_moves_no_data_and_the_data_seed_no_draw() -> None:
    results = {
        (shared, data): learn(world("gridworld"), calls=10**12, shared_seed=shared, data_seed=data)
        for shared, data in itertools.product(range(2), range(2))
    }
    assert results[0, 0].counts == results[1, 0].counts
    assert results[0, 0].counts != results[0, 1].counts
    assert results[0, 0].policy == results[0, 1].policy
    assert results[0, 0].policy != results[1, 0].policy


def test_a_learner_is_the_same_run_as_learn() -> None:
    options: dict[str, Any] = {"calls": 300, "coupling": "product", "rounding": "grid"}
    model = reprl.GenerativeModel(world("random"), 5)
    policy = learner_of(**options)(model, reprl.SharedKey(6))
    assert policy == learn(world("random"), shared_seed=6, data_seed=5, **options).policy
    assert model.ledger.calls == 300


# Same bytes.

GOLDEN = [
    (
        "gridworld",
        {"coupling": "joint", "mechanism": "compact", "rounding": "none"},
        "ca19a787a3de671038f19fe7c5170a346081fb2cc10486afb27431f8fcc0863c",
        "7ed90bbf3c41cef6e0e2ee17b57bf3afd937228adee2c04dee5efc421336cf7b",
    ),
    (
        "gridworld",
        {"coupling": "product", "mechanism": "exponential", "rounding": "vector"},
        "431bd84c18e1c93007df92907e5b1f8f073f125316217fcf3345b0174c525b68",
        "7ed90bbf3c41cef6e0e2ee17b57bf3afd937228adee2c04dee5efc421336cf7b",
    ),
    (
        "random",
        {"coupling": "blocked", "block": 3, "mechanism": "compact", "rounding": "grid"},
        "f215b3002f6694c45e0f73e2fd5917c8eeac849b71dbcda441918a50ded9fffc",
        "a8c806dd235ad2ac819ee2f8eafe1d74524913302626d658e883dffa343b875e",
    ),
]
"""World, options, fingerprint, digest of the counts. A change here is a new stream version."""

FIXED: dict[str, Any] = {"epsilon": EPSILON, "constants": "paper", "calls": 5000, "shared_seed": 7, "data_seed": 11}


@pytest.mark.parametrize(("id", "options", "fingerprint", "digest"), GOLDEN)
def test_fixed_seeds_give_fixed_bytes(id: str, options: dict[str, Any], fingerprint: str, digest: str) -> None:
    result = learn(world(id), **FIXED, **options)
    assert (result.policy.fingerprint, result.counts.digest) == (fingerprint, digest)


_SCRIPT = """
import json, sys
import reprl
from tests.test_generative import FIXED, GOLDEN, learn, world
runs = [learn(world(id), **FIXED, **options) for id, options, _, _ in GOLDEN]
json.dump([[run.policy.fingerprint, run.counts.digest] for run in runs], sys.stdout)
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


@pytest.mark.parametrize(
    ("n_states", "n_actions", "coupling", "block"),
    [(40, 2, "joint", 40), (41, 2, "blocked", 40), (20, 4, "joint", 20), (21, 4, "blocked", 20), (9, 1, "joint", 40)],
)
def test_auto_is_settled_by_sizes_alone(n_states: int, n_actions: int, coupling: str, block: int) -> None:
    decision = generative().paper.decision(n_states, n_actions)
    assert (decision.coupling, decision.block) == (coupling, block)
    kept = generative(coupling="blocked", block=3).paper.decision(n_states, n_actions)
    assert (kept.coupling, kept.block) == ("blocked", 3)


def test_the_papers_calls_of_many_blocks_are_proven_too() -> None:
    mdp = reprl.make("random-mdp-v0", horizon=2, n_states=100, n_actions=2, support=2)
    result = learn(mdp, epsilon=1.0, constants="paper", coupling="blocked", block=1, shared_seed=1, data_seed=1)
    assert result.guarantee.status == "proven"


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
        ({"espilon": 0.3}, r"option must be one of epsilon, .*, baseline, agreement; got 'espilon' \(did you mean .*"),
        ({"access": "psychic"}, r"access must be one of .*generative.*; got 'psychic'"),
        ({"coupling": "tight"}, r"coupling must be one of auto, joint, blocked, product; got 'tight'"),
        ({"mechanism": "softmax"}, r"mechanism must be one of compact, exponential; got 'softmax'"),
        ({"rounding": "up"}, r"rounding must be one of none, vector, grid; got 'up'"),
        ({"constants": "magic"}, r"constants must be one of practical, paper, scaled, sharp; got 'magic'"),
        ({"block": 0}, r"block must be a whole number of at least 1, got 0"),
        ({"calls": 0}, r"calls must be a whole number from 1 to \d+, got 0"),
        ({"runs": 7}, r"runs must be left out unless access='episodic', got 7"),
        ({"access": "episodic", "calls": 7}, r"calls must be left out unless access='generative', got 7"),
        ({"access": "episodic", "runs": 0}, r"runs must be a whole number from 1 to \d+, got 0"),
        ({"calls": 1.5}, r"calls must be a whole number from 1 to \d+, got 1.5"),
        ({"calls": 10, "max_samples": 719}, r"max_samples must be at least 720 for these settings, got 719"),
        ({"max_samples": 71}, r"max_samples must be a whole number of at least 72, got 71"),
        ({"calls": 10, "max_samples": 0}, r"max_samples must be a whole number of at least 1, got 0"),
        ({"shared_seed": -1}, r"shared seed must be a whole number from 0 to \d+, got -1"),
        ({"data_seed": 0.5}, r"data seed must be a whole number from 0 to \d+, got 0.5"),
        ({"epsilon": 1e-6, "constants": "paper"}, r"these settings need .* parallel calls; at most 2\*\*62 .*"),
        (
            {"epsilon": 1e-200, "constants": "paper"},
            r"these settings need more parallel calls than a float can hold: relax epsilon=1e-200.*",
        ),
        ({"rho": 1e-300, "constants": "paper"}, r"these settings need more parallel calls than .*rho=1e-300.*"),
    ],
)
def test_bad_options_are_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(reprl.ReprlError, match=f"^{text}$"):
        learn(world("random"), **change)


def test_max_samples_allows_exactly_what_is_needed() -> None:
    assert learn(world("random"), calls=10, max_samples=720).samples == 720


@pytest.mark.parametrize("env", [None, 3, [[0.5]], reprl.SharedKey(1)])
def test_an_environment_of_the_wrong_type_is_refused(env: Any) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^env must be a TabularMDP, a GymnasiumModel, an id, or "):
        learn(env, calls=1)


def test_an_unknown_environment_is_quoted() -> None:
    with pytest.raises(reprl.ReprlError, match=r"^environment must be one of .*; got 'gridwrold-v0'"):
        learn("gridwrold-v0", calls=1)


def test_a_learner_needs_a_generative_model_and_a_key() -> None:
    learner = learner_of(calls=1)
    with pytest.raises(reprl.ReprlError, match=r"^model must be a reprl.GenerativeModel for access='generative', got "):
        learner(reprl.EpisodicModel(world("random"), 1), reprl.SharedKey(1))
    with pytest.raises(reprl.ReprlError, match=r"^shared key must be a reprl.SharedKey, got 1$"):
        learner(reprl.GenerativeModel(world("random"), 1), 1)  # type: ignore[arg-type]
    with pytest.raises(reprl.ReprlError, match=r"^option must be one of .*; got 'call' \(did you mean 'calls'\?\)$"):
        learner_of(call=1)  # type: ignore[call-arg]

"""Runs of the default rule end to end: golden runs, pairs, both promises, the same bytes for any workers, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.errors import InputError
from reprl.learning.baseline import exact_loss
from reprl.learning.settings import Settings
from tests.shop import Season, Shop
from tests.statistics import FALSE_ALARM, exceeds, keeps

GRID = {"size": 3, "horizon": 4}
GOLDEN = {
    ("gridworld-v0", "generative"): ("1a4ffd81d4d0", 73728),
    ("gridworld-v0", "episodic"): ("1a4ffd81d4d0", 73728),
    ("queue-admission-v0", "generative"): ("ac62925adc58", 786432),
}
"""Fingerprint and samples of default runs with shared seed 7 and data seed 1."""


def grid() -> reprl.TabularMDP:
    return reprl.make("gridworld-v0", **GRID)


def ties() -> reprl.TabularMDP:
    """Three states, four actions that all tie in value but not in noise."""
    transition = np.full((3, 4, 3), 1.0 / 3.0)
    reward = np.tile([0.5, 0.5, 0.5, 0.5], (3, 1))
    reward[2] = [0.1, 0.9, 0.9, 0.9]
    return reprl.TabularMDP(transition, reward, horizon=4)


@pytest.mark.parametrize(("id", "access"), list(GOLDEN))
def test_golden_runs(id: str, access: Any) -> None:
    world = grid() if id == "gridworld-v0" else reprl.make(id)
    result = reprl.learn(world, shared_seed=7, data_seed=1, access=access)
    assert (result.policy.short_fingerprint, result.samples) == GOLDEN[id, access]


@pytest.mark.parametrize("access", ["generative", "episodic"])
def test_pairs_print_one_good_policy(access: Any) -> None:
    """Pairs of runs under fresh shared seeds in a world of ties. A twin of greedy runs is the control."""
    world = ties()
    allowed = exact_loss(world, Settings(quality=0.9))
    best = float(world.initial @ world.solve().values[0])
    pairs, finds = (100, 0.35) if access == "generative" else (60, 0.45)
    differ = missed = promised = 0
    for seed in range(pairs):
        one, two = (
            reprl.learn(world, shared_seed=500 + seed, data_seed=data, access=access, max_samples=2**21)
            for data in (2 * seed, 2 * seed + 1)
        )
        if one.guarantee.decided and two.guarantee.decided:
            promised += 1
            differ += one.policy != two.policy
        missed += sum(
            run.guarantee.quality.status != "none" and best - world.evaluate(run.policy) > allowed + 1e-9
            for run in (one, two)
        )
    assert promised >= 0.95 * pairs
    assert keeps(differ, promised, 0.1, power=0.0, finds=finds)
    assert keeps(missed, 2 * pairs, 0.1, power=0.0, finds=finds)
    greedy = 0
    for seed in range(24):
        models = (reprl.GenerativeModel(world, data) for data in (2 * seed, 2 * seed + 1))
        tables = [model.pooled.sample(4096).mean_return(0, np.zeros(3)).argmax(axis=1) for model in models]
        greedy += not np.array_equal(*tables)
    assert exceeds(greedy, 24, 0.1) < FALSE_ALARM, "control"


@pytest.mark.parametrize("workers", [2, 5])
def test_the_same_bytes_for_any_number_of_threads(workers: int) -> None:
    how: dict[str, Any] = {"shared_seed": 3, "data_seed": 4, "access": "generative"}
    one, many = (reprl.learn(grid(), workers=n, **how) for n in (1, workers))
    assert one.receipt.digest == many.receipt.digest
    assert one.verdict is not None
    assert many.verdict is not None
    assert (one.verdict.apart == many.verdict.apart).all()
    assert one.counts == many.counts


def test_the_same_bytes_for_two_processes() -> None:
    how: dict[str, Any] = {"horizon": 4, "reward_range": Shop.REWARDS, "shared_seed": 1, "data_seed": 2}
    one, two = (reprl.learn(Shop, workers=n, max_samples=6000, **how) for n in (1, 2))
    assert one.receipt.digest == two.receipt.digest


def test_a_longer_run_in_the_same_checkpoint_is_the_run_that_never_stopped(tmp_path: Path) -> None:
    how: dict[str, Any] = {"horizon": 4, "reward_range": Shop.REWARDS, "shared_seed": 1}
    short = reprl.learn(Shop, data_seed=3, max_samples=2000, checkpoint=tmp_path / "run", **how)
    long = reprl.learn(Shop, max_samples=9000, checkpoint=tmp_path / "run", **how)
    whole = reprl.learn(Shop, data_seed=3, max_samples=9000, **how)
    assert long.receipt.digest == whole.receipt.digest != short.receipt.digest


def test_too_few_samples_promise_nothing_and_more_promise_quality_first() -> None:
    limits = (2_000, 300_000)
    few, more = (reprl.learn(grid(), shared_seed=9, data_seed=1, max_samples=limit) for limit in limits)
    assert few.samples <= limits[0]
    assert few.guarantee.same.status == "none"
    assert few.guarantee.quality.status == "none"
    assert few.guarantee.same.source
    assert more.guarantee.quality.status == "rehearsed"
    assert more.guarantee.quality.risk == 0.1
    assert more.guarantee.share == 0.9


def test_what_is_assumed_stands_in_the_promise_and_costs_less() -> None:
    world = reprl.make("gym:CliffWalking-v1", 20)
    how: dict[str, Any] = {"shared_seed": 1, "data_seed": 1, "access": "generative"}
    bare, assumed = reprl.learn(world, **how), reprl.learn(world, min_probability=0.02, **how)
    assert bare.guarantee.assumed == ""
    assert "min_probability=0.02" in assumed.guarantee.assumed
    assert assumed.samples < bare.samples
    assert assumed.guarantee.decided


def test_a_contradiction_takes_the_same_policy_only() -> None:
    """A black box is taken as stationary; its samples say that it is not. Quality is judged by step."""
    how: dict[str, Any] = {"horizon": 4, "reward_range": Shop.REWARDS, "shared_seed": 1, "data_seed": 1}
    found = reprl.learn(lambda: Season(2, 0.2, 0.8), max_samples=100_000, **how)
    assert found.drift
    assert found.guarantee.same.status == "none"
    assert "stationary=False" in found.guarantee.same.source
    stated = reprl.learn(lambda: Season(2, 0.2, 0.8), max_samples=100_000, stationary=False, **how)
    assert not stated.drift
    fine = reprl.learn(Shop, max_samples=20_000, **how)
    assert not fine.drift
    assert "stationary" in fine.guarantee.assumed


def test_a_discounted_table_prints_one_stationary_policy() -> None:
    world = reprl.make("queue-admission-v0", discount=0.9)
    one, two = (reprl.learn(world, shared_seed=1, data_seed=data, access="generative") for data in (1, 2))
    assert one.policy == two.policy
    assert one.policy.stationary


def test_choose_is_what_runs_arrive_at() -> None:
    world = grid()
    policy = reprl.choose(world, shared_seed=7)
    assert policy == reprl.learn(world, shared_seed=7, data_seed=1, access="generative").policy
    loss = float(world.initial @ world.solve().values[0]) - world.evaluate(policy)
    assert loss <= exact_loss(world, Settings(quality=0.9))
    with pytest.raises(InputError, match="mdp must be a TabularMDP"):
        reprl.choose("gridworld-v0")  # type: ignore[arg-type]


def test_ties_are_broken_in_the_order_of_preference() -> None:
    world = ties()
    for order in ([3, 2, 1, 0], [2, 0, 1, 3]):
        table = reprl.choose(world, preference=order).table
        assert (table[:, 0] == order[0]).all()
        assert (table[:-1, 2] == next(a for a in order if a != 0)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "canonical"}, "rule must be"),
        ({"agreement": 0.95}, "option must be one of"),
        ({"candidate": ("preferred", 3)}, "option must be one of"),
        ({"min_probability": 1.0}, "min_probability must lie in"),
        ({"quality": 0.9, "epsilon": 0.1}, "quality must be left out where epsilon is given"),
        ({"rule": "paper", "min_probability": 0.1}, "min_probability must be left out unless rule='soft'"),
    ],
)
def test_what_the_rule_has_no_use_for_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reprl.learn(grid(), **options)

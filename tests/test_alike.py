"""steps_alike: a run that pools the steps of a black box, because nobody says otherwise, looks if they are alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.cli.outcome import exit_code
from reprl.mdp.counts import tally
from reprl.mdp.homogeneity import LEVEL, steps_alike
from reprl.mdp.labels import Labels
from reprl.mdp.model import one_hot
from reprl.randomness import DataStream
from reprl.sources.episodes import EpisodicModel, play_table
from tests.shop import Season, Shop
from tests.statistics import FALSE_ALARM, exceeds, keeps
from tests.test_same_world import naive

OPTIONS: dict[str, Any] = {"horizon": 10, "reward_range": Shop.REWARDS, "shared_seed": 1}
STATED: tuple[dict[str, Any], ...] = ({"stationary": True}, {})


def random_rows(rng: np.random.Generator, shape: tuple[int, int, int], n: int) -> list[tuple[float, ...]]:
    columns = [rng.integers(0, size, n) for size in (*shape, shape[1])]
    rewards = rng.choice([0.0, 0.25, 0.2499, 0.99, 1.0], n)
    return [(*map(int, row[:4]), float(row[4])) for row in zip(*columns, rewards, strict=True)]


@pytest.mark.parametrize("horizon", [2, 3, 5, 8])
def test_the_evidence_is_the_mean_over_binary_digits(horizon: int) -> None:
    shape = (horizon, 3, 2)
    rows = random_rows(np.random.default_rng(horizon), shape, 60)
    owned = []
    for digit in range(math.ceil(math.log2(horizon))):
        sides = [[(0.0, *row[1:]) for row in rows if int(row[0]) >> digit & 1 == side] for side in (0, 1)]
        owned.append(math.exp(naive(sides[0], sides[1], (1, 3, 2))))
    assert steps_alike(tally(rows, shape)).log_evidence == pytest.approx(math.log(np.mean(owned)), abs=1e-9)


def test_one_step_or_no_sample_tells_nothing() -> None:
    one = tally(random_rows(np.random.default_rng(1), (1, 3, 2), 50), (1, 3, 2))
    for counts in (one, tally([], (4, 3, 2))):
        found = steps_alike(counts)
        assert not found.contradicted
        assert found.words(Labels()) == "nothing tells steps apart"


def wandering(mdp: reprl.TabularMDP, seed: int, most: int) -> float:
    """The largest evidence at any look of a run that goes where it has seen least, and looks again and again."""
    model, counts, largest = EpisodicModel(mdp, seed), tally([], (mdp.horizon, mdp.n_states, mdp.n_actions)), -math.inf
    for look in range(most):
        play = one_hot(counts.visits.argmin(axis=2), mdp.n_actions)
        one, two = play_table(model, play, 8, DataStream(seed, f"batch {look}"))
        counts += one.counts + two.counts
        largest = max(largest, steps_alike(counts).log_evidence)
    return largest


@pytest.mark.statistical
def test_steps_that_are_alike_are_hardly_ever_told_apart() -> None:
    """400 runs that choose where to go by what they saw, six looks each, at level 0.1: false alarm 1e-6."""
    level, runs = 0.1, 400
    world = reprl.make("random-mdp-v0", 4, n_states=3, n_actions=2)
    hits = sum(wandering(world, seed, 6) >= -math.log(level) for seed in range(runs))
    assert keeps(hits, runs, level, power=0.85)
    drifting = reprl.make("random-mdp-v0", 4, n_states=3, n_actions=2, stationary=False)
    hits = sum(wandering(drifting, seed, 24) >= -math.log(level) for seed in range(20))  # the control
    assert exceeds(hits, 20, level) < FALSE_ALARM


@pytest.mark.parametrize(
    ("quality", "status", "code"), [(0.8, "rehearsed", 0), (0.9, "rehearsed", 0), (0.999, "none", 1)]
)
def test_a_run_whose_steps_drift_promises_its_quality_at_most(quality: float, status: str, code: int) -> None:
    found = reprl.learn(Season, data_seed=2, max_samples=200_000, quality=quality, **OPTIONS)
    assert "% of the time at step" in found.drift
    assert found.drift.startswith("in state ")
    assert found.guarantee.same.status == found.guarantee.status == "none"
    assert found.guarantee.same.source.startswith(f"the samples contradict that all steps are alike ({found.drift})")
    assert found.guarantee.quality.status == status
    assert "alike" not in found.guarantee.assumed
    assert exit_code(found) == code


def test_a_black_box_of_which_nobody_says_anything_is_taken_to_be_stationary() -> None:
    told, found = (reprl.learn(Shop, data_seed=2, max_samples=20_000, **asked, **OPTIONS) for asked in STATED)
    assert found.settings.stationary is True
    assert found.receipt.digest == told.receipt.digest
    assert found.recipe.digest == told.recipe.digest
    assert found.drift == ""
    assert found.guarantee.assumed == "all steps are alike (stationary=True)"
    apart = reprl.learn(Shop, data_seed=2, max_samples=20_000, stationary=False, **OPTIONS)
    assert apart.guarantee.assumed == apart.drift == ""
    assert not apart.counts.outcomes.pooled


def test_a_contradiction_is_looked_for_only_where_somebody_stated_it() -> None:
    """A table shows its steps, and one whose steps differ is learned by step."""
    world = reprl.make("random-mdp-v0", 4, n_states=3, n_actions=2, stationary=False)
    found = reprl.learn(world, data_seed=2, max_samples=20_000)
    assert found.settings.stationary is False
    assert found.drift == ""


def test_the_level_is_that_of_the_page() -> None:
    assert LEVEL == 1e-3

"""steps_alike: a run that pools the steps of a black box, because the user says that they are alike, looks itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from reprl.sources.tallies import play

import reprl
from reprl.cli.outcome import exit_code
from reprl.learning.result import CanonicalDetails
from reprl.mdp.counts import tally
from reprl.mdp.homogeneity import LEVEL, steps_alike
from reprl.mdp.labels import Labels
from reprl.report.run import Run
from reprl.sources.episodes import EpisodicModel
from tests.shop import Shop
from tests.statistics import FALSE_ALARM, exceeds, keeps
from tests.test_same_world import naive

OPTIONS: dict[str, Any] = {"horizon": 10, "reward_range": Shop.REWARDS, "shared_seed": 1, "epsilon": 0.3}


class Season(Shop):
    """A shop to which more people come from the sixth day on."""

    def __init__(self) -> None:
        super().__init__()
        self.day = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        self.day = 0
        return super().reset(seed=seed, options=options)

    def customers(self) -> int:
        self.day += 1
        return int(self.np_random.binomial(3, 0.4 if self.day <= 5 else 0.6))


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
    for _ in range(most):
        table = counts.visits.argmin(axis=2)
        counts += play(model, table, 8).counts
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


def test_a_run_whose_steps_are_alike_is_as_it_was() -> None:
    found = reprl.learn(Shop, data_seed=2, stationary=True, **OPTIONS)
    assert found.guarantee.status == "rehearsed"


@pytest.mark.parametrize("seed", [2, 3])
def test_a_run_whose_steps_drift_stops_and_promises_nothing(seed: int) -> None:
    found = reprl.learn(Season, data_seed=seed, stationary=True, **OPTIONS)
    assert found.guarantee.status == "none"
    assert found.guarantee.source.startswith("the steps are not alike, though stationary=True says so: in state ")
    assert "% of the time at step" in found.guarantee.source
    assert found.samples < 10**6
    assert found.rehearsal is not None, "an answer, undecided, and no size that was set by hand"
    assert exit_code(found) == 1
    assert Run.of(found).ran_out == "its samples contradicted stationary dynamics"


def test_a_black_box_of_which_nobody_says_anything_is_taken_to_be_stationary() -> None:
    found = reprl.learn(Shop, data_seed=2, **OPTIONS)
    told = reprl.learn(Shop, data_seed=2, stationary=True, **OPTIONS)
    assert found.settings.stationary is None
    assert found.recipe.settings.stationary is None
    assert (found.policy, found.samples) == (told.policy, told.samples)
    assert found.guarantee.status == "rehearsed"
    assert isinstance(found.details, CanonicalDetails)
    assert found.details.apart == ""


@pytest.mark.long
def test_a_black_box_that_contradicts_it_is_learned_step_by_step() -> None:
    """It goes on with the samples that it has, their steps kept apart, and comes to a policy by step."""
    found = reprl.learn(Season, data_seed=2, max_samples=400_000, **OPTIONS)
    assert isinstance(found.details, CanonicalDetails)
    assert "% of the time at step" in found.details.apart
    assert found.settings.stationary is None
    assert not found.counts.outcomes.pooled
    assert found.samples <= 400_000
    assert not found.guarantee.source.startswith("the steps are not alike")
    assert reprl.learn(Season, data_seed=2, max_samples=400_000, **OPTIONS).policy == found.policy


def test_a_run_that_is_not_sure_and_keeps_steps_apart_says_that_they_look_alike() -> None:
    hint = "if you know that they do not, stationary=True (-o stationary=true) needs fewer"
    few = {**OPTIONS, "max_samples": 20_000, "data_seed": 2}
    unsure = reprl.learn(Shop, stationary=False, **few)
    assert unsure.guarantee.status == "none"
    assert unsure.guarantee.source.endswith(hint)
    assert hint not in reprl.learn(Shop, stationary=True, **{**few, "max_samples": 600}).guarantee.source
    assert hint not in reprl.learn(Season, stationary=False, **{**few, "max_samples": 100_000}).guarantee.source


def test_the_level_is_that_of_the_page() -> None:
    assert LEVEL == 1e-3

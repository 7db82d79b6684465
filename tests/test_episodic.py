"""The learner by episodes: agreement, accuracy, budgets, bytes. Statistical tests: false-alarm rate at most 1e-6."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

import reprl
from reprl.decide.forecast import forecast_disagreement
from reprl.decide.induction import Accuracy, tiered_induction
from reprl.learn import episodic
from reprl.learn.settings import Settings
from tests.statistics import FALSE_ALARM, exceeds

RHO = 0.1


@pytest.fixture(scope="module")
def lock() -> reprl.TabularMDP:
    return reprl.make("combination-lock-v0", n_states=4, n_actions=2, horizon=4)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few partition runs: enough to see that everything is wired, not enough for rho."""
    monkeypatch.setattr(episodic, "PARTITION_RUNS", 40)


def run(mdp: reprl.TabularMDP, shared: int, data: int, **options: object) -> reprl.LearnResult:
    return reprl.learn(mdp, access="episodic", shared_seed=shared, data_seed=data, **options)  # type: ignore[arg-type]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("id", "options"),
    [
        ("combination-lock-v0", {"n_states": 4, "n_actions": 2, "horizon": 4}),
        ("gridworld-v0", {"size": 2, "horizon": 3}),
    ],
)
def test_two_runs_agree_and_are_near_optimal(id: str, options: dict[str, int]) -> None:
    """Disagreement not above rho over 30 pairs, fresh keys; unshared keys on tied worlds are rejected."""
    mdp = reprl.make(id, **options)
    assert isinstance(mdp, reprl.TabularMDP)
    best = mdp.evaluate(mdp.solve().policy)
    pairs = [(run(mdp, i, 2 * i), run(mdp, i, 2 * i + 1)) for i in range(30)]
    different = sum(a.policy != b.policy for a, b in pairs)
    assert exceeds(different, len(pairs), RHO) > FALSE_ALARM
    assert max(best - mdp.evaluate(r.policy) for pair in pairs for r in pair) <= 0.3
    if id != "combination-lock-v0":
        unshared = sum(a.policy != b.policy for (a, _), (b, _) in pairwise(pairs))
        assert exceeds(unshared, len(pairs) - 1, RHO) < FALSE_ALARM


def test_the_same_seeds_give_the_same_bytes_for_any_number_of_workers(lock: reprl.TabularMDP, small: None) -> None:
    one, two = (run(lock, 5, 6, workers=workers) for workers in (1, 2))
    assert one.policy.fingerprint == two.policy.fingerprint
    assert one.counts.digest == two.counts.digest
    assert (one.samples, one.episodes) == (two.samples, two.episodes)
    assert one.explored is not None
    assert two.explored is not None
    assert np.array_equal(one.explored.fractional, two.explored.fractional)
    assert one.guarantee.status == "heuristic"


def test_the_ledger_counts_every_episode(lock: reprl.TabularMDP, small: None) -> None:
    result = run(lock, 1, 2)
    per_run = episodic.EPISODES_PER_CELL * lock.n_states * lock.n_actions * lock.horizon
    assert result.episodes % per_run == 0
    assert result.episodes >= 50 * per_run
    assert result.counts.hits.sum() == result.episodes - 40 * per_run  # one record per episode of the data runs
    assert result.episodes <= result.samples <= result.episodes * lock.horizon


def test_the_partition_covers_reachable_states_and_ignores_the_others(lock: reprl.TabularMDP) -> None:
    result = run(lock, 3, 4)
    assert lock.reachability(result.tiers.ignorable) <= 0.05
    assert result.tiers.level[0, 0] == 1
    assert result.tiers.ignorable[0, 1:].all()  # only the start state is there at the first step


def test_max_samples_is_never_passed(lock: reprl.TabularMDP, small: None) -> None:
    free = run(lock, 1, 2)
    with pytest.raises(reprl.ReprlError, match=r"^max_samples must be at least \d+ for these settings, got 1000$"):
        run(lock, 1, 2, max_samples=1000)
    generous = run(lock, 1, 2, max_samples=free.episodes * lock.horizon)
    assert generous.policy == free.policy


def test_max_samples_also_bounds_what_the_forecast_asks_for(small: None) -> None:
    mdp = reprl.make("random-mdp-v0", n_states=4, n_actions=3, horizon=3)
    stages = episodic.practical_stages(4, 3, 3)
    floor = sum(dataclasses.replace(stage, partition_runs=40).episodes() for stage in stages) * 4
    with pytest.raises(reprl.ReprlError, match=r"^max_samples must be at least"):
        run(mdp, 1, 2, rho=0.001, max_samples=floor)


def test_the_papers_constants_are_refused_with_their_number(lock: reprl.TabularMDP) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^the paper's constants ask for [\d.e+]+ episodes in tier 1 alone"):
        run(lock, 1, 2, constants="paper")


def test_models_must_fit_the_access(lock: reprl.TabularMDP) -> None:
    learner = reprl.learner(access="episodic")
    with pytest.raises(reprl.ReprlError, match=r"^model must be a reprl\.EpisodicModel for access='episodic', got "):
        learner(reprl.GenerativeModel(lock, 1), reprl.SharedKey(1))


def test_the_forecast_falls_as_data_grow_and_reads_no_shared_draw() -> None:
    mdp = reprl.make("gridworld-v0", size=3, horizon=4)
    counts = reprl.GenerativeModel(mdp, 3).sample(2000)
    tiers = reprl.Tiers.single(4, 9)
    accuracy = Accuracy.practical(0.3, 4, 1)
    decision = Settings().decision(9, 4)
    found = tiered_induction(reprl.SharedKey(1), counts, tiers, accuracy=accuracy, delta=0.1, decision=decision)
    values = [
        forecast_disagreement(
            counts, tiers, found, accuracy=accuracy, decision=decision, delta=0.1, growth=growth, data_seed=9
        )
        for growth in (1.0, 4.0, 100.0)
    ]
    assert values[0] > values[1] > values[2] > 0.0
    assert values[2] < 0.2 * values[0]


@pytest.mark.statistical
def test_the_forecast_is_the_size_of_the_measured_disagreement() -> None:
    """Measured over forecast lies between 0.1 and 1 (it sums upper bounds); 3 standard errors of slack each way."""
    mdp = reprl.make("gridworld-v0", size=3, horizon=4)
    tiers = reprl.Tiers.single(4, 9)
    accuracy = Accuracy.practical(0.3, 4, 1)
    decision = Settings().decision(9, 4)
    pairs, different, forecast = 150, 0, 0.0
    for i in range(pairs):
        data = [reprl.GenerativeModel(mdp, 2 * i + half).sample(1500) for half in range(2)]
        found = [
            tiered_induction(reprl.SharedKey(i), counts, tiers, accuracy=accuracy, delta=0.1, decision=decision)
            for counts in data
        ]
        different += found[0].policy != found[1].policy
        if i < 10:
            forecast += 0.1 * forecast_disagreement(
                data[0], tiers, found[0], accuracy=accuracy, decision=decision, delta=0.1, growth=1.0, data_seed=i
            )
    slack = 5.0 * np.sqrt(0.25 / pairs)
    assert 0.1 * forecast - slack <= different / pairs <= forecast + slack
    assert different > 0

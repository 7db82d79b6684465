"""The learner by episodes: agreement, accuracy, budgets, bytes. Statistical tests: false-alarm rate at most 1e-6."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.decide.forecast import forecast_disagreement
from reprl.decide.induction import Accuracy, tiered_induction
from reprl.decide.window import GRID, ignored_starts, shared_stretch
from reprl.explore.qexplore import explore
from reprl.learning import episodic
from reprl.learning.settings import Settings
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


Pair = tuple[reprl.LearnResult, reprl.LearnResult]
WORLDS: dict[str, dict[str, int]] = {
    "combination-lock-v0": {"n_states": 4, "n_actions": 2, "horizon": 4},
    "gridworld-v0": {"size": 2, "horizon": 3},
}


def world(id: str) -> reprl.TabularMDP:
    mdp = reprl.make(id, **WORLDS[id])
    assert isinstance(mdp, reprl.TabularMDP)
    return mdp


@cache
def pairs_of(id: str) -> list[Pair]:
    """30 pairs, each with a fresh shared seed; the lock, whose steps are certain, needs few runs."""
    mdp, runs = world(id), 200 if id == "gridworld-v0" else 40
    return [(run(mdp, i, 2 * i, runs=runs), run(mdp, i, 2 * i + 1, runs=runs)) for i in range(30)]


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("id", WORLDS)
def test_two_runs_agree_and_are_near_optimal(id: str) -> None:
    """Disagreement not above rho over 30 pairs, fresh keys; unshared keys are rejected."""
    mdp, pairs = world(id), pairs_of(id)
    best = mdp.evaluate(mdp.solve().policy)
    different = sum(a.policy != b.policy for a, b in pairs)
    assert exceeds(different, len(pairs), RHO) > FALSE_ALARM
    assert max(best - mdp.evaluate(r.policy) for pair in pairs for r in pair) <= 0.3
    unshared = sum(a.policy != b.policy for (a, _), (b, _) in pairwise(pairs))
    assert exceeds(unshared, len(pairs) - 1, RHO) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("id", WORLDS)
def test_two_runs_stretch_their_windows_alike(id: str) -> None:
    """Stretches do not differ in more than a tenth of 30 pairs, false alarm 1e-6; unshared keys part in about half."""
    pairs = pairs_of(id)
    for result in (result for pair in pairs for result in pair):
        steps = math.log(result.stretch) / GRID
        assert result.stretch >= 1.0
        assert steps == pytest.approx(round(steps), abs=1e-9)
    assert min(result.stretch for pair in pairs for result in pair) > 4.0, "these worlds allow wide windows"
    parted = sum(a.stretch != b.stretch for a, b in pairs)
    assert exceeds(parted, len(pairs), 0.1) > FALSE_ALARM
    if id == "gridworld-v0":  # the lock's widest stretch may lie on the grid, where every key rounds it alike
        unshared = sum(a.stretch != b.stretch for (a, _), (b, _) in pairwise(pairs))
        assert exceeds(unshared, len(pairs) - 1, 0.1) < FALSE_ALARM


# The stretch.


@pytest.mark.parametrize("runs", [20, None])
def test_the_stretch_is_settled_on_the_data_that_it_is_used_on(
    runs: int | None, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And on the partition runs for the forecast, where there is one: same address, same tiers, other data."""
    mdp = world("gridworld-v0")
    calls: list[tuple[reprl.Counts, dict[str, Any], float]] = []

    def spy(key: reprl.SharedKey, counts: reprl.Counts, tiers: reprl.Tiers, **options: Any) -> float:
        assert key == reprl.SharedKey(5).derive("window")
        found = shared_stretch(key, counts, tiers, **options)
        calls.append((counts, options, found))
        return found

    monkeypatch.setattr(episodic, "shared_stretch", spy)
    result = run(mdp, 5, 6, runs=runs, rho=0.005)
    stage = episodic.practical_stages(mdp.n_states, mdp.n_actions, mdp.horizon)[0]
    made = 40 if runs is None else runs
    first = explore(reprl.EpisodicModel(mdp, 6), stage.run, made, quotas=stage.rungs, purpose="0/partition")
    counts, options, found = calls[-1]
    assert counts == result.counts
    assert result.stretch == found > 1.0
    assert [each[0] == first.counts for each in calls] == ([True, False] if runs is None else [True])
    settings = result.settings
    narrow = settings.accuracy(result.tiers)
    assert (options["accuracy"], options["epsilon"]) == (narrow, settings.epsilon)
    assert 0.0 < options["delta"] <= settings.delta
    again = tiered_induction(
        reprl.SharedKey(5).derive("decide"),
        result.counts,
        result.tiers,
        accuracy=narrow.stretched(found),
        delta=settings.failure,
        decision=settings.decision(mdp.n_states, mdp.n_actions),
    )
    assert again.policy == result.policy
    np.testing.assert_array_equal(again.laws, result.induction.laws)


@pytest.mark.parametrize("rounding", ["vector", "grid"])
def test_windows_are_not_stretched_when_values_are_rounded(lock: reprl.TabularMDP, rounding: str) -> None:
    """Values are rounded as coarsely as windows are wide: wide ones would blur them."""
    assert run(lock, 5, 6, runs=20, rounding=rounding).stretch == 1.0
    assert run(lock, 5, 6, runs=20).stretch > 1.0


def test_parallel_sampling_does_not_stretch(lock: reprl.TabularMDP) -> None:
    assert reprl.learn(lock, access="generative", calls=50, shared_seed=1, data_seed=2).stretch == 1.0


def test_a_stretch_moves_no_other_shared_draw(lock: reprl.TabularMDP, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which addresses a run reads does not depend on its stretch; the stretch itself has its own."""
    read: list[tuple[str | int, ...]] = []
    words = reprl.SharedKey.words.fget  # type: ignore[attr-defined]

    def listen(key: reprl.SharedKey) -> Any:
        read.append(key.labels)
        return words(key)

    monkeypatch.setattr(reprl.SharedKey, "words", property(listen))

    def addresses(**options: Any) -> tuple[reprl.LearnResult, list[tuple[str | int, ...]]]:
        read.clear()
        return run(lock, 5, 6, **options), list(read)

    monkeypatch.setattr(episodic, "PARTITION_RUNS", 40)
    for options in ({"runs": 20}, {}):
        measured, own = addresses(**options)
        assert measured.stretch > 1.0
        assert own.count(("window",)) == (1 if options else 2)  # the forecast asks too
        own = [place for place in own if place != ("window",)]
        assert {place[0] for place in own} == {"explore", "decide"} | (set() if options else {"enough", "pilot"})
        for stretch in (1.0, 30.0):
            with monkeypatch.context() as fixed:
                fixed.setattr(episodic, "shared_stretch", lambda *_, _stretch=stretch, **__: _stretch)
                result, other = addresses(**options)
            assert result.stretch == stretch
            assert other == own
            np.testing.assert_array_equal(result.tiers.level, measured.tiers.level)


def test_arms_that_tie_are_drawn_alike_at_every_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    transition = np.full((3, 4, 3, 4), 0.25)
    flat = reprl.TabularMDP(transition, np.full((3, 4, 3), 0.5))
    policies = []
    for stretch in (1.0, 2.25, 30.0):
        monkeypatch.setattr(episodic, "shared_stretch", lambda *_, _stretch=stretch, **__: _stretch)
        policies.append([run(flat, shared, 6, runs=20).policy for shared in range(4)])
    assert policies[0] == policies[1] == policies[2]
    assert len({policy.fingerprint for policy in policies[0]}) == 4


# Runs, ledgers and budgets.


def test_the_number_of_runs_may_be_set(lock: reprl.TabularMDP) -> None:
    per_run = episodic.EPISODES_PER_CELL * lock.n_states * lock.n_actions * lock.horizon
    for runs in (17, 30):
        result = run(lock, 1, 2, runs=runs)
        assert result.settings.runs == runs
        assert result.episodes == runs * per_run == result.counts.hits.sum()
        assert result.explored is not None
        shares = result.explored.fractional * runs * len(episodic.QUOTAS[0])
        np.testing.assert_allclose(shares, np.round(shares), atol=1e-9)
        assert result.explored.first_value.size == runs
    few = run(lock, 1, 2, runs=17, rho=0.001)
    assert few.episodes == 17 * per_run, "whatever the forecast says"
    assert few.guarantee.source == "neither proven nor calibrated for this number of runs"
    for bad in (0, 2.5):
        with pytest.raises(reprl.ReprlError, match=r"^runs must be a whole number from 1 to"):
            run(lock, 1, 2, runs=bad)


def test_exploration_goes_on_until_its_own_data_bound_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """A far bank that short runs miss: runs get four times as long if the accuracy needs it, and only then."""
    monkeypatch.setattr(episodic, "PARTITION_RUNS", 40)
    river = reprl.make("river-swim-v0", n_states=6, horizon=8)
    best = river.evaluate(river.solve().policy)
    per_run = episodic.EPISODES_PER_CELL * river.n_states * river.n_actions * river.horizon
    easy, hard = run(river, 4, 2, epsilon=0.3), run(river, 4, 2, epsilon=0.02)
    assert easy.episodes == 40 * per_run
    assert hard.episodes >= 40 * (1 + 4) * per_run
    assert best - river.evaluate(easy.policy) > 0.02 >= best - river.evaluate(hard.policy)
    assert hard.guarantee.epsilon == 0.02
    monkeypatch.setattr(episodic, "ATTEMPTS", 1)
    missed = run(river, 4, 2, epsilon=0.02)
    assert missed.guarantee.source == "exploration missed epsilon=0.02; its own data bound the loss"
    assert missed.guarantee.epsilon >= best - river.evaluate(missed.policy) > 0.02
    monkeypatch.setattr(episodic, "ATTEMPTS", 4)
    with pytest.raises(reprl.ReprlError, match=r"^max_samples must be at least \d+ for these settings, got"):
        run(river, 4, 2, epsilon=0.02, max_samples=2 * 40 * per_run * river.horizon)


def test_starts_that_are_ignored_count_in_the_loss() -> None:
    """39 of 40 start states are rare, and together a fifth of all starts: short runs ignore many of them."""
    initial = np.full(40, 0.2 / 39)
    initial[0] = 0.8
    transition = np.zeros((40, 2, 40))
    transition[:, :, 0] = 1.0
    mdp = reprl.TabularMDP(transition, np.tile([0.0, 1.0], (40, 1)), initial, horizon=1)
    loose, strict = run(mdp, 1, 2, epsilon=0.3), run(mdp, 1, 2, epsilon=0.02)
    assert loose.level == 0
    assert loose.explored is not None
    shares = loose.explored.starts / loose.explored.starts.sum()
    np.testing.assert_allclose(shares, initial, atol=0.01)
    missed = initial[loose.tiers.ignorable[0]].sum()
    assert missed > 0.02
    assert ignored_starts(loose.counts, loose.tiers, loose.explored.starts) == pytest.approx(missed, abs=0.01)
    assert strict.level >= 1
    assert 1.0 - mdp.evaluate(strict.policy) <= 0.02


@pytest.mark.parametrize("share", [0.72, 0.99])
def test_a_promise_is_never_below_what_was_asked_for(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss that the drawn limit refuses although it is below epsilon."""
    monkeypatch.setattr(episodic, "PARTITION_RUNS", 40)
    monkeypatch.setattr(episodic, "ATTEMPTS", 1)
    monkeypatch.setattr(episodic, "is_accurate", lambda *_: False)
    monkeypatch.setattr(episodic, "loss_bound", lambda *_, **__: 0.3 * share)
    result = run(reprl.make("gridworld-v0", size=2, horizon=3), 1, 2, epsilon=0.3)
    assert (result.guarantee.epsilon, result.guarantee.source) == (0.3, "docs/calibration.md")


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
    assert result.episodes >= 40 * per_run
    assert result.counts.hits.sum() == result.episodes  # one record per episode
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
    allowed = r"a reprl\.EpisodicModel or a reprl\.GymnasiumModel"
    with pytest.raises(reprl.ReprlError, match=f"^model must be {allowed} for access='episodic', got "):
        learner(reprl.GenerativeModel(lock, 1), reprl.SharedKey(1))


def test_the_forecast_falls_as_data_grow_and_reads_no_shared_draw() -> None:
    mdp = reprl.make("gridworld-v0", size=3, horizon=4)
    counts = reprl.GenerativeModel(mdp, 3).sample(2000)
    tiers = reprl.Tiers.single(4, 9)
    accuracy = Accuracy.practical(0.3, 4, 1)
    decision = Settings().decision(9, 4)
    found = tiered_induction(reprl.SharedKey(1), counts, tiers, accuracy=accuracy, delta=0.1, decision=decision)
    values = []
    for growth in (1, 4, 100):  # the same shares of so many times as many data
        more = reprl.Counts(counts.outcomes, growth * counts.hits)
        values.append(
            forecast_disagreement(more, tiers, found, accuracy=accuracy, decision=decision, delta=0.1, data_seed=9)
        )
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
                data[0], tiers, found[0], accuracy=accuracy, decision=decision, delta=0.1, data_seed=i
            )
    slack = 5.0 * np.sqrt(0.25 / pairs)
    assert 0.1 * forecast - slack <= different / pairs <= forecast + slack
    assert different > 0

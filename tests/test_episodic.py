"""The learner by episodes: agreement, accuracy, budgets, bytes. Statistical tests: false-alarm rate at most 1e-6."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import reprl
from reprl.learning import practical_episodic as episodic
from reprl.learning.learner import learner as bound_learner
from reprl.learning.loss import ignoring_cost
from reprl.learning.practical import decide
from reprl.mdp.dynamics import Data
from reprl.paper.q_explore import explore
from reprl.paper.runs import Exploration, RunSettings, join, resample_missed
from tests.statistics import FALSE_ALARM, exceeds, keeps

RHO = 0.1


@pytest.fixture(scope="module")
def lock() -> reprl.TabularMDP:
    return reprl.make("combination-lock-v0", n_states=4, n_actions=2, horizon=4)


def run(mdp: reprl.TabularMDP, shared: int, data: int, **options: object) -> reprl.LearnResult:
    return reprl.learn(mdp, rule="sampled", shared_seed=shared, data_seed=data, **options)  # type: ignore[arg-type]


def per_run(mdp: reprl.TabularMDP, level: int = 0) -> int:
    """Episodes of an exploration run."""
    return episodic.practical_run(mdp.n_states, mdp.n_actions, mdp.horizon, level).episodes


Pair = tuple[reprl.LearnResult, reprl.LearnResult]
WORLDS: dict[str, dict[str, int]] = {
    "combination-lock-v0": {"n_states": 4, "n_actions": 2, "horizon": 4},
    "gridworld-v0": {"size": 2, "horizon": 2},
}


def world(id: str) -> reprl.TabularMDP:
    mdp = reprl.make(id, **WORLDS[id])
    assert isinstance(mdp, reprl.TabularMDP)
    return mdp


@cache
def pairs_of(id: str) -> list[Pair]:
    """60 pairs, each with a fresh shared seed, at the sizes that the runs choose themselves."""
    return [(run(world(id), i, 2 * i), run(world(id), i, 2 * i + 1)) for i in range(60)]


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("id", WORLDS)
def test_two_runs_agree_and_are_near_optimal(id: str) -> None:
    """Disagreement not above rho over 60 pairs, power 0.9 at 0.42; unshared keys are rejected."""
    mdp, pairs = world(id), pairs_of(id)
    best = mdp.evaluate(mdp.solve().policy)
    different = sum(a.policy != b.policy for a, b in pairs)
    assert keeps(different, len(pairs), RHO, power=0.01, finds=0.41)
    assert max(best - mdp.evaluate(r.policy) for pair in pairs for r in pair) <= 0.3
    assert all(r.guarantee.status == "rehearsed" for pair in pairs for r in pair)
    unshared = sum(a.policy != b.policy for (a, _), (b, _) in pairwise(pairs))
    assert exceeds(unshared, len(pairs) - 1, RHO) < FALSE_ALARM


# Rounds, lengths and the rehearsal.


def test_a_run_doubles_its_runs_until_the_rehearsal_passes(lock: reprl.TabularMDP) -> None:
    result = run(lock, 1, 2)
    assert result.explored is not None
    assert result.explored.length == 0
    runs = result.episodes // per_run(lock)
    assert result.episodes == runs * per_run(lock)
    assert runs // episodic.FIRST_RUNS in (1, 2, 4, 8, 16)
    assert result.explored.first_value.size == runs
    assert result.rehearsal is not None
    assert result.rehearsal.passed
    assert result.guarantee == result.settings.asked.promise("rehearsed", f"{result.rehearsal} (docs/rehearsal.md)")
    again = decide(reprl.SharedKey(1), result.counts, result.tiers, result.settings)
    assert again.policy == result.policy
    assert result.induction is not None
    np.testing.assert_array_equal(again.laws, result.induction.laws)


def test_runs_get_longer_until_what_they_ignore_costs_little() -> None:
    """A far bank that short runs miss: four times as long if the accuracy needs it, and only then."""
    river = reprl.make("river-swim-v0", n_states=6, horizon=8)
    best = river.evaluate(river.solve().policy)
    easy = run(river, 4, 2, epsilon=1.0, rho=0.3)
    hard = run(river, 4, 2, epsilon=0.02, rho=0.3, max_samples=2**26)
    assert easy.explored is not None
    assert hard.explored is not None
    assert easy.explored.length == 0
    assert hard.explored.length >= 1
    assert hard.episodes >= episodic.FIRST_RUNS * (per_run(river) + per_run(river, 1))
    assert best - river.evaluate(hard.policy) <= 0.02
    for result, epsilon in ((easy, 1.0), (hard, 0.02)):
        assert result.explored is not None
        data = Data(result.counts, result.explored.starts)
        assert ignoring_cost(data, result.tiers) <= episodic.IGNORED[1] * epsilon


def test_starts_that_are_ignored_count_in_the_cost() -> None:
    """39 of 40 start states are rare, and together a fifth of all starts: short runs ignore many of them."""
    initial = np.full(40, 0.2 / 39)
    initial[0] = 0.8
    transition = np.zeros((40, 2, 40))
    transition[:, :, 0] = 1.0
    mdp = reprl.TabularMDP(transition, np.tile([0.0, 1.0], (40, 1)), initial, horizon=1)
    loose, strict = run(mdp, 1, 2, runs=32), run(mdp, 1, 2, epsilon=0.02, max_samples=2**24)
    assert loose.explored is not None
    shares = loose.explored.starts / loose.explored.starts.sum()
    np.testing.assert_allclose(shares, initial, atol=0.02)
    missed = initial[loose.tiers.ignorable[0]].sum()
    assert missed > 0.02
    assert ignoring_cost(Data(loose.counts, loose.explored.starts), loose.tiers) == pytest.approx(missed, abs=0.02)
    assert strict.explored is not None
    assert strict.explored.length >= 1
    assert 1.0 - mdp.evaluate(strict.policy) <= 0.02


def test_a_partition_that_is_not_settled_yet_parts_the_second_teams() -> None:
    """Rewards and transitions are certain here; only the partition, drawn from the runs, can move."""
    transition = np.zeros((12, 2, 12))
    transition[0, :, 1] = 0.98
    transition[0, :, 2:] = 0.002
    transition[1:, :, 0] = 1.0
    mdp = reprl.TabularMDP(transition, np.tile([0.5, 1.0], (12, 1)), horizon=2)
    unit = per_run(mdp) * mdp.horizon
    few = run(mdp, 3, 4, rho=0.02, max_samples=8 * unit)
    assert few.rehearsal is not None
    assert not few.rehearsal.passed
    assert {s for h, s in few.undecided} <= set(range(2, 12))
    assert {h for h, s in few.undecided} == {1}


def test_every_run_is_kept_apart_and_can_be_drawn_again() -> None:
    mdp = reprl.make("random-mdp-v0", n_states=4, n_actions=3, horizon=3)

    def batch(seed: int, runs: int) -> Exploration:
        model, settings = reprl.EpisodicModel(mdp, seed), RunSettings(episodes=300, bonus=0.1, guide=0.01)
        return explore(model, settings, runs, quotas=episodic.QUOTAS, purpose="test")

    one, two = batch(1, 30), batch(2, 20)
    np.testing.assert_array_equal(one.missed.sum(axis=0), one.short.sum(axis=0))
    both = join(one, two)
    assert (both.runs, both.first_value.size) == (50, 50)
    np.testing.assert_array_equal(both.missed.sum(axis=0), both.short.sum(axis=0))
    np.testing.assert_array_equal(both.short, one.short + two.short)
    assert both.counts == one.counts + two.counts
    mean = both.missed.mean(axis=0)
    drawn = np.array([resample_missed(both, 2, key, 7) for key in range(400)])
    assert np.array_equal(drawn[3], resample_missed(both, 2, 3, 7))
    assert not np.array_equal(resample_missed(both, 2, 3, 8), drawn[3])
    counts = drawn * 25
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    error = both.missed.std(axis=0) / np.sqrt(25)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=1e-12 + 6.0 * error.max() / np.sqrt(400))
    np.testing.assert_allclose(drawn.std(axis=0), error, rtol=0.25, atol=0.02)
    assert error.max() > 0.1


def test_which_addresses_are_read_does_not_depend_on_data(
    lock: reprl.TabularMDP, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: set[tuple[str | int, ...]] = set()
    words = reprl.SharedKey.words.fget  # type: ignore[attr-defined]

    def listen(key: reprl.SharedKey) -> object:
        if key.seed == 5:
            read.add(key.labels)
        return words(key)

    monkeypatch.setattr(reprl.SharedKey, "words", property(listen))
    found = []
    for data in (6, 7):
        read.clear()
        run(lock, 5, data)
        found.append(set(read))
    assert found[0] == found[1]
    assert {place[0] for place in found[0]} == {"explore", "enough", "decide"}


# Runs, ledgers and budgets.


def test_the_number_of_runs_may_be_set(lock: reprl.TabularMDP) -> None:
    for runs in (17, 30):
        result = run(lock, 1, 2, runs=runs)
        assert result.settings.runs == runs
        assert result.episodes == runs * per_run(lock) == result.counts.hits.sum()
        assert result.explored is not None
        shares = result.explored.fractional * runs * len(episodic.QUOTAS)
        np.testing.assert_allclose(shares, np.round(shares), atol=1e-9)
        assert result.explored.first_value.size == runs
    assert result.rehearsal is None
    assert result.guarantee.status == "none"
    assert result.guarantee.source == "the number of exploration runs was set by hand and nobody rehearsed it"
    for bad in (0, 2.5):
        with pytest.raises(reprl.ReprlError, match=r"^runs must be a whole number from 1 to"):
            run(lock, 1, 2, runs=bad)
    with pytest.raises(reprl.ReprlError, match=r"^max_samples must be at least \d+ for these settings, got 1000$"):
        run(lock, 1, 2, runs=17, max_samples=1000)


def test_the_same_seeds_give_the_same_bytes_for_any_number_of_workers(lock: reprl.TabularMDP) -> None:
    one, two = (run(lock, 5, 6, workers=workers) for workers in (1, 2))
    assert one.policy.fingerprint == two.policy.fingerprint
    assert one.counts.digest == two.counts.digest
    assert (one.samples, one.episodes, str(one.rehearsal)) == (two.samples, two.episodes, str(two.rehearsal))
    assert one.explored is not None
    assert two.explored is not None
    assert np.array_equal(one.explored.fractional, two.explored.fractional)


def test_the_ledger_counts_every_episode(lock: reprl.TabularMDP) -> None:
    result = run(lock, 1, 2)
    assert result.counts.hits.sum() == result.episodes  # one record per episode
    assert result.episodes <= result.samples <= result.episodes * lock.horizon


def test_the_partition_covers_reachable_states_and_ignores_the_others(lock: reprl.TabularMDP) -> None:
    result = run(lock, 3, 4)
    assert lock.reachability(result.tiers.ignorable) <= 0.05
    assert result.tiers.level[0, 0] == 1
    assert result.tiers.ignorable[0, 1:].all()  # only the start state is there at the first step


def test_max_samples_is_never_passed_and_then_nothing_is_promised() -> None:
    mdp = reprl.make("random-mdp-v0", n_states=4, n_actions=3, horizon=3)
    unit = per_run(mdp) * mdp.horizon
    result = run(mdp, 1, 2, rho=0.01, max_samples=40 * unit)
    assert 0 < result.samples <= 40 * unit
    assert result.guarantee.status == "none"
    assert result.guarantee.source.startswith("the samples ran out before the run was decided: ")
    with pytest.raises(reprl.ReprlError, match=rf"^max_samples must be a whole number of at least {unit}, got 1000$"):
        run(mdp, 1, 2, max_samples=1000)


def test_a_limit_that_is_not_reached_changes_nothing(lock: reprl.TabularMDP) -> None:
    free = run(lock, 1, 2)
    generous = run(lock, 1, 2, max_samples=10 * free.episodes * lock.horizon)
    assert (generous.policy, generous.counts) == (free.policy, free.counts)


def test_the_papers_constants_are_refused_with_their_number(lock: reprl.TabularMDP) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^the paper's constants ask for [\d.e+]+ episodes in tier 1 alone"):
        run(lock, 1, 2, constants="paper")


def test_models_must_fit_the_access(lock: reprl.TabularMDP) -> None:
    learner = bound_learner(access="episodic", rule="sampled")
    allowed = r"a reprl\.EpisodicModel or a reprl\.GymnasiumModel"
    with pytest.raises(reprl.ReprlError, match=f"^model must be {allowed} for access='episodic', got "):
        learner(reprl.GenerativeModel(lock, 1), reprl.SharedKey(1))

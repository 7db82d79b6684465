"""RepExplore: the partition, its law B(μ̂), its addresses, and how often two runs disagree where it is hard."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import reprl
from reprl.coupling.correlated import disagreement_bound
from reprl.coupling.spec import COUPLINGS
from reprl.errors import ReprlError
from reprl.execution.settings import Execution
from reprl.mdp.counts import Counts
from reprl.mdp.tabular import TabularMDP
from reprl.mdp.tiers import Tiers
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import Stage, draw_ignored
from reprl.paper.rep_level_explore import Explored, collect_data, find_partition, stack_tiers
from reprl.paper.runs import RunSettings
from reprl.randomness import SharedKey
from reprl.sources.episodes import EpisodicModel
from tests.statistics import FALSE_ALARM, exceeds, keeps

RUNS = RunSettings(episodes=300, bonus=0.1, guide=0.01)


def stage(**options: Any) -> Stage:
    return Stage(**{"run": RUNS, "partition_runs": 6, "data_runs": 4, "quota": 2, **options})


@cache
def world() -> TabularMDP:
    return reprl.make("random-mdp-v0", horizon=4, n_states=8, n_actions=3, support=3)


def model(seed: int = 1) -> EpisodicModel:
    return EpisodicModel(world(), seed)


def rep_explore(key: SharedKey, one: EpisodicModel, stages: tuple[Stage, ...], **options: Any) -> Explored:
    """Both steps, one after the other."""
    coupling = options.pop("coupling", "joint")
    found = find_partition(key, one, stages, coupling=coupling, execution=Execution(**options))
    return collect_data(found, one, stages, execution=Execution(**options))


# Wiring.


@pytest.mark.parametrize("episodes", [150, 300, 600])
def test_states_that_are_seldom_ignored_have_many_records(episodes: int) -> None:
    """Lemma 5.12 without logarithms (docs/proofs/whole.md §3): min_a n ≥ quota·N·(1 − μ̂), whatever happens."""
    quota, runs = 3, 12
    found = explore(model(), replace(RUNS, episodes=episodes), runs, quota=quota, purpose="x")
    mu = found.short / runs
    fewest = found.counts.visits.min(axis=2)
    assert (fewest >= quota * runs * (1.0 - mu) - 1e-9).all()
    assert (mu < 1.0).mean() > 0.0
    assert (fewest < 2 * quota * runs * (1.0 - mu)).any()  # the control: twice as many are not sure


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_parts_of_the_result_are_those_of_its_batches(coupling: str) -> None:
    stages = (stage(), stage(partition_runs=5, quota=1))
    one, key = model(), SharedKey(3)
    told: list[tuple[str, int, int]] = []
    found = rep_explore(key, one, stages, coupling=coupling, workers=2, progress=lambda *news: told.append(news))
    fresh = model()
    batches = [
        explore(fresh, RUNS, runs, quota=quota, purpose=purpose)
        for runs, quota, purpose in [(6, 2, "0/partition"), (5, 1, "1/partition"), (4, 2, "0/data"), (4, 1, "1/data")]
    ]
    assert found.counts == Counts.merge([batch.counts for batch in batches])
    np.testing.assert_array_equal(found.fractional[0], batches[0].short / 6)
    np.testing.assert_array_equal(found.fractional[1], batches[1].short / 5)
    np.testing.assert_array_equal(found.first_value, np.concatenate([batches[0].first_value, batches[1].first_value]))
    for t in range(2):
        again = draw_ignored(key.derive("ignore", t + 1), found.fractional[t], coupling)
        np.testing.assert_array_equal(found.ignored[t], again)
    np.testing.assert_array_equal(found.tiers.level, stack_tiers(found.ignored).level)
    assert found.tiers.count == 3
    assert one.ledger == fresh.ledger
    assert one.ledger.episodes == 19 * 300
    phases = [f"stage {n} of 2: {phase}" for phase in ("partition", "data") for n in (1, 2)]
    assert list(dict.fromkeys(phase for phase, _, _ in told)) == phases
    ends = {phase: (done, total) for phase, done, total in told}
    assert [ends[phase] for phase in phases] == [(runs * 300, runs * 300) for runs in (6, 5, 4, 4)]


def test_workers_change_nothing() -> None:
    def encode(found: Explored) -> tuple[bytes, ...]:
        arrays = (found.tiers.level, found.fractional, found.ignored, found.first_value)
        return found.counts.to_bytes(), *(array.tobytes() for array in arrays)

    ends = [encode(rep_explore(SharedKey(3), model(), (stage(),), workers=workers)) for workers in (1, 2, 3)]
    assert ends[0] == ends[1] == ends[2]


def test_the_number_of_data_runs_may_be_chosen_late() -> None:
    """By what the partition runs saw, all of which is returned; the choice moves no part of it but the counts."""
    stages = (stage(), stage(quota=1))
    fixed = rep_explore(SharedKey(3), model(), stages)
    one = model()
    seen = find_partition(SharedKey(3), one, stages, coupling="joint")
    assert one.ledger.episodes == seen.counts.hits.sum() == seen.starts.sum() == (6 + 6) * RUNS.episodes
    first = seen.counts.to_bytes()
    late = collect_data(seen, one, (stages[0], replace(stages[1], data_runs=9)))
    assert one.ledger.episodes == (6 + 6 + 4 + 9) * RUNS.episodes
    assert late.counts.hits.sum() == one.ledger.episodes
    assert seen.counts.to_bytes() == first, "what was found before is not changed in place"
    for found in (seen, late):
        np.testing.assert_array_equal(found.tiers.level, fixed.tiers.level)
        for field in ("fractional", "ignored", "first_value", "starts"):
            np.testing.assert_array_equal(getattr(found, field), getattr(fixed, field))
    batches = [(6, 2, "0/partition"), (6, 1, "1/partition"), (4, 2, "0/data"), (9, 1, "1/data")]
    fresh = model()
    parts = [explore(fresh, RUNS, runs, quota=quota, purpose=purpose).counts for runs, quota, purpose in batches]
    assert seen.counts == Counts.merge(parts[:2])
    assert late.counts == Counts.merge(parts)


def test_there_may_be_no_data_runs() -> None:
    """The records of the partition runs are kept; none but these are made, and no stream is opened."""
    one = model()
    found = rep_explore(SharedKey(3), one, (stage(data_runs=0),))
    first = explore(model(), RUNS, 6, quota=2, purpose="0/partition")
    assert found.counts == first.counts
    assert one.ledger.episodes == 6 * RUNS.episodes
    fresh = model()
    fresh.fresh_stream("0/partition")
    assert one.fresh_stream("next").key == fresh.fresh_stream("next").key


def test_data_of_one_tier_move_no_other_tiers_draw() -> None:
    """The second stage's data change; what is drawn for the first stage's tier does not."""
    base = rep_explore(SharedKey(3), model(), (stage(), stage(quota=1)), coupling="product")
    other = stage(run=RunSettings(episodes=17), quota=30)
    changed = rep_explore(SharedKey(3), model(), (stage(), other), coupling="product")
    np.testing.assert_array_equal(base.ignored[0], changed.ignored[0])
    assert not np.array_equal(base.fractional[1], changed.fractional[1])
    mu = np.full((3, 5), 0.5)
    draws = [draw_ignored(SharedKey(3).derive("ignore", t), mu, "product").tobytes() for t in range(1, 30)]
    assert len(set(draws)) > 25, "tiers must not share their words"


# The partition.


def test_which_runs_missed_the_quota_is_read_off_their_records() -> None:
    runs = [explore(model(i), RUNS, 1, quota=3, purpose="quota") for i in range(7)]
    for seen in runs:
        under = seen.counts.visits.min(axis=2) < 3
        np.testing.assert_array_equal(seen.missed[0], under)
        np.testing.assert_array_equal(seen.short, under)
    mu = np.mean([seen.short for seen in runs], axis=0)
    assert ((mu > 0.0) & (mu < 1.0)).sum() > 3


def test_tiers_from_sets() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        count, H, S = rng.integers(1, 5), rng.integers(1, 4), rng.integers(1, 6)
        ignored = rng.random((count, H, S)) < rng.random()
        tiers = stack_tiers(ignored)
        assert tiers.count == count + 1
        sets: list[list[list[bool]]] = []  # S¹ = S∖I¹; S^ℓ = (S∖I^ℓ)∖∪ earlier; S^L = the rest
        for step in ignored:
            earlier = np.any(sets, axis=0) if sets else np.zeros((H, S), dtype=bool)
            sets.append((~step & ~earlier).tolist())
        sets.append((~np.any(sets, axis=0)).tolist())
        np.testing.assert_array_equal(tiers.level, Tiers.from_sets(np.array(sets)).level)
        np.testing.assert_array_equal(tiers.ignorable, ignored.all(axis=0))


def test_sure_states_are_never_a_matter_of_chance() -> None:
    mu = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.0]])
    for method in COUPLINGS:
        for i in range(50):
            drawn = draw_ignored(SharedKey(i), mu, method)
            assert drawn[mu == 1.0].all()
            assert not drawn[mu == 0.0].any()


def average(mdp: TabularMDP, policy: NDArray[np.int64], mu: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and variance of a policy's reachability of I ~ B(μ)."""
    mass = mdp.occupancy(policy)
    return float((mass * mu).sum()), float((mass**2 * mu * (1.0 - mu)).sum())


@pytest.mark.statistical
@pytest.mark.parametrize("method", COUPLINGS)
def test_rounding_keeps_the_expected_reachability(method: str) -> None:
    """6000 keys, 5 policies, two-sided, false alarm 1e-6 for all. Control: each (h, s) rounded to the nearer end.

    What is kept is the average over runs (Lemma 5.10).
    """
    mdp, m, keys = hard_world(8), 60, 6000
    settings = RunSettings(episodes=130, bonus=0.1, guide=0.01)
    batches = [explore(EpisodicModel(mdp, i), settings, 1, quota=4, purpose="round").missed[0] for i in range(m)]
    mu = np.mean(batches, axis=0)
    assert ((mu > 0.0) & (mu < 1.0)).sum() >= 8
    policies = np.random.default_rng(0).integers(2, size=(5, mdp.horizon, mdp.n_states))
    total = np.zeros(mu.shape)
    for i in range(keys):
        total += draw_ignored(SharedKey(i), mu, method)
    for policy in policies:
        mean, variance = average(mdp, policy, mu)
        assert mean == pytest.approx(np.mean([mdp.reachability(inside, policy) for inside in batches]), abs=1e-12)

        def far(seen: float, mean: float = mean, variance: float = variance) -> float:
            return 2.0 * len(policies) * float(stats.norm.sf(abs(seen - mean) / math.sqrt(variance / keys)))

        mass = mdp.occupancy(policy)
        assert far(float((mass * total).sum()) / keys) > FALSE_ALARM
        assert far(float((mass * (mu >= 0.5)).sum())) < FALSE_ALARM


# Where it is hard.


def hard_world(n_states: int = 20) -> TabularMDP:
    """State 0 fans out to all others, each about as likely, at every step: none is easy, none negligible."""
    kernel = np.zeros((4, n_states, 2, n_states))
    weights = np.linspace(1.0, 1.6, n_states - 1)
    kernel[:, :, :, 1:] = weights / weights.sum()
    kernel[:, :, 1, 1:] = weights[::-1] / weights.sum()
    return TabularMDP(kernel, np.zeros((4, n_states, 2)))


class Pairs(NamedTuple):
    """Fractional sets of pairs of runs on the hard MDP."""

    m: int
    first: NDArray[np.float64]
    second: NDArray[np.float64]

    @property
    def fractional(self) -> NDArray[np.int64]:
        """Coordinates of each pair at which its 2m exploration runs do not all say the same."""
        both = self.first + self.second
        return np.asarray(np.count_nonzero((both > 0.0) & (both < 2.0), axis=1), dtype=np.int64)


@cache
def hard_pairs() -> Pairs:
    """120 pairs, m = 300 exploration runs on each side, all from their own streams."""
    m, settings = 300, RunSettings(episodes=380, bonus=0.1, guide=0.01)
    mu = np.array(
        [
            explore(EpisodicModel(hard_world(), i), settings, m, quota=4, purpose="hard").short.reshape(-1) / m
            for i in range(240)
        ]
    )
    return Pairs(m, mu[::2], mu[1::2])


def laws(mu: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([1.0 - mu, mu], axis=1)


def disagreements(method: str, *, shared: bool = True) -> int:
    pairs, found = hard_pairs(), 0
    for i, (one, other) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        keys = SharedKey(i), SharedKey(i if shared else 10**6 + i)
        drawn = [draw_ignored(key, mu.reshape(4, -1), method) for key, mu in zip(keys, (one, other), strict=True)]
        found += not np.array_equal(drawn[0], drawn[1])
    return found


def theory(method: str) -> float:
    """The bound on disagreement before anything is drawn, exploration.md §5."""
    pairs = hard_pairs()
    fractional = float(pairs.fractional.mean())
    if method == "product":
        mu = (pairs.first.mean(axis=0) + pairs.second.mean(axis=0)) / 2.0
        return float(np.sqrt(2.0 * mu * (1.0 - mu) / pairs.m).sum())
    return 2.0 * math.sqrt(2.0 * math.log(2.0) * fractional / (2 * pairs.m - 1))


@pytest.mark.statistical
@pytest.mark.slow
def test_partitions_disagree_no_more_than_their_bound_and_joint_beats_product() -> None:
    """120 pairs with dozens of fractional states; each test has a false alarm of 1e-6.

    Against the couplings' bounds at the two μ̂'s, averaged, and against what exploration.md §5 promises beforehand.
    Control: without a shared key, partitions differ more often than that. Joint against product by Fisher's exact test.
    """
    pairs = hard_pairs()
    n = len(pairs.first)
    assert pairs.fractional.mean() >= 30
    found = {method: disagreements(method) for method in COUPLINGS}
    for method in COUPLINGS:
        rows = zip(pairs.first, pairs.second, strict=True)
        measured = float(np.mean([disagreement_bound(laws(one), laws(other), method) for one, other in rows]))
        assert measured <= theory(method)
        assert keeps(found[method], n, measured, power=0.0, finds=min(0.99, measured + 0.3))
        assert exceeds(disagreements(method, shared=False), n, measured) < FALSE_ALARM
    assert theory("joint") < 0.65
    assert keeps(found["joint"], n, theory("joint"), power=0.28, finds=0.92)
    assert exceeds(disagreements("product", shared=False), n, theory("joint")) < FALSE_ALARM
    table = np.array([[found["joint"], n - found["joint"]], [found["product"], n - found["product"]]])
    assert stats.fisher_exact(table, alternative="less").pvalue < FALSE_ALARM


def test_pooled_distance_has_the_mean_that_the_proof_says() -> None:
    """With n of 2m in the pool, E[(μ̂ − n/2m)²] = (n/2m)(1 − n/2m)/(2m − 1): by enumeration (exploration.md §5)."""
    for m in (1, 2, 5, 9):
        for n in range(2 * m + 1):
            law = stats.hypergeom(2 * m, n, m)
            middle = n / (2 * m)
            x = np.arange(m + 1)
            gap = (x / m - middle) ** 2
            expected = 0.0 if n in (0, 2 * m) else 1.0 / (2 * m - 1)
            spread = middle * (1.0 - middle)
            assert float((law.pmf(x) * gap).sum()) / (spread or 1.0) == pytest.approx(expected, abs=1e-12)


# What is refused.


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"partition_runs": 0}, "partition_runs must be a whole number"),
        ({"data_runs": -1}, "data_runs must be a whole number"),
        ({"data_runs": 2.5}, "data_runs must be a whole number"),
        ({"quota": 0}, "quota must be a whole number"),
        ({"quota": 2**63}, "quota must be a whole number"),
        ({"quota": 2.5}, "quota must be a whole number"),
    ],
)
def test_bad_stages(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ReprlError, match=text):
        stage(**options)


def test_a_start_that_no_run_explores_is_refused() -> None:
    with pytest.raises(ReprlError, match=r"must settle some state of step 0, got none after 6 runs of 300 episodes"):
        rep_explore(SharedKey(3), model(), (stage(quota=10**6),))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"key": 3}, "shared key must be a reprl.SharedKey, got 3"),
        ({"stages": ()}, "exploration needs at least one stage, got none"),
        ({"workers": 0}, "workers must be a whole number"),
    ],
)
def test_bad_calls_draw_nothing(options: dict[str, Any], text: str) -> None:
    one = model()
    given: dict[str, Any] = {"key": SharedKey(3), "stages": (stage(),), **options}
    with pytest.raises(ReprlError, match=text):
        rep_explore(given.pop("key"), one, given.pop("stages"), **given)
    assert one.ledger.samples == 0

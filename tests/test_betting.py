"""Betting on means: exact fractions as the reference, properties, error rates with negative controls, and power."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprl.errors import InputError
from reprl.search.betting import GRID, Levels, MeanTest, mean_interval, rung_risk, scan_levels
from tests import naive_betting as naive
from tests.statistics import FALSE_ALARM, exceeds, keeps

returns = st.lists(st.integers(0, 8), min_size=1, max_size=25)


@given(returns, st.integers(1, 15), st.sampled_from([2, 8, 50]), st.sampled_from([2, 8, 50]))
@settings(max_examples=60, deadline=None)
def test_wealth_and_verdict_are_those_of_exact_fractions(counts, sixteenths, above, below):
    exact = [Fraction(x, 8) for x in counts]
    mean = Fraction(sixteenths, 16)
    test = MeanTest.checked(-1.0, 3.0, -1.0 + 4.0 * float(mean), Levels(1 / above, 1 / below))
    bets = test.bet(test.begin(), -1.0 + np.array(counts) / 2.0)
    verdict, n = naive.decide(exact, mean, Fraction(1, above), Fraction(1, below))
    assert (bets.verdict, bets.samples) == (verdict, n)
    up, down = (naive.wealth(exact[:n], mean, above=side)[-1] for side in (True, False))
    assert np.exp(bets.log_wealth) == pytest.approx((float(up), float(down)), rel=1e-10)
    assert test.mean(bets) == pytest.approx(-1.0 + sum(counts[:n]) / 2.0 / n)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=60), st.lists(st.integers(1, 20), max_size=8))
@settings(max_examples=50, deadline=None)
def test_calls_may_be_divided_in_any_way(samples, sizes):
    test = MeanTest.checked(0.0, 1.0, 0.6, Levels(0.05, 0.01))
    once = test.bet(test.begin(), samples)
    cuts = [0, *itertools.accumulate(sizes), len(samples)]
    bets = test.begin()
    for low, high in itertools.pairwise(sorted(min(cut, len(samples)) for cut in cuts)):
        bets = test.bet(bets, samples[low:high])
    assert (bets.above.tobytes(), bets.below.tobytes(), *bets[2:]) == (
        once.above.tobytes(),
        once.below.tobytes(),
        *once[2:],
    )


def test_long_series_are_the_same_in_one_call_and_in_many():
    samples = np.random.default_rng(0).random(5000)
    test = MeanTest.checked(0.0, 1.0, 0.5, Levels(1e-9, 1e-9))
    once = test.bet(test.begin(), samples)
    bets = test.begin()
    for part in np.array_split(samples, 77):
        bets = test.bet(bets, part)
    assert once.samples == 5000
    assert bets.above.tobytes() == once.above.tobytes()


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30), st.floats(0.02, 0.98), st.floats(0.0, 0.01))
@settings(max_examples=50, deadline=None)
def test_wealth_falls_with_the_threshold_and_mirrors(samples, threshold, step):
    def wealth(at: float, x: Any) -> tuple[float, float]:
        test = MeanTest.checked(0.0, 1.0, at, Levels(1e-300, 1e-300))
        return test.bet(test.begin(), x).log_wealth

    low, high = wealth(threshold, samples), wealth(threshold + step, samples)
    assert high[0] <= low[0] + 1e-9
    assert high[1] >= low[1] - 1e-9
    assert wealth(1.0 - threshold, 1.0 - np.array(samples))[::-1] == pytest.approx(low, abs=1e-9)


@given(returns, st.sampled_from([0.5, 0.05, 1e-4]))
@settings(max_examples=40, deadline=None)
def test_interval_is_where_neither_bet_has_won(counts, delta):
    low, high = mean_interval(np.array(counts) / 8.0, 0.0, 1.0, delta)
    assert 0.0 <= low <= sum(counts) / 8.0 / len(counts) + 1e-12
    assert low <= high <= 1.0
    for end, above in ((low, True), (high, False)):
        if not 1e-6 < end < 1.0 - 1e-6:
            continue
        inwards = 1e-7 if above else -1e-7
        exact = [Fraction(x, 8) for x in counts]
        kept, refused = (naive.wealth(exact, Fraction(end + shift), above=above)[-1] for shift in (inwards, -inwards))
        assert kept < 2 / delta <= refused * (1 + 1e-9)


def test_interval_scales_and_of_nothing_is_everything():
    x = np.random.default_rng(3).random(40)
    one, two = mean_interval(x, 0.0, 1.0, 0.05), mean_interval(-200.0 + 150.0 * x, -200.0, -50.0, 0.05)
    assert two == pytest.approx(tuple(-200.0 + 150.0 * end for end in one))
    assert mean_interval([], -3.0, 5.0, 0.05) == (-3.0, 5.0)
    assert mean_interval([0.0] * 50, 0.0, 1.0, 0.05)[0] == 0.0
    assert mean_interval([1.0] * 50, 0.0, 1.0, 0.05)[1] == 1.0


def test_far_tails_stay_finite():
    test = MeanTest.checked(0.0, 1.0, 0.999, Levels(1e-300, 1e-300))
    bets = test.bet(test.begin(), np.tile([1.0, 0.0], 5000))
    assert bets.verdict == "below"
    assert np.isfinite(bets.log_wealth).all()


def _errors(theta: float, law: Any, runs: int, cap: int, *, used: float) -> int:
    """Runs in which samples of mean θ are called above or below, with bets of another level than is claimed."""
    test = MeanTest.checked(0.0, 1.0, theta, Levels(used, 1e-12))
    rng = np.random.default_rng(20260101)
    return sum(test.bet(test.begin(), law(rng, cap)).verdict == "above" for _ in range(runs))


LAWS = {
    "coin": (0.5, lambda rng, n: (rng.random(n) < 0.5).astype(float)),
    "rare ruin": (0.95, lambda rng, n: (rng.random(n) < 0.95).astype(float)),
    "rare win": (0.02, lambda rng, n: (rng.random(n) < 0.02).astype(float)),
    "spread": (0.5, lambda rng, n: rng.random(n)),
}


@pytest.mark.parametrize("name", LAWS)
def test_wrong_verdicts_are_as_rare_as_claimed(name):
    """At the threshold itself; the control bets up to a wealth of 1/√√level, which is to halve radii."""
    theta, law = LAWS[name]
    level, runs = 0.05, 1200
    assert keeps(_errors(theta, law, runs, 1500, used=level), runs, level, power=0.95)
    assert exceeds(_errors(theta, law, runs, 1500, used=level**0.25), runs, level) < FALSE_ALARM


@pytest.mark.long
def test_intervals_cover_at_all_times_together():
    """The interval is computed after many samples of a coin and must never miss; the control claims too much."""
    rng = np.random.default_rng(7)
    runs, delta = 400, 0.1
    looks = [2, 4, 8, 12, 16, 24, 32, 48, 64, 128, 256]
    paths = (rng.random((runs, looks[-1])) < 0.5).astype(float)

    def missed(used: float) -> int:
        ends = (mean_interval(path[:n], 0.0, 1.0, used) for path in paths for n in looks)
        bad = np.array([not low <= 0.5 <= high for low, high in ends])
        return int(bad.reshape(runs, -1).any(axis=1).sum())

    assert keeps(missed(delta), runs, delta, power=0.6)
    assert exceeds(missed(0.95), runs, delta) < FALSE_ALARM


def _scan(means: list[float], theta: float, risk: float, rng: Any, *, strength: float = 1.0) -> int | None:
    for j, mean in enumerate(means):
        above, below = scan_levels(risk, j)
        test = MeanTest.checked(0.0, 1.0, theta, Levels(above**strength, below**strength))
        bets = test.begin()
        while bets.verdict == "undecided":
            bets = test.bet(bets, (rng.random(256) < mean).astype(float))
        if bets.verdict == "above":
            return j
    return None


def test_scans_print_the_first_candidate_above():
    """Bandits on both sides of the threshold, a third of them with none above; the control halves radii."""
    runs, risk, theta = 250, 0.2, 0.5
    worlds = [[0.48] * (i % 4) + [0.53] * (i % 3) for i in range(runs)]

    def wrong(strength: float) -> int:
        rng = np.random.default_rng(11)
        truth = [next((j for j, mean in enumerate(means) if mean > theta), None) for means in worlds]
        return sum(
            _scan(means, theta, risk, rng, strength=strength) != f for means, f in zip(worlds, truth, strict=True)
        )

    assert keeps(wrong(1.0), runs, risk, power=0.9)
    assert exceeds(wrong(0.25), runs, risk) < FALSE_ALARM


def test_verdicts_come_within_a_tenth_of_what_any_valid_test_needs_and_the_price_of_the_grid():
    """A certain return: docs/proofs/search.md §1. The mixture costs log(1/w_0) more, and the top share is not 1."""
    theta, x, level = 0.97, 1.0, 1e-3
    test = MeanTest.checked(0.0, 1.0, theta, Levels(level, level))
    bets = test.bet(test.begin(), np.full(2000, x))
    least = np.log(1 / level) / np.log(x / theta)
    weight = 1.0 / sum(1.0 / k for k in range(1, GRID + 1))
    assert least <= bets.samples <= 1.1 * np.log(1 / (level * weight)) / np.log(x / theta)
    poor = test.bet(test.begin(), np.full(100, 0.1))
    assert poor.verdict == "below"
    assert poor.samples <= 3


def test_progress_rises_to_the_verdict():
    test = MeanTest.checked(0.0, 1.0, 0.9, Levels(0.01, 0.01))
    bets, shown = test.begin(), [0.0]
    assert test.progress(bets) == 0.0
    while bets.verdict == "undecided":
        bets = test.bet(bets, [1.0])
        shown.append(test.progress(bets))
    assert shown == sorted(shown)
    assert shown[-1] == 1.0
    assert shown[-2] < 1.0


def test_levels_sum_to_the_risk():
    risk = 0.07
    levels = [scan_levels(risk, j) for j in range(20_000)]
    assert sum(level.above for level in levels) + levels[0].below == pytest.approx(risk, rel=1e-3)
    assert sum(level.above for level in levels) + levels[0].below < risk
    assert len({level.below for level in levels}) == 1
    assert sum(rung_risk(0.1, k, 5) for k in range(5)) == pytest.approx(0.05)
    assert sum(rung_risk(0.1, k, None) for k in range(20_000)) == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MeanTest.checked(0.0, 1.0, 1.0, Levels(0.1, 0.1)), "threshold must lie in (0, 1), got 1.0"),
        (lambda: MeanTest.checked(1.0, 1.0, 1.0, Levels(0.1, 0.1)), "high must lie in (1, inf), got 1.0"),
        (lambda: MeanTest.checked(0.0, 1.0, 0.5, Levels(0.0, 0.1)), "levels.above must lie in (0, 1), got 0.0"),
        (lambda: MeanTest.checked(-1e20, 1.0, 0.0, Levels(0.1, 0.1)), "threshold must differ from the bounds"),
        (lambda: mean_interval([0.5, 1.5], 0.0, 1.0, 0.1), "returns must lie in [0, 1], got 1.5"),
        (lambda: mean_interval([0.5, float("nan")], 0.0, 1.0, 0.1), "returns[1] must be finite, got nan"),
        (lambda: rung_risk(0.1, 3, 3), "rungs must be a whole number of at least 4, got 3"),
        (lambda: scan_levels(2.0, 0), "risk must lie in (0, 1), got 2.0"),
    ],
)
def test_bad_input_is_one_line(make, said):
    with pytest.raises(InputError) as caught:
        make()
    assert said in str(caught.value)

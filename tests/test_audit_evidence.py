"""Intervals and tests of an audit: against scipy, and by exact sums over every path of a sequential test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from reprl.auditing.evidence import SequentialTest, exact_interval, fewest_to_reject, log_wealth, p_value
from reprl.errors import ReprlError


@pytest.mark.parametrize(("hits", "trials"), [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (50, 50), (7, 1000)])
def test_interval_and_p_value_are_scipys(hits, trials):
    for rho in (0.01, 0.1, 0.5):
        reference = stats.binomtest(hits, trials, rho, alternative="greater")
        assert p_value(hits, trials, rho) == pytest.approx(reference.pvalue, rel=1e-9)
    exact = stats.binomtest(hits, trials).proportion_ci(0.95, method="exact")
    assert exact_interval(hits, trials) == pytest.approx((exact.low, exact.high), rel=1e-9)


def test_interval_covers_at_every_probability():
    """An exact sum over outcomes; the control drops a little of each end and fails somewhere."""
    n = 30
    ends = np.array([exact_interval(k, n) for k in range(n + 1)])

    def worst(low: Any, high: Any) -> float:
        grid = np.linspace(0.001, 0.999, 400)
        return min(float(stats.binom.pmf(np.flatnonzero((low <= p) & (p <= high)), n, p).sum()) for p in grid)

    assert worst(ends[:, 0], ends[:, 1]) >= 0.95
    assert worst(ends[:, 0] + 0.04, ends[:, 1] - 0.04) < 0.95


@pytest.mark.parametrize(("trials", "rho", "level"), [(50, 0.1, 0.05), (7, 0.3, 0.01), (1000, 0.05, 0.05)])
def test_fewest_to_reject_is_the_edge_of_the_exact_test(trials, rho, level):
    needed = fewest_to_reject(trials, rho, level)
    assert needed is not None
    assert p_value(needed, trials, rho) <= level < p_value(needed - 1, trials, rho)


def test_too_few_pairs_can_never_reject():
    assert fewest_to_reject(1, 0.1, 0.05) is None
    assert fewest_to_reject(2, 0.1, 0.05) == 2


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(("hits", "trials"), [(0, 3), (4, 9), (12, 12), (2, 40)])
def test_wealth_is_the_integral_of_likelihood_ratios(above, hits, trials):
    null = 0.2
    low, high = (null, 1.0) if above else (0.0, null)

    mass = stats.beta.cdf(high, 0.5, 0.5) - stats.beta.cdf(low, 0.5, 0.5)
    # The density is infinite at 0 and 1: substitute q = sin² t, under which it is 2/π.
    start, end = (float(np.arcsin(np.sqrt(x))) for x in (low, high))

    def smooth(t: float) -> float:
        q = np.sin(t) ** 2
        return float((q / null) ** hits * ((1 - q) / (1 - null)) ** (trials - hits) * 2 / np.pi)

    expected = integrate.quad(smooth, start, end, epsabs=0.0, epsrel=1e-10)[0] / mass
    assert np.exp(log_wealth(hits, trials, null, above=above)) == pytest.approx(expected, rel=1e-7)


def chance_of_ever(event: Callable[[int, int], bool], p: float, most: int) -> float:
    """The exact probability that an event of (hits, trials) happens at some time up to `most` tosses of bias p."""
    alive = np.array([1.0])
    ever = 0.0
    for n in range(1, most + 1):
        alive = np.append(alive * (1 - p), 0.0) + np.append(0.0, alive * p)
        for k in range(n + 1):
            if alive[k] > 0.0 and event(k, n):
                ever += alive[k]
                alive[k] = 0.0
    return ever


@pytest.mark.parametrize("rho", [0.02, 0.1, 0.4])
def test_sequential_errors_are_below_the_level_and_not_idle(rho):
    """Exact: no simulation, no false alarm. The control looks at the fixed-size test after every pair."""
    level, most = 0.05, 100
    test = SequentialTest.checked(rho, level)

    def rejects(k: int, n: int) -> bool:
        return test.decide(k, n) == "rejected"

    def passes(k: int, n: int) -> bool:
        return test.decide(k, n) == "not rejected"

    assert chance_of_ever(rejects, rho, most) <= level
    assert chance_of_ever(rejects, rho / 2, most) <= level
    assert chance_of_ever(passes, test.alternative, most) <= level
    assert chance_of_ever(passes, (1 + test.alternative) / 2, most) <= level
    assert chance_of_ever(rejects, 0.95, most) > 0.99
    if rho >= 0.1:  # a hundred pairs cannot rule out 4 %
        assert chance_of_ever(passes, rho / 20, most) > 0.9
    assert chance_of_ever(lambda k, n: p_value(k, n, rho) <= level, rho, most) > level


def test_confidence_sequence_covers_at_all_times_together():
    """Exact again; the control is the fixed-size interval looked at after every pair."""
    test = SequentialTest.checked(0.1, 0.05)
    for p in (0.03, 0.3):
        assert chance_of_ever(misses(test.interval, p), p, 40) <= 0.05
    assert chance_of_ever(misses(exact_interval, 0.3), 0.3, 150) > 0.05


def misses(interval: Callable[[int, int], tuple[float, float]], p: float) -> Callable[[int, int], bool]:
    return lambda k, n: not interval(k, n)[0] <= p <= interval(k, n)[1]


def test_confidence_sequence_ends_are_where_the_bet_wins():
    test = SequentialTest.checked(0.1, 0.05)
    low, high = test.interval(6, 40)
    for end in (low, high):
        mixture = np.exp(stats.betabinom.logpmf(6, 40, 0.5, 0.5) - stats.binom.logpmf(6, 40, end))
        assert mixture == pytest.approx(20.0, rel=1e-6)
    assert test.interval(0, 5)[0] == 0.0
    assert test.interval(5, 5)[1] == 1.0


def test_a_long_sequence_stays_finite():
    test = SequentialTest.checked(0.1, 0.05)
    assert test.decide(0, 10**6) == "not rejected"
    assert test.decide(10**6, 10**6) == "rejected"
    low, high = test.interval(150_000, 10**6)
    assert 0.14 < low < 0.15 < high < 0.16


def test_alternative_defaults_to_twice_rho_and_stays_below_one():
    assert SequentialTest.checked(0.1, 0.05).alternative == 0.2
    assert SequentialTest.checked(0.8, 0.05).alternative == pytest.approx(0.9)
    with pytest.raises(ReprlError, match=r"alternative must lie in \(0\.3, 1\), got 0\.2"):
        SequentialTest.checked(0.3, 0.05, 0.2)


@pytest.mark.parametrize(("hits", "trials"), [(-1, 5), (6, 5), (0, 0), (1.5, 5), (True, 5)])
def test_bad_counts_are_refused(hits, trials):
    with pytest.raises(ReprlError, match="must be a whole number"):
        exact_interval(hits, trials)

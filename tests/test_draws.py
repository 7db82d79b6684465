"""Exact draws: alias tables and the binomial sampler."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy import stats

from reprl.mdp.draws import AliasTable, _log_binomial, alias_table, binomial, cumulate, draw_outcome
from tests.statistics import FALSE_ALARM, chi_square, exceeds, keeps

TOP = 2**64 - 1
DRAWS = 100_000


@njit
def draw_many(key, lane, n, p, out):
    position = np.uint64(0)
    for i in range(out.size):
        out[i], position = binomial(key, lane, position, n, p)


def sample(n: int, p: float, lane: int, size: int = DRAWS) -> np.ndarray:
    out = np.empty(size, dtype=np.int64)
    draw_many(np.uint64(99), np.uint64(lane), n, p, out)
    return out


def table(rows: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    first = np.cumsum([0, *(len(row) for row in rows)])
    return np.array([x for row in rows for x in row], dtype=float), first


def shares(cumulative: list[float]) -> list[int]:
    """Words that each outcome should own: ⌊2⁶⁴·C(e)⌋ − ⌊2⁶⁴·C(e−1)⌋, at least 1, and the last one the rest."""
    edges = [0]
    for e, total in enumerate(cumulative[:-1]):
        numerator, denominator = min(total, 1.0 - 2.0**-53).as_integer_ratio()
        edge = max((numerator * 2**64) // denominator, edges[-1] + 1)
        edges.append(min(edge, 2**64 - (len(cumulative) - 1 - e)))
    edges.append(2**64)
    return [high - low for low, high in pairwise(edges)]


def owned(alias: AliasTable, row: int, size: int, low: int) -> list[int]:
    """Words that each outcome of a row owns, read off the buckets."""
    info = int(alias.row[row])
    capacity = 1 << (info & 63)
    words = [0] * size
    for j in range(info >> 6, (info >> 6) + 2**64 // capacity):
        cutoff, pair = int(alias.bucket[2 * j]), int(alias.bucket[2 * j + 1])
        assert cutoff <= capacity
        for outcome, share in ((pair & (2**32 - 1), cutoff), (pair >> 32, capacity - cutoff)):
            if share:
                words[outcome - low] += share
    return words


ROW = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40).filter(lambda row: sum(row) > 1e-3)
WORD = st.one_of(st.integers(0, TOP), st.integers(TOP - 4096, TOP), st.integers(0, 4096))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(weights=ROW, before=st.integers(0, 3))
def test_every_outcome_owns_exactly_its_share_of_the_words(weights, before):
    weights = [weight for weight in weights if weight > 0.0]
    row = [weight / sum(weights) for weight in weights]
    law, first = table([[1.0]] * before + [row, [0.5, 0.5]])
    alias = alias_table(law, first)
    low, high = int(first[before]), int(first[before + 1])
    totals = [float(x) for x in cumulate(law, first)[low:high]]
    assert owned(alias, before, high - low, low) == shares(totals)
    assert owned(alias, before + 1, 2, high) == [2**63, 2**63]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(weights=ROW, word=WORD)
def test_a_word_draws_what_its_bucket_says(weights, word):
    weights = [weight for weight in weights if weight > 0.0]
    law, first = table([[0.25, 0.75], [weight / sum(weights) for weight in weights]])
    alias = alias_table(law, first)
    info = int(alias.row[1])
    j, within = (info >> 6) + (word >> (info & 63)), word % (1 << (info & 63))
    cutoff, pair = int(alias.bucket[2 * j]), int(alias.bucket[2 * j + 1])
    assert draw_outcome(alias, 1, np.uint64(word)) == (pair % 2**32 if within < cutoff else pair >> 32)
    assert 2 <= draw_outcome(alias, 1, np.uint64(word)) < 2 + len(weights)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("word", [0, 1, 2**63, TOP - 1, TOP])
def test_extreme_words_stay_inside_their_row(size, word):
    law, first = table([[0.25, 0.75], [1.0 / size] * size, [0.5, 0.5]])
    assert 2 <= draw_outcome(alias_table(law, first), 1, np.uint64(word)) < 2 + size


def test_a_row_that_sums_to_less_than_one_gives_the_rest_to_its_last_outcome():
    row = [0.1] * 10  # 0.1 added ten times in floating point is 1 − 2⁻⁵³
    law, first = table([row, [1.0]])
    assert cumulate(law, first)[9] == 1.0 - 2.0**-53
    assert sum(owned(alias_table(law, first), 0, 10, 0)) == 2**64


def test_a_row_that_sums_to_more_than_one_shares_out_every_word_once():
    row = [0.3, 0.7, 2.0**-52, 1e-12]
    law, first = table([row])
    words = owned(alias_table(law, first), 0, 4, 0)
    assert sum(words) == 2**64
    assert min(words) >= 0


def exact_log_binomial(k: int, n: int, p: float) -> float:
    """log Pr[Binomial(n, p) = k] from whole numbers."""
    chance = Fraction(p)
    mass = math.comb(n, k) * chance**k * (1 - chance) ** (n - k)
    return math.log(mass.numerator) - math.log(mass.denominator)


@pytest.mark.parametrize(("n", "p"), [(21, 0.5), (40, 0.25), (101, 0.1), (200, 0.5)])
def test_the_binomial_density_is_exact_for_small_numbers(n, p):
    for k in range(n + 1):
        assert _log_binomial(float(k), float(n), p) == pytest.approx(exact_log_binomial(k, n, p), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("n", "p"), [(10**4, 0.3), (10**6, 1e-4), (10**9, 0.1234), (10**12, 0.5), (10**15, 0.1234), (2**52, 0.5)]
)
def test_the_binomial_density_agrees_with_sixty_digits_for_large_numbers(n, p):
    """scipy.stats.binom.logpmf cannot judge this: it loses all digits here (2e-3 at n = 1e12, 9 at 1e15)."""
    mpmath = pytest.importorskip("mpmath")
    spread = np.sqrt(n * p * (1.0 - p))
    with mpmath.workdps(60):
        chance, gamma = mpmath.mpf(p), mpmath.loggamma
        for k in np.floor(n * p + spread * np.linspace(-6.0, 6.0, 25)).astype(int).tolist():
            exact = gamma(n + 1) - gamma(k + 1) - gamma(n - k + 1)
            exact += k * mpmath.log(chance) + (n - k) * mpmath.log(1 - chance)
            assert _log_binomial(float(k), float(n), p) == pytest.approx(float(exact), rel=0, abs=1e-8)


def fit(draws: np.ndarray, n: int, p: float) -> float:
    """p-value of draws under Binomial(n, p), over about 50 intervals of equal probability."""
    spread = np.sqrt(n * p * (1.0 - p))
    # Above this the normal law is right to 1e-6, and that of the binomial law in SciPy before 1.15 only to 3e-3.
    law = stats.binom(n, p) if spread < 1e6 else stats.norm(n * p + 0.5, spread)
    edges = np.unique(np.concatenate([[-1.0], law.ppf(np.linspace(0.02, 0.98, 49)), [float(n)]]))
    counts = np.histogram(draws, bins=edges + 0.5)[0]
    assert counts.sum() == draws.size
    return chi_square([(counts, np.diff(law.cdf(edges)))])


BINOMIALS = [
    (1, 0.5),
    (1, 0.03),
    (2, 0.5),
    (7, 0.9),
    (20, 0.1),
    (19, 0.5),
    (20, 0.5),
    (21, 0.5),
    (100, 0.0999),
    (100, 0.1001),
    (100, 0.9001),
    (100, 0.8999),
    (1000, 0.3),
    (10**6, 9.99e-6),
    (10**6, 1.001e-5),
    (10**6, 0.75),
    (10**9, 0.1234),
    (10**12, 9.9e-12),
    (10**12, 0.5),
    (10**15, 9.9e-15),
    (10**15, 1e-9),
    (10**15, 0.1234),
    (10**15, 0.8766),
    (2**52 + 1000, 1e-15),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "p"), BINOMIALS)
def test_binomial_draws_have_the_binomial_law(n, p):
    """False alarm 1e-6. Control: the law whose mean is off by a twentieth of a standard deviation is rejected."""
    draws = sample(n, p, lane=n % 1000 + int(p * 10**6))
    assert fit(draws, n, p) > FALSE_ALARM
    shift = 0.05 * np.sqrt(p * (1.0 - p) / n)
    assert fit(draws, n, p + shift) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("n", "p"), [(2**52, 0.5), (2**53, 0.5), (2**53 - 1, 0.4999999), (2**56 + 1, 0.7), (1001, 0.4)]
)
def test_binomial_draws_are_even_and_odd_alike(n, p):
    """False alarm 2e-6 (two one-sided tests). Control: draws rounded to even numbers one time in ten are rejected."""
    draws = sample(n, p, lane=5)
    odd = int((draws & 1).sum())
    assert keeps(odd, DRAWS, 0.5, power=0.99)
    assert keeps(DRAWS - odd, DRAWS, 0.5, power=0.99)
    spoiled = np.where(np.arange(DRAWS) % 10 == 0, draws & ~1, draws)
    assert exceeds(int((spoiled & 1 == 0).sum()), DRAWS, 0.5) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "p"), [(2**54, 0.3), (2**58 + 12345, 0.9)])
def test_binomial_draws_beyond_the_doubles_are_normal(n, p):
    """False alarm 1e-6; the exact law is normal to eight digits. Control: a mean off by a twentieth of a spread."""
    mean, spread = int(Fraction(p) * n), np.sqrt(n * p * (1.0 - p))
    scores = (sample(n, p, lane=1) - mean) / spread
    cells = np.linspace(0.0, 1.0, 51)
    for shift, right in ((0.0, True), (0.05, False)):
        counts = np.histogram(stats.norm.cdf(scores + shift), bins=cells)[0]
        assert (chi_square([(counts, np.diff(cells))]) > FALSE_ALARM) == right


@pytest.mark.parametrize("n", [0, 1, 10**15])
def test_binomial_at_probability_zero_and_one_reads_nothing(n):
    for p, expected in ((0.0, 0), (-0.0, 0), (1.0, n)):
        assert binomial(np.uint64(1), np.uint64(2), np.uint64(3), n, p) == (expected, np.uint64(3))
    assert binomial(np.uint64(1), np.uint64(2), np.uint64(3), 0, 0.5) == (0, np.uint64(3))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    n=st.one_of(st.integers(1, 2**53), st.integers(2**53, 2**62)),
    p=st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 1e-12), st.floats(1.0 - 1e-12, 1.0)),
    lane=st.integers(0, TOP),
)
def test_binomial_draws_lie_between_zero_and_n_and_advance_the_stream(n, p, lane):
    start = np.uint64(7)
    k, position = binomial(np.uint64(4), np.uint64(lane), start, n, p)
    assert 0 <= k <= n
    assert (position > start) == (0.0 < p < 1.0)
    again = binomial(np.uint64(4), np.uint64(lane), start, n, p)
    assert again == (k, position)

"""correlated_sample: the winner itself, its law, the coupling of two runs, addresses and refusals.

Statistical tests reject a right implementation with probability at most FALSE_ALARM = 1e-6 each; their seeds are fixed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from reprl.coupling.correlated import DEFAULT_MAX_NODES, correlated_sample, disagreement_bound, draw
from reprl.coupling.gumbel_field import SLICE, begin, child_address, find_winner, make_search
from reprl.coupling.rounding import round_vector
from reprl.coupling.spec import COUPLINGS
from reprl.errors import ReprlError
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, SharedKey
from tests import naive_coupling as naive
from tests.naive import words
from tests.statistics import FALSE_ALARM, chi_square, exceeds, keeps

Laws = NDArray[np.float64]


def random_laws(rng: np.random.Generator, n: int, k: int, flavour: str = "dirichlet") -> Laws:
    """Laws of one flavour; "mixed" joins the others row by row."""
    laws: Laws = rng.dirichlet(np.ones(k), n)
    for row, kind in zip(laws, rng.integers(0, 5, n), strict=True):
        if k > 1 and (flavour == "zeros" or (flavour == "mixed" and kind == 1)):
            row[rng.permutation(k)[: rng.integers(1, k)]] = 0.0
        if flavour == "sharp" or (flavour == "mixed" and kind == 2):
            row[:] = 1e-12 / k
            row[rng.integers(k)] = 1.0
        if flavour == "equal" or (flavour == "mixed" and kind == 3):
            row[:] = 1.0 / k
        row /= row.sum()
    return laws


def choices(laws: Laws, keys: Iterable[SharedKey], method: str = "joint") -> NDArray[np.int64]:
    """(number of keys, n) choices, one key per row."""
    return np.array([correlated_sample(key, laws, method) for key in keys])


def keys(purpose: str, number: int) -> list[SharedKey]:
    """Fresh shared keys, one per trial."""
    root = SharedKey(20250801).derive(purpose)
    return [root.derive(i) for i in range(number)]


def cells(drawn: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Count every outcome of [k]ⁿ, in lexicographic order."""
    n = drawn.shape[1]
    return np.bincount(drawn @ (k ** np.arange(n)[::-1]), minlength=k**n)


# ---------------------------------------------------------------------------------------------- the winner itself


@pytest.mark.parametrize("flavour", ["dirichlet", "zeros", "sharp", "equal", "mixed"])
def test_joint_is_the_winner_of_the_enumerated_field(flavour: str) -> None:
    rng = np.random.default_rng(1)
    shapes = [(n, k) for n in range(1, 9) for k in range(1, 6) if k**n <= 260]
    for case in range(600):
        n, k = shapes[case % len(shapes)]
        laws, key = random_laws(rng, n, k, flavour), SharedKey(case).derive(flavour)
        assert tuple(correlated_sample(key, laws)) == naive.enumerate_winner(key, laws)


@pytest.mark.parametrize(("n", "k"), [(8, 3), (5, 5), (6, 4), (8, 2)])
def test_joint_is_the_winner_of_larger_fields(n: int, k: int) -> None:
    rng = np.random.default_rng(2)
    for case in range(4):
        laws, key = random_laws(rng, n, k, "mixed"), SharedKey(case).derive(n, k)
        assert tuple(correlated_sample(key, laws)) == naive.enumerate_winner(key, laws)


def test_another_field_has_another_winner() -> None:
    """Negative control: the enumeration of another block's field does not pass for the joint draw."""
    rng = np.random.default_rng(3)
    laws = random_laws(rng, 5, 3)
    wrong = [tuple(correlated_sample(key, laws)) != naive.enumerate_winner(key, laws, block=1) for key in keys("w", 20)]
    assert sum(wrong) > 10


def test_addresses_follow_the_written_rule() -> None:
    rng = np.random.default_rng(5)
    for address, child in zip(rng.integers(0, 2**64, 500, dtype=np.uint64), rng.integers(0, 2**40, 500), strict=True):
        assert int(child_address(address, int(child))) == naive.child_address(int(address), int(child))


@pytest.mark.parametrize(("n", "p", "cases"), [(1, 0.5, 20), (8, 0.7, 60), (14, 0.9, 40), (20, 0.9, 12), (30, 0.6, 8)])
def test_search_finds_the_best_first_winner_and_expands_no_fewer_nodes(n: int, p: float, cases: int) -> None:
    laws = np.tile([1.0 - p, p], (n, 1))
    for key in keys("nodes", cases):
        winner, fewest = naive.best_first(key, laws)
        found = draw(key, laws)
        assert tuple(found.choice) == winner
        assert found.nodes >= fewest >= n


def test_uniform_laws_need_one_node_a_row() -> None:
    assert draw(SharedKey(1), np.full((500, 4), 0.25)).nodes == 500


def test_product_is_a_shared_threshold_or_a_shared_race() -> None:
    rng = np.random.default_rng(6)
    for case in range(200):
        k = int(rng.integers(1, 7))
        laws, key = random_laws(rng, 6, k, "mixed"), SharedKey(case).derive("rows")
        expected = [naive_row(key, i, row) for i, row in enumerate(laws)]
        assert list(correlated_sample(key, laws, "product")) == expected


def naive_row(key: SharedKey, number: int, law: Laws) -> int:
    """One row from the block of words at counter `number`, two words to a lane."""
    philox_key, lane = (int(word) for word in key.words)
    uniforms = []
    for j in range(len(law)):
        word = words(philox_key, (lane + j // 2) % 2**64, 2 * number + j % 2, 1)[0]
        uniforms.append(((word >> 12) + 0.5) / 2**52)
    if len(law) == 2:
        return 0 if uniforms[0] < law[0] else 1
    waits = [-np.log(u) / p if p > 0.0 else np.inf for u, p in zip(uniforms, law, strict=True)]
    return int(np.argmin(waits))


# ---------------------------------------------------------------------------------------------- the field


def field_sample(n: int, k: int, number: int) -> NDArray[np.float64]:
    """(number, kⁿ) arrival times, one key per row."""
    return np.array([list(naive.Field(key, n, k).leaves().values()) for key in keys("field", number)])


def independence(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """p-value that two exponential variables are independent, from a 4 × 4 table of quartiles."""
    cut = -np.log1p(-np.array([0.25, 0.5, 0.75]))
    table = np.bincount(4 * np.searchsorted(cut, x) + np.searchsorted(cut, y), minlength=16)
    return chi_square([(table, np.full(16, 1 / 16))])


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "k"), [(3, 2), (2, 3)])
def test_arrival_times_are_independent_exponentials(n: int, k: int) -> None:
    times = field_sample(n, k, 3000)
    leaves = times.shape[1]
    for leaf in range(leaves):
        assert stats.kstest(times[:, leaf], "expon").pvalue > FALSE_ALARM
    pairs = list(itertools.combinations(range(leaves), 2))
    assert min(independence(times[:, i], times[:, j]) for i, j in pairs) * len(pairs) > FALSE_ALARM
    # All leaves together: the first arrival is any leaf alike, and comes kⁿ times as soon.
    assert stats.kstest(times.min(axis=1) * leaves, "expon").pvalue > FALSE_ALARM
    first = np.bincount(times.argmin(axis=1), minlength=leaves)
    assert chi_square([(first, np.full(leaves, 1 / leaves))]) > FALSE_ALARM
    # Negative controls: a wrong rate, and a leaf that leans on another.
    assert stats.kstest(1.2 * times[:, 0], "expon").pvalue < FALSE_ALARM
    lean = np.where(np.arange(len(times)) % 3 == 0, times[:, 0], times[:, 1])
    assert stats.kstest(lean, "expon").pvalue > FALSE_ALARM
    assert independence(times[:, 0], lean) * len(pairs) < FALSE_ALARM


# ---------------------------------------------------------------------------------------------- the law of one run


@pytest.mark.statistical
@pytest.mark.parametrize("method", COUPLINGS)
@pytest.mark.parametrize(
    ("n", "k", "flavour"),
    [(3, 4, "dirichlet"), (4, 3, "mixed"), (12, 2, "dirichlet"), (4, 5, "zeros"), (5, 3, "sharp")],
)
def test_choices_follow_the_product_law(method: str, n: int, k: int, flavour: str) -> None:
    laws = random_laws(np.random.default_rng([n, k]), n, k, flavour)
    laws[0] = np.arange(1, k + 1) / (k * (k + 1) / 2)  # never a point, so there is always something to test
    counts = cells(choices(laws, keys(f"law-{method}-{n}-{k}", 8000), method), k)
    assert chi_square([(counts, naive.joint_law(laws))]) > FALSE_ALARM
    wrong = laws.copy()
    wrong[0] = laws[0, ::-1] * 0.35 + laws[0] * 0.65
    if k == 2:
        wrong[0] = laws[0, ::-1]
    assert chi_square([(counts, naive.joint_law(wrong))]) < FALSE_ALARM


@pytest.mark.statistical
def test_a_slightly_wrong_law_is_rejected() -> None:
    """Negative control at a distance of 0.05 in one row of three."""
    laws = np.array([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1]])
    wrong = np.array([[0.35, 0.65], [0.5, 0.5], [0.9, 0.1]])
    for method in COUPLINGS:
        counts = cells(choices(laws, keys("slight", 8000), method), 2)
        assert chi_square([(counts, naive.joint_law(laws))]) > FALSE_ALARM
        assert chi_square([(counts, naive.joint_law(wrong))]) < FALSE_ALARM


@pytest.mark.statistical
def test_each_of_many_rows_follows_its_law() -> None:
    laws = random_laws(np.random.default_rng(8), 60, 4)
    drawn = choices(laws, keys("rows-product", 1500), "product")
    rows = [np.bincount(drawn[:, i], minlength=4) for i in range(len(laws))]
    assert chi_square(zip(rows, laws, strict=True)) > FALSE_ALARM
    assert chi_square(zip(rows, np.roll(laws, 1, axis=1), strict=True)) < FALSE_ALARM


@pytest.mark.statistical
def test_a_long_chain_of_heirs_does_not_bend_the_law() -> None:
    """Scaled times fade below the smallest float after 1100 uniform rows; the rows behind them must not notice."""
    laws = np.vstack([np.full((1100, 2), 0.5), np.tile([0.2, 0.8], (5, 1))])
    drawn = choices(laws, keys("heirs", 1500))
    assert chi_square([(cells(drawn[:, 1100:], 2), naive.joint_law(laws[1100:]))]) > FALSE_ALARM
    ones = int(drawn[:, :1100].sum())
    assert stats.binomtest(ones, 1500 * 1100, 0.5).pvalue > FALSE_ALARM
    assert chi_square([(cells(drawn[:, 1100:], 2), np.full(32, 1 / 32))]) < FALSE_ALARM


@pytest.mark.parametrize("method", COUPLINGS)
def test_impossible_outcomes_are_never_drawn_and_sure_ones_always(method: str) -> None:
    laws = np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [1e-300, 0.0, 1.0], [0.0, 1e-13, 1.0 - 1e-13]])
    drawn = choices(laws, keys("zero", 2000), method)
    assert (drawn[:, 0] == 1).all()
    assert set(drawn[:, 1]) == {0, 2}
    assert (drawn[:, 2] == 0).all()
    assert (drawn[:, 3:] == 2).all()


# ---------------------------------------------------------------------------------------------- two runs


def pair_of_laws(n: int, k: int, step: float) -> tuple[Laws, Laws]:
    rng = np.random.default_rng([n, k, int(1000 * step)])
    first, other = rng.dirichlet(np.ones(k), n), rng.dirichlet(np.ones(k), n)
    return first, (1.0 - step) * first + step * other


def exact_disagreement(first: Laws, second: Laws, method: str) -> float:
    """The disagreement of two runs, from the rule of each method by enumeration."""
    if method == "product" and first.shape[1] == 2:
        return naive.any_fails(np.abs(first - second)[:, 0])
    size = {"joint": len(first), "product": 1}[method]
    cuts = range(0, len(first), size)
    return naive.any_fails([naive.race_disagreement(first[c : c + size], second[c : c + size]) for c in cuts])


def written_bound(first: Laws, second: Laws, method: str) -> float:
    """The bound of correlated_sample's docstring, with exact total variations."""
    size = {"joint": len(first), "product": 1}[method]
    cuts = range(0, len(first), size)
    if method == "product" and first.shape[1] == 2:
        return sum(naive.total_variation(first[c : c + 1], second[c : c + 1]) for c in cuts)
    return sum(naive.coupling_bound(first[c : c + size], second[c : c + size]) for c in cuts)


@pytest.mark.statistical
@pytest.mark.parametrize("method", COUPLINGS)
@pytest.mark.parametrize(("n", "k", "step"), [(6, 3, 0.02), (6, 3, 0.2), (8, 2, 0.05), (1, 5, 0.5), (4, 4, 1.0)])
def test_two_runs_part_as_often_as_the_theory_says(method: str, n: int, k: int, step: float) -> None:
    first, second = pair_of_laws(n, k, step)
    shared = keys(f"pair-{method}-{n}-{k}-{step}", 4000)
    one, two = choices(first, shared, method), choices(second, shared, method)
    apart = int((one != two).any(axis=1).sum())
    exact = exact_disagreement(first, second, method)
    bound = written_bound(first, second, method)
    assert naive.total_variation(first, second) <= exact <= min(1.0, bound) + 1e-12
    assert exceeds(apart, 4000, min(1.0, bound)) > FALSE_ALARM  # power 1 where the bound is one; the next is sharper
    assert stats.binomtest(apart, 4000, exact).pvalue > FALSE_ALARM
    # Negative control: the same runs without a shared key.
    alone = choices(second, keys(f"alone-{method}-{n}-{k}-{step}", 4000), method)
    apart_alone = int((one != alone).any(axis=1).sum())
    assert stats.binomtest(apart_alone, 4000, exact).pvalue < FALSE_ALARM
    if bound < 0.5:
        assert exceeds(apart_alone, 4000, bound) < FALSE_ALARM


@pytest.mark.statistical
def test_joint_parts_less_often_than_product() -> None:
    """Twenty fair coins against twenty of 0.52: the joint bound is 0.13, the coordinatewise one 0.33."""
    n, trials = 20, 4000
    first, second = np.full((n, 2), 0.5), np.tile([0.48, 0.52], (n, 1))
    tv = 0.5 * np.abs(stats.binom.pmf(np.arange(n + 1), n, 0.5) - stats.binom.pmf(np.arange(n + 1), n, 0.52)).sum()
    apart = {}
    for method in ("joint", "product"):
        shared = keys(f"coins-{method}", trials)
        differ = choices(first, shared, method) != choices(second, shared, method)
        apart[method] = int(differ.any(axis=1).sum())
    table = np.array([[apart[method], trials - apart[method]] for method in ("joint", "product")])
    assert stats.fisher_exact(table, alternative="less").pvalue < FALSE_ALARM
    assert stats.fisher_exact(table[::-1], alternative="less").pvalue > FALSE_ALARM  # negative control
    assert keeps(apart["joint"], trials, 2 * tv / (1 + tv), power=0.99)
    assert stats.binomtest(apart["product"], trials, 1 - 0.98**n).pvalue > FALSE_ALARM


@st.composite
def two_products(draw_from: Callable[..., Any]) -> tuple[Laws, Laws]:
    n, k = draw_from(st.integers(1, 4)), draw_from(st.integers(1, 4))
    weight = st.sampled_from([0.0, 1e-12, 1e-9, 1e-6, 0.01, 0.1]) | st.floats(0.0, 1.0)
    base = np.array(draw_from(st.lists(weight, min_size=n * k, max_size=n * k))).reshape(n, k)
    move = np.array(draw_from(st.lists(weight, min_size=n * k, max_size=n * k))).reshape(n, k)
    step = draw_from(st.sampled_from([0.0, 1e-15, 1e-9, 1e-6, 1e-3, 0.1, 1.0]))
    base[:, 0] += base.sum(axis=1) < 1e-3
    move[:, -1] += move.sum(axis=1) < 1e-3
    base, move = base / base.sum(axis=1, keepdims=True), move / move.sum(axis=1, keepdims=True)
    second = (1.0 - step) * base + step * move
    return base, second / second.sum(axis=1, keepdims=True)


@settings(max_examples=700, deadline=None)
@given(two_products(), st.sampled_from(COUPLINGS))
def test_disagreement_bound_is_above_the_exact_one(pair: tuple[Laws, Laws], method: str) -> None:
    first, second = pair
    bound = disagreement_bound(first, second, method)
    size = {"joint": len(first), "product": 1}[method]
    cuts = range(0, len(first), size)
    if method == "product" and first.shape[1] == 2:
        exact = naive.any_fails([naive.total_variation(first[c : c + 1], second[c : c + 1]) for c in cuts])
    else:
        exact = naive.any_fails([naive.coupling_bound(first[c : c + size], second[c : c + size]) for c in cuts])
    assert exact * (1.0 - 1e-9) - 2e-15 <= bound <= 1.0


def chi_square_bound(first: Laws, second: Laws) -> float:
    """Lemma 2.11: Σ (μ − μ')²/μ where μ > 0, plus Σ (μ − μ')²/(1 − μ) where μ < 1; laws of two outcomes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(first > 0.0, (first - second) ** 2 / first, 0.0).sum())


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(-1.0, 1.0)), min_size=1, max_size=6))
def test_products_of_coins_are_as_close_as_the_lemma_says_where_impossible_stays_so(pairs: list[Any]) -> None:
    one = np.array([mean for mean, _ in pairs])
    two = np.array([mean + step * min(mean, 1.0 - mean) for mean, step in pairs])  # 0 stays 0, and 1 stays 1
    first, second = (np.stack([1.0 - means, means], axis=1) for means in (one, two))
    assert naive.total_variation(first, second) ** 2 <= chi_square_bound(first, second) * (1.0 + 1e-9) + 1e-15
    bound = disagreement_bound(first, second)
    assert bound <= 2.0 * np.sqrt(chi_square_bound(first, second)) * (1.0 + 1e-9) + 1e-7  # ours is no weaker


def test_products_of_coins_are_further_apart_than_the_lemma_says_where_the_impossible_happens() -> None:
    first, second = np.tile([1.0, 0.0], (4, 1)), np.tile([0.75, 0.25], (4, 1))
    assert naive.total_variation(first, second) == pytest.approx(1 - 0.75**4)
    assert naive.total_variation(first, second) ** 2 > 1.8 * chi_square_bound(first, second)


@settings(max_examples=200, deadline=None)
@given(two_products(), st.sampled_from(COUPLINGS))
def test_disagreement_bound_of_equal_laws_is_zero(pair: tuple[Laws, Laws], method: str) -> None:
    assert disagreement_bound(pair[0], pair[0], method) == 0.0


def test_disagreement_bound_is_not_idle() -> None:
    """It separates what it should: disjoint laws, near laws that rounding could call equal, joint from product."""
    assert disagreement_bound([[1.0, 0.0]], [[0.0, 1.0]]) == 1.0
    near = disagreement_bound(np.full((100, 2), 0.5), np.tile([0.5 - 1e-10, 0.5 + 1e-10], (100, 1)))
    assert 1e-9 < near < 1e-8
    coins = np.full((20, 2), 0.5), np.tile([0.48, 0.52], (20, 1))
    assert disagreement_bound(*coins) < 0.7 * disagreement_bound(*coins, "product")


# ---------------------------------------------------------------------------------------------- addresses


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 24), st.integers(2, 4), st.integers(0, 10**6))
def test_data_of_one_row_of_a_product_cannot_move_another(n: int, k: int, seed: int) -> None:
    rng, key = np.random.default_rng(seed), SharedKey(seed)
    laws = random_laws(rng, n, k, "mixed")
    before, changed = correlated_sample(key, laws, "product"), int(rng.integers(n))
    laws[changed] = random_laws(rng, 1, k)[0]
    after = correlated_sample(key, laws, "product")
    assert np.array_equal(np.delete(before, changed), np.delete(after, changed))


def test_a_changed_row_can_move_its_own_draw() -> None:
    """Negative control of the test above."""
    laws, other = np.full((4, 2), 0.5), np.full((4, 2), 0.5)
    other[1] = [1.0, 0.0]
    for method in COUPLINGS:
        moved = [
            not np.array_equal(correlated_sample(k, laws, method), correlated_sample(k, other, method))
            for k in keys("moved", 40)
        ]
        assert any(moved)


@pytest.mark.parametrize("method", COUPLINGS)
def test_other_keys_and_labels_draw_otherwise(method: str) -> None:
    laws = np.full((64, 4), 0.25)
    drawn = [
        correlated_sample(key, laws, method)
        for key in (
            SharedKey(1),
            SharedKey(2),
            SharedKey(1).derive("a"),
            SharedKey(1).derive("b"),
            SharedKey(1).derive("a", 0),
        )
    ]
    for one, two in itertools.combinations(drawn, 2):
        assert (one != two).sum() > 16
    assert (drawn[0][:16] != drawn[0][16:32]).any()


def test_input_is_not_written_to_and_layout_does_not_matter() -> None:
    laws = random_laws(np.random.default_rng(11), 9, 3)
    laws.setflags(write=False)
    for method in COUPLINGS:
        plain = correlated_sample(SharedKey(5), laws, method)
        assert np.array_equal(plain, correlated_sample(SharedKey(5), np.asfortranarray(laws), method))
        assert np.array_equal(plain, correlated_sample(SharedKey(5), laws.tolist(), method))
        assert np.array_equal(plain, correlated_sample(SharedKey(5), np.repeat(laws, 2, axis=0)[::2], method))


# ---------------------------------------------------------------------------------------------- golden


def golden_table() -> dict[str, str]:
    """Fingerprints of fixed draws, one for each method and shape."""
    out = {}
    for k in (2, 3, 5):
        laws = np.arange(1.0, 24 * k + 1.0).reshape(24, k) % 7.0 + 0.5
        laws /= laws.sum(axis=1, keepdims=True)
        for method in COUPLINGS:
            drawn = [correlated_sample(SharedKey(7).derive("golden", i), laws, method) for i in range(20)]
            out[f"{method} k={k}"] = hashlib.sha256(np.array(drawn, dtype="<i8").tobytes()).hexdigest()[:16]
    x = (np.arange(15) * 0.37) % 5.0 - 2.0
    for method in (*COUPLINGS, "grid"):
        y = [round_vector(SharedKey(7).derive("golden", i), x, width=0.5, method=method) for i in range(20)]
        out[f"round {method}"] = hashlib.sha256(np.array(y, dtype="<f8").tobytes()).hexdigest()[:16]
    return out


GOLDEN = {
    "joint k=2": "b035b353a1962683",
    "product k=2": "22aff3a16c1d0900",
    "joint k=3": "32906319f517ebf0",
    "product k=3": "7defea80a8198235",
    "joint k=5": "af5655cc4f35930f",
    "product k=5": "e7ad908536cf5a45",
    "round joint": "77fc8843fd46144a",
    "round product": "03a9db04a7640135",
    "round grid": "439bb94b4fb173e0",
}


def test_golden_choices() -> None:
    """A change here is a change of results for published seeds: raise STREAM_VERSION and say so in CHANGELOG.md."""
    thirds = np.full((12, 3), 1 / 3)
    assert golden_table() == GOLDEN
    assert correlated_sample(SharedKey(7), thirds).tolist() == [1, 1, 0, 1, 2, 1, 2, 1, 2, 2, 0, 2]
    assert correlated_sample(SharedKey(7), thirds, "product").tolist() == [2, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize(("threads", "hash_seed"), [("1", "0"), ("2", "12345")])
def test_choices_do_not_depend_on_threads_or_hash_seed(threads: str, hash_seed: str) -> None:
    code = "from tests.test_correlated import golden_table; import json; print(json.dumps(golden_table()))"
    env = {**os.environ, "NUMBA_NUM_THREADS": threads, "PYTHONHASHSEED": hash_seed}
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=root, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == GOLDEN


# ---------------------------------------------------------------------------------------------- the guard and refusals


def test_the_guard_says_what_to_do_and_nothing_falls_back() -> None:
    hard = np.tile([0.01, 0.99], (24, 1))
    with pytest.raises(ReprlError, match=r"^joint coupling of 24 rows passed max_nodes=30: choose 'product' instead"):
        draw(SharedKey(1), hard, max_nodes=30)


def test_the_guard_is_sharp() -> None:
    laws = np.tile([0.1, 0.9], (16, 1))
    found = draw(SharedKey(3), laws)
    assert np.array_equal(draw(SharedKey(3), laws, max_nodes=found.nodes).choice, found.choice)
    with pytest.raises(ReprlError, match=f"max_nodes={found.nodes - 1}:"):
        draw(SharedKey(3), laws, max_nodes=found.nodes - 1)


HALF = [[0.5, 0.5]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"probabilities": [[0.5, 0.5], [0.5, 0.6]]}, "probabilities[1] must sum to 1 within 1e-09, got 1.1"),
        ({"probabilities": [[0.5, 0.5], [0.0, 0.0]]}, "probabilities[1] must sum to 1 within 1e-09, got 0"),
        ({"probabilities": [[0.5, float("nan")]]}, "probabilities[0, 1] must be finite, got nan"),
        ({"probabilities": [[0.5, float("inf")]]}, "probabilities[0, 1] must be finite, got inf"),
        ({"probabilities": [[1.5, -0.5]]}, "probabilities[0, 1] must be a probability in [0, 1], got -0.5"),
        ({"probabilities": np.empty((0, 2))}, "at least one row and one column, got shape (0, 2)"),
        ({"probabilities": np.empty((2, 0))}, "at least one row and one column, got shape (2, 0)"),
        ({"probabilities": [0.5, 0.5]}, "probabilities must have 2 axes, got shape (2,)"),
        ({"probabilities": [[0.5, 0.5], [1.0]]}, "must be an array of real numbers, got [[0.5, 0.5], [1.0]]"),
        ({"probabilities": "half"}, "probabilities must be an array of real numbers, got 'half'"),
        ({"probabilities": [[0.5 + 0j, 0.5]]}, "probabilities must be an array of real numbers"),
        ({"method": "best"}, "method must be one of joint, product; got 'best'"),
        ({"method": None}, "method must be one of joint, product; got None"),
        ({"max_nodes": 0}, "max_nodes must be a whole number from 1 to"),
        ({"key": 7}, "shared key must be a reprl.SharedKey, got 7"),
        ({"key": DataStream(7, "rewards")}, "must be a reprl.SharedKey, got DataStream(7, 'rewards', run=0)"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(arguments: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"key": SharedKey(1), "probabilities": HALF, **arguments}
    with pytest.raises(ReprlError) as caught:
        correlated_sample(**call)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_extreme_settings_that_are_allowed() -> None:
    assert correlated_sample(SharedKey(1), [[1.0]])[0] == 0
    nearly = correlated_sample(SharedKey(1), [[0.5, 0.5 + 9e-10]], "product")
    assert nearly.dtype == np.int64


def test_keys_of_another_stream_version_are_refused() -> None:
    with pytest.raises(ReprlError, match="stream version must be 1 for this release of reprl, got 2"):
        SharedKey(7, stream_version=2)
    key = SharedKey(7).derive("a", 3)
    rebuild, (seed, labels, version) = key.__reduce__()
    assert np.array_equal(
        correlated_sample(pickle.loads(pickle.dumps(key)), np.full((30, 3), 1 / 3)),
        correlated_sample(key, np.full((30, 3), 1 / 3)),
    )
    with pytest.raises(ReprlError, match="got 2"):
        rebuild(seed, labels, version + 1)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([[0.5, 0.5]] * 2, "both products must have one shape, got (1, 2) and (2, 2)"),
        ([[0.5, 0.6]], "must sum to 1"),
    ],
)
def test_disagreement_bound_refuses_bad_input(second: Any, message: str) -> None:
    with pytest.raises(ReprlError) as caught:
        disagreement_bound(HALF, second)
    assert message in str(caught.value)


def test_a_long_search_can_be_interrupted() -> None:
    """A search that never ends in practice gives way to Ctrl-C."""
    code = """
import os, signal, threading
import numpy as np
import reprl
laws = np.random.default_rng(0).dirichlet(np.ones(4), 120)
reprl.correlated_sample(reprl.SharedKey(7), laws[:4])
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    reprl.correlated_sample(reprl.SharedKey(7), laws, max_nodes=2**62)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout == "interrupted\n"


def test_a_search_of_many_slices_is_one_search() -> None:
    laws = np.tile([0.9, 0.1], (50, 1))
    keys = [SharedKey(seed) for seed in range(6)]
    whole = [draw(key, laws) for key in keys]
    assert max(found.nodes for found in whole) > SLICE, "no search was long enough to be cut"
    for key, found in zip(keys, whole, strict=True):
        search, choice = make_search(50, 2), np.zeros(50, dtype=np.int64)
        penalty = np.log(laws.max(axis=1, keepdims=True)) - np.log(laws)
        begin(search, *key.words, 2)
        while search.progress[0] > 0:
            find_winner(*key.words, penalty, search, int(search.progress[1]) + 999, choice)
        assert choice.tolist() == found.choice.tolist()
        assert search.progress[1] == found.nodes


def test_the_default_guard_refuses_and_says_what_to_do() -> None:
    # 48 Dirichlet laws over 4 outcomes: the joint search did not end within an hour under the former guard of 10**9.
    assert DEFAULT_MAX_NODES == 5 * 10**7
    laws = np.random.default_rng(0).dirichlet(np.ones(4), size=48)
    with pytest.raises(ReprlError, match=r"passed max_nodes=100000: choose 'product' instead of 'joint', or allow"):
        correlated_sample(SharedKey(1), laws, max_nodes=10**5)
    assert correlated_sample(SharedKey(1), laws, "product").shape == (48,)


@pytest.mark.parametrize("kind", [np.float16, np.float32, ">f4", np.float64])
def test_laws_are_whole_within_the_precision_that_they_come_in(kind: Any) -> None:
    laws = np.random.default_rng(0).dirichlet(np.ones(5), size=30).astype(kind)
    whole = laws.astype(np.float64)
    whole /= whole.sum(axis=1, keepdims=True)
    assert np.array_equal(
        correlated_sample(SharedKey(1), laws, "product"), correlated_sample(SharedKey(1), whole, "product")
    )
    assert np.allclose(TabularMDP(laws[:5, None], np.zeros((5, 1)), laws[0], 2).initial, whole[0])
    off = laws.copy()
    off[7, 0] += kind(0.1) if isinstance(kind, type) else 0.1
    with pytest.raises(ReprlError, match=r"probabilities\[7\] must sum to 1 within"):
        correlated_sample(SharedKey(1), off)

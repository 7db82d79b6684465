"""The problems of the lower bounds: exact checkers against fractions, sources against their laws, refusals.

Statistical tests reject a right implementation with probability at most FALSE_ALARM = 1e-6 each; their seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from reprl.errors import ReprlError
from reprl.lab.lower_bounds import problems, sources
from reprl.lab.lower_bounds.simulation import PaddedSource, SignExamples
from reprl.randomness import SharedKey
from tests.statistics import FALSE_ALARM, chi_square

# ------------------------------------------------------------------------------------------------------ exact checkers


def test_sign_excess_is_the_definition_in_exact_arithmetic() -> None:
    rng = np.random.default_rng(1)
    for n in rng.integers(1, 40, 300):
        p, v = rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
        exact = sum(((1 if a >= 0 else -1) - Fraction(b)) * Fraction(a) for a, b in zip(p, v, strict=True)) / int(n)
        assert abs(problems.sign_excess(p, v) - float(exact)) < 1e-15


def test_infinity_and_coin_excess_are_the_definitions() -> None:
    rng = np.random.default_rng(2)
    for n in rng.integers(1, 30, 300):
        p, v = rng.uniform(-1, 1, n), rng.choice([-1.0, 1.0], n)
        worst = max((sign_ * 1.0 - b) * a for a, b, sign_ in zip(p, v, np.sign(p), strict=True))
        assert problems.infinity_excess(p, v) == pytest.approx(worst / 2, abs=1e-15)
        q = rng.uniform(0, 1, n)
        for epsilon in (0.01, 0.2, 0.45):
            accurate = all(
                (b == 1 or a < 0.5 + epsilon) and (b == 0 or a > 0.5 - epsilon)
                for a, b in zip(q, (v + 1) / 2, strict=True)
            )
            assert accurate == (problems.coin_excess(q, (v + 1) / 2) < epsilon)


def test_pac_excess_is_the_definition() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        d, k = int(rng.integers(1, 6)), int(rng.integers(1, 8))
        law, labels = rng.dirichlet(np.ones(2 * d)).reshape(d, 2), rng.choice([-1.0, 1.0], (k, d))

        def error(h: Any, law: Any = law) -> float:
            return float(sum(law[x, 0] if h[x] > 0 else law[x, 1] for x in range(len(h))))

        chosen = labels[int(rng.integers(k))]
        expected = error(chosen) - min(error(h) for h in labels)
        assert problems.pac_excess(law, labels, chosen) == pytest.approx(expected, abs=1e-15)


def test_the_signs_of_the_truth_are_accurate_at_every_level() -> None:
    p = np.array([0.3, -0.2, 0.0, 1.0, -1.0])
    assert problems.sign_excess(p, problems.sign(p)) == 0.0
    assert problems.infinity_excess(p, problems.sign(p)) == 0.0
    assert problems.infinity_excess(p, -problems.sign(p)) == 1.0
    assert problems.mean_excess(p, p) == 0.0
    assert problems.coin_excess((p + 1) / 2, problems.sign(p) > 0) == 0.0


# ------------------------------------------------------------------------------------------------------------- sources

BIASES = np.array([0.0, 0.5, -0.9, 1.0, -1.0, 0.1])


def plus_counts(draw: Callable[[sources.ProductSource], Any]) -> Any:
    return np.array([draw(sources.rademacher(BIASES, seed)) for seed in range(4000)])


@pytest.mark.statistical
@pytest.mark.parametrize("how", ["tally", "uneven", "vectors"])
def test_product_source_has_its_law(how: str) -> None:
    sizes = np.array([7, 7, 7, 7, 7, 7] if how != "uneven" else [7, 3, 5, 0, 1, 6])
    counts = plus_counts(
        lambda s: s.vectors(7).sum(axis=0) if how == "vectors" else s.count(7 if how == "tally" else sizes)
    )

    def p_value(biases: Any) -> float:
        rows = []
        for i, size in enumerate(sizes):
            law = stats.binom.pmf(np.arange(size + 1), size, (1 + biases[i]) / 2)
            rows.append((np.bincount(counts[:, i], minlength=size + 1), law))
        return chi_square(rows)

    assert p_value(BIASES) > FALSE_ALARM
    wrong = BIASES + np.array([0.1, 0, 0, 0, 0, 0])
    assert p_value(wrong) < FALSE_ALARM


@pytest.mark.statistical
def test_coordinates_of_a_vector_are_independent() -> None:
    drawn = sources.rademacher(BIASES[:2], 5).vectors(40_000)
    law = np.outer([0.5, 0.5], [0.25, 0.75]).reshape(-1)
    assert chi_square([(np.bincount(drawn @ [2, 1], minlength=4), law)]) > FALSE_ALARM
    tied = np.stack([drawn[:, 1], drawn[:, 1]], axis=1)
    assert chi_square([(np.bincount(tied @ [2, 1], minlength=4), law)]) < FALSE_ALARM


@pytest.mark.statistical
def test_labelled_source_has_its_law() -> None:
    law = np.array([[0.1, 0.2], [0.0, 0.3], [0.35, 0.05]])
    counts = sources.LabelledSource(law, 3).count(10**9).reshape(-1)
    assert chi_square([(counts, law.reshape(-1))]) > FALSE_ALARM
    assert chi_square([(counts, np.array([0.1, 0.2, 0.0, 0.3, 0.3501, 0.0499]))]) < FALSE_ALARM


@pytest.mark.statistical
def test_padded_source_has_the_permuted_law() -> None:
    order = np.array([4, 0, 5, 3, 1, 2])
    p = np.array([0.3, -0.6])
    padded = np.array([0.3, -0.6, 0.5, 0.5, -0.5, -0.5])
    for how in ("tally", "vectors"):
        base = sources.rademacher(p, 11)
        view = PaddedSource(base, order, 0.5)
        plus = view.count(30_000) if how == "tally" else view.vectors(30_000).sum(axis=0)
        assert base.samples == view.samples == 30_000

        def p_value(biases: Any, plus: Any = plus) -> float:
            return chi_square(
                [([30_000 - k, k], [(1 - b) / 2, (1 + b) / 2]) for k, b in zip(plus, biases, strict=True)]
            )

        assert p_value(padded[order]) > FALSE_ALARM
        assert p_value(padded) < FALSE_ALARM


@pytest.mark.statistical
def test_sign_examples_have_the_uniform_law_and_use_the_busiest_point() -> None:
    p = np.array([0.4, -0.8, 0.0])
    base = sources.rademacher(p, 1)
    view = SignExamples(base, np.array([3, 0, 4]), 5)
    counts = view.count(200_000)
    law = np.zeros((5, 2))
    law[[3, 0, 4]] = np.stack([(1 - p) / 6, (1 + p) / 6], axis=1)
    assert chi_square([(counts.reshape(-1), law.reshape(-1))]) > FALSE_ALARM
    assert chi_square([(counts[::-1].reshape(-1), law.reshape(-1))]) < FALSE_ALARM
    assert base.samples == counts.sum(axis=1).max()
    assert view.samples == 200_000


def test_every_sample_is_counted_and_no_draw_repeats() -> None:
    source = sources.rademacher(np.zeros(3), 1)
    first, second = source.count(10**12), source.count(10**12)
    assert source.samples == 2 * 10**12
    assert not np.array_equal(first, second)
    source.vectors(5)
    source.count([1, 9, 4])
    assert source.samples == 2 * 10**12 + 14
    assert np.array_equal(sources.rademacher(np.zeros(3), 1).count(10**12), first)
    assert source.stream("a").key != source.stream("a").key


def test_cube_instances_fill_the_cube() -> None:
    p = problems.cube_instance(4000, 0.3, SharedKey(1))
    assert stats.kstest(p / 0.3, "uniform", args=(-1, 2)).pvalue > FALSE_ALARM
    assert stats.kstest(p / 0.33, "uniform", args=(-1, 2)).pvalue < FALSE_ALARM


# ------------------------------------------------------------------------------------------------------------ refusals

BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: sources.rademacher([0.5, 1.5], 1), r"biases\[1\] must lie in \[-1, 1\], got 1.5"),
    (lambda: sources.rademacher([], 1), "biases must have at least one coordinate, got an empty vector"),
    (lambda: sources.rademacher([0.5, float("nan")], 1), r"biases\[1\] must be finite, got nan"),
    (lambda: sources.rademacher("half", 1), "biases must be an array of real numbers, got 'half'"),
    (lambda: sources.rademacher([0.5], -1), "data seed must be a whole number from 0 to .*, got -1"),
    (lambda: sources.coins([-0.1], 1), r"probabilities\[0\] must lie in \[0, 1\], got -0.1"),
    (lambda: sources.rademacher([0.5], 1).count(0), "sizes must be a whole number from 1 to .*, got 0"),
    (lambda: sources.rademacher([0.5], 1).count([1, 2]), "sizes must be a whole number or 1 whole numbers, got"),
    (lambda: sources.rademacher([0.5], 1).count([-1]), r"sizes must lie in \[0, 2\*\*62\] and not all be 0, got -1"),
    (lambda: sources.rademacher([0.5], 1).vectors(0), "m must be a whole number from 1 to .*, got 0"),
    (lambda: sources.LabelledSource([[0.5, 0.6]], 1), "law must sum to 1 within 1e-09, got 1.1"),
    (lambda: sources.LabelledSource([[0.5, 0.25, 0.25]], 1), r"law must have shape \(D, 2\)"),
    (lambda: sources.LabelledSource([[0.5, 0.5]], 1).count("5"), "m must be a whole number from 1 to .*, got '5'"),  # type: ignore[arg-type]
    (lambda: problems.sign_excess([0.5], [1.0, 1.0]), "answer must have 1 coordinates, got 2"),
    (lambda: problems.sign_excess([0.5], [2.0]), r"answer must lie in \[-1, 1\], got 2"),
    (lambda: problems.infinity_excess([0.5], [0.5]), "answer must consist of −1 and \\+1, got 0.5"),
    (lambda: problems.coin_excess([0.5], [0.5]), "answer must be a vector of 0 and 1, got 0.5"),
    (lambda: problems.pac_excess([[0.5, 0.5]], [[0.0]], [1.0]), "hypotheses must consist of −1 and \\+1, got 0"),
    (lambda: problems.pac_excess([[0.5, 0.5]], [[1.0, 1.0]], [1.0]), r"hypotheses must have shape \(K, 1\)"),
    (lambda: problems.cube_instance(3, 1.5, SharedKey(1)), r"half_width must lie in \(0, 1\], got 1.5"),
    (lambda: problems.cube_instance(3, 0.5, 7), "shared key must be a reprl.SharedKey, got 7"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_refused_with_one_line(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ReprlError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)

"""Tests of a law from seeded draws. Every use has a false-alarm rate of 1e-6 and a negative control beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

FALSE_ALARM = 1e-6
"""The chance that a test rejects a law that is right."""

_SMALLEST_CELL = 10.0


def chi_square(rows: Iterable[tuple[ArrayLike, ArrayLike]]) -> float:
    """p-value that each row of counts is a multinomial draw from its law, all rows together.

    Cells with an expected count below 10 are pooled, smallest first. A count where the law has no mass gives 0.
    """
    statistic, freedom = 0.0, 0
    for row, weights in rows:
        counts, law = np.asarray(row, dtype=float), np.asarray(weights, dtype=float)
        assert counts.shape == law.shape
        assert abs(law.sum() - 1.0) < 1e-6, "the law must be whole"
        if counts[law <= 0.0].any():
            return 0.0
        counts, law = counts[law > 0.0], law[law > 0.0]
        expected = law * counts.sum()
        order = np.argsort(expected, kind="stable")
        counts, expected = counts[order], expected[order]
        reached = np.cumsum(expected) >= _SMALLEST_CELL
        pooled = int(np.argmax(reached)) + 1 if reached.any() else expected.size
        counts = np.concatenate([[counts[:pooled].sum()], counts[pooled:]])
        expected = np.concatenate([[expected[:pooled].sum()], expected[pooled:]])
        statistic += float(((counts - expected) ** 2 / expected).sum())
        freedom += counts.size - 1
    assert freedom > 0, "nothing to test: every law is a point or all cells were pooled"
    return float(stats.chi2.sf(statistic, freedom))


def chi_square_of(tally: Mapping[Any, int], law: Mapping[Any, float]) -> float:
    """p-value that a tally of outcomes comes from a law of outcomes, whatever the outcomes are."""
    outcomes = list(dict.fromkeys([*law, *tally]))
    return chi_square([([tally.get(x, 0) for x in outcomes], [law.get(x, 0.0) for x in outcomes])])


def exceeds(hits: int, trials: int, probability: float) -> float:
    """p-value that hits of trials happened although each has at most this probability."""
    return float(stats.binomtest(hits, trials, probability, alternative="greater").pvalue)


def power(trials: int, bound: float, other: float | None = None) -> float:
    """Chance that ``exceeds`` rejects a bound, at the false-alarm rate, if the probability is another one.

    None for twice the bound, or half-way from the bound to 1 where that is less.
    """
    truth = min(2.0 * bound, (1.0 + bound) / 2.0) if other is None else other
    fewest = int(stats.binom.isf(FALSE_ALARM, trials, bound)) + 1  # so many hits have a p-value of at most FALSE_ALARM
    return float(stats.binom.sf(fewest - 1, trials, truth))


def keeps(hits: int, trials: int, bound: float, *, power: float, finds: float | None = None) -> bool:
    """Whether hits of trials are no evidence against a bound.

    Args:
        hits: how often what the bound speaks of happened.
        trials: of how many.
        bound: of its probability.
        power: at twice the bound. It is written where the test is, and checked: a test of too few trials cannot pass
            for a strong one.
        finds: where that is small, a probability that the test rejects nine times of ten; checked as well.
    """
    actual = _power(trials, bound)
    assert actual >= power, f"{trials} trials have power {actual:.4f} at twice {bound:g}, not {power}"
    assert power >= 0.5 or finds is not None, "a weak test must say what it does find"
    if finds is not None:
        actual = _power(trials, bound, finds)
        assert actual >= 0.9, f"{trials} trials have power {actual:.4f} at {finds:g}, not 0.9"
    return exceeds(hits, trials, bound) > FALSE_ALARM


_power = power

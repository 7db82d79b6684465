"""Mechanisms: the laws themselves, what they never do, and how far two runs' laws can part."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.mechanisms import Selection, compact, exponential
from reprl.errors import ReprlError
from tests import naive_coupling as naive

Scores = NDArray[np.float64]
Mechanism = Callable[[ArrayLike], Selection]


def moved(selection: Selection, eta: Any) -> float:
    """How far its law moves with scores, at most."""
    assert selection.total_variation is not None
    return selection.total_variation(eta)


def compact_half(scores: ArrayLike) -> Selection:
    return compact(scores, epsilon=0.5)


def exponential_warm(scores: ArrayLike) -> Selection:
    return exponential(scores, epsilon=0.5, delta=0.1, temperature=6.0)


def exponential_paper(scores: ArrayLike) -> Selection:
    return exponential(scores, epsilon=0.5, delta=0.1)


ALL = pytest.mark.parametrize("mechanism", [compact_half, exponential_warm, exponential_paper])

# Multiples of 1/8 make ties, gaps of exactly ε = 0.5 and exact sums.
eighths = st.integers(-16, 16).map(lambda i: i / 8.0)


@st.composite
def score_tables(
    draw: Callable[..., Any], entry: st.SearchStrategy[float], n_max: int = 3, k_max: int = 4, k_min: int = 1
) -> Scores:
    n, k = draw(st.integers(1, n_max)), draw(st.integers(k_min, k_max))
    return np.array(draw(st.lists(entry, min_size=n * k, max_size=n * k)), dtype=float).reshape(n, k)


# ---------------------------------------------------------------------------------------------- one run


@ALL
@given(score_tables(st.floats(-1e6, 1e6) | eighths, 5, 5))
@settings(deadline=None)
def test_rows_are_laws_that_favour_better_arms(mechanism: Mechanism, scores: Scores) -> None:
    p = mechanism(scores).probabilities
    assert p.shape == scores.shape
    assert (p >= 0.0).all()
    assert np.allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    for row, law in zip(scores, p, strict=True):
        order = np.argsort(row, kind="stable")
        assert (np.diff(law[order]) >= -1e-15).all()


@ALL
@given(score_tables(eighths, 4, 5), st.data())
@settings(deadline=None)
def test_a_constant_added_to_a_row_and_an_order_of_arms_do_not_matter(
    mechanism: Mechanism, scores: Scores, data: st.DataObject
) -> None:
    n, k = scores.shape
    p = mechanism(scores).probabilities
    shift = np.array(data.draw(st.lists(eighths, min_size=n, max_size=n)))[:, None]
    assert np.array_equal(mechanism(scores + shift).probabilities, p)  # eighths add exactly
    order = data.draw(st.permutations(range(k)))
    assert np.allclose(mechanism(scores[:, order]).probabilities, p[:, order], rtol=1e-14, atol=0.0)
    rows = data.draw(st.permutations(range(n)))
    assert np.array_equal(mechanism(scores[rows]).probabilities, p[rows])


@given(score_tables(eighths | st.floats(-3.0, 3.0), 4, 5), st.sampled_from([0.125, 0.5, 1.0, 0.3]))
@settings(max_examples=300, deadline=None)
def test_compact_never_picks_an_arm_epsilon_below_the_best(scores: Scores, epsilon: float) -> None:
    selection = compact(scores, epsilon=epsilon)
    gap = scores.max(axis=1, keepdims=True) - scores
    assert (selection.probabilities[gap >= epsilon] == 0.0).all()
    assert (selection.probabilities[gap < 0.999 * epsilon] > 0.0).all()
    assert (selection.loss, selection.failure) == (epsilon, 0.0)


def test_compact_values() -> None:
    p = compact([[1.0, 0.75, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]], epsilon=0.5).probabilities
    assert p[0] == pytest.approx([0.4, 0.2, 0.0, 0.4])  # weights 1, sin²(π/4), 0, 1
    assert p[1] == pytest.approx([0.25] * 4)


def test_exponential_values() -> None:
    p = exponential([[math.log(2.0), math.log(6.0)]], epsilon=1.0, delta=0.1, temperature=1.0).probabilities
    assert p[0] == pytest.approx([0.25, 0.75])
    papers = exponential([[0.1, 0.0, 0.0]] * 4, epsilon=0.5, delta=0.1).probabilities
    assert np.log(papers[:, 0] / papers[:, 1]) == pytest.approx(0.1 * 2 * math.log(360.0) / 0.5)  # 360 = 3·4·3/0.1
    selection = exponential(np.zeros((4, 3)), epsilon=0.5, delta=0.1)
    assert selection.loss == pytest.approx(0.25)
    assert selection.failure == pytest.approx(0.1 / 3)


@given(
    score_tables(eighths | st.floats(-1.0, 1.0), 5, 5),
    st.sampled_from([0.05, 0.3, 2.0]),
    st.sampled_from([1e-6, 0.1, 0.9]),
    st.sampled_from([None, 0.5, 5.0, 50.0]),
)
@settings(max_examples=500, deadline=None)
def test_exponential_loses_more_than_its_loss_with_at_most_its_failure(
    scores: Scores, epsilon: float, delta: float, temperature: float | None
) -> None:
    selection = exponential(scores, epsilon=epsilon, delta=delta, temperature=temperature)
    far = scores.max(axis=1, keepdims=True) - scores > selection.loss
    failure = naive.any_fails((selection.probabilities * far).sum(axis=1))
    assert failure <= selection.failure + 1e-12
    if temperature is None:
        assert selection.loss == pytest.approx(epsilon / 2)


def test_the_loss_of_exponential_is_not_idle() -> None:
    """Negative control: a loss four times smaller would be missed by the same sum."""
    scores = np.zeros((6, 5))
    scores[:, 0] = 0.1
    selection = exponential(scores, epsilon=0.5, delta=0.1)
    far = scores.max(axis=1, keepdims=True) - scores > selection.loss / 4
    assert naive.any_fails((selection.probabilities * far).sum(axis=1)) > selection.failure


# ---------------------------------------------------------------------------------------------- two runs


@st.composite
def perturbed(draw: Callable[..., Any]) -> tuple[Scores, Scores, Scores]:
    """Scores, the other run's scores, and a bound on their difference: random, or all at ±η in some pattern."""
    entry = eighths | st.floats(-1.0, 1.0) | st.sampled_from([0.0, 0.499999, -0.499999])
    scores: Scores = draw(score_tables(entry, 3, 4))
    n, k = scores.shape
    size = draw(st.sampled_from([1e-9, 1e-4, 0.01, 0.05, 0.2]))
    shape = draw(st.sampled_from([(1, 1), (n, 1), (n, k)]))
    bound = size * np.array(draw(st.lists(st.floats(0.1, 1.0), min_size=n * k, max_size=n * k))).reshape(n, k)
    eta = np.broadcast_to(bound[: shape[0], : shape[1]], (n, k))
    signs = st.sampled_from([-1.0, 1.0]) if draw(st.booleans()) else st.floats(-1.0, 1.0)
    pattern = np.array(draw(st.lists(signs, min_size=n * k, max_size=n * k))).reshape(n, k)
    return scores, scores + eta * pattern, eta


@ALL
@given(perturbed())
@settings(max_examples=700, deadline=None)
def test_laws_of_two_runs_are_no_further_apart_than_promised(
    mechanism: Mechanism, case: tuple[Scores, Scores, Scores]
) -> None:
    first, second, eta = case
    one, two = mechanism(first), mechanism(second)
    exact = naive.total_variation(one.probabilities, two.probabilities)
    slack = 1e-12  # adding η to a score rounds
    assert exact <= moved(one, eta) * (1.0 + 1e-9) + slack
    assert exact <= moved(two, eta) * (1.0 + 1e-9) + slack
    assert moved(one, float(eta.max())) >= moved(one, eta) * (1.0 - 1e-12)
    assert moved(one, eta.max(axis=1)) >= moved(one, eta) * (1.0 - 1e-12)


@pytest.mark.parametrize("mechanism", [compact_half, exponential_warm, exponential_paper])
def test_adversarial_signs_on_ties_and_edges(mechanism: Mechanism) -> None:
    """Every ±η pattern over ties, over the edge of the compact window, and over a slope."""
    for base in ([0.0, 0.0, 0.0], [0.0, -0.5, -0.5], [0.0, -0.25, -0.49], [0.0, -0.25, -0.25]):
        for eta in (1e-3, 0.02, 0.1):
            for bits in range(64):
                signs = np.array([1.0 if bits >> i & 1 else -1.0 for i in range(6)]).reshape(2, 3)
                first = np.tile(base, (2, 1))
                one, two = mechanism(first), mechanism(first + eta * signs)
                exact = naive.total_variation(one.probabilities, two.probabilities)
                assert exact <= moved(one, eta) + 1e-12


@pytest.mark.parametrize(("mechanism", "share"), [(compact_half, 0.2), (exponential_warm, 0.3)])
def test_the_promise_is_not_idle(mechanism: Mechanism, share: float) -> None:
    """Negative control: some perturbation reaches a fair share of the bound, so a bound divided by five would fail."""
    reached = 0.0
    for base in ([0.0, 0.0], [0.0, -0.25]):
        one = mechanism([base])
        for signs in ([1.0, -1.0], [-1.0, 1.0], [0.0, 1.0]):
            two = mechanism(np.array([base]) + 0.01 * np.array([signs]))
            exact = naive.total_variation(one.probabilities, two.probabilities)
            reached = max(reached, exact / moved(one, 0.01))
    assert share < reached <= 1.0


@ALL
def test_no_perturbation_no_distance(mechanism: Mechanism) -> None:
    selection = mechanism([[0.0, 0.3], [0.1, 0.1]])
    assert moved(selection, 0.0) == 0.0
    assert moved(selection, 100.0) <= 1.0
    assert moved(mechanism([[0.4], [0.1]]), 5.0) == 0.0  # one arm is no choice


def test_extreme_temperatures() -> None:
    cold = exponential([[0.0, 1.0], [1.0, 1.0]], epsilon=1.0, delta=0.1, temperature=1e200)
    assert np.array_equal(cold.probabilities, [[0.0, 1.0], [0.5, 0.5]])
    assert moved(cold, 0.0) == 0.0
    assert moved(cold, 1.0) == 1.0


# ---------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compact([[0.0, math.nan]], epsilon=0.1), "scores[0, 1] must be finite, got nan"),
        (lambda: compact([0.0, 1.0], epsilon=0.1), "scores must have 2 axes, got shape (2,)"),
        (lambda: compact(np.empty((0, 3)), epsilon=0.1), "at least one row and one column, got shape (0, 3)"),
        (lambda: compact(np.empty((3, 0)), epsilon=0.1), "at least one row and one column, got shape (3, 0)"),
        (lambda: compact([[0.0]], epsilon=0.0), "epsilon must lie in (0, inf), got 0.0"),
        (lambda: compact([[0.0]], epsilon=math.nan), "epsilon must lie in (0, inf), got nan"),
        (lambda: compact([["a"]], epsilon=0.1), "scores must be an array of real numbers, got [['a']]"),
        (lambda: exponential([[0.0]], epsilon=-1.0, delta=0.1), "epsilon must lie in (0, inf), got -1.0"),
        (lambda: exponential([[0.0]], epsilon=1.0, delta=1.0), "delta must lie in (0, 1), got 1.0"),
        (lambda: exponential([[0.0]], epsilon=1.0, delta=0.1, temperature=0.0), "temperature must lie in (0, inf)"),
        (lambda: exponential([[0.0]], epsilon=5e-324, delta=0.1), "temperature must lie in (0, inf), got inf"),
        (lambda: moved(compact_half([[0.0, 1.0]]), -0.1), "perturbation must not be negative, got -0.1"),
        (lambda: moved(compact_half([[0.0, 1.0]]), math.nan), "must be finite, got nan"),
        (lambda: moved(compact_half([[0.0, 1.0]]), [0.1, 0.1, 0.1]), "got (3, 1)"),
        (lambda: moved(exponential_warm([[0.0, 1.0]]), [[0.1, 0.1, 0.1]]), "one per arm (1, 2), got (1, 3)"),
        (lambda: moved(exponential_warm([[0.0, 1.0]]), -1.0), "perturbation must not be negative, got -1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ReprlError) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)

"""round_vector: distance, lattice, the disagreement of two runs, and refusals. False alarms: 1e-6 a test."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from reprl.coupling.correlated import disagreement_bound
from reprl.coupling.rounding import ROUNDINGS, round_vector, rounding_bound
from reprl.errors import ReprlError
from reprl.randomness import DataStream, SharedKey
from tests import naive_coupling as naive
from tests.statistics import FALSE_ALARM, exceeds, keeps

Vector = NDArray[np.float64]


def keys(purpose: str, number: int) -> list[SharedKey]:
    """Fresh shared keys, one per pair of runs."""
    root = SharedKey(20250802).derive(purpose)
    return [root.derive(i) for i in range(number)]


def apart(
    first: Vector, second: Vector, one: list[SharedKey], two: list[SharedKey], method: str, width: float = 1.0
) -> int:
    """In how many pairs of runs the rounded vectors differ anywhere."""
    return sum(
        not np.array_equal(
            round_vector(a, first, width=width, method=method),
            round_vector(b, second, width=width, method=method),
        )
        for a, b in zip(one, two, strict=True)
    )


# ---------------------------------------------------------------------------------------------- one run

values = st.floats(-1e3, 1e3) | st.integers(-20, 20).map(float) | st.sampled_from([0.0, -0.0, 0.5, -1e-18, 1e-300])
widths = st.sampled_from([1.0, 0.1, 0.25, 3.0, 1e-3]) | st.floats(1e-3, 1e3)


@settings(max_examples=400, deadline=None)
@given(st.lists(values, min_size=1, max_size=8), widths, st.sampled_from(ROUNDINGS), st.integers(0, 2**32))
def test_values_stay_within_one_width_and_on_the_lattice(x: list[float], width: float, method: str, seed: int) -> None:
    key = SharedKey(seed)
    y = round_vector(key, x, width=width, method=method)
    slack = 1e-15 * (np.abs(x) + width) * 8
    limit = width / 2 if method == "grid" else width
    assert (np.abs(y - np.array(x)) <= limit + slack).all()
    index = y / width - (0.5 + key.uniforms(len(x)) if method == "grid" else 0.0)
    assert np.abs(index - np.rint(index)).max() <= 1e-9
    if method != "grid":
        assert np.array_equal(width * np.rint(index), y), "a lattice point has one exact value"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=8), st.sampled_from(ROUNDINGS[:2]), st.integers(0, 2**32))
def test_lattice_points_stay_put(index: list[int], method: str, seed: int) -> None:
    x = 0.25 * np.array(index)
    assert np.array_equal(round_vector(SharedKey(seed), x, width=0.25, method=method), x)


@pytest.mark.statistical
@pytest.mark.parametrize("method", ROUNDINGS[:2])
@pytest.mark.parametrize("x", [0.3, 1.3, -0.7, -1.7, 0.9])
def test_a_coordinate_goes_up_with_the_sine_squared(method: str, x: float) -> None:
    trials = 4000
    up = sum(round_vector(key, [x], width=1.0, method=method)[0] > x for key in keys(f"up-{method}-{x}", trials))
    law = math.sin(0.5 * math.pi * (x - math.floor(x))) ** 2
    assert stats.binomtest(up, trials, law).pvalue > FALSE_ALARM
    assert stats.binomtest(up, trials, x - math.floor(x)).pvalue < FALSE_ALARM  # negative control: linear rounding


@pytest.mark.statistical
def test_the_grid_is_shifted_uniformly() -> None:
    offset = [float(round_vector(key, [0.3], width=1.0, method="grid")[0]) - 0.3 for key in keys("shift", 3000)]
    assert stats.kstest(np.array(offset) + 0.5, "uniform").pvalue > FALSE_ALARM
    assert stats.kstest(np.array(offset) + 0.6, "uniform").pvalue < FALSE_ALARM


# ---------------------------------------------------------------------------------------------- two runs


def pair(n: int, where: str, distance: float) -> tuple[Vector, Vector]:
    """Two vectors at ‖Δ‖₂ = distance: anywhere, or with every coordinate on both sides of a lattice point."""
    rng = np.random.default_rng([n, len(where)])
    turn = rng.normal(size=n)
    move = distance * turn / np.linalg.norm(turn)
    if where == "straddling":
        middle = rng.integers(-3, 4, n).astype(float)
        return middle - 0.5 * move, middle + 0.5 * move
    if where == "leaning":
        middle = rng.integers(-3, 4, n).astype(float)
        return middle - 0.05 * move, middle + 0.95 * move
    middle = rng.integers(-3, 4, n) + rng.uniform(0.25, 0.75, n)
    return middle - 0.5 * move, middle + 0.5 * move


@pytest.mark.statistical
@pytest.mark.parametrize("where", ["anywhere", "straddling", "leaning"])
@pytest.mark.parametrize("n", [1, 2, 5, 10, 20, 40])
def test_joint_rounding_parts_two_runs_no_more_than_promised(n: int, where: str) -> None:
    first, second = pair(n, where, 0.1)
    trials = 1500 if n <= 20 else 400
    shared = keys(f"joint-{n}-{where}", trials)
    bound = rounding_bound(second - first, width=1.0)
    assert bound == pytest.approx(0.1 * math.pi)
    assert keeps(apart(first, second, shared, shared, "joint"), trials, bound, power=0.99)
    if where == "anywhere" and n >= 5:  # negative control; at a lattice point even strangers agree
        alone = apart(first, second, shared, keys(f"alone-{n}", trials), "joint")
        assert exceeds(alone, trials, bound) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["product", "grid"])
@pytest.mark.parametrize("where", ["anywhere", "straddling", "leaning"])
def test_other_methods_keep_their_promises(method: str, where: str) -> None:
    first, second = pair(10, where, 0.05)
    trials = 2000
    shared = keys(f"{method}-{where}", trials)
    bound = rounding_bound(second - first, width=1.0, method=method)
    assert bound < 0.5
    assert keeps(apart(first, second, shared, shared, method), trials, bound, power=0.99)
    if where == "anywhere":
        alone = apart(first, second, shared, keys(f"{method}-alone", trials), method)
        assert exceeds(alone, trials, bound) < FALSE_ALARM


@pytest.mark.statistical
def test_grid_parts_two_runs_exactly_as_often_as_it_says() -> None:
    shared = keys("grid", 4000)
    hits = apart(np.array([0.2]), np.array([0.4]), shared, shared, "grid")
    assert stats.binomtest(hits, 4000, 0.2).pvalue > FALSE_ALARM
    assert stats.binomtest(hits, 4000, 0.25).pvalue < FALSE_ALARM


@pytest.mark.statistical
def test_joint_is_flat_in_n_and_product_grows_like_its_root() -> None:
    """At ‖Δ‖₂ = 0.05 and cells entered in the middle: product's rate is 1 − (1 − TV)ⁿ, joint's stays below 0.157."""
    trials, distance = 3000, 0.05
    hits = {}
    for method in ("joint", "product"):
        for n in (1, 36):
            move = np.full(n, 0.5 * distance / math.sqrt(n))
            shared = keys(f"flat-{method}-{n}", trials)
            hits[method, n] = apart(0.5 - move, 0.5 + move, shared, shared, method)
    table = np.array([[hits["product", n], trials - hits["product", n]] for n in (1, 36)])
    assert stats.fisher_exact(table, alternative="less").pvalue < FALSE_ALARM
    assert stats.fisher_exact(table[::-1], alternative="less").pvalue > FALSE_ALARM  # negative control
    bound = rounding_bound(np.full(36, distance / 6.0), width=1.0)
    assert bound == pytest.approx(math.pi * distance)
    assert keeps(hits["joint", 36], trials, bound, power=1)
    assert exceeds(hits["product", 36], trials, bound) < FALSE_ALARM
    both = np.array([[hits[method, 36], trials - hits[method, 36]] for method in ("joint", "product")])
    assert stats.fisher_exact(both, alternative="less").pvalue < FALSE_ALARM
    for n in (1, 36):
        tv = math.sin(0.5 * math.pi * distance / math.sqrt(n))
        assert stats.binomtest(hits["product", n], trials, 1.0 - (1.0 - tv) ** n).pvalue > FALSE_ALARM


# ---------------------------------------------------------------------------------------------- the bound


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-2.0, 2.0), st.floats(-1.0, 1.0)), min_size=1, max_size=6),
    st.sampled_from([1.0, 1e-3, 1e-6, 1e-9]),
    st.sampled_from(["joint", "product"]),
)
def test_rounding_bound_is_above_the_exact_disagreement_within_a_cell(
    points: list[tuple[float, float]], scale: float, method: str
) -> None:
    """Inside one cell the exact laws are known, so the exact distance is."""
    fraction = np.clip(np.array([f for f, _ in points]) % 1.0, 0.01, 0.99)
    moved = np.clip(fraction + scale * np.array([d for _, d in points]), 0.0, 1.0)
    bound = rounding_bound(moved - fraction, width=1.0, method=method)

    def laws(f: Vector) -> Vector:
        up = np.sin(0.5 * math.pi * f) ** 2
        return np.stack([1.0 - up, up], axis=1)

    size = {"joint": len(points), "product": 1}[method]
    one, two = laws(fraction), laws(moved)
    exact = naive.any_fails(
        [
            (naive.total_variation if method == "product" else naive.coupling_bound)(
                one[c : c + size], two[c : c + size]
            )
            for c in range(0, len(points), size)
        ]
    )
    assert exact <= bound * (1.0 + 1e-9) + 1e-15
    assert disagreement_bound(one, two, method) <= 1.0


def test_rounding_bound_values() -> None:
    gap = [0.03, -0.04, 0.0]
    assert rounding_bound(gap, width=1.0) == pytest.approx(0.05 * math.pi)
    assert rounding_bound(gap, width=2.0) == pytest.approx(0.025 * math.pi)
    assert rounding_bound(gap, width=1.0, method="product") == pytest.approx(0.035 * math.pi)
    assert rounding_bound(gap, width=1.0, method="grid") == pytest.approx(0.07)
    for method in ROUNDINGS:
        assert rounding_bound([0.0, 0.0], width=1.0, method=method) == 0.0
        assert rounding_bound([5.0, 0.0], width=1.0, method=method) == 1.0
        assert rounding_bound([1e-200], width=1e-200, method=method) == 1.0
        assert rounding_bound([1e300], width=1e-300, method=method) == 1.0


# ---------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0.0}, "width must lie in (0, inf), got 0.0"),
        ({"width": -1.0}, "width must lie in (0, inf), got -1.0"),
        ({"width": math.nan}, "width must lie in (0, inf), got nan"),
        ({"width": math.inf}, "width must lie in (0, inf), got inf"),
        ({"width": "1"}, "width must lie in (0, inf), got '1'"),
        ({"x": [1e20], "width": 1e-3}, "width must exceed max|x|/2**52 = 22204.5, got 0.001"),
        ({"x": [1e300], "width": 1e-300}, "got 1e-300"),
        ({"x": [math.nan]}, "x[0] must be finite, got nan"),
        ({"x": [0.0, -math.inf]}, "x[1] must be finite, got -inf"),
        ({"x": []}, "x must have at least one coordinate, got an empty vector"),
        ({"x": [[0.5]]}, "x must have 1 axes, got shape (1, 1)"),
        ({"x": 0.5}, "x must have 1 axes, got shape ()"),
        ({"x": ["a"]}, "x must be an array of real numbers, got ['a']"),
        ({"method": "tiles"}, "method must be one of joint, product, grid; got 'tiles'"),
        ({"key": 7}, "shared key must be a reprl.SharedKey, got 7"),
        ({"key": DataStream(7, "x")}, "shared key must be a reprl.SharedKey, got DataStream(7, 'x', run=0)"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"key": SharedKey(1), "x": [0.5], "width": 1.0, **arguments}
    with pytest.raises(ReprlError) as caught:
        round_vector(call.pop("key"), call.pop("x"), **call)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_guard_reaches_the_caller() -> None:
    x = np.full(24, 0.94)
    with pytest.raises(ReprlError, match=r"^joint coupling of 24 rows passed max_nodes=30"):
        round_vector(SharedKey(1), x, width=1.0, max_nodes=30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"difference": [math.nan]}, "difference[0] must be finite, got nan"),
        ({"difference": 0.1}, "difference must have 1 axes, got shape ()"),
        ({"width": 0}, "width must lie in (0, inf), got 0"),
        ({"method": "tiles"}, "got 'tiles'"),
    ],
)
def test_rounding_bound_refuses_bad_input(arguments: dict[str, Any], message: str) -> None:
    call: dict[str, Any] = {"difference": [0.1], "width": 1.0, **arguments}
    with pytest.raises(ReprlError) as caught:
        rounding_bound(call.pop("difference"), **call)
    assert message in str(caught.value)

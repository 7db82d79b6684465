"""statistical_query: the plan, accuracy, the same number twice, and refusals. False alarms: 1e-6 a test."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from reprl.coupling.statistical_query import plan_statistical_query, statistical_query
from reprl.errors import ReprlError
from reprl.randomness import DataStream, SharedKey
from tests.statistics import FALSE_ALARM, exceeds, keeps

PLAN = {"tolerance": 0.1, "rho": 0.2, "delta": 0.1}


def keys(purpose: str, number: int) -> list[SharedKey]:
    root = SharedKey(20250804).derive(purpose)
    return [root.derive(i) for i in range(number)]


def coin(p: float, *address: int) -> Callable[[int], NDArray[np.float64]]:
    rng = np.random.default_rng(address)
    return lambda n: (rng.random(n) < p).astype(float)


def test_the_plan_is_the_written_formula() -> None:
    plan = plan_statistical_query(**PLAN)
    c = 2 * 0.2 * math.sqrt(math.log(20.0))
    assert plan.draws == math.ceil((1 + c) ** 2 / (8 * 0.02**2))
    assert plan.width == pytest.approx(0.2 / (1 + c))
    assert (plan.guarantee.rho, plan.guarantee.delta, plan.guarantee.epsilon) == (0.2, 0.1, 0.1)
    assert plan.guarantee.status == "proven"


def test_the_plan_is_what_is_drawn() -> None:
    sizes = []

    def draw(n: int) -> list[float]:
        sizes.append(n)
        return [0.5] * n

    statistical_query(SharedKey(1), draw, **PLAN)
    assert sizes == [plan_statistical_query(**PLAN).draws]


def test_the_error_of_a_perfect_sample_is_half_a_cell_at_most() -> None:
    width = plan_statistical_query(**PLAN).width
    errors = [abs(statistical_query(key, lambda n: np.full(n, 0.3), **PLAN) - 0.3) for key in keys("exact", 300)]
    assert max(errors) <= width / 2 * (1 + 1e-12)
    assert max(errors) > 0.45 * width  # the shift moves over the whole cell


@pytest.mark.statistical
@pytest.mark.parametrize("p", [0.5, 0.05, 1.0])
def test_the_answer_is_as_accurate_as_promised(p: float) -> None:
    trials = 2000
    found = np.array([statistical_query(key, coin(p, 1, i), **PLAN) for i, key in enumerate(keys(f"near-{p}", trials))])
    assert keeps(int((np.abs(found - p) > 0.1).sum()), trials, 0.1, power=0.99)
    assert exceeds(int((np.abs(found - p) > 0.03).sum()), trials, 0.1) < FALSE_ALARM  # negative control


@pytest.mark.statistical
@pytest.mark.parametrize("p", [0.5, 0.3])
def test_two_runs_give_one_number(p: float) -> None:
    trials = 2000
    apart = alone = 0
    for i, (key, other) in enumerate(zip(keys(f"pair-{p}", trials), keys(f"other-{p}", trials), strict=True)):
        first = statistical_query(key, coin(p, 2, i), **PLAN)
        apart += first != statistical_query(key, coin(p, 3, i), **PLAN)
        alone += first != statistical_query(other, coin(p, 4, i), **PLAN)
    assert keeps(apart, trials, PLAN["rho"], power=1)
    assert exceeds(alone, trials, PLAN["rho"]) < FALSE_ALARM  # negative control: without a shared grid


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda n: np.zeros(n - 1), "values, got "),
        (lambda n: np.zeros(n + 1), "values, got "),
        (lambda n: [], "values, got 0"),
        (lambda n: np.zeros((n, 1)), "must have 1 axes, got shape"),
        (lambda n: 0.5, "must have 1 axes, got shape ()"),
        (lambda n: ["a"] * n, "must be an array of real numbers, got ['a', 'a'"),
        (lambda n: [0.5] * (n - 1) + [1.5], "must lie in [0, 1], got 1.5"),
        (lambda n: [-0.25] + [0.5] * (n - 1), "draw(n)[0] must lie in [0, 1], got -0.25"),
        (lambda n: [0.5, math.nan] + [0.5] * (n - 2), "draw(n)[1] must be finite, got nan"),
    ],
)
def test_bad_draws_are_refused(draw: Callable[[int], Any], message: str) -> None:
    with pytest.raises(ReprlError) as caught:
        statistical_query(SharedKey(1), draw, **PLAN)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": 0.0}, "tolerance must lie in (0, 1), got 0.0"),
        ({"tolerance": 1.0}, "tolerance must lie in (0, 1), got 1.0"),
        ({"rho": -0.1}, "rho must lie in (0, 1), got -0.1"),
        ({"delta": math.nan}, "delta must lie in (0, 1), got nan"),
        ({"rho": 1e-200}, "rho=1e-200 and tolerance=0.1 ask for inf draws"),
        ({"tolerance": 5e-324}, "ask for inf draws"),
        ({"delta": 5e-324}, "ask for"),
    ],
)
def test_bad_settings_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ReprlError) as caught:
        plan_statistical_query(**{**PLAN, **arguments})
    assert message in str(caught.value)


@pytest.mark.parametrize("key", [7, DataStream(7, "x"), None])
def test_only_a_shared_key_will_do(key: Any) -> None:
    with pytest.raises(ReprlError, match=r"shared key must be a reprl.SharedKey"):
        statistical_query(key, coin(0.5, 5), **PLAN)

"""heavy_hitters: the plan, the right set, the same set twice, and refusals. False alarms: 1e-6 a test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from reprl.coupling.heavy_hitters import heavy_hitters, plan_heavy_hitters
from reprl.errors import ReprlError
from reprl.randomness import DataStream, SharedKey
from tests.statistics import FALSE_ALARM, exceeds, keeps

LOOSE: dict[str, Any] = {"threshold": 0.5, "tolerance": 0.2, "rho": 0.3, "delta": 0.2}


def keys(purpose: str, number: int) -> list[SharedKey]:
    root = SharedKey(20250803).derive(purpose)
    return [root.derive(i) for i in range(number)]


def sampler(law: ArrayLike, *address: int) -> Callable[[int], list[int]]:
    """draw(n) of a law over 0, 1, 2, …, fresh at each call."""
    rng = np.random.default_rng(address)
    p = np.asarray(law, dtype=float)
    return lambda n: rng.choice(len(p), size=n, p=p / p.sum()).tolist()


def test_the_plan_is_the_written_formula() -> None:
    plan = plan_heavy_hitters(threshold=0.5, tolerance=0.1, rho=0.2, delta=0.1)
    heavy, failure = 2.5, 0.05
    m1 = math.ceil(heavy * math.log(2 * heavy / failure))
    m2 = math.ceil(max(8 * heavy / 0.02**2, 2 / 0.1**2 * math.log(2 * (heavy + m1) / failure)))
    assert (plan.candidates, plan.frequencies) == (m1, m2) == (12, 50000)
    assert (plan.guarantee.rho, plan.guarantee.delta, plan.guarantee.epsilon) == (0.2, 0.1, 0.1)
    assert plan.guarantee.status == "proven"
    # The concentration term rules when ρ is large and δ small.
    sharp = plan_heavy_hitters(threshold=0.9, tolerance=0.3, rho=0.99, delta=1e-12)
    heavy, failure = 1 / 0.6, 1e-12
    m1 = math.ceil(heavy * math.log(2 * heavy / failure))
    assert sharp.frequencies == math.ceil(2 / 0.3**2 * math.log(2 * (heavy + m1) / failure))
    assert sharp.frequencies > 8 * heavy / (0.99 * 0.3) ** 2


def test_the_plan_is_what_is_drawn() -> None:
    sizes = []

    def draw(n: int) -> list[str]:
        sizes.append(n)
        return ["only"] * n

    assert heavy_hitters(SharedKey(1), draw, **LOOSE) == ["only"]
    plan = plan_heavy_hitters(**LOOSE)
    assert sizes == [plan.candidates, plan.frequencies]


LAWS = {
    "one heavy, a thousand light": [0.71] + [0.29 / 1000] * 1000,
    "all light": [1 / 500] * 500,
    "two near the ends": [0.7, 0.3],
    "light at the lower end": [0.3, 0.3, 0.3, 0.1],
    "a point": [1.0],
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
def test_the_set_is_right_as_often_as_promised(name: str) -> None:
    law = np.array(LAWS[name])
    must, may_not = set(np.flatnonzero(law >= 0.7)), set(np.flatnonzero(law <= 0.3))
    trials, wrong = 300, 0
    for i, key in enumerate(keys(f"right-{name}", trials)):
        found = heavy_hitters(key, sampler(law, 1, i), **LOOSE)
        assert len(found) == len(set(found))
        wrong += not (must <= set(found) and not may_not & set(found))
    assert keeps(wrong, trials, LOOSE["delta"], power=0.99)


@pytest.mark.statistical
def test_a_wrong_set_is_noticed() -> None:
    """Negative control: a third of the mass is not above a half, and the test above would say so."""
    trials = 100
    wrong = sum(
        0 not in heavy_hitters(key, sampler([1 / 3, 2 / 3], 2, i), **LOOSE)
        for i, key in enumerate(keys("wrong", trials))
    )
    assert exceeds(wrong, trials, LOOSE["delta"]) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("law", [[0.5, 0.5], [0.5, *[0.5 / 200] * 200], [0.45, 0.55]])
def test_two_runs_agree_on_an_atom_at_the_threshold(law: list[float]) -> None:
    trials = 400
    shared, others = keys(f"pairs-{law[0]}-{len(law)}", trials), keys(f"others-{law[0]}-{len(law)}", trials)
    apart = alone = 0
    for i, (key, other) in enumerate(zip(shared, others, strict=True)):
        first = set(heavy_hitters(key, sampler(law, 3, i), **LOOSE))
        apart += first != set(heavy_hitters(key, sampler(law, 4, i), **LOOSE))
        alone += first != set(heavy_hitters(other, sampler(law, 5, i), **LOOSE))
    assert keeps(apart, trials, LOOSE["rho"], power=0.99)
    assert exceeds(alone, trials, LOOSE["rho"]) < FALSE_ALARM  # negative control: without a shared cut


@pytest.mark.parametrize("order", ["abc", "cba", "bac"])
def test_the_order_of_the_list_does_not_depend_on_the_data(order: str) -> None:
    settings: dict[str, Any] = {"threshold": 0.2, "tolerance": 0.08, "rho": 0.9, "delta": 0.2}

    def draw(n: int) -> list[str]:
        weights = dict(zip(order, (n - 2 * (n * 3 // 10), n * 3 // 10, n * 3 // 10), strict=True))
        return [letter for letter in order for _ in range(weights[letter])]

    assert heavy_hitters(SharedKey(1), draw, **settings) == ["a", "b", "c"]


def test_a_plan_of_the_caller_sets_the_sizes() -> None:
    sizes = []

    def draw(n: int) -> list[str]:
        sizes.append(n)
        return ["only"] * n

    plan = plan_heavy_hitters(**LOOSE)._replace(candidates=3, frequencies=20)
    assert heavy_hitters(SharedKey(1), draw, **LOOSE, plan=plan) == ["only"]
    assert sizes == [3, 20]


def test_the_cut_is_one_shared_uniform() -> None:
    """An outcome of frequency f is returned iff f ≥ ν + τ (u − ½), u at key.derive("threshold")."""
    plan = plan_heavy_hitters(**LOOSE)
    for key in keys("cut", 50):
        cut = 0.5 + 0.2 * (float(key.derive("threshold").uniforms(1)[0]) - 0.5)
        for offset in (-1, 1):
            count = math.ceil(cut * plan.frequencies) + (0 if offset > 0 else -1)
            batches = iter([["a", "b"] * plan.candidates, ["a"] * count + ["b"] * (plan.frequencies - count)])
            found = heavy_hitters(key, lambda n, batches=batches: next(batches)[:n], **LOOSE)  # type: ignore[misc]
            assert ("a" in found) == (offset > 0)


def test_an_outcome_that_no_candidate_named_is_not_returned() -> None:
    batches = iter(["x", "y"])
    assert heavy_hitters(SharedKey(1), lambda n: [next(batches)] * n, **LOOSE) == []


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda n: ["a"] * (n - 1), "outcomes, got "),
        (lambda n: ["a"] * (n + 1), "outcomes, got "),
        (lambda n: [], "outcomes, got 0"),
        (lambda n: 7, "outcomes, got 7"),
        (lambda n: None, "outcomes, got None"),
        (lambda n: ["a", *[[1, 2]] * (n - 1)], "must return hashable outcomes, got [1, 2]"),
        (lambda n: [([1],)] * n, "must return hashable outcomes, got ([1],)"),
        (lambda n: np.zeros((n, 2)), "must return hashable outcomes, got array([0., 0.])"),
    ],
)
def test_bad_draws_are_refused(draw: Callable[[int], Any], message: str) -> None:
    with pytest.raises(ReprlError, match=r"^draw\(\d+\) must return ") as caught:
        heavy_hitters(SharedKey(1), draw, **LOOSE)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": 0.0}, "threshold must lie in (0, 1), got 0.0"),
        ({"threshold": 1.0}, "threshold must lie in (0, 1), got 1.0"),
        ({"tolerance": 0.5}, "tolerance must lie in (0, 0.5), got 0.5"),
        ({"tolerance": 0.0}, "tolerance must lie in (0, 0.5), got 0.0"),
        ({"rho": 1.5}, "rho must lie in (0, 1), got 1.5"),
        ({"delta": math.nan}, "delta must lie in (0, 1), got nan"),
        ({"rho": 1e-200}, "rho=1e-200 and tolerance=0.2 ask for inf draws"),
        ({"rho": 5e-324}, "ask for inf draws"),
        ({"tolerance": 1e-170}, "tolerance=1e-170 ask for inf draws"),
    ],
)
def test_bad_settings_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ReprlError) as caught:
        plan_heavy_hitters(**{**LOOSE, **arguments})
    assert message in str(caught.value)


@pytest.mark.parametrize("key", [7, DataStream(7, "x"), None])
def test_only_a_shared_key_will_do(key: Any) -> None:
    with pytest.raises(ReprlError, match=r"shared key must be a reprl.SharedKey"):
        heavy_hitters(key, sampler([1.0], 7), **LOOSE)


def test_outcomes_may_come_counted() -> None:
    plan = plan_heavy_hitters(threshold=0.5, tolerance=0.1, rho=0.3, delta=0.05)

    def counted(n: int) -> Counter[str]:
        return Counter({"a": n - n // 4, "b": n // 4})

    def listed(n: int) -> list[str]:
        return list(counted(n).elements())

    how: dict[str, Any] = {"threshold": 0.5, "tolerance": 0.1, "rho": 0.3, "delta": 0.05, "plan": plan}
    assert heavy_hitters(SharedKey(1), counted, **how) == heavy_hitters(SharedKey(1), listed, **how) == ["a"]
    with pytest.raises(ReprlError, match=r"must return \d+ outcomes, got 3$"):
        heavy_hitters(SharedKey(1), lambda n: Counter("abc"), **how)

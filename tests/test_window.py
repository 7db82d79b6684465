"""Stretched windows: their cost against every policy tried, the likely cost against exact laws, and one shared factor.

Statistical tests: false-alarm rate at most 1e-6.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import reprl
from reprl.coupling.rounding import round_vector
from reprl.decide import window
from reprl.decide.induction import Accuracy, tiered_induction
from reprl.decide.window import BAND, GRID, is_accurate, likely_loss, shared_stretch, widest_stretch, worst_loss
from reprl.mdp.counts import tally
from tests import naive_window
from tests.naive_window import Case, Place
from tests.statistics import FALSE_ALARM, exceeds

MECHANISMS = ("compact", "exponential")
CELL = math.exp(GRID)
"""The ratio of neighbouring stretches."""
Row = tuple[int, int, int, int, float]
Problem = tuple[reprl.Counts, reprl.Tiers]


def case_of(rows: list[Row], shape: tuple[int, int, int], level: Any, count: int) -> tuple[Case, Problem]:
    """One problem twice: for loops, and for the package."""
    data: dict[tuple[int, int, int], list[tuple[int, float]]] = defaultdict(list)
    for h, s, a, x, r in rows:
        data[h, s, a].append((x, r))
    tiers = reprl.Tiers.from_levels(level, count)
    return Case(data, shape, tiers.level.tolist(), count), (tally(rows, shape), tiers)


def random_case(seed: int) -> tuple[Case, Problem, Accuracy]:
    """At most 3 steps, 3 states and 2 arms; a sample in every decided cell, perhaps none in an ignored one."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 4)), int(rng.integers(1, 4)), 2)
    count = int(rng.integers(1, 4))
    level = rng.integers(1, count + 1, shape[:2])
    level[0, 0] = 1
    least = np.where((count > 1) & (level == count), 0, 1)
    rows = [
        (h, s, a, int(rng.integers(shape[1])), float(rng.integers(11)) / 10)
        for h, s, a in np.ndindex(shape)
        for _ in range(int(rng.integers(least[h, s], 5)))
    ]
    case, problem = case_of(rows, shape, level, count)
    return case, problem, Accuracy(by_tier=tuple(float(x) for x in 2.0 * rng.random(2)), pessimism=0.0)


def halves(accuracy: Accuracy) -> list[float]:
    return [x / 2.0 for x in accuracy.by_tier]


# The worst case.


def test_no_policy_that_the_windows_allow_loses_more_than_the_worst_loss() -> None:
    """Every policy is tried; the bound is what is said of it, and mostly reached."""
    reached = positive = 0
    for seed in range(120):
        case, problem, accuracy = random_case(seed)
        bound = worst_loss(*problem, accuracy)
        assert bound == pytest.approx(naive_window.worst_loss(case, halves(accuracy)), abs=1e-12)
        true = naive_window.true_worst_loss(case, halves(accuracy))
        assert true <= bound + 1e-12
        reached += true > bound - 1e-12
        positive += true > 0.05
    assert reached > 80
    assert positive > 80


def test_the_worst_loss_of_half_the_windows_is_too_small() -> None:
    """Control: the enumeration notices a bound for windows that are too narrow."""
    broken = 0
    for seed in range(60):
        case, problem, accuracy = random_case(seed)
        true = naive_window.true_worst_loss(case, halves(accuracy))
        broken += true > worst_loss(*problem, accuracy.stretched(0.5)) + 1e-12
    assert broken > 10


@given(seed=st.integers(0, 10**6), one=st.floats(0.01, 20.0), other=st.floats(0.01, 20.0))
@settings(max_examples=150, deadline=None)
def test_the_worst_loss_does_not_fall_when_windows_grow(seed: int, one: float, other: float) -> None:
    _, problem, accuracy = random_case(seed)
    low, high = (worst_loss(*problem, accuracy.stretched(factor)) for factor in sorted((one, other)))
    assert low <= high + 1e-12


@given(seed=st.integers(0, 10**6), tier=st.integers(0, 1), factor=st.floats(1.0, 20.0))
@settings(max_examples=100, deadline=None)
def test_nor_when_a_single_window_does(seed: int, tier: int, factor: float) -> None:
    _, problem, accuracy = random_case(seed)
    wider = [x * factor if t == tier else x for t, x in enumerate(accuracy.by_tier)]
    wide = Accuracy(by_tier=tuple(wider), pessimism=0.0)
    assert worst_loss(*problem, accuracy) <= worst_loss(*problem, wide) + 1e-12


def tied(horizon: int, n_states: int, n_actions: int) -> Problem:
    """States differ, arms do not."""
    rng = np.random.default_rng(5)
    rows: list[Row] = []
    for h in range(horizon):
        for s in range(n_states):
            samples = [(int(rng.integers(n_states)), float(rng.integers(11)) / 10) for _ in range(4)]
            rows += [(h, s, a, *sample) for a in range(n_actions) for sample in samples]
    return case_of(rows, (horizon, n_states, n_actions), np.ones((horizon, n_states), dtype=int), 1)[1]


def test_arms_that_tie_exactly_cost_nothing_however_wide_the_windows() -> None:
    problem, accuracy = tied(3, 4, 3), Accuracy.practical(0.3, 3, 1)
    for factor in (1.0, 7.0, 1e3):
        assert worst_loss(*problem, accuracy.stretched(factor)) == 0.0
        for mechanism in MECHANISMS:
            loss = likely_loss(*problem, accuracy.stretched(factor), delta=0.05, mechanism=mechanism)
            assert loss == pytest.approx(0.0, abs=1e-7)


def test_one_state_loses_the_widest_gap_that_its_window_holds() -> None:
    rewards = (0.9, 0.8, 0.5, 0.1)
    _, problem = case_of([(0, 0, a, 0, r) for a, r in enumerate(rewards)], (1, 1, 4), [[1]], 1)
    for width, loss in ((0.05, 0.0), (0.11, 0.1), (0.39, 0.1), (0.41, 0.4), (0.79, 0.4), (0.81, 0.8), (50.0, 0.8)):
        assert worst_loss(*problem, Accuracy(by_tier=(2.0 * width,), pessimism=0.0)) == pytest.approx(loss, abs=1e-12)


def test_losses_of_a_chain_add_up() -> None:
    rows: list[Row] = [(h, 0, a, 0, r) for h in range(3) for a, r in enumerate((0.7, 0.5))]
    _, problem = case_of(rows, (3, 1, 2), [[1], [1], [1]], 1)
    assert worst_loss(*problem, Accuracy(by_tier=(0.5,), pessimism=0.0)) == pytest.approx(0.6, abs=1e-12)


def test_unseen_states_may_be_worth_all_steps_that_remain() -> None:
    """The start leads to an ignored state with probability 1/2; it is worth 0 to the policy."""
    start: list[Row] = [(0, 0, 0, 0, 0.5), (0, 0, 0, 1, 0.5)]
    known: list[Row] = [(h, 0, 0, 0, 0.5) for h in (1, 2)]
    shape, level, accuracy = (3, 2, 1), [[1, 2], [1, 2], [1, 2]], Accuracy(by_tier=(0.1,), pessimism=0.0)
    seen: list[Row] = [(1, 1, 0, 0, 0.25), (2, 1, 0, 1, 0.0)]
    # Worth 2 if unseen (though a state of the first step that is ignored and unseen adds nothing), 0.25 + 0.5 if seen.
    for rows, loss in ((start + known, 1.0), (start + known + seen, 0.375)):
        _, problem = case_of(rows, shape, level, 2)
        assert worst_loss(*problem, accuracy) == pytest.approx(loss, abs=1e-12)
        for mechanism in MECHANISMS:
            found = likely_loss(*problem, accuracy, delta=0.1, mechanism=mechanism)
            assert found == pytest.approx(loss, abs=1e-12)


# The likely case.


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_likely_losses_are_mean_and_deviation_of_independent_arms(mechanism: str) -> None:
    """Exact: every policy with its probability. Cantelli's inequality then holds as it must, and not for the mean."""
    spread = over = 0
    for seed in range(100):
        case, problem, accuracy = random_case(seed)
        delta = (0.05, 0.2, 0.5)[seed % 3]
        best, found = naive_window.best_values(case), naive_window.likely(case, accuracy.by_tier, delta, mechanism)
        loss = likely_loss(*problem, accuracy, delta=delta, mechanism=mechanism)
        expected = naive_window.likely_loss(case, accuracy.by_tier, delta, mechanism)
        assert loss == pytest.approx(expected, abs=1e-9)
        table = naive_window.value_law(case, found.laws)
        assert sum(chance for chance, _ in table) == pytest.approx(1.0, abs=1e-9)
        for place in case.first:
            mean = sum(chance * values[place] for chance, values in table)
            variance = sum(chance * (values[place] - mean) ** 2 for chance, values in table)
            assert mean == pytest.approx(found.mean[place], abs=1e-9)
            assert variance <= found.deviation[place] ** 2 + 1e-9
            assert tail(table, best, place, loss) <= delta
            spread += variance > 1e-3
            over += tail(table, best, place, best[place] - mean) > delta
    assert spread > 30
    assert over > 10, "without the deviation the tail would be too heavy"


def tail(table: list[tuple[float, dict[Place, float]]], best: dict[Place, float], place: Place, loss: float) -> float:
    return sum(chance for chance, values in table if best[place] - values[place] > loss + 1e-9)


@cache
def catalogue(id: str, seed: int = 1, calls: int = 1000) -> Problem:
    options: dict[str, dict[str, int]] = {
        "random-mdp-v0": {"horizon": 4, "n_states": 5, "n_actions": 3, "support": 2},
        "combination-lock-v0": {"horizon": 4, "n_states": 4, "n_actions": 2},
        "gridworld-v0": {"horizon": 3, "size": 2},
    }
    mdp = reprl.make(id, **options[id])
    assert isinstance(mdp, reprl.TabularMDP)
    return reprl.GenerativeModel(mdp, seed).sample(calls), reprl.Tiers.single(mdp.horizon, mdp.n_states)


def best_first(counts: reprl.Counts) -> NDArray[np.float64]:
    value = np.zeros(counts.outcomes.n_states)
    for h in range(counts.outcomes.horizon - 1, -1, -1):
        value = counts.mean_return(h, value).max(axis=1)
    return value


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_policies_of_the_widest_windows_lose_more_than_epsilon_in_a_share_delta_at_most(mechanism: str) -> None:
    """240 shared keys through the induction itself, every first state; false alarm 1e-6 for all.

    Controls: three times the widest stretch is rejected; so is (compact) the mean loss without a deviation, δ near 1.
    """
    epsilon, delta, keys = 0.5, 0.2, 240
    counts, tiers = catalogue("random-mdp-v0")
    accuracy = Accuracy.practical(epsilon, 4, 1)
    options: dict[str, Any] = {"delta": delta, "mechanism": mechanism}
    widest = widest_stretch(counts, tiers, accuracy=accuracy, epsilon=epsilon, **options)
    decision = reprl.Decision(mechanism=mechanism, coupling="product", rounding="none")

    def losses(stretch: float) -> NDArray[np.float64]:
        wide = accuracy.stretched(stretch)
        found = [
            tiered_induction(reprl.SharedKey(i), counts, tiers, accuracy=wide, delta=delta, decision=decision)
            for i in range(keys)
        ]
        return np.array([best_first(counts) - each.values[0] for each in found])

    def share(lost: NDArray[np.float64], bound: float) -> float:
        return 5.0 * min(exceeds(int(hits), keys, delta) for hits in (lost > bound).sum(axis=0))

    at = losses(widest)
    assert worst_loss(counts, tiers, accuracy.stretched(widest)) > 2.0 * epsilon, "the likely loss must be what counts"
    assert likely_loss(counts, tiers, accuracy.stretched(widest), **options) == pytest.approx(epsilon, abs=1e-6)
    assert share(at, epsilon) > FALSE_ALARM
    assert share(losses(3.0 * widest), epsilon) < FALSE_ALARM
    if mechanism == "compact":
        mean = likely_loss(counts, tiers, accuracy.stretched(widest), delta=1.0 - 1e-12, mechanism=mechanism)
        assert share(at, mean) < FALSE_ALARM


# The widest stretch.


def widest_of(problem: Problem, accuracy: Accuracy, epsilon: float, mechanism: str = "compact") -> float:
    return widest_stretch(*problem, accuracy=accuracy, epsilon=epsilon, delta=0.05, mechanism=mechanism)


def bound(problem: Problem, accuracy: Accuracy, mechanism: str = "compact") -> float:
    likely = likely_loss(*problem, accuracy, delta=0.05, mechanism=mechanism)
    return min(worst_loss(*problem, accuracy), likely) if mechanism == "compact" else likely


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_widest_stretch_costs_at_most_epsilon_and_a_wider_one_more(mechanism: str) -> None:
    seen: set[str] = set()
    for seed in range(36):
        case, problem, _ = random_case(seed)
        horizon, epsilon = case.shape[0], (0.05, 0.3, 0.9)[seed % 3]
        accuracy = Accuracy.practical(epsilon, horizon, case.count)
        widest = widest_of(problem, accuracy, epsilon, mechanism)
        cap = 2.0 * horizon / accuracy.by_tier[0]
        assert 1.0 <= widest <= cap * (1.0 + 1e-12)
        if widest > 1.0:
            assert bound(problem, accuracy.stretched(widest), mechanism) <= epsilon
        if widest < cap * (1.0 - 1e-9):
            assert bound(problem, accuracy.stretched(widest * (1.0 + 1e-9)), mechanism) > epsilon
            seen.add("between" if widest > 1.0 else "none")
        else:
            seen.add("cap")
    assert seen == {"none", "between", "cap"}


def test_where_every_policy_will_do_the_windows_are_as_wide_as_the_horizon() -> None:
    for horizon in (1, 3):
        accuracy = Accuracy.practical(0.3, horizon, 1)
        widest = widest_of(tied(horizon, 3, 2), accuracy, 0.3)
        assert accuracy.stretched(widest).by_tier[0] / 2.0 == pytest.approx(horizon)
    two = Accuracy.practical(0.1, 1, 1)
    _, problem = case_of([(0, 0, 0, 0, 0.8), (0, 0, 1, 0, 0.55)], (1, 1, 2), [[1]], 1)
    assert two.stretched(widest_of(problem, two, 0.26)).by_tier[0] / 2.0 == pytest.approx(1.0)
    assert 0.25 < two.stretched(widest_of(problem, two, 0.01)).by_tier[0] / 2.0 < 0.26  # little more than the gap


def test_a_stretch_never_narrows() -> None:
    """Windows that are too wide already, and windows wider than the horizon."""
    problem = catalogue("random-mdp-v0")
    assert widest_of(problem, Accuracy.practical(2.0, 4, 1), 1e-6) == 1.0
    assert widest_of(problem, Accuracy(by_tier=(20.0,), pessimism=0.0), 5.0) == 1.0


def test_the_windows_found_do_not_depend_on_those_one_starts_from_nor_on_names_nor_on_copies() -> None:
    counts, tiers = catalogue("random-mdp-v0")
    accuracy = Accuracy.practical(0.3, 4, 1)
    widest = widest_of((counts, tiers), accuracy, 0.3)
    assert 1.5 < widest < 20.0
    for factor in (0.5, 1.4):
        other = widest_of((counts, tiers), accuracy.stretched(factor), 0.3)
        assert factor * other == pytest.approx(widest, rel=1e-9)
    assert widest_of((counts + counts, tiers), accuracy, 0.3) == widest
    seen: set[float] = set()
    for seed in range(30):
        case, problem, _ = random_case(seed)
        horizon, n_states, _ = case.shape
        if n_states != 3:
            continue
        base = Accuracy.practical(0.3, horizon, case.count)
        rename, turn = [2, 0, 1], [1, 0]
        rows = [(h, rename[s], turn[a], rename[x], r) for (h, s, a), row in case.data.items() for x, r in row]
        level = np.empty((horizon, n_states), dtype=int)
        level[:, rename] = case.level
        _, renamed = case_of(rows, case.shape, level, case.count)
        found = widest_of(problem, base, 0.3)
        seen.add(found)
        assert widest_of(renamed, base, 0.3) == pytest.approx(found, rel=1e-9)
    assert len(seen) > 4


# The shared stretch.


def stretch_of(key: reprl.SharedKey, problem: Problem, epsilon: float = 0.3) -> float:
    accuracy = Accuracy.practical(epsilon, problem[1].level.shape[0], 1)
    return shared_stretch(key, *problem, accuracy=accuracy, epsilon=epsilon, delta=0.05, mechanism="compact")


def test_a_shared_stretch_is_on_the_grid_and_at_most_the_widest_and_as_safe() -> None:
    seen: set[int] = set()
    for id in ("random-mdp-v0", "combination-lock-v0", "gridworld-v0"):
        problem = catalogue(id)
        accuracy = Accuracy.practical(0.3, problem[1].level.shape[0], 1)
        widest = widest_of(problem, accuracy, 0.3)
        found = [stretch_of(reprl.SharedKey(i), problem) for i in range(8)]
        assert found[0] == stretch_of(reprl.SharedKey(0), problem)
        for value in found:
            steps = math.log(value) / GRID
            assert steps == pytest.approx(round(steps), abs=1e-9)
            assert max(1.0, widest / CELL**2) * (1.0 - 1e-9) <= value <= widest
            assert bound(problem, accuracy.stretched(value)) <= 0.3
        seen.add(len(set(found)))
    assert 2 in seen, "keys must matter"
    assert max(seen) == 2


def test_a_shared_stretch_reads_its_own_address_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[reprl.SharedKey] = []
    words = reprl.SharedKey.words.fget  # type: ignore[attr-defined]

    def listen(key: reprl.SharedKey) -> Any:
        read.append(key)
        return words(key)

    monkeypatch.setattr(reprl.SharedKey, "words", property(listen))
    problem, key = catalogue("random-mdp-v0"), reprl.SharedKey(3).derive("window")
    widest = widest_of(problem, Accuracy.practical(0.3, 4, 1), 0.3)
    assert read == []
    found = stretch_of(key, problem)
    assert read == [key]
    rounded = round_vector(key, [math.log(widest) - GRID], width=GRID, method="product")
    assert found == math.exp(rounded[0])


def fixed_stretch(monkeypatch: pytest.MonkeyPatch, key: reprl.SharedKey, widest: float) -> float:
    """The shared stretch of data whose widest is given."""
    monkeypatch.setattr(window, "widest_stretch", lambda *_, **__: widest)
    return stretch_of(key, catalogue("gridworld-v0"))


def test_a_stretch_of_one_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the law of the rounded stretch follows log(widest): it is one cell lower than the lattice points around."""
    assert {fixed_stretch(monkeypatch, reprl.SharedKey(i), 1.0) for i in range(50)} == {1.0}
    found = {fixed_stretch(monkeypatch, reprl.SharedKey(i), CELL**4.5) for i in range(50)}
    assert sorted(found) == pytest.approx([CELL**3, CELL**4])


@pytest.mark.statistical
def test_runs_part_no_more_often_than_their_widest_stretches_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a cell apart, at most π/2 of that: round_vector's bound. False alarm 1e-6; control: unshared keys."""
    apart, keys = 0.1, 3000
    for middle in (4.5, 5.0):
        low, high = (CELL ** (middle + sign * apart / 2.0) for sign in (-1.0, 1.0))
        one = [fixed_stretch(monkeypatch, reprl.SharedKey(i), low) for i in range(keys)]
        other = [fixed_stretch(monkeypatch, reprl.SharedKey(i), high) for i in range(keys + 1)]
        parted = sum(a != b for a, b in zip(one, other[:-1], strict=True))
        assert exceeds(parted, keys, math.pi / 2.0 * apart) > FALSE_ALARM
        if middle == 4.5:
            unshared = sum(a != b for a, b in zip(one, other[1:], strict=True))
            assert exceeds(unshared, keys, math.pi / 2.0 * apart) < FALSE_ALARM


def coin(seed: int) -> Problem:
    """Two arms of one state, worth 0.6 and 0.4 in 160000 samples each."""
    transition = np.zeros((2, 3, 2, 3))
    transition[0, :, 0, 1:] = [0.6, 0.4]
    transition[0, :, 1, 1:] = [0.4, 0.6]
    transition[1, :, :, 0] = 1.0
    reward = np.zeros((2, 3, 2))
    reward[1, 1] = 1.0
    counts = reprl.GenerativeModel(reprl.TabularMDP(transition, reward), seed).sample(160000)
    return counts, reprl.Tiers.from_levels([[1, 2, 2], [1, 1, 1]], 2)


@pytest.mark.statistical
def test_runs_on_independent_data_mostly_find_one_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """30 pairs: parted no more often than the widest stretches say, false alarm 1e-6. Control: unshared keys."""
    known: dict[str, float] = {}

    def once(counts: reprl.Counts, *rest: Any, **options: Any) -> float:
        if counts.digest not in known:
            known[counts.digest] = widest_stretch(counts, *rest, **options)
        return known[counts.digest]

    monkeypatch.setattr(window, "widest_stretch", once)
    chance, parted, unshared, pairs, epsilon = 0.0, 0, 0, 30, 0.02
    for i in range(pairs):
        problems = [coin(2 * i + half) for half in range(2)]
        first = stretch_of(reprl.SharedKey(i), problems[0], epsilon)
        parted += first != stretch_of(reprl.SharedKey(i), problems[1], epsilon)
        unshared += first != stretch_of(reprl.SharedKey(10**6 + i), problems[1], epsilon)
        one, other = (math.log(known[counts.digest]) for counts, _ in problems)
        chance += min(1.0, math.pi / 2.0 * abs(one - other) / GRID) / pairs
    assert 0.0 < chance < 0.1
    assert exceeds(parted, pairs, chance) > FALSE_ALARM
    assert exceeds(unshared, pairs, chance) < FALSE_ALARM


# Accurate or not.


def test_a_loss_is_accurate_below_the_band_and_not_above_epsilon() -> None:
    keys = [reprl.SharedKey(i) for i in range(200)]
    assert all(is_accurate(key, (1.0 - BAND) * 0.2, 0.2) for key in keys)
    assert not any(is_accurate(key, 0.2 * (1.0 + 1e-12), 0.2) for key in keys)
    middle = [is_accurate(key, (1.0 - BAND / 2.0) * 0.2, 0.2) for key in keys]
    assert 70 < sum(middle) < 130
    assert middle == [is_accurate(key, (1.0 - BAND / 2.0) * 0.2, 0.2) for key in keys]
    with pytest.raises(reprl.ReprlError, match=r"^shared key must be a reprl.SharedKey, got 3$"):
        is_accurate(3, 0.1, 0.2)  # type: ignore[arg-type]


@pytest.mark.statistical
def test_two_verdicts_part_as_often_as_their_losses_are_far_apart() -> None:
    """2000 keys, false alarm 1e-6 on both sides. Control: unshared keys."""
    apart, pairs = 0.1, 2000
    losses = [0.3 * (1.0 - BAND / 2.0), 0.3 * (1.0 - BAND / 2.0 + apart * BAND)]
    parted = sum(len({is_accurate(reprl.SharedKey(i), loss, 0.3) for loss in losses}) - 1 for i in range(pairs))
    assert exceeds(parted, pairs, apart) > FALSE_ALARM
    assert exceeds(pairs - parted, pairs, 1.0 - apart) > FALSE_ALARM
    unshared = sum(
        is_accurate(reprl.SharedKey(i), losses[0], 0.3) != is_accurate(reprl.SharedKey(i + pairs), losses[1], 0.3)
        for i in range(pairs)
    )
    assert exceeds(unshared, pairs, apart) < FALSE_ALARM


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"key": 3}, "shared key must be a reprl.SharedKey, got 3"),
        ({"epsilon": 0.0}, r"epsilon must lie in \(0, inf\), got 0"),
        ({"delta": 1.0}, r"delta must lie in \(0, 1\), got 1"),
    ],
)
def test_bad_calls(options: dict[str, Any], text: str) -> None:
    counts, tiers = catalogue("gridworld-v0")
    given: dict[str, Any] = {"key": reprl.SharedKey(1), "epsilon": 0.3, "delta": 0.1, "mechanism": "compact"} | options
    with pytest.raises(reprl.ReprlError, match=text):
        shared_stretch(given.pop("key"), counts, tiers, accuracy=Accuracy.practical(0.3, 3, 1), **given)

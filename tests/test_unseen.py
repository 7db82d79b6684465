"""unseen: what no sample has shown, against brute force, and second teams that meet it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.assurance.unseen import add_phantoms, hidden_loss
from reprl.canonical.choice import choose, make_rule
from reprl.canonical.gaps import find_gaps
from reprl.canonical.goal import Goal
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import Criterion
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.randomness import SharedKey
from tests import naive_rule
from tests.statistics import FALSE_ALARM, chi_square_of
from tests.test_rule import random_data

SHAPES = ((1, 2, 2), (2, 3, 2), (3, 2, 2), (4, 3, 2))


def many(seed: int, *, pooled: bool, strange: bool = False, times: int = 100_000) -> Data:
    """Data of a made-up world with many samples for every one, so that what is hidden is small."""
    data = random_data(seed, shape=SHAPES[seed % 4], untried=0.1)
    hits = data.counts.hits * times
    outcomes = data.counts.outcomes
    if strange:  # nobody has been in the last state
        for h, s, a in itertools.product(*map(range, outcomes.shape)):
            table, slots = outcomes.slots(h, s, a)
            leads = outcomes.next_state[table] == outcomes.n_states - 1
            hits[slots] = np.where(leads | (s == outcomes.n_states - 1), 0, hits[slots])
    starts = data.starts.copy()
    starts[-1] = 0 if strange else starts[-1]
    starts[0] += 1
    found = Data(Counts(outcomes, hits), starts)
    return found.pool() if pooled else found


@pytest.mark.parametrize("strange", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("seed", range(24))
def test_what_is_hidden_costs_no_more_than_its_bound(seed: int, pooled: bool, strange: bool) -> None:
    """Every single row hides every extreme outcome in turn; loss and bound are compared to first order."""
    data = many(seed, pooled=pooled, strange=strange)
    dynamics, delta = empirical_dynamics(data), 0.1
    rule = make_rule(SharedKey(seed), data.counts.outcomes.shape, goal=Goal(quality=0.9))
    gaps = find_gaps(dynamics, rule.order)
    world, visits = naive_rule.world_of(dynamics), data.counts.visits
    for actions in (choose(rule, dynamics).policy.table, gaps.best, gaps.default):
        expected = naive_rule.hidden_loss(
            world, visits.tolist(), actions.tolist(), math.log(1 / delta), pooled=pooled, strange=strange
        )
        found = hidden_loss(data, dynamics, gaps.value, actions, delta, start=False)
        assert expected <= found * (1 + 1e-3) + 1e-12


def solved_for(law: Any, pay: Any, actions: Any, discount: float) -> tuple[Any, Any]:
    """V* and V^π of a world without an end, by iteration: law (S, A, S), pay (S, A); minus infinity if untried."""
    best = own = np.zeros(len(law))
    for _ in range(400):
        best = np.max(pay + discount * law @ best, axis=1)
        own = np.maximum(pay[range(len(law)), actions], 0.0) + discount * law[range(len(law)), actions] @ own
    return best, own


@pytest.mark.parametrize("seed", range(12))
def test_what_is_hidden_costs_no_more_than_its_bound_where_there_is_no_end(seed: int) -> None:
    """The bound is iterated to a millionth of the largest value a step, 5e-6 in all; what it bounds is far larger."""
    discount, delta = 0.8, 0.1
    data = many(seed, pooled=True, times=500).under(Criterion.of(1, discount))
    dynamics = empirical_dynamics(data)
    (_, n_states, n_actions), number = dynamics.outcomes.shape, data.counts.visits[0]
    law, pay = np.zeros((n_states, n_actions, n_states)), np.full((n_states, n_actions), -math.inf)
    for s, a in itertools.product(range(n_states), range(n_actions)):
        rows, slots = dynamics.outcomes.slots(0, s, a)
        np.add.at(law[s, a], dynamics.outcomes.next_state[rows], dynamics.probability[slots])
        if dynamics.tried[0, s, a]:
            pay[s, a] = dynamics.probability[slots] @ dynamics.outcomes.reward[rows]
    if not dynamics.tried.any(axis=2).all():
        pytest.skip("a state in which nothing was tried")
    gaps = find_gaps(dynamics, np.arange(n_actions))
    for actions in (gaps.best, dynamics.tried.argmax(axis=2)):
        best, own = solved_for(law, pay, actions[0], discount)
        np.testing.assert_allclose(best, gaps.value[0], atol=1e-9)
        worst = 0.0
        for s, a, y, r in itertools.product(range(n_states), range(n_actions), range(n_states), (0.0, 1.0)):
            if dynamics.tried[0, s, a]:
                share, moved, paid = math.log(1 / delta) / number[s, a], law.copy(), pay.copy()
                moved[s, a] *= 1 - share
                moved[s, a, y] += share
                paid[s, a] += share * (r - pay[s, a])
                new_best, new_own = solved_for(moved, paid, actions[0], discount)
                worst = max(worst, float(dynamics.initial @ (new_best - new_own - best + own)))
        found = hidden_loss(data, dynamics, gaps.value, actions, delta, start=False)
        assert worst <= found * (1 + 1e-2) + 5e-6
        assert found > 1e-4 or actions is not gaps.best  # a policy that loses all there is can lose no more


def test_the_bound_of_what_is_hidden_is_no_larger_than_it_must_be() -> None:
    """Two actions as good as each other, one step: the bound is attained; four times the samples leave a quarter."""
    table = random_data(0, shape=(1, 1, 2), untried=0.0).counts.outcomes
    rewards = np.full(table.reward.size, 0.5)
    bounds = []
    for n in (1000, 4000):
        data = Data(Counts(table._replace(reward=rewards), np.full(table.n_slots, n)), np.array([n]))
        dynamics = empirical_dynamics(data)
        gaps, actions = find_gaps(dynamics, np.arange(2)), np.array([[1]])
        bounds.append(hidden_loss(data, dynamics, gaps.value, actions, 0.1, start=False))
        samples = data.counts.visits
        least = naive_rule.hidden_loss(
            naive_rule.world_of(dynamics), samples.tolist(), [[1]], math.log(10), pooled=False, strange=False
        )
        assert bounds[-1] == pytest.approx(least)
    assert bounds[0] == pytest.approx(4 * bounds[1])


def test_hidden_starts_count_where_starts_are_drawn() -> None:
    data = many(1, pooled=False)
    dynamics = empirical_dynamics(data)
    gaps = find_gaps(dynamics, np.arange(data.counts.outcomes.n_actions))
    worst = dynamics.allowed.argmax(axis=2)
    fixed, drawn = (hidden_loss(data, dynamics, gaps.value, worst, 0.1, start=start) for start in (False, True))
    worth = dynamics.criterion.policy_values(dynamics.outcomes, dynamics.probability, worst)
    begin = math.log(10) * float((gaps.value[0] - worth[0]).max()) / float(data.starts.sum())
    assert drawn == pytest.approx(max(fixed, begin))
    assert begin > fixed


def test_hidden_outcomes_stay_hidden_with_probability_delta() -> None:
    """Σ n·q = log(1/δ) hides for good with probability at most δ, and nearly δ: the bound is no larger than it must be.

    A computation, no sample; the control takes a quarter of it.
    """
    samples, delta = np.array([10, 40, 200, 1000]), 0.1
    for share in (np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.5, 0.5]), np.full(4, 0.25)):
        hidden = math.log(1 / delta) * share / samples
        assert math.exp(float(np.sum(samples * np.log1p(-hidden)))) <= delta
        assert math.exp(float(np.sum(samples * np.log1p(-hidden / 4)))) > 5 * delta


@pytest.mark.parametrize("horizon", [3, 6])
@pytest.mark.parametrize("untried", ["nothing", "a row", "a cell"])
def test_a_hidden_outcome_may_lead_where_nothing_was_tried(horizon: int, untried: str) -> None:
    """Nothing is known there, so that the bound counts all that is left.

    Steps apart. State 1 is seen at the last step, and at earlier ones in part or not at all; a hidden outcome of the
    first row leads there at step 1.
    """
    law, pay, n, delta = np.zeros((horizon, 2, 2, 2)), np.full((horizon, 2, 2), 0.1), 1000, 0.1
    law[:, :, :, 0] = 1.0
    law[1:, 1] = (0.0, 1.0)
    law[-2, 0] = 0.5
    seen = reprl.GenerativeModel(reprl.TabularMDP(law, pay, 0, reward_kind="deterministic"), 1).sample(n)
    hits, table = seen.hits.copy(), seen.outcomes
    for h, a in itertools.product(range(1, horizon - 1), {"nothing": (), "a row": (1,), "a cell": (0, 1)}[untried]):
        hits[table.slots(h, 1, a)[1]] = 0
    data = Data(Counts(table, hits), np.array([n, 0]))
    dynamics = empirical_dynamics(data)
    gaps, q = find_gaps(dynamics, np.arange(2)), math.log(1 / delta) / n
    found = hidden_loss(data, dynamics, gaps.value, gaps.best, delta, start=False)
    true_law, true_pay = law.copy(), np.repeat(pay[..., None], 2, axis=3)
    true_law[0, 0, 0] = (1 - q, q)
    true_pay[0, 0, 0, 1] = 1.0
    if untried != "nothing":
        true_pay[1 : horizon - 1, 1, 1] = 1.0
    if untried == "a cell":
        true_pay[1 : horizon - 1, 1, 0] = 0.0
    world = reprl.TabularMDP(true_law, true_pay, 0, reward_kind="deterministic")
    loss = world.evaluate(world.solve().policy) - world.evaluate(reprl.Policy(np.array(gaps.best)))
    assert loss <= found + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_what_is_hidden_is_bounded_at_any_time_of_stopping(seed: int) -> None:
    """§12: Pr[nothing shows and Σ n·q ≥ L] ≤ e^−L for samplers that adapt, by all ways of two rows and eight samples.

    The sampler takes its next row by what it saw, and stops as soon as Σ n·q reaches L.
    """
    rng = np.random.default_rng(seed)
    hidden, fair, level = rng.uniform(0.02, 0.3, 2), rng.uniform(0.2, 0.8, 2), float(rng.uniform(0.3, 1.2))
    choice = rng.integers(2, size=(3,) * 8)

    def go(past: tuple[int, ...], spent: float) -> float:
        if spent >= level:
            return 1.0
        if len(past) == 8:
            return 0.0
        row = int(choice[past + (2,) * (8 - len(past))])
        stay = 1.0 - hidden[row]  # the event does not show; one of two known outcomes does
        known = (go((*past, x), spent + hidden[row]) * p for x, p in ((0, fair[row]), (1, 1.0 - fair[row])))
        return float(stay * sum(known))

    chance = go((), 0.0)
    assert chance <= math.exp(-level)
    assert chance > 0.2 * math.exp(-level) or chance == 0.0  # and is of that size


# Phantoms.


def table(kind: str, seed: int = 3) -> Data:
    """Data whose steps have tables of their own, share one, are pooled, or are one without an end."""
    if kind in ("own", "shared"):
        seeds = (
            s
            for s in range(seed, 1000)
            if bool(random_data(s, shape=(3, 3, 2)).counts.outcomes.row_shift) == (kind == "own")
        )
        return random_data(next(seeds), shape=(3, 3, 2), untried=0.3)
    pooled = random_data(seed, shape=(3, 3, 2), untried=0.6).pool()
    return pooled if kind == "pooled" else pooled.under(Criterion.of(1, 0.9))


KINDS = ("own", "shared", "pooled", "discounted")


def values_of(data: Data) -> Any:
    dynamics = empirical_dynamics(data)
    return find_gaps(dynamics, np.arange(data.counts.outcomes.n_actions)).value


def cells(data: Data) -> Any:
    outcomes = data.counts.outcomes
    steps = range(outcomes.tallied[0])
    return itertools.product(steps, range(outcomes.n_states), range(outcomes.n_actions))


@pytest.mark.parametrize("kind", KINDS)
def test_a_phantom_is_one_more_outcome_of_a_row_that_was_sampled(kind: str) -> None:
    data = table(kind)
    value, old = values_of(data), data.counts.outcomes
    met = missed = untouched = 0
    for key in range(60):
        found = add_phantoms(data, value, key, start=False)
        new = found.counts.outcomes
        assert new.shape == old.shape
        assert (new.pooled, bool(new.row_shift), bool(new.slot_shift)) == (
            old.pooled,
            bool(old.row_shift),
            bool(old.slot_shift),
        )
        assert found.criterion == data.criterion
        np.testing.assert_array_equal(found.starts, data.starts)
        for cell in cells(data):
            (before, tally), (after, tallied) = old.slots(*cell), new.slots(*cell)
            np.testing.assert_array_equal(new.next_state[after][:-1], old.next_state[before])
            np.testing.assert_array_equal(new.reward[after][:-1], old.reward[before])
            hits, more = data.counts.hits[tally], found.counts.hits[tallied]
            np.testing.assert_array_equal(more[:-1], hits)
            assert hits.sum() > 0 or more[-1] == 0
            met, missed = met + (more[-1] > 0), missed + (hits.sum() > 0 and more[-1] == 0)
            untouched += hits.sum() == 0
            assert 0 <= new.next_state[after][-1] < old.n_states
            assert 0.0 <= new.reward[after][-1] <= float(data.criterion.remaining.max())
        dynamics = empirical_dynamics(found)  # the package can read it
        np.testing.assert_array_equal(dynamics.tried, empirical_dynamics(data).tried)
    assert met
    assert missed
    assert untouched


@pytest.mark.parametrize("kind", KINDS)
def test_phantoms_are_a_function_of_their_key(kind: str) -> None:
    data = table(kind)
    value = values_of(data)
    first, again, other = (add_phantoms(data, value, key, start=True) for key in (5, 5, 6))
    for one, two in zip(first.counts.outcomes, again.counts.outcomes, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(first.counts.hits, again.counts.hits)
    np.testing.assert_array_equal(first.starts, again.starts)
    assert not np.array_equal(first.counts.hits, other.counts.hits)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_a_poisson_number_of_phantoms_of_three_kinds(kind: str) -> None:
    """400 keys: false alarm 1e-6 each. Controls: a Poisson law of mean 1.2, and kinds of other chances, are rejected.

    Power: 1.2 for 1 moves the mean of 400 keys times 3 rows or more by over 6 standard deviations.
    """
    data = table(kind)
    value, outcomes = values_of(data), data.counts.outcomes
    numbers: Counter[int] = Counter()
    starts: Counter[int] = Counter()
    rewards: Counter[float] = Counter()
    for key in range(400):
        found = add_phantoms(data, value, key, start=True)
        starts[int(found.starts.sum() - data.starts.sum())] += 1
        for cell in cells(data):
            slots = found.counts.outcomes.slots(*cell)
            if data.counts.visits[cell] > 0:
                numbers[int(found.counts.hits[slots[1]][-1])] += 1
                if outcomes.row_shift or cell[0] == 0:
                    rewards[float(found.counts.outcomes.reward[slots[0]][-1])] += 1

    def poisson(mean: float) -> dict[int, float]:
        law = {k: math.exp(-mean) * mean**k / math.factorial(k) for k in range(8)}
        return {**law, 7: law[7] + 1.0 - sum(law.values())}

    assert sum(numbers.values()) >= 1200
    assert chi_square_of(numbers, poisson(1.0)) > FALSE_ALARM
    assert chi_square_of(numbers, poisson(1.2)) <= FALSE_ALARM
    assert chi_square_of(starts, poisson(1.0)) > FALSE_ALARM
    if set(rewards) == {0.0, 1.0}:  # a third pays 1, a third 0, a third either
        assert chi_square_of(rewards, {0.0: 0.5, 1.0: 0.5}) > FALSE_ALARM
        assert chi_square_of(rewards, {0.0: 1 / 3, 1.0: 2 / 3}) <= FALSE_ALARM


def test_phantoms_lead_to_the_best_and_to_the_worst_state() -> None:
    data = table("own")
    value, leads = values_of(data), Counter[int]()
    for key in range(200):
        new = add_phantoms(data, value, key, start=False).counts.outcomes
        leads[int(new.next_state[new.slots(0, 0, 0)[0]][-1])] += 1
    best, worst = int(value[1].argmax()), int(value[1].argmin())
    (other,) = {0, 1, 2} - {best, worst}
    assert min(leads[best], leads[worst]) > leads[other] > 0  # 4/9, 4/9 and 1/9 of 200


@pytest.mark.parametrize("pooled", [False, True])
def test_where_a_state_was_never_seen_a_phantom_is_worth_all_that_is_left_and_no_more(pooled: bool) -> None:
    data = many(1, pooled=pooled, strange=True)
    horizon = data.counts.outcomes.horizon
    value = values_of(data) * 0.5  # such that something is left
    left = np.arange(horizon, 0, -1.0)
    best = value[1:].mean(axis=0).argmax() if pooled else value[1:].argmax(axis=1)
    needed = left - (value[1:, best] if pooled else value[1:].max(axis=1))
    expected = np.maximum(np.full(horizon, needed.max()) if pooled else needed, 1.0)
    assert expected.max() > 1.0
    for h in range(horizon):
        tables = [add_phantoms(data, value, key, start=False).counts.outcomes for key in range(40)]
        paid = {float(table.reward[table.slots(h, 0, 0)[0]][-1]) for table in tables}
        assert 0.0 in paid
        assert max(paid) == pytest.approx(expected[h])
        assert max(paid) + (value[h + 1, best] if pooled else value[h + 1].max()) >= left[h] - 1e-9

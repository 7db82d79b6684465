"""The canonical rule f(ξ, M): against plain loops, its properties, and which shared addresses it reads."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reprl.canonical.plateau import plateau_laws

import reprl
from reprl.canonical.allocation import allocate_samples
from reprl.canonical.choice import WIDTHS, Rule, choose, follow, make_rule, with_key
from reprl.canonical.gaps import average_gaps, find_gaps, value_spread
from reprl.canonical.preferred import weigh_tolerances
from reprl.errors import ReprlError
from reprl.mdp.counts import Counts, tally
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics, true_dynamics
from reprl.mdp.outcomes import Outcomes
from reprl.randomness import DataStream, SharedKey
from reprl.sources.optimism import weigh_unknown, weigh_unseen
from tests import naive, naive_rule

SEEDS = st.integers(0, 2**32)
MANY = settings(max_examples=40, deadline=None)


def random_data(seed: int, *, shape: tuple[int, int, int] | None = None, untried: float = 0.15) -> Data:
    """Counts of a made-up world: shared or own tables, deterministic rows, ties, untried cells, several starts."""
    draw = np.random.default_rng(seed)
    horizon, n_states, n_actions = shape or (int(draw.integers(1, n)) for n in (5, 5, 5))
    shared = bool(draw.integers(2))
    coarse = bool(draw.integers(2))  # few values, so that actions tie
    rows = (1 if shared else horizon) * n_states * n_actions
    first, following, reward = [0], [], []
    for _ in range(rows):
        width = int(draw.integers(1, 4))
        for _ in range(width):
            following.append(draw.integers(n_states))
            reward.append(draw.integers(3) / 2 if coarse else draw.uniform())
        first.append(len(following))
    outcomes = Outcomes(
        horizon,
        n_states,
        n_actions,
        0 if shared else n_states * n_actions,
        len(following) if shared else 0,
        np.array(first),
        np.array(following, dtype=np.int32),
        np.array(reward, dtype=np.float64),
    )
    hits = 2 ** draw.integers(0, 3, outcomes.n_slots) if coarse else draw.integers(0, 30, outcomes.n_slots)
    for cell in itertools.product(range(horizon), range(n_states), range(n_actions)):
        if draw.uniform() < untried:
            hits[outcomes.slots(*cell)[1]] = 0
    starts = draw.integers(0, 3, n_states) if draw.integers(2) else np.zeros(n_states, dtype=np.int64)
    starts[draw.integers(n_states)] += 1
    return Data(Counts(outcomes, hits.astype(np.int64)), starts.astype(np.int64))


def random_rule(seed: int, data: Data, epsilon: float | None = None) -> Rule:
    draw = np.random.default_rng([seed, 1])
    shape = data.counts.outcomes.shape
    preference = (None, "shared", tuple(draw.permutation(shape[2]).tolist()))[draw.integers(3)]
    asked = epsilon or float(min(draw.choice([0.01, 0.3, 1.0]), shape[0]))
    return make_rule(SharedKey(seed), shape, epsilon=asked, preference=preference, stationary=seed % 3 != 1)


def case(seed: int, **options: Any) -> tuple[Rule, Data, Dynamics]:
    data = random_data(seed, **options)
    return random_rule(seed, data), data, empirical_dynamics(data)


# Against plain loops.


@pytest.mark.parametrize("seed", range(60))
def test_gaps_are_those_of_plain_loops(seed: int) -> None:
    rule, _, dynamics = case(seed)
    world = naive_rule.world_of(dynamics)
    found, slow = find_gaps(dynamics, rule.order), naive_rule.solve(world, rule.order.tolist())
    np.testing.assert_allclose(found.value, slow.value, atol=1e-11)
    np.testing.assert_allclose(found.gap, slow.gap, atol=1e-11)
    np.testing.assert_allclose(found.own, slow.own, atol=1e-11)
    np.testing.assert_allclose(found.spread**2, slow.spread**2, atol=1e-10)
    np.testing.assert_array_equal(found.best, slow.best)


@pytest.mark.parametrize("seed", range(60))
def test_tolerances_print_what_plain_loops_print(seed: int) -> None:
    rule, _, dynamics = case(seed)
    world = naive_rule.world_of(dynamics)
    gaps, slow = find_gaps(dynamics, rule.order), naive_rule.solve(world, rule.order.tolist())
    floor = (rule.floor, 0.2)[seed % 2]
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances, floor)
    for j, tolerance in enumerate(rule.tolerances):
        printed = naive_rule.preferred(world, slow, rule.order.tolist(), float(tolerance), floor)
        np.testing.assert_array_equal(found.actions[j], printed.actions)
        assert found.margin[j] == pytest.approx(printed.margin, rel=1e-8)
        assert found.loss[j] == pytest.approx(printed.loss, abs=1e-11)
        assert (found.tightest[j, 0] < 0) == (printed.tightest is None)
        if printed.tightest is not None:  # equally near comparisons may be named in either order
            h, s, a = found.tightest[j]
            gap, spread = gaps.gap[h, s, a], gaps.spread[h, s, a]
            ways = [abs(gap - tolerance) / spread, (gap + tolerance) / spread]
            assert min(abs(way - printed.margin) for way in ways) <= 1e-8 * printed.margin


@pytest.mark.parametrize("seed", range(60))
def test_steady_tolerances_print_what_plain_loops_print(seed: int) -> None:
    rule, _, dynamics = case(seed, untried=(0.0, 0.1)[seed % 2])
    world = naive_rule.world_of(dynamics)
    gaps, slow = find_gaps(dynamics, rule.order), naive_rule.solve(world, rule.order.tolist())
    mean, plain = average_gaps(dynamics, gaps, rule.order), naive_rule.averaged(world, slow, rule.order.tolist())
    np.testing.assert_allclose(mean.gap, plain.gap, atol=1e-11)
    np.testing.assert_allclose(mean.spread, plain.spread, atol=1e-6)
    np.testing.assert_array_equal(mean.best, plain.best)
    floor = (rule.floor, 0.2)[seed % 2]
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances, floor, stationary=True)
    for j, tolerance in enumerate(rule.tolerances):
        printed = naive_rule.steady(world, slow, rule.order.tolist(), float(tolerance), floor)
        np.testing.assert_array_equal(found.actions[j], printed.actions)
        assert found.margin[j] == pytest.approx(printed.margin, rel=1e-6)
        assert found.loss[j] == pytest.approx(printed.loss, abs=1e-11)
        assert (found.tightest[j, 0] < 0) == (printed.tightest is None)
        assert (found.actions[j] == found.actions[j, 0]).all()


@pytest.mark.parametrize("seed", range(60))
def test_plateau_laws_are_those_of_plain_loops(seed: int) -> None:
    rule, _, dynamics = case(seed)
    world = naive_rule.world_of(dynamics)
    gaps, slow = find_gaps(dynamics, rule.order), naive_rule.solve(world, rule.order.tolist())
    floor = (rule.floor, 0.2)[seed % 2]
    for width in (*rule.widths, 1.0):
        laws, margin = plateau_laws(dynamics, gaps, rule.order, float(width), floor)
        expected, slow_margin = naive_rule.plateau(world, slow, rule.order.tolist(), float(width), floor)
        np.testing.assert_allclose(laws, expected, atol=1e-9)
        assert margin == pytest.approx(slow_margin, rel=1e-7)


def contest(seed: int) -> tuple[Rule, Dynamics]:
    """A world and a rule; every other one has a single tolerance, so that widths win too."""
    rule, _, dynamics = case(seed)
    if seed % 2:
        few, steady = rule.tolerances[seed % 24 :][:1], rule.stationary[seed % 24 :][: seed % 4 // 2]
        rule = rule._replace(tolerances=few, stationary=steady)
    return rule, dynamics


@pytest.mark.parametrize("seed", range(60))
def test_the_choice_is_that_of_plain_loops(seed: int) -> None:
    rule, dynamics = contest(seed)
    actions, scores = naive_rule.choose(rule, naive_rule.world_of(dynamics))
    first, found = scores[0], choose(rule, dynamics)
    assert found.policy == reprl.Policy(actions)
    assert (found.kind, found.candidate) == (first.kind, first.candidate)
    grid = {"preferred": rule.tolerances, "steady": rule.stationary, "sampled": rule.widths}[first.kind]
    assert found.tolerance == grid[first.candidate]
    rival = max(item.score for item in scores if item.kind != "sampled")
    weighed = [item for item in scores if item.hope > rival]  # a width that cannot win is not drawn from
    other = max((item.score for item in weighed if item.fingerprint != first.fingerprint), default=-math.inf)
    assert found.lead == pytest.approx(first.score - other if math.isfinite(other) else math.inf, abs=1e-7)
    assert found.margin == pytest.approx(first.margin, rel=1e-6)


def test_the_reference_sees_every_kind() -> None:
    """Otherwise the comparison above would not reach the sampled candidates."""
    assert {choose(*contest(seed)).kind for seed in range(60)} == {"preferred", "steady", "sampled"}


@pytest.mark.parametrize("seed", range(20))
def test_unknown_value_is_the_best_over_all_policies(seed: int) -> None:
    draw = np.random.default_rng([seed, 2])
    shape = ((2, 2, 2), (3, 2, 2), (2, 3, 2), (1, 3, 3))[seed % 4]
    data = random_data(seed, shape=shape)
    dynamics = empirical_dynamics(data)
    unsure = ~dynamics.tried | (draw.uniform(size=shape) < 0.15)
    expected = naive_rule.unknown_value(naive_rule.world_of(dynamics), unsure)
    assert weigh_unknown(dynamics, unsure).worth == pytest.approx(expected, abs=1e-12)


def test_nothing_unsure_is_worth_nothing_and_everything_is_worth_the_horizon() -> None:
    dynamics = empirical_dynamics(random_data(3, shape=(4, 3, 2), untried=0.0))
    assert weigh_unknown(dynamics, np.zeros((4, 3, 2), dtype=np.bool_)).worth == 0.0
    assert weigh_unknown(dynamics, np.ones((4, 3, 2), dtype=np.bool_)).worth == pytest.approx(4.0)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_what_is_unseen_is_that_of_plain_loops(seed: int, pooled: bool) -> None:
    draw = np.random.default_rng([seed, 5])
    data = random_data(seed)
    data = data.pool() if pooled else data
    horizon, n_states, n_actions = data.counts.outcomes.shape
    value, visits = draw.uniform(size=(horizon + 1, n_states)), draw.uniform(size=(horizon, n_states))
    actions = draw.integers(n_actions, size=(horizon, n_states))
    rows: dict[tuple[int, ...], list[float]] = {}
    for h in range(horizon):
        seen, here = [], []
        for s, a in itertools.product(range(n_states), range(n_actions)):
            table, slots = data.counts.outcomes.slots(h, s, a)
            hits = data.counts.hits[slots]
            worth = data.counts.outcomes.reward[table] + value[h + 1, data.counts.outcomes.next_state[table]]
            seen += list(worth[hits > 0])
            if a == actions[h, s]:
                here.append(((s, a) if pooled else (h, s, a), visits[h, s], int(hits.sum())))
        for row, share, n in here:
            cost = share * (max(seen) - min(seen) if seen else 0.0)
            rows[row] = [rows.get(row, [0.0])[0] + cost, n]
    expected = naive_rule.unseen(rows.values(), 0.05)
    assert weigh_unseen(data, value, visits, actions, 0.05) == pytest.approx(expected, abs=1e-12)


def test_hidden_outcomes_stay_hidden_with_probability_delta() -> None:
    """Σ n·q = log(1/δ) hides for good with probability at most δ, and nearly δ: the bound is no larger than it must be.

    A computation, no sample; the control takes a quarter of it.
    """
    samples, delta = np.array([10, 40, 200, 1000]), 0.1
    for share in (np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.5, 0.5]), np.full(4, 0.25)):
        hidden = math.log(1 / delta) * share / samples
        assert math.exp(float(np.sum(samples * np.log1p(-hidden)))) <= delta
        assert math.exp(float(np.sum(samples * np.log1p(-hidden / 4)))) > 5 * delta


@pytest.mark.parametrize("seed", range(30))
def test_influence_is_that_of_plain_loops(seed: int) -> None:
    draw = np.random.default_rng([seed, 3])
    n_states, n_actions = 3, 3
    mdp = reprl.TabularMDP(
        draw.dirichlet(np.ones(n_states), (n_states, n_actions)),
        draw.uniform(size=(n_states, n_actions)),
        horizon=3,
        initial=draw.dirichlet(np.ones(n_states)),
    )
    dynamics = true_dynamics(mdp)
    rule = make_rule(SharedKey(seed), (3, n_states, n_actions), epsilon=0.3)
    expected = naive_rule.influence(rule, naive_rule.world_of(dynamics))
    np.testing.assert_allclose(allocate_samples(rule, dynamics), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_spread_of_values_is_that_of_all_policies(seed: int) -> None:
    dynamics = empirical_dynamics(random_data(seed, shape=((2, 2, 2), (3, 2, 2), (1, 3, 3))[seed % 3], untried=0.0))
    world = naive_rule.world_of(dynamics)
    values = [naive_rule.evaluate(world, actions) for actions in naive.all_policies(*world.shape)]
    if dynamics.tried.all():
        assert value_spread(dynamics) == pytest.approx(max(values) - min(values), abs=1e-12)


def test_influence_without_a_comparison_is_the_variance() -> None:
    mdp = reprl.TabularMDP(np.full((1, 2, 1), 1.0), np.array([[0.5, 0.5]]), horizon=2, reward_kind="deterministic")
    rule = make_rule(SharedKey(1), (2, 1, 2), epsilon=0.3)
    np.testing.assert_array_equal(allocate_samples(rule, true_dynamics(mdp)), np.zeros((2, 1, 2)))


# Properties.


def same_choice(first: Any, second: Any) -> bool:
    return all(x == y for x, y in zip(first, second, strict=True))


@MANY
@given(SEEDS)
def test_choose_is_a_pure_function(seed: int) -> None:
    rule, _, dynamics = case(seed)
    before = dynamics.probability.copy(), dynamics.tried.copy(), dynamics.initial.copy()
    first = choose(rule, dynamics)
    choose(random_rule(seed + 1, random_data(seed)), dynamics)  # nothing is remembered in between
    again = choose(random_rule(seed, random_data(seed)), empirical_dynamics(random_data(seed)))
    assert same_choice(first, again)
    for old, new in zip(before, (dynamics.probability, dynamics.tried, dynamics.initial), strict=True):
        np.testing.assert_array_equal(old, new)


@MANY
@given(SEEDS, st.integers(2, 1000))
def test_the_amount_of_data_does_not_enter(seed: int, times: int) -> None:
    rule, data, dynamics = case(seed)
    more = Data(Counts(data.counts.outcomes, data.counts.hits * times), data.starts * times)
    assert same_choice(choose(rule, dynamics), choose(rule, empirical_dynamics(more)))


@MANY
@given(SEEDS)
def test_the_order_of_records_and_of_parts_cannot_matter(seed: int) -> None:
    draw = np.random.default_rng(seed)
    shape = (2, 3, 2)
    records = np.column_stack(
        [draw.integers(n, size=60) for n in (2, 3, 2, 3)] + [draw.integers(3, size=60) / 2]
    ).astype(np.float64)
    starts = np.bincount(draw.integers(3, size=9), minlength=3)
    whole = Data(tally(records, shape), starts)
    parts = [Data(tally(part, shape), starts // 3 + (starts % 3 > i)) for i, part in enumerate(np.split(records, 3))]
    rule = random_rule(seed, whole)
    chosen = choose(rule, empirical_dynamics(whole))
    shuffled = Data(tally(draw.permutation(records), shape), starts)
    assert same_choice(chosen, choose(rule, empirical_dynamics(shuffled)))
    for one, two, three in itertools.permutations(parts):
        for total in ((one + two) + three, one + (two + three)):
            assert total.counts == whole.counts
            np.testing.assert_array_equal(total.starts, whole.starts)


def test_data_without_samples_add_nothing() -> None:
    data = random_data(8)
    shape = data.counts.outcomes.shape
    nothing = Data(tally([], shape), np.zeros(shape[1], dtype=np.int64))
    rule = random_rule(8, data)
    for total in (nothing + data, data + nothing):
        assert int(total.counts.hits.sum()) == int(data.counts.hits.sum())
        assert choose(rule, empirical_dynamics(total)).policy == choose(rule, empirical_dynamics(data)).policy
    assert (nothing + nothing).counts == nothing.counts
    no_starts = Data(data.counts, np.zeros(shape[1], dtype=np.int64))
    for total in (no_starts + data, data + no_starts):
        np.testing.assert_array_equal(total.counts.hits, 2 * data.counts.hits)


@MANY
@given(SEEDS)
def test_the_loss_stays_in_its_room_whenever_the_smallest_tolerances_does(seed: int) -> None:
    rule, _, dynamics = case(seed)
    found = weigh_tolerances(dynamics, find_gaps(dynamics, rule.order), rule.order, rule.tolerances, rule.floor)
    choice = choose(rule, dynamics)
    world = naive_rule.world_of(dynamics)
    best = naive_rule.best_value(world, naive_rule.solve(world, rule.order.tolist()))
    value = naive_rule.evaluate(world, choice.policy.actions.tolist())
    assert choice.value == pytest.approx(value, abs=1e-10)
    assert choice.loss == pytest.approx(best - value, abs=1e-10)
    if found.loss.min() < rule.room:
        assert choice.loss < rule.room <= 0.95 * rule.epsilon


@MANY
@given(SEEDS)
def test_the_loss_is_at_most_the_tolerance_times_the_horizon_and_what_the_floor_costs(seed: int) -> None:
    rule, _, dynamics = case(seed)
    horizon = dynamics.outcomes.horizon
    gaps = find_gaps(dynamics, rule.order)
    for floor in (rule.floor, 0.1):
        found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances, floor)
        for j, tolerance in enumerate(rule.tolerances):
            own = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances[j : j + 1], 0.0).actions[0]
            visits = dynamics.occupancy(own)
            bound = horizon * tolerance + horizon * visits[visits < floor].sum()
            assert -1e-10 <= found.loss[j] <= bound + 1e-10


@MANY
@given(SEEDS)
def test_a_twin_is_never_taken_for_the_preferred_one(seed: int) -> None:
    """The last action repeats another one's rows and counts; no tolerance may print the less preferred of the two."""
    rule, data, _ = case(seed, shape=(3, 3, 3))
    old = data.counts.outcomes
    steps = range(old.horizon if old.row_shift else 1)
    first, following, reward = [0], [], []
    hits: list[list[int]] = [[] for _ in range(old.horizon)]
    for h, s, a in itertools.product(steps, range(3), (0, 1, 2, 0)):
        row, _ = old.slots(h, s, a)
        following += old.next_state[row].tolist()
        reward += old.reward[row].tolist()
        first.append(len(following))
    for h, s, a in itertools.product(range(old.horizon), range(3), (0, 1, 2, 0)):
        hits[h] += data.counts.hits[old.slots(h, s, a)[1]].tolist()
    table = Outcomes(
        3,
        3,
        4,
        12 if old.row_shift else 0,
        0 if old.row_shift else len(following),
        np.array(first),
        np.array(following, dtype=np.int32),
        np.array(reward),
    )
    dynamics = empirical_dynamics(Data(Counts(table, np.concatenate(hits).astype(np.int64)), data.starts))
    for order in ([0, 1, 2, 3], [2, 3, 0, 1], [1, 0, 2, 3], [3, 2, 1, 0]):
        worse = 3 if order.index(0) < order.index(3) else 0
        preferred = np.array(order)
        found = weigh_tolerances(dynamics, find_gaps(dynamics, preferred), preferred, rule.tolerances, rule.floor)
        assert not (found.actions == worse).any()
        chosen = choose(make_rule(SharedKey(seed), (3, 3, 4), epsilon=0.3, preference=order), dynamics)
        assert chosen.kind == "sampled" or not (chosen.policy.actions == worse).any()


def relabelled(data: Data, new: list[int]) -> Data:
    """The same data with action a called new[a]."""
    rows = []
    outcomes = data.counts.outcomes
    for h, s, a in itertools.product(*map(range, outcomes.shape)):
        table, slots = outcomes.slots(h, s, a)
        for y, r, n in zip(
            outcomes.next_state[table], outcomes.reward[table], data.counts.hits[slots].tolist(), strict=True
        ):
            rows += [(h, s, new[a], y, r)] * n
    return Data(tally(rows, outcomes.shape), data.starts)


@MANY
@given(SEEDS)
def test_relabelling_actions_and_preference_relabels_the_policy(seed: int) -> None:
    data = random_data(seed, shape=(2, 3, 3))
    draw = np.random.default_rng([seed, 4])
    new, order = draw.permutation(3).tolist(), draw.permutation(3).tolist()
    rule = make_rule(SharedKey(seed), (2, 3, 3), epsilon=0.3, preference=order)
    other = make_rule(SharedKey(seed), (2, 3, 3), epsilon=0.3, preference=[new[a] for a in order])
    plain = relabelled(data, [0, 1, 2])  # the same table layout as the one compared with
    for j in (0, 8, 16, 23):
        first = choose(follow(rule, "preferred", j), empirical_dynamics(plain))
        second = choose(follow(other, "preferred", j), empirical_dynamics(relabelled(data, new)))
        np.testing.assert_array_equal(np.array(new)[first.policy.actions], second.policy.actions)
        assert (first.margin, first.loss) == (second.margin, second.loss)


@MANY
@given(SEEDS)
def test_following_a_candidate_prints_what_it_prints(seed: int) -> None:
    rule, _, dynamics = case(seed)
    gaps = find_gaps(dynamics, rule.order)
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances, rule.floor)
    for j in range(rule.tolerances.size):
        alone = choose(follow(rule, "preferred", j), dynamics)
        assert (alone.kind, alone.candidate, alone.tolerance) == ("preferred", j, rule.tolerances[j])
        np.testing.assert_array_equal(alone.policy.actions, found.actions[j])
        assert (alone.margin, alone.loss) == (found.margin[j], found.loss[j])
        assert alone.lead == math.inf
    for number in range(rule.widths.size):
        alone = choose(follow(rule, "sampled", number), dynamics)
        assert (alone.kind, alone.candidate, alone.tolerance) == ("sampled", number, rule.widths[number])
    chosen = choose(rule, dynamics)
    again = choose(follow(rule, chosen.kind, chosen.candidate), dynamics)
    assert (again.policy, again.kind, again.candidate) == (chosen.policy, chosen.kind, chosen.candidate)
    assert (again.tolerance, again.loss) == (chosen.tolerance, chosen.loss)


def test_follow_refuses_what_the_rule_has_not() -> None:
    rule = make_rule(SharedKey(1), (2, 3, 2), epsilon=0.3)
    for kind, number in (
        ("greedy", 0),
        ("preferred", 24),
        ("preferred", -1),
        ("sampled", len(WIDTHS)),
        ("steady", 0),
        ("sampled", "1"),
    ):
        with pytest.raises(ReprlError):
            follow(rule, kind, number)  # type: ignore[arg-type]


@MANY
@given(SEEDS, st.sampled_from([0.001, 0.3, 2.0]), st.integers(1, 20))
def test_the_rules_parts_lie_where_they_are_said_to(seed: int, epsilon: float, horizon: int) -> None:
    epsilon = min(epsilon, float(horizon))
    rule = make_rule(SharedKey(seed), (horizon, 4, 3), epsilon=epsilon, preference="shared")
    low, step = epsilon / horizon * 2.0**-7, (math.log(horizon / epsilon * horizon) + 7 * math.log(2)) / 24
    assert rule.tolerances.size == 24
    assert low <= rule.tolerances[0] <= rule.tolerances[-1] <= horizon * (1 + 1e-12)
    np.testing.assert_allclose(np.diff(np.log(rule.tolerances)), step)
    assert rule.tolerances[0] <= low * math.exp(step) * (1 + 1e-12)
    np.testing.assert_allclose(rule.widths / rule.widths[0], WIDTHS)
    assert epsilon / horizon <= rule.widths[0] <= 2 * epsilon / horizon
    assert 0.75 * epsilon <= rule.room <= 0.95 * epsilon
    assert sorted(rule.order) == [0, 1, 2]
    assert horizon * 4 * horizon * rule.floor <= epsilon * horizon / 4  # all floors together
    assert (rule.stationary.size, rule.handicap) == (0, 0.0)
    alike = make_rule(SharedKey(seed), (horizon, 4, 3), epsilon=epsilon, preference="shared", stationary=True)
    assert alike.stationary.tolist() == (alike.tolerances.tolist() if horizon > 1 else [])
    assert (0.3 <= alike.handicap <= 0.7) if horizon > 1 else alike.handicap == 0.0
    assert alike._replace(stationary=rule.stationary, handicap=0.0)[1:4] == rule[1:4]
    assert with_key(alike, alike.key).stationary.tolist() == alike.stationary.tolist()
    assert with_key(rule, rule.key).tolerances.tolist() == rule.tolerances.tolist()


# Addresses.


class Listener:
    """Every shared address that is read, and every data stream that is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[tuple[str | int, ...]] = []
        self.streams: list[str] = []
        words = SharedKey.words.fget  # type: ignore[attr-defined]
        begin = DataStream.__init__

        def listen(key: SharedKey) -> Any:
            self.read.append(key.labels)
            return words(key)

        def opened(stream: DataStream, data_seed: int, purpose: str, run: int = 0) -> None:
            self.streams.append(purpose)
            begin(stream, data_seed, purpose, run)

        monkeypatch.setattr(SharedKey, "words", property(listen))
        monkeypatch.setattr(DataStream, "__init__", opened)


def test_no_data_move_a_shared_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Listener(monkeypatch)
    shape, rules = (2, 3, 3), []
    drawn: dict[int, set[bytes]] = {}
    for seed in range(40):
        heard.read.clear()
        rule = make_rule(SharedKey(5), shape, epsilon=0.3, preference="shared")
        rules.append(rule)
        assert heard.read == [("tolerance",), ("width",), ("room",), ("floor",), ("handicap",), ("preference",)]
        heard.read.clear()
        rule = rule._replace(tolerances=rule.tolerances[seed % 24 :][:1])  # so that widths compete
        dynamics = empirical_dynamics(random_data(seed, shape=shape))
        found = weigh_tolerances(dynamics, find_gaps(dynamics, rule.order), rule.order, rule.tolerances, rule.floor)
        assert heard.read == []
        choice = choose(rule, dynamics)
        printed = {reprl.Policy(actions).fingerprint for actions in found.actions}
        policies = [place[1] for place in heard.read if place[0] == "policy"]
        assert printed <= set(policies)
        assert choice.policy.fingerprint in policies
        others = [place for place in heard.read if place[0] != "policy"]
        assert all(place[:2] in {("sampled", k) for k in range(len(WIDTHS))} for place in others)
        # A sampled candidate reads its own number's draws, however many before it were left out.
        for number in {int(place[1]) for place in others}:
            heard.read.clear()
            alone = choose(follow(rule, "sampled", number), dynamics)
            reads = {place for place in heard.read if place[0] == "sampled"}
            assert reads == {place for place in others if place[1] == number}
            drawn.setdefault(number, set()).add(alone.policy.actions.tobytes())
    assert heard.streams == []
    for part in ("tolerances", "widths", "room", "floor", "order"):
        assert len({np.asarray(getattr(rule, part)).tobytes() for rule in rules}) == 1
    assert drawn, "no sampled candidate was ever drawn: nothing was tested"


def test_the_noise_of_a_policy_is_a_function_of_the_policy_alone() -> None:
    """One policy found in two worlds, by two tolerances, has one weight's noise: score less margins is the same."""
    rule = make_rule(SharedKey(9), (1, 1, 2), epsilon=0.3)
    mdps = [
        reprl.TabularMDP(np.ones((1, 2, 1)), np.array([[good, 0.1]]), horizon=1, reward_kind="bernoulli")
        for good in (0.6, 0.9)
    ]
    noises = []
    for mdp in mdps:
        world = naive_rule.world_of(true_dynamics(mdp))
        _, scores = naive_rule.choose(rule, world)
        solved = naive_rule.solve(world, [0, 1])
        pool: dict[str, float] = {}
        for u in rule.tolerances:
            printed = naive_rule.preferred(world, solved, [0, 1], float(u), rule.floor)
            name = reprl.Policy(printed.actions).fingerprint
            left = 1.0 - printed.loss / rule.room
            pool[name] = pool.get(name, 0.0) + ((printed.margin * math.sqrt(left)) ** 3 if left > 0 else 0.0)
        first = reprl.Policy([[0]]).fingerprint
        noises.append(next(item.score for item in scores if item.fingerprint == first) - math.log(pool[first]) / 3)
    assert noises[0] == pytest.approx(noises[1], abs=1e-12)
    own = float(SharedKey(9).derive("policy", reprl.Policy([[0]]).fingerprint).uniforms(1)[0])
    assert noises[0] == pytest.approx(0.3 * own)

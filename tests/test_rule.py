"""The canonical rule f(ξ, M): against plain loops, its properties, and which shared addresses it reads."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.canonical.allocation import allocate_samples
from reprl.canonical.choice import CELLS, HANDICAP, Rule, choose, follow, make_rule, with_key
from reprl.canonical.gaps import average_gaps, find_gaps, value_spread
from reprl.canonical.goal import LEAST_GAIN, Goal
from reprl.canonical.preferred import phases_of, weigh_tolerances
from reprl.errors import ReprlError
from reprl.mdp.counts import Counts, tally
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics, true_dynamics
from reprl.mdp.outcomes import Outcomes
from reprl.randomness import DataStream, SharedKey
from reprl.sources.optimism import weigh_unknown
from tests import naive, naive_rule

SEEDS = st.integers(0, 2**32)
MANY = settings(max_examples=40, deadline=None)
NUMBER = 40
"""Tolerances of a rule."""
LOOSE = Goal(epsilon=0.3)


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


def random_rule(seed: int, data: Data) -> Rule:
    """Any goal, preference and baseline, with and without stationary candidates."""
    draw = np.random.default_rng([seed, 1])
    shape = data.counts.outcomes.shape
    preference = (None, "shared", tuple(draw.permutation(shape[2]).tolist()))[draw.integers(3)]
    epsilon = float(min(draw.choice([0.01, 0.3, 1.0]), shape[0]))
    goal = (Goal(epsilon=epsilon), Goal(quality=float(draw.choice([0.5, 0.9, 0.99]))))[draw.integers(2)]
    baseline = draw.integers(shape[2], size=shape[:2]) if draw.integers(2) else None
    parts: Any = {"goal": goal, "baseline": baseline, "preference": preference}
    return make_rule(SharedKey(seed), shape, stationary=seed % 3 != 1, **parts)


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
    np.testing.assert_array_equal(found.default, slow.default)


@pytest.mark.parametrize("seed", range(60))
def test_tolerances_print_what_plain_loops_print(seed: int) -> None:
    rule, _, dynamics = case(seed)
    world = naive_rule.world_of(dynamics)
    gaps, slow = find_gaps(dynamics, rule.order), naive_rule.solve(world, rule.order.tolist())
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances)
    for j, tolerance in enumerate(rule.tolerances):
        printed = naive_rule.preferred(world, slow, rule.order.tolist(), float(tolerance))
        np.testing.assert_array_equal(found.actions[j], printed.actions)
        assert found.margin[j] == pytest.approx(printed.margin, rel=1e-8)
        assert found.loss[j] == pytest.approx(printed.loss, abs=1e-11)
        assert (found.tightest[j, 0] < 0) == (printed.tightest is None)
        if printed.tightest is not None:  # equally near comparisons may be named in either order
            h, s, a = found.tightest[j].tolist()
            how = (slow, h, s, printed.actions[h][s], rule.order.tolist(), float(tolerance), printed.visits[h][s])
            near = {action: x for x, action in naive_rule.distances(*how)}
            assert near[a] == pytest.approx(printed.margin, rel=1e-8)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("kind", ["steady", "phased"])
def test_tolerances_with_phases_print_what_plain_loops_print(kind: str, seed: int) -> None:
    rule, _, dynamics = case(seed, untried=(0.0, 0.1)[seed % 2])
    world = naive_rule.world_of(dynamics)
    gaps, slow = find_gaps(dynamics, rule.order), naive_rule.solve(world, rule.order.tolist())
    horizon = rule.shape[0]
    phases = phases_of(kind, horizon)
    assert phases is not None
    mean = average_gaps(dynamics, gaps, rule.order, phases)
    parts = [list(range(horizon))] if kind == "steady" else naive_rule.phases(horizon)
    assert phases.tolist() == [number for number, steps in enumerate(parts) for _ in steps]
    for number, steps in enumerate(parts):
        plain = naive_rule.averaged(world, slow, rule.order.tolist(), steps)
        np.testing.assert_allclose(mean.gap[number], plain.gap[0], atol=1e-11)
        np.testing.assert_allclose(mean.spread[number], plain.spread[0], atol=1e-6)
        np.testing.assert_array_equal(mean.best[number], plain.best[0])
        np.testing.assert_array_equal(mean.default[number], plain.default[0])
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances, phases)
    for j, tolerance in enumerate(rule.tolerances):
        make = naive_rule.steady if kind == "steady" else naive_rule.phased
        printed = make(world, slow, rule.order.tolist(), float(tolerance))
        np.testing.assert_array_equal(found.actions[j], printed.actions)
        assert found.margin[j] == pytest.approx(printed.margin, rel=1e-6)
        assert found.loss[j] == pytest.approx(printed.loss, abs=1e-11)
        assert (found.tightest[j, 0] < 0) == (printed.tightest is None)
        assert all((found.actions[j, steps] == found.actions[j, steps[0]]).all() for steps in parts)


def contest(seed: int) -> tuple[Rule, Dynamics]:
    """A world and a rule; every other one has a few tolerances only, so that others win too."""
    rule, _, dynamics = case(seed)
    if seed % 2:
        few, steady = rule.tolerances[seed % NUMBER :][:1], rule.stationary[seed % NUMBER :][: seed % 4 // 2]
        rule = rule._replace(tolerances=few, stationary=steady, phased=rule.phased[seed % 5 :][: seed % 8 // 4])
    return rule, dynamics


@pytest.mark.parametrize("seed", range(80))
def test_the_choice_is_that_of_plain_loops(seed: int) -> None:
    rule, dynamics = contest(seed)
    world = naive_rule.world_of(dynamics)
    actions, scores = naive_rule.choose(rule, world)
    first, found = scores[0], choose(rule, dynamics)
    assert found.policy == reprl.Policy(actions)
    assert (found.kind, found.candidate) == (first.kind, first.candidate)
    tolerances = {"preferred": rule.tolerances, "steady": rule.stationary, "phased": rule.phased}
    assert found.tolerance == tolerances[first.kind][first.candidate]
    other = max((item.score for item in scores if item.fingerprint != first.fingerprint), default=-math.inf)
    assert found.lead == pytest.approx(first.score - other if math.isfinite(other) else math.inf, abs=1e-7)
    assert found.margin == pytest.approx(first.margin, rel=1e-6)
    assert found.loss == pytest.approx(first.loss, abs=1e-11)
    solved = naive_rule.solve(world, rule.order.tolist())
    assert found.epsilon == pytest.approx(naive_rule.allowed_loss(rule, world, solved), abs=1e-12)
    if rule.baseline is not None:
        assert found.baseline == pytest.approx(naive_rule.evaluate(world, rule.baseline.tolist()), abs=1e-11)


def test_the_reference_sees_every_kind_and_goal() -> None:
    """Otherwise the comparison above would not reach what it is for."""
    contests = [contest(seed) for seed in range(80)]
    assert {choose(*each).kind for each in contests} == {"preferred", "steady", "phased"}
    choices = [choose(*each) for each in contests if each[0].goal.quality is not None]
    assert any(found.best - found.baseline < LEAST_GAIN for found in choices)
    assert any(found.best - found.baseline > 0.1 for found in choices)
    assert any(found.loss > 0.0 for found in choices)
    assert not all((dynamics.initial > 0.0).all() for _, dynamics in contests)


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
    rule = make_rule(SharedKey(seed), (3, n_states, n_actions), goal=LOOSE, stationary=seed % 2 == 1)
    expected = naive_rule.influence(rule, naive_rule.world_of(dynamics))
    np.testing.assert_allclose(allocate_samples(rule, dynamics, 0.3), expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_spread_of_values_is_that_of_all_policies(seed: int) -> None:
    dynamics = empirical_dynamics(random_data(seed, shape=((2, 2, 2), (3, 2, 2), (1, 3, 3))[seed % 3], untried=0.0))
    world = naive_rule.world_of(dynamics)
    values = [naive_rule.evaluate(world, actions) for actions in naive.all_policies(*world.shape)]
    if dynamics.tried.all():
        assert value_spread(dynamics) == pytest.approx(max(values) - min(values), abs=1e-12)


def test_influence_without_a_comparison_is_the_variance() -> None:
    """One action: nothing is to be told apart, and what no sample need have shown is all the variance there is."""
    mdp = reprl.TabularMDP(np.full((1, 1, 1), 1.0), np.array([[0.5]]), horizon=2, reward_kind="deterministic")
    rule = make_rule(SharedKey(1), (2, 1, 1), goal=LOOSE)
    expected = naive_rule.HIDDEN * np.array([4.0, 1.0]).reshape(2, 1, 1)
    np.testing.assert_allclose(allocate_samples(rule, true_dynamics(mdp), 0.3), expected)


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
    found = weigh_tolerances(dynamics, find_gaps(dynamics, rule.order), rule.order, rule.tolerances)
    choice = choose(rule, dynamics)
    world = naive_rule.world_of(dynamics)
    best = naive_rule.best_value(world, naive_rule.solve(world, rule.order.tolist()))
    value = naive_rule.evaluate(world, choice.policy.actions.tolist())
    assert choice.value == pytest.approx(value, abs=1e-10)
    assert choice.loss == pytest.approx(best - value, abs=1e-10)
    if found.loss.min() < rule.room * choice.epsilon:
        assert choice.loss < rule.room * choice.epsilon <= 0.95 * choice.epsilon


@MANY
@given(SEEDS)
def test_gaps_are_within_the_tolerance_by_their_weight(seed: int) -> None:
    """So no cell that is surely visited loses more than u, and one that is visited with probability μ at most u/μ."""
    rule, _, dynamics = case(seed)
    gaps = find_gaps(dynamics, rule.order)
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances)
    steps, states = np.indices(gaps.best.shape)
    for j, tolerance in enumerate(rule.tolerances):
        plain = np.array(gaps.best)
        for h, s in np.ndindex(plain.shape):
            enough = [a for a in rule.order if gaps.gap[h, s, a] <= tolerance]
            plain[h, s] = enough[0] if enough else plain[h, s]
        visits = np.minimum(dynamics.occupancy(plain), 1.0)
        chosen = gaps.gap[steps, states, found.actions[j]]
        known = (visits > 0.0) & dynamics.tried.any(axis=2)
        assert (np.isfinite(chosen[known])).all()
        assert (chosen[known] * visits[known] <= tolerance + 1e-12).all()
        assert (chosen[known & (visits == 1.0)] <= tolerance).all()
        assert (found.actions[j][visits == 0.0] == gaps.default[visits == 0.0]).all()


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
        found = weigh_tolerances(dynamics, find_gaps(dynamics, preferred), preferred, rule.tolerances)
        assert not (found.actions == worse).any()
        chosen = choose(make_rule(SharedKey(seed), (3, 3, 4), goal=LOOSE, preference=order), dynamics)
        assert not (chosen.policy.actions == worse).any()


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
    rule = make_rule(SharedKey(seed), (2, 3, 3), goal=LOOSE, preference=order)
    other = make_rule(SharedKey(seed), (2, 3, 3), goal=LOOSE, preference=[new[a] for a in order])
    plain = relabelled(data, [0, 1, 2])  # the same table layout as the one compared with
    for j in (0, 8, 16, 24, NUMBER - 1):
        first = choose(follow(rule, "preferred", j), empirical_dynamics(plain))
        second = choose(follow(other, "preferred", j), empirical_dynamics(relabelled(data, new)))
        np.testing.assert_array_equal(np.array(new)[first.policy.actions], second.policy.actions)
        assert (first.margin, first.loss) == (second.margin, second.loss)


@MANY
@given(SEEDS)
def test_following_a_candidate_prints_what_it_prints(seed: int) -> None:
    rule, _, dynamics = case(seed)
    gaps = find_gaps(dynamics, rule.order)
    found = weigh_tolerances(dynamics, gaps, rule.order, rule.tolerances)
    for j in range(rule.tolerances.size):
        alone = choose(follow(rule, "preferred", j), dynamics)
        assert (alone.kind, alone.candidate, alone.tolerance) == ("preferred", j, rule.tolerances[j])
        np.testing.assert_array_equal(alone.policy.actions, found.actions[j])
        assert (alone.margin, alone.loss) == (found.margin[j], found.loss[j])
        assert alone.lead == math.inf
    for kind, tolerances in (("steady", rule.stationary), ("phased", rule.phased)):
        averaged = weigh_tolerances(dynamics, gaps, rule.order, tolerances, phases_of(kind, rule.shape[0]))
        for j in range(tolerances.size):
            alone = choose(follow(rule, kind, j), dynamics)
            assert (alone.kind, alone.candidate, alone.tolerance) == (kind, j, tolerances[j])
            np.testing.assert_array_equal(alone.policy.actions, averaged.actions[j])
            assert (alone.margin, alone.loss) == (averaged.margin[j], averaged.loss[j])
    chosen = choose(rule, dynamics)
    again = choose(follow(rule, chosen.kind, chosen.candidate), dynamics)
    assert (again.policy, again.kind, again.candidate) == (chosen.policy, chosen.kind, chosen.candidate)
    assert (again.tolerance, again.loss) == (chosen.tolerance, chosen.loss)


def test_follow_refuses_what_the_rule_has_not() -> None:
    rule = make_rule(SharedKey(1), (2, 3, 2), goal=LOOSE)
    for kind, number in (
        ("greedy", 0),
        ("preferred", NUMBER),
        ("preferred", -1),
        ("sampled", 0),
        ("steady", 0),
        ("preferred", "1"),
    ):
        with pytest.raises(ReprlError):
            follow(rule, kind, number)  # type: ignore[arg-type]


@MANY
@given(SEEDS, st.integers(1, 20), st.booleans())
def test_the_rules_parts_lie_where_they_are_said_to(seed: int, horizon: int, asked: bool) -> None:
    goal = Goal(quality=0.9) if asked else LOOSE
    rule = make_rule(SharedKey(seed), (horizon, 4, 3), goal=goal, preference="shared")
    offset = float(SharedKey(seed).derive("tolerance").uniforms(1)[0])
    expected = [horizon * 2.0 ** (-(k + offset) / 2) for k in range(NUMBER)]
    np.testing.assert_allclose(rule.tolerances, expected, rtol=1e-12)
    assert 0.75 <= rule.room <= 0.95
    assert sorted(rule.order) == [0, 1, 2]
    assert (rule.stationary.size, rule.phased.size, rule.handicap) == (0, 0, 0.0)
    alike = make_rule(SharedKey(seed), (horizon, 4, 3), goal=goal, preference="shared", stationary=True)
    assert alike.stationary.tolist() == (alike.tolerances.tolist() if horizon > 1 else [])
    assert alike.phased.tolist() == (alike.tolerances.tolist() if horizon > 2 else [])
    assert (HANDICAP[0] <= alike.handicap <= HANDICAP[1]) if horizon > 1 else alike.handicap == 0.0
    assert (alike.goal, alike.room, alike.order.tolist()) == (rule.goal, rule.room, rule.order.tolist())
    for each in (rule, alike):
        again = with_key(each, each.key)
        pairs: list[tuple[Any, Any]] = list(zip(again, each, strict=True))
        assert all(np.array_equal(x, y) for x, y in pairs if not isinstance(x, SharedKey))


@MANY
@given(SEEDS, st.integers(1, 300), st.integers(1, 5000))
def test_the_smallest_tolerance_costs_little_in_all_cells_together(seed: int, horizon: int, n_states: int) -> None:
    least = make_rule(SharedKey(seed), (horizon, n_states, 2), goal=LOOSE).tolerances.min()
    assert horizon * n_states * least <= 1.4143 * horizon / CELLS
    assert least > horizon * 2.0**-20 / max(1.0, 2.0 * horizon * n_states / CELLS)  # and is no smaller than it needs be


# Goals.


@MANY
@given(st.floats(0.01, 0.999), st.floats(0.0, 20.0), st.floats(0.0, 20.0), st.floats(0.5, 1e4))
def test_what_a_quality_allows_rises_with_the_gain_from_above_0(q: float, x: float, y: float, most: float) -> None:
    goal = Goal(quality=q)
    low, high = (goal.allowed_loss(gain, most) for gain in sorted((x, y)))
    assert 0.0 < (1 - q) * LEAST_GAIN * most * (1 - 1e-12) <= low <= high
    assert high - low <= (1 - q) * abs(x - y) * (1 + 1e-12) + 1e-12  # continuous: Lipschitz with 1 − q
    assert low >= (1 - q) * min(x, y) * (1 - 1e-12)
    assert Goal(epsilon=0.25).allowed_loss(x, most) == 0.25


def test_what_a_quality_allows_is_its_share_of_the_gain() -> None:
    assert Goal(quality=0.75).allowed_loss(2.0, 10.0) == 0.5
    assert Goal(quality=0.75).allowed_loss(0.0, 10.0) == pytest.approx(0.25 * 1e-2)
    assert Goal(quality=0.75).allowed_loss(-1e-15, 10.0) == pytest.approx(0.25 * 1e-2)  # rounding of a best baseline


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
    for seed in range(40):
        heard.read.clear()
        rule = make_rule(SharedKey(5), shape, goal=LOOSE, preference="shared")
        rules.append(rule)
        assert heard.read == [("tolerance",), ("room",), ("handicap",), ("preference",)]
        heard.read.clear()
        dynamics = empirical_dynamics(random_data(seed, shape=shape))
        found = weigh_tolerances(dynamics, find_gaps(dynamics, rule.order), rule.order, rule.tolerances)
        assert heard.read == []
        choice = choose(rule, dynamics)
        printed = {reprl.Policy(actions).fingerprint for actions in found.actions}
        assert {place[0] for place in heard.read} == {"policy"}
        asked = {place[1] for place in heard.read}
        assert choice.policy.fingerprint in asked <= printed
    assert heard.streams == []
    for part in ("tolerances", "room", "order"):
        assert len({np.asarray(getattr(rule, part)).tobytes() for rule in rules}) == 1


def test_the_noise_of_a_policy_is_a_function_of_the_policy_alone() -> None:
    """One policy found in two worlds, by two tolerances, has one weight's noise: score less margins is the same."""
    rule = make_rule(SharedKey(9), (1, 1, 2), goal=LOOSE)
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
            printed = naive_rule.preferred(world, solved, [0, 1], float(u))
            name = reprl.Policy(printed.actions).fingerprint
            left = 1.0 - printed.loss / (rule.room * 0.3)
            pool[name] = pool.get(name, 0.0) + ((printed.margin * left) ** 3 if left > 0 else 0.0)
        first = reprl.Policy([[0]]).fingerprint
        noises.append(next(item.score for item in scores if item.fingerprint == first) - math.log(pool[first]) / 3)
    assert noises[0] == pytest.approx(noises[1], abs=1e-12)
    own = float(SharedKey(9).derive("policy", reprl.Policy([[0]]).fingerprint).uniforms(1)[0])
    assert noises[0] == pytest.approx(0.3 * own)

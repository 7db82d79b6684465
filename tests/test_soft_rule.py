"""The soft tolerance rule: its naive version, what it guarantees, what it does not look at, and its fingerprints."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import reprl
from reprl.mdp.model import Model, evaluate, from_start, one_hot, true_model
from reprl.randomness import SharedKey
from reprl.rule.bound import SoftRule
from reprl.rule.draws import LEVELS, Draws, count_tries, draw, group_steps
from reprl.rule.soft import LAST, Asked, Choice, apply_rule, make_room, soften, temperature
from tests import naive_soft
from tests.random_models import (
    Shape,
    ask,
    draws_of,
    key_of,
    print_policy,
    random_asked,
    random_halves,
    random_model,
    random_shape,
    stopping,
)

ROUNDING = 1e-10


def name_of(choice: Choice, stationary: bool) -> str:
    names = LEVELS if stationary else LEVELS[-1:]
    return "last" if choice.attempt == LAST else names[choice.level]


def agree(
    model: Model,
    asked: Asked,
    key: int,
    stationary: bool,
    halves: NDArray[np.float64] | None = None,
    *,
    passes: bool = True,
) -> str:
    """Assert that kernel and naive version print the same for the same reason; return the level."""
    draws = draws_of(key, model, stationary)
    policy, choice = print_policy(model, asked, draws if passes else draws._replace(room=-np.inf), halves)
    worlds = None if halves is None else (naive_soft.world_of(model, halves[0]), naive_soft.world_of(model, halves[1]))
    wanted = naive_soft.print_policy(
        naive_soft.world_of(model),
        key_of(key),
        stationary=stationary,
        share=asked.share,
        epsilon=asked.epsilon,
        baseline=asked.baseline,
        order=asked.order,
        halves=worlds,
        passes=passes,
    )
    level = name_of(choice, stationary)
    assert (level, max(choice.attempt, 0)) == (wanted.level, wanted.attempt)
    np.testing.assert_array_equal(policy, wanted.policy)
    figures = wanted.best, wanted.value, wanted.baseline, wanted.epsilon
    np.testing.assert_allclose(
        (choice.best, choice.value, choice.baseline, choice.allowed), figures, rtol=0, atol=ROUNDING
    )
    return level


@pytest.mark.parametrize(("gamma", "crossed"), [(0.0, False), (0.0, True), (0.7, False), (0.7, True)])
def test_equals_the_naive_version_on_random_models(gamma: float, crossed: bool) -> None:
    """By step and stationary, masked, with ties, with baselines and orders of one's own: 900 models in all."""
    rng = np.random.default_rng([1, int(10 * gamma), crossed])
    levels: Counter[str] = Counter()
    for number in range(100 if gamma else 350):
        shape = random_shape(rng, **({"gamma": gamma, "horizon": 1} if gamma else {}))
        if gamma and crossed:  # endless sums round, and rounding decides which of two tied actions a half prefers
            shape = shape._replace(dyadic=False)
        model, halves = random_model(rng, shape), None
        if crossed:
            model, halves = random_halves(rng, model, 8 if shape.dyadic else int(rng.choice([3, 16, 100])))
        asked = random_asked(rng, model)
        stationary = shape.stationary and not gamma
        levels[agree(model, asked, number, stationary, halves)] += 1
        if number % 5 == 0:
            assert agree(model, asked, number, stationary, halves, passes=False) == "last"
    assert set(levels) >= ({"single"} if gamma else {"all", "phases", "single"}), levels


def test_equals_the_naive_version_where_early_tries_fail() -> None:
    """Many ways to stop on a long path: late tries and the last resort, crossed too; more than five tries."""
    rng = np.random.default_rng(2)
    levels: Counter[str] = Counter()
    for number in range(60):
        model = stopping(rng, int(rng.integers(4, 25)), int(rng.integers(3, 25)))
        levels[agree(model, ask(model), number, False)] += 1
        loud, halves = random_halves(rng, model, 4)
        levels[agree(loud, ask(loud), number, True, halves)] += 1
    assert levels["last"] >= 5, levels
    for number in range(4):
        model = random_model(rng, Shape(5, 40, 2, stationary=bool(number % 2), dyadic=number > 1))
        agree(model, ask(model), number, bool(number % 2))


def test_a_level_without_a_shared_action_is_left_out() -> None:
    rng = np.random.default_rng(3)
    model = random_model(rng, Shape(4, 3, 2))
    turns = np.zeros((4, 3, 2), dtype=np.bool_)
    turns[[0, 2], :, 0] = turns[[1, 3], :, 1] = True
    model = model._replace(allowed=turns)
    assert agree(model, ask(model), 1, True) == "single"
    policy, _ = print_policy(model, ask(model), draws_of(1, model, True))
    np.testing.assert_array_equal(policy, turns.argmax(axis=2))


def test_discounted_passes_end() -> None:
    """Rounding kept soft passes of these models moving for ever."""
    for seed in (382, 984, 3865):
        rng = np.random.default_rng(seed)
        rows, n = 24, 3
        law = rng.dirichlet(np.ones(n), size=rows).ravel()
        next_state, reward = rng.integers(0, 6, n * rows).astype(np.int32), rng.random(n * rows)
        allowed, initial = np.ones((1, 6, 4), dtype=np.bool_), np.full(6, 1 / 6)
        model = Model(n * np.arange(rows + 1), next_state, reward, law, 0, allowed, initial, 0.5)
        heat = 10 ** rng.uniform(-3, 1)
        values, play, losses = np.empty((2, 6)), np.empty((1, 6, 4)), np.empty((1, 6, 4))
        soften(model, heat, False, play, values, losses)
        wanted, _, wanted_play = naive_soft.soft(naive_soft.world_of(model), heat)
        np.testing.assert_allclose(values, wanted, rtol=0, atol=1e-12)
        np.testing.assert_allclose(play, wanted_play, rtol=0, atol=1e-10)


# --- what the rule guarantees -----------------------------------------------------------------------------------------


def loss_of(model: Model, policy: NDArray[np.int64], best: float) -> float:
    values = np.empty((len(policy) + 1, model.initial.size))
    evaluate(model, one_hot(policy, model.allowed.shape[2]), values)
    return best - float(from_start(model, values))


def test_loses_at_most_its_room() -> None:
    """A share room of the allowed loss in tries, .4 in the last resort; and its actions are allowed."""
    rng = np.random.default_rng(4)
    last = 0
    for number in range(300):
        gamma = 0.8 * (number % 4 == 3)
        shape = random_shape(rng, gamma=gamma, **({"horizon": 1} if gamma else {}))
        model = stopping(rng, 12, 20) if number % 5 == 0 else random_model(rng, shape)
        asked, draws = random_asked(rng, model), draws_of(number, model, shape.stationary)
        policy, choice = print_policy(model, asked, draws)
        assert np.take_along_axis(model.allowed, policy[:, :, None], axis=2).all()
        share = 0.4 if choice.attempt == LAST else draws.room
        assert loss_of(model, policy, choice.best) <= share * choice.allowed + ROUNDING
        last += choice.attempt == LAST
    assert last >= 5


def test_prints_the_same_bytes_again_and_writes_nowhere_else() -> None:
    """Whatever the room held before."""
    rng = np.random.default_rng(5)
    for number in range(40):
        model, halves = random_halves(rng, random_model(rng, random_shape(rng)), 9)
        asked, draws = random_asked(rng, model), draws_of(number, model, True)
        inputs: list[Any] = [*model, *asked, *draws, halves]
        before = [np.array(each, copy=True) for each in inputs]
        for laws in (halves, np.empty((0, model.law.size))):
            room = make_room(draws, model.allowed.shape[2])
            printed = []
            for filling in (np.nan, -7.0):
                for each in room:
                    each[...] = -9 if each.dtype.kind == "i" else filling
                policy = np.full(model.allowed.shape[:2], -9, dtype=np.int64)
                printed.append((policy, apply_rule(model, laws, asked, draws, room, policy)))
            assert printed[0][1] == printed[1][1]
            assert printed[0][0].tobytes() == printed[1][0].tobytes()
        for each, was in zip(inputs, before, strict=True):
            np.testing.assert_array_equal(each, was)


# --- what it does not look at -----------------------------------------------------------------------------------------


def rows_of(model: Model) -> list[slice]:
    return [slice(a, b) for a, b in zip(model.first[:-1], model.first[1:], strict=True)]


def take_rows(model: Model, order: NDArray[np.int64]) -> Model:
    """Return the model whose row i is this one's row order[i]."""
    parts = [np.arange(model.first[i], model.first[i + 1]) for i in order]
    first, taken = np.concatenate([[0], np.cumsum([len(part) for part in parts])]), np.concatenate(parts)
    return model._replace(
        first=first, next_state=model.next_state[taken], reward=model.reward[taken], law=model.law[taken]
    )


def relabel(model: Model, states: NDArray[np.int64], actions: NDArray[np.int64]) -> Model:
    """Return the model whose state i and action k are this one's states[i] and actions[k]."""
    _, n_states, n_actions = model.allowed.shape
    cells = np.arange(model.first.size - 1).reshape(-1, n_states, n_actions)
    out = take_rows(model, cells[:, states][:, :, actions].ravel())
    back = np.argsort(states).astype(np.int32)
    allowed = np.ascontiguousarray(model.allowed[:, states][:, :, actions])
    return out._replace(next_state=back[out.next_state], allowed=allowed, initial=model.initial[states])


def test_names_and_order_of_outcomes_do_not_matter() -> None:
    """Outcomes of a row in another order, or one of them split in two, decide the same; states and actions that are
    renamed, with their thresholds, orders and baselines, print the renamed policy. Ties included."""
    rng = np.random.default_rng(6)
    for number in range(120):
        shape = random_shape(rng, dyadic=number % 2 == 0)
        model = random_model(rng, shape)
        asked, draws = random_asked(rng, model), draws_of(number, model, shape.stationary)
        policy, choice = print_policy(model, asked, draws)

        mixed = np.concatenate([rng.permutation(np.arange(row.start, row.stop)) for row in rows_of(model)])
        other = model._replace(next_state=model.next_state[mixed], reward=model.reward[mixed], law=model.law[mixed])
        np.testing.assert_array_equal(print_policy(other, asked, draws)[0], policy)

        twice = np.repeat(np.arange(model.law.size), 2)
        other = Model(2 * model.first, model.next_state[twice], model.reward[twice], model.law[twice] / 2, *model[4:])
        np.testing.assert_array_equal(print_policy(other, asked, draws)[0], policy)

        states, actions = rng.permutation(shape.n_states), rng.permutation(shape.n_actions)
        back = np.argsort(actions)
        own = Asked(
            np.ascontiguousarray(asked.baseline[:, states][:, :, actions]), back[asked.order[states]], *asked[2:]
        )
        tolerance, last = (np.ascontiguousarray(each[..., states]) for each in (draws.tolerance, draws.last))
        renamed, theirs = print_policy(
            relabel(model, states, actions), own, draws._replace(tolerance=tolerance, last=last)
        )
        np.testing.assert_array_equal(renamed, back[policy[:, states]])
        assert (theirs.level, theirs.attempt) == (choice.level, choice.attempt)


def test_of_equal_actions_the_preferred_one_is_printed() -> None:
    """Whatever ξ says: an action with the law of another one that stands before it in the order is never printed."""
    rng = np.random.default_rng(7)
    printed: Counter[str] = Counter()
    for number in range(60):
        if number % 3 == 0:  # often the last resort
            model = stopping(rng, 20, 20)
        else:
            model = random_model(rng, random_shape(rng, masked=False, n_actions=2))
        _, n_states, n_actions = model.allowed.shape
        cells = np.arange(model.first.size - 1).reshape(-1, n_states, n_actions)
        double = take_rows(model, np.concatenate([cells, cells], axis=2).ravel())
        allowed = np.concatenate([model.allowed, model.allowed], axis=2)
        double = double._replace(allowed=allowed, shift=2 * model.shift)
        order = rng.permuted(np.tile(np.arange(2 * n_actions), (n_states, 1)), axis=1)
        asked = ask(double)._replace(order=order)
        policy, choice = print_policy(double, asked, draws_of(number, double, True))
        place = np.argsort(order, axis=1)
        twin = (policy + n_actions) % (2 * n_actions)
        states = np.arange(n_states)
        assert (place[states, policy] < place[states, twin]).all()
        printed["last" if choice.attempt == LAST else "try"] += 1
    assert printed["last"] >= 2


def add_state(model: Model) -> Model:
    """Return the model with one more state, to which nothing leads and which copies the first."""
    _, n_states, n_actions = model.allowed.shape
    cells = np.arange(model.first.size - 1).reshape(-1, n_states, n_actions)
    out = take_rows(model, np.concatenate([cells, cells[:, :1]], axis=1).ravel())
    allowed = np.concatenate([model.allowed, model.allowed[:, :1]], axis=1)
    shift = (n_states + 1) * n_actions if model.shift else 0
    return out._replace(shift=shift, allowed=allowed, initial=np.append(model.initial, 0.0))


def test_a_state_that_is_never_met_changes_nothing_elsewhere() -> None:
    """Not under the same thresholds, whose addresses count the states; nor under the same ξ where all steps share
    actions, as long as there are as many tries. It prints its own first action."""
    rng = np.random.default_rng(8)
    shared = 0
    for number in range(150):
        shape = random_shape(rng, n_actions=2, n_states=int(rng.integers(2, 7)))
        model = random_model(rng, shape)
        more = add_state(model)
        draws = draws_of(number, model, shape.stationary)
        policy, choice = print_policy(model, ask(model), draws)
        fresh = np.full((*draws.tolerance.shape[:2], 1), 0.3)
        last = np.full((len(draws.last), 1), 0.3)
        wider = draws._replace(
            tolerance=np.concatenate([draws.tolerance, fresh], axis=2), last=np.concatenate([draws.last, last], axis=1)
        )
        found, theirs = print_policy(more, ask(more), wider)
        np.testing.assert_array_equal(found[:, :-1], policy)
        assert theirs == choice
        if choice.attempt != LAST and not shape.masked:
            assert (found[:, -1] == 0).all()
        found, theirs = print_policy(more, ask(more), draws_of(number, more, shape.stationary))
        if shape.stationary and choice.level == theirs.level == 0 and choice.attempt != LAST:
            shared += 1
            np.testing.assert_array_equal(found[:, :-1], policy)
    assert shared >= 30


# --- what ξ decides, and where it is written --------------------------------------------------------------------------


def test_draws_are_read_at_their_addresses() -> None:
    key, (horizon, n_states) = key_of(9), (7, 3)
    draws = draw(key, (horizon, n_states, 2), stationary=True)
    wanted = naive_soft.levels_of(horizon, True)
    assert list(wanted) == list(LEVELS) == list(group_steps(horizon, stationary=True))
    begin = 0
    for number, (name, steps) in enumerate(wanted.items()):
        np.testing.assert_array_equal(draws.groups[number] - begin, steps)
        many = steps[-1] + 1
        for attempt in range(count_tries(n_states)):
            found = draws.tolerance[attempt, begin : begin + many]
            np.testing.assert_array_equal(found, naive_soft.thresholds(key, (name, attempt), many, n_states))
        begin += many
    assert draws.tolerance.shape == (5, begin, n_states)
    np.testing.assert_array_equal(draws.last, naive_soft.thresholds(key, ("last",), horizon, n_states))
    assert draws.shift == key.derive("shift").uniforms(1)[0]
    assert draws.room == 0.4 + (0.7 - 0.4) * key.derive("room").uniforms(1)[0]


@pytest.mark.parametrize(
    ("horizon", "lengths"), [(1, [1]), (2, [1, 1]), (4, [3, 1]), (5, [1, 3, 1]), (20, [7, 9, 3, 1])]
)
def test_phases_are_counted_from_the_end(horizon: int, lengths: list[int]) -> None:
    phases = group_steps(horizon, stationary=True)["phases"]
    np.testing.assert_array_equal(np.bincount(phases), lengths)
    np.testing.assert_array_equal(phases, naive_soft.levels_of(horizon, True)["phases"])


def test_a_level_draws_the_same_whether_others_are_there_or_not() -> None:
    """Room, shift and last resort too; other actions, and more steps, leave what was there."""
    shape = (6, 5, 3)
    for number in range(5):
        every, single = (draw(key_of(number), shape, stationary=stationary) for stationary in (True, False))
        np.testing.assert_array_equal(every.tolerance[:, every.groups[-1]], single.tolerance[:, single.groups[0]])
        np.testing.assert_array_equal(every.last, single.last)
        assert (every.room, every.shift) == (single.room, single.shift)
        other: Any = draw(key_of(number), (6, 5, 9), stationary=True)
        for one, two in zip(every, other, strict=True):
            np.testing.assert_array_equal(one, two)
        longer = draw(key_of(number), (9, 5, 3), stationary=False)
        np.testing.assert_array_equal(longer.tolerance[:, :6], single.tolerance)
        np.testing.assert_array_equal(longer.last[:6], single.last)


def test_every_threshold_is_fresh_and_within_its_ends() -> None:
    draws = [draw(key_of(number), (9, 20, 2), stationary=True) for number in range(20)]
    drawn = np.concatenate([np.append(each.tolerance.ravel(), each.last.ravel()) for each in draws])
    assert len(np.unique(drawn)) == drawn.size == 20 * 20 * (6 * (1 + 3 + 9) + 9)
    assert 0.2 <= drawn.min() < 0.2001
    assert 0.3999 < drawn.max() < 0.4
    assert all(0.4 <= each.room < 0.7 and 0.0 <= each.shift < 1.0 for each in draws)
    assert len({(each.room, each.shift) for each in draws}) == 20


def test_tries_grow_with_the_states() -> None:
    wanted = {1: 5, 2: 5, 16: 5, 17: 6, 32: 6, 33: 7, 300: 10}
    assert {n: count_tries(n) for n in wanted} == wanted


def test_temperatures_lie_on_a_shared_grid() -> None:
    """Within √2 of 10 ε 2^-j/H, and the same number for most pairs that are close: ξ alone decides which."""
    keys = [draw(key_of(number), (1, 1, 1), stationary=False).shift for number in range(400)]
    for allowed in (1e-3, 0.05, 1.7):
        heats = np.array([temperature(allowed, shift, 8.0, 2) for shift in keys])
        assert (np.abs(np.log2(heats / (10.0 * allowed / 4.0 / 8.0))) <= 0.5 + 1e-12).all()
        near = np.array([temperature(allowed * 1.01, shift, 8.0, 2) for shift in keys])
        assert np.isin(np.round(np.log2(near / heats), 9), (0.0, 1.0)).all()
        assert (
            near != heats
        ).mean() <= 0.06  # log2 1.01 = .014 of all ξ; 400 keys exceed .06 less often than once in 1e6


# --- fingerprints -----------------------------------------------------------------------------------------------------


def table(horizon: int, n_states: int, n_actions: int, *, stationary: bool = True) -> Model:
    """Laws and rewards by arithmetic: every sum is exact, and nothing is drawn."""
    steps = 1 if stationary else horizon
    h, s, a = (each.ravel() for each in np.indices((steps, n_states, n_actions)))
    next_state = np.stack([(s + a + 1) % n_states, (3 * s + 2 * a + h) % n_states], axis=1).ravel().astype(np.int32)
    reward = np.stack([(7 * s + 5 * a + 3 * h) % 11 / 16, (s + a * s + h) % 2 / 2], axis=1).ravel()
    law = np.tile([0.75, 0.25], h.size)
    allowed, initial = np.ones((horizon, n_states, n_actions), dtype=np.bool_), np.eye(n_states)[0]
    shift = 0 if stationary else n_states * n_actions
    return Model(2 * np.arange(h.size + 1), next_state, reward, law, shift, allowed, initial, 0.0)


def machine(horizon: int) -> Model:
    """A machine that wears by step: run it, mend it, or sell it at a price that falls; in its last state it can only be
    sold."""
    law, next_state, reward, allowed = [], [], [], np.ones((horizon, 4, 3), dtype=np.bool_)
    allowed[:, 2, :2] = False
    for h in range(horizon):
        for s in range(4):
            worn = min(s + 1, 2) if s < 3 else 3
            price = 0.5 * (horizon - h) / horizon if s < 3 else 0.0
            earns = 0.25 * (2 - s) if s < 2 else 0.0
            law += [0.5 + 0.25 * s * (s < 2), 0.5 - 0.25 * s * (s < 2), 0.875, 0.125, 1.0, 0.0]
            next_state += [worn, s, 0 if s < 3 else 3, s, 3, 3]
            reward += [earns, earns, 0.0, 0.0, price, price]
    first = 2 * np.arange(12 * horizon + 1)
    flat = first, np.array(next_state, dtype=np.int32), np.array(reward), np.array(law)
    return Model(*flat, 12, allowed, np.eye(4)[0], 0.0)


def fingerprint(model: Model, *, stationary: bool, crossed: bool = False, **asked: Any) -> str:
    """SHA-256 of the policies under eight shared seeds, and of which try printed them."""
    told = hashlib.sha256()
    for number in range(8):
        rule = SoftRule.bind(SharedKey(number).derive("rule"), model.allowed, stationary=stationary, **asked)
        policy, choice = rule.choose(model)
        if crossed:
            halves = np.array(
                [np.tile([0.875, 0.125], model.law.size // 2), np.tile([0.625, 0.375], model.law.size // 2)]
            )
            policy, choice = print_policy(model, rule.asked, rule.draws, halves)
        told.update(policy.astype("<i8").tobytes() + f"{choice.level} {choice.attempt}".encode())
    return told.hexdigest()[:16]


def test_golden_fingerprints() -> None:
    """A change of any of these is a change of the rule: it ends what two teams with different versions share."""
    worlds: list[Any] = [reprl.make("gridworld-v0", size=3, horizon=4), reprl.make("gym:FrozenLake-v1", 12)]
    grid, lake = (true_model(world) for world in worlds)
    small, large = table(8, 6, 4), table(6, 40, 3)
    masked = small._replace(allowed=np.arange(6)[:, None] != np.arange(4) + np.zeros((8, 1, 1), dtype=np.int64))
    stops = stopping(None, 12, 20)
    draws = draw(SharedKey(1).derive("rule"), (8, 6, 4), stationary=True)
    found = {
        "draws": hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in draws)).hexdigest()[:16],
        "table": fingerprint(small, stationary=True),
        "table, crossed": fingerprint(small, stationary=True, crossed=True),
        "table by step": fingerprint(table(8, 6, 4, stationary=False), stationary=False),
        "table said to be by step": fingerprint(small, stationary=False),
        "table, quality .99": fingerprint(small, stationary=True, quality=0.99),
        "table, absolute": fingerprint(small, stationary=True, quality=None, epsilon=0.2),
        "table, discounted": fingerprint(small._replace(gamma=0.875, allowed=small.allowed[:1]), stationary=False),
        "table, last action first": fingerprint(small, stationary=True, order=np.tile([3, 2, 1, 0], (6, 1))),
        "table, masked": fingerprint(masked, stationary=True),
        "table of 40 states": fingerprint(large, stationary=True),
        "machine": fingerprint(machine(9), stationary=False),
        "ways to stop": fingerprint(stops, stationary=False),
        "gridworld": fingerprint(grid, stationary=True),
        "frozen lake": fingerprint(lake, stationary=True),
    }
    assert found == {
        "draws": "2eeb2ea9c723c1b1",
        "table": "8bacd71a95b591b0",
        "table, crossed": "f59737f96b025022",
        "table by step": "37fe32cdf8719e99",
        "table said to be by step": "a962437d6837b328",
        "table, quality .99": "71f955d7b1d3ddbb",
        "table, absolute": "2b31e66b1cdfadca",
        "table, discounted": "fde4eea3683a6b0b",
        "table, last action first": "98da6fd549dd04d3",
        "table, masked": "3949b7f20690460d",
        "table of 40 states": "459f9fce1b8347a8",
        "machine": "2f63a07ab2007f97",
        "ways to stop": "342713efa86e99a4",
        "gridworld": "3c8bac55b331d16b",
        "frozen lake": "0ee7d94289dab1fd",
    }


def test_the_policy_that_explores_is_the_soft_policy_of_the_first_try() -> None:
    rng = np.random.default_rng(10)
    for number in range(20):
        shape = random_shape(rng)
        model = random_model(rng, shape)
        rule = SoftRule.bind(key_of(number), model.allowed, stationary=shape.stationary)
        policy, choice = rule.choose(model)
        np.testing.assert_array_equal(
            policy, print_policy(model, ask(model), draws_of(number, model, shape.stationary))[0]
        )
        heat = temperature(choice.allowed, rule.draws.shift, model.length, 0)
        wanted = naive_soft.soft(naive_soft.world_of(model), heat)[2]
        np.testing.assert_allclose(rule.play(model), wanted, rtol=0, atol=ROUNDING)


def test_draws_is_a_tuple_of_arrays_that_kernels_read() -> None:
    draws = draw(key_of(0), (3, 2, 2), stationary=True)
    assert isinstance(draws, Draws)
    assert [each.dtype for each in draws[:3]] == [np.int64, np.float64, np.float64]

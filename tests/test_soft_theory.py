"""docs/proofs/rule.md, checked: the lemma and its control, the windows of the thresholds, every Lipschitz bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from reprl.mdp.model import Model, evaluate, from_start, occupancy, one_hot, solve
from reprl.rule.draws import Draws
from reprl.rule.soft import LAST, Asked, lost, soften, temperature
from tests.random_models import Shape, ask, draws_of, print_policy, random_asked, random_model, random_shape, stopping
from tests.statistics import FALSE_ALARM, exceeds, keeps

ROUNDING = 1e-9


def soft_pass(model: Model, heat: float) -> tuple[NDArray[np.float64], ...]:
    """U, U − q, P and x."""
    horizon, n_states, n_actions = model.allowed.shape
    values, losses = np.empty((horizon + 1, n_states)), np.empty((horizon, n_states, n_actions))
    play, visits = np.empty_like(losses), np.empty((horizon, n_states))
    soften(model, heat, False, play, values, losses)
    occupancy(model, play, visits, np.empty((2, model.initial.size)))
    return values, losses, play, visits


def optimum(model: Model) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    horizon, n_states, _ = model.allowed.shape
    values, gaps = np.empty((horizon + 1, n_states)), np.empty(model.allowed.shape)
    solve(model, values, gaps)
    return values, gaps


def value_of(model: Model, play: NDArray[np.float64]) -> NDArray[np.float64]:
    values = np.empty((len(play) + 1, model.initial.size))
    evaluate(model, play, values)
    return values


def allowed_loss(model: Model, asked: Asked) -> float:
    gain = from_start(model, optimum(model)[0]) - from_start(model, value_of(model, asked.baseline))
    return float(asked.epsilon + asked.share * max(gain, 1e-3 * model.length))


def move(model: Model, towards: NDArray[np.float64], weight: float) -> Model:
    return model._replace(law=(1.0 - weight) * model.law + weight * towards)


def other_law(rng: np.random.Generator, model: Model) -> NDArray[np.float64]:
    """Another law on the same outcomes; now and then a certain one in each row."""
    share = rng.choice([0.02, 1.0])
    return np.concatenate([rng.dirichlet(np.full(n, share)) for n in np.diff(model.first)])


# --- the lemma --------------------------------------------------------------------------------------------------------


class Path(NamedTuple):
    """What the rule computes on its way, each number as it is compared with a threshold, at most 1."""

    tries: list[tuple[int, int]]
    policies: list[NDArray[np.int64]]
    excess: list[NDArray[np.float64]]
    """D = (cost − least)/(2^-try ε), (groups, S, A), of every try; then H·gap/ε, if the last resort is reached."""
    bars: list[NDArray[np.float64]]
    losses: NDArray[np.float64]
    """(V* − V^π)/ε, of every try."""

    def margin(self, room: float) -> float:
        """How near a comparison is to its threshold."""
        near = [np.abs(each - bar[:, :, None]).min() for each, bar in zip(self.excess, self.bars, strict=True)]
        return float(min(*near, np.abs(self.losses - room).min()))

    def drift(self, other: Path) -> float:
        """How far the numbers of another model's path, at the same tries and policies, are away."""
        far = [np.abs(one - two).max() for one, two in zip(self.excess, other.excess, strict=True)]
        return float(max(*far, np.abs(self.losses - other.losses).max()))


def walk(model: Model, asked: Asked, draws: Draws, along: Path | None = None) -> Path:
    """Return the model's own path, or its numbers along another one."""
    values, gaps = optimum(model)
    best, epsilon = from_start(model, values), allowed_loss(model, asked)
    horizon = len(model.allowed)
    path = Path([], [], [], [], np.empty(0))
    losses: list[float] = []
    tries = [(i, j) for i in range(len(draws.groups)) for j in range(len(draws.tolerance))]
    for level, attempt in tries if along is None else along.tries:
        group = draws.groups[level] - draws.groups[level][0]
        _, above, _, visits = soft_pass(model, temperature(epsilon, draws.shift, model.length, attempt))
        each = np.where(model.allowed, visits[:, :, None] * np.where(model.allowed, above, 0.0), np.inf)
        cost = np.array([each[group == g].sum(axis=0) for g in range(group[-1] + 1)])
        if not np.isfinite(cost).any(axis=2).all():
            continue  # no action is allowed at all steps of a group
        excess = np.minimum((cost - cost.min(axis=2, keepdims=True)) / (0.5**attempt * epsilon), 1.0)
        bar = draws.tolerance[attempt, draws.groups[level][0] : draws.groups[level][-1] + 1]
        policy = first_within(excess, bar, asked.order)[group] if along is None else along.policies[len(losses)]
        losses.append(min((best - from_start(model, value_of(model, one_hot(policy, excess.shape[2])))) / epsilon, 1.0))
        path.tries.append((level, attempt))
        path.policies.append(policy)
        path.excess.append(excess)
        path.bars.append(bar)
        if along is None and losses[-1] <= draws.room:
            break
    if len(along.excess) > len(along.tries) if along is not None else losses[-1] > draws.room:
        path.excess.append(np.minimum(gaps * horizon / epsilon, 1.0))
        path.bars.append(draws.last)
    return path._replace(losses=np.array(losses))


def first_within(excess: NDArray[np.float64], bar: NDArray[np.float64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    within = np.take_along_axis(excess <= bar[:, :, None], np.broadcast_to(order, excess.shape), axis=2)
    return np.take_along_axis(np.broadcast_to(order, excess.shape), within.argmax(axis=2)[:, :, None], axis=2)[:, :, 0]


def pairs(count: int) -> list[tuple[float, bool]]:
    """Models and their neighbours: drift over margin, and whether both print one policy."""
    rng = np.random.default_rng(20)
    out = []
    for number in range(count):
        shape = random_shape(rng, horizon=int(rng.integers(1, 5)), n_states=int(rng.integers(1, 5)))
        model = stopping(rng, 8, 12) if number % 8 == 0 else random_model(rng, shape)
        if number % 8 == 0:  # certain outcomes have no neighbours: each may fail and pay nothing
            model = fallible(model)
        asked, draws = random_asked(rng, model), draws_of(number, model, shape.stationary)
        path, towards = walk(model, asked, draws), other_law(rng, model)
        margin = path.margin(draws.room)
        trial = path.drift(walk(move(model, towards, 1e-6), asked, draws, path))
        if margin < 1e-6 or trial < 1e-12:
            continue
        for scale in (0.3, 0.8, 1.3, 1.9):
            near = move(model, towards, min(1e-6 * scale * margin / trial, 1.0))
            drift = path.drift(walk(near, asked, draws, path))
            same = np.array_equal(print_policy(model, asked, draws)[0], print_policy(near, asked, draws)[0])
            out.append((drift / margin, same))
    return out


def fallible(model: Model) -> Model:
    """Return a model of certain outcomes in which each may fail, at first with chance 0."""
    twice = np.repeat(np.arange(model.law.size), 2)
    fails = np.arange(twice.size) % 2 == 1
    reward, law = np.where(fails, 0.0, model.reward[twice]), np.where(fails, 0.0, 1.0)
    return Model(2 * model.first, model.next_state[twice], reward, law, *model[4:])


def test_the_walk_is_the_rule() -> None:
    rng = np.random.default_rng(21)
    for number in range(60):
        shape = random_shape(rng)
        model = stopping(rng, 12, 20) if number % 10 == 0 else random_model(rng, shape)
        asked, draws = random_asked(rng, model), draws_of(number, model, shape.stationary)
        path, (policy, choice) = walk(model, asked, draws), print_policy(model, asked, draws)
        if choice.attempt == LAST:
            wanted = first_within(path.excess[-1], path.bars[-1], asked.order)
        else:
            wanted = path.policies[-1]
            assert path.tries[-1] == (choice.level, choice.attempt)
        np.testing.assert_array_equal(policy, wanted)


def test_the_lemma_and_its_control() -> None:
    """If the numbers of M's path move by less than the margin of every comparison, the policy stays.

    The control halves the premise: if they move by less than twice the margin, some policies change.
    """
    found = pairs(1000)
    within = [same for ratio, same in found if ratio < 1.0]
    tight = [same for ratio, same in found if 0.5 < ratio < 1.0]
    control = [same for ratio, same in found if ratio < 2.0]
    assert all(within)
    assert len(within) >= 1000
    assert len(tight) >= 400
    assert control.count(False) >= 40


# --- anti-concentration -----------------------------------------------------------------------------------------------


def one_step(n_states: int) -> Model:
    """One step from anywhere: action 1 pays 1 and action 0 nothing."""
    reward, start = np.tile([0.0, 1.0], n_states), np.full(n_states, 1.0 / n_states)
    flat = np.arange(2 * n_states + 1), np.zeros(2 * n_states, np.int32), reward, np.ones(2 * n_states)
    return Model(*flat, 0, np.ones((1, n_states, 2), dtype=np.bool_), start, 0.0)


def close_calls(model: Model, asked: Asked, eta: float, keys: range, width: float) -> tuple[int, int]:
    """How many comparisons of the first try are within η of their thresholds, and of how many.

    Thresholds of another width than .2 stand in for the rule's, in the control.
    """
    hits = trials = 0
    for number in keys:
        draws = draws_of(number, model, False)
        bars = 0.3 + (draws.tolerance - 0.3) * width / 0.2
        excess = walk(model, asked, draws).excess[0][0].max(axis=1)
        hits += int((np.abs(excess - bars[0, 0]) <= eta).sum())
        trials += excess.size
    return hits, trials


@pytest.mark.statistical
def test_few_thresholds_fall_near_a_cost() -> None:
    """A comparison is within η with probability at most 10 η; with thresholds four times as narrow it is more often.

    All costs are .3 ε, in the middle of the windows, so that the bound is attained.
    """
    model, eta = one_step(12), 0.02
    asked = ask(model, share=1.0 / (12 * 0.3))
    hits, trials = close_calls(model, asked, eta, range(400), 0.2)
    assert keeps(hits, trials, 10 * eta, power=0.99)
    assert exceeds(hits, trials, 8 * eta) < FALSE_ALARM
    hits, trials = close_calls(model, asked, eta, range(400), 0.05)
    assert exceeds(hits, trials, 10 * eta) < FALSE_ALARM


@pytest.mark.statistical
def test_few_rooms_and_shifts_fall_near_a_bar() -> None:
    """room is within η of a number with probability at most 2η/.3, and log₂ ε + shift of a whole one with 2η/ln 2."""
    model = one_step(1)
    draws = [draws_of(number, model, False) for number in range(4000)]
    eta = 0.01
    for loss in (0.41, 0.5, 0.65):
        assert keeps(sum(abs(each.room - loss) <= eta for each in draws), 4000, 2 * eta / 0.3, power=0.99)
    for epsilon in (0.013, 0.5, 1.0):
        near = (1.0 - eta) * epsilon, (1.0 + eta) * epsilon
        heats = [{temperature(each, one.shift, 1.0, 0) for each in near} for one in draws]
        assert keeps(sum(len(each) > 1 for each in heats), 4000, 2.03 * eta / np.log(2.0), power=0.9)


# --- Lipschitz bounds -------------------------------------------------------------------------------------------------


def distance(one: Model, two: Model) -> float:
    """ξ' = the most that the law of a row moves, in ‖·‖₁."""
    return float(np.add.reduceat(np.abs(one.law - two.law), one.first[:-1]).max())


def furthest(one: NDArray[np.float64], two: NDArray[np.float64]) -> float:
    return float(np.abs(one - two).max())


def test_every_bound_holds() -> None:
    """V*, V^π, U and q move by at most β, ε by 2(1 − quality)β, P and visits and costs as the page says.

    The largest share of its bound that anything reaches says that none of them is empty.
    """
    rng = np.random.default_rng(22)
    share = dict.fromkeys(("values", "soft values", "worths", "law", "visits", "costs", "epsilon"), 0.0)
    for _ in range(300):
        shape = random_shape(rng, n_states=int(rng.integers(2, 6)))
        model = random_model(rng, shape)
        near = move(model, other_law(rng, model), float(10 ** rng.uniform(-5, -0.5)))
        horizon, _, n_actions = model.allowed.shape
        xi, heat = distance(model, near), float(10 ** rng.uniform(-2, 1))
        if xi == 0.0:
            continue
        beta = xi * horizon * (horizon + 1) / 4.0
        play = one_hot(model.allowed.argmax(axis=2), n_actions)
        one, two = soft_pass(model, heat), soft_pass(near, heat)
        mine, theirs = (np.where(model.allowed, each[0][:-1, :, None] - each[1], 0.0) for each in (one, two))
        asked = ask(model)
        h = np.arange(horizon)
        costs = [each[3][:, :, None] * np.where(model.allowed, each[1], 0.0) for each in (one, two)]
        bound = (xi + beta / heat) * (horizon**3 - horizon) / 12.0 + 2.0 * beta * horizon
        group = np.array([costs[0].sum(axis=0), costs[1].sum(axis=0)])
        visited = np.abs(one[3] - two[3]).sum(axis=1) / np.maximum(h * (xi + beta / heat), 1e-300)
        for name, found in (
            ("values", furthest(optimum(model)[0], optimum(near)[0]) / beta),
            ("values", furthest(value_of(model, play), value_of(near, play)) / beta),
            ("soft values", furthest(one[0], two[0]) / beta),
            ("worths", furthest(mine, theirs) / beta),
            ("law", float(np.abs(one[2] - two[2]).sum(axis=2).max()) / (beta / heat)),
            ("visits", float(visited[1:].max(initial=0.0))),
            ("costs", furthest(group[0], group[1]) / bound),
            ("epsilon", abs(allowed_loss(model, asked) - allowed_loss(near, asked)) / (2.0 * asked.share * beta)),
        ):
            assert found <= 1.0 + ROUNDING / min(beta, beta / heat), (name, found, shape)
            share[name] = max(share[name], found)
    assert min(share.values()) > 0.3, share
    assert share["values"] > 0.5, share


def test_the_bound_of_values_is_attained() -> None:
    """A state that pays 1 and is left for ever, now and then, for one that pays nothing."""
    horizon, fails = 9, 1e-5
    next_state, reward = np.array([0, 1, 1, 1], dtype=np.int32), np.array([1.0, 0.0, 0.0, 0.0])
    first, allowed = np.array([0, 2, 4]), np.ones((horizon, 2, 1), dtype=np.bool_)
    model = Model(first, next_state, reward, np.array([1.0, 0.0, 1.0, 0.0]), 0, allowed, np.array([1.0, 0.0]), 0.0)
    near = model._replace(law=np.array([1.0 - fails, fails, 1.0, 0.0]))
    beta = distance(model, near) * horizon * (horizon + 1) / 4.0
    assert 0.999 < furthest(optimum(model)[0], optimum(near)[0]) / beta <= 1.0


def test_averages_of_boltzmann_play_are_no_non_expansion() -> None:
    """Why values are log mean exp: moving worths by η moves the average by more than η, and log mean exp by less."""
    worths, eta = np.array([2.4, 0.0]), 1e-3

    def average(q: NDArray[np.float64]) -> float:
        return float((np.exp(q) * q).sum() / np.exp(q).sum())

    def log_mean_exp(q: NDArray[np.float64]) -> float:
        return float(np.log(np.exp(q).mean()))

    away = worths + eta * np.array([1.0, -1.0])
    assert average(away) - average(worths) > 1.1 * eta
    assert abs(log_mean_exp(away) - log_mean_exp(worths)) <= eta


def test_losses_are_the_gaps_on_the_way() -> None:
    """The performance-difference lemma: V* − V^π is the sum of gaps where the policy goes; with a discount too."""
    rng = np.random.default_rng(23)
    for number in range(60):
        gamma = 0.8 * (number % 3 == 0)
        model = random_model(rng, random_shape(rng, gamma=gamma, **({"horizon": 1} if gamma else {})))
        values, gaps = optimum(model)
        policy = np.where(model.allowed, rng.random(model.allowed.shape), -1.0).argmax(axis=2)
        found = lost(model, gaps, policy, np.empty((2, model.initial.size)))
        wanted = from_start(model, values) - from_start(model, value_of(model, one_hot(policy, gaps.shape[2])))
        assert found == pytest.approx(wanted, abs=1e-11)


def test_the_last_resort_loses_at_most_two_fifths() -> None:
    """Where no try is said to pass."""
    rng = np.random.default_rng(24)
    for number in range(60):
        model = random_model(rng, Shape(int(rng.integers(1, 8)), 5, 3, dyadic=bool(number % 2)))
        draws = draws_of(number, model, True)
        policy, choice = print_policy(model, ask(model), draws._replace(room=-np.inf))
        assert choice.attempt == LAST
        loss = choice.best - from_start(model, value_of(model, one_hot(policy, 3)))
        assert loss <= draws.last.max() * choice.allowed + ROUNDING
        assert draws.last.max() <= 0.4

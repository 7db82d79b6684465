"""What bounds prove of the rule: every comparison, margin, ratio, loss and verdict against the rule's definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reprl
from reprl.assurance.concentration import levels
from reprl.assurance.deviation_bounds import DeviationBounds
from reprl.assurance.loss_bounds import LossBounds
from reprl.assurance.margin_ratios import BEYOND, CHOSEN, PASSED, _least_ratio, compare_margins
from reprl.assurance.occupancy_bounds import OccupancyBounds
from reprl.assurance.tolerances import (
    WIDEST,
    Box,
    least_beyond,
    least_chosen,
    least_passed,
    most_beyond,
    most_chosen,
    most_passed,
    weight_spreads,
)
from reprl.assurance.value_bounds import bound_best
from reprl.assurance.verdict import Bounds, Candidate, _candidate, _limits, conclude, judge, prepare
from reprl.canonical.choice import Rule, choose, make_rule
from reprl.canonical.gaps import find_gaps
from reprl.canonical.goal import LEAST_GAIN, Goal
from reprl.canonical.preferred import weigh_tolerances
from reprl.mdp.dynamics import Dynamics, true_dynamics
from reprl.sources.episodes import EpisodicModel
from reprl.sources.parallel import GenerativeModel, call
from reprl.sources.tallies import play
from tests.naive_certainty import naive_distance, naive_margin, naive_print, naive_weight, naive_weight_spread

WAYS = {PASSED: "passed", CHOSEN: "chosen", BEYOND: "beyond"}


def random_box(rng: np.random.Generator) -> Box:
    """Intervals of all widths, some of them points, some from 0."""

    def ends(top: float) -> tuple[float, float]:
        low, high = sorted(rng.uniform(0.0, top, 2) ** rng.choice([1.0, 3.0]))
        if rng.random() < 0.2:
            low = 0.0
        return (low, low) if rng.random() < 0.2 and low > 0.0 else (low, high)

    return Box(*ends(1.0), *ends(2.0), *(0.2 + x for x in ends(2.0)))


def inside(rng: np.random.Generator, box: Box) -> tuple[float, float, float]:
    """Visits, gap and spread in a box, often in a corner."""
    visits, gap, spread = (box[i] + (box[i + 1] - box[i]) * rng.choice([0.0, 1.0, rng.random()]) for i in (0, 2, 4))
    return float(visits), float(gap), float(spread)


def test_the_spread_of_a_weight_is_largest_where_the_constant_says():
    rng = np.random.default_rng(1)
    grid = np.linspace(0.0, 1.0, 100_001)
    assert grid[np.argmax([naive_weight_spread(x) for x in grid])] == pytest.approx(WIDEST, abs=1e-5)
    for _ in range(200):
        low, high = sorted(rng.uniform(0.0, 1.0, 2))
        found = [naive_weight_spread(x) for x in np.linspace(low, high, 201)]
        least, most = weight_spreads(low, high)
        assert least == pytest.approx(min(found))
        assert most == pytest.approx(max(found), rel=1e-4)
        assert most >= max(found) - 1e-12


def test_every_distance_lies_between_its_bounds():
    rng = np.random.default_rng(2)
    bounds = {"passed": (least_passed, most_passed), "chosen": (least_chosen, most_chosen)}
    bounds["beyond"] = (least_beyond, most_beyond)
    for _ in range(4000):
        box, tolerance = random_box(rng), float(rng.uniform(0.0, 1.0) ** 3) + 1e-6
        visits, gap, spread = inside(rng, box)
        for way, (least, most) in bounds.items():
            if way == "beyond" or naive_weight(visits) * gap > 0.0:
                found = naive_distance(gap, spread, visits, tolerance, way)
                if found >= 0.0:  # otherwise the action is on the other side
                    assert least(box, tolerance) <= found * (1 + 1e-9) + 1e-12, way
                    assert most(box, tolerance) >= found * (1 - 1e-9) - 1e-12, way


def test_two_distances_of_one_comparison_are_in_the_ratio_that_is_said():
    rng = np.random.default_rng(3)
    near = 0
    for _ in range(6000):
        mine, its = random_box(rng), random_box(rng)
        same = bool(rng.random() < 0.5)
        its = Box(*(mine if same else its)[:2], *mine[2:])
        tolerances = (float(rng.uniform(0.0, 1.0) ** 3) + 1e-6, float(rng.uniform(0.0, 1.0) ** 3) + 1e-6)
        visits, gap, spread = inside(rng, mine)
        other = visits if same else inside(rng, its)[0]
        way = int(rng.integers(3))
        if naive_weight(visits) * gap == 0.0 or naive_weight(other) * gap == 0.0:
            continue
        first = naive_distance(gap, spread, visits, tolerances[0], WAYS[way])
        second = abs(naive_distance(gap, spread, other, tolerances[1], WAYS[way]))
        if first < 0.0:
            continue
        high = second * float(rng.uniform(1.0, 3.0))
        said = _least_ratio(mine, its, tolerances, way, True, same, high)
        assert said * second <= first * (1 + 1e-9) + 1e-12
        near += said * second > 0.5 * first
        alone = _least_ratio(mine, its, tolerances, way, False, same, high)
        assert alone <= said + 1e-12
    assert near > 300


@pytest.mark.parametrize("quality", [True, False])
def test_losses_as_a_share_of_what_may_be_lost_lie_between_their_bounds(quality):
    rng = np.random.default_rng(4)
    goal = Goal(quality=0.9) if quality else Goal(epsilon=0.3)
    for _ in range(3000):
        scale = rng.choice([1.0, 2 * LEAST_GAIN])
        best = 1.0 + scale * np.sort(rng.uniform(0.0, 1.0, 2))
        value, baseline = (np.sort(rng.uniform(0.5, 1.0 + scale, 2)) for _ in range(2))
        if rng.random() < 0.5:
            value, baseline = (np.sort(best[1] - scale * rng.uniform(0.0, 1.0, 2)) for _ in range(2))
        found = LossBounds(goal, 2.0, tuple(best), tuple(baseline) if quality else None)
        v = rng.uniform(*best)
        p, b = (min(float(rng.uniform(*x)), v) for x in (value, baseline))
        if p < value[0] or b < baseline[0]:
            continue
        least, most = found.used(tuple(value))
        used = (v - p) / goal.allowed_loss(v - b, 2.0)
        assert least - 1e-9 <= used <= most + 1e-9
        assert found.loss(tuple(value))[0] - 1e-12 <= v - p <= found.loss(tuple(value))[1] + 1e-12
        share = found.share(tuple(value))
        if share is not None:
            assert share <= (p - b) / (v - b) + 1e-9
        if quality:
            assert found.gain is not None
            assert found.gain[0] - 1e-12 <= v - b <= found.gain[1] + 1e-12
        else:
            assert found.gain is None


class World:
    """A true model, all that the rule reads of it, and intervals of any width around that."""

    def __init__(self, number: int, *, shift: float = 1.0) -> None:
        rng = self.rng = np.random.default_rng(number)
        n_states, n_actions, horizon = (int(rng.integers(2, 5)), int(rng.integers(2, 4)), int(rng.integers(1, 4)))
        concentration = rng.choice([0.2, 1.0])
        transition = rng.dirichlet(np.full(n_states, concentration), (n_states, n_actions))
        if rng.random() < 0.4:  # no noise, and states that are never met
            transition = np.eye(n_states)[rng.integers(n_states, size=(n_states, n_actions))]
        reward = rng.uniform(0.0, 1.0, (n_states, n_actions))
        if rng.random() < 0.3:
            reward = np.round(reward * 2) / 2  # ties
        self.mdp = reprl.TabularMDP(transition, reward, 0, horizon)
        self.truth: Dynamics = true_dynamics(self.mdp)
        goal = Goal(quality=float(rng.uniform(0.5, 0.95))) if rng.random() < 0.5 else Goal(epsilon=0.3)
        key = reprl.SharedKey(number).derive("rule")
        self.rule: Rule = make_rule(key, (horizon, n_states, n_actions), goal=goal, preference="shared")
        self.gaps = find_gaps(self.truth, self.rule.order)
        once = np.ones((horizon, n_states))
        order = self.rule.order
        self.plain = [naive_print(self.gaps.gap, once, order, u) for u in self.rule.tolerances]
        self.visits = [self.truth.occupancy(actions) for actions in self.plain]
        self.printed = [
            naive_print(self.gaps.gap, np.minimum(visits, 1.0), order, u)
            for visits, u in zip(self.visits, self.rule.tolerances, strict=True)
        ]
        self.width, self.shift = float(rng.choice([0.0, 0.02, 0.1, 0.5])), shift

    def around(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Intervals that hold these, some of them points; shifted where a false verdict is wanted."""
        size = np.where(self.rng.random((2, *np.shape(low))) < 0.3, 0.0, self.width)
        less, more = size * self.rng.random(size.shape)
        return low * self.shift * (1.0 - less) - 0.02 * less, high * self.shift * (1.0 + more) + 0.02 * more

    def bounds(self) -> Bounds:
        sample = prepare(call(GenerativeModel(self.mdp, 0), 4), by_steps=True, fixed_start=True)
        level = levels(self.rule.shape, 40, 0.05)
        values = bound_best(sample, level.compare, level.cell, level.spread)
        low, high = (np.maximum(x, 0.0) for x in self.around(self.gaps.gap, self.gaps.gap))
        low[low < 1e-3 * self.rng.random()] = 0.0
        best = np.arange(self.rule.shape[2]) == self.gaps.best[:, :, None]
        low[best] = 0.0
        plausible = low <= 0.0
        alone = plausible & (plausible.sum(axis=2) == 1)[:, :, None]
        high[alone] = 0.0
        narrow, broad = (np.maximum(x, 0.0) for x in self.around(self.gaps.spread, self.gaps.spread))
        narrow[best], broad[best] = 0.0, 1.0
        narrow[alone] = broad[alone] = 0.0
        start = np.array(self.around(*[float(self.truth.initial @ self.gaps.value[0])] * 2))
        values = values._replace(gap_low=low, gap_high=high, plausible=plausible, start=start)
        return Bounds(values, DeviationBounds(narrow, broad), self.visit_bounds, self.worth_bounds)

    def visit_bounds(self, possible: Any) -> OccupancyBounds:
        """A hull of all plain policies that are possible, and some more."""
        found = [visits for plain, visits in zip(self.plain, self.visits, strict=True) if allows(possible, plain)]
        found = found or self.visits
        low, high = self.around(np.min(found, axis=0), np.max(found, axis=0))
        return OccupancyBounds(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))

    def worth_bounds(self, possible: Any) -> tuple[float, float]:
        baseline = np.full(self.rule.shape[:2], self.rule.order[0])
        known = [actions for actions in (*self.printed, baseline) if allows(possible, actions)]
        found = [self.mdp.evaluate(reprl.Policy(actions)) for actions in known or self.printed]
        low, high = self.around(min(found), max(found))
        return float(low), float(high)


def allows(possible: Any, actions: Any) -> bool:
    return bool(np.take_along_axis(possible, np.asarray(actions)[:, :, None], axis=2).all())


def test_the_plain_loops_are_the_rule():
    for number in range(30):
        world = World(number)
        found = weigh_tolerances(world.truth, world.gaps, world.rule.order, world.rule.tolerances)
        for j, (visits, u) in enumerate(zip(world.visits, world.rule.tolerances, strict=True)):
            np.testing.assert_array_equal(found.actions[j], world.printed[j])
            margin = naive_margin(world.gaps.gap, world.gaps.spread, np.minimum(visits, 1.0), world.rule.order, u)
            assert found.margin[j] == pytest.approx(margin)


@pytest.mark.long
def test_what_is_said_of_a_tolerance_holds_for_any_intervals_around_the_truth():
    decided = 0
    for number in range(30):
        world = World(number)
        bounds, order = world.bounds(), world.rule.order
        limits = _limits(world.rule, bounds)
        found: list[Candidate] = [_candidate(world.rule, bounds, limits, float(u)) for u in world.rule.tolerances]
        margins = [
            naive_margin(world.gaps.gap, world.gaps.spread, np.minimum(visits, 1.0), order, u)
            for visits, u in zip(world.visits, world.rule.tolerances, strict=True)
        ]
        for j, candidate in enumerate(found):
            assert allows(candidate.side.plain, world.plain[j])
            assert allows(candidate.side.chosen, world.printed[j])
            assert candidate.margin.low <= margins[j] * (1 + 1e-9)
            assert candidate.margin.high >= margins[j] * (1 - 1e-9)
            decided += candidate.policy is not None
            if candidate.policy is None:
                continue
            assert candidate.policy == reprl.Policy(world.printed[j])
            for i in world.rng.permutation(len(found))[:8]:
                if i != j:
                    ratio = compare_margins(bounds.values, bounds.deviations, order, candidate.side, found[i].side)
                    assert ratio * margins[i] <= margins[j] * (1 + 1e-9)
    assert decided > 200


@pytest.mark.long
def test_any_intervals_around_the_truth_prove_nothing_false_and_shifted_ones_do():
    proven = false = 0
    for number in range(70):
        world = World(number)
        found, truth = conclude(world.rule, world.bounds()), choose(world.rule, world.truth)
        if found.proven:
            proven += 1
            assert found.policy == truth.policy
            assert found.lead <= truth.lead + 1e-9
            assert found.loss >= truth.loss - 1e-9
            if found.share is not None:
                assert (truth.value - truth.baseline) / (truth.best - truth.baseline) >= found.share - 1e-9
        wrong = World(number, shift=1.3)
        found = conclude(wrong.rule, wrong.bounds())
        false += found.proven and (found.policy != truth.policy or found.lead > truth.lead)
    assert proven > 10
    assert false > 2


def test_a_statement_that_has_failed_proves_nothing():
    world = World(3)
    bounds = world.bounds()
    bounds.values.gap_low[:], bounds.values.gap_high[:] = 50.0, 60.0
    found = conclude(world.rule, bounds)
    assert not found.proven
    assert found.reason == "no tolerance is decided"


def hidden_room() -> reprl.TabularMDP:
    """Two arms at the start, and a state that nothing leads to."""
    transition = np.zeros((3, 2, 3))
    transition[0, :, 1] = transition[1, :, 0] = 1.0
    transition[2, :, 2] = 1.0
    return reprl.TabularMDP(transition, np.array([[0.1, 0.9], [0.5, 0.5], [0.2, 0.7]]), 0, 2)


@pytest.mark.long
def test_cells_without_samples_are_covered():
    # By episodes state 2 has no samples, ever: nothing is known of its gaps, and yet f says the most preferred action.
    mdp = hidden_room()
    data = play(EpisodicModel(mdp, 5), np.array([[0, 0, 0], [0, 0, 0]]), 300_000)
    data = data + play(EpisodicModel(mdp, 6), np.array([[1, 1, 1], [1, 1, 1]]), 300_000)
    sample = prepare(data, by_steps=True, fixed_start=True)
    assert (sample.number[:, 2] == 0).all()
    proven = 0
    for seed in range(6):
        for goal in (Goal(epsilon=0.3), Goal(quality=0.9)):
            rule = make_rule(reprl.SharedKey(seed).derive("rule"), (2, 3, 2), goal=goal)
            found = judge(rule, sample, 0.05)
            if found.proven:
                proven += 1
                assert found.policy == choose(rule, true_dynamics(mdp)).policy
    assert proven > 0

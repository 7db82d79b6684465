"""Ties of best actions that differ in noise: f jumps there, and a rehearsal must not take the side of its own data.

No draw of this page is random: data are exact frequencies of a world beside a tie, and keys are fixed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.enemies.worlds import TIES, Tie
from experiments.price.numbers import stored_ties
from experiments.quiet.__main__ import table
from experiments.runner import ROOT
from reprl.assurance.rehearsal import Answer, Likeness, Rehearsal, rehearse
from reprl.assurance.stopping import _toss
from reprl.canonical.bound import BoundRule, Found, TableReader
from reprl.canonical.choice import choose, make_rule
from reprl.canonical.gaps import Ties, average_gaps, break_ties, find_gaps, find_ties
from reprl.canonical.goal import Goal
from reprl.canonical.preferred import CLEAR, _margin, visit_weight, weight_spread
from reprl.canonical.selection import Approximate
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data, redraw_data, true_dynamics
from reprl.randomness import DataStream, SharedKey

SEED, KEYS, SAMPLES, LUCK = 84, 24, 2**20, 3.4
"""A world of one place; keys; samples of each cell; standard errors by which the data happen to favour one action."""


def bound(key: int, shape: tuple[int, int, int]) -> BoundRule:
    rule = make_rule(SharedKey(key).derive("rule"), shape, goal=Goal(0.3), stationary=shape[0] > 1)
    return BoundRule.bind(rule, TableReader(), None)


def beside(shift: float) -> Data:
    """Frequencies of a world in which the action without noise is better by a shift."""
    dynamics = true_dynamics(Tie(SEED, relative=False, shift=shift)())
    hits = np.rint(dynamics.probability * SAMPLES).astype(np.int64)
    return Data(Counts(dynamics.outcomes, hits), np.rint(dynamics.initial * SAMPLES).astype(np.int64))


def jumps(rule: BoundRule) -> bool:
    """Whether f takes two values beside the tie."""
    sides = [true_dynamics(Tie(SEED, relative=False, shift=shift)()) for shift in (1e-7, -1e-7)]
    return choose(rule.rule, sides[0]).policy != choose(rule.rule, sides[1]).policy


def asked(rule: BoundRule, data: Data, found: Found, *, tossed: bool) -> Rehearsal:
    toss = _toss(rule.ties(data, found) if tossed else None)

    def team(key: SharedKey | None, share: int, draw: int) -> Answer:
        mine, drawn = rule if key is None else rule.under(key), redraw_data(data, share, draw)
        return Answer(mine.choose(drawn).policy, 0.0)

    def beside_tie(key: SharedKey | None, share: int, draw: int) -> Answer:
        assert toss is not None
        mine, drawn = rule if key is None else rule.under(key), redraw_data(data, share, draw)
        return Answer(toss(mine, drawn, draw), 0.0)

    like = Likeness(found.dynamics.occupancy)
    stream = DataStream(5, "rehearsal/1")
    how: dict[str, Any] = {"beside": None if toss is None else beside_tie, "pairs": False}
    return rehearse(team, found.policy, likeness=like, rho=0.1, epsilon=0.3, stream=stream, **how)


def test_teams_toss_which_of_two_tied_actions_is_the_best() -> None:
    """On data that favour one side by luck, plain copies pass under keys at which f jumps; teams that toss do not."""
    mean = Tie(SEED, relative=False)().solve().values[0, 0]
    data = beside(-LUCK * math.sqrt(mean * (1.0 - mean) / SAMPLES))
    rules = [bound(key, data.counts.outcomes.shape) for key in range(KEYS)]
    at_jumps = [rule for rule in rules if jumps(rule)]
    assert len(at_jumps) >= 6
    found = [rule.choose(data) for rule in at_jumps]
    plain, tossed = (
        [asked(rule, data, mine, tossed=way).passed for rule, mine in zip(at_jumps, found, strict=True)]
        for way in (False, True)
    )
    assert sum(plain) > len(plain) / 2  # the negative control: the former rehearsal promises here
    assert not any(tossed)
    others = [rule for rule in rules if not jumps(rule)][:6]
    before, after = (
        [asked(rule, data, rule.choose(data), tossed=way).passed for rule in others] for way in (False, True)
    )
    assert sum(before) >= sum(after) >= sum(before) - 1 >= 3  # under other keys hardly anything is lost


def test_only_what_data_do_not_tell_apart_is_tossed() -> None:
    rule = bound(0, beside(0.0).counts.outcomes.shape)
    error = 1.0 / math.sqrt(SAMPLES)
    near, far = (beside(shift) for shift in (-error, -10.0 * error))
    assert rule.ties(near, rule.choose(near)) is not None
    assert rule.ties(far, rule.choose(far)) is None
    assert rule._replace(selection=Approximate()).ties(near, rule.choose(near)) is None


@pytest.mark.parametrize("build", [Tie(3, 3), Tie(4, 1), Tie(37, 3)])
def test_a_tie_that_is_broken_gives_the_gaps_of_the_world_beside_it(build: Tie) -> None:
    """Against the plain computation: a world in which the other action is better by a hair."""
    order = np.arange(build().n_actions)
    exact, beside = (true_dynamics(replace(build, shift=shift)()) for shift in (0.0, 1e-9))
    gaps, expected = find_gaps(exact, order), find_gaps(beside, order)
    near = find_ties(exact, gaps, np.full(gaps.gap.shape, 10**9))
    rank = np.zeros(near.shape[1:])
    np.put_along_axis(rank, expected.best[0][:, None], 1.0, axis=1)
    gaps = break_ties(exact, gaps, Ties(near, rank))
    np.testing.assert_array_equal(gaps.best, expected.best)
    compared = expected.spread > 0.0  # the best action is not compared with itself
    np.testing.assert_allclose(gaps.spread[compared], expected.spread[compared], atol=1e-6)
    np.testing.assert_allclose(gaps.deviation, expected.deviation, atol=1e-6)
    np.testing.assert_allclose(gaps.gap, expected.gap, atol=1e-7)
    if build.horizon > 1:
        phases = np.zeros(build.horizon, dtype=np.int64)
        found, wanted = average_gaps(exact, gaps, order, phases), average_gaps(beside, expected, order, phases)
        np.testing.assert_array_equal(found.best, wanted.best)
        compared = wanted.spread > 0.0
        np.testing.assert_allclose(found.spread[compared], wanted.spread[compared], atol=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_a_margin_may_be_negative_where_the_best_of_tied_actions_has_a_gap(seed: int) -> None:
    """Against plain quotients: none of the actions is within the tolerance, and the one called the best is taken."""
    draw = np.random.default_rng(seed)
    shape, order, tolerance = (2, 5, 3), np.array([2, 0, 1]), 0.1
    gap, spread = draw.uniform(0.4, 0.6, shape), draw.uniform(0.5, 1.5, shape)
    best, visits = draw.integers(0, 3, (1, *shape[:2])), draw.uniform(0.5, 1.0, (1, *shape[:2]))
    margin, tightest, group = np.full(1, CLEAR), np.full((1, 3), -1), np.zeros(1, dtype=np.int64)
    _margin(gap, spread, order, np.full(1, tolerance), visits, group, best, margin, tightest)
    found = {}
    for (h, s), often in np.ndenumerate(visits[0]):
        chosen = order.tolist().index(best[0, h, s])
        for a in order[: chosen + 1].tolist():
            distance = visit_weight(often) * gap[h, s, a] - tolerance
            unsure = weight_spread.py_func(often) * gap[h, s, a]  # type: ignore[attr-defined]
            whole = math.hypot(visit_weight(often) * spread[h, s, a], unsure)
            found[h, s, a] = (-distance if a == best[0, h, s] else distance) / whole
    assert margin[0] == pytest.approx(min(found.values()), rel=1e-12)
    assert margin[0] < 0.0
    assert tuple(tightest[0]) == min(found, key=lambda cell: found[cell])


def test_the_page_shows_the_stored_data() -> None:
    page = (ROOT / "docs" / "canonical.md").read_text("utf-8")
    assert page.partition("<!-- ties-now -->\n")[2].partition("\n<!-- end -->")[0] == table(stored_ties())


@pytest.mark.parametrize("name", list(TIES))
def test_the_worlds_are_ties_at_which_the_rule_jumps(name: str) -> None:
    goal = Goal(quality=0.9) if name == "q=0.9" else Goal(0.3)
    for build in TIES[name].values():
        assert isinstance(build, Tie)
        sides = [true_dynamics(replace(build, shift=shift)()) for shift in (1e-7, -1e-7)]
        shape, several = sides[0].outcomes.shape, build.horizon > 1
        rules = [make_rule(SharedKey(k).derive("rule"), shape, goal=goal, stationary=several) for k in range(16)]
        assert any(choose(rule, sides[0]).policy != choose(rule, sides[1]).policy for rule in rules)

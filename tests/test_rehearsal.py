"""Rehearsal: copies of the data drawn anew, the teams that get them, and when a run may stop."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import reprl
from reprl.assurance.rehearsal import FRESH, KEYS, OWN, Answer, Likeness, Rehearsal, asked_for, rehearse
from reprl.canonical.choice import Choice, Rule, choose, make_rule, with_key
from reprl.canonical.goal import Goal
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data, empirical_dynamics, redraw
from reprl.mdp.outcomes import Outcomes
from reprl.randomness import DataStream, SharedKey
from reprl.sources.parallel import GenerativeModel
from tests import naive_rule
from tests.statistics import FALSE_ALARM, chi_square_of
from tests.test_rule import random_data

# Data drawn anew.


def two_cells(hits: list[int], starts: list[int]) -> Data:
    """H = 1, S = 2, A = 1: each cell leads to both states, with three and two outcomes."""
    following, reward = np.array([0, 0, 1, 0, 1], dtype=np.int32), np.array([0.0, 1.0, 0.5, 0.0, 1.0])
    table = Outcomes(1, 2, 1, 2, 0, np.array([0, 3, 5]), following, reward)
    return Data(Counts(table, np.array(hits, dtype=np.int64)), np.array(starts, dtype=np.int64))


def redrawn(data: Data, share: int, keys: range) -> Counter[tuple[int, ...]]:
    """Tallies of redrawn (counts of cell 0, counts of cell 1, starts), read off the frequencies."""
    numbers = [max(1, sum(part) // share) for part in (data.counts.hits[:3], data.counts.hits[3:], data.starts)]
    found: Counter[tuple[int, ...]] = Counter()
    for key in keys:
        copy = redraw(data, share, DataStream(key, "redraw").key)
        parts = (copy.probability[:3], copy.probability[3:], copy.initial)
        counts = [np.rint(part * number).astype(int).tolist() for part, number in zip(parts, numbers, strict=True)]
        found[tuple(itertools.chain(*counts))] += 1
    return found


def product_law(data: Data, share: int) -> dict[tuple[int, ...], float]:
    hits, starts = data.counts.hits.tolist(), data.starts.tolist()
    laws = [naive_rule.redrawn_law(part, share) for part in (hits[:3], hits[3:], starts)]
    return {
        tuple(itertools.chain(*counts)): math.prod(law[part] for law, part in zip(laws, counts, strict=True))
        for counts in itertools.product(*laws)
    }


@pytest.mark.statistical
@pytest.mark.parametrize("share", [1, 2])
def test_redrawn_counts_are_independent_multinomials(share: int) -> None:
    data = two_cells([2, 1, 1, 3, 1], [1, 2])
    found = redrawn(data, share, range(4000))
    assert chi_square_of(found, product_law(data, share)) > FALSE_ALARM
    # Controls: other frequencies, another size, and cells that move together.
    assert chi_square_of(found, product_law(two_cells([1, 1, 2, 3, 1], [1, 2]), share)) <= FALSE_ALARM
    assert chi_square_of(found, product_law(data, 3 - share)) <= FALSE_ALARM
    together = Counter(counts for counts in found.elements() if (counts[0] > 0) == (counts[3] > 0))
    assert chi_square_of(together, product_law(data, share)) <= FALSE_ALARM


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 2**63))
def test_redrawing_keeps_supports_and_totals(seed: int, share: int, key: int) -> None:
    data = random_data(seed)
    first, copy = empirical_dynamics(data), redraw(data, share, key)
    np.testing.assert_array_equal(first.tried, copy.tried)
    assert not copy.probability[first.probability == 0.0].any()
    assert not copy.initial[first.initial == 0.0].any()
    outcomes = data.counts.outcomes
    for cell in itertools.product(*map(range, outcomes.shape)):
        slots = outcomes.slots(*cell)[1]
        total = int(data.counts.hits[slots].sum())
        counts = copy.probability[slots] * max(1, total // share)
        np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
        assert copy.probability[slots].sum() == pytest.approx(1.0 if total else 0.0)
    starts = copy.initial * max(1, int(data.starts.sum()) // share)
    np.testing.assert_allclose(starts, np.rint(starts), atol=1e-9)
    again = redraw(data, share, key)
    np.testing.assert_array_equal(copy.probability, again.probability)


@pytest.mark.statistical
def test_starts_follow_their_law_and_not_the_cells() -> None:
    law = np.array([0.5, 0.0, 0.2, 0.3])
    mdp = reprl.TabularMDP(np.full((4, 1, 4), 0.25), np.full((4, 1), 0.5), horizon=1, initial=law)
    found: Counter[tuple[int, ...]] = Counter()
    joint: Counter[tuple[int, int]] = Counter()
    for seed in range(3000):
        model = GenerativeModel(mdp, seed)
        counts, starts = model.sample(2), model.draw_starts(2)
        assert model.ledger.samples == 2 * model.samples_per_call  # starts are paid for with the calls
        found[tuple(starts.tolist())] += 1
        joint[int(starts[0]), int(counts.successors(0, 0, 0)[0])] += 1
    exact: dict[tuple[int, ...], float] = {}
    for pair in itertools.product(range(4), repeat=2):
        key = tuple(pair.count(s) for s in range(4))
        exact[key] = exact.get(key, 0.0) + math.prod(law[list(pair)])
    exact = {key: p for key, p in exact.items() if p > 0.0}
    assert chi_square_of(found, exact) > FALSE_ALARM
    assert chi_square_of(found, {key: 1.0 / len(exact) for key in exact}) <= FALSE_ALARM  # control

    def binomial(p: float, k: int) -> float:
        return math.comb(2, k) * p**k * (1.0 - p) ** (2 - k)

    both = {(i, j): binomial(0.5, i) * binomial(0.25, j) for i in range(3) for j in range(3)}
    assert chi_square_of(joint, both) > FALSE_ALARM


def test_rounds_show_different_starts() -> None:
    mdp = reprl.TabularMDP(np.full((4, 1, 4), 0.25), np.full((4, 1), 0.5), horizon=1, initial=np.full(4, 0.25))
    model = GenerativeModel(mdp, 1)
    seen = set()
    for _ in range(5):
        model.sample(1000)
        seen.add(tuple(model.draw_starts(1000).tolist()))
    assert len(seen) == 5


# Teams.


def situation(calls: int, seed: int = 3, epsilon: float = 0.3) -> tuple[Any, Data, Any]:
    mdp = reprl.make("random-mdp-v0", n_states=4, n_actions=2, horizon=3, seed=seed)
    assert isinstance(mdp, reprl.TabularMDP)
    model = GenerativeModel(mdp, 11)
    data = Data(model.sample(calls), model.draw_starts(calls))
    rule = make_rule(SharedKey(2), (3, 4, 2), goal=Goal(epsilon=epsilon))
    return rule, data, choose(rule, empirical_dynamics(data))


def asked(rule: Rule, data: Data, chosen: Choice, seed: int = 5, *, pairs: bool = True) -> Rehearsal:
    """Rehearse with teams that choose from redrawn data, as the learner does."""

    def team(key: SharedKey | None, share: int, draw: int) -> Answer:
        found = choose(rule if key is None else with_key(rule, key), redraw(data, share, draw))
        return Answer(found.policy, found.value + found.loss)

    stream = DataStream(seed, "rehearsal/1")
    how: dict[str, Any] = {"rho": 0.1, "epsilon": chosen.epsilon, "stream": stream, "pairs": pairs}
    return rehearse(team, chosen.policy, likeness=Likeness(empirical_dynamics(data).occupancy), **how)


def test_how_many_are_asked() -> None:
    assert [asked_for(rho) for rho in (0.5, 0.2, 0.1, 0.02)] == [20, 20, 40, 200]


@pytest.mark.parametrize(("calls", "number"), [(200, 20), (10**7, 40)])
def test_teams_are_choices_on_half_of_the_data_redrawn(calls: int, number: int) -> None:
    """Half of the teams are asked where these differ already, all of them where they do not."""
    rule, data, chosen = situation(calls)
    found = asked(rule, data, chosen, pairs=False)
    teams = [choose(rule, redraw(data, OWN, DataStream(5, f"rehearsal/1/team/{team}").key)) for team in range(number)]
    assert found.of == len(teams)
    assert found.agree == sum(team.policy == chosen.policy for team in teams)
    np.testing.assert_allclose(
        found.apart, np.mean([team.policy.actions != chosen.policy.actions for team in teams], axis=0)
    )
    values = [team.value + team.loss for team in teams]
    assert found.error == pytest.approx(np.std(values, ddof=1) / math.sqrt(2.0))
    assert (found.pairs, found.pairs_agree) == (0, 0)
    assert found.passed == (found.agree == 40 and found.error < chosen.epsilon)


def test_teams_that_agree_are_enough_and_no_pair_is_asked() -> None:
    rule, data, chosen = situation(10**7)
    found = asked(rule, data, chosen)
    assert (found.agree, found.pairs, found.passed) == (found.of, 0, True)
    assert not found.apart.any()
    assert str(found) == "40 of 40 simulated second teams learn this policy"


def test_pairs_stop_being_asked_once_too_many_differ() -> None:
    rule, data, chosen = situation(3, epsilon=3.0)
    found = asked(rule, data, chosen)
    assert found.agree < found.of
    assert found.pairs - found.pairs_agree == 1
    assert found.pairs < asked_for(0.1)
    assert not found.passed
    assert f"under fresh shared seeds {found.pairs_agree} of {found.pairs} pairs agree" in str(found)


@pytest.mark.parametrize(("differ", "passes"), [(0, True), (1, False)])
@pytest.mark.parametrize("lost", [True, False])
def test_pairs_may_let_an_unlucky_key_stop(differ: int, passes: bool, lost: bool) -> None:
    """All teams differ from the run, and of the pairs exactly so many: none may."""
    ours, other = reprl.Policy([[0, 1]]), None if lost else reprl.Policy([[1, 0]])
    fresh: dict[SharedKey, int] = {}

    def team(key: SharedKey | None, share: int, draw: int) -> Answer:
        assert share == (OWN if key is None else FRESH)
        if key is None:
            return Answer(other, 1.0)
        fresh[key] = fresh.get(key, 0) + 1
        return Answer(other if len(fresh) <= differ and fresh[key] == 2 else ours, 1.0)

    even = Likeness(lambda actions: np.ones(actions.shape))
    found = rehearse(team, ours, likeness=even, rho=0.1, epsilon=0.3, stream=DataStream(5, "rehearsal/1"))
    assert found.agree == 0
    assert (found.apart == 1.0).all()
    assert found.passed is passes
    assert found.pairs - found.pairs_agree == differ
    assert set(fresh.values()) == {2}


@pytest.mark.parametrize("most", [0, KEYS // 2, KEYS // 2 + 1, KEYS])
def test_no_pairs_let_a_run_stop_if_a_data_set_changes_the_policy_under_most_keys(most: int) -> None:
    """All teams differ, all pairs agree, and one data set of half of the size changes the policy under so many keys."""
    ours, other = reprl.Policy([[0, 1]]), reprl.Policy([[1, 0]])
    stream, keys = DataStream(5, "rehearsal/1"), list[SharedKey]()
    far = DataStream(5, "rehearsal/1/world/17").key

    def under(asked: Sequence[SharedKey], draw: int | None) -> Iterator[reprl.Policy | None]:
        keys[:] = asked
        return (other if draw == far and number < most else ours for number in range(KEYS))

    def team(key: SharedKey | None, share: int, draw: int) -> Answer:
        if key is None:
            return Answer(other, 1.0)
        assert share == FRESH
        return Answer(ours, 1.0)

    even = Likeness(lambda actions: np.ones(actions.shape))
    found = rehearse(team, ours, likeness=even, rho=0.1, epsilon=0.3, stream=stream, under=under)
    assert len(set(keys)) == KEYS
    assert found.pairs_agree == found.pairs == asked_for(0.1)
    assert found.passed is (most <= KEYS // 2)
    assert found.moved == (None if found.passed else 1 / asked_for(0.1))
    assert ("change the policy under most seeds" in str(found)) is not found.passed


def test_luck_that_all_keys_share_seldom_lets_a_run_stop() -> None:
    """The truth lies on a boundary that is the same under all keys, and a run's estimate some standard errors away.

    By luck pairs alone pass in 2.5 % of the runs, with data sets of half of the size in 0.5 %; teams under one key pass
    in 0.9 %. 3,000 runs: a rate of 0.9 % is rejected wrongly with probability at most 1e-6, and of 2.5 % is rejected
    with probability 0.99.
    """
    ours, other = reprl.Policy([[0]]), reprl.Policy([[1]])
    even, passed = Likeness(lambda actions: np.ones(actions.shape)), {True: 0, False: 0}
    for seed in range(3_000):
        z = float(np.random.default_rng([31, seed]).normal())

        def decide(world: float) -> reprl.Policy:
            return ours if world > 0.0 else other

        def team(key: SharedKey | None, share: int, draw: int, z: float = z) -> Answer:
            noise = float(np.random.default_rng(draw).normal()) * math.sqrt(share)
            return Answer(None if key is None else decide(z + noise), 1.0)

        def under(keys: Sequence[SharedKey], draw: int | None, z: float = z) -> Iterator[reprl.Policy | None]:
            world = z if draw is None else z + float(np.random.default_rng(draw).normal()) * math.sqrt(OWN)
            return (decide(world) for _ in keys)

        for guarded in (False, True):
            how: dict[str, Any] = {"rho": 0.1, "epsilon": 0.3, "stream": DataStream(seed, "rehearsal/1")}
            found = rehearse(team, decide(z), likeness=even, under=under if guarded else None, **how)
            passed[guarded] += found.passed
    assert binomtest(passed[False], 3_000, 0.009, alternative="greater").pvalue < 1e-6  # the control
    assert binomtest(passed[True], 3_000, 0.009, alternative="greater").pvalue > 1e-6


def test_no_run_stops_while_the_best_value_is_unknown() -> None:
    """One coin over ten steps: all agree on the only policy, but a handful of tosses does not tell its value."""
    mdp = reprl.TabularMDP(np.eye(2)[:, None], np.array([[0.0], [1.0]]), horizon=10, initial=np.array([0.5, 0.5]))
    rule = make_rule(SharedKey(2), (10, 2, 1), goal=Goal(epsilon=0.3))
    model = GenerativeModel(mdp, 1)
    for calls, knows in ((16, False), (10**5, True)):
        data = Data(model.sample(calls), model.draw_starts(calls))
        chosen = choose(rule, empirical_dynamics(data))
        found = asked(rule, data, chosen)
        assert found.agree == found.of
        assert (found.error < 0.3) is knows
        assert (found.passed, found.pairs) == (knows, 0)


def test_a_rehearsal_is_a_function_of_the_stream() -> None:
    rule, data, chosen = situation(100)
    first, again = (asked(rule, data, chosen) for _ in range(2))
    assert first[:5] == again[:5]
    np.testing.assert_array_equal(first.apart, again.apart)
    other = asked(rule, data, chosen, 6)
    assert first.error != other.error

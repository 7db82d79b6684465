"""Tiers: partitions that are refused, and niceness against its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.mdp.counts import tally
from reprl.mdp.tiers import Tiers, check_niceness, first_empty
from tests import naive_decision


def counts_of(visits: Any) -> reprl.Counts:
    """Data with the given number of samples in every cell (h, s, a)."""
    table = np.asarray(visits)
    rows = [(h, s, a, 0, 0.5) for h, s, a in np.ndindex(table.shape) for _ in range(table[h, s, a])]
    return tally(rows, table.shape)


# Partitions.


def test_sets_become_levels() -> None:
    sets = np.zeros((3, 2, 4), dtype=bool)
    level = np.array([[1, 3, 2, 1], [2, 2, 3, 1]])
    for h, s in np.ndindex(2, 4):
        sets[level[h, s] - 1, h, s] = True
    tiers = Tiers.from_sets(sets)
    assert np.array_equal(tiers.level, level)
    assert (tiers.count, list(tiers.decided)) == (3, [1, 2])
    assert np.array_equal(tiers.ignorable, sets[2])
    assert not tiers.level.flags.writeable


def test_one_tier_ignores_nothing() -> None:
    for tiers in (Tiers.single(2, 3), Tiers.from_sets(np.ones((1, 2, 3), dtype=bool))):
        assert (tiers.count, list(tiers.decided)) == (1, [1])
        assert not tiers.ignorable.any()
        assert (tiers.level == 1).all()


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.data())
def test_an_overlap_or_a_gap_is_refused_with_its_place(count: int, horizon: int, n_states: int, data: Any) -> None:
    level = data.draw(st.lists(st.integers(0, count - 1), min_size=horizon * n_states, max_size=horizon * n_states))
    sets = np.arange(count)[:, None, None] == np.reshape(level, (horizon, n_states))
    h, s = data.draw(st.integers(0, horizon - 1)), data.draw(st.integers(0, n_states - 1))
    tier = data.draw(st.integers(0, count - 1))
    assert np.array_equal(Tiers.from_sets(sets).level - 1, np.reshape(level, (horizon, n_states)))
    sets[tier, h, s] ^= True
    got = int(sets[:, h, s].sum())
    with pytest.raises(reprl.ReprlError, match=f"^tiers must partition .*state {s} at step {h} .*1 tier, got {got}$"):
        Tiers.from_sets(sets)


@pytest.mark.parametrize(("value", "count"), [(0, 2), (3, 2), (-1, 5), (2, 1)])
def test_a_level_out_of_range_is_refused_with_its_place(value: int, count: int) -> None:
    level = np.ones((2, 3), dtype=np.int64)
    level[1, 2] = value
    with pytest.raises(reprl.ReprlError, match=f"^tier of state 2 at step 1 must be from 1 to {count}, got {value}$"):
        Tiers.from_levels(level, count)


@pytest.mark.parametrize("level", [[1, 2], [[1.0]], [[True]], "abc", None, [[1], [1, 2]], [[[1]]]])
def test_a_table_of_levels_must_be_one(level: Any) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^tiers must be an \(H, S\) table of tier numbers, got "):
        Tiers.from_levels(level, 2)


@pytest.mark.parametrize("sets", [[[True]], [[[1]]], None, [[[True], [True, False]]], np.zeros((0, 2, 2), dtype=bool)])
def test_sets_must_be_booleans_of_one_shape(sets: Any) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^tiers must be \(L, H, S\) booleans, got "):
        Tiers.from_sets(sets)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, None])
def test_the_number_of_tiers_must_be_whole(count: Any) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^number of tiers must be a whole number of at least 1, got "):
        Tiers.from_levels([[1]], count)


# Niceness.


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(1, 4), st.data())
def test_niceness_is_the_definition(horizon: int, n_states: int, n_actions: int, count: int, data: Any) -> None:
    cells = horizon * n_states
    visits = np.reshape(
        data.draw(st.lists(st.integers(0, 9), min_size=cells * n_actions, max_size=cells * n_actions)),
        (horizon, n_states, n_actions),
    )
    level = np.reshape(data.draw(st.lists(st.integers(1, count), min_size=cells, max_size=cells)), (horizon, n_states))
    tiers, zeta = Tiers.from_levels(level, count), data.draw(st.floats(0.05, 5.0))
    counts = counts_of(visits)
    found = check_niceness(counts, tiers, zeta)
    table = {cell: int(visits[cell]) for cell in np.ndindex(visits.shape)}
    expected = naive_decision.niceness(table, level.tolist(), count, n_actions)
    np.testing.assert_allclose(found.by_tier, expected, rtol=1e-12)
    assert found.zeta == max(found.by_tier)
    assert found.nice == (max(found.by_tier) <= zeta)
    if found.zeta > 0:
        assert found.margin == pytest.approx(zeta / found.zeta)
        assert found.nice == (found.margin >= 1)
    else:
        assert found.margin == math.inf
    empties = [c for c in np.ndindex(visits.shape) if not visits[c] and (count == 1 or level[c[:2]] < count)]
    assert found.emptiest == first_empty(counts, tiers) == (empties[0] if empties else None)
    if empties:
        assert (found.zeta, found.margin, found.nice) == (math.inf, 0.0, False)


def test_data_are_nice_for_exactly_the_zetas_from_the_smallest_on() -> None:
    counts = counts_of(np.full((2, 3, 2), 4))
    tiers = Tiers.single(2, 3)
    zeta = check_niceness(counts, tiers, 1.0).zeta
    assert zeta == pytest.approx(2 * math.sqrt(3 / 4) / 2)
    assert check_niceness(counts, tiers, zeta).nice
    assert not check_niceness(counts, tiers, zeta * (1 - 1e-9)).nice


def test_empty_cells_of_the_ignored_tier_do_not_matter() -> None:
    visits = np.full((2, 2, 2), 5)
    visits[1, 1] = 0
    ignored = Tiers.from_levels([[1, 1], [1, 2]], 2)
    assert check_niceness(counts_of(visits), ignored, 1.0).emptiest is None
    assert check_niceness(counts_of(visits), ignored, 1.0).zeta < math.inf
    everything = check_niceness(counts_of(visits), Tiers.single(2, 2), 1.0)
    assert (everything.emptiest, everything.zeta) == ((1, 1, 0), math.inf)


@pytest.mark.parametrize("zeta", [0.0, -1.0, math.nan, math.inf, "1"])
def test_a_bad_zeta_is_refused(zeta: Any) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^zeta must lie in \(0, inf\), got "):
        check_niceness(counts_of(np.ones((1, 1, 1), dtype=int)), Tiers.single(1, 1), zeta)


def test_tiers_of_another_shape_are_refused() -> None:
    with pytest.raises(reprl.ReprlError, match=r"^tiers must have shape \(1, 2\) like the data, got \(2, 2\)$"):
        check_niceness(counts_of(np.ones((1, 2, 1), dtype=int)), Tiers.single(2, 2), 1.0)

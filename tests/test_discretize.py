"""Cells: where observations fall, what cells are called, and that a table can be learned and confirmed in them."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.errors import InputError
from reprl.sources.gymnasium.cells import CellEnv, Grid

EDGES = {"low": (-2.4, -2.0, -0.21, -2.0), "high": (2.4, 2.0, 0.21, 2.0)}


def naive_cell(observation: list[float], grid: Grid) -> int:
    """The number of a cell by counting edges."""
    number = 0
    for x, bins, low, high in zip(observation, *grid, strict=True):
        number = number * bins + sum((x - low) / (high - low) * bins >= k for k in range(1, bins))
    return number


@given(st.lists(st.floats(-9.0, 9.0), min_size=3, max_size=3), st.lists(st.integers(1, 7), min_size=3, max_size=3))
@settings(max_examples=100, deadline=None)
def test_cells_are_counted_edges(observation, bins):
    grid = Grid(tuple(bins), (-1.0, -2.5, 0.0), (1.0, 7.5, 0.25))
    assert grid.cell(np.array(observation)) == naive_cell(observation, grid)
    assert 0 <= grid.cell(observation) < grid.size


def test_outer_cells_go_on_and_names_say_so():
    grid = Grid((3, 1, 2), (-3.0, 0.0, 0.0), (3.0, 1.0, 1.0))
    assert grid.cell([-np.inf, 7.0, np.inf]) == grid.cell([-2.0, -7.0, 0.6]) == 1
    assert [grid.name(s) for s in range(6)] == [
        "x0 < -1, x2 < 0.5",
        "x0 < -1, x2 ≥ 0.5",
        "-1 ≤ x0 < 1, x2 < 0.5",
        "-1 ≤ x0 < 1, x2 ≥ 0.5",
        "x0 ≥ 1, x2 < 0.5",
        "x0 ≥ 1, x2 ≥ 0.5",
    ]
    with pytest.raises(InputError, match="observation must be numbers"):
        grid.cell([np.nan, 0.0, 0.0])


def test_a_factory_reopens_and_an_open_environment_is_wrapped():
    cart = reprl.discretize("CartPole-v1", (1, 3, 6, 3), **EDGES)
    model = reprl.GymnasiumModel(pickle.loads(pickle.dumps(cart)), 30, reward_range=(0.0, 1.0), data_seed=1)
    assert model.n_states == 1 * 3 * 6 * 3 + 1
    assert model.labels.states[0] == "x1 < -0.6667, x2 < -0.14, x3 < -0.6667"
    assert model.labels.states[-1] == "ended"
    assert model.reopens
    opened = gymnasium.make("MountainCar-v0")
    wrapped = reprl.discretize(opened, 4)
    assert isinstance(wrapped, CellEnv)
    assert wrapped.observation_space == gymnasium.spaces.Discrete(16)
    assert wrapped.observation_space.contains(wrapped.reset(seed=0)[0])
    opened.close()


def test_a_table_is_learned_on_cells():
    cart = reprl.discretize("CartPole-v1", (1, 1, 2, 2), **EDGES)
    how: dict[str, Any] = {"epsilon": 2.0, "shared_seed": 1, "data_seed": 1, "max_samples": 20_000}
    result = reprl.learn(cart, horizon=10, reward_range=(0.0, 1.0), rule="canonical", **how)
    assert result.policy.interface is not None
    assert result.policy.interface.labels.states[:2] == ("x2 < 0, x3 < 0", "x2 < 0, x3 ≥ 0")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: reprl.discretize("CartPole-v1", 4),
            "low[1] must be a finite number to cut coordinate 1 into 4 cells, got -inf",
        ),
        (
            lambda: reprl.discretize("CartPole-v1", (4, 4)),
            "bins must be one number, or one for each of 4 coordinates, got 2",
        ),
        (lambda: reprl.discretize("CartPole-v1", 0), "bins must be a whole number"),
        (
            lambda: reprl.discretize("CartPole-v1", 4, low=1.0, high=0.0),
            "low[0] must be less than high[0], got 1 and 0",
        ),
        (lambda: reprl.discretize("CartPole-v1", 9**4, low=-1.0, high=1.0), "bins must make fewer than"),
        (lambda: reprl.discretize("FrozenLake-v1", 4), "discretize needs an environment that observes a Box"),
    ],
)
def test_bad_input_is_one_line(call, said):
    with pytest.raises(InputError) as caught:
        call()
    assert said in str(caught.value)


def test_the_error_for_a_box_names_it():
    with pytest.raises(InputError, match=r"cut a Box into cells with reprl\.discretize\(env, bins"):
        reprl.GymnasiumModel("CartPole-v1", 10, reward_range=(0.0, 1.0))

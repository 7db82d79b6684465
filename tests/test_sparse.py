"""Worlds from lists: scipy sparse matrices and tables of outcomes give the same worlds as arrays, in less memory."""

from __future__ import annotations

import runpy
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.errors import ReprlError


def dense(seed: int, n_states: int = 5, n_actions: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    law = rng.random((n_states, n_actions, n_states)) * (rng.random((n_states, n_actions, n_states)) < 0.6)
    law[..., 0] += 0.1
    return law / law.sum(axis=2, keepdims=True), rng.random((n_states, n_actions, n_states))


def flat(table: Any) -> Any:
    return scipy.sparse.csr_matrix(table.reshape(-1, table.shape[-1]))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["bernoulli", "deterministic"]), st.booleans())
def test_sparse_worlds_are_the_dense_ones_byte_for_byte(seed: int, kind: str, masked: bool) -> None:
    law, reward = dense(seed)
    mask = np.arange(10).reshape(5, 2) % 3 != 1 if masked else None
    whole = reprl.TabularMDP(law, reward[None], 0, 3, kind, allowed=mask)
    thin = reprl.TabularMDP(flat(law), flat(reward), 0, 3, kind, allowed=mask)
    assert thin.digest == whole.digest
    assert thin.stationary
    rows = [(s, a, t, law[s, a, t], reward[s, a, t]) for s, a, t in np.argwhere(law > 0)]
    order = np.random.default_rng(seed).permutation(len(rows))
    sizes: dict[str, Any] = {"n_states": 5, "n_actions": 2, "horizon": 3, "reward_kind": kind, "allowed": mask}
    listed = reprl.TabularMDP.from_outcomes(np.array(rows)[order], **sizes)
    assert listed.digest == whole.digest
    cells = reprl.TabularMDP(flat(law), reward[..., 0], 0, 3, kind, allowed=mask)
    assert cells.digest == reprl.TabularMDP(law, reward[..., 0], 0, 3, kind, allowed=mask).digest


def test_outcomes_by_step_and_several_rewards_for_one_successor() -> None:
    rows = [(h, s, 0, 1 - s, 0.5, pay) for h in range(3) for s in range(2) for pay in (0.25, 1.0)]
    mdp = reprl.TabularMDP.from_outcomes(rows, n_states=2, n_actions=1, horizon=3)
    assert not mdp.stationary
    assert mdp.probability.size == 12
    assert mdp.evaluate(np.zeros((3, 2), dtype=int)) == pytest.approx(3 * 0.625)


def test_a_callers_matrix_stays_as_it_is_and_duplicates_add_up() -> None:
    twice = scipy.sparse.coo_matrix(
        (np.array([0.5, 0.5, 1.0]), (np.array([0, 0, 1]), np.array([1, 1, 0]))), shape=(2, 2)
    )
    mdp = reprl.TabularMDP(twice, np.array([[0.0], [1.0]]), 0, 4)
    assert mdp.evaluate(mdp.solve().policy) == pytest.approx(2.0)
    assert twice.nnz == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"horizon": None}, r"^horizon must be given with sparse transitions, got None\Z"),
        ({"transition": np.ones((3, 2))}, r"^transition must have shape \(S·A, S\) where it is sparse, got \(3, 2\)"),
        ({"transition": np.array([[0.5, 0.0], [0.0, 1.0]])}, r"state 0, action 0 must sum to 1 within 1e-06, got 0.5"),
        ({"transition": np.array([[1.5, -0.5], [0.0, 1.0]])}, r"state 0, action 0 must hold probabilities .* got -0.5"),
        ({"transition": np.array([[np.nan, 1.0], [0.0, 1.0]])}, r"^transition must be finite, got nan"),
        (
            {"reward": np.array([[2.0], [0.0]])},
            r"^reward of transition of state 0, action 0 must lie in \[0, 1\], got 2",
        ),
        ({"reward": np.zeros((1, 2))}, r"^reward must have shape \(2, 1\), or be sparse, got \(1, 2\)"),
        (
            {"reward": scipy.sparse.csr_matrix((3, 3))},
            r"^reward must have shape \(2, 2\), as transition has it, got \(3, 3\)",
        ),
    ],
)
def test_sparse_worlds_that_are_refused(change: dict[str, Any], words: str) -> None:
    given = {"transition": np.eye(2), "reward": np.zeros((2, 1)), "horizon": 2, **change}
    with pytest.raises(ReprlError, match=words):
        reprl.TabularMDP(scipy.sparse.csr_matrix(given["transition"]), given["reward"], 0, given["horizon"])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.zeros((1, 4)), r"^outcomes must have 5 columns .* got shape \(1, 4\)"),
        ([(0, 0, 2, 1, 0)], r"^outcomes\[0, 2\] must be an index below 2, got 2\Z"),
        ([(0, 0.5, 1, 1, 0)], r"^outcomes\[0, 1\] must be an index below 1, got 0.5\Z"),
        ([(0, 0, 1, 1, 0)], r"^transition of state 1, action 0 must sum to 1 within 1e-06, got 0\Z"),
        ([(0, 0, 1, 1, 3), (1, 0, 1, 1, 0)], r"^reward of transition of state 0, action 0 must lie in \[0, 1\], got 3"),
    ],
)
def test_tables_that_are_refused(rows: Any, words: str) -> None:
    with pytest.raises(ReprlError, match=words):
        reprl.TabularMDP.from_outcomes(rows, n_states=2, n_actions=1, horizon=2)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: reprl.make("combination-lock-v0", n_states=2 * 10**8), "a dense MDP"),
        (lambda: reprl.make("hard-instance-v0", n_states=2 * 10**8), "a dense MDP"),
        (lambda: reprl.make("gambler-v0", goal=10**6), "a dense MDP"),
        (lambda: reprl.TabularMDP.from_outcomes([], n_states=2**30, n_actions=4, horizon=1), r"a world \(S·A\)"),
    ],
)
def test_sizes_are_refused_before_memory_is_taken(build: Any, words: str) -> None:
    tracemalloc.start()
    with pytest.raises(ReprlError, match=f"{words}.* must have at most 268435456 entries, got"):
        build()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**7


def test_a_large_world_takes_memory_for_what_can_happen_only() -> None:
    n, width = 20_000, 10
    rng = np.random.default_rng(1)
    columns = (np.arange(2 * n)[:, None] // 2 + rng.integers(0, 30, (2 * n, width))) % n
    edges = np.arange(0, 2 * n * width + 1, width)
    law = scipy.sparse.csr_matrix((np.full(columns.size, 1 / width), columns.ravel(), edges), shape=(2 * n, n))
    tracemalloc.start()
    mdp = reprl.TabularMDP(law, rng.random((n, 2)), 0, 5)
    value = mdp.evaluate(mdp.solve().policy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 2.5 < value < 5.0
    assert peak < 2 * 10**8  # dense transitions alone would take 6 GB
    with pytest.raises(ReprlError, match="dense transitions must have at most"):
        mdp.transition  # noqa: B018 - a property


# Worlds that are built so.


def test_the_gambler_ties_and_only_stakes_what_is_there() -> None:
    mdp = reprl.make("gambler-v0")
    assert mdp.allowed is not None
    assert mdp.allowed[0, 6].tolist() == [True] * 6 + [False] * 2
    assert mdp.allowed[0, 15].tolist() == [True] + [False] * 7
    values = mdp.solve().values[0]
    # with a coin against you bold play is best: V(8) = 0.4, V(4) = 0.4², and V(12) = 0.4 + 0.6·0.4
    assert values[[0, 4, 8, 12, 16]].tolist() == pytest.approx([0.0, 0.16, 0.4, 0.64, 0.0], abs=1e-12)
    law = mdp.transition[0]
    worth = mdp.reward[0] + law @ values
    best = np.isclose(worth, values[:, None], atol=1e-9) & mdp.allowed[0]
    assert (best[1:16].sum(axis=1) > 1).any()  # several stakes are exactly as good: what rounding would choose between


def test_icu_sepsis_is_built_from_its_package() -> None:
    pytest.importorskip("icu_sepsis", reason="examples/sepsis.py reads the files of the package icu-sepsis")
    example = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "sepsis.py"))
    mdp = example["icu_sepsis"]()
    assert mdp.digest == "2b2323cc3e031f504f288acae8aa00f5817ba2aee0b93dff8ee853147de76bb2"
    assert mdp.evaluate(mdp.solve().policy) == pytest.approx(0.7922164100552752)
    assert (mdp.labels.actions[7], mdp.labels.states[-1]) == ("fluids 1, vasopressors 2", "ended")

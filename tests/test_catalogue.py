"""The catalogue: every id is a fixed, documented MDP, and each has the structure that its description promises."""

import itertools
import json
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reprl.errors import ReprlError
from reprl.mdp.catalogue import CatalogueId, catalogue, hard_instance
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make

IDS = [entry.id for entry in catalogue()]

# Published: an id keeps its digest for ever. A change of behaviour is a new id, not a new digest.
GOLDEN = {
    "random-mdp-v0": "349442518a90c80d155b07d4bcf26eefd3db39444190da10bdc142794bcb37cc",
    "gridworld-v0": "948cad080298cbc91497640e9de5e2c2f5e32e900451d5b33f17da9854e186b0",
    "two-goals-v0": "fd961a4738af6aae7d97025ad65ac095f0fb5b5cc4b180430d14913d8283c392",
    "combination-lock-v0": "17853364256bc9882888cc1e2c9fadfeed18b0089d7c30a1c4067af90d0408b8",
    "river-swim-v0": "eb67e9a7556b2f277cfab023f5be8ae237774a0a4bd92fe8e6e638a3411704b5",
    "inventory-v0": "9ffdb443474b44f529b528f22d28b26e522f2cbad6210154b48b1d758ebb764c",
    "maintenance-v0": "23edfd18420b657e25b2652e852dc1c32d9deb2cd0e1a5ae1aba2426cce5b7ee",
    "queue-admission-v0": "b4009581295173426d3bf5b7739ec3d93f2bed104341b09d1bcb3b3552a775f8",
    "hard-instance-v0": "30291ab3162c5c976c334ba0e598372eb4995987d28646c00e004a067d20f2f9",
    "gambler-v0": "37eab5045ed1c90c8dbcb3ab97b1b591e84b7c39b4caa952c245b8dade9b86db",
}


def tabular(id: str, horizon: int | None = None, **options: object) -> TabularMDP:
    mdp = make(id, horizon, **options)
    assert isinstance(mdp, TabularMDP)
    return mdp


def naive_q(mdp: TabularMDP) -> np.ndarray:
    """Optimal action values (H, S, A) from the dense arrays."""
    q = np.zeros((mdp.horizon, mdp.n_states, mdp.n_actions))
    value = np.zeros(mdp.n_states)
    for h in reversed(range(mdp.horizon)):
        q[h] = mdp.reward[h] + mdp.transition[h] @ value
        q[h] = q[h] if mdp.allowed is None else np.where(mdp.allowed[h], q[h], -np.inf)
        value = q[h].max(axis=1)
    return q


def reachable(mdp: TabularMDP) -> np.ndarray:
    """Which states some policy visits at each step, (H, S)."""
    out = np.zeros((mdp.horizon, mdp.n_states), dtype=bool)
    out[0] = mdp.initial > 0
    for h in range(mdp.horizon - 1):
        out[h + 1] = (mdp.transition[h][out[h]] > 0).any(axis=(0, 1))
    return out


def n_best(mdp: TabularMDP) -> np.ndarray:
    """How many actions are within 1e-12 of the best in each cell, (H, S)."""
    q = naive_q(mdp)
    ties: np.ndarray = np.count_nonzero(q >= q.max(axis=2, keepdims=True) - 1e-12, axis=2)
    return ties


@pytest.mark.parametrize("entry", catalogue(), ids=IDS)
def test_every_entry_constructs_solves_and_is_labelled(entry):
    mdp = tabular(entry.id)
    assert entry.description
    assert "\n" not in entry.description
    assert next(iter(entry.options)) == "horizon"
    assert (mdp.labels.name, mdp.labels.description) == (entry.id, entry.description)
    assert len(mdp.labels.states) == mdp.n_states
    assert len(set(mdp.labels.states)) == mdp.n_states
    assert len(mdp.labels.actions) == mdp.n_actions
    assert mdp.labels.grid is None or np.prod(mdp.labels.grid) == mdp.n_states
    assert mdp.outcomes.reward.min() >= 0.0
    assert mdp.outcomes.reward.max() <= 1.0
    solution = mdp.solve()
    np.testing.assert_allclose(solution.values[:-1], naive_q(mdp).max(axis=2), atol=1e-12)
    assert mdp.initial @ solution.values[0] > 0.0
    defaults = dict(entry.options)
    assert tabular(entry.id, defaults.pop("horizon"), **defaults).digest == mdp.digest


@pytest.mark.parametrize("id", IDS)
def test_horizon_is_taken(id):
    assert tabular(id, 7).horizon == 7
    assert tabular(id, 1).horizon == 1


def test_golden_digests_in_another_process():
    code = (
        "import json, sys; from reprl.mdp.catalogue import catalogue; from reprl.sources.environment import make; "
        "d = {e.id: make(e.id).digest for e in catalogue()}; "
        "print(json.dumps([d, 'gymnasium' in sys.modules]))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    digests, imported = json.loads(shown)
    assert digests == GOLDEN
    assert not imported, "building a catalogue MDP must not import Gymnasium"
    assert {id: tabular(id).digest for id in IDS} == GOLDEN


def test_the_literal_of_ids_is_the_registry():
    assert list(get_args(CatalogueId)) == IDS


# --- random-mdp -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(
    n_states=st.integers(1, 8),
    n_actions=st.integers(1, 4),
    horizon=st.integers(1, 4),
    seed=st.integers(0, 2**64 - 1),
    stationary=st.booleans(),
    data=st.data(),
)
def test_random_mdp_options(n_states, n_actions, horizon, seed, stationary, data):
    support = data.draw(st.integers(1, n_states))
    options = {"n_states": n_states, "n_actions": n_actions, "seed": seed, "support": support, "stationary": stationary}
    mdp = tabular("random-mdp-v0", horizon, **options)
    assert mdp.transition.shape == (horizon, n_states, n_actions, n_states)
    assert ((mdp.transition > 0).sum(axis=3) == support).all()
    assert mdp.digest == tabular("random-mdp-v0", horizon, **options).digest
    longer = tabular("random-mdp-v0", horizon + 1, **options)
    np.testing.assert_array_equal(longer.transition[:horizon], mdp.transition)
    np.testing.assert_array_equal(longer.reward[:horizon], mdp.reward)
    assert (mdp.outcomes.row_shift == 0) == (stationary or horizon == 1)


def test_random_mdp_seeds_differ_and_default_support_is_full():
    assert tabular("random-mdp-v0", seed=1).digest != tabular("random-mdp-v0", seed=2).digest
    assert (tabular("random-mdp-v0").transition > 0).all()


@pytest.mark.statistical
def test_random_mdp_rows_are_flat_dirichlet():
    # False-alarm rate 1e-6 for each of the three exact tests, with one fixed seed.
    mdp = tabular("random-mdp-v0", n_states=12, n_actions=50, support=4, seed=3)
    weights = mdp.transition[0].reshape(-1, 12)
    first = weights[weights[:, 0] > 0, 0]
    assert stats.kstest(first, stats.beta(1, 3).cdf).pvalue > 1e-6
    assert stats.kstest(mdp.reward[0].ravel(), "uniform").pvalue > 1e-6
    assert stats.binomtest(first.size, len(weights), 4 / 12).pvalue > 1e-6


# --- grids ------------------------------------------------------------------------------------------------------------


def transpose(size: int) -> tuple[np.ndarray, list[int]]:
    """The permutation of states and of actions (↑ ↔ ←, → ↔ ↓) that mirrors a grid in its diagonal."""
    return np.arange(size * size).reshape(size, size).T.ravel(), [3, 2, 1, 0]


@settings(deadline=None, max_examples=25)
@given(size=st.integers(2, 5), slip=st.floats(0, 1), horizon=st.integers(1, 7))
def test_gridworld_against_a_slow_loop_and_its_mirror_image(size, slip, horizon):
    mdp = tabular("gridworld-v0", horizon, size=size, slip=slip)
    moves = {"↑": (-1, 0), "→": (0, 1), "↓": (1, 0), "←": (0, -1)}
    sides = {"↑": "←→", "→": "↑↓", "↓": "←→", "←": "↑↓"}
    goal = size * size - 1
    for s, a in itertools.product(range(size * size), range(4)):
        law = np.zeros(size * size)
        name = mdp.labels.actions[a]
        for direction, chance in [(name, 1 - slip), (sides[name][0], slip / 2), (sides[name][1], slip / 2)]:
            row, column = s // size + moves[direction][0], s % size + moves[direction][1]
            stays = s == goal or not (0 <= row < size and 0 <= column < size)
            law[s if stays else row * size + column] += chance
        np.testing.assert_allclose(mdp.transition[0, s, a], law, atol=1e-12)
        np.testing.assert_allclose(mdp.reward[0, s, a], law[goal], atol=1e-12)
    states, actions = transpose(size)
    np.testing.assert_allclose(
        mdp.transition[0], mdp.transition[0][states][:, actions][:, :, states], rtol=0, atol=1e-15
    )
    q = naive_q(mdp)
    np.testing.assert_allclose(q, q[:, states][:, :, actions], rtol=0, atol=1e-12)


def test_gridworld_is_full_of_ties():
    mdp = tabular("gridworld-v0", 6, size=4)
    best, seen = n_best(mdp), reachable(mdp)
    diagonal = [5 * k for k in range(4)]
    assert mdp.initial[0] == 1.0
    assert seen[0].sum() == 1
    assert (best[:, diagonal] >= 2).all()
    assert (int((seen & (best >= 2)).sum()), int(seen.sum())) == (36, 48)
    assert 0.3 < mdp.initial @ mdp.solve().values[0] < 1.0


def test_two_goals_ties_goals_and_routes():
    mdp = tabular("two-goals-v0")
    q, best, seen = naive_q(mdp), n_best(mdp), reachable(mdp)
    assert (q[0, 12] == q[0, 12, 0]).all(), "all four ways lead to a goal equally fast, exactly"
    assert mdp.initial @ mdp.solve().values[0] == 3 * 0.5
    assert (int((seen & (best >= 2)).sum()), int(seen.sum())) == (52, 80)
    turned = np.arange(25)[::-1]
    np.testing.assert_array_equal(q, q[:, turned][:, :, [2, 3, 0, 1]])
    slippery = naive_q(tabular("two-goals-v0", slip=0.3))
    np.testing.assert_allclose(slippery[0, 12], slippery[0, 12, 0], rtol=0, atol=1e-12)


# --- the others -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(n_states=st.integers(2, 6), n_actions=st.integers(2, 3), horizon=st.integers(1, 8), seed=st.integers(0, 99))
def test_combination_lock_opens_with_one_code(n_states, n_actions, horizon, seed):
    mdp = tabular("combination-lock-v0", horizon, n_states=n_states, n_actions=n_actions, seed=seed)
    assert mdp.initial @ mdp.solve().values[0] == max(0, horizon - n_states + 1)
    forward = mdp.transition[0][np.arange(n_states - 1), :, np.arange(1, n_states)]
    assert (forward.sum(axis=1) == 1).all()
    assert (mdp.transition[0][:-1, :, 0].sum(axis=1) == n_actions - 1).all()


def test_combination_lock_codes_come_from_the_seed():
    codes = {tabular("combination-lock-v0", seed=seed).digest for seed in range(20)}
    assert len(codes) == 20


def test_river_swim_prefers_the_far_bank_given_time():
    assert (tabular("river-swim-v0").solve().policy.actions[0] == 1).all()
    assert tabular("river-swim-v0", 2).solve().policy.actions[0, 0] == 0


def test_inventory_rewards_are_the_profit():
    price, cost, holding, capacity, demand = 5.0, 1.5, 0.25, 3, 2
    mdp = tabular("inventory-v0", capacity=capacity, demand=demand, price=price, cost=cost, holding=holding)
    for stock, order in itertools.product(range(capacity + 1), repeat=2):
        shelf = min(capacity, stock + order)
        profit = 0.0
        for wanted, chance in ((0, 0.25), (1, 0.5), (2, 0.25)):
            sold = min(shelf, wanted)
            profit += chance * (price * sold - cost * (shelf - stock) - holding * (shelf - sold))
        assert mdp.labels.reward_map.restore(mdp.reward[0, stock, order], 1) == pytest.approx(profit, abs=1e-12)
    assert mdp.outcomes.reward.min() == 0.0
    assert mdp.outcomes.reward.max() == 1.0


def test_maintenance_values_fall_with_wear():
    mdp = tabular("maintenance-v0")
    values = mdp.solve().values
    assert (np.diff(values[:-1], axis=1) <= 1e-12).all()
    assert set(mdp.solve().policy.actions.ravel()) == {0, 1, 2}


def test_queue_admission_has_a_threshold_and_ties_at_an_empty_door():
    mdp = tabular("queue-admission-v0", 10)
    actions = mdp.solve().policy.actions
    assert (np.diff(actions[0, 1:-1:2]) >= 0).all(), "admit up to some length, then reject"
    assert {0, 1} == set(actions[0, 1::2])
    assert (n_best(mdp)[:, 0::2] == 2).all()
    units = mdp.labels.reward_map
    assert units.restore(mdp.reward[0, 1, 0], 1) == pytest.approx(1.0 - 0.25)
    assert units.restore(mdp.reward[0, 5, 1], 1) == pytest.approx(-0.5)


# --- the hard instance ------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(horizon=st.integers(1, 5), n_states=st.integers(1, 5), n_actions=st.integers(2, 5), data=st.data())
def test_hard_instance_value_identity(horizon, n_states, n_actions, data):
    cells = horizon * n_states
    draw = data.draw(st.lists(st.floats(-1, 1), min_size=cells, max_size=cells))
    p = np.array(draw).reshape(horizon, n_states)
    mdp = hard_instance(p, n_actions)
    actions = data.draw(st.lists(st.integers(0, n_actions - 1), min_size=cells, max_size=cells))
    policy = np.array(actions).reshape(horizon, n_states)
    payoff = np.where(policy == 0, p, np.where(policy == 1, -p, -2.0))
    value = mdp.evaluate(policy)
    assert value == pytest.approx((2 * horizon + payoff.sum() / n_states) / 3, abs=1e-12)
    assert mdp.labels.reward_map.restore(value, horizon) == pytest.approx(payoff.sum() / n_states, abs=1e-12)
    optimum = mdp.initial @ mdp.solve().values[0]
    assert mdp.labels.reward_map.restore(optimum, horizon) == pytest.approx(np.abs(p).sum() / n_states, abs=1e-12)
    np.testing.assert_allclose(mdp.transition, 1 / n_states, rtol=1e-12)
    np.testing.assert_array_equal(mdp.initial, np.full(n_states, 1 / n_states))


def test_hard_instance_by_id():
    seeded = tabular("hard-instance-v0", 6, n_states=8, n_actions=3, bias=0.3, seed=5)
    p = seeded.labels.reward_map.low + 3.0 * seeded.reward[:, :, 0]
    np.testing.assert_allclose(np.abs(p), 0.3, atol=1e-12)
    assert len(np.unique(np.sign(p))) == 2
    again = tabular("hard-instance-v0", biases=np.where(p > 0, 0.3, -0.3), n_actions=3)
    assert again.digest == seeded.digest
    with pytest.raises(ReprlError, match=r"horizon must be 6, as biases has it, got 7"):
        make("hard-instance-v0", 7, biases=p)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "options", "message"),
    [
        ("gridworld", {}, r"'gridworld' \(did you mean 'gridworld-v0'\?\)"),
        ("gridworld-v7", {}, r"'gridworld-v7' \(did you mean 'gridworld-v0'\?\)"),
        ("grdworld-v0", {}, r"did you mean 'gridworld-v0'\?"),
        ("", {}, r"must be one of random-mdp-v0, .* got ''"),
        (3, {}, r"must be one of random-mdp-v0, .* got 3"),
        ("gridworld-v0", {"sizes": 4}, r"must be one of size, slip; got 'sizes' \(did you mean 'size'\?\)"),
        ("gridworld-v0", {"size": 1}, r"size must be a whole number from 2 to 268435456, got 1"),
        ("gridworld-v0", {"size": "4"}, r"size must be a whole number from 2 to 268435456, got '4'"),
        ("gridworld-v0", {"slip": 1.5}, r"slip must lie in \[0, 1\], got 1.5"),
        ("gridworld-v0", {"size": 10**4}, r"at most 268435456 entries"),
        ("gridworld-v0", {"horizon": 0}, r"horizon must be a whole number from 1 to 1000000, got 0"),
        ("two-goals-v0", {"size": 4}, r"size must be odd"),
        ("random-mdp-v0", {"support": 11}, r"support must be a whole number from 1 to 10, got 11"),
        ("random-mdp-v0", {"seed": -1}, r"seed must be a whole number from 0"),
        ("random-mdp-v0", {"stationary": 1}, r"stationary must be True or False, got 1"),
        ("hard-instance-v0", {"biases": [[2.0]]}, r"biases must be \(H, S\) numbers in \[-1, 1\]"),
        ("hard-instance-v0", {"n_actions": 1}, r"n_actions must be a whole number from 2 to 268435456, got 1"),
        ("gambler-v0", {"start": 16}, r"start must be a whole number from 1 to 15, got 16"),
        ("gambler-v0", {"win": 1.0}, r"win must lie in \(0, 1\), got 1.0"),
        ("inventory-v0", {"price": float("nan")}, r"price must lie in \[0, 1e\+09\), got nan"),
    ],
)
def test_bad_ids_and_options_are_one_line(id, options, message):
    with pytest.raises(ReprlError, match=message) as caught:
        make(id, **options)
    assert "\n" not in str(caught.value)


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=30))
def test_no_text_is_a_traceback(id):
    if id not in IDS:
        with pytest.raises(ReprlError, match="must be"):
            make(id)

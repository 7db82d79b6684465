"""TabularMDP: exact dynamic programming against naive loops and other libraries, storage, and refusals."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

import reprl
from tests import naive

REWARD_FORMS = ("(S, A)", "(H, S, A)", "(S, A, S')", "(H, S, A, S')", "(1, S, A, S')")


def random_case(seed: int) -> dict[str, Any]:
    """Arguments of a small random MDP: its form, sizes, sparsity and kind all follow from the seed."""
    rng = np.random.default_rng(seed)
    horizon, n_states, n_actions = (int(rng.integers(1, high)) for high in (6, 6, 4))
    homogeneous = bool(rng.integers(2))
    lead = () if homogeneous else (horizon,)
    transition = rng.dirichlet(np.ones(n_states), size=(*lead, n_states, n_actions))
    keep = rng.random(transition.shape) < 0.5
    keep |= np.arange(n_states) == rng.integers(n_states, size=(*transition.shape[:-1], 1))
    transition = np.where(keep, transition + 1e-3, 0.0)
    transition /= transition.sum(axis=-1, keepdims=True)
    forms = list(REWARD_FORMS)
    if horizon == n_states == n_actions:  # the two forms with three axes could not be told apart
        forms = [form for form in forms if form.count(",") != 2]
    shapes = dict(
        zip(
            REWARD_FORMS,
            [
                (n_states, n_actions),
                (horizon, n_states, n_actions),
                (n_states, n_actions, n_states),
                (horizon, n_states, n_actions, n_states),
                (1, n_states, n_actions, n_states),
            ],
            strict=True,
        )
    )
    form = forms[seed % len(forms)]
    reward = np.round(rng.random(shapes[form]), int(rng.integers(1, 4)))  # coarse, so that ties and 0 and 1 occur
    starts: list[Any] = [None, int(rng.integers(n_states)), rng.dirichlet(np.ones(n_states))]
    return {
        "transition": transition,
        "reward": reward,
        "initial": starts[int(rng.integers(3))],
        "horizon": horizon if homogeneous else None,
        "reward_kind": ("bernoulli", "deterministic")[int(rng.integers(2))],
    }


def start_law(initial: Any, n_states: int) -> list[float]:
    if initial is None:
        initial = 0
    return [float(s == initial) for s in range(n_states)] if isinstance(initial, int) else [float(x) for x in initial]


def random_policy(rng: np.random.Generator, mdp: reprl.TabularMDP) -> Any:
    return rng.integers(mdp.n_actions, size=(mdp.horizon, mdp.n_states)).tolist()


SEEDS = range(200)


def test_the_random_cases_cover_every_form():
    cases = [random_case(seed) for seed in SEEDS]
    forms = {(case["transition"].ndim, case["reward"].ndim, case["reward_kind"]) for case in cases}
    assert {(t, r, kind) for t in (3, 4) for r in (2, 3, 4) for kind in ("bernoulli", "deterministic")} <= forms
    assert {type(case["initial"]) for case in cases} == {type(None), int, np.ndarray}
    assert any((case["transition"] == 0.0).any() for case in cases)


@pytest.mark.parametrize("block", range(10))
def test_dynamic_programming_agrees_with_the_naive_loops(block):
    for seed in SEEDS[block::10]:
        case = random_case(seed)
        mdp = reprl.TabularMDP(**case)
        p, r = naive.by_step(case["transition"], case["reward"], mdp.horizon)
        initial = start_law(case["initial"], mdp.n_states)
        rng = np.random.default_rng(seed)
        values, _ = naive.backward_induction(p, r)
        solution = mdp.solve()
        np.testing.assert_allclose(solution.values, values, rtol=0, atol=1e-12)
        best = sum(initial[s] * values[0][s] for s in range(mdp.n_states))
        assert mdp.evaluate(solution.policy) == pytest.approx(best, rel=0, abs=1e-12)
        assert naive.evaluate(p, r, initial, solution.policy.actions.tolist()) == pytest.approx(best, rel=0, abs=1e-12)
        for _ in range(2):
            actions = random_policy(rng, mdp)
            np.testing.assert_allclose(mdp.values(actions), naive.policy_values(p, r, actions), rtol=0, atol=1e-12)
            expected = naive.evaluate(p, r, initial, actions)
            assert mdp.evaluate(reprl.Policy(actions)) == pytest.approx(expected, rel=0, abs=1e-12)
            mass = naive.occupancy(p, initial, actions)
            np.testing.assert_allclose(mdp.occupancy(actions), mass, rtol=0, atol=1e-12)
            inside = rng.random((mdp.horizon, mdp.n_states)) < 0.4
            visits = naive.visits(p, initial, inside.tolist(), actions)
            assert mdp.reachability(inside, actions) == pytest.approx(visits, rel=0, abs=1e-12)
        np.testing.assert_allclose(mdp.transition, p, rtol=0, atol=1e-12)
        mean = [[[naive.action_values(p, r, h, s, [0.0] * mdp.n_states)[a] for a in range(mdp.n_actions)]
                 for s in range(mdp.n_states)] for h in range(mdp.horizon)]  # fmt: skip
        np.testing.assert_allclose(mdp.reward, mean, rtol=0, atol=1e-12)


def test_ties_go_to_the_lowest_action():
    mdp = reprl.TabularMDP(np.ones((1, 3, 1)), [[0.5, 1.0, 1.0]], horizon=4)
    assert mdp.solve().policy.actions.tolist() == [[1]] * 4


def quantecon_values(transition: np.ndarray, reward: np.ndarray, horizon: int) -> np.ndarray:
    ddp = pytest.importorskip("quantecon.markov.ddp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # beta = 1 disables its infinite-horizon solvers, which it says
        program = ddp.DiscreteDP(reward, transition, 1.0)
    return np.asarray(ddp.backward_induction(program, horizon)[0])


def test_solve_agrees_with_quantecon_on_time_homogeneous_mdps():
    compared = 0
    for seed in SEEDS:
        case = random_case(seed)
        mean = case["reward"]
        if case["transition"].ndim == 4 or mean.shape not in (case["transition"].shape[:2], case["transition"].shape):
            continue
        if mean.ndim == 3:
            mean = (case["transition"] * mean).sum(axis=-1)
        values = quantecon_values(case["transition"], mean, case["horizon"])
        np.testing.assert_allclose(reprl.TabularMDP(**case).solve().values, values, rtol=0, atol=1e-12)
        compared += 1
    assert compared >= 30


def taxi() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Taxi as (transition, reward with next states, start), rewards −10 … 20 rescaled to [0, 1]; its end absorbs.

    Gymnasium 1.4 refuses to make Taxi-v3 and offers v4 instead; older releases only have v3.
    """
    gymnasium = pytest.importorskip("gymnasium")
    name = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"
    env = gymnasium.make(name).unwrapped
    end = env.observation_space.n
    transition, reward = np.zeros((end + 1, 6, end + 1)), np.zeros((end + 1, 6, end + 1))
    for s, row in env.P.items():
        for a, entries in row.items():
            assert len(entries) == 1
            for chance, t, paid, done in entries:
                target = end if done else t
                transition[s, a, target] += chance
                reward[s, a, target] = (paid + 10.0) / 30.0
    transition[end, :, end] = 1.0
    return transition, reward, np.append(env.initial_state_distrib, 0.0)


def test_solve_agrees_with_quantecon_on_taxi():
    transition, reward, start = taxi()
    values = quantecon_values(transition, (transition * reward).sum(axis=-1), 20)
    for kind in ("bernoulli", "deterministic"):
        mdp = reprl.TabularMDP(transition, reward, start, horizon=20, reward_kind=kind)
        solution = mdp.solve()
        np.testing.assert_allclose(solution.values, values, rtol=0, atol=1e-12)
        assert mdp.evaluate(solution.policy) == pytest.approx(float(start @ values[0]), rel=0, abs=1e-12)
        assert solution.values[0].max() > solution.values[0].min() + 1.0  # not a constant by accident


@pytest.mark.parametrize("seed", range(12))
def test_reachability_is_the_maximum_over_all_policies(seed):
    rng = np.random.default_rng(seed)
    horizon, n_states, n_actions = [(2, 3, 2), (3, 2, 2), (2, 2, 3)][seed % 3]
    transition = rng.dirichlet(np.full(n_states, 0.4), size=(horizon, n_states, n_actions))
    initial = rng.dirichlet(np.ones(n_states))
    mdp = reprl.TabularMDP(transition, rng.random((n_states, n_actions)), initial)
    inside = rng.random((horizon, n_states)) < 0.5
    p, _ = naive.by_step(transition, np.zeros((n_states, n_actions)), horizon)
    best = naive.best_visits(p, initial.tolist(), inside.tolist())
    assert mdp.reachability(inside) == pytest.approx(best, rel=0, abs=1e-12)
    indicator = np.repeat(inside[:, :, None], n_actions, axis=2).astype(float)[..., None]
    paid = reprl.TabularMDP(transition, np.tile(indicator, n_states), initial, reward_kind="deterministic")
    assert paid.evaluate(paid.solve().policy) == pytest.approx(best, rel=0, abs=1e-12)
    actions = random_policy(rng, mdp)
    assert paid.evaluate(actions) == pytest.approx(mdp.reachability(inside, actions), rel=0, abs=1e-12)
    visited = (np.array(naive.occupancy(p, initial.tolist(), actions)) * inside).sum()
    assert mdp.reachability(inside, actions) == pytest.approx(visited, rel=0, abs=1e-12)


def test_reachability_of_everything_is_the_horizon_and_of_nothing_zero():
    mdp = reprl.TabularMDP(**{**random_case(3), "initial": None})
    shape = (mdp.horizon, mdp.n_states)
    assert mdp.reachability(np.ones(shape, dtype=bool)) == pytest.approx(mdp.horizon)
    assert mdp.reachability(np.zeros(shape, dtype=bool)) == 0.0


def stored(mdp: reprl.TabularMDP) -> dict[str, np.ndarray]:
    table = mdp.outcomes
    return {
        "initial": mdp.initial,
        "probability": mdp.probability,
        "transition": mdp.transition,
        "reward": mdp.reward,
        "first": table.first,
        "next_state": table.next_state,
        "outcome reward": table.reward,
    }


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_arrays_are_write_protected_also_after_pickling(seed, pickled):
    mdp = reprl.TabularMDP(**random_case(seed))
    digest = mdp.digest
    if pickled:
        mdp = pickle.loads(pickle.dumps(mdp))
    assert mdp.digest == digest
    for name, array in stored(mdp).items():
        with pytest.raises(ValueError, match="read-only"):
            array[(0,) * array.ndim] = 0
        assert not array.flags.writeable, name


def test_later_changes_to_the_arguments_do_not_reach_the_mdp():
    transition, reward, initial = np.full((2, 1, 2), 0.5), np.full((2, 1), 0.25), np.array([0.5, 0.5])
    mdp = reprl.TabularMDP(transition, reward, initial, 3, "deterministic")
    before = {name: array.copy() for name, array in stored(mdp).items()}
    transition[:], reward[:], initial[:] = 0.0, 0.75, 0.0
    for name, array in stored(mdp).items():
        np.testing.assert_array_equal(array, before[name])


def test_a_time_homogeneous_table_is_not_copied():
    mdp = reprl.TabularMDP(np.full((4, 3, 4), 0.25), np.full((4, 3), 0.5), horizon=1000)
    assert mdp.transition.shape == (1000, 4, 3, 4)
    assert mdp.transition.strides[0] == 0
    assert mdp.reward.strides[0] == 0
    assert mdp.outcomes.first.size - 1 == 4 * 3
    assert mdp.outcomes.row_shift == 0
    assert mdp.probability.size == 4 * 3 * 4 * 2
    stepwise = reprl.TabularMDP(np.full((5, 4, 3, 4), 0.25), np.full((4, 3), 0.5))
    assert stepwise.outcomes.first.size - 1 == 5 * 4 * 3


def test_only_positive_probabilities_are_stored():
    mdp = reprl.TabularMDP([[[0.0, 1.0, 0.0]]] * 3, [[1.0], [0.0], [0.5]], horizon=2)
    assert mdp.outcomes.next_state.tolist() == [1, 1, 1, 1]
    assert mdp.outcomes.reward.tolist() == [1.0, 0.0, 0.0, 1.0]
    assert mdp.probability.tolist() == [1.0, 1.0, 0.5, 0.5]


def test_negative_zero_rewards_are_stored_as_zero():
    minus = reprl.TabularMDP(np.ones((1, 1, 1)), [[-0.0]], horizon=1, reward_kind="deterministic")
    plus = reprl.TabularMDP(np.ones((1, 1, 1)), [[0.0]], horizon=1, reward_kind="deterministic")
    assert not np.signbit(minus.outcomes.reward).any()
    assert minus.digest == plus.digest


def test_rows_within_the_tolerance_are_normalised():
    mdp = reprl.TabularMDP([[[0.5, 0.5 + 9e-10]], [[1.0, 0.0]]], [[0.0], [0.0]], [0.5 - 9e-10, 0.5], horizon=1)
    np.testing.assert_allclose(mdp.transition.sum(axis=-1), 1.0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(mdp.transition[0, 0, 0], [0.5 - 4.5e-10, 0.5 + 4.5e-10], rtol=0, atol=1e-15)
    assert mdp.initial.sum() == pytest.approx(1.0, rel=0, abs=1e-15)


def test_a_start_with_any_second_state_is_not_fixed():
    transition, reward = np.full((2, 1, 2), 0.5), np.zeros((2, 1))
    assert reprl.TabularMDP(transition, reward, 1, horizon=1).fixed_start
    assert reprl.TabularMDP(transition, reward, [0.0, 1.0], horizon=1).fixed_start
    assert not reprl.TabularMDP(transition, reward, [0.5, 0.5], horizon=1).fixed_start
    assert not reprl.TabularMDP(transition, reward, [1.0, 1e-20], horizon=1).fixed_start


def test_the_digest_tells_laws_apart():
    base: dict[str, Any] = {"transition": np.full((2, 1, 2), 0.5), "reward": [[0.25], [0.5]], "horizon": 2}
    changes: list[dict[str, Any]] = [
        {},
        {"initial": 1},
        {"horizon": 3},
        {"reward": [[0.25], [0.75]]},
        {"reward_kind": "deterministic"},
        {"transition": [[[0.25, 0.75]], [[0.5, 0.5]]]},
    ]
    assert len({reprl.TabularMDP(**{**base, **change}).digest for change in changes}) == len(changes)
    assert reprl.TabularMDP(**base).digest == reprl.TabularMDP(**base).digest


@pytest.mark.slow
@pytest.mark.parametrize("support", [30, 716])
def test_a_hospital_sized_mdp_builds_and_solves_within_two_gigabytes(support):
    """716 states, 25 actions, horizon 20: the size of ICU-Sepsis, sparse as there and fully dense."""
    rng = np.random.default_rng(0)
    transition = np.zeros((716, 25, 716))
    for s in range(716):
        columns = np.arange(716) if support == 716 else rng.choice(716, size=support, replace=False)
        transition[s][:, columns] = rng.dirichlet(np.ones(support), size=25)
    reward = rng.random((716, 25))
    tracemalloc.start()
    try:
        mdp = reprl.TabularMDP(transition, reward, horizon=20, reward_kind="deterministic")
        solution = mdp.solve()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2e9
    q = reward + transition @ solution.values[1]
    np.testing.assert_allclose(solution.values[0], q.max(axis=1), rtol=0, atol=1e-12)
    assert mdp.outcomes.first.size - 1 == 716 * 25


P = np.full((2, 3, 2), 0.5)
R = np.full((2, 3), 0.5)


def changed(array: np.ndarray, where: tuple[int, ...], value: float) -> np.ndarray:
    out = array.copy()
    out[where] = value
    return out


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("row sum", {"transition": changed(P, (1, 2, 0), 0.4)}, r"transition\[1, 2\] must sum to 1 within 1e-09, got 0.9"),
    (
        "row sum of a step",
        {"transition": changed(np.stack([P] * 4), (3, 0, 1, 1), 0.75), "horizon": None},
        r"transition\[3, 0, 1\] must sum to 1 within 1e-09, got 1.25",
    ),
    ("overflow", {"transition": np.full((2, 3, 2), 1e308)}, r"transition\[0, 0\] must sum to 1 within 1e-09, got inf"),
    (
        "negative",
        {"transition": changed(changed(P, (0, 1, 0), 1.5), (0, 1, 1), -0.5)},
        r"transition\[0, 1, 1\] must be a probability in \[0, 1\], got -0.5",
    ),
    ("nan", {"transition": changed(P, (1, 0, 1), np.nan)}, r"transition\[1, 0, 1\] must be finite, got nan"),
    ("inf", {"transition": changed(P, (1, 0, 1), np.inf)}, r"transition\[1, 0, 1\] must be finite, got inf"),
    ("no axes", {"transition": 0.5}, r"transition must have 3 or 4 axes, got shape \(\)"),
    ("two axes", {"transition": np.eye(2)}, r"transition must have 3 or 4 axes, got shape \(2, 2\)"),
    (
        "next states",
        {"transition": np.full((2, 3, 4), 0.25)},
        r"transition must have shape \(H, S, A, S\) or \(S, A, S\), none empty, got \(2, 3, 4\)",
    ),
    ("no states", {"transition": np.ones((0, 3, 0))}, r"transition must have shape .* none empty, got \(0, 3, 0\)"),
    ("no actions", {"transition": np.ones((2, 0, 2))}, r"transition must have shape .* none empty, got \(2, 0, 2\)"),
    ("no steps", {"transition": np.ones((0, 2, 3, 2)), "horizon": None}, r"horizon must be .* at least 1, got 0"),
    ("text", {"transition": "abc"}, r"transition must be an array of real numbers, got 'abc'"),
    ("text array", {"transition": np.full((2, 3, 2), "a")}, r"transition must be an array of real numbers, got array"),
    ("objects", {"transition": P.astype(object)}, r"transition must be an array of real numbers, got array"),
    ("complex", {"transition": P.astype(complex)}, r"transition must be an array of real numbers, got array"),
    ("ragged", {"transition": [[[0.5, 0.5], [1.0]]]}, r"transition must be an array of real numbers, got \[\[\[0.5, 0"),
    ("None", {"transition": None}, r"transition must be an array of real numbers, got None"),
    ("reward above", {"reward": changed(R, (1, 2), 1.5)}, r"reward\[1, 2\] must lie in \[0, 1\], got 1.5"),
    ("reward below", {"reward": changed(R, (0, 1), -0.25)}, r"reward\[0, 1\] must lie in \[0, 1\], got -0.25"),
    ("reward nan", {"reward": changed(R, (0, 1), np.nan)}, r"reward\[0, 1\] must be finite, got nan"),
    (
        "reward shape",
        {"reward": np.zeros((3, 2))},
        r"reward must have one of the shapes \(2, 3\), \(4, 2, 3\), \(2, 3, 2\), \(4, 2, 3, 2\), .*, got \(3, 2\)",
    ),
    ("reward steps", {"reward": np.zeros((5, 2, 3))}, r"reward must have one of the shapes .*, got \(5, 2, 3\)"),
    ("reward axes", {"reward": [0.5, 0.5]}, r"reward must have 2 or 3 or 4 axes, got shape \(2,\)"),
    ("reward text", {"reward": [["a"] * 3] * 2}, r"reward must be an array of real numbers, got \[\['a', 'a', 'a'\]"),
    (
        "ambiguous",
        {"transition": np.full((2, 2, 2), 0.5), "reward": np.zeros((2, 2, 2)), "horizon": 2},
        r"reward of shape \(2, 2, 2\) could be \(H, S, A\) or \(S, A, S'\): give it as \(H, S, A, S'\) or \(1, ",
    ),
    ("horizon 0", {"horizon": 0}, r"horizon must be a whole number from 1 to 1000000, got 0"),
    ("horizon negative", {"horizon": -3}, r"horizon must be a whole number from 1 to 1000000, got -3"),
    ("horizon bool", {"horizon": True}, r"horizon must be a whole number from 1 to 1000000, got True"),
    ("horizon float", {"horizon": 4.0}, r"horizon must be a whole number from 1 to 1000000, got 4.0"),
    ("horizon text", {"horizon": "4"}, r"horizon must be a whole number from 1 to 1000000, got '4'"),
    ("horizon huge", {"horizon": 10**7}, r"horizon must be a whole number from 1 to 1000000, got 10000000"),
    ("no horizon", {"horizon": None}, r"horizon must be given with transition of shape \(S, A, S\), got None"),
    (
        "other horizon",
        {"transition": np.stack([P] * 3), "horizon": 4},
        r"horizon must be 3, as transition has it, got 4",
    ),
    ("start above", {"initial": 2}, r"initial must be a whole number from 0 to 1, got 2"),
    ("start below", {"initial": -1}, r"initial must be a whole number from 0 to 1, got -1"),
    ("start bool", {"initial": True}, r"initial must be a whole number from 0 to 1, got True"),
    ("start float", {"initial": 1.0}, r"initial must be a whole number from 0 to 1, got 1.0"),
    ("start text", {"initial": "1"}, r"initial must be a whole number from 0 to 1, got '1'"),
    ("start sum", {"initial": [0.5, 0.25]}, r"initial must sum to 1 within 1e-09, got 0.75"),
    ("start negative", {"initial": [1.5, -0.5]}, r"initial\[1\] must be a probability in \[0, 1\], got -0.5"),
    ("start nan", {"initial": [1.0, np.nan]}, r"initial\[1\] must be finite, got nan"),
    ("start length", {"initial": [0.5, 0.25, 0.25]}, r"initial must have shape \(2,\), got \(3,\)"),
    ("start axes", {"initial": [[1.0, 0.0]]}, r"initial must have 1 axes, got shape \(1, 2\)"),
    ("start ragged", {"initial": [[1.0], [0.5, 0.5]]}, r"initial must be an array of real numbers, got \[\[1.0\], \["),
    ("start empty", {"initial": []}, r"initial must sum to 1 within 1e-09, got 0"),
    ("start dict", {"initial": {0: 1.0}}, r"initial must be an array of real numbers, got \{0: 1.0\}"),
    ("kind", {"reward_kind": "normal"}, r"reward_kind must be one of bernoulli, deterministic; got 'normal'"),
    ("kind None", {"reward_kind": None}, r"reward_kind must be one of bernoulli, deterministic; got None"),
    ("kind list", {"reward_kind": ["bernoulli"]}, r"reward_kind must be one of .*; got \['bernoulli'\]"),
]


@pytest.mark.parametrize(("change", "text"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_arguments_are_refused_in_one_line_that_quotes_them(change, text):
    good: dict[str, Any] = {"transition": P, "reward": R, "initial": None, "horizon": 4, "reward_kind": "bernoulli"}
    reprl.TabularMDP(**good)
    with pytest.raises(reprl.ReprlError, match=rf"^{text}") as caught:
        reprl.TabularMDP(**{**good, **change})
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (np.zeros((3, 2), dtype=int), r"policy must have shape \(H, S\) = \(4, 2\), got \(3, 2\)"),
        ([[0, 0], [0, 0], [0, 3], [0, 0]], r"policy action \[2, 1\] must be from 0 to 2, got 3"),
        ([[0, 0], [0, 0], [0, -1], [0, 0]], r"actions\[2, 1\] must be an action index from 0 to \d+, got -1"),
        ([[0, 0], [0]], r"actions must be an \(H, S\) table of action indices, or \(S,\), got \[\[0, 0\], \[0\]\]"),
        ("best", r"actions must be an \(H, S\) table of action indices, or \(S,\), got "),
    ],
)
@pytest.mark.parametrize("method", ["evaluate", "values", "occupancy"])
def test_policies_that_do_not_fit_are_refused(method, policy, text):
    mdp = reprl.TabularMDP(P, R, horizon=4)
    with pytest.raises(reprl.ReprlError, match=rf"^{text}"):
        getattr(mdp, method)(policy)


@pytest.mark.parametrize(
    ("states", "text"),
    [
        (np.ones((4, 2)), r"states must be booleans of shape \(4, 2\), got float64 of shape \(4, 2\)"),
        (np.ones((2, 4), dtype=bool), r"states must be booleans of shape \(4, 2\), got bool of shape \(2, 4\)"),
        ([[True], [True, False]], r"states must be booleans of one \(H, S\) shape, got \[\[True\], \[True, False\]\]"),
    ],
)
def test_sets_that_do_not_fit_are_refused(states, text):
    with pytest.raises(reprl.ReprlError, match=rf"^{text}\Z"):
        reprl.TabularMDP(P, R, horizon=4).reachability(states)

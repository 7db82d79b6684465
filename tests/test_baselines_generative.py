"""The generative baselines against plain loops; their shared addresses; whether pairs of runs agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

import reprl
from reprl.lab.baselines import empirical_values, generative, greedy_policy, make_learner
from reprl.lab.baselines.generative import argmax_laws
from tests import naive_baselines
from tests.statistics import FALSE_ALARM, exceeds, keeps

SHAPES = [(3, 4, 2), (1, 2, 3), (4, 1, 1), (2, 3, 4)]


def random_mdp(shape: tuple[int, int, int], seed: int = 0) -> reprl.TabularMDP:
    H, S, A = shape
    rng = np.random.default_rng(seed)
    return reprl.TabularMDP(rng.dirichlet(np.full(S, 0.5), size=(H, S, A)), rng.random((H, S, A, S)))


def samples_of(counts: reprl.Counts) -> Any:
    def rows(h: int, s: int, a: int) -> list[tuple[int, float, int]]:
        table, slots = counts.outcomes.slots(h, s, a)
        columns = (counts.outcomes.next_state[table], counts.outcomes.reward[table], counts.hits[slots])
        return [(int(t), float(r), int(n)) for t, r, n in zip(*columns, strict=True)]

    return rows


@pytest.mark.parametrize("shape", SHAPES)
def test_rpvi_is_the_loop(shape: tuple[int, int, int]) -> None:
    mdp, key, epsilon = random_mdp(shape), reprl.SharedKey(5), 0.4
    samples = 300 * math.prod(shape)
    got = make_learner("rpvi", epsilon=epsilon, samples=samples)(reprl.GenerativeModel(mdp, 1), key)
    width = generative.RPVI_WIDTH * epsilon / shape[0]

    def rounding(h: int, s: int, a: int, x: float) -> float:
        shift = key.derive("rpvi", h).uniforms(1, start=s * shape[2] + a)[0]
        return naive_baselines.round_on_grid(x, width, shift)

    data = samples_of(reprl.GenerativeModel(mdp, 1).sample(300))
    slow = naive_baselines.phased_values(shape, data, rounding, carry_rounded=True)
    assert got.actions.tolist() == naive_baselines.greedy(slow)


@pytest.mark.parametrize("shape", SHAPES)
def test_karbasi_grid_is_the_loop(shape: tuple[int, int, int]) -> None:
    mdp, key, epsilon = random_mdp(shape), reprl.SharedKey(5), 0.4
    samples = 300 * math.prod(shape)
    got = make_learner("karbasi-grid", epsilon=epsilon, samples=samples)(reprl.GenerativeModel(mdp, 1), key)
    width = generative.GRID_WIDTH * epsilon / shape[0]

    def rounding(h: int, s: int, a: int, x: float) -> float:
        shift = key.derive("karbasi-grid", h).uniforms(1, start=s * shape[2] + a)[0]
        return naive_baselines.round_on_grid(x, width, shift)

    data = samples_of(reprl.GenerativeModel(mdp, 1).sample(300))
    slow = naive_baselines.phased_values(shape, data, rounding, carry_rounded=False)
    assert got.actions.tolist() == naive_baselines.greedy(slow)


@pytest.mark.parametrize("shape", SHAPES)
def test_greedy_and_shared_noise_are_the_loop(shape: tuple[int, int, int]) -> None:
    mdp, key = random_mdp(shape), reprl.SharedKey(5)
    counts = reprl.GenerativeModel(mdp, 1).sample(300)
    raw = naive_baselines.phased_values(shape, samples_of(counts), lambda h, s, a, x: x, carry_rounded=False)
    np.testing.assert_allclose(empirical_values(counts), raw, rtol=1e-12)
    samples = 300 * math.prod(shape)
    got = make_learner("greedy", samples=samples)(reprl.GenerativeModel(mdp, 1), key)
    assert got.actions.tolist() == naive_baselines.greedy(raw)
    noisy = make_learner("karbasi-gaussian", samples=samples)(reprl.GenerativeModel(mdp, 1), key)
    sigma = generative.GAUSSIAN_NOISE * 0.3 / (shape[0] * math.sqrt(math.log(math.prod(shape) + 1.0)))

    def noise(h: int, s: int, a: int) -> float:
        u = key.derive("karbasi-gaussian", "noise", h).uniforms(1, start=s * shape[2] + a)[0]
        return sigma * float(norm.ppf(u))

    q = [[[raw[h][s][a] + noise(h, s, a) for a in range(shape[2])] for s in range(shape[1])] for h in range(shape[0])]
    assert noisy.actions.tolist() == naive_baselines.greedy(q)


@pytest.mark.parametrize("shape", SHAPES)
def test_list_robust_is_the_loop(shape: tuple[int, int, int]) -> None:
    mdp, epsilon = random_mdp(shape), 0.4
    raw = naive_baselines.phased_values(
        shape, samples_of(reprl.GenerativeModel(mdp, 1).sample(300)), lambda h, s, a, x: x, carry_rounded=False
    )
    for seed in range(5):
        key = reprl.SharedKey(seed)
        learner = make_learner("list-robust", epsilon=epsilon, samples=300 * math.prod(shape))
        tolerance = generative.LIST_WIDTH * epsilon / shape[0] * key.derive("list-robust").uniforms(1)[0]
        got = learner(reprl.GenerativeModel(mdp, 1), key)
        assert got.actions.tolist() == naive_baselines.first_within(raw, tolerance)


@given(data=st.data(), tolerance=st.floats(0.0, 1.0))
def test_the_first_within_a_tolerance_loses_no_more_and_is_the_first(data: st.DataObject, tolerance: float) -> None:
    shape = (2, 3, data.draw(st.integers(1, 5)))
    scores = data.draw(arrays(np.float64, shape, elements=st.floats(0.0, 1.0)))
    chosen = generative.first_within(scores, tolerance).actions
    best = scores.max(axis=2)
    assert (np.take_along_axis(scores, chosen[..., None], axis=2)[..., 0] >= best - tolerance).all()
    earlier = np.arange(shape[2]) < chosen[..., None]
    assert (scores < (best - tolerance)[..., None])[earlier].all()


def test_over_all_tolerances_the_list_is_no_longer_than_the_gaps() -> None:
    """The paper's list: in exact values the policy changes only where the tolerance passes a gap, N + 1 at most."""
    mdp = random_mdp((3, 4, 3))
    values = mdp.solve().values
    scores = np.array([mdp.reward[h] + mdp.transition[h] @ values[h + 1] for h in range(3)])
    gaps = np.unique(scores.max(axis=2, keepdims=True) - scores)
    seen = {generative.first_within(scores, float(t)).fingerprint for t in np.linspace(0.0, gaps.max(), 4001)}
    assert 1 < len(seen) <= gaps.size <= scores.size - 12 + 1
    # The control: with a tolerance for each cell of its own there are more.
    rng = np.random.default_rng(0)
    own = rng.random((4001, 3, 4, 1)) * gaps.max()
    near = scores >= scores.max(axis=2, keepdims=True) - own
    assert len({actions.tobytes() for actions in near.argmax(axis=3)}) > gaps.size


def test_cells_without_samples_are_worth_nothing() -> None:
    counts = reprl.Counts.empty(random_mdp((2, 3, 2)).outcomes)
    assert not empirical_values(counts).any()
    assert not greedy_policy(empirical_values(counts)).actions.any()


def test_argmax_laws_are_the_integrals() -> None:
    pair = np.array([[0.0, 0.7], [3.0, 3.0], [0.0, -40.0]])
    np.testing.assert_allclose(argmax_laws(pair)[:, 1], ndtr((pair[:, 1] - pair[:, 0]) / math.sqrt(2)), atol=1e-12)
    row = np.array([0.3, -0.5, 1.1, 0.9])
    for a in range(4):
        others = np.delete(row, a)
        exact = quad(lambda z, a=a, o=others: norm.pdf(z - row[a]) * np.prod(ndtr(z - o)), -12, 12)[0]
        assert argmax_laws(row[None])[0, a] == pytest.approx(exact, abs=1e-9)
    assert argmax_laws(np.array([[0.0, -60.0]])).tolist() == [[1.0, 0.0]]


@pytest.mark.statistical
@pytest.mark.parametrize("coupling", ["shared", "correlated"])
def test_both_couplings_of_gaussian_noise_have_one_law(coupling: str) -> None:
    """One state, three arms, over keys: chi-square at 1e-6; the law without noise is the negative control."""
    from tests.statistics import chi_square

    mdp = reprl.TabularMDP(np.ones((1, 1, 3, 1)), np.array([[[0.5, 0.55, 0.6]]]), reward_kind="deterministic")
    sigma = generative.GAUSSIAN_NOISE / math.sqrt(math.log(4.0))
    learner = make_learner("karbasi-gaussian", epsilon=1.0, coupling=coupling, samples=3)
    tally = np.zeros(3)
    for seed in range(2000):
        tally[learner(reprl.GenerativeModel(mdp, 0), reprl.SharedKey(seed)).actions[0, 0]] += 1
    law = argmax_laws(np.array([[0.5, 0.55, 0.6]]) / sigma)[0]
    assert chi_square([(tally, law)]) > FALSE_ALARM
    assert chi_square([(tally, [0.01, 0.01, 0.98])]) < FALSE_ALARM


@pytest.mark.parametrize("name", ["rpvi", "karbasi-grid", "karbasi-gaussian", "karbasi-softmax", "list-robust"])
def test_a_cell_keeps_its_shared_draw_whatever_the_others_saw(name: str) -> None:
    """Change the rewards of one state at the last step: no other state of that step may choose differently."""
    rng = np.random.default_rng(0)
    moves, reward = rng.dirichlet(np.ones(5), size=(2, 5, 3)), rng.random((2, 5, 3))
    other = reward.copy()
    other[1, 2] = 1.0 - other[1, 2]
    moved = 0
    for seed in range(20):
        found = []
        for paid in (reward, other):
            mdp = reprl.TabularMDP(moves, paid, reward_kind="deterministic")
            learner = make_learner(name, epsilon=1.0, samples=30 * 2000)
            found.append(learner(reprl.GenerativeModel(mdp, 3), reprl.SharedKey(seed)).actions)
        rest = [0, 1, 3, 4]
        assert np.array_equal(found[0][1, rest], found[1][1, rest])
        moved += found[0][1, 2] != found[1][1, 2]
    assert moved > 0, "the change must be felt where it was made"


TIED: dict[str, dict[str, Any]] = {
    "gridworld-v0": {"size": 3, "horizon": 4},
    "random-mdp-v0": {"n_states": 6, "n_actions": 3, "horizon": 3},
}
REPLICABLE: list[tuple[str, dict[str, Any]]] = [
    ("rpvi", {}),
    ("karbasi-grid", {}),
    ("karbasi-gaussian", {"coupling": "shared"}),
    ("karbasi-gaussian", {"coupling": "correlated"}),
    ("karbasi-softmax", {}),
    ("list-robust", {}),
]


def disagreements(name: str, world: str, pairs: int, **options: Any) -> int:
    mdp = reprl.make(world, **TIED[world])
    assert isinstance(mdp, reprl.TabularMDP)
    apart = 0
    for i in range(pairs):
        key = reprl.SharedKey(1000 + i)
        learner = make_learner(name, **options)
        first, second = (learner(reprl.GenerativeModel(mdp, 2 * i + side), key) for side in (0, 1))
        apart += first != second
    return apart


@pytest.mark.statistical
@pytest.mark.parametrize("world", TIED)
@pytest.mark.parametrize(("name", "options"), REPLICABLE)
def test_replicable_rivals_are_not_rejected_at_their_rho(name: str, options: dict[str, Any], world: str) -> None:
    """Practical constants, ρ = 0.2, 100 pairs, false alarm 1e-6."""
    assert keeps(disagreements(name, world, 100, rho=0.2, **options), 100, 0.2, power=0.37, finds=0.48)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "options"), REPLICABLE)
def test_replicable_rivals_are_rejected_with_far_too_few_samples(name: str, options: dict[str, Any]) -> None:
    """The negative control of the test above: the same pairs at 100 calls a run."""
    assert exceeds(disagreements(name, "gridworld-v0", 100, samples=14400, **options), 100, 0.2) < FALSE_ALARM


@pytest.mark.statistical
def test_greedy_is_rejected_where_actions_tie() -> None:
    """A hundred million calls a run do not break a tie the same way twice."""
    apart = disagreements("greedy", "gridworld-v0", 60, samples=144 * 10**8)
    assert exceeds(apart, 60, 0.2) < FALSE_ALARM

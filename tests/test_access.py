"""GenerativeModel and EpisodicModel: the laws they draw from, their ledgers, and who can change their draws."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import reprl
from reprl.mdp.draws import draw_outcome
from reprl.randomness import DataStream
from reprl.sources.protocol import Ledger
from tests import naive
from tests.statistics import FALSE_ALARM, chi_square, chi_square_of

KINDS = ("bernoulli", "deterministic")
START = [0.2, 0.5, 0.3]


def world(kind: str, *, stepwise: bool = False, start: Any = START) -> dict[str, Any]:
    """H = 2, S = 3, A = 2; rewards depend on the next state; some transitions are impossible."""
    rng = np.random.default_rng(8)
    transition = rng.dirichlet(np.ones(3), size=(2, 3, 2) if stepwise else (3, 2))
    transition[..., 0, 0, :] = [0.7, 0.0, 0.3]
    transition[..., 1, 1, :] = [0.0, 1.0, 0.0]
    reward = np.round(rng.random((2, 3, 2, 3)), 2)
    reward[:, 2] = [0.0, 0.5, 1.0]
    horizon = None if stepwise else 2
    return {"transition": transition, "reward": reward, "initial": start, "horizon": horizon, "reward_kind": kind}


def tables(case: dict[str, Any]) -> tuple[naive.Table, naive.Table]:
    return naive.by_step(case["transition"], case["reward"], 2)


def bent(law: dict[Any, float], by: float = 0.01) -> dict[Any, float]:
    """A law that is slightly wrong: some mass moves from the likeliest outcome to the unlikeliest."""
    high, low = max(law, key=lambda x: law[x]), min(law, key=lambda x: law[x])
    return {**law, high: law[high] - by, low: law[low] + by}


def rows_of(counts: reprl.Counts, case: dict[str, Any], change: Callable[[Any], Any] = dict) -> list[tuple[Any, Any]]:
    """Counts and exact law of every cell, outcome by outcome, with any tally outside the law as an extra outcome."""
    p, r = tables(case)
    rows = []
    for h, s, a in np.ndindex(counts.outcomes.shape):
        law = naive.outcome_law(p, r, h, s, a, case["reward_kind"])
        law = change(law) if len(law) > 1 else law
        entries, slots = counts.outcomes.slots(h, s, a)
        keys = zip(counts.outcomes.next_state[entries].tolist(), counts.outcomes.reward[entries].tolist(), strict=True)
        tally = dict(zip(keys, counts.hits[slots].tolist(), strict=True))
        outcomes = list(dict.fromkeys([*law, *tally]))
        rows.append(([tally.get(x, 0) for x in outcomes], [law.get(x, 0.0) for x in outcomes]))
    return rows


@pytest.mark.statistical
@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_parallel_samples_have_the_joint_law_of_next_state_and_reward(kind, stepwise):
    """False alarm 1e-6. Control: a law with 1 % of its mass moved is rejected."""
    case = world(kind, stepwise=stepwise)
    model = reprl.GenerativeModel(reprl.TabularMDP(**case), 11)
    for n in (10**5, 10**9):
        rows = rows_of(model.sample(n), case)
        assert all(sum(row) == n for row, _ in rows)
        assert chi_square(rows) > FALSE_ALARM
    few = reprl.Counts.merge(model.sample(3) for _ in range(10_000))
    assert chi_square(rows_of(few, case)) > FALSE_ALARM
    assert chi_square(rows_of(few, case, bent)) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("n", [2, 40])
def test_the_counts_of_a_cell_are_jointly_multinomial(n):
    """False alarm 1e-6: the whole vector of counts, not only its mean. Control: a varying n."""
    law = [0.55, 0.3, 0.15]
    mdp = reprl.TabularMDP([[law]] * 3, [[0.0]] * 3, horizon=20_000)  # 60 000 cells with one law
    vectors = reprl.GenerativeModel(mdp, 3).sample(n).hits.reshape(-1, 3)
    exact = {
        (i, j, n - i - j): float(stats.multinomial.pmf([i, j, n - i - j], n, law))
        for i, j in itertools.product(range(n + 1), repeat=2)
        if i + j <= n
    }
    assert chi_square_of(Counter(map(tuple, vectors.tolist())), exact) > FALSE_ALARM
    rng = np.random.default_rng(0)
    sizes = rng.choice([n - 1, n, n + 1], p=[0.05, 0.9, 0.05], size=len(vectors))
    wrong = [rng.multinomial(size, law) for size in sizes]
    overdispersed = Counter((int(x[0]), int(x[1]), n - int(x[0]) - int(x[1])) for x in wrong)
    assert chi_square_of(overdispersed, exact) < FALSE_ALARM


def test_cells_and_batches_draw_independently_of_each_other():
    mdp = reprl.TabularMDP(np.full((4, 1, 2), 0.5)[:2], [[0.5], [0.5]], horizon=50)
    counts = reprl.GenerativeModel(mdp, 1).sample(10**6)
    assert len(set(counts.hits.tolist())) > 300  # of 400 slots: no two cells share their draws
    model = reprl.GenerativeModel(mdp, 1)
    assert model.sample(10**6) == counts
    assert model.sample(10**6) != counts


@pytest.mark.parametrize(("start", "per_call"), [(1, 12), ([0.0, 1.0, 0.0], 12), (START, 13)])
def test_the_generative_ledger_is_exact_for_a_million_million_calls(start, per_call):
    model = reprl.GenerativeModel(reprl.TabularMDP(**world("bernoulli", start=start)), 1)
    assert model.ledger == Ledger(0, 0, 0)
    counts = model.sample(10**12)
    assert (counts.visits == 10**12).all()
    model.sample(7)
    assert model.samples_per_call == per_call
    assert model.ledger == Ledger(samples=per_call * (10**12 + 7), episodes=0, calls=10**12 + 7)


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "5", 2**62 + 1])
def test_bad_numbers_of_calls_are_refused_and_not_counted(n):
    model = reprl.GenerativeModel(reprl.TabularMDP(**world("bernoulli")), 1)
    with pytest.raises(reprl.ReprlError, match=r"^n must be a whole number from 1 to 4611686018427387904, got "):
        model.sample(n)
    assert model.ledger == Ledger(0, 0, 0)


@pytest.mark.parametrize("model", [reprl.GenerativeModel, reprl.EpisodicModel])
@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, "1", True, None, reprl.SharedKey(1)])
def test_bad_data_seeds_are_refused(model, seed):
    with pytest.raises(reprl.ReprlError, match=r"^data seed must be a whole number from 0 to \d+, got "):
        model(reprl.TabularMDP(**world("bernoulli")), seed)


GOLDEN_DIGESTS = {
    ("bernoulli", False): "6efc303c753606b6f82d47943af4c30fcb99e2dd100ea83d4858b80033ef41c2",
    ("deterministic", True): "4372a8c9edd5cf1f108a030f7b4757c23df4a2f59111810a07b444a52f270cb9",
}


@pytest.mark.parametrize(("kind", "stepwise"), GOLDEN_DIGESTS)
def test_the_same_data_seed_gives_the_same_bytes_and_another_one_others(kind, stepwise):
    rows = np.array([[[[0.5, 0.25, 0.25], [0.125, 0.0, 0.875]]] * 3] * 2).reshape(2, 3, 2, 3)
    transition = rows if stepwise else rows[0]
    mdp = reprl.TabularMDP(transition, [[0.25, 0.5]] * 3, horizon=None if stepwise else 2, reward_kind=kind)
    counts = reprl.GenerativeModel(mdp, 17).sample(10**6)
    assert counts.digest == GOLDEN_DIGESTS[kind, stepwise]
    assert reprl.GenerativeModel(mdp, 17).sample(10**6).to_bytes() == counts.to_bytes()
    assert reprl.GenerativeModel(mdp, 18).sample(10**6).to_bytes() != counts.to_bytes()


def test_the_number_of_threads_cannot_change_the_bytes():
    program = (
        "import numba, numpy as np, reprl;"
        "p = np.random.default_rng(0).dirichlet(np.ones(6), size=(6, 3));"
        "m = reprl.GenerativeModel(reprl.TabularMDP(p, np.full((6, 3), 0.3), horizon=9), 5);"
        "print(numba.get_num_threads(), m.sample(10**7).digest, m.sample(3).digest)"
    )
    outputs = []
    for threads in ("1", "2"):
        environment = {**os.environ, "NUMBA_NUM_THREADS": threads}
        command = [sys.executable, "-c", program]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.append(result.stdout.split())
    assert [output[0] for output in outputs] == ["1", "2"]
    assert outputs[0][1:] == outputs[1][1:]
    assert outputs[0][1] != outputs[0][2]


def run_episodes(model: reprl.EpisodicModel, policy: list[list[int]], n: int) -> Counter[tuple[float, ...]]:
    """Whole episodes as (x_0, x_1, r_0, x_2, r_1, …)."""
    paths: Counter[tuple[float, ...]] = Counter()
    for _ in range(n):
        state = model.reset()
        path: tuple[float, ...] = (state,)
        for h in range(model.horizon):
            seen = model.step(policy[h][state])
            state = seen.state
            path = (*path, seen.state, seen.reward)
            assert seen.done == (h == model.horizon - 1)
        paths[path] += 1
    return paths


POLICY = [[0, 1, 0], [1, 0, 1]]
EPISODES = 20_000


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stepwise", [False, True])
def test_whole_episodes_have_their_exact_law(kind, stepwise):
    """False alarm 1e-6 for each of three tests: trajectories, outcomes of a cell, occupancy; each with its control."""
    case = world(kind, stepwise=stepwise)
    mdp = reprl.TabularMDP(**case)
    paths = run_episodes(reprl.EpisodicModel(mdp, 23), POLICY, EPISODES)
    p, r = tables(case)
    law = naive.trajectory_law(p, r, START, POLICY, kind)
    assert chi_square_of(paths, law) > FALSE_ALARM
    wrong_start = naive.trajectory_law(p, r, [0.23, 0.47, 0.3], POLICY, kind)
    assert chi_square_of(paths, wrong_start) < FALSE_ALARM

    cell: Counter[Any] = Counter()
    for path, number in paths.items():
        if path[0] == 2:
            cell[path[1:3]] += number
    exact = naive.outcome_law(p, r, 0, 2, 0, kind)
    assert chi_square_of(cell, exact) > FALSE_ALARM
    assert chi_square_of(cell, bent(exact, 0.04)) < FALSE_ALARM

    visits = [[sum(n for path, n in paths.items() if path[where] == s) for s in range(3)] for where in (0, 1)]
    occupancy = mdp.occupancy(POLICY)
    for h in range(2):
        assert chi_square([(visits[h], occupancy[h])]) > FALSE_ALARM
        assert chi_square([(visits[h], occupancy[h] + [0.04, -0.02, -0.02])]) < FALSE_ALARM


def test_episodes_read_the_documented_words():
    """Word 0 of lane e draws the start of episode e, and word h + 1 the outcome of step h."""
    mdp = reprl.TabularMDP(**world("bernoulli", stepwise=True))
    model = reprl.EpisodicModel(mdp, 40)
    arrays = model.arrays
    outcomes = arrays.outcomes
    for episode in range(5):
        words = DataStream(40, "episodic", run=episode).integers(3)
        state = model.reset()
        assert state == arrays.start_state[draw_outcome(arrays.start, 0, words[0])]
        for h in range(2):
            row = h * outcomes.row_shift + state * 2 + 1
            e = draw_outcome(arrays.table, row, words[h + 1])
            seen = model.step(1)
            assert (seen.state, seen.reward) == (outcomes.next_state[e], outcomes.reward[e])
            state = seen.state


def test_episodes_do_not_depend_on_what_earlier_ones_did():
    mdp = reprl.TabularMDP(**world("bernoulli"))
    one, other = reprl.EpisodicModel(mdp, 6), reprl.EpisodicModel(mdp, 6)
    one.reset()
    one.step(0)
    other.reset()
    assert [run_episodes(one, POLICY, 1) for _ in range(50)] == [run_episodes(other, POLICY, 1) for _ in range(50)]
    assert run_episodes(reprl.EpisodicModel(mdp, 6), POLICY, 50) != run_episodes(
        reprl.EpisodicModel(mdp, 7), POLICY, 50
    )


@pytest.mark.parametrize(("start", "extra"), [(0, 0), (START, 1)])
def test_the_episodic_ledger_is_exact(start, extra):
    model = reprl.EpisodicModel(reprl.TabularMDP(**world("bernoulli", start=start)), 1)
    assert model.ledger == Ledger(0, 0, 0)
    run_episodes(model, POLICY, 10)
    assert model.ledger == Ledger(samples=10 * (2 + extra), episodes=10, calls=0)
    model.reset()
    model.step(0)
    model.reset()  # an abandoned episode was an episode, and its one step a sample
    assert model.ledger == Ledger(samples=10 * (2 + extra) + 1 + 2 * extra, episodes=12, calls=0)


def test_steps_outside_an_episode_and_bad_actions_are_refused_and_not_counted():
    model = reprl.EpisodicModel(reprl.TabularMDP(**world("bernoulli", start=0)), 1)
    over = r"^step needs an episode in progress: call reset first \(horizon 2\)\Z"
    with pytest.raises(reprl.ReprlError, match=over):
        model.step(0)
    model.reset()
    for action in (-1, 2, 1.0, True, "0", None):
        with pytest.raises(reprl.ReprlError, match=r"^action must be a whole number from 0 to 1, got "):
            model.step(action)  # type: ignore[arg-type]
    assert model.ledger == Ledger(samples=0, episodes=1, calls=0)
    model.step(np.int64(1))  # type: ignore[arg-type]
    model.step(0)
    with pytest.raises(reprl.ReprlError, match=over):
        model.step(0)
    assert model.ledger == Ledger(samples=2, episodes=1, calls=0)
    assert 0 <= model.reset() < 3


class Scripted(reprl.EpisodicModel):
    """An EpisodicModel whose words are given."""

    word = 0

    def _word(self, number: int) -> np.uint64:
        return np.uint64(self.word)


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 2**11, 2**64 - 2, 2**64 - 1])
def test_impossible_outcomes_are_never_drawn_whatever_the_word(word):
    """Rows end with impossible successors, and ten times 0.1 adds up to less than 1 in floating point."""
    row = [0.0, *[0.1] * 10, 0.0]
    assert np.cumsum(row)[-1] < 1.0
    transition = np.array([[row]] * 12)
    model = Scripted(reprl.TabularMDP(transition, [[0.0]] * 6 + [[1.0]] * 6, row, horizon=3), 0)
    model.word = word
    assert 1 <= model.reset() <= 10
    for _ in range(3):
        before = model._state
        seen = model.step(0)
        assert 1 <= seen.state <= 10
        assert seen.reward == (1.0 if before >= 6 else 0.0)


def test_impossible_outcomes_are_never_counted():
    row = [0.0, *[0.1] * 10, 0.0]
    mdp = reprl.TabularMDP(np.array([[row]] * 12), [[0.0]] * 12, row, horizon=3)
    counts = reprl.GenerativeModel(mdp, 0).sample(2**60)
    for h, s in np.ndindex(3, 12):
        seen = counts.successors(h, s, 0)
        assert seen[0] == seen[11] == 0
        assert (seen[1:11] > 0).all()
        assert seen.sum() == 2**60
    assert (counts.reward_sum == 0.0).all()


def test_a_seed_names_an_episode_and_leaves_the_next_one_as_it_was() -> None:
    mdp = reprl.make("random-mdp-v0", 4, n_states=5, n_actions=2)

    def play(model: reprl.EpisodicModel, seed: int | None = None) -> list[object]:
        return [model.reset(seed), *(model.step(h % 2) for h in range(4))]

    model, plain = reprl.EpisodicModel(mdp, 3), reprl.EpisodicModel(mdp, 3)
    named = play(model, 17)
    assert play(model) == play(plain)
    assert play(model, 17) == named
    assert play(model) == play(plain)
    assert len({tuple(play(model, seed)) for seed in range(20)}) > 1
    assert play(reprl.EpisodicModel(mdp, 3), 17) == named
    assert any(play(reprl.EpisodicModel(mdp, seed), 17) != named for seed in range(4, 9))
    assert model.ledger == Ledger(samples=24 * 4, episodes=24)
    with pytest.raises(reprl.ReprlError, match=r"^seed must be a whole number from 0"):
        model.reset(-1)

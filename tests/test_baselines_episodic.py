"""The episodic baselines against plain loops, by kernel and by steps; R-max's rounds; whether pairs of runs agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.lab.baselines import make_learner, memory, optimistic, rmax
from reprl.lab.baselines.memory import Optimism, explore, plain, plan_policy
from reprl.mdp.draws import draw_outcome
from reprl.randomness import DataStream
from reprl.sources.protocol import Ledger, Observation
from tests import naive, naive_baselines
from tests.statistics import FALSE_ALARM, chi_square, exceeds, keeps


def random_mdp(shape: tuple[int, int, int], seed: int = 0, starts: int = 1, steps: int | None = None) -> Any:
    H, S, A = shape
    rng = np.random.default_rng(seed)
    kernel = rng.dirichlet(np.full(S, 0.5), size=(steps or H, S, A))
    initial = np.zeros(S)
    initial[:starts] = rng.dirichlet(np.ones(starts))
    return reprl.TabularMDP(kernel[0] if steps == 1 else kernel, rng.random((H, S, A)), initial, H)


WORLDS = {
    "random": lambda: random_mdp((3, 4, 2)),
    "random starts": lambda: random_mdp((3, 5, 3), 1, starts=3),
    "one step": lambda: random_mdp((1, 3, 3), 2, starts=2),
    "one state": lambda: random_mdp((3, 1, 2), 3),
    "one action": lambda: random_mdp((3, 3, 1), 4),
    "same table at all steps": lambda: random_mdp((4, 4, 2), 5, steps=1),
}


def loops(mdp: reprl.TabularMDP, key: int) -> tuple[Any, Any]:
    """What the kernels draw, one word at a time: lane = episode, word 0 the start, word h + 1 step h."""
    arrays = reprl.EpisodicModel(mdp, 0).arrays

    def start(k: int) -> int:
        return int(arrays.start_state[draw_outcome(arrays.start, 0, np.uint64(naive.words(key, k, 0, 1)[0]))])

    def draw(k: int, h: int, s: int, a: int) -> tuple[int, float]:
        row = h * mdp.outcomes.row_shift + s * mdp.n_actions + a
        e = draw_outcome(arrays.table, row, np.uint64(naive.words(key, k, h + 1, 1)[0]))
        return int(mdp.outcomes.next_state[e]), float(mdp.outcomes.reward[e])

    return start, draw


class BlackBox:
    """An MDP behind reset and step alone, fed with the words that the kernels read."""

    known: Mapping[int, float] = {}
    arrays: None = None
    data_seed = 7

    def __init__(self, mdp: reprl.TabularMDP, key: int) -> None:
        self.horizon, self.n_states, self.n_actions = mdp.outcomes.shape
        self.ledger, self.samples_per_episode = Ledger(), mdp.horizon + 1
        self._start, self._draw = loops(mdp, key)
        self._episode, self._h, self._s = -1, 0, 0

    def fresh_stream(self, purpose: str) -> DataStream:
        return DataStream(self.data_seed, purpose)

    def reset(self, seed: int | None = None) -> int:
        self._episode, self._h = self._episode + 1, 0
        self._s = self._start(self._episode)
        self.ledger.episodes += 1
        self.ledger.samples += 1
        return self._s

    def step(self, action: int) -> Observation:
        self._s, reward = self._draw(self._episode, self._h, self._s, action)
        self._h += 1
        self.ledger.samples += 1
        return Observation(self._s, reward, self._h == self.horizon)


def key_of(mdp: reprl.TabularMDP, purpose: str) -> int:
    return reprl.EpisodicModel(mdp, 7).fresh_stream(purpose).key


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("c", [2.0, 0.03])
def test_ucb_h_is_the_loop(world: str, c: float) -> None:
    mdp, episodes, delta = WORLDS[world](), 150, 0.2
    model = reprl.EpisodicModel(mdp, 7)
    learner = make_learner("ucb-h", bonus=c, delta=delta, samples=episodes * model.samples_per_episode)
    got = learner(model, reprl.SharedKey(0))
    key = key_of(mdp, "ucb-h")
    slow, _ = naive_baselines.ucb_h(mdp.outcomes.shape, *loops(mdp, key), episodes=episodes, c=c, delta=delta)
    assert got.actions.tolist() == slow
    box = BlackBox(mdp, key)
    by_steps = make_learner("ucb-h", bonus=c, delta=delta, samples=episodes * (mdp.horizon + 1))
    assert by_steps(box, reprl.SharedKey(0)) == got
    assert box.ledger.episodes == episodes


def ucbvi_bonus(shape: tuple[int, int, int], c: float, episodes: int, delta: float) -> Any:
    log = math.log(math.prod(shape) * episodes / delta)
    return lambda h, n: c * (shape[0] - h) * math.sqrt(log / n)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("replan", ["episode", "doubling"])
@pytest.mark.parametrize("output", ["empirical", "optimistic"])
def test_ucbvi_is_the_loop(world: str, replan: str, output: str) -> None:
    mdp, episodes, c, delta = WORLDS[world](), 120, 0.05, 0.2
    shape, model = mdp.outcomes.shape, reprl.EpisodicModel(mdp, 7)
    how = {"bonus": c, "delta": delta, "replan": replan, "output": output}
    got = make_learner("ucbvi", samples=episodes * model.samples_per_episode, **how)(model, reprl.SharedKey(0))
    key = key_of(mdp, "ucbvi")
    bonus = ucbvi_bonus(shape, c, episodes, delta)
    growth = 0.0 if replan == "episode" else 2.0
    seen, _ = naive_baselines.optimistic_play(shape, *loops(mdp, key), episodes=episodes, bonus=bonus, growth=growth)
    q, _ = seen.values(
        (lambda h, n: 0.0) if output == "empirical" else bonus, unseen=0.0 if output == "empirical" else math.inf
    )
    assert got.actions.tolist() == naive_baselines.greedy(q)
    box = BlackBox(mdp, key)
    by_steps = make_learner("ucbvi", samples=episodes * (mdp.horizon + 1), **how)(box, reprl.SharedKey(0))
    assert by_steps == got


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("epsilon", [0.9, 0.01])
def test_reward_free_is_the_loop_and_stops_like_it(world: str, epsilon: float) -> None:
    mdp, episodes, c, delta = WORLDS[world](), 200, 0.05, 0.2
    shape, model = mdp.outcomes.shape, reprl.EpisodicModel(mdp, 7)
    how = {"bonus": c, "delta": delta, "epsilon": epsilon, "replan": "episode"}
    learner = make_learner("reward-free-ucbvi", samples=episodes * model.samples_per_episode, **how)
    got = learner(model, reprl.SharedKey(0))
    n_states, log = shape[1], math.log(2.0 * math.prod(shape) / delta)

    def bonus(h: int, n: int) -> float:
        beta = log + (n_states - 1) * (1.0 + math.log(1.0 + n / max(1, n_states - 1)))
        return float(c * shape[0] * math.sqrt(2.0 * beta / n))

    seen, played = naive_baselines.optimistic_play(
        shape,
        *loops(mdp, key_of(mdp, "reward-free-ucbvi")),
        episodes=episodes,
        bonus=bonus,
        reward=False,
        stop=epsilon / 2.0,
    )
    assert model.ledger.episodes == played
    q, _ = seen.values(lambda h, n: 0.0, unseen=0.0)
    assert got.actions.tolist() == naive_baselines.greedy(q)


def test_slices_do_not_change_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = WORLDS["random starts"]()
    learners = [make_learner(name, samples=4000) for name in ("ucb-h", "ucbvi", "reward-free-ucbvi")]
    whole = [learner(reprl.EpisodicModel(mdp, 1), reprl.SharedKey(0)) for learner in learners]
    monkeypatch.setattr(optimistic, "_SLICE", 50)
    monkeypatch.setattr(memory, "_SLICE", 50)
    assert [learner(reprl.EpisodicModel(mdp, 1), reprl.SharedKey(0)) for learner in learners] == whole


def test_a_plan_values_are_the_loop_s() -> None:
    mdp = WORLDS["random"]()
    optimism = Optimism(np.full(3, 0.3), 1.5, 0.5, 2.0, 1.0, math.inf, 0.0, -1.0)
    outcomes, seen = explore(reprl.EpisodicModel(mdp, 7), optimism, 60, "test")
    slow, _ = naive_baselines.optimistic_play(
        mdp.outcomes.shape,
        *loops(mdp, key_of(mdp, "test")),
        episodes=60,
        bonus=lambda h, n: 0.3 * math.sqrt((1.5 + 0.5 * math.log(1 + n / 2.0)) / n),
    )
    counts = [len(slow.steps[h, s, a]) for h in range(3) for s in range(4) for a in range(2)]
    assert seen.visits.tolist() == counts
    plan_policy(outcomes, seen, plain(3))
    _, value = slow.values(lambda h, n: 0.0, unseen=0.0)
    np.testing.assert_allclose(seen.value.reshape(4, 4), value, rtol=1e-12)


def test_a_black_box_too_large_to_model_is_refused() -> None:
    box = BlackBox(WORLDS["random"](), 1)
    box.n_states = 10**5
    for name in ("ucbvi", "reward-free-ucbvi", "replicable-rmax"):
        with pytest.raises(reprl.ReprlError, match="H·S²·A"):
            make_learner(name, samples=10**12)(box, reprl.SharedKey(0))


@pytest.mark.parametrize("name", ["ucb-h", "ucbvi", "reward-free-ucbvi", "replicable-rmax"])
def test_gymnasium_environments_are_played_by_steps(name: str) -> None:
    model = reprl.GymnasiumModel("FrozenLake-v1", 6, data_seed=1, is_slippery=False)
    policy = make_learner(name, samples=7 * 400)(model, reprl.SharedKey(0))
    assert policy.actions.shape == (6, 17)
    assert 0 < model.ledger.samples <= 7 * 400


# Replicable R-max


@pytest.mark.parametrize("world", WORLDS)
def test_rmax_is_the_loop(world: str) -> None:
    mdp, key, samples = WORLDS[world](), reprl.SharedKey(4), 2_000_000
    shape = mdp.outcomes.shape
    epsilon = 0.5
    model = reprl.EpisodicModel(mdp, 7)
    got = make_learner("replicable-rmax", epsilon=epsilon, samples=samples, rounds=40)(model, key)
    episodes = samples // 40 // model.samples_per_episode
    twin = reprl.EpisodicModel(mdp, 7)

    def play(policy: list[list[int]]) -> tuple[Any, Any]:
        following, paid = rmax.play(twin, reprl.Policy(policy), episodes)
        return following.tolist(), paid.tolist()

    root = key.derive("replicable-rmax")
    slow = naive_baselines.rmax(
        shape,
        play,
        episodes=episodes,
        reach=min(0.5, rmax.RMAX_REACH * epsilon / (shape[0] ** 2 * shape[1])),
        width=min(0.25, rmax.RMAX_WIDTH * epsilon / shape[0]),
        threshold_shift=lambda i: float(root.derive("threshold", i).uniforms(1)[0]),
        grid_shift=lambda h, s, a, t: float(root.derive("model", h, s, a).uniforms(1, start=t)[0]),
        rounds=40,
    )
    assert got.actions.tolist() == slow
    assert model.ledger == twin.ledger


def test_tallies_of_a_round_are_conserved() -> None:
    mdp = WORLDS["random starts"]()
    policy = reprl.Policy(np.random.default_rng(0).integers(3, size=(3, 5)))
    model = reprl.EpisodicModel(mdp, 3)
    following, paid = rmax.play(model, policy, 10**6)
    assert model.ledger == Ledger(samples=4 * 10**6, episodes=10**6)
    assert (following.sum(axis=(1, 2)) == 10**6).all()
    assert np.array_equal(following[:-1].sum(axis=1), following[1:].sum(axis=2))
    assert (paid <= following.sum(axis=2)).all()
    assert (following[:, :, :][mdp.transition[np.arange(3)[:, None], np.arange(5), policy.actions] == 0.0] == 0).all()


@pytest.mark.statistical
def test_tallies_of_a_round_have_the_law_of_episodes() -> None:
    """Next states of a step given its states, against the transition law, at 1e-6; another policy's law must fail."""
    mdp = WORLDS["random"]()
    rng = np.random.default_rng(0)
    policy = reprl.Policy(rng.integers(2, size=(3, 4)))
    following, paid = rmax.play(reprl.EpisodicModel(mdp, 3), policy, 20_000)
    mean = np.take_along_axis(mdp.reward, policy.actions[..., None], 2)[..., 0]
    rows, wrong, rewards = [], [], []
    for h in range(3):
        for s in range(4):
            n = following[h, s].sum()
            if n:
                rows.append((following[h, s], mdp.transition[h, s, policy.actions[h, s]]))
                wrong.append((following[h, s], mdp.transition[h, s, 1 - policy.actions[h, s]]))
                rewards.append(([paid[h, s], n - paid[h, s]], [mean[h, s], 1 - mean[h, s]]))
    assert chi_square(rows) > FALSE_ALARM
    assert chi_square(rewards) > FALSE_ALARM
    assert chi_square(wrong) < FALSE_ALARM


def test_rounded_cells_are_laws_and_a_share_near_zero_is_zero() -> None:
    for seed in range(50):
        law, reward = rmax.round_cell(reprl.SharedKey(seed), np.array([0.7, 0.3, 0.0, 0.0, 0.4]), 0.1)
        assert law.sum() == pytest.approx(1.0)
        assert law[2] == law[3] == 0.0
        assert abs(law[0] - 0.7) < 0.15
        assert abs(reward - 0.4) <= 0.05
    law, _ = rmax.round_cell(reprl.SharedKey(0), np.array([0.5, 0.5, 0.0]), 50.0)
    assert law.sum() == pytest.approx(1.0)


def test_rmax_addresses_do_not_move_with_the_data() -> None:
    """The frozen model of a pair is a function of its own tallies and address, whatever else became known."""
    key = reprl.SharedKey(2)
    root = key.derive("replicable-rmax", "model")
    policy = reprl.Policy(np.zeros((1, 3), dtype=int))
    following = np.array([[[700, 200, 100], [90, 10, 0], [5, 0, 0]]])
    paid = np.array([[400.0, 50.0, 1.0]])
    frozen = []
    for threshold in (50.0, 500.0):
        found = rmax._Model(np.zeros((1, 3, 2), np.bool_), np.zeros((1, 3, 2, 3)), np.zeros((1, 3, 2)))
        assert rmax._freeze(root, found, policy, following, paid, threshold, 0.1)
        frozen.append(found)
    assert frozen[0].known.sum() == 2
    assert frozen[1].known.sum() == 1
    assert np.array_equal(frozen[0].transition[0, 0], frozen[1].transition[0, 0])
    assert frozen[0].reward[0, 0, 0] == frozen[1].reward[0, 0, 0]


TIED: dict[str, dict[str, Any]] = {
    "gridworld-v0": {"size": 3, "horizon": 4},
    "random-mdp-v0": {"n_states": 6, "n_actions": 3, "horizon": 3},
}


def disagreements(name: str, world: str, pairs: int, **options: Any) -> int:
    mdp = reprl.make(world, **TIED[world])
    assert isinstance(mdp, reprl.TabularMDP)
    apart = 0
    for i in range(pairs):
        learner, key = make_learner(name, **options), reprl.SharedKey(1000 + i)
        first, second = (learner(reprl.EpisodicModel(mdp, 2 * i + side), key) for side in (0, 1))
        apart += first != second
    return apart


@pytest.mark.statistical
@pytest.mark.parametrize("world", TIED)
def test_rmax_is_not_rejected_at_its_rho(world: str) -> None:
    """Practical constants, ρ = 0.2, 100 pairs, false alarm 1e-6."""
    assert keeps(disagreements("replicable-rmax", world, 100, rho=0.2), 100, 0.2, power=0.37, finds=0.48)


@pytest.mark.statistical
def test_rmax_is_rejected_with_far_too_few_samples() -> None:
    assert exceeds(disagreements("replicable-rmax", "gridworld-v0", 60, samples=10**5), 60, 0.2) < FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["ucb-h", "ucbvi", "reward-free-ucbvi"])
def test_optimistic_rivals_are_rejected_where_actions_tie(name: str) -> None:
    """At their own number of samples for ε = 0.3, ρ = 0.2, false alarm 1e-6."""
    assert exceeds(disagreements(name, "gridworld-v0", 40, samples=100_000), 40, 0.2) < FALSE_ALARM

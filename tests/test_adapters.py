"""Learners as people have them: functions of a gymnasium.Env, and whatever they come back with."""

from __future__ import annotations

import itertools
import random
from typing import Any

import gymnasium
import numpy as np
import pytest

import reprl
from reprl.learning.adapters import Agent, as_learner, env_learner, policy_of
from reprl.report.card import card
from reprl.sources.environment import fresh_model
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.learner_env import EnvironmentFactory, LearnerEnv, open_for_learner

SMALL = reprl.make("random-mdp-v0", 3, n_states=4, n_actions=3)
FRESH = itertools.count()


class Model:
    """A stand-in for a model of Stable-Baselines3: predict(observation, deterministic) → (action, state)."""

    def __init__(self, choose: Any) -> None:
        self.choose, self.asked = choose, 0

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[Any, None]:
        assert deterministic
        self.asked += 1
        seen = np.asarray(observation)
        if seen.ndim == 2:
            return np.array([self.choose(row) for row in seen]), None
        return np.array(self.choose(seen)), None


def walk(env: Any, episodes: int = 5) -> list[Any]:
    """Observations of episodes with actions of the space's own sampling."""
    seen = []
    for _ in range(episodes):
        observation, _ = env.reset(seed=0)
        over = False
        while not over:
            seen.append(observation)
            observation, _, ended, truncated, _ = env.step(env.action_space.sample())
            over = ended or truncated
    return seen


def q_learning(env: Any, seed: int, episodes: int = 20) -> Any:
    q = np.zeros((env.observation_space.n, env.action_space.n))
    private = np.random.default_rng(seed)
    for _ in range(episodes):
        state, _ = env.reset()
        over = False
        while not over:
            action = env.action_space.sample() if private.random() < 0.3 else int(q[state].argmax())
            after, reward, ended, truncated, _ = env.step(action)
            q[state, action] += 0.2 * (reward + q[after].max() * (not ended) - q[state, action])
            state, over = after, ended or truncated
    return q


@pytest.mark.parametrize("source", ["mdp", "gym", "black box"])
def test_a_learner_gets_a_budgeted_private_environment_and_its_ledger_is_kept(source: str) -> None:
    world: Any = {
        "mdp": SMALL,
        "gym": reprl.make("gym:FrozenLake-v1", 6),
        "black box": reprl.GymnasiumModel("Blackjack-v1", 5, reward_range=(-1, 1)),
    }[source]
    seen: list[Any] = []
    for data_seed in (1, 1, 2):
        with fresh_model(world, "episodic", data_seed) as model, open_for_learner(model, 200) as env:
            assert isinstance(env, gymnasium.Env)
            before = len(seen)
            seen.append([str(x) for x in walk(env, 8)])
            assert len(seen) == before + 1
            steps = len(seen[-1])
            free = isinstance(model, EpisodicModel) and model.mdp.fixed_start and source == "mdp"
            assert model.ledger.samples == steps + (0 if free else 8)
            assert model.ledger.episodes == 8
            assert env.samples_left == 200 - model.ledger.samples
            with pytest.raises(reprl.ReprlError, match=r"^the budget of 200 samples is spent"):
                walk(env, 10**4)
            assert model.ledger.samples == 200
    assert seen[0] == seen[1], "the data seed fixes the data"
    assert seen[0] != seen[2], "and reset(seed=0) does not"


def test_real_environments_keep_their_rewards_and_the_horizon_truncates() -> None:
    env = LearnerEnv(gymnasium.make("CliffWalking-v1"), 1, 4)
    env.reset()
    for h in range(4):
        _, paid, ended, truncated, _ = env.step(0)
        assert (paid, ended, truncated) == (-1, False, h == 3)
    with pytest.raises(reprl.ReprlError, match="call reset first"):
        env.step(0)


TABLE = np.array([[0, 1, 2, 1], [1, 1, 0, 2], [2, 0, 0, 1]])


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (TABLE, TABLE),
        (TABLE.astype(float), TABLE),
        (TABLE[0], np.tile(TABLE[0], (3, 1))),
        (np.eye(3)[TABLE], TABLE),
        (0.5 * np.eye(3)[TABLE[1]], np.tile(TABLE[1], (3, 1))),
        (lambda state: TABLE[2, state], np.tile(TABLE[2], (3, 1))),
        (lambda state, step: TABLE[step, state], TABLE),
        (Model(lambda state: TABLE[0, state]), np.tile(TABLE[0], (3, 1))),
        (reprl.Policy(TABLE), TABLE),
    ],
    ids=["HS", "floats", "S", "HSA", "SA", "function", "with step", "predict", "policy"],
)
def test_what_learners_return_becomes_a_policy(output: Any, expected: Any) -> None:
    np.testing.assert_array_equal(policy_of(output, EpisodicModel(SMALL, 1)).actions, expected)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (None, "a learner must return a policy, .* got None"),
        ("greedy", "a learner must return a policy, .* got 'greedy'"),
        (TABLE.T[:2], r"policy must have shape \(H, S\) = \(3, 4\) .* got \(2, 3\)"),
        (np.full((4, 3), np.nan), r"Q values must be numbers, got nan at \[0, 0\]"),
        (lambda state: "left", r"in state 0 at step 0: action must be a whole number .* got 'left'"),
        (lambda state: 3, r"policy action \[0, 0\] must be from 0 to 2, got 3"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line(output: Any, message: str) -> None:
    with pytest.raises(reprl.ReprlError, match=message):
        policy_of(output, EpisodicModel(SMALL, 1))


def test_a_square_table_of_floats_is_not_guessed() -> None:
    square = EpisodicModel(reprl.make("random-mdp-v0", 3, n_states=3, n_actions=3), 1)
    np.testing.assert_array_equal(policy_of(np.eye(3, dtype=int), square).actions, np.eye(3))
    np.testing.assert_array_equal(policy_of(0.5 * np.eye(3), square).actions, np.tile([0, 1, 2], (3, 1)))
    with pytest.raises(reprl.ReprlError, match=r"may be actions \(H, S\) or Q values \(S, A\)"):
        policy_of(np.eye(3), square)


def test_the_state_that_only_we_add_may_be_left_out() -> None:
    box = reprl.GymnasiumModel("Blackjack-v1", 2, reward_range=(-1, 1))
    found = policy_of(lambda hand: int(hand[0] < 17), box).actions
    for s in (0, 40, 500, box.ended - 1):
        assert found[0, s] == found[1, s] == (box.observations.decode(s)[0] < 17)
    assert found.shape == (2, box.n_states)
    assert policy_of(np.zeros(box.ended, dtype=int), box).actions.shape == (2, box.n_states)
    assert policy_of(np.zeros((box.ended, 2)), box).actions.shape == (2, box.n_states)


def test_masks_bind_q_tables() -> None:
    allowed = np.ones((4, 3), dtype=bool)
    allowed[1, 2] = False
    mdp = reprl.TabularMDP(SMALL.transition[0], SMALL.reward[0], horizon=3, allowed=allowed)
    q = np.tile([0.0, 1.0, 2.0], (4, 1))
    assert policy_of(q, EpisodicModel(mdp, 1)).actions.tolist() == [[2, 1, 2, 2]] * 3


def test_an_audit_takes_a_function_of_an_environment() -> None:
    report = reprl.audit(SMALL, q_learning, pairs=6, seed=1, episodes=10)  # type: ignore[call-arg]
    again = reprl.audit(SMALL, env_learner(q_learning, episodes=10), pairs=6, seed=1)
    assert report.learner == "q_learning"
    assert report.samples == 30.0
    np.testing.assert_array_equal(report.by_cell, again.by_cell)
    assert reprl.AuditReport.from_json(report.to_json()).to_json() == report.to_json()


def test_shared_randomness_alone_agrees_and_private_randomness_does_not() -> None:
    def shared(env: Any, shared_key: reprl.SharedKey) -> Any:
        walk(env)
        return (3 * shared_key.derive("arms").uniforms(env.observation_space.n)).astype(int)

    def private(env: Any) -> Any:
        walk(env)
        return np.random.randint(env.action_space.n, size=env.observation_space.n)  # noqa: NPY002

    assert reprl.audit(SMALL, shared, pairs=8, seed=1).disagreements == 0
    found = reprl.audit(SMALL, private, pairs=8, seed=1)
    assert found.disagreements >= 6
    assert found.policies is not None
    assert found.policies.over_runs > 8
    reprl.check_learner(private)  # the generators of the process are seeded for it, and given back


def test_check_learner_says_what_is_wrong_with_functions_of_environments() -> None:
    def elsewhere(env: Any) -> Any:
        walk(gymnasium.make("FrozenLake-v1"), 1)
        return np.zeros(env.observation_space.n, dtype=int)

    def remembers(env: Any) -> Any:
        walk(env, 1)
        return np.full(env.observation_space.n, next(FRESH) % env.action_space.n)

    def needs(env: Any, weights: Any) -> Any:
        return None

    def forgets(env: Any) -> Any:
        walk(env, 1)

    reprl.check_learner(q_learning)
    for learner, message in (
        (elsewhere, "drew no samples through the environment that it is given"),
        (remembers, "it draws randomness of its own, or remembers earlier calls"),
        (needs, "learner needs failed on .*TypeError: .*'weights'"),
        (forgets, "learner forgets returned no policy for .* got None"),
    ):
        with pytest.raises(reprl.ReprlError, match=message) as caught:
            reprl.check_learner(learner)
        assert "\n" not in str(caught.value)


def test_faults_of_a_function_name_its_own_line() -> None:
    def broken(env: Any) -> Any:
        raise KeyError("weights")

    with pytest.raises(reprl.ReprlError, match=r"learner broken failed in pair 0, run 0: KeyError.*test_adapters\.py"):
        reprl.audit(SMALL, broken, pairs=1)


def test_generators_are_given_back() -> None:
    np.random.seed(3)  # noqa: NPY002
    random.seed(3)
    before = np.random.get_state()[1].tobytes(), random.getstate()  # type: ignore[index]  # noqa: NPY002
    reprl.audit(SMALL, q_learning, pairs=1, seed=1)
    after = np.random.get_state()[1].tobytes(), random.getstate()  # type: ignore[index]  # noqa: NPY002
    assert before == after


def test_black_boxes_are_valued_by_episodes() -> None:
    def bold(env: Any, seed: int) -> Any:
        walk(env, 2)
        least = 12 + seed % 7
        return lambda hand: int(hand[0] < least)

    box = reprl.GymnasiumModel("Blackjack-v1", 6, reward_range=(-1, 1))
    report = reprl.audit(box, bold, pairs=6, seed=2, evaluation=60)
    assert report.policies is not None
    played = report.policies.monte_carlo
    assert played is not None
    assert played.episodes == 60
    assert 2.5 < played.value.low <= played.value.mean <= played.value.high < 3.2
    assert report.cells
    for cell in report.cells:
        assert cell.visited is not None
        assert cell.visited > 0.0
        assert report.policies.reached[cell.step, cell.state]
    assert not report.policies.reached[:, box.ended].any()
    assert reprl.AuditReport.from_json(report.to_json()).to_json() == report.to_json()
    assert "episodes a policy" in card(report)
    silent = reprl.audit(box, bold, pairs=2, seed=2, evaluation=0)
    assert silent.policies is not None
    assert silent.policies.monte_carlo is None


def zeros(model: Any, key: Any) -> Any:
    return np.zeros((model.horizon, model.n_states), dtype=int)


def test_who_takes_an_environment() -> None:
    assert as_learner(zeros) is zeros
    assert as_learner(q_learning).train is q_learning
    assert EnvironmentFactory.of("CartPole-v1").horizon == 500
    with pytest.raises(reprl.ReprlError, match="horizon must be given"):
        EnvironmentFactory.of(lambda: gymnasium.make("Blackjack-v1"))
    many = Model(lambda seen: int(seen[0] > 0))
    assert Agent(many).act_all([np.array([1.0]), np.array([-1.0])]) == [1, 0]
    assert many.asked == 1

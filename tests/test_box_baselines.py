"""Baselines for environments that observe a Box: they learn, keep to budgets, and share what they say they share."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import reprl
from reprl.auditing.agents import audit_agents
from reprl.errors import InputError
from reprl.lab.baselines.boxes import LinearAgent, box_learner, box_learners
from reprl.sources.gymnasium.learner_env import LearnerEnv

OURS = [entry.name for entry in box_learners() if entry.name != "ppo"]


def train(name: str, data_seed: int, samples: int, env: str = "CartPole-v1", **options: Any) -> tuple[Any, int]:
    place = LearnerEnv(gymnasium.make(env), data_seed, 100, samples=samples)
    return box_learner(name, **options).on(place, reprl.SharedKey(3), data_seed), place.ledger.samples


@pytest.mark.parametrize("name", OURS)
def test_runs_repeat_and_keep_to_their_budget(name):
    first, spent = train(name, 1, 20_000)
    again, _ = train(name, 1, 20_000)
    other, _ = train(name, 2, 20_000)
    assert isinstance(first, LinearAgent)
    assert first.fingerprint == again.fingerprint
    assert 0 < spent <= 20_000
    assert other.fingerprint != first.fingerprint or name.startswith(("replicable", "rounded"))


def test_shared_grids_make_runs_equal_when_they_are_wide():
    """Rounding to a grid that dwarfs all noise leaves nothing of the data: two runs print the same weights."""
    options: dict[str, dict[str, Any]] = {"replicable-ars": {}, "rounded-fqi": {"iterations": 1}}
    for name, how in options.items():
        one, two = (train(name, seed, 40_000, width=1e6, **how)[0] for seed in (1, 2))
        assert one.fingerprint == two.fingerprint
        fine = [train(name, seed, 40_000, width=1e-6, **how)[0].fingerprint for seed in (1, 2)]
        assert fine[0] != fine[1]


def test_ridge_weights_are_the_grid_s_rounding_of_a_naive_regression():
    """One iteration on a tiny grid: weights are those of the normal equations, action by action."""
    agent, _ = train("rounded-fqi", 5, 4_000, features=4, iterations=1, width=1e-9, ridge=0.5)
    env = LearnerEnv(gymnasium.make("CartPole-v1"), 5, 100, samples=4_000)
    from reprl.lab.baselines.boxes import _random_episode
    from reprl.randomness import DataStream

    seed = int(DataStream(5, "learner/seed").integers(1)[0]) >> 33
    rows: list[Any] = []
    for episode in range(200):
        if env.samples_left is not None and env.samples_left < 101:
            break
        rows += _random_episode(env, DataStream(seed, "fqi", episode).uniforms(100), 2)
    for action in (0, 1):
        mine = [(agent.features(seen), paid) for seen, done, paid, _, _ in rows if done == action]
        x, y = np.array([row[0] for row in mine]), np.array([row[1] for row in mine])
        stacked = np.vstack([x, np.sqrt(0.5) * np.eye(4)])
        naive, *_ = np.linalg.lstsq(stacked, np.concatenate([y, np.zeros(4)]), rcond=None)
        assert agent.weights[action] == pytest.approx(naive, abs=1e-6)


def test_search_learns_to_balance():
    agent, _ = train("ars", 1, 60_000)
    env = gymnasium.make("CartPole-v1")
    total, (seen, _) = 0, env.reset(seed=5)
    for _ in range(100):
        seen, _, ended, _, _ = env.step(agent(seen))
        total += 1
        if ended:
            break
    assert total >= 60  # a random policy lasts about 20 steps


def test_continuous_actions_are_clipped():
    agent, _ = train("cem", 1, 4_000, "Pendulum-v1", rounds=1)
    action = agent(np.array([1.0, 0.0, 8.0]))
    assert gymnasium.make("Pendulum-v1").action_space.contains(action)
    with pytest.raises(InputError, match="rounded-fqi needs Discrete actions"):
        train("rounded-fqi", 1, 4_000, "Pendulum-v1")


def test_audits_name_them():
    report = audit_agents("CartPole-v1", "replicable-ars", 2, horizon=50, samples=20_000, episodes=3, seed=1, width=1e6)
    assert report.learner == "replicable_ars"
    assert report.identical == 2
    with pytest.raises(InputError, match="option of ars must be one of"):
        audit_agents("CartPole-v1", "ars", 1, widht=2)
    with pytest.raises(InputError, match="learner must be one of ars"):
        box_learner("arsenal")

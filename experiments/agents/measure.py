"""Trainings and their audits. PPO needs the extra `agents` (torch and Stable-Baselines3)."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import reprl
from experiments.agents import plan
from reprl.auditing.agents import audit_agents


def ppo(env: Any, weights: int, steps: int) -> Any:
    """Train PPO on one thread; `weights` seeds first weights, noise and batches; the environment seeds itself."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)
    return PPO("MlpPolicy", env, seed=weights, device="cpu", **plan.PPO).learn(steps)


def shared_ppo(env: Any, shared_key: reprl.SharedKey, steps: int) -> Any:
    """PPO as replicability has it: all randomness of its own is shared, the data are not."""
    return ppo(env, int(shared_key.derive("ppo").uniforms(1)[0] * 2**31), steps)


def private_ppo(env: Any, seed: int, steps: int) -> Any:
    """PPO as it is run today: a seed of one's own."""
    return ppo(env, seed, steps)


def cells() -> gymnasium.Env[Any, Any]:
    """CartPole cut into cells."""
    limits = np.array(plan.LIMITS, dtype=np.float32)
    box = gymnasium.spaces.Box(-limits, limits, dtype=np.float32)
    env = gymnasium.make("CartPole-v1", max_episode_steps=-1)
    inside = gymnasium.wrappers.TransformObservation(env, lambda seen: np.clip(seen, -limits, limits), box)
    return gymnasium.wrappers.DiscretizeObservation(inside, bins=plan.BINS)


def agents(train: Any, pairs: int, episodes: int, steps: int) -> dict[str, Any]:
    """Audit PPO."""
    how: dict[str, Any] = {"pairs": pairs, "episodes": episodes, "seed": plan.SEED}
    return audit_agents("gym:CartPole-v1", train, steps=steps, **how).to_dict()


def baseline(learner: str, pairs: int, episodes: int, samples: int) -> dict[str, Any]:
    """Audit a baseline for a Box, by its name."""
    how: dict[str, Any] = {"pairs": pairs, "episodes": episodes, "seed": plan.SEED, "samples": samples}
    return audit_agents("gym:CartPole-v1", learner, **how).to_dict()


def tables(pairs: int, episodes: int) -> dict[str, Any]:
    """Audit the default rule on the cells, with the ruler for agents."""
    how: dict[str, Any] = {"pairs": pairs, "episodes": episodes, "seed": plan.SEED}
    return audit_agents(cells, "reprl", reward_range=(0, 1), stationary=True, **plan.TABLE, **how).to_dict()

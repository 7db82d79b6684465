"""Baselines for environments that observe a Box: train(env, …) → agent, by name for ``audit_agents``.

No public code exists for the replicable ones: they are reconstructions (docs/peers.md). Policies are linear in an
observation and 1; actions are Discrete, by argmax with ties by index, or a Box, by clipping.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from reprl.coupling.rounding import round_vector
from reprl.errors import DependencyError, InputError, check_option, hint, quote
from reprl.lab.baselines.registry import LearnerEntry
from reprl.learning.adapters import EnvLearner, env_learner
from reprl.randomness import DataStream, SharedKey

Floats = np.ndarray[Any, np.dtype[np.float64]]


class LinearAgent(NamedTuple):
    """Scores that are linear in features of an observation; the best action, or the scores clipped to a Box."""

    weights: Floats
    """(scores, features)."""
    space: Any
    features: Callable[[Any], Floats]

    def __call__(self, observation: Any) -> Any:
        """Return the action."""
        scores = self.weights @ self.features(observation)
        if hasattr(self.space, "n"):
            return int(scores.argmax()) + int(self.space.start)
        return np.clip(scores.reshape(self.space.shape), self.space.low, self.space.high).astype(self.space.dtype)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights."""
        return hashlib.sha256(self.weights.astype("<f8").tobytes()).hexdigest()


def _affine(observation: Any) -> Floats:
    return np.append(np.asarray(observation, dtype=np.float64).ravel(), 1.0)


def _scores(space: Any) -> int:
    return int(space.n) if hasattr(space, "n") else int(np.prod(space.shape))


def _normals(uniforms: Floats) -> Floats:
    from scipy.special import ndtri

    found: Floats = ndtri(uniforms)
    return found


def play_episode(env: Any, agent: LinearAgent) -> float:
    """Return what an agent earns in an episode."""
    seen, _ = env.reset()
    total, over = 0.0, False
    while not over:
        seen, paid, ended, truncated, _ = env.step(agent(seen))
        total, over = total + float(paid), ended or truncated
    return total


def _affords(env: Any, episodes: int) -> bool:
    return env.samples_left is None or env.samples_left >= episodes * (env.horizon + 1)


def ars(
    env: Any, seed: int, *, directions: int = 8, top: int = 4, step: float = 0.1, noise: float = 0.2, rounds: int = 50
) -> LinearAgent:
    """Augmented random search (Mania, Guy, Recht 2018, V1-t), with directions of each run's own.

    Randomness:
        Data: stream (seed, "ars", round).
    """
    found = LinearAgent(_origin(env), env.action_space, _affine)
    for number in range(rounds):
        if not _affords(env, 2 * directions):
            break
        tried = _directions(DataStream(seed, "ars", number).uniforms(directions * found.weights.size), found)
        pairs = _pairs(env, found, tried, noise, 1)
        best = np.argsort(-pairs.max(axis=1), kind="stable")[:top]
        found = _moved(found, tried[best], pairs[best, 0] - pairs[best, 1], step / max(float(pairs[best].std()), 1e-8))
    return found


def replicable_ars(
    env: Any,
    shared_key: SharedKey,
    *,
    directions: int = 6,
    step: float = 1.0,
    noise: float = 0.3,
    rounds: int = 20,
    episodes: int = 16,
    width: float = 0.5,
) -> LinearAgent:
    """ARS whose directions are shared and whose differences of mean returns are rounded to a shared grid.

    A difference is divided by the sum of both sizes, so that it lies in [−1, 1]; `width` is the grid's. Equal roundings
    in all rounds give equal weights. The budget pays for the longest episodes, so that all runs have as many rounds.

    Randomness:
        Shared, at ("direction", round) and ("round", round).
    """
    found = LinearAgent(_origin(env), env.action_space, _affine)
    price = 2 * directions * episodes * (env.horizon + 1)  # of the longest round: rounds must not depend on data
    paid = rounds if env.samples is None else min(rounds, env.samples // price)
    if paid == 0:
        raise InputError(f"samples must pay for a round of replicable-ars, {price:,}, got {env.samples:,}")
    for number in range(paid):
        tried = _directions(shared_key.derive("direction", number).uniforms(directions * found.weights.size), found)
        pairs = _pairs(env, found, tried, noise, episodes)
        share = (pairs[:, 0] - pairs[:, 1]) / np.maximum(np.abs(pairs).sum(axis=1), 1e-9)
        gain = round_vector(shared_key.derive("round", number), share, width=width, method="grid")
        found = _moved(found, tried, gain, step)
    return found


def cem(
    env: Any, seed: int, *, population: int = 16, elite: int = 4, spread: float = 1.0, rounds: int = 30
) -> LinearAgent:
    """Cross-entropy method: normal weights around a mean, moved to the best quarter of the population.

    Randomness:
        Data: stream (seed, "cem", round).
    """
    found = LinearAgent(_origin(env), env.action_space, _affine)
    wide = np.full(found.weights.shape, spread)
    for number in range(rounds):
        if not _affords(env, population):
            break
        tried = _directions(DataStream(seed, "cem", number).uniforms(population * found.weights.size), found)
        weights = found.weights + wide * tried
        earned = np.array([play_episode(env, found._replace(weights=each)) for each in weights])
        best = weights[np.argsort(-earned, kind="stable")[:elite]]
        found, wide = found._replace(weights=best.mean(axis=0)), best.std(axis=0) + 0.01
    return found


def rounded_fqi(
    env: Any,
    shared_key: SharedKey,
    seed: int,
    *,
    features: int = 50,
    iterations: int = 5,
    width: float = 0.2,
    discount: float = 0.95,
    ridge: float = 1.0,
    rounds: int = 5_000,
) -> LinearAgent:
    """Fitted Q-iteration whose regression weights are rounded to shared shifted grids (after arXiv:2509.08660).

    Data come from uniformly random actions. Features are cosines of shared random projections. Every iteration is a
    ridge regression for each action, rounded weight by weight. Discrete actions only.

    Randomness:
        Shared: features at ("features",), grids at ("round", iteration). Data: actions, stream (seed, "fqi").
    """
    if not hasattr(env.action_space, "n"):
        raise InputError(f"rounded-fqi needs Discrete actions, got {quote(env.action_space)}")
    actions, rows = _scores(env.action_space), []
    for episode in range(rounds):
        if not _affords(env, 1):
            break
        rows += _random_episode(env, DataStream(seed, "fqi", episode).uniforms(env.horizon), actions)
    if not rows:
        raise InputError(f"samples must pay for one episode of {env.horizon} steps, got {env.samples_left}")
    seen, done, paid, after, ended = (np.array(column) for column in zip(*rows, strict=True))
    size = seen.shape[1]
    draw = shared_key.derive("features").uniforms(features * (size + 1))
    project, phase = _normals(draw[: features * size]).reshape(features, size), 2.0 * np.pi * draw[features * size :]

    def lift(x: Any) -> Floats:
        lifted: Floats = np.cos(np.atleast_2d(x) @ project.T + phase)
        return lifted

    now, then = lift(seen), lift(after)
    chosen = [now[done == a] for a in range(actions)]
    grams = [x.T @ x + ridge * np.eye(features) for x in chosen]
    weights = np.zeros((actions, features))
    for k in range(iterations):
        target = paid + discount * np.where(ended, 0.0, (then @ weights.T).max(axis=1))
        raw = [np.linalg.solve(grams[a], chosen[a].T @ target[done == a]) for a in range(actions)]
        rounded = round_vector(shared_key.derive("round", k), np.concatenate(raw), width=width, method="grid")
        weights = rounded.reshape(actions, features)
    return LinearAgent(weights, env.action_space, lambda x: lift(np.ravel(x))[0])


def ppo(env: Any, shared_key: SharedKey, samples: int | None = None, *, steps: int = 24_576) -> Any:
    """Stable-Baselines3's PPO with its default network; its own randomness is shared, the data are not."""
    try:
        import torch
        from stable_baselines3 import PPO
    except ImportError:
        raise DependencyError("stable-baselines3 must be installed for ppo (pip install 'reprl[agents]')") from None
    torch.set_num_threads(1)
    word = int(shared_key.uniforms(1)[0] * 2**31)
    most = steps if samples is None else min(steps, samples - samples // 8)  # a rollout is finished, starts are counted
    how: dict[str, Any] = {"n_steps": 1024, "batch_size": 256, "n_epochs": 6, "gamma": 0.98, "learning_rate": 1e-3}
    return PPO("MlpPolicy", env, seed=word, device="cpu", **how).learn(max(1024, most // 1024 * 1024))


def _origin(env: Any) -> Floats:
    return np.zeros((_scores(env.action_space), int(np.prod(env.observation_space.shape)) + 1))


def _directions(uniforms: Floats, agent: LinearAgent) -> Floats:
    return _normals(uniforms).reshape(-1, *agent.weights.shape)


def _pairs(env: Any, agent: LinearAgent, tried: Floats, noise: float, episodes: int) -> Floats:
    """(directions, 2): mean returns of a step in each direction and in its opposite."""

    def mean(weights: Floats) -> float:
        return float(np.mean([play_episode(env, agent._replace(weights=weights)) for _ in range(episodes)]))

    return np.array([[mean(agent.weights + sign * noise * way) for sign in (1.0, -1.0)] for way in tried])


def _moved(agent: LinearAgent, tried: Floats, gain: Floats, step: float) -> LinearAgent:
    return agent._replace(weights=agent.weights + step / len(gain) * np.tensordot(gain, tried, 1))


def _random_episode(env: Any, uniforms: Floats, actions: int) -> list[tuple[Any, int, float, Any, bool]]:
    rows, (seen, _) = [], env.reset()
    for u in uniforms:
        action = int(u * actions)
        after, paid, ended, truncated, _ = env.step(action + int(env.action_space.start))
        rows.append((np.ravel(seen), action, float(paid), np.ravel(after), bool(ended)))
        seen = after
        if ended or truncated:
            break
    return rows


class _Trainer(NamedTuple):
    """How a baseline is run, and a line about it."""

    train: Callable[..., Any]
    replicable: bool
    source: str
    description: str

    @property
    def options(self) -> dict[str, Any]:
        """Name → default."""
        own = [p for p in inspect.signature(self.train).parameters.values() if p.kind is p.KEYWORD_ONLY]
        return {p.name: p.default for p in own} | {"samples": None}


_TRAINERS = {
    "ars": _Trainer(ars, False, "Mania, Guy, Recht 2018", "random search over linear policies, directions of its own"),
    "replicable-ars": _Trainer(
        replicable_ars, True, "this package, after Mania et al.", "ARS with shared directions and rounded differences"
    ),
    "cem": _Trainer(cem, False, "Rubinstein 1999", "cross-entropy method over linear policies"),
    "rounded-fqi": _Trainer(
        rounded_fqi, True, "arXiv:2509.08660", "fitted Q-iteration with weights rounded to shared grids"
    ),
    "ppo": _Trainer(ppo, False, "Stable-Baselines3", "PPO with a shared seed of its own; needs the extra agents"),
}


def box_learners() -> list[LearnerEntry]:
    """Return the baselines for environments that observe a Box, by name, with their options and defaults."""
    return [
        LearnerEntry(name, each.description, ("box",), each.replicable, each.source, MappingProxyType(each.options))
        for name, each in _TRAINERS.items()
    ]


def is_box_learner(name: object) -> bool:
    """Whether something is the name of such a baseline."""
    return isinstance(name, str) and name in _TRAINERS


def box_learner(name: str, **options: Any) -> EnvLearner:
    """Return a baseline by its name, with options of its own and `samples`, its budget."""
    if name not in _TRAINERS:
        raise InputError(f"learner must be one of {', '.join(_TRAINERS)}; got {quote(name)}{hint(name, _TRAINERS)}")
    allowed = _TRAINERS[name].options
    for option in options:
        check_option(name, option, allowed)
    samples = options.pop("samples", None)
    return env_learner(_TRAINERS[name].train, samples=samples, **options)

"""Trials: episodes of one policy, numbered, and what each earns. Dynamics in memory, or a black box."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from reprl.errors import InputError, ReprlError, blame, quote
from reprl.execution.pool import WorkerPool
from reprl.execution.settings import Execution
from reprl.learning.adapters import Agent, policy_of
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream
from reprl.sources.black_box import seeds
from reprl.sources.environment import describe
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel
from reprl.sources.protocol import Ledger
from reprl.sources.returns import Played, Range, ReturnModel, read_played, write_played
from reprl.storage.checkpoints import Checkpoint, Kept, open_checkpoint

Floats = np.ndarray[Any, np.dtype[np.float64]]
World = TabularMDP | GymnasiumModel | ReturnModel
_PURPOSE = "confirm"
_ROUND = 1e-9
"""How far outside its bounds a return may be by rounding, as a share of their distance."""


class Trial(Protocol):
    """A policy in an environment."""

    title: str
    digest: str
    """Of the environment."""
    horizon: int
    samples_per_episode: int
    """At most."""
    bounds: Range
    """Of a return, in the rewards' own units."""
    ledger: Ledger

    def returns(self, first: int, count: int) -> Floats:
        """Return what episodes first, …, first + count − 1 earn, in the rewards' own units."""


@contextmanager
def open_trial(
    policy: Any,
    world: World,
    data_seed: int,
    bounds: Range | None,
    execution: Execution,
    folder: str | os.PathLike[str] | None,
    work: Mapping[str, Any],
) -> Iterator[Trial]:
    """Open an environment with a data seed and an empty ledger; close what was opened for it.

    bounds are those of a return, where they are known better than rewards and horizon tell; work is every setting on
    which a batch depends, besides the environment and the data seed.
    """
    if isinstance(world, TabularMDP):
        if execution.timeout is not None:
            raise InputError(f"timeout must be None where dynamics are known, got {quote(execution.timeout)}")
        yield TableTrial(policy, world, data_seed, bounds)
        return
    model = world.for_run(data_seed)
    model.timeout = execution.timeout
    settings = {**work, "environment": model.digest, "data_seed": data_seed}
    try:
        agent = _fitting(policy, model)
        bounds = _bounds(model) if bounds is None else bounds
        with open_checkpoint(folder, settings) as kept, WorkerPool(model, execution.workers, kept) as pool:
            yield BoxTrial(model, agent, bounds, pool)
    finally:
        if model.reopens:
            model.env.close()


class TableTrial:
    """Episodes of an MDP in memory, by a kernel.

    Randomness:
        Episode k is the one that ``EpisodicModel.reset(k)`` names.
    """

    def __init__(self, policy: Any, mdp: TabularMDP, data_seed: int, bounds: Range | None = None) -> None:
        mdp.criterion.require_horizon("env must have a horizon (env.truncated(steps) has one)")
        self._model, self._map = EpisodicModel(mdp, data_seed), mdp.labels.reward_map
        try:
            self._policy = policy_of(policy, self._model)
        except ReprlError:
            raise
        except (Exception, SystemExit) as error:
            blame(error, f"in the policy, asked for its actions in {mdp}")
        self.title, self.digest = describe(mdp).title, mdp.digest
        self.horizon, self.ledger = self._model.horizon, self._model.ledger
        self.samples_per_episode = self._model.samples_per_episode
        self.bounds = bounds or Range(*(self._map.restore(end, self.horizon) for end in (0.0, float(self.horizon))))

    def returns(self, first: int, count: int) -> Floats:
        """Return what episodes earn."""
        low, high = self._map
        found: Floats = self.horizon * low + (high - low) * self._model.returns(self._policy, first, count)
        return _inside(found, self.bounds, first)


class BoxTrial:
    """Episodes of a black box, by a worker pool; finished batches are kept.

    Randomness:
        Word k of data stream (data seed, "confirm") seeds episode k.
    """

    def __init__(self, model: GymnasiumModel | ReturnModel, agent: Agent, bounds: Range, pool: WorkerPool) -> None:
        self._model, self._agent, self._pool, self.bounds = model, agent, pool, bounds
        self.title = model.labels.name if isinstance(model, GymnasiumModel) else model.title
        self.digest, self.horizon, self.ledger = model.digest, model.horizon, model.ledger
        self.samples_per_episode = model.horizon + 1

    def returns(self, first: int, count: int) -> Floats:
        """Return what episodes earn."""
        kept: Checkpoint | None = self._pool.checkpoint
        if kept is None:
            return self._play(first, count).returns
        store = Kept(kept, "", write_played, read_played)
        found = store.get(f"{first}+{count}")
        if found is None:
            found = self._play(first, count)
            store.put(f"{first}+{count}", found)
        else:
            self.ledger.episodes += count
            self.ledger.samples += found.samples
        return found.returns

    def _play(self, first: int, count: int) -> Played:
        before, key = self.ledger.samples, DataStream(self._model.data_seed, _PURPOSE).key
        shares = [first + count * w // self._pool.workers for w in range(self._pool.workers + 1)]
        parts = [(self._agent, key, range(*edges)) for edges in pairwise(shares) if edges[0] < edges[1]]
        returns = np.concatenate(self._pool.work(play_returns, parts, count))
        return Played(_inside(returns, self.bounds, first), self.ledger.samples - before)


def _inside(returns: Floats, bounds: Range, first: int) -> Floats:
    """Return the returns of successive episodes if they are within their bounds, up to rounding."""
    low, high = bounds
    air = _ROUND * (high - low)
    outside = np.flatnonzero((returns < low - air) | (returns > high + air))
    if outside.size:
        where = f"{returns[outside[0]]:g} in episode {first + int(outside[0])}"
        raise InputError(f"returns must lie in return_range [{low:g}, {high:g}], got {where}: give a wider one")
    inside: Floats = np.clip(returns, low, high)
    return inside


def play_returns(
    model: GymnasiumModel | ReturnModel,
    agent: Agent,
    key: int,
    numbers: range,
    after_episode: Callable[[], None] | None,
) -> Floats:
    """Play some episodes one after the other and return what each earns; a job of a worker pool."""
    returns = np.empty(len(numbers))
    for i, (number, seed) in enumerate(zip(numbers, seeds(key, 0, numbers), strict=True)):
        try:
            returns[i] = _episode(model, agent, seed)
        except ReprlError as error:
            raise type(error)(f"{error} (episode {number})") from None
        if after_episode is not None:
            after_episode()
    return returns


def _episode(model: GymnasiumModel | ReturnModel, agent: Agent, seed: int) -> float:
    env, ledger, total = model.env, model.ledger, 0.0
    low, high = _reward_bounds(model)
    seen, _ = _call(env, "reset", seed=seed)
    ledger.episodes += 1
    ledger.samples += 1
    for step in range(model.horizon):
        try:
            action = agent.act(seen, step)
        except ReprlError as error:
            raise InputError(f"policy must fit the environment {quote(env)}: {error}") from None
        except (Exception, SystemExit) as error:
            blame(error, f"in the policy, at step {step} of {env}")
        if step == 0 and not env.action_space.contains(action):
            raise InputError(f"policy must return a member of {env.action_space}, got {quote(action)}")
        seen, paid, ended, truncated, _ = _call(env, "step", action)
        ledger.samples += 1
        reward = _number(paid)
        if not low <= reward <= high:
            raise InputError(f"reward must be a number from {low:g} to {high:g} at step {step}, got {quote(paid)}")
        total += reward
        if ended or truncated:
            break
    return total


def _reward_bounds(model: GymnasiumModel | ReturnModel) -> tuple[float, float]:
    bounds = model.reward_map if isinstance(model, GymnasiumModel) else model.reward_range
    return (-1e300, 1e300) if bounds is None else (bounds[0], bounds[1])


def _number(paid: Any) -> float:
    try:
        return float(paid)
    except (TypeError, ValueError):
        return math.nan


def _call(env: Any, name: str, *args: Any, **named: Any) -> Any:
    try:
        return getattr(env, name)(*args, **named)
    except (Exception, SystemExit) as error:
        blame(error, f"in {name} of {env}")


def _bounds(model: GymnasiumModel | ReturnModel) -> Range:
    """Bounds of a return."""
    if isinstance(model, GymnasiumModel):
        model.criterion.require_horizon("env must have a horizon")
        return Range(model.horizon * model.reward_map.low, model.horizon * model.reward_map.high)
    if model.return_range is None:
        raise InputError(
            f"return_range must be given as (low, high), or reward_range, for {model.title}: its rewards have no known "
            "bounds, and without them nothing can be certified"
        )
    return model.return_range


def _fitting(policy: Any, model: GymnasiumModel | ReturnModel) -> Agent:
    """Return what acts, if the spaces that it declares are the environment's."""
    if isinstance(model, ReturnModel) and model.is_vector:
        raise InputError(f"env must be a single environment, got {quote(model.env)}")
    table = isinstance(policy, Policy)
    known = policy.interface if table else None
    own: dict[str, Any] = {name: getattr(policy, name, None) for name in _SPACES if not table}
    if known is not None and known.observation is not None and known.action is not None:
        from reprl.mdp.spaces import read_space

        own = dict(zip(_SPACES, map(read_space, _SPACES, (known.observation, known.action)), strict=True))
    for name, space in own.items():
        if space is not None and space != getattr(model.env, name):
            raise InputError(f"policy must fit the environment, with {name} {getattr(model.env, name)}, got {space}")
    return Agent(policy)


_SPACES = ("observation_space", "action_space")

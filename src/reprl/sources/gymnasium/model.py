"""Gymnasium in and out: exact dynamics where they are published, a black box elsewhere, and any TabularMDP as an env.

Gymnasium itself is imported when one of these functions first needs it, never by ``import reprl``.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, ReprlError, blame, check_int, quote
from reprl.mdp.criterion import Criterion
from reprl.mdp.labels import Labels, Origin, RewardMap
from reprl.mdp.policy import Policy, check_policy
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream, fresh_seed
from reprl.sources.gymnasium.published import dynamics, publishes, reward_hull
from reprl.sources.protocol import Ledger, Observation

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.envs.registration import EnvSpec

    from reprl.sources.gymnasium.tabular_env import TabularEnv

    Source: TypeAlias = str | EnvSpec | Callable[[], gymnasium.Env[Any, Any]] | gymnasium.Env[Any, Any]

_MAX_NAMES = 100_000
_MAX_REWARDS = 4096
REWARD_STEP = 2.0**-20
"""Rescaled rewards of a black box are rounded to multiples of this, so that a table of outcomes stays finite."""


def make_gymnasium(
    env: Source,
    horizon: int | None = None,
    *,
    reward_range: tuple[float, float] | None = None,
    data_seed: int | None = None,
    opened: gymnasium.Env[Any, Any] | None = None,
    **env_options: Any,
) -> TabularMDP | GymnasiumModel:
    """Take a Gymnasium environment in: a TabularMDP if it publishes its dynamics, else a GymnasiumModel.

    Args:
        env: a Gymnasium id, a factory, or an environment.
        horizon: H, needed.
        reward_range: (low, high) in original units; needed for a black box, else read from the dynamics.
        data_seed: private seed of a black box; a TabularMDP draws no samples by itself.
        opened: env, where it is open already.
        env_options: passed on to ``gymnasium.make`` with an id.
    """
    _check_horizon(horizon)
    opened = open_env(env, env_options) if opened is None else open_env(opened, {})
    if not publishes(opened):
        ranges: dict[str, Any] = {"reward_range": reward_range, "data_seed": data_seed}
        return GymnasiumModel(env, horizon, opened=opened, **ranges, **env_options)
    if opened is not env:
        opened.close()
    if data_seed is not None:
        name = env if isinstance(env, str) else opened
        raise InputError(
            f"data_seed must not be given for {name}, which publishes its dynamics; got {quote(data_seed)}"
        )
    return _read(opened, horizon, reward_range)


def from_gymnasium(
    env: Source, horizon: int | None = None, *, reward_range: tuple[float, float] | None = None, **env_options: Any
) -> TabularMDP:
    """Read the exact dynamics of an environment that publishes them (``P`` and ``initial_state_distrib``).

    Args:
        env: a Gymnasium id, a factory, or an environment with no wrappers but Gymnasium's own checks and time limit.
        horizon: H, needed; the environment's own time limit is not part of its dynamics.
        reward_range: (low, high) in original units that is mapped to [0, 1]; None for the range of published rewards.
        env_options: passed on to ``gymnasium.make`` with an id.

    Guarantee:
        Values agree with the published dynamics: ``mdp.labels.reward_map.restore(value, horizon)`` is the expected
        return of the first H steps. If one successor is reached with several rewards, which no (S, A, S') table of
        fixed rewards can hold, rewards are drawn 0 or 1 with the right mean (``reward_kind`` says so).
    """
    _check_horizon(horizon)
    opened = open_env(env, env_options)
    if not publishes(opened):
        raise InputError(f"environment must publish its dynamics as P and initial_state_distrib, got {quote(opened)}")
    return _read(opened, horizon, reward_range)


def to_gymnasium(mdp: TabularMDP, data_seed: int | None = None) -> TabularEnv:
    """Return a Gymnasium environment that plays an MDP; see TabularEnv for what it observes and how it ends."""
    from reprl.sources.gymnasium.tabular_env import TabularEnv

    if not isinstance(mdp, TabularMDP):
        raise InputError(f"mdp must be a reprl.TabularMDP, got {quote(mdp)}")
    return TabularEnv(mdp, data_seed)


class Played(NamedTuple):
    """Episodes of a policy in a black box."""

    returns: NDArray[np.float64]
    """(n,), rescaled."""
    visits: NDArray[np.int64]
    """(H, S), or (1, S) if discounted: how often they came to each cell; never to "ended", where nothing is decided."""


class GymnasiumModel:
    """A Gymnasium environment with finite spaces, explored by episodes of exactly H steps.

    States and actions are numbered as ``reprl.mdp.spaces`` says; one more state, the last, is "ended": where
    the environment terminates, the rest of the episode stays there, pays 0 in original units and counts no samples.

    Args:
        env: a Gymnasium id, a factory, or an environment. With an id the registered time limit is lifted, because the
            horizon takes its place; an environment that truncates an episode before the horizon by itself is an error.
        horizon: H, needed.
        reward_range: (low, high) in original units, mapped to [0, 1]; it must contain 0, which an ended episode pays.
            Needed unless the environment publishes it (``reward_range`` or ``P``).
        data_seed: private seed of the samples; None draws one.
        opened: env, where it is open already.
        env_options: passed on to ``gymnasium.make`` with an id.

    Guarantee:
        Rewards are rescaled by ``reward_map`` and rounded to multiples of 2**-20 (an error of at most 2**-21 a step).
        Episode k is a function of (data seed, k, actions), if the environment's is of its seed and actions.
        The ledger counts one sample a step that is taken and one a start, which may be random.

    Randomness:
        Data stream (data_seed, "gymnasium", k) gives the 63-bit seed of the k-th reset. Exploration addresses its
        resets by batch, run and episode instead.
    """

    origin: Origin | None = None
    """Set by ``make``."""
    arrays: None = None
    """No kernel can play a black box."""
    stationary: None = None
    """Nobody has said whether the law depends on the step: a run takes it not to, until its own samples say so."""
    timeout: float | None = None
    """Seconds that an episode may take; then a worker pool plays it in another process. Set by ``learn``."""

    def __init__(
        self,
        env: Source,
        horizon: int | None = None,
        *,
        reward_range: tuple[float, float] | None = None,
        data_seed: int | None = None,
        opened: gymnasium.Env[Any, Any] | None = None,
        **env_options: Any,
    ) -> None:
        """Open the environment and number its spaces; no episode begins yet."""
        self.horizon = _check_horizon(horizon)
        self.criterion = Criterion(self.horizon)
        """Finite horizon, or discounted; the horizon is then the length of episodes. See ``discounted``."""
        self.data_seed = check_int("data seed", fresh_seed() if data_seed is None else data_seed, 0, 2**64 - 1)
        self.env = open_env(env, env_options) if opened is None else opened
        from reprl.mdp.spaces import MAX_SIZE, Codec

        self.observations = Codec(self.env.observation_space, "observation")
        self.actions = Codec(self.env.action_space, "action")
        self.ended = check_int("number of observations", self.observations.size, 1, MAX_SIZE - 1)
        self.n_states, self.n_actions = self.ended + 1, self.actions.size
        self.reward_map = _declared_range(self.env, reward_range)
        self.ledger = Ledger()
        self._source, self._options = env, env_options
        self._h, self._state, self._episode, self._batches = self.horizon, -1, -1, 0
        self._nothing, self._rewards = self._scaled(0.0), dict[float, float]()

    @property
    def discount(self) -> float | None:
        """γ; None where there is a horizon."""
        return self.criterion.discount

    @property
    def samples_per_episode(self) -> int:
        """Samples of a full episode: H, and one for the start."""
        return self.horizon + 1

    @property
    def known(self) -> dict[int, float]:
        """The states whose law needs no sample, and what every action pays there: "ended" stays ended and pays 0."""
        return {self.ended: self._scaled(0.0)}

    @property
    def reopens(self) -> bool:
        """Whether the environment can be opened again: it came by an id or a factory, not open already."""
        return self._source is not self.env

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what is declared: horizon, spaces, reward range, and the registered id and its options."""
        spec = self.env.spec
        fields = {
            "horizon": self.horizon,
            "spaces": [repr(self.env.observation_space), repr(self.env.action_space)],
            "sizes": [self.n_states, self.n_actions],
            "reward_range": list(self.reward_map),
            "id": None if spec is None else spec.id,
            "options": None if spec is None else spec.kwargs,
            **self.criterion.keywords[1],
        }
        text = json.dumps(fields, sort_keys=True, default=lambda part: getattr(part, "digest", type(part).__qualname__))
        return hashlib.sha256(b"reprl-black-box 1\n" + text.encode()).hexdigest()

    @cached_property
    def labels(self) -> Labels:
        """Names read off the spaces, unless there are too many to read."""
        spec = self.env.spec
        name = type(self.env.unwrapped).__name__ if spec is None else f"gym:{spec.id}"
        name = name if self.origin is None else self.origin.id
        if max(self.n_states, self.n_actions) > _MAX_NAMES:
            return Labels(name=name)
        states = (*(str(self.observations.decode(s)) for s in range(self.ended)), "ended")
        actions = tuple(str(self.actions.decode(a)) for a in range(self.n_actions))
        return Labels(name=name, states=states, actions=actions)

    def discounted(self, discount: float, length: int | None = None) -> GymnasiumModel:
        """Return the same environment without an end: a reward counts γ times what it would a step earlier.

        Args:
            discount: γ.
            length: steps of an episode; None for the horizon.
        """
        self.criterion.require_horizon("a model must have a horizon to be discounted")
        steps = self.horizon if length is None else check_int("length", length, 1, 10**6)
        how = (self._options, self.origin, Criterion.of(1, discount))
        made = _rebuild(self._source, steps, self.reward_map, self.data_seed, *how)
        made.timeout = self.timeout
        return made

    def with_data_seed(self, data_seed: int | None = None) -> GymnasiumModel:
        """Return the same environment, opened anew, with other samples and an empty ledger."""
        if not self.reopens:
            raise InputError(f"a model must be built from an id or a factory to be opened again, got {quote(self.env)}")
        return self.for_run(data_seed)

    def for_run(self, data_seed: int | None = None) -> GymnasiumModel:
        """Return a model as ``with_data_seed`` does, or one that shares an environment which cannot be opened again."""
        seed = fresh_seed() if data_seed is None else data_seed
        how = (self._options, self.origin, self.criterion)
        model = _rebuild(self._source, self.horizon, self.reward_map, seed, *how)
        model.timeout = self.timeout
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what opens the environment again; an id travels as what it is registered as, here."""
        if not self.reopens:
            raise InputError(f"a model must be built from an id or a factory to be opened again, got {quote(self.env)}")
        by_id = isinstance(self._source, str)
        source, options = (self.env.spec, {}) if by_id else (self._source, self._options)
        return _rebuild, (source, self.horizon, self.reward_map, self.data_seed, options, self.origin, self.criterion)

    def fresh_stream(self, purpose: str) -> DataStream:
        """Return a data stream that no earlier batch of this model has read."""
        self._batches += 1
        return DataStream(self.data_seed, f"{purpose}/{self._batches}")

    def reset(self, seed: int | None = None) -> int:
        """Begin an episode and return its first state; an unfinished episode is abandoned.

        Args:
            seed: what the environment is seeded with; None takes the seed of the model's next episode.
        """
        if seed is None:
            self._episode += 1
            seed = int(DataStream(self.data_seed, "gymnasium", self._episode).integers(1)[0]) >> 1
        self._h = 0
        try:
            member, _ = self.env.reset(seed=seed)
        except (Exception, SystemExit) as error:
            blame(error, f"in reset of {self.env}")
        self._state = self._seen(member)
        self.ledger.episodes += 1
        self.ledger.samples += 1
        return self._state

    def step(self, action: int) -> Observation:
        """Take an action in the current state and return what is seen."""
        if self._h >= self.horizon:
            raise InputError(f"step needs an episode in progress: call reset first (horizon {self.horizon})")
        a = check_int("action", action, 0, self.n_actions - 1)
        if self._state == self.ended:
            self._h += 1
            return Observation(self._state, self._nothing, self._h == self.horizon)
        reward = self._advance(a)
        return Observation(self._state, reward, self._h == self.horizon)

    def tally_episode(
        self,
        plan: list[list[int | list[float]]],
        seed: int,
        units: list[float],
        records: dict[tuple[int, int, float], int],
    ) -> int:
        """Play the episode of a seed until it is over, add what it shows to records, and return its first state.

        Args:
            plan: H lists of S actions, or running sums of laws of actions, which nobody checks.
            seed: as of ``reset``.
            units: H numbers in [0, 1], which draw actions from their laws.
            records: how often (cell, next state, reward) was seen, cell = (h·S + s)·A + a.
        """
        start = state = self.reset(seed)
        advance, ended, n_actions, first = self._advance, self.ended, self.n_actions, 0
        width, count = self.n_states * n_actions, records.get
        for row, unit in zip(plan, units, strict=True):
            if state == ended:
                break
            law = row[state]
            action = law if isinstance(law, int) else bisect_right(law, unit)
            reward = advance(action)
            seen = first + state * n_actions + action, self._state, reward
            records[seen] = count(seen, 0) + 1
            state = self._state
            first += width
        return start

    def _advance(self, action: int) -> float:
        """Take an action before the episode is over, move on, and return the reward. This is called once a sample."""
        self._h += 1
        try:
            first = self.actions.first
            taken = self.actions.decode(action) if first is None else first + action
            member, paid, terminated, truncated, _ = self.env.step(taken)
        except (Exception, SystemExit) as error:
            blame(error, f"in step {self._h} of {self.env}")
        self.ledger.samples += 1
        if truncated and not terminated and self._h < self.horizon:
            limit = f"{self.env} truncated an episode at step {self._h}"
            raise InputError(f"{limit}: lift its time limit or take a horizon of at most {self._h}, got {self.horizon}")
        reward = self._rewards.get(paid, -1.0) if type(paid) is float or type(paid) is int else -1.0
        if reward < 0.0:
            reward = self._rescale(paid)
        if terminated:
            self._state = self.ended
        else:
            base = self.observations.first
            quick = base is not None and type(member) is int and 0 <= member - base < self.ended
            self._state = member - base if quick else self._seen(member)
        return reward

    def play(self, policy: Policy, n: int) -> Played:
        """Play the model's next n episodes of a policy; return what each was worth, rescaled, and where it went."""
        returns = np.zeros(check_int("n", n, 1, 10**7))
        visits = np.zeros((self.criterion.rows, self.n_states), dtype=np.int64)
        for episode, h, state, reward in self._play(policy, n):
            visits[h, state] += state != self.ended
            returns[episode] += reward
        return Played(returns, visits)

    def mean_return(self, policy: Policy, n: int) -> float:
        """Return the mean return, or discounted return, of a policy over the model's next n episodes, rescaled."""
        n = check_int("n", n, 1, 2**62)
        total = 0.0
        for _, _, _, reward in self._play(policy, n):
            total += reward
        return total / n

    def _play(self, policy: Policy, n: int) -> Iterator[tuple[int, int, int, float]]:
        """Play the next n episodes: (episode, row of the policy, state, what the reward counts) of every step."""
        actions, factor = check_policy(policy, self).table.tolist(), self.criterion.factor
        for episode in range(n):
            state = self.reset()
            for step in range(self.horizon):
                h = step % len(actions)  # one row is for all steps
                seen = self.step(actions[h][state])
                yield episode, h, state, factor**step * seen.reward
                state = seen.state

    def close(self) -> None:
        """Release what the environment holds."""
        try:
            self.env.close()
        except (Exception, SystemExit) as error:
            blame(error, f"in close of {self.env}")

    def _scaled(self, reward: float) -> float:
        return round(self.reward_map.forward(reward) / REWARD_STEP) * REWARD_STEP

    def _rescale(self, paid: Any) -> float:
        """Check and rescale a reward; the first so many different ones are remembered."""
        reward = self._checked(paid)
        scaled = self._scaled(reward)
        if len(self._rewards) < _MAX_REWARDS:
            self._rewards[reward] = scaled
        return scaled

    def _seen(self, member: Any) -> int:
        try:
            return self.observations.encode(member)
        except ReprlError as error:
            raise type(error)(f"{error} at step {self._h}") from None

    def _checked(self, paid: Any) -> float:
        low, high = self.reward_map
        try:
            reward = float(paid)
        except (TypeError, ValueError):
            reward = math.nan
        if not low <= reward <= high:
            raise InputError(
                f"reward at step {self._h} must lie in reward_range [{low:g}, {high:g}], got {quote(paid)}"
            )
        return reward

    def __repr__(self) -> str:
        """Show the environment and the sizes."""
        sizes = f"{self.criterion.argument}, n_states={self.n_states}, n_actions={self.n_actions}"
        return f"GymnasiumModel({self.env}, {sizes})"


def _rebuild(
    source: Source,
    horizon: int,
    reward_map: RewardMap,
    data_seed: int,
    options: dict[str, Any],
    origin: Origin | None,
    criterion: Criterion,
) -> GymnasiumModel:
    model = GymnasiumModel(source, horizon, reward_range=reward_map, data_seed=data_seed, **options)
    model.origin, model.criterion = origin, criterion
    return model


def _check_horizon(horizon: int | None) -> int:
    if horizon is None:
        raise InputError("horizon must be given for a Gymnasium environment, got None")
    return check_int("horizon", horizon, 1, 10**6)


def would_import(id: str) -> str | None:
    """Return the module that opening a Gymnasium id would import here; None if it is Gymnasium's own or here already.

    An id may name a module, as in "module:Name-v0"; any other is looked up among those that are registered here.
    """
    module, colon, name = id.removeprefix("gym:").partition(":")
    if colon:
        return None if module in sys.modules else module
    import gymnasium

    name = module
    for spec in gymnasium.registry.values():
        if (spec.id == name or spec.id.rpartition("-v")[0] == name) and isinstance(spec.entry_point, str):
            module = spec.entry_point.partition(":")[0]
            if module.partition(".")[0] != "gymnasium" and module not in sys.modules:
                return module
    return None


def open_env(source: Any, options: Mapping[str, Any], *, vector: bool = False) -> Any:
    """Return the environment that an id (its time limit lifted), a factory or an environment stands for.

    Args:
        source: what a user gives.
        options: passed on to ``gymnasium.make`` with an id.
        vector: whether it may be a gymnasium.vector.VectorEnv.

    What an environment raises as it is made comes through, marked as not ours.
    """
    import gymnasium

    if isinstance(source, str | gymnasium.envs.registration.EnvSpec):
        try:
            if not isinstance(source, str):
                return gymnasium.make(source, **options)
            return gymnasium.make(source.removeprefix("gym:"), **{"max_episode_steps": -1, **options})
        except (gymnasium.error.Error, TypeError, ValueError, KeyError, AttributeError, ImportError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"gymnasium must be able to make {quote(source)} with these options: {reason}") from None
        except (Exception, SystemExit) as error:
            blame(error, f"in gymnasium.make of {quote(source)}")
    if options:
        raise InputError(f"environment options must come with a Gymnasium id, got {quote(options)}")
    kinds = (gymnasium.Env, gymnasium.vector.VectorEnv) if vector else (gymnasium.Env,)
    if isinstance(source, kinds):
        return source
    if not callable(source):
        raise InputError(f"environment must be a Gymnasium id, a factory or a gymnasium.Env, got {quote(source)}")
    try:
        env = source()
    except ReprlError:
        raise
    except (Exception, SystemExit) as error:
        blame(error, f"in the factory {quote(source)}")
    if not isinstance(env, kinds):
        raise InputError(f"the factory {quote(source)} must return a gymnasium.Env, got {quote(env)}")
    return env


def _read(env: gymnasium.Env[Any, Any], horizon: int | None, bounds: tuple[float, float] | None) -> TabularMDP:
    return dynamics(env, _check_horizon(horizon), None if bounds is None else check_range(bounds))


def check_range(bounds: Any) -> RewardMap:
    """Return (low, high) as a reward map; the range must be finite, rising, and contain 0."""
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(high - low) and low < high and low <= 0.0 <= high):
        raise InputError(f"reward_range must be (low, high) with low ≤ 0 ≤ high and low < high, got {quote(bounds)}")
    return RewardMap(low, high)


def _declared_range(env: gymnasium.Env[Any, Any], bounds: Any) -> RewardMap:
    """The range that the user gives, or else the one that the environment is known to keep."""
    if bounds is not None:
        return check_range(bounds)
    if publishes(env):
        return reward_hull(env)
    known = getattr(env.unwrapped, "reward_range", None)
    if not isinstance(known, tuple) or len(known) != 2:
        raise InputError(
            "reward_range must be given as (low, high) for an environment that does not publish it, got None "
            "(--reward-range LOW HIGH)"
        )
    return check_range((min(0.0, known[0]), max(0.0, known[1])))

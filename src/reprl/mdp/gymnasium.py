"""Gymnasium in and out: exact dynamics where they are published, a black box elsewhere, and any TabularMDP as an env.

Gymnasium itself is imported when one of these functions first needs it, never by ``import reprl``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from reprl.errors import ReprlError, check_int, quote
from reprl.mdp.access import Ledger, Observation
from reprl.mdp.published import dynamics, publishes, reward_hull
from reprl.mdp.tabular import RewardMap, TabularMDP
from reprl.randomness import DataStream, fresh_seed

if TYPE_CHECKING:
    import gymnasium

    from reprl.mdp.export import TabularEnv

    Source: TypeAlias = str | Callable[[], gymnasium.Env[Any, Any]] | gymnasium.Env[Any, Any]

REWARD_STEP = 2.0**-20
"""Rescaled rewards of a black box are rounded to multiples of this, so that a table of outcomes stays finite."""


def make_gymnasium(
    id: str,
    horizon: int | None = None,
    *,
    reward_range: tuple[float, float] | None = None,
    data_seed: int | None = None,
    **env_options: Any,
) -> TabularMDP | GymnasiumModel:
    """Build a Gymnasium environment by its id: a TabularMDP if it publishes its dynamics, else a GymnasiumModel.

    Args:
        id: a Gymnasium id, without "gym:".
        horizon: H, needed.
        reward_range: (low, high) in original units; needed for a black box, else read from the dynamics.
        data_seed: private seed of a black box; a TabularMDP draws no samples by itself.
        env_options: passed on to ``gymnasium.make``.
    """
    _check_horizon(horizon)
    env = _open(id, env_options)
    if not publishes(env):
        env.close()
        return GymnasiumModel(id, horizon, reward_range=reward_range, data_seed=data_seed, **env_options)
    if data_seed is not None:
        env.close()
        raise ReprlError(f"data_seed must not be given for {id}, which publishes its dynamics; got {quote(data_seed)}")
    return _read(env, horizon, reward_range)


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
    opened = _open(env, env_options)
    if not publishes(opened):
        raise ReprlError(f"environment must publish its dynamics as P and initial_state_distrib, got {quote(opened)}")
    return _read(opened, horizon, reward_range)


def to_gymnasium(mdp: TabularMDP, data_seed: int | None = None) -> TabularEnv:
    """Return a Gymnasium environment that plays an MDP; see TabularEnv for what it observes and how it ends."""
    from reprl.mdp.export import TabularEnv

    if not isinstance(mdp, TabularMDP):
        raise ReprlError(f"mdp must be a reprl.TabularMDP, got {quote(mdp)}")
    return TabularEnv(mdp, data_seed)


class GymnasiumModel:
    """A Gymnasium environment with finite spaces, explored by episodes of exactly H steps.

    States and actions are numbered as ``reprl.mdp.spaces`` says; one more state, the last, is "ended": where the
    environment terminates, the rest of the episode stays there, pays 0 in original units and counts no samples.

    Args:
        env: a Gymnasium id, a factory, or an environment. With an id the registered time limit is lifted, because the
            horizon takes its place; an environment that truncates an episode before the horizon by itself is an error.
        horizon: H, needed.
        reward_range: (low, high) in original units, mapped to [0, 1]; it must contain 0, which an ended episode pays.
            Needed unless the environment publishes it (``reward_range`` or ``P``).
        data_seed: private seed of the samples; None draws one.
        env_options: passed on to ``gymnasium.make`` with an id.

    Guarantee:
        Rewards are rescaled by ``reward_map`` and rounded to multiples of 2**-20 (an error of at most 2**-21 a step).
        Episode k is a function of (data seed, k, actions), if the environment's is of its seed and actions.
        The ledger counts one sample a step that is taken and one a start, which may be random.

    Randomness:
        Data stream (data_seed, "gymnasium", k) gives the 63-bit seed of the k-th reset.
    """

    def __init__(
        self,
        env: Source,
        horizon: int | None = None,
        *,
        reward_range: tuple[float, float] | None = None,
        data_seed: int | None = None,
        **env_options: Any,
    ) -> None:
        """Open the environment and number its spaces; no episode begins yet."""
        self.horizon = _check_horizon(horizon)
        self.data_seed = check_int("data seed", fresh_seed() if data_seed is None else data_seed, 0, 2**64 - 1)
        self.env = _open(env, env_options)
        from reprl.mdp.spaces import MAX_SIZE, Codec

        self.observations = Codec(self.env.observation_space, "observation")
        self.actions = Codec(self.env.action_space, "action")
        self.ended = check_int("number of observations", self.observations.size, 1, MAX_SIZE - 1)
        self.n_states, self.n_actions = self.ended + 1, self.actions.size
        self.reward_map = _declared_range(self.env, reward_range)
        self.ledger = Ledger()
        self._source, self._options = env, env_options
        self._h, self._state, self._episode = self.horizon, -1, -1

    def with_data_seed(self, data_seed: int | None = None) -> GymnasiumModel:
        """Return the same environment, opened anew, with other samples and an empty ledger."""
        if self._source is self.env:
            raise ReprlError(f"a model must be built from an id or a factory to be opened again, got {quote(self.env)}")
        return GymnasiumModel(
            self._source, self.horizon, reward_range=self.reward_map, data_seed=data_seed, **self._options
        )

    def reset(self) -> int:
        """Begin an episode and return its first state; an unfinished episode is abandoned."""
        self._episode += 1
        word = DataStream(self.data_seed, "gymnasium", self._episode).integers(1)[0]
        member, _ = self.env.reset(seed=int(word) >> 1)
        self._h, self._state = 0, self.observations.encode(member)
        self.ledger.episodes += 1
        self.ledger.samples += 1
        return self._state

    def step(self, action: int) -> Observation:
        """Take an action in the current state and return what is seen."""
        if self._h >= self.horizon:
            raise ReprlError(f"step needs an episode in progress: call reset first (horizon {self.horizon})")
        a = check_int("action", action, 0, self.n_actions - 1)
        reward = 0.0
        self._h += 1
        if self._state != self.ended:
            member, paid, terminated, truncated, _ = self.env.step(self.actions.decode(a))
            self.ledger.samples += 1
            if truncated and not terminated and self._h < self.horizon:
                limit = f"{self.env} truncated an episode at step {self._h}"
                raise ReprlError(
                    f"{limit}: lift its time limit or take a horizon of at most {self._h}, got {self.horizon}"
                )
            reward = self._checked(paid)
            self._state = self.ended if terminated else self.observations.encode(member)
        scaled = round(self.reward_map.forward(reward) / REWARD_STEP) * REWARD_STEP
        return Observation(self._state, scaled, self._h == self.horizon)

    def close(self) -> None:
        """Release what the environment holds."""
        self.env.close()

    def _checked(self, paid: Any) -> float:
        low, high = self.reward_map
        try:
            reward = float(paid)
        except (TypeError, ValueError):
            reward = math.nan
        if not low <= reward <= high:
            raise ReprlError(
                f"reward at step {self._h} must lie in reward_range [{low:g}, {high:g}], got {quote(paid)}"
            )
        return reward

    def __repr__(self) -> str:
        """Show the environment and the sizes."""
        sizes = f"horizon={self.horizon}, n_states={self.n_states}, n_actions={self.n_actions}"
        return f"GymnasiumModel({self.env}, {sizes})"


def _check_horizon(horizon: int | None) -> int:
    if horizon is None:
        raise ReprlError("horizon must be given for a Gymnasium environment, got None")
    return check_int("horizon", horizon, 1, 10**6)


def _open(source: Any, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """Return the environment that a source names, makes or is."""
    import gymnasium

    if isinstance(source, str):
        try:
            return gymnasium.make(source.removeprefix("gym:"), **{"max_episode_steps": -1, **options})
        except (gymnasium.error.Error, TypeError, ValueError, KeyError, AttributeError, ImportError) as error:
            reason = " ".join(str(error).split())
            raise ReprlError(f"gymnasium must be able to make {quote(source)} with these options: {reason}") from None
    if options:
        raise ReprlError(f"environment options must come with a Gymnasium id, got {quote(options)}")
    env = source if isinstance(source, gymnasium.Env) else source() if callable(source) else None
    if not isinstance(env, gymnasium.Env):
        raise ReprlError(f"environment must be a Gymnasium id, a factory or a gymnasium.Env, got {quote(source)}")
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
        raise ReprlError(f"reward_range must be (low, high) with low ≤ 0 ≤ high and low < high, got {quote(bounds)}")
    return RewardMap(low, high)


def _declared_range(env: gymnasium.Env[Any, Any], bounds: Any) -> RewardMap:
    """The range that the user gives, or else the one that the environment is known to keep."""
    if bounds is not None:
        return check_range(bounds)
    if publishes(env):
        return reward_hull(env)
    known = getattr(env.unwrapped, "reward_range", None)
    if not isinstance(known, tuple) or len(known) != 2:
        raise ReprlError(
            "reward_range must be given as (low, high) for an environment that does not publish it, got None"
        )
    return check_range((min(0.0, known[0]), max(0.0, known[1])))

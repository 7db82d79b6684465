"""LearnerEnv: a Gymnasium environment as a learner under audit gets it. Importing this module imports Gymnasium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium

from reprl.errors import InputError, check_int, quote
from reprl.mdp.tabular import TabularMDP
from reprl.randomness import DataStream
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel, open_env
from reprl.sources.gymnasium.tabular_env import TabularEnv
from reprl.sources.protocol import Ledger

Env = gymnasium.Env[Any, Any]


class LearnerEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Episodes of at most H steps whose data are private, whose samples are counted and limited.

    A seed that is given to ``reset`` is not obeyed: with it, two runs of an audit would see the same data, and agree
    for no better reason. Rewards and observations are the environment's own.

    Args:
        env: the environment; whoever opened it closes it.
        data_seed: private seed of the samples.
        horizon: H; an episode that gets there is truncated.
        ledger: where samples and episodes are counted; None for a new one.
        samples: the budget; a step beyond it is an error. None for no limit.
        counts: False for an environment that draws from the data seed, and counts into the ledger, by itself.

    Randomness:
        Word 0 of data stream (data_seed, "learner/episode", k) seeds the k-th reset, (data_seed, "learner/actions")
        the sampling of the action space.
    """

    def __init__(
        self,
        env: Env,
        data_seed: int,
        horizon: int,
        *,
        ledger: Ledger | None = None,
        samples: int | None = None,
        counts: bool = True,
    ) -> None:
        super().__init__(env)
        self.horizon, self.samples, self.counts = horizon, samples, counts
        self.ledger = Ledger() if ledger is None else ledger
        self._data_seed, self._episode, self._h = data_seed, -1, horizon
        self.action_space.seed(int(DataStream(data_seed, "learner/actions").integers(1)[0]) >> 33)

    @property
    def samples_left(self) -> int | None:
        """What is left of the budget; None where there is none."""
        return None if self.samples is None else max(0, self.samples - self.ledger.samples)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode of the private stream, whatever the seed."""
        self._check_budget()
        self._episode, self._h = self._episode + 1, 0
        if not self.counts:
            return self.env.reset(options=options)
        word = int(DataStream(self._data_seed, "learner/episode", self._episode).integers(1)[0]) >> 33
        seen = self.env.reset(seed=word, options=options)
        self.ledger.episodes += 1
        self.ledger.samples += 1
        return seen

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action, if the budget has a sample left for it."""
        if self._h >= self.horizon:
            raise InputError(f"step needs an episode in progress: call reset first (horizon {self.horizon})")
        self._check_budget()
        seen, paid, ended, truncated, info = self.env.step(action)
        self._h += 1
        if self.counts:
            self.ledger.samples += 1
        return seen, paid, ended, truncated or self._h >= self.horizon, info

    def _check_budget(self) -> None:
        if self.samples_left == 0:
            raise InputError(
                f"the budget of {self.samples:,} samples is spent: end training when env.samples_left is 0, or take "
                "fewer steps"
            )


def open_world(world: TabularMDP | GymnasiumModel) -> Env:
    """Return the Gymnasium environment behind a world; the caller closes it."""
    if isinstance(world, GymnasiumModel):
        return world.for_run(0).env
    if world.origin is None or not world.origin.id.startswith("gym:"):
        return TabularEnv(world)
    ours = ("reward_range", "discount", "length", "truncated")
    options: dict[str, Any] = {name: value for name, value in world.origin.options.items() if name not in ours}
    return gymnasium.make(world.origin.id.removeprefix("gym:"), **{"max_episode_steps": -1, **options})


@contextmanager
def open_for_learner(model: object, samples: int | None = None) -> Iterator[LearnerEnv]:
    """Open the environment behind a model of episodes, on the model's ledger and data seed.

    Args:
        model: a fresh EpisodicModel or GymnasiumModel. Of an MDP that came from Gymnasium, the environment itself is
            opened; of any other MDP a TabularEnv.
        samples: the budget.
    """
    if isinstance(model, GymnasiumModel):
        yield LearnerEnv(model.env, model.data_seed, model.horizon, ledger=model.ledger, samples=samples)
        return
    if not isinstance(model, EpisodicModel):
        raise InputError(f"a learner of environments needs access='episodic', got {quote(model)}")
    env = open_world(model.mdp)
    own = isinstance(env, TabularEnv)
    if isinstance(env, TabularEnv):
        env.model = model
    try:
        yield LearnerEnv(env, model.data_seed, model.horizon, ledger=model.ledger, samples=samples, counts=not own)
    finally:
        env.close()


class EnvironmentFactory(NamedTuple):
    """Where agents of any kind train and play: any Gymnasium environment, Box spaces included."""

    title: str
    open: Callable[[], Env]
    """Opens it; the caller closes what ``reopens``."""
    horizon: int
    """Steps of an episode, at most."""
    reopens: bool = True

    @classmethod
    def of(cls, env: Any, horizon: int | None = None) -> EnvironmentFactory:
        """Read what a user means.

        Args:
            env: a Gymnasium id, with "gym:" or without; a factory; an environment that is open; or a TabularMDP or a
                GymnasiumModel, which have their horizon.
            horizon: H; None for the time limit that the environment is registered with.
        """
        if isinstance(env, TabularMDP | GymnasiumModel):
            box = isinstance(env, GymnasiumModel) and not env.reopens
            return cls(env.labels.name, lambda: open_world(env), env.horizon, not box)
        name = env.removeprefix("gym:") if isinstance(env, str) else None
        source = env if name is None else (lambda: open_env(name, {}))
        opened = open_env(source, {})
        spec = opened.spec
        if name is not None:
            spec = gymnasium.spec(name)
        limit = horizon if horizon is not None else None if spec is None else spec.max_episode_steps
        title = opened.unwrapped.__class__.__name__ if spec is None else f"gym:{spec.id}"
        if opened is not env:
            opened.close()
        if limit is None:
            raise InputError(f"horizon must be given for an environment without a time limit, got None for {title}")
        return cls(title, lambda: open_env(source, {}), check_int("horizon", limit, 1, 10**6), opened is not env)

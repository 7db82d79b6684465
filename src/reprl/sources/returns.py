"""Returns: a source whose arms are policies and whose samples are returns of whole episodes.

An episode is a function of (data seed, purpose, number): its seed is read at that address. So neither the number of
workers nor that of episodes played side by side can change a return.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from reprl.errors import InputError, check_int, quote
from reprl.execution.pool import WorkerPool
from reprl.mdp.labels import Origin
from reprl.randomness import DataStream, fresh_seed
from reprl.sources.black_box import seeds
from reprl.sources.gymnasium.lanes import EnvLanes, Lanes, VectorLanes
from reprl.sources.gymnasium.model import open_env
from reprl.sources.protocol import Ledger
from reprl.storage.checkpoints import Content, Kept
from reprl.storage.fields import read_fields, whole

Floats = np.ndarray[Any, np.dtype[np.float64]]
WIDTH = 4
"""Copies of an environment that one process steps side by side, so that policies act in batches."""


class Range(NamedTuple):
    """Bounds, low < high, in the environment's own units."""

    low: float
    high: float


class Play(NamedTuple):
    """Episodes of one policy."""

    weights: Floats
    purpose: str
    """Of the data stream that seeds them."""
    first: int
    episodes: int


class ReturnModel:
    """A Gymnasium environment whose episodes are played by policies; only their returns are seen.

    Args:
        source: a Gymnasium id, a factory of a gymnasium.Env or of a gymnasium.vector.VectorEnv, or an open one.
        horizon: steps after which an episode is cut; None for the environment's own time limit.
        reward_range: (low, high) of a reward; None where it is not known.
        return_range: (low, high) of a return; None for what horizon and reward range say.
        data_seed: private seed of the samples; None draws one.
        opened: source, where it is open already.
        options: passed on to ``gymnasium.make`` with an id.

    Guarantee:
        A return is the sum of the rewards of an episode, clipped to the return range where one is given; how often that
        happened is counted. A reward outside the reward range is an error. The ledger counts one sample a step.

    Randomness:
        Word k of data stream (data_seed, purpose) gives the 63-bit seed of episode k.
    """

    timeout: float | None = None
    """Seconds that an episode may take; then a worker pool plays it in another process."""

    def __init__(
        self,
        source: Any,
        horizon: int | None = None,
        *,
        reward_range: Sequence[float] | None = None,
        return_range: Sequence[float] | None = None,
        data_seed: int | None = None,
        opened: Any = None,
        **options: Any,
    ) -> None:
        """Open the environment once, to read its spaces and limits; no episode begins yet."""
        self._given = (source, horizon, reward_range, return_range, options)
        self._source, self._options = source, options
        self.data_seed = check_int("data seed", fresh_seed() if data_seed is None else data_seed, 0, 2**64 - 1)
        self.ledger = Ledger()
        self.clipped = 0
        self.env = open_env(source, options, vector=True) if opened is None else opened
        self.is_vector = hasattr(self.env, "single_observation_space")
        prefix = "single_" if self.is_vector else ""
        self.observation_space = getattr(self.env, f"{prefix}observation_space")
        self.action_space = getattr(self.env, f"{prefix}action_space")
        self.horizon = _time_limit(self.env, horizon, options if isinstance(source, str) else None)
        self.reward_range = _check_range("reward_range", reward_range) or known_rewards(self.env)
        self._clips = return_range is not None
        self.return_range = _check_range("return_range", return_range) or _of_rewards(self.reward_range, self.horizon)
        self._size, self._encode = _encoding(self.observation_space)
        self.origin = Origin(f"gym:{source}", dict(options)) if isinstance(source, str) else None

    @property
    def reopens(self) -> bool:
        """Whether the environment can be opened again: it came by an id or a factory, not open already."""
        return self._source is not self.env

    @property
    def title(self) -> str:
        """What to call it."""
        spec = getattr(self.env, "spec", None)
        return type(self.env.unwrapped).__name__ if spec is None else f"gym:{spec.id}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what is declared: spaces, time limit, ranges, and the registered id and its options."""
        spec = getattr(self.env, "spec", None)
        fields = {
            "horizon": self.horizon,
            "spaces": [repr(self.observation_space), repr(self.action_space)],
            "reward_range": self.reward_range,
            "return_range": self.return_range,
            "id": None if spec is None else spec.id,
            "options": None if spec is None else spec.kwargs,
        }
        text = json.dumps(fields, sort_keys=True, default=lambda part: type(part).__qualname__)
        return hashlib.sha256(b"reprl-returns 1\n" + text.encode()).hexdigest()

    def for_run(self, data_seed: int) -> ReturnModel:
        """Return the same environment with other samples and an empty ledger."""
        source, horizon, rewards, returns, options = self._given
        model = ReturnModel(source, horizon, reward_range=rewards, return_range=returns, data_seed=data_seed, **options)
        model.timeout = self.timeout
        return model

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what opens the environment again."""
        source, horizon, rewards, returns, options = self._given
        if isinstance(source, str) and getattr(self.env, "spec", None) is not None:
            source, horizon, options = self.env.spec, self.horizon, {}
        return _rebuild, (source, horizon, rewards, returns, self.data_seed, options)

    @cached_property
    def _lanes(self) -> Lanes:
        if self.is_vector:
            return VectorLanes(self.env, self._size)
        more = [open_env(self._source, self._options) for _ in range(WIDTH - 1)] if self.reopens else []
        return EnvLanes([self.env, *more], self._encode, self._size)

    def close(self) -> None:
        """Release what the environments hold."""
        self._lanes.close()

    def play(
        self,
        act: Callable[[Floats, Any], Any],
        rows: Sequence[int],
        words: Sequence[int],
        after_episode: Callable[[], None] | None = None,
    ) -> Floats:
        """Play an episode for every seed and return what each earned.

        Args:
            act: from observations, flat rows, and the policy of each row, to actions.
            rows: the policy of each episode.
            words: the seed of each.
            after_episode: called after every episode.
        """
        lanes, n, returns = self._lanes, len(words), np.zeros(len(words))
        begun = min(lanes.width, n)
        playing, number = list(range(begun)), np.arange(lanes.width)  # lanes in use, and the episode that each plays
        steps, which = np.zeros(lanes.width, dtype=np.int64), np.asarray(rows, dtype=np.int64)
        lanes.start(playing, words[:begun])
        self._check_seen(playing)
        while playing:
            where = np.array(playing)
            paid, ended = lanes.step(playing, act(lanes.seen[where], which[number[where]]))
            self._check(paid, playing)
            steps[where] += 1
            returns[number[where]] += paid
            fresh = []
            for lane in where[ended | (steps[where] >= self.horizon)].tolist():
                self.ledger.episodes += 1
                self.ledger.samples += int(steps[lane])
                if after_episode is not None:
                    after_episode()
                if begun < n:
                    number[lane], steps[lane] = begun, 0
                    fresh.append(lane)
                    begun += 1
                else:
                    playing.remove(lane)
            if fresh:
                lanes.start(fresh, [words[int(number[lane])] for lane in fresh])
                self._check_seen(fresh)
        return returns

    def _check(self, paid: Floats, playing: list[int]) -> None:
        low, high = self.reward_range or Range(-1e300, 1e300)
        if not (paid.min() >= low and paid.max() <= high):
            bad = next(x for x in paid if not low <= x <= high)
            allowed = (
                "a finite number" if self.reward_range is None else f"a number from {low:g} to {high:g} (reward_range)"
            )
            raise InputError(f"reward must be {allowed}, got {bad}")
        self._check_seen(playing)

    def _check_seen(self, playing: list[int]) -> None:
        if not np.isfinite(self._lanes.seen.sum()) and not np.isfinite(seen := self._lanes.seen[playing]).all():
            raise InputError(
                f"observation must be finite numbers, got {seen[~np.isfinite(seen).all(axis=1)][0].tolist()}"
            )

    def bounded(self, returns: Floats) -> Floats:
        """Return returns clipped to the range that the user gave, and count those that were outside."""
        if not self._clips or self.return_range is None:
            return returns
        clipped: Floats = np.clip(returns, *self.return_range)
        self.clipped += int((clipped != returns).sum())
        return clipped


class Returns:
    """Returns of policies, played by a worker pool and kept in its checkpoint."""

    def __init__(self, model: ReturnModel, pool: WorkerPool, acting: Any, limit: int | None = None) -> None:
        """Take the environment, who plays it, what makes weights act, and the most samples."""
        self.model, self._pool, self._acting, self.limit = model, pool, acting, limit

    def affordable(self) -> int | None:
        """Episodes that the limit on samples pays for in full; None for any number."""
        if self.limit is None:
            return None
        return max(0, self.limit - self.model.ledger.samples) // self.model.horizon

    def play(self, plays: Sequence[Play]) -> list[Floats]:
        """Return the returns of every play, in the order of its episodes."""
        total = sum(play.episodes for play in plays)
        key = f"{plays[0].purpose}/{plays[0].first}+{total} of {len(plays)}"
        store = None if self._pool.checkpoint is None else Kept(self._pool.checkpoint, "", write_played, read_played)
        found = None if store is None else store.get(key)
        if found is None:
            found = self._played(plays, total)
            if store is not None:
                store.put(key, found)
        else:
            self.model.ledger.episodes += total
            self.model.ledger.samples += found.samples
        ends = list(accumulate((play.episodes for play in plays), initial=0))
        return [self.model.bounded(found.returns[low:high]) for low, high in pairwise(ends)]

    def _played(self, plays: Sequence[Play], total: int) -> Played:
        before = self.model.ledger.samples
        shares = [total * w // self._pool.workers for w in range(self._pool.workers + 1)]
        parts = [
            (self._acting, _cut(plays, low, high), self.model.data_seed) for low, high in pairwise(shares) if low < high
        ]
        returns = np.concatenate(self._pool.work(play_part, parts, total))
        return Played(returns, self.model.ledger.samples - before)


class Played(NamedTuple):
    """Returns and their price."""

    returns: Floats
    samples: int


def write_played(found: Played) -> Content:
    """Return what a checkpoint keeps of it."""
    return Content({"samples": found.samples}, found.returns.astype("<f8").tobytes())


def read_played(content: Content) -> Played:
    """Read what ``write_played`` wrote."""
    fields = read_fields("task", content.fields, {"samples": whole()}, joint=" ")
    return Played(np.frombuffer(content.data, "<f8").astype(np.float64), fields["samples"])


def _cut(plays: Sequence[Play], low: int, high: int) -> list[Play]:
    """The plays of episodes low, …, high − 1 of all together."""
    found, place = [], 0
    for play in plays:
        first, last = max(low - place, 0), min(high - place, play.episodes)
        if first < last:
            found.append(play._replace(first=play.first + first, episodes=last - first))
        place += play.episodes
    return found


def play_part(
    model: ReturnModel, acting: Any, plays: Sequence[Play], data_seed: int, after_episode: Callable[[], None] | None
) -> Floats:
    """Play some episodes on one model; a job of a worker pool."""
    rows = [row for row, play in enumerate(plays) for _ in range(play.episodes)]
    words = [
        word
        for play in plays
        for word in seeds(DataStream(data_seed, play.purpose).key, 0, range(play.first, play.first + play.episodes))
    ]
    return model.play(acting([play.weights for play in plays]), rows, words, after_episode)


def _rebuild(
    source: Any, horizon: int | None, rewards: Any, returns: Any, data_seed: int, options: dict[str, Any]
) -> ReturnModel:
    return ReturnModel(source, horizon, reward_range=rewards, return_range=returns, data_seed=data_seed, **options)


def _time_limit(env: Any, horizon: int | None, options: Mapping[str, Any] | None) -> int:
    """Steps of the longest episode: the environment's own limit, or the user's where that is less or the only one.

    options are those of an id, whose limit was lifted; None of an environment that has kept its own.
    """
    spec = getattr(env, "spec", None)
    own = None if spec is None else spec.max_episode_steps
    if spec is not None and options is not None:
        import gymnasium

        own = options.get("max_episode_steps", gymnasium.spec(spec.id).max_episode_steps)
    own = None if own is None or own < 1 else own
    if horizon is not None:
        asked = check_int("horizon", horizon, 1, 10**7)
        return asked if own is None else min(asked, own)
    if own is None:
        raise InputError(f"horizon must be given for an environment without a time limit, got None for {quote(env)}")
    return int(own)


_KNOWN = {
    "CartPole": (0.0, 1.0),
    "MountainCar": (-1.0, 0.0),
    "Acrobot": (-1.0, 0.0),
    "Pendulum": (-(math.pi**2 + 0.1 * 8.0**2 + 0.001 * 2.0**2), 0.0),
    "MountainCarContinuous": (-0.1, 100.0),
}
"""Rewards of Gymnasium's classic control, by its documentation; every reward is checked against them."""


def known_rewards(env: Any) -> Range | None:
    """Return the range of rewards that an environment publishes or is known to keep; None where neither is so."""
    declared = getattr(env.unwrapped, "reward_range", None)
    if isinstance(declared, tuple) and len(declared) == 2 and all(map(math.isfinite, declared)):
        return _check_range("reward_range", declared)
    spec = getattr(env, "spec", None)
    entry = "" if spec is None else str(spec.entry_point)
    options = () if spec is None else set(spec.kwargs) - {"num_envs", "vectorization_mode", "vector_kwargs"}
    if spec is None or options or not entry.startswith("gymnasium.envs.classic_control"):
        return None
    known = _KNOWN.get(spec.id.rpartition("-v")[0])
    return None if known is None else Range(*known)


def _check_range(name: str, bounds: Sequence[float] | None) -> Range | None:
    if bounds is None:
        return None
    try:
        low, high = (float(bound) for bound in bounds)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(high - low) and low < high):
        raise InputError(f"{name} must be (low, high) with low < high, got {quote(bounds)}")
    return Range(low, high)


def _of_rewards(rewards: Range | None, horizon: int) -> Range | None:
    """What an episode of at most so many steps can earn; it may end at once."""
    return None if rewards is None else Range(min(0.0, horizon * rewards.low), max(0.0, horizon * rewards.high))


def _encoding(space: Any) -> tuple[int, Callable[[Any], Any]]:
    """How many numbers an observation is, and how it becomes a flat row of them."""
    from gymnasium import spaces

    if isinstance(space, spaces.Box):
        size = int(np.prod(space.shape, dtype=np.int64))
        if len(space.shape) == 1:
            return size, lambda seen: seen
        return size, lambda seen: np.ravel(seen)
    from reprl.mdp.spaces import Codec

    code = Codec(space, "observation")
    return 1, lambda seen: (code.encode(seen),)

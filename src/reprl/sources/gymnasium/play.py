"""Play: a policy in its own environment, one episode at a time, as a user of it would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from reprl.errors import InputError, ReprlError, blame, quote
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.sources.gymnasium.model import GymnasiumModel

if TYPE_CHECKING:
    import gymnasium

    Env = gymnasium.Env[Any, Any]

_PICTURE = "ansi"
"""The render mode that a terminal can show."""


class Move(NamedTuple):
    """One step: what was seen, what was done, what it paid."""

    step: int
    observation: Any
    action: Any
    reward: float
    picture: str | None
    """The environment before the action, as text; None where it draws none."""


class Episode(NamedTuple):
    """An episode of a policy."""

    seed: int
    moves: tuple[Move, ...]
    last: Any
    """What was seen at the end."""
    picture: str | None
    ended: bool
    """Whether the environment ended it, before the horizon or at it."""

    @property
    def total(self) -> float:
        """The sum of rewards, in the environment's own units."""
        return self.discounted(1.0)

    def discounted(self, factor: float) -> float:
        """Return the sum of rewards, each factor^step times."""
        return sum(factor**move.step * move.reward for move in self.moves)


def open_to_play(world: TabularMDP | GymnasiumModel) -> Env:
    """Return the Gymnasium environment behind a world, drawing itself as text where it can; the caller closes it."""
    import gymnasium

    if isinstance(world, TabularMDP):
        if world.origin is None or not world.origin.id.startswith("gym:"):
            from reprl.sources.gymnasium.tabular_env import TabularEnv

            return TabularEnv(world, render_mode=_PICTURE)
        ours = ("reward_range", "discount", "length", "truncated")
        options: dict[str, Any] = {k: value for k, value in world.origin.options.items() if k not in ours}
        source: Any = world.origin.id.removeprefix("gym:")
        options = {"max_episode_steps": -1, **options}
        probe = gymnasium.make(source, **options)
        modes = probe.metadata.get("render_modes", ())
        probe.close()
    else:
        source, options = world.env.spec, {}
        modes = world.env.metadata.get("render_modes", ())
        if not world.reopens or source is None or _PICTURE not in modes:
            return world.env
    return gymnasium.make(source, **options, render_mode=_PICTURE if _PICTURE in modes else None)


def play(policy: Policy, env: Env, seed: int, steps: int | None = None) -> Episode:
    """Play one episode of at most H steps.

    Args:
        policy: one that knows the environment's spaces, or a bare table for states and actions that are numbers.
        env: a Gymnasium environment.
        seed: what the environment is seeded with.
        steps: how many, for a stationary policy, which has no H.
    """
    moves: list[Move] = []
    ended = False
    seen, _ = _guarded(env, "reset", seed=seed)
    for step in range(policy.horizon if steps is None else steps):
        try:
            action = policy.act(seen, step)
        except ReprlError as error:
            raise InputError(f"this policy must fit the environment {quote(env)}: {error}") from None
        picture = _draw(env)
        before = seen
        seen, paid, ended, truncated, _ = _guarded(env, "step", action)
        moves.append(Move(step, before, action, float(paid), picture))
        if ended or truncated:
            break
    return Episode(seed, tuple(moves), seen, _draw(env), bool(ended))


def _guarded(env: Env, name: str, *args: Any, **kwargs: Any) -> Any:
    try:
        return getattr(env, name)(*args, **kwargs)
    except (Exception, SystemExit) as error:
        blame(error, f"in {name} of {env}")


def _draw(env: Env) -> str | None:
    picture = _guarded(env, "render") if env.render_mode == _PICTURE else None
    return picture if isinstance(picture, str) else None

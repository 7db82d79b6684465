"""How environments are made and opened: by name, from Gymnasium, or as they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, overload

from reprl.errors import InputError, check_int, quote
from reprl.mdp.catalogue import PREFIX, CatalogueId, build
from reprl.mdp.criterion import Criterion
from reprl.mdp.environment import Environment as Environment
from reprl.mdp.environment import describe as describe
from reprl.mdp.labels import Origin
from reprl.mdp.tabular import TabularMDP
from reprl.sources.access import WAYS
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel, make_gymnasium
from reprl.sources.parallel import GenerativeModel


@overload
def make(id: CatalogueId, horizon: int | None = None, **options: Any) -> TabularMDP: ...
@overload
def make(id: str, horizon: int | None = None, **options: Any) -> TabularMDP | GymnasiumModel: ...
def make(id: str, horizon: int | None = None, **options: Any) -> TabularMDP | GymnasiumModel:
    """Return an environment by its id.

    Args:
        id: a name in `catalogue()`, or "gym:" and a Gymnasium id. A Gymnasium environment that publishes its dynamics
            becomes a TabularMDP, any other with finite spaces a GymnasiumModel.
        horizon: H; None for the default of a named environment. Gymnasium environments have no default.
        options: the environment's own options; for "gym:" those of `gymnasium.make`, `reward_range` and `data_seed`.
            For all of them `discount`, γ, and `length`, the length of episodes, which the
            horizon may give as well; or `truncated`, with a horizon, for its first steps alone.

    Guarantee:
        A catalogue id with the same options is the same MDP, bit for bit, in every release.
    """
    if "discount" in options or "length" in options:
        return _make_discounted(id, horizon, options)
    if not isinstance(id, str) or not id.startswith(PREFIX):
        return build(id, horizon, options)
    made = make_gymnasium(id.removeprefix(PREFIX), horizon, **options)
    made.origin = Origin(id, {name: value for name, value in options.items() if name not in ("data_seed", "opened")})
    return made


def is_registered(name: str) -> bool:
    """Whether Gymnasium knows an environment by this id."""
    import gymnasium

    return name in gymnasium.registry


def _make_discounted(id: str, horizon: int | None, options: dict[str, Any]) -> TabularMDP | GymnasiumModel:
    """Build an environment without an end; recipes say horizon 1, as that is what its tables have."""
    discount, length = options.pop("discount", None), options.pop("length", None)
    truncated = options.pop("truncated", False)
    if discount is None:
        raise InputError(f"length must come with a discount, got {quote(length)} alone")
    criterion = Criterion.of(1, discount)
    if truncated is True:
        endless = make(id, None, discount=discount, **options)
        return truncate(endless, check_int("horizon", horizon, 1, 10**6))
    if truncated is not False:
        raise InputError(f"truncated must be True or False, got {quote(truncated)}")
    if length is None:
        length = criterion.episode_length if horizon is None else horizon
    elif horizon not in (None, 1, length):
        raise InputError(f"horizon must be left out, or be the length of episodes ({length}), got {quote(horizon)}")
    made = make(id, check_int("length", length, 1, 10**6), **options)
    found = made.discounted(discount, made.horizon)
    assert made.origin is not None
    found.origin = Origin(id, {**made.origin.options, "discount": criterion.discount, "length": made.horizon})
    return found


def truncate(world: TabularMDP | GymnasiumModel, horizon: int) -> TabularMDP:
    """Return the first H steps of a discounted world, as ``TabularMDP.truncated`` does, with an origin of its own."""
    if not isinstance(world, TabularMDP):
        raise InputError(
            f"rule must be 'soft' for a discounted environment whose dynamics are not known, got {quote(world)}"
        )
    made = world.truncated(horizon)
    if world.origin is not None:
        kept = {name: value for name, value in world.origin.options.items() if name != "length"}
        made.origin = Origin(world.origin.id, {**kept, "truncated": True})
    return made


def open_environment(
    env: Any,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    discount: float | None = None,
    opened: Any = None,
) -> TabularMDP | GymnasiumModel:
    """Return the environment that ``reprl.learn`` would learn in; see there. opened is env, if it is open already."""
    if isinstance(env, TabularMDP | GymnasiumModel):
        limits = (("horizon", horizon), ("reward_range", reward_range))
        for name, value in (*limits, *env.criterion.either((), (("discount", discount),))):
            if value is not None:
                raise InputError(f"{name} must be left out for an environment that has one, got {quote(value)}")
        return env if discount is None else _discounted(env, discount)
    if discount is not None:
        if opened is not None:
            opened.close()
        if isinstance(env, str):
            options = {"discount": discount} | ({} if reward_range is None else {"reward_range": reward_range})
            return make(env, horizon, **options)
        length = Criterion.of(1, discount).episode_length if horizon is None else horizon
        return _discounted(open_environment(env, length, reward_range), discount)
    if not isinstance(env, str):
        if not (callable(env) or hasattr(env, "reset")):
            allowed = "a TabularMDP, a GymnasiumModel, an id, or a gymnasium.Env or a factory of one"
            raise InputError(f"env must be {allowed}, got {quote(env)}")
        return make_gymnasium(env, horizon, reward_range=reward_range, opened=opened)
    given: dict[str, Any] = {"reward_range": reward_range, "opened": opened}
    return make(env, horizon, **{name: value for name, value in given.items() if value is not None})


def _discounted(env: TabularMDP | GymnasiumModel, discount: float) -> TabularMDP | GymnasiumModel:
    """Return an environment that has a horizon without one; episodes are as long as the horizon says."""
    return env.discounted(discount, env.horizon)


@contextmanager
def fresh_model(
    env: TabularMDP | GymnasiumModel, access: str, data_seed: int, *, own: bool = False
) -> Iterator[GenerativeModel | EpisodicModel | GymnasiumModel]:
    """Open an environment with a private data seed and an empty ledger; close what was opened for it.

    One that is the run's own, which nobody else has or will play, is not opened again.
    """
    way = WAYS[access]
    if isinstance(env, TabularMDP):
        yield way.model(env, data_seed)
        return
    way.check(env, quote(env))
    if own:
        env.data_seed = check_int("data seed", data_seed, 0, 2**64 - 1)
        yield env
        return
    model = env.for_run(data_seed)
    try:
        yield model
    finally:
        if model.reopens:  # one that came open stays so
            model.close()

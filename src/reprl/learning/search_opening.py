"""When reprl.learn is a search, and how it begins; the search itself is imported only then."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any

from reprl.errors import InputError, hint, quote
from reprl.mdp.tabular import TabularMDP
from reprl.search.settings import SEARCH_ONLY, SearchSettings
from reprl.sources.gymnasium.model import GymnasiumModel, open_env

if TYPE_CHECKING:
    from reprl.learning.search_result import SearchResult


def wants_search(
    env: Any, learner: str | None, options: Mapping[str, Any], env_options: Mapping[str, Any] | None = None
) -> bool:
    """Whether a call is for a search; what was opened to see it is closed again."""
    search, opened = find_search(env, learner, options, env_options)
    if opened is not None:
        opened.close()
    return search


def find_search(
    env: Any, learner: str | None, options: Mapping[str, Any], env_options: Mapping[str, Any] | None = None
) -> tuple[bool, Any]:
    """Return whether a call is for a search: it says so, or the environment's observations are a Box.

    Returns:
        Whether it is, and the environment that was opened to see it, for whoever goes on; None where none was opened.
    """
    if learner not in (None, "search", "reprl"):
        raise InputError(f"learner must be 'search', or left out for tables, got {quote(learner)}")
    search, opened = learner == "search", None
    if learner is None and "rule" not in options:
        space, opened = _look(env, env_options or {})
        search = _is_box(space)
    if not search:
        for name in SEARCH_ONLY:
            if name in options:
                given = quote(options[name])
                raise InputError(f"{name} must come with learner='search' where observations are no Box, got {given}")
    return search, opened


def _look(env: Any, env_options: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the space of observations, where there is one, and what was opened to read it."""
    if isinstance(env, TabularMDP | GymnasiumModel) or (isinstance(env, str) and not env.startswith("gym:")):
        return None, None
    space = _space_of(env)
    if space is not None or not (isinstance(env, str) or callable(env)):
        return space, None
    opened = open_env(env, env_options, vector=True)
    return _space_of(opened), opened


def _space_of(env: Any) -> Any:
    return getattr(env, "single_observation_space", getattr(env, "observation_space", None))


def _is_box(space: Any) -> bool:
    if space is None:
        return False
    from gymnasium import spaces

    return isinstance(space, spaces.Box)


def search_settings(options: Mapping[str, Any]) -> SearchSettings:
    """Build SearchSettings from keyword options, naming an unknown one."""
    known = SearchSettings.__dataclass_fields__
    for name in options:
        if name not in known:
            raise InputError(
                f"option must be one of {', '.join(known)} for a search; got {quote(name)}{hint(name, known)}"
            )
    return SearchSettings(**options)


def learn_by_search(
    env: Any,
    *,
    horizon: int | None,
    discount: float | None,
    reward_range: Any,
    shared_seed: int,
    data_seed: int,
    options: Mapping[str, Any],
    opened: Any,
    **how: Any,
) -> SearchResult:
    """Do what a call of ``reprl.learn`` asks for, by a search; opened is what ``find_search`` returns."""
    if discount is not None:
        raise InputError(
            f"discount must be left out for a search, whose returns are sums of rewards, got {quote(discount)}"
        )
    from reprl.learning.search import learn_search, open_returns

    settings = search_settings(options)
    model = open_returns(env, horizon, reward_range, settings.return_range, data_seed, opened=opened)
    with closing(model) if model.reopens else nullcontext():
        return learn_search(model, settings, shared_seed, **how)

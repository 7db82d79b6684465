"""When reprl.learn is a search, and how it begins; the search itself is imported only then."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Any

from reprl.errors import InputError, hint, quote
from reprl.mdp.tabular import TabularMDP
from reprl.search.settings import SEARCH_ONLY, SearchSettings
from reprl.sources.gymnasium.model import GymnasiumModel

if TYPE_CHECKING:
    from reprl.learning.search_result import SearchResult


def wants_search(env: Any, learner: str | None, options: Mapping[str, Any]) -> bool:
    """Whether a call of ``reprl.learn`` is for a search: it says so, or the environment's observations are a Box."""
    if learner is not None:
        if learner not in ("search", "reprl"):
            raise InputError(f"learner must be 'search', or left out for tables, got {quote(learner)}")
        return learner == "search"
    if any(name in options for name in SEARCH_ONLY):
        return True
    if isinstance(env, TabularMDP | GymnasiumModel) or "rule" in options:
        return False
    if isinstance(env, str):
        return env.startswith("gym:") and _sees_box(_space_of_id(env))
    found = _space_of(env)
    return _sees_box(found if found is not None or not callable(env) else _space_of_factory(env))


def _space_of(env: Any) -> Any:
    return getattr(env, "single_observation_space", getattr(env, "observation_space", None))


def _space_of_factory(factory: Any) -> Any:
    """The observation space of what a factory makes, which is closed again; None where it has none."""
    try:
        with closing(factory()) as env:
            return _space_of(env)
    except Exception:  # who opens it for good says what is wrong
        return None


def _space_of_id(id: str) -> Any:
    """The observation space of a Gymnasium id that can be opened as it is; None where it cannot."""
    import gymnasium

    try:
        with closing(gymnasium.make(id.removeprefix("gym:"))) as env:
            return env.observation_space
    except Exception:  # who opens it for good says what is wrong
        return None


def _sees_box(space: Any) -> bool:
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
    **how: Any,
) -> SearchResult:
    """Do what a call of ``reprl.learn`` asks for, by a search."""
    if discount is not None:
        raise InputError(
            f"discount must be left out for a search, whose returns are sums of rewards, got {quote(discount)}"
        )
    from reprl.learning.search import learn_search, open_returns

    settings = search_settings(options)
    model = open_returns(env, horizon, reward_range, settings.return_range, data_seed)
    with closing(model) if model.reopens else nullcontext():
        return learn_search(model, settings, shared_seed, **how)

"""What file.py:name means on the command line; for ENV also an id of the catalogue, or gym:ID."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

from reprl.errors import InputError, ReprlError, quote
from reprl.mdp.catalogue import PREFIX
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import make, open_environment
from reprl.sources.gymnasium.model import GymnasiumModel

_LOADED: dict[tuple[Path, int], ModuleType] = {}
"""Users' files that were run, by their resolved path and the time of their last change."""


def open_named(
    name: str,
    horizon: int | None,
    options: dict[str, Any],
    reward_range: tuple[float, float] | None = None,
    recorded: tuple[float, float] | None = None,
) -> TabularMDP | GymnasiumModel:
    """Open the environment that a name on the command line means; recorded is the range that a recipe knows."""
    for reserved in ("id", "horizon", *(() if reward_range is None else ("reward_range",))):
        if reserved in options:
            raise InputError(f"--env-option must not be {reserved}, which has its own place, got {quote(options)}")
    show_folder(name)
    if not name.startswith(PREFIX) and names_object(name):
        return _open_object(name, horizon, options, reward_range, recorded)
    return make(name, horizon, **options, **({} if reward_range is None else {"reward_range": reward_range}))


def show_folder(name: str) -> None:
    """Let gym:module:Id name a module of the working folder, as for python -m."""
    if name.startswith(PREFIX) and ":" in name.removeprefix(PREFIX) and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def names_object(name: str) -> bool:
    """Whether a name is meant as file.py:name."""
    return ":" in name or name.endswith(".py")


def named_learner(name: str) -> Any:
    """The learner that a name means: its name in the list, or the object of file.py:name."""
    return read_object("--learner", name) if names_object(name) else name


def read_object(what: str, name: str) -> Any:
    """Run a user's file and return the object in it that file.py:name names."""
    path, _, attribute = name.rpartition(":")
    if not path:
        raise InputError(f"{what} must also say which object of the file is meant, {name}:NAME, got {quote(name)}")
    file = Path(path)
    if not file.is_file() or file.suffix != ".py":
        allowed = f"an id, {PREFIX}ID" if what == "ENV" else "a name of 'reprl list learners'"
        raise InputError(f"{what} must be {allowed} or file.py:name, got no such file {quote(path)}")
    module = _load(path, file.resolve())
    if not hasattr(module, attribute):
        names = ", ".join(x for x in vars(module) if not x.startswith("_")) or "nothing"
        raise InputError(f"{path} must define {quote(attribute)}, got {quote(names, 200)}")
    return getattr(module, attribute)


def _load(path: str, file: Path) -> ModuleType:
    """Run a file once in this process: what two names in it mean are objects of the same classes."""
    state = file, file.stat().st_mtime_ns
    if state in _LOADED:
        return _LOADED[state]
    spec = util.spec_from_file_location(f"reprl_user_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.append(str(file.parent))  # for what lies beside it
    _guard(f"{path} must run", spec.loader.exec_module, module)
    _carry_along(module)
    _LOADED[state] = module
    return module


def _carry_along(module: ModuleType) -> None:
    """Have worker processes get a module's functions by value: they cannot import it by its name."""
    import cloudpickle  # with which tasks are packed; joblib may have a copy of its own, which is not asked

    cloudpickle.register_pickle_by_value(module)


def _open_object(
    name: str,
    horizon: int | None,
    options: dict[str, Any],
    reward_range: tuple[float, float] | None,
    recorded: tuple[float, float] | None,
) -> TabularMDP | GymnasiumModel:
    """Open the environment of file.py:name; to repeat the horizon or the discount that it has is no error."""
    discount = options.pop("discount", None)
    env = built(read_object("ENV", name), horizon, options)
    fits = recorded is not None and recorded[0] <= 0.0 <= recorded[1]  # as the range of a black box does
    if reward_range is None and fits and not isinstance(env, TabularMDP | GymnasiumModel):
        reward_range = recorded
    steps = None if horizon == getattr(env, "horizon", None) else horizon
    return open_environment(env, steps, reward_range, None if getattr(env, "discount", None) == discount else discount)


def built(source: Any, horizon: int | None, options: dict[str, Any]) -> Any:
    """Return an environment, or a factory to which the options are bound and, where it takes one, the horizon."""
    if isinstance(source, TabularMDP | GymnasiumModel) or not callable(source):
        if options:
            raise InputError(f"--env-option must come with a factory, got {quote(options)} for {quote(source)}")
        return source
    arguments = dict(options)
    if horizon is not None and "horizon" in _parameters(source):
        arguments["horizon"] = horizon
    made = _guard(f"{getattr(source, '__name__', 'the factory')} must build an environment", source, **arguments)
    if isinstance(made, TabularMDP | GymnasiumModel):
        return made
    return (lambda: source(**arguments)) if arguments else source


def _parameters(factory: Any) -> Iterable[str]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return ()


def _guard(wanted: str, call: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a user's code; whatever it raises becomes one line."""
    try:
        return call(*args, **kwargs)
    except ReprlError:
        raise
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{wanted}, got {type(error).__name__}: {quote(reason, 200)}") from None

"""ENV on the command line: an id of the catalogue, gym:ID, or file.py:name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

from reprl.errors import ReprlError, quote
from reprl.learn.learner import open_environment
from reprl.mdp.catalogue import PREFIX, make
from reprl.mdp.gymnasium import GymnasiumModel
from reprl.mdp.tabular import TabularMDP


def open_named(name: str, horizon: int | None, options: dict[str, Any]) -> TabularMDP | GymnasiumModel:
    """Open the environment that a name on the command line means."""
    path, colon, attribute = name.rpartition(":")
    if colon and not name.startswith(PREFIX):
        return _open_object(_read_object(path, attribute), horizon, options)
    for reserved in ("id", "horizon"):
        if reserved in options:
            raise ReprlError(f"--env-option must not be {reserved}, which has its own place, got {quote(options)}")
    return make(name, horizon, **options)


def _read_object(path: str, attribute: str) -> Any:
    file = Path(path)
    if not file.is_file() or file.suffix != ".py":
        raise ReprlError(f"ENV must be an id, {PREFIX}ID or file.py:name, got no such file {quote(path)}")
    spec = util.spec_from_file_location(f"reprl_user_{file.stem}", file.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.append(str(file.resolve().parent))  # for what lies beside it
    _guard(path, spec.loader.exec_module, module)
    _carry_along(module)
    if not hasattr(module, attribute):
        names = ", ".join(x for x in vars(module) if not x.startswith("_")) or "nothing"
        raise ReprlError(f"{path} must define {quote(attribute)}, got {quote(names, 200)}")
    return getattr(module, attribute)


def _carry_along(module: ModuleType) -> None:
    """Have worker processes get a module's functions by value: they cannot import it by its name."""
    try:
        from joblib.externals import cloudpickle  # until joblib 1.5
    except ImportError:
        import cloudpickle  # type: ignore[import-untyped]
    cloudpickle.register_pickle_by_value(module)


def _open_object(source: Any, horizon: int | None, options: dict[str, Any]) -> TabularMDP | GymnasiumModel:
    """Open an environment, or what a factory makes of the options and, where it takes one, the horizon."""
    if isinstance(source, TabularMDP | GymnasiumModel) or not callable(source):
        if options:
            raise ReprlError(f"--env-option must come with a factory, got {quote(options)} for {quote(source)}")
        return _with_horizon(source, horizon)
    arguments = dict(options)
    if horizon is not None and "horizon" in _parameters(source):
        arguments["horizon"] = horizon
    made = _guard(getattr(source, "__name__", "the factory"), source, **arguments)
    if isinstance(made, TabularMDP | GymnasiumModel):
        return _with_horizon(made, horizon)
    return open_environment((lambda: source(**arguments)) if arguments else source, horizon)


def _with_horizon(env: Any, horizon: int | None) -> TabularMDP | GymnasiumModel:
    """Open an environment; to repeat the horizon that it has is no error."""
    return open_environment(env, None if horizon == getattr(env, "horizon", None) else horizon)


def _parameters(factory: Any) -> Iterable[str]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return ()


def _guard(what: str, call: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a user's code; whatever it raises becomes one line."""
    try:
        return call(*args, **kwargs)
    except ReprlError:
        raise
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())
        raise ReprlError(
            f"{what} must build an environment, got {type(error).__name__}: {quote(reason, 200)}"
        ) from None

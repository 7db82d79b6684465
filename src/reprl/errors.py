"""ReprlError with its kinds, and the checks that public functions make on their arguments.

Every check returns the value in its canonical type, or raises one line that quotes what came and says what is allowed.
The command line needs this module for its help page, so NumPy is loaded by the first check that meets an array.
"""

from __future__ import annotations

import difflib
import math
import operator
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    import numpy as np

ROUNDING = 1e-9
"""How far from 1 the sum of a law may be."""


_MARK = "reprl_frames"
_FRAMEWORKS = ("reprl", "gymnasium", "joblib")


_ELSEWHERE = {
    **dict.fromkeys(("seed", "random_state", "rng"), ("shared_seed", "data_seed")),
    **dict.fromkeys(("gamma", "discount_factor"), ("discount",)),
    **dict.fromkeys(("n_jobs", "n_workers", "num_workers"), ("workers",)),
    **dict.fromkeys(("n_samples", "n_steps", "total_timesteps", "timesteps", "budget"), ("max_samples",)),
    **dict.fromkeys(("max_episode_steps", "H", "steps"), ("horizon",)),
}
"""What other packages call it."""


class ReprlError(Exception):
    """The family of the errors that reprl raises on purpose; the text of each is a single line for a person."""


class InputError(ReprlError, ValueError):
    """An argument, an environment, a learner or data that cannot be used."""


class DocumentError(InputError):
    """A file or document that is damaged, foreign or of another release."""


class WorkerError(ReprlError, RuntimeError):
    """A worker process that was killed or took too long."""


class OutputError(ReprlError):
    """A result that could not be written."""


class DependencyError(ReprlError, ImportError):
    """An optional package that is not installed."""


class LogWarning(UserWarning):
    """What makes results from a log wrong, or intervals too short, though it can be read."""


class Foreign(NamedTuple):
    """An error of code that is not ours, such as an environment's, and the frames of that code."""

    error: BaseException
    frames: str


def blame(error: BaseException, place: str) -> NoReturn:
    """Raise an error that code which is not ours has raised, marked so: the mark travels between processes with it.

    Args:
        error: as it was caught.
        place: what that code was asked for, to be read below the error. SystemExit becomes a RuntimeError: it is not
            for such code to end this process.
    """
    marked = error
    if _old_step(error):
        wanted = "five values (observation, reward, terminated, truncated, info)"
        raise InputError(f"step must return {wanted}, got four, as before Gymnasium 0.26: {place}") from None
    if not isinstance(error, Exception):
        marked = RuntimeError(f"code that is not reprl's asked to leave Python: {error!r}")
        marked.__cause__ = error
    marked.__dict__.setdefault(_MARK, _own_frames(error))
    marked.add_note(place)
    raise marked


def find_foreign(error: BaseException | None) -> Foreign | None:
    """Return the marked error behind an error: itself, or one that it was raised from or in the wake of."""
    for link in _chain(error):
        if _MARK in link.__dict__:
            return Foreign(link, link.__dict__[_MARK])
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those behind it, each once: code that is not ours may have made them a circle."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _old_step(error: BaseException) -> bool:
    """Whether a framework has failed to unpack the four values that a step returned before Gymnasium 0.26."""
    if not isinstance(error, ValueError) or "unpack (expected 5, got 4)" not in str(error):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(_frameworks())


def _frameworks() -> tuple[str, ...]:
    """The folders of reprl and of the frameworks around an environment."""
    files = [getattr(sys.modules.get(name), "__file__", None) for name in _FRAMEWORKS]
    return tuple(os.path.join(os.path.dirname(file), "") for file in files if file)


def _own_frames(error: BaseException) -> str:
    """The traceback without the frames of reprl and of the frameworks around an environment."""
    found = traceback.TracebackException.from_exception(error)
    places = _frameworks()
    part: traceback.TracebackException | None = found
    while part is not None:
        own = [frame for frame in part.stack if not frame.filename.startswith(places)]
        part.stack = traceback.StackSummary.from_list(own or list(part.stack)[-1:])
        part = part.__cause__ or part.__context__
    return "".join(found.format())


def quote(value: object, limit: int = 80) -> str:
    """Show a bad value on one line, shortened."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a value too deep or too long to print must still be refused with one line
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def hint(name: object, allowed: Iterable[str]) -> str:
    """Return what somebody may have meant by an unknown name, to end an error with; empty if nothing is near."""
    names = [*allowed]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5) if isinstance(name, str) else []
    elsewhere = [word for word in _ELSEWHERE.get(name, ()) if word in names] if isinstance(name, str) else []
    return f" (did you mean {' or '.join(map(quote, elsewhere or close))}?)" if elsewhere or close else ""


def refuse(why: str, /, **given: object) -> None:
    """Refuse what is given, which is what is not None; `why` goes on after "must be left out"."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} must be left out {why}, got {quote(value)}")


def check_option(owner: str, name: str, allowed: Iterable[str]) -> None:
    """Refuse an option that its owner does not have, with a hint at what may have been meant."""
    if name not in allowed:
        raise InputError(
            f"option of {owner} must be one of {', '.join(allowed)}; got {quote(name)}{hint(name, allowed)}"
        )


def check_int(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return value as an int in [low, high]; booleans, floats and text are refused."""
    allowed = f"a whole number of at least {low}" if high is None else f"a whole number from {low} to {high}"
    try:
        if isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool":  # NumPy's truth values
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name} must be {allowed}, got {quote(value)}") from None
    if number < low or (high is not None and number > high):
        raise InputError(f"{name} must be {allowed}, got {quote(value)}")
    return number


def check_count(name: str, value: object, low: int) -> int:
    """As ``check_int``, for sizes that people write as 1e6: a float that is whole is taken."""
    whole = isinstance(value, float) and value.is_integer()
    return check_int(name, int(value) if whole else value, low)  # type: ignore[call-overload]


def check_real(
    name: str, value: object, low: float, high: float, *, open_low: bool = True, open_high: bool = True
) -> float:
    """Return value as a float in the interval from low to high; an infinite end is not printed as a bound."""
    import numpy as np

    left, right = "(" if open_low else "[", ")" if open_high or math.isinf(high) else "]"
    allowed = f"lie in {left}{low:g}, {high:g}{right}"
    try:
        if isinstance(value, bool | np.bool_ | str | bytes):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must {allowed}, got {quote(value)}") from None
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        raise InputError(f"{name} must {allowed}, got {quote(value)}")
    return number


def check_probability(name: str, value: object) -> float:
    """Return value as a float strictly between 0 and 1."""
    return check_real(name, value, 0.0, 1.0)


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return value if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}; got {quote(value)}")
    return value


def check_array(name: str, value: object, ndim: int | tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return value as a finite float64 array with one of the allowed numbers of axes."""
    import numpy as np

    allowed = (ndim,) if isinstance(ndim, int) else ndim
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
        with np.errstate(over="ignore"):  # a long double too large for float64 is refused below as infinite
            array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be an array of real numbers, got {quote(value)}") from None
    if array.ndim not in allowed:
        axes = " or ".join(str(n) for n in allowed)
        raise InputError(f"{name} must have {axes} axes, got shape {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InputError(f"{name}{list(where)} must be finite, got {array[where]}")
    return array


def rounding_of(law: Any) -> float:
    """Return how far from 1 the sums of a law may be: ROUNDING, or more for an array of fewer bits than a double."""
    import numpy as np

    kind = getattr(law, "dtype", None)
    if not isinstance(kind, np.dtype) or kind.kind != "f" or kind.itemsize >= 8:
        return ROUNDING
    outcomes = int(law.shape[-1]) if law.shape else 1
    return max(ROUNDING, min(0.01, outcomes * float(np.finfo(kind).eps)))


def check_distribution(
    name: str, rows: np.ndarray[Any, np.dtype[np.float64]], rounding: float = ROUNDING
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Check that the last axis of rows holds probability vectors, up to rounding; return rows unchanged."""
    import numpy as np

    if (rows < 0).any():
        where = tuple(int(i) for i in np.argwhere(rows < 0)[0])
        raise InputError(f"{name}{list(where)} must be a probability in [0, 1], got {rows[where]:g}")
    with np.errstate(over="ignore"):
        totals = rows.sum(axis=-1)
    off = np.abs(totals - 1.0) > rounding
    if off.any():
        position = tuple(int(i) for i in np.argwhere(off)[0])
        label = f"{name}{list(position)}" if position else name
        raise InputError(f"{label} must sum to 1 within {rounding:g}, got {float(totals[position]):.12g}")
    return rows

"""Custom mechanisms and couplings: what they are called with, and what they must carry to prove anything.

A bound counts as proven only if the function says so, by an attribute ``proof`` that names where the argument is
written down. A function without it works, and nothing is promised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_choice, check_real, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reprl.coupling.mechanisms import Selection
    from reprl.randomness import SharedKey

CUSTOM = "own:"
"""Prefix of a custom function's name in a recipe, which cannot hold the function."""


class Mechanism(Protocol):
    """Scores → laws: mechanism(scores, epsilon=, delta=).

    It returns (n, k) laws, or a ``Selection``, which also bounds what an arm loses and how far the laws of two runs can
    differ. It is the same function in every run, without randomness of its own. Its attribute ``proof``, if it has one,
    says where that bound is proven.
    """

    def __call__(self, scores: NDArray[np.float64], *, epsilon: float, delta: float) -> Selection | ArrayLike:
        """Return the laws of arms with these scores; ε is the gap from which an arm should never be picked."""


class Coupling(Protocol):
    """Laws → outcomes: coupling(key, laws), the same key in both runs, one outcome for each of n laws (n, k).

    Its attribute ``bound``, a function from the total variation of two products of laws to the chance that two runs
    draw differently, is what a guarantee is computed with, and ``proof`` says where it is proven.
    """

    def __call__(self, key: SharedKey, laws: NDArray[np.float64], /) -> ArrayLike:
        """Draw one outcome of each law with the key's draws alone, read by address."""


def check_custom(name: str, value: object, choices: Sequence[str]) -> Any:
    """Return one of the choices, a custom function, or the name of one that a recipe holds."""
    kept = isinstance(value, str) and value.startswith(CUSTOM) and value != CUSTOM and value.isprintable()
    return value if callable(value) or kept else check_choice(name, value, choices)


def custom_name(value: object) -> str:
    """Return the name of a choice in a recipe: the choice itself, or the prefix and the name of a custom function."""
    if isinstance(value, str):
        return value
    return f"{CUSTOM}{getattr(value, '__name__', None) or type(value).__name__}"


def function_of(name: str, value: object) -> Callable[..., Any]:
    """Return a custom function; a name that a recipe holds is not enough to call it."""
    if callable(value):
        return value
    raise InputError(f"{name} {quote(value)} is a custom function: pass the function itself")


def proof_of(value: object) -> str | None:
    """Return where a custom function says that its bound is proven; None if it does not."""
    proof = getattr(value, "proof", None)
    return proof if isinstance(proof, str) and proof else None


def coupling_bound(coupling: object, total_variation: float) -> float | None:
    """Return how likely two runs differ by the bound of a custom coupling; None if it has none."""
    bound = getattr(coupling, "bound", None)
    if not callable(bound):
        return None
    name = f"bound of coupling {custom_name(coupling)}"
    return min(1.0, check_real(name, bound(total_variation), 0.0, float("inf"), open_low=False))


def check_choices(drawn: ArrayLike, laws: NDArray[np.float64], name: str) -> NDArray[np.int64]:
    """Return the outcomes that a custom coupling drew, each of which must be possible."""
    n, k = laws.shape
    choice = np.asarray(drawn)
    if choice.shape != (n,) or choice.dtype.kind not in "iu":
        raise InputError(f"coupling {name} must return {n} whole numbers, got {quote(drawn)}")
    if not ((choice >= 0) & (choice < k)).all():
        raise InputError(f"coupling {name} must return outcomes from 0 to {k - 1}, got {quote(drawn)}")
    impossible = np.flatnonzero(laws[np.arange(n), choice] <= 0.0)
    if impossible.size:
        row = int(impossible[0])
        raise InputError(f"coupling {name} must return outcomes that can happen, got {choice[row]} in row {row}")
    return choice.astype(np.int64)

"""Preference: which of two actions that are as good is taken, as users give it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int, hint, quote
from reprl.randomness import SharedKey

Preference = str | tuple[int | str, ...] | None
"""None by index, "shared" (random, from ξ), or all actions by index or name, best first."""


def check_preference(value: object) -> Preference:
    """Return a preference in its canonical type; which actions there are is not known yet."""
    if value is None or value == "shared":
        return None if value is None else "shared"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"preference must be None, 'shared' or a list of all actions, best first, got {quote(value)}")
    return tuple(item if isinstance(item, str) else check_int("preference", item, 0) for item in value)


def resolve_preference(preference: Preference, actions: Sequence[str], n_actions: int) -> Preference:
    """Return a preference, if it is a list, as action numbers."""
    if preference is None or isinstance(preference, str):
        return preference
    numbers = [action_number("preference", item, actions, n_actions) for item in preference]
    given = Counter(numbers)
    for a in range(n_actions):  # ends at the first that is missing, however many a recipe claims
        if given[a] != 1:
            name = quote(actions[a]) if a < len(actions) else a
            times = f"it comes {given[a]} times" if given[a] else "it is missing"
            raise InputError(f"preference must name every action once, got {quote(preference)}: {name}, {times}")
    return tuple(numbers)


def action_number(noun: str, item: int | str, actions: Sequence[str], n_actions: int) -> int:
    """Return the number of an action that is given by number or name; noun is what it is called in messages."""
    if not isinstance(item, str):
        return check_int(noun, item, 0, n_actions - 1)
    if item not in actions:
        known = ", ".join(map(quote, actions)) or f"numbers from 0 to {n_actions - 1}, as the actions have no names"
        raise InputError(f"{noun} must name actions among {known}; got {quote(item)}{hint(item, actions)}")
    return list(actions).index(item)


def preference_order(key: SharedKey, shape: tuple[int, int], preference: Preference) -> NDArray[np.int64]:
    """Return the actions of every state, (S, A), the most preferred first; a preference names actions by number.

    Randomness:
        Shared, at key.derive("preference"), for "shared" alone.
    """
    order = np.arange(shape[1])
    if preference == "shared":
        order = np.argsort(key.derive("preference").uniforms(shape[1]), kind="stable")
    elif preference is not None:
        order = np.array(preference, dtype=np.int64)
    return np.tile(order, (shape[0], 1))

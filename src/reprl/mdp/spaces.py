"""Finite Gymnasium spaces as whole numbers: mixed radix, the first component most significant.

A space is a list of digits: Discrete is one; MultiDiscrete and MultiBinary give one per entry in row order; Tuple and
Dict list the digits of their parts, a Dict in the order of its own ``spaces``. Importing this module imports Gymnasium.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces

from reprl.errors import DocumentError, InputError, check_choice, quote
from reprl.storage.fields import ANYTHING, TEXT, choice, many, read_fields, whole

MAX_SIZE = 2**31 - 1
"""The largest number of states or actions."""

_CUTS = {"observation": "gymnasium.wrappers.DiscretizeObservation", "action": "gymnasium.wrappers.DiscretizeAction"}


class Codec:
    """The bijection between the members of a finite space and range(size)."""

    def __init__(self, space: spaces.Space[Any], role: str) -> None:
        """Count the members, or say why they cannot be counted."""
        self.space = space
        self.role = role
        self.first = int(space.start) if isinstance(space, spaces.Discrete) else None
        """The member with number 0, of a Discrete space; None of any other."""
        parts = _parts(space) if isinstance(space, spaces.Tuple) else []
        flat = [(int(part.start), int(part.n)) for part in parts if isinstance(part, spaces.Discrete)]
        self._flat = flat if flat and len(flat) == len(parts) else None
        self.radices = _radices(space, role)
        self.size = prod(self.radices)
        if self.size > MAX_SIZE:
            raise InputError(f"{role} space must have at most {MAX_SIZE} members, got {self.size} in {quote(space)}")

    def encode(self, member: Any) -> int:
        """Return the number of a member of the space."""
        if self.first is not None and isinstance(member, int | np.integer):  # common, and Gymnasium's check is slow
            digit = int(member) - self.first
            if 0 <= digit < self.size:
                return digit
        if self._flat is not None and isinstance(member, tuple) and len(member) == len(self._flat):
            number = 0
            for (first, size), value in zip(self._flat, member, strict=True):
                digit = int(value) - first if isinstance(value, int | np.integer) else -1
                if not 0 <= digit < size:
                    break
                number = number * size + digit
            else:
                return number
        if not self.space.contains(member):
            raise InputError(f"{self.role} must be a member of {quote(self.space)}, got {quote(member)}")
        number = 0
        for radix, digit in zip(self.radices, _digits(self.space, member), strict=True):
            number = number * radix + digit
        return number

    def decode(self, number: int) -> Any:
        """Return the member that has a number."""
        if self.first is not None:
            return self.first + number
        digits = []
        for radix in reversed(self.radices):
            number, digit = divmod(number, radix)
            digits.append(digit)
        return _member(self.space, reversed(digits))


_MAX_PARTS = 1000
_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16")
_LIST = many(ANYTHING, make=list)
_FIELDS = {
    "discrete": {"kind": TEXT, "n": whole(1, MAX_SIZE), "start": whole(-(2**62), 2**62)},
    "multi-discrete": {"kind": TEXT, "n": _LIST, "start": _LIST, "dtype": choice(_DTYPES)},
    "multi-binary": {"kind": TEXT, "shape": many(whole(1, _MAX_PARTS), make=list)},
    "tuple": {"kind": TEXT, "parts": _LIST},
    "dict": {"kind": TEXT, "parts": _LIST},
}


def space_document(space: spaces.Space[Any]) -> dict[str, Any]:
    """Return a finite space as a part of a JSON document."""
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        table = {"n": space.nvec.tolist(), "start": space.start.tolist()}
        return {"kind": "multi-discrete", **table, "dtype": np.dtype(space.dtype).name}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi-binary", "shape": list(space.shape)}
    if isinstance(space, spaces.Dict):
        return {"kind": "dict", "parts": [[name, space_document(part)] for name, part in space.spaces.items()]}
    assert isinstance(space, spaces.Tuple)  # what has a codec is one of these
    return {"kind": "tuple", "parts": [space_document(part) for part in space.spaces]}


def read_space(where: str, document: object) -> spaces.Space[Any]:
    """Read what ``space_document`` wrote.

    where is what it is called in messages.
    """
    kind = document.get("kind") if isinstance(document, Mapping) else document
    check_choice(f"{where} kind", kind, tuple(_FIELDS))
    given = read_fields(where, dict(document) if isinstance(document, Mapping) else document, _FIELDS[str(kind)])
    if kind == "discrete":
        return spaces.Discrete(given["n"], start=given["start"])
    if kind == "multi-binary":
        sizes = given["shape"]
        if not 1 <= prod(sizes) <= 31:
            raise DocumentError(f"{where}.shape must have from 1 to 31 entries in all, got {sizes}")
        return spaces.MultiBinary(sizes[0] if len(sizes) == 1 else sizes)
    if kind == "multi-discrete":
        return _read_table(where, given)
    parts = given["parts"]
    if not 1 <= len(parts) <= _MAX_PARTS:
        raise DocumentError(f"{where}.parts must have from 1 to {_MAX_PARTS} items, got {len(parts)}")
    if kind == "tuple":
        return spaces.Tuple([read_space(f"{where}.parts[{i}]", part) for i, part in enumerate(parts)])
    named = []
    for i, pair in enumerate(parts):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise DocumentError(f"{where}.parts[{i}] must be a name and a space, got {quote(pair)}")
        named.append((pair[0], read_space(f"{where}.parts[{i}]", pair[1])))
    return spaces.Dict(named)


def _read_table(where: str, given: Mapping[str, Any]) -> spaces.MultiDiscrete:
    try:
        sizes, start = (np.array(given[field], dtype=np.int64) for field in ("n", "start"))
    except (ValueError, TypeError, OverflowError):
        sizes = start = np.zeros(0, dtype=np.int64)
    dtype = np.dtype(given["dtype"])
    fits = sizes.size > 0 and sizes.shape == start.shape and bool((sizes >= 1).all())
    if not fits or not all(
        np.iinfo(dtype).min <= x <= np.iinfo(dtype).max for x in [*start.flat, *(start + sizes).flat]
    ):
        raise DocumentError(
            f"{where}.n and start must be tables of whole numbers of one shape, got {quote(given['n'])}"
        )
    return spaces.MultiDiscrete(sizes, dtype=dtype.type, start=start)


def _radices(space: spaces.Space[Any], role: str) -> list[int]:
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(n) for n in space.nvec.ravel()]
    if isinstance(space, spaces.MultiBinary):
        return [2] * prod(space.shape)
    if isinstance(space, spaces.Tuple | spaces.Dict):
        return [radix for part in _parts(space) for radix in _radices(part, role)]
    allowed = f"{role} space must be Discrete, MultiDiscrete, MultiBinary, or a Tuple or Dict of these"
    hint = ""
    if isinstance(space, spaces.Box):
        hint = f": cut a Box into cells with {_CUTS[role]}"
    raise InputError(f"{allowed}, got {quote(space)}{hint}")


def _parts(space: spaces.Tuple[Any] | spaces.Dict) -> list[spaces.Space[Any]]:
    return list(space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces)


def _digits(space: spaces.Space[Any], member: Any) -> Iterator[int]:
    """List the digits of a member, in the order of the radices."""
    if isinstance(space, spaces.Discrete):
        yield int(member) - int(space.start)
    elif isinstance(space, spaces.MultiDiscrete):
        yield from (int(digit) for digit in (np.asarray(member) - space.start).ravel())
    elif isinstance(space, spaces.MultiBinary):
        yield from (int(digit) for digit in np.asarray(member).ravel())
    elif isinstance(space, spaces.Dict):
        for name, part in space.spaces.items():
            yield from _digits(part, member[name])
    elif isinstance(space, spaces.Tuple):
        for part, value in zip(space.spaces, member, strict=True):
            yield from _digits(part, value)


def _member(space: spaces.Space[Any], digits: Iterator[int]) -> Any:
    """Take from digits what a space needs and build its member."""
    if isinstance(space, spaces.Discrete):
        return int(space.start) + next(digits)
    if isinstance(space, spaces.Dict):
        return {name: _member(part, digits) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_member(part, digits) for part in space.spaces)
    shape = space.shape or ()
    values = np.array([next(digits) for _ in range(prod(shape))], dtype=space.dtype).reshape(shape)
    return values + space.start if isinstance(space, spaces.MultiDiscrete) else values

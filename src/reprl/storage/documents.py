"""Documents: versioned JSON that is read strictly, written in one way and hashed canonically."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reprl.errors import DocumentError, InputError, ReprlError, check_choice, check_int, check_real, quote
from reprl.storage.files import read_bounded

MAX_TEXT = 1000
MAX_BYTES = 1 << 27
"""The largest document that is read from a file, where its kind sets no smaller limit."""
MAX_WHOLE = 2**100
"""The largest whole number that a document may hold where nothing else limits it: more than any run can count."""
_LARGEST = 1e300
"""The largest magnitude of a number that is not whole."""
_MAX_MEMORY = 1 << 30
"""What the values of a document may take in memory, by a bound from its brackets and commas alone."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")


def canonical(document: Any) -> bytes:
    """Return the one encoding of a document that is hashed: sorted keys, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(document: Any) -> str:
    """SHA-256 of the canonical encoding, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(document)).hexdigest()


def dump(document: Mapping[str, Any], indent: int | None = None) -> str:
    """Return a document as text: in one line, or indented."""
    return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def pretty(document: Mapping[str, Any]) -> str:
    """Return a document for people to read: a line for each field, lists in one line."""
    return _fields(document, "") + "\n"


def _fields(document: Mapping[str, Any], indent: str) -> str:
    inner = indent + "  "
    lines = [
        f"{inner}{json.dumps(name)}: {_fields(value, inner) if _nests(value) else json.dumps(value, allow_nan=False)}"
        for name, value in document.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n" + indent + "}"


def _nests(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value)


def plain(value: Any, *, strict: bool = False) -> Any:
    """Return a value in the types that JSON has; anything else is shown as text, or a TypeError if strict."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping) and not (strict and not all(isinstance(name, str) for name in value)):
        return {str(name): plain(item, strict=strict) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, strict=strict) for item in value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if strict:
        raise TypeError(f"got {quote(value)}")
    return quote(value)


def load(path: str | os.PathLike[str], read: Callable[[bytes], T], limit: int | None = None) -> T:
    """Read a document from a file of at most limit bytes; errors begin with its path."""
    data = read_bounded(path, MAX_BYTES if limit is None else limit)
    try:
        return read(data)
    except ReprlError as error:
        raise DocumentError(f"{os.fspath(path)}: {error}") from None


@contextmanager
def naming(prefix: str) -> Iterator[None]:
    """Say where a value came from when a check refuses it."""
    try:
        yield
    except ReprlError as error:
        raise type(error)(f"{prefix}{error}") from None


def decode(data: bytes | str, noun: str) -> Any:
    """Return what a JSON text says, in time and memory that its length bounds.

    Names given twice, numbers that are not finite and halves of characters are refused.
    """
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        _check_memory(text)
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
        if not text.isascii() or "\\u" in text:  # else no text of it can hold half a character
            json.dumps(document, ensure_ascii=False).encode()
        return document
    except ReprlError as error:
        raise DocumentError(f"{noun} {error}") from None
    except UnicodeEncodeError as error:
        raise DocumentError(
            f"{noun} must be whole characters, got half of one: {quote(error.object[error.start])}"
        ) from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DocumentError(f"{noun} must be a JSON document: {quote(str(error))}") from None


def _check_memory(text: str) -> None:
    """Refuse a text whose values could take more memory than a document may, before they do."""
    memory = 48 * text.count(",") + 96 * text.count("[") + 320 * text.count("{")
    if memory > _MAX_MEMORY:
        raise DocumentError(
            f"must take at most {_MAX_MEMORY >> 20} MiB of memory, got up to {memory >> 20} MiB of values"
        )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise DocumentError(f"fields must be given once, got {quote(name)} twice")
            seen.add(name)
    return document


def _no_constant(name: str) -> Any:
    raise DocumentError(f"numbers must be finite, got {name}")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise DocumentError(f"numbers must be finite, got {quote(number)}")
    return value


def stated_format(document: object) -> object:
    """Return the format that a decoded document states; of what is no object, the thing itself."""
    return document.get("format") if isinstance(document, dict) else document


class Reader:
    """The fields of one JSON object, each checked as it is read.

    Args:
        name: what the object is called in messages.
        document: the object.
        fields: its fields: all must be there, and no others.
        joint: what stands in messages between its name and a field's.
    """

    def __init__(self, name: str, document: object, fields: Sequence[str], joint: str = ".") -> None:
        """Refuse anything but an object with exactly these fields."""
        if not isinstance(document, dict):
            raise DocumentError(f"{name} must be an object with the fields {', '.join(fields)}; got {quote(document)}")
        for field in document:
            if field not in fields:
                raise DocumentError(f"{name} must have only the fields {', '.join(fields)}; got {quote(field)}")
        for field in fields:
            if field not in document:
                found = ", ".join(document) or "none"
                raise DocumentError(f"{name} must have the field {field!r}, got only {found}")
        self.name, self.document, self._joint = name, document, joint

    @classmethod
    def open(
        cls,
        data: bytes | str,
        noun: str,
        format: str,
        version: int,
        fields: Sequence[str],
        later: Sequence[str] = (),
        earlier: Mapping[int, Sequence[str]] | None = None,
    ) -> Reader:
        """Read a document of one format and version with exactly these fields.

        Fields that came later may be missing, and earlier versions that are still read may have others.
        """
        document = decode(data, noun)
        if stated_format(document) != format:
            raise DocumentError(f"{noun} format must be {format!r}, got {quote(stated_format(document))}")
        stated = document.get("version")
        if type(stated) is int and stated in (earlier or {}):
            version, fields = stated, (earlier or {})[stated]
        check_release(f"{noun} version", stated, version)
        there = [field for field in later if field in document]
        return cls(noun, document, ("format", "version", *fields, *there), " ")

    def __getitem__(self, field: str) -> Any:
        """A field as it came."""
        return self.document[field]

    def where(self, field: str) -> str:
        """What a field is called in messages."""
        return f"{self.name}{self._joint}{field}"

    def part(self, field: str, fields: Sequence[str]) -> Reader:
        """Return an object inside the object."""
        return Reader(self.where(field), self[field], fields)

    def parts(self, field: str, fields: Sequence[str]) -> list[Reader]:
        """Return the objects in a list."""
        return [Reader(f"{self.where(field)}[{i}]", item, fields) for i, item in enumerate(self.items(field))]

    def optional(self, field: str, read: Callable[[str], T]) -> T | None:
        """Read a field that may be null."""
        return None if self[field] is None else read(field)

    def release(self, field: str, version: int) -> int:
        """Return a version that must be this release's."""
        return check_release(self.where(field), self[field], version)

    def text(self, field: str) -> str:
        """Return a text of any kind."""
        return check_text(self.where(field), self[field])

    def printable(self, field: str) -> str:
        """Return a short text that may be shown as it is, and is not empty."""
        return check_printable(self.where(field), self[field])

    def digest(self, field: str) -> str:
        """Return a SHA-256 in hexadecimal."""
        value = self[field]
        if not isinstance(value, str) or not _DIGEST.fullmatch(value):
            raise DocumentError(f"{self.where(field)} must be 64 hexadecimal digits, got {quote(value)}")
        return value

    def flag(self, field: str) -> bool:
        """Return true or false."""
        if not isinstance(self[field], bool):
            raise DocumentError(f"{self.where(field)} must be true or false, got {quote(self[field])}")
        return bool(self[field])

    def choice(self, field: str, choices: Sequence[str]) -> str:
        """Return one of the allowed words."""
        return check_choice(self.where(field), self[field], choices)

    def whole(self, field: str, low: int = 0, high: int = MAX_WHOLE) -> int:
        """Return a whole number."""
        return check_int(self.where(field), self[field], low, high)

    def real(self, field: str, low: float = 0.0, high: float = math.inf, *, open_low: bool = False) -> float:
        """Return a number in [low, high], an integer as one, so that it is written again as it was read.

        No figure of a run is larger than 1e300, and sums and products of those that are read stay finite.
        """
        low, high = max(low, -_LARGEST), min(high, _LARGEST)
        check_real(self.where(field), self[field], low, high, open_low=open_low, open_high=False)
        number: float = self[field]
        return number

    def share(self, field: str) -> float:
        """Return a number in [0, 1]."""
        return self.real(field, 0.0, 1.0)

    def mapping(self, field: str) -> dict[str, Any]:
        """Return an object with any fields."""
        if not isinstance(self[field], dict):
            raise DocumentError(f"{self.where(field)} must be an object, got {quote(self[field])}")
        return dict(self[field])

    def items(self, field: str) -> list[Any]:
        """Return a list of any length."""
        if not isinstance(self[field], list):
            raise DocumentError(f"{self.where(field)} must be a list, got {quote(self[field])}")
        return [*self[field]]

    def wholes(self, field: str, shape: tuple[int, ...], low: int = 0, high: int = MAX_WHOLE) -> NDArray[Any]:
        """Return nested lists of whole numbers as an int64 array, or of objects where int64 is too small."""
        flat = [check_int(where, item, low, high) for where, item in _leaves(self.where(field), self[field], shape)]
        table = np.empty(len(flat), dtype=np.int64 if max(flat, default=0) < 2**63 else object)
        table[:] = flat
        table.setflags(write=False)
        return table.reshape(shape)

    def reals(
        self, field: str, shape: tuple[int, ...], low: float = -math.inf, high: float = math.inf
    ) -> NDArray[np.float64]:
        """Return nested lists of numbers in [low, high] as a float64 array of this shape."""
        flat = []
        for where, item in _leaves(self.where(field), self[field], shape):
            if type(item) not in (int, float) or not low <= item <= high or abs(item) > _LARGEST:
                bounds = f"a number from {low:g} to {high:g}" if math.isfinite(low) else "a finite number"
                raise DocumentError(f"{where} must be {bounds}, got {quote(item)}")
            flat.append(float(item))
        table = np.array(flat, dtype=np.float64).reshape(shape)
        table.setflags(write=False)
        return table

    def pair(self, field: str, low: float, high: float) -> tuple[float, float]:
        """Return two numbers in [low, high]."""
        first, second = self.reals(field, (2,), low, high).tolist()
        return first, second


def check_release(name: str, value: object, version: int) -> int:
    """Return a version if it is the one that this release knows."""
    if type(value) is not int or value != version:
        newer = " (a newer release wrote it)" if type(value) is int and value > version else ""
        raise DocumentError(f"{name} must be {version} for this release of reprl, got {quote(value)}{newer}")
    return value


def check_text(name: str, value: object) -> str:
    """Return value if it is a text of any kind."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, got {quote(value)}")
    return value


def check_printable(name: str, value: object, *, empty: bool = False) -> str:
    """Return value if it is a short printable text."""
    if not isinstance(value, str) or not (empty or value) or len(value) > MAX_TEXT or not value.isprintable():
        raise InputError(f"{name} must be a printable text of at most {MAX_TEXT} characters, got {quote(value)}")
    return value


def _leaves(name: str, value: object, shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of nested lists in order, each with its place, after checking every length."""
    if not shape:
        yield name, value
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        found = f"{len(value)} items" if isinstance(value, list) else quote(value)
        raise DocumentError(f"{name} must be a list of {shape[0]} items, got {found}")
    for i, item in enumerate(value):
        yield from _leaves(f"{name}[{i}]", item, shape[1:])

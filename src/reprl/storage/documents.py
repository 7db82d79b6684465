"""Documents: versioned JSON that is read strictly, written in one way and hashed canonically."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from reprl.errors import DocumentError, ReprlError, quote
from reprl.storage.files import read_bounded, write_atomic

MAX_TEXT = 1000
MAX_BYTES = 1 << 26
"""The largest document that is read from a file, where its kind sets no smaller limit."""
_MAX_MEMORY = 1 << 28
"""What a document's text and values may take in memory, by a bound from its length and signs alone."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
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


class JsonDocument:
    """What is kept as one JSON document: ``save`` and ``load`` follow from ``to_dict`` and ``from_json``."""

    __slots__ = ()
    _limit = 0  # bytes of a file that is read; 0 for MAX_BYTES

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        raise NotImplementedError

    def to_json(self) -> str:
        """Return the document as text, the same bytes for the same content."""
        return dump(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the document to path, whole or not at all."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a document that ``save`` wrote."""
        return load(path, cls.from_json, cls._limit or None)


def load(path: str | os.PathLike[str], read: Callable[[bytes], T], limit: int | None = None) -> T:
    """Read a document from a file of at most limit bytes; errors begin with its path."""
    data = read_bounded(path, MAX_BYTES if limit is None else limit)
    try:
        return read(data)
    except ReprlError as error:
        raise DocumentError(f"{os.fspath(path)}: {error}") from None


def read_document(path: str | os.PathLike[str]) -> Any:
    """Return what a file of JSON says, of whatever kind it is."""
    return decode(read_bounded(path, MAX_BYTES), str(path))


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
        if isinstance(data, str):
            data.encode()  # bytes were whole characters when they were decoded
        if _HALF.search(text):
            _check_whole(document)
        return document
    except ReprlError as error:
        raise DocumentError(f"{noun} {error}") from None
    except UnicodeEncodeError as error:
        raise DocumentError(
            f"{noun} must be whole characters, got half of one: {quote(error.object[error.start])}"
        ) from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DocumentError(f"{noun} must be a JSON document: {quote(str(error))}") from None


def _check_whole(document: Any) -> None:
    """Refuse texts that hold half a character, which only an escape can have put there."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value


def _check_memory(text: str) -> None:
    """Refuse a text whose values could take more memory than a document may, before they do."""
    memory = bound_memory(text)
    if memory > _MAX_MEMORY:
        raise DocumentError(
            f"must take at most {_MAX_MEMORY >> 20} MiB of memory, got up to {memory >> 20} MiB of text and values"
        )


def bound_memory(text: str) -> int:
    """Return a bound on the bytes that a JSON text and its values take, at most, while they are read."""
    commas, lists, objects = text.count(","), text.count("["), text.count("{")
    # A number of one or two digits is in memory already; any other value has three characters or more.
    values = min(commas + lists + objects, (len(text) - commas - text.count(" ")) // 3)
    return sys.getsizeof(text) + 9 * commas + 56 * values + 96 * lists + 320 * objects + 200 * text.count(":")


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

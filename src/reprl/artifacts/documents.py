"""Documents: versioned JSON that is read strictly and hashed canonically."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import ReprlError, check_int, quote
from reprl.randomness import STREAM_VERSION

_DIGEST = re.compile(r"[0-9a-f]{64}")
MAX_TEXT = 1000


def canonical(document: Any) -> bytes:
    """Return the one encoding of a document that is hashed: sorted keys, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest(document: Any) -> str:
    """SHA-256 of the canonical encoding, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(document)).hexdigest()


def pretty(document: Mapping[str, Any], indent: str = "") -> str:
    """Return a document for people to read: a line for each field, lists in one line."""
    inner = indent + "  "
    lines = [
        f"{inner}{json.dumps(name)}: {pretty(value, inner) if _nests(value) else json.dumps(value, allow_nan=False)}"
        for name, value in document.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n" + indent + "}"


def _nests(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(value)


def parse(data: bytes | str, noun: str, format: str, version: int, names: Iterable[str]) -> dict[str, Any]:
    """Read a JSON object of one format and version with exactly these fields; anything else is a ReprlError."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except ReprlError as error:
        raise ReprlError(f"{noun} {error}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise ReprlError(f"a {noun} must be a JSON document: {quote(str(error))}") from None
    if not isinstance(document, dict) or document.get("format") != format:
        found = document.get("format") if isinstance(document, dict) else document
        raise ReprlError(f"{noun} format must be {format!r}, got {quote(found)}")
    stated = document.get("version")
    if type(stated) is not int or stated != version:
        newer = " (a newer release wrote it)" if type(stated) is int and stated > version else ""
        raise ReprlError(f"{noun} version must be {version} for this release of reprl, got {quote(stated)}{newer}")
    return check_fields(noun, document, ("format", "version", *names))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ReprlError(f"fields must be given once, got {quote(twice)} twice")
    return document


def _no_constant(name: str) -> Any:
    raise ReprlError(f"numbers must be finite, got {name}")


def check_fields(name: str, value: object, names: Sequence[str]) -> dict[str, Any]:
    """Return value if it is a JSON object with exactly these fields."""
    if not isinstance(value, dict):
        raise ReprlError(f"{name} must be an object with the fields {', '.join(names)}; got {quote(value)}")
    for field in value:
        if field not in names:
            raise ReprlError(f"{name} must have only the fields {', '.join(names)}; got {quote(field)}")
    for field in names:
        if field not in value:
            raise ReprlError(f"{name} must have the field {field!r}, got only {', '.join(map(str, value)) or 'none'}")
    return value


def check_digest(name: str, value: object) -> str:
    """Return value if it is a SHA-256 in hexadecimal."""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ReprlError(f"{name} must be 64 hexadecimal digits, got {quote(value)}")
    return value


def check_text(name: str, value: object, *, empty: bool = False) -> str:
    """Return value if it is a short printable text."""
    if not isinstance(value, str) or not (empty or value) or len(value) > MAX_TEXT or not value.isprintable():
        raise ReprlError(f"{name} must be a printable text of at most {MAX_TEXT} characters, got {quote(value)}")
    return value


def check_stream(name: str, value: object) -> int:
    """Return value if it is the stream version of this release: another one draws other samples."""
    if type(value) is not int or value != STREAM_VERSION:
        raise ReprlError(f"{name} must be {STREAM_VERSION} for this release of reprl, got {quote(value)}")
    return value


def read_table(name: str, value: object, shape: tuple[int, ...], low: int, high: int | None) -> NDArray[Any]:
    """Return nested lists of whole numbers as an int64 array of this shape, or of objects where int64 is too small."""
    flat = [check_int(where, item, low, high) for where, item in _leaves(name, value, shape)]
    table = np.empty(len(flat), dtype=np.int64 if max(flat) < 2**63 else object)
    table[:] = flat
    table.setflags(write=False)
    return table.reshape(shape)


def read_reals(
    name: str, value: object, shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf
) -> NDArray[np.float64]:
    """Return nested lists of numbers in [low, high] as a float64 array of this shape."""
    flat = []
    for where, item in _leaves(name, value, shape):
        if type(item) not in (int, float) or not low <= item <= high or abs(item) > 1e300:
            bounds = f"a number from {low:g} to {high:g}" if np.isfinite(low) else "a finite number"
            raise ReprlError(f"{where} must be {bounds}, got {quote(item)}")
        flat.append(float(item))
    table = np.array(flat, dtype=np.float64).reshape(shape)
    table.setflags(write=False)
    return table


def _leaves(name: str, value: object, shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of nested lists in order, each with its place, after checking every length."""
    if not shape:
        yield name, value
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        found = f"{len(value)} items" if isinstance(value, list) else quote(value)
        raise ReprlError(f"{name} must be a list of {shape[0]} items, got {found}")
    for i, item in enumerate(value):
        yield from _leaves(f"{name}[{i}]", item, shape[1:])


@contextmanager
def naming(prefix: str) -> Iterator[None]:
    """Say where in a document a value came from when a check refuses it."""
    try:
        yield
    except ReprlError as error:
        raise ReprlError(f"{prefix}{error}") from None

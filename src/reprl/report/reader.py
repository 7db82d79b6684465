"""Reader: checked access to a JSON document that somebody else may have written."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import ReprlError, check_array, check_choice, check_int, check_real, quote
from reprl.files import read_bounded

Array = NDArray[np.float64]
VERSION = 1
"""The version of every document that a report reads."""


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a JSON object from a file."""
    data = read_bounded(path)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ReprlError(f"cannot read {os.fspath(path)}: not a JSON document ({quote(str(error))})") from None
    if not isinstance(document, dict):
        raise ReprlError(f"{os.fspath(path)} must hold a JSON object, got {quote(document)}")
    return document


class Reader:
    """The fields of one JSON object, each checked as it is read.

    Args:
        name: what the object is called in messages.
        document: the object.
    """

    def __init__(self, name: str, document: object) -> None:
        """Refuse anything but an object."""
        if not isinstance(document, Mapping):
            raise ReprlError(f"{name} must be an object with named fields, got {quote(document)}")
        self.name, self.document = name, document

    @classmethod
    def of_format(cls, name: str, document: object, format: str) -> Reader:
        """Refuse another format, and a version that this release does not know."""
        reader = cls(name, document)
        if reader.document.get("format") != format:
            raise ReprlError(f"{name} must say format {format!r}, got {quote(reader.document.get('format'))}")
        version = reader.document.get("version")
        if version != VERSION or isinstance(version, bool):
            newer = isinstance(version, int) and version > VERSION
            hint = " (written by a newer reprl: update to read it)" if newer else ""
            raise ReprlError(f"{name} version must be {VERSION}, got {quote(version)}{hint}")
        return reader

    def __call__(self, field: str) -> Any:
        """Return a field that must be there."""
        if field not in self.document:
            raise ReprlError(
                f"{self.name} must have a field {field!r}, got only {quote(sorted(map(str, self.document)))}"
            )
        return self.document[field]

    def part(self, field: str) -> Reader:
        """Return an object inside the object."""
        return Reader(f"{self.name} {field}", self(field))

    def text(self, field: str) -> str:
        """Return a string."""
        value = self(field)
        if not isinstance(value, str):
            raise ReprlError(f"{self.name} {field} must be text, got {quote(value)}")
        return value

    def choice(self, field: str, choices: tuple[str, ...]) -> str:
        """Return one of the allowed words."""
        return check_choice(f"{self.name} {field}", self(field), choices)

    def whole(self, field: str, low: int = 0, high: int | None = None) -> int:
        """Return a whole number."""
        return check_int(f"{self.name} {field}", self(field), low, high)

    def real(self, field: str, low: float = 0.0, high: float = math.inf) -> float:
        """Return a finite number in [low, high]."""
        return check_real(f"{self.name} {field}", self(field), low, high, open_low=False, open_high=math.isinf(high))

    def maybe_real(self, field: str, low: float = -math.inf) -> float | None:
        """Return a finite number, or None where the field is null or absent."""
        return None if self.document.get(field) is None else self.real(field, low)

    def maybe_whole(self, field: str, high: int | None = None) -> int | None:
        """Return a whole number, or None where the field is null or absent."""
        return None if self.document.get(field) is None else self.whole(field, 0, high)

    def list(self, field: str) -> list[Any]:
        """Return a list."""
        value = self(field)
        if not isinstance(value, list | tuple):
            raise ReprlError(f"{self.name} {field} must be a list, got {quote(value)}")
        return [*value]

    def texts(self, field: str, length: int) -> tuple[str, ...]:
        """Return a list of strings of the given length, or nothing where it is empty or absent."""
        value = self.document.get(field) or ()
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise ReprlError(f"{self.name} {field} must be a list of names, got {quote(value)}")
        if value and len(value) != length:
            raise ReprlError(f"{self.name} {field} must name all {length}, got {len(value)} names")
        return tuple(value)

    def table(self, field: str, shape: tuple[int, ...]) -> Array:
        """Return a table of finite numbers of the given shape."""
        table = check_array(f"{self.name} {field}", self(field), len(shape))
        if table.shape != shape:
            raise ReprlError(f"{self.name} {field} must have shape {shape}, got {table.shape}")
        return table

    def maybe_table(self, field: str, shape: tuple[int, ...]) -> Array | None:
        """Return a table, or None where the field is null or absent."""
        return None if self.document.get(field) is None else self.table(field, shape)

"""Fields: what a document holds is declared once, on the class that holds it, and read and written by that table.

A NamedTuple or dataclass declares a field by its type (``int``, ``float``, ``str``, ``bool``, ``X | None``,
``tuple[X, ...]``, another such class) or by ``Annotated[X, kind]`` with a kind of this module. A bound, shape or length
may be a function of the other fields: ``whole(0, lambda at: at.pairs)``; ``at`` also finds fields of outer objects.

Why not msgspec or cattrs: msgspec reads a NamedTuple from a list only, has no bounds beyond int64 (seeds are below
2**64), turns 1 into 1.0 (which changes digests) and its messages do not quote the value; cattrs imports in 80 ms and
would keep none of its own hooks. What remained for either is the loop over fields in ``read_fields``.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Self, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from reprl.errors import DocumentError, check_choice, check_int, check_real, quote
from reprl.storage.documents import MAX_TEXT, JsonDocument, decode, digest, dump, plain, pretty, stated_format

MAX_WHOLE = 2**100
"""The largest whole number that a document may hold where nothing else limits it: more than any run can count."""
_LARGEST = 1e300
"""The largest magnitude of a number that is not whole: sums and products of figures stay finite."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Fields:
    """The fields of one object, each read when it is first asked for, then those of the objects around it."""

    def __init__(self, where: str, document: Mapping[str, Any], table: Mapping[str, Kind], outer: Any) -> None:
        self._where, self._document, self._table, self._outer = where, document, table, outer
        self._read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name not in self._table:
            return getattr(self._outer, name)
        if name not in self._read:
            self._read[name] = self._table[name].read(f"{self._where}{name}", self._document[name], self)
        return self._read[name]

    def __call__(self, bound: Any) -> Any:
        """Return a bound, or what it is for these fields."""
        return bound(self) if callable(bound) else bound


class Kind(NamedTuple):
    """How a field is read and written."""

    read: Callable[[str, Any, Any], Any]
    """From its name in messages, the value and the other fields."""
    write: Callable[[Any], Any] = lambda value: plain(value)
    """From the value."""
    nullable: bool = False
    """Whether it takes null."""
    name: str = ""
    """What the document calls it, where that is not what the class does."""
    attribute: str = ""
    """What the class calls it then."""


def read_fields(
    where: str, document: object, table: Mapping[str, Kind], outer: Any = None, joint: str = "."
) -> dict[str, Any]:
    """Return the fields of an object, which must have all of its table's and no others.

    Bounds may ask `outer`, the fields of the object around it; joint stands in messages between where, its name, and a
    field's.
    """
    known = document if isinstance(document, dict) else {}
    fields = Fields(f"{where}{joint}", known, table, outer)
    if not isinstance(document, dict):
        raise DocumentError(f"{where} must be an object with the fields {', '.join(table)}; got {quote(document)}")
    for name in document:
        if name not in table:
            raise DocumentError(f"{where} must have only the fields {', '.join(table)}; got {quote(name)}")
    for name in table:
        if name not in document:
            raise DocumentError(f"{where} must have the field {name!r}, got only {', '.join(document) or 'none'}")
    return {table[name].attribute or name: getattr(fields, name) for name in table}


def write_fields(source: object, table: Mapping[str, Kind]) -> dict[str, Any]:
    """Return the object in JSON's types that ``read_fields`` reads, from the attributes of source."""
    return {name: kind.write(getattr(source, kind.attribute or name, None)) for name, kind in table.items()}


@cache
def declared(cls: type) -> dict[str, Kind]:
    """Return the table of a class, by the types of its fields."""
    known = vars(sys.modules[cls.__module__])  # given as both, so that functions in annotations see the module's names
    hints = get_type_hints(cls, known, known, include_extras=True)
    kinds = {name: _kind_of(hint) for name, hint in hints.items()}
    return {kind.name or name: kind._replace(attribute=name) for name, kind in kinds.items()}


def with_fields(cls: type, **after: Mapping[str, Kind]) -> dict[str, Kind]:
    """Return the table of a class with fields that only the document has, by the field that they come after."""
    table: dict[str, Kind] = {}
    for name, kind in declared(cls).items():
        table |= {name: kind, **after.get(kind.attribute, {})}
    return table


def _kind_of(hint: Any) -> Kind:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind: Kind = hint.__metadata__[0]
        return optional(kind) if NoneType in get_args(inner[0]) and not kind.nullable else kind
    if origin in (Union, UnionType):
        return optional(_kind_of(next(item for item in inner if item is not NoneType)))
    if origin is tuple and inner[-1] is Ellipsis:
        return many(_kind_of(inner[0]))
    return _PLAIN.get(origin or hint) or record(hint)


class Document(NamedTuple):
    """A kind of file."""

    noun: str
    """What it is called in messages."""
    format: str
    version: int
    cls: type
    table: Mapping[str, Kind]

    def make(self, fields: Mapping[str, Any]) -> Any:
        """Return the instance of the class that its fields, and perhaps others, describe."""
        own = {kind.attribute for kind in declared(self.cls).values()}
        return self.cls(**{name: value for name, value in fields.items() if name in own})

    def read(self, data: bytes | str) -> dict[str, Any]:
        """Return its fields from a text, strictly."""
        document = decode(data, self.noun)
        if stated_format(document) != self.format:
            raise DocumentError(f"{self.noun} format must be {self.format!r}, got {quote(stated_format(document))}")
        stated = document.get("version")
        if type(stated) is not int or stated != self.version:
            newer = " (a newer release wrote it)" if type(stated) is int and stated > self.version else ""
            allowed = f"{self.version} for this release of reprl"
            raise DocumentError(f"{self.noun} version must be {allowed}, got {quote(stated)}{newer}")
        body = {name: value for name, value in document.items() if name not in ("format", "version")}
        return read_fields(self.noun, body, self.table, joint=" ")

    def write(self, source: object) -> dict[str, Any]:
        """Return the document."""
        return {"format": self.format, "version": self.version, **write_fields(source, self.table)}


class Declared(JsonDocument):
    """A document whose fields its class declares."""

    _document = cast(Document, None)  # set where the class is complete
    _indent = cast(Any, 0)  # of its text: 0 for a line for each field, None for one line in all

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        return self._document.write(self)

    def to_json(self) -> str:
        """Return the document as text, the same bytes for the same content."""
        return pretty(self.to_dict()) if self._indent == 0 else dump(self.to_dict(), self._indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what ``to_json`` wrote; what this release cannot honour is a ReprlError that names the field."""
        return cast(Self, cls._document.make(cls._document.read(text)))


class Sealed(Declared):
    """A document that holds its own digest: one that was edited no longer matches it and is refused."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of everything but the seconds that it took."""
        table = {name: kind for name, kind in self._document.table.items() if name not in _UNSEALED}
        return digest(self._document._replace(table=table).write(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        fields = cls._document.read(text)
        found = cast(Self, cls._document.make(fields))
        found._check_rest(fields)
        if fields["digest"] != found.digest:
            noun = cls._document.noun
            raise DocumentError(f"{noun} digest must be that of its content, got another: it was changed or damaged")
        return found

    def _check_rest(self, fields: Mapping[str, Any]) -> None:
        """Refuse fields that only the document has, where they contradict the others."""


_UNSEALED = ("digest", "seconds", "timings")


def record(cls: Any, table: Mapping[str, Kind] | None = None) -> Kind:
    """An object that becomes an instance of a class; by the types of its fields where no table is given."""
    return Kind(
        lambda where, value, at: cls(**read_fields(where, value, declared(cls) if table is None else table, at)),
        lambda value: write_fields(value, declared(cls) if table is None else table),
    )


def optional(kind: Kind) -> Kind:
    """What may be null."""
    return kind._replace(
        read=lambda where, value, at: None if value is None else kind.read(where, value, at),
        write=lambda value: None if value is None else kind.write(value),
        nullable=True,
    )


def given_when(kind: Kind, when: Callable[[Any], bool], says: str) -> Kind:
    """What must be null exactly where a condition on other fields fails; says ends the message."""

    def read(where: str, value: Any, at: Fields) -> Any:
        if (value is not None) != at(when):
            raise DocumentError(f"{where} must be {says}, got {quote(value)}")
        return None if value is None else kind.read(where, value, at)

    return optional(kind)._replace(read=read)


def also(kind: Kind, accepts: Callable[[Any, Any], bool], allowed: Callable[[Any], str]) -> Kind:
    """What passes a test of the value and the other fields besides; allowed says, of those, what is."""

    def read(where: str, value: Any, at: Fields) -> Any:
        found = kind.read(where, value, at)
        if found is not None and not accepts(found, at):
            raise DocumentError(f"{where} must be {allowed(at)}, got {quote(value)}")
        return found

    return kind._replace(read=read)


def many(kind: Kind, length: Any = None, make: Callable[[Any], Any] = tuple) -> Kind:
    """A list, of a length if that is given, which becomes what make makes of its items."""

    def read(where: str, value: Any, at: Fields) -> Any:
        _check_list(where, value, at(length))
        return make([kind.read(f"{where}[{i}]", item, at) for i, item in enumerate(value)])

    return Kind(read, lambda value: [kind.write(item) for item in value])


def row(says: str, *kinds: Kind) -> Kind:
    """A list with one item of each kind; says is what it must be."""

    def read(where: str, value: Any, at: Fields) -> Any:
        if not isinstance(value, list) or len(value) != len(kinds):
            raise DocumentError(f"{where} must be {says}, got {quote(value)}")
        return tuple(kind.read(where, item, at) for kind, item in zip(kinds, value, strict=True))

    return Kind(read)


def constant(value: Any, says: str) -> Kind:
    """What always has one value, which the class need not have; says is what it must be."""
    kind = checked(says, lambda x: type(x) is type(value) and x == value)
    return kind._replace(write=lambda _: value)


def checked(allowed: str, accepts: Callable[[Any], bool]) -> Kind:
    """What passes a test, as it came."""

    def read(where: str, value: Any, at: Fields) -> Any:
        if not accepts(value):
            raise DocumentError(f"{where} must be {allowed}, got {quote(value)}")
        return value

    return Kind(read)


def whole(low: Any = 0, high: Any = MAX_WHOLE) -> Kind:
    """A whole number."""
    return Kind(lambda where, value, at: check_int(where, value, at(low), at(high)))


def real(low: Any = 0.0, high: Any = math.inf, *, open_low: bool = False) -> Kind:
    """A number in [low, high], an integer as one, so that it is written again as it was read."""

    def read(where: str, value: Any, at: Fields) -> Any:
        least, most = max(at(low), -_LARGEST), min(at(high), _LARGEST)
        check_real(where, value, least, most, open_low=open_low, open_high=False)
        return value

    return Kind(read)


def printable(*, empty: bool = False) -> Kind:
    """A short text that may be shown as it is."""
    return checked(
        f"a printable text of at most {MAX_TEXT} characters",
        lambda x: isinstance(x, str) and (empty or x != "") and len(x) <= MAX_TEXT and x.isprintable(),
    )


def choice(options: Sequence[str]) -> Kind:
    """One of the allowed words."""
    return Kind(lambda where, value, at: check_choice(where, value, options))


ANYTHING = Kind(lambda where, value, at: value)
TEXT = checked("text", lambda x: isinstance(x, str))
FLAG = checked("true or false", lambda x: isinstance(x, bool))
SHA256 = checked("64 hexadecimal digits", lambda x: isinstance(x, str) and bool(_DIGEST.fullmatch(x)))
MAPPING = checked("an object", lambda x: isinstance(x, dict))
SHARE = real(0.0, 1.0)
SEED = whole(0, 2**64 - 1)
_PLAIN = {int: whole(), float: real(), str: TEXT, bool: FLAG, Mapping: MAPPING}


def wholes(shape: Any, low: Any = 0, high: Any = MAX_WHOLE, kind: type | None = None) -> Kind:
    """Nested lists of whole numbers, as an array of a kind: int64, or objects where that is too small."""

    def read(where: str, value: Any, at: Fields) -> Any:
        least, most = at(low), at(high)
        flat = [check_int(place, item, least, most) for place, item in _leaves(where, value, at(shape))]
        return _frozen(flat, at(shape), kind or (np.int64 if max(flat, default=0) < 2**63 else object))

    return Kind(read, lambda value: (value.astype(int) if kind is bool else value).tolist())


def reals(shape: Any, low: Any = -math.inf, high: Any = math.inf) -> Kind:
    """Nested lists of numbers in [low, high], as a float64 array."""

    def read(where: str, value: Any, at: Fields) -> Any:
        least, most = at(low), at(high)
        flat = []
        for place, item in _leaves(where, value, at(shape)):
            if type(item) not in (int, float) or not least <= item <= most or abs(item) > _LARGEST:
                bounds = f"a number from {least:g} to {most:g}" if math.isfinite(least) else "a finite number"
                raise DocumentError(f"{place} must be {bounds}, got {quote(item)}")
            flat.append(item)
        return _frozen(flat, at(shape), np.float64)

    return Kind(read, lambda value: value.tolist())


def _frozen(flat: list[Any], shape: tuple[int, ...], kind: type) -> Any:
    table: Any = np.empty(len(flat), dtype=kind)
    table[:] = flat
    table.setflags(write=False)
    return table.reshape(shape)


def _leaves(where: str, value: object, shape: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of nested lists in order, each with its place, after checking every length."""
    if not shape:
        yield where, value
        return
    for i, item in enumerate(_check_list(where, value, shape[0])):
        yield from _leaves(f"{where}[{i}]", item, shape[1:])


def _check_list(where: str, value: Any, length: int | None) -> list[Any]:
    if not isinstance(value, list) or length not in (None, len(value)):
        allowed = "a list" if length is None else f"a list of {length} items"
        found = f"{len(value)} items" if isinstance(value, list) else quote(value)
        raise DocumentError(f"{where} must be {allowed}, got {found}")
    return value

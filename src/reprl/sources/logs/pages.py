"""How much the pages of a Parquet file unpack to, read from their headers, before PyArrow unpacks one.

A few kilobytes can hold gigabytes, and a file's footer may say otherwise. PyArrow believes the header of each page and
does not show it, so this reads them: Thrift's compact protocol, of which two numbers count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from reprl.errors import DocumentError

_UNPACKED, _PACKED = 2, 3
"""Fields of a header: bytes of the page once unpacked, and in the file."""
_HEADERS = (1 << 12, 1 << 24)
"""Bytes that are read for a header: nearly always enough, and what PyArrow allows."""


def largest_page(file: BinaryIO, column: Any) -> int:
    """Return the bytes that the largest page of a column chunk unpacks to; its dictionary counts in addition."""
    start = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
        start = column.dictionary_page_offset
    sizes = list(_pages(file, start, start + column.total_compressed_size))
    return max(sizes[1:], default=0) + sum(sizes[:1])


def _pages(file: BinaryIO, place: int, end: int) -> Iterator[int]:
    while place < end:
        for most in _HEADERS:
            file.seek(place)
            data = file.read(min(most, end - place))
            try:
                found, length = _header(data)
            except IndexError:
                continue
            break
        else:
            raise DocumentError(f"page at byte {place} must have a header")
        unpacked, packed = found.get(_UNPACKED, -1), found.get(_PACKED, -1)
        if min(unpacked, packed) < 0:
            raise DocumentError(f"page at byte {place} must state its sizes, got {unpacked} and {packed} bytes")
        yield unpacked
        place += length + packed


def _header(data: bytes) -> tuple[dict[int, int], int]:
    """Read a struct of the compact protocol: its numbers by field, and its length; IndexError if it goes on."""
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while shift < 70:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        return value

    def skip(kind: int, depth: int) -> int:
        """Pass over a value and return it if it is a number."""
        nonlocal place
        if kind in (1, 2):  # true, false
            return 0
        if kind == 3 or kind == 7:  # a byte, a double
            place += 1 if kind == 3 else 8
            return 0
        if kind in (4, 5, 6):
            value = number()
            return value >> 1 ^ -(value & 1)
        if kind == 8:
            length = number()
            place += length
            return 0
        if kind == 12 and depth < 8:
            struct(depth + 1)
            return 0
        raise IndexError  # lists and maps, which no header of a page has

    def struct(depth: int) -> dict[int, int]:
        nonlocal place
        found: dict[int, int] = {}
        field = 0
        while True:
            byte = data[place]
            place += 1
            if byte == 0:
                return found
            if byte >> 4:
                field += byte >> 4
            else:
                value = number()
                field = value >> 1 ^ -(value & 1)
            found[field] = skip(byte & 15, depth)

    return struct(0), place

"""Logs in files: CSV and Parquet, read by PyArrow (the extra `logs`), a bounded number of rows at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import DependencyError, DocumentError, InputError, ReprlError, quote
from reprl.sources.logs.pages import largest_page
from reprl.sources.logs.tables import CHUNK, Chunk, Coded, Table, find_columns, unused_columns
from reprl.storage.documents import naming

BLOCK = 1 << 20
"""Bytes of a CSV file that are parsed at a time; no row may be longer."""
_FORMATS = (".csv", ".csv.gz", ".parquet")
_UNPACKED = 1 << 27
"""Bytes that the pages of a Parquet file may take at a time, over all columns that are read."""
_SEPARATORS = (",", ";", "\t", "|")
"""What may stand between the columns of a CSV file."""
_ROW = re.compile(r"Row #(\d+): ")


def open_file(path: Path, wanted: Mapping[str, tuple[str, bool]], what: str = "log") -> Table:
    """Open a file; wanted maps roles to columns and whether they must be there."""
    if not path.name.lower().endswith(_FORMATS):
        raise InputError(f"{what} must be a file that ends in {', '.join(_FORMATS)}; got {quote(str(path))}")
    if not path.is_file():
        raise InputError(f"cannot read {path}: no such file")
    try:
        import pyarrow as pyarrow
    except ImportError:
        raise DependencyError(f"{path} must be read with PyArrow, which is missing: pip install '.[logs]'") from None
    name = str(path)
    if path.name.lower().endswith(".parquet"):
        with _naming(name), _parquet(path) as file:
            names = file.schema_arrow.names
            used = find_columns(names, wanted, name)
            _check_unpacked(path, file, used)
            size = file.metadata.num_rows
        unused = unused_columns(names, used)
        return Table(name, used, lambda: _chunks(_parquet_batches(path, used), used, name), unused, size=size, found=[])
    names, sign = _find_separator(path, wanted)
    used = find_columns(names, wanted, name)
    decimal = "." if sign == "," else ","
    unused = unused_columns(names, used)
    size = _guess_rows(path)
    return Table(name, used, lambda: _chunks(_csv_batches(path, used, sign), used, name), unused, decimal, size, [])


def _guess_rows(path: Path) -> int:
    """About how many rows a CSV file has, by the lines of its beginning; of one that is packed, by its size as is."""
    with open(path, "rb") as file:
        begin = file.read(1 << 16)
    return 0 if not begin else begin.count(b"\n") * path.stat().st_size // len(begin)


def _find_separator(path: Path, wanted: Mapping[str, tuple[str, bool]]) -> tuple[list[str], str]:
    """Return the columns of a CSV file and what separates them: the first sign that finds all that must be there."""
    needed = {name for name, must in wanted.values() if must}
    headers: dict[str, list[str]] = {}
    trouble: list[DocumentError] = []
    for sign in _SEPARATORS:
        try:
            with _naming(str(path)), _csv(path, None, sign) as reader:
                headers[sign] = list(reader.schema.names)
        except DocumentError as error:
            trouble.append(error)
        if needed <= set(headers.get(sign, ())):
            return headers[sign], sign
    most = max(_SEPARATORS, key=lambda sign: len(needed & set(headers.get(sign, ()))))  # the comma, if none finds any
    if most not in headers:
        raise trouble[0]
    return headers[most], most


def open_arrow(table: Any, wanted: Mapping[str, tuple[str, bool]]) -> Table:
    """Take a PyArrow table."""
    used = find_columns(list(table.schema.names), wanted, "log")
    rows = table.select(list(used.values()))
    unused = unused_columns(table.schema.names, used)
    return Table(
        "log", used, lambda: _chunks(rows.to_batches(CHUNK), used, "log"), unused, size=rows.num_rows, found=[]
    )


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Turn what PyArrow raises into one line that names the file and, as far as it is told, the row."""
    import pyarrow

    try:
        yield
    except ReprlError:
        raise
    except (pyarrow.ArrowException, OSError, EOFError, UnicodeError, OverflowError) as error:
        text = str(error)
        row = _ROW.search(text)
        place = f", row {int(row[1]) - 1}" if row else ""  # its count begins with the header
        raise DocumentError(f"{name}{place} cannot be read: {quote(_ROW.sub('', text), 300)}") from None


def _parquet(path: Path, texts: list[str] | None = None) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(path, read_dictionary=texts, memory_map=False, pre_buffer=False)


def _check_unpacked(path: Path, file: Any, used: Mapping[str, str]) -> None:
    """Refuse what a small file could fill memory with, before a page is read: lists, and row groups of vast pages."""
    import pyarrow

    name = str(path)
    types = {column: file.schema_arrow.field(column).type for column in used.values()}
    for column, type in types.items():
        if pyarrow.types.is_nested(type):
            raise DocumentError(f"{name}, column {column!r} must hold numbers or texts, got {quote(str(type))}")
    with open(path, "rb") as raw:
        for group in range(file.metadata.num_row_groups):
            row_group = file.metadata.row_group(group)
            parts = [row_group.column(i) for i in range(row_group.num_columns)]
            with naming(f"{name}: "):
                size = sum(largest_page(raw, part) for part in parts if part.path_in_schema in types)
            if size > _UNPACKED:
                most = f"pages of at most {_UNPACKED >> 20} MiB in all its columns"
                raise DocumentError(f"{name}, row group {group + 1} must have {most}, got {size >> 20} MiB")


def _parquet_batches(path: Path, used: Mapping[str, str]) -> Iterator[Any]:
    """Read the rows; a text is kept once in memory, however many rows have it."""
    import pyarrow

    with _parquet(path) as file:
        kinds = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_binary)
        names = set(used.values())
        texts = [field.name for field in file.schema_arrow if field.name in names and any(k(field.type) for k in kinds)]
    with _parquet(path, texts) as file:
        yield from file.iter_batches(batch_size=CHUNK, columns=list(used.values()), use_threads=False)


@contextmanager
def _csv(path: Path, used: Mapping[str, str] | None, separator: str) -> Iterator[Any]:
    """Open a CSV file, every column as text: what a column holds must not depend on where a chunk ends."""
    import pyarrow
    from pyarrow import csv

    names = [] if used is None else list(used.values())
    with pyarrow.input_stream(str(path), compression="detect") as stream:
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                include_columns=names, column_types={name: pyarrow.string() for name in names}
            ),
        )
        with reader:
            yield reader


def _csv_batches(path: Path, used: Mapping[str, str], separator: str) -> Iterator[Any]:
    with _csv(path, used, separator) as reader:
        yield from reader


def _chunks(batches: Iterable[Any], used: Mapping[str, str], name: str) -> Iterator[Chunk]:
    with _naming(name):
        for batch in batches:
            if batch.num_rows:
                yield {
                    role: _numbers(batch.column(column)) if role == "reward" else _encode(batch.column(column))
                    for role, column in used.items()
                }


def _encode(column: Any) -> Coded:
    """Number the labels of a column; an empty text is nothing, as in a CSV file."""
    import pyarrow

    coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    labels = coded.dictionary.to_pylist()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    nothing = [i for i, label in enumerate(labels) if label is None or label == ""]
    if nothing:
        codes[np.isin(codes, nothing)] = -1
    return Coded(codes, labels)


def _numbers(column: Any) -> NDArray[Any]:
    """Rewards as numbers; where not every one is, as they stand, for ``read`` to say which is not."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        found = _numbers(column.dictionary)
        nothing = None if found.dtype == object else np.nan
        codes = column.indices.fill_null(len(found)).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(found, np.array([nothing], dtype=found.dtype))[codes])
    try:
        numbers = column.cast(pyarrow.float64())
    except pyarrow.ArrowException:
        out = np.empty(len(column), dtype=object)
        out[:] = column.to_pylist()
        return out
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)

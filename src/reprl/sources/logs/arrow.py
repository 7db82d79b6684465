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
from reprl.sources.logs.tables import CHUNK, Chunk, Coded, Table, find_columns

BLOCK = 1 << 20
"""Bytes of a CSV file that are parsed at a time; no row may be longer."""
_FORMATS = (".csv", ".csv.gz", ".parquet")
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
        raise DependencyError(
            f"{path} must be read with PyArrow, which is missing: pip install 'reprl[logs]'"
        ) from None
    name = str(path)
    if path.name.lower().endswith(".parquet"):
        with _naming(name), _parquet(path) as file:
            used = find_columns(file.schema_arrow.names, wanted, name)
        return Table(name, used, lambda: _chunks(_parquet_batches(path, used), used, name))
    with _naming(name), _csv(path, None) as reader:
        used = find_columns(reader.schema.names, wanted, name)
    return Table(name, used, lambda: _chunks(_csv_batches(path, used), used, name))


def open_arrow(table: Any, wanted: Mapping[str, tuple[str, bool]]) -> Table:
    """Take a PyArrow table."""
    used = find_columns(list(table.schema.names), wanted, "log")
    rows = table.select(list(used.values()))
    return Table("log", used, lambda: _chunks(rows.to_batches(CHUNK), used, "log"))


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


def _parquet(path: Path) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(path, memory_map=False, pre_buffer=False)


def _parquet_batches(path: Path, used: Mapping[str, str]) -> Iterator[Any]:
    with _parquet(path) as file:
        yield from file.iter_batches(batch_size=CHUNK, columns=list(used.values()), use_threads=False)


@contextmanager
def _csv(path: Path, used: Mapping[str, str] | None) -> Iterator[Any]:
    """Open a CSV file, every column as text: what a column holds must not depend on where a chunk ends."""
    import pyarrow
    from pyarrow import csv

    names = [] if used is None else list(used.values())
    with pyarrow.input_stream(str(path), compression="detect") as stream:
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                include_columns=names, column_types={name: pyarrow.string() for name in names}
            ),
        )
        with reader:
            yield reader


def _csv_batches(path: Path, used: Mapping[str, str]) -> Iterator[Any]:
    with _csv(path, used) as reader:
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

    try:
        numbers = column.cast(pyarrow.float64())
    except pyarrow.ArrowException:
        out = np.empty(len(column), dtype=object)
        out[:] = column.to_pylist()
        return out
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)

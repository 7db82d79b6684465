"""Files that are either whole or absent: atomic writing, bounded reading."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from reprl.errors import ReprlError, quote

MAX_BYTES = 1 << 30
"""The largest file that a loader reads into memory."""


def write_atomic(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write data beside path and rename it there, so that a crash leaves the old file or the new one."""
    target = _path(path)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except (OSError, ValueError) as error:  # ValueError: a path that no file system can hold
        raise ReprlError(f"cannot write {target}: {getattr(error, 'strerror', None) or error}") from None
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
    return target


def _path(path: object) -> Path:
    try:
        if isinstance(path, bytes) or not path:
            raise TypeError
        return Path(path)  # type: ignore[arg-type]
    except TypeError:
        raise ReprlError(f"path must be the name of a file, got {quote(path)}") from None


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def read_bounded(path: str | os.PathLike[str], limit: int | None = None) -> bytes:
    """Read a whole regular file of at most limit bytes; None for MAX_BYTES."""
    source = _path(path)
    limit = MAX_BYTES if limit is None else limit
    try:
        if not source.is_file():
            raise ReprlError(f"cannot read {source}: no such file")
        size = source.stat().st_size
        if size > limit:
            raise ReprlError(f"cannot read {source}: a file of at most {limit} bytes is expected, got {size}")
        return source.read_bytes()
    except OSError as error:
        raise ReprlError(f"cannot read {source}: {error.strerror or error}") from None

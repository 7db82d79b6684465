"""Files that are either whole or absent: outputs opened before work begins, atomic writing, bounded reading.

What is written must be a regular file or not there yet. A link, a device, a pipe or a folder in its place is refused:
nothing is ever written through a link or put in the place of one (folders on the way may be links). The old file's mode
is kept, and its owner where that is allowed; a new file has the mode of the umask.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import Self

from reprl.errors import DocumentError, InputError, OutputError, ReprlError, quote

MAX_BYTES = 1 << 30
"""The largest file that a loader reads into memory."""
_PART = re.compile(r"\.[0-9a-f]{16}\.part")
_STEM = 50
"""Characters of a name that its part shows: names have at most 255 bytes."""
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


@contextmanager
def open_output(path: str | os.PathLike[str], *, parents: bool = False) -> Iterator[Callable[[bytes], Path]]:
    """Open an output before the work that fills it begins, so that what cannot be written is refused at once.

    Args:
        path: a regular file, or nothing yet.
        parents: make missing folders on the way; those made in vain are removed.

    Yields:
        What puts data in the place of path and returns it. Until then the old file stays as it is. A crash leaves the
        old file or the new one, and perhaps a locked-by-nobody part beside it, which the next writer clears away.
    """
    target = _path(path)
    with made_folder(target.parent, str(target)) if parents else nullcontext():
        with refusing(str(target)):
            old = check_replaceable(target)
            _sweep(target)
            part, handle = _open_part(target, private=old is not None)
        done = False

        def write(data: bytes) -> Path:
            nonlocal done
            with refusing(str(target)):
                replaced = check_replaceable(target)
                fill(handle, data, like=replaced)
                os.replace(part, target)
                done = True
                sync_folder(target.parent)
            return target

        try:
            yield write
        finally:
            if not done:
                with suppress(OSError):
                    os.unlink(part)
            os.close(handle)


def write_atomic(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write data beside path and rename it there, so that a crash leaves the old file or the new one."""
    with open_output(path) as write:
        return write(data)


def check_replaceable(target: Path) -> os.stat_result | None:
    """Return what is known of the regular file that is to be replaced, None if there is none; refuse anything else."""
    try:
        found = os.lstat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(None, "Is a directory")
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise OSError(None, f"it must be a regular file or not there yet, got {kind}")
    if not os.access(target, os.W_OK):
        raise PermissionError(None, "Permission denied")
    return found


def fill(handle: int, data: bytes, like: os.stat_result | None) -> None:
    """Write data to an open file, down to the disk; with owner and mode of the file whose place it takes, if any."""
    with open(handle, "wb", closefd=False) as file:
        file.write(data)
        file.flush()
        if like is not None:
            _keep_mode(handle, like)
        os.fsync(file.fileno())


def _keep_mode(handle: int, like: os.stat_result) -> None:
    mode = stat.S_IMODE(like.st_mode) & 0o777
    if hasattr(os, "fchown"):
        with suppress(OSError):
            os.fchown(handle, like.st_uid, like.st_gid)
        if os.fstat(handle).st_gid != like.st_gid:
            mode &= ~0o070  # what one group could read is not for another
        os.fchmod(handle, mode)


@contextmanager
def made_folder(folder: Path, what: str) -> Iterator[None]:
    """Make a folder and those above it that are missing, and remove again those in which nothing is at the end.

    Args:
        folder: to be made.
        what: what cannot be written if it cannot be made.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]  # known before a signal can come
    try:
        with refusing(what):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        remove_empty(missing)


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders, the innermost first, as far as nothing is in them."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def sync_folder(folder: Path) -> None:
    """Bring renames in a folder down to the disk, where the platform can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def try_lock(handle: int) -> bool | None:
    """Lock an open file or folder without waiting: whether it is ours now; None where there are no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn what an operating system refuses to write into one line."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a path that no file system can hold
        if isinstance(error, ReprlError):
            raise
        raise OutputError(f"cannot write {what}: {getattr(error, 'strerror', None) or error}") from None


def _stem(target: Path) -> str:
    return f".{target.name[:_STEM]}"


def _open_part(target: Path, *, private: bool) -> tuple[Path, int]:
    """Open a file of our own beside the target, locked while we live."""
    while True:
        part = target.parent / f"{_stem(target)}.{secrets.token_hex(8)}.part"
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        if try_lock(handle) is not False and part.exists():
            return part, handle
        os.close(handle)  # another writer took it for a dead one's, before it was locked


def _sweep(target: Path) -> None:
    """Remove parts that dead writers of this target have left: those that nobody has locked."""
    stem = _stem(target)
    with os.scandir(target.parent) as entries:
        parts = [entry.path for entry in entries if entry.name.startswith(stem)]
    for part in parts:
        if not _PART.fullmatch(os.path.basename(part)[len(stem) :]):
            continue
        with suppress(OSError):
            handle = _open_regular(part)
            try:
                if try_lock(handle):
                    os.unlink(part)
            finally:
                os.close(handle)


def _open_regular(path: str | os.PathLike[str], *, links: bool = False) -> int:
    """Open a regular file for reading, never waiting for a pipe's other end."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags if links else flags | getattr(os, "O_NOFOLLOW", 0))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise FileNotFoundError(None, "no such file")


def _path(path: object) -> Path:
    try:
        if isinstance(path, bytes) or not path:
            raise TypeError
        return Path(path)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"path must be the name of a file, got {quote(path)}") from None


def read_bounded(path: str | os.PathLike[str], limit: int | None = None) -> bytes:
    """Read a whole regular file of at most limit bytes; None for MAX_BYTES. Links are followed."""
    source = _path(path)
    limit = MAX_BYTES if limit is None else limit
    try:
        with open(_open_regular(source, links=True), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(limit + 1) if size <= limit else b""
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a path that no file system can hold
        raise InputError(f"cannot read {source}: no such file") from None
    except OSError as error:
        raise InputError(f"cannot read {source}: {error.strerror or error}") from None
    if max(size, len(data)) > limit:
        found = max(size, len(data))
        raise DocumentError(f"cannot read {source}: a file of at most {limit} bytes is expected, got {found}")
    return data


class SealedFile:
    """Data with one canonical encoding, which a file holds followed by its SHA-256."""

    _noun = "data"

    def to_bytes(self) -> bytes:
        """Return the canonical encoding."""
        raise NotImplementedError

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what ``to_bytes`` wrote; anything else is a ReprlError."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        """SHA-256 of ``to_bytes``."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def sealed(self) -> bytes:
        """Return what ``save`` writes: the canonical encoding, followed by its SHA-256."""
        data = self.to_bytes()
        return data + hashlib.sha256(data).digest()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the data to path, all or nothing."""
        return write_atomic(path, self.sealed())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what ``save`` wrote; a damaged file is refused."""
        stored = read_bounded(path)
        data, seal = stored[:-_SEAL], stored[-_SEAL:]
        if hashlib.sha256(data).digest() != seal:
            raise DocumentError(f"{cls._noun} in {path} must match the SHA-256 at their end, got other data")
        return cls.from_bytes(data)


_SEAL = hashlib.sha256().digest_size

"""Checkpoints: a folder with one sealed file for every finished task of one piece of work.

work.json says which work it is: every setting on which a task depends, the streams' version and the release. A folder
of other work is refused, and the setting is named. Files are written whole or not at all, so work that was killed goes
on with the tasks that are missing, and work that is finished has none to do. A file that was changed is refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from reprl.errors import DocumentError, InputError, OutputError, quote
from reprl.randomness import STREAM_VERSION
from reprl.storage.documents import canonical, decode, digest, dump, load, plain
from reprl.storage.fields import ANYTHING, MAPPING, TEXT, Document, read_fields
from reprl.storage.files import open_output, read_bounded, refusing, remove_empty, try_lock, write_atomic

WORK = "work.json"
_HEAD = {"format": "reprl-checkpoint", "version": 1}
_DOCUMENT = Document(
    "checkpoint", "reprl-checkpoint", 1, dict, {"reprl": ANYTHING, "stream_version": ANYTHING, "work": MAPPING}
)
_MAGIC = b"reprl-task-1\n"
_SEAL = 32
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_told: list[str] = []
"""What was said of a full disk: it is said once."""
R = TypeVar("R")


class Content(NamedTuple):
    """What a task's file holds."""

    fields: Mapping[str, Any]
    """In the types that JSON has."""
    data: bytes = b""


class Checkpoint:
    """The finished tasks of one piece of work, by name; see ``open_checkpoint``."""

    def __init__(self, folder: Path, document: Mapping[str, Any]) -> None:
        """Take a folder, which is made when the first task is done, and what is said of its work."""
        self.folder, self._document, self._work = folder, document, digest(document)
        self._lock: int | None = None
        self.made = self.found = 0
        """Tasks that were put here, and tasks that were there already when asked for."""
        if folder.exists():
            self._begin()

    def _begin(self) -> None:
        """Make the folder ours: lock it, and see or say which work it is of."""
        with refusing(f"to {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder, os.O_RDONLY)
        try:
            self._claim(self.folder)
        except BaseException:
            self.close()
            remove_empty([self.folder])
            raise

    def _claim(self, place: Path) -> None:
        assert self._lock is not None
        if try_lock(self._lock) is False:
            raise InputError(f"{place} must be free, got a folder that another process works in")
        if (place / WORK).exists():
            _check_same(place, _load(place), self._document)
        elif any(not entry.name.startswith(f".{WORK}.") for entry in place.iterdir()):
            raise InputError(f"{place} must be empty or hold {WORK}, got other files: take another folder")
        else:
            write_atomic(place / WORK, dump(self._document, indent=1).encode())

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def get(self, name: str) -> Content | None:
        """Return what a task gave, None if it is not finished."""
        path = self._path(name)
        if not path.exists():
            return None
        content = _read(path, read_bounded(path), self._work, name)
        self.found += 1
        return content

    def put(self, name: str, content: Content) -> None:
        """Keep what a task gave."""
        if self._lock is None:
            self._begin()
        head = canonical({"work": self._work, "task": name, "fields": plain(content.fields, strict=True)})
        data = _MAGIC + head + b"\n" + content.data
        with open_output(self._path(name), parents=True) as write:
            write(data + hashlib.sha256(data).digest())
        self.made += 1

    def _path(self, name: str) -> Path:
        """256 folders: who writes a file looks through its folder for leftovers."""
        code = digest(name)
        return self.folder / code[:2] / f"{code[2:34]}.task"


class Kept(NamedTuple, Generic[R]):
    """A store of results of one kind (``reprl.execution.tasks.Store``) in a checkpoint."""

    checkpoint: Checkpoint
    prefix: str
    """Before every key."""
    write: Callable[[R], Content]
    read: Callable[[Content], R]

    def get(self, key: object) -> R | None:
        """Return what a task gave, None if it is not finished."""
        content = self.checkpoint.get(f"{self.prefix}{key}")
        return None if content is None else self.read(content)

    def put(self, key: object, found: R) -> None:
        """Keep what a task gave; a disk that is full by now costs the checkpoint, not the work."""
        try:
            self.checkpoint.put(f"{self.prefix}{key}", self.write(found))
        except OutputError as error:
            if getattr(error.__context__, "errno", None) not in _FULL:
                raise
            if not _told:
                _told.append(str(error))
                print(f"reprl: going on, but finished work is not kept: {error}", file=sys.stderr)

    def once(self, key: object, make: Callable[[], R]) -> R:
        """Return what a task gave, or do it and keep it."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found)
        return found


@contextmanager
def open_checkpoint(folder: str | os.PathLike[str] | None, work: Mapping[str, Any]) -> Iterator[Checkpoint | None]:
    """Lock a folder for one piece of work and yield its finished tasks; None for no folder.

    Args:
        folder: made when the first task is done. One with tasks of other work, or in use by others, is refused.
        work: every setting on which a task depends, in types that JSON has.
    """
    if folder is None:
        yield None
        return
    from reprl import __version__

    document = {**_HEAD, "reprl": __version__, "stream_version": STREAM_VERSION}
    with closing(Checkpoint(Path(folder), document | {"work": plain(work, strict=True)})) as checkpoint:
        yield checkpoint


def recall(folder: str | os.PathLike[str] | None, name: str) -> Any | None:
    """Return a setting of the work that a folder holds tasks of, for who goes on with it; None if there is none."""
    work = None if folder is None else recall_work(folder)
    return None if work is None else work.get(name)


def recall_work(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return every setting of the work that a folder holds tasks of; None if there is none."""
    place = Path(folder)
    return dict(_load(place)["work"]) if (place / WORK).exists() else None


def discard(folder: str | os.PathLike[str]) -> None:
    """Remove the tasks of finished work, and nothing that is not one."""
    place = Path(folder)
    if not (place / WORK).is_file():
        return
    with refusing(f"to {place}"):
        for shard in place.glob("[0-9a-f][0-9a-f]"):
            for task in (*shard.glob("*.task"), *shard.glob(".*.task.*.part")):
                task.unlink()
            remove_empty([shard])
        (place / WORK).unlink()
        remove_empty([place])


def _load(place: Path) -> dict[str, Any]:
    return {**_HEAD, **load(place / WORK, _DOCUMENT.read)}


def _check_same(place: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse tasks of other work, and say which setting differs."""
    for one, two in ((old, new), (old["work"], new["work"])):
        for name in dict.fromkeys([*two, *one]):
            if name != "work" and one.get(name) != two.get(name):
                raise InputError(
                    f"{place} must hold tasks of this work, with {name} {_short(two.get(name))}, got {name} "
                    f"{_short(one.get(name))}: take another folder, or remove it"
                )


def _short(value: object) -> str:
    return quote(json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value, 200)


def _read(path: Path, stored: bytes, work: str, name: str) -> Content:
    data, seal = stored[:-_SEAL], stored[-_SEAL:]
    if not data.startswith(_MAGIC) or hashlib.sha256(data).digest() != seal:
        raise DocumentError(f"{path} must be a task that matches the SHA-256 at its end, got other data: remove it")
    head, _, body = data[len(_MAGIC) :].partition(b"\n")
    found = read_fields(str(path), decode(head, str(path)), {"work": TEXT, "task": TEXT, "fields": MAPPING}, joint=" ")
    if (found["work"], found["task"]) != (work, name):
        raise DocumentError(f"{path} must be task {quote(name)} of this work, got {quote(found['task'])}: remove it")
    return Content(found["fields"], body)

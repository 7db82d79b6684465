"""njit: Numba's, with a cache that is believed only where its bytes are whole and its sources are today's.

Numba's own cache unpickles whatever lies in its files, so that a flipped bit may run as wrong code. It stores the code
of a signature under the next free number, so that two processes that save at once may mix up two signatures. And it
looks only at the file in which a kernel is written, not at kernels and tuples of other files that this one uses. All of
this would silently run wrong code. So there is one file for each signature here. It begins with the SHA-256 of the
rest, which is checked before anything is unpickled, and carries its signature and a hash of its sources
(``hash_sources``).

What cannot be read is as if it were not there: it is compiled again. What cannot be written is not kept, and said once.
"""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import os
import pickle
import re
import stat
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=np.generic)
_IMPORT = re.compile(r"^[ \t]*from (reprl[\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)
"""A module, then the names in parentheses or those on the line. The package has no imports of other forms."""


def njit(*, inner: bool = False, **options: Any) -> Callable[[F], F]:
    """Compile a function; the options are those of ``numba.njit``.

    An inner one is called by kernels alone: what Python needs to call it, a fifth of the time, is not compiled.
    """
    kept = options.pop("cache", False)
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}  # kernels are not passed as values

    def compiled(function: F) -> F:
        found: Any = numba.njit(**options)(function)
        if found is not function:  # it is where compiling is switched off
            found._compiler.compile = _without_collecting(found._compiler.compile)
            if kept:
                found._cache = _Cache(function)
            if inner:
                found.add_overload, found._compile_for_args = partial(_add_inner, found), partial(_refuse, function)
        return cast(F, found)

    return compiled


def _add_inner(kernel: Any, found: Any) -> None:
    """Keep what was compiled for other kernels to call; Python would call a null pointer."""
    kernel.overloads[tuple(found.signature.args)] = found


def _refuse(function: Callable[..., Any], *_: Any, **__: Any) -> None:
    name = function.__qualname__
    raise TypeError(f"{name} is called by kernels alone; {name}.py_func may be called")


def _without_collecting(compile_kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without looking for garbage: it takes an eighth of the time, and all of the objects are still in use."""

    def compiled(*arguments: Any) -> Any:
        collecting = gc.isenabled()
        gc.disable()
        try:
            return compile_kernel(*arguments)
        finally:
            if collecting:
                gc.enable()

    return compiled


def read_only(array: NDArray[T]) -> NDArray[T]:
    """Return a view that nobody writes through: kernels are compiled once for such arrays and once for others."""
    view = array.view()
    view.flags.writeable = False
    return view


class _Form(CompileResultCacheImpl):
    """What Numba stores of a compiled signature, wherever that is."""

    def __init__(self) -> None:
        pass


class _Cache(FunctionCache):
    """The compiled signatures of a kernel, each in a file of its own."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func = function
        self._name = repr(function)
        self._impl = _Form()
        self.module = function.__module__
        self.sources = hash_sources(self.module)  # as they were when the module was imported
        self.compiler = numba.__version__
        code = function.__code__
        stem = Path(code.co_filename).stem
        tag = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        self.stem = f"{stem}.{function.__qualname__.replace('<', '').replace('>', '')}-{code.co_firstlineno}.{tag}"
        self.source_folder = Path(code.co_filename).parent
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """Where new code is kept; None if nowhere."""
        return next((str(folder) for folder in self._folders() if _writable(folder)), None)

    def flush(self) -> None:
        """Forget what is kept; Numba does this when a kernel is compiled anew by hand."""
        for folder in self._folders():
            for file in folder.glob(f"{self.stem}.*.nbc"):
                with suppress(OSError):
                    file.unlink()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature, None if there is nothing that can be believed."""
        target_context.refresh()
        if not self._enabled:
            return None
        key = self._index_key(sig, target_context.codegen())  # type: ignore[no-untyped-call]
        for folder in self._folders():
            with suppress(Exception):  # of whatever kind: it is compiled again
                found = pickle.loads(_read_entry(folder / self._file(key)))
                if found[:3] == (self.sources, self.compiler, key):
                    return self._impl.rebuild(target_context, found[3])
        while _listeners:
            _listeners.pop()()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature, if that can be."""
        if not self._enabled or not self._impl.check_cachable(data):
            return
        hash_sources.cache_clear()
        _read.cache_clear()
        if hash_sources(self.module) != self.sources:  # they have changed since they were imported
            return
        key = self._index_key(sig, data.codegen)  # type: ignore[no-untyped-call]
        folder = self.cache_path
        if folder is None:
            return _say_once("no folder of the cache can be written to by you alone; NUMBA_CACHE_DIR may name one")
        try:
            entry = dumps((self.sources, self.compiler, key, self._impl.reduce(data)))  # type: ignore[no-untyped-call]
            _write_entry(Path(folder) / self._file(key), entry)
        except OSError as error:
            _say_once(f"{error.strerror or error}: {folder}")
        except Exception as error:  # what cannot be pickled
            _say_once(" ".join(str(error).split()))

    def _file(self, key: Any) -> str:
        """Name the file of a signature; whether it is the same signature is then seen by the key inside."""
        return f"{self.stem}.{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"

    def _folders(self) -> list[Path]:
        """Where code may lie, the first choice first: as with Numba, the folder that the user names or two others."""
        place = hashlib.sha1(str(self.source_folder).encode(), usedforsecurity=False).hexdigest()
        name = f"{self.source_folder.name}_{place}"
        if chosen := getattr(numba.config, "CACHE_DIR", ""):
            return [Path(chosen) / name]
        home = AppDirs(appname="numba", appauthor=False).user_cache_dir  # type: ignore[no-untyped-call]
        return [self.source_folder / "__pycache__", Path(home) / name]


_MAGIC = b"reprl kernel 1\n"
_DIGEST = hashlib.sha256().digest_size


def _read_entry(path: Path) -> bytes:
    """Return what is in a file that is whole and ours; an error otherwise."""
    if not _trusted(path.parent.stat()):
        raise PermissionError
    with open(path, "rb") as file:
        if not _trusted(os.fstat(file.fileno())):
            raise PermissionError
        data = file.read()
    head = len(_MAGIC)
    digest, entry = data[head : head + _DIGEST], data[head + _DIGEST :]
    if data[:head] != _MAGIC or hashlib.sha256(entry).digest() != digest:
        raise ValueError("damaged")
    return entry


def _write_entry(path: Path, entry: bytes) -> None:
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    try:
        part.write_bytes(_MAGIC + hashlib.sha256(entry).digest() + entry)
        part.chmod(0o644)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _writable(folder: Path) -> bool:
    """Whether code may be kept in a folder, which is made if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK | os.X_OK) and _trusted(folder.stat())
    except (OSError, ValueError):
        return False


def _trusted(found: os.stat_result) -> bool:
    """Whether nobody but this user and root may write to a file or folder; a group of this user alone may."""
    if not hasattr(os, "getuid"):  # Windows: folders of a user are the user's
        return True
    own = os.getuid()
    shared = bool(found.st_mode & stat.S_IWOTH) or bool(found.st_mode & stat.S_IWGRP and found.st_gid not in (0, own))
    return found.st_uid in (0, own) and not shared


_listeners: list[Callable[[], None]] = []
_said: list[str] = []


def tell_compiling(say: Callable[[], None] | None) -> None:
    """Have somebody told, once, when the first kernel has to be compiled; None for nobody."""
    _listeners[:] = [] if say is None else [say]


def _say_once(reason: str) -> None:
    """Say that code is compiled for this process alone, and why; worker processes leave that to the one before them."""
    if not _said and multiprocessing.current_process().name == "MainProcess" and sys.stderr is not None:
        _said.append(reason)
        print(f"reprl: compiled code is not kept, so the next start will compile again ({reason})", file=sys.stderr)


@cache
def hash_sources(module: str) -> str:
    """Hash the files from which the kernels of a module, and the tuples they read, are compiled.

    These are the module and all modules of this package that it imports, directly or not, as far as they define
    kernels or NamedTuples: a kernel reads no name of any other module (a test checks this).
    """
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and (source := _read(name)) is not None:
            found[name] = source.digest
            waiting += source.imports - found.keys()
    return hashlib.sha256(repr(sorted(item for item in found.items() if item[1])).encode()).hexdigest()


class _Source(NamedTuple):
    """What counts of a file."""

    digest: str
    """Empty if it defines neither kernels nor NamedTuples."""
    imports: set[str]
    """Modules, among names that are none."""


@cache
def _read(module: str) -> _Source | None:
    """Read a module or the ``__init__`` of a package inside reprl; None for anything else.

    Every import counts, those for type checkers too: a kernel's arguments are annotated, so the module of a tuple that
    it reads by name is imported. In `from a import b`, b may be a module or a name, so both a and a.b are followed.
    The ``__init__`` of reprl itself names everything and has no kernels: it is not followed.
    """
    home, *names = module.split(".")
    place = Path(__file__).parent.joinpath(*names)
    files = [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    if home != "reprl" or not names or not files:
        return None
    text = files[0].read_bytes()
    imports = set()
    for base, several, one in _IMPORT.findall(text.decode()):
        given = [name.split()[0] for name in re.sub(r"#.*", "", several or one).split(",") if name.strip()]
        imports |= {base, *(f"{base}.{name}" for name in given if name.islower())}  # as the names of all modules are
    compiled = b"@njit(" in text or b"(NamedTuple)" in text
    return _Source(hashlib.sha256(text).hexdigest() if compiled else "", imports)

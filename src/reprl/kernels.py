"""njit: Numba's, with a cache that processes may share and that notices when a kernel's sources have changed.

Numba stores the code of a signature under the next free number. When two processes save two signatures of one kernel
at once, one may overwrite the other's code. And Numba looks only at the file in which a kernel is written. It does not
see a change of a kernel in another file that this one calls, or of the order of a tuple's fields. Both faults would
silently run wrong code. So every entry here carries its signature and a hash of its sources (``hash_sources``), and an
entry that does not match is compiled again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=np.generic)
_IMPORT = re.compile(r"^[ \t]*from (reprl[\w.]*) import (?:\(([^)]*)\)|(.*))", re.MULTILINE)
"""A module, then the names in parentheses or those on the line. The package has no imports of other forms."""


def njit(**options: Any) -> Callable[[F], F]:
    """Compile a function; the options are those of ``numba.njit``."""

    def compiled(function: F) -> F:
        found: Any = numba.njit(**options)(function)
        if options.get("cache") and found is not function:  # it is where compiling is switched off
            file = found._cache._cache_file
            file.__class__ = _Signed
            file.module = function.__module__
            file.sources = hash_sources(function.__module__)
        return cast(F, found)

    return compiled


def read_only(array: NDArray[T]) -> NDArray[T]:
    """Return a view that nobody writes through: kernels are compiled once for such arrays and once for others."""
    view = array.view()
    view.flags.writeable = False
    return view


class _Signed(IndexDataCacheFile):
    """Numba's file of compiled signatures, in which every entry names its sources and its signature."""

    module: str
    sources: str
    """As they were when the module was imported."""

    def save(self, key: Any, data: Any, *rest: Any) -> None:
        hash_sources.cache_clear()
        _read.cache_clear()
        if hash_sources(self.module) == self.sources:  # else they have changed since they were imported
            super().save(key, (self.sources, key, data), *rest)  # type: ignore[no-untyped-call]

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (ImportError, AttributeError):  # it names modules or tuples that have moved since
            return {}

    def load(self, key: Any) -> Any:
        found = super().load(key)  # type: ignore[no-untyped-call]
        signed = isinstance(found, tuple) and len(found) == 3 and found[:2] == (self.sources, key)
        return found[2] if signed else None


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

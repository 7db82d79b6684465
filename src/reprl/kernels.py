"""njit: Numba's, with a cache that processes may share and that notices when any kernel has changed.

Numba files the code of a signature under the next free number: of two processes that save two signatures of one kernel
at once, one may overwrite the other's code. And it looks only at the file that a kernel is written in: what it took in
from kernels in other files, and the order of a tuple's fields, stay as they were. Either would run code that is not in
the tree, from then on and without a word. So every entry here says whose it is, and one that is not what was asked for
counts as none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import IndexDataCacheFile

F = TypeVar("F", bound=Callable[..., Any])


def njit(**options: Any) -> Callable[[F], F]:
    """Compile a function; the options are those of ``numba.njit``."""

    def compiled(function: F) -> F:
        found: Any = numba.njit(**options)(function)
        if options.get("cache") and found is not function:  # it is where compiling is switched off
            found._cache._cache_file.__class__ = _Signed
        return cast(F, found)

    return compiled


class _Signed(IndexDataCacheFile):
    """Numba's file of compiled signatures, in which every entry names its sources and its signature."""

    def save(self, key: Any, data: Any, *rest: Any) -> None:
        if _hash_sources() == _SOURCES:  # else they have changed since they were imported
            super().save(key, (_SOURCES, key, data), *rest)  # type: ignore[no-untyped-call]

    def load(self, key: Any) -> Any:
        found = super().load(key)  # type: ignore[no-untyped-call]
        signed = isinstance(found, tuple) and len(found) == 3 and found[:2] == (_SOURCES, key)
        return found[2] if signed else None


def _hash_sources() -> str:
    """Hash every file of this package that has kernels, or tuples whose fields they may read by name."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        text = path.read_bytes()
        if b"@njit(" in text or b"(NamedTuple)" in text:
            digest.update(text)
    return digest.hexdigest()


_SOURCES = _hash_sources()

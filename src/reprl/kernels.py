"""njit: Numba's, with a cache that processes may share and that notices when any kernel has changed.

Numba files the code of a signature under the next free number: of two processes that save two signatures of one kernel
at once, one may overwrite the other's code. And it looks only at the file that a kernel is written in: what it took in
from kernels in other files, and the order of a tuple's fields, stay as they were. Either would run code that is not in
the tree, from then on and without a word. So every entry here says whose it is, and one that is not what was asked for
counts as none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
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
            file = found._cache._cache_file
            file.__class__ = _Signed
            file.module = function.__module__
            file.sources = hash_sources(function.__module__)
        return cast(F, found)

    return compiled


class _Signed(IndexDataCacheFile):
    """Numba's file of compiled signatures, in which every entry names its sources and its signature."""

    module: str
    sources: str
    """As they were when the module was imported."""

    def save(self, key: Any, data: Any, *rest: Any) -> None:
        hash_sources.cache_clear()
        if hash_sources(self.module) == self.sources:  # else they have changed since they were imported
            super().save(key, (self.sources, key, data), *rest)  # type: ignore[no-untyped-call]

    def load(self, key: Any) -> Any:
        found = super().load(key)  # type: ignore[no-untyped-call]
        signed = isinstance(found, tuple) and len(found) == 3 and found[:2] == (self.sources, key)
        return found[2] if signed else None


@cache
def hash_sources(module: str) -> str:
    """Hash a module and all that it imports of this package, directly or not: where its kernels and tuples come from.

    Imports count wherever they stand, those for type checkers too: a kernel's arguments are annotated, so the tuples
    that it reads by name come from a module that is imported.
    """
    found: dict[str, bytes] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _path_of(name)
        if name in found or path is None:
            continue
        found[name] = path.read_bytes()
        waiting += _imported(found[name])
    digest = hashlib.sha256()
    for name, text in sorted(found.items()):
        if b"@njit(" in text or b"(NamedTuple)" in text:
            digest.update(name.encode() + b"\n" + text)
    return digest.hexdigest()


def _path_of(module: str) -> Path | None:
    """The file of a module of this package; None for anything else."""
    path = Path(__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    return path if module.startswith("reprl.") and path.is_file() else None


def _imported(text: bytes) -> list[str]:
    """What a source imports, as modules: `from a import b` may name a.b or a."""
    return [
        name
        for base, names in re.findall(r"^[ \t]*from (reprl[\w.]*) import \(?([^)#]*?)(?:\)|$)", text.decode(), re.M)
        for name in (base, *(f"{base}.{part.split()[0]}" for part in names.split(",") if part.strip()))
    ]

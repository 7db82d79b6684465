"""The two randomnesses: SharedKey (ξ, published) and DataStream (samples, private).

Both read one counter-based generator, Philox4x32-10, at an *address*: a draw is a pure function of where it is read, so
no order of calls, split of work or branch on data can move another draw. They are two types that never convert into
each other.

Address of a 128-bit block:

=============  =========================  ==========================  ==================
               Philox key (64 bits)       counter, high half (lane)   counter, low half
=============  =========================  ==========================  ==================
SharedKey      digest of seed and labels  digest of seed and labels   index of the draw
DataStream     digest of seed, purpose    run index                   index of the draw
=============  =========================  ==========================  ==================

Two runs of one data stream read disjoint counters under one key, so they cannot overlap, for up to 2**64 runs of 2**64
blocks. Streams of different seeds or purposes share a Philox key with probability 2**-64 a pair; two different shared
addresses coincide with probability 2**-128 a pair. ``docs/randomness.md`` says why the generator is trusted.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int, quote
from reprl.kernels import njit

STREAM_VERSION = 1
"""Of streams and rule: raised by one whenever fixed seeds begin to give other results."""
_SHARED, _DATA = b"reprl-shared2", b"reprl-data2"
"""Domains of the two hashes: no address of the one is one of the other."""

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_UNIT = 2.0**-52
_DROP = np.uint64(12)
_ONE = np.uint64(1)


@njit(cache=True)
def philox(key: np.uint64, lane: np.uint64, index: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the two 64-bit words of the Philox4x32-10 block at (key, lane, index)."""
    k0 = key & _LOW
    k1 = key >> _SHIFT
    c0 = index & _LOW
    c1 = index >> _SHIFT
    c2 = lane & _LOW
    c3 = lane >> _SHIFT
    for _ in range(10):
        product_0 = c0 * _MULTIPLIER_0
        product_1 = c2 * _MULTIPLIER_1
        c0 = (product_1 >> _SHIFT) ^ c1 ^ k0
        c1 = product_1 & _LOW
        c2 = (product_0 >> _SHIFT) ^ c3 ^ k1
        c3 = product_0 & _LOW
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return c0 | (c1 << _SHIFT), c2 | (c3 << _SHIFT)


@njit(cache=True)
def unit(word: np.uint64) -> float:
    """Map a 64-bit word to the centre of one of 2**52 cells of (0, 1): never 0, never 1, and never rounded."""
    return (float(word >> _DROP) + 0.5) * _UNIT


@njit(cache=True)
def fill_words(key: np.uint64, lane: np.uint64, start: np.uint64, out: NDArray[np.uint64]) -> None:
    """Write the words numbered start, start + 1, … into out; word i is half (i mod 2) of block ⌊i/2⌋."""
    for i in range(out.size):
        number = start + np.uint64(i)
        first, second = philox(key, lane, number >> _ONE)
        out[i] = second if number & _ONE else first


def _digest(domain: bytes, *parts: bytes) -> bytes:
    """Hash length-prefixed parts under a domain, so that no two lists of parts collide by concatenation."""
    state = hashlib.blake2b(digest_size=16, person=domain)
    for part in parts:
        state.update(len(part).to_bytes(8, "little") + part)
    return state.digest()


def _encode(label: object) -> bytes:
    try:
        if isinstance(label, str):
            return b"s" + label.encode()
        if isinstance(label, int | np.integer) and not isinstance(label, bool):
            return b"i" + str(int(label)).encode()
    except ValueError:  # half of a surrogate pair, or more digits than Python prints
        pass
    raise InputError(f"a label must be text or a whole number, got {quote(label)}")


def _words(key: int, lane: int, n: object, start: object) -> NDArray[np.uint64]:
    count = check_int("n", n, 0, 2**30)
    first = check_int("start", start, 0, 2**64 - max(count, 1))
    out = np.empty(count, dtype=np.uint64)
    fill_words(np.uint64(key), np.uint64(lane), np.uint64(first), out)
    return out


def _units(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    return ((words >> _DROP).astype(np.float64) + 0.5) * _UNIT


class SharedKey:
    """Shared randomness ξ, read by address.

    Args:
        seed: the published shared seed, a whole number in [0, 2**64).
        stream_version: the version that the seed was published for; only this package's own is accepted.

    Guarantee:
        ``derive`` and ``uniforms`` are pure functions of (seed, labels, index). ``key.derive("a").derive(1)`` and
        ``key.derive("a", 1)`` are the same address.
    """

    __slots__ = ("_digest", "labels", "seed")

    def __init__(self, seed: int, *, stream_version: int = STREAM_VERSION) -> None:
        """Name the root address of a shared seed."""
        check_stream_version(stream_version)
        self.seed = check_int("shared seed", seed, 0, 2**64 - 1)
        self.labels: tuple[str | int, ...] = ()
        self._digest = _digest(_SHARED, str(self.seed).encode())

    def derive(self, *labels: str | int) -> SharedKey:
        """Return the address reached by following labels (text or whole numbers) from here."""
        child = object.__new__(SharedKey)
        child.seed = self.seed
        child._digest = self._digest
        for label in labels:
            child._digest = _digest(_SHARED, child._digest, _encode(label))
        child.labels = self.labels + tuple(x if isinstance(x, str) else int(x) for x in labels)
        return child

    @property
    def words(self) -> tuple[np.uint64, np.uint64]:
        """The (Philox key, lane) pair that kernels read this address with."""
        return (
            np.uint64(int.from_bytes(self._digest[:8], "little")),
            np.uint64(int.from_bytes(self._digest[8:], "little")),
        )

    def uniforms(self, n: int, start: int = 0) -> NDArray[np.float64]:
        """Return draws start, …, start + n − 1 of this address, each in the open interval (0, 1)."""
        key, lane = self.words
        return _units(_words(int(key), int(lane), n, start))

    def __eq__(self, other: object) -> bool:
        """Two keys are equal when they read the same address."""
        return isinstance(other, SharedKey) and self._digest == other._digest

    def __hash__(self) -> int:
        """Hash by address."""
        return hash(self._digest)

    def __repr__(self) -> str:
        """Show the seed and the labels that lead here."""
        tail = f".derive({', '.join(map(repr, self.labels))})" if self.labels else ""
        return f"SharedKey({self.seed}){tail}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by seed, labels and version, so that a key from another stream version is refused on loading."""
        return _rebuild, (self.seed, self.labels, STREAM_VERSION)


def _rebuild(seed: int, labels: tuple[str | int, ...], stream_version: int) -> SharedKey:
    return SharedKey(seed, stream_version=stream_version).derive(*labels)


def check_stream_version(version: object) -> None:
    """Refuse anything but this package's stream version."""
    if version != STREAM_VERSION or isinstance(version, bool):
        raise InputError(f"stream version must be {STREAM_VERSION} for this release of reprl, got {quote(version)}")


def check_shared_key(key: object) -> SharedKey:
    """Return key if it is shared randomness; data streams and bare seeds are refused."""
    if not isinstance(key, SharedKey):
        raise InputError(f"shared key must be a reprl.SharedKey, got {quote(key)}")
    return key


def fresh_seed() -> int:
    """Return a private data seed from the operating system's entropy."""
    return secrets.randbits(63)


class DataStream:
    """The fresh samples of one run: a counter-based stream keyed by (data seed, purpose), one lane per run index.

    Args:
        data_seed: private seed, a whole number in [0, 2**64).
        purpose: what the draws are for; two purposes never read each other's draws.
        run: index of the run, in [0, 2**64).

    Guarantee:
        Draws are a pure function of (data seed, purpose, run, index). Runs of one (seed, purpose) cannot overlap.
    """

    __slots__ = ("data_seed", "key", "purpose", "run")

    def __init__(self, data_seed: int, purpose: str, run: int = 0) -> None:
        """Open the stream at (data seed, purpose, run)."""
        self.data_seed = check_int("data seed", data_seed, 0, 2**64 - 1)
        if not isinstance(purpose, str) or not purpose or not purpose.isprintable():
            raise InputError(f"purpose must be a non-empty printable text, got {quote(purpose)}")
        self.purpose = purpose
        self.run = check_int("run", run, 0, 2**64 - 1)
        digest = _digest(_DATA, str(self.data_seed).encode(), purpose.encode())
        self.key = int.from_bytes(digest[:8], "little")

    @property
    def words(self) -> tuple[np.uint64, np.uint64]:
        """The (Philox key, lane) pair that kernels read this stream with."""
        return np.uint64(self.key), np.uint64(self.run)

    def integers(self, n: int, start: int = 0) -> NDArray[np.uint64]:
        """Return the 64-bit words numbered start, …, start + n − 1."""
        return _words(self.key, self.run, n, start)

    def uniforms(self, n: int, start: int = 0) -> NDArray[np.float64]:
        """Return draws start, …, start + n − 1 in (0, 1)."""
        return _units(self.integers(n, start))

    def __repr__(self) -> str:
        """Show where the stream is keyed."""
        return f"DataStream({self.data_seed}, {self.purpose!r}, run={self.run})"

"""Exact draws from small discrete laws: alias tables for one sample, binomial counts for any number of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit, read_only
from reprl.randomness import philox, unit

_INVERSION_LIMIT = 10.0
_PART = 2**52
_ONE = np.uint64(1)
_SIX = np.uint64(6)
_SIX_BITS = np.uint64(63)
_THIRTY_TWO = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def cumulate(law: NDArray[np.float64], first: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return running sums of law within each row first[i] ≤ e < first[i + 1]."""
    out = np.empty_like(law)
    _cumulate(read_only(law), read_only(first), out)
    return out


class AliasTable(NamedTuple):
    """Rows of outcomes ready to be drawn, each from one 64-bit word in constant time (Walker's method, in integers).

    Row i owns 2ᵇ buckets of 2⁶⁴⁻ᵇ words each; a bucket holds a cutoff and two outcomes. Every outcome owns a whole
    number of the 2⁶⁴ words, and only stored outcomes own any, so one of probability zero is never drawn.
    """

    row: NDArray[np.uint64]
    """(rows,): number of the first bucket · 64 + (64 − b)."""
    bucket: NDArray[np.uint64]
    """(2 · buckets,): cutoff, then first outcome + second outcome · 2³²."""


def alias_table(law: NDArray[np.float64], first: NDArray[np.int64]) -> AliasTable:
    """Build the table of the laws law[first[i]:first[i + 1]]; rows must not be empty, outcomes fewer than 2³²."""
    lengths = np.diff(first)
    bits = np.maximum(1, np.ceil(np.log2(lengths)).astype(np.int64))
    start = np.concatenate([[0], np.cumsum(1 << bits)])
    bucket = np.empty(2 * start[-1], dtype=np.uint64)
    widest = int(1 << bits.max(initial=0))
    words, lists = np.empty(widest, dtype=np.uint64), np.empty((2, widest), dtype=np.int64)
    _fill_buckets(read_only(law), read_only(first), start, bits, words, lists, bucket)
    row = (start[:-1] * 64 + (64 - bits)).astype(np.uint64)
    return AliasTable(row, bucket)


@njit(cache=True, nogil=True)
def draw_outcome(table: AliasTable, row: int, word: np.uint64) -> int:
    """Return the outcome that a word draws from a row."""
    info = table.row[row]
    shift = info & _SIX_BITS
    at = ((info >> _SIX) + (word >> shift)) << _ONE
    pair = table.bucket[at + _ONE]
    within = word & ((_ONE << shift) - _ONE)
    return int(pair & _LOW) if within < table.bucket[at] else int(pair >> _THIRTY_TWO)


@njit(cache=True)
def _fill_buckets(
    law: NDArray[np.float64],
    first: NDArray[np.int64],
    start: NDArray[np.int64],
    bits: NDArray[np.int64],
    words: NDArray[np.uint64],
    lists: NDArray[np.int64],
    bucket: NDArray[np.uint64],
) -> None:
    """Share 2⁶⁴ words out among the outcomes of each row, then among its buckets; words and lists are room."""
    poor, rich = lists[0], lists[1]
    for row in range(bits.size):
        low, n, buckets = first[row], first[row + 1] - first[row], 1 << bits[row]
        capacity = _ONE << np.uint64(64 - bits[row])
        if n == 1:
            for j in range(buckets):
                bucket[2 * (start[row] + j)] = 0
                bucket[2 * (start[row] + j) + 1] = np.uint64(low) | (np.uint64(low) << _THIRTY_TWO)
            continue
        _share_words(law[low : low + n], words)
        n_poor = 0
        n_rich = 0
        for j in range(buckets):
            if j >= n:
                words[j] = 0
            if words[j] < capacity:
                poor[n_poor] = j
                n_poor += 1
            else:
                rich[n_rich] = j
                n_rich += 1
        while n_poor > 0 and n_rich > 0:
            n_poor -= 1
            j = poor[n_poor]
            donor = rich[n_rich - 1]
            _write_bucket(bucket, start[row] + j, words[j], low + (j if j < n else n - 1), low + donor)
            words[donor] -= capacity - words[j]
            if words[donor] < capacity:
                n_rich -= 1
                poor[n_poor] = donor
                n_poor += 1
        for i in range(n_rich):
            _write_bucket(bucket, start[row] + rich[i], capacity, low + rich[i], low + rich[i])


@njit(cache=True, inner=True)
def _share_words(law: NDArray[np.float64], words: NDArray[np.uint64]) -> None:
    """Give outcome e the words from ⌊2⁶⁴·C(e−1)⌋ to ⌊2⁶⁴·C(e)⌋ of its cumulative law C, and the last one the rest.

    Every outcome gets at least one word, which moves the others' edges by no more than their number.
    """
    before = np.uint64(0)
    n = law.size
    cumulative = 0.0
    for e in range(n):
        cumulative += law[e]
        share = min(cumulative, 1.0 - 2.0**-53)
        high = math.floor(share * 2.0**32)
        low = math.floor((share * 2.0**32 - high) * 2.0**32)
        upto, least = (np.uint64(high) << _THIRTY_TWO) | np.uint64(low), before + _ONE
        most = np.uint64(0) - np.uint64(n - 1 - e)
        upto = least if upto < least else upto  # max and min are functions that are compiled for every type
        upto = (most if most < upto else upto) if e < n - 1 else np.uint64(0)
        words[e] = upto - before
        before = upto


@njit(cache=True, inner=True)
def _write_bucket(bucket: NDArray[np.uint64], j: int, cutoff: np.uint64, first: int, second: int) -> None:
    bucket[2 * j] = cutoff
    bucket[2 * j + 1] = np.uint64(first) | (np.uint64(second) << _THIRTY_TWO)


@njit(cache=True)
def _cumulate(law: NDArray[np.float64], first: NDArray[np.int64], out: NDArray[np.float64]) -> None:
    for row in range(first.size - 1):
        total = 0.0
        for e in range(first[row], first[row + 1]):
            total += law[e]
            out[e] = total


@njit(cache=True, inner=True)
def _stirling_error(x: float) -> float:
    """Return log x! minus Stirling's main terms, ½ log(2πx) + x log x − x."""
    if x < 16.0:
        return math.lgamma(x + 1.0) - (0.5 * math.log(2.0 * math.pi * x) + x * math.log(x) - x) if x > 0.0 else 0.0
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x


@njit(cache=True, inner=True)
def _deviance(x: float, mean: float) -> float:
    """Return x log(x / mean) + mean − x without cancellation when x is near mean."""
    if x == 0.0:
        return mean
    gap = x - mean
    if abs(gap) < 0.1 * (x + mean):
        v = gap / (x + mean)
        total = gap * v
        term = 2.0 * x * v
        v *= v
        j = 1
        while True:
            term *= v
            update = total + term / (2 * j + 1)
            if update == total:
                return total
            total = update
            j += 1
    return x * math.log(x / mean) - gap


@njit(cache=True)
def _log_binomial(k: float, n: float, p: float) -> float:
    """Return log Pr[Binomial(n, p) = k], accurate for n up to 2⁵³, by the saddle-point expansion (Loader)."""
    if k == 0.0:
        return n * math.log1p(-p)
    if k == n:
        return n * math.log(p)
    correction = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    main = -_deviance(k, n * p) - _deviance(n - k, n * (1.0 - p))
    return correction + main - 0.5 * math.log(2.0 * math.pi * k * (1.0 - k / n))


@njit(cache=True)
def binomial(key: np.uint64, lane: np.uint64, position: np.uint64, n: int, p: float) -> tuple[int, np.uint64]:
    """Draw Binomial(n, p) from the data stream (key, lane); return it and the next unread block.

    Inversion below a mean of 10, otherwise transformed rejection (Hörmann's BTRS) with an accurate log-density, so the
    time does not grow with n; beyond 2⁵², where doubles stop counting, it is drawn as a sum of parts of that size.
    """
    if n <= 0 or p <= 0.0:
        return 0, position
    if p >= 1.0:
        return n, position
    whole, often = 0, p > 0.5
    while n > 0:  # one call in the code: each is compiled again
        trials = n if n < _PART else _PART
        part, position = _binomial_low(key, lane, position, trials, 1.0 - p if often else p)
        whole += trials - part if often else part
        n -= trials
    return whole, position


@njit(cache=True)
def multinomial(
    key: np.uint64,
    lane: np.uint64,
    n: int,
    law: NDArray[np.float64],
    cumulative: NDArray[np.float64],
    out: NDArray[np.int64],
) -> None:
    """Fill out with a multinomial of n trials: from the last outcome down, each a binomial of the trials left."""
    left = n
    position = np.uint64(0)
    for e in range(law.size - 1, 0, -1):
        count = 0
        if law[e] > 0.0:
            count, position = binomial(key, lane, position, left, law[e] / cumulative[e])
        out[e] = count
        left -= count
    out[0] = left


@njit(cache=True, inner=True)
def _binomial_low(key: np.uint64, lane: np.uint64, position: np.uint64, n: int, p: float) -> tuple[int, np.uint64]:
    """Draw Binomial(n, p) for 0 < p ≤ ½ and n ≤ 2⁵²."""
    mean = n * p
    if mean < _INVERSION_LIMIT:
        first, _ = philox(key, lane, position)
        return _invert(unit(first), n, p), position + np.uint64(1)
    spread = math.sqrt(mean * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * spread
    squeeze = 0.92 - 4.2 / b
    whole = np.floor(mean)  # kept apart from the jump, so that no digit of it is lost beside a mean near 2⁵²
    peak = math.nan  # it takes as long as the rest, and the squeeze mostly spares it
    while True:
        first, second = philox(key, lane, position)
        position += np.uint64(1)
        u = unit(first) - 0.5
        v = unit(second)
        edge = 0.5 - abs(u)
        k = whole + np.floor((2.0 * a / edge + b) * u + (mean - whole) + 0.5)
        if k < 0.0 or k > n:
            continue
        if edge >= 0.07 and v <= squeeze:
            return int(k), position
        if math.isnan(peak):
            peak = _log_binomial(np.floor((n + 1) * p), float(n), p)
        if math.log(v * alpha / (a / (edge * edge) + b)) <= _log_binomial(k, float(n), p) - peak:
            return int(k), position


@njit(cache=True, inner=True)
def _invert(u: float, n: int, p: float) -> int:
    """Return the smallest k whose distribution function exceeds u, by summing from 0."""
    odds = p / (1.0 - p)
    mass = math.exp(n * math.log1p(-p))
    total = mass
    k = 0
    while u > total and k < n:
        k += 1
        mass *= odds * (n - k + 1) / k
        total += mass
        if mass < 1e-300:
            break
    return k

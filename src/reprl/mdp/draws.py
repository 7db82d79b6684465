"""Exact draws from small discrete laws: integer thresholds for one sample, binomial counts for any number of them."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.randomness import philox, unit

_INVERSION_LIMIT = 10.0
_PART = 2**52


def cumulate(law: NDArray[np.float64], first: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return running sums of law within each row first[i] ≤ e < first[i + 1]."""
    out = np.empty_like(law)
    _cumulate(law, first, out)
    return out


def thresholds(cumulative: NDArray[np.float64], first: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return ⌊cumulative · 2⁶⁴⌋, the last of every row raised to 2⁶⁴ − 1.

    A 64-bit word w picks the first e of the row with w < threshold[e], else the last e. Only stored outcomes can be
    picked, so one of probability zero never is.
    """
    high = np.minimum(np.floor(cumulative * 2.0**32), 2.0**32 - 1)
    low = np.clip(np.floor((cumulative * 2.0**32 - high) * 2.0**32), 0.0, 2.0**32 - 1)
    out = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    filled = first[1:][np.diff(first) > 0]
    out[filled - 1] = np.iinfo(np.uint64).max
    return out


@njit(cache=True)
def _cumulate(law: NDArray[np.float64], first: NDArray[np.int64], out: NDArray[np.float64]) -> None:
    for row in range(first.size - 1):
        total = 0.0
        for e in range(first[row], first[row + 1]):
            total += law[e]
            out[e] = total


@njit(cache=True)
def pick(word: np.uint64, threshold: NDArray[np.uint64], low: int, high: int) -> int:
    """Return the first e in [low, high) with word < threshold[e], by bisection; high − 1 when there is none."""
    last = high - 1
    while low < last:
        middle = (low + last) >> 1
        if word < threshold[middle]:
            last = middle
        else:
            low = middle + 1
    return last


@njit(cache=True)
def _stirling_error(x: float) -> float:
    """Return log x! minus Stirling's main terms, ½ log(2πx) + x log x − x."""
    if x < 16.0:
        return math.lgamma(x + 1.0) - (0.5 * math.log(2.0 * math.pi * x) + x * math.log(x) - x) if x > 0.0 else 0.0
    square = x * x
    return (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x


@njit(cache=True)
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
    whole = 0
    while n > _PART:
        part, position = _binomial_part(key, lane, position, _PART, p)
        whole += part
        n -= _PART
    part, position = _binomial_part(key, lane, position, n, p)
    return whole + part, position


@njit(cache=True)
def _binomial_part(key: np.uint64, lane: np.uint64, position: np.uint64, n: int, p: float) -> tuple[int, np.uint64]:
    """Draw Binomial(n, p) for 0 < p < 1 and n ≤ 2⁵²."""
    if p > 0.5:
        k, position = _binomial_low(key, lane, position, n, 1.0 - p)
        return n - k, position
    return _binomial_low(key, lane, position, n, p)


@njit(cache=True)
def _binomial_low(key: np.uint64, lane: np.uint64, position: np.uint64, n: int, p: float) -> tuple[int, np.uint64]:
    """Draw Binomial(n, p) for 0 < p ≤ ½."""
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
    peak = _log_binomial(np.floor((n + 1) * p), float(n), p)
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
        if math.log(v * alpha / (a / (edge * edge) + b)) <= _log_binomial(k, float(n), p) - peak:
            return int(k), position


@njit(cache=True)
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

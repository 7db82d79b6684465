"""Sample access for the laboratory: product laws, labelled examples, and exact counts of how much was drawn.

A source hides its law from the algorithms and returns samples as sufficient statistics, so drawing m of them takes time
that does not grow with m. Reductions are sources too: they make samples of one problem out of those of another.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_array, check_distribution, check_int, quote
from reprl.kernels import njit
from reprl.mdp.draws import multinomial
from reprl.randomness import DataStream

Sizes = NDArray[np.int64]
_MOST = 2**62


class VectorSource(Protocol):
    """Sample access to a product of n two-valued laws; one sample is one vector."""

    n: int

    @property
    def samples(self) -> int:
        """Vectors drawn so far, every one counted."""
        ...

    def count(self, sizes: Any) -> Sizes:
        """Draw fresh vectors and return how often each coordinate came up +1 (heads), (n,).

        sizes is a number m, or one number per coordinate: then only the first sizes[i] of max(sizes) vectors are read
        in coordinate i, and max(sizes) are counted.
        """
        ...

    def vectors(self, m: int) -> NDArray[np.bool_]:
        """Draw m fresh vectors, (m, n), True for +1 (heads)."""
        ...

    def stream(self, purpose: str) -> DataStream:
        """Open private randomness of this run that nothing else reads."""
        ...


class ExampleSource(Protocol):
    """Sample access to a law on labelled examples (x, y), x in 0…D−1 and y = ±1; one sample is one example."""

    n_points: int

    @property
    def samples(self) -> int:
        """Examples drawn so far."""
        ...

    def count(self, m: int) -> Sizes:
        """Draw m fresh examples and count them, (D, 2): column 0 for y = −1, column 1 for y = +1."""
        ...


class ProductSource:
    """A product of coins: coordinate i is +1 (heads) with probability chances[i]; a VectorSource.

    Rad(p) of Section 7 and Bern(p) of Definition B.5 are one source under two names of the outcomes; see `rademacher`
    and `coins`.

    Randomness:
        Data only: streams (data_seed, "purpose/number"), numbered in order of use, one lane per coordinate.
    """

    def __init__(self, chances: ArrayLike, data_seed: int) -> None:
        self._chances = check_vector("chances", chances, 0.0, 1.0)
        self.n = int(self._chances.size)
        self.data_seed = check_int("data seed", data_seed, 0, 2**64 - 1)
        self.samples = 0
        self._streams = 0

    def count(self, sizes: Any) -> Sizes:
        """Draw fresh vectors and return the number of +1 in each coordinate; see VectorSource."""
        wanted = check_sizes(sizes, self.n)
        out = heads(self.stream("tally"), wanted, self._chances)
        self.samples += int(wanted.max())
        return out

    def vectors(self, m: int) -> NDArray[np.bool_]:
        """Draw m fresh vectors, (m, n)."""
        m = check_int("m", m, 1, 2**40 // self.n)
        uniforms = self.stream("vectors").uniforms(m * self.n).reshape(m, self.n)
        self.samples += m
        out: NDArray[np.bool_] = uniforms < self._chances
        return out

    def stream(self, purpose: str) -> DataStream:
        """Open private randomness that nothing else reads."""
        self._streams += 1
        return DataStream(self.data_seed, f"{purpose}/{self._streams}")


def rademacher(biases: ArrayLike, data_seed: int) -> ProductSource:
    """Sample access to Rad(p), a product of ±1 variables with means p, (n,) in [−1, 1] (Section 7)."""
    return ProductSource((1.0 + check_biases(biases)) / 2.0, data_seed)


def coins(probabilities: ArrayLike, data_seed: int) -> ProductSource:
    """Sample access to Bern(p), a product of 0/1 variables, p (n,) in [0, 1] (Definition B.5)."""
    return ProductSource(check_vector("probabilities", probabilities, 0.0, 1.0), data_seed)


class LabelledSource:
    """Examples from a given law (agnostic PAC learning, Section B.1); an ExampleSource.

    The law has (D, 2) probabilities of (x, −1) and (x, +1).

    Randomness:
        Data only: streams (data_seed, "examples/number").
    """

    def __init__(self, law: ArrayLike, data_seed: int) -> None:
        self._law = check_example_law(law)
        self.n_points = int(self._law.shape[0])
        self.data_seed = check_int("data seed", data_seed, 0, 2**64 - 1)
        self.samples = 0
        self._batches = 0

    def count(self, m: int) -> Sizes:
        """Draw m fresh examples and count them, (D, 2)."""
        m = check_int("m", m, 1, _MOST)
        self._batches += 1
        self.samples += m
        stream = DataStream(self.data_seed, f"examples/{self._batches}")
        return multinomials(stream, np.array([m]), self._law.reshape(1, -1)).reshape(-1, 2)


def heads(stream: DataStream, totals: Sizes, chances: NDArray[np.float64]) -> Sizes:
    """Draw how many of totals[i] coins of chance chances[i] come up heads, (n,)."""
    out: Sizes = multinomials(stream, totals, np.stack([1.0 - chances, chances], axis=1))[:, 1]
    return out


def multinomials(stream: DataStream, totals: Sizes, laws: NDArray[np.float64]) -> Sizes:
    """Draw one multinomial per row of laws (R, K), totals[i] trials in row i from lane i of the stream's key.

    The time does not depend on the totals.
    """
    out = np.zeros(laws.shape, dtype=np.int64)
    _multinomials(np.uint64(stream.key), totals.astype(np.int64), np.ascontiguousarray(laws), out)
    return out


@njit(cache=True)
def _multinomials(key: np.uint64, totals: Sizes, laws: NDArray[np.float64], out: Sizes) -> None:
    """Fill every row of out with a multinomial from its own lane."""
    for i in range(totals.size):
        multinomial(key, np.uint64(i), totals[i], laws[i], np.cumsum(laws[i]), out[i])


def check_dimension(source: VectorSource, n: int) -> None:
    """Refuse a source of another dimension."""
    if source.n != n:
        raise InputError(f"the source must have {n} coordinates, as the algorithm, got {source.n}")


def check_biases(biases: ArrayLike) -> NDArray[np.float64]:
    """Return biases as an (n,) vector in [−1, 1]."""
    return check_vector("biases", biases, -1.0, 1.0)


def check_example_law(law: ArrayLike) -> NDArray[np.float64]:
    """Return law as a (D, 2) table of probabilities that sum to 1."""
    table = check_array("law", law, 2)
    if table.shape[0] < 1 or table.shape[1] != 2:
        raise InputError(f"law must have shape (D, 2) with D at least 1, got {table.shape}")
    check_distribution("law", table.reshape(-1))
    whole: NDArray[np.float64] = table / table.sum()
    return whole


def check_sizes(sizes: Any, n: int) -> Sizes:
    """Return a number of vectors, or one number per coordinate, as (n,) whole numbers, the largest at least 1."""
    if np.ndim(sizes) == 0:
        return np.full(n, check_int("sizes", sizes, 1, _MOST), dtype=np.int64)
    wanted = np.asarray(sizes)
    if wanted.shape != (n,) or wanted.dtype.kind not in "iu":
        raise InputError(f"sizes must be a whole number or {n} whole numbers, got {quote(sizes)}")
    if wanted.min() < 0 or not 1 <= int(wanted.max()) <= _MOST:
        raise InputError(
            f"sizes must lie in [0, 2**62] and not all be 0, got {int(wanted.min())} to {int(wanted.max())}"
        )
    return wanted.astype(np.int64)


def check_vector(name: str, values: ArrayLike, low: float, high: float) -> NDArray[np.float64]:
    """Return values as an (n,) vector in [low, high]."""
    vector = check_array(name, values, 1)
    if vector.size == 0:
        raise InputError(f"{name} must have at least one coordinate, got an empty vector")
    bad = (vector < low) | (vector > high)
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(f"{name}[{i}] must lie in [{low:g}, {high:g}], got {vector[i]:g}")
    return vector

"""Networks: from observations and weights to scores. Linear, with or without squares and products; or tanh units.

Kernels add in one fixed order, row by row, so that a score does not depend on how many rows are computed together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from reprl.errors import InputError, check_array, check_int, quote
from reprl.kernels import njit
from reprl.search.proposals import CONSTANT

Floats = np.ndarray[Any, np.dtype[np.float64]]
Wholes = np.ndarray[Any, np.dtype[np.int64]]
FAR = 1e6
"""A declared bound beyond this says nothing about the size of observations."""


class Linear(NamedTuple):
    """A score is a weighted sum of the inputs and 1; with `quadratic` also of all products of two inputs."""

    quadratic: bool = False

    @property
    def name(self) -> str:
        """What documents and options call it."""
        return "quadratic" if self.quadratic else "linear"

    def features(self, inputs: int) -> int:
        """How many numbers a score is a weighted sum of."""
        return 1 + inputs + (inputs * (inputs + 1) // 2 if self.quadratic else 0)

    def size(self, inputs: int, scores: int) -> int:
        """Number of weights."""
        return scores * self.features(inputs)

    def sizes(self, inputs: int, scores: int) -> Floats:
        """(size,) powers of two: how large a proposed weight is."""
        return np.ones(self.size(inputs, scores))

    def owners(self, inputs: int, scores: int) -> Wholes:
        """(size,) the number of the input, or product of two, that a weight belongs to; CONSTANT for the constant."""
        features = np.arange(self.features(inputs))
        return np.tile(np.where(features == inputs, CONSTANT, features - (features > inputs)), scores)

    def scores(self, x: Floats, rows: Wholes, weights: Floats, n: int) -> Floats:
        """Return the scores, (len(x), n), of inputs (·, d) by the weights (policies, size) of the policy in `rows`."""
        out = np.empty((len(x), n))
        _linear(x, rows, weights.reshape(len(weights), n, -1), self.quadratic, out)
        return out


class Tanh(NamedTuple):
    """One hidden layer of tanh units."""

    hidden: int = 16

    @property
    def name(self) -> str:
        """What documents and options call it."""
        return "tanh"

    def size(self, inputs: int, scores: int) -> int:
        """Number of weights: the hidden layer's, unit by unit, bias last; then the scores', bias last."""
        return self.hidden * (inputs + 1) + scores * (self.hidden + 1)

    def sizes(self, inputs: int, scores: int) -> Floats:
        """(size,) powers of two: how large a proposed weight is; that of the scores shrinks as units are added."""
        last = 0.5 ** ((self.hidden.bit_length() - 1) // 2)
        return np.concatenate((np.ones(self.hidden * (inputs + 1)), np.full(scores * (self.hidden + 1), last)))

    def owners(self, inputs: int, scores: int) -> Wholes:
        """(size,) the number of the input that a weight belongs to; −1 for constants and the last layer."""
        first = np.tile(np.append(np.arange(inputs), -1), self.hidden)
        return np.append(first, np.full(scores * (self.hidden + 1), -1))

    def scores(self, x: Floats, rows: Wholes, weights: Floats, n: int) -> Floats:
        """Return the scores, (len(x), n), as ``Linear.scores`` does."""
        edge = self.hidden * (x.shape[1] + 1)
        first = weights[:, :edge].reshape(len(weights), self.hidden, -1)
        out = np.empty((len(x), n))
        _tanh(x, rows, first, weights[:, edge:].reshape(len(weights), n, -1), out)
        return out


Network = Linear | Tanh


def make_network(name: str, hidden: int = 16) -> Network:
    """Return the network with a name: "linear", "quadratic" or "tanh"."""
    if name == "tanh":
        return Tanh(check_int("hidden", hidden, 1, 1024))
    if name in ("linear", "quadratic"):
        return Linear(name == "quadratic")
    raise InputError(f"network must be 'linear', 'quadratic' or 'tanh', got {quote(name)}")


class Inputs(NamedTuple):
    """How an observation becomes inputs of about the size 1: (observation − offset) / scale, in row order."""

    offset: tuple[float, ...]
    scale: tuple[float, ...]
    shape: tuple[int, ...]
    """Of an observation."""

    @property
    def size(self) -> int:
        """Numbers in an observation."""
        return len(self.offset)

    def read(self, observations: Floats) -> Floats:
        """Return the inputs, (n, d), of observations that are flat rows."""
        inputs: Floats = (observations - np.array(self.offset)) / np.array(self.scale)
        return inputs


def first_inputs(space: Any, given: Sequence[Sequence[float]] | None) -> Inputs:
    """Return the inputs by declared bounds or by the user's; an observation is taken as it is where there are none."""
    size = int(np.prod(space.shape, dtype=np.int64))
    if given is None:
        low, high = (np.asarray(bound, dtype=np.float64).ravel() for bound in (space.low, space.high))
    else:
        if isinstance(given, str) or len(given) != 2:
            raise InputError(f"observation_range must be (low, high), got {quote(given)}")
        low, high = (check_array("observation_range", np.ravel(bound), 1) for bound in given)
        if not (low.size == high.size == size and (low < high).all()):
            raise InputError(
                f"observation_range must be two rows of {size} numbers, the first below the second, got {quote(given)}"
            )
    known = (low >= -FAR) & (high <= FAR) & (low < high)
    offset = np.where(known, 0.5 * np.where(known, low, 0.0) + 0.5 * np.where(known, high, 0.0), 0.0)
    scale = np.where(known, 0.5 * np.where(known, high, 0.0) - 0.5 * np.where(known, low, 0.0), 1.0)
    return Inputs(tuple(map(float, offset)), tuple(map(float, scale)), tuple(map(int, space.shape)))


@njit(cache=True)
def _linear(x: Floats, rows: Wholes, weights: Any, quadratic: bool, out: Floats) -> None:
    d = x.shape[1]
    for i in range(x.shape[0]):
        w = weights[rows[i]]
        for a in range(out.shape[1]):
            total = w[a, d]
            for k in range(d):
                total += w[a, k] * x[i, k]
            if quadratic:
                place = d + 1
                for k in range(d):
                    for m in range(k, d):
                        total += w[a, place] * (x[i, k] * x[i, m])
                        place += 1
            out[i, a] = total


@njit(cache=True)
def _tanh(x: Floats, rows: Wholes, first: Any, last: Any, out: Floats) -> None:
    d, hidden = x.shape[1], first.shape[1]
    units = np.empty(hidden)
    for i in range(x.shape[0]):
        row = rows[i]
        for u in range(hidden):
            total = first[row, u, d]
            for k in range(d):
                total += first[row, u, k] * x[i, k]
            units[u] = math.tanh(total)
        for a in range(out.shape[1]):
            total = last[row, a, hidden]
            for u in range(hidden):
                total += last[row, a, u] * units[u]
            out[i, a] = total

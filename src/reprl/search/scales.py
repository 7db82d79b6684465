"""Scales: how large observations are, so that inputs of a network are about 1.

Bounds that are declared, or the user's, set them. A run may also find them out: a scale is then a power of two, 2^k,
with the largest k such that |x − offset| ≥ 2^k at more than a share θ of the steps of an episode, on average over
episodes. θ comes from the shared seed, and so do the actions: they are a random function of the observation. Whether a
mean share is above θ is decided like every other question about a mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from reprl.errors import InputError, check_array, quote
from reprl.randomness import SharedKey
from reprl.search.heads import Head
from reprl.search.networks import Inputs
from reprl.search.scan import Test
from reprl.sources.returns import POWERS, Returns

Floats = np.ndarray[Any, np.dtype[np.float64]]
FAR = 1e6
"""A declared bound beyond this says nothing about the size of observations."""
_FIRST, _MOST = 32, 2**14


class Scaled(NamedTuple):
    """Inputs, and which scales were found out."""

    inputs: Inputs
    estimated: tuple[int, ...]
    """Coordinates whose scale the run has decided."""
    undecided: int | None = None
    """A coordinate that samples ran out on."""


class HashAct(NamedTuple):
    """A policy that is a random function of the observation, drawn by the shared seed."""

    words: bytes
    head: Head

    def __call__(self, seen: Floats, rows: Any) -> Any:
        """Return the actions for observations, (n, d)."""
        n = self.head.scores
        scores = np.empty((len(seen), n))
        for i, row in enumerate(seen):
            digest = hashlib.shake_128(self.words + row.astype("<f8").tobytes()).digest(4 * n)
            scores[i] = np.frombuffer(digest, "<u4") * 2.0**-31 - 1.0
        return self.head.choose(scores)


def first_inputs(space: Any, given: str | Sequence[Sequence[float]] | None) -> Inputs:
    """Return the inputs by declared bounds or by the user's; a scale of 0 where it is to be found out."""
    size = int(np.prod(space.shape, dtype=np.int64))
    if given is None or isinstance(given, str):
        low, high = (np.asarray(bound, dtype=np.float64).ravel() for bound in (space.low, space.high))
    else:
        if len(given) != 2:
            raise InputError(f"observation_range must be (low, high), got {quote(given)}")
        low, high = (check_array("observation_range", np.ravel(bound), 1) for bound in given)
        if not (low.size == high.size == size and (low < high).all()):
            raise InputError(
                f"observation_range must be two rows of {size} numbers, the first below the second, got {quote(given)}"
            )
    known = (low >= -FAR) & (high <= FAR) & (low < high)
    offset = np.where(known, 0.5 * np.where(known, low, 0.0) + 0.5 * np.where(known, high, 0.0), 0.0)
    scale = np.where(known, 0.5 * np.where(known, high, 0.0) - 0.5 * np.where(known, low, 0.0), 0.0)
    scale = np.zeros(size) if given == "found" else np.where(known, scale, 1.0)
    return Inputs(tuple(map(float, offset)), tuple(map(float, scale)))


def find_scales(
    key: SharedKey, returns: Returns, inputs: Inputs, head: Head, make_test: Callable[[float, float], Test], risk: float
) -> Scaled:
    """Decide the scale of every coordinate that has none.

    Args:
        key: ξ.
        returns: where episodes come from.
        inputs: offsets, and scales, of which those that are 0 are to be found.
        head: of the environment's actions.
        make_test: from θ and a level to a test of the mean of samples in [0, 1].
        risk: accepted probability of a wrong scale.

    Guarantee:
        Every scale is f(ξ, environment), but with probability `risk` (docs/proofs/search.md §6).

    Randomness:
        Shared, at ("search", "scale"): actions; and at ("search", "scale", coordinate): θ. Data: stream "search/scale".
    """
    missing = [d for d, scale in enumerate(inputs.scale) if scale == 0.0]
    if not missing:
        return Scaled(inputs, ())
    base = key.derive("search", "scale")
    act = HashAct(b"".join(int(word).to_bytes(8, "little") for word in base.words), head)
    level = risk / (2 * len(missing))
    scale, left, offset = list(inputs.scale), list(missing), np.array(inputs.offset)
    seen = np.empty((0, inputs.size, POWERS.size))
    while left:
        count = max(_FIRST, len(seen))
        afford = returns.affordable()
        if len(seen) >= _MOST or (afford is not None and afford < count):
            return Scaled(inputs, tuple(missing), left[0])
        seen = np.concatenate((seen, returns.magnitudes(act, offset, "search/scale", len(seen), count)))
        for d in list(left):
            theta = 0.25 + 0.5 * float(base.derive(d).uniforms(1)[0])
            found = _decide(seen[:, d], make_test(theta, level), theta)  # shares, (episodes, powers)
            if found is not None:
                scale[d] = found
                left.remove(d)
    return Scaled(inputs._replace(scale=tuple(scale)), tuple(missing))


def _decide(shares: Floats, test: Test, theta: float) -> float | None:
    """Return the power of two that the sizes of a coordinate decide for; 1 for one that hardly varies; None if open."""
    last = int((shares.mean(axis=0) > theta).sum()) - 1  # shares fall with the power

    def verdict(place: int) -> str:
        return str(test.bet(test.begin(), shares[:, place]).verdict)

    if last >= 0 and verdict(last) != "above":
        return None
    if last + 1 < POWERS.size and verdict(last + 1) != "below":
        return None
    return 1.0 if last < 0 else float(2.0 ** int(POWERS[last]))

"""The problems of the lower bounds, each with an exact checker, and Algorithm: a solver that carries its guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_array, check_int, check_real
from reprl.guarantee import Guarantee
from reprl.lab.lower_bounds.sources import check_biases, check_example_law, check_vector
from reprl.randomness import SharedKey, check_shared_key

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """A replicable algorithm for one of the problems: a function and what it promises.

    Calling it with a shared key and a source of fresh samples gives the answer. Reductions turn one Algorithm into
    another, guarantee and sample count included.
    """

    run: Callable[[SharedKey, Any], Vector]
    """(shared key, source) → answer."""
    guarantee: Guarantee
    """rho and delta as always; epsilon in the units of the problem it solves."""
    samples: int
    """Samples of the source that one run draws: exactly, or at most where `exact` is False."""
    exact: bool = True
    """False: `samples` is a bound that holds with probability 1 − delta, already counted in the guarantee."""

    def __post_init__(self) -> None:
        if not callable(self.run) or not isinstance(self.guarantee, Guarantee):
            raise InputError(f"an Algorithm must have a callable run and a Guarantee, got {self.run!r:.60}")
        check_int("samples", self.samples, 1)

    def __call__(self, shared_key: SharedKey, source: Any) -> Vector:
        """Answer from fresh samples of the source."""
        return self.run(check_shared_key(shared_key), source)


def sign(values: ArrayLike) -> Vector:
    """Return the paper's sgn: ℝ → {±1} of Definition 7.1; zero counts as +1."""
    return np.where(np.asarray(values, dtype=np.float64) >= 0.0, 1.0, -1.0)


def sign_excess(biases: ArrayLike, answer: ArrayLike) -> float:
    """Return (1/n)·Σ (sgn(p_i) − v_i)·p_i, p and v in [−1, 1]ⁿ: the error in sign-one-way marginals (Definition 7.1).

    Guarantee:
        Correctly rounded sums. v is ε-accurate exactly when this is below ε.
    """
    p = check_biases(biases)
    v = _answer(answer, p.size, -1.0, 1.0)
    return math.fsum(np.abs(p) - v * p) / p.size


def infinity_excess(biases: ArrayLike, answer: ArrayLike) -> float:
    """Return max |p_i| over v_i ≠ sgn(p_i), p in [−1, 1]ⁿ and v in {±1}ⁿ: the error in ℓ∞-testing (Definition B.2).

    Guarantee:
        Exact. v is ε-accurate exactly when this is below ε. (The paper writes "for all p_i ≥ ε" and means |p_i| ≥ ε, as
        its second form says: docs/proofs/lower-bounds.md.)
    """
    p = check_biases(biases)
    v = _signs(_answer(answer, p.size, -1.0, 1.0))
    return float(np.abs(p)[v != sign(p)].max(initial=0.0))


def coin_excess(probabilities: ArrayLike, answer: ArrayLike) -> float:
    """Return max |p_i − ½| over the coins that v, of 0 and 1, calls the wrong way: the error of Definition B.5.

    Guarantee:
        Exact. v is ε-accurate exactly when this is below ε. A coin with p_i = ½ cannot be called wrongly.
    """
    p = check_vector("probabilities", probabilities, 0.0, 1.0)
    v = _answer(answer, p.size, 0.0, 1.0)
    if not np.isin(v, (0.0, 1.0)).all():
        raise InputError(f"answer must be a vector of 0 and 1, got {v[~np.isin(v, (0.0, 1.0))][0]:g}")
    return float(np.abs(p - 0.5)[v != (p >= 0.5)].max(initial=0.0))


def mean_excess(means: ArrayLike, answer: ArrayLike) -> float:
    """Return ‖v − μ‖₁, μ in [−1, 1]ⁿ and v in ℝⁿ: the error in ℓ1 mean estimation (Definition B.7).

    Guarantee:
        Correctly rounded sum. v is ε-accurate exactly when this is at most ε.
    """
    mu = check_biases(means)
    v = _answer(answer, mu.size, -math.inf, math.inf)
    return math.fsum(np.abs(v - mu))


def pac_excess(law: ArrayLike, hypotheses: ArrayLike, answer: ArrayLike) -> float:
    """Return err(h) − min over the class of err, the error in agnostic PAC learning (Section B.1).

    The law has (D, 2) probabilities of the examples (x, −1) and (x, +1); hypotheses (K, D) and answer (D,) are ±1.

    Guarantee:
        Correctly rounded sums. h is ε-accurate exactly when this is at most ε.
    """
    table = check_example_law(law)
    labels = check_hypotheses(hypotheses, table.shape[0])
    own = _signs(_answer(answer, table.shape[0], -1.0, 1.0))
    # err(h) = Σ_x Pr[(x, −1)]·[h(x) = +1] + Pr[(x, +1)]·[h(x) = −1]
    return _error(table, own) - min(_error(table, row) for row in labels)


def check_hypotheses(hypotheses: ArrayLike, n_points: int | None = None) -> Vector:
    """Return a class of hypotheses as a (K, D) table of ±1."""
    table = check_array("hypotheses", hypotheses, 2)
    if 0 in table.shape or (n_points is not None and table.shape[1] != n_points):
        allowed = f"(K, {n_points})" if n_points is not None else "(K, D)"
        raise InputError(f"hypotheses must have shape {allowed} and not be empty, got {table.shape}")
    return _signs(table, "hypotheses")


def cube_instance(n: int, half_width: float, key: SharedKey) -> Vector:
    """Draw the hard instance of the n-coin bound: biases uniform in [−half_width, half_width]ⁿ (Theorem B.6).

    The key is a published address for the instance, not the key of the algorithm under test.

    Randomness:
        One uniform per coordinate at `key`.
    """
    n = check_int("n", n, 1)
    width = check_real("half_width", half_width, 0.0, 1.0, open_high=False)
    return width * (2.0 * check_shared_key(key).uniforms(n) - 1.0)


def _error(law: Vector, labels: Vector) -> float:
    return math.fsum(np.where(labels > 0.0, law[:, 0], law[:, 1]))


def _answer(answer: ArrayLike, n: int, low: float, high: float) -> Vector:
    v = check_array("answer", answer, 1)
    if v.size != n:
        raise InputError(f"answer must have {n} coordinates, got {v.size}")
    outside = v[(v < low) | (v > high)]
    if outside.size:
        raise InputError(f"answer must lie in [{low:g}, {high:g}], got {outside[0]:g}")
    return v


def _signs(values: Vector, name: str = "answer") -> Vector:
    if not (np.abs(values) == 1.0).all():
        raise InputError(f"{name} must consist of −1 and +1, got {values[np.abs(values) != 1.0][0]:g}")
    return values

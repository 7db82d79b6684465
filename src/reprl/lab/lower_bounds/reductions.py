"""The chain of reductions behind the lower bound for sign-one-way marginals (Theorem 7.2, Appendix B).

Every function turns an Algorithm for one problem into an Algorithm for the next: its guarantee and its samples are
those of the lemma, with explicit constants (docs/proofs/lower-bounds.md).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_int, check_probability, check_real, quote
from reprl.lab.lower_bounds.problems import Algorithm, Vector, check_hypotheses, sign
from reprl.lab.lower_bounds.simulation import PaddedSource, SignExamples
from reprl.lab.lower_bounds.sources import VectorSource, check_dimension
from reprl.randomness import SharedKey

ERROR_FACTOR = 10.0
"""The paper's \\errorFactor: ℓ∞-testing is solved at 10 times the accuracy for signs (Lemma B.3)."""
WRONG_SHARE = 0.15
"""Share of the coordinates at ±10ε that an ε-accurate answer in 3n dimensions can get wrong: (3εn/2)/(10εn)."""


def round_to_signs(algorithm: Algorithm) -> Algorithm:
    """Make a solver of sign-one-way marginals answer in {±1}ⁿ (Lemma B.1): sgn of what it says.

    Guarantee:
        Same ρ, δ and samples, accuracy 2ε.
    """

    def run(key: SharedKey, source: VectorSource) -> Vector:
        return sign(algorithm(key, source))

    return _wrap(algorithm, run, epsilon=2.0 * algorithm.guarantee.epsilon)


def infinity_calls(n: int, *, delta: float, inner_delta: float = 0.01) -> int:
    """Return T, the calls RepInftyEstimator makes: the least odd number of at least log(n/δ)/KL(½‖0.15 + δ₀).

    n coordinates are tested with failure δ; δ₀ (inner_delta) is that of the solver of signs, 0.01 in the paper.

    Guarantee:
        Some coordinate with |q_i| = 10ε is voted down with probability at most δ: docs/proofs/lower-bounds.md §5.
    """
    n = check_int("n", n, 1)
    delta = check_probability("delta", delta)
    wrong = WRONG_SHARE + check_real("inner delta", inner_delta, 0.0, 0.5 - WRONG_SHARE, open_low=False)
    divergence = -0.5 * math.log(4.0 * wrong * (1.0 - wrong))
    return 2 * (max(1, math.ceil(math.log(n / delta) / divergence)) // 2) + 1


def infinity_tester(algorithm: Algorithm, n: int, *, delta: float) -> Algorithm:
    """RepInftyEstimate (Algorithm 7, Lemma B.3): ℓ∞-testing on a cube from sign-one-way marginals.

    Pads q with n coordinates of bias 10ε and n of −10ε, permutes all 3n by shared randomness, asks the solver, and
    takes the majority of T answers, where ε is the accuracy of the solver, which has dimension 3n and answers in {±1}
    (see round_to_signs).

    Guarantee:
        T·ρ, accuracy 10ε on the cube [−10ε, 10ε]ⁿ, failure δ, T·m vectors, T = infinity_calls(n).

    Randomness:
        Shared, permutations at key.derive("permutation", t) and calls at key.derive("call", t). Data: the source, and
        its private stream "padding".
    """
    inner = algorithm.guarantee
    pad = check_real("ten times the solver's epsilon", ERROR_FACTOR * inner.epsilon, 0.0, 1.0, open_high=False)
    calls = infinity_calls(n, delta=delta, inner_delta=inner.delta)

    def run(key: SharedKey, source: VectorSource) -> Vector:
        check_dimension(source, n)
        votes = np.zeros(n)
        for t in range(calls):
            order = np.argsort(key.derive("permutation", t).uniforms(3 * n), kind="stable")
            answer = algorithm(key.derive("call", t), PaddedSource(source, order, pad))
            votes += _plus_minus(answer, 3 * n)[np.argsort(order)][:n]
        return sign(votes)

    proof = f"docs/proofs/lower-bounds.md §5 from {inner.source}"
    guarantee = inner.but(rho=calls * inner.rho, delta=check_probability("delta", delta), epsilon=pad, source=proof)
    return replace(algorithm, run=run, guarantee=guarantee, samples=calls * algorithm.samples)


def coins_from_infinity(algorithm: Algorithm) -> Algorithm:
    """Solve n coins by ℓ∞-testing (Lemma B.4): heads are +1, and v ↦ (v + 1)/2.

    Guarantee:
        Same ρ, δ and samples, accuracy ε/2: p_i − ½ is half the bias 2p_i − 1.
    """

    def run(key: SharedKey, source: VectorSource) -> Vector:
        answer = _plus_minus(algorithm(key, source), source.n)
        return (answer + 1.0) / 2.0

    return _wrap(algorithm, run, epsilon=algorithm.guarantee.epsilon / 2.0)


def infinity_from_coins(algorithm: Algorithm) -> Algorithm:
    """Solve ℓ∞-testing by an algorithm for n coins (the other half, proof of Lemma B.4): v ↦ 2v − 1.

    Guarantee:
        Same ρ, δ and samples, accuracy 2ε.
    """

    def run(key: SharedKey, source: VectorSource) -> Vector:
        return _plus_minus(2.0 * algorithm(key, source) - 1.0, source.n)

    return _wrap(algorithm, run, epsilon=2.0 * algorithm.guarantee.epsilon)


def signs_from_infinity(algorithm: Algorithm) -> Algorithm:
    """Solve sign-one-way marginals by ℓ∞-testing (remark after Definition B.2): the same answer.

    Guarantee:
        Same ρ, δ and samples, accuracy 2ε, not the ε of the paper: each of n terms is below 2ε (lower-bounds.md §6).
    """
    return _wrap(algorithm, algorithm.run, epsilon=2.0 * algorithm.guarantee.epsilon)


def signs_from_means(algorithm: Algorithm, n: int) -> Algorithm:
    """Solve sign-one-way marginals by ℓ1 mean estimation, ‖v − μ‖₁ ≤ ε (Theorem B.8): the sign of the estimate.

    Guarantee:
        Same ρ, δ and samples. The sum of the errors is at most 2ε, so the answer is accurate at every level above 2ε/n;
        the paper says 2ε, leaving out the 1/n of Definition 7.1 (lower-bounds.md §6).
    """
    n = check_int("n", n, 1)

    def run(key: SharedKey, source: VectorSource) -> Vector:
        check_dimension(source, n)
        return sign(algorithm(key, source))

    return _wrap(algorithm, run, epsilon=2.0 * algorithm.guarantee.epsilon / n)


def signs_from_pac(algorithm: Algorithm, hypotheses: ArrayLike, points: ArrayLike, *, delta: float = 0.01) -> Algorithm:
    """Solve sign-one-way marginals by agnostic PAC learning (Theorem B.9, after Bun et al. 2023).

    hypotheses are (K, D) labels ±1, points d of the D points that the class shatters; δ is the failure of the bound on
    the vectors used.

    Guarantee:
        Same ρ, accuracy every level above 2ε, failure of the learner + δ. err(h) = ½ − (1/2d)·Σ h(x_i)p_i, so excess
        errors double. At most M/d + √(2(M/d)L) + 2L/3 vectors for M examples, L = log(d/δ): lower-bounds.md §4.

    Randomness:
        Shared, the learner's at key. Data: as SignExamples.
    """
    labels = check_hypotheses(hypotheses)
    where = _shattered(labels, points)
    delta = check_probability("delta", delta)

    def run(key: SharedKey, source: VectorSource) -> Vector:
        check_dimension(source, where.size)
        return algorithm(key, SignExamples(source, where, labels.shape[1]))[where]

    each, log = algorithm.samples / where.size, math.log(where.size / delta)
    most = min(algorithm.samples, math.ceil(each + math.sqrt(2.0 * each * log) + 2.0 * log / 3.0))
    inner = algorithm.guarantee
    guarantee = inner.but(epsilon=2.0 * inner.epsilon, delta=inner.delta + delta)
    return Algorithm(run=run, guarantee=guarantee, samples=most, exact=False)


def _shattered(labels: Vector, points: ArrayLike) -> NDArray[np.int64]:
    where = np.asarray(points)
    fine = where.ndim == 1 and where.size and where.dtype.kind in "iu" and np.unique(where).size == where.size
    if not fine or where.min() < 0 or where.max() >= labels.shape[1]:
        raise InputError(f"points must be different numbers from 0 to {labels.shape[1] - 1}, got {quote(points)}")
    patterns = np.unique(labels[:, where], axis=0).shape[0]
    if patterns < 2**where.size:
        raise InputError(f"points must be shattered, with all {2**where.size} patterns in the class, got {patterns}")
    return where.astype(np.int64)


def _wrap(algorithm: Algorithm, run: Any, *, epsilon: float) -> Algorithm:
    return replace(algorithm, run=run, guarantee=replace(algorithm.guarantee, epsilon=epsilon))


def _plus_minus(answer: Vector, n: int) -> Vector:
    if answer.shape != (n,) or not (np.abs(answer) == 1.0).all():
        raise InputError(f"the inner algorithm must answer in {{−1, +1}} with {n} coordinates, got {quote(answer)}")
    return answer

"""Replicable solvers of the laboratory: signs by `multi_best_arm`, means by rounding, finite classes by best arm.

Each sample size is proven in docs/proofs/lower-bounds.md, without logarithms in the terms that carry ρ for signs and
means: what the lower bound of the paper is compared with.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reprl.coupling.correlated import correlated_sample
from reprl.coupling.mechanisms import MECHANISMS, compact
from reprl.coupling.rounding import round_vector
from reprl.coupling.spec import DEFAULT_BLOCK, METHODS, CouplingSpec
from reprl.errors import InputError, check_choice, check_int, check_probability, check_real
from reprl.guarantee import Guarantee
from reprl.lab.lower_bounds.problems import Algorithm, Vector, check_hypotheses
from reprl.lab.lower_bounds.sources import ExampleSource, VectorSource
from reprl.paper.rep_var_bandit import Decision, best_arm, multi_best_arm, plan_best_arm
from reprl.randomness import SharedKey

TARGETS = ("every", "average")
MEAN_LOSS = 0.1675
"""Bound on max over u in [0, 1] of u·cos²(πu/2)/(1 + cos²(πu/2)): the mean loss of a compact coin, in gaps."""
_SOURCE = "docs/proofs/lower-bounds.md"


class SignPlan(NamedTuple):
    """How the sign solver is set: everything that two runs share besides the key."""

    samples: int
    """Vectors to draw."""
    gap: float
    """Difference 2|p̂| of the two arms' scores from which the sign of p̂ is certain."""


def plan_signs(
    n: int,
    *,
    epsilon: float,
    rho: float,
    delta: float,
    target: str = "every",
    coupling: str = "joint",
    block: int = DEFAULT_BLOCK,
) -> SignPlan:
    """Return the sample size and the gap of `sign_solver`.

    Args:
        n: number of coordinates.
        epsilon: accuracy in (0, 2].
        rho: allowed disagreement.
        delta: allowed failure.
        target: "every" loses at most ε in every coordinate (so it also solves ℓ∞-testing at ε/2), "average" only on
            average over coordinates, which is all that Definition 7.1 asks and lets the gap grow to almost 6ε.
        coupling: "joint", "blocked" or "product".
        block: coordinates per block for "blocked".

    Guarantee:
        m = ⌈8π²·n·B/(ρ·gap)²⌉ with B blocks ("product": 2π²n²/(ρ·gap)²). Proof: docs/proofs/lower-bounds.md §1.
    """
    n = check_int("n", n, 1, 10**6)
    epsilon = check_real("epsilon", epsilon, 0.0, 2.0, open_high=False)
    rho, delta = check_probability("rho", rho), check_probability("delta", delta)
    target = check_choice("target", target, TARGETS)
    spec = CouplingSpec(check_choice("coupling", coupling, METHODS), block)
    weight = 2.0 * math.pi**2 * n * n if coupling == "product" else 8.0 * math.pi**2 * n * spec.count(n)
    log = math.log(2.0 * n / delta) if target == "every" else math.log(2.0 / delta)
    share = min(1.0, MEAN_LOSS + math.sqrt(log / (2.0 * n))) if target == "average" else 1.0
    # Sampling error in units of ρ·gap, at the m below: of one coordinate at worst, or of all on average.
    noise = math.sqrt(8.0 * log) if target == "every" else 2.0 + math.sqrt(8.0 * log / n)
    gap = epsilon / (share + rho * noise / math.sqrt(weight))
    return SignPlan(math.ceil(weight / (rho * gap) ** 2), gap)


def sign_solver(
    n: int,
    *,
    epsilon: float,
    rho: float,
    delta: float,
    target: str = "every",
    coupling: str = "joint",
    block: int = DEFAULT_BLOCK,
    samples: int | None = None,
) -> Algorithm:
    """Solve sign-one-way marginals (Definition 7.1) by `multi_best_arm` with two arms, ±p̂_i, per coordinate.

    Args:
        n: number of coordinates.
        epsilon: accuracy in (0, 2].
        rho: allowed disagreement.
        delta: allowed failure.
        target: as in `plan_signs`.
        coupling: as in `plan_signs`.
        block: as in `plan_signs`.
        samples: draw this many vectors instead; fewer than planned makes the guarantee heuristic.

    Returns:
        An Algorithm from Rad(p) to v in {±1}ⁿ.

    Guarantee:
        (ρ, ε, δ) as asked, proven for the planned sample size: docs/proofs/lower-bounds.md §1.

    Randomness:
        Shared, at key.derive("signs", "arms"). Data: one tally of the source.
    """
    plan = plan_signs(n, epsilon=epsilon, rho=rho, delta=delta, target=target, coupling=coupling, block=block)
    m = plan.samples if samples is None else check_int("samples", samples, 1, 2**62)
    decision = Decision(mechanism="compact", coupling=coupling, block=block, rounding="none")

    def run(key: SharedKey, source: VectorSource) -> Vector:
        scores = sign_scores(source, n, m)
        # multi_best_arm spends half its accuracy on the mechanism: the gap is half of what it is asked for.
        found = multi_best_arm(
            key.derive("signs"),
            scores,
            np.full(n, m),
            epsilon=2.0 * plan.gap,
            delta=delta,
            decision=decision,
            scale=2.0,
        )
        return np.where(found.arms == 0, 1.0, -1.0)

    return Algorithm(run=run, guarantee=_promise(epsilon, rho, delta, m >= plan.samples, "§1"), samples=m)


def sign_scores(source: VectorSource, n: int, m: int) -> Vector:
    """Draw m vectors and return the scores (p̂_i, −p̂_i) of the two arms of every coordinate, (n, 2)."""
    check_dimension(source, n)
    means = 2.0 * source.tally(m) / m - 1.0
    scores: Vector = np.stack([means, -means], axis=1)
    return scores


def mean_solver(n: int, *, epsilon: float, rho: float, delta: float, samples: int | None = None) -> Algorithm:
    """Solve ℓ1 mean estimation (Definition B.7) for products of ±1 variables by rounding the empirical mean jointly.

    Args:
        n: number of coordinates.
        epsilon: accuracy ‖v − μ‖₁ ≤ ε, in (0, 2n].
        rho: allowed disagreement.
        delta: allowed failure.
        samples: draw this many vectors instead; fewer than planned makes the guarantee heuristic.

    Returns:
        An Algorithm from Rad(μ) to v in ℝⁿ, |v_i| at most 1.

    Guarantee:
        With width w = (ε/n)/(1 + ρ·c), m = ⌈2π²·n/(ρ·w)²⌉: proven, docs/proofs/lower-bounds.md §2. For accuracy ε·n,
        that is ε per coordinate, this is n/(ρε)² as in Theorem B.8, whose ε has to be read that way.

    Randomness:
        Shared, at key.derive("means"). Data: one tally of the source.
    """
    n = check_int("n", n, 1, 10**6)
    epsilon = check_real("epsilon", epsilon, 0.0, 2.0 * n, open_high=False)
    rho, delta = check_probability("rho", rho), check_probability("delta", delta)
    noise = (1.0 + math.sqrt(2.0 * math.log(1.0 / delta) / n)) / (math.pi * math.sqrt(2.0 * n))
    width = epsilon / n / (1.0 + rho * noise)
    planned = math.ceil(2.0 * math.pi**2 * n / (rho * width) ** 2)
    m = planned if samples is None else check_int("samples", samples, 1, 2**62)

    def run(key: SharedKey, source: VectorSource) -> Vector:
        check_dimension(source, n)
        rounded = round_vector(key.derive("means"), 2.0 * source.tally(m) / m - 1.0, width=width)
        return np.clip(rounded, -1.0, 1.0)

    return Algorithm(run=run, guarantee=_promise(epsilon, rho, delta, m >= planned, "§2"), samples=m)


def pac_learner(
    hypotheses: ArrayLike,
    *,
    epsilon: float,
    rho: float,
    delta: float,
    mechanism: str = "exponential",
    samples: int | None = None,
) -> Algorithm:
    """Learn a finite class agnostically and replicably (Section B.1): correlated sampling over its K hypotheses.

    Args:
        hypotheses: (K, D) labels ±1.
        epsilon: accuracy in (0, 1].
        rho: allowed disagreement in (0, ½].
        delta: allowed failure.
        mechanism: "exponential" needs about log³K/(ρε)² examples; "compact" never picks a hypothesis that is ε/2 worse
            empirically, and needs about K·log K/(ρε)².
        samples: draw this many examples instead; fewer than planned makes the guarantee heuristic.

    Returns:
        An Algorithm from examples to the labels of the chosen hypothesis, (D,).

    Guarantee:
        (ρ, ε, δ) as asked, proven for the planned sample size: docs/proofs/lower-bounds.md §3.

    Randomness:
        Shared, at key.derive("class"). Data: one tally of the source.
    """
    labels = check_hypotheses(hypotheses)
    mechanism = check_choice("mechanism", mechanism, MECHANISMS)
    k = labels.shape[0]
    arms = plan_best_arm(k, epsilon=epsilon, rho=rho, delta=delta)
    planned = arms.pulls if mechanism == "exponential" else _compact_examples(k, epsilon, rho, delta)
    m = planned if samples is None else check_int("samples", samples, 1, 2**62)

    def run(key: SharedKey, source: ExampleSource) -> Vector:
        if source.n_points != labels.shape[1]:
            raise InputError(f"the source must have {labels.shape[1]} points, as the hypotheses, got {source.n_points}")
        counts = source.tally(m)
        right = np.where(labels > 0.0, counts[:, 1], counts[:, 0]).sum(axis=1) / m
        if mechanism == "exponential":
            pull = right.tolist().__getitem__
            chosen = best_arm(
                key.derive("class"), lambda a, _: pull(a), k, epsilon=epsilon, rho=rho, delta=delta, plan=arms
            )
        else:
            law = compact(right[None], epsilon=epsilon / 2.0).probabilities
            chosen = int(correlated_sample(key.derive("class"), law)[0])
        answer: Vector = labels[chosen]
        return answer

    return Algorithm(run=run, guarantee=_promise(epsilon, rho, delta, m >= planned, "§3"), samples=m)


def check_dimension(source: VectorSource, n: int) -> None:
    """Refuse a source of another dimension."""
    if source.n != n:
        raise InputError(f"the source must have {n} coordinates, as the algorithm, got {source.n}")


def _compact_examples(k: int, epsilon: float, rho: float, delta: float) -> int:
    """Examples at which all K scores are within ρε/(16π√K) of the truth except with probability min(δ, ρ/4)."""
    eta = rho * epsilon / (16.0 * math.pi * math.sqrt(k))
    return math.ceil(math.log(2.0 * k / min(delta, rho / 4.0)) / (2.0 * eta * eta))


def _promise(epsilon: float, rho: float, delta: float, proven: bool, section: str) -> Guarantee:
    return Guarantee(
        rho=rho,
        delta=delta,
        epsilon=epsilon,
        status="proven" if proven else "heuristic",
        source=f"{_SOURCE} {section}" if proven else "docs/lower-bounds.md",
    )

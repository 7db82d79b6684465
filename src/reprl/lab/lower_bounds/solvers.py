"""Replicable solvers of the laboratory: signs by `multi_best_arm`, means by rounding, finite classes by best arm.

Each sample size is proven in docs/proofs/lower-bounds.md, without logarithms in the terms that carry ρ for signs and
means: what the lower bound of the paper is compared with. A solver may be told to draw another number of samples;
fewer than planned make its guarantee heuristic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reprl.coupling.correlated import correlated_sample
from reprl.coupling.mechanisms import MECHANISMS, compact
from reprl.coupling.rounding import round_vector
from reprl.coupling.spec import COUPLINGS
from reprl.errors import InputError, check_choice, check_int, check_probability, check_real
from reprl.guarantee import Guarantee
from reprl.lab.lower_bounds.problems import Algorithm, Vector, check_hypotheses
from reprl.lab.lower_bounds.sources import ExampleSource, VectorSource, check_dimension
from reprl.paper.rep_var_bandit import Decision, best_arm, multi_best_arm, plan_best_arm
from reprl.randomness import SharedKey

TARGETS = ("every", "average")
MEAN_LOSS = 0.1675
"""Bound on max over u in [0, 1] of u·cos²(πu/2)/(1 + cos²(πu/2)): the mean loss of a compact coin, in gaps."""


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
) -> SignPlan:
    """Return the sample size and the gap of `sign_solver`.

    ε is in (0, 2]. The target "every" loses at most ε in every coordinate (so it also solves ℓ∞-testing at ε/2),
    "average" only on average over coordinates, which is all that Definition 7.1 asks and lets the gap grow to almost
    6ε.

    Guarantee:
        m = ⌈8π²·n/(ρ·gap)²⌉ ("product": 2π²n²/(ρ·gap)²). Proof: docs/proofs/lower-bounds.md §1.
    """
    n = check_int("n", n, 1, 10**6)
    epsilon = check_real("epsilon", epsilon, 0.0, 2.0, open_high=False)
    rho, delta = check_probability("rho", rho), check_probability("delta", delta)
    target = check_choice("target", target, TARGETS)
    check_choice("coupling", coupling, COUPLINGS)
    weight = 2.0 * math.pi**2 * n * n if coupling == "product" else 8.0 * math.pi**2 * n
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
    samples: int | None = None,
) -> Algorithm:
    """Solve sign-one-way marginals, from Rad(p) to v in {±1}ⁿ; keywords as in `plan_signs`, and the vectors to draw.

    Guarantee:
        (ρ, ε, δ) as asked, proven for the planned sample size: docs/proofs/lower-bounds.md §1.

    Randomness:
        Shared, at key.derive("signs", "arms"). Data: one batch of the source.
    """
    plan = plan_signs(n, epsilon=epsilon, rho=rho, delta=delta, target=target, coupling=coupling)
    decision = Decision(mechanism="compact", coupling=coupling, rounding=False)

    def run(key: SharedKey, source: VectorSource, m: int) -> Vector:
        # multi_best_arm spends half its accuracy on the mechanism: the gap is half of what it is asked for.
        found = multi_best_arm(
            key.derive("signs"),
            sign_scores(source, n, m),
            np.full(n, m),
            epsilon=2.0 * plan.gap,
            delta=delta,
            decision=decision,
            scale=2.0,
        )
        return np.where(found.arms == 0, 1.0, -1.0)

    return _solver(run, plan.samples, samples, (epsilon, rho, delta), "§1")


def sign_scores(source: VectorSource, n: int, m: int) -> Vector:
    """Draw m vectors and return the scores (p̂_i, −p̂_i) of the two arms of every coordinate, (n, 2)."""
    means = _means(source, n, m)
    scores: Vector = np.stack([means, -means], axis=1)
    return scores


def mean_solver(n: int, *, epsilon: float, rho: float, delta: float, samples: int | None = None) -> Algorithm:
    """Solve ℓ1 mean estimation (Definition B.7) for products of ±1 variables by rounding the empirical mean jointly.

    The accuracy is ‖v − μ‖₁ ≤ ε, ε in (0, 2n]. Samples are the vectors to draw; None for the planned number.

    Guarantee:
        With width w = (ε/n)/(1 + ρ·c), m = ⌈2π²·n/(ρ·w)²⌉: proven, docs/proofs/lower-bounds.md §2. For accuracy ε·n,
        that is ε per coordinate, this is n/(ρε)² as in Theorem B.8, whose ε has to be read that way.

    Randomness:
        Shared, at key.derive("means"). Data: one batch of the source.
    """
    n = check_int("n", n, 1, 10**6)
    epsilon = check_real("epsilon", epsilon, 0.0, 2.0 * n, open_high=False)
    rho, delta = check_probability("rho", rho), check_probability("delta", delta)
    noise = (1.0 + math.sqrt(2.0 * math.log(1.0 / delta) / n)) / (math.pi * math.sqrt(2.0 * n))
    width = epsilon / n / (1.0 + rho * noise)

    def run(key: SharedKey, source: VectorSource, m: int) -> Vector:
        return np.clip(round_vector(key.derive("means"), _means(source, n, m), width=width), -1.0, 1.0)

    planned = math.ceil(2.0 * math.pi**2 * n / (rho * width) ** 2)
    return _solver(run, planned, samples, (epsilon, rho, delta), "§2")


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

    hypotheses are (K, D) labels ±1, ρ is in (0, ½]. The mechanism "exponential" needs about log³K/(ρε)² examples;
    "compact" never picks a hypothesis that is ε/2 worse empirically, and needs about K·log K/(ρε)².

    Guarantee:
        (ρ, ε, δ) as asked, proven for the planned sample size: docs/proofs/lower-bounds.md §3.

    Randomness:
        Shared, at key.derive("class"). Data: one batch of the source.
    """
    labels = check_hypotheses(hypotheses)
    mechanism = check_choice("mechanism", mechanism, MECHANISMS)
    k = labels.shape[0]
    arms = plan_best_arm(k, epsilon=epsilon, rho=rho, delta=delta)
    # Compact: all K scores are within η of the truth except with probability min(δ, ρ/4).
    eta = rho * epsilon / (16.0 * math.pi * math.sqrt(k))
    compactly = math.ceil(math.log(2.0 * k / min(delta, rho / 4.0)) / (2.0 * eta * eta))

    def run(key: SharedKey, source: ExampleSource, m: int) -> Vector:
        if source.n_points != labels.shape[1]:
            raise InputError(f"the source must have {labels.shape[1]} points, as the hypotheses, got {source.n_points}")
        counts = source.count(m)
        right = np.where(labels > 0.0, counts[:, 1], counts[:, 0]).sum(axis=1) / m
        if mechanism == "exponential":
            pull = right.tolist().__getitem__
            asked = {"epsilon": epsilon, "rho": rho, "delta": delta}
            chosen = best_arm(key.derive("class"), lambda a, _: pull(a), k, **asked, plan=arms)
        else:
            law = compact(right[None], epsilon=epsilon / 2.0).probabilities
            chosen = int(correlated_sample(key.derive("class"), law)[0])
        answer: Vector = labels[chosen]
        return answer

    planned = arms.pulls if mechanism == "exponential" else compactly
    return _solver(run, planned, samples, (epsilon, rho, delta), "§3")


def _means(source: VectorSource, n: int, m: int) -> Vector:
    """Draw m vectors of a source of dimension n and return their mean, in [−1, 1]ⁿ."""
    check_dimension(source, n)
    means: Vector = 2.0 * source.count(m) / m - 1.0
    return means


def _solver(
    run: Callable[[SharedKey, Any, int], Vector],
    planned: int,
    samples: int | None,
    asked: tuple[float, float, float],
    section: str,
) -> Algorithm:
    """Bind the number of samples; what is asked (ε, ρ, δ) is proven in a section of the page for the planned one."""
    m = planned if samples is None else check_int("samples", samples, 1, 2**62)
    source = f"docs/proofs/lower-bounds.md {section}" if m >= planned else "docs/lower-bounds.md"
    epsilon, rho, delta = asked
    status = "proven" if m >= planned else "heuristic"
    guarantee = Guarantee(rho=rho, delta=delta, epsilon=epsilon, status=status, source=source)
    return Algorithm(run=lambda key, data: run(key, data, m), guarantee=guarantee, samples=m)

"""Algorithm 1 (RepVarBandit): a near-best arm in each of many instances; and in one instance (Theorem 3.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.correlated import DEFAULT_MAX_NODES, correlated_sample, draw
from reprl.coupling.mechanisms import MECHANISMS, Selection, compact, exponential
from reprl.coupling.rounding import round_vector, rounding_bound
from reprl.coupling.spec import COUPLINGS, count_draws
from reprl.errors import (
    ROUNDING,
    InputError,
    check_array,
    check_choice,
    check_int,
    check_probability,
    check_real,
    quote,
)
from reprl.guarantee import Guarantee
from reprl.randomness import SharedKey, check_shared_key

_SOURCE = "docs/proofs/decision.md"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """How arms are chosen from data: fixed by the configuration, never by data."""

    mechanism: str = "compact"
    """Scores to laws: "compact" (ours) or "exponential" (the paper's)."""
    coupling: str = "joint"
    """Coupling over states: "joint" or "product"."""
    rounding: bool = True
    """Whether values are made identical, coupled as the arms are."""
    max_nodes: int = DEFAULT_MAX_NODES
    """Work guard of the coupling."""

    def __post_init__(self) -> None:
        """Check every field once."""
        check_choice("mechanism", self.mechanism, MECHANISMS)
        check_choice("coupling", self.coupling, COUPLINGS)
        check_int("max_nodes", self.max_nodes, 1)


def check_decision(decision: object) -> Decision:
    """Return decision if it is a Decision; the name of a coupling alone is refused."""
    if not isinstance(decision, Decision):
        raise InputError(f"decision must be a Decision, got {quote(decision)}")
    return decision


class BestArms(NamedTuple):
    """The chosen arm of every instance, its estimated utility, and what is proven about both."""

    arms: NDArray[np.int64]
    values: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    """(S, A): the laws that the arms were drawn from."""
    noise: float
    """Bound on the sampling error of every mean, holding with the guarantee."""
    guarantee: Guarantee
    """rho: two runs differ in arms or (with rounding) values; epsilon: loss of an arm and error of a value."""


def multi_best_arm(
    key: SharedKey,
    means: ArrayLike,
    sizes: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    decision: Decision | None = None,
    scale: float = 1.0,
    drift: float = 0.0,
    among: ArrayLike | None = None,
) -> BestArms:
    """Choose a near-best arm in each of S instances, and estimate its utility.

    Args:
        key: shared randomness; the same key in both runs.
        means: (S, A) empirical utilities.
        sizes: number of samples behind each mean, (S,) or (S, A). The guarantee holds for two runs that both have at
            least these sizes.
        epsilon: accuracy, in the units of the utilities.
        delta: failure probability.
        decision: mechanism, coupling and rounding.
        scale: length of the interval that holds every utility; means that differ by more are refused.
        drift: bound on how much the true utilities themselves may differ between two runs.
        among: (N,) booleans, S of them true: which of N coordinates hold the instances; None for all. Coordinates
            address the shared draws, so an instance keeps its draws whatever other instances there are.

    Returns:
        Arms, values and probabilities; the guarantee is computed from the sizes, not assumed.

    Guarantee:
        As returned. Arms lose at most ε/2 empirically, values are rounded by at most ε/2: docs/proofs/decision.md
        §2, where also the paper's requirement Σ 1/m ≤ ρ²ε²/(9216·log³(3SA/δ)) suffices for ρ.

    Randomness:
        Shared, at key.derive("arms") and key.derive("rounding").
    """
    decision = Decision() if decision is None else check_decision(decision)
    scale = check_real("scale", scale, 0.0, math.inf)
    scores = _scores(means, scale)
    fewest = _fewest(sizes, scores.shape)
    epsilon, delta = check_real("epsilon", epsilon, 0.0, math.inf), check_probability("delta", delta)
    inside = _inside(among, scores.shape[0])
    selection = select(decision.mechanism, scores, epsilon, delta)
    arms, values = _draw(check_shared_key(key), scores, selection.probabilities, inside, decision, epsilon)
    noise = scale * np.sqrt(math.log(6.0 * scores.size / delta) / (2.0 * fewest))
    apart = 2.0 * noise + check_real("drift", drift, 0.0, math.inf, open_low=False)
    reach = epsilon / 2.0 if decision.rounding else 0.0
    guarantee = Guarantee(
        rho=min(1.0, _disagreement(decision, selection, apart, epsilon) + 2.0 * delta / 3.0),
        delta=delta / 3.0 + selection.failure,
        epsilon=float(max(selection.loss + 2.0 * noise.max(), reach + noise.max())),
        status="proven",
        source=f"{_SOURCE} §2",
    )
    return BestArms(arms, values, selection.probabilities, float(noise.max()), guarantee)


def paper_requirement(
    n_instances: int, n_arms: int, *, epsilon: float, rho: float, delta: float, coupling: str
) -> float:
    """Return Proposition 3.6's bound on Σ_s 1/m_s with C = 36·256, as many times stricter as there are draws.

    A product makes S of them (Proposition A.3), a joint draw is one.
    """
    log = math.log(3.0 * n_instances * n_arms / delta)
    return (rho * epsilon) ** 2 / (9216.0 * log**3 * count_draws(coupling, n_instances))


def select(mechanism: str, scores: NDArray[np.float64], epsilon: float, delta: float) -> Selection:
    """Turn scores into laws by a mechanism that spends half of the accuracy ε."""
    if mechanism == "compact":
        return compact(scores, epsilon=epsilon / 2.0)
    return exponential(scores, epsilon=epsilon, delta=delta)


def _inside(among: ArrayLike | None, n: int) -> NDArray[np.bool_]:
    """Which coordinates hold the instances."""
    if among is None:
        return np.ones(n, dtype=np.bool_)
    mask = np.asarray(among)
    if mask.ndim != 1 or mask.dtype.kind != "b" or mask.sum() != n:
        raise InputError(f"among must be booleans, {n} of them true, got {quote(among)}")
    return mask


def _draw(
    key: SharedKey,
    scores: NDArray[np.float64],
    laws: NDArray[np.float64],
    inside: NDArray[np.bool_],
    decision: Decision,
    epsilon: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Draw an arm for every instance and round its score, each at its own coordinate."""
    guard = decision.max_nodes
    spread = np.zeros((inside.size, scores.shape[1]))
    spread[:, 0] = 1.0
    spread[inside] = laws
    arms = draw(key.derive("arms"), spread, decision.coupling, max_nodes=guard).choice[inside]
    values = np.zeros(inside.size)
    values[inside] = scores[np.arange(scores.shape[0]), arms]
    if decision.rounding:
        values = round_vector(
            key.derive("rounding"), values, width=epsilon / 2.0, method=decision.coupling, max_nodes=guard
        )
    return arms, values[inside]


def _disagreement(decision: Decision, selection: Selection, apart: NDArray[np.float64], epsilon: float) -> float:
    """Bound the chance that runs whose scores differ by at most `apart` choose differently."""
    parts = [np.where(np.arange(apart.size) == s, apart, 0.0) for s in range(apart.size)]
    total = 0.0
    for part in parts if decision.coupling == "product" else [apart]:
        tv = selection.total_variation(part)
        total += 2.0 * tv / (1.0 + tv)
    if decision.rounding:
        total += rounding_bound(apart, width=epsilon / 2.0, method=decision.coupling)
    return total


def _scores(means: ArrayLike, scale: float) -> NDArray[np.float64]:
    """Return the means, which must fit into some interval of this length, or nothing would be proven of them."""
    scores = check_array("means", means, 2)
    low, high = scores.min(initial=math.inf), scores.max(initial=-math.inf)
    if high - low > scale * (1.0 + ROUNDING):
        raise InputError(
            f"means must lie within scale={scale:g} of each other, as utilities do, got {low:g} to {high:g}"
        )
    return scores


def _fewest(sizes: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the fewest samples of an arm, for every instance."""
    n = check_array("sizes", sizes, (1, 2))
    if n.shape not in (shape, shape[:1]):
        raise InputError(f"sizes must have shape {shape[:1]} or {shape}, got {n.shape}")
    fewest = n if n.ndim == 1 else n.min(axis=1)
    if not (fewest >= 1).all():
        s = int(np.argmin(fewest))
        raise InputError(f"sizes[{s}] must be at least 1 sample for every arm, got {fewest[s]:g}")
    return fewest


class ArmPlan(NamedTuple):
    """Pulls per arm of best_arm, its temperature, and what they buy."""

    pulls: int
    temperature: float
    guarantee: Guarantee


def plan_best_arm(n_arms: int, *, epsilon: float, rho: float, delta: float) -> ArmPlan:
    """Return the sample size of best_arm.

    Guarantee:
        With δ' = min(δ/1.1, ρ/2), t = log(2A/δ')/ε and η = ρε/(10·log(2A/δ')): pulls = ⌈log(4A/δ')/(2η²)⌉ per arm.
        Proof: docs/proofs/decision.md §1.
    """
    n_arms = check_int("n_arms", n_arms, 1)
    epsilon = check_real("epsilon", epsilon, 0.0, 1.0, open_high=False)
    rho = check_real("rho", rho, 0.0, 0.5, open_high=False)
    delta = check_probability("delta", delta)
    inner = min(delta / 1.1, rho / 2.0)
    log = math.log(2.0 * n_arms / inner)
    eta = rho * epsilon / (10.0 * log)
    pulls = math.ceil(math.log(4.0 * n_arms / inner) / (2.0 * eta * eta))
    guarantee = Guarantee(rho=rho, delta=delta, epsilon=epsilon, status="proven", source=f"{_SOURCE} §1")
    return ArmPlan(pulls, log / epsilon, guarantee)


def best_arm(
    key: SharedKey,
    pull: Callable[[int, int], float],
    n_arms: int,
    *,
    epsilon: float,
    rho: float,
    delta: float,
    plan: ArmPlan | None = None,
) -> int:
    """Find an ε-optimal arm of one bandit, the same in two runs.

    Args:
        key: shared randomness; the same key in both runs.
        pull: pull(arm, n) makes n fresh pulls and returns their mean utility, utilities lying in [0, 1].
        n_arms: A.
        epsilon: accuracy in (0, 1].
        rho: allowed disagreement in (0, 1/2].
        delta: allowed failure.
        plan: sample size and temperature; None for plan_best_arm. With others the promise is the caller's.

    Guarantee:
        plan_best_arm: ρ-replicable, ε-optimal with probability at least 1 − δ (Theorem 3.3).

    Randomness:
        Shared, at key. Data: whatever pull does.
    """
    check_shared_key(key)
    proven = plan_best_arm(n_arms, epsilon=epsilon, rho=rho, delta=delta)
    if plan is not None and not isinstance(plan, ArmPlan):
        raise InputError(f"plan must be an ArmPlan or None, got {quote(plan)}")
    plan = plan or proven
    if not callable(pull):
        raise InputError(f"pull must be callable as pull(arm, n), got {quote(pull)}")
    means = []
    for a in range(n_arms):
        mean = check_real(f"pull({a}, n)", pull(a, plan.pulls), 0.0, 1.0, open_low=False, open_high=False)
        means.append(mean)
    law = exponential([means], epsilon=epsilon, delta=delta, temperature=plan.temperature).probabilities
    return int(correlated_sample(key, law, "joint")[0])

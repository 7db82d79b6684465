"""Algorithm 1 (RepVarBandit): a near-best arm in each of many instances; and in one instance (Theorem 3.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.coupling.correlated import DEFAULT_MAX_NODES, correlated_sample, draw
from reprl.coupling.custom import CUSTOM, Coupling, Mechanism, check_custom, custom_name, proof_of
from reprl.coupling.mechanisms import MECHANISMS, Selection, compact, custom_selection, exponential
from reprl.coupling.rounding import round_vector, rounding_bound
from reprl.coupling.spec import DEFAULT_BLOCK, METHODS, CouplingSpec
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

Rounding = Literal["none", "vector", "grid"]
ROUNDINGS = get_args(Rounding)
_SOURCE = "docs/proofs/decision.md"
_UNBOUNDED = "a mechanism or a coupling that carries no bound"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """How arms are chosen from data: fixed by the configuration, never by data."""

    mechanism: str | Mechanism = "compact"
    """Scores to laws: "compact" (ours), "exponential" (the paper's), or a custom ``Mechanism``."""
    coupling: str | Coupling = "joint"
    """Coupling over states: "joint", "blocked" or "product", or a custom ``Coupling``."""
    block: int = DEFAULT_BLOCK
    """States per block for "blocked"."""
    rounding: str = "vector"
    """Whether and how values are made identical: "none", "vector" (joint or blocked, as the coupling) or "grid"."""
    max_nodes: int = DEFAULT_MAX_NODES
    """Work guard of the coupling."""

    def __post_init__(self) -> None:
        """Check every field once."""
        check_custom("mechanism", self.mechanism, MECHANISMS)
        check_custom("coupling", self.coupling, METHODS)
        check_int("block", self.block, 1)
        check_choice("rounding", self.rounding, ROUNDINGS)
        check_int("max_nodes", self.max_nodes, 1)
        if self.rounding == "vector" and self.spec.custom:
            raise InputError("rounding must be 'none' or 'grid' with a custom coupling, got 'vector'")

    @property
    def spec(self) -> CouplingSpec:
        """Coupling and block as one value."""
        return CouplingSpec(self.coupling, self.block)

    @property
    def unproven(self) -> str | None:
        """Why nothing is proven with a custom mechanism or coupling; None where its proof is written down."""
        for name, choice in (("mechanism", self.mechanism), ("coupling", self.coupling)):
            known = custom_name(choice)
            if known.startswith(CUSTOM) and proof_of(choice) is None:
                return f"the {name} {known.removeprefix(CUSTOM)} does not say where its bound is proven"
        return None

    @property
    def source(self) -> str:
        """Where what is proven is written down."""
        proofs = [proof_of(choice) for choice in (self.mechanism, self.coupling)]
        return "; ".join([f"{_SOURCE} §2", *(proof for proof in proofs if proof)])


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
    width, method = _grid(decision, epsilon)
    reach = width / 2.0 if method == "grid" else width
    parted = _disagreement(decision, selection, apart, epsilon, np.flatnonzero(inside))
    loss = scale if math.isinf(selection.loss) else selection.loss
    unproven = decision.unproven or (_UNBOUNDED if parted is None or math.isinf(selection.loss) else None)
    guarantee = Guarantee(
        rho=min(1.0, (1.0 if parted is None else parted) + 2.0 * delta / 3.0),
        delta=delta / 3.0 + selection.failure,
        epsilon=float(max(loss + 2.0 * noise.max(), reach + noise.max())),
        status="proven" if unproven is None else "none",
        source=unproven or decision.source,
    )
    return BestArms(arms, values, selection.probabilities, float(noise.max()), guarantee)


def paper_requirement(
    n_instances: int, n_arms: int, *, epsilon: float, rho: float, delta: float, coupling: CouplingSpec
) -> float:
    """Return Proposition 3.6's bound on Σ_s 1/m_s with C = 36·256, as many times stricter as there are blocks.

    A product has S blocks (Proposition A.3), a joint draw has one.
    """
    log = math.log(3.0 * n_instances * n_arms / delta)
    return (rho * epsilon) ** 2 / (9216.0 * log**3 * coupling.count(n_instances))


def select(mechanism: str | Mechanism, scores: NDArray[np.float64], epsilon: float, delta: float) -> Selection:
    """Turn scores into laws by a mechanism that spends half of the accuracy ε."""
    if mechanism == "compact":
        return compact(scores, epsilon=epsilon / 2.0)
    if mechanism == "exponential":
        return exponential(scores, epsilon=epsilon, delta=delta)
    return custom_selection(mechanism, scores, epsilon=epsilon / 2.0, delta=delta)


def _grid(decision: Decision, epsilon: float) -> tuple[float, str]:
    """Width and method of the rounding; no method when values stay as they are."""
    known = {"none": (0.0, ""), "grid": (epsilon, "grid")}
    return known.get(decision.rounding, (epsilon / 2.0, decision.spec.name))


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
    arms = draw(key.derive("arms"), spread, decision.spec, max_nodes=guard).choice[inside]
    values = np.zeros(inside.size)
    values[inside] = scores[np.arange(scores.shape[0]), arms]
    width, method = _grid(decision, epsilon)
    if method:
        values = round_vector(
            key.derive("rounding"), values, width=width, method=method, block=decision.block, max_nodes=guard
        )
    return arms, values[inside]


def _disagreement(
    decision: Decision,
    selection: Selection,
    apart: NDArray[np.float64],
    epsilon: float,
    places: NDArray[np.int64],
) -> float | None:
    """Bound the chance that runs whose scores differ by at most `apart` choose differently; None without a bound."""
    if selection.total_variation is None:
        return None
    n_places = int(places[-1]) + 1
    home = places // decision.spec.size(n_places)
    total = 0.0
    for block in np.unique(home):
        tv = selection.total_variation(np.where(home == block, apart, 0.0))
        differ = decision.spec.bound(tv)
        if differ is None:
            return None
        total += differ
    width, method = _grid(decision, epsilon)
    if method:
        spread = np.zeros(n_places)
        spread[places] = apart
        total += rounding_bound(spread, width=width, method=method, block=decision.block)
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

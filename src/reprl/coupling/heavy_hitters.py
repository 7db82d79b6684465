"""heavy_hitters: the frequent outcomes of a distribution, the same ones in two runs. Lemma 4.2 of the paper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import NamedTuple, TypeVar

from reprl.errors import InputError, check_probability, check_real, quote
from reprl.guarantee import Guarantee
from reprl.randomness import SharedKey, check_shared_key

Outcome = TypeVar("Outcome", bound=Hashable)
MAX_DRAWS = 2**62


class HeavyHittersPlan(NamedTuple):
    """How many draws heavy_hitters makes, and what they buy."""

    candidates: int
    """Draws of the first batch, which names the candidates."""
    frequencies: int
    """Draws of the second, fresh batch, which measures them."""
    guarantee: Guarantee


def plan_heavy_hitters(*, threshold: float, tolerance: float, rho: float, delta: float) -> HeavyHittersPlan:
    """Return the sample sizes of heavy_hitters.

    Guarantee:
        With ν = threshold, τ = tolerance, N = 1/(ν−τ) and δ' = min(δ, ρ/4): candidates = ⌈N·log(2N/δ')⌉ =: m₁ and
        frequencies = ⌈max(8N/(ρτ)², (2/τ²)·log(2(N+m₁)/δ'))⌉. Proof: docs/proofs/coupling.md §7.
    """
    nu = check_real("threshold", threshold, 0.0, 1.0)
    tau = check_real("tolerance", tolerance, 0.0, nu)
    rho = check_probability("rho", rho)
    delta = check_probability("delta", delta)
    heavy = 1.0 / (nu - tau)
    needed = 8.0 * heavy / rho / rho / tau / tau
    if not needed < MAX_DRAWS:
        raise InputError(f"rho={rho:g} and tolerance={tau:g} ask for {needed:g} draws, at most {MAX_DRAWS} can be made")
    failure = min(delta, rho / 4.0)
    candidates = math.ceil(heavy * math.log(2.0 * heavy / failure))
    concentration = 2.0 / tau**2 * math.log(2.0 * (heavy + candidates) / failure)
    frequencies = math.ceil(max(8.0 * heavy / (rho * tau) ** 2, concentration))
    guarantee = Guarantee.of(rho=rho, delta=delta, epsilon=tau, status="proven", source="docs/proofs/coupling.md §7")
    return HeavyHittersPlan(candidates, frequencies, guarantee)


def heavy_hitters(
    key: SharedKey,
    draw: Callable[[int], Iterable[Outcome]],
    *,
    threshold: float,
    tolerance: float,
    rho: float,
    delta: float,
    plan: HeavyHittersPlan | None = None,
) -> list[Outcome]:
    """Return the outcomes whose probability exceeds about `threshold`, ordered by their repr.

    Args:
        key: shared randomness; the same key in both runs.
        draw: draw(n) returns n fresh, independent outcomes (hashable) of the distribution, or a Counter of them.
        threshold: ν in (0, 1).
        tolerance: τ in (0, ν).
        rho: allowed probability that two runs return different sets.
        delta: allowed probability of a wrong set.
        plan: sample sizes; None for plan_heavy_hitters. With other sizes the promise is the caller's.

    Guarantee:
        With probability at least 1 − δ every outcome of probability at least ν+τ is returned and none of probability at
        most ν−τ; two runs return the same set with probability at least 1 − ρ. Sizes: plan_heavy_hitters.

    Randomness:
        Shared: one uniform at key.derive("threshold"), which places the cut in (ν−τ/2, ν+τ/2). Data: whatever
        draw does.
    """
    check_shared_key(key)
    if not callable(draw):
        raise InputError(f"draw must be callable as draw(n), got {quote(draw)}")
    if plan is not None and not isinstance(plan, HeavyHittersPlan):
        raise InputError(f"plan must be a HeavyHittersPlan or None, got {quote(plan)}")
    proven = plan_heavy_hitters(threshold=threshold, tolerance=tolerance, rho=rho, delta=delta)
    plan = plan or proven
    names = _count(draw, plan.candidates)
    seen = _count(draw, plan.frequencies)
    cut = threshold + tolerance * (float(key.derive("threshold").uniforms(1)[0]) - 0.5)
    return sorted((x for x, count in seen.items() if count >= cut * plan.frequencies and x in names), key=repr)


def _count(draw: Callable[[int], Iterable[Outcome]], n: int) -> Counter[Outcome]:
    outcomes = draw(n)
    if isinstance(outcomes, Counter):
        if outcomes.total() != n:
            raise InputError(f"draw({n}) must return {n} outcomes, got {outcomes.total()}")
        return outcomes
    if not isinstance(outcomes, Iterable):
        raise InputError(f"draw({n}) must return {n} outcomes, got {quote(outcomes)}")
    items = list(islice(outcomes, n + 1))
    if len(items) != n:
        many = "more" if len(items) > n else str(len(items))
        raise InputError(f"draw({n}) must return {n} outcomes, got {many}")
    try:
        return Counter(items)
    except TypeError:
        bad = next((x for x in items if not isinstance(x, Hashable)), items[0])
        raise InputError(f"draw({n}) must return hashable outcomes, got {quote(bad)}") from None

"""statistical_query: the mean of one bounded query, the same number in two runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reprl.coupling.rounding import round_vector
from reprl.errors import InputError, check_array, check_probability, quote
from reprl.guarantee import Guarantee
from reprl.randomness import SharedKey, check_shared_key

MAX_DRAWS = 2**62


class QueryPlan(NamedTuple):
    """How many draws statistical_query makes, how coarse its grid is, and what that buys."""

    draws: int
    width: float
    guarantee: Guarantee


def plan_statistical_query(*, tolerance: float, rho: float, delta: float) -> QueryPlan:
    """Return the sample size and grid width of statistical_query.

    Guarantee:
        With c = 2ρ·sqrt(log(2/δ)): draws = ⌈(1+c)²/(8ρ²τ²)⌉ and width = 2τ/(1+c). Proof: docs/proofs/coupling.md §8.
    """
    tau = check_probability("tolerance", tolerance)
    rho = check_probability("rho", rho)
    delta = check_probability("delta", delta)
    c = 2.0 * rho * math.sqrt(math.log(2.0 / delta))
    needed = (1.0 + c) / rho / tau * (1.0 + c) / rho / tau / 8.0
    if not needed < MAX_DRAWS:
        raise InputError(f"rho={rho:g} and tolerance={tau:g} ask for {needed:g} draws, at most {MAX_DRAWS} can be made")
    guarantee = Guarantee.of(rho=rho, delta=delta, epsilon=tau, status="proven", source="docs/proofs/coupling.md §8")
    return QueryPlan(math.ceil(needed), 2.0 * tau / (1.0 + c), guarantee)


def statistical_query(
    key: SharedKey, draw: Callable[[int], ArrayLike], *, tolerance: float, rho: float, delta: float
) -> float:
    """Estimate the mean of a query with values in [0, 1].

    Args:
        key: shared randomness; the same key in both runs.
        draw: draw(n) returns n fresh, independent values in [0, 1].
        tolerance: τ in (0, 1).
        rho: allowed probability that two runs return different numbers.
        delta: allowed probability of an error above τ.

    Guarantee:
        Within τ of the true mean with probability at least 1 − δ; two runs return the same number with probability at
        least 1 − ρ. Size: plan_statistical_query.

    Randomness:
        Shared: one uniform at key, the shift of the grid. Data: whatever draw does.
    """
    check_shared_key(key)
    if not callable(draw):
        raise InputError(f"draw must be callable as draw(n), got {quote(draw)}")
    plan = plan_statistical_query(tolerance=tolerance, rho=rho, delta=delta)
    values = check_array("draw(n)", draw(plan.draws), 1)
    if values.shape != (plan.draws,):
        raise InputError(f"draw({plan.draws}) must return {plan.draws} values, got {values.size}")
    if values.min() < 0.0 or values.max() > 1.0:
        worst = int(np.argmax((values < 0.0) | (values > 1.0)))
        raise InputError(f"draw(n)[{worst}] must lie in [0, 1], got {values[worst]:g}")
    return float(round_vector(key, [values.mean()], width=plan.width, method="grid")[0])

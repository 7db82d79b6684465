"""A proven ρ for one tolerance of the canonical rule, in a first case: one step, parallel samples, a fixed size.

The default rule chooses among tolerances and stops by rehearsal; nothing is proven of ρ there. A recipe may name the
tolerance beforehand. Then only comparisons of gaps with one random number are left, and the argument of list-replicable
learning counts them: docs/proofs/fixed-sizes.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from reprl.errors import InputError, check_int, check_probability, check_real
from reprl.guarantee import Guarantee

_SOURCE = "docs/proofs/fixed-sizes.md"


class FixedSize(NamedTuple):
    """Calls with which one tolerance is proven, and what they buy."""

    calls: int
    """m: parallel calls, each with a start of its own."""
    error: float
    """η: what every weighed gap is known to, except with probability `missed`."""
    missed: float
    """Of one run."""
    guarantee: Guarantee


def fixed_size(
    n_starts: int, n_actions: int, *, low: float, high: float, rho: float, delta: float, known_start: bool = False
) -> FixedSize:
    """Return the calls at which the policy of one tolerance replicates, on every MDP of one step.

    Args:
        n_starts: states in which an episode may begin.
        n_actions: A.
        low: smallest value of the tolerance, over shared keys;
        high: and largest: between them its logarithm is uniform.
        rho: wanted disagreement.
        delta: wanted failure of the stated loss.
        known_start: whether episodes begin in one state that is known, so that no visit has to be estimated.

    Guarantee:
        As returned: ρ = 2·missed + 2Nη/(low·log(high/low)) with N = n_starts·(A − 1), for runs of the canonical rule
        that follow one candidate whose number was fixed before the shared seed was drawn. Proof:
        docs/proofs/fixed-sizes.md.
    """
    starts, actions = check_int("n_starts", n_starts, 1), check_int("n_actions", n_actions, 2)
    if known_start and starts != 1:
        raise InputError(f"n_starts must be 1 where the start is known, got {starts}")
    high = check_real("high", high, 0.0, math.inf)
    low = check_real("low", low, 0.0, high)
    rho, delta = check_probability("rho", rho), check_probability("delta", delta)
    missed = min(delta, rho / 4.0)
    near = starts * (actions - 1)
    error = min(0.5 * low, (rho - 2.0 * missed) * low * math.log(high / low) / (2.0 * near))
    # x̂ − x: twice the error of a mean, and, where starts are drawn, twice that of a frequency.
    events = 2 * starts * actions + (0 if known_start else 2 * starts)
    each = error / (2.0 if known_start else 4.0)
    calls = math.ceil(math.log(events / missed) / (2.0 * each * each))
    worst = (1.0 if known_start else 0.5 * (starts + 1.0)) * (high + error)
    promised = Guarantee(rho=rho, delta=missed, epsilon=worst, status="proven", source=_SOURCE)
    return FixedSize(calls, error, missed, promised)

"""A proven ρ for the canonical rule, in a first case: one step, parallel samples, a fixed size.

The default rule stops by rehearsal; nothing is proven of ρ there. A recipe may name the tolerance beforehand. Then only
comparisons of gaps with one random number are left, and the argument of list-replicable learning counts them
(`fixed_size`). With the choice among all tolerances ρ is proven where one action is ahead of the others
(`fixed_choice`), and cannot be where two tie for best: docs/proofs/fixed-sizes.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from reprl.canonical.choice import LEAST_MARGIN, NOISE, OCTAVES, POOL, ROOM, STEPS
from reprl.canonical.gaps import HIDDEN
from reprl.errors import InputError, check_int, check_probability, check_real
from reprl.guarantee import Guarantee

_SOURCE = "docs/proofs/fixed-sizes.md"


class FixedSize(NamedTuple):
    """Calls with which one tolerance is proven, and what they buy."""

    calls: int
    """m: parallel calls, each with a start of its own."""
    error: float
    """What every weighed gap, or every moment, is known to, except with probability `missed`."""
    missed: float
    """Of one run."""
    guarantee: Guarantee


def fixed_size(
    n_starts: int, n_actions: int, *, low: float, high: float, rho: float, delta: float, known_start: bool = False
) -> FixedSize:
    """Return the calls at which the policy of one tolerance replicates, on every MDP of one step.

    Episodes begin in one of n_starts states; the logarithm of the tolerance is uniform, over shared keys, between those
    of low and high. Where the one start is known, no visit has to be estimated.

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


def fixed_choice(n_actions: int, *, epsilon: float, ahead: float, rho: float, delta: float) -> FixedSize:
    """Return the calls at which the rule, with its choice among all tolerances, replicates on MDPs of one step.

    ahead is a premise on the world: by how much the mean of the best action exceeds every other's, at least.

    Guarantee:
        As returned, for ``choose`` under fresh shared keys on worlds of one step, at most CELLS states and one known
        start, in which the best action is ahead; the tolerances, weights and noise are those of the rule. `error` is
        that of every mean and every second moment. Proof: docs/proofs/fixed-sizes.md.
    """
    actions = check_int("n_actions", n_actions, 2)
    epsilon = check_real("epsilon", epsilon, 0.0, 1.0, open_high=False)
    ahead = check_real("ahead", ahead, 0.0, 1.0, open_high=False)
    rho, delta = check_probability("rho", rho), check_probability("delta", delta)
    candidates, room = OCTAVES * STEPS, ROOM[0] * epsilon
    if room / 2.0 < 2.0 ** (1.0 / STEPS - OCTAVES):
        raise InputError(f"epsilon must be larger for the rule's tolerances, got {epsilon:g}")
    missed = min(delta, rho / 8.0)
    least, most = math.sqrt(2.0 * HIDDEN), math.sqrt(2.0 * (HIDDEN + 0.25))  # of a spread
    octave = math.log(2.0) / STEPS
    near = rho / 4.0 * room / 2.0 * math.exp(-octave) * octave / (2.0 * (actions - 1))
    weight = near / most / 2.0  # of the candidate below half of the room, but with probability ρ/4
    policies = min(actions, candidates)
    lead = rho / 2.0 * NOISE / (policies * (policies - 1)) / 2.0  # what every log weight may move by
    # By an error e: weights by e·shift and LEAST_MARGIN, pooled; spreads by a share e·share, all spreads alike.
    shift, share = 2.0 / least * (1.0 + 1.0 / room), 0.6 * 6.0 / least**2
    pooled = candidates ** (1.0 / POOL)
    error = min(
        (0.05 * weight / pooled - LEAST_MARGIN) / shift,
        0.05 / share,
        (lead - pooled * LEAST_MARGIN / (0.45 * weight)) / (pooled * shift / (0.45 * weight) + share / 0.95),
        0.249 * ahead,
        (1.0 - ROOM[1]) * epsilon / 2.0,
    )
    if error <= 0.0:
        raise InputError(f"rho and epsilon must be larger: the rule cannot use margins below {LEAST_MARGIN:g}")
    calls = math.ceil(math.log(4.0 * actions / missed) / (2.0 * error * error))
    promised = Guarantee(rho=rho, delta=missed, epsilon=epsilon, status="proven", source=_SOURCE)
    return FixedSize(calls, error, missed, promised)

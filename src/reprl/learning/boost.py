"""boost: turn any learner into a more replicable one (Lemma 4.1)."""

from __future__ import annotations

import math

from reprl.errors import InputError, check_int, check_real
from reprl.guarantee import Guarantee
from reprl.learning.adapters import policy_of
from reprl.learning.protocol import Learner
from reprl.paper.boosting import Boosted


def boost(
    learner: Learner,
    *,
    rho: float,
    delta: float,
    epsilon: float,
    base: Guarantee | None = None,
    runs: int | None = None,
    pulls: int | None = None,
) -> Boosted:
    """Return a learner that disagrees with itself with probability at most ρ, made from a 0.1-replicable one.

    Args:
        learner: learner(model, shared_key), 0.1-replicable and ε/2-optimal with probability 0.9.
        rho: wanted disagreement, in (0, 1/2).
        delta: wanted failure probability, in (0, rho).
        epsilon: wanted accuracy, in units of value.
        base: what is known of the learner; without it, or if it promises less, the boosted status is heuristic.
        runs: learner runs that measure frequencies per seed; None for the proven number, which is very large.
        pulls: episodes that compare the candidates, each; None for the proven number.

    Guarantee:
        With the proven numbers and such a learner: ρ-replicable, ε-optimal with probability 1 − δ
        (docs/proofs/decision.md §4). With fewer runs or pulls the status is heuristic.
    """
    rho = check_real("rho", rho, 0.0, 0.5)
    delta = check_real("delta", delta, 0.0, rho)
    epsilon = check_real("epsilon", epsilon, 0.0, math.inf)
    if not callable(learner):
        raise InputError(f"learner must be callable as learner(model, shared_key), got {learner!r}")
    if runs is not None:
        runs = check_int("runs", runs, 2)
    if pulls is not None:
        pulls = check_int("pulls", pulls, 1)
    return Boosted(
        learner=learner, rho=rho, delta=delta, epsilon=epsilon, base=base, runs=runs, pulls=pulls, read=policy_of
    )

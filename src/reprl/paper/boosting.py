"""boost: turn any learner into a more replicable one. Lemma 4.1 of the paper, and its proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from reprl.coupling.heavy_hitters import HeavyHittersPlan, heavy_hitters, plan_heavy_hitters
from reprl.errors import InputError, check_int, check_real
from reprl.guarantee import Guarantee
from reprl.learning.adapters import policy_of
from reprl.learning.protocol import Ballot, Learner
from reprl.mdp.policy import Policy
from reprl.paper.constants import THRESHOLD, TOLERANCE, boosting_seeds
from reprl.paper.rep_var_bandit import ArmPlan, best_arm, plan_best_arm
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.protocol import Model


class Elected(NamedTuple):
    """What boosting came to, and how."""

    policy: Policy
    ballots: tuple[Ballot, ...]
    """One for each seed."""


class PolicyTester(Model, Protocol):
    """A model that also shows what a policy returns, as all of reprl's own do."""

    def mean_return(self, policy: Policy, n: int) -> float:
        """Return the mean return of a policy over n fresh episodes."""


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
    """Make a learner that agrees with itself more often.

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
    return Boosted(learner=learner, rho=rho, delta=delta, epsilon=epsilon, base=base, runs=runs, pulls=pulls)


@dataclass(frozen=True, kw_only=True)
class Boosted:
    """A boosted learner, itself callable as learner(model, shared_key)."""

    learner: Learner
    rho: float
    delta: float
    epsilon: float
    base: Guarantee | None
    runs: int | None
    """Learner runs per seed that measure frequencies; None for the proven number."""
    pulls: int | None
    candidates: int | None = None
    """Learner runs per seed that name heavy hitters; None for the proven number, and no more than `runs`."""

    @property
    def seeds(self) -> int:
        """Number of derived seeds, ⌈log(3/δ)/log 3⌉: one is good with probability at least 1 − δ/3."""
        return boosting_seeds(self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised: proven if the learner provably meets Lemma 4.1 and no size was cut."""
        base = self.base
        known = (
            base is not None
            and base.status == "proven"
            and max(base.rho, base.delta) <= 0.1
            and base.epsilon <= self.epsilon / 2.0
        )
        cut = self.runs is not None or self.pulls is not None
        reason = " with fewer runs or pulls" if cut else "" if known else ", for a learner that meets its hypotheses"
        return Guarantee(
            rho=self.rho,
            delta=self.delta,
            epsilon=self.epsilon,
            status="proven" if known and not cut else "heuristic",
            source=f"docs/proofs/decision.md §4{reason}",
        )

    def __call__(self, model: PolicyTester, shared_key: SharedKey, **options: Any) -> Policy:
        """Learn a policy, as `elect` does."""
        return self.elect(model, shared_key, **options).policy

    def elect(self, model: PolicyTester, shared_key: SharedKey, **options: Any) -> Elected:
        """Learn a policy and show every learner's; a ReprlError says so when no seed has a heavy hitter.

        Randomness:
            Shared, at shared_key.derive("seed", i), ("heavy", i) and ("best"). Data: fresh samples of the model
            throughout.
        """
        key = check_shared_key(shared_key)
        ballots = tuple(self._vote(model, key, i, options) for i in range(self.seeds))
        found = list(dict.fromkeys(policy for ballot in ballots for policy in ballot.heavy))
        if not found:
            raise InputError(
                f"no policy was learned in more than {THRESHOLD:.0%} of the runs under any of {self.seeds} seeds: "
                "the learner must be at least 0.1-replicable before it can be boosted"
            )
        horizon = found[0].horizon
        accuracy = min(1.0, self.epsilon / (2.0 * horizon))
        arm = best_arm(
            key.derive("best"),
            lambda a, n: min(1.0, model.mean_return(found[a], n) / horizon),  # a sum of 2**53 ones may round up
            len(found),
            epsilon=accuracy,
            rho=self.rho / 2.0,
            delta=self.delta / 3.0,
            plan=self._arm_plan(len(found), accuracy),
        )
        return Elected(found[arm], ballots)

    def _vote(self, model: PolicyTester, key: SharedKey, i: int, options: dict[str, Any]) -> Ballot:
        """The policies that seed i leads to, and the one, if any, that it leads to most of the time."""
        seed, seen = key.derive("seed", i), list[Policy]()
        rho, delta = self.rho / (2 * self.seeds), self.delta / (3 * self.seeds)

        def draw(n: int) -> list[Policy]:
            drawn = [policy_of(self.learner(model, seed, **options), model) for _ in range(n)]
            seen.extend(drawn)
            return drawn

        heavy = heavy_hitters(
            key.derive("heavy", i),
            draw,
            threshold=THRESHOLD,
            tolerance=TOLERANCE,
            rho=rho,
            delta=delta,
            plan=self._heavy_plan(rho, delta),
        )
        return Ballot(tuple(seen), tuple(heavy))

    def _heavy_plan(self, rho: float, delta: float) -> HeavyHittersPlan:
        plan = plan_heavy_hitters(threshold=THRESHOLD, tolerance=TOLERANCE, rho=rho, delta=delta)
        if self.runs is None:
            return plan
        return plan._replace(candidates=self.candidates or min(plan.candidates, self.runs), frequencies=self.runs)

    def _arm_plan(self, n_arms: int, accuracy: float) -> ArmPlan:
        plan = plan_best_arm(n_arms, epsilon=accuracy, rho=self.rho / 2.0, delta=self.delta / 3.0)
        return plan if self.pulls is None else plan._replace(pulls=self.pulls)

"""Lemma 4.1 (boosting): turn a learner into a more replicable one, as the proof of the lemma does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from reprl.coupling.heavy_hitters import HeavyHittersPlan, heavy_hitters, plan_heavy_hitters
from reprl.errors import InputError
from reprl.guarantee import Guarantee
from reprl.mdp.policy import Policy, check_policy
from reprl.paper.constants import THRESHOLD, TOLERANCE, boosting_seeds
from reprl.paper.rep_var_bandit import ArmPlan, best_arm, plan_best_arm
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.protocol import Model


class Ballot(NamedTuple):
    """What the learners under one of boosting's seeds output."""

    candidates: Counter[Policy]
    """What those learners output that name heavy hitters,"""
    frequencies: Counter[Policy]
    """and those that measure how often they come."""
    heavy: tuple[Policy, ...]
    """The heavy hitters, at most one."""

    def parts_from(self, other: Ballot) -> float:
        """Return how often a learner of this ballot outputs another policy than one of the other, over all pairs."""
        mine, theirs = (one.candidates + one.frequencies for one in (self, other))
        same = sum(count * theirs[policy] for policy, count in mine.items())
        return 1.0 - same / (mine.total() * theirs.total())


class Elected(NamedTuple):
    """The policy that boosting chose, and how."""

    policy: Policy
    ballots: tuple[Ballot, ...]
    """One for each seed."""


class PolicyTester(Model, Protocol):
    """A model that also shows what a policy returns, as all of reprl's own do."""

    def mean_return(self, policy: Policy, n: int) -> float:
        """Return the mean return of a policy over n fresh episodes."""


@dataclass(frozen=True, kw_only=True)
class Boosted:
    """A boosted learner, itself callable as learner(model, shared_key).

    Guarantee:
        With the proven sizes and a learner that is 0.1-replicable and ε/2-optimal with probability 0.9: ρ-replicable,
        ε-optimal with probability 1 − δ (docs/proofs/decision.md §4). With fewer runs or pulls nothing is promised.
    """

    learner: Callable[..., Any]
    """learner(model, shared_key) → a policy, or whatever `read` makes one of."""
    rho: float
    """Wanted disagreement, in (0, 1/2)."""
    delta: float
    """Wanted failure probability, at most rho."""
    epsilon: float
    """Wanted accuracy, in units of value."""
    base: Guarantee | None = None
    """What is known of the learner; None for nothing."""
    runs: int | None = None
    """Learner runs per seed that measure frequencies; None for the proven number."""
    pulls: int | None = None
    """Episodes of each candidate that compare them; None for the proven number."""
    candidates: int | None = None
    """Learner runs per seed that name heavy hitters; None for the proven number, and no more than `runs`."""
    many: Callable[[SharedKey, int], Counter[Policy]] | None = None
    """Makes so many learners under a key at once and counts their policies; None to call `learner` one by one."""
    read: Callable[[Any, Any], Policy] = check_policy
    """(output, model) → the policy that an output of the learner stands for."""

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
        return Guarantee.of(
            rho=self.rho,
            delta=self.delta,
            epsilon=self.epsilon,
            status="proven" if known and not cut else "none",
            source=f"docs/proofs/decision.md §4{reason}",
        )

    def __call__(self, model: PolicyTester, shared_key: SharedKey, **options: Any) -> Policy:
        """Learn a policy, as `elect` does."""
        return self.elect(model, shared_key, **options).policy

    def elect(self, model: PolicyTester, shared_key: SharedKey, **options: Any) -> Elected:
        """Learn a policy and show every learner's; it is a InputError if no seed has a heavy hitter.

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
        seed, drawn = key.derive("seed", i), list[Counter[Policy]]()
        rho, delta = self.rho / (2 * self.seeds), self.delta / (3 * self.seeds)

        def draw(n: int) -> Counter[Policy]:
            if self.many is not None:
                drawn.append(self.many(seed, n))
            else:
                drawn.append(Counter(self.read(self.learner(model, seed, **options), model) for _ in range(n)))
            return drawn[-1]

        heavy = heavy_hitters(
            key.derive("heavy", i),
            draw,
            threshold=THRESHOLD,
            tolerance=TOLERANCE,
            rho=rho,
            delta=delta,
            plan=self._heavy_plan(rho, delta),
        )
        candidates, frequencies = drawn
        return Ballot(candidates, frequencies, tuple(heavy))

    def _heavy_plan(self, rho: float, delta: float) -> HeavyHittersPlan:
        plan = plan_heavy_hitters(threshold=THRESHOLD, tolerance=TOLERANCE, rho=rho, delta=delta)
        if self.runs is None:
            return plan
        return plan._replace(candidates=self.candidates or min(plan.candidates, self.runs), frequencies=self.runs)

    def _arm_plan(self, n_arms: int, accuracy: float) -> ArmPlan:
        plan = plan_best_arm(n_arms, epsilon=accuracy, rho=self.rho / 2.0, delta=self.delta / 3.0)
        return plan if self.pulls is None else plan._replace(pulls=self.pulls)

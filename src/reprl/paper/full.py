"""The paper's full algorithm: RepLevelExplore, tiered induction, and boosting to ρ (Theorems 6.1 and A.5).

A *learner* explores tier by tier (Algorithm 6), decides on fresh data step by step and tier by tier with pessimism
(Algorithm 2), and outputs a policy. Boosting (Lemma 4.1) runs learners many times under k seeds, keeps the policy that
a seed leads to most of the time, and finds a best arm among these. Parallel sampling has the same shape with one tier
(Theorem 4.13). Every size is a field of `Constants`. docs/paper-map.md lists what we do otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from reprl.execution.settings import Execution
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers
from reprl.paper.boosting import Ballot, Boosted
from reprl.paper.constants import Constants, Task
from reprl.paper.learners import ParallelLearners
from reprl.paper.rep_level_explore import ALONE, Explored, rep_level_explore
from reprl.paper.rep_rl_bandit import Induction, tiered_induction
from reprl.paper.rep_var_bandit import Decision
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.parallel import call
from reprl.sources.protocol import check_model


class Learned(NamedTuple):
    """How one learner came to its policy."""

    induction: Induction
    tiers: Tiers
    data: Data
    explored: Explored | None
    """None for parallel sampling."""


class FullRun(NamedTuple):
    """How the full algorithm came to its policy."""

    learned: Learned
    """The learner, or where learners are boosted the first of them that output the policy."""
    ballots: tuple[Ballot, ...]
    """What the learners under each of boosting's seeds output; empty where nothing is boosted."""


def run_full(
    model: Any,
    shared_key: SharedKey,
    task: Task,
    constants: Constants,
    decision: Decision,
    execution: Execution = ALONE,
) -> FullRun:
    """Run the paper's algorithm from the first line to the last.

    Args:
        model: where samples come from, with the task's access.
        shared_key: ξ.
        task: what is asked for.
        constants: every size, ``Constants.paper(task)`` or smaller ones.
        decision: mechanism, coupling and rounding of the induction.
        execution: workers, and who is told of the episodes done.

    Guarantee:
        At the paper's constants, parallel samples: that of Lemma 4.1 where the figures that the induction computes meet
        its hypotheses. By episodes the paper leaves constants of its exploration open.

    Randomness:
        Shared: a learner's are ("explore", "ignore", tier) and ("decide"), at shared_key for one from parallel samples
        alone (Theorem 4.13 without boosting), else at shared_key.derive("whole"), below ("seed", i) where it is
        boosted, beside boosting's ("heavy", i) and ("best"). Data: streams of the model.
    """
    check_model(model, task.access, f"access={task.access!r}")
    key = check_shared_key(shared_key)
    if not task.boosted:
        key = key if task.parallel else key.derive("whole")
        return FullRun(learn_once(model, key, task, constants, decision, execution), ())
    key = key.derive("whole")
    first: dict[Policy, Learned] = {}

    def learn(model: Any, key: SharedKey) -> Policy:
        learned = learn_once(model, key, task, constants, decision, execution)
        return first.setdefault(learned.induction.policy, learned).induction.policy

    batch = None
    if task.parallel and ParallelLearners.ready(model):
        batch = ParallelLearners(model, constants, decision, execution.workers)
    boosted = Boosted(
        learner=learn,
        many=None if batch is None else batch.many,
        rho=task.rho,
        delta=task.delta,
        epsilon=task.epsilon,
        runs=constants.frequencies,
        pulls=constants.pulls,
        candidates=constants.candidates,
    )
    elected = boosted.elect(model, key)
    if batch is None:
        return FullRun(first[elected.policy], elected.ballots)
    induction, counts = batch.replay(elected.policy)
    data = Data(counts, model.draw_starts(constants.calls))
    return FullRun(Learned(induction, Tiers.single(model.horizon, model.n_states), data, None), elected.ballots)


def learn_once(
    model: Any, key: SharedKey, task: Task, constants: Constants, decision: Decision, execution: Execution = ALONE
) -> Learned:
    """Explore and decide, or make parallel calls and decide: the learner that is boosted."""
    explored = None
    if constants.calls:
        tiers, data = Tiers.single(model.horizon, model.n_states), call(model, constants.calls)
    else:
        how: dict[str, Any] = {"coupling": task.coupling, "keep": constants.keep_records, "execution": execution}
        explored = rep_level_explore(key.derive("explore"), model, constants.stages(), **how)
        tiers, data = ignore_starved(explored.tiers, explored.counts), Data(explored.counts, explored.starts)
    induction = tiered_induction(
        key.derive("decide"),
        data.counts,
        tiers,
        accuracy=constants.accuracy,
        delta=constants.delta,
        decision=decision,
    )
    return Learned(induction, tiers, data, explored)


def ignore_starved(tiers: Tiers, counts: Counts) -> Tiers:
    """Ignore states whose fresh data lack an action: at the paper's sizes there are none but with probability κ."""
    starved = counts.visits.min(axis=2) == 0
    return Tiers.from_levels(np.where(starved, tiers.count, tiers.level), tiers.count)

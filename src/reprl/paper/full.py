"""The paper's algorithm, whole: RepLevelExplore, tiered induction, and boosting to ρ (Theorems 6.1 and A.5).

A *learner* explores tier by tier (Algorithm 6), on fresh data decides step by step and tier by tier with pessimism
(Algorithm 2), and prints a policy. Boosting (Lemma 4.1) runs learners many times under k seeds, keeps what a seed leads
to most of the time, and finds a best arm among that. Parallel sampling has the same shape with one tier (Theorem 4.13).
Every size is a field of `Constants`: "paper" or "scaled". docs/paper-map.md says where a line of the paper is, and what
we do otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from reprl.canonical.gaps import value_spread
from reprl.guarantee import Guarantee
from reprl.learning.protocol import Ballot, Run
from reprl.learning.rounds import Progress, call, check_limit
from reprl.learning.settings import Settings
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers
from reprl.paper.boosting import Boosted
from reprl.paper.constants import Constants
from reprl.paper.rep_explore import Explored, collect_data, find_partition
from reprl.paper.rep_rl_bandit import Induction, tiered_induction
from reprl.randomness import SharedKey, check_shared_key
from reprl.sources.protocol import check_model


def run_whole(
    model: Any,
    shared_key: SharedKey,
    settings: Settings,
    *,
    constants: Constants | None = None,
    max_samples: int | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Run:
    """Run the paper's algorithm from the first line to the last.

    Args:
        model: where samples come from, of the settings' access.
        shared_key: ξ.
        settings: what is asked for, and how to decide.
        constants: every size; None for those of the settings' preset.
        max_samples: sizes that would pass it are refused.
        workers: threads, or processes for a black box.
        progress: called with the phase, its episodes done and all its episodes.

    Guarantee:
        "scaled": none, and the reason says by how much sizes were shrunk. "paper", parallel samples: proven where the
        figures that the induction computes meet Lemma 4.1's hypotheses. "paper", episodes: heuristic, as the paper
        leaves constants of its exploration open; no machine can count them.

    Randomness:
        Shared, at shared_key.derive("whole"): a learner's are ("explore", "ignore", tier) and ("decide"), below
        ("seed", i) where it is boosted, and boosting's ("heavy", i) and ("best"). Data: streams of the model.
    """
    check_model(model, settings.access, f"access={settings.access!r}")
    key = check_shared_key(shared_key).derive("whole")
    settings.check_horizon(model.horizon)
    sizes = (model.n_states, model.n_actions, model.horizon)
    planned = settings.constants_for(*sizes)
    constants = (planned if constants is None else constants).check()
    unit = model.samples_per_call if settings.access == "generative" else model.samples_per_episode
    check_limit(max_samples, constants.total * unit)
    learner = _Learner(settings, constants, workers, progress)
    if not settings.boosted:
        learned = learner.learn(model, key)
        return _finish(settings, constants, learned, (), _promise(settings, constants, planned, learned))
    boosted = Boosted(
        learner=learner,
        rho=settings.rho,
        delta=settings.failure,
        epsilon=settings.epsilon,
        base=None,
        runs=constants.frequencies,
        pulls=constants.pulls,
        candidates=constants.candidates,
    )
    elected = boosted.elect(model, key)
    learned = learner.first[elected.policy]
    return _finish(settings, constants, learned, elected.ballots, _promise(settings, constants, planned, learned))


class Learned(NamedTuple):
    """One learner's way to its policy."""

    induction: Induction
    tiers: Tiers
    data: Data
    explored: Explored | None
    """None for parallel sampling."""


class _Learner:
    """What is boosted; it keeps, of every policy, the first run that printed it."""

    def __init__(self, settings: Settings, constants: Constants, workers: int, progress: Progress | None) -> None:
        self.settings, self.constants = settings, constants
        self.first: dict[Policy, Learned] = {}
        self._workers, self._progress = workers, progress

    def __call__(self, model: Any, key: SharedKey) -> Policy:
        learned = self.learn(model, key)
        return self.first.setdefault(learned.induction.policy, learned).induction.policy

    def learn(self, model: Any, key: SharedKey) -> Learned:
        """Explore and decide, or make parallel calls and decide."""
        if self.constants.calls:
            tiers, data, explored = Tiers.single(model.horizon, model.n_states), call(model, self.constants.calls), None
        else:
            explored = explore_tiers(
                model, key.derive("explore"), self.settings, self.constants, self._workers, self._progress
            )
            tiers, data = settle(explored.tiers, explored.counts), Data(explored.counts, explored.starts)
        induction = tiered_induction(
            key.derive("decide"),
            data.counts,
            tiers,
            accuracy=self.constants.accuracy,
            delta=self.constants.delta,
            decision=self.settings.decision(model.n_states, model.n_actions),
        )
        return Learned(induction, tiers, data, explored)


def explore_tiers(
    model: Any,
    key: SharedKey,
    settings: Settings,
    constants: Constants,
    workers: int = 1,
    progress: Progress | None = None,
) -> Explored:
    """RepLevelExplore (Algorithm 6): L − 1 times RepExplore, a partition from their sets, and their data merged."""
    stages, grade = constants.stages(), settings.grade(model.n_states * model.horizon, 2)
    explored = find_partition(key, model, stages, grade=grade, workers=workers, progress=progress)
    return collect_data(explored, model, stages, keep=constants.keep_records, workers=workers, progress=progress)


def settle(tiers: Tiers, counts: Counts) -> Tiers:
    """Ignore states of which fresh data lack an action: at the paper's sizes there are none but with probability κ."""
    starved = counts.visits.min(axis=2) == 0
    return Tiers.from_levels(np.where(starved, tiers.count, tiers.level), tiers.count)


def _promise(settings: Settings, constants: Constants, planned: Constants, learned: Learned) -> Guarantee:
    """What was asked for, with what stands behind it."""
    unit, base = "parallel calls" if constants.calls else "episodes", learned.induction.guarantee
    if settings.constants == "scaled":
        sizes = f"the paper's sizes with every slack to the power {constants.scale:g}, {constants.total:.3g} {unit}"
        return settings.promise("none", f"{sizes} at most, which no proof covers (docs/whole.md)")
    if constants != planned:
        return settings.promise("none", "constants were set by hand")
    if settings.access == "episodic":
        return settings.promise("heuristic", "constants that the paper leaves open")
    known = max(base.rho, base.delta) <= 0.1 and base.epsilon <= settings.epsilon / 2.0 and base.status == "proven"
    if known:
        return settings.promise("proven", "docs/proofs/decision.md §3 and §4")
    return settings.promise("heuristic", "the paper's rate, whose computed figures miss what boosting asks for")


def _finish(
    settings: Settings, constants: Constants, learned: Learned, ballots: tuple[Ballot, ...], guarantee: Guarantee
) -> Run:
    """Put the result together."""
    induction, explored = learned.induction, learned.explored
    if explored is not None:  # a reachability partition that both runs share was found, and is not proven to be one
        induction = induction._replace(guarantee=replace(induction.guarantee, status="heuristic"))
    return Run(
        policy=induction.policy,
        guarantee=guarantee,
        settings=settings,
        tiers=learned.tiers,
        counts=learned.data.counts,
        values=induction.values,
        spread=value_spread(empirical_dynamics(learned.data)),
        induction=induction,
        explored=explored,
        constants=constants,
        ballots=ballots,
    )

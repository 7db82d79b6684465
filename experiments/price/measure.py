"""Measure: pairs of runs by parallel samples under three kinds of promises, and what greedy planning needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import reprl
from experiments.pairs import DEFAULT, RHO, Asked, best_value, first_action_value, seed_of
from reprl.sources.protocol import Access

RUNS, ENOUGH, MOST = 20, 18, 2**22
"""Runs of greedy planning at each size, how many must be accurate, and the most calls that are tried."""
LIMIT, FURTHER = 2**27, 2**31
"""max_samples of the default learner: one that is not sure by then counts with the samples that it took. The second is
for the worlds in which a policy must change with the step."""


AGREEMENT = 0.95
"""The share of decisions that approximate runs promise."""
PILOT = 2**10
"""Parallel calls of the pilot of a registered pair."""


CUT = 10
"""The control cuts both runs of a pair to this part of the samples at which a promise was made."""
GROUPS = ("pairs", "agreement", "registered")
"""Strict runs; runs that promise a share of the decisions; runs that follow what a pilot of their pair has chosen."""
CONTROLS = ("agreement-cut", "registered-cut")


class Case(NamedTuple):
    """Pairs of runs on one world; the group, one of GROUPS or CONTROLS, is the kind of promise."""

    group: str
    world: str
    build: Callable[[], reprl.TabularMDP]
    asked: Asked = DEFAULT
    limit: int = LIMIT
    access: Access = "generative"

    @property
    def name(self) -> str:
        return f"{self.group}/{self.world}"

    def baseline(self, mdp: reprl.TabularMDP) -> float:
        return first_action_value(mdp)

    def run(self, mdp: reprl.TabularMDP, team: int, shared_seed: int, data_seed: int) -> reprl.LearnResult:
        found = self._run(mdp, shared_seed, data_seed, self.limit)
        if self.group not in CONTROLS:
            return found
        cut = self._run(mdp, shared_seed, data_seed, max(found.samples // CUT, source_of(mdp, 0).samples_per_call))
        return replace(cut, guarantee=found.guarantee)  # as if the promise had been made so early

    def _run(self, mdp: reprl.TabularMDP, shared_seed: int, data_seed: int, limit: int) -> reprl.LearnResult:
        options: dict[str, Any] = {**self.asked.options, "rho": RHO, "access": self.access}
        if self.group.startswith("registered"):
            recipe = _register(self.build, self.name, shared_seed, tuple(options.items()))
            return recipe.learn(env=mdp, data_seed=data_seed, max_samples=limit)
        if self.group.startswith("agreement"):
            options["agreement"] = AGREEMENT
        options |= {"shared_seed": shared_seed, "data_seed": data_seed, "max_samples": limit}
        return reprl.learn(mdp, **options)

    def apart(self, mdp: reprl.TabularMDP, one: reprl.Policy, two: reprl.Policy) -> bool:
        """Say whether two policies break the promise."""
        if self.group.startswith("agreement"):
            return one.disagreement(two, mdp) > 1.0 - AGREEMENT + 1e-9
        return one != two


@lru_cache(maxsize=4)
def _register(
    build: Callable[[], reprl.TabularMDP], name: str, shared_seed: int, options: tuple[tuple[str, Any], ...]
) -> reprl.Recipe:
    """Return the recipe of a pair, by a pilot of its own."""
    mdp = build()
    size, seed = PILOT * source_of(mdp, 0).samples_per_call, seed_of(f"{name}/pilot", shared_seed)
    return reprl.register(mdp, pilot=size, data_seed=seed, shared_seed=shared_seed, **dict(options))


def greedy_samples(case: Case) -> dict[str, Any]:
    """Double the calls until greedy planning loses no more than asked in 18 of 20 runs."""
    mdp = case.build()
    best, allowed = best_value(mdp), case.asked.allowed(mdp, case.baseline(mdp))
    calls, tried = 1, []
    while calls <= MOST:
        seeds = [seed_of(f"{case.name}/greedy/{calls}", number) for number in range(RUNS)]
        losses = [best - mdp.evaluate(greedy(mdp, calls, seed)) for seed in seeds]
        good = sum(loss <= allowed + 1e-12 for loss in losses)
        tried.append([calls, good])
        if good >= ENOUGH:
            return {"samples": calls * source_of(mdp, 0).samples_per_call, "calls": calls, "tried": tried}
        calls *= 2
    return {"samples": None, "calls": None, "tried": tried}


def greedy(mdp: reprl.TabularMDP, calls: int, data_seed: int) -> NDArray[np.int64]:
    """Return the policy that is best in the model of relative frequencies, the first action on ties."""
    counts = source_of(mdp, data_seed).sample(calls)
    value, actions = np.zeros(mdp.n_states), np.zeros((mdp.horizon, mdp.n_states), dtype=np.int64)
    for h in reversed(range(mdp.horizon)):
        scores = np.nan_to_num(counts.mean_return(h, value), nan=-np.inf)
        actions[h], value = np.argmax(scores, axis=1), scores.max(axis=1)
    return actions


def source_of(mdp: reprl.TabularMDP, data_seed: int) -> Any:
    """Return the same kind of data as a run has: where steps are alike, a sample counts at all of them."""
    model: Any = reprl.GenerativeModel(mdp, data_seed)
    return model.pooled if mdp.stationary else model

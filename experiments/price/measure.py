"""Measure: pairs of runs by parallel samples, and the samples that greedy planning needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import reprl
from experiments.pairs import DEFAULT, RHO, Asked, best_value, first_action_value, seed_of

RUNS, ENOUGH, MOST = 20, 18, 2**22
"""Runs of greedy planning at each size, how many must be accurate, and the most calls that are tried."""
LIMIT = 2**30
"""max_samples of the default learner."""


class Case(NamedTuple):
    """Pairs of runs on one world, by parallel samples."""

    group: str
    world: str
    build: Callable[[], reprl.TabularMDP]
    asked: Asked = DEFAULT

    @property
    def name(self) -> str:
        return f"{self.group}/{self.world}"

    def baseline(self, mdp: reprl.TabularMDP) -> float:
        return first_action_value(mdp)

    def run(self, mdp: reprl.TabularMDP, team: int, shared_seed: int, data_seed: int) -> reprl.LearnResult:
        options: dict[str, Any] = {**self.asked.options(mdp, self.baseline(mdp)), "rho": RHO, "max_samples": LIMIT}
        return reprl.learn(mdp, access="generative", shared_seed=shared_seed, data_seed=data_seed, **options)


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
            return {"samples": calls * _source(mdp, 0).samples_per_call, "calls": calls, "tried": tried}
        calls *= 2
    return {"samples": None, "calls": None, "tried": tried}


def greedy(mdp: reprl.TabularMDP, calls: int, data_seed: int) -> NDArray[np.int64]:
    """Return the policy that is best in the model of relative frequencies, the first action on ties."""
    counts = _source(mdp, data_seed).sample(calls)
    value, actions = np.zeros(mdp.n_states), np.zeros((mdp.horizon, mdp.n_states), dtype=np.int64)
    for h in reversed(range(mdp.horizon)):
        scores = np.nan_to_num(counts.mean_return(h, value), nan=-np.inf)
        actions[h], value = np.argmax(scores, axis=1), scores.max(axis=1)
    return actions


def _source(mdp: reprl.TabularMDP, data_seed: int) -> Any:
    """Return the same kind of data as a run has: where steps are alike, a sample counts at all of them."""
    model: Any = reprl.GenerativeModel(mdp, data_seed)
    return model.pooled if mdp.stationary else model

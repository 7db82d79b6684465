"""Large sparse worlds: seconds of one simulated team at S = 10⁵, with and without outcomes that it has not seen.

`random`: 4 actions with 20 successors anywhere, Bernoulli rewards. `depots`: 2 actions, each to any of the 20 states of
another depot; one action is worth 0.5 more in all states of a depot. REPRL_LEARN=1 learns the depots whole, which takes
a quarter of an hour.
"""

from __future__ import annotations

import os
import resource
import time
from typing import Any

import numpy as np
import scipy.sparse
from reprl.canonical.choice import choose, make_rule

import reprl
from reprl.mdp.dynamics import empirical_dynamics, redraw_data, without_unseen
from reprl.sources.parallel import call

N_STATES, WIDTH, HORIZON = 10**5, 20, 10


def random_world(n_states: int, n_actions: int = 4) -> reprl.TabularMDP:
    generator, cells = np.random.default_rng(1), n_states * n_actions
    columns = generator.integers(0, n_states, (cells, WIDTH))
    law = generator.dirichlet(np.ones(WIDTH), cells)
    return reprl.TabularMDP(_matrix(law, columns, n_states), generator.random((n_states, n_actions)), 0, HORIZON)


def depots(n_states: int, n_actions: int = 2) -> reprl.TabularMDP:
    generator, number = np.random.default_rng(1), n_states // WIDTH
    target = np.repeat(generator.integers(number, size=(number, n_actions)), WIDTH, axis=0)
    columns = (target[:, :, None] * WIDTH + np.arange(WIDTH)).reshape(-1, WIDTH)
    better = generator.integers(n_actions, size=number).repeat(WIDTH)
    reward = 0.2 + 0.1 * generator.random((n_states, 1)) + 0.5 * (np.arange(n_actions) == better[:, None])
    law = np.full(columns.shape, 1.0 / WIDTH)
    return reprl.TabularMDP(_matrix(law, columns, n_states), reward, 0, HORIZON, "deterministic")


def _matrix(law: Any, columns: Any, n_states: int) -> Any:
    edges = np.arange(0, columns.size + 1, WIDTH)
    table = scipy.sparse.csr_matrix((law.ravel(), columns.ravel(), edges), shape=(columns.shape[0], n_states))
    table.sum_duplicates()
    return table


def _team(name: str, mdp: reprl.TabularMDP, calls: int) -> dict[str, Any]:
    """One team with a quarter of the data of so many calls."""
    data = call(reprl.GenerativeModel(mdp, 1).pooled, calls)
    whole = empirical_dynamics(redraw_data(data, 4, 77))
    thin = without_unseen(whole)
    rule = make_rule(reprl.SharedKey(1).derive("rule"), whole.outcomes.shape, epsilon=0.3)
    row: dict[str, Any] = {"world": name, "calls": calls, "outcomes": whole.probability.size}
    row["kept"] = thin.probability.size
    found = []
    for what, dynamics in (("all, s", whole), ("kept, s", thin)):
        began = time.process_time()
        found.append(choose(rule, dynamics))
        row[what] = round(time.process_time() - began, 2)
    return {**row, "same": found[0] == found[1]}


def _learn() -> dict[str, Any]:
    mdp = depots(N_STATES)
    began = time.process_time()
    run = reprl.learn(mdp, access="generative", shared_seed=1, data_seed=1, workers=2)
    row: dict[str, Any] = {"world": "depots, learned", "calls": run.samples // (mdp.n_states * mdp.n_actions)}
    row |= {"status": run.guarantee.status, "CPU s": round(time.process_time() - began)}
    row["loss"] = mdp.evaluate(mdp.solve().policy) - mdp.evaluate(run.policy)
    return {**row, "peak, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}


def run() -> list[dict[str, Any]]:
    if os.environ.get("REPRL_LEARN"):
        return [_learn()]
    worlds = {"random": random_world, "depots": depots}
    _team("", random_world(200), 16)  # kernels
    return [_team(name, build(N_STATES), calls) for name, build in worlds.items() for calls in (16, 64, 512)]

"""Two hospitals, two logs.

Nobody may try anything: each hospital has only the log of what its doctors did. Both learn from their own log under
one shared seed, and come to the same treatment policy, with what it is worth by the log.
"""

import numpy as np
from audit_your_learner import ACTIONS, STATES, clinic

import reprl

PATIENTS, DAYS = 60_000, 5


def hospital(seed):
    """A made-up log, one row for each day of each patient; doctors choose without looking."""
    rng, world = np.random.default_rng(seed), clinic()
    laws = world.transition[0].cumsum(axis=2)
    state, rows = np.full(PATIENTS, 2), []
    for day in range(DAYS):
        action = rng.choice(3, size=PATIENTS, p=(0.3, 0.4, 0.3))
        rows.append((np.arange(PATIENTS), np.full(PATIENTS, day), state, action, world.reward[0][state, action]))
        state = (rng.random((PATIENTS, 1)) >= laws[state, action]).sum(axis=1)
    columns = (np.stack(column, axis=1).ravel() for column in zip(*rows, strict=True))  # patient by patient
    return dict(zip(("episode", "step", "state", "action", "reward"), columns, strict=True))


north, south = (
    reprl.learn_log(hospital(seed), horizon=DAYS, states=range(5), actions=range(3), shared_seed=8) for seed in (1, 2)
)
print("north", north.policy.short_fingerprint, "south", south.policy.short_fingerprint)
print("the same policy:", north.policy == south.policy)
for name, run in (("north", north), ("south", south)):
    worth = f"{run.coverage.value:.2f} by its own log, practice earns {run.coverage.practice:.2f}"
    print(f"{name}: worth {worth}; {run.rehearsal}")
print("day 0, a patient in a moderate state:", ACTIONS[north.policy.actions[0, STATES.index("moderate")]])

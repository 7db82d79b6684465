"""Two hospitals, two logs.

Nobody may try anything: each hospital has only the log of what its doctors did. The first learns a policy from its log,
with what it is worth by the log. The second confirms this policy by its own log.
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


north, south = hospital(1), hospital(2)
run = reprl.learn_log(north, horizon=DAYS, states=range(5), actions=range(3), shared_seed=8)
print("north", run.policy.short_fingerprint)
print(f"worth {run.coverage.value:.2f} by its own log, practice earns {run.coverage.practice:.2f}")
print(run.guarantee)
found = reprl.confirm(run, log=south, quality=0.9)
print("south, by its own log:", found.verdict)
print("day 0, a patient in a moderate state:", ACTIONS[run.policy.actions[0, STATES.index("moderate")]])

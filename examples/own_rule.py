"""Write your own rule.

People who meet near-ties round values before they take the best. A fixed grid does not help: values close to a
boundary still fall on either side of it. Shift the grid by the shared key and it does, for most keys: that is the
whole trick, in a learner of ten lines. The checker says whether it keeps the contract of a learner, the audit whether
it replicates.
"""

import numpy as np

import reprl
from reprl.lab.baselines import empirical_values


def rounded(model, shared_key, calls=10**8, width=0.2):
    """Estimate values, round them on a grid that the shared key shifts, take the first of the best."""
    values, grid = empirical_values(model.sample(calls)), []
    for h, row in enumerate(values):
        grid.append(reprl.round_vector(shared_key.derive("own", h), row.ravel(), width=width, method="grid"))
    return np.reshape(grid, values.shape).argmax(axis=2)


def fixed(model, shared_key, calls=10**8):
    """The same without the key: rounding to multiples of the width."""
    return np.round(empirical_values(model.sample(calls)) / 0.2).argmax(axis=2)


world = reprl.make("two-goals-v0", size=3, horizon=5)
reprl.check_learner(rounded, access="generative")
best = world.evaluate(world.solve().policy)
for name, rule in (("rounded on a shared grid", rounded), ("rounded on a fixed grid", fixed)):
    report = reprl.audit(world, rule, pairs=60, access="generative", seed=1)
    loss = report.suboptimality.mean
    print(f"{name}: {report.disagreements} of {report.pairs} pairs differ, {loss:.3f} lost on average of {best:.2f}")

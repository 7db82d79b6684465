"""Five minutes to a replicable policy.

Two teams learn in the same slippery gridworld. They share a seed, and nothing else: each explores by itself and sees
its own data. They arrive at the same policy, to the last cell. Then team one publishes its recipe, and a third team
repeats it.
"""

import tempfile
from pathlib import Path

import reprl

mdp = reprl.make("gridworld-v0", size=4, horizon=6)
first = reprl.learn(mdp, rho=0.1, shared_seed=7, data_seed=1)
second = reprl.learn(mdp, rho=0.1, shared_seed=7, data_seed=2)

print("team 1", first.policy.short_fingerprint, f"{first.samples:,} samples")
print("team 2", second.policy.short_fingerprint, f"{second.samples:,} samples")
print("the same policy:", first.policy == second.policy)
print(first.guarantee)  # two promises
print("earns", first.worth.words)  # estimated by its own data
print(f"exactly {mdp.evaluate(first.policy):.3f}, the best possible is {mdp.evaluate(mdp.solve().policy):.3f}")

with tempfile.TemporaryDirectory() as folder:
    saved = first.save(Path(folder) / "team-1")  # recipe, receipt, policy: what a paper would publish
    third = reprl.Recipe.load(saved / "recipe.json").learn(data_seed=3)
    print("team 3", third.policy.short_fingerprint, "repeats the recipe:", third.policy == first.policy)

print("In the first step, by state:", *(mdp.labels.action(a) for a in first.policy.actions[0]))

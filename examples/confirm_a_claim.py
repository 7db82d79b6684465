"""Is a published policy worth what it claims?

Team one publishes a controller for CartPole and says that it earns more than 450. Team two has its own simulator. It
plays the controller until the claim is certain, or refuted, at level 5 %. It may look at any time and stop at any time.
"""

import reprl


def controller(observation):
    """Push to the side to which the pole falls."""
    return int(observation[2] + observation[3] > 0)


def lazy(observation):
    """Always push to the left."""
    return 0


for claim in (controller, lazy):
    found = reprl.confirm(claim, "CartPole-v1", target=450, delta=0.05, data_seed=2)
    low, high = found.interval
    print(f"{found.policy}: {found.verdict} [{found.status}] after {found.episodes} episodes")
    print(f"  mean return {found.mean:.1f}, between {low:.1f} and {high:.1f}")

lake = reprl.make("gym:FrozenLake-v1", horizon=40)
table = reprl.learn(lake, epsilon=0.3, shared_seed=7, data_seed=1, max_samples=2_000_000).policy
found = reprl.confirm(table, lake, target=0.4, data_seed=2)
print(f"a table for the frozen lake: {found.verdict}; it is worth {lake.evaluate(table):.3f}")

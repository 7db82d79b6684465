"""What is audited: PPO on CartPole, and tables beside it."""

PAIRS, EPISODES = 10, 20
"""Pairs of trainings under one shared seed, and evaluation episodes of each agent."""
STEPS = 24_576
"""Of a training of PPO: 24 rollouts of 1,024."""
PPO = {"n_steps": 1024, "batch_size": 256, "n_epochs": 6, "gamma": 0.98, "learning_rate": 1e-3}
TABLE = {"horizon": 30, "epsilon": 3.0, "max_samples": 2**16}
"""The default rule on CartPole cut into cells: ε is a tenth of the 30 steps. So few samples are promised nothing."""
BINS = (1, 1, 4, 3)
"""Cells of position, velocity, angle and angular velocity."""
LIMITS = (2.4, 2.0, 0.21, 2.5)
"""Where the cells end; what lies beyond falls into the last ones."""
SEED = 1
BASELINES = {
    "ARS": ("ars", 100_000),
    "CEM": ("cem", 100_000),
    "replicable ARS": ("replicable-ars", 1_000_000),
    "rounded FQI": ("rounded-fqi", 100_000),
}
"""Baselines of reprl.lab for observations from a Box, and the samples of a training, at most."""
BASELINE_PAIRS = 3

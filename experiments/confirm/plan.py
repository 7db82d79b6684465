"""What is simulated: laws of returns beside a target, scans of bandits beside a threshold, and published policies."""

SEED = 20261117
DELTA, RHO = 0.05, 0.1
POLICIES, CHUNK = 10_000, 2_000
"""Policies, and pairs of scans; so many are stored at a time."""
BELOW = 0.001
"""How far below the target a policy's mean is, as a share of the range of returns."""
MOST = 2_000
"""Episodes after which a simulated confirmation is undecided."""
LOOKS = (8, 16, 32, 64, 128, 256, 512, 1024, 2000)
"""Episodes after which a t-test is made, where it is made again and again."""
STRENGTHS = {"as proven": 1.0, "radii × 0.5": 0.25}
"""The control divides log(1/δ) by four, which is to halve radii."""
CASES: dict[str, tuple[tuple[tuple[float, float], ...], float]] = {
    "nearly perfect (0.99 against 0.95)": (((1.0, 0.98), (0.5, 0.02)), 0.95),
    "rare ruin (0.95 against 0.9)": (((1.0, 0.95), (0.0, 0.05)), 0.9),
    "two modes (0.43 against 0.4)": (((0.45, 0.95), (0.05, 0.05)), 0.4),
    "a coin (0.6 against 0.5)": (((1.0, 0.6), (0.0, 0.4)), 0.5),
    "a coin (0.55 against 0.5)": (((1.0, 0.55), (0.0, 0.45)), 0.5),
}
"""Laws of returns, (value, probability), in shares of their range, and a target below their mean."""
RUNS = 400
"""Simulated confirmations of each."""
POWER = 0.95
ARMS = 6
GAPS = (0.03, 0.12)
"""Distance of an arm's mean from the threshold, uniform; two thirds of the arms lie below."""
PPO = {"n_steps": 1024, "batch_size": 256, "n_epochs": 6, "gamma": 0.98, "learning_rate": 1e-3}
STEPS, CART_TARGET = 49_152, 450.0
LAKE = {"horizon": 40, "target": 0.4}

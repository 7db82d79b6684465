"""The paper's theorems as plots.

Three statements that carry everything, each measured against its bound: correlated sampling (Lemma 2.12), randomized
rounding (Lemma 2.14), and what a joint draw saves over one for each coordinate (Algorithm 1, step 4). Writes
theorems.svg to the working folder.
"""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import reprl

KEYS = 200
rng = np.random.default_rng(0)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained")

# Two runs hold laws p and q; with one shared key they draw different outcomes with probability at most 2TV/(1 + TV).
distance, measured = [], []
for _ in range(12):
    p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    q = p + rng.random() * (q - p)
    draws = [
        [int(reprl.correlated_sample(reprl.SharedKey(k), law[None], "joint")[0]) for k in range(KEYS)] for law in (p, q)
    ]
    distance.append(0.5 * abs(p - q).sum())
    measured.append(np.mean(np.array(draws[0]) != np.array(draws[1])))
grid = np.linspace(0, 1, 100)
axes[0].plot(grid, 2 * grid / (1 + grid), "k", label="2TV/(1 + TV)")
axes[0].plot(distance, measured, "o", label=f"{KEYS} shared keys")
axes[0].set(title="correlated sampling", xlabel="TV of two laws", ylabel="draws that differ")

# Two vectors at distance d round to the same point of a random grid unless a boundary falls between them.
moves = np.geomspace(0.002, 0.2, 8)
x = rng.random(16)
for method, colour in (("product", "#4fb0d6"), ("joint", "#0b6e99")):
    apart = []
    for move in moves:
        y = x + move * rng.choice((-1, 1), size=16) / 4
        pairs = [
            (reprl.round_vector(reprl.SharedKey(k), v, width=1.0, method=method) for v in (x, y)) for k in range(KEYS)
        ]
        apart.append(np.mean([not np.array_equal(*pair) for pair in pairs]))
    axes[1].plot(moves, apart, "o-", color=colour, label=method)
axes[1].set(title="rounding 16 numbers", xlabel="Euclidean distance", ylabel="roundings that differ", xscale="log")

# n fair choices, each law off by a little: coordinate by coordinate the errors add up, jointly they add like squares.
sizes, off = (1, 2, 4, 8, 16, 32), 0.02
for method, colour in (("product", "#4fb0d6"), ("joint", "#0b6e99")):
    apart = []
    for n in sizes:
        p, q = np.full((n, 2), 0.5), np.tile((0.5 - off, 0.5 + off), (n, 1))
        same = [
            np.array_equal(*(reprl.correlated_sample(reprl.SharedKey(k), law, method) for law in (p, q)))
            for k in range(KEYS)
        ]
        apart.append(1 - np.mean(same))
    axes[2].plot(sizes, apart, "o-", color=colour, label=method)
    print(f"{method}: {apart[-1]:.2f} of the draws of {sizes[-1]} coins differ")
axes[2].set(title=f"n coins, each law {off} off", xlabel="n", ylabel="draws that differ", xscale="log", yscale="log")
for axis in axes:
    axis.legend(frameon=False)
figure.savefig("theorems.svg", metadata={"Date": None})
excess = [m - 2 * d / (1 + d) for d, m in zip(distance, measured, strict=True)]
print("largest excess over 2TV/(1 + TV):", round(max(excess), 3))

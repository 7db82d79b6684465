"""python -m experiments.exponents [--quick]: the five exponents of the paper's learner by episodes.

One learner (exploration, one tier, induction; no boosting) on the hard instance without bias, where all good actions
tie and noise moves laws most. For two runs' data the probability of parting, over the shared key, is computed from
their laws: of what is ignored, and of the arms of every step. So a pair gives a probability instead of a bit. Takes
some minutes of one core, and rewrites experiments/exponents/data.json, docs/figures/exponents.svg and the tables in
docs/exponents.md.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.head_to_head.measure import slope
from experiments.runner import Experiment, Job
from reprl.lab.lower_bounds.disagreement import race_disagreement
from reprl.mdp.counts import Counts
from reprl.mdp.worlds import hard_instance
from reprl.paper.constants import Constants, Task
from reprl.paper.full import ignore_starved
from reprl.paper.q_explore import explore
from reprl.paper.rep_explore import draw_ignored
from reprl.paper.rep_level_explore import stack_tiers
from reprl.paper.rep_rl_bandit import tiered_induction
from reprl.paper.rep_var_bandit import Decision
from reprl.paper.runs import RunSettings
from reprl.randomness import DataStream, SharedKey
from reprl.sources.episodes import EpisodicModel

START, END = "<!-- tables: python -m experiments.exponents -->\n", "<!-- end of tables -->\n"
SEED, SCALE, DELTA, RHO = 20261117, 0.05, 0.1, 0.1
BLOCK, BLOCKS, DOUBLINGS, DRAWS, KEYS = 4, 8, 7, 1024, 25
"""Pairs of a block and blocks of a point; M doubles so often; points of an integral; keys that are tried for a way on
which both agree."""
SWEEPS: dict[str, tuple[str, tuple[float, ...]]] = {
    "states": ("S", (2, 4, 8, 16)),
    "actions": ("A", (2, 4, 8, 16)),
    "horizon": ("H", (1, 2, 3, 4, 6)),
    "epsilon": ("1/ε", (1.0, 0.5, 0.25, 0.125)),
}
SAME = {
    ("actions", 2): "states/4",
    ("horizon", 2): "states/4",
    ("epsilon", 0.5): "states/4",
}
"""Points that another sweep has too."""
THEORY = {"states": 2, "actions": 1, "horizon": 9, "epsilon": 2, "rho": 2}
"""Of S²A·H¹¹/(ρ·accuracy)²: the accuracy is ε·H, which leaves H⁹."""
LEVELS = (0.4, 0.3, 0.2, 0.1)
"""ρ at which the samples of one point are read off."""
Data = dict[str, Any]
Array = NDArray[np.float64]


class Point(NamedTuple):
    """One learner in one world; its accuracy is ε·H, so that ε is per step."""

    states: int = 4
    actions: int = 2
    horizon: int = 2
    epsilon: float = 0.5

    @property
    def name(self) -> str:
        """Of its streams, as what is stored was drawn."""
        return f"{str(self)[:-1]}, length=1.0)"

    @property
    def logarithm(self) -> float:
        """log(3SAH/δ) of the mechanism's temperature."""
        return math.log(3.0 * self.states * self.actions * self.horizon / DELTA)

    @property
    def constants(self) -> Constants:
        """The scaled learner's; K and M are this experiment's."""
        sizes = (self.states, self.actions, self.horizon)
        task = Task(*sizes, self.epsilon * self.horizon, RHO, DELTA, "episodic", "joint", boosted=False)
        return Constants.scaled(SCALE, task)


def gather(point: Point, number: int, half: int) -> list[tuple[int, Array, Counts, int]]:
    """Runs of one team: for M = M₀, 2M₀, …, nested, the fractions μ̂, the records, and the samples drawn."""
    mdp = hard_instance(np.zeros((point.horizon, point.states)), point.actions)
    model = EpisodicModel(mdp, DataStream(SEED, f"{point.name}/{number}/{half}").key)
    length = 24 * point.states * point.actions * point.horizon
    settings = RunSettings(episodes=length, bonus=0.1, guide=0.1, failure=0.01)
    out: list[tuple[int, Array, Counts, int]] = []
    first = math.ceil(2 * point.horizon * point.states * (0.5 / point.epsilon) ** 2)
    for i in range(DOUBLINGS + 1):
        runs = first if i == 0 else out[-1][0]
        found = explore(model, settings, runs, quota=point.horizon, purpose=f"{i}")
        short, counts = found.short.astype(float), found.counts
        if out:
            before, mu, more, _ = out[-1]
            short, counts, runs = short + mu * before, counts + more, runs + before
        out.append((runs, short / runs, counts, model.ledger.samples))
    return out


def parting(point: Point, number: int, one: Any, two: Any) -> float:
    """Probability over the shared key that two runs part: 1 − Π of the probabilities that each draw agrees.

    The factor of a step is that of its laws on a way on which the draws before it agree, for which keys are tried: a
    fresh list of keys for every factor, so that the product is right on average.
    """
    stream = DataStream(SEED, f"integral/{point.name}/{number}")
    first, second = (np.stack([1.0 - mu.ravel(), mu.ravel()], axis=1) for _, mu, _, _ in (one, two))
    agree = 1.0 - race_disagreement(first, second, stream, draws=DRAWS)
    for h in reversed(range(point.horizon)):
        for attempt in range(KEYS):
            laws = follow(point, h, SharedKey(SEED).derive("exponents", number, h, attempt), one, two)
            if laws is not None:
                agree *= 1.0 - race_disagreement(*laws, stream, draws=DRAWS)
                break
        else:
            return 1.0
    return 1.0 - agree


def follow(point: Point, h: int, key: SharedKey, one: Any, two: Any) -> tuple[Array, Array] | None:
    """Return two runs' laws of the arms of a step under a key, or None if what is drawn before it differs."""
    constants, decision = point.constants, Decision(mechanism="exponential", coupling="joint", rounding=False)
    ignored, other = (draw_ignored(key.derive("ignore"), mu, "joint") for _, mu, _, _ in (one, two))
    if not np.array_equal(ignored, other):
        return None
    made = [
        tiered_induction(
            key.derive("decide"),
            counts,
            ignore_starved(stack_tiers(ignored[None]), counts),
            accuracy=constants.accuracy,
            delta=constants.delta,
            decision=decision,
        )
        for _, _, counts, _ in (one, two)
    ]
    if not np.array_equal(made[0].policy.actions[h + 1 :], made[1].policy.actions[h + 1 :]):
        return None
    return made[0].laws[h], made[1].laws[h]


def measure(sweep: str, value: float, block: int) -> Data:
    """Chances of parting, (pairs, sizes), and the samples of a run at every size."""
    varied: Data = {sweep: value if sweep == "epsilon" else int(value)}
    point = Point()._replace(**varied)
    chances, samples = [], []
    for number in range(BLOCK * block, BLOCK * (block + 1)):
        one, two = (gather(point, number, half) for half in range(2))
        chances.append([round(parting(point, number, *both), 6) for both in zip(one, two, strict=True)])
        samples.append([size for _, _, _, size in one])
    runs = [runs for runs, _, _, _ in one]
    return {"x": 1.0 / value if sweep == "epsilon" else value, "runs": runs, "samples": samples[0], "chances": chances}


def jobs(quick: bool) -> dict[str, Job]:
    """Return every measurement, the longest first."""
    found = [
        (sweep, value)
        for sweep, (_, values) in SWEEPS.items()
        for value in (values[:2] if quick else values)
        if (sweep, value) not in SAME
    ]
    long = [("horizon", 6), ("states", 16), ("epsilon", 0.125), ("actions", 16), ("horizon", 4)]
    found.sort(key=lambda one: long.index(one) if one in long else len(long))
    return {
        f"{sweep}/{value:g}#{block}": partial(measure, sweep, value, block)
        for sweep, value in found
        for block in range(1 if quick else BLOCKS)
    }


def points(data: Data) -> dict[str, Data]:
    """Join the blocks of every point; points of several sweeps are measured once."""
    found: dict[str, Data] = {}
    for sweep, (_, values) in SWEEPS.items():
        for value in values:
            base = SAME.get((sweep, value), f"{sweep}/{value:g}")
            parts = [one for name, one in data["measured"].items() if name.partition("#")[0] == base]
            if parts:
                chances = [row for one in parts for row in one["chances"]]
                x = 1.0 / value if sweep == "epsilon" else value
                found[f"{sweep}/{value:g}"] = {**parts[0], "x": x, "chances": chances}
    return found


def head(quick: bool) -> Data:
    """Return what the data are measured with."""
    return {"seed": SEED, "scale": SCALE, "delta": DELTA, "pairs": BLOCK * BLOCKS, "quick": quick}


def needed(row: Data, level: float, chosen: NDArray[np.int64]) -> float:
    """Return the samples of a run at which pairs part with a probability: between two sizes on a log-log line.

    Beyond the largest size chances are taken to fall like 1/√samples.
    """
    mean = np.minimum.accumulate(np.log(np.maximum(np.array(row["chances"])[chosen].mean(axis=0), 1e-6)))
    size, wanted = np.log(row["samples"]), math.log(level)
    if wanted < mean[-1]:
        return float(np.exp(size[-1] + 2.0 * (mean[-1] - wanted)))
    return float(np.exp(np.interp(-wanted, -mean, size)))


def read_off(row: Data, level: float) -> tuple[float, float]:
    """Return the samples needed, and the standard error of their logarithm, by resampling pairs."""
    n, rng = len(row["chances"]), np.random.default_rng(0)
    again = [math.log(needed(row, level, rng.integers(n, size=n))) for _ in range(400)]
    return needed(row, level, np.arange(n)), max(float(np.std(again)), 1e-3)


def fits(data: Data) -> list[Data]:
    """Fit every exponent, plainly and with the logarithm taken out where it grows along the sweep."""
    out, found = [], points(data)
    for sweep, (label, values) in SWEEPS.items():
        rows = [found[f"{sweep}/{value:g}"] for value in values if f"{sweep}/{value:g}" in found]
        if len(rows) < 3:
            continue
        size, spread = zip(*(read_off(row, RHO) for row in rows), strict=True)
        for over in (0, 2):
            if over and sweep not in ("states", "actions", "horizon"):
                continue
            logs = [Point(**{sweep: int(row["x"])}).logarithm ** over if over else 1.0 for row in rows]
            y = [n / log for n, log in zip(size, logs, strict=True)]
            name = label + (", over log²(3SAH/δ)" if over else "")
            fit = slope([row["x"] for row in rows], y, list(spread))
            out.append({"name": name, "sweep": sweep, "points": len(rows), **fit})
    base = found.get("states/4")
    if base is not None:
        size, spread = zip(*(read_off(base, level) for level in LEVELS), strict=True)
        fit = slope([1.0 / level for level in LEVELS], list(size), list(spread))
        out.append({"name": "1/ρ", "sweep": "rho", "points": len(LEVELS), **fit})
    return out


def draw(data: Data, folder: Path) -> None:
    """Draw the probability of disagreement against samples, one panel for every sweep."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "reprl", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, len(SWEEPS), figsize=(13, 3.0), layout="constrained", sharey=True)
    for axis, (sweep, (label, values)) in zip(axes, SWEEPS.items(), strict=True):
        for i, value in enumerate(values):
            row = points(data).get(f"{sweep}/{value:g}")
            if row is not None:
                shade = str(0.7 - 0.7 * i / len(values))
                mean = np.array(row["chances"]).mean(axis=0)
                axis.plot(row["samples"], mean, "o-", markersize=3, color=shade, label=f"{row['x']:g}")
        axis.axhline(RHO, color="#b5541c", linewidth=0.8)
        axis.set(xscale="log", yscale="log", xlabel="samples of a run", title=label)
        axis.grid(alpha=0.25, linewidth=0.4)
        axis.legend(frameon=False, fontsize=7)
    axes[0].set_ylabel("chance that two runs part")
    figure.savefig(folder / "exponents.svg", metadata={"Date": None})
    plt.close(figure)


def tables(data: Data) -> str:
    """Return the exponents; the figure shows the chances behind them."""
    lines = [
        "| samples against | measured exponent | 95 % interval | points | exponent of Theorem 6.1 |",
        "|---" * 5 + "|",
    ]
    for fit in fits(data):
        theory = THEORY[fit["sweep"]]
        shown = f"{fit['slope']:.2f} | {fit['low']:.2f} … {fit['high']:.2f}"
        lines.append(f"| {fit['name']} | {shown} | {fit['points']} | {theory} |")
    return "\n".join(lines) + "\n"


EXPERIMENT = Experiment(
    name="exponents", page="exponents.md", jobs=jobs, head=head, draw=draw, tables=tables, marks=(START, END)
)


if __name__ == "__main__":
    EXPERIMENT.main(None, __doc__)

"""Small black boxes with finite observations: a search over tables beside the canonical rule, at 90 % of the gain.

The canonical rule's runs are those of experiments/defaults, which sets nothing but the environment; FrozenLake, whose
dynamics are published, was not a box there and is played as one here.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import reprl
from experiments.defaults.worlds import WORLDS
from experiments.pairs import best_value, first_action_value
from experiments.stored import measured as stored
from reprl.randomness import DataStream
from reprl.sources.gymnasium.model import to_gymnasium

LIMIT = 300_000
"""Steps of a run, at most; 1,000,000 where the canonical rule learns here."""
PAIRS = 2
QUALITY = 0.9
RETURNS = {"Blackjack H=8": (-1.0, 1.0), "FrozenLake H=40": (0.0, 1.0)}
"""Bounds of a return that are tighter than horizon times rewards: one reward is paid, at the end."""
NAMES = ("inventory 30×10 H=20", "shop H=10", "FrozenLake H=40", "Blackjack H=8")


class Row(NamedTuple):
    """One run."""

    status: str
    samples: int
    share: float
    """Of what the best policy earns more than always taking the first action, in exact arithmetic."""
    seconds: float


def jobs() -> dict[str, Any]:
    """Return the measurements by name."""
    found = {f"tables/{name}/search#{k}": partial(run, name, "search", k) for name in NAMES for k in range(PAIRS)}
    return found | {"tables/FrozenLake H=40/canonical#0": partial(run, "FrozenLake H=40", "canonical", 0)}


def run(name: str, way: str, number: int, seed: int = 20270118) -> dict[str, Any]:
    """Two runs of one shared seed with independent data; seconds are those of the processor."""
    of, world = WORLDS[name], WORLDS[name].build()
    base, best = first_action_value(world), best_value(world)
    target = of.original(base + QUALITY * (best - base), world.horizon)
    how: dict[str, Any] = {"horizon": world.horizon, "reward_range": of.rewards, "max_samples": 1_000_000}
    if way == "search":
        how |= {"learner": "search", "target": target, "return_range": RETURNS.get(name), "max_samples": LIMIT}
    runs, rows = [], []
    for word in DataStream(seed, f"tables/{name}/{way}", number).integers(2):
        began = time.process_time()
        env = of.box or partial(to_gymnasium, world)
        runs.append(reprl.learn(env, shared_seed=seed + number, data_seed=int(word) >> 1, **how))
        share = (_value(world, runs[-1].policy) - base) / (best - base)
        spent = round(time.process_time() - began, 1)
        rows.append(Row(runs[-1].guarantee.status, int(runs[-1].samples), round(share, 4), spent))
    return {"same": int(runs[0].policy == runs[1].policy), "target": target, "runs": rows}


def _value(world: reprl.TabularMDP, policy: reprl.Policy) -> float:
    """Return what a policy of the box is worth; the box may have one more state, in which an episode has ended."""
    actions = np.atleast_2d(policy.actions)[:, : world.n_states]
    return float(world.evaluate(np.broadcast_to(actions, (world.horizon, world.n_states))))


def pairs_of(measured: dict[str, Any], name: str, way: str) -> list[tuple[bool, list[Row]]]:
    """Return the stored pairs: whether both policies are the same, and both runs."""
    own = [
        (bool(found["same"]), [Row(*row) for row in found["runs"]])
        for key, found in measured.items()
        if key.startswith(f"tables/{name}/{way}#")
    ]
    if own or way == "search":
        return own
    return [
        (
            not row[2],
            [Row(row[5][i], row[1][i], 1.0 - row[3][i] / (each["best"] - each["baseline"]), row[8][i]) for i in (0, 1)],
        )
        for each in stored("defaults", f"q={QUALITY}/{name}#").values()
        for row in each["rows"]
    ]


def table(measured: dict[str, Any]) -> list[str]:
    """Return the lines of the table in Markdown; none where nothing is stored."""
    lines = []
    for name in NAMES:
        for way, words in (("search", "search over tables"), ("canonical", "canonical rule")):
            found = pairs_of(measured, name, way)
            if not found or not pairs_of(measured, name, "search"):
                continue
            rows = [row for _, both in found for row in both]
            alike = [same for same, both in found if any(row.share for row in both)]  # not where nothing was found
            equal = f"{sum(alike)} of {len(alike)}" if alike else "—"
            kept = [row for row in rows if row.status != "none"]
            status = "".join(f"{each}, " for each in sorted({row.status for row in kept}))
            shares = f"{min(row.share for row in kept):.0%}" if kept else "—"
            samples, seconds = (np.median([row[k] for row in rows]) for k in (1, 3))
            lines.append(
                f"| {name} | {words} | {status}{len(kept)} of {len(rows)} runs | {equal} | {samples:,.0f} "
                f"| {seconds:.0f} | {shares} |"
            )
    head = (
        "environment",
        "method",
        "promise",
        "pairs equal",
        "samples, median",
        "seconds, median",
        "least share of the gain",
    )
    return ["", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines] if lines else []

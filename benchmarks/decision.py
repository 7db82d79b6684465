"""The decision stage: counts to policy, and how sampling cost does not depend on the number of samples.

Seconds are medians over shared keys after compilation. The tied grid is the hard case of the coupling: most states have
two equally good arms.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import reprl
from reprl.mdp.tiers import Tiers
from reprl.paper.rep_rl_bandit import Accuracy, tiered_induction
from reprl.paper.rep_var_bandit import Decision

KEYS = 7
EPSILON = 0.3


def run() -> list[dict[str, Any]]:
    """Time the induction on S = 100 and generative sampling from 10³ to 10¹² calls."""
    rows = []
    random = reprl.make("random-mdp-v0", n_states=100, n_actions=5, horizon=10)
    grid = reprl.make("gridworld-v0", size=10, horizon=10)
    for name, mdp in (("random S=100 A=5 H=10", random), ("tied grid S=100 A=4 H=10", grid)):
        for calls in (10**4, 10**6, 10**8):
            for label, decision in (("product", Decision(coupling="product", rounding=False)),):
                rows.append({"case": name, "calls": calls, "coupling": label, **_decide(mdp, calls, decision)})
    model = reprl.GenerativeModel(random, 1)
    model.sample(10)
    first = None
    for calls in (10**3, 10**6, 10**9, 10**12):
        start = time.perf_counter()
        model.sample(calls)
        seconds = time.perf_counter() - start
        first = first or seconds
        rows.append({"case": "sampling S=100 A=5 H=10", "calls": calls, "seconds": seconds, "ratio": seconds / first})
    return rows


def _decide(mdp: reprl.TabularMDP, calls: int, decision: Decision) -> dict[str, Any]:
    counts = reprl.GenerativeModel(mdp, 1).sample(calls)
    tiers = Tiers.single(mdp.horizon, mdp.n_states)
    seconds = []
    for seed in range(KEYS + 1):
        start = time.perf_counter()
        tiered_induction(
            reprl.SharedKey(seed),
            counts,
            tiers,
            accuracy=Accuracy(by_tier=(2.0 * EPSILON / mdp.horizon,), pessimism=0.0),
            delta=0.1,
            decision=decision,
        )
        seconds.append(time.perf_counter() - start)
    return {"seconds": statistics.median(seconds[1:]), "worst s": max(seconds[1:]), "target s": 2.0}

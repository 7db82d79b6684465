"""Correlated sampling: nodes, time and memory of joint and product draws.

Nodes and times are medians over a few shared keys, after compilation; a product draw does the same work under every
key, so its time is the least. Times are those of the processor. `target s` is the limit that the design sets and `met`
says whether it was kept here; ratios within one run matter more than the seconds of one machine.

`python -m benchmarks.coupling` measures again, in minutes, what docs/proofs/coupling.md and its figure show of the
joint search, and stores it in data/joint_search.json. Nodes do not depend on the machine.
"""

from __future__ import annotations

import heapq
import json
import math
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.correlated import Draw, draw
from reprl.coupling.gumbel_field import child_address
from reprl.coupling.spec import COUPLINGS
from reprl.errors import ReprlError
from reprl.randomness import SharedKey, philox

Laws = NDArray[np.float64]
Row = dict[str, Any]

FAMILIES = ("0.5", "0.7", "0.9", "0.99", "random")
NODE_CAP = 3 * 10**7
HIGH_CAP = 10**8
"""Nodes that the slowest draws may take: twice the guard of the library."""
STORED = Path(__file__).parent / "data" / "joint_search.json"
CAP_GROWTH = 3.0  # stop a family when the next size would pass the cap by its own growth


class Effort(NamedTuple):
    """Median work of a draw over several keys."""

    nodes: int
    seconds: float


def laws_of(family: str, n: int) -> Laws:
    """Return n coins of one family: a fixed bias, or biases uniform in (0, 1) from a fixed seed."""
    p = np.random.default_rng(n).random(n) if family == "random" else np.full(n, float(family))
    return np.stack([1.0 - p, p], axis=1)


def effort(laws: Laws, keys: int, **options: Any) -> Effort:
    """Draw under several keys; return the medians."""
    found: list[tuple[int, float]] = []
    for i in range(keys):
        start = time.thread_time()
        result: Draw = draw(SharedKey(i).derive("benchmark"), laws, **options)
        found.append((result.nodes, time.thread_time() - start))
    seconds = [s for _, s in found]
    typical = min(seconds) if options.get("method") == "product" else statistics.median(seconds)
    return Effort(int(statistics.median(n for n, _ in found)), typical)


def growth(family: str, sizes: range, keys: int = 5, cap: int = NODE_CAP) -> list[tuple[int, Effort]]:
    """Effort of joint draws at growing n, until a draw passes the cap or the next would."""
    out: list[tuple[int, Effort]] = []
    for n in sizes:
        try:
            out.append((n, effort(laws_of(family, n), keys, max_nodes=cap)))
        except ReprlError:  # past the cap
            break
        if out[-1][1].nodes * CAP_GROWTH > cap:
            break
    return out


def best_first_nodes(key: SharedKey, laws: Laws) -> int:
    """Nodes that a best-first search over the same field expands: the fewest that these bounds allow."""
    n, k = laws.shape
    words = key.words
    logs = [[math.log(p) if p > 0 else -math.inf for p in row] for row in laws.tolist()]
    ahead = [sum(max(row) for row in logs[d:]) for d in range(n + 1)]

    def wait(address: int, number: int) -> float:
        lane = np.uint64((int(words[1]) + number // 2) % 2**64)
        word = int(philox(words[0], lane, np.uint64(address))[number % 2])
        return -math.log(((word >> 12) + 0.5) / 2**52)

    root = int(child_address(np.uint64(0), 0))
    heap = [(0.0, 0, 0, root, wait(root, k), 0.0)]
    expanded = serial = 0
    while True:
        _, _, depth, address, scaled, spent = heapq.heappop(heap)
        if depth == n:
            return expanded
        expanded += 1
        heir, number = int(math.exp(-wait(address, 0)) * k), 0
        for child in range(k):
            arrival = scaled / k
            if child != heir:
                number += 1
                arrival += wait(address, number)
            logp = spent + logs[depth][child]
            if logp > -math.inf:
                serial += 1
                score = math.log(arrival) + (depth + 1) * math.log(k) - logp - ahead[depth + 1]
                below = int(child_address(np.uint64(address), child))
                heapq.heappush(heap, (score, serial, depth + 1, below, arrival, logp))


def _row(case: str, work: Effort, target: float | None = None, **more: Any) -> Row:
    row: Row = {"case": case, "nodes": work.nodes or None, "seconds": work.seconds}
    if work.nodes:
        row["ns/node"] = 1e9 * work.seconds / work.nodes
    if target is not None:
        row |= {"target s": target, "met": work.seconds < target}
    return row | more


def _joint() -> list[Row]:
    targets = {40: 0.1, 60: 10.0}
    rows = []
    for n in range(20, 61, 10):
        work = effort(laws_of("0.9", n), keys=5 if n <= 50 else 3, max_nodes=HIGH_CAP)
        extra = {"peak MB": _peak_megabytes()} if n == 60 else {}
        rows.append(_row(f"joint 0.9^{n}", work, targets.get(n), **{"2^n": float(2**n)}, **extra))
    return rows


def _families() -> list[Row]:
    rows = []
    for family in FAMILIES:
        reached = growth(family, range(10, 201, 10))
        for n, work in reached[-3:]:
            rows.append(_row(f"joint {family}^{n}", work, **{"2^n": float(2**n)}))
    return rows


def _wide() -> list[Row]:
    rows = []
    for k in (2, 5):
        laws = np.random.default_rng(k).dirichlet(np.ones(k), 10**6)
        rows.append(_row(f"product k={k}, n=10^6", effort(laws, 7, method="product"), 0.2))
    return rows


def _against_best_first() -> list[Row]:
    rows = []
    for family, n in (("0.5", 30), ("0.7", 30), ("0.9", 20), ("0.9", 30), ("0.99", 20), ("random", 30)):
        ratios, laws = [], laws_of(family, n)
        for i in range(5):
            key = SharedKey(i).derive("best-first")
            ratios.append(draw(key, laws).nodes / best_first_nodes(key, laws))
        rows.append({"case": f"DFS/best-first {family}^{n}", "ratio": statistics.median(ratios), "worst": max(ratios)})
    return rows


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _compile() -> None:
    for k in (2, 5):
        for method in COUPLINGS:
            draw(SharedKey(0), np.full((4, k), 1.0 / k), method)


def store() -> None:
    """Measure the joint search at growing n, and against best-first search, and keep what was found."""
    _compile()
    found: dict[str, Any] = {"growth": {}, "best first": _against_best_first()}
    for family in FAMILIES:
        points = growth(family, range(5, 101, 5), cap=HIGH_CAP)
        found["growth"][family] = [[n, work.nodes, float(f"{work.seconds:.3g}")] for n, work in points]
    STORED.parent.mkdir(exist_ok=True)
    STORED.write_text(json.dumps(found) + "\n", "utf-8")


def run() -> list[Row]:
    """Return the rows of the table."""
    _compile()
    parts: list[Callable[[], list[Row]]] = [_joint, _families, _wide, _against_best_first]
    return [row for part in parts for row in part()]


if __name__ == "__main__":
    store()

"""Slow, obvious versions of the coupling: every leaf of the shared field, a heap search over it, and exact distances.

The rules of the field are written again here from the text of ``reprl/coupling/gumbel_field.py``: whole numbers for
addresses, true times T instead of scaled ones, plain products instead of logarithms. Only the generator, which has
references of its own, is shared with the package.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.randomness import SharedKey, philox

_MASK = 2**64 - 1

Leaf = tuple[int, ...]


def child_address(address: int, child: int) -> int:
    """The splitmix64 finaliser of the parent's address plus (child + 1) golden steps."""
    z = (address + 0x9E3779B97F4A7C15 * (child + 1)) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def block_root(block: int) -> int:
    """The root of a block's tree; a joint draw is block 0."""
    return child_address(0, block)


class Node(NamedTuple):
    """A node of the tree: where it is, and the earliest arrival below it."""

    path: Leaf
    address: int
    time: float


class Field:
    """The arrival times of one shared key over [k]ⁿ, walked from the root."""

    def __init__(self, key: SharedKey, n: int, k: int, block: int = 0) -> None:
        self.key, self.lane = key.words
        self.n, self.k = n, k
        root = block_root(block)
        self.root = Node((), root, self._exponential(root, k) / k**n)

    def _unit(self, address: int, number: int) -> float:
        lane = (int(self.lane) + number // 2) & _MASK
        words = philox(self.key, np.uint64(lane), np.uint64(address))
        return ((int(words[number % 2]) >> 12) + 0.5) / 2.0**52

    def _exponential(self, address: int, number: int) -> float:
        return -math.log(self._unit(address, number))

    def children(self, node: Node) -> list[Node]:
        """One child, chosen uniformly, is the heir of the arrival; each other waits for its own kⁿ⁻ᵈ⁻¹ leaves."""
        heir = int(self._unit(node.address, 0) * self.k)
        leaves = self.k ** (self.n - len(node.path) - 1)
        others = itertools.count(1)
        out = []
        for child in range(self.k):
            wait = 0.0 if child == heir else self._exponential(node.address, next(others)) / leaves
            out.append(Node((*node.path, child), child_address(node.address, child), node.time + wait))
        return out

    def leaves(self) -> dict[Leaf, float]:
        """T of every leaf."""
        level = [self.root]
        for _ in range(self.n):
            level = [child for node in level for child in self.children(node)]
        return {node.path: node.time for node in level}


def enumerate_winner(key: SharedKey, laws: ArrayLike, block: int = 0) -> Leaf:
    """Return argmin T(x)/p(x) by trying every x."""
    rows = np.asarray(laws, dtype=float)
    n, k = rows.shape
    times = Field(key, n, k, block).leaves()

    def score(leaf: Leaf) -> float:
        p = math.prod(float(rows[i, x]) for i, x in enumerate(leaf))
        return times[leaf] / p if p > 0.0 else math.inf

    return min(times, key=score)


def best_first(key: SharedKey, laws: ArrayLike) -> tuple[Leaf, int]:
    """Return the winner and the fewest nodes that any search with these bounds must expand."""
    rows = np.asarray(laws, dtype=float)
    n, k = rows.shape
    field = Field(key, n, k)
    ceiling = [math.prod(float(row.max()) for row in rows[d:]) for d in range(n + 1)]
    heap = [(field.root.time / ceiling[0], 1.0, field.root)]
    expanded = 0
    while True:
        _, spent, node = heapq.heappop(heap)
        depth = len(node.path)
        if depth == n:
            return node.path, expanded
        expanded += 1
        for child in field.children(node):
            p = spent * float(rows[depth, child.path[-1]])
            if p > 0.0:
                heapq.heappush(heap, (child.time / (p * ceiling[depth + 1]), p, child))


def joint_law(laws: ArrayLike) -> NDArray[np.float64]:
    """Probability of every outcome of a product, in lexicographic order."""
    out = np.ones(1)
    for row in np.asarray(laws, dtype=float):
        out = np.multiply.outer(out, row).ravel()
    return out


def total_variation(first: ArrayLike, second: ArrayLike) -> float:
    """TV of two products by enumeration."""
    return 0.5 * float(np.abs(joint_law(first) - joint_law(second)).sum())


def coupling_bound(first: ArrayLike, second: ArrayLike) -> float:
    """2TV/(1 + TV) by enumeration."""
    tv = total_variation(first, second)
    return 2.0 * tv / (1.0 + tv)


def race_disagreement(first: ArrayLike, second: ArrayLike) -> float:
    """Exact disagreement of two runs of one exponential race: 1 − Σ_x 1/Σ_y max(p(y)/p(x), q(y)/q(x))."""
    p, q = joint_law(first), joint_law(second)
    both = (p > 0.0) & (q > 0.0)
    agree = 0.0
    for x in np.flatnonzero(both):
        agree += 1.0 / float(np.maximum(p / p[x], q / q[x]).sum())
    return 1.0 - agree


def any_fails(chances: ArrayLike) -> float:
    """Probability that at least one of several independent events happens."""
    return 1.0 - float(np.prod(1.0 - np.asarray(chances, dtype=float)))

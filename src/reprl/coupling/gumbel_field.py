"""The lazy shared field over a product domain, and the search for its winner.

Every outcome x ∈ [k]ⁿ owns an exponential arrival time T(x), a function of the shared key alone (−log T is a Gumbel
variable). The winner for a law p is argmin T(x) / p(x): its law is exactly p, and two runs with nearby laws mostly pick
the same x. The field is never enumerated. Fix the tree whose level i branches on coordinate i, and let T(node) be the
earliest arrival below a node. Then, whatever p is:

* T(root) is exponential with rate kⁿ;
* the earliest arrival below a node is that of one of its k children, chosen uniformly, the *heir*; each other child
  waits a further exponential time with rate kⁿ⁻ᵈ⁻¹, by memorylessness.

Each of these draws is addressed by (key, path), so both runs see one field however they walk it. T(node) divided by the
largest p below the node bounds every score there, so depth-first branch and bound, best child first, finds the exact
winner in O(nk) memory. ``docs/proofs/coupling.md`` §2 has the argument.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.randomness import philox, unit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30 = np.uint64(30)
_S27 = np.uint64(27)
_S31 = np.uint64(31)

SLICE = 4_000_000
"""Nodes between two looks at the world outside: what bounds the wait after Ctrl-C, to a fraction of a second."""


@njit(cache=True)
def child_address(address: np.uint64, child: int) -> np.uint64:
    """Return the 64-bit address of a child: a bijection of the parent's for each child (the splitmix64 finaliser).

    Two of N visited nodes share an address with probability about N²/2⁶⁵: 3e-8 at a million nodes. Law and coupling
    bound hold up to that.
    """
    z = address + _STEP * np.uint64(child + 1)
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@njit(cache=True, inner=True)
def node_word(key: np.uint64, lane: np.uint64, address: np.uint64, number: int) -> np.uint64:
    """Return shared word `number` of a node: 0 picks the heir, 1 … k−1 delay the other children, k times a root."""
    first, second = philox(key, lane + np.uint64(number >> 1), address)
    return second if number & 1 else first


class Search(NamedTuple):
    """The stack and the incumbent of a search, which can be left and taken up again."""

    depth: NDArray[np.int64]
    choice: NDArray[np.int64]
    address: NDArray[np.uint64]
    time: NDArray[np.float64]
    cost: NDArray[np.float64]
    bound: NDArray[np.float64]
    path: NDArray[np.int64]
    best: NDArray[np.float64]
    """(1,): score of the best leaf so far."""
    progress: NDArray[np.int64]
    """(2,): height of the stack, 0 when no search is under way; nodes expanded."""


def make_search(n: int, k: int) -> Search:
    """Allocate a search over n coordinates with k outcomes each: O(nk) memory, however long it takes."""
    room = n * (k - 1) + 2
    return Search(
        depth=np.empty(room, dtype=np.int64),
        choice=np.empty(room, dtype=np.int64),
        address=np.empty(room, dtype=np.uint64),
        time=np.empty(room),
        cost=np.empty(room),
        bound=np.empty(room),
        path=np.empty(n, dtype=np.int64),
        best=np.empty(1),
        progress=np.zeros(2, dtype=np.int64),
    )


@njit(cache=True)
def begin(search: Search, key: np.uint64, lane: np.uint64, k: int) -> None:
    """Put the tree's root on the stack."""
    root = child_address(np.uint64(0), 0)
    search.depth[0] = 0
    search.choice[0] = 0
    search.address[0] = root
    search.time[0] = -math.log(unit(node_word(key, lane, root, k)))
    search.cost[0] = 0.0
    search.bound[0] = math.log(search.time[0])
    search.best[0] = math.inf
    search.progress[0] = 1
    search.progress[1] = 0


@njit(cache=True, inline="always", inner=True)
def _expand(
    key: np.uint64, lane: np.uint64, penalty: NDArray[np.float64], log_k: float, search: Search, floor: int, best: float
) -> int:
    """Put the children of the node at `floor` that may still win in its place, the best one last; return the height."""
    depth, choice, address = search.depth, search.choice, search.address
    time, cost, bound = search.time, search.cost, search.bound
    k = penalty.shape[1]
    d, here, reached = depth[floor], address[floor], bound[floor]
    inherited = time[floor] / k
    spent = cost[floor] + log_k
    first, second = philox(key, lane, here)
    block = 0
    heir = min(int(unit(first) * k), k - 1)
    top = floor
    for child in range(k):
        total = spent + penalty[d, child]
        if total == math.inf:
            continue
        arrival = inherited
        score = reached + penalty[d, child]
        if child != heir:
            number = child + 1 if child < heir else child
            if number >> 1 != block:
                block = number >> 1
                first, second = philox(key, lane + np.uint64(block), here)
            arrival -= math.log(unit(second if number & 1 else first))
            score = math.log(arrival) + total
        if score >= best:
            continue
        slot = top
        while slot > floor and bound[slot - 1] < score:
            depth[slot], choice[slot], address[slot] = depth[slot - 1], choice[slot - 1], address[slot - 1]
            time[slot], cost[slot], bound[slot] = time[slot - 1], cost[slot - 1], bound[slot - 1]
            slot -= 1
        depth[slot], choice[slot], address[slot] = d + 1, child, child_address(here, child)
        time[slot], cost[slot], bound[slot] = arrival, total, score
        top += 1
    return top


@njit(cache=True)
def find_winner(
    key: np.uint64, lane: np.uint64, penalty: NDArray[np.float64], search: Search, pause: int, out: NDArray[np.int64]
) -> None:
    """Go on with a search for argmin T(x)/p(x) until it is over or has expanded `pause` nodes in all.

    Args:
        key: Philox key of the shared address.
        lane: counter lane of the shared address.
        penalty: (n, k) values log(max_j p_i(j) / p_i(x)) ≥ 0, infinite where p is 0.
        search: stack and incumbent; its height is 0 when the search is over.
        pause: nodes, counted from the beginning of this search.
        out: (n,) the winner so far.

    The time of a node at depth d is kept as t = T · kⁿ⁻ᵈ, in units of the mean wait for its subtree: an heir has t/k,
    any other child t/k + Exp(1). Scores are compared as log t + d log k + Σ penalty, which differs from log(T/p) by a
    constant. An heir's score is its parent's plus its penalty, with no logarithm, so n is not limited by the range of
    floating-point numbers: along a thousand heirs t fades to 0, where only t + Exp(1) still needs it.
    """
    n, k = penalty.shape
    log_k = math.log(k)
    depth, choice, bound, path = search.depth, search.choice, search.bound, search.path
    best = search.best[0]
    top, nodes = search.progress
    while top > 0 and nodes < pause:
        top -= 1
        if bound[top] >= best:
            continue
        d = depth[top]
        if d > 0:
            path[d - 1] = choice[top]
        if d == n:
            best = bound[top]
            out[:] = path[:n]
            continue
        nodes += 1
        top = _expand(key, lane, penalty, log_k, search, top, best)
    search.best[0] = best
    search.progress[0] = top
    search.progress[1] = nodes

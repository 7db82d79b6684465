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

import numpy as np
from numba import njit
from numpy.typing import NDArray

from reprl.randomness import philox, unit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30 = np.uint64(30)
_S27 = np.uint64(27)
_S31 = np.uint64(31)


@njit(cache=True)
def child_address(address: np.uint64, child: int) -> np.uint64:
    """Return the 64-bit address of a child: a bijection of the parent's for each child (the splitmix64 finaliser).

    Two of N visited nodes share an address with probability about N²/2⁶⁵: 3e-8 at a million nodes. Both runs see the
    same coincidence, so it could bend the law p by that much, never the agreement of two runs.
    """
    z = address + _STEP * np.uint64(child + 1)
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@njit(cache=True)
def node_word(key: np.uint64, lane: np.uint64, address: np.uint64, number: int) -> np.uint64:
    """Return shared word `number` of a node: 0 picks the heir, 1 … k−1 delay the other children, k times a root."""
    first, second = philox(key, lane + np.uint64(number >> 1), address)
    return second if number & 1 else first


@njit(cache=True)
def find_winner(
    key: np.uint64,
    lane: np.uint64,
    root: np.uint64,
    penalty: NDArray[np.float64],
    max_nodes: int,
    out: NDArray[np.int64],
) -> int:
    """Write argmin T(x)/p(x) over one product of n laws into out; return the nodes expanded, or −1 past max_nodes.

    Args:
        key: Philox key of the shared address.
        lane: counter lane of the shared address.
        root: address of the tree's root.
        penalty: (n, k) values log(max_j p_i(j) / p_i(x)) ≥ 0, infinite where p is 0.
        max_nodes: work guard.
        out: (n,) the winner.

    The time of a node at depth d is kept as t = T · kⁿ⁻ᵈ, in units of the mean wait for its subtree: an heir has t/k,
    any other child t/k + Exp(1). Scores are compared as log t + d log k + Σ penalty, which differs from log(T/p) by a
    constant. An heir's score is its parent's plus its penalty, with no logarithm, so n is not limited by the range of
    floating-point numbers: along a thousand heirs t fades to 0, where only t + Exp(1) still needs it.
    """
    n, k = penalty.shape
    log_k = math.log(k)
    room = n * (k - 1) + 2
    depth = np.empty(room, np.int64)
    choice = np.empty(room, np.int64)
    address = np.empty(room, np.uint64)
    time = np.empty(room)
    cost = np.empty(room)
    bound = np.empty(room)
    path = np.empty(n, np.int64)

    best = math.inf
    nodes = 0
    depth[0] = 0
    choice[0] = 0
    address[0] = root
    time[0] = -math.log(unit(node_word(key, lane, root, k)))
    cost[0] = 0.0
    bound[0] = math.log(time[0])
    top = 1
    while top > 0:
        top -= 1
        if bound[top] >= best:
            continue
        d = depth[top]
        if d > 0:
            path[d - 1] = choice[top]
        if d == n:
            best = bound[top]
            out[:] = path
            continue
        nodes += 1
        if nodes > max_nodes:
            return -1
        here = address[top]
        reached = bound[top]
        inherited = time[top] / k
        spent = cost[top] + log_k
        first, second = philox(key, lane, here)
        block = 0
        heir = min(int(unit(first) * k), k - 1)
        floor = top
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
    return nodes


@njit(cache=True)
def find_winners(
    key: np.uint64,
    lane: np.uint64,
    first_block: int,
    block: int,
    penalty: NDArray[np.float64],
    max_nodes: int,
    out: NDArray[np.int64],
    nodes: NDArray[np.int64],
) -> None:
    """Run find_winner on consecutive blocks of rows; block j, counted from first_block, has its own tree."""
    n = penalty.shape[0]
    for j in range(nodes.size):
        low = j * block
        high = min(low + block, n)
        root = child_address(np.uint64(0), first_block + j)
        nodes[j] = find_winner(key, lane, root, penalty[low:high], max_nodes, out[low:high])

"""Replicable R-max (Eaton, Hussing, Kearns, Sorrell 2023) for finite horizons: the replicable baseline by episodes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.rounding import round_vector
from reprl.errors import InputError
from reprl.kernels import njit
from reprl.lab.baselines.task import BaselineTask
from reprl.mdp.outcomes import Outcomes
from reprl.mdp.planning import greedy_policy
from reprl.mdp.policy import Policy
from reprl.randomness import SharedKey
from reprl.sources.episodes import walk
from reprl.sources.protocol import Episodic

RMAX_REACH = 1.0
"""Practical β, the share of a round's episodes that makes a pair known: this · ε/(H²·S)."""
RMAX_WIDTH = 2.0
"""Practical width of the grids of the frozen model: this · ε/H, at most a quarter."""
RMAX_VISITS = 0.0025
"""Practical visits β·n at the threshold: this · (N/(ρ·width))²."""
RMAX_ROUNDS = 0.25
"""Rounds that a budget is divided over, relative to N."""
_DENSE = 2**27


class _Design(NamedTuple):
    """What is fixed before the first episode."""

    reach: float
    """β: a pair becomes known at a threshold between β·n and 2β·n visits."""
    width: float
    visits: float
    """β·n."""


class _Model(NamedTuple):
    """The R-max model: what is known is frozen, everything else is worth the maximum."""

    known: NDArray[np.bool_]
    """(H, S, A)"""
    transition: NDArray[np.float64]
    """(H, S, A, S)"""
    reward: NDArray[np.float64]
    """(H, S, A)"""


def replicable_rmax(task: BaselineTask, *, rounds: int | None = None) -> Policy:
    """Replicable R-max over pairs (h, s, a).

    Plan in the R-max model, where an unknown pair is worth H − h; play n fresh episodes of that policy; every unknown
    pair with at least T visits among them becomes known, T being shared and uniform in [βn, 2βn]; its transitions and
    reward are rounded on shared shifted grids (a share in the grid cell of 0 is taken for 0), renormalised and frozen.
    Stop when nothing becomes known, and return the last plan.

    A budget is divided evenly over the rounds beforehand: n must not depend on data. rounds is None for N = H·S·A,
    which cannot be passed, or with a budget for what practice needed of N.

    Guarantee:
        "paper": β = ε/(6H²S), width = ε/(16H²S), and n such that, with N² pairs of a round and a cell and N·(S+1)
        rounded numbers, two runs agree on all of them with probability 1 − ρ/2 once every frequency is within its
        Hoeffding bound, which fails with probability min(δ, ρ/4). The constants are this reconstruction's.

    Randomness:
        Shared: ("replicable-rmax", "threshold", round) and coordinate s' (S for the reward) of ("replicable-rmax",
        "model", h, s, a). Data: one batch of the model per round.
    """
    shape, cells, key = task.shape, task.cells, task.key
    if cells * shape[1] > _DENSE:
        raise InputError(f"replicable-rmax must have H·S²·A of at most {_DENSE}, got {cells * shape[1]}")
    design = (_paper if task.paper else _practical)(task)
    share = math.ceil(RMAX_ROUNDS * cells)
    most = rounds if rounds is not None else cells + 1 if task.samples is None else share + 1

    def needed() -> float:
        return math.ceil(design.visits / design.reach)

    each = task._replace(samples=None if task.samples is None else task.samples // most)
    episodes = each.episodes(paper=needed, practical=needed)
    in_all = task._replace(samples=None)  # refuses what no ledger can hold
    in_all.episodes(paper=lambda: float(episodes) * most, practical=lambda: float(episodes) * most)
    found = _Model(np.zeros(shape, np.bool_), np.zeros((*shape, shape[1])), np.zeros(shape))
    policy = plan(found)
    for number in range(most):
        following, paid = play(task.model, policy, episodes)
        shift = float(key.derive("threshold", number).uniforms(1)[0])
        threshold = max(1.0, design.reach * episodes * (1.0 + shift))
        if not _freeze(key.derive("model"), found, policy, following, paid, threshold, design.width):
            break
        policy = plan(found)
    return policy


def plan(found: _Model) -> Policy:
    """Return the optimal policy of an R-max model, lowest action on ties."""
    horizon, n_states, _ = found.known.shape
    scores = np.empty(found.known.shape)
    value = np.zeros(n_states)
    for h in reversed(range(horizon)):
        scores[h] = np.where(found.known[h], found.reward[h] + found.transition[h] @ value, float(horizon - h))
        value = scores[h].max(axis=1)
    return greedy_policy(scores)


def play(model: Episodic, policy: Policy, episodes: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Play fresh episodes of a policy; return next-state counts (H, S, S) and reward sums (H, S) of its cells.

    Guarantee:
        Where the model has tables, exactly the law of the counts of so many independent episodes, in time that does
        not depend on their number.
    """
    horizon, n_states = policy.actions.shape
    following = np.zeros((horizon, n_states, n_states), dtype=np.int64)
    paid = np.zeros((horizon, n_states))
    arrays = model.arrays
    if arrays is None:
        for _ in range(episodes):
            s = model.reset()
            for h in range(horizon):
                seen = model.step(int(policy.actions[h, s]))
                following[h, s, seen.state] += 1
                paid[h, s] += seen.reward
                s = seen.state
        return following, paid
    key = model.fresh_stream("replicable-rmax").key
    hits = walk(arrays.outcomes, arrays.probability, arrays.initial, policy.actions, episodes, key)
    _read_walk(arrays.outcomes, policy.actions, hits, following, paid)
    model.ledger.episodes += episodes
    model.ledger.samples += episodes * model.samples_per_episode
    return following, paid


@njit(cache=True)
def _read_walk(
    outcomes: Outcomes,
    actions: NDArray[np.int64],
    hits: NDArray[np.int64],
    following: NDArray[np.int64],
    paid: NDArray[np.float64],
) -> None:
    """Sort what a walk saw by cell and next state, and add up the rewards of each cell in table order."""
    for h in range(outcomes.horizon):
        for s in range(outcomes.n_states):
            row = h * outcomes.row_shift + s * outcomes.n_actions + actions[h, s]
            for e in range(outcomes.first[row], outcomes.first[row + 1]):
                seen = hits[e + h * outcomes.slot_shift]
                following[h, s, outcomes.next_state[e]] += seen
                paid[h, s] += seen * outcomes.reward[e]


def _freeze(
    key: SharedKey,
    found: _Model,
    policy: Policy,
    following: NDArray[np.int64],
    paid: NDArray[np.float64],
    threshold: float,
    width: float,
) -> bool:
    """Make the policy's pairs with enough visits known; return whether there were any."""
    visits = following.sum(axis=2)
    fresh = False
    for h, s in np.argwhere(visits >= threshold):
        a = int(policy.actions[h, s])
        if found.known[h, s, a]:
            continue
        means = np.append(following[h, s], paid[h, s]) / visits[h, s]
        law, reward = round_cell(key.derive(int(h), int(s), a), means, width)
        found.known[h, s, a], found.transition[h, s, a], found.reward[h, s, a] = True, law, reward
        fresh = True
    return fresh


def round_cell(key: SharedKey, means: NDArray[np.float64], width: float) -> tuple[NDArray[np.float64], float]:
    """Round S next-state shares and a mean reward on shifted grids; return a law and a reward."""
    rounded = round_vector(key, means, width=width, method="grid")
    shares = np.where(rounded[:-1] > 0.5 * width, rounded[:-1], 0.0)
    if shares.sum() == 0.0:  # so coarse a grid says nothing about the next state
        shares = np.ones_like(shares)
    return shares / shares.sum(), float(np.clip(rounded[-1], 0.0, 1.0))


def _practical(task: BaselineTask) -> _Design:
    (horizon, n_states, _), epsilon = task.shape, task.epsilon
    width = min(0.25, RMAX_WIDTH * epsilon / horizon)
    visits = RMAX_VISITS * (task.cells / (task.rho * width)) ** 2
    return _Design(min(0.5, RMAX_REACH * epsilon / (horizon**2 * n_states)), width, visits)


def _paper(task: BaselineTask) -> _Design:
    (horizon, n_states, _), cells, rho = task.shape, task.cells, task.rho
    reach, width = task.epsilon / (6.0 * horizon**2 * n_states), task.epsilon / (16.0 * horizon**2 * n_states)
    log = math.log(2.0 * cells**2 * (n_states + 2.0) / min(task.delta, rho / 4.0))
    by_threshold = (8.0 * cells**2 / (reach * rho)) ** 2 * log / 2.0 * reach
    by_rounding = (8.0 * cells * (n_states + 1.0) / (width * rho)) ** 2 * log / 2.0
    return _Design(reach, width, max(by_threshold, by_rounding))

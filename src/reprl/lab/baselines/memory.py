"""What a model-based episodic baseline has seen and plans: kernels over flat arrays, and the same by reset and step.

A kernel plays a model that has tables; a black box is played from Python with the same `record` and `replan`, its
outcomes counted by next state.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError
from reprl.kernels import njit
from reprl.mdp.draws import draw_outcome
from reprl.mdp.outcomes import Outcomes
from reprl.mdp.policy import Policy
from reprl.randomness import philox
from reprl.sources.protocol import EpisodeArrays, Episodic

_SLICE = 2_000_000
"""Steps or planned outcomes between two looks at the world outside: what bounds the wait after Ctrl-C."""
_DENSE = 2**27
_ONE = np.uint64(1)


class Optimism(NamedTuple):
    """What an agent adds to the mean of a cell of step h that was seen n times, and when it plans anew."""

    scale: NDArray[np.float64]
    """(H,): bonus scale[h]·sqrt((fixed + slope·log(1 + n/per))/n)."""
    fixed: float
    slope: float
    per: float
    reward: float
    """Weight of the rewards: 1, or 0 for reward-free exploration."""
    unseen: float
    """Score of a cell without samples: infinite, or 0 for a plan without optimism."""
    growth: float
    """A plan is made anew when some cell has this many times the visits it had at the last one; 0: every episode."""
    stop: float
    """Stop once every start is worth at most this; −1 for never."""


class Memory(NamedTuple):
    """Counts of cells (h·S + s)·A + a, and the current plan."""

    visits: NDArray[np.int64]
    paid: NDArray[np.float64]
    """Sum of rewards."""
    hits: NDArray[np.int64]
    """Numbers of outcomes, as in Counts."""
    due: NDArray[np.int64]
    """Visits at which a new plan is due."""
    choice: NDArray[np.int64]
    """(H·S,)"""
    value: NDArray[np.float64]
    """((H+1)·S,)"""
    started: NDArray[np.bool_]
    """(S,): states that an episode has started in."""


def make_memory(outcomes: Outcomes) -> Memory:
    """Allocate an empty memory over a table of outcomes."""
    horizon, n_states, n_actions = outcomes.shape
    cells = horizon * n_states * n_actions
    return Memory(
        np.zeros(cells, dtype=np.int64),
        np.zeros(cells),
        np.zeros(outcomes.n_slots, dtype=np.int64),
        np.ones(cells, dtype=np.int64),
        np.zeros(horizon * n_states, dtype=np.int64),
        np.zeros((horizon + 1) * n_states),
        np.zeros(n_states, dtype=np.bool_),
    )


def table_of(model: Episodic) -> Outcomes:
    """Return the table that a model's outcomes are counted in: its own, or one row entry per next state."""
    if model.arrays is not None:
        return model.arrays.outcomes
    horizon, n_states, n_actions = model.horizon, model.n_states, model.n_actions
    cells = n_states * n_actions
    if horizon * cells * n_states > _DENSE:
        raise InputError(
            f"a black box must have H·S²·A of at most {_DENSE} to be modelled, got {horizon * cells * n_states}"
        )
    first = np.arange(cells + 1, dtype=np.int64) * n_states
    following = np.tile(np.arange(n_states, dtype=np.int32), cells)
    return Outcomes(horizon, n_states, n_actions, 0, following.size, first, following, np.zeros(following.size))


@njit(cache=True, nogil=True)
def replan(outcomes: Outcomes, memory: Memory, optimism: Optimism, scores: NDArray[np.float64]) -> None:
    """Backward induction on the counts: fill scores (H·S·A,), choices (lowest on ties) and values.

    Values are capped at H − h, scores are not: among actions whose capped scores tie, the least known is tried first.
    """
    horizon, n_states, n_actions = outcomes.horizon, outcomes.n_states, outcomes.n_actions
    memory.value[horizon * n_states :] = 0.0
    for h in range(horizon - 1, -1, -1):
        most = float(horizon - h)
        for s in range(n_states):
            best = 0
            for a in range(n_actions):
                cell = (h * n_states + s) * n_actions + a
                n = memory.visits[cell]
                memory.due[cell] = max(n + 1, math.ceil(n * optimism.growth))
                if n == 0:
                    scores[cell] = optimism.unseen
                else:
                    row = h * outcomes.row_shift + s * n_actions + a
                    total = optimism.reward * memory.paid[cell]
                    for e in range(outcomes.first[row], outcomes.first[row + 1]):
                        following = memory.value[(h + 1) * n_states + outcomes.next_state[e]]
                        total += memory.hits[e + h * outcomes.slot_shift] * following
                    width = optimism.fixed + optimism.slope * math.log(1.0 + n / optimism.per)
                    scores[cell] = total / n + optimism.scale[h] * math.sqrt(width / n)
                if scores[cell] > scores[cell - a + best]:
                    best = a
            memory.choice[h * n_states + s] = best
            memory.value[h * n_states + s] = min(most, scores[(h * n_states + s) * n_actions + best])


@njit(cache=True, nogil=True)
def record(memory: Memory, cell: int, slot: int, reward: float) -> bool:
    """Count one step; return whether its cell asks for a new plan."""
    memory.visits[cell] += 1
    memory.paid[cell] += reward
    memory.hits[slot] += 1
    return bool(memory.visits[cell] >= memory.due[cell])


@njit(cache=True, nogil=True)
def satisfied(memory: Memory, stop: float) -> bool:
    """Whether every start seen so far is worth at most `stop`."""
    largest = -math.inf
    for s in range(memory.started.size):
        if memory.started[s]:
            largest = max(largest, memory.value[s])
    return largest <= stop


@njit(cache=True, nogil=True)
def word(key: np.uint64, episode: np.uint64, number: int) -> np.uint64:
    """Return word `number` of an episode's lane: 0 draws the start, h + 1 the outcome of step h."""
    first, second = philox(key, episode, np.uint64(number >> 1))
    return second if number & 1 else first


@njit(cache=True, nogil=True)
def _play(
    world: EpisodeArrays,
    memory: Memory,
    optimism: Optimism,
    scores: NDArray[np.float64],
    key: np.uint64,
    first: int,
    episodes: int,
) -> int:
    """Play episodes first, first + 1, …; return how many were played before the stop."""
    outcomes = world.outcomes
    n_states, n_actions, horizon = outcomes.n_states, outcomes.n_actions, outcomes.horizon
    for episode in range(first, first + episodes):
        lane = np.uint64(episode)
        s = world.start_state[draw_outcome(world.start, 0, word(key, lane, 0))]
        memory.started[s] = True
        due = False
        for h in range(horizon):
            row = s * n_actions + memory.choice[h * n_states + s]
            e = draw_outcome(world.table, h * outcomes.row_shift + row, word(key, lane, h + 1))
            cell = h * n_states * n_actions + row
            due |= record(memory, cell, e + h * outcomes.slot_shift, outcomes.reward[e])
            s = outcomes.next_state[e]
        if due:
            replan(outcomes, memory, optimism, scores)
            if satisfied(memory, optimism.stop):
                return episode - first + 1
    return episodes


def explore(model: Episodic, optimism: Optimism, episodes: int, purpose: str) -> tuple[Outcomes, Memory]:
    """Play up to `episodes` episodes of a model, always the choices of the current plan, and charge them.

    Randomness:
        Data stream (data seed, purpose + number of the model's batch), lane = episode; or the model's own reset and
        step where it is a black box.
    """
    outcomes = table_of(model)
    memory = make_memory(outcomes)
    scores = np.empty(memory.visits.size)
    replan(outcomes, memory, optimism, scores)
    arrays = model.arrays
    if arrays is None:
        _play_by_steps(model, outcomes, memory, optimism, scores, episodes)
        return outcomes, memory
    key = np.uint64(model.fresh_stream(purpose).key)
    per_slice = max(1, _SLICE // (model.horizon if optimism.growth > 0.0 else memory.hits.size))
    done = 0
    while done < episodes:
        wanted = min(per_slice, episodes - done)
        played = _play(arrays, memory, optimism, scores, key, done, wanted)
        model.ledger.episodes += played
        model.ledger.samples += played * model.samples_per_episode
        done += played
        if played < wanted or satisfied(memory, optimism.stop):
            break
    return outcomes, memory


def _play_by_steps(
    model: Episodic, outcomes: Outcomes, memory: Memory, optimism: Optimism, scores: NDArray[np.float64], episodes: int
) -> None:
    """The kernel's loop for a black box, which charges its own ledger."""
    horizon, n_states, n_actions = outcomes.shape
    for _ in range(episodes):
        s = model.reset()
        memory.started[s] = True
        due = False
        for h in range(horizon):
            a = int(memory.choice[h * n_states + s])
            seen = model.step(a)
            slot = h * outcomes.slot_shift + (s * n_actions + a) * n_states + seen.state
            due |= record(memory, (h * n_states + s) * n_actions + a, slot, seen.reward)
            s = seen.state
        if due:
            replan(outcomes, memory, optimism, scores)
            if satisfied(memory, optimism.stop):
                return


def plain(horizon: int) -> Optimism:
    """No optimism: the empirical model as it is, cells without samples worth nothing."""
    return Optimism(np.zeros(horizon), 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, -1.0)


def plan_policy(outcomes: Outcomes, memory: Memory, optimism: Optimism) -> Policy:
    """Return the greedy policy of a plan on everything seen."""
    replan(outcomes, memory, optimism, np.empty(memory.visits.size))
    return Policy(memory.choice.reshape(outcomes.horizon, outcomes.n_states).copy())

"""Algorithm 3 (QAgent): the optimistic Q-learning agent, with the phantom actions of Algorithm 4, as kernels.

The agent never sees a reward. It is offered every action twice: the real action leads on; its phantom takes the same
action, has the outcome *recorded*, and tells the agent that the episode is over. So an episode records exactly one
outcome, and the records of a cell are independent draws of its law given how many there are. At the last step only
phantoms are offered: a real action would teach the agent the same and record nothing.

The kernels are plain Python over flat arrays, integers and floats, without allocation.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.draws import draw_outcome
from reprl.randomness import philox
from reprl.sources.protocol import EpisodeArrays

Number = TypeVar("Number", np.float64, np.int64, np.uint64)

_TABLE = 1024
_WORDS = 64
_MASK = _WORDS - 1


class Schedule(NamedTuple):
    """Learning rates α_t = (H+1)/(H+t) and bonuses b_t = scale/√t, tabulated for small t."""

    horizon: int
    scale: float
    """c·sqrt(H³ log(S·2A·K·H/ι))."""
    guide: float
    """Bonus of a real action relative to that of a phantom: 1 in theory."""
    rate: NDArray[np.float64]
    bonus: NDArray[np.float64]


class Agent(NamedTuple):
    """The agent's tables; cell = h·S + s, action a < A real, A + a its phantom."""

    q: NDArray[np.float64]
    """(H·S·2A,)"""
    visits: NDArray[np.int64]
    """(H·S·2A,): those of a phantom are the records of its cell."""
    choice: NDArray[np.int64]
    """(H·S,): the current best action, lowest index on ties."""
    value: NDArray[np.float64]
    """((H+1)·S,)"""
    words: NDArray[np.uint64]
    """Buffer of random words of the run."""


def make_schedule(
    n_states: int,
    n_actions: int,
    horizon: int,
    *,
    episodes: int,
    bonus: float,
    guide: float,
    failure: float,
    phantoms: bool = True,
) -> Schedule:
    """Tabulate rates and bonuses: c = bonus (2 in theory), ι = failure, K = episodes; phantoms double the actions."""
    offered = 2.0 if phantoms else 1.0
    scale = bonus * math.sqrt(horizon**3 * math.log(offered * n_states * n_actions * episodes * horizon / failure))
    t = np.arange(1, _TABLE + 1)
    return Schedule(horizon, scale, guide, (horizon + 1.0) / (horizon + t), scale / np.sqrt(t))


def make_agent(n_states: int, n_actions: int, horizon: int) -> Agent:
    """Allocate the tables of one agent; `restart` fills them."""
    cells = horizon * n_states
    return Agent(
        zeros_apart(cells * 2 * n_actions, np.float64),
        zeros_apart(cells * 2 * n_actions, np.int64),
        zeros_apart(cells, np.int64),
        zeros_apart(cells + n_states, np.float64),
        zeros_apart(_WORDS, np.uint64),
    )


def zeros_apart(n: int, kind: type[Number]) -> NDArray[Number]:
    """Allocate n zeros of 8 bytes with 128 bytes to spare on both sides: two threads never write to one cache line."""
    return np.zeros(n + 32, dtype=kind)[16 : 16 + n]


@njit(cache=True, nogil=True)
def restart(agent: Agent, n_states: int, n_actions: int, horizon: int) -> None:
    """Forget everything: Q = V = H, no visits; real actions are not offered at the last step."""
    width = 2 * n_actions
    agent.q[:] = horizon
    agent.visits[:] = 0
    agent.choice[:] = 0
    agent.value[: horizon * n_states] = horizon
    agent.value[horizon * n_states :] = 0.0
    for cell in range((horizon - 1) * n_states, horizon * n_states):
        agent.choice[cell] = n_actions
        for a in range(n_actions):
            agent.q[cell * width + a] = -math.inf


@njit(cache=True, nogil=True)
def update(agent: Agent, schedule: Schedule, cell: int, action: int, width: int, future: float) -> None:
    """Learn from one step: move Q towards future + bonus, then find the cell's new value and best action."""
    q, visits = agent.q, agent.visits
    base = np.uint64(cell * width)  # unsigned, so that no index is taken for one counted from the end
    at = base + np.uint64(action)
    t = visits[at] + 1
    visits[at] = t
    if t <= _TABLE:
        rate = schedule.rate[t - 1]
        bonus = schedule.bonus[t - 1]
    else:
        rate = (schedule.horizon + 1.0) / (schedule.horizon + t)
        bonus = schedule.scale / math.sqrt(t)
    if 2 * action < width:
        bonus *= schedule.guide
    q[at] = (1.0 - rate) * q[at] + rate * (future + bonus)
    best = 0
    largest = q[base]
    for a in range(1, width):
        other = q[base + np.uint64(a)]
        if other > largest:
            largest = other
            best = a
    agent.choice[cell] = best
    agent.value[cell] = min(float(schedule.horizon), largest)


@njit(cache=True, nogil=True)
def refill(key: np.uint64, run: np.uint64, block: np.uint64, words: NDArray[np.uint64]) -> None:
    """Read the next blocks of the run's stream into the buffer."""
    for i in range(words.size // 2):
        first, second = philox(key, run, block + np.uint64(i))
        words[2 * i] = first
        words[2 * i + 1] = second


@njit(cache=True, nogil=True)
def explore_episodes(
    world: EpisodeArrays,
    agent: Agent,
    schedule: Schedule,
    key: np.uint64,
    run: np.uint64,
    position: int,
    episodes: int,
    hits: NDArray[np.int64],
) -> tuple[int, int]:
    """Run episodes, adding their records to hits; return (position in the stream, samples drawn).

    Args:
        world: the MDP's sampling tables.
        agent: tables of this run, restarted or left by an earlier call.
        schedule: rates and bonuses.
        key: Philox key of the data stream.
        run: lane of the data stream.
        position: words of the stream used so far, a multiple of the buffer's size unless the buffer holds the rest.
        episodes: how many to run.
        hits: (n_slots,) counts to add to.
    """
    outcomes = world.outcomes
    choice, value, words = agent.choice, agent.value, agent.words
    n_states, n_actions, horizon = outcomes.n_states, outcomes.n_actions, outcomes.horizon
    width = 2 * n_actions
    samples = 0
    for _ in range(episodes):
        s = world.start_state[0]
        if world.start_state.size > 1:
            if position & _MASK == 0:
                refill(key, run, np.uint64(position >> 1), words)
            w = words[position & _MASK]
            position += 1
            samples += 1
            s = world.start_state[draw_outcome(world.start, 0, w)]
        for h in range(horizon):
            cell = h * n_states + s
            action = choice[cell]
            phantom = action >= n_actions
            row = h * outcomes.row_shift + s * n_actions + (action - n_actions if phantom else action)
            if position & _MASK == 0:
                refill(key, run, np.uint64(position >> 1), words)
            w = words[position & _MASK]
            position += 1
            samples += 1
            e = draw_outcome(world.table, row, w)
            if phantom:
                hits[e + h * outcomes.slot_shift] += 1
                update(agent, schedule, cell, action, width, 0.0)
                break
            s = outcomes.next_state[e]
            update(agent, schedule, cell, action, width, value[(h + 1) * n_states + s])
    return position, samples


@njit(cache=True, nogil=True)
def mark_short(visits: NDArray[np.int64], quota: int, short: NDArray[np.int64], missed: NDArray[np.bool_]) -> None:
    """Where some phantom action of (h, s) was taken fewer than `quota` times, add 1 to short and set missed, (H, S)."""
    horizon, n_states = short.shape
    width = visits.size // (horizon * n_states)
    for h in range(horizon):
        for s in range(n_states):
            base = (h * n_states + s) * width
            fewest = visits[base + width // 2]
            for a in range(width // 2 + 1, width):
                fewest = min(fewest, visits[base + a])
            missed[h, s] = fewest < quota
            if missed[h, s]:
                short[h, s] += 1

"""Simulated second teams: each redraws the samples, meets what no sample has shown, and applies the rule.

Draws are read at (data seed, round, team, row), and sums are taken in blocks of BLOCK teams: the results are the same
bytes for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.draws import cumulate, multinomial
from reprl.mdp.evidence import Evidence
from reprl.mdp.model import Model
from reprl.randomness import DataStream, philox, unit
from reprl.rule.draws import Draws
from reprl.rule.soft import Asked, Choice, Room, add_up, apply_rule, lost, make_room, soften_losses, temperature

BLOCK = 10
"""Teams of one task."""
_NONE = 0.36787944117144233  # Pr[Poisson(1) = 0]


class Round(NamedTuple):
    """What all teams of a round share."""

    evidence: Evidence
    asked: Asked
    draws: Draws
    policy: NDArray[np.int64]
    """(H, S): the run's own."""
    choice: Choice
    """The run's own."""
    haunted: NDArray[np.bool_]
    """(rows,): rows in which a team may meet what no sample has shown."""
    places: NDArray[np.int64]
    """(4, H+1): the worst, best and lossy state of every step, and the worst for the run's own policy."""
    none: NDArray[np.float64]
    """(0, outcomes): teams have no halves."""
    scale: int = 1
    """Samples of a team for every sample of the run."""
    weighs: bool = False
    """Whether teams tell their excess costs."""


class Answers(NamedTuple):
    """What teams say."""

    differs: NDArray[np.bool_]
    """(teams,): whether a team prints another policy."""
    loses: NDArray[np.bool_]
    """(teams,): whether it says that the run's policy loses more than is allowed."""
    apart: NDArray[np.float64]
    """(H, S): share of the teams that take another action."""
    mean: NDArray[np.float64]
    """(groups, S, A): of the excess costs of the try that the run's policy passed; 0 where an action is not allowed."""
    deviation: NDArray[np.float64]
    """Their standard deviation."""


def ask_teams(now: Round, name: str, data_seed: int, numbers: range, pool: ThreadPoolExecutor | None) -> Answers:
    """Return the answers of teams, by number.

    Args:
        now: what they share.
        name: of the round.
        data_seed: of the run.
        numbers: of the teams; a multiple of BLOCK.
        pool: threads; None for this one.

    Randomness:
        Data streams (data seed, "teams/ROUND/TEAM").
    """
    ask = partial(_ask_block, now, name, data_seed)
    return gather_answers(now, ask, numbers, pool)


def gather_answers(
    now: Round, ask: Callable[[range], Told], numbers: range, pool: ThreadPoolExecutor | None
) -> Answers:
    """Ask teams by blocks and add their answers up."""
    blocks = [numbers[i : i + BLOCK] for i in range(0, len(numbers), BLOCK)]
    parts = list((map if pool is None else pool.map)(ask, blocks))
    total = np.sum([part.sums for part in parts], axis=0)
    mean = total[0] / len(numbers)
    return Answers(
        np.concatenate([part.differs for part in parts]),
        np.concatenate([part.loses for part in parts]),
        np.sum([part.apart for part in parts], axis=0) / len(numbers),
        mean,
        np.sqrt(np.maximum(total[1] / len(numbers) - mean**2, 0.0)),
    )


def _ask_block(now: Round, name: str, data_seed: int, teams: range) -> Told:
    told = make_told(now, len(teams))
    room = make_room(now.draws, now.asked.order.shape[1])
    _ask(now, *seen_by(now.evidence), keys_of(name, data_seed, teams), make_team(now), room, told)
    return told


def keys_of(name: str, data_seed: int, teams: range) -> NDArray[np.uint64]:
    """Return the keys that teams draw with."""
    return np.array([DataStream(data_seed, f"teams/{name}/{team}").key for team in teams], dtype=np.uint64)


class Team(NamedTuple):
    """Arrays that hold one team at a time."""

    law: NDArray[np.float64]
    """(outcomes,)"""
    next_state: NDArray[np.int32]
    initial: NDArray[np.float64]
    """(S,)"""
    drawn: NDArray[np.int64]
    """(outcomes,): its samples."""
    starts: NDArray[np.int64]
    """(S,)"""
    policy: NDArray[np.int64]
    """(H, S)"""


class Told(NamedTuple):
    """What the teams of a block say; one entry for each, but for the sums."""

    differs: NDArray[np.bool_]
    loses: NDArray[np.bool_]
    apart: NDArray[np.float64]
    """(H, S): how many take another action."""
    sums: NDArray[np.float64]
    """(2, groups, S, A): of excess costs and of their squares."""


def make_team(now: Round) -> Team:
    """Return arrays for one team."""
    model = now.evidence.model
    drawn, starts = np.empty(model.law.size, np.int64), np.empty(model.initial.size, np.int64)
    return Team(
        np.empty_like(model.law),
        model.next_state.copy(),
        np.empty_like(model.initial),
        drawn,
        starts,
        np.empty_like(now.policy),
    )


def make_told(now: Round, teams: int) -> Told:
    """Return arrays for the answers of a block."""
    differs, loses = np.zeros((2, teams), dtype=np.bool_)
    sums = np.zeros((2, *now.draws.tolerance.shape[1:], now.asked.order.shape[1]))
    return Told(differs, loses, np.zeros(now.policy.shape), sums)


@njit(cache=True, nogil=True, _nrt=False)
def _ask(
    now: Round,
    hits: Frequencies,
    starts: Frequencies,
    keys: NDArray[np.uint64],
    team: Team,
    room: Room,
    told: Told,
) -> None:
    """Ask the teams with these keys."""
    model = now.evidence.model
    rows = model.first.size - 1
    for k in range(keys.size):
        redraw_rows(keys[k], model.first, hits, now.scale, now.evidence.exact, team.drawn)
        multinomial(keys[k], np.uint64(rows), starts.total * now.scale, starts.law, starts.running, team.starts)
        answer(now, k, keys[k], now.asked, model.allowed, team, room, told)


@njit(cache=True, nogil=True, _nrt=False)
def answer(
    now: Round,
    k: int,
    key: np.uint64,
    asked: Asked,
    allowed: NDArray[np.bool_],
    team: Team,
    room: Room,
    told: Told,
) -> None:
    """Write what team k says, whose samples and starts are drawn; asked and allowed are its own."""
    mine = now.evidence.model
    meet(now, key, team.drawn, team.law, team.next_state)
    begin(now, key, team.starts, team.initial)
    model = Model(mine.first, team.next_state, mine.reward, team.law, mine.shift, allowed, team.initial, mine.gamma)
    theirs = apply_rule(model, now.none, asked, now.draws, room, team.policy)
    told.loses[k] = lost(model, room.gaps, now.policy, room.mass) > theirs.allowed
    for h in range(now.policy.shape[0]):
        for s in range(now.policy.shape[1]):
            if team.policy[h, s] != now.policy[h, s]:
                told.differs[k] = True
                told.apart[h, s] += 1.0
    if now.weighs:
        add_excess(model, now, theirs, room, told.sums)


class Frequencies(NamedTuple):
    """Relative frequencies within rows, as multinomials are drawn from them."""

    hits: NDArray[np.int64]
    law: NDArray[np.float64]
    running: NDArray[np.float64]
    """Sums of the law within each row."""
    total: int
    """All hits."""

    @classmethod
    def of(cls, first: NDArray[np.int64], hits: NDArray[np.int64]) -> Frequencies:
        """Return those of rows first[i] ≤ e < first[i + 1]."""
        law = hits / np.repeat(np.maximum(np.add.reduceat(hits, first[:-1]), 1), np.diff(first))
        return cls(hits, law, cumulate(law, first), int(hits.sum()))


def seen_by(evidence: Evidence) -> tuple[Frequencies, Frequencies]:
    """Return the frequencies of outcomes and of starts that teams redraw."""
    starts = Frequencies.of(np.array([0, evidence.starts.shape[1]]), evidence.starts.sum(axis=0))
    return Frequencies.of(evidence.model.first, evidence.total), starts


@njit(cache=True, nogil=True, _nrt=False)
def redraw_rows(
    key: np.uint64,
    first: NDArray[np.int64],
    seen: Frequencies,
    scale: int,
    exact: NDArray[np.bool_],
    drawn: NDArray[np.int64],
) -> None:
    """Fill drawn with a multinomial for each row, of its frequencies and `scale` times its size; row i reads lane i."""
    for row in range(first.size - 1):
        low, high = first[row], first[row + 1] - 3
        total = 0
        for e in range(low, high):
            total += seen.hits[e]
        for e in range(high, high + 3):
            drawn[e] = 0
        if exact[row] or high - low == 1:
            for e in range(low, high):
                drawn[e] = seen.hits[e] * scale
        elif total > 0:
            multinomial(key, np.uint64(row), total * scale, seen.law[low:high], seen.running[low:high], drawn[low:high])
        else:
            for e in range(low, high):
                drawn[e] = 0


@njit(cache=True, inner=True, _nrt=False)
def meet(
    now: Round, key: np.uint64, drawn: NDArray[np.int64], law: NDArray[np.float64], next_state: NDArray[np.int32]
) -> None:
    """Fill a team's law, with what no sample has shown, and where that leads.

    A haunted row meets a Poisson(1) number of outcomes of one of three kinds. An empty row leads, where the run's own
    policy takes it, to the state that is worst for this policy, and elsewhere to the best. Rows of all steps read the
    states of the team's step, others those of their own next step.
    """
    model = now.evidence.model
    horizon, n_states, n_actions = model.allowed.shape
    rows = model.first.size - 1
    word, _ = philox(key, np.uint64(2 * rows + 1), np.uint64(0))
    shared = min(1 + int(unit(word) * horizon), horizon)
    for row in range(rows):
        low, high = model.first[row], model.first[row + 1] - 3
        cell = row % (n_states * n_actions)
        step = row // (n_states * n_actions) + 1 if model.shift > 0 else shared
        total = 0
        for e in range(low, high):
            total += drawn[e]
        for kind in range(3):
            next_state[high + kind] = now.places[kind, step]
        if total == 0:
            own = now.policy[step - 1, cell // n_actions] == cell % n_actions
            next_state[high] = now.places[3, step]
            drawn[high], drawn[high + 1] = own, not own
            total = 1
        elif now.haunted[row]:
            one, other = philox(key, np.uint64(rows + 1 + row), np.uint64(0))
            extra = poisson(unit(one))
            drawn[high + min(int(3.0 * unit(other)), 2)] = extra
            total += extra
        for e in range(low, high + 3):
            law[e] = drawn[e] / total


@njit(cache=True, inner=True, _nrt=False)
def poisson(u: float) -> int:
    """Return the quantile of Poisson(1)."""
    mass, k = _NONE, 0
    while u > mass and k < 20:
        u -= mass
        k += 1
        mass /= k
    return k


@njit(cache=True, inner=True, _nrt=False)
def begin(now: Round, key: np.uint64, starts: NDArray[np.int64], initial: NDArray[np.float64]) -> None:
    """Fill a team's law of starts, with starts that no episode has shown unless the start is fixed."""
    rows, total = now.evidence.model.first.size - 1, 0
    for s in range(starts.size):
        total += starts[s]
    if not now.evidence.fixed_start:
        one, other = philox(key, np.uint64(2 * rows + 1), np.uint64(1))
        extra = poisson(unit(one))
        starts[now.places[min(int(3.0 * unit(other)), 2), 0]] += extra
        total += extra
    for s in range(initial.size):
        initial[s] = starts[s] / total


@njit(cache=True, inner=True, _nrt=False)
def add_excess(team: Model, now: Round, theirs: Choice, room: Room, sums: NDArray[np.float64]) -> None:
    """Add the excess costs, and their squares, of the try that the run's policy passed."""
    group, attempt = now.draws.groups[now.choice.level], now.choice.attempt
    if attempt >= theirs.softened:
        length = 1.0 / (1.0 - team.gamma) if team.gamma else float(team.allowed.shape[0])
        soften_losses(team, now.none, temperature(theirs.allowed, now.draws.shift, length, attempt), room, attempt)
    add_up(room.losses[attempt], group, room.costs)
    for g in range(group[0], group[group.size - 1] + 1):
        for s in range(sums.shape[2]):
            least = np.inf
            for a in range(sums.shape[3]):
                least = min(least, room.costs[g, s, a])
            for a in range(sums.shape[3]):
                if room.costs[g, s, a] < np.inf:
                    excess = room.costs[g, s, a] - least
                    sums[0, g, s, a] += excess
                    sums[1, g, s, a] += excess * excess

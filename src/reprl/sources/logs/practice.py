"""A policy beside practice: where it does something else, what that is worth, and what could explain it away.

For those who have to decide whether a policy that was learned from a log is put to use (docs/logs.md, "The page").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.dynamics import Data, empirical_dynamics
from reprl.mdp.outcomes import Outcomes, expected_return
from reprl.mdp.policy import Policy
from reprl.randomness import DataStream
from reprl.sources.logs.coverage import LEVEL, Coverage, find_coverage
from reprl.sources.logs.read import Log
from reprl.storage.fields import SHARE, printable, real, whole

SHOWN = 20
"""Changed cells that are named, at most."""
REDRAWN = 50
"""Logs that are redrawn for the intervals of single cells."""
MOST_ODDS = 64.0
"""Odds ratio at which a search for one that explains a gain away ends."""
_NORMAL = 1.959964


class Change(NamedTuple):
    """A cell in which the policy does something else than practice mostly does."""

    step: Annotated[int, whole()]
    state: Annotated[int, whole()]
    usual: Annotated[int, whole()]
    """What practice does most often there."""
    action: Annotated[int, whole()]
    """What the policy says."""
    visits: Annotated[float, real()]
    """Visits an episode, in practice."""
    gain: Annotated[float, real(-math.inf)]
    """What the change is worth an episode: visits, times what a visit earns more than practice, the policy being
    followed from there on. Summed over all cells this is the gain over practice."""
    low: Annotated[float, real(-math.inf)]
    """95 % interval."""
    high: Annotated[float, real(-math.inf)]


class Variant(NamedTuple):
    """What becomes of the decision if a setting were another one."""

    setting: Annotated[str, printable()]
    cells: Annotated[int, whole()]
    """Cells with another action, of those that the log visits."""
    share: Annotated[float, SHARE]
    """Share of the log's visits that are in them."""
    gain: Annotated[float, real(-math.inf)]
    """Of the other policy, over practice, by the model of the log."""


class Group(NamedTuple):
    """What the policy is worth to a part of the episodes."""

    name: Annotated[str, printable()]
    episodes: Annotated[int, whole()]
    practice: Annotated[float, real(-math.inf)]
    value: Annotated[float, real(-math.inf)]
    gain_low: Annotated[float, real(-math.inf)]
    gain_high: Annotated[float, real(-math.inf)]


class Beside(NamedTuple):
    """A policy beside practice; values as in Coverage."""

    changed: Annotated[int, whole()]
    """Cells that the log visits, in which the policy does something else than practice mostly does."""
    changes: tuple[Change, ...]
    """Those that are worth most or cost most, first."""
    odds: Annotated[float | None, real(1.0)]
    """The odds ratio that a hidden factor needs, at least, to explain the gain away; MOST_ODDS if not even that does;
    None with a discount, or where there is no gain to explain."""
    variants: tuple[Variant, ...] = ()
    groups: tuple[Group, ...] = ()


def set_beside(log: Log, policy: Policy, coverage: Coverage, stream: DataStream) -> Beside | None:
    """Compare a policy with practice; None with a discount, which has no steps.

    Randomness:
        Data streams (data seed, the stream's purpose + "/NUMBER").
    """
    if log.data.criterion.stationary:
        return None
    actions, visits = policy.table, log.data.counts.visits[:, :-1]
    usual, there = visits.argmax(axis=2), visits.sum(axis=2) > 0
    other = there & (actions[:, :-1] != usual)
    gain, often = split_gain(log.data, actions)
    redrawn = np.array(
        [
            split_gain(log.blocks.redraw(1, DataStream(stream.data_seed, f"{stream.purpose}/{number}").key), actions)[0]
            for number in range(REDRAWN)
        ]
    )
    wide = _NORMAL * redrawn.std(axis=0, ddof=1)
    order = sorted(map(tuple, np.argwhere(other).tolist()), key=lambda cell: -abs(gain[cell]))
    changes = tuple(
        Change(
            step=h,
            state=s,
            usual=int(usual[h, s]),
            action=int(actions[h, s]),
            visits=float(often[h, s]),
            gain=float(gain[h, s]),
            low=float(gain[h, s] - wide[h, s]),
            high=float(gain[h, s] + wide[h, s]),
        )
        for h, s in order[:SHOWN]
    )
    return Beside(int(other.sum()), changes, odds_needed(log.data, actions, coverage.gain_low))


def split_gain(data: Data, actions: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split what a policy earns more than practice into cells, (H, S) without the ended state; and practice's visits.

    Guarantee:
        The sum is V^π − V^practice in the model of relative frequencies: Σ visits·(V^π − Σ_a practice(a)·Q^π(a)), the
        performance difference (docs/proofs/logs.md §3).
    """
    dynamics = empirical_dynamics(data)
    outcomes, law = dynamics.outcomes, dynamics.probability
    horizon, n_states, n_actions = outcomes.shape
    values = data.criterion.policy_values(outcomes, law, actions)
    visits = data.counts.visits.astype(np.float64)
    total = visits.sum(axis=2, keepdims=True)
    play = np.divide(visits, total, out=np.zeros_like(visits), where=total > 0.0)
    gain, often = np.zeros((horizon, n_states)), np.zeros((horizon, n_states))
    often[0] = dynamics.initial
    q, forward = np.empty((n_states, n_actions)), np.zeros(n_states)
    for h in range(horizon):
        expected_return(outcomes, law, outcomes.slot_shift, h, values[h + 1], q)
        gain[h] = often[h] * np.where(total[h, :, 0] > 0.0, values[h] - (play[h] * q).sum(axis=1), 0.0)
        if h + 1 < horizon:
            forward[:] = 0.0
            _flow(outcomes, law, h, often[h][:, None] * play[h], forward)
            often[h + 1] = forward
    return gain[:, :-1], often[:, :-1]


@njit(cache=True, nogil=True)
def _flow(
    outcomes: Outcomes, law: NDArray[np.float64], h: int, mass: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Add where mass, (S, A), of step h goes."""
    for s in range(outcomes.n_states):
        for a in range(outcomes.n_actions):
            row = h * outcomes.row_shift + s * outcomes.n_actions + a
            for e in range(outcomes.first[row], outcomes.first[row + 1] if mass[s, a] > 0.0 else 0):
                out[outcomes.next_state[e]] += mass[s, a] * law[e + h * outcomes.slot_shift]


def worst_value(data: Data, actions: NDArray[np.int64], odds: float) -> float:
    """Return the least that a policy can be worth if a hidden factor moved the odds of every action by at most `odds`.

    Guarantee:
        A lower bound on V^π in the model of relative frequencies, if what is hidden is drawn anew at every step, given
        the state, and for given (step, state, action) the odds of the action given it are between 1/odds and odds times
        those that the log shows: the marginal sensitivity model (Tan 2006), step by step (docs/proofs/logs.md §3). At
        odds = 1 it is V^π. Cells that the log never shows pay nothing, as in ``find_coverage``.
    """
    dynamics, visits = empirical_dynamics(data), data.counts.visits.astype(np.float64)
    values = np.zeros((dynamics.outcomes.horizon + 1, dynamics.outcomes.n_states))
    _worst(dynamics.outcomes, dynamics.probability, visits, np.ascontiguousarray(actions), odds, values)
    return float(dynamics.initial @ values[0])


@njit(cache=True, nogil=True)
def _worst(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    visits: NDArray[np.float64],
    actions: NDArray[np.int64],
    odds: float,
    values: NDArray[np.float64],
) -> None:
    """Fill values, (H+1, S), from the last step back."""
    last = outcomes.n_states - 1
    for h in range(outcomes.horizon - 1, -1, -1):
        for s in range(outcomes.n_states):
            a = actions[h, s]
            row, shift = h * outcomes.row_shift + s * outcomes.n_actions + a, h * outcomes.slot_shift
            first, end = outcomes.first[row], outcomes.first[row + 1]
            if visits[h, s, a] <= 0.0:
                continue
            share = 1.0 if s == last else visits[h, s, a] / visits[h, s].sum()
            x = np.empty(end - first)
            for e in range(first, end):
                x[e - first] = outcomes.reward[e] + values[h + 1, outcomes.next_state[e]]
            mean, tail, left = 0.0, 0.0, 1.0 / (odds + 1.0)
            for i in np.argsort(x):
                weight = law[first + i + shift]
                mean += weight * x[i]
                part = min(weight, left)
                tail += part * x[i]
                left -= part
            sure = share + (1.0 - share) / odds
            values[h, s] = sure * mean + (1.0 - sure) * tail * (odds + 1.0)


def odds_needed(data: Data, actions: NDArray[np.int64], gain: float) -> float | None:
    """Return the odds ratio from which on a hidden factor can take away so much value; None where gain is not positive.

    gain is what has to be explained away: the lower end of the gain over practice, which nothing hidden distorts.
    """
    if gain <= 0.0:
        return None
    value, low, high = worst_value(data, actions, 1.0), 1.0, MOST_ODDS
    if value - worst_value(data, actions, high) < gain:
        return MOST_ODDS
    for _ in range(24):
        middle = math.sqrt(low * high)
        if value - worst_value(data, actions, middle) < gain:
            low = middle
        else:
            high = middle
    return low


def vary(
    data: Data, policy: Policy, practice: float, others: dict[str, Callable[[Data], Policy]]
) -> tuple[Variant, ...]:
    """Say what becomes of the decision under other settings.

    others holds, by the name of the setting, the rule under it.
    """
    here = data.counts.visits[:, :-1].sum(axis=2)
    zero, found = np.zeros(data.starts.size), []
    for name, decide in others.items():
        table = decide(data).table
        apart = (table != policy.table)[:, :-1] & (here > 0)
        value = -empirical_dynamics(data).policy_loss(zero, table)
        share = float(here[apart].sum() / max(1, here.sum()))
        found.append(Variant(name, int(apart.sum()), share, value - practice))
    return tuple(found)


def value_group(name: str, log: Log, policy: Policy, stream: DataStream) -> Group:
    """Say what a policy is worth to a part of the episodes, by these alone; the policy was chosen by all of them."""
    every = np.ones(policy.table.shape, dtype=np.bool_)
    found = find_coverage(log, policy, every, lambda data: policy, unknown=0.0, stream=stream, level=LEVEL)
    return Group(name, log.episodes, found.practice, found.value, found.gain_low, found.gain_high)

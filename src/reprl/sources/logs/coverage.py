"""Coverage: what a log shows about a policy, and its estimated value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from reprl.mdp.basis import Basis
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics
from reprl.mdp.outcomes import expected_return
from reprl.mdp.policy import Policy
from reprl.randomness import DataStream
from reprl.sources.logs.read import Log

LEVEL = 0.95
"""Of the intervals."""
REDRAWN = 200
"""Logs that are redrawn for them; on each of them the rule is applied anew."""
DOUBT = 0.5
"""Share of the optimism that is taken off which counts as its own standard error: redrawn logs show somewhat less of it
than there is, as their gaps are wider (docs/logs.md)."""


class Coverage(NamedTuple):
    """What a log says of a policy; values are sums of rescaled rewards, discounted or not, from the start."""

    rows: int
    """Transitions that counted."""
    beyond: int
    """Rows that were left out: after the horizon, or the length that was asked for; and those at its last step, where
    rows tell about every step and these do not say where they led."""
    cut: int
    """Episodes that stop before that without being done."""
    covered: float
    """Share of the log's visits that are in cells where the policy decides by data, not by default."""
    alike: float
    """Share of the log's visits in which it did what the policy says."""
    unknown: float
    """What states that the log hardly reaches could be worth to a policy that keeps to supported actions."""
    unseen: float
    """What the policy could earn in addition where the log has never done what it says; taken as nothing."""
    value: float
    """V^π in the model that the log shows, less what it owes to having been chosen by that log."""
    value_low: float
    value_high: float
    practice: float
    """What those who made the log earn, in the same model."""
    gain_low: float
    """Of value − practice."""
    gain_high: float


def find_coverage(
    log: Log,
    policy: Policy,
    decided: NDArray[np.bool_],
    decide: Callable[[Data], Policy],
    *,
    unknown: float,
    stream: DataStream,
    level: float = LEVEL,
) -> Coverage:
    """Measure a policy by a log.

    decided, (H, S), is where the policy decides by data; decide is the rule, from data to a policy; unknown is as
    ``weigh_unknown_states`` says.

    Guarantee:
        The estimator is the plug-in: V^π in the model of relative frequencies. Among estimators for tabular models none
        has less variance asymptotically, and no product of H ratios enters, as in importance sampling. It is right if
        states are Markov. It errs by noise and, as the same data chose the policy, by optimism; both are seen on logs
        redrawn by whole episodes, to which the rule is applied anew: what a redrawn log says of its own policy, less
        what this log says of that one. Its mean is taken off. Intervals are Student's. Their deviation is the larger of
        that of these errors and that of the policy held fixed, with the doubt about what was taken off added.

    Randomness:
        Data streams (data seed, the stream's purpose + "/NUMBER").
    """
    actions = policy.table
    visits = log.data.counts.visits.copy()
    visits[:, -1] = 0  # episodes that are over
    here = visits.sum(axis=2)
    done = np.take_along_axis(visits, actions[:, :, None], axis=2)[:, :, 0]
    total = max(1, int(here.sum()))
    plain = empirical_dynamics(log.data)
    value, practice = _worth(log.data, actions)
    known = (value, practice)
    errors = np.array(
        [
            _errors(log, decide, policy, known, DataStream(stream.data_seed, f"{stream.purpose}/{number}"))
            for number in range(REDRAWN)
        ]
    )
    (value, gain), wide = np.array([value, value - practice]) - errors[:, 0].mean(axis=0), _half_width(errors, level)
    return Coverage(
        rows=log.rows,
        beyond=log.beyond,
        cut=log.cut,
        covered=float(here[decided].sum() / total),
        alike=float(done.sum() / total),
        unknown=unknown,
        unseen=_unseen(plain, actions),
        value=float(value),
        value_low=float(value - wide[0]),
        value_high=float(value + wide[0]),
        practice=practice,
        gain_low=float(gain - wide[1]),
        gain_high=float(gain + wide[1]),
    )


def find_basis(data: Data, policy: Policy, decided: NDArray[np.int64], ended: int) -> Basis:
    """Return who decided each cell of a policy, with what the log shows there.

    decided, (H, S), holds places in DECIDERS; ended is the state of episodes that are over, which have no rows.
    """
    visits = data.counts.visits.copy()
    visits[:, ended] = 0
    here, anywhere = visits.sum(axis=2), visits.sum(axis=0)
    usual = np.where(here > 0, visits.argmax(axis=2), np.where(anywhere.any(axis=1), anywhere.argmax(axis=1), -1))
    agree = np.take_along_axis(visits, policy.table[:, :, None], axis=2)[:, :, 0]
    return Basis(decided, here, agree, usual)


def _errors(
    log: Log, decide: Callable[[Data], Policy], policy: Policy, known: tuple[float, float], stream: DataStream
) -> list[tuple[float, float]]:
    """How far a redrawn log is off, in value and in gain over practice: with its own policy, and with this log's."""
    own = log.blocks.redraw(1, stream.key)
    chosen = decide(own).table
    (value, theirs), (value_here, practice) = _worth(own, chosen), known
    errors = (value - _worth(log.data, chosen)[0], _worth(own, policy.table)[0] - value_here)
    return [(error, error - (theirs - practice)) for error in errors]


def _half_width(errors: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """Of Student's intervals for what errors, (n, 2, 2) by policy and quantity, are redrawn from."""
    n, doubt = len(errors), DOUBT * errors[:, 0].mean(axis=0)
    quantile = float(stdtrit(n - 1, 0.5 * (1.0 + level)))
    deviation = np.sqrt(errors.var(axis=0, ddof=1).max(axis=0) + doubt**2)
    wide: NDArray[np.float64] = quantile * deviation * np.sqrt(1.0 + 1.0 / n)
    return wide


def _worth(data: Data, actions: NDArray[np.int64]) -> tuple[float, float]:
    """Values of a policy, and of those who made the log."""
    dynamics = empirical_dynamics(data)
    return -dynamics.policy_loss(np.zeros(data.starts.size), actions), value_of_practice(data)


def value_of_practice(data: Data) -> float:
    """Return what those who made a log earn, by the mean of reward plus next value over the rows of every state."""
    outcomes, hits = data.counts.outcomes, data.counts.hits
    horizon, n_states, n_actions = outcomes.shape
    value, out = np.zeros(n_states), np.empty((n_states, n_actions))
    visits = data.counts.visits.sum(axis=2)
    if data.criterion.stationary:
        here, started = np.maximum(visits[0], 1), data.starts / data.starts.sum()
        play, law = data.counts.visits[0] / here[:, None], empirical_dynamics(data).probability
        expected_return(outcomes, hits, outcomes.slot_shift, 0, value, out)
        return float(data.criterion.play_occupancy(outcomes, law, play, started) @ (out.sum(axis=1) / here))
    for h in range(horizon - 1, -1, -1):
        expected_return(outcomes, hits, outcomes.slot_shift, h, value, out)
        value = np.divide(out.sum(axis=1), visits[h], out=np.zeros(n_states), where=visits[h] > 0)
    return float(data.starts @ value / data.starts.sum())


def _unseen(plain: Dynamics, actions: NDArray[np.int64]) -> float:
    """Σ over steps: chance of first reaching a cell where the log never took the policy's action, times the rest."""
    visits = plain.occupancy(actions)
    tried = np.take_along_axis(plain.tried, actions[:, :, None], axis=2)[:, :, 0]
    return float((np.where(tried, 0.0, visits).sum(axis=1) * plain.criterion.remaining).sum())

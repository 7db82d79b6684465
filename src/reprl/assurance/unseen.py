"""unseen: what events that no sample has shown could change, and second teams that meet such events.

A sample of n draws excludes an event of probability q only with probability 1 − (1 − q)^n. So wherever a promise could
hang on such an event, either the event is bounded (``hidden_loss``), or simulated second teams meet it
(``add_phantoms``): a bootstrap alone would never redraw it (docs/rehearsal.md, docs/proofs/canonical.md §12).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.backup import in_order
from reprl.mdp.counts import Counts
from reprl.mdp.dynamics import Data, Dynamics
from reprl.mdp.outcomes import Outcomes
from reprl.randomness import DataStream

_POISSON = np.cumsum([math.exp(-1.0) / math.factorial(k) for k in range(8)])
"""Distribution function of Poisson(1): how many phantoms a row of a second team has."""


def hidden_loss(
    data: Data,
    dynamics: Dynamics,
    values: NDArray[np.float64],
    actions: NDArray[np.int64],
    delta: float,
    *,
    start: bool,
    untried: NDArray[np.bool_] | None = None,
) -> float:
    """Return how much more a policy could lose by events that no sample has shown.

    values, (H+1, S), are the best ones of the model, actions, (H, S), the policy's; δ is the probability that more is
    hidden; start says whether the law of the start is estimated too. untried, (H, S), are cells of which nothing is
    known, and which may be worth anything; None for those in which some action that may be taken never was.

    Guarantee:
        Let q_i be the probability of what row i, of n_i samples, has not shown, fixed beforehand. That none of it shows
        has probability Π (1 − q_i)^{n_i} ≤ exp(−Σ n_i·q_i), so that Σ n_i·q_i ≤ log(1/δ) but for a probability of δ. To
        first order in q the loss is linear in q, hence largest if one row hides all of it. A hidden outcome may lead to
        any state and pay 1 or 0; where the next step has a cell that is not known, it may lead to anything. Either it
        makes no policy better, and lowers this one's value by at most what it has from the row on, less the least there
        is; or it is better than the row, raises what the best policy is worth, and leads this one astray: to a state
        where it loses up to V* − V^π. Or it is a start (docs/proofs/canonical.md §12). Missing mass, of many events
        that were not fixed beforehand, is not bounded by this.
    """
    share = math.log(1.0 / delta)
    number = data.counts.visits
    criterion, left, pooled = dynamics.criterion, dynamics.criterion.remaining, data.counts.outcomes.pooled
    unknown = np.asarray((dynamics.allowed & ~dynamics.tried).any(axis=2)) if untried is None else untried
    strange = unknown.any(axis=1) if criterion.stationary else np.append(unknown[1:].any(axis=1), False)
    worth = criterion.policy_values(dynamics.outcomes, dynamics.probability, actions)
    top = np.where(strange, left - 1.0, values[1:].max(axis=1))
    low = np.where(strange, 0.0, worth[1:].min(axis=1))
    astray = np.where(strange, left - 1.0, (values[1:] - worth[1:]).max(axis=1))
    hopes = criterion.either(_best_hopes, _discounted_hopes)(dynamics, number, share, top, values, pooled)
    up = float(in_order(dynamics.initial, hopes[0] - values[0]))
    visits, fall = dynamics.occupancy(actions), np.maximum(worth[:-1] - low[:, None], 0.0)
    costs = visits * fall, visits * np.minimum(fall, astray[:, None])
    down, aside = (share * _largest(cost, actions, number, pooled) for cost in costs)
    begin = left[0] if unknown[0].any() else float((values[0] - worth[0]).max())
    return max(up + aside, down, share * begin / float(data.starts.sum()) if start else 0.0)


def _largest(cost: NDArray[np.float64], actions: NDArray[np.int64], number: NDArray[np.int64], pooled: bool) -> float:
    """Return the largest cost, (H, S), for a sample of its row; pooled rows have the same samples at every step."""
    samples = np.take_along_axis(number, actions[:, :, None], axis=2)[:, :, 0]
    if pooled:
        rows = np.zeros(number.shape[1:])
        np.add.at(rows, (np.broadcast_to(np.arange(cost.shape[1]), cost.shape), actions), cost)
        cost, samples = rows, number[0]
    return float((cost / np.maximum(samples, 1)).max())


def _best_hopes(
    dynamics: Dynamics,
    number: NDArray[np.int64],
    share: float,
    top: NDArray[np.float64],
    values: NDArray[np.float64],
    pooled: bool,
) -> NDArray[np.float64]:
    """Return the best values, (H+1, S), if a row of n samples hides an outcome of probability share/n that is the best.

    A row is met once on the way unless rows are pooled; so one hidden outcome comes at most once on the way.
    """
    hopes = values.copy()
    _hope(dynamics.outcomes, dynamics.probability, dynamics.tried, number, share, top, values, pooled, hopes)
    return hopes


@njit(cache=True, nogil=True)
def _hope(
    outcomes: Outcomes,
    law: NDArray[np.float64],
    tried: NDArray[np.bool_],
    number: NDArray[np.int64],
    share: float,
    top: NDArray[np.float64],
    values: NDArray[np.float64],
    pooled: bool,
    hopes: NDArray[np.float64],
) -> None:
    """Fill hopes, (H+1, S), from the last row, which is there already; as ``_best_hopes``."""
    for h in range(outcomes.horizon - 1, -1, -1):
        for s in range(outcomes.n_states):
            best = values[h, s]
            for a in range(outcomes.n_actions):
                if not tried[h, s, a]:
                    continue
                row = h * outcomes.row_shift + s * outcomes.n_actions + a
                plain = later = 0.0
                for e in range(outcomes.first[row], outcomes.first[row + 1]):
                    weight, y = law[e + h * outcomes.slot_shift], outcomes.next_state[e]
                    plain += weight * (outcomes.reward[e] + values[h + 1, y])
                    later += weight * (outcomes.reward[e] + hopes[h + 1, y])
                hidden = min(1.0, share / number[h, s, a])
                gain = hidden * max(0.0, 1.0 + top[h] - (later if pooled else plain))
                best = max(best, later + gain if pooled else max(later, plain + gain))
            hopes[h, s] = best


def _discounted_hopes(
    dynamics: Dynamics,
    number: NDArray[np.int64],
    share: float,
    top: NDArray[np.float64],
    values: NDArray[np.float64],
    pooled: bool,
) -> NDArray[np.float64]:
    """The same where there is no last step: the least fixed point, up to a millionth of the largest value."""
    criterion, hopes = dynamics.criterion, values.copy()
    while True:
        found = _best_hopes(dynamics, number, share, top, hopes, pooled)
        moved = float(np.abs(found[0] - hopes[0]).max())
        hopes[0], hopes[1] = found[0], criterion.factor * found[0]
        if moved <= 1e-6 * (1.0 - criterion.factor) * criterion.effective_horizon:
            return hopes


def add_phantoms(data: Data, values: NDArray[np.float64], key: int, *, start: bool) -> Data:
    """Return the data of a second team that also meets what no sample of this run has shown.

    values, (H+1, S), are the best ones of this run's model, key is private to the team; start says whether the law of
    the start is estimated too.

    Returns:
        The data with one more outcome in every row: a Poisson(1) number of times it leads to the best state and pays 1,
        or to the worst and pays 0, or anywhere; where some states were never seen, the best pays so much that it is
        worth all that is left, at every step, and no more than that needs. A start of the same kind, if starts are
        drawn.

    Randomness:
        Data stream (key, "phantoms").
    """
    table, hits = data.counts.outcomes, data.counts.hits
    rows, steps = table.first.size - 1, 1 if table.slot_shift == 0 else table.horizon
    draws = DataStream(key, "phantoms").uniforms(rows * (3 + steps) + 2)
    kind, where, pays = draws[: 3 * rows].reshape(3, rows)
    number = np.searchsorted(_POISSON, draws[3 * rows : rows * (3 + steps)]).reshape(steps, rows)
    by_row = np.arange(rows) // (table.n_states * table.n_actions)
    worth = values[1:] if table.row_shift else values[1:].mean(axis=0, keepdims=True)
    anywhere = np.minimum((where * table.n_states).astype(np.int64), table.n_states - 1)
    best, worst = worth.argmax(axis=1), worth.argmin(axis=1)
    successor = np.where(kind < 1 / 3, best[by_row], np.where(kind < 2 / 3, worst[by_row], anywhere))
    strange = bool((data.counts.visits.sum(axis=(0, 2)) == 0).any())
    most = (_most_left(data, values, best) if strange else np.ones(best.size))[by_row]
    reward = np.where(kind < 1 / 3, most, np.where(kind < 2 / 3, 0.0, np.where(pays < 0.5, 0.0, 1.0)))
    first = table.first + np.arange(rows + 1)
    last, old = first[1:] - 1, np.ones(first[-1], dtype=np.bool_)
    old[last] = False

    def beside(now: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        found = np.empty((*now.shape[:-1], old.size), dtype=now.dtype)
        found[..., old], found[..., last] = now, new
        return found

    haunted = table._replace(
        first=first,
        next_state=beside(table.next_state, successor),
        reward=beside(table.reward, reward),
        slot_shift=table.slot_shift + rows if table.slot_shift else 0,
    )
    seen = data.counts.visits[: table.tallied[0]].reshape(steps, rows) > 0
    more = beside(hits.reshape(steps, -1), np.where(seen, number, 0)).ravel()
    starts = data.starts.copy()
    if start:
        starts[min(int(draws[-1] * table.n_states), table.n_states - 1)] += int(np.searchsorted(_POISSON, draws[-2]))
    return Data(Counts(Outcomes(*haunted), more), starts, data.allowed, data.criterion)


def _most_left(data: Data, values: NDArray[np.float64], best: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what an event must pay, beside the value of the best state that it leads to, to be worth all that is left.

    One number for each step or, where steps have one table, for all of them: the largest. At least 1.
    """
    left = data.criterion.remaining
    if best.size == left.size:
        found = left - values[1:][np.arange(left.size), best]
    else:
        found = (left - values[1:, best[0]]).max(keepdims=True)
    return np.asarray(np.maximum(found, 1.0))

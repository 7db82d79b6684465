"""Rehearsal: would a second team, with data like ours, come to the same policy?

Second teams are simulated: their data are drawn from this run's own frequencies and go through the whole rule. Those
under this run's shared key have half its data, against a lucky look. If they do not all come to this run's policy, its
key may be an unlucky one; the promise is an average over keys, so pairs of teams with fresh keys and as much data as
this run are asked as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.dynamics import Data, redraw
from reprl.randomness import DataStream, SharedKey
from reprl.rule.choice import Choice, Rule, choose, with_key

TEAMS = 20
"""Simulated second teams under the run's own key; all must come to its policy."""
PAIRS = 40
"""Simulated pairs under fresh keys."""
APART = 1
"""Of which so many may differ."""


class Rehearsal(NamedTuple):
    """What the simulated second teams did."""

    agree: int
    """Teams under this run's shared key that came to its policy."""
    of: int
    """All of them."""
    pairs_agree: int
    """Pairs of teams, under a fresh shared key each, that came to the same policy."""
    pairs: int
    """Pairs that were simulated; 0 if nobody had to ask."""
    passed: bool
    """Whether the run may stop."""
    apart: NDArray[np.float64]
    """(H, S): share of the teams that would do something else there: what is undecided."""
    error: float
    """Standard deviation of V* from the start over the teams, on the scale of this run's data."""


def rehearse(rule: Rule, data: Data, chosen: Choice, epsilon: float, stream: DataStream) -> Rehearsal:
    """Simulate second teams.

    Args:
        rule: f(ξ, ·).
        data: of this run.
        chosen: what the rule makes of them.
        epsilon: the standard deviation of V* must be below it before a run may stop.
        stream: private; every team reads a stream of its own.

    Randomness:
        Data streams (stream's seed, stream's purpose + "/team" or "/pair", number). Shared: what ``choose`` reads, under
        rule.key and, for pairs, under keys that are private to this run.
    """
    actions = chosen.policy.actions
    apart = np.zeros(actions.shape)
    agree = 0
    values = np.empty(TEAMS)
    for team in range(TEAMS):
        found = choose(rule, redraw(data, 2, _key(stream, "team", team)))
        apart += found.policy.actions != actions
        agree += found.policy == chosen.policy
        values[team] = found.value + found.loss
    error = float(values.std(ddof=1)) / 2.0**0.5
    enough = error < epsilon
    passed = enough and agree == TEAMS
    pairs_agree = pairs = 0
    if enough and not passed:
        pairs_agree, pairs = _ask_pairs(rule, data, stream)
        passed = pairs - pairs_agree <= APART
    return Rehearsal(agree, TEAMS, pairs_agree, pairs, passed, apart / TEAMS, error)


def _ask_pairs(rule: Rule, data: Data, stream: DataStream) -> tuple[int, int]:
    """Return how many of how many pairs agree; no more are asked once too many differ."""
    agree = 0
    for pair in range(PAIRS):
        fresh = with_key(rule, SharedKey(_key(stream, "key", pair)))
        first, second = (choose(fresh, redraw(data, 1, _key(stream, "pair", 2 * pair + i))).policy for i in (0, 1))
        agree += first == second
        if pair + 1 - agree > APART:
            return agree, pair + 1
    return agree, PAIRS


def _key(stream: DataStream, purpose: str, number: int) -> int:
    return DataStream(stream.data_seed, f"{stream.purpose}/{purpose}/{number}").key

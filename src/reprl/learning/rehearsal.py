"""Rehearsal: would a second team, with data like ours, come to the same policy?

Second teams are simulated: their data are drawn from this run's own frequencies and go through the whole rule. They
have half of its data, against a lucky look. If those under this run's shared key do not all come to its policy, the key
may be an unlucky one; the promise is an average over keys, so pairs of teams with fresh keys are asked as well
(docs/rehearsal.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.dynamics import Data, redraw
from reprl.randomness import DataStream, SharedKey
from reprl.rule.choice import Choice, Rule, choose, with_key

APART = 1
"""Pairs under fresh keys that may differ."""


def teams_for(rho: float) -> int:
    """Return how many simulated second teams are asked, all of which must agree: 2/ρ, and 10 at least."""
    return max(10, math.ceil(2.0 / rho))


def pairs_for(rho: float) -> int:
    """Return how many pairs under fresh keys are asked, all but APART of which must agree: 4/ρ, and 20 at least."""
    return max(20, math.ceil(4.0 / rho))


class Rehearsal(NamedTuple):
    """What the simulated second teams did."""

    agree: int
    """Teams under this run's shared key that came to its policy."""
    of: int
    """All of them."""
    pairs_agree: int
    """Pairs of teams, under a fresh shared key each, that came to one policy."""
    pairs: int
    """Pairs that were asked: 0 where the teams had said enough, fewer than planned where too many differed."""
    passed: bool
    """Whether the run may stop."""
    apart: NDArray[np.float64]
    """(H, S): share of the teams that would do something else there."""
    error: float
    """Standard deviation of V* from the start, over the teams, brought to the size of this run's data."""

    def __str__(self) -> str:
        """One line for people."""
        line = f"{self.agree} of {self.of} simulated second teams arrive at this policy"
        if self.pairs:
            line += f"; under fresh shared seeds {self.pairs_agree} of {self.pairs} pairs agree"
        return line


def rehearse(
    rule: Rule,
    data: Data,
    chosen: Choice,
    rho: float,
    stream: DataStream,
    *,
    pairs: bool = True,
) -> Rehearsal:
    """Simulate second teams.

    Args:
        rule: f(ξ, ·).
        data: of this run.
        chosen: what the rule makes of them.
        rho: the disagreement that may be promised; it sets how many are asked.
        stream: private; every team reads streams of its own.
        pairs: whether pairs under fresh keys may let a run stop whose own teams differ.

    Guarantee:
        None by proof: it is a simulation from one run's data, see docs/rehearsal.md for what it misses. No run may stop
        while its estimate of V* has a standard deviation of ε or more.

    Randomness:
        Data streams (data seed, the stream's purpose + "/team/NUMBER", "/pair/NUMBER" and "/key/NUMBER"). Shared: what
        ``choose`` reads under rule.key and, for pairs, under keys that this run makes up. No shared draw of any other
        run depends on these.
    """
    teams = teams_for(rho)
    actions = chosen.policy.actions
    apart = np.zeros(actions.shape)
    values = np.empty(teams)
    agree = 0
    for team in range(teams):
        found = choose(rule, redraw(data, 2, _key(stream, "team", team)))
        apart += found.policy.actions != actions
        agree += found.policy == chosen.policy
        values[team] = found.value + found.loss
    error = float(values.std(ddof=1)) / math.sqrt(2.0)
    known = error < rule.epsilon
    passed = known and agree == teams
    same = asked = 0
    if pairs and known and not passed:
        same, asked = _ask_pairs(rule, data, pairs_for(rho), stream)
        passed = asked - same <= APART
    return Rehearsal(agree, teams, same, asked, passed, apart / teams, error)


def _ask_pairs(rule: Rule, data: Data, most: int, stream: DataStream) -> tuple[int, int]:
    """Return how many of how many pairs agree; no more are asked once too many differ."""
    agree = 0
    for pair in range(most):
        fresh = with_key(rule, SharedKey(_key(stream, "key", pair)))
        first, second = (choose(fresh, redraw(data, 2, _key(stream, "pair", 2 * pair + i))).policy for i in (0, 1))
        agree += first == second
        if pair + 1 - agree > APART:
            return agree, pair + 1
    return agree, most


def _key(stream: DataStream, purpose: str, number: int) -> int:
    return DataStream(stream.data_seed, f"{stream.purpose}/{purpose}/{number}").key

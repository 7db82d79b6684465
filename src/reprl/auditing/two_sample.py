"""same_world: do the data of two teams contradict each other?

The digest of a black box covers what it declares, not what it does. Two teams that both keep their counts can test
whether they sampled one environment.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from reprl.errors import InputError, check_probability, quote
from reprl.mdp.counts import Counts
from reprl.mdp.homogeneity import BINS, LEVEL, Bets, Tallies, bet, event_words
from reprl.sources.environment import Environment

_SHOWN = 3


class Contrast(NamedTuple):
    """An event that came more often to one team than to the other."""

    step: int
    state: int
    action: int
    next_state: int | None
    """The event: this state followed;"""
    reward: float | None
    """or, where that is None, the reward was at least this."""
    visits: tuple[int, int]
    """Samples of the cell (step, state, action), first team and second."""
    shares: tuple[float, float]
    """How often the event came, for both."""
    log_evidence: float

    def words(self, names: Environment) -> str:
        """Say it in a sentence."""
        number = -round(BINS * (self.reward or 0.0)) if self.next_state is None else self.next_state
        event = event_words(number, names.labels)
        first, second = (f"{share:.1%} of {n:,}" for share, n in zip(self.shares, self.visits, strict=True))
        place = f"{names.cell(self.step, self.state)}, action {names.labels.action(self.action)}"
        return f"{place}: {event} followed in {first} samples of the first team and in {second} of the second"


class SameWorld(NamedTuple):
    """Whether two data sets contradict each other."""

    log_evidence: float
    """Logarithm of what a bettor owns who began with 1 and bets against one environment."""
    level: float
    contrasts: tuple[Contrast, ...]
    """The events with the strongest evidence, strongest first."""

    @property
    def contradicted(self) -> bool:
        """Whether the bettor owns 1/level: the teams did not sample one environment."""
        return self.log_evidence >= -math.log(self.level)

    @property
    def p_value(self) -> float:
        """The chance of ever owning so much if the environment is one, at most."""
        return math.exp(-max(0.0, self.log_evidence))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document."""
        return {
            "contradicted": self.contradicted,
            "p_value": self.p_value,
            "level": self.level,
            "log_evidence": self.log_evidence,
            "contrasts": [item._asdict() for item in self.contrasts],
        }


def same_world(first: Counts, second: Counts, *, level: float = LEVEL) -> SameWorld:
    """Test whether two teams' transitions can come from one environment.

    Args:
        first: data of one team, such as ``result.counts`` or ``Counts.load(path)``.
        second: data of the other, of the same shape (H, S, A).
        level: allowed probability of a false contradiction.

    Guarantee:
        If in every cell both teams' samples have one law, "contradicted" is said with probability at most level,
        however each team chose where and how long to sample (docs/proofs/audit.md §5). Starts are not compared. Data
        that do not contradict each other prove nothing: a small change, or one in cells that a team hardly visited,
        goes unseen.
    """
    for name, counts in (("first", first), ("second", second)):
        if not isinstance(counts, Counts):
            raise InputError(f"{name} must be a reprl.Counts, got {quote(counts)}")
    shape = first.outcomes.shape
    if second.outcomes.shape != shape:
        raise InputError(f"both data sets must have one shape (H, S, A), got {shape} and {second.outcomes.shape}")
    level = check_probability("level", level)
    bets = bet(Tallies.of(first), Tallies.of(second), shape[1])
    order = np.argsort(-bets.log_won, kind="stable")
    order = order[np.sort(np.unique(bets.cell[order], return_index=True)[1])][:_SHOWN]  # one of each cell
    return SameWorld(bets.log_evidence, level, tuple(_contrast(bets, shape, int(i)) for i in order))


def _contrast(bets: Bets, shape: tuple[int, int, int], i: int) -> Contrast:
    """Describe one event."""
    number, visits, hits = int(bets.number[i]), bets.visits[:, i], bets.hits[:, i]
    shares = hits / np.maximum(visits, 1.0)
    step, rest = divmod(int(bets.cell[i]), shape[1] * shape[2])
    return Contrast(
        step,
        *divmod(rest, shape[2]),
        next_state=number if number >= 0 else None,
        reward=None if number >= 0 else -number / BINS,
        visits=(int(visits[0]), int(visits[1])),
        shares=(float(shares[0]), float(shares[1])),
        log_evidence=float(bets.log_won[i]),
    )

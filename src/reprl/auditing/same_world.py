"""same_world: do the data of two teams contradict each other?

The digest of a black box covers what it declares, not what it does. Two teams that both keep their counts can test
whether they sampled one environment.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from reprl.errors import ReprlError, check_probability, quote
from reprl.mdp.counts import Counts
from reprl.mdp.environment import Environment

LEVEL = 1e-3
"""The chance that data of one environment are said to contradict each other, at most."""
BINS = 16
"""Rewards are told apart by whether they reach each sixteenth of [0, 1]."""
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
        event = f"a reward of at least {self.reward}, rescaled,"
        if self.next_state is not None:
            event = f"state {names.labels.state(self.next_state)}"
        first, second = (f"{share:.1%} of {n:,}" for share, n in zip(self.shares, self.visits, strict=True))
        place = f"{names.cell(self.step, self.state)}, action {names.labels.action(self.action)}"
        return f"{place}: {event} followed in {first} samples of the first team and in {second} of the second"


class SameWorld(NamedTuple):
    """Whether two data sets contradict each other."""

    log_evidence: float
    """Logarithm of what a bettor owns who began with 1 and bets against one environment."""
    level: float
    contrasts: tuple[Contrast, ...]
    """The events that speak loudest, first."""

    @property
    def contradicted(self) -> bool:
        """Whether the bettor owns 1/level: the teams did not sample one environment."""
        return self.log_evidence >= -math.log(self.level)

    @property
    def p_value(self) -> float:
        """The chance of ever owning so much if the environment is one, at most."""
        return math.exp(-max(0.0, self.log_evidence))

    def as_dict(self) -> dict[str, Any]:
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
            raise ReprlError(f"{name} must be a reprl.Counts, got {quote(counts)}")
    shape = first.outcomes.shape
    if second.outcomes.shape != shape:
        raise ReprlError(f"both data sets must have one shape (H, S, A), got {shape} and {second.outcomes.shape}")
    level = check_probability("level", level)
    events = _events(first, second)
    log_evidence = _bet(events)
    stakes = math.log(math.prod(shape) * (shape[1] + BINS - 1))
    # Events that neither team saw are left out, as if their stakes were lost: that errs on the careful side.
    total = float(special.logsumexp(log_evidence)) - stakes if log_evidence.size else -stakes
    order = np.argsort(-log_evidence, kind="stable")
    order = order[np.sort(np.unique(events.cell[order], return_index=True)[1])][:_SHOWN]  # one of each cell
    return SameWorld(total, level, tuple(_contrast(events, shape, int(i), float(log_evidence[i])) for i in order))


class _Events(NamedTuple):
    """How often events came, to both teams."""

    cell: NDArray[np.int64]
    number: NDArray[np.int64]
    """The next state, or −k for a reward of at least k sixteenths."""
    hits: NDArray[np.float64]
    """(2, events)."""
    visits: NDArray[np.float64]
    """(2, events): samples of their cells."""


def _events(first: Counts, second: Counts) -> _Events:
    """List the events that either team saw: every next state, and every sixteenth that a reward reached."""
    n_states, size = first.outcomes.n_states, first.outcomes.n_states + BINS
    keys, hits = [], []
    for counts in (first, second):
        cell, following, reward, tally = counts.rows()
        reached = np.floor(np.minimum(reward, 1.0) * BINS).clip(0, BINS - 1).astype(np.int64)
        parts = [cell * size + following] + [(cell * size + n_states + k)[reached >= k] for k in range(1, BINS)]
        keys.append(np.concatenate(parts))
        hits.append(np.concatenate([tally] + [tally[reached >= k] for k in range(1, BINS)]))
    seen, place = np.unique(np.concatenate(keys), return_inverse=True)
    table = np.zeros((2, seen.size))
    np.add.at(table[0], place[: keys[0].size], hits[0])
    np.add.at(table[1], place[keys[0].size :], hits[1])
    kept = table.sum(axis=0) > 0
    cell, event = np.divmod(seen[kept], size)
    visits = np.stack([counts.visits.reshape(-1)[cell] for counts in (first, second)]).astype(np.float64)
    return _Events(cell, np.where(event < n_states, event, n_states - event), table[:, kept], visits)


def _bet(events: _Events) -> NDArray[np.float64]:
    """Return log(mixture of the first · mixture of the second / best chance for both) of every event.

    A mixture is that of coins whose bias is drawn from Beta(½, ½).
    """
    both, all_visits = events.hits.sum(axis=0), events.visits.sum(axis=0)
    missed = all_visits - both
    best = special.xlogy(both, both) + special.xlogy(missed, missed) - special.xlogy(all_visits, all_visits)
    mixtures = special.betaln(events.hits + 0.5, events.visits - events.hits + 0.5) - special.betaln(0.5, 0.5)
    out: NDArray[np.float64] = mixtures.sum(axis=0) - best
    return out


def _contrast(events: _Events, shape: tuple[int, int, int], i: int, log_evidence: float) -> Contrast:
    """Describe one event."""
    number, visits, hits = int(events.number[i]), events.visits[:, i], events.hits[:, i]
    shares = hits / np.maximum(visits, 1.0)
    step, rest = divmod(int(events.cell[i]), shape[1] * shape[2])
    return Contrast(
        step,
        *divmod(rest, shape[2]),
        next_state=number if number >= 0 else None,
        reward=None if number >= 0 else -number / BINS,
        visits=(int(visits[0]), int(visits[1])),
        shares=(float(shares[0]), float(shares[1])),
        log_evidence=log_evidence,
    )

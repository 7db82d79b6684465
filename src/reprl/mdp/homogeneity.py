"""Bets against one law: tests, valid at any time, that samples of the same cells have the same laws.

Two teams in one environment (``auditing.same_world``), or the steps of one run or log whose samples were pooled
(``steps_alike``). The argument is docs/proofs/audit.md §5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from reprl.mdp.counts import Counts
from reprl.mdp.labels import Labels

LEVEL = 1e-3
"""The chance that samples of one law are said to contradict each other, at most."""
BINS = 16
"""Rewards are compared by whether they reach each sixteenth of [0, 1]."""
_LISTED = 6


class Tallies(NamedTuple):
    """How often outcomes came to one of two sides."""

    cell: NDArray[np.int64]
    next_state: NDArray[np.int32]
    reward: NDArray[np.float64]
    hits: NDArray[np.int64]
    visits: NDArray[np.int64]
    """By cell, all of them."""

    @classmethod
    def of(cls, counts: Counts) -> Tallies:
        """Take all data, cells being (h·S + s)·A + a."""
        return cls(*counts.rows(), counts.visits.reshape(-1))


class Bets(NamedTuple):
    """Events of both sides, and what was won on each."""

    cell: NDArray[np.int64]
    number: NDArray[np.int64]
    """The next state, or −k for a reward of at least k sixteenths."""
    hits: NDArray[np.float64]
    """(2, events)."""
    visits: NDArray[np.float64]
    """(2, events): samples of their cells."""
    log_won: NDArray[np.float64]
    log_evidence: float
    """Logarithm of what a bettor owns who began with 1, an equal stake on every event that there can be."""

    @property
    def loudest(self) -> int:
        """The event on which most was won."""
        return int(self.log_won.argmax())


def bet(first: Tallies, second: Tallies, n_states: int) -> Bets:
    """Bet against one law of every cell; both sides have the same cells."""
    cell, number, hits, visits = _events((first, second), n_states)
    log_won = win(hits, visits)
    stakes = math.log(first.visits.size * (n_states + BINS - 1))
    # Events that neither side saw are left out, as if their stakes were lost: that errs on the careful side.
    total = float(special.logsumexp(log_won)) - stakes if log_won.size else -stakes
    return Bets(cell, number, hits, visits, log_won, total)


def _events(
    sides: tuple[Tallies, Tallies], n_states: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """List the events that either side saw: every next state, and every sixteenth that a reward reached."""
    size, found = n_states + BINS, [_events_of(side, n_states) for side in sides]
    seen, place = np.unique(np.concatenate([keys for keys, _ in found]), return_inverse=True)
    table, first = np.zeros((2, seen.size)), found[0][0].size
    table[0, place[:first]], table[1, place[first:]] = found[0][1], found[1][1]
    cell, event = np.divmod(seen, size)
    visits = np.stack([side.visits[cell] for side in sides]).astype(np.float64)
    return cell, np.where(event < n_states, event, n_states - event), table, visits


def _events_of(side: Tallies, n_states: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the events that a side saw, each once, as cell·(S + BINS) + event, and how often it saw each."""
    size, hits = n_states + BINS, side.hits.astype(np.float64)  # whole numbers below 2**53, whose sums are exact
    following, place = np.unique(side.cell * size + side.next_state, return_inverse=True)
    led = np.bincount(place, hits, minlength=following.size)
    cells, place = np.unique(side.cell, return_inverse=True)
    reached = np.floor(np.minimum(side.reward, 1.0) * BINS).clip(0, BINS - 1).astype(np.int64)
    table = np.bincount(place * BINS + reached, hits, minlength=cells.size * BINS).reshape(-1, BINS)
    above = table[:, ::-1].cumsum(axis=1)[:, -2::-1]  # at least 1, 2 … sixteenths
    rewards = cells[:, None] * size + n_states + np.arange(1, BINS)
    keys, times = np.concatenate([following, rewards.ravel()]), np.concatenate([led, above.ravel()])
    return keys[times > 0], times[times > 0]


def win(hits: NDArray[np.float64], visits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(mixture of the first · mixture of the second / best chance for both) of every event.

    A mixture is that of coins whose bias is drawn from Beta(½, ½).
    """
    both, all_visits = hits.sum(axis=0), visits.sum(axis=0)
    missed = all_visits - both
    best = special.xlogy(both, both) + special.xlogy(missed, missed) - special.xlogy(all_visits, all_visits)
    mixtures = special.betaln(hits + 0.5, visits - hits + 0.5) - special.betaln(0.5, 0.5)
    out: NDArray[np.float64] = mixtures.sum(axis=0) - best
    return out


class Alike(NamedTuple):
    """Whether the laws of a state and an action can be the same at all steps."""

    log_evidence: float
    """Logarithm of what a bettor owns who began with 1 and bets against that."""
    digit: int
    """Binary digit of the step in which the strongest event differs."""
    bets: Bets | None
    shape: tuple[int, int, int]

    @property
    def contradicted(self) -> bool:
        """Whether the bettor owns 1/LEVEL."""
        return self.log_evidence >= -math.log(LEVEL)

    def drift(self, labels: Labels) -> str:
        """Describe the evidence against stationary dynamics; empty if there is none."""
        return self.words(labels) if self.contradicted else ""

    def words(self, labels: Labels) -> str:
        """Say what parts the steps, in a sentence."""
        if self.bets is None:
            return "nothing tells steps apart"
        i = self.bets.loudest
        state, action = divmod(int(self.bets.cell[i]), self.shape[2])
        first, second = self.bets.hits[:, i] / np.maximum(self.bets.visits[:, i], 1.0)
        one, other = (_steps(self.shape[0], self.digit, side) for side in (0, 1))
        place = f"in state {labels.state(state)} after action {labels.action(action)}"
        event = event_words(int(self.bets.number[i]), labels)
        return f"{place}, {event} followed {first:.1%} of the time at {one} and {second:.1%} at {other}"


def event_words(number: int, labels: Labels) -> str:
    """Name an event of ``Bets``."""
    return f"state {labels.state(number)}" if number >= 0 else f"a reward of at least {-number / BINS}, rescaled,"


class StepCounts(NamedTuple):
    """How often outcomes of cells (s, a) came, and how often at steps that have a binary digit."""

    cell: NDArray[np.int64]
    next_state: NDArray[np.int32]
    reward: NDArray[np.float64]
    hits: NDArray[np.int64]
    with_digit: Sequence[NDArray[np.int64]] | NDArray[np.int64]
    """For each digit, from the lowest: those of the hits at steps in which it is 1."""
    digits: int
    """How many there can be, whatever was seen."""
    shape: tuple[int, int, int]
    """(steps, S, A)."""

    @classmethod
    def of(cls, counts: Counts) -> StepCounts:
        """Take data by step."""
        shape = counts.outcomes.shape
        cell, following, reward, hits = counts.rows()
        step, place = np.divmod(cell, shape[1] * shape[2])
        digits = (shape[0] - 1).bit_length()
        with_digit = tuple(hits * (step >> digit & 1) for digit in range(digits))
        return cls(place, following, reward, hits, with_digit, digits, shape)

    def side(self, hits: NDArray[np.int64]) -> Tallies:
        """Return some of the hits as one of two sides."""
        seen, visits = hits > 0, np.zeros(self.shape[1] * self.shape[2], dtype=np.int64)
        np.add.at(visits, self.cell, hits)
        return Tallies(self.cell[seen], self.next_state[seen], self.reward[seen], hits[seen], visits)

    def judge(self) -> Alike:
        """Bet against one law of all steps; see ``steps_alike``."""
        bets = [bet(self.side(self.hits - ones), self.side(ones), self.shape[1]) for ones in self.with_digit]
        if not any(one.log_won.size for one in bets):
            return Alike(-math.inf, 0, None, self.shape)
        evidence = [one.log_evidence for one in bets]
        loudest = int(np.argmax(evidence))
        total = float(special.logsumexp(evidence)) - math.log(self.digits)
        return Alike(total, loudest, bets[loudest], self.shape)


def steps_alike(counts: Counts) -> Alike:
    """Test whether all steps have the same dynamics, from data by step.

    Any two steps differ in a binary digit: for every digit, the steps that have it are one side and the rest the other.
    The bets of all digits that there can be have equal stakes.

    Guarantee:
        If the law of (next state, reward) in no cell depends on the step, ``contradicted`` at any look of a run has
        probability at most LEVEL (docs/proofs/audit.md §5). Data that contradict nothing prove nothing.
    """
    return StepCounts.of(counts).judge()


def _steps(horizon: int, digit: int, side: int) -> str:
    """Name the steps on a side, the first ones if they are many."""
    found = [str(h) for h in islice((h for h in range(horizon) if (h >> digit) & 1 == side), _LISTED + 1)]
    return f"step{'s' * (len(found) > 1)} {', '.join(found[:_LISTED])}{' …' * (len(found) > _LISTED)}"

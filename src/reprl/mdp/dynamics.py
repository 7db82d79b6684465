"""Dynamics: a true or estimated model, as every rule reads it, and bootstrap copies of data."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.errors import DocumentError, InputError, quote
from reprl.mdp.counts import Counts
from reprl.mdp.criterion import Criterion
from reprl.mdp.outcomes import Outcomes
from reprl.mdp.tabular import TabularMDP
from reprl.storage.files import SealedFile

_MAGIC, _MASKED = b"reprl-data 1\n", b"reprl-data 2\n"
"""Data without and with a mask of actions."""


class Dynamics(NamedTuple):
    """Probabilities of all outcomes, and which actions are known at all."""

    outcomes: Outcomes
    probability: NDArray[np.float64]
    """(outcomes.n_slots,): the law of each cell; zeros where there is no sample."""
    tried: NDArray[np.bool_]
    """(H, S, A): whether a cell has data. An action without data is never chosen."""
    initial: NDArray[np.float64]
    """(S,): law of the start."""
    allowed: NDArray[np.bool_]
    """(H, S, A): the actions that may be taken; others are never tried."""
    criterion: Criterion
    """What policies are judged by in it."""

    def policy_loss(self, best: NDArray[np.float64], actions: NDArray[np.int64]) -> float:
        """Return how much less than `best`, (S,), a policy, (H, S), is worth from the start; untried cells pay 0."""
        return float(self.policy_losses(best, actions[None])[0])

    def policy_losses(self, best: NDArray[np.float64], tables: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the same of several policies, (K, H, S), as (K,)."""
        return self.criterion.policy_losses(self.outcomes, self.probability, tables, best, self.initial)

    def occupancy(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return Pr[x_h = s] of a policy, (H, S), or several, (K, H, S); discounted, Σ_t γ^t Pr[x_t = s], H being 1."""
        return self.criterion.occupancy(self.outcomes, self.probability, actions, self.initial)


class Data(SealedFile):
    """What a run has seen.

    Args:
        counts: how often each outcome came.
        starts: (S,): how many episodes, or parallel calls, began in each state.
        allowed: (H, S, A): the actions that may be taken; None for all.
        criterion: what policies are judged by; None for the horizon of the counts.
    """

    def __init__(
        self,
        counts: Counts,
        starts: NDArray[np.int64],
        allowed: NDArray[np.bool_] | None = None,
        criterion: Criterion | None = None,
    ) -> None:
        self.counts, self.starts, self.allowed = counts, starts, allowed
        self.criterion = Criterion(counts.outcomes.horizon) if criterion is None else criterion

    def __add__(self, other: object) -> Data:
        """Add two data sets up; one without any samples has no table of its own."""
        if not isinstance(other, Data):
            return NotImplemented
        if not self.starts.any() and not self.counts.hits.any():
            return other
        return other._with(self.counts + other.counts, self.starts + other.starts)

    def _with(self, counts: Counts, starts: NDArray[np.int64]) -> Data:
        return Data(counts, starts, self.allowed, self.criterion)

    def pool(self) -> Data:
        """Let every sample count at all steps."""
        return self._with(self.counts.pool(), self.starts)

    def under(self, criterion: Criterion) -> Data:
        """Return the data as a criterion reads them: a discounted one takes pooled steps as the one that it has."""
        if criterion == self.criterion:
            return self
        outcomes = self.counts.outcomes
        if not outcomes.pooled:
            raise InputError(f"data must have pooled steps to be discounted, got {self.counts}")
        once = Counts(outcomes._replace(horizon=criterion.rows), self.counts.hits)
        allowed = None if self.allowed is None else self.allowed[: criterion.rows]
        return Data(once, self.starts, allowed, criterion)

    def to_bytes(self) -> bytes:
        """Return the canonical encoding: a magic line, a JSON line of the starts, one of the mask, then the counts."""
        starts = json.dumps(self.starts.tolist()).encode() + b"\n"
        if self.allowed is None:
            return _MAGIC + starts + self.counts.to_bytes()
        mask = json.dumps(np.packbits(self.allowed).tobytes().hex()).encode() + b"\n"
        return _MASKED + starts + mask + self.counts.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Data:
        """Read what ``to_bytes`` wrote; anything else is a ReprlError."""
        if not data.startswith((_MAGIC, _MASKED)):
            raise DocumentError(f"data must start with {_MAGIC!r}, got {quote(data[: len(_MAGIC)])}")
        line, _, rest = data[len(_MAGIC) :].partition(b"\n")
        packed, _, rest = rest.partition(b"\n") if data.startswith(_MASKED) else (None, b"", rest)
        counts = Counts.from_bytes(rest)
        try:
            starts = json.loads(line)
        except (ValueError, RecursionError):
            starts = None
        n_states = counts.outcomes.n_states
        fits = isinstance(starts, list) and len(starts) == n_states
        if not fits or not all(type(n) is int and 0 <= n < 2**62 for n in starts) or not 0 < sum(starts) < 2**63:
            raise DocumentError(f"data starts must be a list of {n_states} whole numbers, not all 0, got {quote(line)}")
        allowed = None if packed is None else _unpack(packed, counts.outcomes.shape)
        return Data(counts, np.array(starts, dtype=np.int64), allowed)


def _unpack(line: bytes, shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Read a mask, (H, S, A); in every state something must be allowed."""
    cells, text = shape[0] * shape[1] * shape[2], line.strip(b'"').decode("ascii", "replace")
    size = 2 * ((cells + 7) // 8)
    if len(text) != size or set(text) - set("0123456789abcdef"):
        raise DocumentError(f"data mask must be {size} hexadecimal digits, got {quote(line)}")
    allowed = np.unpackbits(np.frombuffer(bytes.fromhex(text), dtype=np.uint8), count=cells).astype(np.bool_)
    found: NDArray[np.bool_] = allowed.reshape(shape)
    if not found.any(axis=2).all():
        raise DocumentError(f"data mask must allow an action in every state, got {quote(line)}")
    return found


def true_dynamics(mdp: TabularMDP) -> Dynamics:
    """Return the dynamics of a known MDP."""
    outcomes = mdp.outcomes
    law = np.tile(mdp.probability, mdp.horizon if outcomes.slot_shift else 1)
    allowed = full_mask(mdp.allowed, outcomes.shape)
    return Dynamics(outcomes, law, allowed, np.asarray(mdp.initial), allowed, mdp.criterion)


def empirical_dynamics(data: Data) -> Dynamics:
    """Return the dynamics that data show: relative frequencies."""
    outcomes = data.counts.outcomes
    probability, tried = _normalise(outcomes, data.counts.hits)
    tried = np.repeat(tried, outcomes.horizon, axis=0) if outcomes.pooled else tried
    allowed = full_mask(data.allowed, outcomes.shape)
    return Dynamics(outcomes, probability, tried & allowed, data.starts / data.starts.sum(), allowed, data.criterion)


def full_mask(allowed: NDArray[np.bool_] | None, shape: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Return the actions that may be taken, (H, S, A), in one piece, as kernels want it; None stands for all."""
    return np.ones(shape, dtype=np.bool_) if allowed is None else np.array(allowed, order="C")


def _normalise(outcomes: Outcomes, hits: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return relative frequencies, and of which cells there are any."""
    steps = outcomes.horizon if outcomes.slot_shift else 1  # those that share a table have it again for each
    edges = outcomes.first + outcomes.slot_shift * np.arange(steps)[:, None]
    number = np.diff(np.concatenate([[0], np.cumsum(hits)])[edges], axis=1)
    lengths = np.tile(np.diff(outcomes.first), steps)
    probability = hits / np.maximum(np.repeat(number.ravel(), lengths), 1)
    return probability, number.reshape(outcomes.tallied) > 0

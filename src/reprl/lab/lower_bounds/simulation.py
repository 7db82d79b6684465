"""Simulations: samples of one problem made out of samples of another, with the exact number used.

The hard MDP from vector samples, by parallel calls and by episodes; padded and permuted vectors; labelled examples.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, check_int, check_probability, quote
from reprl.lab.lower_bounds.sources import Sizes, VectorSource, check_sizes, heads, multinomials
from reprl.mdp.catalogue import hard_instance
from reprl.mdp.counts import Counts
from reprl.mdp.policy import Policy, check_policy
from reprl.randomness import DataStream
from reprl.sources.parallel import GenerativeModel
from reprl.sources.protocol import Ledger, Observation

Vector = NDArray[np.float64]
_CONSOLATION = 1.0 / 3.0
"""Probability that −1 pays 1 after rewards are mapped from [−2, 1] to [0, 1]."""


class SimulatedParallel:
    """Parallel sampling of the hard MDP from vector samples, two per call (Theorem 1.4), as the model of any learner.

    One vector of the source, Rad(p) with n = S·H, pays a₊ in every (s, h), the other a₋; transitions and dummies need
    none.

    Guarantee:
        Counts of n calls have exactly the joint law that GenerativeModel(make_hard_mdp(p)) gives them, over the outcome
        table of ``mdp``, which is the hard MDP with all biases 0: a learner sees sizes there, never p.

    Randomness:
        Data: two batches of the source and its private streams "rewards" and "states".
    """

    def __init__(self, source: VectorSource, *, n_states: int, n_actions: int = 2) -> None:
        """Open the model with an empty ledger; the data seed that counts is the source's."""
        self.mdp = hard_instance(as_table(np.zeros(source.n), n_states), n_actions)
        self.horizon, self.n_states, self.n_actions = self.mdp.outcomes.shape
        self.samples_per_call = GenerativeModel(self.mdp, 0).samples_per_call
        self.source = source
        self.data_seed = 0
        self.ledger = Ledger()

    def sample(self, n: int) -> Counts:
        """Make n parallel-sampling calls out of 2n vectors."""
        n = check_int("n", n, 1, 2**61)
        paid = np.zeros((self.horizon * self.n_states, self.n_actions), dtype=np.int64)
        paid[:, 0] = self.source.count(n)
        paid[:, 1] = n - self.source.count(n)
        paid[:, :2] += self._console(n - paid[:, :2].reshape(-1)).reshape(-1, 2)
        cells = np.stack([n - paid.reshape(-1), paid.reshape(-1)])
        moved = self._move(cells.reshape(-1)).reshape(2, -1, self.n_states)
        self._charge(n)
        return Counts(self.mdp.outcomes, self._hits(moved))

    def draw_starts(self, n: int) -> Sizes:
        """Return the starts, (S,), that n calls show as their step 0: uniform, as every next state is."""
        starts: Sizes = self._move(np.array([check_int("n", n, 1, 2**61)])).reshape(-1)
        return starts

    def mean_return(self, policy: Policy, n: int) -> float:
        """Return the mean return over n fresh episodes; vectors are used as in SimulatedEpisodes."""
        n = check_int("n", n, 1, 2**62)
        actions = check_policy(policy, self).actions
        visits = self._move(np.full(self.horizon, n))
        read = np.where(actions < 2, visits, 0).reshape(-1)
        plus = self.source.count(read) if read.any() else read
        paid = np.where(actions.reshape(-1) == 0, plus, read - plus)
        total = int(paid.sum()) + int(self._console(read - paid).sum())
        self._charge(n)
        return total / n

    def _console(self, unpaid: Sizes) -> Sizes:
        """How many of the −1 in each cell pay 1 nevertheless."""
        return heads(self.source.stream("rewards"), unpaid, np.full(unpaid.size, _CONSOLATION))

    def _move(self, totals: Sizes) -> Sizes:
        """Next states of each cell's visits, uniform."""
        laws = np.full((totals.size, self.n_states), 1.0 / self.n_states)
        return multinomials(self.source.stream("states"), totals, laws)

    def _charge(self, n: int) -> None:
        self.ledger.calls += n
        self.ledger.samples += n * self.samples_per_call

    def _hits(self, moved: Sizes) -> Sizes:
        """Lay counts [reward, cell, next state] out over the slots of the outcome table."""
        table = self.mdp.outcomes
        lengths = np.diff(table.first)
        copies = table.horizon if table.slot_shift else 1
        cell = np.repeat(np.arange(lengths.size * copies), np.tile(lengths, copies))
        hits: Sizes = moved[np.tile(table.reward, copies).astype(int), cell, np.tile(table.next_state, copies)]
        return hits


class SimulatedEpisodes:
    """Episodes of the hard MDP from vector samples (proof of Theorem 1.5): reset and step for an episodic learner.

    The source is Rad(p) with n = S·H. The j-th visit to (s, h), whichever of a₊ and a₋ is played there, reads
    coordinate (s, h) of the j-th vector. (The paper gives each (s, a, h) its own count; then a₊ and a₋ would share
    draws and the rewards would be dependent.)

    Guarantee:
        Observations have exactly the law of EpisodicModel(make_hard_mdp(p)), whatever the learner does. The vectors
        used, ``source.samples``, are max over (s, h) of the visits that played a₊ or a₋: `episode_vectors` bounds them.

    Randomness:
        Data: vectors of the source one by one, and its private stream "episodes", 2h + 1 and 2h + 2 for step h.
    """

    def __init__(self, source: VectorSource, *, n_states: int, n_actions: int = 2) -> None:
        self.horizon, self.n_states = as_table(np.zeros(source.n), n_states).shape
        self.n_actions = check_int("n_actions", n_actions, 2)
        self.source = source
        self.data_seed = 0
        self.ledger = Ledger()
        self._visits = np.zeros(source.n, dtype=np.int64)
        self._vectors: deque[NDArray[np.bool_]] = deque()
        self._dropped = 0
        self._h, self._state = self.horizon, -1
        self._uniforms = np.empty(0)

    @property
    def known(self) -> Mapping[int, float]:
        """No state: every law is learned from samples."""
        return {}

    @property
    def arrays(self) -> None:
        """No tables: p is hidden, so a learner plays step by step."""

    @property
    def samples_per_episode(self) -> int:
        """H, and one more when the start is random."""
        return int(self.horizon + (0 if self.n_states == 1 else 1))

    def fresh_stream(self, purpose: str) -> DataStream:
        """Open private randomness of the source."""
        return self.source.stream(purpose)

    def reset(self, seed: int | None = None) -> int:
        """Begin the next episode and return its first state, uniform; vectors come in order, so no seed names one."""
        self._uniforms = self.source.stream("episodes").uniforms(2 * self.horizon + 1)
        self._h, self._state = 0, int(self._uniforms[0] * self.n_states)
        self.ledger.episodes += 1
        self.ledger.samples += 0 if self.n_states == 1 else 1
        return self._state

    def step(self, action: int) -> Observation:
        """Take an action in the current state and return what is seen."""
        if self._h >= self.horizon:
            raise InputError(f"step needs an episode in progress: call reset first (horizon {self.horizon})")
        a = check_int("action", action, 0, self.n_actions - 1)
        move, coin = self._uniforms[2 * self._h + 1 : 2 * self._h + 3]
        reward = 0.0
        if a < 2:
            plus = self._read(self._h * self.n_states + self._state)
            reward = float(plus == (a == 0) or coin < _CONSOLATION)
        self._state = int(move * self.n_states)
        self._h += 1
        self.ledger.samples += 1
        return Observation(self._state, reward, self._h == self.horizon)

    def _read(self, i: int) -> bool:
        """Read coordinate i of the first vector in which it has not been read, drawing a vector if there is none."""
        while self._visits[i] >= self._dropped + len(self._vectors):
            self._vectors.append(self.source.vectors(1)[0])
            while self._dropped < self._visits.min():
                self._vectors.popleft()
                self._dropped += 1
        value = bool(self._vectors[int(self._visits[i]) - self._dropped][i])
        self._visits[i] += 1
        return value


def episode_vectors(episodes: int, *, n_states: int, horizon: int, delta: float) -> int:
    """Return how many vectors suffice to simulate episodes, except with probability δ (proof of Theorem 1.5).

    Guarantee:
        m/S + √(2(m/S)·L) + 2L/3 with L = log(SH/δ), whatever the learner plays: docs/proofs/lower-bounds.md §4.
    """
    m = check_int("episodes", episodes, 1, 2**62)
    s, h = check_int("n_states", n_states, 1), check_int("horizon", horizon, 1)
    log = math.log(s * h / check_probability("delta", delta))
    return min(m, math.ceil(m / s + math.sqrt(2.0 * m / s * log) + 2.0 * log / 3.0))


class PaddedSource:
    """Samples of Rad(π(q̄)) from those of Rad(q), one for one, q̄ = (q, +pad…, −pad…) of dimension 3n (Lemma B.3).

    Coordinate j here is coordinate order[j] of q̄.

    Randomness:
        Data: the base, and its private stream "padding".
    """

    def __init__(self, base: VectorSource, order: NDArray[np.int64], pad: float) -> None:
        self.n = 3 * base.n
        if sorted(order.tolist()) != list(range(self.n)):
            raise InputError(f"order must be a permutation of 0 to {self.n - 1}, got {quote(order)}")
        self._base, self._order = base, order
        self._chances = np.repeat([(1.0 + pad) / 2.0, (1.0 - pad) / 2.0], base.n)

    @property
    def samples(self) -> int:
        """Vectors of the base drawn so far."""
        return self._base.samples

    def count(self, sizes: Any) -> Sizes:
        """Draw fresh vectors and return the number of +1 in each coordinate."""
        wanted = check_sizes(sizes, self.n)[np.argsort(self._order)]
        added = heads(self.stream("padding"), wanted[self._base.n :], self._chances)
        own = wanted[: self._base.n]
        plus = self._base.count(own) if own.any() else own
        out: Sizes = np.concatenate([plus, added])[self._order]
        return out

    def vectors(self, m: int) -> NDArray[np.bool_]:
        """Draw m fresh vectors, (m, 3n)."""
        base = self._base.vectors(m)
        added = self.stream("padding").uniforms(m * self._chances.size).reshape(m, -1) < self._chances
        out: NDArray[np.bool_] = np.concatenate([base, added], axis=1)[:, self._order]
        return out

    def stream(self, purpose: str) -> DataStream:
        """Open private randomness of the base."""
        return self._base.stream(purpose)


class SignExamples:
    """Labelled examples from vector samples (Theorem B.9): x uniform on d points, y the coordinate of x.

    points, (d,), are the numbers of the shattered points among 0…n_points−1.

    Guarantee:
        Examples are independent with Pr[(x_i, ±1)] = (1 ± p_i)/(2d). m of them use as many vectors as the most frequent
        point has examples.

    Randomness:
        Data: the base, and its private stream "points".
    """

    def __init__(self, base: VectorSource, points: NDArray[np.int64], n_points: int) -> None:
        self.n_points = n_points
        self._base, self._points = base, points
        self.samples = 0

    def count(self, m: int) -> Sizes:
        """Draw m fresh examples and count them, (D, 2)."""
        d = self._base.n
        uniform = np.full((1, d), 1.0 / d)
        each = multinomials(self._base.stream("points"), np.array([check_int("m", m, 1, 2**62)]), uniform)[0]
        plus = self._base.count(each)
        out = np.zeros((self.n_points, 2), dtype=np.int64)
        out[self._points] = np.stack([each - plus, plus], axis=1)
        self.samples += m
        return out


def as_table(biases: Vector, n_states: int) -> Vector:
    """Lay n = H·S coordinates out as (H, S)."""
    states = check_int("n_states", n_states, 1)
    if biases.size % states:
        raise InputError(f"n_states must divide the number of biases {biases.size}, got {n_states}")
    return biases.reshape(-1, states)

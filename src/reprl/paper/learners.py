"""Many learners of Theorem 4.13 at once: what boosting draws from parallel samples, in one kernel.

A learner makes parallel calls and decides by Algorithm 2 with one tier. Learners under one seed differ in their data
alone: independent multinomials, which the kernel draws, and the same shared draws, which it looks up. So boosting at
the paper's own sizes, a million learners and more, takes seconds. `ParallelLearners.replay` makes one of them again by
`tiered_induction`, which tests compare with the kernel.
"""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.coupling.correlated import draw_rows
from reprl.coupling.gumbel_field import SLICE, Search, begin, find_winner, make_search
from reprl.errors import InputError
from reprl.kernels import njit
from reprl.mdp.counts import Counts
from reprl.mdp.draws import multinomial
from reprl.mdp.outcomes import expected_return
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers
from reprl.paper.constants import Constants
from reprl.paper.rep_rl_bandit import Induction, tiered_induction
from reprl.paper.rep_var_bandit import Decision
from reprl.randomness import SharedKey
from reprl.sources.parallel import GenerativeModel, LearnerData

CHUNK = 1 << 17
"""Learners between two looks at the world outside."""


class Choice(NamedTuple):
    """How every step decides: shared addresses and the numbers of the mechanism, the coupling and the rounding."""

    arms: NDArray[np.uint64]
    """(H, 2): shared address of a step's arms,"""
    rounding: NDArray[np.uint64]
    """(H, 2): and of its rounding."""
    epsilon: float
    temperature: float
    """Of the exponential mechanism; 0 for the compact one, whose window is ε/2."""
    width: float
    """Of the rounding; 0 for none."""
    subtracted: float
    """Pessimism: what every value loses."""
    joint: bool
    """Whether states are coupled together."""
    max_nodes: int


class ParallelLearners:
    """Learners of one size under seeds of one shared key, from one model.

    Args:
        model: parallel samples of an MDP in memory.
        constants: calls, accuracy and failure probability of a learner.
        decision: mechanism, coupling and rounding.
        workers: threads; they cannot change what is found.

    Randomness:
        Shared, as ``tiered_induction`` at key.derive("decide"). Data: one batch of the model for every call of `many`;
        learner i of a batch reads lanes i·HSA to (i + 1)·HSA − 1.
    """

    def __init__(self, model: GenerativeModel, constants: Constants, decision: Decision, workers: int = 1) -> None:
        self._model, self._constants, self._decision, self._workers = model, constants, decision, workers
        self._first: dict[Policy, tuple[SharedKey, LearnerData, int]] = {}

    @staticmethod
    def ready(model: object) -> bool:
        """Whether kernels can make these learners; it depends on the configuration alone."""
        return isinstance(model, GenerativeModel) and model.allowed is None

    def many(self, key: SharedKey, n: int) -> Counter[Policy]:
        """Make n learners under one seed and count the policies that they output.

        Guarantee:
            Exactly the law of n calls of ``learn_once``: independent data, one key.
        """
        data = self._model.for_learners(self._constants.calls, n)
        choice = self._choice(key)
        found: Counter[Policy] = Counter()

        def decide(first: int) -> list[tuple[int, int, NDArray[np.uint16]]]:
            return self._chunk(data, choice, first, min(CHUNK, n - first))

        with ThreadPoolExecutor(self._workers) as pool:
            for chunk in pool.map(decide, range(0, n, CHUNK)):  # in order, whoever is done first
                for number, count, actions in chunk:
                    policy = Policy(actions.astype(np.int64))
                    found[policy] += count
                    self._first.setdefault(policy, (key, data, number))
        return found

    def _chunk(
        self, data: LearnerData, choice: Choice, first: int, n: int
    ) -> list[tuple[int, int, NDArray[np.uint16]]]:
        """Make learners first, …, first + n − 1: for every policy its first learner, its number of learners, itself."""
        actions = np.empty((n, self._model.horizon, self._model.n_states), dtype=np.uint16)
        if not _decide(data, choice, first, *self._searches(), actions):
            raise InputError(
                f"coupling of the states of a step passed max_nodes={choice.max_nodes}: choose coupling='product'"
            )
        rows = actions.reshape(n, -1)
        size = rows.dtype.itemsize * rows.shape[1]
        kind: Any = f"u{size}" if size in (2, 4, 8) else np.dtype((np.void, size))  # numbers are sorted faster
        _, index, times = np.unique(rows.view(kind).ravel(), return_index=True, return_counts=True)
        return [(first + i, count, actions[i]) for i, count in sorted(zip(index.tolist(), times.tolist(), strict=True))]

    def replay(self, policy: Policy) -> tuple[Induction, Counts]:
        """Return how the first learner that output a policy came to it."""
        key, data, number = self._first[policy]
        hits = np.zeros(data.outcomes.n_slots, dtype=np.int64)
        draw_learner(data, number, hits)
        counts, tiers = Counts(data.outcomes, hits), Tiers.single(self._model.horizon, self._model.n_states)
        induction = tiered_induction(
            key.derive("decide"),
            counts,
            tiers,
            accuracy=self._constants.accuracy,
            delta=self._constants.delta,
            decision=self._decision,
        )
        return induction, counts

    def _choice(self, key: SharedKey) -> Choice:
        horizon, n_states, n_actions = self._model.horizon, self._model.n_states, self._model.n_actions
        (epsilon,), decision = self._constants.by_tier, self._decision
        steps = [key.derive("decide", "induction", h, 1) for h in range(horizon)]
        log = math.log(3.0 * n_states * n_actions / (self._constants.delta / horizon))
        return Choice(
            arms=np.array([step.derive("arms").words for step in steps]),
            rounding=np.array([step.derive("rounding").words for step in steps]),
            epsilon=epsilon,
            temperature=2.0 * log / epsilon if decision.mechanism == "exponential" else 0.0,
            width=epsilon / 2.0 if decision.rounding else 0.0,
            subtracted=self._constants.pessimism * epsilon,
            joint=decision.coupling == "joint",
            max_nodes=decision.max_nodes,
        )

    def _searches(self) -> tuple[Search, Search]:
        n_states = self._model.n_states
        return make_search(n_states, self._model.n_actions), make_search(n_states, 2)


@njit(cache=True, nogil=True)
def draw_learner(data: LearnerData, number: int, hits: NDArray[np.int64]) -> None:
    """Fill hits, one number for each step and outcome, with the samples of one learner."""
    outcomes = data.outcomes
    cells = outcomes.n_states * outcomes.n_actions
    for cell in range(outcomes.horizon * cells):
        h = cell // cells
        row = h * outcomes.row_shift + cell - h * cells
        low, high, shift = outcomes.first[row], outcomes.first[row + 1], h * outcomes.slot_shift
        lane = np.uint64(number) * np.uint64(outcomes.horizon * cells) + np.uint64(cell)
        part = hits[low + shift : high + shift]
        multinomial(data.key, lane, data.calls, data.law[low:high], data.cumulative[low:high], part)


@njit(cache=True, nogil=True)
def _decide(
    data: LearnerData, choice: Choice, first: int, search: Search, coins: Search, actions: NDArray[np.uint16]
) -> bool:
    """Fill actions, (n, H, S), with the policies of learners first, first + 1, …; False if a search takes too long."""
    horizon, n_states, n_actions = data.outcomes.horizon, data.outcomes.n_states, data.outcomes.n_actions
    hits = np.zeros(data.outcomes.next_state.size + (horizon - 1) * data.outcomes.slot_shift, np.int64)
    scores, laws, pair = np.empty((n_states, n_actions)), np.empty((n_states, n_actions)), np.empty((n_states, 2))
    values, chosen = np.empty(n_states), np.empty(n_states, np.int64)
    for i in range(actions.shape[0]):
        draw_learner(data, first + i, hits)
        values[:] = 0.0
        for h in range(horizon - 1, -1, -1):
            expected_return(data.outcomes, hits, data.outcomes.slot_shift, h, values, scores)
            scores /= data.calls
            _weigh(scores, choice, laws)
            if not _couple(choice.arms[h], laws, choice, search, chosen):
                return False
            for s in range(n_states):
                actions[i, h, s] = chosen[s]
                values[s] = scores[s, chosen[s]]
            if h > 0:  # values of the first step enter nothing
                if choice.width > 0.0 and not _round(choice.rounding[h], values, choice, coins, pair, chosen):
                    return False
                for s in range(n_states):
                    values[s] = min(max(values[s] - choice.subtracted, 0.0), float(horizon - h))
    return True


@njit(cache=True, nogil=True, inner=True)
def _weigh(scores: NDArray[np.float64], choice: Choice, laws: NDArray[np.float64]) -> None:
    """Turn scores into laws, as `exponential` and `compact` do."""
    n, k = scores.shape
    for s in range(n):
        best = scores[s].max()
        total = 0.0
        for a in range(k):
            if choice.temperature > 0.0:
                laws[s, a] = math.exp(choice.temperature * (scores[s, a] - best))
            else:
                close = min(max(1.0 - (best - scores[s, a]) / (choice.epsilon / 2.0), 0.0), 1.0)
                laws[s, a] = math.sin(0.5 * math.pi * close) ** 2
            total += laws[s, a]
        for a in range(k):
            laws[s, a] /= total


@njit(cache=True, nogil=True, inner=True)
def _couple(
    words: NDArray[np.uint64], laws: NDArray[np.float64], choice: Choice, search: Search, out: NDArray[np.int64]
) -> bool:
    """Draw an outcome for each row, as `correlated_sample` does."""
    n, k = laws.shape
    for i in range(n):  # once more, as a caller's laws are
        laws[i] /= laws[i].sum()
    if not choice.joint:
        draw_rows(words[0], words[1], laws, out)
        return True
    for i in range(n):
        best = np.log(laws[i].max())
        for j in range(k):
            laws[i, j] = best - np.log(laws[i, j])
    begin(search, words[0], words[1], k)
    while search.progress[0] > 0:
        find_winner(words[0], words[1], laws, search, search.progress[1] + SLICE, out)
        if search.progress[1] > choice.max_nodes:
            return False
    return True


@njit(cache=True, nogil=True, inner=True)
def _round(
    words: NDArray[np.uint64],
    values: NDArray[np.float64],
    choice: Choice,
    coins: Search,
    pair: NDArray[np.float64],
    parity: NDArray[np.int64],
) -> bool:
    """Round values in place, as `round_vector` does."""
    width = choice.width
    for i in range(values.size):
        cell = values[i] / width
        below = math.floor(cell)
        up = math.sin(0.5 * math.pi * (cell - below)) ** 2
        odd = 1.0 - up if below % 2 == 1 else up
        pair[i, 0], pair[i, 1] = 1.0 - odd, odd
    if not _couple(words, pair, choice, coins, parity):
        return False
    for i in range(values.size):
        below = math.floor(values[i] / width)
        values[i] = width * (below + (parity[i] != below % 2))
    return True

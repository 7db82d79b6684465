"""Exploration: whole episodes, in batches; every step of them is kept.

Even batches play the rule's own soft policy, so that samples go where the rule compares actions. Odd ones look into
rows that hardly were tried: without them a run may never see what its soft policy never meets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.execution.pool import WorkerPool
from reprl.execution.settings import Progress
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import Data, full_mask
from reprl.mdp.evidence import BEST, REWARDS, Evidence
from reprl.mdp.homogeneity import steps_alike
from reprl.mdp.labels import Labels
from reprl.mdp.model import occupancy, one_hot, solve
from reprl.sources.black_box import play_batch
from reprl.sources.episodes import play_table
from reprl.sources.protocol import Episodic, has_fixed_start, is_stationary, mask_of, no_data
from reprl.sources.source import FIRST, LIMITS, Samples, Soft, doubling, most_samples

BATCHES, MOST_BATCHES = 16, 64
"""Batches of a round; while rows are hardly tried, one for four rows, at most so many: each can look into few."""
FEW = 64
"""Samples of a row below which it counts as hardly tried, at first; doubled until there are such rows."""
LEAST_VISITS = 1e-3
"""Visits of the soft policy below which all states count alike."""


class Episodes:
    """Episodes whose policies follow what is known, as a DataSource; a unit is an episode.

    Args:
        model: the MDP in memory, or a black box.
        pool: the processes that play a black box.
        pooled: whether a sample counts at every step.
        enough: samples of a row from which on nothing unseen can matter in it; infinite if nothing is assumed.
        progress: called with the round, its episodes done and all its episodes.

    Randomness:
        A fresh data stream of the model for every batch.
    """

    def __init__(
        self,
        model: Episodic,
        pool: WorkerPool,
        *,
        pooled: bool,
        enough: float = np.inf,
        progress: Progress | None = None,
    ) -> None:
        self.ledger, self.data_seed = model.ledger, model.data_seed
        self.model, self.pool, self.pooled, self.enough, self._progress = model, pool, pooled, enough, progress
        self._limit = 0

    def sizes(self, limit: int | None) -> list[int]:
        """Return the numbers of episodes, round by round; where steps are pooled, an episode tells about H cells.

        The limit ends them by itself: the data of a run with a larger limit begin with those of a run with a smaller
        one, but for the last batches.
        """
        model = self.model
        first = FIRST * model.n_states * model.n_actions
        if self.pooled:
            first = -(-first // model.horizon)
        usual = LIMITS["black box" if model.arrays is None else "tables"]
        self._limit = most_samples(limit, usual, model.samples_per_episode)
        return list(doubling(first, max(first, self._limit)))

    def exhausted(self, known: Samples) -> bool:
        """Whether the limit leaves less than a full episode."""
        return self._limit - known.spent < self.model.samples_per_episode

    def empty(self) -> Samples:
        """Return what is known before the first episode.

        Steps that are pooled because somebody says that they are alike are kept apart as well, to see. Whether they
        contradict it takes a promise away; no choice depends on it.
        """
        told = self.pooled and not is_stationary(self.model) and criterion_of(self.model).discount is None
        none = no_data(self.model, pooled=self.pooled)
        steps = no_data(self.model).counts if told else None
        return Samples(
            none,
            none,
            criterion_of(self.model),
            has_fixed_start(self.model),
            tuple(self.model.known),
            steps=None if steps is None else (steps, steps),
        )

    def gather(self, known: Samples, size: int, soft: Soft) -> Samples:
        """Play episodes until there are so many, or the limit is reached; early ends leave samples for others."""
        before, episodes, name = known.spent - self.ledger.samples, size - known.size, f"round {known.round + 1}"
        if self._progress is not None:
            self._progress(name, 0, episodes)
        batches = self._batches(known)
        for number, (first, last) in enumerate(pairwise(episodes * k // batches for k in range(batches + 1))):
            left = self._limit - before - self.ledger.samples
            wanted = min(last - first, left // self.model.samples_per_episode)
            if wanted < 1:
                continue
            told = None if self._progress is None else _shifted(self._progress, name, first, episodes)
            shared = self.pooled and known.steps is None
            play: Any = play_batch if self.model.arrays is None else partial(play_table, pooled=shared)
            laws = self._plan(known, soft, explores=number % 2 == 1)
            fresh = play(self.model, laws, wanted, self.model.fresh_stream("episodes"), self.pool, told)
            known = self._add(known, *fresh)
        return known._replace(round=known.round + 1, spent=before + self.ledger.samples)

    def _batches(self, known: Samples) -> int:
        """Return the batches of the next round."""
        rows = self.model.n_states * self.model.n_actions * (1 if self.pooled else self.model.horizon)
        samples = None if known.size == 0 else known.evidence().samples
        tried = samples is not None and bool((samples[samples > 0] >= min(self.enough, FEW)).all())
        return BATCHES if tried else min(MOST_BATCHES, max(BATCHES, rows // 4))

    def _add(self, known: Samples, *fresh: Data) -> Samples:
        """Add what a batch showed."""
        steps = known.steps
        if steps is not None:
            steps = (steps[0] + fresh[0].counts, steps[1] + fresh[1].counts)
        one, two = (half.pool() if self.pooled else half for half in fresh)
        return known._replace(one=known.one + one, two=known.two + two, steps=steps)

    def _plan(self, known: Samples, soft: Soft, *, explores: bool) -> NDArray[np.float64]:
        """Return what a batch plays, laws of actions (H, S, A) for every step."""
        shape = (self.model.horizon, self.model.n_states, self.model.n_actions)
        if known.size == 0:
            allowed = full_mask(mask_of(self.model), shape)
            return np.asarray(allowed / allowed.sum(axis=2, keepdims=True))
        evidence = known.evidence()
        play = soft(evidence)
        play = plan_unknown(evidence, play, self.enough) if explores else play
        return np.ascontiguousarray(np.broadcast_to(play, (shape[0], *play.shape[1:])))

    def drift(self, known: Samples) -> str:
        """Say what shows that pooled steps are not alike, if anything does."""
        if known.steps is None:
            return ""
        return steps_alike(known.steps[0] + known.steps[1]).drift(getattr(self.model, "labels", Labels()))


def plan_unknown(evidence: Evidence, play: NDArray[np.float64], enough: float) -> NDArray[np.float64]:
    """Return what is played to look into rows that hardly were tried, (H, S, A); `play` if all rows are known.

    A visit of such a row is worth w/(n + 1)², with w the square of the soft policy's visits of its state. To find new
    ways, a row with few samples is believed to lead to the best state with a chance of 1/(n + 1).

    Args:
        evidence: of the run so far.
        play: (H, S, A): the soft policy.
        enough: as in ``Episodes``.
    """
    model, samples = evidence.model, evidence.samples
    horizon, n_states, n_actions = model.allowed.shape
    rows, shared = samples.size, model.shift == 0
    visits = np.empty((horizon, n_states))
    occupancy(model, play, visits, np.empty((2, n_states)))
    weight = (visits.sum(axis=0) if shared else visits.ravel())[np.arange(rows) // n_actions]
    may = (model.allowed.any(axis=0) if shared else model.allowed).ravel() & ~evidence.exact
    met = (samples.reshape(-1, n_actions).sum(axis=1) > 0)[np.arange(rows) // n_actions] & may
    below = met & (samples < enough)
    if not below.any():
        return play
    few = float(FEW)
    while not (met & (samples < min(enough, few))).any():
        few *= 2.0
    wanted = may & (samples < min(enough, few))
    bonus = np.where(wanted, (np.maximum(weight, LEAST_VISITS) / (samples + 1.0)) ** 2, 0.0)
    values, gaps = np.empty((horizon + 1, n_states)), np.empty(model.allowed.shape)
    solve(model, values, gaps)
    lengths = np.diff(model.first)
    hope = np.where(~evidence.exact & (samples < min(enough, FEW)), 1.0 / (samples + 1.0), 0.0)
    law, next_state = model.law * np.repeat(1.0 - hope, lengths), model.next_state.copy()
    place = model.first[1:] - len(REWARDS) + BEST
    law[place], next_state[place] = hope, values[1:].mean(axis=0).argmax()
    hoped = model._replace(law=law, next_state=next_state, reward=np.repeat(bonus, lengths))
    solve(hoped, values, gaps)
    return one_hot((gaps == 0.0).argmax(axis=2), n_actions)


def _shifted(progress: Progress, name: str, before: int, total: int) -> Callable[[int, int], None]:
    """Report a batch as a part of its round."""
    return lambda done, _: progress(name, before + done, total)

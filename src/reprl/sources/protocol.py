"""What a model of samples offers: parallel calls or episodes, each with an exact ledger.

A sample is one observed (next state, reward). A random start counts as in the reduction to a fixed one: a step 0
with one state, in which every action does the same. So it is one row, and one sample, of every parallel call and every
episode, by step or pooled; from a fixed start there is nothing to observe, and it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, cast, get_args

import numpy as np
from numpy.typing import NDArray

from reprl.errors import InputError, quote
from reprl.mdp.counts import Counts, tally
from reprl.mdp.criterion import criterion_of
from reprl.mdp.draws import AliasTable
from reprl.mdp.dynamics import Data
from reprl.mdp.outcomes import Outcomes
from reprl.randomness import DataStream

Access = Literal["episodic", "generative"]
"""How an environment is sampled: by episodes, or by parallel calls."""
ACCESSES = get_args(Access)


@dataclass
class Ledger:
    """What has been spent: exact, and only ever added to by the models."""

    samples: int = 0
    episodes: int = 0
    calls: int = 0


class Observation(NamedTuple):
    """What one step shows: the next state, the reward in [0, 1], and whether the episode is over."""

    state: int
    reward: float
    done: bool


class Model(Protocol):
    """Where samples come from, whichever way."""

    n_states: int
    n_actions: int
    horizon: int
    ledger: Ledger
    data_seed: int


def is_stationary(model: object) -> bool:
    """Whether a model, or an environment, shows that its law does not depend on the step; silence is a no."""
    return bool(getattr(model, "stationary", False))


def mask_of(model: object) -> NDArray[np.bool_] | None:
    """Return the actions that may be taken, (H, S, A); None if all may, or nobody says."""
    return getattr(model, "allowed", None)


def has_fixed_start(model: object) -> bool:
    """Whether a model says that every episode begins in one state."""
    world = getattr(model, "mdp", None)
    return world is not None and bool(world.fixed_start)


def no_data(model: Model, *, pooled: bool = False) -> Data:
    """Return what is known before the first sample; if steps are pooled, all that is added to it has to be."""
    shape = (model.horizon, model.n_states, model.n_actions)
    none = Data(tally([], shape), np.zeros(model.n_states, dtype=np.int64), mask_of(model))
    return none.pool() if pooled else none


class Parallel(Model, Protocol):
    """Anything that can be sampled in parallel, one outcome of every cell a call."""

    @property
    def samples_per_call(self) -> int:
        """Samples that a call costs."""

    def sample(self, n: int) -> Counts:
        """Make n calls and return what they showed."""

    def draw_starts(self, n: int) -> NDArray[np.int64]:
        """Return the starts, (S,), that the last n calls showed as their step 0: paid for with them."""


class Episodic(Model, Protocol):
    """Anything that can be explored by episodes: an MDP in memory or a black-box environment."""

    @property
    def known(self) -> Mapping[int, float]:
        """States whose law needs no sample: they are never left again, and every action pays this."""

    @property
    def arrays(self) -> EpisodeArrays | None:
        """Tables that a kernel may play by itself, adding to the ledger what it drew; None for a black box."""

    @property
    def samples_per_episode(self) -> int:
        """The most samples that an episode can cost."""

    def fresh_stream(self, purpose: str) -> DataStream:
        """Return a data stream that no earlier batch of this model has read."""

    def reset(self, seed: int | None = None) -> int:
        """Begin the episode that a seed names, if the model can name episodes, or the next one; return its state."""

    def step(self, action: int) -> Observation:
        """Take an action and return what is seen."""


class EpisodeArrays(NamedTuple):
    """The flat arrays that a kernel samples episodes from.

    Word w draws outcome ``draw_outcome(table, row, w)`` with row = h·row_shift + s·A + a, and start state
    ``start_state[draw_outcome(start, 0, w)]``.
    """

    outcomes: Outcomes
    table: AliasTable
    start_state: NDArray[np.int64]
    start: AliasTable
    probability: NDArray[np.float64]
    """Of every outcome."""
    initial: NDArray[np.float64]
    """(S,)"""


_PARTS = {
    "generative": ("a reprl.GenerativeModel", ("sample", "draw_starts", "samples_per_call")),
    "episodic": (
        "a reprl.EpisodicModel or a reprl.GymnasiumModel",
        ("reset", "step", "known", "arrays", "samples_per_episode", "fresh_stream"),
    ),
}


def check_model(model: object, access: str, whom: str, *, masked: bool = False) -> None:
    """Refuse a model that does not offer what its access asks for: Parallel for "generative", or Episodic.

    whom is what it is for, in errors; masked says that it can do with fewer actions than all, and without a horizon.
    """
    allowed, own = _PARTS[access]
    offered = dir(model)  # reads no property: tables are built when a kernel asks for them
    for part in (*own, "n_states", "n_actions", "horizon", "ledger", "data_seed"):
        if part not in offered:
            raise InputError(f"model must be {allowed} for {whom}, got {quote(model)}: it has no {part}")
    if not masked:
        hint = ": only reprl learns discounted MDPs"
        criterion_of(cast(Model, model)).require_horizon(f"model must have a horizon for {whom}", "one with ", hint)
    mask = None if masked else mask_of(model)
    if mask is not None:
        raise InputError(
            f"model must allow every action for {whom}, got {int((~mask).sum())} masked of {mask.size}: "
            "only reprl with rule='canonical' keeps to masks"
        )

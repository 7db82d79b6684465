"""Pairs of searches: runs under one shared seed on independent data, where policies are no tables of an MDP."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import closing, nullcontext
from functools import partial
from typing import Annotated, NamedTuple

from reprl.auditing.pairs import pair_seeds, run_numbered
from reprl.errors import InputError, quote
from reprl.learning.search import learn_search
from reprl.learning.search_result import SearchResult, first_difference
from reprl.randomness import SharedKey
from reprl.search.settings import SearchSettings
from reprl.sources.returns import ReturnModel
from reprl.storage import fields as f
from reprl.storage.checkpoints import Checkpoint, Content, Kept
from reprl.storage.fields import declared, many, optional, read_fields, write_fields

SEARCH = "search"
_TWO = partial(many, length=2)


class SearchPair(NamedTuple):
    """Two runs of one shared seed."""

    same: Annotated[bool, f.FLAG]
    """Whether their policies are equal, bit by bit."""
    statuses: Annotated[tuple[str, str], _TWO(f.choice(("certified", "none")))]
    """What each run promises."""
    samples: Annotated[tuple[int, int], _TWO(f.whole())]
    values: Annotated[tuple[float | None, float | None], _TWO(optional(f.real(-math.inf)))]
    """What each policy earned on average; None where it was not played."""
    above: Annotated[tuple[float | None, float | None], _TWO(optional(f.real(-math.inf)))]
    """What each mean return is certified to exceed."""
    parted: Annotated[str, f.TEXT]
    """Where the two first differ; empty if they do not."""

    @property
    def differ(self) -> bool:
        """Whether the policies differ."""
        return not self.same


class SearchTrial(NamedTuple):
    """Everything that a pair depends on, so that any worker can make it."""

    model: ReturnModel
    settings: SearchSettings
    seed: int
    budget: int | None


def run_pair(trial: SearchTrial, number: int) -> SearchPair:
    """Make both runs of the pair with a number.

    Randomness:
        As ``pair_seeds`` says.
    """
    shared, seeds = pair_seeds(trial.seed, number)
    one, two = (_search(trial, shared, seed) for seed in seeds)
    same = one.policy.fingerprint == two.policy.fingerprint
    return SearchPair(
        same,
        (one.guarantee.status, two.guarantee.status),
        (one.samples, two.samples),
        (one.value, two.value),
        (one.certified_return, two.certified_return),
        "" if same else first_difference(one.details, two.details),
    )


def _search(trial: SearchTrial, key: SharedKey, data_seed: int) -> SearchResult:
    model = trial.model.for_run(data_seed)
    with closing(model) if model.reopens else nullcontext():
        return learn_search(model, trial.settings, key.seed, max_samples=trial.budget)


def run_pairs(
    trial: SearchTrial,
    pairs: int,
    workers: int,
    *,
    may_stop: bool,
    checkpoint: Checkpoint | None,
) -> Generator[SearchPair, None, None]:
    """Make pairs 0, 1, …, in order; the arguments are those of ``reprl.auditing.pairs.run_keys``."""
    if workers > 1 and not trial.model.reopens:
        raise InputError(f"env must be an id or a factory for several workers, got {quote(trial.model.env)}")
    store = None if checkpoint is None else Kept(checkpoint, "pair ", _write, _read)
    return run_numbered(run_pair, trial, pairs, workers, store, may_stop=may_stop)


def _write(pair: SearchPair) -> Content:
    return Content(write_fields(pair, declared(SearchPair)), b"")


def _read(content: Content) -> SearchPair:
    return SearchPair(**read_fields("task", content.fields, declared(SearchPair), joint=" "))

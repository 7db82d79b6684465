"""Tiers: the reachability partition (Definition 4.3), and the check that data are nice for it (Definition 4.4)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reprl.errors import InputError, check_int, check_real, quote
from reprl.mdp.counts import Counts

_MAX_CELLS = 2**28


class Tiers(NamedTuple):
    """A partition of the states of every step into tiers 1 … L, easiest to reach first.

    States of tier L are ignored when L ≥ 2 (their reachability is negligible); a single tier ignores nothing.
    """

    level: NDArray[np.int64]
    """(H, S): the tier of each state at each step."""
    count: int  # type: ignore[assignment]  # tuple.count is of no use here
    """L."""

    @classmethod
    def single(cls, horizon: int, n_states: int) -> Tiers:
        """The trivial partition of parallel sampling: every state in tier 1."""
        horizon, n_states = check_int("horizon", horizon, 1), check_int("n_states", n_states, 1)
        if horizon * n_states > _MAX_CELLS:
            raise InputError(f"tiers must have at most {_MAX_CELLS} cells (h, s), got {quote((horizon, n_states))}")
        return cls(np.ones((horizon, n_states), dtype=np.int64), 1)

    @classmethod
    def from_levels(cls, level: ArrayLike, count: int) -> Tiers:
        """Check an (H, S) table of tier numbers."""
        count = check_int("number of tiers", count, 1)
        table = _as_array(level, "an (H, S) table of tier numbers")
        if table.ndim != 2 or table.dtype.kind not in "iu":
            raise InputError(f"tiers must be an (H, S) table of tier numbers, got {table.dtype} of shape {table.shape}")
        bad = (table < 1) | (table > count)
        if bad.any():
            h, s = (int(i) for i in np.argwhere(bad)[0])
            raise InputError(f"tier of state {s} at step {h} must be from 1 to {count}, got {table[h, s]}")
        frozen = table.astype(np.int64)
        frozen.setflags(write=False)
        return cls(frozen, count)

    @classmethod
    def from_sets(cls, sets: ArrayLike) -> Tiers:
        """Read L sets of states, (L, H, S) booleans, that must cover every (h, s) exactly once."""
        masks = _as_array(sets, "(L, H, S) booleans")
        if masks.ndim != 3 or masks.dtype.kind != "b" or masks.shape[0] == 0:
            raise InputError(f"tiers must be (L, H, S) booleans, got {masks.dtype} of shape {masks.shape}")
        cover = masks.sum(axis=0)
        if (cover != 1).any():
            h, s = (int(i) for i in np.argwhere(cover != 1)[0])
            raise InputError(
                f"tiers must partition the states: state {s} at step {h} must be in 1 tier, got {cover[h, s]}"
            )
        return cls.from_levels(masks.argmax(axis=0) + 1, masks.shape[0])

    @property
    def decided(self) -> range:
        """The tiers in which arms are chosen: all but the last, or the only one."""
        return range(1, max(self.count, 2))

    @property
    def ignorable(self) -> NDArray[np.bool_]:
        """(H, S): the states left out of the decision."""
        ignored: NDArray[np.bool_] = (self.level == self.count) & (self.count > 1)
        return ignored


class Niceness(NamedTuple):
    """How nice data are for a partition: they are ζ-nice for every ζ ≥ zeta."""

    nice: bool
    """Whether the data are ζ-nice for the ζ that was asked about."""
    zeta: float
    """The smallest ζ for which they are: max over tiers of 2^−ℓ Σ_h sqrt(Σ_s 1/m)."""
    margin: float
    """Asked ζ over the smallest: at least 1 when nice."""
    by_tier: NDArray[np.float64]
    """(number of decided tiers,): each tier's own smallest ζ."""
    emptiest: tuple[int, int, int] | None
    """The (h, s, a) of a decided tier with no sample, if any."""


def check_niceness(counts: Counts, tiers: Tiers, zeta: float) -> Niceness:
    """Report whether data are ζ-nice for a partition (Definition 4.4, condition 2), and by what margin.

    Condition 1, that samples are independent given their numbers, is a property of how data were collected and
    cannot be read off counts.
    """
    zeta = check_real("zeta", zeta, 0.0, math.inf)
    fewest = _fewest(counts, tiers)
    by_tier = np.empty(len(tiers.decided))
    with np.errstate(divide="ignore"):
        for i, tier in enumerate(tiers.decided):
            inverse = np.where(tiers.level == tier, 1.0 / fewest, 0.0)
            by_tier[i] = np.sqrt(inverse.sum(axis=1)).sum() / 2.0**tier
    needed = float(by_tier.max())
    margin = zeta / needed if needed > 0 else math.inf
    return Niceness(needed <= zeta, needed, margin, by_tier, first_empty(counts, tiers))


def first_empty(counts: Counts, tiers: Tiers) -> tuple[int, int, int] | None:
    """Return the first cell (h, s, a) of a decided tier without a sample."""
    _fewest(counts, tiers)
    empty = (counts.visits == 0) & ~tiers.ignorable[:, :, None]
    if not empty.any():
        return None
    h, s, a = (int(i) for i in np.argwhere(empty)[0])
    return h, s, a


def _as_array(value: ArrayLike, wanted: str) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError:
        raise InputError(f"tiers must be {wanted}, got {quote(value)}") from None


def _fewest(counts: Counts, tiers: Tiers) -> NDArray[np.int64]:
    """min_a n[h, s, a], (H, S), after checking that data and partition fit together."""
    if not isinstance(counts, Counts) or not isinstance(tiers, Tiers):
        raise InputError(f"a data set and its tiers must be a Counts and a Tiers, got {quote(counts)}, {quote(tiers)}")
    if counts.visits.shape[:2] != tiers.level.shape:
        raise InputError(f"tiers must have shape {counts.visits.shape[:2]} like the data, got {tiers.level.shape}")
    fewest: NDArray[np.int64] = counts.visits.min(axis=2)
    return fewest

"""supported: what a rule may read of a log, whose actions were chosen by somebody else.

An action counts as far as it is *supported*: taken often enough, relative to the most usual one of its cell. A state at
a step counts as far as it is *known*: reached by enough of the episodes. Both fade linearly, from full at a shared
random threshold to nothing at half of it, so that Q*, V* and gaps move continuously with the log's law, and every
decision stays one between a gap and a tolerance (docs/logs.md, docs/proofs/logs.md). Where there is no last step,
1/(1 − γ) takes the place of H, and an episode of more steps than that counts as several.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.mdp.backup import in_order
from reprl.mdp.dynamics import Data, Dynamics, empirical_dynamics
from reprl.randomness import SharedKey

OUT = 10.0
"""What an action without support seems to cost, in units of H, or of 1/(1 − γ): more than any tolerance, 1, and any
width, 8·ε/H²."""


class Thresholds(NamedTuple):
    """From where on actions and states count in full; from half of it they count at all."""

    support: float
    """Of an action's share, over that of the most usual action of the cell."""
    reach: float
    """Of the share of episodes that come to a state at a step; of visits an episode, where steps are pooled, and an
    episode that is longer than 1/(1 − γ) counts as several."""


def draw_thresholds(key: SharedKey, support: float, reach: float) -> Thresholds:
    """Draw the thresholds: those asked for, or up to a factor of 2 less.

    Randomness:
        Shared, at key.derive("support") and key.derive("reach").
    """
    first, second = (float(key.derive(name).uniforms(1)[0]) for name in ("support", "reach"))
    return Thresholds(support * 2.0**-first, reach * 2.0**-second)


class Supported(NamedTuple):
    """A log's law, as the rule reads it."""

    dynamics: Dynamics
    """Support and knowledge are in its rewards and probabilities; what is lost of the latter pays nothing."""
    known: NDArray[np.float64]
    """(H, S) in [0, 1]: how far a state counts at a step."""
    full: NDArray[np.bool_]
    """(H, S, A): actions that count without a price."""
    practice: float | None = None
    """The value of what was done in a log, without a price for anything; None where samples were drawn on demand."""


def find_supported(data: Data, thresholds: Thresholds, certain: int) -> Supported:
    """Return the dynamics that the rule is applied to.

    certain is the state whose law needs no data: where episodes are that have ended.

    Guarantee:
        Gaps and values move continuously with the frequencies; an action has left every tolerance before it no longer
        counts (docs/proofs/logs.md §2). The most usual action of a cell is always supported.
    """
    plain = empirical_dynamics(data)
    horizon = plain.outcomes.horizon
    visits = data.counts.visits[: plain.outcomes.tallied[0]].astype(np.float64)  # one step's, where steps are pooled
    episodes = _episodes(data, visits, certain)
    visits[:, certain] = data.starts.sum()
    usual = visits.max(axis=2, keepdims=True)
    backing = _fade(np.divide(visits, usual, out=np.zeros_like(visits), where=usual > 0.0), thresholds.support)
    known = _fade(visits.sum(axis=2) / episodes, thresholds.reach)
    known[:, certain] = 1.0
    tried = (backing > 0.0) & (known > 0.0)[:, :, None]
    # The price is not to fade with knowledge: an outcome of weight `known` pays it over `known`.
    most = data.criterion.effective_horizon
    price = np.divide(OUT * most * (1.0 - backing), known[:, :, None], out=np.zeros_like(backing), where=tried)
    lengths = np.diff(plain.outcomes.first)
    weight = np.repeat((tried * known[:, :, None]).ravel(), lengths)
    reward = plain.outcomes.reward - np.repeat(price.ravel(), lengths)
    steps = horizon // visits.shape[0]
    dynamics = plain._replace(
        outcomes=plain.outcomes._replace(reward=reward),
        probability=plain.probability * weight,
        tried=np.repeat(tried, steps, axis=0) & plain.allowed,
    )
    full = dynamics.tried & np.repeat(backing >= 1.0, steps, axis=0)
    return Supported(dynamics, np.repeat(known, steps, axis=0), full, _practice(plain, visits))


def read_all(data: Data, certain: int) -> Supported:
    """Return all that a log shows, as relative frequencies: every action counts that was taken, and every state."""
    plain = empirical_dynamics(data)
    visits = data.counts.visits[: plain.outcomes.tallied[0]].astype(np.float64)
    visits[:, certain] = data.starts.sum()
    return Supported(plain, np.ones(plain.outcomes.shape[:2]), plain.tried, _practice(plain, visits))


def _practice(plain: Dynamics, visits: NDArray[np.float64]) -> float:
    """The value, from the start, of taking every action as often as the log does."""
    total = visits.sum(axis=2, keepdims=True)
    play = np.divide(visits, total, out=np.zeros_like(visits), where=total > 0.0)
    values = plain.criterion.play_values(plain.outcomes, plain.probability, play)
    return float(in_order(plain.initial, values))


def _episodes(data: Data, visits: NDArray[np.float64], certain: int) -> float:
    """How many episodes there are; where there is no last step, at least one for every 1/(1 − γ) rows."""
    rows = float(visits.sum() - visits[:, certain].sum())
    return data.criterion.count_episodes(float(data.starts.sum()), rows)


def _fade(share: NDArray[np.float64], full: float) -> NDArray[np.float64]:
    """0 up to half of a threshold, 1 from it on, linear between."""
    return np.clip(2.0 * share / full - 1.0, 0.0, 1.0)


def weigh_unknown_states(found: Supported) -> float:
    """Return what states that are not known could be worth, from the start.

    The best sum, over policies that keep to supported actions, of Pr[such a state is met first at step h]·(H − h), in
    the model; a state that is known by a part counts with the rest. Discounted, of γ^t Pr[…]/(1 − γ).
    """
    law = found.dynamics.outcomes, found.dynamics.probability
    worth = found.dynamics.criterion.lost_values(*law, found.dynamics.tried, 1.0 - found.known)
    return float(in_order(found.dynamics.initial, worth))

"""Baseline: what a quality is measured from, as users give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.canonical.choice import start_value
from reprl.canonical.gaps import find_gaps
from reprl.canonical.preference import action_number
from reprl.errors import InputError, quote
from reprl.learning.adapters import acts, adds_end, policy_of
from reprl.learning.settings import Settings
from reprl.mdp.criterion import criterion_of
from reprl.mdp.dynamics import true_dynamics
from reprl.mdp.environment import Environment
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import TabularMDP
from reprl.sources.protocol import mask_of
from reprl.storage.documents import naming

_FORMS = "a policy, an (H, S) or (S,) table of actions, one action, or a function of a state"


def resolve_baseline(settings: Settings, world: Any, mask: NDArray[np.bool_] | None = None) -> Settings:
    """Return settings with the baseline, if there is one, as rows of actions: one for each step, or one for all.

    Args:
        settings: whose baseline is a policy, a table of actions, (H, S) or (S,), one action by number or name, which is
            then taken everywhere, or, where there is an environment to ask about, a function of a state. The state
            "ended", which only this package adds, may be left out of tables.
        world: an MDP, a model of one, or the record of an environment.
        mask: (H, S, A): what may be done, where the world itself does not say.
    """
    if settings.baseline is None:
        return settings
    with naming("baseline: "):
        rows = _read(settings.baseline, world)
        if adds_end(world) and rows.shape[1] == world.n_states - 1:
            rows = np.pad(rows, ((0, 0), (0, 1)))
    _check(rows, world, mask_of(world) if mask is None and not isinstance(world, Environment) else mask)
    rows = rows[:1] if (rows == rows[0]).all() else rows
    return replace(settings, baseline=tuple(tuple(int(a) for a in row) for row in rows))


def _read(given: Any, world: Any) -> NDArray[np.int64]:
    """The rows that are meant; sizes are not checked yet."""
    names: Sequence[str] = getattr(getattr(getattr(world, "mdp", world), "labels", None), "actions", ())
    if isinstance(given, str | int | np.integer) and not isinstance(given, bool):
        number = action_number("action", given if isinstance(given, str) else int(given), names, world.n_actions)
        return np.full((1, world.n_states), number)
    if isinstance(given, Policy):
        return given.table
    if acts(given):
        if isinstance(world, Environment):
            raise InputError(f"must be a policy, a table or one action where there is only a log, got {quote(given)}")
        return policy_of(given, world).table
    try:
        table = np.asarray(given)
    except (ValueError, TypeError, OverflowError):
        table = np.empty(0, dtype=object)
    if table.dtype.kind not in "iuf" or table.ndim not in (1, 2) or not table.size:
        raise InputError(f"must be {_FORMS}, got {quote(given)}")
    return Policy(table).table


def _check(rows: NDArray[np.int64], world: Any, mask: NDArray[np.bool_] | None) -> None:
    """Refuse rows of another shape, and actions that there are not or that may not be taken."""
    horizon, n_states = criterion_of(world).rows, int(world.n_states)
    if rows.shape[0] not in (1, horizon) or rows.shape[1] != n_states:
        raise InputError(
            f"baseline must have shape (H, S) = {(horizon, n_states)} or (S,), got {tuple(map(int, rows.shape))}"
        )
    if rows.max() >= world.n_actions:
        h, s = (int(i) for i in np.argwhere(rows >= world.n_actions)[0])
        raise InputError(f"baseline [{h}, {s}] must be an action from 0 to {world.n_actions - 1}, got {rows[h, s]}")
    if mask is None:
        return
    every = np.broadcast_to(rows, mask.shape[:2])
    taken = np.take_along_axis(mask, every[..., None], axis=2)[..., 0]
    if not taken.all():
        h, s = (int(i) for i in np.argwhere(~taken)[0])
        may = ", ".join(map(str, np.flatnonzero(mask[h, s])))
        raise InputError(f"baseline [{h}, {s}] must be an action that is allowed there ({may}), got {every[h, s]}")


def exact_baseline(world: TabularMDP, settings: Settings, order: NDArray[np.int64]) -> float:
    """Return the value of the baseline of resolved settings in a known MDP."""
    dynamics = true_dynamics(world)
    gaps, actions = find_gaps(dynamics, order), settings.baseline_actions(dynamics.outcomes.shape)
    table = gaps.default if actions is None else actions
    return start_value(dynamics, gaps.value[0]) - dynamics.policy_loss(gaps.value[0], table)

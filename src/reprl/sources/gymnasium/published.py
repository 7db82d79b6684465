"""Reading the dynamics that a Gymnasium environment publishes: ``P`` and ``initial_state_distrib``.

``P[s][a]`` lists (probability, next state, reward, ended). An ended transition leads to where nothing more is paid: the
listed state itself if it already holds and pays 0, and an extra last state "ended" otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reprl.errors import InputError, quote
from reprl.mdp.labels import Labels, RewardMap
from reprl.mdp.tabular import TabularMDP
from reprl.mdp.worlds import ARROWS, blank

if TYPE_CHECKING:
    import gymnasium

    Env = gymnasium.Env[Any, Any]

_ACTION_NAMES = {
    "FrozenLakeEnv": ("←", "↓", "→", "↑"),
    "CliffWalkingEnv": ARROWS,
    "TaxiEnv": ("↓", "↑", "→", "←", "pick up", "drop off"),
}


class _Entry(NamedTuple):
    state: int
    action: int
    probability: float
    next_state: int
    reward: float
    ended: bool


def publishes(env: Env) -> bool:
    """Whether the published dynamics are those of the environment as it is played.

    They are not when a wrapper changes what is seen or done, when the spaces are not Discrete from 0, or when the
    environment says that it does more than P (Taxi's fickle passenger).
    """
    from gymnasium import wrappers
    from gymnasium.spaces import Discrete

    plain = (wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.TimeLimit)
    core = env
    while isinstance(core, plain):
        core = core.env
    if core is not env.unwrapped or getattr(core, "fickle_passenger", False):
        return False
    listing = getattr(core, "P", None)
    if listing is None or getattr(core, "initial_state_distrib", None) is None:
        return False
    spaces = (core.observation_space, core.action_space)
    if not all(isinstance(space, Discrete) and space.start == 0 for space in spaces):
        return False
    n_states, n_actions = (int(space.n) for space in spaces if isinstance(space, Discrete))
    return len(listing) == n_states and all(len(listing[s]) == n_actions for s in range(n_states))


def reward_hull(env: Env) -> RewardMap:
    """The range of the published rewards and 0."""
    rewards = [entry.reward for entry in _entries(env)]
    return _range(min(0.0, *rewards), max(0.0, *rewards))


def dynamics(env: Env, horizon: int, units: RewardMap | None = None) -> TabularMDP:
    """Read an environment that publishes its dynamics into a TabularMDP.

    Args:
        env: an environment for which ``publishes`` holds.
        horizon: H.
        units: the range of rewards that is mapped to [0, 1]; None for that of the published ones, and 0 if an episode
            can end.
    """
    core: Any = env.unwrapped
    entries = list(_entries(env))
    listed = len(core.P)
    resting = _resting(entries)
    needs_end = any(entry.ended and entry.next_state not in resting for entry in entries)
    n_states, n_actions = listed + needs_end, len(core.P[0])
    units = units or _hull(entries, needs_end)
    kernel = blank(n_states, n_actions)[0]
    reward = np.zeros_like(kernel)
    seen: dict[tuple[int, int, int], float] = {}
    several = False
    for entry in entries:
        goal = listed if entry.ended and entry.next_state not in resting else entry.next_state
        cell = entry.state, entry.action, goal
        several |= seen.setdefault(cell, entry.reward) != entry.reward
        kernel[cell] += entry.probability
        reward[cell] += entry.probability * _forward(units, entry.reward)
    reward = np.divide(reward, kernel, out=np.zeros_like(reward), where=kernel > 0).clip(0.0, 1.0)
    if not several:
        for cell, paid in seen.items():
            reward[cell] = _forward(units, paid)
    if needs_end:
        kernel[listed, :, listed] = 1.0
        reward[listed, :, listed] = _forward(units, 0.0)
    initial = np.append(np.asarray(core.initial_state_distrib, dtype=np.float64), [0.0] * needs_end)
    kind = "bernoulli" if several else "deterministic"
    return TabularMDP(kernel, reward[None], initial, horizon, kind, labels=_labels(env, n_states, units, needs_end))


def _entries(env: Env) -> Iterator[_Entry]:
    """List the published transitions that can happen."""
    core: Any = env.unwrapped
    for s in range(len(core.P)):
        for a in range(len(core.P[s])):
            for listed in core.P[s][a]:
                entry = _read_entry(s, a, listed, len(core.P))
                if entry.probability > 0:
                    yield entry


def _read_entry(s: int, a: int, listed: Any, n_states: int) -> _Entry:
    """Read one published transition, which nobody has checked yet."""
    try:
        probability, next_state, reward, ended = listed
        entry = _Entry(s, a, float(probability), int(next_state), float(reward) + 0.0, bool(ended))
        if not (0 <= entry.next_state < n_states and math.isfinite(entry.probability) and math.isfinite(entry.reward)):
            raise ValueError
        return entry
    except (TypeError, ValueError, OverflowError):
        allowed = f"(probability, next state below {n_states}, reward, ended)"
        raise InputError(f"published dynamics must list {allowed}, got P[{s}][{a}] = {quote(listed)}") from None


def _resting(entries: list[_Entry]) -> set[int]:
    """The states that every action keeps, unpaid."""
    moving = {entry.state for entry in entries if entry.next_state != entry.state or entry.reward != 0.0}
    return {entry.state for entry in entries} - moving


def _hull(entries: list[_Entry], needs_end: bool) -> RewardMap:
    rewards = [entry.reward for entry in entries] + [0.0] * needs_end
    return _range(min(rewards), max(rewards))


def _range(low: float, high: float) -> RewardMap:
    return RewardMap(low, high if high > low else low + 1.0)


def _forward(units: RewardMap, reward: float) -> float:
    if not units.low <= reward <= units.high:
        raise InputError(
            f"reward_range must contain every published reward, got [{units.low:g}, {units.high:g}] and {reward:g}"
        )
    return units.forward(reward)


def _labels(env: Env, n_states: int, units: RewardMap, needs_end: bool) -> Labels:
    core: Any = env.unwrapped
    name = env.spec.id if env.spec is not None else type(core).__name__
    shape = (core.nrow, core.ncol) if hasattr(core, "nrow") and hasattr(core, "ncol") else getattr(core, "shape", None)
    rows, columns = shape if isinstance(shape, tuple) and len(shape) == 2 else (0, 0)
    on_grid = rows * columns == n_states - needs_end
    states = tuple(f"{s // columns},{s % columns}" if on_grid else str(s) for s in range(n_states - needs_end))
    return Labels(
        name=f"gym:{name}",
        description=f"{name} of Gymnasium, from its published dynamics",
        states=(*states, "ended") if needs_end else states,
        actions=_ACTION_NAMES.get(type(core).__name__, ()),
        grid=(int(rows), int(columns)) if on_grid else None,
        reward_map=units,
    )

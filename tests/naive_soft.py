"""A slow, obvious version of the soft tolerance rule, written from its description: dense tables, one step at a time.

Only uniforms at shared addresses are the package's own. Laws and rewards are dense, P (H, S, A, S) and r (H, S, A),
with one step where there is a discount; there linear equations and plain iteration stand in for the passes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class World(NamedTuple):
    """A model as the naive rule reads it."""

    law: Array
    """(H, S, A, S)"""
    pay: Array
    """(H, S, A): mean rewards."""
    allowed: Array
    """(H, S, A)"""
    start: Array
    """(S,)"""
    gamma: float

    @property
    def length(self) -> float:
        return 1.0 / (1.0 - self.gamma) if self.gamma else float(len(self.pay))


class Printed(NamedTuple):
    """What the rule prints, and every comparison that it made on its way."""

    policy: Array
    """(H, S)"""
    best: float
    value: float
    baseline: float
    epsilon: float
    level: str
    """"last" for the last resort."""
    attempt: int
    bars: list[tuple[str, int, Array, Array]]
    """level, try, D = (cost − least)/(2^-try ε), (groups, S, A), and θ, (groups, S); for "last" gaps over ε/H."""
    losses: list[float]
    """(V* − V^π)/ε of every try."""
    room: float


def world_of(model: Any, law: Array | None = None) -> World:
    """Read a flat model out, row by row."""
    _, n_states, n_actions = shape = model.allowed.shape
    law = model.law if law is None else law
    dense, pay = np.zeros((*shape, n_states)), np.zeros(shape)
    for h, s, a in np.ndindex(*shape):
        row = h * model.shift + s * n_actions + a
        for e in range(model.first[row], model.first[row + 1]):
            dense[h, s, a, model.next_state[e]] += law[e]
            pay[h, s, a] += law[e] * model.reward[e]
    return World(dense, pay, np.array(model.allowed), np.array(model.initial), float(model.gamma))


def backward(world: World, settle: Any) -> tuple[Array, Array]:
    """Values (H+1, S) and worths (H, S, A), where settle(worth (S, A), allowed (S, A)) is the value of a step."""
    horizon, n_states, _ = world.pay.shape
    values, worths = np.zeros((horizon + 1, n_states)), np.zeros(world.pay.shape)
    while True:
        before = values[0].copy()
        for h in reversed(range(horizon)):
            worths[h] = world.pay[h] + world.law[h] @ values[h + 1]
            values[h] = settle(h, worths[h], world.allowed[h])
        if not world.gamma or np.abs(values[0] - before).max() < 1e-13:
            return values, worths
        values[horizon] = world.gamma * values[0]


def optimum(world: World) -> tuple[Array, Array]:
    """V* and worths Q*."""
    return backward(world, lambda _, worth, allowed: np.where(allowed, worth, -np.inf).max(axis=1))


def soft(world: World, heat: float) -> tuple[Array, Array, Array]:
    """U, worths under U, and their law: U = τ log mean exp(q/τ) over allowed actions."""

    def settle(_: int, worth: Array, allowed: Array) -> Array:
        top = np.where(allowed, worth, -np.inf).max(axis=1)
        weights = np.where(allowed, np.exp((np.where(allowed, worth, -np.inf) - top[:, None]) / heat), 0.0)
        return np.asarray(top + heat * np.log(weights.sum(axis=1) / allowed.sum(axis=1)))

    values, worths = backward(world, settle)
    masked = np.where(world.allowed, worths, -np.inf)
    weights = np.exp((masked - masked.max(axis=2, keepdims=True)) / heat)
    return values, worths, weights / weights.sum(axis=2, keepdims=True)


def value_of(world: World, play: Array, price: Array | None = None) -> tuple[Array, Array]:
    """Values and worths of laws of actions (H, S, A), less a price (H, S) that is paid at every visit."""
    price = np.zeros(play.shape[:2]) if price is None else price
    if world.gamma:
        moves = np.einsum("sa,sat->st", play[0], world.law[0])
        here = (play[0] * world.pay[0]).sum(axis=1) - price[0]
        found = np.linalg.solve(np.eye(len(here)) - world.gamma * moves, here)
        return np.array([found, world.gamma * found]), world.pay + world.gamma * world.law @ found
    return backward(world, lambda h, worth, _: (play[h] * worth).sum(axis=1) - price[h])


def visits_of(world: World, play: Array) -> Array:
    """Pr[x_h = s], (H, S); with a discount Σ_t γ^t Pr[x_t = s]."""
    moves = np.einsum("hsa,hsat->hst", play, world.law)
    if world.gamma:
        return np.linalg.solve(np.eye(len(world.start)) - world.gamma * moves[0].T, world.start)[None]
    visits = [world.start]
    for each in moves[:-1]:
        visits.append(visits[-1] @ each)
    return np.array(visits)


def soft_losses(world: World, heat: float) -> Array:
    """X = x (U − q), (H, S, A): what always taking an action costs, at first order."""
    values, worths, play = soft(world, heat)
    return np.asarray(visits_of(world, play)[:, :, None] * (values[:-1, :, None] - worths))


def crossed_losses(one: World, other: World, heat: float) -> Array:
    """The same for the soft policy of one half, valued and followed on the other, its price τ·KL included."""
    play = soft(one, heat)[2]
    counts = one.allowed.sum(axis=2, keepdims=True)
    divergence = np.where(play > 0.0, play * np.log(np.where(play > 0.0, play, 1.0) * counts), 0.0).sum(axis=2)
    values, worths = value_of(other, play, heat * divergence)
    return np.asarray(visits_of(other, play)[:, :, None] * (values[:-1, :, None] - worths))


def levels_of(horizon: int, stationary: bool) -> dict[str, list[int]]:
    """The group of every step: all alike; 1, 3, 9, … steps counted from the end; every step by itself."""
    single = list(range(horizon))
    if not stationary:
        return {"single": single}
    lengths: list[int] = []
    while sum(lengths) < horizon:
        lengths.append(3 ** len(lengths))
    from_end = [number for number, length in enumerate(lengths) for _ in range(length)][:horizon]
    return {"all": [0] * horizon, "phases": [from_end[-1] - g for g in reversed(from_end)], "single": single}


def thresholds(key: Any, where: tuple[str | int, ...], groups: int, n_states: int) -> Array:
    """θ, (groups, S), each read at its own address."""
    unit = [
        [key.derive("tolerance", *where).uniforms(1, g * n_states + s)[0] for s in range(n_states)]
        for g in range(groups)
    ]
    return np.asarray(0.2 + 0.2 * np.array(unit))


def first_within(excess: Array, bar: Array, order: Array) -> Array:
    """The first action of each state, in its order of preference, whose excess is within the bar: (groups, S)."""
    found = np.zeros(excess.shape[:2], dtype=np.int64)
    for g, s in np.ndindex(*found.shape):
        found[g, s] = next(a for a in order[s] if excess[g, s, a] <= bar[g, s])
    return found


def print_policy(
    world: World,
    key: Any,
    *,
    stationary: bool,
    share: float = 0.1,
    epsilon: float = 0.0,
    baseline: Array | None = None,
    order: Array | None = None,
    halves: tuple[World, World] | None = None,
    passes: bool = True,
) -> Printed:
    """f(ξ, M), or its crossed form; what the last resort prints where no try is said to pass."""
    horizon, n_states, n_actions = world.pay.shape
    first_allowed = np.eye(n_actions)[world.allowed.argmax(axis=2)]
    baseline = first_allowed if baseline is None else baseline
    order = np.array([range(n_actions)] * n_states) if order is None else order

    values, worths = optimum(world)
    best = float(world.start @ values[0])
    if halves is not None:
        ways = []
        for one, other in (halves, halves[::-1]):
            greedy = np.where(one.allowed, optimum(one)[1], -np.inf).argmax(axis=2)
            ways.append(world.start @ value_of(other, np.eye(n_actions)[greedy])[0][0])
        best = float(np.mean(ways))
    worth_of_baseline = float(world.start @ value_of(world, baseline)[0][0])
    allowed_loss = epsilon or share * max(best - worth_of_baseline, world.length / 1000.0)
    shift, room = float(key.derive("shift").uniforms(1)[0]), 0.4 + 0.3 * float(key.derive("room").uniforms(1)[0])
    grid = 2.0 ** (math.floor(math.log2(allowed_loss) + shift) + 0.5 - shift)

    bars: list[tuple[str, int, Array, Array]] = []
    losses: list[float] = []
    for level, steps in levels_of(horizon, stationary).items():
        groups = np.array(steps)
        members = [world.allowed[groups == g].all(axis=0) for g in range(groups[-1] + 1)]
        if not all(each.any(axis=1).all() for each in members):
            continue  # some state has no action that it may take at all steps of a group
        for attempt in range(max(5, math.ceil(math.log2(n_states)) + 1)):
            heat = 10.0 * grid * 0.5**attempt / world.length
            if halves is None:
                expected = soft_losses(world, heat)
            else:
                expected = (crossed_losses(*halves, heat) + crossed_losses(*halves[::-1], heat)) / 2.0
            cost = np.array([expected[groups == g].sum(axis=0) for g in range(len(members))])
            cost[~np.array(members)] = np.inf
            excess = (cost - cost.min(axis=2, keepdims=True)) / (0.5**attempt * allowed_loss)
            bar = thresholds(key, (level, attempt), len(members), n_states)
            policy = first_within(excess, bar, order)[groups]
            value = float(world.start @ value_of(world, np.eye(n_actions)[policy])[0][0])
            bars.append((level, attempt, excess, bar))
            losses.append((best - value) / allowed_loss)
            if passes and losses[-1] <= room:
                return Printed(policy, best, value, worth_of_baseline, allowed_loss, level, attempt, bars, losses, room)

    gaps = np.where(world.allowed, values[:-1, :, None] - worths, np.inf) / (allowed_loss / world.length)
    bar = thresholds(key, ("last",), horizon, n_states)
    policy = first_within(gaps, bar, order)
    bars.append(("last", 0, gaps, bar))
    value = float(world.start @ value_of(world, np.eye(n_actions)[policy])[0][0])
    return Printed(policy, best, value, worth_of_baseline, allowed_loss, "last", 0, bars, losses, room)

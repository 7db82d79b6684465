"""f(ξ, M): the soft tolerance rule, as kernels on the flat table (docs/rule.md; proof in docs/proofs/rule.md).

Whatever is compared with a threshold is a smooth function of the model, none of it depends on an earlier decision, and
every threshold comes from ξ. So two models that are close choose the same policy unless ξ puts a threshold between
them, and ties need no special case.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.kernels import njit
from reprl.mdp.model import STILL, Model, clear, evaluate, from_start, occupancy, solve, still, worth
from reprl.rule.draws import Draws

SOFTNESS, LEAST_GAIN = 10.0, 1e-3
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_HALVES = 0.5 ** np.arange(1075)
LAST = -1
"""The try of a policy that no try printed: the last resort's."""


class Asked(NamedTuple):
    """What the rule measures a policy by, beside ξ and M."""

    baseline: NDArray[np.float64]
    """(H, S, A): laws of actions; a quality is a share of what the best policy earns more than it."""
    order: NDArray[np.int64]
    """(S, A): the actions of each state, the most preferred first."""
    share: float
    """1 − quality; 0 where the allowed loss is given in units of value."""
    epsilon: float
    """The allowed loss in units of value; 0 where a quality is asked for."""


class Choice(NamedTuple):
    """What the rule prints on a model, beside the policy."""

    best: float
    """V* from the start."""
    value: float
    """V of the policy."""
    baseline: float
    """V of the baseline."""
    allowed: float
    """ε(M): the loss best − value is at most .7 of it."""
    level: int
    attempt: int
    """Which try passed; LAST if none did."""
    softened: int
    """How many tries have their losses in the room."""


class Room(NamedTuple):
    """Arrays that the kernels write into."""

    values: NDArray[np.float64]
    """(H+1, S)"""
    gaps: NDArray[np.float64]
    """(H, S, A)"""
    play: NDArray[np.float64]
    """(H, S, A)"""
    part: NDArray[np.float64]
    """(H, S, A): soft losses of one half."""
    losses: NDArray[np.float64]
    """(tries, H, S, A)"""
    costs: NDArray[np.float64]
    """(groups, S, A)"""
    choice: NDArray[np.int64]
    """(groups, S)"""
    visits: NDArray[np.float64]
    """(H, S)"""
    mass: NDArray[np.float64]
    """(2, S)"""


def make_room(draws: Draws, n_actions: int) -> Room:
    """Return arrays for a model of these sizes."""
    tries, groups, n_states = draws.tolerance.shape
    shape = (draws.groups.shape[1], n_states, n_actions)
    return Room(
        np.empty((shape[0] + 1, n_states)),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape),
        np.empty((tries, *shape)),
        np.empty((groups, n_states, n_actions)),
        np.empty((groups, n_states), dtype=np.int64),
        np.empty(shape[:2]),
        np.empty((2, n_states)),
    )


@njit(cache=True, nogil=True, _nrt=False)
def apply_rule(
    model: Model, halves: NDArray[np.float64], asked: Asked, draws: Draws, room: Room, policy: NDArray[np.int64]
) -> Choice:
    """Write f(ξ, M), (H, S), and return what it is worth.

    Args:
        model: M.
        halves: (2, outcomes): the laws that two halves of the data show; then whatever maximises is cross-fitted, who
            chooses does not evaluate. (0, outcomes) for f itself.
        asked: what is asked for.
        draws: ξ.
        room: arrays to write into; its losses are afterwards those of the tries that were made.
        policy: to be written.

    Guarantee:
        A pure function of all. Without halves the policy loses at most draws.room·ε(M).
    """
    crossed = crossed_best(model, halves, room) if halves.shape[0] > 0 else 0.0
    evaluate(model, asked.baseline, room.values)
    base = from_start(model, room.values)
    solve(model, room.values, room.gaps)
    top = from_start(model, room.values)
    best = crossed if halves.shape[0] > 0 else top
    length = 1.0 / (1.0 - model.gamma) if model.gamma else float(model.allowed.shape[0])
    allowed = allow(asked.epsilon, asked.share, best - base, length)
    softened = 0
    for level in range(draws.groups.shape[0]):
        group = draws.groups[level]
        if not shares_actions(model, group):
            continue
        for attempt in range(draws.tolerance.shape[0]):
            if attempt == softened:
                soften_losses(model, halves, temperature(allowed, draws.shift, length, attempt), room, attempt)
                softened += 1
            groups = (group[0], group[group.size - 1] + 1)
            add_up(room.losses[attempt], group, room.costs)
            choose(room.costs, groups, asked.order, draws.tolerance[attempt], 0.5**attempt * allowed, room.choice)
            for h in range(group.size):
                for s in range(policy.shape[1]):
                    policy[h, s] = room.choice[group[h], s]
            value = top - lost(model, room.gaps, policy, room.mass)
            if best - value <= draws.room * allowed:
                return Choice(best, value, base, allowed, level, attempt, softened)
    choose(room.gaps, (0, policy.shape[0]), asked.order, draws.last, allowed / length, policy)
    value = top - lost(model, room.gaps, policy, room.mass)
    return Choice(best, value, base, allowed, draws.groups.shape[0] - 1, LAST, softened)


@njit(cache=True, _nrt=False)
def allow(epsilon: float, share: float, gain: float, length: float) -> float:
    """Return ε(M) where the best policy earns so much more than the baseline."""
    return float(epsilon + share * max(gain, LEAST_GAIN * length))


@njit(cache=True, _nrt=False)
def temperature(allowed: float, shift: float, length: float, attempt: int) -> float:
    """Return the temperature of a try: on a grid of powers of two, so that two teams share it exactly."""
    rounded = 2.0 ** (math.floor(math.log2(allowed) + shift) + 0.5 - shift)
    return float(SOFTNESS * rounded * 0.5**attempt / length)


@njit(cache=True, inner=True, _nrt=False)
def with_law(model: Model, law: NDArray[np.float64]) -> Model:
    """Return the model with another law."""
    return Model(
        model.first, model.next_state, model.reward, law, model.shift, model.allowed, model.initial, model.gamma
    )


@njit(cache=True, inner=True, _nrt=False)
def crossed_best(model: Model, halves: NDArray[np.float64], room: Room) -> float:
    """Return V* cross-fitted: the greedy policy of one half, valued on the other; the mean of both ways."""
    total = 0.0
    for one in range(2):
        solve(with_law(model, halves[one]), room.values, room.gaps)
        for h in range(room.play.shape[0]):
            for s in range(room.play.shape[1]):
                first = True
                for a in range(room.play.shape[2]):
                    taken = first and room.gaps[h, s, a] == 0.0
                    room.play[h, s, a] = 1.0 if taken else 0.0
                    first = first and not taken
        judge = with_law(model, halves[1 - one])
        evaluate(judge, room.play, room.values)
        total += from_start(judge, room.values)
    return 0.5 * total


@njit(cache=True, inner=True, _nrt=False)
def soften_losses(model: Model, halves: NDArray[np.float64], heat: float, room: Room, attempt: int) -> None:
    """Fill room.losses[attempt]: what always taking one action costs, at first order; with halves, both ways' mean."""
    losses = room.losses[attempt]
    if halves.shape[0] == 0:
        soften(model, heat, False, room.play, room.values, losses)
        weigh(model, room, losses)
        return
    for one in range(2):
        soften(with_law(model, halves[one]), heat, False, room.play, room.values, room.part)
        judge = with_law(model, halves[1 - one])
        soften(judge, heat, True, room.play, room.values, room.part)
        weigh(judge, room, room.part)
        for h in range(losses.shape[0]):
            for s in range(losses.shape[1]):
                for a in range(losses.shape[2]):
                    losses[h, s, a] = 0.5 * room.part[h, s, a] + (losses[h, s, a] if one == 1 else 0.0)


@njit(cache=True, nogil=True, _nrt=False)
def soften(
    model: Model,
    heat: float,
    given: bool,
    play: NDArray[np.float64],
    values: NDArray[np.float64],
    losses: NDArray[np.float64],
) -> None:
    """Fill soft values U, (H+1, S), and U less what each action is worth, (H, S, A): ∞ where it is not allowed.

    U(s) = heat · log mean exp(worth/heat) over the allowed actions, which is smooth and a non-expansion: small errors
    of the model stay small. Their law, ∝ exp(worth/heat), is written to play; if `given`, play is read instead and U is
    its value, less heat times its divergence from uniform play.
    """
    horizon, n_states, n_actions = model.allowed.shape
    rate = 1.0 / heat
    left = 1.0
    clear(values)
    while True:
        moved, left = 0.0, left * model.gamma
        for h in range(horizon - 1, -1, -1):
            for s in range(n_states):
                top, many = -math.inf, 0
                for a in range(n_actions):
                    losses[h, s, a] = -math.inf
                    if model.allowed[h, s, a]:
                        losses[h, s, a] = worth(model, h * model.shift + s * n_actions + a, values[h + 1])
                        top, many = max(top, losses[h, s, a]), many + 1
                total = 0.0
                for a in range(n_actions):
                    if not given:
                        play[h, s, a] = (
                            exponential((losses[h, s, a] - top) * rate) if many > 1 else losses[h, s, a] == top
                        )
                        total += play[h, s, a]
                    elif play[h, s, a] > 0.0:
                        total += play[h, s, a] * (losses[h, s, a] - heat * math.log(many * play[h, s, a]))
                new = total if given else top + heat * math.log(total / many) if many > 1 else top
                for a in range(n_actions):
                    losses[h, s, a] = new - losses[h, s, a]
                    if not given:
                        play[h, s, a] /= total
                moved, values[h, s] = max(moved, abs(new - values[h, s])), new
        if still(model, values, min(moved, left)):
            return


@njit(cache=True, inner=True, _nrt=False)
def exponential(x: float) -> float:
    """Return exp(x) for x ≤ 0, the same bits on every machine: 2^-k times a polynomial of what is left."""
    if x < -744.0:
        return 0.0
    k = int(0.5 - x * 1.4426950408889634)
    r = (x + k * _LN2_HIGH) + k * _LN2_LOW
    p = 1.0 + r * (1.0 / 9.0 + r * (1.0 / 90.0 + r / 990.0))
    p = 1.0 + r * (1.0 / 5.0 + r * (1.0 / 30.0 + r * (1.0 / 210.0 + r / 1680.0 * p)))
    total: float = (1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r / 24.0 * p)))) * _HALVES[k]
    return total


@njit(cache=True, inner=True, _nrt=False)
def weigh(model: Model, room: Room, losses: NDArray[np.float64]) -> None:
    """Multiply losses, (H, S, A), by the visits of room.play; ∞ stays."""
    occupancy(model, room.play, room.visits, room.mass)
    for h in range(losses.shape[0]):
        for s in range(losses.shape[1]):
            for a in range(losses.shape[2]):
                if model.allowed[h, s, a]:
                    losses[h, s, a] *= room.visits[h, s]


@njit(cache=True, inner=True, _nrt=False)
def shares_actions(model: Model, group: NDArray[np.int64]) -> bool:
    """Whether every state has an action that is allowed at all steps of each group: a matter of the mask alone."""
    horizon, n_states, n_actions = model.allowed.shape
    begin = 0
    for h in range(horizon):
        begin = h if group[h] != group[begin] else begin
        for s in range(n_states):
            found = False
            for a in range(n_actions):
                common = True
                for step in range(begin, h + 1):
                    common &= model.allowed[step, s, a]
                found |= common
            if not found:
                return False
    return True


@njit(cache=True, nogil=True, _nrt=False)
def add_up(losses: NDArray[np.float64], group: NDArray[np.int64], costs: NDArray[np.float64]) -> None:
    """Fill the costs, (groups, S, A), of a level: losses added up over the steps of each of its groups."""
    for h in range(group.size):
        for s in range(losses.shape[1]):
            for a in range(losses.shape[2]):
                begun = h > 0 and group[h] == group[h - 1]
                costs[group[h], s, a] = losses[h, s, a] + (costs[group[h], s, a] if begun else 0.0)


@njit(cache=True, inner=True, _nrt=False)
def choose(
    costs: NDArray[np.float64],
    groups: tuple[int, int],
    order: NDArray[np.int64],
    tolerance: NDArray[np.float64],
    allowed: float,
    choice: NDArray[np.int64],
) -> None:
    """Write, for every group and state, the first action whose cost is at most tolerance·allowed above the least."""
    for g in range(groups[0], groups[1]):
        for s in range(order.shape[0]):
            least = math.inf
            for a in range(order.shape[1]):
                least = min(least, costs[g, s, a])
            for k in range(order.shape[1]):
                if costs[g, s, order[s, k]] - least <= tolerance[g, s] * allowed:
                    choice[g, s] = order[s, k]
                    break


@njit(cache=True, nogil=True, _nrt=False)
def lost(model: Model, gaps: NDArray[np.float64], policy: NDArray[np.int64], mass: NDArray[np.float64]) -> float:
    """Return what a policy loses from the start: the gaps of its actions, weighted by its visits."""
    horizon, n_states, n_actions = model.allowed.shape
    here, there = mass[0], mass[1]
    for s in range(n_states):
        here[s] = model.initial[s]
    total = 0.0
    while True:
        for h in range(horizon):
            for s in range(n_states):
                there[s] = 0.0
            for s in range(n_states):
                if here[s] > 0.0:
                    total += here[s] * gaps[h, s, policy[h, s]]
                    row = h * model.shift + s * n_actions + policy[h, s]
                    for e in range(model.first[row], model.first[row + 1]):
                        there[model.next_state[e]] += here[s] * model.law[e]
            here, there = there, here
        left = 0.0
        for s in range(n_states):
            here[s] *= model.gamma
            left += here[s]
        if left <= STILL:
            return total

"""Slow, obvious versions of the canonical rule, written from its docstrings: lists and loops over dense tables.

Only three things are the package's own: draws at shared addresses, the fingerprint of a policy, and the correlated draw
from laws, which has references elsewhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import reprl
from reprl.coupling.correlated import correlated_sample
from reprl.coupling.spec import CouplingSpec
from tests import naive

TIE = 1e-12
CLEAR = 1e3
TURN = 0.15
NOISE = 0.3
POOL = 3
DRAWN = 0.7


class World(NamedTuple):
    """A model: law[h][s][a] lists (probability, next state, reward), and is None where nobody has tried."""

    law: list[list[list[list[tuple[float, int, float]] | None]]]
    initial: list[float]

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.law), len(self.law[0]), len(self.law[0][0])


class Solved(NamedTuple):
    value: list[list[float]]
    gap: Any
    spread: Any
    own: Any
    best: list[list[int]]
    deviation: list[list[float]]


class Printed(NamedTuple):
    """What one tolerance prints."""

    actions: list[list[int]]
    margin: float
    loss: float
    tightest: tuple[int, int, int] | None
    visits: list[list[float]]


def world_of(dynamics: Any) -> World:
    """Read a model out, cell by cell."""
    horizon, n_states, n_actions = dynamics.outcomes.shape
    law: list[Any] = [[[None] * n_actions for _ in range(n_states)] for _ in range(horizon)]
    for h, s, a in itertools.product(range(horizon), range(n_states), range(n_actions)):
        table, slots = dynamics.outcomes.slots(h, s, a)
        if dynamics.tried[h, s, a]:
            parts = dynamics.probability[slots], dynamics.outcomes.next_state[table], dynamics.outcomes.reward[table]
            law[h][s][a] = [(float(p), int(y), float(r)) for p, y, r in zip(*parts, strict=True)]
    return World(law, [float(x) for x in dynamics.initial])


def successors(world: World, h: int, s: int, a: int) -> list[float]:
    """P(· | h, s, a); zeros where nobody has tried."""
    out = [0.0] * world.shape[1]
    for p, y, _ in world.law[h][s][a] or []:
        out[y] += p
    return out


def solve(world: World, order: Sequence[int]) -> Solved:
    """V*, gaps, and spreads: one sample of every cell, errors of one cell independent of others', passed on as bounds.

    The deviation of V* is √(own variance² + what the next values pass on²); a gap gets both actions' own variances, and
    next values pass on only where the two actions' laws differ.
    """
    horizon, n_states, n_actions = world.shape
    value = [[0.0] * n_states for _ in range(horizon + 1)]
    deviation = [[0.0] * n_states for _ in range(horizon + 1)]
    gap = np.full(world.shape, math.inf)
    spread, own = np.zeros(world.shape), np.zeros(world.shape)
    best = [[int(order[0])] * n_states for _ in range(horizon)]
    for h in reversed(range(horizon)):
        for s in range(n_states):
            q: dict[int, float] = {}
            for a in range(n_actions):
                law = world.law[h][s][a]
                if law is None:
                    continue
                q[a] = sum(p * (r + value[h + 1][y]) for p, y, r in law)
                variance = sum(p * (r + value[h + 1][y] - q[a]) ** 2 for p, y, r in law)
                own[h, s, a] = variance if variance > TIE else 0.0
            if not q:
                continue
            top = max(q.values())
            b = best[h][s] = next(int(a) for a in order if a in q and q[a] >= top - TIE)
            value[h][s] = top
            passed = sum(p * d for p, d in zip(successors(world, h, s, b), deviation[h + 1], strict=True))
            deviation[h][s] = math.sqrt(own[h, s, b] + passed**2)
            for a in q:
                gap[h, s, a] = max(0.0, top - q[a]) if top - q[a] > TIE else 0.0
                if a != b:
                    pairs = zip(successors(world, h, s, b), successors(world, h, s, a), deviation[h + 1], strict=True)
                    apart = sum(abs(x - y) * d for x, y, d in pairs)
                    spread[h, s, a] = math.sqrt(own[h, s, a] + own[h, s, b] + apart**2)
    return Solved(value, gap, spread, own, best, deviation)


def occupancy(world: World, actions: Sequence[Sequence[int]]) -> list[list[float]]:
    horizon, n_states, _ = world.shape
    visits = [list(world.initial)]
    for h in range(horizon - 1):
        rows = [successors(world, h, s, actions[h][s]) for s in range(n_states)]
        visits.append([sum(visits[h][s] * rows[s][y] for s in range(n_states)) for y in range(n_states)])
    return visits


def evaluate(world: World, actions: Sequence[Sequence[int]]) -> float:
    """V^π from the start: what it collects step by step where it goes; nothing is collected where nobody has been."""
    horizon, n_states, _ = world.shape
    visits, total = occupancy(world, actions), 0.0
    for h, s in itertools.product(range(horizon), range(n_states)):
        total += visits[h][s] * sum(p * r for p, _, r in world.law[h][s][actions[h][s]] or [])
    return total


def best_value(world: World, solved: Solved) -> float:
    return sum(p * v for p, v in zip(world.initial, solved.value[0], strict=True))


def preferred(world: World, solved: Solved, order: Sequence[int], tolerance: float, floor: float) -> Printed:
    """The most preferred action within the tolerance of the best; the most preferred of all below the floor."""
    horizon, n_states, _ = world.shape
    actions = [[solved.best[h][s] for s in range(n_states)] for h in range(horizon)]
    for h, s in itertools.product(range(horizon), range(n_states)):
        enough = [int(a) for a in order if solved.gap[h, s, a] <= tolerance]
        actions[h][s] = enough[0] if enough else solved.best[h][s]
    visits = occupancy(world, actions)
    near: list[tuple[float, tuple[int, int, int]]] = []
    for h, s in itertools.product(range(horizon), range(n_states)):
        if visits[h][s] > 0.0 and visits[h][s] >= floor:
            near += [(x, (h, s, a)) for x, a in _distances(solved, h, s, actions[h][s], list(order), tolerance)]
    margin, place = min(near, default=(CLEAR, None))
    if margin >= CLEAR:
        margin, place = CLEAR, None
    for h, s in itertools.product(range(horizon), range(n_states)):
        if visits[h][s] < floor:
            actions[h][s] = int(order[0])
    return Printed(actions, margin, best_value(world, solved) - evaluate(world, actions), place, visits)


def averaged(world: World, solved: Solved, order: Sequence[int]) -> Solved:
    """Gaps of Q* averaged over the steps, as those of one step; spreads of two actions averaged as they are."""
    horizon, n_states, n_actions = world.shape
    gap, spread = np.full((1, n_states, n_actions), math.inf), np.zeros((1, n_states, n_actions))
    best = [[int(order[0])] * n_states]
    for s in range(n_states):
        q = {a: -sum(float(solved.gap[h, s, a]) for h in range(horizon)) / horizon for a in range(n_actions)}
        q = {a: value for a, value in q.items() if math.isfinite(value)}
        if not q:
            continue
        b = best[0][s] = next(int(a) for a in order if a in q and q[a] >= max(q.values()) - TIE)
        for a in q:
            gap[0, s, a] = q[b] - q[a] if q[b] - q[a] > TIE else 0.0
            for h in range(horizon if a != b else 0):
                pairs = zip(
                    successors(world, h, s, b), successors(world, h, s, a), solved.deviation[h + 1], strict=True
                )
                apart = sum(abs(x - y) * d for x, y, d in pairs)
                spread[0, s, a] += math.sqrt(solved.own[h, s, a] + solved.own[h, s, b] + apart**2) / horizon
    return solved._replace(gap=gap, spread=spread, best=best)


def steady(world: World, solved: Solved, order: Sequence[int], tolerance: float, floor: float) -> Printed:
    """One action for all steps, by averaged gaps; the most preferred of all in states that it hardly ever visits."""
    horizon, n_states, _ = world.shape
    mean = averaged(world, solved, order)
    row = []
    for s in range(n_states):
        enough = [int(a) for a in order if mean.gap[0, s, a] <= tolerance]
        row.append(enough[0] if enough else mean.best[0][s])
    visits = occupancy(world, [row] * horizon)
    near: list[tuple[float, tuple[int, int, int]]] = []
    for s in range(n_states):
        most = max(visits[h][s] for h in range(horizon))
        if most > 0.0 and most >= floor:
            near += [(x, (0, s, a)) for x, a in _distances(mean, 0, s, row[s], list(order), tolerance)]
        elif most < floor:
            row[s] = int(order[0])
    margin, place = min(near, default=(CLEAR, None))
    if margin >= CLEAR:
        margin, place = CLEAR, None
    actions = [list(row) for _ in range(horizon)]
    return Printed(actions, margin, best_value(world, solved) - evaluate(world, actions), place, visits)


def _distances(
    solved: Solved, h: int, s: int, chosen: int, order: list[int], tolerance: float
) -> list[tuple[float, int]]:
    """How far each comparison that can change the choice of a cell is from doing so, over its spread."""
    gap = solved.gap[h, s]
    changes = {int(a): gap[a] - tolerance for a in order[: order.index(chosen)]}
    if gap[chosen] > 0.0:
        changes[chosen] = tolerance - gap[chosen]
    else:
        changes |= {int(a): gap[a] + tolerance for a in order[order.index(chosen) + 1 :]}
    spread = solved.spread[h, s]
    return [(d / spread[a], a) for a, d in changes.items() if spread[a] > 0.0 and math.isfinite(gap[a])]


def plateau(
    world: World, solved: Solved, order: Sequence[int], width: float, floor: float
) -> tuple[list[list[list[float]]], float]:
    """The laws of all cells and their margin."""
    horizon, n_states, n_actions = world.shape
    laws = [[[0.0] * n_actions for _ in range(n_states)] for _ in range(horizon)]
    here, turn, margins = list(world.initial), 0.0, [CLEAR]
    for h in range(horizon):
        there = [0.0] * n_states
        for s in range(n_states):
            if here[s] < floor or all(law is None for law in world.law[h][s]):
                laws[h][s][int(order[0])] = 1.0
            else:
                weights = [_plateau(float(solved.gap[h, s, a]), width) for a in range(n_actions)]
                laws[h][s] = [w / sum(weights) for w in weights]
                for a in range(n_actions):
                    gap, spread = float(solved.gap[h, s, a]), float(solved.spread[h, s, a])
                    if width / 4 < gap < 5 * width / 4:
                        turn += (math.pi / width * spread) ** 2 / sum(weights)
                    elif spread > 0.0 and gap < math.inf:
                        margins.append(max(width / 2 - gap, gap - width) / spread)
            for a in range(n_actions):
                for y, p in enumerate(successors(world, h, s, a)):
                    there[y] += here[s] * laws[h][s][a] * p
        here = there
    return laws, min([*margins, TURN / math.sqrt(turn)] if turn > 0.0 else margins)


def _plateau(gap: float, width: float) -> float:
    """1 up to half the width, cos² down to 0 at its end."""
    if gap <= width / 2:
        return 1.0
    return math.cos(math.pi / 2 * (gap - width / 2) / (width / 2)) ** 2 if gap < width else 0.0


class Scored(NamedTuple):
    """A policy that competes."""

    score: float
    fingerprint: str
    kind: str
    candidate: int
    hope: float
    """The most that it could score, were its loss 0 and its noise the largest."""
    margin: float


def choose(rule: Any, world: World) -> tuple[list[list[int]], list[Scored]]:
    """The policy, and all that competed, the best first."""
    order, solved = [int(a) for a in rule.order], solve(world, [int(a) for a in rule.order])
    pools: dict[str, list[tuple[float, str, int, float]]] = {}
    tables: dict[str, list[list[int]]] = {}
    for kind, make, tolerances in (("preferred", preferred, rule.tolerances), ("steady", steady, rule.stationary)):
        for j, tolerance in enumerate(tolerances):
            printed = make(world, solved, order, float(tolerance), rule.floor)
            name = reprl.Policy(printed.actions).fingerprint
            tables[name] = printed.actions
            weight = _weight(rule, printed.margin, printed.loss)
            pools.setdefault(name, []).append((weight, kind, j, printed.margin))
    scores = []
    for name, pool in pools.items():
        total = sum(weight**POOL for weight, *_ in pool) ** (1 / POOL)
        _, kind, j, margin = max(pool, key=lambda item: item[0])
        score = math.log(total) + _noise(rule, name, tables[name]) if total else -math.inf
        scores.append(Scored(score, name, kind, j, math.inf, margin))
    for number, width in enumerate(rule.widths):
        laws, margin = plateau(world, solved, order, float(width), rule.floor)
        spec = CouplingSpec.auto(world.shape[0] * world.shape[1], world.shape[2])
        rows = np.array(laws).reshape(-1, world.shape[2])
        drawn = correlated_sample(rule.key.derive("sampled", number), rows, spec.method, spec.block)
        actions = drawn.reshape(world.shape[:2]).tolist()
        name = reprl.Policy(actions).fingerprint
        tables[name] = actions
        weight = _weight(rule, margin, best_value(world, solved) - evaluate(world, actions))
        score = math.log(weight) + _noise(rule, name, actions) - DRAWN if weight else -math.inf
        hope = math.log(_weight(rule, margin, 0.0)) + NOISE - DRAWN
        scores.append(Scored(score, name, "sampled", number, hope, margin))
    scores.sort(key=lambda item: -item.score)
    return tables[scores[0].fingerprint], scores


def _weight(rule: Any, margin: float, loss: float) -> float:
    """The margin times √(1 − loss/room), nothing beyond the room."""
    return min(max(margin, 1e-9), CLEAR) * math.sqrt(1.0 - loss / rule.room) if loss < rule.room else 0.0


def _noise(rule: Any, fingerprint: str, actions: list[list[int]]) -> float:
    noise = NOISE * float(rule.key.derive("policy", fingerprint).uniforms(1)[0])
    return noise - (rule.handicap if any(row != actions[0] for row in actions) else 0.0)


def unseen(rows: Any, delta: float) -> float:
    """What hidden outcomes can cost: the most of Σ cost·q over rows of (cost, samples) with Π (1 − q)^n ≥ δ.

    A linear program whose best point puts all that is hidden into one row.
    """
    return max((-math.log(delta) * cost / max(1, n) for cost, n in rows), default=0.0)


def unknown_value(world: World, unsure: Any) -> float:
    """The best over all policies of Σ Pr[the first unsure cell is met at step h]·(H − h)."""
    horizon, n_states, n_actions = world.shape
    best = 0.0
    for actions in naive.all_policies(horizon, n_states, n_actions):
        here, total = list(world.initial), 0.0
        for h in range(horizon):
            there = [0.0] * n_states
            for s in range(n_states):
                if unsure[h][s][actions[h][s]]:
                    total += here[s] * (horizon - h)
                    continue
                for y, p in enumerate(successors(world, h, s, actions[h][s])):
                    there[y] += here[s] * p
            here = there
        best = max(best, total)
    return best


def influence(rule: Any, world: World, near: float = 8.0, aside: float = 0.02) -> Any:
    """Σ over tightest comparisons of candidates that may win: (ν/distance)²·(variance of the cell), scaled."""
    order = [int(a) for a in rule.order]
    solved = solve(world, order)
    mean = averaged(world, solved, order)
    found = [("preferred", preferred(world, solved, order, float(u), rule.floor)) for u in rule.tolerances]
    found += [("steady", steady(world, solved, order, float(u), rule.floor)) for u in rule.stationary]
    found = [(kind, x) for kind, x in found if x.loss < rule.room and x.tightest is not None]
    widest = max((x.margin for _, x in found), default=0.0)
    out = np.zeros(world.shape)
    for kind, printed in found:
        if printed.margin * near <= widest or printed.tightest is None:
            continue
        h, s, a = printed.tightest
        compared, steps = (mean, range(world.shape[0])) if kind == "steady" else (solved, (h,))
        distance = max(printed.margin, 1e-6) * compared.spread[h, s, a]
        for step in steps:
            places = [_lead(world, solved, step, s, action) for action in (compared.best[h][s], a)]
            out += (places[0] - places[1]) ** 2 * solved.own / distance**2 / len(steps)
    return out / out.max() + aside * solved.own if out.max() > 0.0 else solved.own


def _lead(world: World, solved: Solved, h: int, s: int, action: int) -> Any:
    """Where (h, s, action) and then the best policy lead: Pr of every cell (h', s', a')."""
    horizon, n_states, _ = world.shape
    out = np.zeros(world.shape)
    out[h, s, action] = 1.0
    here = successors(world, h, s, action)
    for step in range(h + 1, horizon):
        there = [0.0] * n_states
        for y in range(n_states):
            out[step, y, solved.best[step][y]] = here[y]
            for z, p in enumerate(successors(world, step, y, solved.best[step][y])):
                there[z] += here[y] * p
        here = there
    return out


def redrawn_law(hits: Sequence[int], share: int) -> dict[tuple[int, ...], float]:
    """The law of a cell's counts drawn anew: a multinomial of its frequencies, one sample for every `share`."""
    total = sum(hits)
    number = max(1, total // share)
    law: dict[tuple[int, ...], float] = {}
    for drawn in itertools.product(range(len(hits)), repeat=number):
        counts = tuple(drawn.count(i) for i in range(len(hits)))
        law[counts] = law.get(counts, 0.0) + math.prod(hits[i] / total for i in drawn)
    return law

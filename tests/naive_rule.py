"""Slow, obvious versions of the canonical rule, written from its docstrings: lists and loops over dense tables.

Only two things are the package's own: draws at shared addresses, and the fingerprint of a policy.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import reprl
from tests import naive

TIE = 1e-12
CLEAR = 1e3
NOISE = 0.3
POOL = 3
HIDDEN = 0.02
LEAST_GAIN = 1e-3


class World(NamedTuple):
    """A model: law[h][s][a] lists (probability, next state, reward), and is None where nobody has tried."""

    law: list[list[list[list[tuple[float, int, float]] | None]]]
    initial: list[float]
    allowed: Any
    """allowed[h][s][a]: whether an action may be taken."""

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.law), len(self.law[0]), len(self.law[0][0])


class Solved(NamedTuple):
    value: list[list[float]]
    gap: Any
    spread: Any
    own: Any
    best: list[list[int]]
    default: list[list[int]]
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
    return World(law, [float(x) for x in dynamics.initial], dynamics.allowed.tolist())


def successors(world: World, h: int, s: int, a: int) -> list[float]:
    """P(· | h, s, a); zeros where nobody has tried."""
    out = [0.0] * world.shape[1]
    for p, y, _ in world.law[h][s][a] or []:
        out[y] += p
    return out


def solve(world: World, order: Sequence[int]) -> Solved:
    """V*, gaps, and spreads: one sample of every cell, errors of one cell independent of others', passed on as bounds.

    A cell's own variance has a share of the square of all that could still be earned: what no sample has shown. The
    deviation of V* is √(own variance + what the next values pass on²); a gap gets both actions' own variances, and next
    values pass on only where the two actions' laws differ.
    """
    horizon, n_states, n_actions = world.shape
    value = [[0.0] * n_states for _ in range(horizon + 1)]
    deviation = [[0.0] * n_states for _ in range(horizon + 1)]
    gap = np.full(world.shape, math.inf)
    spread, own = np.zeros(world.shape), np.zeros(world.shape)
    default = [[next(int(a) for a in order if world.allowed[h][s][a]) for s in range(n_states)] for h in range(horizon)]
    best = [list(row) for row in default]
    for h in reversed(range(horizon)):
        for s in range(n_states):
            q: dict[int, float] = {}
            for a in range(n_actions):
                law = world.law[h][s][a]
                if law is None:
                    continue
                q[a] = sum(p * (r + value[h + 1][y]) for p, y, r in law)
                variance = sum(p * (r + value[h + 1][y] - q[a]) ** 2 for p, y, r in law)
                own[h, s, a] = variance + HIDDEN * (horizon - h) ** 2
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
    return Solved(value, gap, spread, own, best, default, deviation)


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


def weight_of(visits: float) -> float:
    """By how much a gap counts in a cell that is visited so often."""
    return 2 * visits / (1 + visits)


def unsure_of(visits: float) -> float:
    """The standard deviation of that weight, if one episode tells whether the cell is visited."""
    return 2 / (1 + visits) ** 2 * math.sqrt(visits * (1 - visits))


def good_enough(solved: Solved, h: int, s: int, order: Sequence[int], tolerance: float, visits: float) -> int:
    """The most preferred action that was tried and whose gap, weighed by visits, is within the tolerance."""
    if visits == 0.0:
        return solved.default[h][s]
    gap = solved.gap[h, s]
    enough = [int(a) for a in order if gap[a] < math.inf and weight_of(visits) * gap[a] <= tolerance]
    return enough[0] if enough else solved.best[h][s]


def preferred(world: World, solved: Solved, order: Sequence[int], tolerance: float) -> Printed:
    """Twice the most preferred action within the tolerance: at first everywhere, then by visits of what came first."""
    horizon, n_states, _ = world.shape
    cells = list(itertools.product(range(horizon), range(n_states)))
    first = [[good_enough(solved, h, s, order, tolerance, 1.0) for s in range(n_states)] for h in range(horizon)]
    visits = [[min(1.0, x) for x in row] for row in occupancy(world, first)]
    actions = [
        [good_enough(solved, h, s, order, tolerance, visits[h][s]) for s in range(n_states)] for h in range(horizon)
    ]
    near = [
        (x, (h, s, a))
        for h, s in cells
        for x, a in distances(solved, h, s, actions[h][s], list(order), tolerance, visits[h][s])
    ]
    margin, place = _least(near)
    return Printed(actions, margin, best_value(world, solved) - evaluate(world, actions), place, visits)


def _least(near: list[tuple[float, tuple[int, int, int]]]) -> tuple[float, tuple[int, int, int] | None]:
    """The smallest distance and where it is; no place if no comparison is near."""
    margin, place = min(near, default=(CLEAR, None))
    return (CLEAR, None) if margin >= CLEAR else (margin, place)


def wander(world: World) -> list[list[float]]:
    """The occupancy of a walk that takes every action that was tried alike."""
    horizon, n_states, n_actions = world.shape
    visits = [list(world.initial)] + [[0.0] * n_states for _ in range(horizon - 1)]
    for h, s in itertools.product(range(horizon - 1), range(n_states)):
        tried = [a for a in range(n_actions) if world.law[h][s][a] is not None]
        for a in tried:
            for y, p in enumerate(successors(world, h, s, a)):
                visits[h + 1][y] += visits[h][s] * p / len(tried)
    return visits


def phases(horizon: int) -> list[list[int]]:
    """The steps of every phase: one at the end, three before it, nine before these, and so on."""
    steps, found = list(range(horizon)), list[list[int]]()
    while steps:
        found.append(steps[-(3 ** len(found)) :])
        steps = steps[: -len(found[-1])]
    return found[::-1]


def averaged(world: World, solved: Solved, order: Sequence[int], steps: Sequence[int]) -> Solved:
    """Gaps averaged over steps, by how often a walk is in the state; as those of one step, spreads likewise."""
    _, n_states, n_actions = world.shape
    gap, spread = np.full((1, n_states, n_actions), math.inf), np.zeros((1, n_states, n_actions))
    default = [
        next((int(a) for a in order if all(world.allowed[h][s][a] for h in steps)), int(order[0]))
        for s in range(n_states)
    ]
    best, visits = list(default), wander(world)
    for s in range(n_states):
        total = sum(visits[h][s] for h in steps)
        share = {h: visits[h][s] / total for h in steps if visits[h][s] > 0.0}
        mean = {a: sum(x * float(solved.gap[h, s, a]) for h, x in share.items()) for a in range(n_actions)}
        mean = {a: value for a, value in mean.items() if share and value < math.inf}
        if not mean:
            continue
        b = best[s] = next(int(a) for a in order if a in mean and mean[a] <= min(mean.values()) + TIE)
        for a in mean:
            gap[0, s, a] = mean[a] - mean[b] if mean[a] - mean[b] > TIE else 0.0
            for h, x in share.items() if a != b else ():
                laws = successors(world, h, s, b), successors(world, h, s, a)
                apart = sum(abs(p - q) * d for p, q, d in zip(*laws, solved.deviation[h + 1], strict=True))
                spread[0, s, a] += x * math.sqrt(solved.own[h, s, a] + solved.own[h, s, b] + apart**2)
    return solved._replace(gap=gap, spread=spread, best=[best], default=[default])


def steady(world: World, solved: Solved, order: Sequence[int], tolerance: float) -> Printed:
    """One action for all steps."""
    return _in_phases(world, solved, order, tolerance, [list(range(world.shape[0]))])


def phased(world: World, solved: Solved, order: Sequence[int], tolerance: float) -> Printed:
    """One action for all steps of a phase."""
    return _in_phases(world, solved, order, tolerance, phases(world.shape[0]))


def _in_phases(world: World, solved: Solved, order: Sequence[int], tolerance: float, parts: list[list[int]]) -> Printed:
    """One action for the steps of each part, by averaged gaps; a state counts by its largest visit."""
    states = range(world.shape[1])
    means = [averaged(world, solved, order, steps) for steps in parts]
    rows = [[good_enough(mean, 0, s, order, tolerance, 1.0) for s in states] for mean in means]
    visits = occupancy(world, [row for row, steps in zip(rows, parts, strict=True) for _ in steps])
    most = [[min(1.0, max(visits[h][s] for h in steps)) for s in states] for steps in parts]
    rows = [
        [good_enough(mean, 0, s, order, tolerance, seen[s]) for s in states]
        for mean, seen in zip(means, most, strict=True)
    ]
    near = [
        (x, (max(steps, key=lambda h: visits[h][s]), s, a))
        for steps, mean, row, seen in zip(parts, means, rows, most, strict=True)
        for s in states
        for x, a in distances(mean, 0, s, row[s], list(order), tolerance, seen[s])
    ]
    margin, place = _least(near)
    actions = [list(row) for row, steps in zip(rows, parts, strict=True) for _ in steps]
    return Printed(actions, margin, best_value(world, solved) - evaluate(world, actions), place, most)


def distances(
    solved: Solved, h: int, s: int, chosen: int, order: list[int], tolerance: float, visits: float
) -> list[tuple[float, int]]:
    """How far each comparison that can change the choice of a cell is from doing so, over its spread."""
    if visits == 0.0:
        return []
    weight, unsure = weight_of(visits), unsure_of(visits)
    out = []
    for a in order:
        gap, spread = float(solved.gap[h, s, a]), float(solved.spread[h, s, a])
        whole = math.hypot(weight * spread, unsure * gap) if gap < math.inf else 0.0
        if whole == 0.0:
            continue
        if order.index(a) < order.index(chosen):
            out.append(((weight * gap - tolerance) / whole, a))
        elif a == chosen and gap > 0.0:
            out.append(((tolerance - weight * gap) / whole, a))
        elif a != chosen and solved.gap[h, s, chosen] == 0.0:
            out.append(((weight * gap + tolerance) / (weight * spread), a))
    return out


class Scored(NamedTuple):
    """A policy that competes."""

    score: float
    fingerprint: str
    kind: str
    candidate: int
    margin: float
    loss: float


def allowed_loss(rule: Any, world: World, solved: Solved) -> float:
    """ε(M): what was asked for, or a share of what the best policy earns more than the baseline."""
    if rule.goal.epsilon is not None:
        return float(rule.goal.epsilon)
    baseline = solved.default if rule.baseline is None else rule.baseline.tolist()
    gain = best_value(world, solved) - evaluate(world, baseline)
    return float((1 - rule.goal.quality) * max(gain, LEAST_GAIN * world.shape[0]))


def choose(rule: Any, world: World) -> tuple[list[list[int]], list[Scored]]:
    """The policy, and all that competed, the best first."""
    order, solved = [int(a) for a in rule.order], solve(world, [int(a) for a in rule.order])
    room = rule.room * allowed_loss(rule, world, solved)
    pools: dict[str, list[tuple[float, str, int, float, float]]] = {}
    tables: dict[str, list[list[int]]] = {}
    for kind, make, tolerances in (
        ("preferred", preferred, rule.tolerances),
        ("steady", steady, rule.stationary),
        ("phased", phased, rule.phased),
    ):
        for j, tolerance in enumerate(tolerances):
            printed = make(world, solved, order, float(tolerance))
            name = reprl.Policy(printed.actions).fingerprint
            tables[name] = printed.actions
            weight = weigh(printed.margin, printed.loss, room)
            pools.setdefault(name, []).append((weight, kind, j, printed.margin, printed.loss))
    scores = []
    for name, pool in pools.items():
        total = sum(weight**POOL for weight, *_ in pool) ** (1 / POOL)
        _, kind, j, margin, loss = max(pool, key=lambda item: item[0])
        score = math.log(total) + noise(rule, name, tables[name]) if total else -math.inf
        scores.append(Scored(score, name, kind, j, margin, loss))
    scores.sort(key=lambda item: (-item.score, item.loss))
    return tables[scores[0].fingerprint], scores


def weigh(margin: float, loss: float, room: float) -> float:
    """The margin times what is left of the room; nothing beyond it."""
    return min(max(margin, 1e-9), CLEAR) * (1.0 - loss / room) if loss < room else 0.0


def noise(rule: Any, fingerprint: str, actions: list[list[int]]) -> float:
    """Shared, of the policy; less the handicap if it changes with the step."""
    own = NOISE * float(rule.key.derive("policy", fingerprint).uniforms(1)[0])
    return own - (float(rule.handicap) if any(row != actions[0] for row in actions) else 0.0)


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


def _values(world: World, actions: Any, rows: set[tuple[int, int, int]], outcome: Any, share: float) -> float:
    """V* − V^π from the start, if rows lead with a probability to an outcome: (reward, V* there, V^π there) by step."""
    horizon, n_states, n_actions = world.shape
    best, own = [0.0] * n_states, [0.0] * n_states
    for h in reversed(range(horizon)):
        tops, mine = [0.0] * n_states, [0.0] * n_states
        for s in range(n_states):
            worth = {}
            for a in range(n_actions):
                law = world.law[h][s][a]
                if law is None:
                    continue
                pair = [sum(p * (r + later[y]) for p, y, r in law) for later in (best, own)]
                if (h, s, a) in rows:
                    reward, *there = outcome(h, best, own)
                    pair = [(1 - share) * x + share * (reward + y) for x, y in zip(pair, there, strict=True)]
                worth[a] = pair
            tops[s] = max((pair[0] for pair in worth.values()), default=0.0)
            mine[s] = worth[actions[h][s]][1] if actions[h][s] in worth else 0.0
        best, own = tops, mine
    return sum(p * (x - y) for p, x, y in zip(world.initial, best, own, strict=True))


def hidden_loss(world: World, samples: Any, actions: Any, log_share: float, *, pooled: bool, strange: bool) -> float:
    """What a policy loses more, if one row of n samples hides an outcome of probability log_share/n: the worst of all.

    The outcome pays 0 or 1 and leads to any state; where some states were never seen, also to one in which the best
    policy earns all that is left and this one nothing, or both nothing.
    """
    horizon, n_states, n_actions = world.shape
    before = _values(world, actions, set(), None, 0.0)
    outcomes: list[Any] = [
        lambda h, best, own, r=r, y=y: (r, best[y], own[y]) for r in (0.0, 1.0) for y in range(n_states)
    ]
    if strange:
        outcomes += [lambda h, best, own, r=r: (r, horizon - h - 1.0, 0.0) for r in (0.0, 1.0)]
        outcomes += [lambda h, best, own: (0.0, 0.0, 0.0)]
    groups: dict[Any, set[tuple[int, int, int]]] = {}
    for cell in itertools.product(range(horizon), range(n_states), range(n_actions)):
        if world.law[cell[0]][cell[1]][cell[2]] is not None:
            groups.setdefault(cell[1:] if pooled else cell, set()).add(cell)
    worst = 0.0
    for rows in groups.values():
        h, s, a = next(iter(rows))
        share = log_share / samples[h][s][a]
        worst = max([worst, *(_values(world, actions, rows, outcome, share) - before for outcome in outcomes)])
    return worst


def influence(rule: Any, world: World, near: float = 8.0, aside: float = 0.02) -> Any:
    """Σ over tightest comparisons of candidates that may win: (ν/distance)²·(variance of the cell), scaled."""
    order = [int(a) for a in rule.order]
    solved = solve(world, order)
    room = rule.room * allowed_loss(rule, world, solved)
    found = [("preferred", preferred(world, solved, order, float(u))) for u in rule.tolerances]
    found += [("steady", steady(world, solved, order, float(u))) for u in rule.stationary]
    found += [("phased", phased(world, solved, order, float(u))) for u in rule.phased]
    found = [(kind, x) for kind, x in found if x.loss < room and x.tightest is not None]
    widest = max((x.margin for _, x in found), default=0.0)
    out = np.zeros(world.shape)
    for kind, printed in found:
        if printed.margin * near <= widest or printed.tightest is None:
            continue
        h, s, a = printed.tightest
        parts = {"preferred": [[h]], "steady": [list(range(world.shape[0]))], "phased": phases(world.shape[0])}[kind]
        steps = next(part for part in parts if h in part)
        compared, row = (solved, h) if kind == "preferred" else (averaged(world, solved, order, steps), 0)
        distance = max(printed.margin, 1e-6) * compared.spread[row, s, a]
        for step in steps:
            places = [_lead(world, solved, step, s, action) for action in (compared.best[row][s], a)]
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

"""Certainty in plain loops, for what is known: slow, obvious, and what kernels are held against.

Beside radii it has what they are about, the tolerances of the rule, written from their definition.
"""

from __future__ import annotations

import math

import numpy as np


def naive_psi(y):
    return -math.log(1.0 - y) - y


def naive_mean_radius(n, span, variance, log, top=0.9, grid=14):
    radius = span
    for _ in range(4):
        found = [radius]
        for k in range(grid):
            rate = top * 0.5**k
            if rate * span <= top:
                found.append(log / (rate * n) + naive_psi(rate * span) / (rate * span**2) * (variance + radius**2))
        radius = min(found)
    return radius


def naive_policy_bounds(data, actions, by_steps, fixed_start, level, start_level, top, grid):
    """Bounds on the value of a policy from the start, one martingale over steps or cell by cell.

    By steps two bounds on an exponent are made for each λ, by squares of weights and along the way; from the start
    there is a third radius, for larger λ.
    """
    outcomes = data.counts.outcomes
    horizon, n_states, _ = outcomes.shape
    starts = data.starts.sum()
    low, high, hat = ([[0.0] * n_states for _ in range(horizon + 1)] for _ in range(3))
    rates: dict[tuple[int, int], list[float]] = {}
    errors: dict[tuple[int, int], float] = {}
    left_out: dict[tuple[int, int], list[float]] = {}
    squares: dict[tuple[int, int], float] = {}
    spans: dict[int, float] = {}
    lambdas = [top * 2.0 ** (math.ceil(math.log2(horizon)) - k) * starts / horizon for k in range(grid)]
    laws: dict[tuple[int, int], list[tuple[int, float, float]]] = {}

    def occupancy(here, step):
        """Pairs (h, law of states) from a step on."""
        for h in range(step, horizon):
            yield h, here
            there = [0.0] * n_states
            for y, weight in enumerate(here):
                for z, p, _ in laws[h, y]:
                    there[z] += weight * p
            here = there

    def radius_from(here, step, log, extra):
        """Follow a law of states, (S,), from a step on."""
        found = []
        for k in range(grid):
            squared, along, added = extra[0][k], extra[0][k], extra[1][k]
            for h, law in occupancy(here, step):
                squared += sum(weight**2 * rates[h, y][k] for y, weight in enumerate(law))
                along += sum(weight * rates[h, y][k] for y, weight in enumerate(law))
                added += sum(weight * left_out[h, y][k] for y, weight in enumerate(law))
            found.append(log / lambdas[k] + min(squared, along) + added)
            if not by_steps:
                return added
        return min(found)

    def larger_rates(here, log, start):
        """Another radius from the start."""
        found = []
        for k in range(grid):
            rate, total = 32.0 * lambdas[k], 0.0
            for h, law in occupancy(here, 0):
                for y, weight in enumerate(law):
                    n = numbers[h, y]
                    x = min(rate * weight * spans[h] / n, top)
                    total += weight**2 * rate * naive_psi(x) / x**2 * squares[h, y] / n if weight else 0.0
                    if rate * weight * (horizon - h) > top * n:
                        total += weight * errors[h, y]
            found.append(log / rate + total)
        return min(found) + start

    def moments(outcomes_of, step):
        """Span, and the largest variance, of reward plus next value."""
        middle = [(r + 0.5 * (low[step][z] + high[step][z]), p) for z, p, r in outcomes_of]
        mean = sum(x * p for x, p in middle)
        variance = sum(p * (x - mean) ** 2 for x, p in middle)
        blur = sum(p * (0.5 * (high[step][z] - low[step][z])) ** 2 for z, p, _ in outcomes_of)
        return (math.sqrt(variance) + math.sqrt(blur)) ** 2

    def rate_of(k, n, span, variance, error, steps):
        """What a weight² is multiplied by, or None if the cell is left out for this λ."""
        rate, c = lambdas[k], span / n
        if not by_steps or rate * steps > top * n:
            return None
        return naive_psi(rate * c) / (rate * c**2) * (variance + error**2) / n

    def parts(n, span, variance, error, steps):
        """Rates, and errors that are added up, for every λ."""
        found = [rate_of(k, n, span, variance, error, steps) for k in range(grid)]
        return [rate or 0.0 for rate in found], [error if rate is None else 0.0 for rate in found]

    numbers: dict[tuple[int, int], float] = {}

    for h in reversed(range(horizon)):
        span = spans[h] = min(horizon - h, 1.0 + max(high[h + 1]) - min(low[h + 1]))
        for s in range(n_states):
            table, slots = outcomes.slots(h, s, int(actions[h, s]))
            hits = data.counts.hits[slots]
            n = numbers[h, s] = hits.sum()
            laws[h, s] = [
                (int(z), hit / n, float(r))
                for z, r, hit in zip(outcomes.next_state[table], outcomes.reward[table], hits, strict=True)
            ]
            variance = min(moments(laws[h, s], h + 1), span**2 / 4)
            errors[h, s] = naive_mean_radius(n, span, variance, level)
            squares[h, s] = variance + errors[h, s] ** 2
            rates[h, s], left_out[h, s] = parts(n, span, variance, errors[h, s], horizon - h)
            hat[h][s] = sum(p * (r + hat[h + 1][z]) for z, p, r in laws[h, s])
        for s in range(n_states):
            here = [float(y == s) for y in range(n_states)]
            radius = radius_from(here, h, level, ([0.0] * grid, [0.0] * grid))
            low[h][s], high[h][s] = max(0.0, hat[h][s] - radius), min(horizon - h, hat[h][s] + radius)
    law = data.starts / starts
    extra, error = ([0.0] * grid, [0.0] * grid), 0.0
    if not fixed_start:
        span = min(horizon, max(1.0, max(high[0]) - min(low[0])))
        variance = min(moments([(s, law[s], 0.0) for s in range(n_states)], 0), span**2 / 4)
        error = naive_mean_radius(starts, span, variance, start_level)
        extra = parts(starts, span, variance, error, horizon)
    radius = radius_from(law.tolist(), 0, start_level, extra)
    if by_steps:
        radius = min(radius, larger_rates(law.tolist(), start_level, error))
    value = float(law @ hat[0])
    return max(0.0, value - radius), min(float(horizon), value + radius)


def naive_share_radius(n, square, log, steep=0.98, grid=14):
    """Largest error of a mean of n samples in [0, 1], by the inequality about 0."""
    rates = [steep * 0.5**k for k in range(grid)]
    return min([1.0] + [log / (rate * n) + naive_psi(rate) / rate * square for rate in rates])


def naive_visits(data, actions, fixed_start, level, steep=0.98, grid=14, firm=32.0):
    """Bounds on the visits of one policy from parallel calls, target by target; level has the logs of the kinds."""
    horizon, n_states, _ = data.counts.outcomes.shape
    calls = int(data.starts.sum())
    law = np.zeros((horizon, n_states, n_states))
    for h in range(horizon):
        for s in range(n_states):
            table, slots = data.counts.outcomes.slots(h, s, int(actions[h, s]))
            np.add.at(law[h, s], data.counts.outcomes.next_state[table], data.counts.hits[slots] / calls)
    start = data.starts / calls
    low, high = np.zeros((horizon, n_states)), np.ones((horizon, n_states))
    unseen = naive_share_radius(calls, 0.0, level.law)
    for t in range(horizon):
        for z in range(n_states):
            worth = {(t, y): float(y == z) for y in range(n_states)}  # upper bounds in the world
            seen = dict(worth)  # in the frequencies
            way = {(t, y): 0.0 for y in range(n_states)}
            square = {}
            for h in range(t - 1, -1, -1):
                for y in range(n_states):
                    row = law[h, y]
                    square[h, y] = sum(row[x] * worth[h + 1, x] ** 2 for x in range(n_states))
                    seen[h, y] = sum(row[x] * seen[h + 1, x] for x in range(n_states))
                    way[h, y] = sum(row[x] * way[h + 1, x] for x in range(n_states))
                    way[h, y] += naive_psi(steep) / steep * square[h, y]
                    one = 0.0  # each probability at its largest
                    for x in range(n_states):
                        error = naive_share_radius(calls, row[x], level.law) if row[x] > 0.0 else unseen
                        one += min(1.0, row[x] + error) * worth[h + 1, x]
                    worth[h, y] = min(1.0, one, seen[h, y] + level.onward / (steep * calls) + way[h, y])
            flow = start.copy()
            cells = [] if fixed_start else [(1.0, sum(start[y] * worth[0, y] ** 2 for y in range(n_states)))]
            for h in range(t):
                cells += [(flow[y], square[h, y]) for y in range(n_states)]
                flow = flow @ law[h]
            above, below = [1.0], [1.0]
            for k in range(grid):
                rate = steep * 0.5**k
                added = sum(naive_psi(rate * mass) / rate * found for mass, found in cells if mass > 0.0)
                above.append(level.reach / (rate * calls) + added)
                if k == 0:
                    above.append(level.unseen / (rate * calls) + added)
                rate *= firm * calls
                below.append(level.reach / rate + rate / 2.0 * sum(mass**2 * found / calls for mass, found in cells))
            if fixed_start and t == 0:
                above, below = [0.0], [0.0]
            low[t, z], high[t, z] = max(0.0, flow[z] - min(below)), min(1.0, flow[z] + min(above))
    return low, high


def naive_weight(visits):
    """How much a gap counts where a policy comes with a probability."""
    return 2.0 * visits / (1.0 + visits)


def naive_weight_spread(visits):
    """Spread of that weight: its slope times the deviation of one visit."""
    return 2.0 / (1.0 + visits) ** 2 * math.sqrt(visits * (1.0 - visits))


def naive_print(gap, visits, order, tolerance):
    """In every cell the first action in order whose weighed gap is within the tolerance."""
    horizon, n_states, _ = gap.shape
    return np.array(
        [
            [next(a for a in order if naive_weight(visits[h][s]) * gap[h, s, a] <= tolerance) for s in range(n_states)]
            for h in range(horizon)
        ]
    )


def naive_distance(gap, spread, visits, tolerance, way):
    """How far one comparison is from changing: of an action passed over, chosen, or beyond a chosen best one."""
    weight, unsure = naive_weight(visits), naive_weight_spread(visits)
    if way == "beyond":
        return (weight * gap + tolerance) / (weight * spread) if weight * spread else math.inf
    distance = weight * gap - tolerance if way == "passed" else tolerance - weight * gap
    spread = math.sqrt((weight * spread) ** 2 + (unsure * gap) ** 2)
    return distance / spread if spread else math.inf


def naive_margin(gap, spread, visits, order, tolerance, clear=1e3):
    """The smallest distance over all cells that are visited and all comparisons that can change what is printed."""
    printed, found = naive_print(gap, visits, order, tolerance), [clear]
    for (h, s), chosen in np.ndenumerate(printed):
        if visits[h][s] <= 0.0:
            continue
        place = list(order).index(chosen)
        ways = {int(a): "passed" for a in order[:place]}
        if gap[h, s, chosen] > 0.0:
            ways[int(chosen)] = "chosen"
        else:
            ways |= {int(a): "beyond" for a in order[place + 1 :]}
        found += [naive_distance(gap[h, s, a], spread[h, s, a], visits[h][s], tolerance, ways[a]) for a in ways]
    return min(found)

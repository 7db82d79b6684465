"""Certainty in plain loops, for a policy that is known: slow, obvious, and what kernels are held against."""

from __future__ import annotations

import math


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
    """Bounds on the value of a policy from the start, one martingale over steps or cell by cell."""
    outcomes = data.counts.outcomes
    horizon, n_states, _ = outcomes.shape
    starts = data.starts.sum()
    low, high, hat = ([[0.0] * n_states for _ in range(horizon + 1)] for _ in range(3))
    rates: dict[tuple[int, int], list[float]] = {}
    errors: dict[tuple[int, int], float] = {}
    laws: dict[tuple[int, int], list[tuple[int, float, float]]] = {}

    def radius_from(here, step, log, extra):
        """Follow a law of states, (S,), from a step on."""
        exponents, added = list(extra[0]), extra[1]
        for h in range(step, horizon):
            there = [0.0] * n_states
            for y, weight in enumerate(here):
                for k in range(grid):
                    exponents[k] += weight**2 * rates[h, y][k]
                added += weight * errors[h, y]
                for z, p, _ in laws[h, y]:
                    there[z] += weight * p
            here = there
        if not by_steps:
            return added
        return min(log / (top * 0.5**k * starts / horizon) + exponents[k] for k in range(grid))

    def moments(outcomes_of, step):
        """Span, and the largest variance, of reward plus next value."""
        middle = [(r + 0.5 * (low[step][z] + high[step][z]), p) for z, p, r in outcomes_of]
        mean = sum(x * p for x, p in middle)
        variance = sum(p * (x - mean) ** 2 for x, p in middle)
        blur = sum(p * (0.5 * (high[step][z] - low[step][z])) ** 2 for z, p, _ in outcomes_of)
        return (math.sqrt(variance) + math.sqrt(blur)) ** 2

    def rate_of(k, n, span, variance, error):
        rate, c = top * 0.5**k * starts / horizon, span / n
        return naive_psi(rate * c) / (rate * c**2) * (variance + error**2) / n

    for h in reversed(range(horizon)):
        span = min(horizon - h, 1.0 + max(high[h + 1]) - min(low[h + 1]))
        for s in range(n_states):
            table, slots = outcomes.slots(h, s, int(actions[h, s]))
            hits = data.counts.hits[slots]
            n = hits.sum()
            laws[h, s] = [
                (int(z), hit / n, float(r))
                for z, r, hit in zip(outcomes.next_state[table], outcomes.reward[table], hits, strict=True)
            ]
            variance = min(moments(laws[h, s], h + 1), span**2 / 4)
            errors[h, s] = naive_mean_radius(n, span, variance, level)
            rates[h, s] = [rate_of(k, n, span, variance, errors[h, s]) if by_steps else 0.0 for k in range(grid)]
            hat[h][s] = sum(p * (r + hat[h + 1][z]) for z, p, r in laws[h, s])
            if by_steps:
                errors[h, s] = 0.0
        for s in range(n_states):
            here = [float(y == s) for y in range(n_states)]
            radius = radius_from(here, h, level, ([0.0] * grid, 0.0))
            low[h][s], high[h][s] = max(0.0, hat[h][s] - radius), min(horizon - h, hat[h][s] + radius)
    law = data.starts / starts
    extra = ([0.0] * grid, 0.0)
    if not fixed_start:
        span = min(horizon, max(1.0, max(high[0]) - min(low[0])))
        variance = min(moments([(s, law[s], 0.0) for s in range(n_states)], 0), span**2 / 4)
        error = naive_mean_radius(starts, span, variance, start_level)
        extra = (
            ([rate_of(k, starts, span, variance, error) for k in range(grid)], 0.0) if by_steps else (extra[0], error)
        )
    radius = radius_from(law.tolist(), 0, start_level, extra)
    value = float(law @ hat[0])
    return max(0.0, value - radius), min(float(horizon), value + radius)

"""The certificate of quality in plain loops, from its proof: what the kernels are held against."""

from __future__ import annotations

import math

import numpy as np


def naive_radius(square, n, log, span):
    found = [span]
    for k in range(14):
        rate = 0.9 * 0.5**k
        if rate * span <= 0.9:
            psi = -math.log(1.0 - rate * span) - rate * span
            found.append(log / (rate * n) + rate * square * psi / (rate * span) ** 2)
    return min(found)


class Naive:
    """Rows as lists of (probability, reward, next state); the last is the start."""

    def __init__(self, evidence, delta):
        model = self.model = evidence.model
        self.shape = horizon, n_states, n_actions = model.allowed.shape
        ends = list(zip(model.first, model.first[1:], strict=False))
        self.rows = [[(model.law[e], model.reward[e], model.next_state[e]) for e in range(*each)] for each in ends]
        self.rows.append([(p, 0.0, s) for s, p in enumerate(model.initial)])
        self.samples = [*evidence.samples, math.inf if evidence.fixed_start else evidence.starts.sum()]
        rows = len(self.rows)
        self.mean = math.log(2 * 2 * 14 * (horizon * n_states * n_actions + 1) / (0.6 * delta))
        self.chance = math.log(14 * rows * n_states / (0.3 * delta))
        self.unseen = math.log(rows * 2**n_states / (0.1 * delta))

    def row(self, h, s, a):
        return h * self.model.shift + s * self.shape[2] + a if h >= 0 else len(self.rows) - 1

    def mean_of(self, row, following):
        return sum(p * (r + following[z]) for p, r, z in self.rows[row])

    def chances(self, row):
        return [sum(p for p, _, y in self.rows[row] if y == z) for z in range(self.shape[1])]

    def error_of(self, row, low, high, left):
        n, span = self.samples[row], min(left, 1.0 + max(high) - min(low))
        if n in (0, math.inf):
            return span if n == 0 else 0.0
        middle = [(x + y) / 2 for x, y in zip(low, high, strict=True)]
        mean = self.mean_of(row, middle)
        deviation = math.sqrt(sum(p * (r + middle[z] - mean) ** 2 for p, r, z in self.rows[row]))
        deviation += math.sqrt(sum(p * ((high[z] - low[z]) / 2) ** 2 for p, _, z in self.rows[row]))
        error = span
        for _ in range(4):
            error = min(error, naive_radius(min(deviation, span / 2) ** 2 + error**2, n, self.mean, span))
        return error

    def bounds(self, mask):
        """Bounds of the best values under a mask, by step, and from the start at step −1."""
        horizon, n_states, _ = self.shape
        low, high = {horizon: [0.0] * n_states}, {horizon: [0.0] * n_states}
        for h in range(horizon - 1, -2, -1):
            low[h], high[h] = [], []
            left = horizon - max(h, 0)
            for s in range(n_states if h >= 0 else 1):
                found = [(0.0, 0.0)]
                for a in np.flatnonzero(mask[h, s]) if h >= 0 else [0]:
                    row = self.row(h, s, a)
                    error = self.error_of(row, low[h + 1], high[h + 1], left)
                    least, most = self.mean_of(row, low[h + 1]) - error, self.mean_of(row, high[h + 1]) + error
                    found.append((max(0.0, least), min(left, most)))
                low[h].append(max(x for x, _ in found))
                high[h].append(max(x for _, x in found))
        return low, high

    def spill(self, row, loss):
        """How much more than its estimate the mean of a loss may be."""
        n, law = self.samples[row], self.chances(row)
        if n in (0, math.inf):
            return max(loss) if n == 0 else 0.0
        hidden = max([x for x, p in zip(loss, law, strict=True) if p == 0], default=0.0) * min(1.0, self.unseen / n)
        return hidden + sum(x * naive_radius(p, n, self.chance, 1.0) for x, p in zip(loss, law, strict=True) if p > 0)

    def gap(self, h, s, a, low, high):
        """How much less than V* an action may be worth, by comparing it with every other one."""
        row, worst = self.row(h, s, a), 0.0
        for b in np.flatnonzero(self.model.allowed[h, s]):
            if b != a:
                other = self.row(h, s, b)
                apart = sum(self.error_of(each, low, high, self.shape[0] - h) for each in (row, other))
                apart += sum(p * r for p, r, _ in self.rows[other]) - sum(p * r for p, r, _ in self.rows[row])
                for z, d in enumerate(np.subtract(self.chances(other), self.chances(row))):
                    apart += max(d * low[z], d * high[z])
                worst = max(worst, apart)
        return worst


def naive_certificate(evidence, policy, baseline, delta):
    """Loss, gain and quality."""
    naive = Naive(evidence, delta)
    horizon, n_states, _ = naive.shape
    base = naive.bounds(baseline > 0)[1][-1][0]
    low, high = naive.bounds(naive.model.allowed)
    value, loss = [0.0] * n_states, [0.0] * n_states
    for h in range(horizon - 1, -2, -1):
        new = []
        for s in range(n_states if h >= 0 else 1):
            row = naive.row(h, s, policy[h, s])
            error = naive.error_of(row, low[h + 1], high[h + 1], horizon - max(h, 0))
            spill = naive.spill(row, loss)
            gap = naive.gap(h, s, policy[h, s], low[h + 1], high[h + 1]) if h >= 0 else 0.0
            worth = max(0.0, naive.mean_of(row, value) - error - min(spill, max(loss)))
            further = min(sum(p * x for p, x in zip(naive.chances(row), loss, strict=True)) + spill, max(loss))
            new.append((worth, min(high[h][s] - worth, gap + further)))
        value, loss = [x for x, _ in new], [y for _, y in new]
    gain = max(value[0], low[-1][0]) - base
    quality = 1.0 - loss[0] / gain if gain > 0 else -math.inf
    if value[0] > base:
        quality = max(quality, (value[0] - base) / (high[-1][0] - base))
    return loss[0], gain, quality

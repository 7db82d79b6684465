"""Measure one point: the samples at which two runs disagree with probability ρ, and the accuracy there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.lower_bounds.sweep import DELTA, LEARNER_HORIZON, REAL_LIMIT, Effort, Point
from reprl.coupling.correlated import correlated_sample
from reprl.coupling.mechanisms import compact
from reprl.lab.lower_bounds.disagreement import race_disagreement
from reprl.lab.lower_bounds.hard_mdp import make_hard_mdp, signs_from_reprl
from reprl.lab.lower_bounds.problems import cube_instance, sign_excess
from reprl.lab.lower_bounds.solvers import plan_signs, sign_scores, sign_solver
from reprl.lab.lower_bounds.sources import rademacher
from reprl.learning.learner import learner
from reprl.learning.settings import LearnOptions
from reprl.randomness import DataStream, SharedKey
from reprl.sources.parallel import GenerativeModel

INSTANCES = SharedKey(20250917).derive("instances")
STEPS = (0.7, 1.0, 1.4)
Array = NDArray[np.float64]
Instance = Callable[[int], Array]


def options(point: Point) -> dict[str, Any]:
    """Return the solver's options."""
    series = point.series
    return {
        "epsilon": point.epsilon,
        "rho": point.rho,
        "delta": DELTA,
        "target": series.target,
        "coupling": series.coupling,
    }


def cube(point: Point, half_width: float) -> Instance:
    """A fresh instance of the paper's hard distribution for every pair."""
    width = min(1.0, half_width)
    return lambda i: cube_instance(point.n, width, INSTANCES.derive(point.n, i))


def disagreements(point: Point, gap: float, m: int, pairs: range, instance: Instance, draws: int) -> Array:
    """Return, for each pair of runs, the probability over the shared key that they answer differently."""
    out = np.empty(len(pairs))
    for j, i in enumerate(pairs):
        p = instance(i)
        laws = [
            compact(sign_scores(rademacher(p, 2 * i + run), point.n, m), epsilon=gap).probabilities for run in (0, 1)
        ]
        stream = DataStream(i, f"integral/{point.n}/{m}")
        grade = point.series.coupling
        out[j] = race_disagreement(laws[0], laws[1], stream, coupling=grade, draws=draws)
    return out


def samples_needed(point: Point, effort: Effort, instance: Instance | None = None) -> dict[str, Any]:
    """Find m with mean disagreement ρ."""
    plan = plan_signs(point.n, **options(point))
    instance = instance or cube(point, plan.gap / 2.0)
    found = where_parted(
        lambda m, pairs: disagreements(point, plan.gap, m, pairs, instance, effort.draws),
        point.rho,
        max(2, plan.samples // 12),
        effort,
    )
    return {
        "samples": math.ceil(found["samples"]),
        "interval": found["interval"],
        "ratio": found["samples"] * (point.rho * point.epsilon) ** 2 / point.n,
        "proven": plan.samples,
        "gap": plan.gap,
        "curve": found["curve"],
    }


def where_parted(parting: Callable[[int, range], Array], rho: float, m: int, effort: Effort) -> dict[str, Any]:
    """Find m with mean disagreement ρ: scouts, then a log-log line through three sizes, bootstrapped over pairs.

    parting(m, pairs) is how likely each of these pairs parts at size m, the shared key integrated out.
    """
    for attempt in itertools.count(1):
        pairs = range(10**6 * attempt, 10**6 * attempt + effort.scouts)
        found = float(parting(m, pairs).mean()) / rho
        m = max(2, math.ceil(m * np.clip(found**2, 1 / 16, 16)))
        if attempt >= 3 and (attempt >= 12 or 0.5 < found < 2.0):
            break
    sizes = [max(2, round(m * step)) for step in STEPS]
    curves = [parting(size, range(k * 10**5, k * 10**5 + effort.pairs)) for k, size in enumerate(sizes)]
    resample = np.random.default_rng(0).integers(0, effort.pairs, (effort.bootstraps, len(sizes), effort.pairs))
    means = np.array([[curve[rows].mean() for curve, rows in zip(curves, r, strict=True)] for r in resample])
    low, high = np.quantile([solve(sizes, row, rho) for row in means], [0.025, 0.975])
    return {
        "samples": solve(sizes, np.array([curve.mean() for curve in curves]), rho),
        "interval": [float(low), float(high)],
        "curve": [[size, float(curve.mean())] for size, curve in zip(sizes, curves, strict=True)],
    }


def solve(sizes: list[int], means: Array, rho: float) -> float:
    """Return m where the line through (log m, log disagreement) passes log ρ."""
    x, y = np.log(sizes), np.log(np.maximum(means, 1e-12))
    slope, offset = np.polyfit(x, y, 1)
    return float(np.exp((math.log(rho) - offset) / min(slope, -0.1)))


def accuracy(point: Point, gap: float, m: int, runs: int) -> dict[str, float]:
    """Return the largest error, in units of ε, on each family of instances: exact checker, exact law of answers."""
    families: dict[str, Instance] = {
        "cube": cube(point, gap / 2.0),
        "middle": lambda i: np.full(point.n, min(1.0, gap / 4.0)),
        "edge": lambda i: np.full(point.n, min(1.0, 0.45 * gap)),
        "wide": cube(point, 1.0),
    }
    worst = {}
    for number, (name, instance) in enumerate(families.items()):
        excess = []
        for i in range(runs):
            p, seed = instance(i), 10**9 + 10**6 * number + i
            laws = compact(sign_scores(rademacher(p, seed), point.n, m), epsilon=gap).probabilities
            # Accuracy is a property of one run's law, which no coupling changes: the cheapest draws from it.
            arms = correlated_sample(SharedKey(seed).derive("accuracy"), laws, "product")
            excess.append(sign_excess(p, 1.0 - 2.0 * arms) / point.epsilon)
        worst[name] = max(excess)
    return worst


def real_runs(point: Point, gap: float, m: int, pairs: int, serial: int) -> dict[str, Any] | None:
    """Run the solver itself in pairs, a fresh key each, where its search is within reach; serial keeps points apart."""
    if point.series.coupling == "joint" and point.n > REAL_LIMIT:
        return None
    if point.series.coupling == "joint" and point.n == REAL_LIMIT:
        pairs = max(10, pairs // 10)
    solver = sign_solver(point.n, **options(point), samples=m)
    instance = cube(point, gap / 2.0)
    different = 0
    for i in range(pairs):
        number = 10**5 * serial + i
        p, seed = instance(10**7 + number), 10**10 + 2 * number
        one, two = (solver(SharedKey(number).derive("real"), rademacher(p, seed + run)) for run in (0, 1))
        different += not np.array_equal(one, two)
    low, high = stats.binomtest(different, pairs).proportion_ci(0.95, method="exact")
    return {"pairs": pairs, "different": different, "interval": [float(low), float(high)]}


def edge(point: Point, u: float, effort: Effort) -> dict[str, Any]:
    """Look for a worse instance than the cube: all biases at u·gap/2."""
    gap = plan_signs(point.n, **options(point)).gap
    found = samples_needed(point, effort, lambda i: np.full(point.n, 0.5 * u * gap))
    return {"n": point.n, "u": u, **{key: found[key] for key in ("samples", "interval", "ratio")}}


def learner_point(n_states: int, rho: float, epsilon: float, pairs: int) -> dict[str, Any]:
    """Measure reprl's RL learner through the hard MDP: real pairs at five sizes, vectors counted."""
    horizon, n = LEARNER_HORIZON, LEARNER_HORIZON * n_states
    centre = 5.0 * n * horizon / (rho * epsilon) ** 2
    sizes = [round(centre * step) for step in (0.25, 0.5, 1.0, 2.0, 4.0)]
    unit = GenerativeModel(make_hard_mdp(np.zeros(n), n_states=n_states), 0).samples_per_call
    counts, vectors, worst = [], [], 0.0
    for k, calls in enumerate(sizes):
        settings: LearnOptions = {
            "epsilon": epsilon * horizon / 3.0,
            "rho": rho,
            "delta": DELTA,
            "rule": "paper",
            "constants": "scaled",
            "samples": calls * unit,
        }
        solver = signs_from_reprl(learner(**settings), n_states=n_states, horizon=horizon)
        different = 0
        for i in range(pairs):
            p = cube_instance(n, epsilon / 2.0, INSTANCES.derive("learner", n, k, i))
            sources = [rademacher(p, 10**11 + 10**6 * k + 2 * i + run) for run in (0, 1)]
            one, two = (solver(SharedKey(i).derive("learner", calls), source) for source in sources)
            different += not np.array_equal(one, two)
            worst = max(worst, sign_excess(p, one) / epsilon)
            assert sources[0].samples == solver.samples == 2 * calls
        counts.append(different)
        vectors.append(solver.samples)
    needed, low, high = binomial_line(vectors, counts, pairs, rho)
    return {
        "n_states": n_states,
        "horizon": horizon,
        "n": n,
        "samples": math.ceil(needed),
        "interval": [low, high],
        "ratio": needed * (rho * epsilon) ** 2 / n,
        "curve": [[v, c / pairs] for v, c in zip(vectors, counts, strict=True)],
        "pairs": pairs,
        "worst_excess": worst,
    }


def binomial_line(sizes: list[int], counts: list[int], pairs: int, rho: float) -> tuple[float, float, float]:
    """Return m at disagreement ρ, which falls like 1/√m (proofs §1), with a parametric bootstrap interval."""
    x = np.log(sizes)

    def crossing(hits: Array) -> float:
        level = np.average(np.log((hits + 0.5) / (pairs + 1.0)) + 0.5 * x, weights=hits + 0.5)
        return float(np.exp(2.0 * (level - math.log(rho))))

    hits = np.asarray(counts, dtype=float)
    again = np.random.default_rng(1).binomial(pairs, hits / pairs, (400, hits.size)).astype(float)
    low, high = np.quantile([crossing(row) for row in again], [0.025, 0.975])
    return crossing(hits), float(low), float(high)


def slope(x: list[float], y: list[float]) -> dict[str, float]:
    """Return the slope of log y on log x by least squares, with a 95 % t-interval."""
    fit = stats.linregress(np.log(x), np.log(y))
    half = float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr)
    return {"slope": float(fit.slope), "low": float(fit.slope) - half, "high": float(fit.slope) + half}

"""Numbers of its pages, looked up in the stored data of experiments.lower_bounds and in the code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from experiments.stored import WORDS, LookUp, code, fitted, percent, phrases, span, stored


def mean_loss() -> tuple[float, float]:
    """Return the largest mean loss of a compact coin, in gaps, and where it is (docs/proofs/lower-bounds.md §1)."""
    u = np.linspace(0, 1, 10**6)
    weight = np.cos(np.pi * u / 2) ** 2
    loss = u * weight / (1 + weight)
    return float(loss.max()), float(u[loss.argmax()])


def votes() -> str:
    """Return T over log(n/δ) of RepInftyEstimate with δ₀ = 0.01."""
    return f"{code('reprl.lab.lower_bounds.reductions.infinity_calls')(10**6, delta=1e-300) / math.log(1e306):.2f}"


def bound_slope(series: str, sweep: str = "n") -> str:
    """Return a fitted slope of the laboratory."""
    (fit,) = [fit for fit in stored("lower_bounds")["slopes"] if (fit["series"], fit["sweep"]) == (series, sweep)]
    return fitted(fit)


def points(series: str) -> dict[int, Any]:
    """Return what a solver of the laboratory needs, by n."""
    found = stored("lower_bounds")["points"]
    return {one["n"]: one for one in found if (one["series"], one["sweep"]) == (series, "n")}


JOINT, AVERAGE, PRODUCT = "joint, every coordinate", "joint, on average", "product, every coordinate"


def edges() -> list[Any]:
    """Return what the joint solver needs with all biases at one edge; the last has the largest n at the worst edge."""
    found: list[Any] = stored("lower_bounds")["edges"]
    return found


def proven_ratio(n: int) -> float:
    """Return the joint solver's proven samples over n/(ρ²ε²)."""
    one = points(JOINT)[n]
    return float(one["proven"] * (one["rho"] * one["epsilon"]) ** 2 / n)


def early_slope() -> str:
    """Return the joint solver's slope up to n = 32, where each step of the learner is."""
    from experiments.lower_bounds.measure import slope

    few = [one for n, one in points(JOINT).items() if n <= 32]
    return f"{slope([one['n'] for one in few], [one['samples'] for one in few])['slope']:.2f}"


def proven_signs(target: str) -> float:
    """Return the constant before n/(ρ²ε²) of a solver's proof, for large n (docs/proofs/lower-bounds.md §1)."""
    return 8 * math.pi**2 * (1.0 if target == "every" else float(code("reprl.lab.lower_bounds.solvers.MEAN_LOSS"))) ** 2


def real_runs() -> tuple[int, int]:
    """Return how many pairs differed of all that were run for real."""
    real = [one["real"] for one in stored("lower_bounds")["points"] if one.get("real")]
    return sum(one["different"] for one in real), sum(one["pairs"] for one in real)


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/lower-bounds.md": {
        "proven-need-when": lambda: [f"{proven_signs('every'):.0f}"],
        "has-right-large": lambda: [f"{proven_signs('average'):.1f}"],
        "lower-bound-against": lambda: phrases([bound_slope(JOINT, "rho"), bound_slope(JOINT, "epsilon")], "{} and {}"),
        "solver-has-curve": lambda: phrases(
            [
                bound_slope(JOINT),
                bound_slope(f"{JOINT}, n ≥ 32"),
                *(str(edge) for edge in (lambda x: (math.floor(x), math.ceil(x)))(points(JOINT)[256]["ratio"])),
            ],
            "{}",
            "{}",
            "{} and {}",
        ),
        "levels-tried-needs": lambda: [
            f"{max((one for one in edges() if one['n'] == 64), key=lambda one: one['ratio'])['u']}"
        ],
        "all-biases-asking": lambda: [
            f"{edges()[-1]['u']}",
            f"{edges()[-1]['ratio']:.0f}",
            f"{proven_ratio(256):.0f}",
            f"{edges()[-1]['ratio']:.0f}",
            f"{proven_ratio(256) / edges()[-1]['ratio']:.0f}",
        ],
        "ratio-falls-gap": lambda: [f"{points(AVERAGE)[256]['ratio']:.2f}"],
        "still-growing-coupling": lambda: [bound_slope(AVERAGE)],
        "factor-slope-times": lambda: phrases(
            [
                bound_slope(PRODUCT),
                f"{points(PRODUCT)[256]['samples'] / points(JOINT)[256]['samples']:.0f}",
            ],
            "{}: {}",
        ),
        "stays-within-pays": lambda: phrases(
            span(one["ratio"] for one in stored("lower_bounds")["learner"]), "{} … {}"
        ),
        "itself-slope-each": lambda: [bound_slope("RL learner, H = 4")],
        "solver-has-too": lambda: [early_slope()],
        "has-too-sizes": lambda: [
            str(stored("lower_bounds")["effort"]["learner_pairs"]),
            *{WORDS[len(one["curve"])] for one in stored("lower_bounds")["learner"]},
        ],
        "real-together-where": lambda: ["{} of {}".format(*real_runs()), percent(real_runs()[0] / real_runs()[1], 1)],
    },
    "docs/proofs/lower-bounds.md": {
        "average-min-log": lambda: [f"{code('reprl.lab.lower_bounds.solvers.MEAN_LOSS')}"],
        "product-max-so": lambda: [
            f"{code('reprl.lab.lower_bounds.solvers.MEAN_LOSS')}",
            f"{math.floor(1e5 * mean_loss()[0]) / 1e5}",
            f"{mean_loss()[1]:.2f}",
        ],
        "every-grows-average": lambda: [
            f"{code('reprl.lab.lower_bounds.solvers.MEAN_LOSS')}",
            f"{proven_signs('average'):.1f}",
        ],
        "log-kl-lo": lambda: [f"{code('reprl.lab.lower_bounds.reductions.WRONG_SHARE')}"] * 4,
        "exp-kl-log": lambda: [votes()],
    },
}

"""How many parallel calls the generative learner needs in practice: measure, fit, validate, tabulate.

python -m experiments.calibration.generative fit       constants and exponents, from stored measurements
python -m experiments.calibration.generative measure   the calibration sweep, a quarter of an hour on one core
python -m experiments.calibration.generative validate  pairs on held-out worlds, at the preset's own number of calls
python -m experiments.calibration.generative table     calls that each way to decide needs on four worlds
python -m experiments.calibration.generative report    the tables of docs/calibration.md, from stored measurements
python -m experiments.calibration.generative --quick   everything in miniature, nothing stored
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable

import numpy as np
from scipy.optimize import minimize

from experiments.calibration.pairs import Record, Setting, load, measure, save, setting
from experiments.calibration.sweep import (
    CALIBRATION,
    HELD_OUT,
    QUICK,
    TABLE_EPSILON,
    TABLE_LEARNERS,
    TABLE_RHO,
    TABLE_WORLDS,
)
from reprl.learning.constants import GENERATIVE_CONSTANT, practical_calls

CURVE = (120, 3)
"""Pairs at each number of calls, and how many of those, 4 apart."""
DECISIVE_CURVE = (300, 4)
"""The same for the settings that decide the constant: small instances of the lower bound's MDP."""
HUNT_PAIRS = 20
CHECK_PAIRS = 200
LARGEST = 2**40
RHOS = (0.05, 0.1, 0.2)
SAFETY = 1.5
"""The preset draws at least this many times what the worst calibration setting needs."""


def curve(what: Setting, pairs: int | None = None, hunt: int = HUNT_PAIRS) -> list[Record]:
    """Measure disagreement at a few numbers of calls, 4 apart, that start where a fair part of the pairs disagrees.

    A few pairs hunt for the start; they are thrown away, so that the search cannot bend what is kept.
    """
    calls = 4
    while 2 * calls < 0.5 * scale(what):
        calls *= 4
    seen: set[int] = set()
    while calls not in seen and len(seen) < 12:
        seen.add(calls)
        rate = measure(what, calls, hunt, "hunt").rate
        step = 16 if rate > 0.9 else 4 if rate > 0.6 else 1 if rate >= 0.15 else 0.25 if rate > 0 else 0.0625
        calls = min(max(4, int(calls * step)), 4**25)
    decisive = what.world == "hard-instance-v0" and what.sizes[0] <= 16
    usual, points = DECISIVE_CURVE if decisive else CURVE
    return [measure(what, calls * 4**k, pairs or usual, "calibration") for k in range(points)]


def scale(what: Setting) -> float:
    """S·B·H⁴/ε²: the formula without its constant and ρ."""
    n_states, _, horizon = what.sizes
    return n_states * what.n_blocks * horizon**4 / what.epsilon**2


def needed(records: list[Record]) -> Callable[[float], float]:
    """Return ρ ↦ the calls at which disagreement is ρ, by maximum likelihood under 1 − exp(−c·calls^−b).

    Theory has b = 1/2, and up to 1 where arms tie exactly; the fit may leave 1/2 at the price of a normal prior with
    deviation 0.1. Without a single disagreement the smallest number measured is an upper bound for every ρ.
    """
    calls = np.log([record.calls for record in records])
    pairs = np.array([record.pairs for record in records], dtype=float)
    hits = np.array([record.disagreements for record in records], dtype=float)
    if hits.sum() == 0:
        return lambda rho: math.exp(calls.min())
    centre = calls.mean()

    def cost(x: np.ndarray) -> float:
        hazard = np.exp(np.clip(x[0] - x[1] * (calls - centre), -50.0, 50.0))
        likelihood = hits * np.log(-np.expm1(-hazard)) - (pairs - hits) * hazard
        return float(-likelihood.sum() + 0.5 * ((x[1] - 0.5) / 0.1) ** 2)

    level, slope = minimize(cost, np.array([-2.0, 0.5]), method="Nelder-Mead").x
    return lambda rho: math.exp(centre + (level - math.log(-math.log1p(-rho))) / slope)


def by_setting(records: Iterable[Record]) -> dict[Setting, list[Record]]:
    """Group records, keeping their order."""
    groups: dict[Setting, list[Record]] = {}
    for record in records:
        groups.setdefault(record.setting, []).append(record)
    return groups


def ratios(records: Iterable[Record]) -> dict[Setting, dict[float, float]]:
    """Return for each setting and ρ the constant that it needs: calls·ρ² / (S·B·H⁴/ε²)."""
    out = {}
    for what, group in by_setting(records).items():
        calls = needed(group)
        out[what] = {rho: calls(rho) * rho**2 / scale(what) for rho in RHOS}
    return out


def fit_constants(records: Iterable[Record]) -> dict[str, float]:
    """Return the constants: the largest ratio of each grade times SAFETY, rounded up to a tenth.

    Joint and blocked are one grade: a joint coupling is a single block.
    """
    worst = {"joint": 0.0, "product": 0.0}
    for what, ratio in ratios(records).items():
        grade = "product" if what.decision.coupling == "product" else "joint"
        worst[grade] = max(worst[grade], *ratio.values())
    found = {grade: math.ceil(10.0 * SAFETY * value) / 10.0 for grade, value in worst.items()}
    return {"joint": found["joint"], "blocked": found["joint"], "product": found["product"]}


def fit_exponents(records: Iterable[Record]) -> dict[str, float]:
    """Return least-squares exponents of S, H and ε on the lower bound's instances with the gap at 0.8 of the window."""
    rows, target = [], []
    for what, group in by_setting(records).items():
        n_states, _, horizon = what.sizes
        if what.decision.coupling == "joint" and abs(_reach(what) - 0.8) < 0.005:
            rows.append([1.0, math.log(n_states), math.log(horizon), math.log(1.0 / what.epsilon)])
            target.append(math.log(needed(group)(0.1)))
    solution = np.linalg.lstsq(np.array(rows), np.array(target), rcond=None)[0]
    return dict(zip(("S", "H", "1/epsilon"), (float(x) for x in solution[1:]), strict=True))


def _reach(what: Setting) -> float:
    """Where the gap of a hard instance sits in the window ε/H; NaN for other worlds."""
    if what.world != "hard-instance-v0":
        return math.nan
    return what.option("bias") / 1.5 * what.sizes[2] / what.epsilon


def validate(held_out: Iterable[tuple[Setting, float]], pairs: int = CHECK_PAIRS) -> list[Record]:
    """Measure held-out settings at the calls that the preset gives for their ρ."""
    return [show(measure(what, preset_calls(what, rho), pairs, "validation"), rho) for what, rho in held_out]


def preset_calls(what: Setting, rho: float) -> int:
    """Return what constants="practical" would draw."""
    return practical_calls(*what.sizes, epsilon=what.epsilon, rho=rho, grade=what.decision.grade)


def threshold(what: Setting, rho: float, pairs: int = CHECK_PAIRS, largest: int = LARGEST) -> list[Record]:
    """Return the records at the smallest power of two with disagreement at most ρ, and at half of it.

    The last record is the one that meets ρ; if none does up to `largest`, the one at `largest` stands alone.
    """
    calls = 2**12
    step = 16
    while step > 1:
        rate = measure(what, calls, 2 * HUNT_PAIRS, "hunt").rate
        while rate > rho and calls < largest:
            calls = min(calls * step, largest)
            rate = measure(what, calls, 2 * HUNT_PAIRS, "hunt").rate
        while rate <= rho and calls // step >= 2:
            calls //= step
            rate = measure(what, calls, 2 * HUNT_PAIRS, "hunt").rate
        calls = min(calls * (step if rate <= rho else 1), largest)
        step = math.isqrt(step)
    here = measure(what, calls, pairs, "table")
    if here.rate > rho:
        while here.rate > rho and here.calls < largest:
            before, here = here, measure(what, here.calls * 2, pairs, "table")
        return [here] if here.rate > rho else [before, here]
    while here.calls > 1:
        before = measure(what, here.calls // 2, pairs, "table")
        if before.rate > rho:
            return [before, here]
        here = before
    return [here]


def run_table(worlds: Iterable[str], pairs: int = CHECK_PAIRS, largest: int = LARGEST) -> list[Record]:
    """Find the threshold of every way to decide on the given worlds."""
    records: list[Record] = []
    for name in worlds:
        world, options = TABLE_WORLDS[name]
        for how in TABLE_LEARNERS.values():
            what = setting(world, options, TABLE_EPSILON, **how)
            records += [show(record, TABLE_RHO) for record in threshold(what, TABLE_RHO, pairs, largest)]
    return records


def sweep(settings: Iterable[Setting]) -> list[Record]:
    """Measure a curve for every setting."""
    return [show(record) for what in settings for record in curve(what)]


def show(record: Record, rho: float | None = None) -> Record:
    """Print a record as it comes."""
    low, high = record.interval
    asked = "" if rho is None else f" asked {rho:g}"
    what = record.setting
    print(
        f"{what.name} ε={what.epsilon:g} {what.mechanism}/{what.coupling}: {record.calls:.3g} calls, "
        f"disagreement {record.rate:.3f} [{low:.3f}, {high:.3f}]{asked}, loss ≤ {record.worst_loss:.3f}",
        flush=True,
    )
    return record


def print_fit(records: list[Record]) -> dict[str, float]:
    """Print what the stored measurements say, and whether the package agrees."""
    worst = ratios(records)
    print(f"{'setting':78s} {'ε':>4s} {'coupling':>8s}  constant needed at ρ = {', '.join(map(str, RHOS))}")
    for what, ratio in sorted(worst.items(), key=lambda item: -max(item[1].values())):
        line = "  ".join(f"{value:8.2g}" for value in ratio.values())
        print(f"{what.name:78s} {what.epsilon:4.2g} {what.decision.coupling:>8s}  {line}")
    exponents = ", ".join(f"{name}^{value:.2f}" for name, value in fit_exponents(records).items())
    print(f"exponents on the hard instances: {exponents}")
    constants = fit_constants(records)
    print(f"GENERATIVE_CONSTANT = {constants}")
    print("reprl.learning.constants agrees" if constants == GENERATIVE_CONSTANT else f"reprl has {GENERATIVE_CONSTANT}")
    return constants


def quick() -> None:
    """Run every mode in miniature, then the fit from the stored data."""
    for what in QUICK:
        needed([show(record) for record in curve(what, 40, 10)])
    validate([(QUICK[0], 0.2)], pairs=40)
    threshold(
        setting("random-mdp-v0", {"n_states": 4, "n_actions": 2, "horizon": 2}, 0.6), 0.2, pairs=40, largest=2**20
    )
    print_fit(load("generative-calibration"))


def main(arguments: list[str] | None = None) -> None:
    """Run one mode."""
    from experiments.calibration.tables import print_tables

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("mode", nargs="?", choices=("fit", "measure", "validate", "table", "report"), default="fit")
    parser.add_argument("--quick", action="store_true", help="everything in miniature, nothing stored")
    chosen = parser.parse_args(arguments)
    began = time.perf_counter()
    if chosen.quick:
        quick()
    elif chosen.mode == "measure":
        save("generative-calibration", sweep(CALIBRATION))
    elif chosen.mode == "validate":
        save("generative-validation", validate(HELD_OUT))
    elif chosen.mode == "table":
        save("generative-table", run_table(TABLE_WORLDS))
    elif chosen.mode == "report":
        print_tables()
    else:
        print_fit(load("generative-calibration"))
    if chosen.quick or chosen.mode in ("measure", "validate", "table"):
        print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

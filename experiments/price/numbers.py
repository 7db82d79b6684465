"""Numbers of pages on the canonical rule, looked up in the stored data of experiments.price and in the code."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom, binomtest, norm

import reprl
from experiments.defaults.__main__ import table as defaults
from experiments.pairs import DEFAULT, RHO, Count, Counts, best_value, by_case, count, first_action_value
from experiments.price.__main__ import HELD, PAGE, PROMISES, page_table, prices, table
from experiments.price.boxes import ALONE
from experiments.price.boxes import DATA as BOXES
from experiments.price.boxes import table as boxes
from experiments.price.worlds import TARGETS
from experiments.quiet.__main__ import table as pairs
from experiments.stored import ROOT, LookUp, code, constants, measured, percent, phrases, power

EPSILON = 0.3
"""Of the argument on the combination lock."""


EPISODES = "experiments/price/episodes.json"
"""Stored data of weaker promises by episodes."""


@cache
def stored_pairs(file: str) -> dict[str, Any]:
    """Return the measurements of a file of these pages."""
    found: dict[str, Any] = json.loads((ROOT / PAGE[file]).read_text("utf-8"))["measured"]
    return found


@cache
def worlds_of(file: str, group: str) -> dict[str, dict[str, Any]]:
    """Return the prices of a group of worlds."""
    return {name: row for name, row in prices(stored_pairs(file)).items() if name.startswith(group)}


def total(seen: list[Counts]) -> list[str]:
    """Return pairs apart of how many, and runs that lose more than asked of how many."""
    return [
        str(sum(getattr(getattr(one, name), field) for one in seen))
        for name in ("apart", "missed")
        for field in ("failures", "trials")
    ]


def summary(file: str, group: str) -> list[str]:
    """Return the median over worlds of the median price, and the totals."""
    rows = worlds_of(file, group).values()
    return [f"{np.median([np.median(row['runs']) for row in rows]):.0f}", *total([row["seen"] for row in rows])]


def weaker_rows(file: str) -> dict[str, Any]:
    """Return the measurements of a file of docs/register.md."""
    found: dict[str, Any] = json.loads((ROOT / file).read_text("utf-8"))["measured"]
    return found


@cache
def weaker(file: str) -> dict[str, Counts]:
    """Return pairs under the weaker promises, by kind and world."""
    return {name: count(case) for name, case in by_case(weaker_rows(file)).items()}


def of_promise(file: str, group: str) -> list[Counts]:
    """Return those of one kind of promise."""
    return [seen for name, seen in weaker(file).items() if name.startswith(f"{group}/")]


def least_and_most(cases: list[Counts]) -> str:
    """Return how many pairs a world has."""
    numbers = sorted({seen.pairs for seen in cases})
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def undecided(file: str) -> list[str]:
    """Return how many registered runs promised nothing, and of how many."""
    seen = of_promise(file, "registered")
    return [str(sum(one.unpromised for one in seen)), f"{sum(2 * one.pairs for one in seen):,}"]


def rejects(file: str, group: str) -> list[str]:
    """Return of a group how many pairs broke the promise, of how many, and the p-value of the exact test."""
    seen = of_promise(file, group)
    failures, trials = (sum(getattr(one.apart, part) for one in seen) for part in ("failures", "trials"))
    return [str(failures), str(trials), f"{binomtest(failures, trials, 0.1, alternative='greater').pvalue:.1g}"]


def missed(file: str) -> list[str]:
    """Return how many runs under a weaker promise lost more than asked, and of how many."""
    seen = [*of_promise(file, "agreement"), *of_promise(file, "registered")]
    return [str(sum(one.missed.failures for one in seen)), f"{sum(one.missed.trials for one in seen):,}"]


def blackjack() -> list[str]:
    """Return of the one run in Blackjack its status, samples, processor time, share of the gain and of like steps."""
    found = weaker_rows(BOXES)[f"alone/{ALONE}"]
    shares = [percent(found["share"]), percent(found["alike"])]
    return [found["status"], f"{found['samples'] / 1e6:.1f}", str(found["cpu"]), *shares]


@cache
def stored_ties() -> dict[str, Any]:
    """Return pairs on ties of best actions."""
    return measured("enemies")


def held_out() -> list[Counts]:
    return [row["seen"] for row in worlds_of("held", "generated/").values()]


def untuned() -> list[str]:
    """Return of worlds that nothing was tuned on the share of pairs apart, their number, and on how many ρ falls."""
    apart = sum(one.apart.failures for one in held_out()) / sum(one.apart.trials for one in held_out())
    return [
        f"{100.0 * apart:.1g} %",
        str(len(held_out())),
        "some" if any(one.apart.rejected for one in held_out()) else "none",
    ]


def unsure() -> list[str]:
    """Return on how many of those most runs were not sure, and the limit on their samples."""
    return [str(sum(one.unpromised > one.pairs for one in held_out())), power(code("experiments.price.measure.LIMIT"))]


def choice_share() -> list[str]:
    """Return on how many worlds the rule alone has a large price, and by how much runs take more than it."""
    rows = [row for row in worlds_of("price", "").values() if 500 <= row["rule"] < math.inf]
    more = [float(np.median(row["runs"])) / row["rule"] for row in rows]
    return [str(len(rows)), f"{min(more):.1g} to {max(more):.2g}"]


def cliff_bound() -> list[str]:
    """Return how many samples of a cell exclude an event that costs ε and all that is left, and what runs take."""
    name = "CliffWalking H=20"
    world, row = TARGETS[name](), worlds_of("price", "")[f"targets/{name}"]
    best, baseline = best_value(world), first_action_value(world)
    least = math.log(1.0 / 0.1) * best / DEFAULT.allowed(world, baseline)
    cells = world.n_states * world.n_actions
    return [f"{math.ceil(least):,}", f"{np.median(row['seen'].samples) / cells:,.0f}"]


def by_luck(teams: int, share: int) -> float:
    """Return how often one look passes at a boundary, with teams on one `share`-th of the data."""
    z, step = np.linspace(-8.0, 8.0, 1601, retstep=True)
    return float((norm.pdf(z) * norm.cdf(abs(z) / math.sqrt(share)) ** teams).sum() * step)


def pairs_by_luck(spare: int, guarded: bool) -> float:
    """Return how often one look passes by its pairs at a boundary that all keys share.

    So many pairs may differ; guarded looks also ask data sets of half of the size.
    """
    z, step = np.linspace(-8.0, 8.0, 1601, retstep=True)
    passes = binom.cdf(spare, REHEARSED[0], 2.0 * norm.cdf(z) * norm.cdf(-z))
    if guarded:
        passes = passes * norm.cdf(abs(z) / math.sqrt(REHEARSED[1])) ** REHEARSED[0]
    return float((norm.pdf(z) * passes).sum() * step)


def passing(teams: int, share: int) -> float:
    """Return how many standard deviations from a boundary half of the looks pass."""
    return float(math.sqrt(share) * norm.ppf(0.5 ** (1.0 / teams)))


def stop_by(distance: float, passes: Callable[[NDArray[np.float64]], NDArray[np.float64]], looks: float) -> list[float]:
    """Return how often a run stops on the right and on the wrong side that looks at 1, 2, 4, … samples.

    One normal comparison decides, with a boundary so many standard deviations of the first look away; a look at z of
    its own standard deviations passes with a probability.
    """
    z, step = np.linspace(-12.0, 12.0, 241, retstep=True)
    going, mean, sides, look = norm.pdf(z - distance) * step, distance, [0.0, 0.0], 0
    while going.sum() > 1e-9 and look < looks:
        stop = going * passes(z)
        middle = float(stop[abs(z) < step / 2].sum()) / 2
        sides = [
            sides[0] + float(stop[z > step / 2].sum()) + middle,
            sides[1] + float(stop[z < -step / 2].sum()) + middle,
        ]
        there = norm.pdf(z * math.sqrt(2.0), z[:, None] + mean, 1.0) * math.sqrt(2.0) * step
        going, mean, look = (going - stop) @ there, mean * math.sqrt(2.0), look + 1
    return sides


@cache
def part_by_luck(distance: float, teams: int, share: int) -> float:
    """Return how often two runs part at a boundary under their shared key; a look passes by its teams."""
    _, wrong = stop_by(distance, lambda z: norm.cdf(abs(z) / math.sqrt(share)) ** teams, math.inf)
    return 2.0 * wrong * (1.0 - wrong)


def part_on_average(teams: int, share: int) -> float:
    """Return the same for distances that are uniform up to 1."""
    return average(lambda distance: part_by_luck(distance, teams, share))


@cache
def differ_in_common(distance: float, share: float) -> float:
    """Return how often two runs differ at a boundary that a share of the keys has in common.

    A look passes by its teams, or by its pairs unless most of KEYS fresh keys have the boundary and notice it.
    """

    def passes(z: NDArray[np.float64]) -> NDArray[np.float64]:
        teams = norm.cdf(abs(z) / math.sqrt(REHEARSED[1])) ** REHEARSED[0]
        pairs = (1.0 - share * 2.0 * norm.cdf(z) * norm.cdf(-z)) ** REHEARSED[0]
        noticed = float(binom.sf(KEYS // 2, KEYS, share))
        return np.asarray(1.0 - (1.0 - teams) * (1.0 - pairs * (1.0 - noticed + noticed * teams)))

    right, wrong = stop_by(distance, passes, LOOKS)
    return share * 2.0 * right * wrong


def average(at: Callable[[float], float]) -> float:
    """Return the mean over distances that are uniform up to 1."""
    distances = np.geomspace(1e-3, 1.0, 25)
    found = [at(float(distance)) for distance in distances]
    return float(np.trapezoid(found, distances) + found[0] * distances[0])


SHARES, LOOKS = (0.2, 0.3, 0.4, 0.5), 37
"""Of keys at which f jumps at a tie, and looks of a run by parallel samples at the default limit."""


@cache
def differ_at_tie(share: float, looks: int, runs: int = 40_000) -> float:
    """Return how often two runs that promise differ at one tie, if second teams were copies alone; by simulation.

    z is by how many standard errors the data of a run favour one side; a look passes by its teams or by its pairs.
    """
    rng, sides, done = np.random.default_rng(28), np.zeros((2, runs)), np.zeros((2, runs), dtype=bool)
    total, size = rng.normal(size=(2, runs)), 1.0
    for _ in range(looks):
        z = total / math.sqrt(size)
        teams = norm.cdf(abs(z) / math.sqrt(REHEARSED[1])) ** REHEARSED[0]
        pairs = binom.cdf(0, REHEARSED[0], share * 2.0 * norm.cdf(z) * norm.cdf(-z))
        stops = ~done & (rng.random((2, runs)) < 1.0 - (1.0 - teams) * (1.0 - pairs))
        sides[stops] = np.sign(z[stops])
        done |= stops
        total, size = total + rng.normal(size=(2, runs)) * math.sqrt(size), 2.0 * size
    both = done.all(axis=0)
    return float(share * (both & (sides[0] != sides[1])).mean() / (1.0 - share + share * both.mean()))


def differ_with_toss(share: float, looks: int) -> float:
    """Return the same if teams toss the side: only pairs under fresh keys can pass, at the rate of real pairs."""
    both = (1.0 - (1.0 - binom.cdf(0, REHEARSED[0], share / 2.0)) ** looks) ** 2
    return float(share * both / 2.0 / (1.0 - share + share * both))


def lock_bound() -> list[str]:
    """Return H and V* of the combination lock, the chance q that costs ε if hidden, and the samples that show it."""
    mdp, epsilon, delta = reprl.make("combination-lock-v0"), EPSILON, 0.1
    assert isinstance(mdp, reprl.TabularMDP)
    steps, best = mdp.horizon, float(mdp.initial @ mdp.solve().values[0])
    worth = best + epsilon
    q = brentq(lambda q: sum(q * (1 - q) ** h * (steps - 1 - h) for h in range(steps)) - worth, 1e-3, 0.1)
    tries = math.log(delta / (1 - delta)) / math.log1p(-q)
    return [str(steps), f"{best:g}", f"{q:.4f}", f"{math.ceil(tries)}", f"{tries / steps:.1f}"]


def lake_margins(keys: int) -> list[str]:
    """Return the median margins of FrozenLake's policies, by steps and steady."""
    from reprl.canonical.choice import choose, make_rule
    from reprl.canonical.goal import Goal

    from reprl.mdp.dynamics import true_dynamics

    mdp, found = reprl.make("gym:FrozenLake-v1", 12), list[str]()
    assert isinstance(mdp, reprl.TabularMDP)
    for steady in (False, True):
        rules = [
            make_rule(
                reprl.SharedKey(key), (mdp.horizon, mdp.n_states, mdp.n_actions), goal=Goal(0.02), stationary=steady
            )
            for key in range(keys)
        ]
        found.append(f"{np.median([choose(rule, true_dynamics(mdp)).margin for rule in rules]):.2g}")
    return found


REHEARSED = code("reprl.assurance.rehearsal.asked_for")(0.1), code("reprl.assurance.rehearsal.OWN")


FORMER = 40, 4
"""Teams, and this run's data over theirs: today at ρ = 0.1, and of an earlier rule."""


DISTANCES, NEAREST = (0.2, 0.3, 0.5, 0.8), 0.001
KEYS, COMMON = code("reprl.assurance.rehearsal.KEYS"), (1.0, 0.5)
"""Fresh keys of a guarded look; shares of keys that have a boundary in common."""


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/canonical.md": {
        "price-targets": lambda: summary("price", "targets/"),
        "price-generated": lambda: summary("price", "generated/"),
        "price-held": lambda: summary("held", "generated/"),
        "held-unsure": unsure,
        "pairs-price": lambda: [least_and_most([row["seen"] for row in worlds_of("price", "").values()])],
        "pairs-held": lambda: [least_and_most(held_out())],
        "price-choice": choice_share,
        "price-cliff": cliff_bound,
        "price-power": lambda: [str(next(k for k in range(40) if Count(k, 40, RHO).rejected))],
        "ties-present": lambda: total(
            [count(found) for name, found in by_case(stored_ties()).items() if "parallel" in name and "tie" in name]
        )[:2],
        "defaults-kept": lambda: total([count(found) for found in by_case(stored_pairs("defaults")).values()]),
    },
    "docs/register.md": {
        "pairs-weaker": lambda: [
            least_and_most(
                [
                    *of_promise(PROMISES, "agreement"),
                    *of_promise(PROMISES, "registered"),
                    *[row["seen"] for row in worlds_of("price", "").values()],
                ]
            )
        ],
        "agreement-kept": lambda: rejects(PROMISES, "agreement")[:2],
        "registered-kept": lambda: rejects(PROMISES, "registered")[:2],
        "weaker-missed": lambda: missed(PROMISES),
        "registered-undecided": lambda: undecided(PROMISES),
        "held-kept": lambda: [*rejects(HELD, "agreement")[:2], *rejects(HELD, "registered")[:2]],
        "held-worlds": lambda: [str(len(of_promise(HELD, "agreement"))), missed(HELD)[0], missed(HELD)[1]],
        "episodes-kept": lambda: [*rejects(EPISODES, "agreement")[:2], *rejects(EPISODES, "registered")[:2]],
        "episodes-missed": lambda: [str(len(of_promise(EPISODES, "agreement"))), *missed(EPISODES)],
        "control-agreement": lambda: rejects(HELD, "agreement-cut"),
        "control-registered": lambda: rejects(HELD, "registered-cut"),
        "blackjack": blackjack,
    },
    "docs/rehearsal.md": {
        "chosen-rule-far": lambda: [str(code("reprl.canonical.choice.OCTAVES") * code("reprl.canonical.choice.STEPS"))],
        "share-between-run": lambda: phrases([f"{x}" for x in code("reprl.canonical.choice.ROOM")], "{} and {}"),
        "could-worth-whose": lambda: [f"{code('reprl.canonical.bound.UNKNOWN')}"],
        "them-between-teams": lambda: [str(first := code("reprl.sources.source.FIRST")), power(first * 2**20)],
    },
    "docs/proofs/canonical.md": {
        "uniform-share-does": lambda: phrases([f"{x}" for x in code("reprl.canonical.choice.ROOM")], "{}, {}"),
        "step-grid-beyond": lambda: [
            *constants("canonical.choice", "OCTAVES"),
            *[f"{code('reprl.canonical.choice.CELLS'):,}"] * 2,
        ],
        "goes-clear-margin": lambda: [power(code("reprl.canonical.preferred.CLEAR"))],
        "room-pool-argmax": lambda: constants("canonical.choice", "POOL"),
        "shared-uniform-less": lambda: phrases([f"{x}" for x in code("reprl.canonical.choice.HANDICAP")], "{}, {}"),
        "variance-reward-hidden": lambda: constants("canonical.gaps", "HIDDEN"),
        "loss-room-care": lambda: constants("canonical.choice", "CARE"),
        "luck-probability-world": lambda: phrases(
            [str(REHEARSED[1]), str(REHEARSED[0]), f"{by_luck(*REHEARSED):.3f}", f"{by_luck(*FORMER):.4f}"],
            "{} and {}",
            "{}",
            "{}",
        ),
        "run-passes-times": lambda: [
            f"{passing(*REHEARSED):.1f}",
            f"{passing(*FORMER):.1f}",
            f"{(passing(*FORMER) / passing(*REHEARSED)) ** 2:.1f}",
        ],
        "says-max-average": lambda: [
            str(code("reprl.assurance.rehearsal.asked_for")(1.0)),
            f"{binom.cdf(0, REHEARSED[0], 0.1):.3f}",
        ],
        "luck-of-pairs": lambda: [
            str(KEYS),
            *(f"{pairs_by_luck(*how):.3f}" for how in ((0, False), (1, False), (0, True))),
        ],
        "common-lost": lambda: [percent(1.0 - (1.0 - binom.sf(KEYS // 2, KEYS, 0.05)) ** REHEARSED[0])],
        "common-left": lambda: [
            *(f"{differ_in_common(NEAREST, share):.2f}" for share in COMMON),
            *(f"{average(partial(differ_in_common, share=share)):.3f}" for share in COMMON),
        ],
        "looks-samples-nearer": lambda: [
            str(REHEARSED[0]),
            ", ".join(f"{part_by_luck(one, *REHEARSED):.4f}" for one in DISTANCES),
            ", ".join(f"{one}" for one in DISTANCES),
            f"{part_by_luck(NEAREST, *REHEARSED):.3f}",
            f"{NEAREST}",
        ],
        "up-those-choice": lambda: [f"{part_on_average(*REHEARSED):.4f}", f"{part_on_average(*FORMER):.3f}"],
        "fewer-unsure-samples": lambda: constants("sources.optimism", "UNSURE"),
        "must-unknown-must": lambda: constants("canonical.bound", "UNKNOWN"),
        "combination-lock-times": lock_bound,
        "moves-more-least": lambda: [
            *[power(code("reprl.mdp.backup.STILL"))] * 2,
            f"{code('reprl.mdp.criterion.MOST')}",
            power(code("reprl.mdp.backup.STILL") / (1 - code("reprl.mdp.criterion.MOST"))),
        ],
        "margin-goes-keys": lambda: phrases([*lake_margins(20), "20"], "{} to {}", "{}"),
        "phases-before-last": lambda: constants("canonical.preferred", "LONGER"),
        "tie-former": lambda: [
            ", ".join(f"{differ_at_tie(share, LOOKS):.2f}" for share in SHARES),
            ", ".join(f"{share}" for share in SHARES),
        ],
        "tie-near": lambda: constants("canonical.gaps", "NEAR_TIE"),
        "tie-now": lambda: [
            f"{binom.cdf(0, REHEARSED[0], 0.1):.2f}",
            f"{binom.cdf(0, REHEARSED[0], 0.2):.4f}",
            ", ".join(f"{differ_with_toss(share, LOOKS):.3f}" for share in SHARES),
        ],
        "no-noise-would": lambda: constants("canonical.choice", "NOISE"),
        "gain-least-share": lambda: constants("canonical.goal", "LEAST_GAIN"),
    },
}


TABLES = {
    "docs/canonical.md": {
        "price": lambda: table(stored_pairs("price")),
        "held": lambda: table(stored_pairs("held")),
        "defaults": lambda: defaults(stored_pairs("defaults")),
        "ties-now": lambda: pairs(stored_ties()),
    },
    "docs/register.md": {
        "promises": lambda: page_table({**stored_pairs("price"), **weaker_rows(PROMISES)}),
        "boxes": lambda: boxes(*(weaker_rows(file) for file in (BOXES, EPISODES))),
    },
}

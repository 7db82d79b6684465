"""Numbers of its pages, looked up in the stored data of experiments.canonical and in the code."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, norm

import reprl
from experiments.stored import LookUp, code, constants, lines, measured, pairs_of, percent, phrases, power, row, stored

UNTUNED = ("held out", "made last")
"""Groups of worlds of experiments.canonical that nothing was tuned on."""


def pooled(*groups: str) -> float:
    """Return the share of sure pairs apart in groups of worlds of experiments.canonical."""
    found = [tuple(map(int, row("canonical", group)[2].split("/"))) for group in groups]
    return sum(apart for apart, _ in found) / sum(pairs for _, pairs in found)


def rejected(*groups: str) -> str:
    """Return on how many of their rows ρ is rejected."""
    return "some" if any(row("canonical", group)[5] != "0" for group in groups) else "none"


def worlds_of(group: str) -> tuple[int, int]:
    """Return how many worlds a group has, and how many rows they stand in."""
    rows = {name.partition("#")[0] for name in measured("canonical", f"{group}/")}
    return len({name.partition("/")[2].removesuffix(", steps apart") for name in rows}), len(rows)


def untuned() -> list[str]:
    """Return of such worlds the share of pairs apart, how many there are, and on how many ρ is rejected."""
    return [percent(pooled(*UNTUNED)), str(sum(worlds_of(group)[0] for group in UNTUNED)), rejected(*UNTUNED)]


def most_apart() -> tuple[str, str, str]:
    """Return how many are apart, of how many, where the largest share is, of worlds that nothing was tuned on."""
    shares: dict[str, list[int]] = {}
    for group in UNTUNED:
        for name, chunk in measured("canonical", f"{group}/").items():
            found = shares.setdefault(name.partition("#")[0], [0, 0])
            found[0] += sum(one[3] for one in chunk["rows"] if one[6] and one[7])
            found[1] += sum(one[6] and one[7] for one in chunk["rows"])
    name, (apart, pairs) = max(shares.items(), key=lambda item: item[1][0] / item[1][1])
    return str(apart), str(pairs), name.partition("/")[2]


def traps() -> list[Any]:
    """Return every pair of runs on the world in which most give up."""
    return [one for way in ("generative", "episodic") for one in pairs_of("canonical", f"made last/{way}/traps, H=25#")]


def steps_apart() -> list[float]:
    """Return how many times as many samples runs took that kept steps apart, in the median, on the worlds tried so."""
    found = {name.partition("#")[0] for name in measured("canonical", "held out/generative/")}
    alone = [name for name in found if name.endswith(", steps apart")]

    def median(world: str) -> float:
        return float(np.median([one[1:3] for one in pairs_of("canonical", f"held out/generative/{world}#")]))

    return [median(name) / median(name.removesuffix(", steps apart")) for name in alone]


def cost(world: str, access: str, digits: int = 0) -> str:
    """Return the mean samples of a target, as the table has it."""
    return power(float(row("canonical", world, access)[2]), digits)


def seeds_cost() -> list[str]:
    """Return the least and the largest mean cost of the random worlds among the targets."""
    worlds = [f"random-mdp(10,3,4) seed {seed}" for seed in range(4)]
    found = [float(row("canonical", world, "episodes")[2]) for world in worlds]
    return [power(min(found)), power(max(found))]


def least_rejected(pairs: int) -> int:
    """Return how many pairs have to be apart for ρ to be rejected."""
    p_value = code("reprl.auditing.evidence.p_value")
    return next(k for k in range(pairs) if p_value(k, pairs, stored("canonical")["rho"]) < 0.05)


def largest_gap() -> float:
    """Return the largest gap of an action that the drawn policy takes, as below the tables of the page."""
    return float(re.findall(r"with probability ≥ 0.001: ([\d.]+)", "\n".join(lines("canonical")))[0])


def by_luck(teams: int, share: int) -> float:
    """Return how often one look passes at a boundary, with teams on one `share`-th of the data."""
    z, step = np.linspace(-8.0, 8.0, 1601, retstep=True)
    return float((norm.pdf(z) * norm.cdf(abs(z) / math.sqrt(share)) ** teams).sum() * step)


def passing(teams: int, share: int) -> float:
    """Return how many standard deviations from a boundary half of the looks pass."""
    return float(math.sqrt(share) * norm.ppf(0.5 ** (1.0 / teams)))


@cache
def part_by_luck(distance: float, teams: int, share: int) -> float:
    """Return how often two runs part that look at 1, 2, 4, … samples of one normal comparison.

    Its boundary is so many standard deviations of the first look away; z is where a run is that has not stopped.
    """
    z, step = np.linspace(-12.0, 12.0, 241, retstep=True)
    going, mean, wrong = norm.pdf(z - distance) * step, distance, 0.0
    while going.sum() > 1e-9:
        stop = going * norm.cdf(abs(z) / math.sqrt(share)) ** teams
        wrong += float(stop[z < -step / 2].sum() + stop[abs(z) < step / 2].sum() / 2)
        there = norm.pdf(z * math.sqrt(2.0), z[:, None] + mean, 1.0) * math.sqrt(2.0) * step
        going, mean = (going - stop) @ there, mean * math.sqrt(2.0)
    return 2.0 * wrong * (1.0 - wrong)


def part_on_average(teams: int, share: int) -> float:
    """Return the same for distances that are uniform up to 1."""
    distances = np.geomspace(1e-3, 1.0, 25)
    found = [part_by_luck(float(distance), teams, share) for distance in distances]
    return float(np.trapezoid(found, distances) + found[0] * distances[0])


def lock_bound() -> list[str]:
    """Return H and V* of the combination lock, the chance q that costs ε if hidden, and the samples that show it."""
    mdp, epsilon, delta = reprl.make("combination-lock-v0"), code("experiments.canonical.plan.EPSILON"), 0.1
    assert isinstance(mdp, reprl.TabularMDP)
    steps, best = mdp.horizon, float(mdp.initial @ mdp.solve().values[0])
    worth = best + epsilon
    q = brentq(lambda q: sum(q * (1 - q) ** h * (steps - 1 - h) for h in range(steps)) - worth, 1e-3, 0.1)
    tries = math.log(delta / (1 - delta)) / math.log1p(-q)
    return [str(steps), f"{best:g}", f"{q:.4f}", f"{math.ceil(tries)}", f"{tries / steps:.1f}"]


def lake_margins(keys: int) -> list[str]:
    """Return the median margins of FrozenLake's policies, by steps and steady."""
    from experiments.canonical.plan import FROZEN
    from reprl.canonical.choice import choose, make_rule
    from reprl.canonical.goal import Goal
    from reprl.mdp.dynamics import true_dynamics

    mdp, found = FROZEN(), []
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


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/canonical.md": {
        "bottleneck-tiny-duplicated": lambda: [f"{code('experiments.canonical.worlds.TINY')}"],
        "met-gridworld-were": lambda: phrases(
            [
                cost("gridworld 4×4 H=6", "parallel", 1),
                cost("gridworld 4×4 H=6", "episodes"),
                cost("hard instance S=16 H=3 bias 0.08", "parallel", 1),
                cost("river-swim(5,2,6)", "episodes"),
                *seeds_cost(),
                cost("FrozenLake H=12 ε=0.02", "episodes"),
                power(float(row("canonical", "FrozenLake H=12 ε=0.02", "episodes")[5].partition(":")[0])),
            ],
            "{}",
            "{}",
            "{}",
            "{}",
            "{} to {}",
            "{}",
            "{}",
        ),
        "combination-lock-times": lambda: [row("canonical", "combination-lock-v0", "reprl (joint)")[4].strip("*")],
        "keep-takes-times": lambda: lock_bound()[3:],
        "targets-catalogue-found": lambda: phrases(
            [
                *(str(x) for group in UNTUNED for x in (rejected(group), *worlds_of(group))),
                *(percent(pooled(group)) for group in UNTUNED),
                *most_apart(),
            ],
            "{}",
            "{}",
            "{}",
            "{}",
            "{}",
            "{}",
            "{}",
            "{}",
            "{} of {}",
            "{}",
        ),
        "samples-episodes-pairs": lambda: [str(code("experiments.canonical.plan.FEWEST"))],
        "apart-have-pairs": lambda: [str(code("experiments.canonical.plan.MORE"))],
        "traps-runs-were": lambda: phrases(
            [str(sum(2 - one[6] - one[7] for one in traps())), str(2 * len(traps()))], "{} of {}"
        ),
        "nothing-tolerance-no": lambda: [
            f"{measured('canonical')['drawn']['tolerance']:.1f}",
            f"{largest_gap():.2f}",
            f"{measured('canonical')['drawn']['loss']:.3f}",
        ],
        "power-tests-more": lambda: [str(n) for pairs in (40, 20, 200) for n in (pairs, least_rejected(pairs))],
        "states-have-pairs": lambda: sorted({str(n) for n in code("experiments.canonical.plan.PAIRS").values()}),
        "rivals-searched-pairs": lambda: [str(stored("canonical")["effort"]["rival_pairs"])],
        "shared-machine-teams": lambda: [str(code("reprl.assurance.rehearsal.asked_for")(0.1) // 2)],
    },
    "docs/rehearsal.md": {
        "chosen-rule-far": lambda: [str(code("reprl.canonical.choice.OCTAVES") * code("reprl.canonical.choice.STEPS"))],
        "share-between-run": lambda: phrases([f"{x}" for x in code("reprl.canonical.choice.ROOM")], "{} and {}"),
        "could-worth-whose": lambda: [f"{code('reprl.canonical.bound.UNKNOWN')}"],
        "them-between-teams": lambda: [str(first := code("reprl.sources.source.FIRST")), power(first * 2**20)],
    },
    "docs/proofs/canonical.md": {
        "uniform-share-does": lambda: phrases([f"{x}" for x in code("reprl.canonical.choice.ROOM")], "{}, {}"),
        "step-grid-beyond": lambda: constants("canonical.choice", "OCTAVES"),
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
            str(code("reprl.assurance.rehearsal.asked_for")(1.0)),
            str(code("reprl.assurance.rehearsal.APART")),
            f"{binom.cdf(code('reprl.assurance.rehearsal.APART'), REHEARSED[0], 0.1):.2f}",
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
        "no-noise-would": lambda: constants("canonical.choice", "NOISE"),
        "gain-least-share": lambda: constants("canonical.goal", "LEAST_GAIN"),
    },
}

"""Numbers as pages write them, looked up in the stored data of experiments and in the code."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import reprl
from experiments.__main__ import experiments

ROOT = Path(__file__).parent.parent
LookUp = Callable[[], list[str]]
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


# Stored data


@cache
def stored(name: str) -> Any:
    """Return the data of an experiment."""
    return json.loads((ROOT / "experiments" / name / "data.json").read_text("utf-8"))


def measured(name: str, start: str = "") -> dict[str, Any]:
    """Return the measurements of an experiment whose names begin so, by what follows."""
    found = stored(name)["measured"]
    return {key[len(start) :]: row for key, row in found.items() if key.startswith(start)}


def pairs_of(name: str, start: str) -> list[Any]:
    """Return the rows of all chunks of a measurement."""
    return [row for one in measured(name, start).values() for row in one["rows"]]


@cache
def kept(name: str) -> Any:
    """Return what a benchmark has stored."""
    return json.loads((ROOT / "benchmarks" / "data" / f"{name}.json").read_text("utf-8"))


@cache
def lines(name: str) -> list[str]:
    """Return what an experiment shows of its stored data."""
    (one,) = [one for one in experiments() if one.name == name]
    return one.tables(stored(name)).splitlines()


def table(name: str) -> list[list[str]]:
    """Return the rows of an experiment's tables."""
    found = [line for line in lines(name) if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def row(name: str, *starts: str) -> list[str]:
    """Return the only row of an experiment's tables whose first cells are these."""
    (found,) = [cells for cells in table(name) if tuple(cells[: len(starts)]) == starts]
    return found


# Ways to write numbers


def short(number: float, digits: int = 1) -> str:
    """1.5e6."""
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def power(number: float, digits: int = 0) -> str:
    """2·10⁶, or 10⁶ by itself."""
    mantissa, _, exponent = f"{number:.{digits}e}".partition("e")
    ten = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return ten if mantissa == "1" else f"{mantissa}·{ten}"


def tens(number: float, digits: int = 0) -> str:
    """10^6, as whole.md has it."""
    return f"10^{math.log10(number):.{digits}f}"


def percent(share: float, digits: int = 0) -> str:
    """22 %."""
    return f"{100 * share:.{digits}f} %"


def percents(shares: list[float]) -> list[str]:
    """12 to 13 %."""
    return [f"{100 * min(shares):.0f}", percent(max(shares))]


def span(found: Iterable[float], digits: int = 0) -> list[str]:
    """Return the least and the largest."""
    found = list(found)
    return [f"{min(found):.{digits}f}", f"{max(found):.{digits}f}"]


def fitted(fit: dict[str, Any]) -> str:
    """Return a slope with its interval."""
    return f"{fit['slope']:.2f} ({fit['low']:.2f} … {fit['high']:.2f})"


# Head to head, front, evidence


def needed(one: Any) -> float:
    """Return the samples at which a rival met the goal, in hindsight."""
    return float((one["needed"][0] if one["needed"] else one["samples"]) if one["reached"] else "inf")


def ratios(access: str, *, only: Callable[[str], bool], worlds: Callable[[str], bool]) -> list[float]:
    """On each world, the least that any such learner needs, over what the default learner drew at its own size."""
    out = []
    for world, own in measured("head_to_head", f"own/{access}/").items():
        if worlds(world):
            rivals = measured("head_to_head", f"table/{access}/{world}/")
            out.append(min(needed(one) for learner, one in rivals.items() if only(learner)) / own["samples"])
    return out


def tied(world: str) -> bool:
    """Whether a world of head to head has exact ties."""
    return world.startswith(("gridworld", "two-goals", "hard"))


def rival(learner: str) -> bool:
    """Whether a learner of head to head is not ours."""
    return not learner.startswith("reprl")


def one_world(name: str, learner: str) -> str:
    """Return what a rival needs on a world, over what the default learner drew."""
    (found,) = ratios("generative", only=lambda label: label == learner, worlds=lambda world: world == name)
    return f"{found:.2f}"


def slope_of(sweep: str, learner: str, *, interval: bool = True) -> str:
    """Return a fitted slope of head to head."""
    from experiments.head_to_head.measure import slopes

    (fit,) = [f for f in slopes(stored("head_to_head")["measured"]) if (f["sweep"], f["learner"]) == (sweep, learner)]
    return fitted(fit) if interval else f"{fit['slope']:.2f}"


def own(field: str, access: str = "") -> list[Any]:
    """Return what the default learner did on every world of head to head."""
    return [one[field] for one in measured("head_to_head", f"own/{access}").values()]


def theorem_over_needed() -> list[str]:
    """Return how many times as many samples the theorem asks for as are needed, by the worlds of the sweep in S."""
    from experiments.head_to_head import plan
    from reprl.learning.settings import Settings

    asked = Settings(
        access="generative", rule="sampled", constants="paper", epsilon=plan.EPSILON, rho=plan.RHO, coupling="joint"
    )
    found = []
    for name, one in measured("head_to_head", "sweep/states/").items():
        if name.endswith("/reprl (joint)"):
            shape = (int(one["x"]), 2, plan.HORIZON)
            found.append(asked.constants_for(*shape).calls * math.prod(shape) / one["samples"])
    return [power(10.0 ** math.floor(math.log10(x))) for x in (min(found), max(found))]


def decision(sweep: str, method: str, least: int = 0) -> str:
    """Return a fitted slope of experiments.evidence."""
    from experiments.evidence.__main__ import slopes

    (fit,) = [
        fit
        for fit in slopes(stored("evidence"))
        if (fit["sweep"], fit["method"], fit["least"]) == (sweep, method, least)
    ]
    return fitted(fit)


def late() -> list[int]:
    """Return from where slopes of S, A, 1/ε and 1/ρ are fitted once more."""
    return list(code("experiments.evidence.__main__.LATE").values())


def swept(sweep: str) -> list[float]:
    """Return where a sweep of experiments.evidence was measured."""
    return [one["x"] for one in measured("evidence", f"{sweep}/").values()]


def by_episodes() -> list[Any]:
    """Return what the paper's rule did by episodes, on every world of head to head."""
    found = measured("head_to_head", "table/episodic/")
    return [one for name, one in found.items() if name.rpartition("/")[2].startswith("reprl")]


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


def front(field: str) -> list[Any]:
    """Return what every team of experiments.front has."""
    return [team[field] for team in measured("front").values()]


def teams() -> list[str]:
    """Return how many policies the teams of experiments.front came to, with reprl and planning greedily."""
    return [str(len(set(front(name)))) for name in ("fingerprint", "greedy_fingerprint")]


def sharper(world: str, learner: str = "") -> float:
    """Return what a rival needs on a world, the best one if none is named, over what reprl (joint) needs."""
    found = measured("head_to_head", f"table/generative/{world}/")
    others = [needed(one) for name, one in found.items() if (name == learner if learner else rival(name))]
    return min(others) / needed(found["reprl (joint)"])


def effort(field: str, access: str) -> str:
    """Return a size of head to head."""
    return str(stored("head_to_head")["effort"][field][access])


def steps_limit() -> str:
    """Return the largest budget by episodes of head to head."""
    return power(int(effort("limit", "episodic")))


def none_apart(pairs: int) -> str:
    """Return the disagreement that so many pairs without one apart leave possible."""
    return percent(code("reprl.auditing.evidence.exact_interval")(0, pairs)[1])


# The canonical rule


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


# Proofs

LOOKS = 200
"""Pairs at most of the table in docs/proofs/audit.md."""


def looking(p: float) -> list[str]:
    """Return the row of a disagreement in the table of what looking costs, summed over all paths of the test."""
    from reprl.auditing.evidence import VERDICTS

    test, found, pairs, alive = sequential_test(), dict.fromkeys(VERDICTS, 0.0), 0.0, np.ones(1)
    for n in range(1, LOOKS + 1):
        pairs += alive.sum()
        alive = np.append(alive * (1 - p), 0.0) + np.append(0.0, alive * p)
        for k in np.flatnonzero(alive):
            verdict = test.decide(int(k), n)
            if verdict != "undecided":
                found[verdict] += alive[k]
                alive[k] = 0.0
    found["undecided"] = alive.sum()
    return [f"{p:g}", *(f"{x:.4f}".rstrip("0").rstrip(".") for x in found.values()), f"{pairs:.1f}"]


def fixed_test(*disagreements: float) -> list[str]:
    """Return the pairs of an audit, how many apart reject ρ = 0.1, and how probable that is."""
    from reprl.auditing import evidence

    pairs, level = default(reprl.audit, "pairs"), default(reprl.audit, "level")
    least = evidence.fewest_to_reject(pairs, 0.1, level) or 0
    return [str(pairs), str(least), *(f"{evidence.p_value(least, pairs, p):.2g}" for p in disagreements)]


def tails() -> list[str]:
    """Return the confidence of every interval, and half of what is left."""
    confidence = code("reprl.auditing.evidence.CONFIDENCE")
    return [f"{confidence}", f"{(1 - confidence) / 2:.3f}"]


def odds(sides: int) -> str:
    """Return one over what a side of an interval may miss."""
    return f"{sides / (1 - code('reprl.auditing.evidence.CONFIDENCE')):.0f}"


def contrast(before: float, after: float, events: int) -> str:
    """Return the visits at which two teams' mean counts of an event contradict each other, to two digits."""
    from reprl.mdp.homogeneity import LEVEL, win

    n = np.arange(100.0, 10**4)
    won = win(np.array([before * n, after * n]), np.array([n, n]))
    least = float(n[np.argmax(won >= math.log(events / LEVEL))])
    return f"{float(f'{least:.1e}'):,.0f}".replace(",", " ")


def searched(family: str, n: int) -> int:
    """Return the median nodes of a joint search."""
    return int({size: nodes for size, nodes, _ in kept("joint_search")["growth"][family]}[n])


def multiple_of_best_first() -> list[str]:
    """Return the least and the largest median of the nodes over those of best-first search, and the worst of all."""
    found = kept("joint_search")["best first"]
    least, largest = (f"{x:.1f}".removesuffix(".0") for x in (f([one["ratio"] for one in found]) for f in (min, max)))
    return [least, largest, f"{max(one['worst'] for one in found):.0f}"]


def requirement_constant() -> str:
    """Return the constant of the paper's requirement on sizes."""
    from reprl.paper.rep_var_bandit import paper_requirement

    bound = paper_requirement(2, 2, epsilon=1.0, rho=1.0, delta=0.1, coupling=code("reprl.coupling.spec.JOINT"))
    return f"{math.log(120.0) ** -3 / bound:.0f}"


def calls_constant() -> str:
    """Return the constant of the paper's parallel calls, for (S, A, H) = (2, 2, 3)."""
    from reprl.paper.constants import paper_calls

    calls = paper_calls(2, 2, 3, epsilon=0.1, rho=0.1, delta=0.1, coupling=code("reprl.coupling.spec.JOINT"))
    return f"{calls / (2 * math.log(360.0) ** 3 * 360.0**2 * 30.0**2):.0f}"


def computed_rho(n_states: int, n_actions: int, horizon: int) -> list[str]:
    """Return the bound over ρ that a run computes at the paper's size, without rounding and with it."""
    world = reprl.make("random-mdp-v0", n_states=n_states, n_actions=n_actions, horizon=horizon)
    asked: dict[str, Any] = {"rule": "sampled", "constants": "paper", "coupling": "joint", "rho": 0.1, "delta": 0.1}
    found = []
    for rounding in ("none", "vector"):
        run = reprl.learn(
            world,
            access="generative",
            epsilon=horizon / 2,
            rounding=rounding,
            shared_seed=1,
            data_seed=2,
            **asked,
        )
        assert run.induction is not None
        found.append(f"{run.induction.guarantee.rho / 0.1:.2f}ρ")
    return found


def heavy(sign: int) -> float:
    """Return ν ± τ of boosting."""
    return float(code("reprl.paper.constants.THRESHOLD") + sign * code("reprl.paper.constants.TOLERANCE"))


def parted() -> float:
    """Return how often two runs part, at least, whose likeliest policy has less than ν + τ."""
    return 2 * heavy(1) * (1 - heavy(1))


def mean_loss() -> tuple[float, float]:
    """Return the largest mean loss of a compact coin, in gaps, and where it is (docs/proofs/lower-bounds.md §1)."""
    u = np.linspace(0, 1, 10**6)
    weight = np.cos(np.pi * u / 2) ** 2
    loss = u * weight / (1 + weight)
    return float(loss.max()), float(u[loss.argmax()])


def votes() -> str:
    """Return T over log(n/δ) of RepInftyEstimate with δ₀ = 0.01."""
    return f"{code('reprl.lab.lower_bounds.reductions.infinity_calls')(10**6, delta=1e-300) / math.log(1e306):.2f}"


def surely_room(epsilon: float) -> int:
    """Return up to which H the smallest tolerance loses less than its room in every world."""
    tolerances, floor, room = (code(f"reprl.canonical.choice.{name}") for name in ("TOLERANCES", "FLOOR", "ROOM"))

    def loss(steps: int) -> float:
        return float((2**7 * steps**2 / epsilon) ** (1 / tolerances) / 2**7 + floor * (steps + 1) / 2)

    return next(steps for steps in range(1, 100) if loss(steps + 1) >= room[0])


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
    pytest.importorskip("gymnasium")
    from experiments.canonical.plan import FROZEN
    from reprl.canonical.choice import choose, make_rule
    from reprl.mdp.dynamics import true_dynamics

    mdp, found = FROZEN(), []
    for steady in (False, True):
        rules = [
            make_rule(reprl.SharedKey(key), (mdp.horizon, mdp.n_states, mdp.n_actions), epsilon=0.02, steady=steady)
            for key in range(keys)
        ]
        found.append(f"{np.median([choose(rule, true_dynamics(mdp)).margin for rule in rules]):.2g}")
    return found


# The tutorial


def shown(pattern: str) -> str:
    """Return what a transcript of the tutorial says first; tests/test_tutorial.py runs them."""
    return str(re.findall(pattern, (ROOT / "docs" / "tutorial.md").read_text("utf-8"))[0])


# ICU-Sepsis


@cache
def icu() -> Any:
    """Return the benchmark's world with its mask."""
    pytest.importorskip("icu_sepsis")
    return reprl.make("icu-sepsis-v0")


def icu_values(horizon: int = 20) -> dict[str, float]:
    """Return the values by dynamic programming."""
    found: dict[str, float] = measured("icu_sepsis")[f"baselines/{horizon}"]
    return found


def icu_runs(*kinds: str) -> list[Any]:
    """Return the runs of some kinds."""
    return [one for name, one in measured("icu_sepsis").items() if name.partition("#")[0] in kinds]


def icu_loss() -> float:
    """Return what the one policy of the runs that draw samples loses."""
    (loss,) = {one["loss"] for one in icu_runs("parallel", "episodes")}
    return float(loss)


def agreeing(what: str, kind: str) -> list[int]:
    """Return how many simulated teams, or pairs, agreed in the runs of a kind."""
    sources = [one["source"] for one in icu_runs(kind)]
    return [int(re.findall(rf"(\d+) of \d+ {what}", source)[0]) for source in sources]


# Logs


def logs(*, longer: bool = False) -> list[Any]:
    """Return all pairs of halves of logs, or those of more than 10⁵ transitions."""
    return [one for name, one in measured("logs").items() if not (longer and "/100000#" in name)]


def apart(pairs: list[Any]) -> int:
    """Return how many pairs of our policies differ."""
    return sum(one["reprl"]["apart"] > 0 for one in pairs)


def inside(pairs: list[Any]) -> tuple[int, int]:
    """Return how many intervals hold the true value, and of how many."""
    return sum(sum(one["inside"]) for one in pairs), 2 * len(pairs)


# Lower bounds


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


# The whole algorithm


def whole(kind: str) -> dict[str, Any]:
    """Return a part of experiments.whole."""
    return measured("whole", f"{kind}/")


def apart_whole(world: str = "") -> list[Any]:
    """Return the pairs of whole runs, on the worlds whose names begin so."""
    return pairs_of("whole", f"pairs/{world}")


def boosted_row(world: str) -> list[str]:
    """Return the line of a world in the table of boosting."""
    return next(cells for cells in table("whole") if cells[0] == world and len(cells) == 5)


def nicer() -> list[float]:
    """Return ζ over the niceness of the data of every tier that has cells."""
    found = whole("tiers").values()
    return [one["zeta"] / nice for one in found for nice in one["nice"] if nice]


def pessimism(world: str) -> float:
    """Return what pessimism costs on average."""
    losses = whole("tiers")[world]["losses"]
    return float(np.mean(losses["with"]) - np.mean(losses["without"]))


def upper(one: Any) -> float:
    """Return the upper end of the interval of the share of pairs apart."""
    from reprl.auditing.evidence import exact_interval

    return exact_interval(one["apart"], one["pairs"])[1]


def grade_pairs() -> set[int]:
    """Return how many pairs the slopes of each grade are of."""
    found = whole("slope")
    return {
        sum(one["pairs"] for name, one in found.items() if name.startswith(grade)) for grade in ("joint", "product")
    }


def boosted(world: str) -> list[tuple[int, int]]:
    """Return how many boosted pairs part, and of how many, by the size of boosting."""
    return [(one["apart"], one["pairs"]) for name, one in whole("boosting").items() if name.startswith(world)]


def learners_apart(world: str) -> list[float]:
    """Return how often learners part that are boosted by themselves, by the size of boosting."""
    return [one["base"][0] / one["base"][1] for name, one in whole("boosting").items() if name.startswith(world)]


def grade_slopes(grade: str) -> tuple[str, list[float]]:
    """Return the slope in S of what was drawn, and the interval of that of what is needed."""
    _, drawn, enough = next(cells for cells in table("whole") if cells[0] == grade and len(cells) == 3)
    return drawn.split(" ")[0], [float(x) for x in re.findall(r"-?[\d.]+", enough)[1:]]


def sharp(epsilon: float, rho: float) -> float:
    """Return the fewest episodes that are proven to do for two states, actions and steps."""
    return float(code("reprl.lab.sharp.sharp_episodes")(2, 2, 2, epsilon=epsilon, rho=rho, delta=rho).episodes)


def paper_whole(n_states: int, n_actions: int, horizon: int) -> Any:
    """Return the paper's constants by episodes for the figures of experiments.whole."""
    from experiments.whole import plan
    from reprl.learning.settings import Settings

    asked = Settings(
        rule="sampled", constants="paper", coupling="joint", epsilon=plan.EPSILON, rho=plan.RHO, delta=plan.DELTA
    )
    return asked.constants_for(n_states, n_actions, horizon)


# Eaton et al.


def eaton_cells() -> int:
    """Return N of the world of experiments.eaton."""
    mdp = code("experiments.eaton.__main__.world")()
    return int(mdp.horizon * mdp.n_states * mdp.n_actions)


def agree(multiple: str) -> str:
    """Return how many pairs of the default learner agreed."""
    one = measured("eaton")[f"reprl/{multiple}"]
    return f"{one['pairs'] - one['apart']} of {one['pairs']}"


# Rivals


@cache
def rivals() -> list[Any]:
    """Return the stored calibration of the rivals."""
    found: list[Any] = json.loads((ROOT / "experiments" / "calibration" / "data" / "peers.json").read_text("utf-8"))
    return found


def rival_needs(name: str, softness: float) -> tuple[list[Any], list[float]]:
    """Return the rows of a rival with a softness that met the goal, and their ratios of need to formula."""
    mine = [one for one in rivals() if (one["learner"], one["softness"]) == (name, softness)]
    met = [one for one in mine if one["log2 samples"] is not None]
    return met, [2 ** one["log2 samples"] / one["rounds"] / one["formula"] for one in met]


def rival_constants(name: str) -> tuple[float, float]:
    """Return the softness of a rival's preset and its constant of samples."""
    trial = calibration("TRIALS")[name]
    samples = getattr(trial.module, trial.samples_constant)
    if isinstance(samples, dict):
        samples = samples[trial.options["coupling"]]
    taken = 1.0 if name == "greedy" else getattr(trial.module, trial.constant)
    return taken, samples


def rival_line(name: str) -> str:
    """Return a rival's line of the table of constants."""
    softness = sorted({one["softness"] for one in rivals() if one["learner"] == name})
    taken, constant = rival_constants(name)
    parts = []
    for soft in softness:
        met, _ = rival_needs(name, soft)
        mean = f"{2 ** np.mean([one['log2 samples'] for one in met]):.2g}"
        missed = sum((one["learner"], one["softness"]) == (name, soft) for one in rivals()) - len(met)
        parts.append(f"{mean} ({missed})" if len(softness) == 1 else f"{soft:g}: {mean} ({missed})")
    _, found = rival_needs(name, taken)
    shown = "–" if len(softness) == 1 else f"{taken:g}"
    return f"| {'; '.join(parts)} | {shown} | {np.median(found):.2g}, {max(found):.2g} | {constant:g} |"


def preset_margins() -> list[str]:
    """Return how much larger the rivals' constants are than the largest ratio of need to formula."""
    taken = {name: rival_constants(name) for name in calibration("TRIALS")}
    return span((constant / max(rival_needs(name, soft)[1]) for name, (soft, constant) in taken.items()), 1)


def median_margins() -> list[str]:
    """Return how much smaller than its largest ratio of need to formula a rival's median one is."""
    found = [rival_needs(name, rival_constants(name)[0])[1] for name in calibration("TRIALS")]
    return span(max(one) / float(np.median(one)) for one in found)


def calibration(name: str) -> Any:
    """Return a constant of the calibration of the rivals."""
    return code(f"experiments.calibration.peers.{name}")


def rlberry(name: str) -> Any:
    """Return a constant of the comparison with rlberry."""
    return code(f"tests.test_baselines_rlberry.{name}")


def rmax_rounds() -> list[str]:
    """Return the rounds over N = HSA that replicable R-max took, by the share of its budget that it spent."""
    met, _ = rival_needs("replicable-rmax", rival_constants("replicable-rmax")[0])
    cells = [(one["rounds"] - 1) * 4 for one in met]
    used = [one["spent"] / 2 ** one["log2 samples"] * one["rounds"] / n for one, n in zip(met, cells, strict=True)]
    return span(used, 2)


# Certificates


def certified(world: str) -> tuple[str, float]:
    """Return how many runs on a world were certified, and the median calls of those."""
    calls = np.array([one[1:3] for one in measured("certificates")[f"cost/{world}"]["rows"]])
    return f"{(calls > 0).sum()} of {calls.size}", float(np.median(calls[calls > 0]))


def as_proven() -> tuple[list[int], list[int]]:
    """Return the runs with radii as proven, and the false certificates among them."""
    found = [cells for cells in table("certificates") if cells[1] == "as proven"]
    return [int(cells[3].replace(",", "")) for cells in found], [int(cells[5]) for cells in found]


def false_alone() -> tuple[int, int]:
    """Return (false certificates, runs) of halved radii beside the boundary of one candidate."""
    cells = row("certificates", "one candidate", "about × 0.5")
    return int(cells[5]), int(cells[3].replace(",", ""))


def certificate(name: str) -> Any:
    """Return a constant of certificates."""
    return code(f"reprl.assurance.certificate.{name}")


def asked_calls() -> dict[str, float]:
    """Return the calls that were asked for, by world, as far as sizes that double can meet them: 2048 for 2000."""
    return {world: 1.05 * most for world, most in code("experiments.certificates.present.TARGETS").items()}


def unseen_calls() -> list[str]:
    """Return 16/τ on the gridworld, for both ends of the random floor τ."""
    from experiments.certificates import plan

    mdp = plan.WORLDS["gridworld-v0"]()
    floor = code("reprl.canonical.choice.FLOOR") * plan.EPSILON / (mdp.horizon * mdp.n_states)
    return [power(16 / floor), power(32 / floor)]


# Constants of the code


def code(path: str) -> Any:
    """Return a constant of the code by its dotted name."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def constants(module: str, *names: str) -> list[str]:
    """Return constants of a module as they are written: 0.9, 24."""
    return [f"{code(f'reprl.{module}.{name}'):g}" for name in names]


def default(function: Callable[..., Any], name: str) -> Any:
    """Return the default of a parameter."""
    return inspect.signature(function).parameters[name].default


def ties(world: str) -> str:
    """Return how many cells that can be visited have more than one best action, of how many."""
    from tests.test_catalogue import n_best, reachable

    mdp = reprl.make(world)
    assert isinstance(mdp, reprl.TabularMDP)
    visited = reachable(mdp)
    return f"{int(((n_best(mdp) > 1) & visited).sum())} of the {int(visited.sum())}"


def sequential_test() -> Any:
    """Return the test of ρ = 0.1 after every pair."""
    return code("reprl.auditing.evidence.SequentialTest").checked(0.1, default(reprl.audit, "level"))


def sequential(hit: bool) -> int:
    """Return after how many pairs a learner is judged that always, or never, disagrees."""
    test = sequential_test()
    return next(n for n in range(1, 1000) if test.decide(n * hit, n) != "undecided")

"""What pages say in numbers, and where each number comes from: stored data, a constant of the code, or neither."""

from __future__ import annotations

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


def by_episodes() -> list[Any]:
    """Return what the paper's rule did by episodes, on every world of head to head."""
    found = measured("head_to_head", "table/episodic/")
    return [one for name, one in found.items() if name.rpartition("/")[2].startswith("reprl")]


def pooled(group: str) -> float:
    """Return the share of sure pairs apart in a group of worlds of experiments.canonical."""
    apart, pairs = row("canonical", group)[2].split("/")
    return int(apart) / int(pairs)


def pooled_words() -> list[str]:
    """Return the share of held-out pairs apart, and on how many worlds ρ is rejected."""
    return [percent(pooled("held out")), "none" if row("canonical", "held out")[5] == "0" else "some"]


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


def held_out() -> tuple[int, int]:
    """Return how many held-out worlds there are, and how many rows they stand in."""
    rows = {name.partition("#")[0] for name in measured("canonical", "held out/")}
    return len({name.partition("/")[2].removesuffix(", steps apart") for name in rows}), len(rows)


def least_rejected(pairs: int) -> int:
    """Return how many pairs have to be apart for ρ to be rejected."""
    p_value = code("reprl.auditing.evidence.p_value")
    return next(k for k in range(pairs) if p_value(k, pairs, stored("canonical")["rho"]) < 0.05)


def largest_gap() -> float:
    """Return the largest gap of an action that the drawn policy takes, as below the tables of the page."""
    return float(re.findall(r"with probability ≥ 0.001: ([\d.]+)", "\n".join(lines("canonical")))[0])


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


def agreeing(what: str) -> list[int]:
    """Return how many simulated teams, or pairs, agreed in the runs that draw samples."""
    sources = [one["source"] for one in icu_runs("parallel", "episodes")]
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
    return 8 * math.pi**2 * (1.0 if target == "every" else float(code("reprl.bounds.solvers.MEAN_LOSS"))) ** 2


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


def learners_apart(world: str) -> list[float]:
    """Return how often learners part that are boosted by themselves, by the size of boosting."""
    return [one["base"][0] / one["base"][1] for name, one in whole("boosting").items() if name.startswith(world)]


def grade_slopes(grade: str) -> tuple[str, list[float]]:
    """Return the slope in S of what was drawn, and the interval of that of what is needed."""
    _, drawn, enough = next(cells for cells in table("whole") if cells[0] == grade and len(cells) == 3)
    return drawn.split(" ")[0], [float(x) for x in re.findall(r"-?[\d.]+", enough)[1:]]


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
    return code(f"tests.test_peers_rlberry.{name}")


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
    return code(f"reprl.learning.certificate.{name}")


def asked_calls() -> dict[str, float]:
    """Return the calls that were asked for, by world, as far as sizes that double can meet them: 2048 for 2000."""
    return {world: 1.05 * most for world, most in code("experiments.certificates.present.TARGETS").items()}


def unseen_calls() -> list[str]:
    """Return 16/τ on the gridworld, for both ends of the random floor τ."""
    from experiments.certificates import plan

    mdp = plan.WORLDS["gridworld-v0"]()
    floor = code("reprl.rule.choice.FLOOR") * plan.EPSILON / (mdp.horizon * mdp.n_states)
    return [power(16 / floor), power(32 / floor)]


# Constants of the code


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


def sequential(hit: bool) -> int:
    """Return after how many pairs a learner is judged that always, or never, disagrees."""
    from reprl.auditing.audit import audit
    from reprl.auditing.evidence import SequentialTest

    test = SequentialTest.checked(0.1, default(audit, "level"))
    return next(n for n in range(1, 1000) if test.decide(n * hit, n) != "undecided")


# The list


def code(path: str) -> Any:
    """Return a constant of the code by its dotted name."""
    import importlib

    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


TEAMS = r"wenty teams came to (\d+) policy with reprl(?:,| and) to (\d+)"


def teams() -> list[str]:
    """Return how many policies the teams of experiments.front came to, with reprl and planning greedily."""
    return [str(len(set(front(name)))) for name in ("fingerprint", "greedy_fingerprint")]


NUMBERS: dict[str, list[tuple[str, LookUp]]] = {
    "README.md": [
        (TEAMS, teams),
        (r"([\d,]+) samples and about a second", lambda: [f"{front('samples')[0]:,}"]),
        (
            r"takes ([\d.e]+) to ([\d.e]+) parallel samples",
            lambda: [short(min(own("samples", "generative"))), short(max(own("samples", "generative")))],
        ),
        (
            r"need (\d+) to (\d+) times as many, in hindsight",
            lambda: span(
                ratios(
                    "generative",
                    only=lambda learner: rival(learner) and learner != "greedy",
                    worlds=lambda world: world != "combination-lock",
                )
            ),
        ),
        (
            r"about (\d+ %) of the pairs on held-out worlds part, ρ = 0.1 is rejected on (\w+) of the (twenty)",
            lambda: [*pooled_words(), {20: "twenty"}.get(held_out()[0], "")],
        ),
    ],
    "website/index.md": [
        (TEAMS, teams),
        (r"drew ([\d,]+) samples in about a second", lambda: [f"{front('samples')[0]:,}"]),
    ],
    "docs/head-to-head.md": [
        (
            r"none of its (\d+) pairs came apart",
            lambda: [str(sum(own("pairs")))] if not sum(own("disagreements")) else [],
        ),
        (
            r"best rival in hindsight needs (\d+) to (\d+) times as many parallel",
            lambda: span(ratios("generative", only=rival, worlds=tied)),
        ),
        (
            r"rPVI (\d+) to (\d+) times as many",
            lambda: span(ratios("generative", only=lambda learner: learner == "rpvi", worlds=tied)),
        ),
        (
            r"replicable R-max needs (\d+) times the steps",
            lambda: span(ratios("episodic", only=lambda learner: learner == "replicable-rmax", worlds=tied))[:1],
        ),
        (r"greedy in hindsight needs ([\d.]+) times", lambda: [one_world("river-swim", "greedy")]),
        (r"on random-mdp ([\d.]+) times", lambda: [one_world("random-mdp", "greedy")]),
        (
            r"At exact ties they are (.*?) and\s+(.*?):",
            lambda: [slope_of("states", f"reprl ({one})") for one in ("joint", "product")],
        ),
        (
            r"steep, they are (.*?) and (\S+ \(.*?\))\.",
            lambda: [slope_of("near", f"reprl ({one})") for one in ("joint", "product")],
        ),
        (
            r"slopes in S, ([\d.]+) and ([\d.]+) for a bound of 3",
            lambda: [slope_of(sweep, "list-robust", interval=False) for sweep in ("states", "near")],
        ),
        (
            r"softmax have ([\d.]+), ([\d.]+) and ([\d.]+), as",
            lambda: [slope_of("states", one, interval=False) for one in ("rpvi", "karbasi-grid", "karbasi-softmax")],
        ),
        (r"\(joint\) has ([\d.]+ \(.*?\)) for", lambda: [slope_of("actions", "reprl (joint)")]),
        (
            r"probability at most (\d+ %), or until (\d+) pairs \((\d+) by episodes\)",
            lambda: [
                percent(code("reprl.auditing.search.LEVEL")),
                effort("pairs", "generative"),
                effort("pairs", "episodic"),
            ],
        ),
        (
            r"(\d+) samples are enough for all others, the default learner takes (\d+), since",
            lambda: [
                *{
                    f"{needed(one):.0f}"
                    for one in measured("head_to_head", "table/generative/combination-lock/").values()
                },
                f"{measured('head_to_head')['own/generative/combination-lock']['samples']:.0f}",
            ],
        ),
        (
            r"it had not agreed with itself at (\S+) samples",
            lambda: [power(measured("head_to_head")["table/generative/gridworld 4×4/greedy"]["failed"])],
        ),
        (
            r"default learner is ([\d.]+) on gridworld, a quarter of ε: .*? everywhere else it is below ([\d.]+)\.",
            lambda: [f"{max(own('suboptimality')):.3f}", f"{math.ceil(100 * sorted(own('suboptimality'))[-3]) / 100}"],
        ),
        (
            r"on worlds with ties, by ([\d.]+) to ([\d.]+) times the samples",
            lambda: span((sharper(w) for w in measured("head_to_head", "own/generative/") if tied(w)), 1),
        ),
        (
            r"correlated noise needs ([\d.]+) times as many. By episodes it did not get there within (\S+) steps",
            lambda: [f"{sharper('random-mdp', 'karbasi-gaussian (correlated)'):.2f}", steps_limit()],
        ),
        (
            r"samples grow like S\^([\d.]+) jointly",
            lambda: [f"{float(slope_of('states', 'reprl (joint)', interval=False)):.1f}"],
        ),
        (
            r"In 1/ρ reprl has ([\d.]+) and ([\d.]+) for",
            lambda: [slope_of("rho", f"reprl ({one})", interval=False) for one in ("joint", "product")],
        ),
        (
            r"(\d+) pairs \((\d+) by episodes\) without one apart leave up to (\d+ %) \((\d+ %)\) possible. A row's "
            r"(\d+ %) errors are its own; among (\d+) searches",
            lambda: [
                effort("own_pairs", "generative"),
                effort("own_pairs", "episodic"),
                none_apart(int(effort("own_pairs", "generative"))),
                none_apart(int(effort("own_pairs", "episodic"))),
                percent(code("reprl.auditing.search.LEVEL")),
                str(len(measured("head_to_head", "table/"))),
            ],
        ),
        (r"Episodic budgets stop at (\S+) steps", lambda: [steps_limit()]),
    ],
    "docs/canonical.md": [
        (r"a tiny ε \(([\d.]+)\)", lambda: [f"{code('experiments.canonical.worlds.TINY')}"]),
        (
            r"gridworld in (\S+) parallel samples and in (\S+) steps, the hard instance in (\S+), river-swim\(5,2,6\) "
            r"in (\S+), random-mdp\(10,3,4\) in (\S+) to (\S+) steps by seed, and FrozenLake at ε = 0.02 in (\S+) "
            r"where (\S+) were asked",
            lambda: [
                cost("gridworld 4×4 H=6", "parallel", 1),
                cost("gridworld 4×4 H=6", "episodes"),
                cost("hard instance S=16 H=3 bias 0.08", "parallel", 1),
                cost("river-swim(5,2,6)", "episodes"),
                *seeds_cost(),
                cost("FrozenLake H=12 ε=0.02", "episodes"),
                power(float(row("canonical", "FrozenLake H=12 ε=0.02", "episodes")[5].partition(":")[0])),
            ],
        ),
        (
            r"the combination lock, ([\d.]+) times where 4",
            lambda: [row("canonical", "combination-lock-v0", "reprl (joint)")[4].strip("*")],
        ),
        (
            r"none of the (\d+) held-out worlds, which stand in (\d+) rows. About (\d+ %) of",
            lambda: [*map(str, held_out()), pooled_words()[0]],
        ),
        (
            r"a tolerance of about ([\d.]+) it prefers .*? by ([\d.]+) at most: .*? together it costs ([\d.]+) of",
            lambda: [
                f"{measured('canonical')['drawn']['tolerance']:.1f}",
                f"{largest_gap():.2f}",
                f"{measured('canonical')['drawn']['loss']:.3f}",
            ],
        ),
        (
            r"(\d+) pairs can reject ρ = 0.1 only when (\d+) or more are apart, (\d+) pairs when (\d+) or more",
            lambda: [str(n) for pairs in (40, 20) for n in (pairs, least_rejected(pairs))],
        ),
        (
            r"rare states\) have (\d+) pairs",
            lambda: sorted({str(n) for n in code("experiments.canonical.plan.SLOW").values()}),
        ),
        (r"searched with (\d+) pairs at each", lambda: [str(stored("canonical")["effort"]["rival_pairs"])]),
        (r"(\d+) teams are asked even", lambda: [str(code("reprl.learning.rehearsal.asked_for")(0.1) // 2)]),
    ],
    "docs/logs.md": [
        (r"each of up to (\d+) blocks", lambda: [str(code("reprl.mdp.logs.blocks.BLOCKS"))]),
        (r"- \*\*support\*\* \(([\d.]+)\)", lambda: [f"{default(reprl.learn_log, 'support')}"]),
        (r"- \*\*reach\*\* \(([\d.]+)\)", lambda: [f"{default(reprl.learn_log, 'reach')}"]),
        (
            r"Up to (\d+) episodes each is drawn on its own, beyond, episodes are dealt to (\d+) blocks",
            lambda: [str(code("reprl.mdp.logs.blocks.BLOCKS"))] * 2,
        ),
        (r"A log of fewer than (\d+) episodes", lambda: [str(code("reprl.learning.logged.LEAST"))]),
        (
            r"Where both runs were sure, (\d+) pairs, (none) were apart; of all (\d+) pairs (\d+) were, all of them on "
            r"(10⁵) transitions",
            lambda: [
                str(len(both := [one for one in logs() if all(one["sure"])])),
                "some" if apart(both) else "none",
                str(len(logs())),
                str(apart(logs())),
                "longer" if apart(logs(longer=True)) else "10⁵",
            ],
        ),
        (
            r"Of (\d+) intervals (\d+) hold the true value, (\d+ %), and (\d+ of the \d+) on longer logs, (\d+ %)",
            lambda: [
                str(inside(logs())[1]),
                str(inside(logs())[0]),
                percent(inside(logs())[0] / inside(logs())[1]),
                "{} of the {}".format(*inside(logs(longer=True))),
                percent(inside(logs(longer=True))[0] / inside(logs(longer=True))[1]),
            ],
        ),
    ],
    "docs/tutorial.md": [
        (
            r"A run on this page takes some ([\d,]+) samples",
            lambda: [shown(r"samples +([\d,]+) in [\d,]+ episodes, … s +\1 in")],
        ),
        (
            r"Both runs are ([\d.]+) below the best value",
            lambda: [f"{float(shown(r'best ([0-9.]+)')) - float(shown(r'value +([0-9.]+)')):.4f}"],
        ),
        (r"of a learner that does keep ρ: at most ([\d.]+)\.", lambda: [f"{default(reprl.audit, 'level')}"]),
        (
            r"differs in (\d+ %) of pairs could show the same",
            lambda: [percent(code("reprl.auditing.evidence.exact_interval")(0, 10)[1] // 0.1 / 10)],
        ),
    ],
    "docs/icu-sepsis.md": [
        (
            r"of (\d+ \d+) pairs (\d+ \d+) are admissible, and (\d+ of the \d+) states leave no choice",
            lambda: [
                f"{icu().n_states * icu().n_actions:,}".replace(",", " "),
                f"{int(icu().allowed[0].sum()):,}".replace(",", " "),
                f"{int((icu().allowed[0].sum(axis=1) == 1).sum())} of the {icu().n_states}",
            ],
        ),
        (
            r"agrees with the ([\d.]+) that",
            lambda: sorted({f"{icu_values(500)[x]:.2f}" for x in ("clinicians", "random admissible")}),
        ),
        (
            r"all policies lie within ([\d.]+) of each other",
            lambda: [f"{icu_values()['best admissible'] - icu_values()['worst']:.2f}"],
        ),
        (r"a call costs (\d+ \d+) samples", lambda: [f"{int(icu().allowed[0].sum()):,}".replace(",", " ")]),
        (
            r"own for each team, (\d+ \d+) patients",
            lambda: sorted({f"{one['episodes']:,}".replace(",", " ") for one in icu_runs("log")}),
        ),
        (
            r"gives up ([\d.]+) of the ([\d.]+) between the best and the worst, and gains ([\d.]+) over",
            lambda: [
                f"{icu_loss():.3f}",
                f"{icu_values()['best admissible'] - icu_values()['worst']:.2f}",
                f"{icu_values()['best admissible'] - icu_loss() - icu_values()['clinicians']:.3f}",
            ],
        ),
        (
            r"of which (\d+) or (\d+ of 40) agree; under their own seed (\d+), (\d+), (\d+) and (\d+ of 20) simulated",
            lambda: [
                str(min(agreeing("pairs"))),
                f"{max(agreeing('pairs'))} of 40",
                *map(str, agreeing("simulated")[:3]),
                f"{agreeing('simulated')[3]} of 20",
            ],
        ),
        (
            r"Most of the (\d+) GB of those runs",
            lambda: sorted({f"{one['peak_mb'] / 1000:.0f}" for one in icu_runs("log")}),
        ),
    ],
    "docs/certificates.md": [
        (
            r"from the (seventh) round on, by parallel calls at (\d+), (\d+), (\d+), (\d+), … of them; each of the "
            r"first (sixteen) looks may spend δ/(\d+)",
            lambda: [
                {6: "seventh"}.get(certificate("SKIPPED"), ""),
                *(str(certificate("HALFWAY") * n // 2) for n in (2, 3, 4, 6)),
                {16: "sixteen"}.get(certificate("EVEN"), ""),
                f"{certificate('EVEN') / (1 - certificate('LATER')):.0f}",
            ],
        ),
        (
            r"one look at (\d+) or (\d+) calls; a certificate",
            lambda: [str(n) for n in code("experiments.certificates.plan.TINY_CALLS")],
        ),
        (r"ten shared seeds, up to (\S+) calls", lambda: [power(code("experiments.certificates.plan.MOST"), 1)]),
        (
            r"was seen in ([\d,]+) runs as proven",
            lambda: [f"{sum(as_proven()[0]):,}"] if not sum(as_proven()[1]) else [],
        ),
        (
            r"(\d+) false of ([\d,]+), where δ allows (\d+)\.",
            lambda: [
                str(false_alone()[0]),
                f"{false_alone()[1]:,}",
                f"{false_alone()[1] * code('experiments.certificates.plan.SMALL_DELTA'):.0f}",
            ],
        ),
        (
            r"Near ties are certified at (\d+) calls in the median, the queue at (\d+), random \(10,4,3\) at (\S+), "
            r"the gridworld and two goals at (\S+): (all) as asked for",
            lambda: [
                f"{certified('hard S=16 H=3 bias 0.08')[1]:.0f}",
                f"{certified('queue-admission-v0')[1]:.0f}",
                power(certified("random-mdp(10,4,3)")[1], 1),
                *{power(certified(world)[1], 1) for world in ("gridworld-v0", "two-goals-v0")},
                "all" if all(certified(world)[1] <= most for world, most in asked_calls().items()) else "not all",
            ],
        ),
        (r"whatever else is easy: (\S+) to (\S+) on the gridworld", unseen_calls),
        (r"even (\S+) calls do not exclude it", lambda: [power(code("experiments.certificates.plan.MOST"))]),
        (r"that alone is (\S+) to (\S+) calls on these two", unseen_calls),
        (
            r"river-swim-v0 and inventory-v0 were certified for (\d+ of \d+) runs within (\S+) calls",
            lambda: [
                *{certified(world)[0] for world in ("river-swim-v0", "inventory-v0")},
                power(code("experiments.certificates.plan.MOST"), 1),
            ],
        ),
    ],
    "CONTRIBUTING.md": [
        (r"its false-alarm rate, (\S+), and", lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)]),
    ],
    "docs/evidence.md": [
        (r"false-alarm rate of (\S+) and", lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)]),
        (r"chi-square at (\S+) ", lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)]),
        (r"(\d+ of \d+) pairs of the default", lambda: [f"{sum(own('disagreements'))} of {sum(own('pairs'))}"]),
        (
            r"on held-out worlds about (\d+ %), and ρ is rejected on (\w+) ",
            pooled_words,
        ),
        (r"has ([\d.]+) for 1\*\*", lambda: [f"{float(decision('actions', 'joint').split()[0]):.1f}"]),
        (
            r"\| S²A parallel samples jointly .*? \| ([\d.]+ \(.*?\)) at exact ties, (.*?) at near ties",
            lambda: [slope_of(sweep, "reprl (joint)") for sweep in ("states", "near")],
        ),
        (r"sizes of the theorem are (\S+) to (\S+) times those needed", theorem_over_needed),
        (
            r"rejected with p below (\S+) when",
            lambda: (
                [short(code("tests.statistics.FALSE_ALARM"), 0)]
                if max(one["real"] for one in measured("evidence", "phantom/").values()) < 1e-6
                else []
            ),
        ),
        (
            r"more than (\S+) steps on (\w+) of (\w+) worlds",
            lambda: [
                power(stored("head_to_head")["effort"]["limit"]["episodic"]),
                *(WORDS[n] for n in (sum(not one["reached"] for one in by_episodes()), len(by_episodes()))),
            ],
        ),
        (r"rPVI ([\d.]+ \(.*?\)) for S³", lambda: [slope_of("states", "rpvi")]),
        (r"lie ([\d.]+) of the window below", lambda: [f"{stored('evidence')['near']}"]),
        (
            r"(\d+) pairs at each of (\w+) sizes around",
            lambda: [
                str(stored("evidence")["pairs"]),
                *{WORDS[len(one["counts"])] for one in measured("evidence").values() if "counts" in one},
            ],
        ),
        (
            r"By states (\S+ \(.*?\)) for a bound of 3, up to (\d+) states. Jointly (\S+ \(.*?\)) for a bound of 2, "
            r"and (\S+ \(.*?\)) from 12",
            lambda: [
                decision("states", "product"),
                str(max(one["x"] for key, one in measured("evidence", "states/").items() if key.endswith("product"))),
                decision("states", "joint"),
                decision("states", "joint", 12),
            ],
        ),
        (r"guard of (\S+) nodes", lambda: [power(code("reprl.coupling.correlated.DEFAULT_MAX_NODES"))]),
        (
            r"In 1/ε (\S+ \(.*?\)) and (\S+ \(.*?\)), in 1/ρ (\S+ \(.*?\)) and (\S+ \(.*?\)), for",
            lambda: [decision(sweep, method) for sweep in ("epsilon", "rho") for method in ("joint", "product")],
        ),
        (
            r"\*\*A\.\*\* (\S+ \(.*?\)) and (\S+ \(.*?\)), \*\*well",
            lambda: [decision("actions", method) for method in ("joint", "product")],
        ),
        (r"with A arms all ([\d.]+) of the window", lambda: [f"{stored('evidence')['near']}"]),
    ],
    "docs/lower-bounds.md": [
        (r"at most about (\d+)·n/", lambda: [f"{proven_signs('every'):.0f}"]),
        (r"and ([\d.]+)·n/\(ρ²ε²\) for large n", lambda: [f"{proven_signs('average'):.1f}"]),
        (
            r"lower bound: (\S+ \(.*?\)) and (\S+ \(.*?\)) against 2",
            lambda: [bound_slope(JOINT, "rho"), bound_slope(JOINT, "epsilon")],
        ),
        (
            r"joint solver has (\S+ \(.*?\)) over 4 … 256 and (\S+ \(.*?\)) from 32 on, against 1, and its ratio to "
            r"n/\(ρ²ε²\) levels off between (\d+) and (\d+)\.",
            lambda: [
                bound_slope(JOINT),
                bound_slope(f"{JOINT}, n ≥ 32"),
                *(str(edge) for edge in (lambda x: (math.floor(x), math.ceil(x)))(points(JOINT)[256]["ratio"])),
            ],
        ),
        (
            r"levels u tried at n = 64, ([\d.]+) needs most",
            lambda: [f"{max((one for one in edges() if one['n'] == 64), key=lambda one: one['ratio'])['u']}"],
        ),
        (
            r"all biases at ([\d.]+)·gap/2 the ratio levels off at (\d+); the proof allows (\d+). So in the worst case "
            r"that we found the solver is within a factor of (\d+) of n/\(ρ²ε²\), and the proof loses (\d+)",
            lambda: [
                f"{edges()[-1]['u']}",
                f"{edges()[-1]['ratio']:.0f}",
                f"{proven_ratio(256):.0f}",
                f"{edges()[-1]['ratio']:.0f}",
                f"{proven_ratio(256) / edges()[-1]['ratio']:.0f}",
            ],
        ),
        (r"with n, to ([\d.]+) at n = 256", lambda: [f"{points(AVERAGE)[256]['ratio']:.2f}"]),
        (r"still growing: (\S+ \(.*?\))\.", lambda: [bound_slope(AVERAGE)]),
        (
            r"a factor n, slope (\S+ \(.*?\)): (\d+) times the joint solver at n = 256",
            lambda: [
                bound_slope(PRODUCT),
                f"{points(PRODUCT)[256]['samples'] / points(JOINT)[256]['samples']:.0f}",
            ],
        ),
        (r"stays within (\d+) … (\d+) of n/", lambda: span(one["ratio"] for one in stored("lower_bounds")["learner"])),
        (r"Its slope is (\S+ \(.*?\)): each", lambda: [bound_slope("RL learner, H = 4")]),
        (r"over n = 4 … 32 the joint solver has ([\d.]+) too", lambda: [early_slope()]),
        (
            r"\((\d+) real pairs at each of (\w+) sizes",
            lambda: [
                str(stored("lower_bounds")["effort"]["learner_pairs"]),
                *{WORDS[len(one["curve"])] for one in stored("lower_bounds")["learner"]},
            ],
        ),
        (
            r"(\d+ of \d+) pairs differed \((\S+ %)\)",
            lambda: ["{} of {}".format(*real_runs()), percent(real_runs()[0] / real_runs()[1], 1)],
        ),
    ],
    "docs/whole.md": [
        (r"three steps ask for (\S+) episodes", lambda: [tens(paper_whole(4, 2, 3).total)]),
        (r"coupling, scale ([\d.]+):", lambda: [f"{stored('whole')['scale']}"]),
        (r"(\d+) pairs a world", lambda: [str(stored("whole")["effort"]["pairs"])]),
        (r"growing; (\d+) pairs", lambda: sorted({str(one["pairs"]) for one in whole("boosting").values()})),
        (
            r"scale ([\d.]+), (\d+) pairs a size",
            lambda: [f"{stored('whole')['slope_scale']}", str(stored("whole")["effort"]["slope_pairs"])],
        ),
        (
            r"(\w+) run of (\d+) failed, and none lost more than ([\d.]+) of the ([\d.]+) that",
            lambda: [
                WORDS[sum(one["failed"] for one in apart_whole())].capitalize(),
                str(2 * len(apart_whole())),
                f"{math.ceil(1000 * max(x for one in apart_whole() for x in one['losses'])) / 1000}",
                f"{stored('whole')['epsilon']}",
            ],
        ),
        (r"as far as (\d+) pairs", lambda: [str(stored("whole")["effort"]["pairs"])]),
        (
            r"random world parts in (\d+ of \d+) pairs, and the gridworld, .*?, in (\d+):",
            lambda: [
                "{} of {}".format(sum(one["apart"] for one in apart_whole("random")), len(apart_whole("random"))),
                str(sum(one["apart"] for one in apart_whole("gridworld"))),
            ],
        ),
        (
            r"another in (\d+ %) of the cases; the boosted ones part in (\d+ %)",
            lambda: [percent(float(cell)) for cell in boosted_row("gridworld(4,4,3)")[1:3]],
        ),
        (r"proof asks for (\S+), picks", lambda: [tens(paper_whole(4, 2, 3).pulls)]),
        (
            r"hard instance that part in (\d+) to (\d+ %) of the cases to (\d+ of \d+) pairs",
            lambda: [
                *percents(learners_apart("hard")),
                *{f"{one['apart']} of {one['pairs']}" for key, one in whole("boosting").items() if "hard" in key},
            ],
        ),
        (r"learners part in (\d+) to (\d+ %)", lambda: percents(learners_apart("gridworld"))),
        (
            r"at most (\S+), (\S+), (\S+) and (\S+) visits, with (\S+) down to (\S+) records",
            lambda: [
                *(f"{x:.2g}" for x in whole("tiers")["side-roads(6,2,5)"]["reach"][:4]),
                *(f"10^{int(math.log10(whole('tiers')['side-roads(6,2,5)']['samples'][i]))}" for i in (0, 3)),
            ],
        ),
        (r"Data are (\d+) to (\d+) times nicer", lambda: span(nicer())),
        (r"on the long chain (\S+) on average", lambda: [f"{pessimism('long chain: river-swim(5,2,5)'):.4f}"]),
        (
            r"grows like S\^(\S+) jointly and S\^(\S+) by products",
            lambda: [grade_slopes(grade)[0] for grade in ("joint", "product")],
        ),
        (
            r"stays below ([\d.]+) at every S",
            lambda: [f"{math.ceil(100 * max(upper(one) for one in whole('slope').values())) / 100}"],
        ),
        (r"needed, (\d+) pairs a grade", lambda: [str(n) for n in grade_pairs()]),
        (
            r"intervals are \[(\S+), (\S+)\] and \[(\S+), (\S+)\]",
            lambda: [f"{x:.1f}".replace("-", "−") for g in ("joint", "product") for x in grade_slopes(g)[1]],
        ),
        (r"\*\*Proven\*\* begins at (\S+) episodes for the smallest", lambda: [row("whole", "2, 2, 1", "0.5")[3]]),
    ],
    "docs/eaton.md": [
        (r"would take about ([\d,]+) calls;", lambda: [f"{stored('eaton')['calls']:,}"]),
        (
            r"among (\d+) runs under one shared key, the mean of (\d+) keys",
            lambda: [
                str(stored("eaton")["runs"]),
                *{str(len(x["values"])) for x in measured("eaton", "rpvi/").values()},
            ],
        ),
        (
            r"At ([\d,]+) calls (no) two runs of rPVI share a value function; (\d+) times as many give (\d+) runs of "
            r"10 the commonest one at ρ_SQ = 0.2",
            lambda: [
                f"{stored('eaton')['calls']:,}",
                "no"
                if {min(measured("eaton")[f"rpvi/{x}/1"]["unique"]) for x in ("0.05", "0.2", "0.8")} == {20}
                else "",
                "1024",
                f"{10 * float(np.mean(measured('eaton')['rpvi/0.2/1024']['values'])):.0f}",
            ],
        ),
        (
            r"agree for (\d+ of \d+) pairs at ([\d,]+) calls and for (\d+ of \d+) at (\w+) times",
            lambda: [agree("1"), f"{stored('eaton')['calls']:,}", agree("4"), "four"],
        ),
        (r"ρ_SQ = ρ/(\d+) here", lambda: [str(eaton_cells())]),
    ],
    "docs/agents.md": [
        (r"count as one within (\d+ %) of its range", lambda: [percent(default(reprl.audit_agents, "closeness"))]),
        (
            r"cut into (\d+) cells .*? for (\d+) steps with at most ([\d,]+) samples",
            lambda: [
                str(math.prod(code("experiments.agents.plan.BINS"))),
                str(stored("agents")["table"]["horizon"]),
                f"{stored('agents')['table']['max_samples']:,}",
            ],
        ),
        (r"its returns are of (\d+) steps", lambda: [str(stored("agents")["table"]["horizon"])]),
    ],
    "docs/discounting.md": [
        (r"γ is at most (\S+)\.", lambda: [f"{code('reprl.mdp.forever.MOST')}"]),
        (r"moves by more than (\S+);", lambda: [power(code("reprl.mdp.forever.STILL"))]),
        (r"counts less than (\d+ %) of all", lambda: [percent(code("reprl.mdp.forever.LENGTH"))]),
    ],
    "docs/sampled.md": [
        (r"decision runs at least (\d+) times", lambda: [str(code("reprl.learning.rehearsal.asked_for")(1.0))]),
        (r"length plays (\d+) episodes per", lambda: [str(code("reprl.learning.episodic.EPISODES_PER_CELL"))]),
    ],
    "docs/peers.md": [
        (
            r"Every rival takes `epsilon` \(([\d.]+)\), `delta` \(([\d.]+)\), .*? take `rho` \(([\d.]+)\)",
            lambda: [f"{default(code('reprl.peers.generative.rpvi'), name)}" for name in ("epsilon", "delta", "rho")],
        ),
        (r"stopped after ([\d.]+)·N to ([\d.]+)·N rounds", rmax_rounds),
        (
            r"(\d+) episodes, S = 4, .*? values agree to (\S+), and those of MBQVI on the same (\d+) calls too. "
            r"Trained apart for (\d+) episodes, rlberry's UCBVI and ours lose less than (\S+) on average",
            lambda: [
                str(rlberry("EPISODES")),
                short(rlberry("CLOSE"), 0),
                str(rlberry("CALLS")),
                str(rlberry("TRAINED")),
                f"{rlberry('LOSS')}",
            ],
        ),
        (
            r"\(([\d.]+) for those that do not replicate\)\. [^|]*? at most (\d+ %) of (\d+) pairs apart [^|]*? at "
            r"most (\d+ %) of the runs",
            lambda: [
                f"{calibration('EPSILON')[False]}",
                percent(calibration("RHO")),
                str(calibration("PAIRS")[True]),
                percent(calibration("DELTA")),
            ],
        ),
        (r"the noise of (\d+) pairs", lambda: [str(calibration("PAIRS")[True])]),
        (r"need to formula, times (\S+) to (\S+)\.", preset_margins),
        (r"median ratio is (\d+) to (\d+) times smaller", median_margins),
        (
            r"share their noise: 2, as 4 loses more than ε in (\d+ %) of the runs",
            lambda: [
                percent(one["missed"])
                for one in rivals()
                if (one["learner"], one["softness"], one["world"])
                == ("karbasi-gaussian, correlated", 4, "random-mdp-v0")
            ],
        ),
    ],
    "docs/audit.md": [
        (
            r"passes ρ = 0.1 after (\d+) pairs, one that always does is rejected after (\d+)\.",
            lambda: [str(sequential(False)), str(sequential(True))],
        ),
    ],
    "docs/environments.md": [
        (r"default options (\d+ of the \d+) \(step, state\) pairs", lambda: [ties("gridworld-v0")]),
        (r"in `two-goals-v0`, (\d+ of the \d+)", lambda: [ties("two-goals-v0")]),
        (
            r"on the (\w+) \[held-out worlds\]\S+ that were learned both ways, .*? took (\d+) to (\d+) times as many",
            lambda: [WORDS[len(steps_apart())], *span(steps_apart())],
        ),
    ],
    "docs/rehearsal.md": [
        (r"of (\d+), from far below ε/H to H", lambda: [str(code("reprl.rule.choice.TOLERANCES"))]),
        (
            r"share of ε, between ([\d.]+) and ([\d.]+), in",
            lambda: [f"{x}" for x in code("reprl.rule.choice.ROOM")],
        ),
        (r"could be worth ([\d.]+)·ε", lambda: [f"{code('reprl.learning.canonical.UNKNOWN')}"]),
        (
            r"twenty of them between (\d+) calls and (\S+)\. With (\d+) teams on half",
            lambda: [str(first := code("reprl.learning.rounds.FIRST")), power(first * 2**20), "20"],
        ),
    ],
    "docs/report.md": [
        (r"beyond (\d+) steps a slider", lambda: [str(code("reprl.report.maps._STRIP"))]),
        (
            r"draws the (\d+) states that matter most, by name, and a table lists all of them \(up to ([\d,]+)\)",
            lambda: [str(code("reprl.report.maps._LABELLED")), f"{code('reprl.report.listing._MOST'):,}"],
        ),
        (
            r"at most ([\d,]+) cells of a grid: of longer horizons (\d+) evenly",
            lambda: [f"{code('reprl.report.maps.MAX_CELLS'):,}", str(code("reprl.report.maps.MAX_STEPS"))],
        ),
    ],
    "docs/randomness.md": [
        (r"a candidate may lose, in \((\S+), (\S+)\)", lambda: [f"{x}" for x in code("reprl.rule.choice.ROOM")]),
        (r"must weigh more, in \((\S+), (\S+)\)", lambda: [f"{x}" for x in code("reprl.rule.choice.HANDICAP")]),
        (
            r"a million runs of (\S+) draws each, some two of the (\S+) pairs overlap almost surely, each doing so "
            r"with probability about (\S+)/2⁶⁴ ≈ (\S+)\.\)",
            lambda: [power(10**9), power(math.comb(10**6, 2)), power(2 * 10**9), power(2 * 10**9 / 2**64)],
        ),
    ],
}


PLAIN: dict[str, dict[str, str]] = {
    "CONTRIBUTING.md": {"Python 3.11": "a version"},
    "docs/canonical.md": {
        "90 % quantile": "a quantile",
        "bold below 0.05": "a level",
        "The first showed that 20 teams": "an earlier rule",
        "takes 77 samples of a cell, 7.7 times": "the proof's",
        "a disagreement of 0.15": "an example",
    },
    "docs/certificates.md": {
        "0.0005 of one reward": "its worlds",
    },
    "docs/head-to-head.md": {
        "they differ so much (0.53)": "its world",
        "loses 0.4": "its world",
        "has seen a cell 20 times": "an example",
    },
    "docs/eaton.md": {"moves slip with probability 0.1": "its world"},
    "docs/environments.md": {
        "a reward counts 0.95 times": "an example",
        "worlds of 10⁵ states": "the benchmark's",
        "16 calls": "the benchmark's",
        "5000 depots": "the benchmark's",
        "0.5 more": "the benchmark's",
    },
    "docs/evidence.md": {"9216 log³": "the paper's", "0.1-replicable": "the paper's"},
    "docs/overview.md": {"0.1-replicable": "the paper's"},
    "docs/peers.md": {"rlberry-scool 0.7.3 on rlberry 0.7.3": "versions"},
    "docs/tutorial.md": {
        "(With 0.8 for 0.9 in COMFORT": "an example",
        "with probability at most 0.1": "a setting",
        "within 0.3 of the best": "a setting",
    },
    "docs/whole.md": {"bias 0.15": "its world", "asks for 10 %": "the paper's"},
}
"""By page, texts whose numbers are no measurements, and what they are."""

UNCOVERED = [
    "CHANGELOG.md",
    "docs/logs.md",  # memory and time of long logs, intervals of both kinds
    "docs/paper-map.md",  # lines of the paper
    "docs/proofs/audit.md",
    "docs/proofs/canonical.md",
    "docs/proofs/certificate.md",
    "docs/proofs/coupling.md",
    "docs/proofs/decision.md",
    "docs/proofs/logs.md",
    "docs/proofs/lower-bounds.md",
    "docs/proofs/whole.md",
    "docs/scale.md",  # time and memory of benchmarks, kills
    "docs/security.md",  # sizes and times of bad files
]
"""Pages with numbers that nothing is compared with yet; those of them that stand in NUMBERS are."""

"""Numbers of its pages, looked up in the stored data of experiments.whole and in the code."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from experiments.stored import (
    WORDS,
    LookUp,
    code,
    measured,
    pairs_of,
    percents,
    phrases,
    span,
    stored,
    table,
    tens,
)


def whole(kind: str) -> dict[str, Any]:
    """Return a part of experiments.whole."""
    return measured("whole", f"{kind}/")


def apart_whole(world: str = "") -> list[Any]:
    """Return the pairs of whole runs, on the worlds whose names begin so."""
    return pairs_of("whole", f"pairs/{world}")


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
    *_, drawn, enough = next(cells for cells in table("whole") if cells[0] == grade)
    return drawn.split(" ")[0], [float(x) for x in re.findall(r"-?[\d.]+", enough)[1:]]


def proven(epsilon: float, rho: float, horizon: int = 2) -> float:
    """Return the fewest episodes that are proven to do for two states and actions."""
    problem = code("reprl.paper.proven.Problem")(2, 2, horizon, epsilon, rho, rho)
    return float(code("reprl.paper.proven.proven_sizes")(problem).episodes)


def learners_at(rho: float) -> int:
    """Return the learners of a boosted run of Theorem 4.13 on two states, actions and one step."""
    task = code("reprl.paper.constants.Task")(2, 2, 1, 0.5, rho, rho, "generative", "joint", True)
    return int(code("reprl.paper.constants.Constants").paper(task).learners)


def seconds_at(rho: float) -> str:
    """Return the processor time of such a run, at the speed of the stored ones at ρ = 0.2, to two digits."""
    runs = [one for name, one in whole("theorem").items() if "ρ = 0.2" in name]
    each = sum(one["seconds"] / one["learners"] for one in runs) / len(runs)
    return str(int(float(f"{learners_at(rho) * each:.1e}")))


def certified_episodes() -> float:
    """Return the episodes of a run of the pairs whose loss is certified."""
    from experiments.episodic_pair.__main__ import PLANS

    sizes = PLANS["certified/2,2,2"].chosen
    return float(sizes.runs) * sizes.length


def paper_whole(n_states: int, n_actions: int, horizon: int) -> Any:
    """Return the paper's constants by episodes for the figures of experiments.whole."""
    from experiments.whole import plan
    from reprl.learning.settings import Settings

    asked = Settings(
        rule="paper", access="episodic", boosted=True, epsilon=plan.EPSILON, rho=plan.RHO, delta=plan.DELTA
    )
    return asked.paper.constants_for(n_states, n_actions, horizon, horizon)


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/whole.md": {
        "steps-ask-episodes": lambda: [tens(paper_whole(4, 2, 3).total)],
        "coupling-scale-run": lambda: [f"{stored('whole')['scale']}"],
        "been-better-pairs": lambda: [str(stored("whole")["effort"]["pairs"])],
        "pulls-growing-pairs": lambda: sorted({str(one["pairs"]) for one in whole("boosting").values()}),
        "bias-scale-pairs": lambda: phrases(
            [f"{stored('whole')['slope_scale']}", str(stored("whole")["effort"]["slope_pairs"])], "{}, {}"
        ),
        "runs-accurate-may": lambda: [
            WORDS[sum(one["failed"] for one in apart_whole())].capitalize(),
            str(2 * len(apart_whole())),
            f"{math.ceil(1000 * max(x for one in apart_whole() for x in one['losses'])) / 1000}",
            f"{stored('whole')['epsilon']}",
        ],
        "within-far-pairs": lambda: [str(stored("whole")["effort"]["pairs"])],
        "world-parts-these": lambda: [
            "{} of {}".format(sum(one["apart"] for one in apart_whole("random")), len(apart_whole("random"))),
            str(sum(one["apart"] for one in apart_whole("gridworld"))),
        ],
        "proof-asks-picks": lambda: [tens(paper_whole(4, 2, 3).pulls)],
        "instance-part-pairs": lambda: phrases(
            [*percents(learners_apart("hard")), *{"{} of {}".format(*x) for x in boosted("hard")}], "{} to {}", "{}"
        ),
        "learners-part-does": lambda: phrases(percents(learners_apart("gridworld")), "{} to {}"),
        "boosted-part-learners": lambda: phrases(
            [
                *(" ".join(f"{100 * x / n:.0f}" for x, n in boosted("grid")) + " %").split(" ", 2),
                *(cells[4] for cells in table("whole") if len(cells) == 8 and cells[0].startswith("gridworld")),
            ],
            "{}, {} and {}",
            "{}, {} and {}",
        ),
        "harder-reach-records": lambda: phrases(
            [
                *(f"{x:.2g}" for x in whole("tiers")["side-roads(6,2,5)"]["reach"][:4]),
                *(f"10^{int(math.log10(whole('tiers')['side-roads(6,2,5)']['samples'][i]))}" for i in (0, 3)),
            ],
            "{}, {}, {} and {}",
            "{}",
            "{}",
        ),
        "step-data-times": lambda: phrases(span(nicer()), "{} to {}"),
        "long-chain-average": lambda: [f"{pessimism('long chain: river-swim(5,2,5)'):.4f}"],
        "grows-like-products": lambda: [grade_slopes(grade)[0] for grade in ("joint", "product")],
        "stays-below-every": lambda: [f"{math.ceil(100 * max(upper(one) for one in whole('slope').values())) / 100}"],
        "much-needed-pairs": lambda: [str(n) for n in grade_pairs()],
        "say-intervals-proven": lambda: phrases(
            [f"{x:.1f}".replace("-", "−") for g in ("joint", "product") for x in grade_slopes(g)[1]], "{}, {}", "{}, {}"
        ),
        "learners-tenth": lambda: [f"{learners_at(0.1):.1e}".replace("e+0", "e"), seconds_at(0.1)],
        "proven-smallest": lambda: [f"{proven(0.5, 0.1, 1):.1e}".replace("e+", "e")],
        "proven-begins-episodes": lambda: [tens(proven(0.5, 0.1, 1), 1)],
    },
    "README.md": {"papers-episodes": lambda: [tens(paper_whole(2, 2, 1).total, 1)]},
    "docs/overview.md": {"papers-episodes": lambda: [tens(paper_whole(2, 2, 1).total, 1)]},
    "docs/proofs/whole.md": {
        "steps-needs-usual": lambda: [tens(proven(0.5, 0.1), 1), tens(proven(1.0, 0.3), 1)],
        "one-step-needs": lambda: [tens(proven(0.5, 0.1, 1), 1)],
        "certified-episodes": lambda: [f"{certified_episodes():.2g}".replace("e+0", "e")],
    },
}

"""Numbers of its pages, looked up in the stored data of experiments.head_to_head and in the code."""

from __future__ import annotations

import math
from typing import Any

from experiments.head_to_head.plan import INSTANCES
from experiments.stored import LookUp, code, fitted, measured, percent, phrases, power, span, stored


def needed(one: Any) -> float:
    """Return the samples at which a rival met the goal, in hindsight."""
    return float((one["needed"][0] if one["needed"] else one["samples"]) if one["reached"] else "inf")


def tied(world: str) -> bool:
    """Whether a world of head to head has exact ties."""
    return world.startswith(("gridworld", "two-goals", "hard"))


def rival(learner: str) -> bool:
    """Whether a learner of head to head is not ours."""
    return not learner.startswith("reprl")


def slope_of(sweep: str, learner: str, *, interval: bool = True) -> str:
    """Return a fitted slope of head to head."""
    from experiments.head_to_head.measure import slopes

    (fit,) = [f for f in slopes(stored("head_to_head")["measured"]) if (f["sweep"], f["learner"]) == (sweep, learner)]
    return fitted(fit) if interval else f"{fit['slope']:.2f}"


def theorem_over_needed() -> list[str]:
    """Return how many times as many samples the theorem asks for as are needed, by the worlds of the sweep in S."""
    from experiments.head_to_head import plan
    from reprl.learning.settings import Settings

    asked = Settings(rule="paper", epsilon=plan.EPSILON, rho=plan.RHO)
    found = []
    for name, one in measured("head_to_head", "sweep/states/").items():
        if name.endswith("/reprl (joint)"):
            shape = (int(one["x"]), 2, plan.HORIZON)
            found.append(asked.paper.constants_for(*shape, math.prod(shape)).calls * math.prod(shape) / one["samples"])
    return [power(10.0 ** math.floor(math.log10(x))) for x in (min(found), max(found))]


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


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/head-to-head.md": {
        "exact-ties-better": lambda: [slope_of("states", f"reprl ({one})") for one in ("joint", "product")],
        "law-steep-joint": lambda: phrases(
            [slope_of("near", f"reprl ({one})") for one in ("joint", "product")], "{} and {}"
        ),
        "ties-slopes-bound": lambda: phrases(
            [slope_of(sweep, "list-robust", interval=False) for sweep in ("states", "near")], "{} and {}"
        ),
        "softmax-have-their": lambda: phrases(
            [slope_of("states", one, interval=False) for one in ("rpvi", "karbasi-grid", "karbasi-softmax")],
            "{}, {} and {}",
        ),
        "joint-has-bound": lambda: [slope_of("actions", "reprl (joint)")],
        "wrongly-probability-episodes": lambda: [
            percent(code("experiments.head_to_head.budget.LEVEL")),
            effort("pairs", "generative"),
            effort("pairs", "episodic"),
        ],
        "shows-everything-since": lambda: [
            *{f"{needed(one):.0f}" for one in measured("head_to_head", "table/generative/combination-lock/").values()},
        ],
        "agreed-itself-samples": lambda: [
            power(measured("head_to_head")["table/generative/gridworld 4×4/greedy"]["failed"])
        ],
        "worlds-ties-times": lambda: phrases(span((sharper(w) for w in INSTANCES if tied(w)), 1), "{} to {}"),
        "noise-needs-steps": lambda: [f"{sharper('random-mdp', 'karbasi-gaussian (correlated)'):.2f}", steps_limit()],
        "grow-like-jointly": lambda: [f"{float(slope_of('states', 'reprl (joint)', interval=False)):.1f}"],
        "reprl-has-same": lambda: phrases(
            [slope_of("rho", f"reprl ({one})", interval=False) for one in ("joint", "product")], "{} and {}"
        ),
        "may-differ-searches": lambda: [
            percent(code("experiments.head_to_head.budget.LEVEL")),
            str(len(measured("head_to_head", "table/"))),
        ],
        "budgets-stop-steps": lambda: [steps_limit()],
    },
}

"""Numbers of its pages, looked up in the stored data of experiments.head_to_head and in the code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from experiments.stored import LookUp, code, fitted, measured, percent, phrases, power, span, stored


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


def none_apart(pairs: int) -> str:
    """Return the disagreement that so many pairs without one apart leave possible."""
    return percent(code("reprl.auditing.evidence.exact_interval")(0, pairs)[1])


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/head-to-head.md": {
        "size-none-pairs": lambda: [str(sum(own("disagreements"))), str(sum(own("pairs")))],
        "hindsight-needs-times": lambda: phrases(span(ratios("generative", only=rival, worlds=tied)), "{} to {}"),
        "samples-rpvi-times": lambda: phrases(
            span(ratios("generative", only=lambda learner: learner == "rpvi", worlds=tied)), "{} to {}"
        ),
        "r-max-needs-times": lambda: span(
            ratios("episodic", only=lambda learner: learner == "replicable-rmax", worlds=tied)
        )[:1],
        "hindsight-needs-times-2": lambda: [one_world("river-swim", "greedy")],
        "samples-random-mdp-times": lambda: [one_world("random-mdp", "greedy")],
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
            f"{measured('head_to_head')['own/generative/combination-lock']['samples']:.0f}",
        ],
        "agreed-itself-samples": lambda: [
            power(measured("head_to_head")["table/generative/gridworld 4×4/greedy"]["failed"])
        ],
        "default-learner-paper": lambda: [
            f"{max(own('suboptimality')):.3f}",
            f"{math.ceil(100 * sorted(own('suboptimality'))[-3]) / 100}",
        ],
        "worlds-ties-times": lambda: phrases(
            span((sharper(w) for w in measured("head_to_head", "own/generative/") if tied(w)), 1), "{} to {}"
        ),
        "noise-needs-steps": lambda: [f"{sharper('random-mdp', 'karbasi-gaussian (correlated)'):.2f}", steps_limit()],
        "grow-like-jointly": lambda: [f"{float(slope_of('states', 'reprl (joint)', interval=False)):.1f}"],
        "reprl-has-same": lambda: phrases(
            [slope_of("rho", f"reprl ({one})", interval=False) for one in ("joint", "product")], "{} and {}"
        ),
        "may-differ-searches": lambda: [
            effort("own_pairs", "generative"),
            effort("own_pairs", "episodic"),
            none_apart(int(effort("own_pairs", "generative"))),
            none_apart(int(effort("own_pairs", "episodic"))),
            percent(code("experiments.head_to_head.budget.LEVEL")),
            str(len(measured("head_to_head", "table/"))),
        ],
        "budgets-stop-steps": lambda: [steps_limit()],
    },
}

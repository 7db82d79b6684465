"""Numbers of its pages, looked up in the stored data of experiments.evidence and in the code."""

from __future__ import annotations

from experiments.head_to_head.numbers import slope_of, theorem_over_needed
from experiments.stored import (
    WORDS,
    LookUp,
    code,
    fitted,
    measured,
    percent,
    percents,
    phrases,
    short,
    span,
    stored,
)
from experiments.whole.numbers import apart_whole, boosted, grade_slopes, learners_apart, nicer, pessimism, upper, whole


def decision(sweep: str, method: str, least: int = 0, mechanism: str = "compact", over: int = 0) -> str:
    """Return a fitted slope of experiments.evidence, `over` logarithms taken out."""
    from experiments.evidence.__main__ import slopes

    wanted = {"mechanism": mechanism, "sweep": sweep, "method": method, "least": least, "over": over}
    (fit,) = [fit for fit in slopes(stored("evidence")) if wanted.items() <= fit.items()]
    return fitted(fit)


def late() -> list[int]:
    """Return from where slopes of S, A, 1/ε and 1/ρ are fitted once more."""
    return list(code("experiments.evidence.__main__.LATE").values())


def swept(sweep: str) -> list[float]:
    """Return where a sweep of experiments.evidence was measured."""
    return [one["x"] for one in measured("evidence", f"compact/{sweep}/").values()]


NUMBERS: dict[str, dict[str, LookUp]] = {
    "docs/evidence.md": {
        "false-alarm-rate-control": lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)],
        "reward-chi-square-holds": lambda: [short(code("tests.statistics.FALSE_ALARM"), 0)],
        "every-exponent-less": lambda: [*(str(x) for x in late()[:2]), *(f"{1 / x:g}" for x in late()[2:])],
        "sweeps-figure-near": lambda: [slope_of(sweep, "reprl (joint)") for sweep in ("states", "near")],
        "every-tier-times": lambda: phrases(span(nicer()), "{} to {}"),
        "learners-part-learners": lambda: phrases(
            [
                *percents(learners_apart("hard")),
                *{"{} of {}".format(*x) for x in boosted("hard")},
                percent(max(upper(one) for key, one in whole("boosting").items() if key.startswith("hard")), 1),
            ],
            "{} to {}",
            "{}",
            "{}",
        ),
        "learners-part-boosted": lambda: phrases(
            [*percents(learners_apart("gridworld")), *percents([x / n for x, n in boosted("grid")])],
            "{} to {}",
            "{} to {}",
        ),
        "nothing-lock-long": lambda: [f"{pessimism('long chain: river-swim(5,2,5)'):.4f}"],
        "grows-like-failed": lambda: (
            [grade_slopes("joint")[0], str(2 * len(apart_whole()))]
            if not sum(one["failed"] for one in apart_whole())
            else []
        ),
        "grows-like-otherwise": lambda: [grade_slopes("product")[0]],
        "sizes-theorem-times": lambda: phrases(theorem_over_needed(), "{} to {}"),
        "rejected-below-when": lambda: (
            [short(code("tests.statistics.FALSE_ALARM"), 0)]
            if max(one["real"] for one in measured("evidence", "phantom/").values()) < 1e-6
            else []
        ),
        "figure-rpvi-karbasi-gaussian": lambda: [slope_of("states", "rpvi")],
        "arms-lie-window": lambda: [f"{stored('evidence')['near']}"],
        "key-known-sizes": lambda: [
            str(stored("evidence")["pairs"]),
            WORDS[len(code("experiments.lower_bounds.measure.STEPS"))],
        ],
        "papers-mechanism": lambda: [
            decision(sweep, method, mechanism="exponential", over=over)
            for over in (2, 0)
            for sweep in ("states", "actions")
            for method in ("joint", "product")
        ],
        "state-state-states": lambda: [
            str(late()[0]),
            f"{max(swept('states'))}",
            *(decision("states", method, late()[0]) for method in ("joint", "product")),
            decision("states", "joint"),
            f"{min(swept('states'))}",
        ],
        "steeper-states-over": lambda: phrases(
            [
                str(late()[1]),
                f"{max(swept('actions'))}",
                *(decision("actions", method, least) for least in (late()[1], 0) for method in ("joint", "product")),
            ],
            "{}",
            "{}, {} and {}",
            "{}",
            "{}",
        ),
        "until-many-bound": lambda: phrases(
            [
                text
                for sweep, least in (("epsilon", late()[2]), ("rho", late()[3]))
                for text in (*(decision(sweep, method, least) for method in ("joint", "product")), f"{1 / least:g}")
            ],
            "{} and {}",
            "{}",
            "{} and {}",
            "{}",
        ),
    },
}

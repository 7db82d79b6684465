"""Numbers of its pages, looked up in the stored data of experiments.front and in the code."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.canonical.numbers import traps, untuned
from experiments.head_to_head.numbers import own, ratios, rival
from experiments.stored import LookUp, measured, phrases, row, short, span


def front(field: str) -> list[Any]:
    """Return what every team of experiments.front has."""
    return [team[field] for team in measured("front").values()]


def teams() -> list[str]:
    """Return how many policies the teams of experiments.front came to, with reprl and planning greedily."""
    return [str(len(set(front(name)))) for name in ("fingerprint", "greedy_fingerprint")]


NUMBERS: dict[str, dict[str, LookUp]] = {
    "README.md": {
        "policies": teams,
        "two-runs": lambda: phrases([f"{n:,}" for n in front("samples")[:2]], "{} and {}"),
        "own-samples": lambda: phrases(
            [short(min(own("samples", "generative"))), short(max(own("samples", "generative")))], "{} to {}"
        ),
        "rivals-need": lambda: span(
            ratios(
                "generative",
                only=lambda learner: rival(learner) and learner != "greedy",
                worlds=lambda world: world != "combination-lock",
            )
        ),
        "papers-episodes": lambda: [row("whole", "2, 2, 1", "0.5")[6]],
        "untuned": lambda: [*untuned(), short(float(np.median([one[1:3] for one in traps()])))],
    },
    "website/index.md": {
        "policies": teams,
        "two-runs": lambda: phrases([f"{n:,}" for n in front("samples")[:2]], "{} and {}"),
    },
}

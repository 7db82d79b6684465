"""What stored runs of the canonical learner needed, given what was not enough: the forecast before and during a run."""

from __future__ import annotations

import math

import numpy as np

from reprl.canonical.goal import DEFAULT_QUALITY
from reprl.learning.settings import Settings
from reprl.sources.source import FIRST

STORED = {
    "generative": (
        *(128.0, 256.0, 256.0, 512.0, 1.02e3, 1.02e3, 2.05e3, 4.1e3, 4.1e3, 4.1e3),
        *(8.19e3, 1.64e4, 3.28e4, 6.55e4, 1.31e5, 1.31e5, 2.62e5, 5.24e5, 2.1e6, 5.59e6),
    ),
    "episodic": (
        *(533.0, 683.0, 1.02e3, 1.12e3, 1.37e3, 2.05e3, 2.05e3, 4.1e3, 4.1e3, 8.2e3),
        *(8.32e3, 3.28e4, 3.28e4, 6.57e4, 1.31e5, 2.63e5, 5.24e5, 5.26e5, 1.05e6, 1.1e6),
    ),
    "approximate": (
        *(33.0, 128.0, 128.0, 256.0, 256.0, 256.0, 256.0, 512.0, 512.0, 512.0),
        *(1.02e3, 1.02e3, 2.05e3, 2.22e3, 4.1e3, 4.1e3, 8.19e3, 1.64e4, 3.28e4, 2.62e5),
    ),
    "registered": (
        *(64.0, 128.0, 128.0, 132.0, 256.0, 256.0, 256.0, 256.0, 256.0, 512.0),
        *(512.0, 1.02e3, 1.02e3, 2.05e3, 2.12e3, 4.1e3, 4.44e3, 8.19e3, 3.28e4, 5.59e6),
    ),
}
"""Samples per cell of the canonical learner, (h, s, a) or, where steps are pooled, (s, a), at STORED_QUALITY: twenty
quantiles over the worlds in experiments/price and experiments/defaults, each of which weighs the same
(``experiments.price.__main__.per_cell``). Of strict promises by access; of the weaker ones, an agreement of 0.95 and
registered candidates, only parallel samples are stored, without the pilot."""
WORLDS = {"generative": 71, "episodic": 17, "approximate": 40, "registered": 40}
"""Number of these MDPs."""
STORED_QUALITY = DEFAULT_QUALITY
"""What the stored runs asked for; samples grow with 1/(1 − q)², as comparisons at a tolerance do. How an ε compares to
the gain of a world is not known beforehand: for one, stored runs are taken as they are."""
SHARES = (0.1, 0.5, 0.9)
"""Quantiles that a range states: eight of ten runs lie between its ends."""


def stored_range(
    settings: Settings, cells: int, beyond: float = 0.0, promise: str = "strict"
) -> tuple[float, float, float]:
    """Return what stored runs of the canonical learner needed, for so many cells and the settings' access and quality.

    Only stored runs count that needed more than `beyond`, which were not enough. Those of a weaker promise are all of
    parallel samples.
    """
    quality = STORED_QUALITY if settings.quality is None else settings.quality
    unit = cells * ((1.0 - STORED_QUALITY) / (1.0 - quality)) ** 2
    table = np.array(STORED[settings.access if promise == "strict" else promise]) * unit
    left = table[table > beyond]
    if not left.size:
        return (beyond, 2.0 * beyond, math.inf)
    low, typical, high = np.quantile(left, SHARES, method="nearest")
    return (max(float(low), float(cells * FIRST)), max(float(typical), float(cells * FIRST)), float(high))


def count_words(number: float) -> str:
    """A number of samples for people."""
    if math.isinf(number):
        return "any number of"
    return f"{number:,.0f}" if number < 1e6 else f"{number:.2g}"


def time_words(seconds: float) -> str:
    """A time for people."""
    if math.isinf(seconds):
        return "any time"
    for size, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.2g} {name}" if seconds < 100.0 * size else f"{seconds / size:.0f} {name}"
    return f"{seconds:.2g} s"

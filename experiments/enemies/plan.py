"""The plan as data: which worlds, by which data, under which promise."""

from __future__ import annotations

from functools import partial

from experiments.enemies.worlds import OTHERS, TIES, Build, knife_edge
from experiments.pairs import COARSE, DEFAULT, Asked, Case
from experiments.price.measure import Case as Promise
from experiments.quiet.plan import Case as Plain
from reprl.sources.source import LIMITS

LIMIT = {"parallel": LIMITS["generative"], "episodes": 2**22, "box": 200_000}
"""max_samples: the default of parallel samples; less by episodes, which a tie would let go on for hours."""
BOXES = ("tie 119", "rarer start", "rare break", "small reward")
WEAKER = ("tie 119", "tie 37, H=3", "rarer start", "rare break", "small reward", "knife edge 0", "random quiet 93001")
"""Worlds that are also played as black boxes, and those of the two weaker promises."""
ASKED = {asked.name: asked for asked in (DEFAULT, COARSE)}


def cases() -> list[Case]:
    """Return every case."""
    found: list[Case] = []
    for data in ("parallel", "episodes"):
        for name, asked in ASKED.items():
            found += [_plain(world, data, asked, build) for world, build in TIES[name].items()]
            others: dict[str, Build] = {**OTHERS, "knife edge 2": partial(knife_edge, 2, relative=False)}
            found += [_plain(world, data, asked, build) for world, build in others.items()]
    worlds = {**TIES[DEFAULT.name], **OTHERS}
    found += [_plain(world, "box", DEFAULT, worlds[world]) for world in BOXES]
    for group in ("agreement", "registered"):
        found += [Promise(group, f"{DEFAULT.name}/{world}", worlds[world]) for world in WEAKER]
    return found


def _plain(world: str, data: str, asked: Asked, build: Build) -> Plain:
    return Plain(world, data, asked, build, LIMIT[data])

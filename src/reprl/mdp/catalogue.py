"""The catalogue: named, versioned environments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from reprl.errors import InputError, check_int, check_option, hint, quote
from reprl.mdp import worlds
from reprl.mdp.labels import Origin
from reprl.mdp.tabular import TabularMDP
from reprl.mdp.worlds import hard_instance as hard_instance

PREFIX = "gym:"
"""What an id begins with when Gymnasium builds the environment."""

CatalogueId = Literal[
    "random-mdp-v0",
    "gridworld-v0",
    "two-goals-v0",
    "combination-lock-v0",
    "river-swim-v0",
    "inventory-v0",
    "maintenance-v0",
    "queue-admission-v0",
    "hard-instance-v0",
    "gambler-v0",
]


class CatalogueEntry(NamedTuple):
    """One named environment: its id, a picture in one line, and its options with their defaults."""

    id: str
    description: str
    options: Mapping[str, Any]
    """Name → default; "horizon" comes first."""


class _World(NamedTuple):
    build: Callable[..., TabularMDP]
    description: str


_WORLDS: dict[str, _World] = {
    "random-mdp-v0": _World(
        worlds.random_mdp, "no structure at all: random successors, random rewards, fixed by a seed"
    ),
    "gridworld-v0": _World(
        worlds.gridworld,
        "an icy square, corner to corner; mirror-symmetric, so right and down tie all along the diagonal",
    ),
    "two-goals-v0": _World(
        worlds.two_goals, "you stand midway between two equal treasures, and every short route to either is as good"
    ),
    "combination-lock-v0": _World(
        worlds.combination_lock,
        "one digit of each pin is right, any other springs the lock shut; only the open lock pays",
    ),
    "river-swim-v0": _World(
        worlds.river_swim, "drift left to a small sure reward, or fight the current to a large one at the far bank"
    ),
    "inventory-v0": _World(
        worlds.inventory, "a shelf to stock before an unknown number of customers comes: order too few or too many"
    ),
    "maintenance-v0": _World(
        worlds.maintenance, "a machine that earns less as it wears: run it, service it, or replace it"
    ),
    "queue-admission-v0": _World(
        worlds.queue_admission, "a doorkeeper: each guest pays a fee to come in and costs money while waiting"
    ),
    "hard-instance-v0": _World(
        worlds.seeded_hard_instance,
        "the lower bound's MDP: in every cell of a uniform walk, which of two coins is better?",
    ),
    "gambler-v0": _World(
        worlds.gambler, "stake what you like on a coin until you are rich or broke; many stakes are equally wise"
    ),
}


def catalogue() -> list[CatalogueEntry]:
    """Return every named environment, with its description, options and their defaults."""
    return [CatalogueEntry(id, world.description, _options(world)) for id, world in _WORLDS.items()]


def build(id: object, horizon: int | None, options: Mapping[str, Any]) -> TabularMDP:
    """Build a named environment; see ``make``."""
    if not isinstance(id, str) or id not in _WORLDS:
        raise InputError(_unknown_id(id))
    world = _WORLDS[id]
    allowed = [name for name in _options(world) if name != "horizon"]
    for name in options:
        check_option(id, name, allowed)
    given = {} if horizon is None else {"horizon": check_int("horizon", horizon, 1, 10**6)}
    mdp = world.build(**options, **given)
    mdp.origin = Origin(id, dict(options))
    mdp.labels = mdp.labels._replace(name=id, description=world.description)
    return mdp


def _options(world: _World) -> Mapping[str, Any]:
    parameters = inspect.signature(world.build).parameters.values()
    return MappingProxyType({parameter.name: parameter.default for parameter in parameters})


def _unknown_id(id: object) -> str:
    meant = hint(id, _WORLDS)
    if isinstance(id, str):
        newer = [name for name in _WORLDS if name.rpartition("-v")[0] == id.rpartition("-v")[0] or name == f"{id}-v0"]
        meant = f" (did you mean {quote(newer[0])}?)" if newer else meant
        if not newer and re.fullmatch(r"[A-Z][\w.]*-v\d+", id):  # as Gymnasium spells them
            meant = f" (did you mean {quote(PREFIX + id)}?)"
    return f"environment must be one of {', '.join(_WORLDS)}, or {PREFIX} and a Gymnasium id; got {quote(id)}{meant}"

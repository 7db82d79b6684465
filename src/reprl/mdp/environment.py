"""Environment: the one record of what was learned in, with names for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reprl.mdp.criterion import Criterion
from reprl.mdp.labels import Labels, label_fields
from reprl.storage.documents import plain
from reprl.storage.fields import MAPPING, TEXT, Fields, Kind, also, optional, record, whole

SIZES = ("horizon", "n_states", "n_actions")


class Environment(NamedTuple):
    """What a run was made on."""

    id: str | None
    """For ``make``; None for an environment that was built by hand."""
    options: Mapping[str, Any]
    criterion: Criterion
    n_states: int
    n_actions: int
    digest: str | None = None
    """SHA-256 of the dynamics, or of the spaces of a black box; None where a document does not carry it."""
    labels: Labels = Labels()
    """Names for people, all or none of the states, all or none of the actions."""
    stationary: bool = False
    """Whether it shows that its law does not depend on the step; no document says so but through the digest."""
    reward_range: tuple[float, float] | None = None
    """(low, high) in original units, which [0, 1] stands for; None where a document does not say."""

    @property
    def horizon(self) -> int:
        """H; 1 if it is discounted."""
        return self.criterion.rows

    @property
    def discount(self) -> float | None:
        """γ; None where there is a horizon, or a document does not say."""
        return self.criterion.discount

    @property
    def title(self) -> str:
        """What to call it."""
        return self.id or self.labels.name

    @property
    def stated(self) -> dict[str, Any]:
        """What a folder of unfinished work says of it, in types that JSON has; options that JSON lacks are left out."""
        try:
            options = plain(dict(self.options), strict=True)
        except TypeError:
            options = None
        stated: dict[str, Any] = {"id": None if options is None else self.id, "options": options or {}}
        stated |= {"horizon": self.horizon, "n_states": self.n_states, "n_actions": self.n_actions}
        ends = None if self.reward_range is None else list(self.reward_range)
        return {**stated, "digest": self.digest, "reward_range": ends, "discount": self.discount}

    @property
    def units(self) -> tuple[float, float]:
        """(low, high) in original units of rescaled rewards 0 and 1, if known."""
        return self.reward_range or (float(self.labels.reward_map.low), float(self.labels.reward_map.high))

    @property
    def scale(self) -> float:
        """What rescaled rewards are times in their own units."""
        low, high = self.units
        return high - low

    def original_return(self, value: float) -> float:
        """A value, of rewards in [0, 1] from the first step to the last, as a return in the rewards' own units."""
        return self.units[0] * self.criterion.effective_horizon + value * self.scale

    def cell(self, h: int, s: int) -> str:
        """A step, unless there is but one for ever, and a state in words."""
        return self.criterion.cell(h, self.labels.state(s))


def describe(env: Any) -> Environment:
    """Return the record of an environment: of a TabularMDP, or of a black box with a range of rewards of its own."""
    origin, labels = env.origin, env.labels
    units = getattr(env, "reward_map", labels.reward_map)
    return Environment(
        id=None if origin is None else origin.id,
        options={} if origin is None else dict(origin.options),
        criterion=env.criterion,
        n_states=env.n_states,
        n_actions=env.n_actions,
        digest=env.digest,
        labels=labels._replace(
            name=str(labels.name),
            states=_names(labels.states, env.n_states),
            actions=_names(labels.actions, env.n_actions),
        ),
        stationary=getattr(env, "stationary", False),
        reward_range=(float(units.low), float(units.high)),
    )


def _names(names: Sequence[object], count: int) -> tuple[str, ...]:
    """Unchecked names as texts, if there is one for each."""
    return tuple(map(str, names)) if len(names) == count else ()


def _evidence_fields(least: int = 1) -> dict[str, Kind]:
    names = label_fields(TEXT, lambda at: at.n_states, lambda at: at.n_actions)
    del names["description"]
    names["grid"] = also(
        names["grid"], lambda grid, at: max(grid) <= at.n_states, lambda at: f"at most {at.n_states} by {at.n_states}"
    )
    sizes = {name: whole(1 if name == "horizon" else least) for name in SIZES}
    return {"id": optional(TEXT), "options": MAPPING, **sizes, "labels": record(Labels, names)}


def _make_environment(horizon: int, discount: float | None = None, **others: Any) -> Environment:
    return Environment(criterion=Criterion.of(horizon, discount), **others)


def environment_kind(table: Mapping[str, Kind]) -> Kind:
    """Return an environment in a document with these fields."""
    return record(_make_environment, table)


ENVIRONMENT = environment_kind(_evidence_fields())
"""In a document of evidence: its name, its sizes, and the names of states and actions."""
SIZED = environment_kind(_evidence_fields(0))
"""The same, where there may be no finite set of states: their number is then 0."""


def cells_of(at: Fields) -> tuple[int, int]:
    """Return the shape of a table of the cells of a document's environment."""
    return at.environment.horizon, at.environment.n_states

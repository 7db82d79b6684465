"""Environment: the one record of what was learned in, with names for people; and how environments are opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from reprl.errors import DocumentError, InputError, quote
from reprl.mdp.catalogue import make
from reprl.mdp.criterion import Criterion
from reprl.mdp.tabular import Labels, TabularMDP
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel, make_gymnasium
from reprl.sources.parallel import GenerativeModel
from reprl.sources.protocol import is_stationary
from reprl.storage.documents import MAX_TEXT
from reprl.storage.fields import MAPPING, TEXT, Fields, Kind, also, optional, record, row, whole

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
    def units(self) -> tuple[float, float]:
        """What a rescaled reward of 0 and one of 1 stand for: (low, high) in original units, as far as it is known."""
        return self.reward_range or (float(self.labels.reward_map.low), float(self.labels.reward_map.high))

    def original(self, value: float) -> float | None:
        """A difference of values in the rewards' own units; None where those are not known or not others."""
        low, high = self.units
        return None if (low, high) == (0.0, 1.0) else value * (high - low)

    def cell(self, h: int, s: int) -> str:
        """A step, unless there is but one for ever, and a state in words."""
        return self.criterion.cell(h, self.labels.state(s))


def describe(env: TabularMDP | GymnasiumModel) -> Environment:
    """Return the record of an environment."""
    origin, labels = env.origin, env.labels
    units = labels.reward_map if isinstance(env, TabularMDP) else env.reward_map
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
        stationary=is_stationary(env),
        reward_range=(float(units.low), float(units.high)),
    )


def _names(names: Sequence[object], count: int) -> tuple[str, ...]:
    """Names, which nobody has checked yet, as texts, if there is one for each."""
    return tuple(map(str, names)) if len(names) == count else ()


def open_environment(
    env: Any,
    horizon: int | None = None,
    reward_range: tuple[float, float] | None = None,
    discount: float | None = None,
) -> TabularMDP | GymnasiumModel:
    """Return the environment that ``reprl.learn`` would learn in; see there."""
    if isinstance(env, TabularMDP | GymnasiumModel):
        given = (("horizon", horizon), ("reward_range", reward_range))
        for name, value in (*given, *env.criterion.either((), (("discount", discount),))):
            if value is not None:
                raise InputError(f"{name} must be left out for an environment that has one, got {quote(value)}")
        return env if discount is None else _discounted(env, discount)
    if discount is not None:
        if isinstance(env, str):
            options = {"discount": discount} | ({} if reward_range is None else {"reward_range": reward_range})
            return make(env, horizon, **options)
        length = Criterion.of(1, discount).episode_length if horizon is None else horizon
        return _discounted(open_environment(env, length, reward_range), discount)
    if not isinstance(env, str):
        if not (callable(env) or hasattr(env, "reset")):
            allowed = "a TabularMDP, a GymnasiumModel, an id, or a gymnasium.Env or a factory of one"
            raise InputError(f"env must be {allowed}, got {quote(env)}")
        return make_gymnasium(env, horizon, reward_range=reward_range)
    return make(env, horizon, **({} if reward_range is None else {"reward_range": reward_range}))


def _discounted(env: TabularMDP | GymnasiumModel, discount: float) -> TabularMDP | GymnasiumModel:
    """Return an environment that has a horizon without one; episodes are as long as the horizon says."""
    return env.discounted(discount, env.horizon)


def episode_steps(env: TabularMDP | GymnasiumModel) -> int:
    """Return how many steps an episode of an environment has."""
    return env.episodes.horizon if isinstance(env, TabularMDP) else env.horizon


@contextmanager
def fresh_model(
    env: TabularMDP | GymnasiumModel, access: str, data_seed: int
) -> Iterator[GenerativeModel | EpisodicModel | GymnasiumModel]:
    """Open an environment with a private data seed and an empty ledger; close what was opened for it."""
    if isinstance(env, TabularMDP):
        yield GenerativeModel(env, data_seed) if access == "generative" else EpisodicModel(env, data_seed)
        return
    check_access(env, access, quote(env))
    model = env.for_run(data_seed)
    try:
        yield model
    finally:
        if model.reopens:  # one that came open stays so
            model.close()


def check_access(env: TabularMDP | GymnasiumModel, access: str, whom: str) -> None:
    """Refuse to sample a black box in parallel."""
    if access == "generative" and isinstance(env, GymnasiumModel):
        raise InputError(f"access must be 'episodic' for a black box, got 'generative' for {whom}")


def printable_labels(labels: Labels) -> Labels:
    """Bring names, which nobody has checked yet, to what readers accept: short, and printable in one line."""

    def text(name: object) -> str:
        return "".join(x if x.isprintable() else " " for x in str(name))[:MAX_TEXT]

    return Labels(
        name=text(labels.name),
        description=text(labels.description),
        states=tuple(map(text, labels.states)),
        actions=tuple(map(text, labels.actions)),
        grid=None if labels.grid is None else (int(labels.grid[0]), int(labels.grid[1])),
    )


def label_fields(text: Kind, n_states: Any, n_actions: Any = None) -> dict[str, Kind]:
    """Return the fields of names in a document, for so many states and actions; None where that is not known."""
    return {
        "name": text,
        "description": text,
        "states": _names_of(text, n_states),
        "actions": _names_of(text, n_actions),
        "grid": optional(row("[rows, columns] or null", whole(1, None), whole(1, None))),
    }


def _names_of(text: Kind, count: Any) -> Kind:
    def read(where: str, value: Any, at: Fields) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise DocumentError(f"{where} must be a list of texts, got {quote(value)}")
        if value and at(count) not in (None, len(value)):
            raise DocumentError(f"{where} must be {at(count)} texts or none, got {len(value)}")
        return tuple(text.read(f"{where}[{i}]", item, at) for i, item in enumerate(value))

    return Kind(read)


def _evidence_fields() -> dict[str, Kind]:
    names = label_fields(TEXT, lambda at: at.n_states, lambda at: at.n_actions)
    del names["description"]
    names["grid"] = also(
        names["grid"], lambda grid, at: max(grid) <= at.n_states, lambda at: f"at most {at.n_states} by {at.n_states}"
    )
    sizes = {name: whole(1) for name in SIZES}
    return {"id": optional(TEXT), "options": MAPPING, **sizes, "labels": record(Labels, names)}


def _make_environment(horizon: int, discount: float | None = None, **others: Any) -> Environment:
    return Environment(criterion=Criterion.of(horizon, discount), **others)


def environment_kind(table: Mapping[str, Kind]) -> Kind:
    """Return an environment in a document with these fields."""
    return record(_make_environment, table)


ENVIRONMENT = environment_kind(_evidence_fields())
"""In a document of evidence: its name, its sizes, and the names of states and actions."""


def cells_of(at: Fields) -> tuple[int, int]:
    """Return the shape of a table of the cells of a document's environment."""
    return at.environment.horizon, at.environment.n_states

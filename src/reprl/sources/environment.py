"""Environment: the one record of what was learned in, with names for people; and how environments are opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from reprl.errors import DocumentError, InputError, check_int, quote
from reprl.mdp.catalogue import make
from reprl.mdp.criterion import Criterion
from reprl.mdp.tabular import Labels, TabularMDP
from reprl.sources.episodes import EpisodicModel
from reprl.sources.gymnasium.model import GymnasiumModel, make_gymnasium
from reprl.sources.parallel import GenerativeModel
from reprl.sources.protocol import is_stationary
from reprl.storage.documents import MAX_TEXT, Reader, check_text, plain

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

    def to_dict(self) -> dict[str, Any]:
        """Return the part of a JSON document that names an environment and its states and actions."""
        labels = labels_document(self.labels)
        del labels["description"]
        sizes = {name: getattr(self, name) for name in SIZES}
        return {"id": self.id, "options": plain(self.options), **sizes, "labels": labels}

    @classmethod
    def read(cls, document: Reader) -> Environment:
        """Read what ``to_dict`` wrote, from the document whose field "environment" holds it."""
        part = document.part("environment", ("id", "options", *SIZES, "labels"))
        horizon, n_states, n_actions = (part.whole(name, 1) for name in SIZES)
        names = part.part("labels", ("name", "states", "actions", "grid"))
        labels = read_labels(names, n_states, n_actions, check_text)
        if labels.grid is not None and max(labels.grid) > n_states:
            raise DocumentError(f"{names.where('grid')} must be at most {n_states} by {n_states}, got {labels.grid}")
        id, options = part.optional("id", part.text), part.mapping("options")
        return cls(id, options, Criterion(horizon), n_states, n_actions, labels=labels)


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


def labels_document(labels: Labels) -> dict[str, Any]:
    """Return names as a part of a JSON document."""
    return {
        "name": labels.name,
        "description": labels.description,
        "states": list(labels.states),
        "actions": list(labels.actions),
        "grid": None if labels.grid is None else [int(length) for length in labels.grid],
    }


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


def read_labels(names: Reader, n_states: int, n_actions: int | None, check: Callable[[str, object], str]) -> Labels:
    """Read names, with or without a description.

    Args:
        names: what ``labels_document`` wrote.
        n_states: how many states there are to name.
        n_actions: how many actions; None where that is not known.
        check: what a text must be.
    """
    return Labels(
        name=check(names.where("name"), names["name"]),
        description=check(names.where("description"), names.document.get("description", "")),
        states=_read_texts(names, "states", n_states, check),
        actions=_read_texts(names, "actions", n_actions, check),
        grid=names.optional("grid", lambda field: _read_grid(names, field)),
    )


def _read_texts(names: Reader, field: str, count: int | None, check: Callable[[str, object], str]) -> tuple[str, ...]:
    where, value = names.where(field), names[field]
    if not isinstance(value, list):
        raise DocumentError(f"{where} must be a list of texts, got {quote(value)}")
    if value and count is not None and len(value) != count:
        raise DocumentError(f"{where} must be {count} texts or none, got {len(value)}")
    return tuple(check(f"{where}[{i}]", item) for i, item in enumerate(value))


def _read_grid(names: Reader, field: str) -> tuple[int, int]:
    where, shape = names.where(field), names[field]
    if not isinstance(shape, list) or len(shape) != 2:
        raise DocumentError(f"{where} must be [rows, columns] or null, got {quote(shape)}")
    return check_int(where, shape[0], 1), check_int(where, shape[1], 1)

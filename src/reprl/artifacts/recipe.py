"""Recipe: everything that two teams must share to arrive at the same policy from their own data."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, cast

from reprl.artifacts.kinds import STREAM
from reprl.errors import DocumentError, InputError, ReprlError, check_choice, check_int, quote
from reprl.execution.settings import Progress
from reprl.learning.baseline import resolve_baseline
from reprl.learning.learner import learn_as
from reprl.learning.logged import learn_spec
from reprl.learning.result import LearnResult
from reprl.learning.settings import Settings
from reprl.mdp.catalogue import PREFIX
from reprl.mdp.criterion import MOST
from reprl.mdp.environment import SIZES, environment_kind
from reprl.mdp.labels import Labels
from reprl.mdp.rows import check_entries, limited
from reprl.mdp.tabular import TabularMDP
from reprl.sources.environment import Environment, describe, make, open_environment
from reprl.sources.gymnasium.model import GymnasiumModel, would_import
from reprl.sources.logs.spec import ID, LogSpec
from reprl.sources.protocol import ACCESSES
from reprl.storage import fields as f
from reprl.storage.documents import digest, naming, plain
from reprl.storage.fields import Declared, Document, Fields, Kind, read_fields, with_fields

SMALL = 1 << 22
_SMALL_WORK = 1 << 28
"""Largest number of entries, and of outcomes over all steps, of an MDP that is built for a recipe of unknown origin."""
_RESERVED = ("id", "horizon", "data_seed")


def package_version() -> str:
    """Return this release of reprl."""
    from reprl import __version__

    return __version__


def _write_settings(settings: Settings) -> dict[str, Any]:
    """The fields in JSON's types, so that 1 and 1.0, or a numpy number, give one digest."""
    kinds = {field.name: float if "float" in str(field.type) else int for field in dataclasses.fields(Settings)}
    return {
        name: plain(value) if value is None or isinstance(value, str | bool | tuple) else kinds[name](value)
        for name, value in settings.to_dict().items()
    }


def _read_settings(where: str, value: Any, at: Fields) -> Settings:
    given = read_fields(where, value, {field.name: f.ANYTHING for field in dataclasses.fields(Settings)})
    with naming(f"{where}."):
        if isinstance(given["preference"], dict):
            raise DocumentError(
                f"preference must be null, 'shared' or a list of all actions, got {quote(given['preference'])}"
            )
        if given["epsilon"] is None and given["quality"] is None:
            raise DocumentError("epsilon must be a number where there is no quality, got None")
        check_choice("access", given["access"], ACCESSES)
        settings = Settings(**given).resolve_actions((), at.environment.n_actions)
        settings.check_accuracy(at.environment.criterion)
        return resolve_baseline(settings, at.environment)


def _read_options(where: str, value: Any, at: Fields) -> Any:
    options = f.MAPPING.read(where, value, at)
    for name in options:
        if name in _RESERVED:
            raise DocumentError(f"{where} must not hold {', '.join(_RESERVED)}; got {quote(name)}")
    if at.id is None and options:
        raise DocumentError(f"{where} must be empty where id is null, got {quote(options)}")
    return options


_SIZE = f.whole(1, 2**31)
_ENVIRONMENT = {
    "id": f.optional(f.printable()),
    "options": f.MAPPING._replace(read=_read_options),
    "horizon": f.also(_SIZE, lambda h, at: h == 1 or at.discount is None, lambda at: "1 for a discounted environment"),
    "n_states": _SIZE,
    "n_actions": _SIZE,
    "digest": f.SHA256,
    "reward_range": f.optional(
        f.also(
            f.many(f.real(-math.inf), 2), lambda ends, at: ends[0] < ends[1], lambda at: "[low, high] with low < high"
        )
    ),
    "discount": f.optional(f.real(0.0, MOST, open_low=True)),
}


@dataclass(frozen=True, kw_only=True)
class Recipe(Declared):
    """Everything that a second team needs to repeat a run on its own data: environment, settings and shared seed.

    Guarantee:
        Two runs of one recipe on independent data agree as the guarantee in their receipts says. Equal digests: equal
        environment, settings, shared seed and streams.
    """

    _limit = 1 << 22
    environment: Annotated[Environment, environment_kind(_ENVIRONMENT)]
    """What is learned, with a digest of its dynamics or spaces."""
    settings: Annotated[Settings, Kind(_read_settings, _write_settings)]
    """How it is learned."""
    shared_seed: Annotated[int, f.SEED]
    """ξ, public."""
    package_version: Annotated[str, f.printable()]
    """The release that wrote the recipe: for people, neither checked nor hashed."""

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Settings):
            raise InputError(f"recipe settings must be a Settings, got {quote(self.settings)}")
        if not isinstance(self.environment, Environment):
            raise InputError(f"recipe environment must be an Environment, got {quote(self.environment)}")
        check_int("recipe shared_seed", self.shared_seed, 0, 2**64 - 1)

    @classmethod
    def of(cls, result: LearnResult) -> Recipe:
        """Return the recipe that a run followed."""
        return cls.plan(result.environment, result.settings, result.shared_seed)

    @classmethod
    def begun(cls, work: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a run of ``reprl.learn`` that has begun, from what its checkpoint says of its work."""
        around = Fields("", {}, {}, None)
        place: Environment = environment_kind(_ENVIRONMENT).read("work environment", work["environment"], around)
        settings = Settings(**work["settings"])  # resolved already, by what the environment said of its steps
        return cls.plan(place._replace(stationary=cast(Any, settings.stationary)), settings, work["shared_seed"])

    @classmethod
    def plan(cls, environment: Environment, settings: Settings, shared_seed: int) -> Recipe:
        """Return the recipe of a run that is still to be made."""
        settings = settings.resolve_actions(environment.labels.actions, environment.n_actions).resolve_stationarity(
            environment
        )
        settings = resolve_baseline(settings, environment)
        settings.check_accuracy(environment.criterion)
        return cls(
            environment=_portable(environment),
            settings=settings,
            shared_seed=check_int("shared_seed", shared_seed, 0, 2**64 - 1),
            package_version=package_version(),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of everything but the package version."""
        return digest({name: value for name, value in self.to_dict().items() if name != "package_version"})

    def make(
        self, env: TabularMDP | GymnasiumModel | str | Any = None, *, allow: Sequence[str] = ()
    ) -> TabularMDP | GymnasiumModel:
        """Build the environment, or take one that was built by hand, and check that it is the recipe's.

        Args:
            env: needed where the recipe has no id, as for ``reprl.learn``; horizon, range of rewards and discount are
                the recipe's. Otherwise None for ``reprl.make``.
            allow: modules or packages that may be imported for it, beyond reprl, Gymnasium and what is imported
                already: a recipe may come from a stranger, and to import a module is to run it.
        """
        wanted, given = self.environment, env is not None
        if self.of_log:
            raise InputError(
                f"recipe environment.id {ID!r} stands for a log, to be given as log (--log FILE), got none"
            )
        if env is None:
            check_allowed(wanted.id, allow)
            env = _make(wanted)
        if not isinstance(env, TabularMDP | GymnasiumModel):
            length = wanted.horizon if wanted.discount is None else None
            named = isinstance(env, str) and not env.startswith(PREFIX)  # of the catalogue, which has ranges of its own
            env = open_environment(env, length, None if named else wanted.reward_range, wanted.discount)
        found = describe(env)
        for name in (*SIZES, *(() if wanted.reward_range is None else ("reward_range",)), "discount", "digest"):
            recorded, actual = getattr(wanted, name), getattr(found, name)
            if recorded != actual:
                source = "the environment given" if given else f"{wanted.id} built here"
                raise InputError(
                    f"{source} must be the recipe's, with environment.{name} {_short(recorded)}, got {_short(actual)}"
                )
        return env

    def make_small(self) -> TabularMDP | GymnasiumModel:
        """As ``make``, for a recipe from a stranger: what is large is refused before memory is taken."""
        place = self.environment
        with limited(SMALL):
            check_entries("an unknown recipe's world (H·S·A)", place.horizon * place.n_states * place.n_actions)
            world = self.make()
        if isinstance(world, TabularMDP) and world.horizon * world.probability.size > _SMALL_WORK:
            raise InputError(f"an unknown recipe's world must have few steps, got {world.horizon}")
        return world

    def learn(
        self,
        *,
        data_seed: int | None = None,
        workers: int = 1,
        progress: bool | Progress = False,
        max_samples: int | None = None,
        env: TabularMDP | GymnasiumModel | str | Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        allow: Sequence[str] = (),
    ) -> LearnResult:
        """Run the recipe on fresh data; the arguments are those of ``reprl.learn``, env and allow those of ``make``.

        Guarantee:
            As in the result.

        Randomness:
            Shared, at SharedKey(shared_seed). Data: streams of data_seed only.
        """
        return learn_as(
            self.make(env, allow=allow),
            self.settings,
            shared_seed=self.shared_seed,
            data_seed=data_seed,
            workers=workers,
            progress=progress,
            max_samples=max_samples,
            checkpoint=checkpoint,
            timeout=None,
        )

    @property
    def of_log(self) -> bool:
        """Whether it is the recipe of a log."""
        return self.environment.id == ID

    def learn_log(
        self,
        log: Any,
        *,
        columns: Mapping[str, str | None] | None = None,
        progress: bool | Progress = False,
    ) -> LearnResult:
        """Run the recipe of a log on another log: labels, horizon, rewards and thresholds are the recipe's.

        Args:
            log: as for ``reprl.learn_log``.
            columns: where this log's columns are, if not where the recipe says; names are no part of the result.
            progress: the same.

        Guarantee:
            As in the result. ρ is about logs that have no episode in common.

        Randomness:
            Shared, at SharedKey(shared_seed). Data: the log, and streams of a hash of it.
        """
        if not self.of_log:
            raise InputError(f"recipe environment.id must be {ID!r} to learn from a log, got {self.environment.id!r}")
        with naming("recipe environment: "):
            spec = LogSpec.of(self.environment)
        published = self.environment.options["columns"]
        return learn_spec(
            log,
            spec,
            self.settings,
            shared_seed=self.shared_seed,
            columns={**_renamed(published), **(columns or {})},
            published=published,
            progress=progress,
        )


def _renamed(columns: Mapping[str, str]) -> dict[str, str]:
    """The columns that are not called by their role: the others are found, or not there, without being told of."""
    return {role: name for role, name in columns.items() if role != name}


def _short(value: object) -> str:
    """A number, two, or enough of a digest to tell it by."""
    return str(value)[:12] if isinstance(value, str) else str(value)


def _portable(environment: Environment) -> Environment:
    """Bring options to JSON's types, without what the document leaves out; other options count as built by hand."""
    environment = environment._replace(labels=Labels(), stationary=False)
    try:
        options = plain(environment.options, strict=True)
    except TypeError:
        return environment._replace(id=None, options={})
    return environment._replace(options=options)


def check_allowed(id: str | None, allow: Sequence[str]) -> None:
    """Refuse an id whose opening would import a module that is not allowed, and an environment without an id."""
    if id is None:
        raise InputError(
            "recipe environment.id must name an environment, got null: this one was built by hand, pass it as env "
            "(--env file.py:name)"
        )
    if isinstance(allow, str) or not all(isinstance(name, str) for name in allow):
        raise InputError(f"allow must be a list of names of modules, got {quote(allow)}")
    module = would_import(id) if id.startswith(PREFIX) else None
    if module is not None and not any(module == name or module.startswith(f"{name}.") for name in allow):
        raise InputError(
            f"recipe environment {quote(id)} would import {quote(module)} and so run its code: allow it if you trust "
            f"it (--allow {module})"
        )


def _make(wanted: Environment) -> TabularMDP | GymnasiumModel:
    with naming("recipe environment: "):
        try:
            return make(str(wanted.id), wanted.horizon, **wanted.options)
        except ReprlError:
            raise
        except Exception as error:  # whatever a Gymnasium environment raises for options it cannot take
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise InputError(f"options must suit {wanted.id}, got {quote(wanted.options)} ({reason})") from None


Recipe._document = Document("recipe", "reprl-recipe", 1, Recipe, with_fields(Recipe, shared_seed=STREAM))

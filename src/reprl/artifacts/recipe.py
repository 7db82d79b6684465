"""Recipe: everything that two teams must share to arrive at the same policy from their own data."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.artifacts.choices import Candidate, Chosen
from reprl.coupling.custom import custom_name
from reprl.coupling.spec import CouplingSpec
from reprl.errors import DocumentError, InputError, ReprlError, check_int, quote
from reprl.learning.learner import learn
from reprl.learning.logged import learn_spec
from reprl.learning.result import LearnResult
from reprl.learning.settings import Settings
from reprl.mdp.catalogue import PREFIX, make
from reprl.mdp.criterion import MOST, Criterion
from reprl.mdp.tabular import Labels, TabularMDP
from reprl.paper.constants import DEFAULT_SCALE
from reprl.randomness import STREAM_VERSION
from reprl.sources.environment import SIZES, Environment, describe
from reprl.sources.gymnasium.model import would_import
from reprl.sources.logs.spec import ID, LogSpec
from reprl.storage.documents import Reader, digest, load, naming, plain, pretty
from reprl.storage.files import write_atomic

if TYPE_CHECKING:
    from reprl.sources.gymnasium.model import GymnasiumModel

_FORMAT = "reprl-recipe"
_VERSION = 2
_MAX_BYTES = 1 << 22
_NAMES = ("environment", "settings", "resolved", "shared_seed", "candidate", "stream_version", "package_version")
_UNHASHED = ("candidate", "package_version")
"""Fields in which two runs of one recipe may differ."""
_LATER: dict[str, Any] = {"stationary": False, "scale": DEFAULT_SCALE, "shape": "auto"}
"""Fields of the settings that recipes did not always have, and what one without them means: they are written only where
they say something else, so that older recipes keep their meaning and their digests."""
_PLACE = ("id", "options", *SIZES, "digest")
_UNITS, _DISCOUNT = "reward_range", "discount"
"""Fields of the environment that recipes did not always have, so no digest depends on them: the environment's own one
covers the discount, the range of a black box, and rescaled rewards where dynamics are known."""
_RESERVED = ("id", "horizon", "data_seed")


def package_version() -> str:
    """Return this release of reprl."""
    from reprl import __version__

    return __version__


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A run without its data: publish it with the policy, and anyone can check that the policy replicates.

    Guarantee:
        Two runs of one recipe on independent data agree as the guarantee in their receipts says. Equal digests: equal
        environment, settings, shared seed and streams.
    """

    environment: Environment
    """What is learned, with a digest of its dynamics or spaces."""
    settings: Settings
    """How it is learned; "auto" and None stand for choices that the sizes fix."""
    shared_seed: int
    """ξ, public."""
    package_version: str
    """The release that wrote the recipe: for people, neither checked nor hashed."""
    candidate: Candidate | None = None
    """What a canonical run has chosen, for a second team to follow; not hashed, as two runs of one recipe may choose
    different ones. None beforehand, and for the rule "sampled"."""

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not isinstance(self.settings, Settings):
            raise InputError(f"recipe settings must be a Settings, got {quote(self.settings)}")
        if not isinstance(self.environment, Environment):
            raise InputError(f"recipe environment must be an Environment, got {quote(self.environment)}")
        check_int("recipe shared_seed", self.shared_seed, 0, 2**64 - 1)
        if self.candidate is not None:
            place = self.environment
            with naming("recipe "):
                shape = (place.horizon, place.n_states, place.n_actions)
                self.candidate.check(shape, self.settings, self.shared_seed, place.criterion)

    @classmethod
    def of(cls, result: LearnResult) -> Recipe:
        """Return the recipe that a run followed."""
        planned = cls.plan(result.environment, result.settings, result.shared_seed)
        chosen = Chosen.of(result)
        return planned if chosen is None else replace(planned, candidate=chosen.published)

    @classmethod
    def plan(cls, environment: Environment, settings: Settings, shared_seed: int) -> Recipe:
        """Return the recipe of a run that is still to be made."""
        settings = settings.numbered(environment.labels.actions, environment.n_actions).pooling(environment)
        environment.criterion.check_epsilon(settings.epsilon)
        return cls(
            environment=_portable(environment),
            settings=settings,
            shared_seed=check_int("shared_seed", shared_seed, 0, 2**64 - 1),
            package_version=package_version(),
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of everything but the candidate, the package version and the reward range."""
        document = {name: value for name, value in self.to_dict().items() if name not in _UNHASHED}
        document["environment"] = {name: document["environment"][name] for name in _PLACE}
        return digest(document)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "environment": plain({name: getattr(self.environment, name) for name in self._place}),
            "settings": _settings(self.settings),
            "resolved": _resolve(self.settings, self.environment),
            "shared_seed": self.shared_seed,
            "candidate": None if self.candidate is None else self.candidate._asdict(),
            "stream_version": STREAM_VERSION,
            "package_version": self.package_version,
        }

    @property
    def _place(self) -> tuple[str, ...]:
        """The fields of the environment that the document has."""
        return (*_PLACE, *(name for name in (_UNITS, _DISCOUNT) if getattr(self.environment, name) is not None))

    def to_json(self) -> str:
        """Return the document as text."""
        return pretty(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Recipe:
        """Read what ``to_json`` wrote; anything that this release cannot honour is refused, naming the field."""
        document = Reader.open(text, "recipe", _FORMAT, _VERSION, _NAMES)
        document.release("stream_version", STREAM_VERSION)
        environment = _read_environment(document)
        recipe = cls(
            environment=environment,
            settings=_read_settings(document, environment),
            shared_seed=document.whole("shared_seed", 0, 2**64 - 1),
            package_version=document.printable("package_version"),
            candidate=document.optional("candidate", lambda x: Candidate.read(document.part(x, Candidate._fields))),
        )
        _check_resolved(document, "resolved", _resolve(recipe.settings, recipe.environment))
        return recipe

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the recipe to path, all or nothing."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recipe:
        """Read a recipe that ``save`` wrote."""
        return load(path, cls.from_json, _MAX_BYTES)

    def make(
        self, env: TabularMDP | GymnasiumModel | None = None, *, allow: Sequence[str] = ()
    ) -> TabularMDP | GymnasiumModel:
        """Build the environment, or take one that was built by hand, and check that it is the recipe's.

        Args:
            env: needed where the recipe has no id; otherwise None for ``reprl.make``.
            allow: modules or packages that may be imported for it, beyond reprl, Gymnasium and what is imported
                already: a recipe may come from a stranger, and to import a module is to run it.
        """
        wanted, given = self.environment, env is not None
        if self.of_log:
            raise InputError(
                f"recipe environment.id {ID!r} stands for a log, to be given as log (--log FILE), got none"
            )
        if env is None:
            if wanted.id is None:
                raise InputError(
                    "recipe environment.id must name an environment, got null: this one was built by hand, pass it as "
                    "env (--env file.py:name)"
                )
            _check_allowed(str(wanted.id), allow)
            env = _make(wanted)
        found = describe(env)
        for name in (*SIZES, *(() if wanted.reward_range is None else (_UNITS,)), _DISCOUNT, "digest"):
            recorded, actual = getattr(wanted, name), getattr(found, name)
            if recorded != actual:
                source = "the environment given" if given else f"{wanted.id} built here"
                raise InputError(
                    f"{source} must be the recipe's, with environment.{name} {_short(recorded)}, got {_short(actual)}"
                )
        return env

    def learn(
        self,
        *,
        data_seed: int | None = None,
        workers: int = 1,
        progress: bool = False,
        max_samples: int | None = None,
        env: TabularMDP | GymnasiumModel | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        afresh: bool = False,
        allow: Sequence[str] = (),
        certify: bool = False,
    ) -> LearnResult:
        """Run the recipe on fresh data; the arguments are those of ``reprl.learn``, env and allow those of ``make``.

        The candidate that the recipe publishes is followed, which spares the choice, often the closest call of all;
        afresh=True chooses among all of them again, as the definition of replicability has it.

        Guarantee:
            As in the result. ρ speaks of runs that choose afresh; one that follows says so.

        Randomness:
            Shared, at SharedKey(shared_seed). Data: streams of data_seed only.
        """
        options: dict[str, Any] = self.settings.to_dict()
        return learn(
            self.make(env, allow=allow),
            shared_seed=self.shared_seed,
            data_seed=data_seed,
            workers=workers,
            progress=progress,
            max_samples=max_samples,
            checkpoint=checkpoint,
            certify=certify,
            candidate=None if afresh or self.candidate is None else (self.candidate.kind, self.candidate.number),
            **options,
        )

    @property
    def of_log(self) -> bool:
        """Whether it is the recipe of a log."""
        return self.environment.id == ID

    def learn_log(
        self, log: Any, *, columns: Mapping[str, str | None] | None = None, afresh: bool = False
    ) -> LearnResult:
        """Run the recipe of a log on another log: labels, horizon, rewards and thresholds are the recipe's.

        Args:
            log: as for ``reprl.learn_log``.
            columns: where this log's columns are, if not where the recipe says; names are no part of the result.
            afresh: choose among all candidates again, as the definition of replicability has it.

        Guarantee:
            As in the result. ρ speaks of logs that have no episode in common.

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
            candidate=None if afresh or self.candidate is None else (self.candidate.kind, self.candidate.number),
        )


def _renamed(columns: Mapping[str, str]) -> dict[str, str]:
    """The columns that are not called by their role: the others are found, or not there, without being told of."""
    return {role: name for role, name in columns.items() if role != name}


def _short(value: object) -> str:
    """A number, two, or enough of a digest to tell it by."""
    return str(value)[:12] if isinstance(value, str) else str(value)


def _settings(settings: Settings) -> dict[str, Any]:
    """The fields in JSON's types, so that 1 and 1.0, or a numpy number, give one digest."""
    kinds = {field.name: float if field.type == "float" else int for field in fields(Settings)}
    return {
        name: custom_name(value)
        if callable(value)
        else plain(value)
        if value is None or isinstance(value, str | bool | tuple)
        else kinds[name](value)
        for name, value in settings.to_dict().items()
        if name not in _LATER or value != _LATER[name]
    }


def _resolve(settings: Settings, environment: Environment) -> dict[str, Any]:
    """What "auto" chose for these sizes: for arms and an episodic run's partition; canonically, for whole policies."""
    if settings.rule == "canonical":
        whole = CouplingSpec.auto(environment.horizon * environment.n_states, environment.n_actions)
        return {"coupling": whole.name, "block": whole.block, "partition": None}
    arms = settings.coupling_spec(environment.n_states, environment.n_actions)
    chosen: dict[str, Any] = {"coupling": arms.name, "block": arms.block, "partition": None}
    if settings.access == "episodic":
        sets = settings.coupling_spec(environment.n_states * environment.horizon, 2)
        chosen["partition"] = {"coupling": sets.name, "block": sets.block}
    return chosen


def _check_resolved(document: Reader, name: str, chosen: dict[str, Any]) -> None:
    given = document.part(name, tuple(chosen))
    for field, choice in chosen.items():
        if isinstance(choice, dict):
            _check_resolved(given, field, choice)
        elif type(given[field]) is not type(choice) or given[field] != choice:
            raise DocumentError(
                f"{given.where(field)} must be {choice!r}, as this release chooses, got {quote(given[field])}"
            )


def _portable(environment: Environment) -> Environment:
    """Bring options to JSON's types, without what the document leaves out; other options count as built by hand."""
    environment = environment._replace(labels=Labels(), stationary=False)
    try:
        options = plain(environment.options, strict=True)
    except TypeError:
        return environment._replace(id=None, options={})
    return environment._replace(options=options)


def _check_allowed(id: str, allow: Sequence[str]) -> None:
    """Refuse an id whose opening would import what nobody has allowed."""
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


def _read_environment(document: Reader) -> Environment:
    stated = document["environment"] if isinstance(document["environment"], dict) else {}
    later = [name for name in (_UNITS, _DISCOUNT) if name in stated]
    given = document.part("environment", (*_PLACE, *later))
    id, options = given.optional("id", given.printable), given.mapping("options")
    for name in options:
        if name in _RESERVED:
            raise DocumentError(f"{given.where('options')} must not hold {', '.join(_RESERVED)}; got {quote(name)}")
    if id is None and options:
        raise DocumentError(f"{given.where('options')} must be empty where id is null, got {quote(options)}")
    horizon, n_states, n_actions = (given.whole(name, 1, 2**31) for name in SIZES)
    units = discount = None
    if _DISCOUNT in later:
        discount = given.real(_DISCOUNT, 0.0, MOST, open_low=True)
        if horizon != 1:
            raise DocumentError(f"{given.where('horizon')} must be 1 for a discounted environment, got {horizon}")
    if _UNITS in later:
        low, high = given.pair(_UNITS, -math.inf, math.inf)
        if not low < high:
            raise DocumentError(
                f"{given.where(_UNITS)} must be [low, high] with low < high, got {quote(given[_UNITS])}"
            )
        units = (low, high)
    place = Environment(id, options, Criterion.of(horizon, discount), n_states, n_actions, given.digest("digest"))
    return place._replace(reward_range=units)


def _read_settings(document: Reader, environment: Environment) -> Settings:
    stated = document["settings"]
    later: dict[str, Any] = {
        name: value for name, value in _LATER.items() if isinstance(stated, dict) and name not in stated
    }
    given = document.part("settings", [field.name for field in fields(Settings) if field.name not in later])
    with naming("recipe settings."):
        if isinstance(given["preference"], dict):
            raise DocumentError(
                f"preference must be null, 'shared' or a list of all actions, got {quote(given['preference'])}"
            )
        settings = Settings(**given.document, **later).numbered((), environment.n_actions)
        environment.criterion.check_epsilon(settings.epsilon)
        return settings

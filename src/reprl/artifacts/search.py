"""Recipe and receipt of a search, and what a folder holds of one."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, NamedTuple

from reprl.artifacts.kinds import GUARANTEE, STREAM
from reprl.artifacts.receipt import TIMINGS, commit_data_seed
from reprl.artifacts.recipe import check_allowed, package_version
from reprl.errors import DocumentError, InputError, quote
from reprl.execution.settings import Progress
from reprl.execution.terminal import open_card, visible
from reprl.guarantee import Guarantee
from reprl.learning.search import learn_search, open_returns, policy_name
from reprl.learning.search_result import (
    Estimate,
    RungRecord,
    SearchDetails,
    SearchRecord,
    SearchResult,
    first_difference,
)
from reprl.mdp.policy import Policy
from reprl.randomness import fresh_seed
from reprl.search.families import Named
from reprl.search.settings import POLICIES, SearchSettings
from reprl.sources.returns import ReturnModel
from reprl.storage import fields as f
from reprl.storage.checkpoints import recall
from reprl.storage.documents import digest, naming, plain
from reprl.storage.fields import Declared, Document, Kind, Sealed, read_fields, with_fields

_REAL = f.real(-math.inf)
_RANGE = f.many(_REAL, 2)


class Place(NamedTuple):
    """The environment of a search, as its recipe names it."""

    name: Annotated[str, f.printable()]
    id: Annotated[str | None, f.optional(f.printable())]
    """"gym:" and a Gymnasium id; None for an environment that was built by hand."""
    options: Mapping[str, Any]
    horizon: Annotated[int, f.whole(1, 10**7)]
    reward_range: Annotated[tuple[float, float] | None, f.optional(_RANGE)]
    return_range: Annotated[tuple[float, float] | None, f.optional(_RANGE)]
    digest: Annotated[str, f.SHA256]
    """Of spaces, limits and ranges."""


def _write_settings(settings: SearchSettings) -> dict[str, Any]:
    kinds = {field.name: float if field.type == "float" else None for field in fields(SearchSettings)}
    given = {**settings.to_dict(), "policy": policy_name(settings.policy)}
    return {name: float(x) if kinds[name] is float else plain(x) for name, x in given.items()}


def _read_settings(where: str, value: Any, at: Any) -> SearchSettings:
    given = read_fields(where, value, {field.name: f.ANYTHING for field in fields(SearchSettings)})
    policy = given["policy"]
    if policy is not None and policy not in POLICIES:
        policy = Named(f.printable().read(f"{where}.policy", policy, at))
    for name, kind in (("observation_range", f.many(f.many(_REAL), 2)), ("return_range", _RANGE)):
        given[name] = f.optional(kind).read(f"{where}.{name}", given[name], at)
    with naming(f"{where}."):
        return SearchSettings(**{**given, "policy": policy})


@dataclass(frozen=True, kw_only=True)
class SearchRecipe(Declared):
    """Everything that a second team needs to repeat a search on its own data.

    Guarantee:
        Two runs of one recipe on independent data agree as the guarantee in their receipts says.
    """

    _limit = 1 << 22
    environment: Annotated[Place, f.record(Place)]
    settings: Annotated[SearchSettings, Kind(_read_settings, _write_settings)]
    shared_seed: Annotated[int, f.SEED]
    """ξ, public."""
    package_version: Annotated[str, f.printable()]
    """The release that wrote the recipe: for people, neither checked nor hashed."""

    @classmethod
    def of(cls, result: SearchResult) -> SearchRecipe:
        """Return the recipe that a run followed."""
        return cls._on(result.record, result.record.environment, result.settings, result.shared_seed)

    @classmethod
    def plan(cls, model: ReturnModel, settings: SearchSettings, shared_seed: int) -> SearchRecipe:
        """Return the recipe of a run that is still to be made."""
        return cls._on(model, model.title, settings, shared_seed)

    @classmethod
    def _on(
        cls, made: ReturnModel | SearchRecord, name: str, settings: SearchSettings, shared_seed: int
    ) -> SearchRecipe:
        options: Any = None
        if made.origin is not None:
            try:
                options = plain(made.origin.options, strict=True)
            except TypeError:
                options = None
        paid, earned = (None if x is None else (x.low, x.high) for x in (made.reward_range, made.return_range))
        place = Place(
            name=name,
            id=None if options is None else name,
            options=options or {},
            horizon=made.horizon,
            reward_range=paid,
            return_range=earned,
            digest=made.digest,
        )
        return cls(environment=place, settings=settings, shared_seed=shared_seed, package_version=package_version())

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of everything but the package version."""
        return digest({name: value for name, value in self.to_dict().items() if name != "package_version"})

    def make(self, env: Any = None, *, allow: Sequence[str] = (), data_seed: int | None = None) -> ReturnModel:
        """Open the environment, or take one that was built by hand, and check that it is the recipe's.

        Args:
            env: as for ``reprl.learn``; needed where the recipe has no id.
            allow: modules that may be imported for it, as in ``Recipe.make``.
            data_seed: of the samples; None draws one.
        """
        wanted = self.environment
        if env is None:
            check_allowed(wanted.id, allow)
        given = self.settings.return_range
        source = wanted.id if env is None else env
        seed = fresh_seed() if data_seed is None else data_seed
        made = open_returns(source, wanted.horizon, wanted.reward_range, given, seed, dict(wanted.options))
        if made.digest != wanted.digest:
            raise InputError(
                f"{made.title} must be the recipe's environment, with digest {wanted.digest[:12]}, got "
                f"{made.digest[:12]}"
            )
        return made

    def learn(
        self,
        *,
        data_seed: int | None = None,
        workers: int = 1,
        progress: bool | Progress = False,
        max_samples: int | None = None,
        env: Any = None,
        policy: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
        allow: Sequence[str] = (),
    ) -> SearchResult:
        """Run the recipe on fresh data; the arguments are those of ``reprl.learn``, env and allow those of ``make``.

        policy is the family of policies, where it is the user's own and a recipe cannot hold it.
        """
        seed = recall(checkpoint, "data_seed") if data_seed is None else data_seed
        settings = self.settings
        if isinstance(settings.policy, Named):
            if policy is None or policy_name(policy) != settings.policy.name:
                raise InputError(f"policy must be the recipe's family {settings.policy.name}, got {quote(policy)}")
            settings = SearchSettings(**{**settings.to_dict(), "policy": policy})
        model = self.make(env, allow=allow, data_seed=seed)
        how: dict[str, Any] = {"max_samples": max_samples, "workers": workers, "timeout": timeout}
        try:
            return learn_search(model, settings, self.shared_seed, checkpoint=checkpoint, progress=progress, **how)
        finally:
            if model.reopens:
                model.close()


_ESTIMATE = f.record(Estimate, {"mean": _REAL, "low": _REAL, "high": _REAL, "episodes": f.whole()})
_RUNG = f.record(
    RungRecord,
    {
        "rung": f.whole(),
        "level": _REAL,
        "threshold": _REAL,
        "candidate": f.optional(f.whole()),
        "tried": f.whole(),
        "episodes": f.whole(),
        "samples": f.whole(),
        "earned": f.optional(_ESTIMATE),
    },
)
_UNDECIDED_FIELDS = {"candidate": f.whole(), "episodes": f.whole(), "mean": f.optional(_REAL)}


def _read_undecided(where: str, value: Any, at: Any) -> Any:
    from reprl.search.scan import Undecided

    given = read_fields(where, value, _UNDECIDED_FIELDS)
    return Undecided(**{**given, "mean": math.nan if given["mean"] is None else given["mean"]})


_DETAILS = f.record(
    SearchDetails,
    {
        "ladder": f.many(_RUNG),
        "reached": f.FLAG,
        "undecided": f.optional(
            Kind(
                _read_undecided,
                lambda cut: {**cut._asdict(), "mean": cut.mean if math.isfinite(cut.mean) else None},
            )
        ),
        "baseline": f.optional(_ESTIMATE),
        "clipped": f.whole(),
    },
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchReceipt(Sealed):
    """The record of one run of a search."""

    _limit = 1 << 24
    recipe: Annotated[str, f.SHA256]
    """Digest of the recipe."""
    fingerprint: Annotated[str, f.SHA256]
    """Of the policy."""
    samples: int
    """Steps of the environment."""
    episodes: int
    guarantee: Annotated[Guarantee, GUARANTEE]
    details: Annotated[SearchDetails, _DETAILS]
    data_commitment: Annotated[str, f.SHA256]
    """Hash of the recipe and the data seed; never the seed itself."""
    package_version: Annotated[str, f.printable()]
    seconds: Annotated[float, TIMINGS]
    """How long the run took; not part of the digest."""

    @classmethod
    def of(cls, result: SearchResult) -> SearchReceipt:
        """Return the receipt of a run."""
        recipe = result.recipe.digest
        return cls(
            recipe=recipe,
            fingerprint=result.policy.fingerprint,
            samples=result.samples,
            episodes=result.episodes,
            guarantee=result.guarantee,
            details=result.details,
            data_commitment=commit_data_seed(recipe, result.data_seed),
            package_version=package_version(),
            seconds=float(result.seconds),
        )

    def __repr__(self) -> str:
        words = f"{self.guarantee.status}, {self.samples:,} samples, policy {self.fingerprint[:12]}"
        return f"SearchReceipt({words}, recipe {self.recipe[:12]})"


class StoredSearch(NamedTuple):
    """What a folder holds of a search."""

    recipe: SearchRecipe
    receipt: SearchReceipt
    policy: Policy

    @property
    def environment(self) -> str:
        """What was learned in, by name."""
        return self.recipe.environment.name

    def __repr__(self) -> str:
        words = f"{self.receipt.guarantee.status}, {self.receipt.samples:,} samples"
        return f"StoredSearch({visible(self.environment)}: {words}, policy {self.policy.short_fingerprint})"

    def _repr_html_(self) -> str:
        """Show promise, ladder and fingerprint in a notebook."""
        return open_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the three documents of this run."""
        return {"recipe": self.recipe.to_dict(), "receipt": self.receipt.to_dict(), "policy": self.policy.to_dict()}

    def check(self) -> StoredSearch:
        """Return the run if its three parts belong together."""
        if self.receipt.recipe != self.recipe.digest:
            raise DocumentError(f"receipt must belong to its recipe {self.recipe.digest}, got {self.receipt.recipe}")
        if self.receipt.fingerprint != self.policy.fingerprint:
            found = self.receipt.fingerprint
            raise DocumentError(f"receipt fingerprint must be its policy's {self.policy.fingerprint}, got {found}")
        return self


def parted(first: SearchReceipt, second: SearchReceipt) -> list[str]:
    """Return remarks on a comparison of two searches: where they first differ, and premises that fail."""
    notes = []
    if first.recipe != second.recipe:
        notes.append("the two runs followed different recipes")
    elif first.data_commitment == second.data_commitment:
        notes.append("both runs used one data seed: equal policies show determinism, not replicability")
    for name, receipt in (("first", first), ("second", second)):
        if receipt.guarantee.status == "none":
            notes.append(f"nothing is promised of the {name} run: {receipt.guarantee.source}")
    if apart := first_difference(first.details, second.details):
        notes.append(apart)
    statuses = {first.guarantee.status, second.guarantee.status}
    if statuses == {"certified"} and first.recipe == second.recipe and first.fingerprint != second.fingerprint:
        risk = first.guarantee.rho
        notes.append(f"two certified runs differ: a verdict is false, of probability {risk:g} at most")
    return notes


_TABLE = with_fields(SearchRecipe, shared_seed=STREAM)
SearchRecipe._document = Document("recipe", "reprl-search-recipe", 1, SearchRecipe, _TABLE)
_TABLE = with_fields(SearchReceipt, package_version=STREAM, data_commitment={"digest": f.SHA256})
SearchReceipt._document = Document("receipt", "reprl-search-receipt", 1, SearchReceipt, _TABLE)

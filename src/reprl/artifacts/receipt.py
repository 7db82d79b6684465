"""Receipt: what one run of a recipe produced, fixed by the recipe and the data seed but for its timings."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.choices import CERTIFIED, REHEARSAL, STREAM, UNDECIDED, Certified, Chosen, shape_of
from reprl.artifacts.recipe import package_version
from reprl.assurance.coverage import Coverage
from reprl.assurance.practice import Beside, Change, Group, Variant
from reprl.assurance.rehearsal import Rehearsal
from reprl.errors import DocumentError, quote
from reprl.guarantee import PROMISES, Guarantee
from reprl.learning.result import LearnResult
from reprl.learning.settings import RULES
from reprl.mdp.basis import DEFAULT
from reprl.mdp.counts import Counts
from reprl.mdp.labels import Labels, label_fields, printable_labels
from reprl.mdp.policy import Policy
from reprl.mdp.tiers import Tiers
from reprl.sources.logs.check import SEVERITIES, Finding
from reprl.storage import fields as f
from reprl.storage.documents import MAX_TEXT, naming
from reprl.storage.fields import Document, Fields, Kind, Sealed, read_fields, with_fields

if TYPE_CHECKING:
    import pandas as pd

    from reprl.sources.environment import Environment


def commit_data_seed(recipe_digest: str, data_seed: int) -> str:
    """Return a commitment to a private data seed: it binds the seed and hides it, unless it is easy to guess.

    Equal commitments under one recipe mean the same data, so a second run that shows one has replicated nothing.
    """
    return hashlib.sha256(f"reprl-data-seed 1\n{recipe_digest}\n{data_seed}\n".encode()).hexdigest()


_GUARANTEE = {
    **dict.fromkeys(("rho", "delta", "epsilon", "status"), f.ANYTHING),
    "source": f.printable(),
    "quality": f.optional(f.real(0.0, 1.0)),
    "agreement": f.optional(f.real(0.0, 1.0, open_low=True)),
    "promise": f.optional(f.choice(tuple(PROMISES))),
}


def write_guarantee(guarantee: Guarantee) -> dict[str, str | float | None]:
    """Return a promise in JSON's types; where nothing is promised, every figure is null."""
    none = guarantee.status == "none"
    found = {**asdict(guarantee), "promise": guarantee.kind}
    figures = {name: float(x) if isinstance(x, int | float) else x for name, x in found.items() if name in _GUARANTEE}
    return {name: x if name in ("status", "source") or not none else None for name, x in figures.items()}


def read_guarantee(where: str, value: Any, worst: float) -> Guarantee:
    """Read what ``write_guarantee`` wrote; where nothing is promised, the accuracy is the worst there is."""
    promised = read_fields(where, value, _GUARANTEE)
    if promised["status"] == "none":
        for name, found in promised.items():
            if name not in ("status", "source") and found is not None:
                raise DocumentError(f"{where}.{name} must be null where nothing is promised, got {quote(found)}")
        promised |= {"rho": 1.0, "delta": 1.0, "epsilon": worst, "agreement": 1.0, "promise": "strict"}
    kind = promised.pop("promise")
    with naming("receipt "):
        read = Guarantee(**promised, registered=kind == "registered")
    if read.kind != kind:
        raise DocumentError(f"{where}.promise must be {read.kind!r} for its agreement, got {quote(kind)}")
    return read


def _read_levels(where: str, value: Any, at: Fields) -> NDArray[Any]:
    """The tier of every cell: the table that says how large all others must be."""
    if not isinstance(value, list) or not value or not isinstance(value[0], list) or not value[0]:
        raise DocumentError(f"{where} must be an (H, S) table of whole numbers, got {quote(value)}")
    levels: NDArray[Any] = f.wholes((len(value), len(value[0])), 1, at.count).read(where, value, at)
    return levels


def _canonical(kind: Kind) -> Kind:
    """What runs of the canonical rule have."""
    return f.given_when(kind, lambda at: at.rule != "paper", "null exactly for the rule 'paper'")


def _sets_of(at: Fields) -> tuple[int, int, int]:
    """Shape of the sets of an episodic run of the paper's rule."""
    return (at.tiers.count - 1, *shape_of(at))


_COVERAGE = {
    **dict.fromkeys(Coverage._fields, f.real(-math.inf)),
    **dict.fromkeys(("rows", "beyond", "cut"), f.whole()),
    **dict.fromkeys(("covered", "alike"), f.SHARE),
}
_BESIDE = {
    **f.declared(Beside),
    "odds": f.optional(f.real(1.0)),
    "changes": f.many(f.record(Change)),
    "variants": f.many(f.record(Variant)),
    "groups": f.many(f.record(Group)),
}
_TIERS = f.record(Tiers, {"count": f.whole(1, 2**16), "level": Kind(_read_levels, lambda level: level.tolist())})
_EXPLORED = f.also(
    f.reals(_sets_of, 0.0, 1.0), lambda shares, at: at.rule != "canonical", lambda at: "null for the rule 'canonical'"
)
_IGNORED = f.given_when(
    f.wholes(_sets_of, 0, 1, bool), lambda at: at.fractional is not None, "null exactly where fractional is"
)
_FINDINGS = f.many(
    f.record(Finding, {"severity": f.choice(SEVERITIES), "what": f.printable(), "recipe": f.printable(empty=True)})
)
TIMINGS = Kind(
    lambda where, value, at: read_fields(where, value, {"seconds": f.real()})["seconds"],
    lambda value: {"seconds": value},
    name="timings",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Receipt(Sealed):
    """The record of one run. Its digest detects accidental changes; docs/security.md shows how to sign it."""

    recipe: Annotated[str, f.SHA256]
    """Digest of the recipe."""
    fingerprint: Annotated[str, f.SHA256]
    """Of the policy."""
    samples: int
    episodes: int
    guarantee: Annotated[
        Guarantee, Kind(lambda where, value, at: read_guarantee(where, value, float(shape_of(at)[0])), write_guarantee)
    ]
    """Of status "none" the document has no figures; read again, they are the trivial ones (ρ = δ = 1, ε = H)."""
    rule: Annotated[str, f.choice(RULES)]
    choice: Annotated[Chosen | None, _canonical(f.record(Chosen))]
    """What the canonical rule chose; None for the rule "paper"."""
    rehearsal: Annotated[Rehearsal | None, REHEARSAL]
    """Result of the rehearsal; None if there was none."""
    certified: Annotated[Certified | None, CERTIFIED._replace(name="certificate")] = None
    """The certificate and its data; None if no proof was asked for."""
    spread: Annotated[float | None, _canonical(f.real())]
    """Value of the best policy less that of the worst, in the run's own model; None for the rule "paper"."""
    tiers: Annotated[Tiers, _TIERS]
    fractional: Annotated[NDArray[np.float64] | None, _EXPLORED]
    """(L−1, H, S): how often each state was under-explored; None for parallel sampling and the canonical rule."""
    ignored: Annotated[NDArray[np.bool_] | None, _IGNORED]
    """(L−1, H, S): the ignorable sets that were drawn; None for the same."""
    visits: Annotated[NDArray[Any], f.wholes(shape_of)]
    """(H, S): samples behind the decision, all actions together."""
    values: Annotated[NDArray[np.float64], f.reals(lambda at: (shape_of(at)[0] + 1, shape_of(at)[1]))]
    """(H+1, S): values that the decision computed."""
    labels: Annotated[Labels, f.record(Labels, label_fields(f.printable(empty=True), lambda at: shape_of(at)[1]))]
    """Known names of the environment, states and actions; without its reward map."""
    data_commitment: Annotated[str, f.SHA256]
    """Hash of the recipe and the data seed, which for a log is a hash of the log; never the seed itself."""
    package_version: Annotated[str, f.printable()]
    coverage: Annotated[Coverage | None, f.record(Coverage, _COVERAGE)] = None
    """What a log shows about the policy; None where samples were drawn."""
    beside: Annotated[Beside | None, f.record(Beside, _BESIDE)] = None
    """The policy beside practice; None where samples were drawn, and with a discount."""
    occupancy: Annotated[NDArray[np.float64] | None, f.reals(shape_of, 0.0)] = None
    """(H, S): how often the policy comes to each cell in the run's own model, for an approximate agreement alone: by it
    decisions of two runs are compared."""
    basis: Annotated[str | None, f.SHA256] = None
    """SHA-256 of who decided each cell, which the policy holds; None without a log."""
    findings: Annotated[tuple[Finding, ...] | None, _FINDINGS] = None
    """What is wrong with the log, the worst first; None without a log or a fault of it."""
    seconds: Annotated[float, TIMINGS]
    """How long the run took; not part of the digest."""

    @classmethod
    def of(cls, result: LearnResult) -> Receipt:
        """Return the receipt of a run."""
        recipe = result.recipe.digest
        explored = result.explored
        return cls(
            recipe=recipe,
            fingerprint=result.policy.fingerprint,
            samples=int(result.samples),
            episodes=int(result.episodes),
            guarantee=result.guarantee,
            rule=result.settings.rule,
            choice=Chosen.of(result),
            rehearsal=result.rehearsal,
            spread=None if result.spread is None or result.choice is None else float(result.spread),
            tiers=result.tiers,
            fractional=None if explored is None else explored.fractional,
            ignored=None if explored is None else explored.ignored,
            visits=_visits(result.counts),
            values=result.values,
            labels=printable_labels(result.environment.labels),
            data_commitment=commit_data_seed(recipe, result.data_seed),
            package_version=package_version(),
            seconds=float(result.seconds),
            coverage=result.coverage,
            beside=result.beside,
            occupancy=None if result.settings.agreement == 1.0 else result.occupancy,
            findings=_findings(result),
            basis=None if result.basis is None else result.basis.digest,
            certified=Certified.of(result),
        )

    def __repr__(self) -> str:
        words = f"{self.guarantee.status}, {self.samples:,} samples, policy {self.fingerprint[:12]}"
        return f"Receipt({words}, recipe {self.recipe[:12]})"

    def to_pandas(self, policy: Policy, world: Environment) -> pd.DataFrame:
        """Return a row for each step and state of its policy: action, samples, value, share of teams that differ.

        Values are in the units of the rewards of the world.
        """
        low, high = world.units
        table = policy.to_pandas()
        table["samples"] = (self.visits if policy.basis is None else policy.basis.samples).ravel()
        table["value"] = (self.values[:-1] * (high - low) + low * world.criterion.remaining[:, None]).ravel()
        if self.rehearsal is not None:
            apart = self.rehearsal.apart
            if policy.basis is not None:  # teams cannot agree on a cell that none of them decides
                apart = np.where((policy.basis.decided == DEFAULT) & (apart == 0.0), np.nan, apart)
            table["teams_that_differ"] = apart.ravel()
        return table

    def __eq__(self, other: object) -> bool:
        """Equal in everything but the timings."""
        return isinstance(other, Receipt) and self.digest == other.digest

    def __hash__(self) -> int:
        return int(self.digest[:15], 16)

    @property
    def undecided(self) -> NDArray[np.float64] | None:
        """(H, S): share of the simulated teams with another action; None without a rehearsal."""
        return None if self.rehearsal is None else self.rehearsal.apart

    def _check_rest(self, fields: Mapping[str, Any]) -> None:
        cells = int((fields["undecided"] > 0).sum())
        if self.rehearsal is None and cells:
            raise DocumentError(f"receipt undecided must be empty where rehearsal is null, got {cells} cells")


def _findings(result: LearnResult) -> tuple[Finding, ...] | None:
    """What is wrong with a log, in words that may be shown; notes are left out."""
    found = [] if result.check is None else [each for each in result.check.findings if each.severity != "note"]
    return (
        tuple(Finding(*("".join(x if x.isprintable() else " " for x in t)[:MAX_TEXT] for t in f)) for f in found)
        or None
    )


def _visits(counts: Counts) -> NDArray[Any]:
    """Samples per step and state; Python's integers where int64 could overflow."""
    visits = counts.visits
    small = int(visits.max(initial=0)) * visits.shape[2] < 2**63
    total: NDArray[Any] = (visits if small else visits.astype(object)).sum(axis=2)
    return total


_TABLE = with_fields(Receipt, rehearsal={"undecided": UNDECIDED}, package_version=STREAM, beside={"digest": f.SHA256})
Receipt._document = Document("receipt", "reprl-receipt", 1, Receipt, _TABLE)

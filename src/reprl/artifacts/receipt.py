"""Receipt: what one run of a recipe produced, fixed by the recipe and the data seed but for its timings."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.choices import CERTIFIED, Certified, Chosen, read_rehearsal, rehearsal_document, undecided_document
from reprl.artifacts.recipe import package_version
from reprl.assurance.coverage import Coverage
from reprl.assurance.rehearsal import Rehearsal
from reprl.errors import DocumentError, quote
from reprl.guarantee import Guarantee
from reprl.learning.result import LearnResult
from reprl.learning.settings import RULES
from reprl.mdp.counts import Counts
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import Labels
from reprl.mdp.tiers import Tiers
from reprl.randomness import STREAM_VERSION
from reprl.sources.environment import labels_document, printable_labels, read_labels
from reprl.storage.documents import Reader, check_printable, decode, digest, load, naming, pretty
from reprl.storage.files import write_atomic

if TYPE_CHECKING:
    import pandas as pd

_FORMAT = "reprl-receipt"
_VERSION = 2
_CERTIFIED = 3
"""Version of a receipt with a certificate; all others are as they were before there were any."""
_MAX_BYTES = 1 << 28
_NAMES = (
    "recipe",
    "fingerprint",
    "samples",
    "episodes",
    "guarantee",
    "rule",
    "choice",
    "rehearsal",
    "undecided",
    "spread",
    "tiers",
    "fractional",
    "ignored",
    "visits",
    "values",
    "labels",
    "data_commitment",
    "package_version",
    "stream_version",
    "digest",
    "timings",
)


def commit_data_seed(recipe_digest: str, data_seed: int) -> str:
    """Return a commitment to a private data seed: it binds the seed and hides it, unless it is easy to guess.

    Equal commitments under one recipe mean the same data, so a second run that shows one has replicated nothing.
    """
    return hashlib.sha256(f"reprl-data-seed 1\n{recipe_digest}\n{data_seed}\n".encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, eq=False)
class Receipt:
    """The record of one run."""

    recipe: str
    """Digest of the recipe."""
    fingerprint: str
    """Of the policy."""
    samples: int
    episodes: int
    guarantee: Guarantee
    """Of status "none" the document has no figures; read again, they are the trivial ones (ρ = δ = 1, ε = H)."""
    rule: str
    choice: Chosen | None
    """What the canonical rule chose; None for the rule "sampled"."""
    rehearsal: Rehearsal | None
    """What simulated second teams did, and where they differed; None where nobody asked them."""
    spread: float | None
    """Value of the best policy less that of the worst, in the run's own model; None for the rule "sampled"."""
    tiers: Tiers
    fractional: NDArray[np.float64] | None
    """(L−1, H, S): how often each state was under-explored; None for parallel sampling and the canonical rule."""
    ignored: NDArray[np.bool_] | None
    """(L−1, H, S): the ignorable sets that were drawn; None for the same."""
    visits: NDArray[Any]
    """(H, S): samples behind the decision, all actions together."""
    values: NDArray[np.float64]
    """(H+1, S): values that the decision computed."""
    labels: Labels
    """Names of the environment, states and actions, as far as they are known; without its reward map."""
    data_commitment: str
    """Hash of the recipe and the data seed, which for a log is a hash of the log; never the seed itself."""
    package_version: str
    seconds: float
    """How long the run took; not part of the digest."""
    coverage: Coverage | None = None
    """How far a log speaks of the policy; None, and not in the document, where samples were drawn."""
    certified: Certified | None = None
    """What the run's own data prove, and which data; None where nobody asked for a proof."""

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
            certified=Certified.of(result),
        )

    def __repr__(self) -> str:
        """What it says, on one line."""
        words = f"{self.guarantee.status}, {self.samples:,} samples, policy {self.fingerprint[:12]}"
        return f"Receipt({words}, recipe {self.recipe[:12]})"

    def to_pandas(self, policy: Policy) -> pd.DataFrame:
        """Return a row for each step and state of its policy: action, samples, value, share of teams that differ."""
        table = policy.to_pandas()
        table["samples"] = self.visits.ravel()
        table["value"] = self.values[:-1].ravel()
        if self.rehearsal is not None:
            table["teams_that_differ"] = self.rehearsal.apart.ravel()
        return table

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of everything but the timings."""
        return digest(self._body())

    def __eq__(self, other: object) -> bool:
        """Equal in everything but the timings."""
        return isinstance(other, Receipt) and self.digest == other.digest

    def __hash__(self) -> int:
        """Hash by digest."""
        return int(self.digest[:15], 16)

    def _body(self) -> dict[str, Any]:
        proof = {} if self.certified is None else {"certificate": self.certified.document()}
        return {
            "format": _FORMAT,
            "version": _CERTIFIED if proof else _VERSION,
            "recipe": self.recipe,
            "fingerprint": self.fingerprint,
            "samples": self.samples,
            "episodes": self.episodes,
            "guarantee": guarantee_document(self.guarantee),
            "rule": self.rule,
            "choice": None if self.choice is None else self.choice.document(),
            "rehearsal": rehearsal_document(self.rehearsal),
            "undecided": undecided_document(self.rehearsal),
            **proof,
            "spread": self.spread,
            "tiers": {"count": int(self.tiers.count), "level": self.tiers.level.tolist()},
            "fractional": None if self.fractional is None else self.fractional.tolist(),
            "ignored": None if self.ignored is None else self.ignored.astype(int).tolist(),
            "visits": self.visits.tolist(),
            "values": self.values.tolist(),
            "labels": labels_document(self.labels),
            "data_commitment": self.data_commitment,
            "package_version": self.package_version,
            "stream_version": STREAM_VERSION,
            **({} if self.coverage is None else {"coverage": self.coverage._asdict()}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {**self._body(), "digest": self.digest, "timings": {"seconds": self.seconds}}

    def to_json(self) -> str:
        """Return the document as text."""
        return pretty(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Receipt:
        """Read what ``to_json`` wrote; a receipt that was edited no longer matches its digest and is refused."""
        with_proof = stated_version(text) == _CERTIFIED
        names = (*_NAMES, "certificate") if with_proof else _NAMES
        version = _CERTIFIED if with_proof else _VERSION
        document = Reader.open(text, "receipt", _FORMAT, version, names, ("coverage",))
        document.release("stream_version", STREAM_VERSION)
        proof = Certified.read(document.part("certificate", CERTIFIED)) if with_proof else None
        receipt = cls(**_read_figures(document), **_read_tables(document), certified=proof)
        if document.digest("digest") != receipt.digest:
            stated = document["digest"]
            raise DocumentError(f"receipt digest must be {receipt.digest} for this content, got {stated}")
        return receipt

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the receipt to path, all or nothing."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Receipt:
        """Read a receipt that ``save`` wrote."""
        return load(path, cls.from_json, _MAX_BYTES)


def stated_version(text: str | bytes) -> object:
    """Return the version that a document states."""
    document = decode(text, "receipt")
    return document.get("version") if isinstance(document, dict) else None


def guarantee_document(guarantee: Guarantee) -> dict[str, str | float | None]:
    """Return a promise in JSON's types; where nothing is promised, there are no figures."""
    none = guarantee.status == "none"
    return {
        name: value if isinstance(value, str) else None if none else float(value)
        for name, value in asdict(guarantee).items()
    }


def _read_guarantee(document: Reader, horizon: int) -> Guarantee:
    given = document.part("guarantee", ("rho", "delta", "epsilon", "status", "source"))
    given.printable("source")
    figures = {"rho": 1.0, "delta": 1.0, "epsilon": float(horizon)}
    promised = given.document
    if promised["status"] == "none":
        for name in figures:
            if promised[name] is not None:
                raise DocumentError(
                    f"{given.where(name)} must be null where nothing is promised, got {quote(promised[name])}"
                )
        promised = {**promised, **figures}
    with naming("receipt "):
        return Guarantee(**promised)


def _visits(counts: Counts) -> NDArray[Any]:
    """Samples per step and state; Python's integers where int64 could overflow."""
    visits = counts.visits
    small = int(visits.max(initial=0)) * visits.shape[2] < 2**63
    total: NDArray[Any] = (visits if small else visits.astype(object)).sum(axis=2)
    return total


def _read_figures(document: Reader) -> dict[str, Any]:
    rule = document.choice("rule", RULES)
    for name in ("choice", "spread"):
        if (document[name] is None) != (rule == "sampled"):
            raise DocumentError(
                f"receipt {name} must be null exactly for the rule 'sampled', got {quote(document[name])}"
            )
    for name in ("fractional", "ignored"):
        if document[name] is not None and rule == "canonical":
            raise DocumentError(f"receipt {name} must be null for the rule 'canonical', got {quote(document[name])}")
    return {
        "recipe": document.digest("recipe"),
        "fingerprint": document.digest("fingerprint"),
        "samples": document.whole("samples"),
        "episodes": document.whole("episodes"),
        "rule": rule,
        "spread": document.optional("spread", document.real),
        "data_commitment": document.digest("data_commitment"),
        "package_version": document.printable("package_version"),
        "seconds": document.part("timings", ("seconds",)).real("seconds"),
    }


def _read_tables(document: Reader) -> dict[str, Any]:
    tiers = document.part("tiers", ("count", "level"))
    count = tiers.whole("count", 1, 2**16)
    shape = _shape(tiers.where("level"), tiers["level"])
    horizon, n_states = shape
    fractional, ignored = document["fractional"], document["ignored"]
    if (fractional is None) != (ignored is None):
        raise DocumentError(f"receipt ignored must be null exactly where fractional is, got {quote(ignored)}")
    sets = (count - 1, horizon, n_states)
    names = document.part("labels", ("name", "description", "states", "actions", "grid"))
    return {
        "guarantee": _read_guarantee(document, horizon),
        "choice": document.optional("choice", lambda x: Chosen.read(document.part(x, Chosen._fields), shape)),
        "rehearsal": read_rehearsal(document, shape),
        "tiers": Tiers(tiers.wholes("level", shape, 1, count), count),
        "fractional": document.optional("fractional", lambda field: document.reals(field, sets, 0.0, 1.0)),
        "ignored": document.optional("ignored", lambda field: document.wholes(field, sets, 0, 1).astype(bool)),
        "visits": document.wholes("visits", shape),
        "values": document.reals("values", (horizon + 1, n_states)),
        "coverage": _read_coverage(document) if "coverage" in document.document else None,
        "labels": read_labels(names, n_states, None, partial(check_printable, empty=True)),
    }


def _read_coverage(document: Reader) -> Coverage:
    given = document.part("coverage", Coverage._fields)
    figures: dict[str, Any] = {name: given.real(name, -math.inf) for name in Coverage._fields}
    figures |= {name: given.whole(name) for name in ("rows", "beyond", "cut")}
    figures |= {name: given.share(name) for name in ("covered", "alike")}
    return Coverage(**figures)


def _shape(name: str, value: object) -> tuple[int, int]:
    if not isinstance(value, list) or not value or not isinstance(value[0], list) or not value[0]:
        raise DocumentError(f"{name} must be an (H, S) table of whole numbers, got {quote(value)}")
    return len(value), len(value[0])

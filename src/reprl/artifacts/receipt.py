"""Receipt: what one run of a recipe produced, fixed by the recipe and the data seed but for its timings."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.artifacts.documents import (
    MAX_TEXT,
    check_digest,
    check_fields,
    check_stream,
    check_text,
    digest,
    naming,
    parse,
    pretty,
    read_reals,
    read_table,
)
from reprl.artifacts.recipe import package_version
from reprl.errors import ReprlError, check_int, check_real, quote
from reprl.files import read_bounded, write_atomic
from reprl.guarantee import Guarantee
from reprl.learning.learner import Environment, LearnResult
from reprl.mdp.counts import Counts
from reprl.mdp.tabular import Labels
from reprl.mdp.tiers import Tiers
from reprl.randomness import STREAM_VERSION

_FORMAT = "reprl-receipt"
_VERSION = 1
_MAX_BYTES = 1 << 28
_NAMES = (
    "recipe",
    "fingerprint",
    "samples",
    "episodes",
    "guarantee",
    "tiers",
    "fractional",
    "ignored",
    "visits",
    "values",
    "stretch",
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
    tiers: Tiers
    fractional: NDArray[np.float64] | None
    """(L−1, H, S): how often each state was under-explored; None for parallel sampling."""
    ignored: NDArray[np.bool_] | None
    """(L−1, H, S): the ignorable sets that were drawn; None for parallel sampling."""
    visits: NDArray[Any]
    """(H, S): samples behind the decision, all actions together."""
    values: NDArray[np.float64]
    """(H+1, S): values that the decision computed."""
    stretch: float
    labels: Labels
    """Names of the environment, states and actions, as far as they are known; without its reward map."""
    data_commitment: str
    """Hash of the recipe and the data seed; never the seed itself."""
    package_version: str
    seconds: float
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
            tiers=result.tiers,
            fractional=None if explored is None else explored.fractional,
            ignored=None if explored is None else explored.ignored,
            visits=_visits(result.counts),
            values=result.induction.values,
            stretch=float(result.stretch),
            labels=_printable(result.labels, result.environment),
            data_commitment=commit_data_seed(recipe, result.data_seed),
            package_version=package_version(),
            seconds=float(result.seconds),
        )

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
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "recipe": self.recipe,
            "fingerprint": self.fingerprint,
            "samples": self.samples,
            "episodes": self.episodes,
            "guarantee": _plain_guarantee(self.guarantee),
            "tiers": {"count": int(self.tiers.count), "level": self.tiers.level.tolist()},
            "fractional": None if self.fractional is None else self.fractional.tolist(),
            "ignored": None if self.ignored is None else self.ignored.astype(int).tolist(),
            "visits": self.visits.tolist(),
            "values": self.values.tolist(),
            "stretch": self.stretch,
            "labels": _plain_labels(self.labels),
            "data_commitment": self.data_commitment,
            "package_version": self.package_version,
            "stream_version": STREAM_VERSION,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {**self._body(), "digest": self.digest, "timings": {"seconds": self.seconds}}

    def to_json(self) -> str:
        """Return the document as text."""
        return pretty(self.as_dict()) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Receipt:
        """Read what ``to_json`` wrote; a receipt that was edited no longer matches its digest and is refused."""
        document = parse(text, "receipt", _FORMAT, _VERSION, _NAMES)
        check_stream("receipt stream_version", document["stream_version"])
        receipt = cls(**_read_tables(document), **_read_figures(document))
        if check_digest("receipt digest", document["digest"]) != receipt.digest:
            stated = document["digest"]
            raise ReprlError(f"receipt digest must be {receipt.digest} for this content, got {stated}")
        return receipt

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the receipt to path, all or nothing."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Receipt:
        """Read a receipt that ``save`` wrote."""
        data = read_bounded(path, _MAX_BYTES)
        with naming(f"{os.fspath(path)}: "):
            return cls.from_json(data)


def _visits(counts: Counts) -> NDArray[Any]:
    """Samples per step and state; Python's integers where int64 could overflow."""
    visits = counts.visits
    small = int(visits.max(initial=0)) * visits.shape[2] < 2**63
    total: NDArray[Any] = (visits if small else visits.astype(object)).sum(axis=2)
    return total


def _plain_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    return {name: x if isinstance(x, str) else float(x) for name, x in asdict(guarantee).items()}


def _plain_labels(labels: Labels) -> dict[str, Any]:
    return {
        "name": labels.name,
        "description": labels.description,
        "states": list(labels.states),
        "actions": list(labels.actions),
        "grid": None if labels.grid is None else list(labels.grid),
    }


def _printable(labels: Labels, environment: Environment) -> Labels:
    """Bring names, which nobody has checked yet, to what ``_read_labels`` accepts."""

    def text(name: object) -> str:
        return "".join(x if x.isprintable() else " " for x in str(name))[:MAX_TEXT]

    def texts(names: Sequence[object], count: int) -> tuple[str, ...]:
        return tuple(map(text, names)) if len(names) == count else ()

    return Labels(
        name=text(labels.name),
        description=text(labels.description),
        states=texts(labels.states, environment.n_states),
        actions=texts(labels.actions, environment.n_actions),
        grid=None if labels.grid is None else (int(labels.grid[0]), int(labels.grid[1])),
    )


def _read_labels(value: object, n_states: int) -> Labels:
    names = check_fields("receipt labels", value, ("name", "description", "states", "actions", "grid"))
    grid = names["grid"]
    if grid is not None and (not isinstance(grid, list) or len(grid) != 2):
        raise ReprlError(f"receipt labels.grid must be [rows, columns] or null, got {quote(grid)}")
    with naming("receipt labels."):
        states = _read_texts("states", names["states"])
        if len(states) not in (0, n_states):
            raise ReprlError(f"states must be {n_states} texts or none, got {len(states)}")
        return Labels(
            name=check_text("name", names["name"], empty=True),
            description=check_text("description", names["description"], empty=True),
            states=states,
            actions=_read_texts("actions", names["actions"]),
            grid=None if grid is None else (check_int("grid", grid[0], 1), check_int("grid", grid[1], 1)),
        )


def _read_texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ReprlError(f"{name} must be a list of texts, got {quote(value)}")
    return tuple(check_text(f"{name}[{i}]", item, empty=True) for i, item in enumerate(value))


def _read_figures(document: dict[str, Any]) -> dict[str, Any]:
    names = ("rho", "delta", "epsilon", "status", "source")
    promised = check_fields("receipt guarantee", document["guarantee"], names)
    timings = check_fields("receipt timings", document["timings"], ("seconds",))
    with naming("receipt "):
        check_text("guarantee source", promised["source"])
        return {
            "recipe": check_digest("recipe", document["recipe"]),
            "fingerprint": check_digest("fingerprint", document["fingerprint"]),
            "samples": check_int("samples", document["samples"], 0),
            "episodes": check_int("episodes", document["episodes"], 0),
            "guarantee": Guarantee(**promised),
            "stretch": check_real("stretch", document["stretch"], 0.0, math.inf),
            "data_commitment": check_digest("data_commitment", document["data_commitment"]),
            "package_version": check_text("package_version", document["package_version"]),
            "seconds": check_real("timings.seconds", timings["seconds"], 0.0, math.inf, open_low=False),
        }


def _read_tables(document: dict[str, Any]) -> dict[str, Any]:
    tiers = check_fields("receipt tiers", document["tiers"], ("count", "level"))
    count = check_int("receipt tiers.count", tiers["count"], 1, 2**16)
    shape = _shape("receipt tiers.level", tiers["level"])
    horizon, n_states = shape
    fractional, ignored = document["fractional"], document["ignored"]
    if (fractional is None) != (ignored is None):
        raise ReprlError(f"receipt ignored must be null exactly where fractional is, got {quote(ignored)}")
    sets = (count - 1, horizon, n_states)
    return {
        "tiers": Tiers(read_table("receipt tiers.level", tiers["level"], shape, 1, count), count),
        "fractional": None if fractional is None else read_reals("receipt fractional", fractional, sets, 0.0, 1.0),
        "ignored": None if ignored is None else read_table("receipt ignored", ignored, sets, 0, 1).astype(bool),
        "visits": read_table("receipt visits", document["visits"], shape, 0, None),
        "values": read_reals("receipt values", document["values"], (horizon + 1, n_states)),
        "labels": _read_labels(document["labels"], n_states),
    }


def _shape(name: str, value: object) -> tuple[int, int]:
    if not isinstance(value, list) or not value or not isinstance(value[0], list) or not value[0]:
        raise ReprlError(f"{name} must be an (H, S) table of whole numbers, got {quote(value)}")
    return len(value), len(value[0])

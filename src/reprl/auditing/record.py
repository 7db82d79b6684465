"""AuditReport: the evidence as a value, a file, and a page for the terminal."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.auditing.divergence import Divergence
from reprl.auditing.evidence import VERDICTS
from reprl.auditing.policies import Policies
from reprl.errors import DocumentError, check_int, check_real, quote
from reprl.execution.terminal import Visible, open_card, open_rich, visible
from reprl.learning.settings import ACCESSES
from reprl.sources.environment import Environment
from reprl.storage.documents import Reader, dump, load, plain
from reprl.storage.files import write_atomic
from reprl.storage.frames import cell_columns, frame

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

_FORMAT = "reprl-audit"
_FIRST, _VERSION = 1, 2
"""Versions of a document: without, and with what is said of the policies themselves."""
_NAMES = (
    *("environment", "learner", "access", "options", "seed", "rho", "level", "pairs", "max_pairs", "disagreements"),
    *("disagreement", "interval", "verdict", "p_value", "sequential", "alternative", "runs_per_key", "distinct"),
    *("by_cell", "by_cell_weighted", "value_gap", "suboptimality", "first_divergence", "samples", "cells", "curve"),
)


class Spread(NamedTuple):
    """Mean and maximum of a figure, in units of value."""

    mean: float
    max: float


class Cell(NamedTuple):
    """A cell in which runs under one key chose differently."""

    step: int
    state: int
    disagreement: float
    """Fraction of pairs whose actions differ here."""
    reachability: float | None
    """The greatest probability of being here, over all policies; None for a black box."""
    stake: float | None
    """The largest distance in Q* of two actions that one key led to; 0 is an exact tie; None for a black box."""
    actions: tuple[tuple[int, float], ...]
    """(action, fraction of all runs that chose it), the most frequent first."""
    visited: float | None = None
    """Share of the episodes of all audited policies that came here, in a black box that was valued by episodes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditReport:
    """What pairs of runs showed about a learner. An audit can reject ρ; it can never verify it."""

    environment: Environment
    learner: str
    access: str
    options: Mapping[str, Any]
    seed: int
    """Of the audit; with it the audit can be repeated."""
    rho: float
    level: float
    pairs: int
    """Keys that were used, one designated pair each: the independent units of test and interval."""
    disagreements: int
    """Designated pairs whose policies differ."""
    disagreement: float
    """Fraction of pairs that differ; with more than two runs a key, of all pairs within a key."""
    interval: tuple[float, float]
    """95 %: Clopper–Pearson on the designated pairs, or a confidence sequence when pairs were watched one by one."""
    verdict: str
    """"rejected", "not rejected", or "undecided" when a sequential test ran out of pairs."""
    p_value: float | None
    """Of the exact test of disagreement ≤ ρ; None when sequential."""
    sequential: bool
    alternative: float | None
    """The disagreement that a sequential "not rejected" speaks against."""
    max_pairs: int
    """How many pairs were asked for; a sequential test may stop before."""
    runs_per_key: int
    distinct: tuple[int, ...]
    """Distinct policies under each key."""
    by_cell: NDArray[np.float64]
    """(H, S): fraction of pairs whose actions differ."""
    by_cell_weighted: NDArray[np.float64] | None
    """The same times the greatest probability of being there, over all policies; None for a black box."""
    value_gap: Spread | None
    """|difference| of the exact values of a pair's policies; None for a black box."""
    suboptimality: Spread | None
    """Optimal value less a policy's, over all runs; None for a black box."""
    first_divergence: tuple[Divergence, ...]
    """One for every designated pair that disagrees."""
    samples: float
    """Mean per run, by the models' ledgers."""
    cells: tuple[Cell, ...]
    """The cells that disagree and are reached, those that matter most first, at most 100."""
    policies: Policies | None = None
    """How many different policies there were, where they get, what they earn; None in documents of version 1."""

    @property
    def ties(self) -> tuple[Cell, ...]:
        """The listed cells whose runs chose between actions of exactly the same value."""
        return tuple(cell for cell in self.cells if cell.stake == 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document of this audit."""
        found = self.policies
        shown = Cell._fields[:-1] if found is None else Cell._fields
        document = {
            "format": _FORMAT,
            "version": _FIRST if found is None else _VERSION,
            "environment": self.environment.to_dict(),
            "learner": self.learner,
            "access": self.access,
            "options": plain(self.options),
            "seed": self.seed,
            "rho": self.rho,
            "level": self.level,
            "pairs": self.pairs,
            "max_pairs": self.max_pairs,
            "disagreements": self.disagreements,
            "disagreement": self.disagreement,
            "interval": list(self.interval),
            "verdict": self.verdict,
            "p_value": self.p_value,
            "sequential": self.sequential,
            "alternative": self.alternative,
            "runs_per_key": self.runs_per_key,
            "distinct": list(self.distinct),
            "by_cell": self.by_cell.tolist(),
            "by_cell_weighted": None if self.by_cell_weighted is None else self.by_cell_weighted.tolist(),
            "value_gap": None if self.value_gap is None else self.value_gap._asdict(),
            "suboptimality": None if self.suboptimality is None else self.suboptimality._asdict(),
            "first_divergence": [plain(item._asdict()) for item in self.first_divergence],
            "samples": self.samples,
            "cells": [{name: plain(getattr(cell, name)) for name in shown} for cell in self.cells],
            "curve": None,  # a place that nothing has ever filled
        }
        return document if found is None else {**document, "policies": found.to_dict()}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each step and state: the share of pairs that differ there, and weighted by reachability."""
        columns = cell_columns((self.environment.horizon, self.environment.n_states), self.environment.labels.states)
        columns["disagreement"] = self.by_cell.ravel()
        if self.by_cell_weighted is not None:
            columns["weighted"] = self.by_cell_weighted.ravel()
        return frame(columns)

    def _repr_html_(self) -> str:
        """Show verdict, interval and the cells that matter most in a notebook."""
        return open_card(self)

    def to_json(self) -> str:
        """Return the document as text, the same bytes for the same audit."""
        return dump(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report to path as JSON, all or nothing."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditReport:
        """Read a report that ``save`` wrote."""
        return load(path, cls.from_json)

    @classmethod
    def from_json(cls, text: str | bytes) -> AuditReport:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        names = (*_NAMES, "policies")
        document = Reader.open(text, "audit", _FORMAT, _VERSION, names, earlier={_FIRST: _NAMES})
        first = document["version"] == _FIRST
        if document["curve"] is not None:
            raise DocumentError(f"audit curve must be null, got {quote(document['curve'])}")
        for name, when in (("alternative", True), ("p_value", False)):
            if (document[name] is not None) != (document.flag("sequential") is when):
                tests = "a sequential test" if when else "a test of all pairs at once"
                raise DocumentError(f"audit {name} must be given exactly for {tests}, got {quote(document[name])}")
        place = Environment.read(document)
        shape = (place.horizon, place.n_states)
        pairs, runs = document.whole("pairs", 1), document.whole("runs_per_key", 2)
        return cls(
            environment=place,
            learner=document.text("learner"),
            access=document.choice("access", ACCESSES),
            options=document.mapping("options"),
            seed=document.whole("seed", 0, 2**64 - 1),
            rho=document.share("rho"),
            level=document.share("level"),
            pairs=pairs,
            max_pairs=document.whole("max_pairs", pairs),
            disagreements=document.whole("disagreements", 0, pairs),
            disagreement=document.share("disagreement"),
            interval=document.pair("interval", 0.0, 1.0),
            verdict=document.choice("verdict", VERDICTS),
            p_value=document.optional("p_value", document.real),
            sequential=document.flag("sequential"),
            alternative=document.optional("alternative", document.share),
            runs_per_key=runs,
            distinct=tuple(document.wholes("distinct", (pairs,), 1, runs).tolist()),
            by_cell=document.reals("by_cell", shape, 0.0, 1.0),
            by_cell_weighted=document.optional("by_cell_weighted", lambda name: document.reals(name, shape, 0.0, 1.0)),
            value_gap=document.optional("value_gap", lambda field: _read_spread(document, field)),
            suboptimality=document.optional("suboptimality", lambda field: _read_spread(document, field)),
            first_divergence=tuple(
                read_divergence(item, place) for item in document.parts("first_divergence", Divergence._fields)
            ),
            samples=document.real("samples"),
            cells=tuple(
                _read_cell(item, place) for item in document.parts("cells", Cell._fields[: -1 if first else None])
            ),
            policies=None if first else Policies.read(document, place, pairs),
        )

    def __rich__(self) -> Visible:
        """Show verdict, cells and first divergences."""
        return open_rich(self)

    def show(self, console: Console | None = None) -> None:
        """Print the report on a terminal."""
        from rich.console import Console

        (console or Console()).print(self)

    def __repr__(self) -> str:
        """The verdict on one line."""
        low, high = self.interval
        return (
            f"AuditReport({visible(self.learner)} on {visible(self.environment.labels.name)}: disagreement "
            f"{self.disagreement:.3g} "
            f"[{low:.3g}, {high:.3g}] over {self.pairs} pairs, ρ = {self.rho:g} {self.verdict})"
        )


def _read_spread(document: Reader, field: str) -> Spread:
    part = document.part(field, Spread._fields)
    return Spread(part.real("mean", -math.inf), part.real("max", -math.inf))


def read_divergence(item: Reader, place: Environment) -> Divergence:
    """Read where a pair parted, from the fields of a Divergence."""
    last = place.n_actions - 1
    return Divergence(
        pair=item.whole("pair"),
        stage=item.text("stage"),
        tier=item.optional("tier", item.whole),
        step=item.optional("step", lambda field: item.whole(field, 0, place.horizon)),
        state=item.optional("state", lambda field: item.whole(field, 0, place.n_states - 1)),
        margin=item.optional("margin", lambda field: item.real(field, -math.inf)),
        actions=item.optional("actions", lambda field: tuple(item.wholes(field, (2,), 0, last).tolist())),
        text=item.text("text"),
    )


def _read_cell(item: Reader, place: Environment) -> Cell:
    actions = []
    for i, choice in enumerate(item.items("actions")):
        where = f"{item.where('actions')}[{i}]"
        if not isinstance(choice, list) or len(choice) != 2:
            raise DocumentError(f"{where} must be an action and its share, got {quote(choice)}")
        check_real(where, choice[1], 0.0, 1.0, open_low=False, open_high=False)
        actions.append((check_int(where, choice[0], 0, place.n_actions - 1), choice[1]))
    return Cell(
        step=item.whole("step", 0, place.horizon - 1),
        state=item.whole("state", 0, place.n_states - 1),
        disagreement=item.share("disagreement"),
        reachability=item.optional("reachability", item.share),
        stake=item.optional("stake", item.real),
        actions=tuple(actions),
        visited=item.optional("visited", item.share) if "visited" in item.document else None,
    )

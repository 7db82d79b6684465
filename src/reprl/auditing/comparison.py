"""Comparison: what each learner paid for (ε, ρ), as a value, a file, and a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from reprl.auditing.evidence import estimate
from reprl.auditing.search import Crossing, Search, Tried
from reprl.errors import DocumentError, quote
from reprl.execution.terminal import Shown, visible
from reprl.mdp.environment import SIZED
from reprl.sources.environment import Environment
from reprl.storage import fields as f
from reprl.storage.fields import Declared, Document, Kind, declared, read_fields, write_fields
from reprl.storage.frames import frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Row:
    """One learner of a comparison."""

    learner: str
    access: str
    options: Mapping[str, Any]
    samples: float | None
    """A run's at the smallest budget that passed; None where none did."""
    failed: float | None
    """A run's at the largest budget below it that failed."""
    needed: Annotated[Crossing | None, f.many(f.real(), 3, lambda figures: Crossing(*figures))]
    """Where disagreement passes ρ, by a curve through the budgets near."""
    limit: float
    """The largest budget allowed; where none passed, the most samples a run drew."""
    shown: Annotated[Tried, f.ANYTHING]
    """The budget that passed, or the largest."""
    points: Annotated[tuple[Tried, ...], f.ANYTHING]
    """All that were tried, by budget."""

    @classmethod
    def of(cls, search: Search, rho: float, limit: float, **named: Any) -> Row:
        """Return the row of a search for the smallest budget, up to a limit; named: learner, access and options."""
        found = search.found
        return cls(
            samples=None if found is None else found.samples,
            failed=None if search.failed is None else search.failed.samples,
            needed=search.needed(rho),
            limit=search.spent if found is None else limit,
            shown=search.points[-1] if found is None else found,
            points=search.points,
            **named,
        )

    @property
    def reached(self) -> bool:
        """Whether some budget passed."""
        return self.samples is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        curve = [[p.samples, p.disagreement, *p.interval, p.suboptimality] for p in self.points]
        lists = {
            "curve": curve,
            "counts": [[p.budget, p.pairs, p.disagreements] for p in self.points],
            "values": [p.value for p in self.points],
        }
        found = {name: getattr(self, name, None) for name in _ROW} | write_fields(self.shown, _SHOWN) | lists
        return write_fields(SimpleNamespace(**found), _ROW)

    @classmethod
    def make(cls, fields: Mapping[str, Any], where: str) -> Row:
        """Return the row that the fields of a document describe."""
        points = _make_points(fields, where)
        samples = fields["samples"]
        if fields["reached"] != (samples is not None):
            raise DocumentError(f"{where}.reached must be true exactly where samples are, got {fields['reached']}")
        figures = {name: fields[name] for name in _SHOWN}
        among = points[-1:] if samples is None else [point for point in points if point.samples == samples]
        same = [point for point in among if all(getattr(point, name) == found for name, found in figures.items())]
        if not same:
            got = quote(tuple(figures.values()))
            raise DocumentError(f"{where} must show one of its curve, or its last if none passed, got {got}")
        own = {name: fields[name] for name in declared(Row) if name in fields}
        return cls(**own, shown=same[0], points=points)


_SHOWN = {
    "pairs": f.whole(1),
    "disagreements": f.whole(),
    "disagreement": f.SHARE,
    "interval": f.many(f.SHARE, 2),
    "suboptimality": f.optional(f.real(-math.inf)),
}
"""What a row says of the budget that it shows."""
_ROW = {
    **{name: kind for name, kind in declared(Row).items() if name not in ("shown", "points")},
    "reached": f.FLAG,
    **_SHOWN,
    "curve": f.many(
        f.row("samples, disagreement, its interval and a loss", *[f.real()] * 4, f.optional(f.real(-math.inf))),
        lambda at: len(at.counts),
    ),
    "counts": f.many(f.many(f.whole(), 3)),
    "values": f.many(f.optional(estimate()), lambda at: len(at.counts)),
}
_READ_ROW = Kind(
    lambda where, value, at: Row.make(read_fields(where, value, _ROW, at), where),
    lambda row: row.to_dict(),
)


def worth_words(point: Tried) -> str:
    """What policies lose or, in a black box, earn at a budget."""
    if point.value is not None:
        return f"{point.value.mean:.3g} [{point.value.low:.3g}, {point.value.high:.3g}]"
    return f"{point.suboptimality:.2g}"


def _make_points(fields: Mapping[str, Any], where: str) -> tuple[Tried, ...]:
    points = []
    for i, ((budget, pairs, apart), line) in enumerate(zip(fields["counts"], fields["curve"], strict=True)):
        samples, rate, low, high, loss = line
        place = f"{where}.curve[{i}]"
        if not (samples > 0.0 and 0.0 <= low <= high <= 1.0):
            raise DocumentError(f"{place} must be samples, disagreement, its interval and a loss, got {[*line]}")
        if not 0 <= apart <= pairs or pairs == 0 or rate != apart / pairs:
            raise DocumentError(f"{place} must be of {apart} disagreements in {pairs} pairs, as counted, got {rate}")
        points.append(Tried(budget, samples, pairs, apart, (low, high), loss, fields["values"][i]))
    return tuple(points)


@dataclass(frozen=True, kw_only=True)
class Comparison(Declared, Shown):
    """Result of ``compare``: the smallest number of samples at which each learner meets (ε, ρ)."""

    _indent = 1
    environment: Annotated[Environment, SIZED]
    """With no states and no actions where observations are a Box."""
    epsilon: float
    rho: Annotated[float, f.SHARE]
    pairs: Annotated[int, f.whole(1)]
    """At each budget, at most."""
    seed: Annotated[int, f.SEED]
    rows: Annotated[tuple[Row, ...], f.many(_READ_ROW)]
    target: Annotated[float | None, f.optional(f.real(-math.inf))] = None
    """A mean return that policies were asked for, where observations are a Box."""

    @property
    def black_box(self) -> bool:
        """Whether the best value is not known, and disagreement alone was asked for."""
        return any(row.shown.suboptimality is None for row in self.rows)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each learner and budget that was tried."""
        tried = [(row, point) for row in self.rows for point in row.points]
        return frame(
            {
                "learner": [row.learner for row, _ in tried],
                "access": [row.access for row, _ in tried],
                "budget": [point.budget for _, point in tried],
                "samples": [point.samples for _, point in tried],
                "pairs": [point.pairs for _, point in tried],
                "disagreement": [point.disagreement for _, point in tried],
                "low": [point.interval[0] for _, point in tried],
                "high": [point.interval[1] for _, point in tried],
                "suboptimality": [point.suboptimality for _, point in tried],
                "value": [None if point.value is None else point.value.mean for _, point in tried],
            }
        )

    def __repr__(self) -> str:
        reached = sum(row.samples is not None for row in self.rows)
        good = "" if self.target is None else f", return > {self.target:g}"
        target = f"disagreement ≤ {self.rho:g}" + (good if self.black_box else f", loss ≤ {self.epsilon:g}")
        return f"Comparison({visible(self.environment.title)}: {reached} of {len(self.rows)} learners reach {target})"


Comparison._document = Document("comparison", "reprl-comparison", 1, Comparison, declared(Comparison))

"""Comparison: what each learner paid for (ε, ρ), as a value, a file, and a table for the terminal."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprl.auditing.evidence import Estimate
from reprl.auditing.search import Crossing, Tried
from reprl.errors import DocumentError, quote
from reprl.execution.terminal import Visible, open_card, open_rich, visible
from reprl.sources.environment import Environment
from reprl.storage.documents import Reader, dump, load, plain
from reprl.storage.files import write_atomic
from reprl.storage.frames import frame

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

_FORMAT, _FIRST, _VERSION = "reprl-comparison", 1, 2
"""Version 2 is of black boxes, where losses are null and what policies earn is said beside them."""
_NAMES = ("environment", "epsilon", "rho", "pairs", "seed", "rows")
_ROW = (
    *("learner", "access", "options", "samples", "failed", "needed", "limit", "reached", "pairs", "disagreements"),
    *("disagreement", "interval", "suboptimality", "curve", "counts"),
)


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
    needed: Crossing | None
    """Where disagreement passes ρ, by a curve through the budgets near."""
    limit: float
    """The largest budget allowed; where none passed, the most samples a run drew."""
    shown: Tried
    """The budget that passed, or the largest."""
    points: tuple[Tried, ...]
    """All that were tried, by budget."""

    @property
    def reached(self) -> bool:
        """Whether some budget passed."""
        return self.samples is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        shown = self.shown
        return {
            "learner": self.learner,
            "access": self.access,
            "options": plain(self.options),
            "samples": self.samples,
            "failed": self.failed,
            "needed": None if self.needed is None else list(self.needed),
            "limit": self.limit,
            "reached": self.reached,
            "pairs": shown.pairs,
            "disagreements": shown.disagreements,
            "disagreement": shown.disagreement,
            "interval": list(shown.interval),
            "suboptimality": shown.suboptimality,
            "curve": [
                [p.samples, p.disagreement, *p.interval, *(() if p.value else (p.suboptimality,))] for p in self.points
            ],
            "counts": [[p.budget, p.pairs, p.disagreements] for p in self.points],
            **({} if shown.value is None else {"values": [list(p.value or ()) for p in self.points]}),
        }

    @classmethod
    def read(cls, row: Reader) -> Row:
        """Read what ``to_dict`` wrote."""
        points = _read_points(row)
        samples = row.optional("samples", row.real)
        if row.flag("reached") != (samples is not None):
            raise DocumentError(f"{row.where('reached')} must be true exactly where samples are, got {row['reached']}")
        counts = row.whole("pairs", 1), row.whole("disagreements"), row.share("disagreement")
        loss = row.optional("suboptimality", lambda field: row.real(field, -math.inf))
        figures = (*counts, row.pair("interval", 0.0, 1.0), loss)
        among = points[-1:] if samples is None else [point for point in points if point.samples == samples]
        same = [point for point in among if figures == _figures(point)]
        if not same:
            raise DocumentError(
                f"{row.name} must show one of its curve, or its last if none passed, got {quote(figures)}"
            )
        return cls(
            learner=row.text("learner"),
            access=row.text("access"),
            options=row.mapping("options"),
            samples=samples,
            failed=row.optional("failed", row.real),
            needed=row.optional("needed", lambda field: Crossing(*row.reals(field, (3,), 0.0).tolist())),
            limit=row.real("limit"),
            shown=same[0],
            points=points,
        )


def worth_words(point: Tried) -> str:
    """What policies lose or, in a black box, earn at a budget."""
    if point.value is not None:
        return f"{point.value.mean:.3g} [{point.value.low:.3g}, {point.value.high:.3g}]"
    return f"{point.suboptimality:.2g}"


def _figures(point: Tried) -> tuple[Any, ...]:
    return point.pairs, point.disagreements, point.disagreement, point.interval, point.suboptimality


def _read_points(row: Reader) -> tuple[Tried, ...]:
    counts = row.wholes("counts", (len(row.items("counts")), 3)).tolist()
    earned: list[Estimate | None] = [None] * len(counts)
    if "values" in row.document:
        curve = [[*four, None] for four in row.reals("curve", (len(counts), 4)).tolist()]
        earned = [Estimate(*three) for three in row.reals("values", (len(counts), 3), 0.0).tolist()]
    else:
        curve = row.reals("curve", (len(counts), 5)).tolist()
    points = []
    for i, ((budget, pairs, apart), (samples, rate, low, high, loss)) in enumerate(zip(counts, curve, strict=True)):
        where = f"{row.where('curve')}[{i}]"
        if not (samples > 0.0 and 0.0 <= low <= high <= 1.0):
            raise DocumentError(
                f"{where} must be samples, disagreement, its interval and a loss, got {row['curve'][i]}"
            )
        if not 0 <= apart <= pairs or pairs == 0 or rate != apart / pairs:
            raise DocumentError(f"{where} must be of {apart} disagreements in {pairs} pairs, as counted, got {rate}")
        points.append(Tried(budget, samples, pairs, apart, (low, high), loss, earned[i]))
    return tuple(points)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What each learner pays for (ε, ρ) on one environment."""

    environment: Environment
    epsilon: float
    rho: float
    pairs: int
    """At each budget, at most."""
    seed: int
    rows: tuple[Row, ...]

    @property
    def black_box(self) -> bool:
        """Whether the best value is not known, and disagreement alone was asked for."""
        return any(row.shown.suboptimality is None for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document of this comparison."""
        return {
            "format": _FORMAT,
            "version": _VERSION if self.black_box else _FIRST,
            "environment": self.environment.to_dict(),
            "epsilon": self.epsilon,
            "rho": self.rho,
            "pairs": self.pairs,
            "seed": self.seed,
            "rows": [row.to_dict() for row in self.rows],
        }

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
        """Who reached the target, on one line."""
        reached = sum(row.samples is not None for row in self.rows)
        target = f"disagreement ≤ {self.rho:g}" + ("" if self.black_box else f", loss ≤ {self.epsilon:g}")
        return f"Comparison({visible(self.environment.title)}: {reached} of {len(self.rows)} learners reach {target})"

    def _repr_html_(self) -> str:
        """Show what each learner paid in a notebook."""
        return open_card(self)

    def to_json(self) -> str:
        """Return the document as text."""
        return dump(self.to_dict(), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Comparison:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        document = Reader.open(text, "comparison", _FORMAT, _VERSION, _NAMES, earlier={_FIRST: _NAMES})
        names = _ROW if document["version"] == _FIRST else (*_ROW, "values")
        return cls(
            environment=Environment.read(document),
            epsilon=document.real("epsilon"),
            rho=document.share("rho"),
            pairs=document.whole("pairs", 1),
            seed=document.whole("seed", 0, 2**64 - 1),
            rows=tuple(Row.read(row) for row in document.parts("rows", names)),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the comparison as JSON, whole or not at all."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Comparison:
        """Read a comparison that ``save`` wrote."""
        return load(path, cls.from_json)

    def __rich__(self) -> Visible:
        """Show a table for the terminal, the cheapest learner of each access first."""
        return open_rich(self)

    def show(self, console: Console | None = None) -> None:
        """Print the comparison on a terminal."""
        from rich.console import Console

        (console or Console()).print(self)

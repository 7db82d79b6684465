"""AuditReport: the evidence as a value, a file, and a page for the terminal."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.auditing.divergence import Divergence
from reprl.auditing.world import World
from reprl.errors import ReprlError, quote
from reprl.files import read_bounded, write_atomic
from reprl.mdp.tabular import Labels

if TYPE_CHECKING:
    from rich.console import Console, Group

_FORMAT = "reprl-audit"
_VERSION = 1


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


class CurvePoint(NamedTuple):
    """Disagreement at one number of samples a run, with its interval."""

    samples: float
    disagreement: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditReport:
    """What pairs of runs showed about a learner. An audit can reject ρ; it can never verify it."""

    world: World
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
    """The cells that disagree, those that matter most first, at most 100."""
    curve: tuple[CurvePoint, ...] | None = None

    @property
    def ties(self) -> tuple[Cell, ...]:
        """The listed cells whose runs chose between actions of exactly the same value."""
        return tuple(cell for cell in self.cells if cell.stake == 0.0)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document of this audit."""
        world = self.world
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "environment": {
                "id": world.id,
                "options": _plain(world.options),
                "horizon": world.horizon,
                "n_states": world.n_states,
                "n_actions": world.n_actions,
                "labels": {
                    "name": world.labels.name,
                    "states": list(world.labels.states),
                    "actions": list(world.labels.actions),
                    "grid": None if world.labels.grid is None else list(world.labels.grid),
                },
            },
            "learner": self.learner,
            "access": self.access,
            "options": _plain(self.options),
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
            "first_divergence": [_plain(item._asdict()) for item in self.first_divergence],
            "samples": self.samples,
            "cells": [_plain(cell._asdict()) for cell in self.cells],
            "curve": None if self.curve is None else [list(point) for point in self.curve],
        }

    def to_json(self) -> str:
        """Return the document as text, the same bytes for the same audit."""
        return json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report to path as JSON, all or nothing."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditReport:
        """Read a report that ``save`` wrote."""
        return cls.from_json(read_bounded(path))

    @classmethod
    def from_json(cls, text: str | bytes) -> AuditReport:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        try:
            document = json.loads(text)
        except (ValueError, TypeError, RecursionError) as error:
            raise ReprlError(f"an audit must be a JSON document: {quote(str(error))}") from None
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ReprlError(f"an audit document must say format {_FORMAT!r}, got {quote(document)}")
        if document.get("version") != _VERSION:
            raise ReprlError(f"audit version must be {_VERSION}, got {quote(document.get('version'))}")
        try:
            return _read(document)
        except ReprlError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ReprlError(f"an audit document must be whole: {type(error).__name__}, {error}") from None

    def __rich__(self) -> Group:
        """Show verdict, cells and first divergences."""
        from reprl.auditing.render import render

        return render(self)

    def show(self, console: Console | None = None) -> None:
        """Print the report on a terminal."""
        from rich.console import Console

        (console or Console()).print(self)

    def __repr__(self) -> str:
        """The verdict on one line."""
        low, high = self.interval
        return (
            f"AuditReport({self.learner} on {self.world.labels.name}: disagreement {self.disagreement:.3g} "
            f"[{low:.3g}, {high:.3g}] over {self.pairs} pairs, ρ = {self.rho:g} {self.verdict})"
        )


def _read(document: dict[str, Any]) -> AuditReport:
    place = document["environment"]
    names, grid = place["labels"], place["labels"]["grid"]
    labels = Labels(
        name=names["name"],
        states=tuple(names["states"]),
        actions=tuple(names["actions"]),
        grid=None if grid is None else (int(grid[0]), int(grid[1])),
    )
    sizes = [int(place[name]) for name in ("horizon", "n_states", "n_actions")]
    low, high = document["interval"]
    return AuditReport(
        world=World(place["id"], dict(place["options"]), sizes[0], sizes[1], sizes[2], labels),
        by_cell=_table(document["by_cell"], sizes),
        by_cell_weighted=None if document["by_cell_weighted"] is None else _table(document["by_cell_weighted"], sizes),
        interval=(float(low), float(high)),
        distinct=tuple(document["distinct"]),
        value_gap=None if document["value_gap"] is None else Spread(**document["value_gap"]),
        suboptimality=None if document["suboptimality"] is None else Spread(**document["suboptimality"]),
        first_divergence=tuple(_divergence(item) for item in document["first_divergence"]),
        cells=tuple(
            Cell(**{**cell, "actions": tuple((a, f) for a, f in cell["actions"])}) for cell in document["cells"]
        ),
        curve=None if document["curve"] is None else tuple(CurvePoint(*point) for point in document["curve"]),
        **{name: document[name] for name in _SCALARS},
    )


_SCALARS = (
    *("learner", "access", "options", "seed", "rho", "level", "pairs", "max_pairs", "disagreements", "disagreement"),
    *("verdict", "p_value", "sequential", "alternative", "runs_per_key", "samples"),
)


def _divergence(item: dict[str, Any]) -> Divergence:
    actions = item["actions"]
    return Divergence(**{**item, "actions": None if actions is None else (int(actions[0]), int(actions[1]))})


def _table(rows: Any, sizes: list[int]) -> NDArray[np.float64]:
    table = np.asarray(rows, dtype=np.float64)
    if table.shape != (sizes[0], sizes[1]):
        raise ReprlError(f"by_cell must have shape {(sizes[0], sizes[1])}, got {table.shape}")
    return table


def _plain(value: Any) -> Any:
    """Return value in types that JSON has; anything else is shown as text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    return value if isinstance(value, float) and np.isfinite(value) else quote(value)

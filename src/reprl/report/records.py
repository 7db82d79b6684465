"""Records: a run, an audit or a comparison, as a report shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from reprl.artifacts.receipt import Receipt
from reprl.artifacts.recipe import Recipe
from reprl.auditing.divergence import Divergence
from reprl.auditing.record import Cell
from reprl.mdp.policy import Policy
from reprl.mdp.tabular import Labels
from reprl.report.reader import Array


class World(NamedTuple):
    """The environment of a report: its sizes, and names for people."""

    id: str | None
    options: Mapping[str, Any]
    horizon: int
    n_states: int
    n_actions: int
    labels: Labels
    unnamed: str
    """Why states and actions have no names; empty when they have."""

    @property
    def title(self) -> str:
        """What to call it."""
        return self.id or self.labels.name


class Run(NamedTuple):
    """One run: recipe, receipt and policy."""

    world: World
    recipe: Recipe
    receipt: Receipt
    policy: Policy


class Point(NamedTuple):
    """One budget on a curve: how often pairs disagreed, between which exact limits, and at what loss."""

    samples: float
    disagreement: float
    low: float
    high: float
    suboptimality: float | None = None


class Audit(NamedTuple):
    """An audit of one learner."""

    world: World
    learner: str
    options: Mapping[str, Any]
    rho: float
    level: float
    pairs: int
    disagreements: int
    disagreement: float
    interval: tuple[float, float]
    verdict: str
    sequential: bool
    runs_per_key: int
    distinct: tuple[int, ...]
    by_cell: Array
    by_cell_weighted: Array | None
    value_gap: tuple[float, float] | None
    suboptimality: tuple[float, float] | None
    divergences: tuple[Divergence, ...]
    cells: tuple[Cell, ...]
    samples: float
    curve: tuple[Point, ...]
    p_value: float | None
    digest: str


class Row(NamedTuple):
    """One learner of a comparison."""

    learner: str
    access: str
    samples: float | None
    limit: float
    reached: bool
    disagreement: float | None
    interval: tuple[float, float] | None
    suboptimality: float | None
    curve: tuple[Point, ...]


class Comparison(NamedTuple):
    """Several learners on one environment."""

    world: World
    epsilon: float
    rho: float
    pairs: int
    rows: tuple[Row, ...]
    digest: str

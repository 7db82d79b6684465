"""AuditReport: the evidence as a value, a file, and a page for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.auditing.divergence import Divergence
from reprl.auditing.evidence import VERDICTS
from reprl.auditing.policies import Policies
from reprl.auditing.recipes import Audited
from reprl.execution.terminal import Shown, visible
from reprl.mdp.environment import ENVIRONMENT, cells_of
from reprl.sources.environment import Environment
from reprl.sources.protocol import ACCESSES
from reprl.storage import fields as f
from reprl.storage.fields import Declared, Document, declared
from reprl.storage.frames import cell_columns, frame

if TYPE_CHECKING:
    import pandas as pd

_STATE = f.whole(0, lambda at: at.environment.n_states - 1)
_CHOSEN = f.row("an action and its share", f.whole(0, lambda at: at.environment.n_actions - 1), f.SHARE)


class Spread(NamedTuple):
    """Mean and maximum of a figure, in units of value."""

    mean: Annotated[float, f.real(-math.inf)]
    max: Annotated[float, f.real(-math.inf)]


class Earned(NamedTuple):
    """What policies earn exactly, in the environment's own reward units."""

    value: Annotated[float, f.real(-math.inf)]
    """On average over all runs."""
    best: Annotated[float, f.real(-math.inf)]
    baseline: Annotated[float | None, f.real(-math.inf)]
    """None where it depends on the shared seed."""
    name: Annotated[str, f.printable()]
    """What the baseline is."""


class Cell(NamedTuple):
    """A cell in which runs under one key chose differently."""

    step: Annotated[int, f.whole(0, lambda at: at.environment.horizon - 1)]
    state: Annotated[int, _STATE]
    disagreement: Annotated[float, f.SHARE]
    """Fraction of pairs whose actions differ here."""
    reachability: Annotated[float | None, f.SHARE]
    """The greatest probability of being here, over all policies; None for a black box."""
    stake: float | None
    """The largest distance in Q* of two actions that one key led to; 0 is an exact tie; None for a black box."""
    actions: Annotated[tuple[tuple[int, float], ...], f.many(_CHOSEN)]
    """(action, fraction of all runs that chose it), the most frequent first."""
    visited: Annotated[float | None, f.optional(f.SHARE)] = None
    """Share of the episodes of all audited policies that came here, in a black box that was valued by episodes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditReport(Declared, Shown):
    """Result of ``audit``: how often pairs of runs differ. An audit can reject ρ, but cannot verify it."""

    _indent = None
    environment: Annotated[Environment, ENVIRONMENT]
    learner: str
    access: Annotated[str, f.choice(ACCESSES)]
    options: Mapping[str, Any]
    seed: Annotated[int, f.SEED]
    """Of the audit; with it the audit can be repeated."""
    rho: Annotated[float, f.SHARE]
    level: Annotated[float, f.SHARE]
    pairs: Annotated[int, f.whole(1)]
    """Keys that were used, one designated pair each: the independent units of test and interval."""
    max_pairs: Annotated[int, f.whole(lambda at: at.pairs)]
    """How many pairs were asked for; a sequential test may stop before."""
    disagreements: Annotated[int, f.whole(0, lambda at: at.pairs)]
    """Designated pairs whose policies differ."""
    disagreement: Annotated[float, f.SHARE]
    """Fraction of pairs that differ; with more than two runs a key, of all pairs within a key."""
    interval: Annotated[tuple[float, float], f.many(f.SHARE, 2)]
    """95 %: Clopper–Pearson on the designated pairs, or a confidence sequence when pairs were watched one by one."""
    verdict: Annotated[str, f.choice(VERDICTS)]
    """"rejected", "not rejected", or "undecided" when a sequential test ran out of pairs."""
    p_value: Annotated[
        float | None,
        f.given_when(f.real(), lambda at: not at.sequential, "given exactly for a test of all pairs at once"),
    ]
    """Of the exact test of disagreement ≤ ρ; None when sequential."""
    sequential: bool
    alternative: Annotated[
        float | None, f.given_when(f.SHARE, lambda at: at.sequential, "given exactly for a sequential test")
    ]
    """The disagreement that a sequential "not rejected" rules out."""
    runs_per_key: Annotated[int, f.whole(2)]
    distinct: Annotated[tuple[int, ...], f.many(f.whole(1, lambda at: at.runs_per_key), lambda at: at.pairs)]
    """Distinct policies under each key."""
    by_cell: Annotated[NDArray[np.float64], f.reals(cells_of, 0.0, 1.0)]
    """(H, S): fraction of pairs whose actions differ."""
    by_cell_weighted: Annotated[NDArray[np.float64] | None, f.reals(cells_of, 0.0, 1.0)]
    """The same times the greatest probability of being there, over all policies; None for a black box."""
    value_gap: Spread | None
    """|difference| of the exact values of a pair's policies; None for a black box."""
    suboptimality: Spread | None
    """Optimal value less a policy's, over all runs; None for a black box."""
    earned: Annotated[Earned | None, f.record(Earned)] = None
    """What that is beside a baseline; None for a black box."""
    first_divergence: tuple[Divergence, ...]
    """One for every designated pair that disagrees."""
    samples: float
    """Mean per run, by the models' ledgers."""
    cells: tuple[Cell, ...]
    """The cells that disagree and are reached, those that matter most first, at most 100."""
    policies: Policies
    """How many different policies there were, where they get, what they earn."""
    recipe: Annotated[Audited | None, f.record(Audited)] = None
    """Whose runs were audited, and what test and interval are then about; None where no recipe was given."""

    @property
    def ties(self) -> tuple[Cell, ...]:
        """The listed cells whose runs chose between actions of exactly the same value."""
        return tuple(cell for cell in self.cells if cell.stake == 0.0)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each step and state: the share of pairs that differ there, and weighted by reachability."""
        columns = cell_columns((self.environment.horizon, self.environment.n_states), self.environment.labels.states)
        columns["disagreement"] = self.by_cell.ravel()
        if self.by_cell_weighted is not None:
            columns["weighted"] = self.by_cell_weighted.ravel()
        return frame(columns)

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"AuditReport({visible(self.learner)} on {visible(self.environment.labels.name)}: disagreement "
            f"{self.disagreement:.3g} "
            f"[{low:.3g}, {high:.3g}] over {self.pairs} pairs, ρ = {self.rho:g} {self.verdict})"
        )


AuditReport._document = Document("audit", "reprl-audit", 1, AuditReport, declared(AuditReport))

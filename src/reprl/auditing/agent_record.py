"""AgentReport: the result of an audit of agents without tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from reprl.auditing.evidence import VERDICTS, Estimate, estimate
from reprl.execution.terminal import Shown, visible
from reprl.storage import fields as f
from reprl.storage.fields import Declared, Document, with_fields
from reprl.storage.frames import frame

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "reprl-agents"
GRADE = "approximate replicability"
"""Of what is measured here; equality of tables, as in ``reprl.audit``, is another."""


class AgentPair(NamedTuple):
    """Two agents of one shared key, on the same evaluation seeds."""

    distance: Annotated[float, f.SHARE]
    """Mean over episodes of the share of states in which they act differently."""
    interval: Annotated[tuple[float, float], f.many(f.SHARE, 2)]
    """95 %, over episodes, for these two agents; valid for any law."""
    alike: Annotated[int, f.whole(0, lambda at: at.episodes)]
    """Seeds on which they never differ, whichever of them plays."""
    alike_interval: Annotated[tuple[float, float], f.many(f.SHARE, 2)]
    """Clopper–Pearson, 95 %, of the chance of such a seed."""
    returns: Annotated[tuple[float, float], f.many(f.real(-math.inf), 2)]
    """Mean return of each."""
    difference: Annotated[Estimate | None, estimate()]
    """Of the returns, first less second, by seed; None for a single episode."""
    states: int
    """Met by either, in all."""


class Disagreement(NamedTuple):
    """A state in which agents act differently."""

    observation: str
    step: int
    apart: Annotated[float, f.SHARE]
    """Share of the pairs that met this state and act differently in it."""
    actions: Annotated[tuple[tuple[str, float], ...], f.many(f.row("an action and its share", f.TEXT, f.SHARE))]
    """(action, share of the agents of those pairs that take it), the most frequent first."""


@dataclass(frozen=True, kw_only=True)
class AgentReport(Declared, Shown):
    """Result of ``audit_agents``: *approximate* replicability (arXiv:2510.20200), from pairs of trainings."""

    _indent = 1
    environment: str
    spaces: Annotated[tuple[str, str], f.row("two texts", f.TEXT, f.TEXT)]
    """Of observations and of actions."""
    horizon: Annotated[int, f.whole(1)]
    learner: str
    options: Mapping[str, Any]
    seed: Annotated[int, f.SEED]
    """Of the audit; with it the audit can be repeated."""
    rho: Annotated[float, f.SHARE]
    gamma: Annotated[float, f.SHARE]
    level: Annotated[float, f.SHARE]
    closeness: Annotated[float, f.SHARE]
    """Actions of a Box within this share of its range count as one."""
    episodes: Annotated[int, f.whole(1)]
    """Of each agent, for evaluation."""
    disagreements: Annotated[int, f.whole(0, lambda at: len(at.pairs))]
    """Pairs whose distance is more than gamma."""
    interval: Annotated[tuple[float, float], f.many(f.SHARE, 2)]
    """Clopper–Pearson, 95 %, of the chance of such a pair."""
    verdict: Annotated[str, f.choice(VERDICTS[:2])]
    """"rejected" or "not rejected"."""
    p_value: Annotated[float, f.SHARE]
    distance: Annotated[Estimate, estimate()]
    """Mean over pairs, with an interval that is valid for any law."""
    value: Annotated[Estimate | None, estimate()]
    """Mean return; Student's interval, by pair; None for a single pair."""
    gap: Annotated[Estimate | None, estimate()]
    """|difference| of the mean returns of a pair; the same."""
    samples: float
    """Mean per training."""
    pairs: tuple[AgentPair, ...]
    places: tuple[Disagreement, ...]
    """States in which most pairs act differently."""

    @property
    def identical(self) -> int:
        """Pairs that did the same in all states that either met."""
        return sum(pair.distance == 0.0 for pair in self.pairs)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each pair."""
        return frame(
            {
                "distance": [pair.distance for pair in self.pairs],
                "low": [pair.interval[0] for pair in self.pairs],
                "high": [pair.interval[1] for pair in self.pairs],
                "alike": [pair.alike for pair in self.pairs],
                "first_return": [pair.returns[0] for pair in self.pairs],
                "second_return": [pair.returns[1] for pair in self.pairs],
                "states": [pair.states for pair in self.pairs],
            }
        )

    def __repr__(self) -> str:
        count = f"{self.disagreements} of {len(self.pairs)} pairs at a distance above {self.gamma:g}"
        return f"AgentReport({visible(self.learner)} on {visible(self.environment)}: {count}, {self.verdict}; {GRADE})"


_GRADE = f.constant(GRADE, f"one of {GRADE}")
_TABLE = with_fields(AgentReport, places={"grade": _GRADE})
AgentReport._document = Document("audit of agents", FORMAT, 1, AgentReport, _TABLE)

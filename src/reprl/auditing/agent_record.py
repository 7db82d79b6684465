"""AgentReport: how far agents that are no tables were apart, as a value, a file, and a page for the terminal."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reprl.auditing.evidence import VERDICTS, Estimate
from reprl.errors import DocumentError, check_real, quote
from reprl.execution.terminal import Visible, open_card, open_rich, visible
from reprl.storage.documents import Reader, dump, load, plain
from reprl.storage.files import write_atomic
from reprl.storage.frames import frame

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

FORMAT, _VERSION = "reprl-agents", 1
GRADE = "approximate replicability"
"""Of what is measured here; equality of tables, as in ``reprl.audit``, is another."""


class AgentPair(NamedTuple):
    """Two agents of one shared key, on the same evaluation seeds."""

    distance: float
    """Mean over episodes of the share of states in which they act differently."""
    interval: tuple[float, float]
    """95 %, over episodes, for these two agents; valid for any law."""
    alike: int
    """Seeds on which they never differ, whichever of them plays."""
    alike_interval: tuple[float, float]
    """Clopper–Pearson, 95 %, of the chance of such a seed."""
    returns: tuple[float, float]
    """Mean return of each."""
    difference: Estimate | None
    """Of the returns, first less second, by seed; None for a single episode."""
    states: int
    """Met by either, in all."""


class Place(NamedTuple):
    """A state in which agents part."""

    observation: str
    step: int
    apart: float
    """Share of the pairs that act differently here."""
    actions: tuple[tuple[str, float], ...]
    """(action, share of all agents that take it), the most frequent first."""


@dataclass(frozen=True, kw_only=True)
class AgentReport:
    """What pairs of trainings showed: a grade of its own, *approximate* replicability (arXiv:2510.20200)."""

    environment: str
    spaces: tuple[str, str]
    """Of observations and of actions."""
    horizon: int
    learner: str
    options: Mapping[str, Any]
    seed: int
    """Of the audit; with it the audit can be repeated."""
    rho: float
    gamma: float
    level: float
    closeness: float
    """Actions of a Box within this share of its range count as one."""
    episodes: int
    """Of each agent, for evaluation."""
    disagreements: int
    """Pairs whose distance is more than gamma."""
    interval: tuple[float, float]
    """Clopper–Pearson, 95 %, of the chance of such a pair."""
    verdict: str
    """"rejected" or "not rejected"."""
    p_value: float
    distance: Estimate
    """Mean over pairs, with an interval that is valid for any law."""
    value: Estimate | None
    """Mean return; Student's interval, by pair; None for a single pair."""
    gap: Estimate | None
    """|difference| of the mean returns of a pair; the same."""
    samples: float
    """Mean per training."""
    pairs: tuple[AgentPair, ...]
    places: tuple[Place, ...]
    """States in which most pairs part."""

    @property
    def identical(self) -> int:
        """Pairs that did the same in all states that either met."""
        return sum(pair.distance == 0.0 for pair in self.pairs)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document of this audit."""
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__}
        figures |= {"options": plain(self.options), "grade": GRADE}
        figures["pairs"] = [plain(pair._asdict()) for pair in self.pairs]
        figures["places"] = [plain(place._asdict()) for place in self.places]
        return {"format": FORMAT, "version": _VERSION, **plain(figures)}

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

    def to_json(self) -> str:
        """Return the document as text."""
        return dump(self.to_dict(), indent=1)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as JSON, whole or not at all."""
        return write_atomic(path, self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AgentReport:
        """Read a report that ``save`` wrote."""
        return load(path, cls.from_json)

    @classmethod
    def from_json(cls, text: str | bytes) -> AgentReport:
        """Read what ``to_json`` wrote; anything else is a ReprlError."""
        names = (*cls.__dataclass_fields__, "grade")
        document = Reader.open(text, "audit of agents", FORMAT, _VERSION, names)
        document.choice("grade", (GRADE,))
        pairs = tuple(_read_pair(part, document.whole("episodes", 1)) for part in document.parts("pairs", _PAIR))
        spaces = document.items("spaces")
        if len(spaces) != 2 or not all(isinstance(space, str) for space in spaces):
            raise DocumentError(f"{document.where('spaces')} must be two texts, got {quote(spaces)}")
        return cls(
            environment=document.text("environment"),
            spaces=(spaces[0], spaces[1]),
            horizon=document.whole("horizon", 1),
            learner=document.text("learner"),
            options=document.mapping("options"),
            seed=document.whole("seed", 0, 2**64 - 1),
            rho=document.share("rho"),
            gamma=document.share("gamma"),
            level=document.share("level"),
            closeness=document.share("closeness"),
            episodes=document.whole("episodes", 1),
            disagreements=document.whole("disagreements", 0, len(pairs)),
            interval=document.pair("interval", 0.0, 1.0),
            verdict=document.choice("verdict", VERDICTS[:2]),
            p_value=document.share("p_value"),
            distance=_read_estimate(document, "distance"),
            value=document.optional("value", lambda field: _read_estimate(document, field)),
            gap=document.optional("gap", lambda field: _read_estimate(document, field)),
            samples=document.real("samples"),
            pairs=pairs,
            places=tuple(_read_place(part) for part in document.parts("places", Place._fields)),
        )

    def __repr__(self) -> str:
        """The verdict on one line."""
        count = f"{self.disagreements} of {len(self.pairs)} pairs more than {self.gamma:g} apart"
        return f"AgentReport({visible(self.learner)} on {visible(self.environment)}: {count}, {self.verdict}; {GRADE})"

    def _repr_html_(self) -> str:
        """Show verdict, distances and the states that part agents in a notebook."""
        return open_card(self)

    def __rich__(self) -> Visible:
        """Show verdict, distances and the states that part agents."""
        return open_rich(self)

    def show(self, console: Console | None = None) -> None:
        """Print the report on a terminal."""
        from rich.console import Console

        (console or Console()).print(self)


_PAIR = AgentPair._fields


def _read_estimate(document: Reader, field: str) -> Estimate:
    return Estimate(*document.reals(field, (3,), -math.inf).tolist())


def _read_pair(part: Reader, episodes: int) -> AgentPair:
    first, second = part.reals("returns", (2,), -math.inf).tolist()
    return AgentPair(
        distance=part.share("distance"),
        interval=part.pair("interval", 0.0, 1.0),
        alike=part.whole("alike", 0, episodes),
        alike_interval=part.pair("alike_interval", 0.0, 1.0),
        returns=(first, second),
        difference=part.optional("difference", lambda field: _read_estimate(part, field)),
        states=part.whole("states"),
    )


def _read_place(part: Reader) -> Place:
    actions = []
    for i, item in enumerate(part.items("actions")):
        where = f"{part.where('actions')}[{i}]"
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise DocumentError(f"{where} must be an action and its share, got {quote(item)}")
        actions.append((item[0], check_real(where, item[1], 0.0, 1.0, open_low=False, open_high=False)))
    return Place(part.text("observation"), part.whole("step"), part.share("apart"), tuple(actions))

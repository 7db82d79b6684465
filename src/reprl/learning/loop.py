"""The loop of every learner: gather samples, choose a policy, judge it; with more data until the stop rule stops.

Learners differ by the objects that they put in, not by switches in here (CONTRIBUTING.md, "How a call walks through the
files").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

from reprl.assurance.stopping import Judgement, Round, StopRule
from reprl.mdp.dynamics import Data
from reprl.sources.source import DataSource, Wish


class Rule(Protocol):
    """f(ξ, ·): a function of shared randomness and a model."""

    def choose(self, data: Any, /) -> Any:
        """Return the policy for these data, with what the stop rule needs."""

    def wanted(self, found: Any, /) -> Wish:
        """Return how much a sample of each cell would help to determine the policy."""


class Outcome(NamedTuple):
    """The last samples, data and judgement of a run."""

    known: Any
    """The source's samples."""
    data: Data
    """The data that the rule read."""
    judgement: Judgement


def run_loop(
    source: DataSource[Any],
    rule: Rule,
    stop: StopRule,
    limit: int | None = None,
    known: Any = None,
    tell: Callable[[Round, Judgement], None] | None = None,
) -> Outcome:
    """Gather samples until a stop rule stops, or there are no more.

    limit is None for the source's own; known are samples of an earlier run; tell is called after every round.
    """
    sizes, wanted = source.sizes(limit), None
    if known is None:
        known = source.empty()
    else:
        sizes = [size for size in sizes if size > known.size] or [known.size]
    for number, size in enumerate(sizes, 1):
        known = source.gather(known, size, wanted)
        data = known.estimate()
        found = rule.choose(data)
        last = number == len(sizes) or source.exhausted(known)
        now = Round(source, known, rule, data, found, last=last)
        judgement = stop.judge(now)
        if tell is not None:
            tell(now, judgement)
        if judgement.enough or last:
            break
        wanted = partial(rule.wanted, found)
    return Outcome(known, data, judgement)

"""The loop of a run: gather samples, choose a policy, judge it; with more data until both promises hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reprl.assurance.verdict import Verdict
from reprl.mdp.evidence import Evidence
from reprl.rule.bound import SoftRule
from reprl.rule.soft import Choice
from reprl.sources.source import DataSource, Samples


class Round(NamedTuple):
    """What a run knows after a round."""

    number: int
    """From 0."""
    samples: Samples
    evidence: Evidence
    policy: NDArray[np.int64]
    """(H, S): f(ξ, ·) of the evidence."""
    choice: Choice
    last: bool
    """Whether nothing more can be gathered."""
    drift: str = ""
    """Evidence against stationary dynamics that somebody stated; empty if there is none."""


class Outcome(NamedTuple):
    """The last round of a run, and what it supports."""

    round: Round
    verdict: Verdict


def run_loop(
    source: DataSource,
    rule: SoftRule,
    judge: Callable[[Round], Verdict],
    limit: int | None = None,
    tell: Callable[[Round, Verdict], None] | None = None,
) -> Outcome:
    """Gather samples until both promises are rehearsed; quality alone, where samples contradict what was stated.

    limit is None for the source's own; tell is called after every round.
    """
    sizes, known = source.sizes(limit), source.empty()
    for number, size in enumerate(sizes):
        known = source.gather(known, size, lambda evidence: rule.play(evidence.model))
        evidence = known.evidence()
        policy, choice = rule.choose(evidence.model)
        last = number == len(sizes) - 1 or source.exhausted(known)
        now = Round(number, known, evidence, policy, choice, last, source.drift(known))
        verdict = judge(now)
        if tell is not None:
            tell(now, verdict)
        if verdict.same or last or (now.drift and verdict.good):
            break
    return Outcome(now, verdict)

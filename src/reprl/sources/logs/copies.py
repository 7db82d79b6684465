"""Copies: whether episodes of a log occur more often than its own law explains, which makes intervals too short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprl.errors import ReprlError
from reprl.mdp.dynamics import Data
from reprl.sources.logs.ends import FLAGS
from reprl.sources.logs.read import read_log
from reprl.sources.logs.scan import RUN, Scan
from reprl.sources.logs.spec import MISSING, LogSpec
from reprl.sources.logs.tables import Chunk, Table

COPIED = 0.1
"""Pairs of equal episodes, beyond those that the log's own law explains, over the number of episodes, from which on
intervals are too short: their variance is too small by twice that share."""
EXPLAINED = 1.5
"""How many times as many pairs as that law explains are still put down to chance."""


def count_copies(table: Table, spec: LogSpec, scan: Scan) -> dict[str, float]:
    """How many pairs of episodes have one content, how many of them the log's law explains, and a common factor."""
    found: dict[str, float] = {**scan.copies._asdict(), "expected": 0.0}
    if scan.copies.factor > 1 or max(scan.copies[:3]) <= COPIED * scan.episodes:
        return found
    steps = min(int(scan.lengths.length[-1]), spec.kept)
    told: dict[str, Any] = {
        "early_ends": "terminated",
        "reward_range": spec.reward_range,
        "reward_step": spec.reward_step,
    }
    try:
        contents = LogSpec(horizon=steps, states=spec.states, actions=spec.actions, **told)
        expected = expected_pairs(read_log(_without_ends(table, scan, spec), contents).data)
    except ReprlError:  # rows that are refused, or too large a table
        expected = -1.0
    return found | {"expected": expected}


def _without_ends(table: Table, scan: Scan, spec: LogSpec) -> Table:
    """Return a log in which nothing says why episodes stop: those that stop after the same rows are then alike."""
    roles = ("next_state", *FLAGS)
    columns = {role: name for role, name in table.columns.items() if role not in roles}
    number = np.zeros_like(scan.lengths.number)
    number[:, 0] = scan.lengths.number.sum(axis=1)
    known = scan._replace(lengths=scan.lengths._replace(number=number))

    def chunks() -> Iterator[Chunk]:
        for chunk in table.chunks():
            yield {role: column for role, column in chunk.items() if role not in roles}

    odd = MISSING.intersection((*spec.states, *spec.actions))
    return table._replace(columns=columns, chunks=chunks, found=[(odd, known)])


def expected_pairs(data: Data) -> float:
    """Return how many pairs of episodes would have the same content if each were drawn by the law that a log shows.

    Σ over contents of its chance squared, step by step, with unbiased estimates of the squares; steps are apart, and an
    episode is over where it stops.
    """
    cell, following, _, hits = data.counts.rows()
    horizon, n_states, n_actions = data.counts.outcomes.shape
    here = data.counts.visits.sum(axis=2).astype(np.float64)
    place = cell // n_actions
    times, both = hits.astype(np.float64), here.ravel()[place]
    square = times * (times - 1.0) / np.maximum(both * (both - 1.0), 1.0)
    step = place // n_states
    alike: NDArray[np.float64] = np.ones(n_states)
    for h in range(horizon - 1, -1, -1):
        now = step == h
        weights = square[now] * alike[following[now]]
        alike = np.bincount(place[now] % n_states, weights, minlength=n_states).astype(np.float64)
        alike[-1] = 1.0  # an episode that is over has nothing more to be told apart by
    starts = data.starts.astype(np.float64)
    return float(0.5 * (starts * (starts - 1.0) * alike).sum())


def copied_episodes(scan: Scan, copies: Mapping[str, float]) -> str:
    """Say that episodes were copied, from what ``count_copies`` has found; empty if nothing shows it."""
    episodes, so = scan.episodes, "copies make intervals too short"
    if copies["factor"] > 1:
        return f"every episode stands {copies['factor']:g} times or a multiple of it: {so}"
    if copies["bare_factor"] > 1:
        return f"every episode stands {copies['bare_factor']:g} times or a multiple of it, but for its rewards: {so}"
    alike = copies["bare_pairs"] / max(1.0, 0.5 * episodes * (episodes - 1))
    by_chance = 0.5 * episodes**2 * alike**RUN
    if copies["bare_runs"] - EXPLAINED * by_chance > COPIED * episodes:
        return (
            f"{copies['bare_runs']:,.0f} runs of {RUN} episodes come twice in the same order, but for their rewards, "
            f"where chance explains {by_chance:,.0f}: {so}"
        )
    if copies["expected"] < 0.0:
        return ""
    chance = copies["expected"] / max(1.0, 0.5 * episodes * (episodes - 1))  # that two episodes are equal
    explained = {
        "pairs": copies["expected"],
        "runs": 0.5 * episodes**2 * chance**RUN,
        "neighbours": episodes * chance,
    }
    words = {
        "pairs": "pairs of episodes are the same from the first row to the last",
        "runs": f"runs of {RUN} episodes come twice in the same order",
        "neighbours": "episodes are the same as the one before",
    }
    for name, said in words.items():
        if copies[name] - EXPLAINED * explained[name] > COPIED * episodes:
            return f"{copies[name]:,.0f} {said}, where the log's own law explains {explained[name]:,.0f}: {so}"
    return ""

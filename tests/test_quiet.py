"""Promises on quiet worlds: nearly deterministic, with a rare event that small samples do not show.

False-alarm rate: each claim is rejected at p < 1e-6 of an exact binomial test, at the limits ρ = 0.1 and δ = 0.1 of the
promises themselves. Power, at least 0.9: with 20 pairs against a rule that parts 70 % of the pairs, or misses the
accuracy in 55 % of the runs; with six pairs of each of two worlds against one that misses it in 65 % of the runs.
Negative control: what was measured of an earlier rule, with the same seeds.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import reprl
from experiments import pairs
from experiments.pairs import (
    COARSE,
    DEFAULT,
    Count,
    Counts,
    best_value,
    by_case,
    count,
    first_action_value,
    measure_pairs,
)
from experiments.quiet import plan
from experiments.quiet.__main__ import table
from experiments.quiet.worlds import NAMED, Box, drawn, make_log, random_quiet
from reprl.canonical import goal

PAIRS, FEW = 20, 6
FAST = ("parallel/q=0.9/unseen reward", "episodes/ε=0.3/slow door")
ROOT = Path(__file__).parent.parent
CASES = {case.name: case for case in plan.cases(first=0, number=4)}


def failures(found: list[Counts]) -> tuple[Count, Count]:
    """Return pairs apart and accuracies missed, over several cases: the claims hold on each, hence on all together."""
    apart, missed = [each.apart for each in found], [each.missed for each in found]
    return _together(apart), _together(missed)


def _together(counts: list[Count]) -> Count:
    return Count(sum(each.failures for each in counts), sum(each.trials for each in counts), 0.1)


def check(names: tuple[str, ...], number: int) -> None:
    apart, missed = failures([count(measure_pairs(CASES[name], range(number))) for name in names])
    assert not apart.rejected, f"{apart} pairs apart"
    assert not missed.rejected, f"{missed} runs lose more than asked"
    assert missed.trials >= len(names) * number, "half of the runs must promise something, or little is tested"


@pytest.mark.statistical
def test_promises_hold_where_the_event_that_decides_is_rare() -> None:
    check(FAST, FEW)


@pytest.mark.statistical
@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(("parallel/", "episodes/"))])
def test_promises_hold_on_every_quiet_world(name: str) -> None:
    check((name,), PAIRS)


@pytest.mark.parametrize(("trials", "rate"), [(PAIRS, 0.7), (2 * PAIRS, 0.55), (4 * FEW, 0.65)])
def test_the_stated_power(trials: int, rate: float) -> None:
    least = next(k for k in range(trials + 1) if Count(k, trials, 0.1).rejected)
    assert binom.sf(least - 1, trials, rate) > 0.9


def test_the_loss_that_a_quality_allows_is_that_of_the_rule() -> None:
    assert pairs.LEAST_GAIN == goal.LEAST_GAIN
    for name in ("no gain", "two arms, idle"):
        mdp = NAMED[name]()
        baseline = first_action_value(mdp)
        expected = goal.Goal(None, 0.9).allowed_loss(best_value(mdp) - baseline, mdp.horizon)
        assert DEFAULT.allowed(mdp, baseline) == pytest.approx(expected)
        assert COARSE.allowed(mdp, baseline) == 0.3


def test_only_what_is_promised_can_be_broken() -> None:
    def row(apart: int, losses: list[float], statuses: list[str]) -> list[object]:
        return [0, [10, 20], apart, losses, [0.0, 0.0], statuses, [0.1, 0.1], [None, None], [0.0, 0.0]]

    rows = [
        row(1, [0.2, 0.0], ["rehearsed", "rehearsed"]),
        row(1, [0.2, 0.2], ["none", "certified"]),
        row(0, [0.0, 0.05], ["rehearsed", "rehearsed"]),
    ]
    seen = count({"allowed": 0.1, "rows": rows})
    assert (seen.apart[:2], seen.missed[:2], seen.unpromised) == ((1, 2), (2, 5), 1)


def test_random_quiet_worlds_are_nearly_deterministic_and_differ() -> None:
    worlds = [random_quiet(seed) for seed in range(30)]
    assert len({world.digest for world in worlds}) == 30
    for world in worlds:
        assert (world.transition.max(axis=3) >= 0.85).all()
        rare = world.reward[(world.reward > 0.0) & (world.reward < 1.0)]
        assert world.reward_kind == "deterministic" or (rare <= 0.05).all()
    assert drawn(5, 1)["random 5"]().digest == worlds[5].digest


def test_black_box_and_log_follow_the_world() -> None:
    mdp = NAMED["rare start"]()
    box = Box(mdp)
    starts = np.array([box.reset(seed=seed)[0] for seed in range(4000)])
    log = make_log(mdp, 4000, seed=1)
    for share in (np.mean(starts == 1), np.mean(log["state"][:: mdp.horizon] == 1)):
        assert abs(share - 0.035) < 6 * np.sqrt(0.035 / 4000)
    assert np.array_equal(log["reward"], mdp.reward[0][log["state"], log["action"]])
    state, _ = box.reset(seed=0)
    assert box.step(1)[1] == mdp.reward[0, state, 1]
    assert isinstance(mdp, reprl.TabularMDP)


def test_the_page_shows_the_stored_data() -> None:
    page = (ROOT / "docs" / "quiet.md").read_text("utf-8")
    shown = page.partition("<!-- now -->")[2].partition("<!-- end -->")[0]
    data = json.loads((ROOT / "experiments" / "quiet" / "data.json").read_text("utf-8"))
    assert shown.strip() == table(data["measured"]).strip()
    assert not [name for name, found in by_case(data["measured"]).items() if count(found).rejected]

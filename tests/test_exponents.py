"""experiments.exponents: the chance of parting is what keys show, and sizes are read off between those measured."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from experiments.exponents import __main__ as exponents
from reprl.paper.full import ignore_starved
from reprl.paper.rep_explore import draw_ignored
from reprl.paper.rep_level_explore import stack_tiers
from reprl.paper.rep_rl_bandit import tiered_induction
from reprl.paper.rep_var_bandit import Decision
from reprl.randomness import SharedKey
from tests.statistics import FALSE_ALARM


@pytest.mark.statistical
def test_the_chance_of_parting_is_the_share_of_keys_that_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair of data sets, 200 keys drawn for real, false alarm 1e-6; control: half of the chance is rejected."""
    monkeypatch.setattr(exponents, "DOUBLINGS", 1)
    point = exponents.Point(states=2, horizon=2)
    one, two = (exponents.gather(point, 0, half)[1] for half in range(2))
    chance = float(np.mean([exponents.parting(point, number, one, two) for number in range(6)]))
    accuracy, delta = point.constants.accuracy, point.constants.delta
    decision, parted = Decision(mechanism="exponential", coupling="joint", rounding=False), 0
    for seed in range(200):
        key, printed = SharedKey(seed), []
        for _, mu, counts, _ in (one, two):
            ignored = draw_ignored(key.derive("ignore"), mu, "joint")
            tiers = ignore_starved(stack_tiers(ignored[None]), counts)
            made = tiered_induction(
                key.derive("decide"), counts, tiers, accuracy=accuracy, delta=delta, decision=decision
            )
            printed.append((ignored.tobytes(), made.policy))
        parted += printed[0] != printed[1]
    assert 0.1 < chance < 0.9
    assert stats.binomtest(parted, 200, chance).pvalue > FALSE_ALARM
    assert stats.binomtest(parted, 200, chance / 2).pvalue < FALSE_ALARM


def test_sizes_are_read_off_between_those_measured_and_beyond_them_by_a_root() -> None:
    row = {"samples": [100, 400, 1600], "chances": [[0.4, 0.2, 0.1], [0.4, 0.2, 0.1]]}
    both = np.arange(2)
    assert exponents.needed(row, 0.2, both) == pytest.approx(400)
    assert exponents.needed(row, 0.1 * 2**0.5, both) == pytest.approx(800)
    assert exponents.needed(row, 0.05, both) == pytest.approx(6400)


def test_blocks_are_joined_and_points_of_two_sweeps_measured_once() -> None:
    part = {"x": 4, "runs": [1], "samples": [2], "chances": [[0.5]]}
    found = exponents.points({"measured": {"states/4#0": part, "states/4#1": part}})
    assert len(found["states/4"]["chances"]) == 2
    assert (found["epsilon/0.5"]["x"], found["horizon/2"]["x"]) == (2.0, 2)
    assert "states/8" not in found
    names = {name.partition("#")[0] for name in exponents.jobs(quick=False)}
    assert names >= set(exponents.SAME.values())

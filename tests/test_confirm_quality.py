"""confirm --quality: good policies are confirmed, bad ones never or hardly, and the answer is a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.artifacts.confirm_quality import QualityConfirmation
from reprl.errors import ReprlError
from reprl.learning.baseline import exact_loss
from reprl.learning.settings import Settings
from tests import clinic_log
from tests.shop import Shop
from tests.statistics import keeps


def grid() -> reprl.TabularMDP:
    return reprl.make("gridworld-v0", size=3, horizon=4)


def confirm(policy: Any, env: Any = None, **options: Any) -> QualityConfirmation:
    found = reprl.confirm(policy, env, quality=0.9, **options)
    assert isinstance(found, QualityConfirmation)
    return found


def bad_policy(mdp: reprl.TabularMDP, factor: float) -> reprl.Policy:
    """A policy that loses at least `factor` times what is allowed, as little more as changing single cells gives."""
    allowed, solution = exact_loss(mdp, Settings(quality=0.9)), mdp.solve()
    table, best = solution.policy.table.copy(), float(mdp.initial @ solution.values[0])
    losses = []
    for h, s in np.ndindex(table.shape):
        for a in range(mdp.n_actions):
            other = table.copy()
            other[h, s] = a
            losses.append((best - mdp.evaluate(other), h, s, a))
    losses = sorted(loss for loss in losses if loss[0] >= factor * allowed)
    assert losses
    _, h, s, a = losses[0]
    table[h, s] = a
    return reprl.Policy(table)


def test_the_policy_of_the_rule_is_confirmed_by_a_second_team() -> None:
    mdp = grid()
    policy = reprl.choose(mdp, shared_seed=3)
    found = confirm(policy, mdp, data_seed=1)
    assert found.verdict == "confirmed"
    assert found.status == "rehearsed"
    assert found.content == found.teams >= 100
    assert found.baseline <= found.value <= found.best + 1e-9
    assert found.samples < 500_000


def test_false_confirmations_are_rare() -> None:
    """Forty teams check a policy that loses more than is allowed."""
    mdp = grid()
    policy = bad_policy(mdp, 1.02)
    verdicts = [confirm(policy, mdp, data_seed=seed, max_samples=60_000).verdict for seed in range(40)]
    assert keeps(verdicts.count("confirmed"), 40, 0.1, power=0.0, finds=0.5)


def test_a_poor_policy_is_refuted_and_little_data_leave_it_open() -> None:
    mdp = grid()
    worst = reprl.Policy(np.zeros((mdp.horizon, mdp.n_states), dtype=int))
    assert confirm(worst, mdp, data_seed=1).verdict == "refuted"
    policy = reprl.choose(mdp, shared_seed=3)
    open_ = confirm(policy, mdp, data_seed=1, max_samples=400)
    assert open_.verdict == "undecided"
    assert open_.status == "none"


def test_a_black_box_and_a_run_s_own_baseline(tmp_path: Path) -> None:
    how: dict[str, Any] = {"horizon": 4, "reward_range": Shop.REWARDS}
    run = reprl.learn(Shop, shared_seed=1, data_seed=1, max_samples=60_000, **how)
    run.save(tmp_path / "run")
    found = confirm(tmp_path / "run", Shop, data_seed=7, max_samples=200_000, **how)
    assert found.verdict == "confirmed"
    assert found.fingerprint == run.policy.fingerprint
    other = confirm(tmp_path / "run", Shop, data_seed=7, max_samples=200_000, workers=2, **how)
    assert other.digest == found.digest


def test_a_log_confirms_a_policy_of_another_log() -> None:
    run = reprl.learn_log(clinic_log.make_log(20_000, 1), horizon=3, shared_seed=1, stationary=True)
    found = confirm(run, log=clinic_log.make_log(40_000, 2))
    assert found.verdict == "confirmed"
    few = confirm(run, log=clinic_log.make_log(60, 3))
    assert few.verdict == "undecided"


def test_the_answer_is_a_document() -> None:
    mdp = grid()
    found = confirm(reprl.choose(mdp), mdp, data_seed=1, max_samples=400)
    again = QualityConfirmation.from_json(found.to_json())
    assert again == found
    for old, new in (('"quality":0.9', '"quality":1.5'), ('"verdict":"undecided"', '"verdict":"sure"')):
        text = found.to_json().replace(" ", "")
        assert old in text
        with pytest.raises(ReprlError):
            QualityConfirmation.from_json(text.replace(old, new))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quality": 0.9, "target": 1.0}, "target or quality must be given, one of them"),
        ({}, "target or quality must be given, one of them"),
        ({"target": 0.1, "min_probability": 0.1}, "min_probability must be"),
        ({"quality": 1.5}, "quality must lie in"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ReprlError, match=message):
        reprl.confirm(reprl.choose(grid()), grid(), **options)

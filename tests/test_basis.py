"""Who decided each cell of a policy from a log: data, the preference, or nobody."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.errors import InputError
from reprl.mdp.basis import DATA, DECIDERS, DEFAULT, PREFERENCE
from reprl.mdp.policy import Policy, TablePolicy
from reprl.rule.bound import SoftRule
from tests import naive_soft
from tests.clinic_log import ACTIONS, HORIZON, STATES, make_log
from tests.random_models import draws_of, key_of, random_asked, random_model, random_shape

ASKED: dict[str, Any] = {"horizon": HORIZON, "states": (*STATES, "unheard of"), "actions": ACTIONS}


@pytest.fixture(scope="module")
def result() -> reprl.LearnResult:
    return reprl.learn_log(make_log(1500, 1), **ASKED)


def as_table(policy: Policy) -> TablePolicy:
    assert isinstance(policy, TablePolicy)
    return policy


def test_equal_actions_are_counted_as_by_hand() -> None:
    """Of the try that printed, or of the last resort; by step or not, masked or not, with a discount or not."""
    counts, levels = set[int](), set[str]()
    for number in range(60):
        rng = np.random.default_rng(number)
        shape = random_shape(rng, gamma=0.8 if number % 4 == 0 else 0.0)
        model, stationary = random_model(rng, shape), shape.stationary and not shape.gamma
        asked = random_asked(rng, model)
        rule = SoftRule(draws_of(number, model, stationary), asked)
        policy, choice = rule.choose(model)
        plain = naive_soft.print_policy(
            naive_soft.world_of(model),
            key_of(number),
            stationary=stationary,
            share=asked.share,
            epsilon=asked.epsilon,
            baseline=asked.baseline,
            order=asked.order,
        )
        level, attempt, excess, bar = plain.bars[-1]
        steps = naive_soft.levels_of(len(policy), stationary).get(level, list(range(len(policy))))
        assert attempt == choice.attempt or level == "last"
        if np.abs(excess - bar[:, :, None]).min() < 1e-9:
            continue  # within rounding of the bar
        expected = [[sum(e <= bar[g, s] for e in excess[g, s]) for s in range(policy.shape[1])] for g in steps]
        found = rule.count_equal(model, choice)
        assert found.tolist() == expected, number
        counts |= set(found.ravel().tolist())
        levels.add(level)
    assert {1, 2, 3} <= counts
    assert {"all", "phases", "single"} <= levels


def test_every_cell_says_who_decided(result: reprl.LearnResult) -> None:
    basis, names = result.basis, (*STATES, "unheard of", "ended")
    assert basis is not None
    counts = result.counts.visits.copy()
    counts[:, -1] = 0
    assert (basis.samples == counts.sum(axis=2)).all()
    assert (basis.decided[:, names.index("unheard of")] == DEFAULT).all()
    assert (basis.decided[:, names.index("ended")] == DEFAULT).all()
    assert (basis.decided[:, :3] != DEFAULT).all()
    # At the last step nothing pays in severe cases, so every supported drug is as good: the order decides.
    assert basis.decided[-1, names.index("severe")] == PREFERENCE
    # Waiting pays most there in well ones.
    assert basis.decided[-1, names.index("well")] == DATA
    assert basis.counts() == {
        "default": 6,
        "preference": int((basis.decided == 1).sum()),
        "data": int((basis.decided == 2).sum()),
    }
    assert (basis.usual[:, :3] == counts.argmax(axis=2)[:, :3]).all()
    assert (basis.usual[:, 3:] == -1).all()


def test_another_preference_changes_nothing_where_data_decided(result: reprl.LearnResult) -> None:
    """With the tolerance fixed: a cell of one good action has the same action under every order."""
    assert result.choice is not None
    other = reprl.learn_log(make_log(1500, 1), **ASKED, preference=(3, 2, 1, 0))
    one, two = result.basis, other.basis
    assert one is not None
    assert two is not None
    both = (one.decided == DATA) & (two.decided == DATA)
    assert both.any()
    assert (result.policy.table == other.policy.table)[both].all()


def test_a_frame_has_no_figure_where_nobody_decided(result: reprl.LearnResult) -> None:
    pytest.importorskip("pandas")
    table = result.to_pandas()
    nobody = table["samples"] == 0
    assert nobody.sum() == 6
    assert (table["decided_by"][nobody] == "default").all()
    assert table["teams_that_differ"][nobody].isna().all()
    assert table["teams_that_differ"][~nobody].notna().all()
    assert set(table["decided_by"]) == set(DECIDERS)
    assert table["practice_mostly"][table["state_name"] == "unheard of"].isna().all()
    usual = result.counts.visits[0, 0].argmax()
    assert table["practice_mostly"][0] == ACTIONS[usual]


def test_act_refuses_or_follows_practice_where_nobody_decided(result: reprl.LearnResult) -> None:
    act = as_table(result.policy).act
    assert act("severe", 0, strict=True) == act("severe", 0)
    assert act("severe", 0, fallback="practice") == act("severe", 0)
    with pytest.raises(InputError, match=r"strict=True\), got state 'unheard of' at step 1, which has 0 rows"):
        act("unheard of", 1, strict=True)
    with pytest.raises(InputError, match="fallback must be one of practice; got 'luck'"):
        act("severe", 0, fallback="luck")
    with pytest.raises(InputError, match="state of the log for fallback='practice', got state 'unheard of'"):
        act("unheard of", 0, fallback="practice")
    with pytest.raises(InputError, match="strict must be left out for a policy that does not say who decided"):
        TablePolicy([[0, 1]]).act(0, 0, strict=True)
    assert act(np.array([0, 1]), 0, strict=True).tolist() == result.policy.table[0, :2].tolist()


def test_practice_takes_over_where_hardly_anything_is_known() -> None:
    """Of a state with one row, what was done there is all that is allowed; where it never was, a fallback finds it."""
    log = make_log(1500, 3)
    rare = {name: np.concatenate([column, column[:3]]) for name, column in log.items()}
    rare["episode"][-3:] = 10**6
    rare["state"] = rare["state"].astype("U10")
    rare["state"][-3], rare["action"][-3] = "rare", "drug B"
    result = reprl.learn_log(rare, horizon=HORIZON)
    policy, basis = as_table(result.policy), result.basis
    assert basis is not None
    place = result.environment.labels.states.index("rare")
    assert [policy.act("rare", h) for h in range(HORIZON)] == [1] * HORIZON
    assert basis.decided[:, place].tolist() == [DATA, DEFAULT, DEFAULT]
    assert basis.samples[:, place].tolist() == [1, 0, 0]
    assert policy.act("rare", 2, fallback="practice") == 1
    with pytest.raises(InputError, match="which has 0 rows"):
        policy.act("rare", 2, strict=True)


def test_who_decided_is_kept(result: reprl.LearnResult, tmp_path: Path) -> None:
    result.save(tmp_path / "run")
    stored = reprl.load_run(tmp_path / "run")
    policy = TablePolicy.load(tmp_path / "run" / "policy.json")
    for other in (stored.policy, policy, pickle.loads(pickle.dumps(policy))):
        assert result.policy.basis is not None
        assert other.basis is not None
        for mine, theirs in zip(result.policy.basis, other.basis, strict=True):
            assert (mine == theirs).all()
        assert other.fingerprint == result.policy.fingerprint


@pytest.mark.parametrize(
    "change",
    [{"decided": [[7]]}, {"samples": 3}, {"decided": None}, {"other": 1}],
    ids=["value", "type", "missing", "more"],
)
def test_a_basis_that_does_not_fit_is_refused(result: reprl.LearnResult, change: dict[str, Any]) -> None:
    document = result.policy.to_dict()
    document["basis"] = {k: v for k, v in (document["basis"] | change).items() if v is not None}
    with pytest.raises(reprl.ReprlError, match="policy basis"):
        Policy.from_json(json.dumps(document))

"""Who decided each cell of a policy from a log: data, the preference, or nobody."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reprl.canonical.choice import KINDS
from reprl.canonical.gaps import average_gaps, find_gaps
from reprl.canonical.preferred import count_equal, phases_of, visit_weight, weigh_tolerances

import reprl
from reprl.errors import InputError
from reprl.mdp.basis import DATA, DECIDERS, DEFAULT, PREFERENCE
from reprl.mdp.dynamics import true_dynamics
from reprl.mdp.policy import Policy, TablePolicy
from tests.clinic_log import ACTIONS, HORIZON, STATES, make_log

ASKED: dict[str, Any] = {"horizon": HORIZON, "states": (*STATES, "unheard of"), "actions": ACTIONS}


@pytest.fixture(scope="module")
def result() -> reprl.LearnResult:
    return reprl.learn_log(make_log(1500, 1), **ASKED)


def as_table(policy: Policy) -> TablePolicy:
    assert isinstance(policy, TablePolicy)
    return policy


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_equal_actions_are_counted_as_by_hand(seed: int, kind: str) -> None:
    mdp = reprl.make("random-mdp-v0", n_states=5, n_actions=3, horizon=4, seed=seed)
    dynamics, order = true_dynamics(mdp), np.array([2, 0, 1])
    gaps = find_gaps(dynamics, order)
    phases = phases_of(kind, 4)
    compared = gaps if phases is None else average_gaps(dynamics, gaps, order, phases)
    row = np.arange(4) if phases is None else phases
    for tolerance in (1.0, 0.2, 0.05, 1e-6):
        found = count_equal(dynamics, gaps, order, tolerance, phases)
        plain = np.zeros((4, 5), dtype=np.int64)
        for h in range(4):
            for s in range(5):
                good = [a for a in order if compared.gap[row[h], s, a] <= tolerance]
                plain[h, s] = good[0]
        visits = dynamics.occupancy(plain)
        for h in range(4):
            for s in range(5):
                weight = visit_weight(min(1.0, visits[row == row[h], s].max()))
                gap = compared.gap[row[h], s]
                expected = int((weight * gap <= tolerance).sum()) if weight > 0.0 else 0
                assert found[h, s] == expected, (h, s, tolerance)
        printed = weigh_tolerances(dynamics, gaps, order, np.array([tolerance]), phases).actions[0]
        alone = (found == 1) & (visits > 0.0)
        if phases is None:
            assert (printed == gaps.best)[alone].all()  # no preference could change these


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
    other = reprl.learn_log(
        make_log(1500, 1),
        **ASKED,
        epsilon=0.3,
        preference=(3, 2, 1, 0),
        candidate=("preferred", result.choice.candidate),
    )
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
    log = make_log(1500, 3)
    rare = {name: np.concatenate([column, column[:3]]) for name, column in log.items()}
    rare["episode"][-3:] = 10**6
    rare["state"] = rare["state"].astype("U10")
    rare["state"][-3], rare["action"][-3] = "rare", "drug B"
    policy = as_table(reprl.learn_log(rare, horizon=HORIZON).policy)
    assert policy.act("rare", 0) == 0
    assert policy.act("rare", 0, fallback="practice") == policy.act("rare", 2, fallback="practice") == 1


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

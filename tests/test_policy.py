"""Policy: its fingerprint, equality, immutability and files."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import stat
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reprl
from reprl.errors import ReprlError
from reprl.mdp.policy import Policy, TablePolicy, check_policy

TABLES = hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(0, 2**31 - 1))
GOLDEN = {
    ((0,),): "ff5c77fa0440bd019a52825a202cd98e2ba9e7857b14a5dc458d570c3f394280",
    ((0, 1), (2, 3)): "c2c5a4d9cafd680a24f1101d6b6314f1f0a9f0e8183c9ea120b5e88d0888e3f0",
    ((2**31 - 1, 0, 7),): "780c7de0752c6d4dba9d5046a8ce716d2f26548270cfcadc74ddfbe9147c6e74",
}


GOLDEN_STATIONARY = "a15b9b0b75631fcab09450cdc749d35ea0224937160322604fb842b3bd279db9"


def test_the_fingerprint_of_a_stationary_policy_is_golden():
    data = b"reprl-policy 1 stationary 3\n" + struct.pack("<3i", 1, 0, 2)
    assert reprl.Policy([1, 0, 2]).fingerprint == hashlib.sha256(data).hexdigest() == GOLDEN_STATIONARY


@pytest.mark.parametrize("actions", GOLDEN)
def test_fingerprints_are_golden(actions):
    assert reprl.Policy(actions).fingerprint == GOLDEN[actions]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(table=TABLES)
def test_the_fingerprint_is_the_documented_hash(table):
    horizon, n_states = table.shape
    data = f"reprl-policy 1 {horizon} {n_states}\n".encode()
    for action in table.ravel().tolist():
        data += struct.pack("<i", action)
    policy = reprl.Policy(table)
    assert policy.fingerprint == hashlib.sha256(data).hexdigest()
    assert policy.short_fingerprint == policy.fingerprint[:12]


def test_the_fingerprint_depends_on_the_shape():
    shapes = [(1, 4), (2, 2), (4, 1)]
    policies = [reprl.Policy(np.array([0, 1, 1, 0]).reshape(shape)) for shape in shapes]
    assert len({policy.fingerprint for policy in policies}) == 3
    assert len(set(policies)) == 3


def test_the_fingerprint_depends_on_every_single_action():
    table = np.arange(12).reshape(3, 4)
    seen = {reprl.Policy(table).fingerprint}
    for cell in np.ndindex(table.shape):
        other = table.copy()
        other[cell] += 1
        seen.add(reprl.Policy(other).fingerprint)
        assert reprl.Policy(other) != reprl.Policy(table)
    assert len(seen) == 13


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint64, np.float64, ">i4"])
def test_the_number_type_and_memory_layout_do_not_matter(kind):
    table = np.array([[0, 1, 2], [2, 1, 0]])
    plain = reprl.Policy(table)
    for variant in (table.astype(kind), np.asfortranarray(table.astype(kind)), table.astype(kind).tolist()):
        other = reprl.Policy(variant)
        assert other == plain
        assert hash(other) == hash(plain)
        assert other.fingerprint == plain.fingerprint
        assert other.actions.dtype == np.int64


def test_equality_is_with_policies_only():
    policy = reprl.Policy([[0, 1]])
    assert policy == reprl.Policy(policy)
    assert policy != [[0, 1]]
    assert policy != "policy"
    assert {policy: 1}[reprl.Policy([[0, 1]])] == 1


@pytest.mark.parametrize("make", [reprl.Policy, copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_a_policy_and_its_copies_cannot_be_changed(make):
    original = reprl.Policy([[0, 1], [1, 0]])
    policy = make(original)
    assert policy == original
    with pytest.raises(ValueError, match="read-only"):
        policy.actions[0, 0] = 1
    with pytest.raises(AttributeError):
        policy.actions = np.zeros((2, 2), dtype=int)
    with pytest.raises(AttributeError):
        policy.note = "x"


def test_later_changes_to_the_argument_do_not_reach_the_policy():
    table = np.array([[0, 1]])
    policy = reprl.Policy(table)
    table[0, 0] = 5
    assert policy.actions.tolist() == [[0, 1]]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(table=TABLES)
def test_json_round_trip(table):
    policy = reprl.Policy(table)
    text = policy.to_json()
    assert reprl.Policy.from_json(text) == policy
    assert reprl.Policy.from_json(text.encode()) == policy
    assert reprl.Policy.from_json(text).to_json() == text
    assert json.loads(text)["fingerprint"] == policy.fingerprint


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ([[0, -1]], r"actions\[0, 1\] must be an action index from 0 to 2147483647, got -1"),
        ([[0], [2**31]], r"actions\[1, 0\] must be an action index from 0 to 2147483647, got 2147483648"),
        (np.array([[2**64 - 1]], dtype=np.uint64), r"actions\[0, 0\] must be .*, got 18446744073709551615"),
        ([[0, 0.5]], r"actions\[0, 1\] must be an action index from 0 to 2147483647, got 0.5"),
        ([[np.nan]], r"actions\[0, 0\] must be .*, got nan"),
        ([[np.inf]], r"actions\[0, 0\] must be .*, got inf"),
        ([], r"actions must be an \(H, S\) table of action indices, or \(S,\), got float64 of shape \(0,\)"),
        ([[[0]]], r"actions must be an \(H, S\) table of action indices, or \(S,\), got int64 of shape \(1, 1, 1\)"),
        ([[]], r"actions must be an \(H, S\) table of action indices, or \(S,\), got float64 of shape \(1, 0\)"),
        ([[True]], r"actions must be an \(H, S\) table of action indices, or \(S,\), got bool of shape \(1, 1\)"),
        ([["0"]], r"actions must be an \(H, S\) table of action indices, or \(S,\), got <U1 of shape \(1, 1\)"),
        ([[10**30]], r"actions must be an \(H, S\) table of action indices, or \(S,\), got object of shape \(1, 1\)"),
        ([[0], [0, 1]], r"actions must be an \(H, S\) table of action indices, or \(S,\), got \[\[0\], \[0, 1\]\]"),
        (None, r"actions must be an \(H, S\) table of action indices, or \(S,\), got object of shape \(\)"),
    ],
)
def test_bad_actions_are_refused_in_one_line(actions, text):
    with pytest.raises(reprl.ReprlError, match=rf"^{text}\Z"):
        reprl.Policy(actions)


def document(**changes):
    return {**json.loads(reprl.Policy([[0, 1], [1, 0]]).to_json()), **changes}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"policy must be a JSON document: "),
        ("{", r"policy must be a JSON document: "),
        (b"\xff\xfe\xfd", r"policy must be a JSON document: "),
        (None, r"policy must be a JSON document: "),
        ("[]", r"policy format must be 'reprl-policy', got \[\]"),
        ("NaN", r"policy numbers must be finite, got NaN"),
        (json.dumps(document(format="other")), r"policy format must be 'reprl-policy', got 'other'"),
        (
            json.dumps(document(version=4)),
            r"policy version must be 1 for this release of reprl, got 4 \(a newer release wrote it\)",
        ),
        (json.dumps({"format": "reprl-policy", "version": 1}), r"policy must have the field 'horizon', got only none"),
        (json.dumps(document(version=None)), r"policy version must be 1 for this release of reprl, got None"),
        (json.dumps(document(actions="0110")), r"policy actions must be a list, got '0110'"),
        (json.dumps(document(actions=[[0, 1], [1]])), r"actions must be an \(H, S\) table"),
        (json.dumps(document(actions=[[0, float("nan")], [1, 0]])), r"policy numbers must be finite, got NaN"),
        (json.dumps(document(actions=[[0, float("inf")], [1, 0]])), r"policy numbers must be finite, got Infinity"),
        (json.dumps(document(horizon=3)), r"policy horizon must match its actions \(2\), got 3"),
        (json.dumps(document(n_states=10**15)), r"policy n_states must match its actions \(2\), got 1000000000000000"),
        (
            json.dumps(document(actions=[[0, 1], [1, 1]])),
            r"policy fingerprint must be [0-9a-f]{64} for these actions, got '",
        ),
        (
            json.dumps(document(fingerprint=None)),
            r"policy fingerprint must be [0-9a-f]{64} for these actions, got None",
        ),
    ],
)
def test_bad_documents_are_refused_in_one_line(text, message):
    assert reprl.Policy.from_json(json.dumps(document())) == reprl.Policy([[0, 1], [1, 0]])
    with pytest.raises(reprl.ReprlError, match=rf"^{message}") as caught:
        reprl.Policy.from_json(text)
    assert "\n" not in str(caught.value)


def test_save_and_load(tmp_path):
    policy = reprl.Policy([[0, 1], [1, 0]])
    path = policy.save(tmp_path / "policy.json")
    assert reprl.Policy.load(path) == policy
    assert path.read_text() == policy.to_json()
    assert os.listdir(tmp_path) == ["policy.json"]


def test_a_saved_file_has_ordinary_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        path = reprl.Policy([[0]]).save(tmp_path / "policy.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("step", ["os.replace", "os.fsync", "os.fchmod"])
def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step):
    path = reprl.Policy([[0, 1]]).save(tmp_path / "policy.json")
    before = path.read_bytes()

    def fail(*_args, **_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(step, fail)
        with pytest.raises(reprl.ReprlError, match=r"^cannot write .*policy\.json: No space left on device\Z"):
            reprl.Policy([[1, 0]]).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["policy.json"]
    reprl.Policy([[1, 0]]).save(path)
    assert path.read_bytes() != before


def test_saving_below_a_file_or_at_an_impossible_path_is_refused(tmp_path):
    policy = reprl.Policy([[0]])
    (tmp_path / "file").write_text("x")
    with pytest.raises(reprl.ReprlError, match=r"^cannot write .*policy\.json: Not a directory\Z"):
        policy.save(tmp_path / "file" / "policy.json")
    with pytest.raises(reprl.ReprlError, match=r"^cannot write .*: No such file or directory\Z"):
        policy.save(tmp_path / "absent" / "policy.json")
    with pytest.raises(reprl.ReprlError, match=r"^cannot write .*: Is a directory\Z"):
        policy.save(tmp_path)
    with pytest.raises(reprl.ReprlError, match=r"^cannot write .*: embedded null byte\Z"):
        policy.save(tmp_path / "a\0b")
    assert (tmp_path / "file").read_text() == "x"


def test_loading_what_is_no_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "absent", tmp_path / "a\0b"):
        with pytest.raises(reprl.ReprlError, match=r"^cannot read .*: no such file\Z"):
            reprl.Policy.load(path)


def test_loading_a_file_beyond_the_limit_is_refused_unread(tmp_path, monkeypatch):
    path = reprl.Policy([[0]]).save(tmp_path / "policy.json")
    monkeypatch.setattr("reprl.storage.documents.MAX_BYTES", 10)
    with pytest.raises(reprl.ReprlError, match=r"a file of at most 10 bytes is expected, got \d+\Z"):
        reprl.Policy.load(path)


class Threshold(Policy):
    """A kind of its own: do 1 from a number on."""

    def __init__(self, edge: float) -> None:
        self.edge = edge

    def act(self, observation: Any, step: int | None = None) -> int:
        return int(observation >= self.edge + (step or 0))

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self.edge).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        return {"format": "threshold", "edge": self.edge}

    def disagreement(self, other: Policy, weights: Any = None) -> float:
        return float(self != other)


def test_a_policy_is_an_interface_whose_first_kind_is_a_table() -> None:
    table, other = Policy([[0, 1]]), Threshold(0.5)
    assert type(table) is TablePolicy
    assert isinstance(other, Policy)
    assert not isinstance(other, TablePolicy)
    assert (other == Threshold(0.5), other == Threshold(0.6), other == table) == (True, False, False)
    assert len({other, Threshold(0.5), table}) == 2
    actions, state = other.predict([0.2, 0.9, 1.7])
    assert actions.tolist() == [0, 1, 1]
    actions, state = other.predict([0.2, 0.9, 1.7], state)
    assert (actions.tolist(), state.tolist() if state is not None else None) == ([0, 0, 1], [2, 2, 2])
    for read in (lambda: other.table, lambda: other.actions, lambda: other.horizon, lambda: check_policy(other, mdp())):
        with pytest.raises(ReprlError, match="policy must be a table of actions, got"):
            read()


def mdp() -> Any:
    return reprl.make("river-swim-v0")


class Cutoff(Threshold):
    """One of finitely many states, which can say its table too."""

    @property
    def table(self) -> Any:
        return np.array([[self.act(s, h) for s in range(6)] for h in range(4)])


def test_a_kind_of_its_own_that_has_a_table_is_audited() -> None:
    def learner(model: Any, key: reprl.SharedKey) -> Policy:
        model.reset()
        return Cutoff(float(key.seed % 2) + 0.5)

    def torn(model: Any, key: reprl.SharedKey) -> Policy:
        model.reset()
        return Cutoff(float(model.data_seed % 4) + 0.5)

    world = reprl.make("river-swim-v0", 4)
    assert reprl.audit(world, learner, 6, seed=1).disagreements == 0
    found = reprl.audit(world, torn, 12, seed=1)
    assert 0 < found.disagreements <= 12
    with pytest.raises(ReprlError, match="policy must be a table of actions, got"):
        reprl.audit(world, lambda model, key: Threshold(0.5), 2, seed=1)


def test_predict_is_act_for_many_with_the_step_as_its_state() -> None:
    draw = np.random.default_rng(1)
    policy = Policy(draw.integers(0, 9, (3, 5)))
    seen, state = draw.integers(0, 5, (4, 6)), None
    for step in range(3):
        actions, state = policy.predict(seen[step], state)
        assert actions.tolist() == [policy.act(int(s), step) for s in seen[step]]
    assert state is not None
    assert state.tolist() == [3] * 6
    again = np.array([True, False] * 3)
    with pytest.raises(ReprlError, match="step must be a whole number from 0 to 2, got 3"):
        policy.predict(seen[3], state)
    actions, state = policy.predict(seen[3], [1] * 6, episode_start=again)
    assert actions.tolist() == [policy.act(int(s), 0 if new else 1) for s, new in zip(seen[3], again, strict=True)]
    assert state is not None
    assert state.tolist() == [1, 2] * 3
    one, after = policy.predict(2)
    assert one == policy.act(2, 0)
    assert after is not None
    assert after.tolist() == [1]
    with pytest.raises(ReprlError, match="state must hold one step for each of 2 observations"):
        policy.predict([1, 2], [0])


def test_a_policy_that_ignores_the_step_needs_none() -> None:
    for policy in (Policy([2, 0, 1]), Policy([[2, 0, 1]] * 4)):
        assert policy.ignores_step
        assert [policy.act(s) for s in range(3)] == [2, 0, 1]
        assert policy.act(np.array([0, 2, 2])).tolist() == [2, 1, 1]
        actions, state = policy.predict(np.array([2, 2, 0]))
        assert (actions.tolist(), state) == ([1, 1, 2], None)
    stepwise = Policy([[0, 1], [1, 0]])
    assert not stepwise.ignores_step
    with pytest.raises(ReprlError, match="step must be"):
        stepwise.act(0)
    with pytest.raises(ReprlError, match="step must be"):
        Policy([[2, 0, 1]] * 4).act(0, 4)
    with pytest.raises(ReprlError, match="observation must be"):
        stepwise.act(np.array([0, 2]), 1)


def test_numpy_reads_a_policy_as_its_actions() -> None:
    policy = Policy([[0, 1], [1, 0]])
    assert np.asarray(policy).tolist() == policy.actions.tolist()
    assert np.asarray(policy, dtype=float).dtype == np.float64
    assert np.asarray(Policy([3, 1])).tolist() == [3, 1]
    copy = np.array(policy)
    copy[0, 0] = 9
    assert policy.actions[0, 0] == 0


def test_disagreement_is_a_share_of_cells_or_of_their_weights() -> None:
    one, two = Policy([[0, 1, 2], [0, 0, 0]]), Policy([[0, 1, 1], [0, 2, 0]])
    assert one.disagreement(one) == 0.0
    assert one.disagreement(two) == two.disagreement(one) == pytest.approx(2 / 6)
    assert one.differs(two).tolist() == [[False, False, True], [False, True, False]]
    weights = np.array([[1.0, 0.0, 2.0], [3.0, 2.0, 0.0]])
    assert one.disagreement(two, weights) == pytest.approx(4 / 8)
    assert one.disagreement(two, [0.0, 1.0, 0.0]) == pytest.approx(1 / 2)
    row = Policy([0, 1, 1])
    assert row.disagreement(two) == two.disagreement(row) == pytest.approx(2 / 6)
    assert row.disagreement(row, [1.0, 1.0, 1.0]) == 0.0
    for bad in (np.ones((3, 3)), np.ones(2), -np.ones((2, 3)), np.zeros((2, 3)), "x"):
        with pytest.raises(ReprlError, match="weights"):
            one.disagreement(two, bad)
    with pytest.raises(ReprlError, match="one shape to be compared"):
        one.disagreement(Policy([[0, 1, 2]] * 3))

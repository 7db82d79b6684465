"""Counts: what the tallies say, exact merging, and files."""

from __future__ import annotations

import hashlib
import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.mdp.outcomes import Outcomes

Key = tuple[int, int, int, int, float]


def small(seed: int = 0, *, stepwise: bool = False, kind: str = "bernoulli") -> reprl.TabularMDP:
    """H = 3, S = 3, A = 2, with zeros in the transitions."""
    rng = np.random.default_rng(seed)
    lead = (3,) if stepwise else ()
    transition = rng.random((*lead, 3, 2, 3)) * (rng.random((*lead, 3, 2, 3)) < 0.6)
    transition[..., 0] += 0.1
    transition /= transition.sum(axis=-1, keepdims=True)
    reward = np.round(rng.random((3, 2)), 1)
    return reprl.TabularMDP(transition, reward, horizon=None if stepwise else 3, reward_kind=kind)


def spelled_out(counts: reprl.Counts) -> dict[Key, int]:
    """The data set as {(h, s, a, next state, reward): number}, seen outcomes only, read cell by cell."""
    out: dict[Key, int] = {}
    for h, s, a in np.ndindex(counts.outcomes.shape):
        entries, slots = counts.outcomes.slots(h, s, a)
        columns = (counts.outcomes.next_state[entries], counts.outcomes.reward[entries], counts.hits[slots])
        for t, reward, number in zip(*(column.tolist() for column in columns), strict=True):
            if number:
                key = (h, s, a, t, reward)
                out[key] = out.get(key, 0) + number
    return out


def added(parts: list[dict[Key, int]]) -> dict[Key, int]:
    total: dict[Key, int] = {}
    for key, number in itertools.chain.from_iterable(part.items() for part in parts):
        total[key] = total.get(key, 0) + number
    return total


CASES = [(stepwise, kind) for stepwise in (False, True) for kind in ("bernoulli", "deterministic")]


@pytest.mark.parametrize(("stepwise", "kind"), CASES)
def test_statistics_are_those_of_the_single_samples(stepwise, kind):
    mdp = small(1, stepwise=stepwise, kind=kind)
    counts = reprl.GenerativeModel(mdp, 5).sample(17)
    seen = spelled_out(counts)
    value = np.array([0.25, 1.0, 2.0])
    for h, s, a in np.ndindex(counts.outcomes.shape):
        cell = {key[3:]: number for key, number in seen.items() if key[:3] == (h, s, a)}
        samples = [outcome for outcome, number in cell.items() for _ in range(number)]
        assert counts.visits[h, s, a] == len(samples) == 17
        assert counts.reward_sum[h, s, a] == pytest.approx(sum(r for _, r in samples), abs=1e-12)
        assert counts.successors(h, s, a).tolist() == [sum(t == state for t, _ in samples) for state in range(3)]
        mean = sum(r + value[t] for t, r in samples) / 17
        assert counts.mean_return(h, value)[s, a] == pytest.approx(mean, abs=1e-12)


def test_a_cell_without_samples_has_no_mean():
    counts = reprl.Counts.empty(small().outcomes)
    assert np.isnan(counts.mean_return(0, np.zeros(3))).all()
    assert counts.visits.sum() == 0
    assert repr(counts) == "Counts(shape=(3, 3, 2), samples=0)"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(order=st.permutations(range(6)), cuts=st.sets(st.integers(1, 5)), stepwise=st.booleans())
def test_merging_over_any_split_and_order_gives_the_same_bytes(order, cuts, stepwise):
    mdp = small(2, stepwise=stepwise)
    parts = [reprl.GenerativeModel(mdp, seed).sample(10 + seed) for seed in range(6)]
    whole = reprl.Counts.merge(parts)
    edges = [0, *sorted(cuts), 6]
    groups = [[parts[i] for i in order[low:high]] for low, high in itertools.pairwise(edges)]
    split = reprl.Counts.merge(reprl.Counts.merge(group) for group in groups)
    assert split == whole
    assert split.to_bytes() == whole.to_bytes()
    assert split.digest == whole.digest
    assert spelled_out(whole) == added([spelled_out(part) for part in parts])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(order=st.permutations(range(5)), cuts=st.sets(st.integers(1, 4)))
def test_merging_different_tables_gives_their_union_whatever_the_order(order, cuts):
    worlds = [
        small(3),
        small(4, stepwise=True),
        small(5, kind="deterministic"),
        small(6, stepwise=True, kind="deterministic"),
        small(3),
    ]
    parts = [reprl.GenerativeModel(mdp, seed).sample(8) for seed, mdp in enumerate(worlds)]
    whole = reprl.Counts.merge(parts)
    edges = [0, *sorted(cuts), 5]
    groups = [[parts[i] for i in order[low:high]] for low, high in itertools.pairwise(edges)]
    split = reprl.Counts.merge(reprl.Counts.merge(group) for group in groups)
    assert split.to_bytes() == whole.to_bytes()
    assert spelled_out(whole) == added([spelled_out(part) for part in parts])
    rows = {
        (h, s, a, t, r)
        for part in parts
        for h, s, a in np.ndindex(part.outcomes.shape)
        for t, r in zip(
            part.outcomes.next_state[part.outcomes.slots(h, s, a)[0]].tolist(),
            part.outcomes.reward[part.outcomes.slots(h, s, a)[0]].tolist(),
            strict=True,
        )
    }
    assert whole.outcomes.next_state.size == len(rows)
    assert whole.visits.tolist() == sum(part.visits for part in parts).tolist()  # type: ignore[union-attr]


def test_plus_is_merge():
    one, other = (reprl.GenerativeModel(small(), seed).sample(5) for seed in (1, 2))
    assert one + other == reprl.Counts.merge([one, other])
    assert one != other
    assert one + other != one


def test_merging_refuses_nothing_and_different_shapes():
    with pytest.raises(reprl.ReprlError, match=r"^merge needs at least one data set, got none\Z"):
        reprl.Counts.merge([])
    other = reprl.TabularMDP(np.ones((1, 1, 1)), [[0.5]], horizon=2)
    parts = [reprl.GenerativeModel(mdp, 1).sample(1) for mdp in (small(), other)]
    text = r"^data sets must have one shape \(H, S, A\) to merge, got \(3, 3, 2\) and \(2, 1, 1\)\Z"
    with pytest.raises(reprl.ReprlError, match=text):
        reprl.Counts.merge(parts)


def one_cell(hits: list[int]) -> reprl.Counts:
    n = len(hits)
    states, rewards = np.arange(n, dtype=np.int32), np.zeros(n)
    table = Outcomes(1, n, 1, 0, n, np.array([0, *[n] * n]), states, rewards)
    return reprl.Counts(table, np.array(hits, dtype=np.int64))


def test_tallies_cannot_overflow_in_an_outcome_or_in_a_cell():
    half = one_cell([2**62, 0])
    with pytest.raises(
        reprl.ReprlError, match=r"^a tally must stay below 2\*\*63 after merging, got up to 9223372036854775808\Z"
    ):
        reprl.Counts.merge([half, half])
    with pytest.raises(reprl.ReprlError, match=r"^a cell must hold fewer than 2\*\*63 samples, got 9.22337e\+18\Z"):
        one_cell([2**62, 2**62])
    assert one_cell([2**62, 2**61]).visits[0, 0, 0] == 2**62 + 2**61


def test_the_number_of_samples_shown_may_exceed_64_bits():
    mdp = reprl.TabularMDP(np.ones((1, 1, 1)), [[0.5]], horizon=4096)
    counts = reprl.GenerativeModel(mdp, 1).sample(2**53)
    assert repr(counts) == f"Counts(shape=(4096, 1, 1), samples={2**65})"
    assert (counts.visits == 2**53).all()


@pytest.mark.parametrize(
    "hits", [np.zeros(3, dtype=np.int32), np.zeros(4, dtype=np.int64), np.zeros((3, 1), dtype=np.int64)]
)
def test_tallies_of_the_wrong_form_are_refused(hits):
    outcomes = reprl.TabularMDP(np.full((1, 3, 1), 1.0), [[0.0, 1.0, 0.0]], horizon=1).outcomes
    assert reprl.Counts(outcomes, np.zeros(3, dtype=np.int64)).hits.size == 3
    with pytest.raises(reprl.ReprlError, match=r"^hits must be int64 of shape \(3,\), got int"):
        reprl.Counts(outcomes, hits)


def test_negative_tallies_are_refused():
    with pytest.raises(reprl.ReprlError, match=r"^hits must not be negative, got -1\Z"):
        one_cell([3, -1])


@pytest.mark.parametrize("pickled", [False, True])
def test_everything_shown_is_write_protected_also_after_pickling(pickled):
    counts = reprl.GenerativeModel(small(), 1).sample(3)
    if pickled:
        original, counts = counts, pickle.loads(pickle.dumps(counts))
        assert counts == original
    table = counts.outcomes
    for array in (counts.hits, counts.visits, counts.reward_sum, *table[5:]):
        assert isinstance(array, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            array[(0,) * array.ndim] = 7


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ((3, 0, 0), r"h must be a whole number from 0 to 2, got 3"),
        ((0, 3, 0), r"s must be a whole number from 0 to 2, got 3"),
        ((0, 0, 2), r"a must be a whole number from 0 to 1, got 2"),
        ((-1, 0, 0), r"h must be a whole number from 0 to 2, got -1"),
    ],
)
def test_cells_outside_the_table_are_refused(cell, text):
    with pytest.raises(reprl.ReprlError, match=rf"^{text}\Z"):
        reprl.Counts.empty(small().outcomes).successors(*cell)


@pytest.mark.parametrize(
    ("h", "value", "text"),
    [
        (3, np.zeros(3), r"h must be a whole number from 0 to 2, got 3"),
        (0, np.zeros(2), r"value must have shape \(3,\), got \(2,\)"),
        (0, np.zeros(4), r"value must have shape \(3,\), got \(4,\)"),
        (0, [0.0, np.nan, 0.0], r"value\[1\] must be finite, got nan"),
    ],
)
def test_values_that_would_be_read_out_of_bounds_are_refused(h, value, text):
    with pytest.raises(reprl.ReprlError, match=rf"^{text}\Z"):
        reprl.Counts.empty(small().outcomes).mean_return(h, value)


@pytest.mark.parametrize(("stepwise", "kind"), CASES)
def test_bytes_and_files_round_trip(tmp_path, stepwise, kind):
    counts = reprl.GenerativeModel(small(7, stepwise=stepwise, kind=kind), 3).sample(10**9)
    copy = reprl.Counts.from_bytes(counts.to_bytes())
    assert copy == counts
    assert copy.to_bytes() == counts.to_bytes()
    assert copy.visits.tolist() == counts.visits.tolist()
    path = counts.save(tmp_path / "data.counts")
    assert reprl.Counts.load(path).digest == counts.digest
    assert path.read_bytes() == counts.to_bytes() + hashlib.sha256(counts.to_bytes()).digest()


def encoded(counts: reprl.Counts, **changes: object) -> bytes:
    """The bytes of counts with header entries or arrays replaced."""
    table = {**counts.outcomes._asdict(), "hits": counts.hits, **changes}
    layout = {"first": "<i8", "next_state": "<i4", "reward": "<f8", "hits": "<i8"}
    arrays = {name: np.asarray(table[name]).astype(kind) for name, kind in layout.items()}
    header = {name: table[name] for name in ("horizon", "n_states", "n_actions", "row_shift", "slot_shift")}
    header |= {name: array.size for name, array in arrays.items()}
    return b"reprl-counts 1\n" + json.dumps(header).encode() + b"\n" + b"".join(a.tobytes() for a in arrays.values())


def test_the_encoder_of_this_file_agrees_with_the_real_one():
    counts = one_cell([5, 6])
    assert encoded(counts) == counts.to_bytes()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reward": [0.0, -0.0]}, r"counts reward\[1\] must lie in \[0, 1\], got -0.0"),
        ({"reward": [np.nan, 0.0]}, r"counts reward\[0\] must lie in \[0, 1\], got nan"),
        ({"reward": [0.0, 1.5]}, r"counts reward\[1\] must lie in \[0, 1\], got 1.5"),
        ({"next_state": [0, 2]}, r"counts next states must lie in \[0, 2\), got up to 2"),
        ({"next_state": [-1, 1]}, r"counts next states must lie in \[0, 2\), got "),
        ({"first": [0, 3, 2]}, r"counts rows must rise from 0 to 2, got "),
        ({"first": [1, 2, 2]}, r"counts rows must rise from 0 to 2, got "),
        ({"first": [0, 2, 3]}, r"counts rows must rise from 0 to 2, got "),
        ({"first": [0, 2]}, r"counts must hold one row of outcomes per cell, got sizes "),
        ({"slot_shift": 1}, r"counts slot_shift must be 2, or 0 for pooled steps, for this table, got 1"),
        ({"row_shift": 5}, r"counts must hold one row of outcomes per cell, got sizes "),
        ({"horizon": 0}, r"counts must hold one row of outcomes per cell, got sizes "),
        ({"horizon": 2**30, "slot_shift": 0}, r"counts with pooled steps must have at most \d+ cells, got sizes "),
        ({"horizon": 2}, r"hits must be int64 of shape \(4,\), got int64 of \(2,\)"),
        ({"horizon": -1}, r"counts horizon must be a whole number from 0 to \d+, got -1"),
        ({"horizon": True}, r"counts horizon must be a whole number from 0 to \d+, got True"),
        ({"horizon": 2**50}, r"counts horizon must be a whole number from 0 to \d+, got "),
        ({"hits": [1, -1]}, r"hits must not be negative, got -1"),
        ({"hits": [2**62, 2**62]}, r"a cell must hold fewer than 2\*\*63 samples"),
    ],
)
def test_inconsistent_files_are_refused_in_one_line(changes, text):
    with pytest.raises(reprl.ReprlError, match=rf"^{text}") as caught:
        reprl.Counts.from_bytes(encoded(one_cell([5, 6]), **changes))
    assert "\n" not in str(caught.value)


def test_rows_that_fall_by_more_than_64_bits_are_refused():
    """The difference of two 64-bit row starts can wrap round and look like a rise."""
    counts = one_cell([1, 1, 1])
    with pytest.raises(reprl.ReprlError, match=r"^counts rows must rise from 0 to 3, got "):
        reprl.Counts.from_bytes(encoded(counts, first=[0, 2**63 - 1, -2, 3]))


def test_an_empty_file_cannot_claim_a_huge_horizon():
    """Without this its (H, S, A) arrays would take terabytes when first asked for."""
    claim = {"first": [0, 0], "next_state": [], "reward": [], "hits": [], "horizon": 2**40}
    claim |= {"n_states": 1, "n_actions": 1, "row_shift": 0, "slot_shift": 0}
    with pytest.raises(reprl.ReprlError, match=r"^counts must hold one row of outcomes per cell, got sizes "):
        reprl.Counts.from_bytes(encoded(one_cell([1]), **claim))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", r"counts must start with b'reprl-counts 1\\n', got b''"),
        (b"reprl-counts 2\n{}\n", r"counts must start with b'reprl-counts 1\\n', got b'reprl-counts 2\\n'"),
        (b"reprl-counts 1\n", r"counts header must be a JSON object of sizes, got b''"),
        (b"reprl-counts 1\n[]\n", r"counts header must be a JSON object of sizes, got b'\[\]'"),
        (b'reprl-counts 1\n{"horizon": 1}\n', r"counts header must be a JSON object of sizes, got b'"),
        (b"reprl-counts 1\n" + b"[" * 10**5 + b"\n", r"counts header must be a JSON object of sizes, got b'\[\[\["),
    ],
)
def test_bad_headers_are_refused_in_one_line(data, text):
    with pytest.raises(reprl.ReprlError, match=rf"^{text}") as caught:
        reprl.Counts.from_bytes(data)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [-1, 1])
def test_a_body_of_another_length_is_refused(change):
    data = one_cell([5, 6]).to_bytes()
    data = data[:-1] if change < 0 else data + b"\0"
    with pytest.raises(reprl.ReprlError, match=r"^counts must hold 64 bytes after their header, got (63|65)\Z"):
        reprl.Counts.from_bytes(data)


@pytest.mark.parametrize("byte", [-40, -1])
def test_a_file_with_one_flipped_bit_is_refused(tmp_path: Path, byte: int) -> None:
    path = one_cell([5, 6]).save(tmp_path / "counts")
    data = bytearray(path.read_bytes())
    data[byte] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(reprl.ReprlError, match=r"must match the SHA-256 at their end, got other data$"):
        reprl.Counts.load(path)


@pytest.mark.parametrize("junk", [None, 3, "text", [1]])
def test_what_is_no_data_set_is_not_merged_or_read(junk: object) -> None:
    with pytest.raises(reprl.ReprlError, match=r"^merge needs data sets, got "):
        reprl.Counts.merge(junk)  # type: ignore[arg-type]
    with pytest.raises(reprl.ReprlError, match=r"^counts must start with "):
        reprl.Counts.from_bytes(junk)  # type: ignore[arg-type]
    with pytest.raises(reprl.ReprlError, match=r"^path must be the name of a file, got |^cannot read "):
        reprl.Counts.load(junk)  # type: ignore[arg-type]

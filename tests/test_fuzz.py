"""Arbitrary input ends in a result or a ReprlError of one line: no other exception, no hang, no flood of memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reprl
from reprl.randomness import DataStream

FUZZ = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or its ReprlError as text; anything else escapes and fails the test."""
    try:
        return call()
    except reprl.ReprlError as error:
        text = str(error)
        assert text
        assert len(text.splitlines()) == 1
        assert len(text) < 1000
        return text


NUMBERS = st.one_of(
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 1e-320, 1e308, np.nan, np.inf, 10**400]),
    st.booleans(),
)
JUNK = st.recursive(
    st.one_of(NUMBERS, st.none(), st.text(max_size=5), st.binary(max_size=5), st.complex_numbers()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=3), inner, max_size=3), st.tuples(inner, inner)
    ),
    max_leaves=20,
)
KINDS = st.one_of(
    hnp.floating_dtypes(endianness="?"),
    hnp.integer_dtypes(endianness="?"),
    hnp.boolean_dtypes(),
    hnp.complex_number_dtypes(),
    hnp.unicode_string_dtypes(),
    hnp.datetime64_dtypes(),
)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=3)
ARRAYS = hnp.arrays(KINDS, SHAPES)
ANYTHING = st.one_of(JUNK, ARRAYS)


@FUZZ
@given(transition=ANYTHING, reward=ANYTHING, initial=ANYTHING, horizon=ANYTHING, kind=ANYTHING)
def test_an_mdp_of_arbitrary_junk(transition, reward, initial, horizon, kind):
    outcome(lambda: reprl.TabularMDP(transition, reward, initial, horizon, kind))


GOOD: dict[str, Any] = {
    "transition": np.full((2, 2, 2), 0.5),
    "reward": np.full((2, 2), 0.5),
    "initial": 0,
    "horizon": 3,
    "reward_kind": "bernoulli",
}


@FUZZ
@given(name=st.sampled_from(sorted(GOOD)), value=ANYTHING)
def test_an_mdp_with_one_argument_of_junk(name, value):
    result = outcome(lambda: reprl.TabularMDP(**{**GOOD, name: value}))
    if isinstance(result, reprl.TabularMDP):
        outcome(result.solve)


@FUZZ
@given(
    data=st.data(),
    sizes=st.tuples(*[st.integers(1, 3)] * 3),
    stepwise=st.booleans(),
    kind=st.sampled_from(["bernoulli", "deterministic"]),
)
def test_an_mdp_of_arbitrary_numbers_in_the_right_shape_solves_if_it_is_accepted(data, sizes, stepwise, kind):
    horizon, n_states, n_actions = sizes
    lead = (horizon,) if stepwise else ()
    weights = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0, 5e-324, 1e-300]))
    transition = data.draw(hnp.arrays(float, (*lead, n_states, n_actions, n_states), elements=weights))
    totals = transition.sum(axis=-1, keepdims=True)
    transition = np.where(totals > 0.0, transition / np.where(totals > 0.0, totals, 1.0), transition)
    reward = data.draw(hnp.arrays(float, (n_states, n_actions), elements=weights))
    result = outcome(lambda: reprl.TabularMDP(transition, reward, None, None if stepwise else horizon, kind))
    if isinstance(result, reprl.TabularMDP):
        solution = result.solve()
        assert np.isfinite(solution.values).all()
        assert solution.values.min() >= 0.0
        assert solution.values.max() <= horizon * (1.0 + 1e-9)
        assert (reprl.GenerativeModel(result, 1).sample(5).visits == 5).all()
        model = reprl.EpisodicModel(result, 1)
        state = model.reset()
        for h in range(horizon):
            following = model.step(0).state
            assert result.transition[h, state, 0, following] > 0.0
            state = following


@FUZZ
@given(value=ANYTHING)
def test_a_policy_a_set_and_a_seed_of_arbitrary_junk(value):
    mdp = reprl.TabularMDP(**GOOD)
    outcome(lambda: reprl.Policy(value))
    outcome(lambda: mdp.evaluate(value))
    outcome(lambda: mdp.reachability(value))
    outcome(lambda: reprl.SharedKey(value))
    outcome(lambda: reprl.SharedKey(1).derive(value))
    outcome(lambda: DataStream(1, value))
    outcome(lambda: reprl.GenerativeModel(mdp, value))


@pytest.mark.parametrize("depth", [10, 63, 64, 65, 900, 5000])
def test_deeply_nested_lists_are_refused(depth):
    value: Any = 0.5
    for _ in range(depth):
        value = [value]
    for name in ("transition", "reward", "initial", "horizon", "reward_kind"):
        assert isinstance(outcome(partial(reprl.TabularMDP, **{**GOOD, name: value})), str)
    assert isinstance(outcome(lambda: reprl.Policy(value)), str)
    assert isinstance(outcome(lambda: reprl.SharedKey(value)), str)


def damaged(whole: bytes) -> st.SearchStrategy[bytes]:
    """Truncations, bit flips, insertions and overwritten stretches of a file."""

    def flip(places: list[int]) -> bytes:
        data = bytearray(whole)
        for place in places:
            data[place // 8] ^= 1 << place % 8
        return bytes(data)

    def splice(cut: tuple[int, int, bytes]) -> bytes:
        low, high = sorted(cut[:2])
        return whole[:low] + cut[2] + whole[high:]

    size = len(whole)
    return st.one_of(
        st.integers(0, size).map(lambda end: whole[:end]),
        st.lists(st.integers(0, 8 * size - 1), min_size=1, max_size=4).map(flip),
        st.tuples(st.integers(0, size), st.integers(0, size), st.binary(max_size=16)).map(splice),
        st.binary(max_size=200),
    )


POLICY = reprl.Policy([[0, 1, 2], [2, 1, 0]])
POLICY_BYTES = POLICY.to_json().encode()
COUNTS = reprl.Counts(reprl.TabularMDP(**GOOD).outcomes, np.arange(3 * 16, dtype=np.int64))
COUNTS_BYTES = COUNTS.to_bytes()


@settings(FUZZ, max_examples=400)
@given(data=damaged(POLICY_BYTES))
def test_damaged_policy_files_are_refused_or_read_as_the_same_policy(data):
    result = outcome(lambda: reprl.Policy.from_json(data))
    if isinstance(result, reprl.Policy):
        assert result == POLICY
    outcome(lambda: reprl.Policy.from_json(data.decode("latin-1")))


def use(counts: reprl.Counts) -> None:
    """Everything that a reader of a data set may do with it."""
    assert counts.visits.min() >= 0
    assert int(counts.visits.sum()) == sum(counts.hits.tolist())
    assert (counts.reward_sum <= counts.visits * (1.0 + 1e-12)).all()
    assert reprl.Counts.from_bytes(counts.to_bytes()) == counts
    counts.mean_return(0, np.zeros(counts.outcomes.n_states))
    outcome(lambda: counts + counts)
    repr(counts)


@settings(FUZZ, max_examples=400)
@given(data=damaged(COUNTS_BYTES))
def test_damaged_counts_are_refused_or_usable(data):
    result = outcome(lambda: reprl.Counts.from_bytes(data))
    if isinstance(result, reprl.Counts):
        use(result)


@settings(FUZZ, max_examples=200)
@given(body=st.binary(min_size=len(COUNTS_BYTES), max_size=len(COUNTS_BYTES)), keep=st.integers(0, 3))
def test_counts_with_a_good_header_and_random_arrays_are_refused_or_usable(body, keep):
    start = COUNTS_BYTES.index(b"\n", 20) + 1 + [0, 40, 104, 232][keep]
    result = outcome(lambda: reprl.Counts.from_bytes(COUNTS_BYTES[:start] + body[start:]))
    if isinstance(result, reprl.Counts):
        use(result)


@settings(FUZZ, max_examples=200)
@given(
    changes=st.dictionaries(
        st.sampled_from(["format", "version", "horizon", "n_states", "fingerprint", "actions"]), JUNK
    )
)
def test_policy_documents_with_junk_fields(changes):
    document = {**json.loads(POLICY.to_json()), **changes}
    try:
        text = json.dumps(document)
    except (TypeError, ValueError):
        return
    outcome(lambda: reprl.Policy.from_json(text))


@pytest.mark.parametrize("depth", [10, 64, 65, 900, 990, 5000, 10**6])
@pytest.mark.parametrize("shape", ["%s", '{"format": "reprl-policy", "version": 1, "actions": %s}'])
def test_deep_json_is_refused(depth, shape):
    for text in (shape % ("[" * depth + "]" * depth), shape % ("[" * depth), shape % ('{"a":' * depth)):
        assert isinstance(outcome(partial(reprl.Policy.from_json, text)), str)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-0.0", "9" * 30, "9" * 5000, "0.5"])
def test_strange_numbers_in_json_are_refused(number):
    text = POLICY.to_json()
    for field in ('"horizon": 2', '"version": 1', '"n_states": 3'):
        changed = text.replace(field, field.split(":")[0] + ": " + number)
        assert changed != text
        assert isinstance(outcome(partial(reprl.Policy.from_json, changed)), str)
    if number != "-0.0":  # minus zero is zero, and the fingerprint agrees
        changed = text.replace("[[0,", f"[[{number},")
        assert changed != text
        assert isinstance(outcome(lambda: reprl.Policy.from_json(changed)), str)


SIZES = ["horizon", "n_states", "n_actions", "row_shift", "slot_shift", "first", "next_state", "reward", "hits"]


@settings(FUZZ, max_examples=200)
@given(
    claims=st.dictionaries(
        st.sampled_from(SIZES),
        st.one_of(st.sampled_from([0, 1, 2, 2**20, 2**31, 2**40, 2**63, 2**64, 10**30]), JUNK),
        min_size=1,
    )
)
def test_counts_that_claim_other_sizes_take_no_memory(claims):
    magic, header, body = COUNTS_BYTES.split(b"\n", 2)
    try:
        line = json.dumps({**json.loads(header), **claims}).encode()
    except (TypeError, ValueError):
        return
    tracemalloc.start()
    try:
        result = outcome(lambda: reprl.Counts.from_bytes(magic + b"\n" + line + b"\n" + body))
        if isinstance(result, reprl.Counts):
            use(result)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6


@pytest.mark.parametrize("version", [b"0", b"2", b"10", b"", b"-1", b"1.0"])
def test_other_versions_of_counts_are_refused(version):
    data = COUNTS_BYTES.replace(b"reprl-counts 1\n", b"reprl-counts " + version + b"\n", 1)
    assert str(outcome(lambda: reprl.Counts.from_bytes(data))).startswith("counts must start with b'reprl-counts 1")

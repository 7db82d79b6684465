"""SharedKey and DataStream: the generator, its addresses, and how the two types stay apart."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl import randomness
from reprl.randomness import DataStream, check_shared_key, fill_words, philox, unit
from tests import naive
from tests.statistics import FALSE_ALARM, chi_square

U64 = st.integers(0, 2**64 - 1)
LABEL = st.one_of(st.integers(-(2**70), 2**70), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
ONES = 2**32 - 1
KNOWN_ANSWERS = [  # from the authors' kat_vectors: counter, key, block
    ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([ONES] * 4, [ONES] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def join(low: int, high: int) -> np.uint64:
    return np.uint64(low | high << 32)


@pytest.mark.parametrize(("counter", "key", "block"), KNOWN_ANSWERS)
def test_naive_philox_gives_the_published_answers(counter, key, block):
    assert naive.philox4x32(counter, key) == block


@pytest.mark.parametrize(("counter", "key", "block"), KNOWN_ANSWERS)
def test_kernel_philox_gives_the_published_answers(counter, key, block):
    first, second = philox(join(*key), join(*counter[2:]), join(*counter[:2]))
    assert (int(first), int(second)) == (block[0] | block[1] << 32, block[2] | block[3] << 32)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(key=U64, lane=U64, start=st.integers(0, 2**64 - 8))
def test_kernel_philox_agrees_with_the_naive_one_at_any_address(key, lane, start):
    out = np.empty(7, dtype=np.uint64)
    fill_words(np.uint64(key), np.uint64(lane), np.uint64(start), out)
    assert out.tolist() == naive.words(key, lane, start, 7)


@pytest.mark.parametrize(("key", "lane", "block"), [(0, 0, 0), (12345, 0, 7), (2**64 - 1, 2**63 + 5, 2**64 - 9)])
def test_kernel_philox_agrees_with_randomgen(key, lane, block):
    randomgen = pytest.importorskip("randomgen")
    # randomgen steps its counter before it makes a block, so it starts one block early.
    counter = ((lane << 64 | block) - 1) % 2**128
    generator = randomgen.Philox(key=key, counter=counter, number=4, width=32)
    expected = [int(x) for x in generator.random_raw(16)]
    out = np.empty(8, dtype=np.uint64)
    fill_words(np.uint64(key), np.uint64(lane), np.uint64((2 * block) % 2**64), out)
    if block >= 2**63:  # word numbers are 64 bits, so read far blocks one by one
        pairs = [philox(np.uint64(key), np.uint64(lane), np.uint64(block + i)) for i in range(4)]
        out[:] = [word for pair in pairs for word in pair]
    halves = [half for word in out.tolist() for half in (word & ONES, word >> 32)]
    assert halves == expected


def test_unit_is_exact_at_both_ends_and_never_zero_or_one():
    assert unit(np.uint64(0)) == 2.0**-53
    assert unit(np.uint64(2**64 - 1)) == 1.0 - 2.0**-53
    assert unit(np.uint64(2**63)) == 0.5 + 2.0**-53


@settings(max_examples=300, deadline=None, derandomize=True)
@given(word=U64)
def test_unit_is_the_centre_of_its_cell_in_whole_number_arithmetic(word):
    numerator, denominator = unit(np.uint64(word)).as_integer_ratio()
    assert numerator * 2**53 == (2 * (word >> 12) + 1) * denominator


def test_uniforms_are_the_units_of_the_words():
    key = reprl.SharedKey(7).derive("arms", 3)
    a, b = (int(word) for word in key.words)
    expected = [unit(np.uint64(word)) for word in naive.words(a, b, 0, 9)]
    assert key.uniforms(9).tolist() == expected


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seed=U64, labels=st.lists(LABEL, max_size=5), cut=st.integers(0, 5))
def test_derive_is_associative(seed, labels, cut):
    key = reprl.SharedKey(seed)
    whole, split = key.derive(*labels), key.derive(*labels[:cut]).derive(*labels[cut:])
    assert whole == split
    assert hash(whole) == hash(split)
    assert repr(whole) == repr(split)
    assert whole.uniforms(3).tolist() == split.uniforms(3).tolist()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    n=st.integers(0, 50), cuts=st.lists(st.integers(0, 50), max_size=4), start=st.integers(0, 2**60), order=st.randoms()
)
def test_uniforms_do_not_depend_on_how_requests_are_split_or_ordered(n, cuts, start, order):
    key = reprl.SharedKey(3).derive("split")
    edges = sorted({0, n, *(min(cut, n) for cut in cuts)})
    pieces = list(pairwise(edges))
    order.shuffle(pieces)
    out = np.full(n, np.nan)
    for low, high in pieces:
        out[low:high] = key.uniforms(high - low, start + low)
    assert out.tolist() == key.uniforms(n, start).tolist()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1,), ("1",)),
        (("a", "bc"), ("ab", "c")),
        (("ab",), ("a", "b")),
        ((1, 2), (2, 1)),
        ((12,), (1, 2)),
        ((), ("",)),
        ((0,), ()),
        ((-1,), (1,)),
        (("i1",), (1,)),
    ],
)
def test_different_labels_give_different_draws(one, other):
    key = reprl.SharedKey(5)
    assert key.derive(*one) != key.derive(*other)
    assert not set(key.derive(*one).uniforms(64)) & set(key.derive(*other).uniforms(64))


def test_numpy_and_python_whole_numbers_are_one_label():
    key = reprl.SharedKey(5)
    assert key.derive(np.int32(4), np.uint8(9)) == key.derive(4, 9)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "label", [True, np.True_, 1.0, None, b"a", ("a",), "\ud800", pytest.param(10**5000, id="long")]
)
def test_other_labels_are_refused_in_one_line(label):
    with pytest.raises(reprl.ReprlError, match=r"^a label must be text or a whole number, got [^\n]+\Z"):
        reprl.SharedKey(1).derive(label)


@pytest.mark.parametrize("seed", [-1, "7", 7.0, True, np.True_, 2**64, None, [1], pytest.param(10**5000, id="long")])
def test_bad_seeds_are_refused_in_one_line(seed):
    allowed = "must be a whole number from 0 to 18446744073709551615, got [^\n]+\\Z"
    with pytest.raises(reprl.ReprlError, match="^shared seed " + allowed):
        reprl.SharedKey(seed)
    with pytest.raises(reprl.ReprlError, match="^data seed " + allowed):
        DataStream(seed, "test")
    with pytest.raises(reprl.ReprlError, match="^run " + allowed):
        DataStream(1, "test", run=seed)


def test_the_bad_value_is_quoted():
    with pytest.raises(reprl.ReprlError, match=r"got -1\Z"):
        reprl.SharedKey(-1)
    with pytest.raises(reprl.ReprlError, match=r"got '7'\Z"):
        reprl.SharedKey("7")  # type: ignore[arg-type]


@pytest.mark.parametrize("purpose", ["", None, 3, b"x", "\ud800", "two\nlines"])
def test_bad_purposes_are_refused(purpose):
    with pytest.raises(reprl.ReprlError, match=r"^purpose must be a non-empty printable text, got [^\n]*\Z"):
        DataStream(1, purpose)


@pytest.mark.parametrize(("n", "start"), [(-1, 0), (1.5, 0), (True, 0), (3, -1), (3, "0"), (2, 2**64 - 1)])
def test_bad_requests_are_refused_and_none_wraps_round_to_the_first_address(n, start):
    with pytest.raises(reprl.ReprlError, match=r"^(n|start) must be a whole number from 0 to \d+, got"):
        reprl.SharedKey(1).uniforms(n, start)


def test_the_last_address_can_be_read():
    key = reprl.SharedKey(1)
    assert key.uniforms(2, 2**64 - 2)[1] == key.uniforms(1, 2**64 - 1)[0]


def test_pickling_keeps_the_address():
    key = reprl.SharedKey(9).derive("tier", 2)
    copy = pickle.loads(pickle.dumps(key))
    assert copy == key
    assert copy.uniforms(4).tolist() == key.uniforms(4).tolist()


def test_pickling_refuses_another_stream_version(monkeypatch):
    data = pickle.dumps(reprl.SharedKey(9).derive("tier"))
    monkeypatch.setattr(randomness, "STREAM_VERSION", 2)
    with pytest.raises(reprl.ReprlError, match=r"^stream version must be 2 for this release of reprl, got 1\Z"):
        pickle.loads(data)


@pytest.mark.parametrize("version", [0, 2, 3, True, "1", None])
def test_other_stream_versions_are_refused(version):
    with pytest.raises(reprl.ReprlError, match=r"^stream version must be 1 "):
        reprl.SharedKey(1, stream_version=version)


def test_shared_and_data_randomness_are_separate_types():
    stream = DataStream(7, "arms")
    assert not isinstance(stream, reprl.SharedKey)
    assert not isinstance(reprl.SharedKey(7), DataStream)
    assert stream != reprl.SharedKey(7)
    for wrong in (stream, 7, None):
        with pytest.raises(reprl.ReprlError, match=r"^shared key must be a reprl.SharedKey, got "):
            check_shared_key(wrong)
    assert check_shared_key(reprl.SharedKey(7)) == reprl.SharedKey(7)
    with pytest.raises(reprl.ReprlError):
        reprl.SharedKey(reprl.SharedKey(7))  # type: ignore[arg-type]


def test_streams_differ_by_seed_purpose_run_and_type():
    draws = [
        DataStream(1, "a").integers(64),
        DataStream(2, "a").integers(64),
        DataStream(1, "b").integers(64),
        DataStream(1, "a", run=1).integers(64),
        (reprl.SharedKey(1).derive("a").uniforms(64) * 2**52).astype(np.uint64) << np.uint64(12),
    ]
    assert len({int(word) for row in draws for word in row}) == 5 * 64


def test_runs_of_a_data_stream_are_lanes_of_one_key():
    stream = DataStream(11, "explore", run=6)
    assert stream.integers(10, 3).tolist() == naive.words(stream.key, 6, 3, 10)


def test_shared_draws_do_not_depend_on_the_hash_seed():
    program = (
        "import reprl; from reprl.randomness import DataStream; k = reprl.SharedKey(7).derive('arms', 3);"
        "print(k.uniforms(3).tolist(), k.words, DataStream(7, 'x').key)"
    )
    outputs = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        result = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(result.stdout)
    assert len(outputs) == 1
    assert str(reprl.SharedKey(7).derive("arms", 3).uniforms(3).tolist()) in outputs.pop()


GOLDEN: list[tuple[int, tuple[str | int, ...], list[float]]] = [
    (0, (), [0.12134945661806873, 0.11164102805591469, 0.5576394365460801]),
    (7, ("arms", 3), [0.43814302918226, 0.5374168851370486, 0.9347640124011213]),
    (2**64 - 1, ("rounding", -1, ""), [0.5845801717401452, 0.8860706047322907, 0.5213036474162615]),
]
GOLDEN_DATA: list[tuple[int, str, int, list[int]]] = [
    (0, "generative/0", 0, [16249237034032803944, 5660847441150459008]),
    (7, "episodic", 2**64 - 1, [12131897848586383950, 13072112798075555761]),
]


@pytest.mark.parametrize(("seed", "labels", "draws"), GOLDEN)
def test_shared_draws_are_golden(seed, labels, draws):
    assert reprl.SharedKey(seed).derive(*labels).uniforms(3).tolist() == draws


@pytest.mark.parametrize(("seed", "purpose", "run", "draws"), GOLDEN_DATA)
def test_data_draws_are_golden(seed, purpose, run, draws):
    assert DataStream(seed, purpose, run).integers(2).tolist() == draws


def uniformity(draws: np.ndarray) -> float:
    return chi_square([(np.bincount((draws * 256).astype(int), minlength=256), np.full(256, 1 / 256))])


def pair_independence(left: np.ndarray, right: np.ndarray) -> float:
    cells = (left * 16).astype(int) * 16 + (right * 16).astype(int)
    return chi_square([(np.bincount(cells, minlength=256), np.full(256, 1 / 256))])


@pytest.mark.statistical
def test_draws_are_uniform_and_neighbours_independent():
    """False alarm 1e-6 for each of the nine tests; the last two lines are the controls."""
    n = 200_000
    shared = reprl.SharedKey(2024).derive("uniformity").uniforms(n)
    lanes = np.array([DataStream(1, "lanes", run=i).uniforms(2) for i in range(40_000)])
    tiers = np.array([reprl.SharedKey(1).derive("tier", i).uniforms(2) for i in range(20_000)])
    for draws in (shared, lanes[:, 0], tiers[:, 0]):
        assert uniformity(draws) > FALSE_ALARM
    assert pair_independence(shared[:-1:2], shared[1::2]) > FALSE_ALARM
    assert pair_independence(shared[1:-1:2], shared[2::2]) > FALSE_ALARM
    for table in (lanes, tiers):
        assert pair_independence(table[:-1:2, 0], table[1::2, 0]) > FALSE_ALARM
        assert pair_independence(table[:, 0], table[:, 1]) > FALSE_ALARM
    assert uniformity(shared**1.03) < FALSE_ALARM
    assert pair_independence(shared[:-1:2], 0.95 * shared[1::2] + 0.05 * shared[:-1:2]) < FALSE_ALARM

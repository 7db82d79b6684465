"""The grade of a coupling: what it refuses, how it cuts coordinates into blocks, what "auto" chooses."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reprl
from reprl.coupling.spec import COUPLINGS, JOINT, METHODS, PRODUCT, CouplingName, CouplingSpec
from reprl.errors import ReprlError
from reprl.learning.settings import Settings

grades = st.builds(CouplingSpec, st.sampled_from(METHODS), st.integers(1, 50) | st.just(10**30))


def test_a_grade_is_a_value() -> None:
    assert CouplingSpec() == JOINT == CouplingSpec("joint", 32)
    assert CouplingSpec("product") == PRODUCT != JOINT
    assert CouplingSpec("blocked", np.uint8(4)) == CouplingSpec("blocked", 4)  # type: ignore[arg-type]
    assert type(CouplingSpec("blocked", np.uint8(4)).block) is int  # type: ignore[arg-type]
    assert len({CouplingSpec("blocked", 4), CouplingSpec("blocked", 4), CouplingSpec("blocked", 5)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        JOINT.block = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("grade", "n", "size", "blocks"),
    [
        (JOINT, 5, 5, [(0, 5)]),
        (PRODUCT, 3, 1, [(0, 1), (1, 2), (2, 3)]),
        (CouplingSpec("blocked", 2), 5, 2, [(0, 2), (2, 4), (4, 5)]),
        (CouplingSpec("blocked", 5), 5, 5, [(0, 5)]),
        (CouplingSpec("blocked", 9), 5, 5, [(0, 5)]),
        (CouplingSpec("joint", 2), 5, 5, [(0, 5)]),
    ],
)
def test_blocks_and_sizes(grade: CouplingSpec, n: int, size: int, blocks: list[tuple[int, int]]) -> None:
    assert grade.size(n) == size
    assert grade.blocks(n) == [slice(*ends) for ends in blocks]


@given(grades, st.integers(1, 200))
def test_blocks_partition_the_coordinates(grade: CouplingSpec, n: int) -> None:
    blocks = grade.blocks(n)
    assert [i for block in blocks for i in range(n)[block]] == list(range(n))
    assert len(blocks) == grade.count(n)
    assert [block.start for block in blocks] == grade.starts(n).tolist()
    lengths = [block.stop - block.start for block in blocks]
    assert set(lengths[:-1]) <= {grade.size(n)}
    assert 1 <= lengths[-1] <= grade.size(n)
    assert {"joint": len(blocks) == 1, "product": len(blocks) == n, "blocked": max(lengths) <= grade.block}[
        str(grade.method)
    ]


@pytest.mark.parametrize("method", METHODS)
def test_no_coordinates_have_no_blocks(method: str) -> None:
    grade = CouplingSpec(method, 4)
    assert (grade.count(0), grade.starts(0).size, grade.blocks(0)) == (0, 0, [])


@settings(max_examples=100, deadline=None)
@given(grades, st.integers(1, 12), st.integers(2, 4), st.integers(0, 10**6))
def test_a_block_is_drawn_without_regard_to_the_others(grade: CouplingSpec, n: int, k: int, seed: int) -> None:
    """Laws of one block may change; no draw of another block moves."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(k), n)
    block = grade.blocks(n)[int(rng.integers(grade.count(n)))]
    changed = laws.copy()
    changed[block] = rng.dirichlet(np.ones(k), block.stop - block.start)
    key, rest = reprl.SharedKey(seed), np.ones(n, dtype=bool)
    rest[block] = False
    one, two = (reprl.correlated_sample(key, p, grade.method, grade.block) for p in (laws, changed))
    np.testing.assert_array_equal(one[rest], two[rest])


@pytest.mark.parametrize(
    ("n", "k", "chosen"),
    [
        (40, 2, CouplingSpec("joint", 40)),
        (41, 2, CouplingSpec("blocked", 40)),
        (20, 4, CouplingSpec("joint", 20)),
        (21, 4, CouplingSpec("blocked", 20)),
        (9, 1, CouplingSpec("joint", 40)),
        (1, 2**41, CouplingSpec("blocked", 1)),
    ],
)
def test_auto_is_joint_up_to_2_to_the_40_outcomes(n: int, k: int, chosen: CouplingSpec) -> None:
    assert CouplingSpec.auto(n, k) == chosen


@given(st.sampled_from(COUPLINGS), st.integers(1, 50), st.integers(1, 300), st.integers(2, 40))
def test_keywords_resolve_by_sizes_alone(coupling: CouplingName, block: int, n: int, k: int) -> None:
    grade = CouplingSpec.resolve(coupling, block, n, k)
    assert grade == (CouplingSpec.auto(n, k) if coupling == "auto" else CouplingSpec(coupling, block))
    asked = Settings(rule="sampled", coupling=coupling, block=block)
    assert asked.paper.coupling_spec(n, k) == asked.paper.decision(n, k).spec == grade
    if coupling == "auto":
        assert k ** grade.size(n) <= 2**40
        assert grade.method == "joint" or k ** (grade.size(n) + 1) > 2**40


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (("auto",), "method must be one of joint, blocked, product; got 'auto'"),
        ((None,), "method must be one of joint, blocked, product; got None"),
        (("grid",), "method must be one of joint, blocked, product; got 'grid'"),
        (("blocked", 0), "block must be a whole number of at least 1, got 0"),
        (("joint", 2.0), "block must be a whole number of at least 1, got 2.0"),
        (("product", True), "block must be a whole number of at least 1, got True"),
    ],
)
def test_bad_values_are_quoted(fields: tuple[Any, ...], text: str) -> None:
    with pytest.raises(ReprlError) as caught:
        CouplingSpec(*fields)
    assert str(caught.value) == text


def test_bad_keywords_are_quoted() -> None:
    with pytest.raises(ReprlError, match=r"^coupling must be one of auto, joint, blocked, product; got 'both'$"):
        CouplingSpec.resolve("both", 2, 3, 2)
    with pytest.raises(ReprlError, match=r"^block must be a whole number of at least 1, got -1$"):
        CouplingSpec.resolve("joint", -1, 3, 2)

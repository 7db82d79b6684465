"""A share of the files that ``make fuzz`` tries, and controls that show it would notice."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import reprl
from tests import forgery, fuzz_files, fuzz_folders

FILES = 120
"""Of each kind, with every run of the tests; ``make fuzz`` tries 100,000 in all."""
NAMES = ("recipe", "receipt", "policy", "audit", "run folder")


def _target(name: str) -> fuzz_files.Target:
    return next(target for target in fuzz_files.targets() if target.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_bad_files_are_refused_in_one_line_or_can_be_used(name: str) -> None:
    files = FILES // 4 if name == "run folder" else FILES  # folders go through five commands each
    found = fuzz_files.fuzz(_target(name), files, seed=0)
    assert found.files == files
    assert found.refused > files // 2  # else the forgeries are too tame
    assert found.refused < files  # else nothing gets past the first check
    assert found.reasons >= 10


@pytest.mark.parametrize("name", NAMES)
def test_good_files_are_accepted(name: str) -> None:
    target = _target(name)
    samples = [forgery.to_bytes(document) for document in target.samples]
    if name == "run folder":
        samples = [fuzz_folders.pack(files) for files in fuzz_folders.sample_folders()]
    assert samples
    for data in samples:
        assert fuzz_files.try_file(target, data).refused is None


def test_all_kinds_of_files_are_tried() -> None:
    assert tuple(target.name for target in fuzz_files.targets()) == NAMES


def _raise(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize(
    "read",
    [
        lambda data: _raise(ValueError("not ours")),
        lambda data: _raise(reprl.ReprlError("two\nlines")),
        lambda data: _raise(reprl.ReprlError("")),
        lambda data: _raise(reprl.ReprlError("x" * 10_000)),
    ],
)
def test_a_reader_that_ends_otherwise_is_noticed(read: Any) -> None:
    broken = _target("policy")._replace(read=read)
    with pytest.raises((ValueError, AssertionError)):
        fuzz_files.try_file(broken, b"{}")


def test_forged_receipts_are_sealed_anew() -> None:
    target = _target("receipt")
    document = json.loads(forgery.to_bytes(target.samples[0]))
    document["samples"] += 1
    assert fuzz_files.try_file(target, forgery.to_bytes(document)).refused is not None
    target.seal(document)
    assert fuzz_files.try_file(target, forgery.to_bytes(document)).refused is None


def test_a_seed_gives_the_same_files() -> None:
    for target in fuzz_files.targets():
        first, second = (
            [fuzz_files.make_file(rng, target) for _ in range(20)] for rng in (random.Random(3), random.Random(3))
        )
        assert first == second
        assert len(set(first)) > 10

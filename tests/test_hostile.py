"""Strangers' files: small ones that ask for much memory are refused before it is taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reprl
from reprl.mdp.criterion import Criterion
from reprl.mdp.rows import limited
from tests.forgery import reseal

LIMIT = 512
"""MiB that a process may take in all, Python, NumPy and Numba included."""
MEASURE = """
import re, sys
sys.argv = sys.argv[1:]
try:
    exec(sys.argv[0])
except Exception as error:
    print(type(error).__name__, "|", error)
except SystemExit:
    pass
print(int(re.search("VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""
"""A process's own peak; getrusage would also count its parent's, from before it was started."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


def try_in_a_process(code: str, *words: str) -> tuple[str, int]:
    """Return what a process printed, and the MiB that it took."""
    command = [sys.executable, "-c", MEASURE, code, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "COLUMNS": "1000"})
    assert done.returncode == 0, done.stderr
    *lines, memory = done.stdout.splitlines()
    return "\n".join(lines), int(memory)


def parquet(path: Path, **columns: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    n = len(next(iter(columns.values())))
    numbers = {"episode": np.arange(n), "step": np.zeros(n), "state": np.zeros(n), "action": np.zeros(n)}
    table = pyarrow.table({**numbers, "reward": np.zeros(n), **columns})
    dictionary = n > 2
    parquet.write_table(table, path, compression="zstd", use_dictionary=dictionary, store_schema=False)


def repeated(text: str, times: int) -> Any:
    import pyarrow

    return pyarrow.DictionaryArray.from_arrays(np.zeros(times, np.int32), [text])


def one_vast_page(path: Path) -> None:
    parquet(path, state=["b" * (140 << 20), "c"])


def a_footer_that_lies(path: Path) -> None:
    """The same, with a footer that says that the page is small."""
    one_vast_page(path)
    from pyarrow.parquet import ParquetFile

    part = ParquetFile(path).metadata.row_group(0)
    size = next(c.total_uncompressed_size for c in map(part.column, range(5)) if c.path_in_schema == "state")
    number = bytearray()
    zigzag = 2 * size
    while zigzag:
        number.append(zigzag & 127 | (128 if zigzag > 127 else 0))
        zigzag >>= 7
    small = bytes([0x90, *[0x80] * (len(number) - 2), 0])
    data = path.read_bytes()
    assert data.count(bytes(number)) == 1
    path.write_bytes(data.replace(bytes(number), small))


def a_list(path: Path) -> None:
    import pyarrow

    length = 1 << 20
    values = pyarrow.array(np.zeros(length, np.int8))
    parquet(path, state=pyarrow.ListArray.from_arrays(pyarrow.array([0, length, length], pyarrow.int32()), values))


BOMBS: dict[str, tuple[Callable[[Path], None], str]] = {
    "one vast page": (one_vast_page, "pages of at most 128 MiB in all its columns, got 140 MiB"),
    "a footer that lies": (a_footer_that_lies, "pages of at most 128 MiB in all its columns, got 140 MiB"),
    "a list": (a_list, "must hold numbers or texts, got 'list<element: int8>'"),
    "a long text in many rows": (
        lambda path: parquet(path, state=repeated("a" * (1 << 20), 4000)),
        "label must have 1 to 1000 characters",
    ),
    "rewards of long texts": (
        lambda path: parquet(path, reward=repeated("a" * (1 << 20), 4000)),
        "column 'reward' must be a number",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_parquet_bomb_is_refused(name: str, tmp_path: Path) -> None:
    make, words = BOMBS[name]
    pytest.importorskip("pyarrow")
    path = tmp_path / "log.parquet"
    make(path)
    assert path.stat().st_size < 50_000
    said, memory = try_in_a_process("import reprl\nreprl.learn_log(sys.argv[1], horizon=4)", str(path))
    assert words in said
    assert memory < LIMIT


def test_texts_of_a_parquet_file_may_be_rewards_and_labels(tmp_path: Path) -> None:
    """Texts are read as dictionaries, numbers as they are: both give the same rows, nothing included."""
    pytest.importorskip("pyarrow")
    from reprl.sources.logs.tables import open_table

    path = tmp_path / "log.parquet"
    parquet(path, state=["a", "b", "a", None], reward=["1", "0.5", None, "1e3"], action=["", "x", "y", "x"])
    (chunk,) = open_table(str(path)).chunks()
    assert chunk["state"].codes.tolist() == [0, 1, 0, -1]
    assert chunk["state"].labels == ["a", "b"]
    assert chunk["action"].codes.tolist()[0] == -1
    assert np.array_equal(chunk["reward"], [1, 0.5, np.nan, 1000], equal_nan=True)
    parquet(path, reward=["1", "no", None, "2"])
    (chunk,) = open_table(str(path)).chunks()
    assert chunk["reward"].tolist() == ["1", "no", None, "2"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    world = reprl.make("river-swim-v0", horizon=2, n_states=3)
    reprl.learn(world, rule="paper").save(folder)
    return folder


def forged(folder: Path, into: Path, id: str, horizon: int, options: dict[str, Any], states: int, actions: int) -> None:
    """Write a run whose recipe names another world, with a receipt that belongs to it; sizes are as stated."""
    sizes: dict[str, Any] = {"criterion": Criterion(horizon), "n_states": states, "n_actions": actions}
    good = reprl.Recipe.load(folder / "recipe.json")
    read = replace(good, environment=good.environment._replace(id=id, options=options, **sizes))
    receipt = json.loads((folder / "receipt.json").read_text())
    table = reprl.Policy(np.zeros(states if horizon > 1000 else (horizon, states), int))
    labels = {**receipt["labels"], "states": [], "actions": [], "grid": None}
    receipt.update(recipe=read.digest, fingerprint=table.fingerprint, labels=labels)
    rows = len(table.table)
    receipt["visits"] = np.zeros((rows, states), int).tolist()
    receipt["values"] = np.zeros((rows + 1, states)).tolist()
    receipt["tiers"]["level"] = np.ones((rows, states), int).tolist()
    reseal(receipt)
    into.mkdir()
    for name, document in (("recipe", read.to_dict()), ("receipt", receipt), ("policy", table.to_dict())):
        (into / f"{name}.json").write_text(json.dumps(document))


HOSTILE_WORLDS = {
    "gridworld": ("gridworld-v0", 2, {"size": 70}, 4900, 4),
    "gridworld that is said to be small": ("gridworld-v0", 2, {"size": 70}, 4, 4),
    "random": ("random-mdp-v0", 2, {"n_states": 5000, "n_actions": 8}, 5000, 8),
    "lock": ("combination-lock-v0", 2, {"n_states": 8000, "n_actions": 4}, 8000, 4),
    "inventory": ("inventory-v0", 2, {"capacity": 600}, 601, 601),
    "gambler": ("gambler-v0", 2, {"goal": 800, "start": 6}, 801, 400),
    "queue": ("queue-admission-v0", 2, {"capacity": 5000}, 10002, 2),
    "steps that are not alike": ("random-mdp-v0", 1000, {"n_states": 250, "stationary": False}, 250, 3),
}


@pytest.mark.slow
def test_no_recipe_makes_verify_or_report_build_a_large_world(run_folder: Path, tmp_path: Path) -> None:
    for name, world in HOSTILE_WORLDS.items():
        forged(run_folder, tmp_path / name, *world)
    code = """
import reprl
from reprl.artifacts.verify import find_world, load_evidence
for path in sys.argv[2:]:
    print(path, find_world([load_evidence(path)]))
    reprl.write_report(path, sys.argv[1])
    print(reprl.verify(path, path))
"""
    folders = [str(tmp_path / name) for name in HOSTILE_WORLDS]
    said, memory = try_in_a_process(code, str(tmp_path / "page.html"), *folders)
    assert said.count("same policy") == len(HOSTILE_WORLDS), said
    assert said.count("(None, ['values are missing: ") == len(HOSTILE_WORLDS), said
    assert memory < LIMIT


def test_a_stationary_policy_is_not_repeated_a_million_times(run_folder: Path, tmp_path: Path) -> None:
    forged(run_folder, tmp_path / "run", "river-swim-v0", 10**6, {"n_states": 400}, 400, 2)
    said, memory = try_in_a_process("import reprl\nreprl.load_run(sys.argv[1])", str(tmp_path / "run"))
    assert "policy must have its recipe's shape (1000000, 400), got (400,)" in said
    assert memory < LIMIT
    recipe = reprl.Recipe.load(tmp_path / "run" / "recipe.json")
    with pytest.raises(reprl.ReprlError, match="must have at most 4194304 entries, got 800000000"):
        recipe.make_small()


def test_small_worlds_of_the_catalogue_are_still_built(run_folder: Path) -> None:
    from reprl.artifacts.verify import find_world, load_evidence

    world, notes = find_world([load_evidence(run_folder)])
    assert notes == []
    assert world is not None
    assert world.n_states == 3
    with limited(10), pytest.raises(reprl.ReprlError, match="must have at most 10 entries, got 18"):
        reprl.make("river-swim-v0", n_states=3, horizon=2)
    assert reprl.make("river-swim-v0", n_states=3, horizon=2).n_states == 3


LARGE_TEXTS = {
    "one long text": lambda: '{"format": "reprl-policy", "version": 1, "a": "' + "x" * (60 << 20) + '"}',
    "a text of wide characters": lambda: '{"format": "reprl-policy", "a": "' + "\U0001f600" * (12 << 20) + '"}',
    "many names": lambda: "{" + ",".join(f'"{i:07x}":1' for i in range(4_000_000)) + "}",
    "many numbers": lambda: "[" + ",".join(["1.5"] * 12_000_000) + "]",
    "many lists": lambda: "[" + ",".join(["[]"] * 20_000_000) + "]",
    "the largest policy": lambda: json.dumps(
        {"format": "reprl-policy", "version": 1, "horizon": 1, "n_states": 6_000_000, "fingerprint": "0" * 64}
        | {"actions": [[0] * 6_000_000]}
    ),
    "a long file": lambda: "[" + " " * (100 << 20) + "]",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_TEXTS)
def test_large_texts_are_refused_or_read_in_bounded_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(LARGE_TEXTS[name]())
    said, memory = try_in_a_process("import reprl\nreprl.verify(sys.argv[1], sys.argv[1])", str(path))
    assert said.startswith("DocumentError | ")
    assert "\n" not in said
    assert memory < LIMIT

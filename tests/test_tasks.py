"""Tasks and checkpoints: the same results from anybody, in order, once; and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import reprl
from reprl.errors import ReprlError
from reprl.execution.tasks import WINDOW, cluster, count_workers, run_tasks
from reprl.storage.checkpoints import WORK, Checkpoint, Content, Kept, discard, open_checkpoint, recall
from tests.faults import alive
from tests.loopback import wait_for

WORK_OF = {"kind": "test", "seed": 7}


def square(common: int, key: int) -> int:
    if key == 13:
        raise ReprlError("key must not be 13, got 13")
    return common + key * key


class Memory(dict[Any, Any]):
    """A store."""

    def put(self, key: Any, found: Any) -> None:
        assert key not in self, "done twice"
        self[key] = found


def nested(common: int, key: int) -> tuple[int, list[int]]:
    return count_workers(8), list(run_tasks(square, common, [key], workers=8))


class World:
    """Something large that notes who unpacks it."""

    def __init__(self, notes: str) -> None:
        self.notes, self.table = notes, np.arange(400_000)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        with open(self.notes, "a") as file:
            file.write(f"{os.getpid()}\n")


def look_up(world: World, key: int) -> int:
    return int(world.table[key])


def test_what_is_common_is_unpacked_once_in_every_worker(tmp_path: Path):
    notes = tmp_path / "notes"
    assert list(run_tasks(look_up, World(str(notes)), range(40), workers=2)) == [*range(40)]
    unpacked = notes.read_text().split()
    assert 1 <= len(unpacked) == len(set(unpacked)) <= 2
    assert str(os.getpid()) not in unpacked


def test_results_come_in_order_from_anybody():
    wanted = [1 + key * key for key in range(12)]
    assert list(run_tasks(square, 1, range(12))) == wanted
    assert list(run_tasks(square, 1, range(12), workers=3, threads=True)) == wanted
    assert list(run_tasks(square, 1, range(12), workers=3, threads=True, window=5)) == wanted
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert count_workers(1) == 3
        assert list(run_tasks(square, 1, range(12))) == wanted
        assert list(run_tasks(nested, 1, [2, 3])) == [(1, [5]), (1, [10])], "a task inside a task is done where it is"
    with joblib.parallel_config(backend="sequential"):
        assert count_workers(1) == 1
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert list(run_tasks(square, 1, range(12))) == wanted


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_waits_for_its_turn(workers: int):
    found = run_tasks(square, 0, range(20), workers=workers, threads=True)
    assert [next(found) for _ in range(13)] == [key * key for key in range(13)]
    with pytest.raises(ReprlError, match="got 13"):
        next(found)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_kept_is_not_done_again(workers: int):
    store = Memory({3: -1, 5: -2})
    found = list(run_tasks(square, 0, range(7), workers=workers, threads=True, store=store))
    assert found == [0, 1, 4, -1, 16, -2, 36]
    assert store == dict(enumerate(found))


def test_memory_holds_one_window_and_a_reader_may_stop():
    begun: list[int] = []
    lock = threading.Lock()

    def note(_: None, key: int) -> int:
        with lock:
            begun.append(key)
        return key

    some = run_tasks(note, None, range(10**6), workers=2, threads=True)
    assert [next(some) for _ in range(3)] == [0, 1, 2]
    some.close()
    assert 3 <= len(begun) <= 2 * WINDOW
    begun.clear()
    few = run_tasks(note, None, range(10**6), workers=2, threads=True, window=4)
    assert next(few) == 0
    few.close()
    assert sorted(begun) == [0, 1, 2, 3]


def test_what_cannot_be_sent_and_who_cannot_be_reached_is_said():
    with pytest.raises(ReprlError, match=r"^workers must be 1 for what cannot be sent to another process"):
        list(run_tasks(square, threading.Lock(), range(3), workers=2))
    with (
        pytest.raises(ReprlError, match=r"^dask must be the address of a running scheduler, got 'nonsense'"),
        cluster("nonsense"),
    ):
        pass


# --- checkpoints ------------------------------------------------------------------------------------------------------


def keep(checkpoint: Checkpoint) -> Kept[int]:
    return Kept(checkpoint, "square ", lambda n: Content({"n": n}, b"\n\0x"), lambda content: content.fields["n"])


def fill(folder: Path, keys: range, work: dict[str, Any] | None = None) -> tuple[int, int]:
    """Tasks made and found."""
    with open_checkpoint(folder, WORK_OF if work is None else work) as checkpoint:
        assert checkpoint is not None
        assert list(run_tasks(square, 0, keys, store=keep(checkpoint))) == [key * key for key in keys]
        return checkpoint.made, checkpoint.found


def test_work_goes_on_where_it_was(tmp_path: Path):
    folder = tmp_path / "deep" / "tasks"
    assert recall(folder, "seed") is None
    assert fill(folder, range(0)) == (0, 0)
    assert not folder.exists(), "nothing is left of work that has done nothing"
    assert fill(folder, range(3)) == (3, 0)
    assert recall(folder, "seed") == 7
    assert fill(folder, range(5)) == (2, 3)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert fill(folder, range(5)) == (0, 5)
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}, "finished work does nothing"
    discard(folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ({"kind": "test", "seed": 8}, r"tasks must hold tasks of this work, with seed 8, got seed 7"),
        ({"kind": "other", "seed": 7}, r"with kind 'other', got kind 'test'"),
        ({"kind": "test", "seed": 7, "more": [1]}, r"with more '\[1\]', got more None"),
    ],
)
def test_other_work_is_refused_by_name(tmp_path: Path, work: dict[str, Any], message: str):
    fill(tmp_path / "tasks", range(2))
    with pytest.raises(ReprlError, match=message):
        fill(tmp_path / "tasks", range(2), work)


@pytest.mark.parametrize("name", ["reprl", "stream_version", "version"])
def test_another_version_is_refused_by_name(tmp_path: Path, name: str):
    fill(tmp_path / "tasks", range(2))
    file = tmp_path / "tasks" / WORK
    document = json.loads(file.read_text())
    document[name] = 99 if name != "reprl" else "0.0.1"
    file.write_text(json.dumps(document))
    with pytest.raises(ReprlError, match=f"{name} "):
        fill(tmp_path / "tasks", range(2))


def test_damage_strangers_and_company_are_refused(tmp_path: Path):
    folder = tmp_path / "tasks"
    fill(folder, range(2))
    task = next(folder.rglob("*.task"))
    whole = task.read_bytes()
    for damaged in (whole[:-1], whole.replace(b'"n":', b'"m":'), b""):
        task.write_bytes(damaged)
        with pytest.raises(ReprlError, match=r"\.task must be a task that matches the SHA-256 at its end"):
            fill(folder, range(2))
    task.write_bytes(whole)
    other = next(path for path in folder.rglob("*.task") if path != task)
    other.write_bytes(whole)
    with pytest.raises(ReprlError, match=r"must be task 'square .' of this work, got 'square .'"):
        fill(folder, range(2))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ReprlError, match=r"must be empty or hold work\.json"):
        fill(tmp_path / "mine", range(2))
    discard(tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").exists()
    with open_checkpoint(tmp_path / "busy", WORK_OF) as one:
        assert one is not None
        keep(one).put(0, 0)
        with pytest.raises(ReprlError, match="must be free, got a folder that another process works in"):
            fill(tmp_path / "busy", range(2))
    fill(tmp_path / "busy", range(2))


def test_a_writer_killed_over_the_first_file_is_forgiven(tmp_path: Path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / f".{WORK}.0123456789abcdef.part").write_bytes(b"{")
    assert fill(tmp_path / "tasks", range(2)) == (2, 0)
    assert not list((tmp_path / "tasks").glob("*.part"))


# --- what is built on them --------------------------------------------------------------------------------------------


def test_audits_go_on_with_the_same_bytes(tmp_path: Path):
    world: dict[str, Any] = {"horizon": 3, "samples": 480}
    alone = reprl.audit("gridworld-v0", "greedy", 6, seed=5, **world).to_json()
    folder = tmp_path / "audit"
    reprl.audit("gridworld-v0", "greedy", 4, seed=5, checkpoint=folder, **world)
    told: list[tuple[str, int, int]] = []
    again = reprl.audit("gridworld-v0", "greedy", 6, checkpoint=folder, progress=lambda *n: told.append(n), **world)
    assert again.to_json() == alone
    assert told == [("audit", n, 6) for n in range(1, 7)], "progress counts what is there already"
    with pytest.raises(ReprlError, match=r"with options .*960.*, got options .*480"):
        reprl.audit("gridworld-v0", "greedy", 6, checkpoint=folder, **{**world, "samples": 960})
    with pytest.raises(ReprlError, match="with environment "):
        reprl.audit("gridworld-v0", "greedy", 6, checkpoint=folder, **{**world, "horizon": 2})


def test_a_run_on_a_black_box_goes_on_with_the_same_bytes(tmp_path: Path):
    from tests.shop import Shop

    played = tmp_path / "played"

    def open_shop() -> Shop:
        class Noted(Shop):
            def reset(self, **options: Any) -> tuple[int, dict[str, Any]]:
                with open(played, "ab") as file:
                    file.write(b".")
                if stop is not None and os.path.getsize(played) > stop:
                    raise KeyboardInterrupt
                return super().reset(**options)

        return Noted()

    stop: int | None = None
    options: dict[str, Any] = {"horizon": 2, "reward_range": Shop.REWARDS, "shared_seed": 1, "max_samples": 4000}
    alone = reprl.learn(open_shop, data_seed=2, **options)
    all_of_it = played.stat().st_size
    played.unlink()
    stop = all_of_it // 2
    with pytest.raises(KeyboardInterrupt):
        reprl.learn(open_shop, data_seed=2, checkpoint=tmp_path / "tasks", **options)
    stop = None
    again = reprl.learn(open_shop, checkpoint=tmp_path / "tasks", **options)
    assert again.policy == alone.policy
    assert (again.samples, again.episodes, again.data_seed) == (alone.samples, alone.episodes, 2)
    assert again.counts.to_bytes() == alone.counts.to_bytes()
    assert again.receipt.digest == alone.receipt.digest
    assert all_of_it <= played.stat().st_size < all_of_it * 1.25, "only the batch in flight was played twice"
    before = played.stat().st_size
    reprl.learn(open_shop, checkpoint=tmp_path / "tasks", **options)
    assert played.stat().st_size - before <= 2, "a finished run plays nothing"
    with pytest.raises(ReprlError, match="with shared_seed 3, got shared_seed 1"):
        reprl.learn(open_shop, checkpoint=tmp_path / "tasks", **{**options, "shared_seed": 3})


BEGUN_LATE = """
import os, subprocess, sys
words = "import sys, time; from reprl.execution.tasks import begin_process; begin_process(int(sys.argv[1])); "
words += "print('works', flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", words, str(os.getpid() + int(sys.argv[1]))], stdout=subprocess.PIPE)
print(child.stdout.readline().decode().strip(), child.pid, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(("other", "said"), [(0, "works"), (1, "")])
def test_a_process_ends_with_its_parent_though_it_was_given_no_task(other: int, said: str) -> None:
    """One whose parent is gone before it begins ends at once; so does one whose parent goes while it waits."""
    done = subprocess.run([sys.executable, "-c", BEGUN_LATE, str(other)], capture_output=True, text=True, check=True)
    *words, child = done.stdout.split()
    assert " ".join(words) == said
    wait_for(lambda: not alive(int(child)), 10.0)

"""Real processes: audits killed and gone on with; a Dask scheduler with three workers, one of whom is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reprl
from reprl.execution.tasks import cluster, count_workers
from tests import kills
from tests.loopback import PATH, ROOT, Cluster, wait_for
from tests.shop import Shop

PAIRS = 120
SHOP: dict[str, Any] = {
    "horizon": 2,
    "reward_range": Shop.REWARDS,
    "shared_seed": 1,
    "data_seed": 2,
    "max_samples": 4000,
}
CLIENT = """
import sys
from pathlib import Path
from reprl.execution.tasks import cluster
from tests.kills import Noting, audit
with cluster(sys.argv[1]):
    print(audit(Noting(sys.argv[2], 0.02), Path(sys.argv[3]), 60), end="")
"""


@pytest.mark.parametrize(("what", "in_flight"), [("audit", 2), ("continue", 12)])
def test_what_is_killed_goes_on_to_the_same_bytes(what: str, in_flight: int) -> None:
    found = kills.kill(6, what)
    assert found["same bytes"] == found["killed"] == 6
    assert found["killed midway"] >= 2, "the moments are spread over the work"
    assert found["made twice"] <= in_flight * found["killed"], "but for the task in flight nothing is done twice"
    assert found["tasks kept"] > 0


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("dask"))
    yield made
    made.end()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Dask and of sockets that a killed worker leaves
def test_a_cluster_gives_the_same_bytes_whoever_is_killed(dask: Cluster, tmp_path: Path) -> None:
    # Alone, first: then every kernel is in the cache that the workers share.
    learner = kills.Noting(str(tmp_path / "notes"), 0.005)
    audited = kills.audit(learner, None, PAIRS)
    learned = reprl.learn(Shop, **SHOP)
    Path(learner.notes).unlink()

    with cluster(dask.address):
        wait_for(lambda: count_workers(1) == 3)
        again = reprl.learn(Shop, **SHOP)
        assert again.policy == learned.policy
        assert (again.samples, again.episodes) == (learned.samples, learned.episodes)
        assert again.counts.to_bytes() == learned.counts.to_bytes()
        assert again.receipt.digest == learned.receipt.digest

        def strike(_: str, done: int, total: int) -> None:
            if done == 20:
                dask.processes[2].send_signal(signal.SIGKILL)

        found = reprl.audit(
            "gridworld-v0", learner, PAIRS, horizon=3, seed=11, checkpoint=tmp_path / "tasks", progress=strike
        )
        assert found.to_json() == audited
    twice = learner.calls - 2 * PAIRS
    print(f"a worker killed: {twice} of {2 * PAIRS} runs made twice")
    assert 0 <= twice <= PAIRS // 2, "only what the killed worker had done and not handed over"

    # The client is killed, and started again.
    notes, folder = tmp_path / "client-notes", tmp_path / "client"
    words = [sys.executable, "-c", CLIENT, dask.address, str(notes), str(folder)]
    path = {**os.environ, "PYTHONPATH": PATH}
    client = subprocess.Popen(words, cwd=ROOT, env=path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: len(list(folder.rglob("*.task"))) >= 10)
    client.kill()
    client.wait()
    kept, played = len(list(folder.rglob("*.task"))), notes.stat().st_size
    said = subprocess.run(words, cwd=ROOT, env=path, capture_output=True, text=True, timeout=300, check=True).stdout
    assert said == kills.audit(kills.Noting(str(tmp_path / "alone")), None, 60)
    print(f"client killed with {kept} of 60 pairs kept, {played} runs made; {notes.stat().st_size - 120} made twice")
    assert 10 <= kept < 60
    assert 0 <= notes.stat().st_size - 120 <= 120 - 2 * kept, "no pair that was kept is made again"

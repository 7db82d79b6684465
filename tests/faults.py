"""Faults put into runs on purpose: crashes at every step of writing, signals, full disks, killed processes.

``python -m tests.faults`` injects them all (some minutes) and prints a table; ``--share N`` every N-th, as CI does.
After every fault three things must hold: what is on the disk is the old run or the new one, whole; a run that was
committed is there; and the same command, run again, leaves the same bytes and nothing else.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

from reprl.artifacts.folder import load_run
from reprl.cli.app import main

SMALL = ["gridworld-v0", "--horizon", "2", "--env-option", "size=2", "--access", "generative", "--epsilon", "1"]
LEARN = ["learn", *SMALL, "--shared-seed", "1", "--data-seed", "2", "--json", "--force", "--out"]
OTHER = ["learn", *SMALL, "--shared-seed", "9", "--data-seed", "3", "--json", "--force", "--out"]
AUDIT = ["audit", *SMALL, "--seed", "1", "--pairs", "1", "--json", "--out"]
BOX = "faults_box.py"
BLACK_BOX = """
import gymnasium, time
class Coin(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)
    reward_range = (0.0, 1.0)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}
    def step(self, action):
        time.sleep(0.0005)
        return int(self.np_random.integers(2)), float(self.np_random.random() < 0.3 + 0.4 * action), False, False, {}
"""
PLAY = ["learn", f"{BOX}:Coin", "--horizon", "3", "--max-samples", "9000", "--shared-seed", "1", "--data-seed", "2"]
PAIRS = ["audit", "gridworld-v0", "--horizon", "3", "--seed", "1", "--pairs", "8"]
WATCHED = ("open", "fsync", "rename", "replace", "mkdir", "unlink", "rmdir", "chmod", "fchmod")
ENDINGS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "int": signal.SIGINT}
CODES = {"kill": -signal.SIGKILL, "term": 128 + signal.SIGTERM, "int": 130}
FINE = (0, 1)


class Point(NamedTuple):
    """Where a fault strikes: before or after the k-th operation on files."""

    number: int
    after: bool


class Bench:
    """Counts of what was injected and what broke."""

    def __init__(self, share: int) -> None:
        self._share, self._draw = share, random.Random(6)
        self.injected: Counter[str] = Counter()
        self.broken: list[str] = []

    def due(self) -> bool:
        """Whether the next fault is one of this share."""
        if (told := sum(self.injected.values())) and told % 25 == 0:
            print(f"{told} faults, {len(self.broken)} broken", file=sys.stderr)
        return self._draw.random() * self._share < 1.0

    def check(self, kind: str, where: str, sound: bool, what: str) -> None:
        """Note one thing that must hold."""
        if not sound:
            self.broken.append(f"{kind}, {where}: {what}")


@contextmanager
def watching(strike: Callable[[int, bool, str], None]) -> Iterator[None]:
    """Have every operation on files tell that it comes (False) and that it was done (True)."""
    number = 0
    kept = {name: getattr(os, name) for name in WATCHED}

    def wrap(name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal number
            here, number = number, number + 1
            strike(here, False, f"{name} {args[-1] if name in ('rename', 'replace') else args[0]}")
            result = kept[name](*args, **options)
            strike(here, True, name)
            return result

        return call

    for name in WATCHED:
        setattr(os, name, wrap(name))
    try:
        yield
    finally:
        for name in WATCHED:
            setattr(os, name, kept[name])


def in_child(work: Callable[[], int]) -> subprocess.CompletedProcess[bytes]:
    """Do something in a fork of this process, quietly, and return how it ended."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            os.dup2(null, 2)
            code = work()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return subprocess.CompletedProcess([], os.waitstatus_to_exitcode(status))


def contents(place: Path) -> Any:
    """What a reader finds: the run or document, without the seconds that it took; None where nothing is."""
    if place.suffix:
        return json.loads(place.read_text()) if place.exists() else None
    if not place.exists() or not any(name.suffix or name.name == ".committed" for name in place.iterdir()):
        return None
    run = load_run(place)
    receipt = run.receipt.to_dict()
    del receipt["timings"]
    return [run.recipe.to_json(), receipt, run.policy.to_json()]


def raw(place: Path) -> Any:
    """The very bytes of all files, but for the line with the seconds."""
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    lines = {str(file): file.read_bytes().splitlines() for file in files}
    return {name: [line for line in text if b'"seconds"' not in line] for name, text in lines.items()}


class Scene(NamedTuple):
    """A command that writes to a place, and what lies there before."""

    name: str
    words: list[str]
    before: list[str] | None
    place: str

    def set_up(self, folder: Path) -> tuple[Path, Any]:
        """Put the old contents there."""
        place = folder / self.place
        if self.before is not None:
            assert in_child(lambda: main([*(self.before or ()), str(place)])).returncode in FINE
        return place, contents(place)


SCENES = (
    Scene("a run into a new folder", LEARN, None, "new/run"),
    Scene("a run in the place of another", LEARN, OTHER, "run"),
    Scene("an audit to a new file", AUDIT, None, "audit.json"),
    Scene("an audit in the place of another", AUDIT, [*AUDIT[:-2], "--rho", "0.2", "--json", "--out"], "audit.json"),
)


def crash(bench: Bench, scene: Scene, goal: Any, goal_bytes: Any, ops: list[str], kind: str, point: Point) -> None:
    """End a run at one operation on files, in one way, and look at what is left."""
    commit = max(number for number, name in enumerate(ops) if name.startswith(("rename", "replace")) and _final(name))
    with tempfile.TemporaryDirectory(prefix="reprl-faults-") as name:
        place, old = scene.set_up(Path(name))

        def strike(number: int, after: bool, _: str) -> None:
            if (number, after) == point:
                if kind in ENDINGS:
                    os.kill(os.getpid(), ENDINGS[kind])
                elif not after:
                    raise OSError(getattr(errno, kind), os.strerror(getattr(errno, kind)))

        def work() -> int:
            with watching(strike):
                return main([*scene.words, str(place)])

        code = in_child(work).returncode
        where = f"{scene.name}, {'after' if point.after else 'before'} {point.number} ({ops[point.number]})"
        bench.injected[kind] += 1
        _judge(bench, kind, where, place, old, goal, point > Point(commit, False) and kind in ENDINGS, code)
        again = in_child(lambda: main([*scene.words, str(place)])).returncode
        bench.check(kind, where, again in FINE and _bytes_of(place) == goal_bytes, f"rerun gave {again} or other bytes")


def _final(name: str) -> bool:
    return name.endswith((".committed", "audit.json"))


def _judge(bench: Bench, kind: str, where: str, place: Path, old: Any, goal: Any, committed: bool, code: int) -> None:
    try:
        found = contents(place)
    except Exception as error:
        bench.check(kind, where, False, f"corrupt: {error}")
        return
    bench.check(kind, where, found in (old, goal), "neither the old nor the new")
    if committed or code in FINE:
        bench.check(kind, where, found == goal, f"lost after the commit (exit code {code})")
    bench.check(kind, where, code in (*FINE, 2, 3, *CODES.values()), f"exit code {code}")


def _bytes_of(place: Path) -> Any:
    """All bytes, by names that do not depend on the place; leftovers beside a file count too."""
    beside = [file.name for file in place.parent.iterdir()]
    return beside, {name.removeprefix(str(place)): text for name, text in raw(place).items()}


def crash_everywhere(bench: Bench) -> None:
    """Every operation, before and after, by every signal; and each of them refused for want of space."""
    for scene in SCENES:
        with tempfile.TemporaryDirectory(prefix="reprl-faults-") as name:
            place, _ = scene.set_up(Path(name))
            log = Path(name) / "log"

            def work(scene: Scene = scene, place: Path = place, log: Path = log) -> int:
                names: list[str] = []
                with watching(lambda _, done, name: None if done else names.append(name)):
                    code = main([*scene.words, str(place)])
                log.write_text("\n".join(names))
                return code

            assert in_child(work).returncode in FINE
            ops = log.read_text().splitlines()
            log.unlink()
            goal, goal_bytes = contents(place), _bytes_of(place)
        for number in range(len(ops)):
            for after in (False, True):
                for kind in (*ENDINGS, *(() if after else ("ENOSPC", "EIO"))):
                    if bench.due():
                        crash(bench, scene, goal, goal_bytes, ops, kind, Point(number, after))


def fill_the_disk(bench: Bench) -> None:
    """Real limits: files that may not grow, and a small disk where mounting is permitted."""
    scene = SCENES[1]
    for limit in (0, 1, 100, 193, 194, 800, 846, 1500, 1800):
        if not bench.due():
            continue
        with tempfile.TemporaryDirectory(prefix="reprl-faults-") as name:
            place, old = scene.set_up(Path(name))
            kept = {*place.iterdir()}

            def work(place: Path = place, limit: int = limit) -> int:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
                return main([*scene.words, str(place)])

            code = in_child(work).returncode
            bench.injected["file size limit"] += 1
            _judge(bench, "file size limit", str(limit), place, old, None, False, code)
            bench.check("file size limit", str(limit), code == 2 and contents(place) == old, f"exit code {code}")
            bench.check("file size limit", str(limit), {*place.iterdir()} == kept, "leftovers")
    for ballast in range(0, 32, 4):
        if bench.due():
            _small_disk(bench, scene, ballast)


def _small_disk(bench: Bench, scene: Scene, ballast: int) -> None:
    with tempfile.TemporaryDirectory(prefix="reprl-faults-") as name:
        disk = Path(name)
        mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", name]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
            return
        try:
            place, old = scene.set_up(disk)
            kept = {*place.iterdir()}
            with suppress(OSError):
                (disk / "ballast").write_bytes(b"x" * 1024 * ballast)
            code = in_child(lambda: main([*scene.words, str(place)])).returncode
            bench.injected["full disk"] += 1
            found = contents(place)
            bench.check("full disk", f"{ballast} k", (found == old) == (code == 2), f"exit code {code}")
            bench.check("full disk", f"{ballast} k", {*place.iterdir()} == kept, "leftovers")
        finally:
            subprocess.run(["umount", name], check=True)


def strike_in_time(bench: Bench, times: int) -> None:
    """Signals at moments that nobody chose, also while nothing is written."""
    draw = random.Random(7)
    scene = SCENES[1]
    with tempfile.TemporaryDirectory(prefix="reprl-faults-") as name:
        place, old = scene.set_up(Path(name))
        began = time.monotonic()
        in_child(lambda: main([*scene.words, str(place)]))
        usual, goal = time.monotonic() - began, contents(place)
    for _ in range(times):
        kind, delay = draw.choice(sorted(ENDINGS)), draw.uniform(0.0, 1.2 * usual)
        if not bench.due():
            continue
        with tempfile.TemporaryDirectory(prefix="reprl-faults-") as name:
            place, old = scene.set_up(Path(name))

            def work(place: Path = place, kind: str = kind, delay: float = delay) -> int:
                if os.fork() == 0:
                    time.sleep(delay)
                    os.kill(os.getppid(), ENDINGS[kind])
                    os._exit(0)
                return main([*scene.words, str(place)])

            code = in_child(work).returncode
            bench.injected[f"{kind} at a random time"] += 1
            _judge(bench, kind, f"after {delay:.3f} s", place, old, goal, False, code)


def children(parent: int) -> list[int]:
    """The processes that a process has started and that still run."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def alive(process: int) -> bool:
    """Whether a process still computes; one that nobody has buried does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def workers_of(parent: int) -> list[int]:
    """Those that play or run for a command: joblib's tracker of resources is none of them."""
    found = []
    for child in children(parent):
        try:
            line = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"popen_loky" in line:
            found.append(child)
    return found


def disturb_workers(bench: Bench, times: int) -> None:
    """Kill one of two processes, and then the one that started them."""
    draw = random.Random(8)
    temporary = Path(tempfile.gettempdir())
    for words in (PLAY, PAIRS):
        numbers = [number for number in range(times) if bench.due()]
        if not numbers:
            continue
        with tempfile.TemporaryDirectory(prefix="reprl-faults-") as name:
            Path(name, BOX).write_text(BLACK_BOX)
            goal = _command(words, name).communicate()[0]
            for number in numbers:
                whole = number % 2 == 1
                before = set(temporary.iterdir())
                child = _command(words, name)
                who = _wait_for_workers(child)
                time.sleep(draw.uniform(0.0, 2.0))
                signals = draw.choice([signal.SIGKILL, signal.SIGTERM])
                if whole:
                    bench.injected["parent killed"] += 1
                    child.send_signal(signals)
                    gone = _soon(lambda who=who: not any(map(alive, who)), 10.0)  # type: ignore[misc]
                    bench.check("parent killed", words[0], gone, "its processes live on")
                    child.communicate()  # which ends when the last of them does
                    left = {path for path in set(temporary.iterdir()) - before if "reprl" in path.name}
                    bench.check("parent killed", words[0], not left, f"left {left}")
                else:
                    bench.injected["worker killed"] += 1
                    for process in who[:1]:
                        os.kill(process, signals)
                    said = child.communicate()[0]
                    bench.check(
                        "worker killed", words[0], _same(said, goal), f"another answer, code {child.returncode}"
                    )


def _same(one: bytes, two: bytes) -> bool:
    documents = [json.loads(text) for text in (one, two)]
    for document in documents:
        document.get("receipt", {}).pop("timings", None)
    return bool(documents[0] == documents[1]) and "error" not in documents[0]


def _command(words: list[str], folder: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "reprl", *words, "--workers", "2", "--json"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)


def _wait_for_workers(child: subprocess.Popen[bytes]) -> list[int]:
    _soon(lambda: child.poll() is not None or len(workers_of(child.pid)) == 2, 120.0)
    return workers_of(child.pid)


def _soon(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def inject(share: int = 1, *, timed: int = 60, workers: int = 24) -> Bench:
    """Inject every share-th fault."""
    bench = Bench(share)
    with tempfile.TemporaryDirectory(prefix="reprl-faults-") as name, redirect_stdout(io.StringIO()):
        main([*LEARN, f"{name}/run"])  # so that every fork of this process has its kernels already
        main([*AUDIT, f"{name}/audit.json"])
    crash_everywhere(bench)
    fill_the_disk(bench)
    strike_in_time(bench, timed)
    disturb_workers(bench, workers)
    return bench


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--share", type=int, default=1, help="inject every N-th fault only")
    found = inject(asked.parse_args().share)
    for kind, number in sorted(found.injected.items()):
        print(f"{kind:24} {number:5}")
    print(f"{'all':24} {sum(found.injected.values()):5}, {len(found.broken)} broken")
    for line in found.broken:
        print(line)
    sys.exit(1 if found.broken else 0)

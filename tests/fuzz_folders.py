"""Damaged and forged run folders against every command that a reader may give: verify, report, replicate.

Most forgeries agree with themselves: a receipt that names the forged recipe, policy or data and is sealed anew, so that
they get past the first checks. A folder travels as one text, which a failure can be repeated from.
"""

from __future__ import annotations

import base64
import copy
import functools
import io
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import reprl
from reprl.artifacts.folder import POLICY, RECEIPT, RECIPE
from reprl.cli import replicate, report, verify
from reprl.cli.answer import Answer, print_answer
from reprl.cli.options import as_typer
from tests.clinic_log import HORIZON, make_log
from tests.forgery import damage, forge, reseal, to_bytes
from tests.shop import Shop

EPISODES: Any = {"access": "episodic", "rule": "paper", "constants": "scaled", "epsilon": 1.0}

VERIFY, REPORT, REPLICATE = as_typer(verify.verify), as_typer(report.report), as_typer(replicate.replicate)
NAMES = (RECIPE, RECEIPT, POLICY)
SAMPLES = 3000
"""That a second team may draw: what is asked here is what it reads."""
_LINK, _FOLDER, _PIPE = "link", "folder", "pipe"


@functools.cache
def sample_folders() -> tuple[dict[str, bytes], ...]:
    """Good run folders: of both rules, both kinds of access, a black box and a log."""
    grid, swim = reprl.make("gridworld-v0", horizon=3, size=2), reprl.make("river-swim-v0", horizon=4, n_states=3)
    runs = (
        reprl.learn(grid, shared_seed=7, data_seed=1, access="generative", epsilon=0.5),
        reprl.learn(swim, shared_seed=7, data_seed=1, epsilon=0.5, preference=(1, 0), max_samples=4000),
        reprl.learn(grid, shared_seed=7, data_seed=1, rule="paper"),
        reprl.learn(
            swim,
            shared_seed=7,
            data_seed=1,
            rule="paper",
            access="episodic",
            constants="scaled",
            scale=0.02,
            epsilon=1.0,
        ),
        reprl.learn(Shop(), horizon=2, reward_range=Shop.REWARDS, shared_seed=7, data_seed=1, max_samples=500),
        reprl.learn_log(make_log(400, seed=1), horizon=HORIZON, shared_seed=7),
    )
    return tuple(map(_bytes_of, runs))


def _bytes_of(result: reprl.LearnResult) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        folder = result.save(Path(place) / "run")
        return {name: (folder / name).read_bytes() for name in NAMES if (folder / name).exists()}


def make_folder(rng: random.Random) -> bytes:
    """Make one bad folder, or now and then a good one."""
    files = dict(rng.choice(sample_folders()))
    way = rng.choice((_damaged, _damaged, _forged, _forged, _consistent, _consistent, _consistent, _mixed, _misplaced))
    return pack(way(rng, files))


def pack(content: dict[str, Any]) -> bytes:
    """Write a folder as one text: bytes of files, or what lies in the place of one."""
    coded = {n: base64.b64encode(x).decode() if isinstance(x, bytes) else [x] for n, x in content.items()}
    return json.dumps(coded).encode()


def _damaged(rng: random.Random, files: dict[str, Any]) -> dict[str, Any]:
    name = rng.choice(list(files))
    return {**files, name: damage(rng, files[name])}


def _forged(rng: random.Random, files: dict[str, Any]) -> dict[str, Any]:
    """One document says something else, and no other knows of it."""
    name = rng.choice((RECIPE, RECEIPT, POLICY))
    document = forge(rng, json.loads(files[name]))
    if name == RECEIPT:
        reseal(document)
    return {**files, name: to_bytes(document)}


def _consistent(rng: random.Random, files: dict[str, Any]) -> dict[str, Any]:
    """A document says something else, and the receipt with it."""
    receipt, name = json.loads(files[RECEIPT]), rng.choice(list(files))
    if name == RECEIPT:
        receipt, changed = forge(rng, receipt), b""
    else:
        changed = to_bytes(forge(rng, json.loads(files[name])))
        kind, field = (reprl.Recipe, "recipe") if name == RECIPE else (reprl.Policy, "fingerprint")
        try:
            told = kind.from_json(changed)
            receipt[field] = told.digest if isinstance(told, reprl.Recipe) else told.fingerprint
        except reprl.ReprlError:
            receipt = copy.deepcopy(receipt)
    reseal(receipt)
    return {**files, **({name: changed} if changed else {}), RECEIPT: to_bytes(receipt)}


def _mixed(rng: random.Random, files: dict[str, Any]) -> dict[str, Any]:
    """Files of two runs, one of them half moved in."""
    other = rng.choice(sample_folders())
    taken = rng.sample(sorted(other), rng.randrange(1, len(other) + 1))
    return {**files, **{(f".committed/{name}" if rng.random() < 0.5 else name): other[name] for name in taken}}


def _misplaced(rng: random.Random, files: dict[str, Any]) -> dict[str, Any]:
    """A file is missing or empty, or something else lies in its place."""
    name = rng.choice([*files, ".committed"])
    what = rng.choice((None, b"", b"\n", _LINK, _FOLDER, _PIPE))
    return {**files, name: what} if what is not None else {n: x for n, x in files.items() if n != name}


def read_folder(data: bytes) -> None:
    """Do with a folder all that its reader may do; every command ends in an answer or in a ReprlError of one line.

    If it is no run folder at all, that error is raised once all commands had their turn.
    """
    good = _laid_out(0)
    with _laid(data) as folder, mock.patch("os.fsync"):  # nothing here outlives a crash
        page, receipt = folder / "page.html", folder / RECEIPT
        refused = [
            _refused(lambda: reprl.load_run(folder)),
            _refused(lambda: VERIFY(a=folder, b=good)),
            _refused(lambda: VERIFY(a=folder / POLICY, b=receipt)),
            _refused(lambda: REPORT(source=folder, out=page)),
            _refused(lambda: REPLICATE(recipe=folder, data_seed=2, max_samples=SAMPLES, workers=1)),
        ]
    if refused[0] is not None:
        raise refused[0]


def _refused(command: Callable[[], Any]) -> reprl.ReprlError | None:
    """Give a command and print its answer, for people and as JSON; return the error that it ended in, if one."""
    try:
        answer = command()
        if isinstance(answer, Answer):
            for as_json in (False, True):
                with redirect_stdout(io.StringIO()):
                    print_answer(answer, as_json)
    except reprl.ReprlError as error:
        text = str(error)
        assert text, "an error must say something"
        assert len(text.splitlines()) == 1, f"an error must be one line, got {text!r}"
        return error
    return None


@functools.cache
def _place() -> Path:
    return Path(tempfile.mkdtemp(prefix="reprl-fuzz-"))


@functools.cache
def _laid_out(number: int) -> Path:
    """A good folder, to be compared with."""
    folder = _place() / f"good {number}"
    folder.mkdir()
    for name, content in sample_folders()[number].items():
        (folder / name).write_bytes(content)
    return folder


@contextmanager
def _laid(data: bytes) -> Iterator[Path]:
    """Lay a folder out, in the place of the last one."""
    folder = _place() / "run"
    folder.mkdir(exist_ok=True)
    try:
        for name, content in json.loads(data).items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            if isinstance(content, str):
                path.write_bytes(base64.b64decode(content))
            elif content == [_LINK]:
                path.symlink_to("/dev/zero" if len(name) % 2 else folder.parent)
            elif content == [_FOLDER]:
                path.mkdir()
            else:
                os.mkfifo(path)
        yield folder
    finally:
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()

"""Nobody is let in: outputs, folders, recipes and texts from strangers (docs/security.md)."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from rich.console import Console

import reprl
from reprl.artifacts.folder import StoredRun, load_run, open_folder
from reprl.artifacts.recipe import Recipe
from reprl.auditing.record import AuditReport
from reprl.cli.app import main
from reprl.errors import ReprlError
from reprl.execution.terminal import Visible, visible
from reprl.storage.files import open_output, read_bounded, try_lock, write_atomic
from tests import report_samples

EVIL = "reprl_evil_marker"
ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"


@pytest.fixture(scope="module")
def result() -> reprl.LearnResult:
    mdp = reprl.make("gridworld-v0", 2, size=2)
    return reprl.learn(mdp, epsilon=1.0, access="generative", shared_seed=1, data_seed=2)


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that leaves a mark when it is imported."""
    mark = tmp_path / "owned"
    (tmp_path / f"{EVIL}.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield mark
    sys.modules.pop(EVIL, None)


# Outputs.


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.with_name("aim").write_text("precious")
    path.symlink_to(path.with_name("aim"))


def make_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("aim"))


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket may not be long
        listener.bind(path.name)
        os.chdir(here)


def make_device(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("devices are made by root")
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))


@pytest.mark.parametrize("make", [make_pipe, make_link, make_dangling_link, make_socket, make_device, Path.mkdir])
def test_only_regular_files_are_replaced(
    tmp_path: Path,
    make: Callable[[Path], None],
    result: reprl.LearnResult,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "out.json"
    make(target)
    before = os.lstat(target)
    for save in (result.policy.save, result.recipe.save, result.receipt.save, result.counts.save):
        with pytest.raises(ReprlError, match=r"^cannot write .*out\.json: (it must be a regular file|Is a directory)"):
            save(target)
    monkeypatch.setattr("reprl.auditing.audit.audit", lambda *_, **__: pytest.fail("work began"))
    monkeypatch.setattr("reprl.report.write._read", lambda _: pytest.fail("work began"))
    for words in (["audit", "gridworld-v0"], ["report", str(tmp_path)]):
        assert main([*words, "--out", str(target)]) == 2
        assert capsys.readouterr().err.startswith("reprl: cannot write")
    after = os.lstat(target)
    assert (after.st_mode, after.st_ino, after.st_mtime) == (before.st_mode, before.st_ino, before.st_mtime)
    assert sorted(os.listdir(tmp_path)) == (["aim", "out.json"] if make is make_link else ["out.json"])
    if make is make_link:
        assert (tmp_path / "aim").read_text() == "precious"


def test_devices_of_the_system_stay_what_they_are(result: reprl.LearnResult) -> None:
    with pytest.raises(ReprlError, match=r"^cannot write /dev/null: it must be a regular file .* got a device$"):
        result.policy.save("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_modes_are_kept(tmp_path: Path, mode: int, result: reprl.LearnResult) -> None:
    target = write_atomic(tmp_path / "x", b"old")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask
    target.chmod(mode)
    write_atomic(target, b"new")
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"new", mode)
    result.save(tmp_path / "run")
    (tmp_path / "run" / "receipt.json").chmod(mode)
    result.save(tmp_path / "run")
    assert stat.S_IMODE((tmp_path / "run" / "receipt.json").stat().st_mode) == mode


def test_what_dead_writers_left_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    dead, users = tmp_path / f".x.{'0' * 16}.part", [tmp_path / ".x.mine.part", tmp_path / f".y.{'0' * 16}.part"]
    for path in (dead, *users):
        path.write_text("half")
    with open_output(tmp_path / "x") as write, open_output(tmp_path / "x"):
        parts = set(tmp_path.iterdir()) - set(users)
        assert len(parts) == 2, "two who live do not clear each other away"
        assert dead not in parts
        write(b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([*users, tmp_path / "x"])
    with open(tmp_path / "x", "rb") as one, open(tmp_path / "x", "rb") as two:
        assert [try_lock(one.fileno()), try_lock(two.fileno())] == [True, False]


def test_a_name_as_long_as_names_may_be_is_written(tmp_path: Path) -> None:
    target = tmp_path / ("é" * 127)
    assert write_atomic(target, b"x").read_bytes() == b"x"


def test_reading_waits_for_no_pipe_and_reads_no_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for source in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(ReprlError, match="no such file"):
            read_bounded(source)
    write_atomic(tmp_path / "x", b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    assert read_bounded(tmp_path / "link", 5) == b"12345"
    with pytest.raises(ReprlError, match="at most 4 bytes is expected, got 5"):
        read_bounded(tmp_path / "x", 4)


# Run folders.


def test_a_committed_folder_that_is_a_link_is_refused(tmp_path: Path, result: reprl.LearnResult) -> None:
    elsewhere = tmp_path / "elsewhere"
    result.save(elsewhere)
    folder = tmp_path / "run"
    result.save(folder)
    (folder / ".committed").symlink_to(elsewhere)
    for use in (load_run, result.save):
        with pytest.raises(ReprlError, match=r"\.committed must be a folder that reprl made, got a link"):
            use(folder)
    assert len(list(elsewhere.iterdir())) == 3, "nothing was moved out of there"


@pytest.mark.parametrize("name", ["recipe.json", "policy.json"])
def test_a_link_in_the_place_of_a_run_s_file_is_refused_before_work(
    tmp_path: Path, result: reprl.LearnResult, name: str
) -> None:
    (tmp_path / "aim").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "aim")
    with (
        pytest.raises(ReprlError, match="it must be a regular file or not there yet, got a link"),
        open_folder(tmp_path / "run", result.recipe, force=True),
    ):
        pytest.fail("work began")
    assert (tmp_path / "aim").read_text() == "precious"
    assert os.listdir(tmp_path / "run") == [name]


def test_folders_of_the_user_stay(tmp_path: Path, result: reprl.LearnResult) -> None:
    theirs = [".staging-mine", ".reprl-staging-mine", ".reprl-staging-abcdefgh", ".reprl-staging-linklink"]
    for name in theirs[:3]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("precious")
    (tmp_path / theirs[3]).symlink_to(tmp_path / theirs[0])
    ours = tmp_path / ".reprl-staging-12345678"
    ours.mkdir()
    (ours / "recipe.json").write_text("half")
    result.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == sorted(theirs)
    assert all((tmp_path / name / "notes.txt").read_text() == "precious" for name in theirs)


# Recipes from strangers.


def hostile(folder: Path, result: reprl.LearnResult, id: str) -> Path:
    """A run folder that is in order, but for the id of its environment."""
    recipe = replace(result.recipe, environment=result.recipe.environment._replace(id=id, options={}))
    run = StoredRun(recipe, replace(result.receipt, recipe=recipe.digest), result.policy)
    folder.mkdir()
    texts = (run.recipe.to_json(), run.receipt.to_json(), run.policy.to_json())
    for name, text in zip(("recipe", "receipt", "policy"), texts, strict=True):
        (folder / f"{name}.json").write_text(text)
    return folder


LOOKING = """
import sys
from reprl.cli.app import main
from reprl import load_run, Recipe
folder = sys.argv[1]
load_run(folder)
Recipe.load(folder + "/recipe.json")
assert main(["verify", folder, folder]) == 0
assert main(["report", folder, "-o", folder + ".html"]) == 0
print([name for name in sys.modules if name.partition(".")[0] in ("gymnasium", "antigravity", "EVIL")])
"""


def test_to_look_at_a_stranger_s_run_imports_nothing(tmp_path: Path, evil: Path, result: reprl.LearnResult) -> None:
    folder = hostile(tmp_path / "run", result, f"gym:{EVIL}:Foo-v0")
    assert load_run(folder).recipe.environment.id == f"gym:{EVIL}:Foo-v0"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-c", LOOKING.replace("EVIL", EVIL), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    assert "is opened only where you name it (--env)" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
    assert not evil.exists()


def test_to_learn_imports_what_the_user_allows(
    tmp_path: Path, evil: Path, result: reprl.LearnResult, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = hostile(tmp_path / "run", result, f"gym:{EVIL}:Foo-v0")
    recipe = Recipe.load(folder / "recipe.json")
    wanted = rf"recipe environment 'gym:{EVIL}:Foo-v0' would import '{EVIL}' and so run its code: .*--allow {EVIL}\)$"
    for use in (recipe.make, recipe.learn, lambda: recipe.make(allow=["reprl_evil", f"{EVIL}.sub", "gymnasium"])):
        with pytest.raises(ReprlError, match=f"^{wanted}"):
            use()
    assert main(["replicate", str(folder)]) == 2
    assert re.search(wanted, capsys.readouterr().err.strip())
    with pytest.raises(ReprlError, match=r"^allow must be a list of names of modules, got 'evil'$"):
        recipe.make(allow="evil")
    assert not evil.exists()
    # The control: who is allowed comes in.
    assert main(["replicate", str(folder), "--allow", EVIL]) == 2
    assert "gymnasium must be able to make" in capsys.readouterr().err
    assert evil.exists()


def test_registered_ids_may_lead_to_imports_too(tmp_path: Path, evil: Path, result: reprl.LearnResult) -> None:
    id = "reprl-tests/Evil-v0"
    gymnasium.register(id, f"{EVIL}:Foo")
    try:
        for name in (id, id.removesuffix("-v0")):
            recipe = replace(result.recipe, environment=result.recipe.environment._replace(id=f"gym:{name}"))
            with pytest.raises(ReprlError, match=f"would import '{EVIL}'"):
                recipe.make()
    finally:
        del gymnasium.registry[id]
    assert not evil.exists()


def test_gymnasium_s_own_and_what_is_here_need_no_permission() -> None:
    own = reprl.learn("gym:FrozenLake-v1", horizon=2, epsilon=1.0, access="generative", shared_seed=1, data_seed=2)
    assert own.recipe.make().n_states == 16
    id = "reprl-tests/Here-v0"
    gymnasium.register(id, f"{__name__}:NOTHING")
    try:
        with pytest.raises(ReprlError, match="gymnasium must be able to make"):
            replace(own.recipe, environment=own.recipe.environment._replace(id=f"gym:{id}", options={})).make()
    finally:
        del gymnasium.registry[id]


# Texts from strangers.


def is_tame(text: str) -> bool:
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)


def test_control_codes_are_shown() -> None:
    assert visible("plain, ε ≤ 0.3 →\n") == "plain, ε ≤ 0.3 →\n"
    assert visible(ESCAPE) == r"\x1b]0;owned\x07\x1b[2J\u202e\x9b31m"
    assert visible("\r\u2028\ud800") == r"\r\u2028\ud800"
    assert visible("م\u200cی 👩\u200d⚕") == "م\u200cی 👩\u200d⚕", "joiners belong to some scripts"
    assert is_tame("fine →")
    assert not is_tame(ESCAPE)


HOSTILE = f"""
import numpy, reprl
bad = {ESCAPE!r}
labels = reprl.Labels(bad, bad, states=(bad, "b" + bad), actions=(bad, "[bold]" + bad), grid=None)
mdp = reprl.TabularMDP(numpy.full((2, 2, 2), 0.5), [[0.1, 0.9], [0.9, 0.1]], horizon=2, labels=labels)
def lazy(model, shared_key):
    return numpy.random.default_rng(model.data_seed).integers(2, size=(2, 2))
"""


@pytest.mark.parametrize(
    "words",
    [
        ["learn", "{file}:mdp", "--access", "generative"],
        ["twice", "{file}:mdp", "--access", "generative"],
        ["audit", "{file}:mdp", "--learner", "{file}:lazy", "--pairs", "5"],
        ["learn", "nonsense" + ESCAPE],
        ["verify", "absent" + ESCAPE, "x"],
        ["nonsense" + ESCAPE],
    ],
)
def test_no_command_sends_a_stranger_s_codes_to_the_terminal(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "world.py"
    file.write_text(HOSTILE)
    main([word.replace("{file}", str(file)) for word in words])
    shown = capsys.readouterr()
    assert is_tame(shown.out)
    assert is_tame(shown.err)
    assert "x1b" in shown.out + shown.err


def test_an_audit_from_a_stranger_shows_its_codes() -> None:
    document: dict[str, Any] = report_samples.audit_document(reprl.make("gridworld-v0", 6, size=4))
    document["environment"]["labels"]["name"] = f"[link=x]{ESCAPE}"
    document["learner"] = ESCAPE
    report = AuditReport.from_json(json.dumps(document))
    assert is_tame(repr(report))
    console = Console(force_terminal=True, color_system="truecolor", width=200)
    with console.capture() as capture:
        report.show(console)
        console.print(Visible("plain"))
    shown = re.sub("\x1b\\[[0-9;]*m", "", capture.get())  # colours are ours
    assert is_tame(shown)
    assert r"\x1b]0;owned" in shown
    assert "[link=x]" in shown

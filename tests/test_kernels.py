"""The cache of compiled kernels: processes share it, and what is filed under a wrong name is not run."""

from __future__ import annotations

import ast
import gc
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

import reprl
from reprl import kernels
from reprl.mdp import draws

SOURCE = Path(reprl.__file__).parent

KERNELS = """
from {home} import njit
@njit(cache=True)
def double(x):
    return x + x
"""
CALLS = """
import sys
sys.path.insert(0, {folder!r})
from kernels_to_try import double
for word in sys.argv[1:]:
    x = {{"int": 3, "float": 1.25, "complex": 2j, "bool": True}}[word]
    try:
        print(repr(double(x)))
    except Exception as error:
        print(type(error).__name__)
print(sum(double.stats.cache_hits.values()))
"""
OTHER_HASH = """
import reprl.kernels
answers = ["{first}"]
def hash_sources(module):
    return answers.pop() if answers else "{later}"
hash_sources.cache_clear = lambda: None
reprl.kernels.hash_sources = hash_sources
"""


def start(
    folder: Path, *words: str, home: str = "reprl.kernels", before: str = "", **environment: str
) -> subprocess.Popen[str]:
    file = folder / "kernels_to_try.py"
    if not file.exists():
        file.write_text(KERNELS.format(home=home))
    script = before + CALLS.format(folder=str(folder))
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
    command = [sys.executable, "-c", script, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def call(folder: Path, *words: str, home: str = "reprl.kernels", before: str = "") -> list[str]:
    return start(folder, *words, home=home, before=before).communicate(timeout=120)[0].split()


def swap(folder: Path) -> None:
    """Put the codes of two signatures in each other's place, as two processes can that save at once."""
    first, second = sorted((folder / "cache").rglob("*.nbc"))
    between = first.with_suffix(".swapped")
    first.rename(between)
    second.rename(first)
    between.rename(second)


def test_what_is_compiled_is_kept(tmp_path: Path) -> None:
    assert call(tmp_path, "int", "float") == ["6", "2.5", "0"]
    assert call(tmp_path, "int", "float") == ["6", "2.5", "2"]


def test_code_under_a_wrong_name_is_not_run_and_is_replaced(tmp_path: Path) -> None:
    call(tmp_path, "int", "float")
    swap(tmp_path)
    assert call(tmp_path, "int", "float") == ["6", "2.5", "0"]
    assert call(tmp_path, "int", "float") == ["6", "2.5", "2"]


def flip(file: Path, bit: int) -> None:
    data = bytearray(file.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    file.write_bytes(data)


def test_a_flipped_bit_is_noticed_and_the_code_replaced(tmp_path: Path) -> None:
    call(tmp_path, "int", "float")
    files = sorted((tmp_path / "cache").rglob("*.nbc"))
    whole = [file.read_bytes() for file in files]
    for number, file in enumerate(files):
        flip(file, len(whole[number]) * (3 + 2 * number))
    assert call(tmp_path, "int", "float") == ["6", "2.5", "0"]
    assert call(tmp_path, "int", "float") == ["6", "2.5", "2"]
    draw = random.Random(5)
    for file, good in zip(files, map(Path.read_bytes, files), strict=True):
        assert kernels._read_entry(file)
        for _ in range(500):
            flip(file, draw.randrange(8 * len(good)))
            with pytest.raises(ValueError, match="damaged"):
                kernels._read_entry(file)
            file.write_bytes(good)


def test_what_cannot_be_read_is_compiled_again(tmp_path: Path) -> None:
    words, answers = ("int", "float", "complex", "bool"), ["6", "2.5", "4j", "2"]
    call(tmp_path, *words)
    empty, cut, pickled, folder = (tmp_path / "cache").rglob("*.nbc")
    empty.write_bytes(b"")
    cut.write_bytes(cut.read_bytes()[:-1])
    pickled.write_bytes(pickled.read_bytes()[len(kernels._MAGIC) + 32 :])
    folder.unlink()
    folder.mkdir()
    assert call(tmp_path, *words) == [*answers, "0"]
    assert call(tmp_path, *words) == [*answers, "3"]


def say(folder: Path, *words: str, before: str = "", **environment: str) -> tuple[list[str], str]:
    """As ``call``; also what was said beside it."""
    child = start(folder, *words, before=before, **environment)
    out, said = child.communicate(timeout=120)
    return out.split(), said


def test_without_a_cache_kernels_are_compiled_in_memory_and_it_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = str(tmp_path / "file" / "below")
    out, said = say(tmp_path, "int", "float", NUMBA_CACHE_DIR=nowhere)
    assert out == ["6", "2.5", "0"]
    assert said.count("compiled code is not kept") == 1
    assert "NUMBA_CACHE_DIR may name one" in said


def test_on_a_full_disk_nothing_is_lost_but_time(tmp_path: Path) -> None:
    full = "import reprl.kernels\ndef full(*_):\n    raise OSError(28, 'No space left on device')\n"
    out, said = say(tmp_path, "int", "float", before=full + "reprl.kernels._write_entry = full\n")
    assert out == ["6", "2.5", "0"]
    assert said.count("No space left on device") == 1
    assert call(tmp_path, "int") == ["6", "0"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="modes are of POSIX")
def test_a_folder_or_file_that_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    call(tmp_path, "int")
    (file,) = (tmp_path / "cache").rglob("*.nbc")
    file.chmod(0o666)
    assert call(tmp_path, "int") == ["6", "0"]  # and replaced
    assert call(tmp_path, "int") == ["6", "1"]
    file.parent.chmod(0o777)
    out, said = say(tmp_path, "int")
    assert out == ["6", "0"]
    assert "by you alone" in said
    file.parent.chmod(0o755)
    assert call(tmp_path, "int") == ["6", "1"]
    found = file.stat()
    own = os.getuid()
    fields = list(found)
    for mode, uid, gid, trusted in (
        (0o100644, own, 12345, True),
        (0o100644, 0, 0, True),
        (0o100644, own + 1, 0, False),
        (0o100664, own, own, True),
        (0o100664, own, own + 1, False),
    ):
        fields[0], fields[4], fields[5] = mode, uid, gid
        assert kernels._trusted(os.stat_result(fields)) is trusted


def test_by_itself_numba_runs_it(tmp_path: Path) -> None:
    """The control: the danger is real."""
    call(tmp_path, "int", "float", home="numba")
    swap(tmp_path)
    assert call(tmp_path, "int", "float", home="numba")[:2] != ["6", "2.5"]


def test_code_that_was_made_from_other_sources_is_not_run(tmp_path: Path) -> None:
    call(tmp_path, "int")
    other = OTHER_HASH.format(first="of another version", later="of another version")
    assert call(tmp_path, "int", before=other) == ["6", "0"]
    assert call(tmp_path, "int", before=other) == ["6", "1"]
    assert call(tmp_path, "int") == ["6", "0"]


def test_code_of_sources_that_have_changed_since_is_not_kept(tmp_path: Path) -> None:
    changed = OTHER_HASH.format(first="as imported", later="edited meanwhile")
    assert call(tmp_path, "int", before=changed) == ["6", "0"]
    assert call(tmp_path, "int") == ["6", "0"]
    assert call(tmp_path, "int") == ["6", "1"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that writes a file of a small package called reprl and hashes the sources of reprl.a.b."""
    monkeypatch.setattr(kernels, "__file__", str(tmp_path / "kernels.py"))

    def hash_after(name: str, text: str) -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        kernels.hash_sources.cache_clear()
        kernels._read.cache_clear()
        return kernels.hash_sources("reprl.a.b")

    yield hash_after
    kernels.hash_sources.cache_clear()
    kernels._read.cache_clear()


@pytest.mark.parametrize(
    "imports",
    [
        "from reprl.c.d import inner",
        "from reprl.c import d",
        "from reprl.c import e, d as other  # two modules",
        "from reprl.c import (\n    e,\n    d,  # kernels\n)",
        "from reprl.c.d import (\n    inner,\n    outer,\n)",
        "if TYPE_CHECKING:\n    from reprl.c.d import Table",
        "from reprl.between import inner",
        "from reprl.c import inner",
    ],
)
def test_an_edited_import_counts_and_an_unrelated_file_does_not(package: Any, imports: str) -> None:
    package("a/b.py", f"{imports}\n@njit(cache=True)\ndef outer(x):\n    return x\n")
    package("between.py", "from reprl.c.d import inner\n")  # which has no kernels of its own
    package("c/__init__.py", "from reprl.c.d import inner\n")
    package("c/e.py", "def plain(x):\n    return x\n")
    before = package("c/d.py", "@njit(cache=True)\ndef inner(x):\n    return x\n")
    assert package("c/f.py", "@njit(cache=True)\ndef unrelated(x):\n    return x\n") == before
    assert package("c/e.py", "def plain(x):\n    return 2 * x\n") == before, "no kernel reads it"
    after = package("c/d.py", "@njit(cache=True)\ndef inner(x):\n    return x + x\n")
    assert after != before
    assert package("c/d.py", "class Table(NamedTuple):\n    x: int\n") not in (before, after)


def test_the_regular_expression_finds_every_import() -> None:
    """As Python's own parser does; and there are no relative imports and none of the form `import reprl.x`."""
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).with_suffix("")
        parts = place.parts[:-1] if place.name == "__init__" else place.parts
        source = kernels._read(".".join(("reprl", *parts)))
        assert (source is None) == (parts == ())
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                assert not any(alias.name.partition(".")[0] == "reprl" for alias in node.names), path
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                if (node.module or "").partition(".")[0] == "reprl":
                    wanted |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        if source is not None:
            names = {name for name in wanted if name.rpartition(".")[2].islower()}  # as those of all modules are
            assert names <= source.imports <= wanted, path


def test_code_that_numba_filed_by_itself_is_not_taken_for_ours(tmp_path: Path) -> None:
    file, ours, plain = tmp_path / "kernels_to_try.py", "from reprl.kernels import njit", "from numba import njit"
    file.write_text(KERNELS.format(home="numba").replace(plain, plain.ljust(len(ours))))
    before = file.stat()
    assert call(tmp_path, "int") == ["6", "0"]
    file.write_text(KERNELS.format(home="reprl.kernels"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # to Numba it is the file that it was
    assert file.stat().st_size == before.st_size
    assert call(tmp_path, "int") == ["6", "0"]
    assert call(tmp_path, "int") == ["6", "1"]


@pytest.mark.slow
def test_processes_that_compile_at_once_all_come_to_the_right_code(tmp_path: Path) -> None:
    answers = {"int": "6", "float": "2.5", "complex": "4j", "bool": "2"}
    running = [start(tmp_path, *words.split()) for words in ("int float", "float int", "complex int", "bool complex")]
    for words, child in zip(("int float", "float int", "complex int", "bool complex"), running, strict=True):
        assert child.communicate(timeout=120)[0].split()[:2] == [answers[word] for word in words.split()]
    for _ in range(2):
        assert call(tmp_path, *answers)[:4] == list(answers.values())
    assert call(tmp_path, *answers) == [*answers.values(), "4"]


def test_every_kernel_is_compiled_in_this_way() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module if isinstance(node, ast.ImportFrom) else None
            if "numba" in names or (module or "").partition(".")[0] == "numba":
                found.append(path.name)
    assert set(found) == {"kernels.py"}


def test_without_a_compiler_kernels_are_functions(tmp_path: Path) -> None:
    before = "import os\nos.environ['NUMBA_DISABLE_JIT'] = '1'\n"
    script = before + KERNELS.format(home="reprl.kernels") + "print(double(4))"
    (tmp_path / "plain.py").write_text(script)
    done = subprocess.run([sys.executable, tmp_path / "plain.py"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "8\n", done.stderr


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def taken_from_elsewhere(source: str, files: set[str]) -> list[tuple[str, str]]:
    """Names that kernels read and that come, directly or by a constant, from files of ours that have no kernels."""
    tree = ast.parse(source)
    foreign: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reprl."):
            file = "/".join((node.module or "").split(".")[1:]) + ".py"
            foreign |= {alias.asname or alias.name for alias in node.names if file not in files}
        if isinstance(node, ast.Assign) and names_in(node.value) & foreign:
            foreign |= set().union(*map(names_in, node.targets))
    kernels = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(mark) for mark in node.decorator_list)
    ]
    return [
        (one.name, name)
        for one in kernels
        for part in (one.args, *one.body)
        for name in sorted(names_in(part) & foreign)
    ]


def test_all_that_kernels_take_in_is_hashed() -> None:
    texts = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}
    files = {name for name, text in texts.items() if "@njit(" in text or "(NamedTuple)" in text}
    assert [(name, *found) for name in sorted(files) for found in taken_from_elsewhere(texts[name], files)] == []
    # The control: a constant that comes from a file without kernels, and another that is made of it.
    source = "from reprl.nowhere import MOST\nTWICE = 2 * MOST\n@njit(cache=True)\ndef f(x):\n    return x + TWICE\n"
    assert taken_from_elsewhere(source, files) == [("f", "TWICE")]


def test_an_inner_kernel_is_called_by_kernels_alone() -> None:
    """Python would call a null pointer: it is refused, also where the code is there already."""
    invert: Any = draws._invert
    kernel: Any = kernels.njit()(lambda: invert(0.4, 5, 0.5))
    assert kernel() == 2
    assert invert.nopython_signatures
    with pytest.raises(TypeError, match="_invert is called by kernels alone"):
        invert(0.4, 5, 0.5)
    assert invert.py_func(0.4, 5, 0.5) == 2


def test_garbage_is_collected_again_after_compiling_and_after_a_failure() -> None:
    """Also where the caller had switched that off."""
    for collecting in (True, False):
        (gc.enable if collecting else gc.disable)()
        try:
            kernel: Any = kernels.njit()(lambda x: x + 1)
            assert kernel(1) == 2
            assert gc.isenabled() == collecting
            with pytest.raises(numba.TypingError):
                kernel("one")
            assert gc.isenabled() == collecting
        finally:
            gc.enable()

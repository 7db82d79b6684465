"""The front door is light: names load when they are used, and no kernel is compiled before it runs."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import reprl

HEAVY = {"numpy", "numba", "scipy", "gymnasium", "joblib", "rich", "typer", "matplotlib", "pandas", "quantecon"}

KERNELS = """
import json, sys
from numba.core import event
from numba.core.dispatcher import Dispatcher

def kernels():
    return {
        f"{name}.{attribute}": value
        for name, module in list(sys.modules.items()) if name.split(".")[0] == "reprl"
        for attribute, value in vars(module).items() if isinstance(value, Dispatcher)
    }

def compiled():
    return sorted(name for name, kernel in kernels().items() if kernel.signatures)

with event.install_recorder("numba:compile") as recorder:
    import reprl
    names = [getattr(reprl, name) for name in reprl.__all__]
    after_import = {"compiled": compiled(), "events": len(recorder.buffer), "modules": sorted(sys.modules)}
    number = len(kernels())
    reprl.SharedKey(1).uniforms(1)
    print(json.dumps({**after_import, "kernels": number, "used": compiled(), "used_events": len(recorder.buffer)}))
"""


def run(program: str, cache: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout


def test_all_names_compile_nothing_and_load_no_optional_package(tmp_path):
    seen = json.loads(run(KERNELS, tmp_path))
    assert seen["kernels"] >= 8
    assert seen["compiled"] == []
    assert seen["events"] == 0
    heavy = {"gymnasium", "plotly", "matplotlib", "typer", "rich", "joblib", "scipy.stats", "quantecon", "pandas"}
    assert heavy.isdisjoint(seen["modules"])
    # The control: the first draw compiles, and both ways of looking notice it.
    assert "reprl.randomness.fill_words" in seen["used"]
    assert seen["used_events"] > 0


@pytest.mark.parametrize(
    ("program", "needed"),
    [
        ("import reprl; dir(reprl)", set()),
        ("from reprl.cli.app import main; main(['--help'])", {"typer", "rich"}),
        ("from reprl.cli.app import main; main(['envs', '--help'])", {"typer", "rich"}),
        ("from reprl.cli.app import main; main(['learn', '--help'])", {"typer", "rich"}),
        ("from reprl.cli.app import main; main(['--version'])", {"typer"}),
    ],
)
def test_the_front_door_loads_nothing_heavy(program, needed, tmp_path):
    out = run(f"{program}\nimport sys, json; print(); print(json.dumps(sorted(sys.modules)))", tmp_path)
    loaded = set(json.loads(out.splitlines()[-1]))
    assert loaded & HEAVY == needed
    assert "reprl" in loaded
    # The control: a name that needs arrays loads them.
    after = json.loads(run("import reprl, sys, json; reprl.Policy; print(json.dumps(sorted(sys.modules)))", tmp_path))
    assert "numpy" in after


def test_the_table_is_what_type_checkers_see():
    tree = ast.parse(inspect.getsource(reprl))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen: dict[str, str] = {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom)
        (name,) = line.names
        assert name.asname == name.name  # `X as X` is an export
        seen[name.name] = str(line.module)
    rooms = {name for name, home in seen.items() if home == "reprl"}
    public = {name: home.removeprefix("reprl.") for name, home in seen.items() if name not in rooms}
    assert rooms == set(reprl._ROOMS)
    assert public == reprl._HOME_OF
    assert reprl.__all__ == sorted(public)
    assert rooms | set(public) <= set(dir(reprl))


def test_every_public_name_is_there_and_no_room_is_in_its_way():
    for name in reprl.__all__:
        assert not inspect.ismodule(getattr(reprl, name))
    for room in reprl._ROOMS:
        assert inspect.ismodule(getattr(reprl, room))
    folder = Path(reprl.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules.isdisjoint(reprl.__all__)
    with pytest.raises(AttributeError, match="'reprl' has no attribute 'lern'"):
        reprl.lern  # type: ignore[attr-defined]  # noqa: B018


def test_rooms_open_by_attribute_and_by_import(tmp_path):
    program = "import reprl; print(reprl.{}.__name__)"
    for name in ("lab", "auditing", "learning"):
        assert run(program.format(name), tmp_path).strip().endswith(name.split(".")[-1])
    out = run("import reprl.auditing.compare as c, reprl; print(c.compare is reprl.compare)", tmp_path)
    assert out.strip() == "True"


def test_a_star_import_gives_every_public_name(tmp_path):
    out = run("from reprl import *; import reprl; print(set(reprl.__all__) - set(globals()))", tmp_path)
    assert out.strip() == "set()"
